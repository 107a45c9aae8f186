/* slt_text.c - growable text, pools of strings, files, and values as test files show them.
**
** A value is shown so that it can be read back: integers as %lld, reals as %.15g, BLOBs as
** X'0a0b', SQL NULL as NULL, empty text as (empty). In TEXT, a backslash, control characters
** and bytes that are no UTF-8 are escaped as \\ \n \t \xHH; a text that spells NULL or (empty)
** gets its first character escaped. A '|' is escaped where it would look like the end of a
** column.
**
**     SELECT 'a' || char(10) || 'b', x'00ff', NULL, ''      a\nb|X'00ff'|NULL|(empty)
*/
#include "slt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void out_of_memory(void) {
  fputs("slt: out of memory\n", stderr);
  exit(2);
}

void *slt_alloc(size_t n) {
  void *p = calloc(1, n ? n : 1);
  if (!p) out_of_memory();
  return p;
}

void *slt_grow(void *items, size_t *capacity, size_t needed, size_t item_size) {
  if (needed <= *capacity) return items;
  size_t n = *capacity ? *capacity : 8;
  while (n < needed) {
    if (n > SIZE_MAX / 2) out_of_memory();
    n *= 2;
  }
  if (n > SIZE_MAX / item_size) out_of_memory();
  void *p = realloc(items, n * item_size);
  if (!p) out_of_memory();
  memset((char *)p + *capacity * item_size, 0, (n - *capacity) * item_size);
  *capacity = n;
  return p;
}

/* ---- Text ----------------------------------------------------------------------------------- */

void text_append(text *t, const void *bytes, size_t len) {
  if (len >= SIZE_MAX - t->len) out_of_memory();
  t->data = slt_grow(t->data, &t->capacity, t->len + len + 1, 1);
  if (len) memcpy(t->data + t->len, bytes, len);
  t->len += len;
  t->data[t->len] = '\0';
}

void text_append_str(text *t, const char *s) {
  text_append(t, s, strlen(s));
}

static void append_formatted(text *t, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  const int n = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (n < 0) return;
  t->data = slt_grow(t->data, &t->capacity, t->len + (size_t)n + 1, 1);
  vsnprintf(t->data + t->len, (size_t)n + 1, format, args);
  t->len += (size_t)n;
}

void text_printf(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  append_formatted(t, format, args);
  va_end(args);
}

void text_clear(text *t) {
  t->len = 0;
  if (t->data) t->data[0] = '\0';
}

void text_free(text *t) {
  free(t->data);
  *t = (text){0};
}

const char *text_str(const text *t) {
  return t->data ? t->data : "";
}

/* ---- Pools ---------------------------------------------------------------------------------- */

void *pool_alloc(pool *p, size_t n) {
  void *item = slt_alloc(n);
  p->items = slt_grow(p->items, &p->capacity, p->n + 1, sizeof *p->items);
  p->items[p->n++] = item;
  return item;
}

char *pool_copy(pool *p, const char *s, size_t len) {
  char *copy = pool_alloc(p, len + 1);
  if (len) memcpy(copy, s, len);
  return copy;
}

char *pool_str(pool *p, const char *s) {
  return pool_copy(p, s, strlen(s));
}

void pool_clear(pool *p) {
  for (size_t i = 0; i < p->n; i++) free(p->items[i]);
  free(p->items);
  *p = (pool){0};
}

/* ---- Files ---------------------------------------------------------------------------------- */

bool read_file(const char *path, text *out) {
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  char buffer[65536];
  size_t n;
  text_append(out, "", 0);
  while ((n = fread(buffer, 1, sizeof buffer, f)) > 0) text_append(out, buffer, n);
  const bool ok = !ferror(f);
  fclose(f);
  return ok;
}

bool replace_file(const char *path, const text *t) {
  text temporary = {0};
  text_printf(&temporary, "%s.tmp", path);
  FILE *f = fopen(temporary.data, "wb");
  bool ok = f != NULL;
  if (f) {
    ok = fwrite(text_str(t), 1, t->len, f) == t->len;
    ok = fclose(f) == 0 && ok;
    ok = ok && rename(temporary.data, path) == 0;
    if (!ok) remove(temporary.data);
  }
  text_free(&temporary);
  return ok;
}

/* ---- Values --------------------------------------------------------------------------------- */

/* Bytes of the well-formed character at s, or 0. */
static size_t utf8_length(const unsigned char *s, size_t len) {
  const unsigned char c = s[0];
  if (c < 0x80) return 1;
  const size_t n = c >= 0xc2 && c <= 0xdf   ? 2
                   : c >= 0xe0 && c <= 0xef ? 3
                   : c >= 0xf0 && c <= 0xf4 ? 4
                                            : 0;
  if (n == 0 || n > len) return 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f)) return 0;
  if ((c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] > 0x8f)) return 0;
  return n;
}

static bool is(const char *literal, const unsigned char *s, size_t len) {
  return strlen(literal) == len && memcmp(literal, s, len) == 0;
}

static void escape_text(const unsigned char *s, size_t len, bool bar, text *out) {
  if (len == 0) text_append_str(out, "(empty)");
  const bool lookalike = is("NULL", s, len) || is("(empty)", s, len);
  for (size_t i = 0; i < len;) {
    const unsigned char c = s[i];
    const size_t n = utf8_length(s + i, len - i);
    if (c == '\\') text_append_str(out, "\\\\");
    else if (c == '\n') text_append_str(out, "\\n");
    else if (c == '\t') text_append_str(out, "\\t");
    else if (n == 0 || c < 0x20 || c == 0x7f || (c == '|' && bar) || (lookalike && i == 0))
      text_printf(out, "\\x%02x", c);
    else text_append(out, s + i, n);
    i += n ? n : 1;
  }
}

static void render_blob(const unsigned char *bytes, size_t len, text *out) {
  static const char digits[] = "0123456789abcdef";
  text_append_str(out, "X'");
  for (size_t i = 0; i < len; i++) {
    const char pair[2] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
    text_append(out, pair, 2);
  }
  text_append_str(out, "'");
}

static void render_real(double x, const char *format, text *out) {
  if (strcmp(format, "%.3f") == 0) text_printf(out, "%.3f", x);
  else text_printf(out, "%.15g", x);
}

bool value_render(sqlite3_stmt *stmt, int column, const char *real_format, bool bar, text *out) {
  const void *bytes;
  size_t len;
  switch (sqlite3_column_type(stmt, column)) {
  case SQLITE_NULL: text_append_str(out, "NULL"); return true;
  case SQLITE_INTEGER:
    text_printf(out, "%lld", (long long)sqlite3_column_int64(stmt, column));
    return true;
  case SQLITE_FLOAT:
    render_real(sqlite3_column_double(stmt, column), real_format, out);
    return true;
  case SQLITE_BLOB:
    bytes = sqlite3_column_blob(stmt, column);
    len = (size_t)sqlite3_column_bytes(stmt, column);
    if (!bytes && len) return false;
    render_blob(bytes, len, out);
    return true;
  default:
    bytes = sqlite3_column_text(stmt, column);
    len = (size_t)sqlite3_column_bytes(stmt, column);
    if (!bytes) return false;
    escape_text(bytes, len, bar, out);
    return true;
  }
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool text_unescape(const char *s, size_t len, text *out) {
  for (size_t i = 0; i < len; i++) {
    if (s[i] != '\\') {
      text_append(out, s + i, 1);
      continue;
    }
    const char kind = i + 1 < len ? s[i + 1] : '\0';
    if (kind == 'n' || kind == 't' || kind == '\\') {
      text_append_str(out, kind == 'n' ? "\n" : kind == 't' ? "\t" : "\\");
      i += 1;
    } else if (kind == 'x' && i + 3 < len && hex_digit(s[i + 2]) >= 0 && hex_digit(s[i + 3]) >= 0) {
      const char byte = (char)(hex_digit(s[i + 2]) * 16 + hex_digit(s[i + 3]));
      text_append(out, &byte, 1);
      i += 3;
    } else {
      return false;
    }
  }
  return true;
}

/* ---- Reports -------------------------------------------------------------------------------- */

void report(session *s, const script *sc, const node *n, const char *format, ...) {
  text line = {0};
  va_list args;
  if (n) text_printf(&line, "%s:%zu: ", sc->path, n->line + 1);
  else text_printf(&line, "%s: ", s->path);
  va_start(args, format);
  append_formatted(&line, format, args);
  va_end(args);
  puts(line.data);
  text_free(&line);
  s->failed++;
}
