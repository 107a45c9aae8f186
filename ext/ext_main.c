/* ext_main.c - the entry point: checks the host, then registers everything on the connection.
**
**   SELECT load_extension('./bpe');     .load ./bpe     or, linked in with -DSQLITE_CORE,
**   sqlite3_bpe_init(db, &error, NULL)
**
** Registration is one loop over rows of functions and one over rows of modules; the first row
** that fails is named and its code returned. Every registration shares one `conn` and holds one
** reference, which SQLite gives back, also when that registration fails; so nothing is freed here
** by hand. It may run any number of times on one connection: the later rows replace the earlier.
**
** SQLite before 3.31 is refused: it knows neither INNOCUOUS nor DIRECTONLY, and would drop them
** without a word.
*/
#include "ext.h"

#ifndef SQLITE_CORE
SQLITE_EXTENSION_INIT1
#endif

static void *resize(void *ctx, void *p, size_t n) {
  (void)ctx;
  if (n > 0) return sqlite3_realloc64(p, n);
  sqlite3_free(p);
  return NULL;
}

void conn_release(void *arg) {
  conn *c = arg;
  if (--c->refs > 0) return;
  call_release(c->plain);
  for (int i = 0; i < RECENT_CALLS; i++) call_release(c->recent[i]);
  while (c->tokenizers) {
    tokenizer *t = c->tokenizers;
    c->tokenizers = t->next;
    tokenizer_release(t);
  }
  bpe_buffer_clear(&c->kept);
  sqlite3_free(c);
}

static const function_row *const functions[] = {export_functions, store_functions, encode_functions,
                                                decode_functions, info_functions,  budget_functions,
                                                ids_functions,    show_functions};

static const aggregate_row *const aggregates[] = {train_aggregates, stats_aggregates};

static int named(int rc, const char *name, char **error) {
  if (rc != SQLITE_OK && error) {
    *error = sqlite3_mprintf("bpe: cannot register %s: %s", name, sqlite3_errstr(rc));
  }
  return rc;
}

static int register_functions(conn *c, char **error) {
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    for (const function_row *row = functions[i]; row->name; row++) {
      c->refs++;
      const int rc = sqlite3_create_function_v2(c->db, row->name, row->n_arg, row->flags, c,
                                                row->func, NULL, NULL, conn_release);
      if (rc != SQLITE_OK) return named(rc, row->name, error);
    }
  }
  return SQLITE_OK;
}

/* A window function without what windows need: a plain aggregate, which OVER cannot use. */
static int register_aggregate(conn *c, const aggregate_row *row) {
  if (HAVE(OLDEST_SQLITE, create_window_function)) {
    return sqlite3_create_window_function(c->db, row->name, row->n_arg, row->flags, c, row->step,
                                          row->final, NULL, NULL, conn_release);
  }
  return sqlite3_create_function_v2(c->db, row->name, row->n_arg, row->flags, c, NULL, row->step,
                                    row->final, conn_release); /* built without window functions */
}

static int register_aggregates(conn *c, char **error) {
  for (size_t i = 0; i < sizeof aggregates / sizeof aggregates[0]; i++) {
    for (const aggregate_row *row = aggregates[i]; row->name; row++) {
      c->refs++;
      const int rc = register_aggregate(c, row);
      if (rc != SQLITE_OK) return named(rc, row->name, error);
    }
  }
  return SQLITE_OK;
}

static int register_module(conn *c, const char *name, const sqlite3_module *module, char **error) {
  c->refs++;
  return named(sqlite3_create_module_v2(c->db, name, module, c, conn_release), name, error);
}

static int register_modules(conn *c, char **error) {
  if (!HAVE(OLDEST_SQLITE, create_module_v2)) return SQLITE_OK; /* built without virtual tables */
  int rc = register_module(c, "bpe_tokenizers", &tokenizers_module, error);
  for (const table_function *const *f = table_functions; *f && rc == SQLITE_OK; f++) {
    rc = register_module(c, (*f)->name, &table_function_module, error);
  }
  return rc;
}

/* Once per process; more than once is harmless. */
static void seed(void) {
  uint8_t random[BPE_SEED_BYTES];
  sqlite3_randomness((int)sizeof random, random);
  bpe_seed(random);
}

#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
    int sqlite3_bpe_init(sqlite3 *db, char **error, const sqlite3_api_routines *api);

int sqlite3_bpe_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
#ifdef SQLITE_CORE
  (void)api;
#else
  SQLITE_EXTENSION_INIT2(api);
#endif
  if (sqlite3_libversion_number() < OLDEST_SQLITE) {
    if (error) {
      *error = sqlite3_mprintf("bpe needs SQLite 3.31 or later, this is %s", sqlite3_libversion());
    }
    return SQLITE_ERROR;
  }
  seed();
  conn *c = sqlite3_malloc64(sizeof *c);
  if (!c) return SQLITE_NOMEM;
  *c = (conn){.db = db, .refs = 1, .alloc = {.resize = resize, .ctx = c, .stop = interrupted}};
  int rc = register_functions(c, error);
  if (rc == SQLITE_OK) rc = register_aggregates(c, error);
  if (rc == SQLITE_OK) rc = register_modules(c, error);
  if (rc == SQLITE_OK) rc = named(fts5_register(c), "the FTS5 tokenizer bpe", error);
  conn_release(c);
  return rc;
}
