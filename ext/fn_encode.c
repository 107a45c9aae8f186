/* fn_encode.c - text to tokens, one value at a time.
**
**   bpe_count(text [, tokenizer [, options]])        INTEGER, the number of ids
**   bpe_encode(text [, tokenizer [, options]])       TEXT, "[15339,1917]" with the JSON subtype
**   bpe_encode_blob(text [, tokenizer [, options]])  BLOB, little-endian ids of 32 or 16 bits
**
** (E1) NULL text or tokenizer gives NULL; NULL options are no options.
** (E2) Text is bytes: TEXT its UTF-8, BLOB as it is, numbers their text.
** (E3) Without a tokenizer it is o200k_base.
** (E4) The answer is whole or an error: over SQLITE_LIMIT_LENGTH is SQLITE_TOOBIG, found while
**      writing and not after.
** (E5) {"width":16} refuses an id that does not fit; {"pad_to":n,"pad":"<name>"} fills up to n ids
**      and refuses a text with more.
*/
#include "ext.h"

static void count_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  failure f = {.name = "bpe_count", .c = sqlite3_user_data(ctx)};
  call *k;
  bytes text;
  if (!call_begin(ctx, argc, argv, 1, FOR_COUNT, &f, &k, &text)) return;
  bpe_error e = {0};
  uint64_t n;
  const bpe_status st = bpe_count(k->tok->coder, text.data, text.len, &k->walk, &e, &n);
  if (st == BPE_OK) {
    sqlite3_result_int64(ctx, (sqlite3_int64)n);
  } else {
    fail_status(&f, st, &e);
    failure_to_context(&f, ctx);
  }
  call_release(k);
}

static void encode_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  conn *c = sqlite3_user_data(ctx);
  failure f = {.name = "bpe_encode", .c = c};
  call *k;
  bytes text;
  if (!call_begin(ctx, argc, argv, 1, FOR_ENCODE, &f, &k, &text)) return;
  bpe_error e = {0};
  bpe_buffer b;
  result_begin(c, &b);
  const bpe_status st = bpe_encode_json(k->tok->coder, text.data, text.len, &k->walk, &e, &b);
  if (st != BPE_OK) fail_status(&f, st, &e);
  if (result_end(ctx, c, &b, true, &f) != SQLITE_OK) failure_to_context(&f, ctx);
  else sqlite3_result_subtype(ctx, JSON_SUBTYPE);
  call_release(k);
}

/* E5: fills the packed ids up to pad_to. */
static int pad(const call *k, bpe_buffer *b, failure *f) {
  const options *o = &k->opt;
  const size_t size = (size_t)o->width / 8;
  const uint64_t n = b->len / size;
  char name[SHOWN_SIZE];
  bpe_info info;
  bpe_model_info(k->tok->model, &info);
  const size_t at = bpe_model_find_bytes(k->tok->model, o->pad->text, o->pad->len);
  shown((bytes){(const uint8_t *)o->pad->text, o->pad->len}, name);
  if (at >= info.entry_count)
    return fail(f, "option pad is no token of %s: %s", k->tok->name, name);
  const uint32_t id = bpe_model_token(k->tok->model, at).id;
  if (size == 2 && id > UINT16_MAX) return fail(f, "id %u of pad does not fit 16 bits", id);
  if (n > o->pad_to) {
    return fail(f, "%llu ids are more than pad_to: %llu", (unsigned long long)n,
                (unsigned long long)o->pad_to);
  }
  if (o->pad_to > b->limit / size) return fail_code(f, SQLITE_TOOBIG);
  const size_t len = (size_t)(o->pad_to - n) * size;
  if (len == 0) return SQLITE_OK;
  uint8_t *p = bpe_buffer_reserve(b, len);
  if (!p) return fail_status(f, b->status, NULL);
  work w = {.f = f};
  for (size_t i = 0; i < len; i++) {
    if (work_stopped(&w, 1)) return f->rc;
    p[i] = (uint8_t)(id >> i % size * 8);
  }
  b->len += len;
  return SQLITE_OK;
}

static void encode_blob_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  conn *c = sqlite3_user_data(ctx);
  failure f = {.name = "bpe_encode_blob", .c = c};
  call *k;
  bytes text;
  if (!call_begin(ctx, argc, argv, 1, FOR_ENCODE_BLOB, &f, &k, &text)) return;
  bpe_error e = {0};
  bpe_buffer b;
  result_begin(c, &b);
  const bpe_status st =
      bpe_encode_packed(k->tok->coder, text.data, text.len, k->opt.width, &k->walk, &e, &b);
  if (st == BPE_TOOBIG && b.status != BPE_TOOBIG) {
    fail_text(&f, &e); /* an id too big for the width, not a result for SQLite */
  } else if (st != BPE_OK) {
    fail_status(&f, st, &e);
  } else if (k->opt.pad) {
    pad(k, &b, &f);
  }
  if (result_end(ctx, c, &b, false, &f) != SQLITE_OK) failure_to_context(&f, ctx);
  call_release(k);
}

/* DETERMINISTIC: a name means one content for good, or is an error, so indexes and generated
** columns may rest on it. INNOCUOUS only without a tokenizer argument: those depend on nothing but
** their text, so a schema from anywhere may use them; the others will depend on stored rows. */
enum {
  ALONE = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
  NAMED = SQLITE_UTF8 | SQLITE_DETERMINISTIC
};

const function_row encode_functions[] = {
    {"bpe_count", 1, ALONE, count_func},
    {"bpe_count", 2, NAMED, count_func},
    {"bpe_count", 3, NAMED, count_func},
    {"bpe_encode", 1, ALONE | SQLITE_RESULT_SUBTYPE, encode_func},
    {"bpe_encode", 2, NAMED | SQLITE_RESULT_SUBTYPE, encode_func},
    {"bpe_encode", 3, NAMED | SQLITE_RESULT_SUBTYPE, encode_func},
    {"bpe_encode_blob", 1, ALONE, encode_blob_func},
    {"bpe_encode_blob", 2, NAMED, encode_blob_func},
    {"bpe_encode_blob", 3, NAMED, encode_blob_func},
    {NULL, 0, 0, NULL},
};
