/* errors.c - one failure per call, worded once.
**
** Every message of the glue passes through fail(), so it has one form: function first, object
** last, one line: "bpe_encode: no such tokenizer: nope". The first failure wins; what a cleanup
** path meets later does not replace it.
**
** Out of memory, too big, interrupted, and what a statement of ours on stored rows fails with, are
** SQLite's own codes with SQLite's own texts: hosts test for the codes, and out of memory has no
** memory for a text.
*/
#include "ext.h"

#include <stdarg.h>
#include <string.h>

int fail(failure *f, const char *format, ...) {
  if (f->rc != SQLITE_OK) return f->rc;
  va_list args;
  va_start(args, format);
  char *what = sqlite3_vmprintf(format, args);
  va_end(args);
  if (what) f->text = sqlite3_mprintf("%s: %s", f->name, what);
  sqlite3_free(what);
  f->rc = f->text ? SQLITE_ERROR : SQLITE_NOMEM;
  return f->rc;
}

/* The code that says most: SQLite's calls give only the low byte of it, unless the host asked for
** more. Plain errors stay plain, because their kinds mean nothing to a host. */
static int whole_code(sqlite3 *db, int rc) {
  const int extended = sqlite3_extended_errcode(db);
  return (extended & 0xff) == rc && rc != SQLITE_ERROR ? extended : rc;
}

int fail_db(failure *f, sqlite3 *db, int rc) {
  if (f->rc != SQLITE_OK) return f->rc;
  if (rc != SQLITE_NOMEM) f->text = sqlite3_mprintf("%s: %s", f->name, sqlite3_errmsg(db));
  f->rc = f->text ? whole_code(db, rc) : SQLITE_NOMEM;
  return f->rc;
}

int fail_text(failure *f, const bpe_error *e) {
  return fail(f, "%s", e != NULL ? e->text : "failed");
}

int fail_status(failure *f, bpe_status status, const bpe_error *e) {
  switch (status) {
  case BPE_NOMEM: return fail_code(f, SQLITE_NOMEM);
  case BPE_TOOBIG: return fail_code(f, SQLITE_TOOBIG);
  case BPE_STOPPED: return fail_code(f, f->c->stopped_by);
  default: return fail_text(f, e);
  }
}

void failure_clear(failure *f) {
  sqlite3_free(f->text);
  f->text = NULL;
  f->rc = SQLITE_OK;
}

void failure_to_context(failure *f, sqlite3_context *ctx) {
  if (f->rc == SQLITE_NOMEM) {
    sqlite3_result_error_nomem(ctx);
  } else if (f->rc == SQLITE_TOOBIG) {
    sqlite3_result_error_toobig(ctx);
  } else if (f->text) {
    sqlite3_result_error(ctx, f->text, -1);
    if (f->rc != SQLITE_ERROR) sqlite3_result_error_code(ctx, f->rc);
  } else {
    sqlite3_result_error_code(ctx, f->rc);
  }
  failure_clear(f);
}

int failure_to_vtab(failure *f, sqlite3_vtab *vtab) {
  const int rc = f->rc;
  if (f->text) {
    sqlite3_free(vtab->zErrMsg);
    vtab->zErrMsg = f->text;
    f->text = NULL;
  }
  failure_clear(f);
  return rc;
}

const char *shown(bytes text, char out[SHOWN_SIZE]) {
  static const char replacement[] = "\xEF\xBF\xBD";
  size_t n = 0;
  for (size_t at = 0, step; at < text.len; at += step) {
    const uint8_t *p = text.data + at;
    step = bpe_utf8_next(p, text.len - at);
    const bool well_formed = bpe_utf8_valid(p, step);
    const size_t add = well_formed ? step : 3;
    if (n + add > SHOWN_BYTES) {
      memcpy(out + n, "...", 3);
      n += 3;
      break;
    }
    if (!well_formed) {
      memcpy(out + n, replacement, 3);
    } else if (*p < 0x20 || *p == 0x7f) {
      out[n] = '?';
    } else {
      memcpy(out + n, p, step);
    }
    n += add;
  }
  out[n] = 0;
  return out;
}
