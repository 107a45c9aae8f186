/* fn_export.c - a tokenizer in one of the formats that others read.
**
**   bpe_export(tokenizer, format)     BLOB for 'model', TEXT for every other format
**
** (X1) NULL tokenizer or format gives NULL.
** (X2) What a format cannot carry is an error that names the first offender, never a file that
**      means something else.
**
**     SELECT writefile('mine.json', bpe_export('mine', 'huggingface'));
*/
#include "ext.h"

#include <string.h>

static int take_format(sqlite3_value *v, failure *f, bytes *out) {
  *out = (bytes){.data = (const uint8_t *)""};
  if (sqlite3_value_type(v) != SQLITE_TEXT) {
    return fail(f, "format must be TEXT, not %s", value_type_name(v));
  }
  return value_bytes(v, out) ? SQLITE_OK : fail_code(f, SQLITE_NOMEM);
}

static bool is_binary(bytes format) {
  return format.len == 5 && memcmp(format.data, "model", 5) == 0;
}

static void export_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  (void)argc;
  conn *c = sqlite3_user_data(ctx);
  failure f = {.name = "bpe_export", .c = c};
  tokenizer *t = NULL;
  bytes format;
  if (value_is_null(argv[0]) || value_is_null(argv[1])) return; /* X1 */
  if (take_format(argv[1], &f, &format) == SQLITE_OK) tokenizer_get(c, argv[0], FOR_EXPORT, &f, &t);
  if (t) {
    bpe_error e = {0};
    bpe_buffer b;
    result_begin(c, &b);
    const bpe_status st = bpe_export(t->model, (const char *)format.data, format.len, &e, &b);
    if (st != BPE_OK) fail_status(&f, st, &e);
    result_end(ctx, c, &b, !is_binary(format), &f);
  }
  if (f.rc != SQLITE_OK) failure_to_context(&f, ctx);
  tokenizer_release(t);
}

/* DIRECTONLY: megabytes of result are no business of a view or trigger. DETERMINISTIC, though the
** order of keys in a format is not promised beyond this version: no schema can keep a result, and
** of functions that are not, SQLite lets a CHECK constraint call any. */
const function_row export_functions[] = {
    {"bpe_export", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, export_func},
    {NULL, 0, 0, NULL},
};
