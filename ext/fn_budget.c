/* fn_budget.c - texts and limits: does it fit, and what of it does.
**
**   bpe_fits(text, max_tokens [, tokenizer [, options]])      1 or 0
**   bpe_truncate(text, max_tokens [, tokenizer [, options]])  TEXT or BLOB, as given
**
**   SELECT bpe_fits('hello world', 2), bpe_truncate('hello big world', 2);   -- 1|hello big
**
** (B1) NULL text, limit or tokenizer gives NULL; the limit is an INTEGER.
** (B2) bpe_fits is bpe_count(text, ...) <= max_tokens. The text's length may decide; else counting
**      stops at the limit, and what is wrong with the text behind that place stays unseen. What
**      `special` makes an error is looked for in the whole text.
** (B3) bpe_truncate keeps the bytes of the first k tokens, {"side":"left"} those of the last k; k
**      is the largest number up to the limit for which they end (begin) with a character and count
**      to at most the limit by themselves. A text that fits comes back as it is, numbers as TEXT.
** (B4) BOS and EOS of {"document":true} count: room is left for them, and a limit without that room
**      is an error.
*/
#include "ext.h"

int value_limit(sqlite3_value *v, uint64_t least, failure *f, uint64_t *out) {
  *out = 0;
  if (sqlite3_value_type(v) != SQLITE_INTEGER) {
    return fail(f, "max_tokens must be an INTEGER, not %s", value_type_name(v));
  }
  const sqlite3_int64 n = sqlite3_value_int64(v);
  if (n < (sqlite3_int64)least) {
    return fail(f, "max_tokens must be %llu or more: %lld", (unsigned long long)least, n);
  }
  *out = (uint64_t)n;
  return SQLITE_OK;
}

static void fits_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  failure f = {.name = "bpe_fits", .c = sqlite3_user_data(ctx)};
  call *k;
  bytes text;
  if (!call_begin(ctx, argc, argv, 2, FOR_FITS, &f, &k, &text)) return;
  bpe_error e = {0};
  bool fits = false;
  uint64_t most = 0;
  const bool below_all =
      sqlite3_value_type(argv[1]) == SQLITE_INTEGER && sqlite3_value_int64(argv[1]) < 0;
  if (below_all || value_limit(argv[1], 0, &f, &most) == SQLITE_OK) {
    const bpe_status st = bpe_fits(k->tok->coder, text.data, text.len, &k->walk, most, &e, &fits);
    if (st != BPE_OK) fail_status(&f, st, &e);
  }
  if (f.rc == SQLITE_OK) sqlite3_result_int(ctx, fits && !below_all);
  else failure_to_context(&f, ctx);
  call_release(k);
}

void result_part(sqlite3_context *ctx, sqlite3_value *v, bytes text, size_t start, size_t stop) {
  if (sqlite3_value_type(v) == SQLITE_BLOB) {
    sqlite3_result_blob64(ctx, text.data + start, stop - start, SQLITE_TRANSIENT);
  } else {
    sqlite3_result_text64(ctx, (const char *)text.data + start, stop - start, SQLITE_TRANSIENT,
                          SQLITE_UTF8);
  }
}

static void truncate_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  failure f = {.name = "bpe_truncate", .c = sqlite3_user_data(ctx)};
  call *k;
  bytes text;
  if (!call_begin(ctx, argc, argv, 2, FOR_TRUNCATE, &f, &k, &text)) return;
  bpe_error e = {0};
  size_t start = 0, stop = 0;
  uint64_t most;
  if (value_limit(argv[1], 0, &f, &most) == SQLITE_OK) {
    const bpe_status st = bpe_truncate(k->tok->coder, text.data, text.len, &k->walk, most,
                                       k->opt.left, &e, &start, &stop);
    if (st != BPE_OK) fail_status(&f, st, &e);
  }
  if (f.rc == SQLITE_OK) result_part(ctx, argv[0], text, start, stop);
  else failure_to_context(&f, ctx);
  call_release(k);
}

/* As in fn_encode.c. */
enum {
  ALONE = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
  NAMED = SQLITE_UTF8 | SQLITE_DETERMINISTIC
};

const function_row budget_functions[] = {
    {"bpe_fits", 2, ALONE, fits_func},
    {"bpe_fits", 3, NAMED, fits_func},
    {"bpe_fits", 4, NAMED, fits_func},
    {"bpe_truncate", 2, ALONE, truncate_func},
    {"bpe_truncate", 3, NAMED, truncate_func},
    {"bpe_truncate", 4, NAMED, truncate_func},
    {NULL, 0, 0, NULL},
};
