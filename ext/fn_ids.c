/* fn_ids.c - packed ids as a type: their number, and a part of them.
**
**   bpe_ids_length(blob [, width])           INTEGER, how many
**   bpe_ids_slice(blob, from, n [, width])   BLOB, n of them from number `from` (0 on)
**
**   SELECT hex(bpe_ids_slice(bpe_encode_blob('one two three'), 1, 1));
**
** The BLOB is what bpe_encode_blob makes: little-endian ids of 32 bits, or of 16 with width 16.
** Whether a tokenizer has the ids is nobody's question here.
** (I1) A NULL argument gives NULL. What is no BLOB, no width, no whole number is an error.
** (I2) A slice ends where the BLOB ends; from or n below 0 is an error.
*/
#include "ext.h"

static bool any_null(int argc, sqlite3_value **argv) {
  for (int i = 0; i < argc; i++) {
    if (value_is_null(argv[i])) return true;
  }
  return false;
}

static void length_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  failure f = {.name = "bpe_ids_length", .c = sqlite3_user_data(ctx)};
  packed ids;
  if (any_null(argc, argv)) return; /* I1 */
  if (value_packed(argv[0], argc > 1 ? argv[1] : NULL, &f, &ids) == SQLITE_OK) {
    sqlite3_result_int64(ctx, (sqlite3_int64)ids.n);
  } else {
    failure_to_context(&f, ctx);
  }
}

/* I2. */
static int take_number(sqlite3_value *v, const char *name, failure *f, uint64_t *out) {
  *out = 0;
  if (sqlite3_value_type(v) != SQLITE_INTEGER) {
    return fail(f, "%s must be an INTEGER, not %s", name, value_type_name(v));
  }
  const sqlite3_int64 n = sqlite3_value_int64(v);
  if (n < 0) return fail(f, "%s must be 0 or more: %lld", name, n);
  *out = (uint64_t)n;
  return SQLITE_OK;
}

static void slice_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  failure f = {.name = "bpe_ids_slice", .c = sqlite3_user_data(ctx)};
  packed ids;
  uint64_t from, n;
  if (any_null(argc, argv)) return; /* I1 */
  if (value_packed(argv[0], argc > 3 ? argv[3] : NULL, &f, &ids) != SQLITE_OK ||
      take_number(argv[1], "from", &f, &from) != SQLITE_OK ||
      take_number(argv[2], "n", &f, &n) != SQLITE_OK) {
    failure_to_context(&f, ctx);
    return;
  }
  if (from > ids.n) from = ids.n;
  if (n > ids.n - from) n = ids.n - from;
  const uint8_t *first = ids.data + (size_t)from * ids.size;
  sqlite3_result_blob64(ctx, first, n * ids.size, SQLITE_TRANSIENT);
}

/* INNOCUOUS: they depend on nothing but their arguments. */
enum { PURE = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS };

const function_row ids_functions[] = {
    {"bpe_ids_length", 1, PURE, length_func},
    {"bpe_ids_length", 2, PURE, length_func},
    {"bpe_ids_slice", 3, PURE, slice_func},
    {"bpe_ids_slice", 4, PURE, slice_func},
    {NULL, 0, 0, NULL},
};
