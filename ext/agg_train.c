/* agg_train.c - learns a vocabulary from the rows of a query.
**
**   bpe_train(text, vocab_size [, options [, weight]])    BLOB, a model to be stored
**
**   INSERT INTO bpe_tokenizers(name, source) SELECT 'mine', bpe_train(body, 8000) FROM docs;
**
** (T1) Each row is a document: TEXT its UTF-8, BLOB its bytes, numbers their text. NULL rows and
**      rows of weight 0 do not count, and when no other came the result is NULL.
** (T2) vocab_size and options must be the same for all rows of a group.
** (T3) weight is an INTEGER, 0 or more: the row counts that many times.
** (T4) A pure read: nothing is stored, and after a failure nothing is kept; the group of a query
**      that died half-way gives no model.
** (T5) An interrupt, and a progress handler of the host, ends it within some milliseconds.
** (T6) {"progress": true} writes one line to stderr that overwrites itself, and ends it, whatever
**      becomes of the training.
*/
#include "ext.h"

#include <stdio.h>
#include <string.h>

enum { LINE_SIZE = 160 };
enum { COMPARE_WORK = 4 }; /* of two names that differ */

/* One group. SQLite zeroes it, moves nothing, and calls final for each, whatever happened. */
typedef struct training {
  bool begun, failed, any;
  conn *c;
  bpe_trainer *trainer; /* owned */
  sqlite3_int64 vocab_size;
  bool has_options;
  uint8_t *options; /* owned; their text, to compare with (T2) */
  size_t options_len;
  int line_len; /* characters of the progress line; 0: none was written (T6) */
} training;

/* ---- Progress (T6) -------------------------------------------------------------------------- */

static void write_line(training *g, const char *text) {
  char padded[LINE_SIZE + 1];
  const int len = (int)strlen(text);
  sqlite3_snprintf(sizeof padded, padded, "\r%-*s", g->line_len, text);
  (void)fputs(padded, stderr);
  (void)fflush(stderr);
  g->line_len = len;
}

static void end_line(training *g) {
  if (g->line_len > 0) (void)fputs("\n", stderr);
  g->line_len = 0;
}

static void show_progress(void *arg, const bpe_train_progress *p) {
  training *g = arg;
  char line[LINE_SIZE];
  const double mb = (double)p->bytes / 1e6, s = (double)p->count_ns / 1e9;
  if (!p->merging) {
    sqlite3_snprintf(sizeof line, line,
                     "bpe_train: counting, %lld rows, %.1f MB, %.1f MB/s, %lld pieces",
                     (sqlite3_int64)p->rows, mb, s > 0 ? mb / s : 0.0, (sqlite3_int64)p->distinct);
  } else {
    const double spent = (double)p->merge_ns / 1e9;
    const double left = p->merges > 0 ? spent * (p->wanted - p->merges) / p->merges : 0.0;
    sqlite3_snprintf(sizeof line, line,
                     "bpe_train: merging, %lld rows, %.1f MB, %lld pieces, %u of %u merges, "
                     "%.0f s left",
                     (sqlite3_int64)p->rows, mb, (sqlite3_int64)p->distinct, p->merges, p->wanted,
                     left);
  }
  write_line(g, line);
}

/* ---- Beginning ------------------------------------------------------------------------------ */

static bool is_same(const bpe_name *a, const bpe_name *b) {
  return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* The indices of names among the special tokens; the caller frees *out. */
static int find_names(const name_list *names, const name_list *specials, const char *key,
                      failure *f, uint32_t **out) {
  work w = {.f = f};
  *out = NULL;
  if (names->n > BPE_MOST_AROUND) {
    return fail(f, "option %s: more than %d names", key, BPE_MOST_AROUND);
  }
  *out = sqlite3_malloc64((sqlite3_uint64)names->n * sizeof **out + 1);
  if (!*out) return fail_code(f, SQLITE_NOMEM);
  for (size_t i = 0; i < names->n; i++) {
    const bpe_name *x = &names->names[i];
    size_t k = 0;
    while (k < specials->n && !is_same(x, &specials->names[k])) {
      if (work_stopped(&w, COMPARE_WORK)) return f->rc;
      k++;
    }
    char text[SHOWN_SIZE];
    if (k == specials->n) {
      return fail(f, "option %s: not among special_tokens: %s", key,
                  shown((bytes){(const uint8_t *)x->text, x->len}, text));
    }
    (*out)[i] = (uint32_t)k;
  }
  return SQLITE_OK;
}

static int make_trainer(training *g, const options *o, failure *f) {
  uint32_t *bos = NULL, *eos = NULL;
  if (find_names(&o->train.bos, &o->train.special_tokens, "bos", f, &bos) == SQLITE_OK &&
      find_names(&o->train.eos, &o->train.special_tokens, "eos", f, &eos) == SQLITE_OK) {
    const bpe_train_options t = {
        .pattern = o->has_pattern ? o->pattern.text : NULL,
        .pattern_len = o->pattern.len,
        .is_regex = o->is_regex,
        .pretokenized = o->train.pretokenized,
        .specials = o->train.special_tokens.names,
        .n_specials = o->train.special_tokens.n,
        .place = o->train.special_ids,
        .bos = bos,
        .eos = eos,
        .n_bos = o->train.bos.n,
        .n_eos = o->train.eos.n,
        .gpt2_bytes = o->train.gpt2_bytes,
        .tie = o->train.tie,
        .min_frequency = o->train.min_frequency,
        .max_token_length = o->train.max_token_length,
        .threads = o->train.threads,
        .stop = interrupted,
        .stop_ctx = g->c,
        .progress = o->train.progress ? show_progress : NULL,
        .progress_ctx = g,
    };
    bpe_error e = {0};
    const bpe_status st =
        bpe_trainer_new(&g->c->alloc, (uint32_t)g->vocab_size, &t, &e, &g->trainer);
    if (st != BPE_OK) fail_status(f, st, &e);
  }
  sqlite3_free(bos);
  sqlite3_free(eos);
  return f->rc;
}

static int take_vocab_size(sqlite3_value *v, failure *f, sqlite3_int64 *out) {
  if (sqlite3_value_type(v) != SQLITE_INTEGER) {
    return fail(f, "vocab_size must be an INTEGER, not %s", value_type_name(v));
  }
  *out = sqlite3_value_int64(v);
  if (*out < 0) return fail(f, "vocab_size must not be negative: %lld", *out);
  if (*out > INT32_MAX) return fail(f, "vocab_size must be less than 2^31: %lld", *out);
  return SQLITE_OK;
}

static int begin(training *g, sqlite3_value *vocab_size, sqlite3_value *opts, failure *f) {
  options o = {0};
  bytes text = {(const uint8_t *)"", 0};
  g->has_options = opts && !value_is_null(opts);
  if (take_vocab_size(vocab_size, f, &g->vocab_size) == SQLITE_OK &&
      options_parse(opts, FOR_TRAIN, f, &o) == SQLITE_OK && make_trainer(g, &o, f) == SQLITE_OK) {
    if (g->has_options && !value_bytes(opts, &text)) fail_code(f, SQLITE_NOMEM);
    g->options = f->rc == SQLITE_OK ? sqlite3_malloc64((sqlite3_uint64)text.len + 1) : NULL;
    if (!g->options) fail_code(f, SQLITE_NOMEM);
  }
  options_clear(&o);
  if (f->rc != SQLITE_OK) return f->rc;
  memcpy(g->options, text.data, text.len);
  g->options_len = text.len;
  g->begun = true;
  return SQLITE_OK;
}

/* T2 */
static int check_same(const training *g, sqlite3_value *vocab_size, sqlite3_value *opts,
                      failure *f) {
  bytes text = {(const uint8_t *)"", 0};
  if (sqlite3_value_type(vocab_size) != SQLITE_INTEGER ||
      sqlite3_value_int64(vocab_size) != g->vocab_size) {
    return fail(f, "vocab_size must be the same for all rows");
  }
  const bool has = opts && !value_is_null(opts);
  if (has && !value_bytes(opts, &text)) return fail_code(f, SQLITE_NOMEM);
  if (has == g->has_options && text.len == g->options_len &&
      memcmp(text.data, g->options, text.len) == 0) {
    return SQLITE_OK;
  }
  return fail(f, "options must be the same for all rows");
}

/* ---- Rows and result ------------------------------------------------------------------------ */

/* T3 */
static int take_weight(sqlite3_value *v, failure *f, uint64_t *out) {
  *out = 1;
  if (!v) return SQLITE_OK;
  if (sqlite3_value_type(v) != SQLITE_INTEGER) {
    return fail(f, "weight must be an INTEGER, not %s", value_type_name(v));
  }
  const sqlite3_int64 weight = sqlite3_value_int64(v);
  if (weight < 0) return fail(f, "weight must not be negative: %lld", weight);
  *out = (uint64_t)weight;
  return SQLITE_OK;
}

/* BPE_TOOBIG of a trainer is about weights and vocabularies, not about SQLite's limits. */
static int fail_training(failure *f, bpe_status st, const bpe_error *e) {
  return st == BPE_TOOBIG ? fail_text(f, e) : fail_status(f, st, e);
}

static int add_row(training *g, sqlite3_value *text, sqlite3_value *weight, failure *f) {
  uint64_t times;
  bytes b;
  if (value_is_null(text)) return SQLITE_OK; /* T1 */
  if (take_weight(weight, f, &times) != SQLITE_OK || times == 0) return f->rc;
  if (!value_bytes(text, &b)) return fail_code(f, SQLITE_NOMEM);
  bpe_error e = {0};
  const bpe_status st = bpe_trainer_add(g->trainer, b.data, b.len, times, &e);
  if (st != BPE_OK) return fail_training(f, st, &e);
  g->any = true;
  return SQLITE_OK;
}

static void release(training *g) {
  end_line(g);
  bpe_trainer_free(g->trainer);
  g->trainer = NULL;
  sqlite3_free(g->options);
  g->options = NULL;
}

static void train_step(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  failure f = {.name = "bpe_train", .c = sqlite3_user_data(ctx)};
  training *g = sqlite3_aggregate_context(ctx, sizeof *g);
  if (!g) {
    sqlite3_result_error_nomem(ctx);
    return;
  }
  if (g->failed) return;
  sqlite3_value *opts = argc > 2 ? argv[2] : NULL, *weight = argc > 3 ? argv[3] : NULL;
  g->c = sqlite3_user_data(ctx);
  if ((g->begun ? check_same(g, argv[1], opts, &f) : begin(g, argv[1], opts, &f)) == SQLITE_OK) {
    add_row(g, argv[0], weight, &f);
  }
  if (f.rc == SQLITE_OK) return;
  g->failed = true; /* T4 */
  release(g);
  failure_to_context(&f, ctx);
}

static int finish(training *g, sqlite3_context *ctx, failure *f) {
  bpe_error e = {0};
  bpe_model *m = NULL;
  bpe_buffer b;
  bpe_status st = bpe_trainer_finish(g->trainer, &e, &m);
  if (st != BPE_OK) return fail_training(f, st, &e);
  result_begin(g->c, &b);
  st = bpe_model_write(m, &e, &b);
  bpe_model_free(m);
  if (st != BPE_OK) fail_status(f, st, &e);
  return result_end(ctx, g->c, &b, false, f);
}

static void train_final(sqlite3_context *ctx) {
  failure f = {.name = "bpe_train", .c = sqlite3_user_data(ctx)};
  training *g = sqlite3_aggregate_context(ctx, 0);
  if (!g || g->failed) return; /* no rows: NULL */
  if (g->any) finish(g, ctx, &f);
  release(g);
  if (f.rc != SQLITE_OK) failure_to_context(&f, ctx);
}

/* DIRECTONLY: it takes all cores and much memory, which no schema has the right to. Not
** DETERMINISTIC: the figures in the result say how long it took; its digest is another matter. */
enum { FLAGS = SQLITE_UTF8 | SQLITE_DIRECTONLY };

const aggregate_row train_aggregates[] = {
    {"bpe_train", 2, FLAGS, train_step, train_final},
    {"bpe_train", 3, FLAGS, train_step, train_final},
    {"bpe_train", 4, FLAGS, train_step, train_final},
    {NULL, 0, 0, NULL, NULL},
};
