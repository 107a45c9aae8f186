/* ext.h - what the files of ext/ share: the connection, its tokenizers, arguments, errors.
**
** The glue knows SQLite, yajl and bpe.h, nothing else of src/. One `conn` per database
** connection is borrowed by every function and module registered on it, each registration
** holding one reference that SQLite gives back through conn_release.
**
** A failing helper leaves one message, made by fail(): "<sql name>: <what>: <object>", owned by
** the caller's `failure`, and returns a SQLite result code. Scalars hand it to the context,
** virtual tables to zErrMsg:
**
**     failure f = {.name = "bpe_count", .c = c};
**     if (call_get(ctx, argc, argv, 1, FOR_COUNT, &f, &k) != SQLITE_OK) {
**       failure_to_context(&f, ctx);
**       return;
**     }
*/
#ifndef EXT_H
#define EXT_H

#include "../src/bpe.h"

#ifdef SQLITE_CORE
#include "sqlite3.h"
#else
#include "sqlite3ext.h"
extern const sqlite3_api_routines *sqlite3_api;
#endif

/* Whether the running SQLite is new enough for an API and was built with it. An API newer than
** the headers of the build needs an #if of its own around the use. */
#ifdef SQLITE_CORE
#define HAVE(version, member) (sqlite3_libversion_number() >= (version))
#else
#define HAVE(version, member)                                                                      \
  (sqlite3_libversion_number() >= (version) && sqlite3_api->member != NULL)
#endif

#ifndef SQLITE_RESULT_SUBTYPE
#define SQLITE_RESULT_SUBTYPE 0x001000000
#endif

#define OLDEST_SQLITE 3031000
#define DEFAULT_TOKENIZER "o200k_base"
#define JSON_SUBTYPE 74 /* 'J', as the JSON functions mark their results */

#if defined(__GNUC__)
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTF_LIKE(text, first)
#endif

typedef struct bytes {
  const uint8_t *data; /* borrowed; never NULL */
  size_t len;
} bytes;

/* ---- Connection (ext_main.c) -------------------------------------------------------------- */

typedef struct tokenizer tokenizer;
typedef struct call call;
typedef struct store store;

enum { RECENT_CALLS = 8 };

typedef struct conn {
  sqlite3 *db;
  int refs; /* one per registration, plus the entry point's own while it runs */
  bpe_alloc alloc;
  tokenizer *tokenizers;      /* loaded ones, newest first (registry.c) */
  call *plain;                /* default tokenizer, no options; made on first use (call.c) */
  call *recent[RECENT_CALLS]; /* the latest that scalars made with other arguments (call.c) */
  int next_recent;
  store *store;           /* kept statements; belongs to the catalogue's table (store.c) */
  bool storage_busy;      /* a statement on stored rows is running */
  int streams;            /* calls of bpe_stream that are running, one inside the other */
  sqlite3_int64 versions; /* of schemas as seen by the store; only grows */
  bpe_buffer kept;        /* for the next answer (result.c) */
  int64_t next_tick;      /* monotonic nanoseconds; interrupt.c */
  unsigned ticks;
  int stopped_by; /* the code with which interrupted() last said stop */
} conn;

void conn_release(void *); /* xDestroy of every registration */

/* ---- Failures (errors.c) ------------------------------------------------------------------- */

typedef struct failure {
  const char *name; /* the SQL function or table at fault, borrowed */
  conn *c;          /* borrowed; knows why the work was stopped */
  int rc;           /* SQLITE_OK: no failure */
  char *text;       /* owned, from sqlite3_mprintf; NULL: the code's own text */
} failure;

/* Records the first failure and returns its code. fail: SQLITE_ERROR and "<name>: <format>". */
int fail(failure *, const char *format, ...) PRINTF_LIKE(2, 3);
static inline int fail_code(failure *f, int rc) {
  if (f->rc == SQLITE_OK) f->rc = rc;
  return f->rc;
}
/* What SQLite itself just failed with: its code, and "<name>: <its message>". */
int fail_db(failure *, sqlite3 *, int rc);
/* A status of the core: NOMEM, TOOBIG and STOPPED become SQLite's own codes, the rest text. A
** failure to which STOPPED may come needs its conn. */
int fail_status(failure *, bpe_status, const bpe_error *);
/* As fail_status, where TOOBIG is no matter of memory and the error says what is too big. */
int fail_text(failure *, const bpe_error *);
void failure_to_context(failure *, sqlite3_context *); /* and frees it */
int failure_to_vtab(failure *, sqlite3_vtab *);        /* and frees it; returns the code */
void failure_clear(failure *);

/* Bytes of a user fit for a message: well-formed, on one line, cut after SHOWN_BYTES. */
enum { SHOWN_BYTES = 100, SHOWN_SIZE = SHOWN_BYTES + 8 };
const char *shown(bytes, char out[SHOWN_SIZE]);

/* ---- Answers that are bytes (result.c) ------------------------------------------------------ */

/* An empty buffer, as long as SQLITE_LIMIT_LENGTH at most; result_end takes it back. */
void result_begin(conn *, bpe_buffer *);
/* Makes it the result, TEXT or BLOB, unless something failed, if only the buffer, which the failure
** then says. Returns the failure's code. */
int result_end(sqlite3_context *, conn *, bpe_buffer *, bool as_text, failure *);

/* ---- Interrupts (interrupt.c) -------------------------------------------------------------- */

/* The stop callback of every long loop: non-zero once sqlite3_interrupt was called or a progress
** handler has said so. */
int interrupted(void *conn);
/* Counts work of ext/ itself, in units of a nanosecond or a few, towards the next question. True:
** it was stopped, and the failure says so. */
typedef struct work {
  failure *f;
  size_t done;
} work;
bool work_stopped(work *, size_t units);

/* ---- Arguments (args.c) -------------------------------------------------------------------- */

/* Text as the contract has it: TEXT is its UTF-8, BLOB its bytes, numbers their text. False:
** out of memory. The value is not NULL. */
bool value_bytes(sqlite3_value *, bytes *out);
bool value_is_null(sqlite3_value *);
const char *value_type_name(sqlite3_value *);
/* Ids from a JSON array or a packed BLOB of `width` bits. *ids is the caller's to sqlite3_free;
** it may be NULL when n is 0. */
int value_ids(sqlite3_value *, int width, failure *, uint32_t **ids, size_t *n);

/* A number of tokens, an INTEGER and at least `least` (fn_budget.c). */
int value_limit(sqlite3_value *, uint64_t least, failure *, uint64_t *out);
/* The bytes text[start .. stop) of a value as TEXT, or BLOB if it is one (fn_budget.c). */
void result_part(sqlite3_context *, sqlite3_value *, bytes text, size_t start, size_t stop);
/* Packed ids: n of them, little-endian, `size` bytes each. */
typedef struct packed {
  const uint8_t *data;
  size_t n, size;
} packed;
/* A BLOB of packed ids; width, in bits, NULL: 32. */
int value_packed(sqlite3_value *blob, sqlite3_value *width, failure *, packed *out);
uint32_t packed_id(const packed *, size_t i);

/* ---- JSON (json.c) ------------------------------------------------------------------------- */

typedef enum json_kind {
  JSON_NULL,
  JSON_TRUE,
  JSON_FALSE,
  JSON_NUMBER,
  JSON_STRING,
  JSON_ARRAY,
  JSON_OBJECT,
  JSON_KEY, /* before its value; only as an event, as is */
  JSON_END  /* of the innermost array or object */
} json_kind;

/* One event of a text read from left to right. text: of a number as written, of a string or key
** decoded; it lives only during the call. False stops the reading; say why in your failure. */
typedef bool json_event(void *ctx, json_kind, bytes text);

/* Reads one JSON value. `what` begins the message about malformed text: "<name>: <what>: <why>".
** Out of memory ends it without a further event: what a handler owns hangs at ctx. */
int json_read(bytes text, const char *what, failure *, json_event *, void *ctx);

typedef struct json_value {
  json_kind kind;
  bytes text;                             /* of a number or string */
  bytes key;                              /* in an object */
  struct json_value *first, *last, *next; /* children of an array or object; siblings */
  size_t n;                               /* children */
} json_value;

/* A small document and the memory of all its values, which die together. Zero is empty. */
typedef struct json_doc {
  const json_value *root;
  struct json_chunk *chunks;
} json_doc;

int json_parse(bytes text, const char *what, failure *, json_doc *out);
void json_doc_clear(json_doc *);
/* May be stopped; then the failure says so. */
void json_append_ids(bpe_buffer *, const uint32_t *ids, size_t n, failure *);

/* ---- Tokenizers (registry.c) --------------------------------------------------------------- */

/* One loaded tokenizer of one connection: a model and its coder. Reference-counted. */
struct tokenizer {
  int refs;
  int builtin;               /* index of the built-in encoding; -1: stored */
  const char *name;          /* what it is built in as, or "schema.name" in the same allocation */
  bool kept;                 /* stored: in the connection's list, so the same pointer is the same */
  const char *own_name;      /* stored: without the schema */
  size_t name_len;           /* of own_name */
  bytes pattern, options;    /* stored: what its row said; in the same allocation */
  sqlite3_int64 id, version; /* stored: its row, and the state of its schema */
  int changes;               /* stored: of the connection when it was loaded */
  unsigned data_version;     /* stored: of the file, then */
  bool committed;            /* stored: no transaction was open then */
  bool has_digest;
  uint8_t digest[32]; /* tokenizer_digest */
  bpe_model *model;
  bpe_coder *coder;
  enum { UNKNOWN, DISTINCT, DUPLICATES } spelling; /* tokenizer_spells_once */
  tokenizer *next;
};

/* The tokenizer that a name value means: an argument of SQL, or NULL for the default. The
** caller gets one reference. A NULL SQL value is the caller's business and must not come here.
** who: FOR_..., or 0. */
int tokenizer_get(conn *, sqlite3_value *name, int who, failure *, tokenizer **out);
/* The same for a name that is known to be one. The row of a stored tokenizer is looked at each
** time, so what comes is right for the statement that asks, and may be kept while it runs. */
int tokenizer_named(conn *, bytes name, int who, failure *, tokenizer **out);
/* 32 bytes; NULL: the failure says why. */
const uint8_t *tokenizer_digest(tokenizer *, failure *);
/* The name of what the name means, NULL if there is nothing; the caller's to sqlite3_free. */
int tokenizer_resolve(conn *, bytes name, failure *, char **out);
/* A loaded built-in, or NULL; no reference. */
tokenizer *tokenizer_loaded(const conn *, int builtin);
void tokenizer_release(tokenizer *); /* NULL is fine */
/* Whether no two entries of the vocabulary have the same bytes, so that finding one is finding
** all. The first call looks at every entry. */
int tokenizer_spells_once(tokenizer *, failure *, bool *once);

/* ---- Storage (schema.c, store*.c) ----------------------------------------------------------- */

/* One statement of sql/schema.sql. */
typedef struct schema_object {
  const char *type; /* table or trigger */
  bytes name, text; /* text: from the name on */
} schema_object;

/* *bad is the first object that the schema does not have as schema.sql makes it, or is empty. */
int schema_check(conn *, const char *schema, failure *, schema_object *bad);
int schema_create(conn *, const char *schema, failure *);

/* A row of bpe_model. */
typedef struct stored_row {
  bool found, sealed;
  const char *schema; /* the store's */
  sqlite3_int64 id, version;
  uint8_t digest[32];
  bytes pattern, options; /* no data: NULL; there as long as the read is open */
} stored_row;

/* sqlite3_step over stored rows, where no value that bpe makes has more bytes: one that has is a
** failure before it is read, so that a planted one costs no time. SQLite still reads a key wherever
** it compares one, and names and tokens are in keys: on the way to a name in the index, on the way
** to a tokenizer's first row (of either table that row, the last of the tokenizer before, and those
** in the nodes above), and of all rows that are deleted. Returns what SQLite says; of values that
** are too long the failure knows, of nothing else. */
enum { LONGEST_STORED = 1 << 26 };
int stored_step(conn *, sqlite3_stmt *, failure *);

store *store_new(conn *, bool kept);
void store_free(store *);
/* Every use of stored rows stands between these two. NULL: the failure says why. */
store *store_begin(conn *, failure *);
void store_end(store *);
void store_rest(store *); /* ends the reads that store_seek left open */
conn *store_conn(const store *);
bool store_is_kept(const store *); /* versions of rows mean something beyond this use */
const char *store_schema(const store *, int i); /* NULL past the last */
/* Has a bpe_model that is not ours; known after a store_seek there. */
bool store_is_foreign(const store *, int i);
int store_find_schema(const store *, bytes name); /* -1: there is none */
/* Takes a schema's name and the dot off the front of the name; -1: it begins with none. */
int store_split(const store *, bytes *name);
/* The row that a name means, which is not a reserved one. The read stays open. */
int store_seek(store *, bytes name, failure *, stored_row *out);
int store_seek_in(store *, int schema, bytes name, failure *, stored_row *out);
/* Calls `each` with the names in a schema, in order, until it says false. */
typedef bool stored_name(void *ctx, int schema, bytes name);
int store_each(store *, int schema, failure *, stored_name *each, void *ctx);
bool name_is_reserved(bytes name); /* means a built-in encoding, whatever is stored */

/* What a row of bpe_model says besides its name and digest. */
typedef struct stored_head {
  bytes pattern, options, stats; /* no bytes: NULL */
} stored_head;

const char *stored_kind(bpe_kind);
/* The model of a row, which is unsealed, damaged or right. `name` is for messages. *missing: a
** trigger without which what was read must not be kept, or empty. */
int stored_load(conn *, bytes name, const stored_row *, failure *, bpe_model **out,
                schema_object *missing);
int fail_missing(failure *, const schema_object *, const char *schema);
/* The same without a look at seal, digest or triggers. */
int stored_read(conn *, const char *schema, sqlite3_int64 id, failure *, bpe_model **out);
/* The model of rows whose head is not stored yet. */
int stored_build(conn *, const char *schema, sqlite3_int64 id, const stored_head *, failure *,
                 bpe_model **out);

/* A name under which a tokenizer may be stored, and the schema for it (NULL: main). */
int store_take_name(const store *, sqlite3_value *, failure *, bytes *out);
int store_take_schema(const store *, sqlite3_value *, failure *, int *schema);
int store_refuse(store *, int schema, bytes name, failure *); /* fails if it exists */
/* What an INSERT into bpe_tokenizers says about the tokenizer itself. */
typedef struct store_input {
  sqlite3_value *source, *merges, *pattern, *special_tokens, *options;
} store_input;
int store_import(conn *, const store_input *, failure *, bpe_model **out);

/* Each is all or nothing, and changes stored rows between store_begin and store_end. */
int stored_insert(store *, const char *schema, bytes name, const bpe_model *, failure *);
int stored_delete(store *, const stored_row *, bytes name, failure *);
int stored_rename(store *, const stored_row *, bytes name, failure *);
int stored_seal(store *, const stored_row *, bytes name, failure *);

/* ---- Numbers of stored tokenizers (known.c) ------------------------------------------------- */

typedef struct known {
  const char *schema; /* the list's */
  int schema_number;
  bytes name; /* owned, by way of the next */
  uint8_t *owned;
} known;

/* Zero is empty. */
typedef struct known_list {
  known *list; /* owned; by number */
  int *sorted; /* owned; numbers, by schema and name */
  int n;
  char **schemas; /* owned */
  int n_schemas;
} known_list;

/* The number of a (schema, name), a new one if need be; -1: out of memory. */
int known_number(known_list *, const char *schema, bytes name);
void known_clear(known_list *);

/* ---- Options (options.c) ------------------------------------------------------------------- */

/* Who is asking: each key of the options object says which of these know it. */
enum {
  FOR_COUNT = 1 << 0,
  FOR_ENCODE = 1 << 1,
  FOR_ENCODE_BLOB = 1 << 2,
  FOR_TOKENS = 1 << 3,
  FOR_PIECES = 1 << 4,
  FOR_DECODE = 1 << 5,
  FOR_DECODE_BLOB = 1 << 6,
  FOR_FITS = 1 << 7,
  FOR_TRUNCATE = 1 << 8,
  FOR_CHUNKS = 1 << 9,
  FOR_TRACE = 1 << 10,
  FOR_STREAM = 1 << 11,
  FOR_SHOW = 1 << 12,
  FOR_MERGES = 1 << 13,
  FOR_EXPORT = 1 << 14,
  FOR_STORE = 1 << 19,
  FOR_TRAIN = 1 << 20
};

/* Who shows more of a tokenizer than the digest says: numbers of ranks, counts, figures of training. */
enum { SHOWS_RANKS = FOR_TRACE | FOR_MERGES | FOR_EXPORT };

typedef struct name_list {
  bpe_name *names; /* owned; the text is the document's */
  size_t n;
} name_list;

typedef struct options {
  json_doc doc;                            /* owns every string below */
  bool allow_all, forbid_all, forbid_rest; /* `special` of the encode family */
  name_list allow, forbid;
  bpe_specials specials; /* `special` of decode */
  bool document;
  bool has_digest;
  uint8_t digest[32];
  int width; /* 32 or 16 */
  bool has_pad_to;
  uint64_t pad_to;
  const bpe_name *pad; /* NULL: not given; else &pad_name */
  bpe_name pad_name;
  bpe_repair errors;
  bool left;        /* bpe_truncate */
  uint64_t overlap; /* bpe_chunks */
  bpe_cut cut;
  bool has_pattern, is_regex; /* bpe_pieces, bpe_train */
  bpe_name pattern;           /* a name, or a regex */
  bool whole;                 /* bpe_tokenizers */
  uint64_t vocab_size;        /* 0: not given */
  struct {                    /* bpe_train */
    bool pretokenized, gpt2_bytes, progress;
    name_list special_tokens, bos, eos;
    bpe_place special_ids;
    bpe_tie tie;
    uint64_t min_frequency, max_token_length; /* 0: not given */
    unsigned threads;
  } train;
} options;

/* A NULL value is "no options". On failure *out is empty, and clear is still fine. */
int options_parse(sqlite3_value *, int who, failure *, options *out);
void options_clear(options *);

/* ---- Calls (call.c) ------------------------------------------------------------------------ */

/* One call's settings: options parsed and bound to a tokenizer. Immutable, reference-counted. */
struct call {
  int refs;
  int who;        /* FOR_... whose options these are */
  tokenizer *tok; /* a reference */
  options opt;
  bpe_finder *allowed, *forbidden;
  bpe_pattern *pattern;
  bpe_walk_options walk; /* points at the above; ready for bpe_walk_start */
  bool has_tokenizer, has_options;
  bytes tokenizer_key, options_key; /* the arguments it was made of; in the same allocation */
};

/* The call that these arguments make. Either value may be NULL (absent: the defaults), an
** options value may also be SQL NULL (none). Checks the digest option. One reference. */
int call_new(conn *, sqlite3_value *tokenizer, sqlite3_value *opts, int who, failure *, call **out);
/* Whether these arguments would make this very call. */
bool call_is_for(const call *, sqlite3_value *tokenizer, sqlite3_value *opts, int who);
/* Makes *kept that call, unless it is: for a place that keeps one beyond a statement. What a stored
** tokenizer's name means is looked at again each time. */
int call_again(conn *, call **kept, sqlite3_value *tokenizer, sqlite3_value *opts, int who,
               failure *);
/* call_new for a scalar function whose arguments from tokenizer_arg on are tokenizer and options,
** kept as auxdata for as long as SQLite says that they are constant. *out NULL on SQLITE_OK: the
** tokenizer is SQL NULL, and so is the result. One reference of the caller's own. */
int call_get(sqlite3_context *, int argc, sqlite3_value **argv, int tokenizer_arg, int who,
             failure *, call **out);
/* The same for a function of a text, its first argument, whose bytes it gives. False: there is no
** call to release, and the result is set, an error or the NULL that a NULL before the options
** makes. */
bool call_begin(sqlite3_context *, int argc, sqlite3_value **argv, int tokenizer_arg, int who,
                failure *, call **out, bytes *text);
void call_release(void *); /* NULL is fine */

/* ---- Table functions (tables.c) ------------------------------------------------------------ */

/* What a virtual table of ours begins with. */
typedef struct table {
  sqlite3_vtab base;
  conn *c;          /* of its connection; borrowed */
  const char *name; /* for messages */
} table;

failure table_failure(const sqlite3_vtab *); /* an empty one, for this table */

enum { MAX_ARGUMENTS = 4 };

/* A scan of a table function. Every cursor begins with this; all of it is zero before a scan. */
typedef struct cursor {
  sqlite3_vtab_cursor base;
  sqlite3_value *args[MAX_ARGUMENTS]; /* owned copies by argument number; NULL: absent */
  call *call;                         /* what tokenizer and options mean; a reference */
  bytes input;                        /* of args[0], where the function reads a text */
  sqlite3_int64 row;                  /* number of the current row, from 0; rowid is one more */
  bool eof;
} cursor;

static inline conn *cursor_conn(const cursor *cur) {
  return ((const table *)cur->base.pVtab)->c;
}

/* The hidden columns of a table function, which are its arguments in this order. */
typedef struct arguments {
  int first_column, n;
  int n_required;         /* the first n_required must be given */
  int tokenizer, options; /* argument numbers; -1: there is none */
  int who;                /* FOR_... of the options */
  bool reads_text;        /* the first is a text: it becomes the cursor's input */
  const char *needs;      /* what is required, for a message */
} arguments;

/* A table function: what its rows are, and what it costs to ask for them. */
typedef struct table_function {
  const char *name, *schema; /* schema: what sqlite3_declare_vtab wants */
  arguments args;
  bool direct_only;   /* not from a view or trigger */
  int order;          /* rows come in ascending order of this column */
  double cost;        /* of a scan, in SQLite's units */
  sqlite3_int64 rows; /* of a scan, as a guess */
  size_t cursor_size;
  /* Adds to a plan of the arguments: n_argv of them go to xFilter, one key may follow, and bits
  ** from 1 << MAX_ARGUMENTS on are free in idxNum. NULL: nothing to add. */
  void (*plan)(sqlite3_index_info *, int n_argv);
  /* Begins a scan; the arguments are there, and none is NULL but options. key: what plan added, or
  ** NULL. `next` follows. */
  void (*start)(cursor *, int idx_num, sqlite3_value *key, failure *);
  /* Finds the row whose number is cur->row, or sets eof. */
  void (*next)(cursor *, failure *);
  /* A column of the row, or what an absent argument is. Returns an SQLite code. */
  int (*column)(cursor *, sqlite3_context *, int column);
  void (*end)(cursor *); /* frees what start and next took, after failures too; NULL: nothing */
} table_function;

extern const table_function *const table_functions[]; /* NULL ends it */
extern const sqlite3_module table_function_module;    /* of each of them, by its name */

/* Whether the one ORDER BY term is column `column` (or the rowid), ascending. */
bool table_ordered_by(const sqlite3_index_info *, int column);
/* Whether any of the columns first .. last is read. */
bool table_uses(const sqlite3_index_info *, int first, int last);
/* What the status that brought a row, or none, means: BPE_DONE is the end, others are failures. */
void cursor_status(cursor *, bpe_status, const bpe_error *, failure *);
/* The walk over the input that the call's options ask for. */
void cursor_walk(cursor *, bpe_walk **out, failure *);

/* Bytes as the TEXT of a column, U+FFFD where they are malformed. Returns an SQLite code. */
int result_repaired(const cursor *, sqlite3_context *, const void *text, size_t len);

/* ---- What each file contributes to the tables of ext_main.c -------------------------------- */

typedef struct function_row {
  const char *name; /* NULL ends the table */
  int n_arg;
  int flags;
  void (*func)(sqlite3_context *, int, sqlite3_value **);
} function_row;

typedef struct aggregate_row {
  const char *name; /* NULL ends the table */
  int n_arg;
  int flags;
  void (*step)(sqlite3_context *, int, sqlite3_value **);
  void (*final)(sqlite3_context *);
} aggregate_row;

extern const aggregate_row train_aggregates[], stats_aggregates[];
extern const function_row encode_functions[], decode_functions[], info_functions[],
    export_functions[], store_functions[], budget_functions[], ids_functions[], show_functions[];
extern const table_function chunks_table, ids_table, merges_table, pieces_table, stream_table,
    tokens_table, trace_table, vocab_table;
extern const sqlite3_module tokenizers_module;

int fts5_register(conn *); /* where SQLite has FTS5 */

#endif
