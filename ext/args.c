/* args.c - SQL values as the bytes and ids of the contract.
**
** Text: TEXT is its UTF-8 bytes, BLOB its raw bytes, INTEGER and REAL are their text; NUL is a
** byte like any other. Each conversion comes before the length is asked, because it may change
** it. A NULL pointer is either out of memory or merely an empty value: value_bytes tells which,
** and gives an address that may be read in both cases.
**
** Ids: a JSON array of integers, or a BLOB of little-endian ones. Nothing wraps and nothing is
** rounded: -1, 1.0, 4294967296 and "7" are each an error that repeats the value and its place.
** Whether a tokenizer has the id is the core's question.
*/
#include "ext.h"

#include <string.h>

bool value_is_null(sqlite3_value *v) {
  return sqlite3_value_type(v) == SQLITE_NULL;
}

const char *value_type_name(sqlite3_value *v) {
  switch (sqlite3_value_type(v)) {
  case SQLITE_INTEGER: return "INTEGER";
  case SQLITE_FLOAT: return "REAL";
  case SQLITE_TEXT: return "TEXT";
  case SQLITE_BLOB: return "BLOB";
  default: return "NULL";
  }
}

bool value_bytes(sqlite3_value *v, bytes *out) {
  const bool is_blob = sqlite3_value_type(v) == SQLITE_BLOB;
  const void *data = is_blob ? sqlite3_value_blob(v) : (const void *)sqlite3_value_text(v);
  const int len = sqlite3_value_bytes(v);
  *out = (bytes){.data = (const uint8_t *)"", .len = 0};
  if (data) *out = (bytes){.data = data, .len = (size_t)len};
  return data || (is_blob && len == 0);
}

/* ---- Packed ids ---------------------------------------------------------------------------- */

static int take_packed(bytes blob, size_t size, failure *f, packed *out) {
  *out = (packed){blob.data, blob.len / size, size};
  if (blob.len % size == 0) return SQLITE_OK;
  return fail(f, "packed ids end inside an id: %lld bytes are no multiple of %d",
              (long long)blob.len, (int)size);
}

int value_packed(sqlite3_value *v, sqlite3_value *width, failure *f, packed *out) {
  bytes blob;
  sqlite3_int64 bits = 32;
  if (sqlite3_value_type(v) != SQLITE_BLOB) {
    return fail(f, "ids must be a packed BLOB, not %s", value_type_name(v));
  }
  if (!value_bytes(v, &blob)) return fail_code(f, SQLITE_NOMEM);
  if (width) bits = sqlite3_value_type(width) == SQLITE_INTEGER ? sqlite3_value_int64(width) : 0;
  if (bits != 16 && bits != 32) return fail(f, "width must be 16 or 32");
  return take_packed(blob, (size_t)bits / 8, f, out);
}

uint32_t packed_id(const packed *ids, size_t i) {
  const uint8_t *p = ids->data + i * ids->size;
  const uint32_t id = p[0] | (uint32_t)p[1] << 8;
  return ids->size == 2 ? id : id | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int unpack(bytes blob, int width, failure *f, uint32_t **ids, size_t *n) {
  packed from;
  if (take_packed(blob, (size_t)width / 8, f, &from) != SQLITE_OK) return f->rc;
  *ids = sqlite3_malloc64((sqlite3_uint64)from.n * sizeof **ids + 1);
  if (!*ids) return fail_code(f, SQLITE_NOMEM);
  work w = {.f = f};
  for (size_t i = 0; i < from.n; i++) {
    if (work_stopped(&w, 2)) return f->rc;
    const uint32_t id = packed_id(&from, i);
    (*ids)[i] = id;
    if (id == BPE_NONE) {
      return fail(f, "id %u at position %lld is not an id", id, (long long)i);
    }
  }
  *n = from.n;
  return SQLITE_OK;
}

/* ---- Ids in JSON --------------------------------------------------------------------------- */

/* The ids of a JSON array as they arrive. */
typedef struct id_list {
  failure *f;
  uint32_t *ids; /* owned */
  size_t n, cap;
  int depth;
} id_list;

static bool not_an_id(const id_list *list, json_kind kind, bytes text) {
  static const char *const words[] = {"null", "true", "false"};
  char object[SHOWN_SIZE];
  const char *value = shown(text, object), *quote = kind == JSON_STRING ? "\"" : "";
  if (kind <= JSON_FALSE) value = words[kind];
  if (kind == JSON_ARRAY) value = "[...]";
  if (kind == JSON_OBJECT) value = "{...}";
  fail(list->f, "id %s%s%s at position %llu is not an id", quote, value, quote,
       (unsigned long long)list->n);
  return false;
}

/* Asked once per STOP_EVERY ids: whether the user wants no more of this. */
static bool stopped(failure *f, size_t n) {
  enum { STOP_EVERY = 1 << 16 };
  if (n % STOP_EVERY != STOP_EVERY - 1 || !interrupted(f->c)) return false;
  fail_code(f, f->c->stopped_by);
  return true;
}

static bool add_id(id_list *list, uint32_t id) {
  if (stopped(list->f, list->n)) return false;
  if (list->n == list->cap) {
    const size_t cap = list->cap ? list->cap * 2 : 64;
    uint32_t *ids = sqlite3_realloc64(list->ids, (sqlite3_uint64)cap * sizeof *ids);
    if (!ids) {
      fail_code(list->f, SQLITE_NOMEM);
      return false;
    }
    list->ids = ids;
    list->cap = cap;
  }
  list->ids[list->n++] = id;
  return true;
}

static bool take_id(void *ctx, json_kind kind, bytes text) {
  id_list *list = ctx;
  if (kind == JSON_END) return true;
  if (list->depth == 0) {
    list->depth = 1;
    if (kind == JSON_ARRAY) return true;
    fail(list->f, "ids must be a JSON array or a packed BLOB");
    return false;
  }
  uint64_t id = 0;
  size_t i = 0;
  for (; i < text.len && i < 10 && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
    id = id * 10 + (uint64_t)(text.data[i] - '0');
  }
  if (kind == JSON_NUMBER && i == text.len && id < BPE_NONE) return add_id(list, (uint32_t)id);
  return not_an_id(list, kind, text);
}

/* Ids exactly as bpe_encode writes them, "[1,2,3]" without a space: the common case, several
** times as fast as event by event. ids has room for one more than there are commas. False:
** anything else, which json_read takes or refuses; or a failure. */
static bool take_own(bytes text, failure *f, uint32_t *ids, size_t *n) {
  if (text.len < 2) return false;
  const uint8_t *p = text.data;
  const uint8_t *const close = p + text.len - 1;
  if (*p++ != '[' || *close != ']') return false;
  size_t count = 0;
  while (p < close) {
    const uint8_t *const first = p;
    uint64_t id = 0;
    while (*p >= '0' && *p <= '9' && p - first < 10) id = id * 10 + (uint64_t)(*p++ - '0');
    if (p == first || (*first == '0' && p - first > 1) || id >= BPE_NONE) return false;
    if (stopped(f, count)) return false;
    ids[count++] = (uint32_t)id;
    if (p < close && (*p++ != ',' || p == close)) return false;
  }
  *n = count;
  return true;
}

static int take_json(bytes text, failure *f, uint32_t **ids, size_t *n) {
  enum { PART = 1 << 16 };
  work w = {.f = f};
  sqlite3_uint64 most = 1;
  for (size_t from = 0; from < text.len; from += PART) {
    const size_t to = text.len - from < PART ? text.len : from + PART;
    for (size_t i = from; i < to; i++) most += text.data[i] == ',';
    if (work_stopped(&w, PART)) return f->rc;
  }
  *ids = sqlite3_malloc64(most * sizeof **ids);
  if (!*ids) return fail_code(f, SQLITE_NOMEM);
  if (take_own(text, f, *ids, n) || f->rc != SQLITE_OK) return f->rc;
  sqlite3_free(*ids);
  id_list list = {.f = f};
  json_read(text, "ids are not a JSON array", f, take_id, &list);
  *ids = list.ids;
  *n = list.n;
  return f->rc;
}

int value_ids(sqlite3_value *v, int width, failure *f, uint32_t **ids, size_t *n) {
  *ids = NULL;
  *n = 0;
  const int type = sqlite3_value_type(v);
  bytes text;
  if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
    return fail(f, "ids must be a JSON array or a packed BLOB; for one id use bpe_token");
  }
  if (!value_bytes(v, &text)) return fail_code(f, SQLITE_NOMEM);
  const int rc = type == SQLITE_BLOB ? unpack(text, width, f, ids, n) : take_json(text, f, ids, n);
  if (rc != SQLITE_OK) {
    sqlite3_free(*ids);
    *ids = NULL;
    *n = 0;
  }
  return rc;
}

/* ---- Results -------------------------------------------------------------------------------- */
