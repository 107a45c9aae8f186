/* fn_decode.c - ids back to text.
**
**   bpe_decode(ids [, tokenizer [, options]])       TEXT
**   bpe_decode_blob(ids [, tokenizer [, options]])  BLOB, the exact bytes
**
** (D1) NULL ids or tokenizer gives NULL.
** (D2) ids is a JSON array or a packed BLOB of {"width"} bits; a bare number is refused, because
**      '15' and 15 would otherwise mean different things by accident of a column's type.
** (D3) Any list of known ids decodes, canonical or not; an unknown id is an error with its place.
** (D4) bpe_decode repairs what is not UTF-8 as {"errors"} says; bpe_decode_blob changes nothing:
**      bpe_decode_blob(bpe_encode_blob(x)) = x for every x.
*/
#include "ext.h"

/* The bytes of the ids, into a buffer that the caller clears or hands over. */
static int decode(sqlite3_value *value, const call *k, failure *f, bpe_buffer *out) {
  bpe_error e = {0};
  uint32_t *ids;
  size_t n;
  if (value_ids(value, k->opt.width, f, &ids, &n) != SQLITE_OK) return f->rc;
  const bpe_status st = bpe_decode(k->tok->model, ids, n, k->opt.specials, k->opt.document,
                                   k->walk.stop, k->walk.stop_ctx, &e, out);
  sqlite3_free(ids);
  return st == BPE_OK ? SQLITE_OK : fail_status(f, st, &e);
}

/* D4: replaces the buffer's bytes by their repaired form, where they need one. */
static int repair(conn *c, bpe_repair how, failure *f, bpe_buffer *b) {
  bpe_buffer repaired;
  bpe_error e = {0};
  bool valid;
  const uint8_t *text = b->bytes ? b->bytes : (const uint8_t *)"";
  bpe_status st = bpe_utf8_check(&c->alloc, text, b->len, &e, &valid);
  if (st != BPE_OK) return fail_status(f, st, &e);
  if (valid) return SQLITE_OK;
  bpe_buffer_init(&repaired, &c->alloc, b->limit);
  st = bpe_utf8_repair(b->bytes, b->len, how, &e, &repaired);
  if (st != BPE_OK) {
    bpe_buffer_clear(&repaired);
    return fail_status(f, st, &e);
  }
  bpe_buffer_clear(b);
  *b = repaired;
  return SQLITE_OK;
}

static void run(sqlite3_context *ctx, int argc, sqlite3_value **argv, const char *name,
                bool as_text) {
  conn *c = sqlite3_user_data(ctx);
  failure f = {.name = name, .c = c};
  call *k = NULL;
  bpe_buffer b;
  if (value_is_null(argv[0])) return; /* D1 */
  if (call_get(ctx, argc, argv, 1, as_text ? FOR_DECODE : FOR_DECODE_BLOB, &f, &k) != SQLITE_OK) {
    failure_to_context(&f, ctx);
  }
  if (!k) return;
  result_begin(c, &b);
  if (decode(argv[0], k, &f, &b) == SQLITE_OK && as_text) repair(c, k->opt.errors, &f, &b);
  if (result_end(ctx, c, &b, as_text, &f) != SQLITE_OK) failure_to_context(&f, ctx);
  call_release(k);
}

static void decode_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  run(ctx, argc, argv, "bpe_decode", true);
}

static void decode_blob_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  run(ctx, argc, argv, "bpe_decode_blob", false);
}

/* The reasons are those of fn_encode.c: decoding depends on the same things. */
enum {
  ALONE = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
  NAMED = SQLITE_UTF8 | SQLITE_DETERMINISTIC
};

const function_row decode_functions[] = {
    {"bpe_decode", 1, ALONE, decode_func},
    {"bpe_decode", 2, NAMED, decode_func},
    {"bpe_decode", 3, NAMED, decode_func},
    {"bpe_decode_blob", 1, ALONE, decode_blob_func},
    {"bpe_decode_blob", 2, NAMED, decode_blob_func},
    {"bpe_decode_blob", 3, NAMED, decode_blob_func},
    {NULL, 0, 0, NULL},
};
