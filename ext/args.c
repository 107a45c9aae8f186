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

#include <jansson.h>
#include <string.h>

bool value_is_null(sqlite3_value *v)
{
  return sqlite3_value_type(v) == SQLITE_NULL;
}

const char *value_type_name(sqlite3_value *v)
{
  switch (sqlite3_value_type(v)) {
  case SQLITE_INTEGER: return "INTEGER";
  case SQLITE_FLOAT: return "REAL";
  case SQLITE_TEXT: return "TEXT";
  case SQLITE_BLOB: return "BLOB";
  default: return "NULL";
  }
}

bool value_bytes(sqlite3_value *v, bytes *out)
{
  const bool is_blob = sqlite3_value_type(v) == SQLITE_BLOB;
  const void *data = is_blob ? sqlite3_value_blob(v) : (const void *)sqlite3_value_text(v);
  const int len = sqlite3_value_bytes(v);
  *out = (bytes){.data = (const uint8_t *)"", .len = 0};
  if (data && len > 0) *out = (bytes){.data = data, .len = (size_t)len};
  return data || (is_blob && len == 0);
}

static int ids_alloc(size_t n, failure *f, uint32_t **ids)
{
  *ids = sqlite3_malloc64((sqlite3_uint64)n * sizeof(uint32_t) + 1);
  return *ids ? SQLITE_OK : fail_code(f, SQLITE_NOMEM);
}

static int unpack(bytes packed, int width, failure *f, uint32_t **ids, size_t *n)
{
  const size_t size = (size_t)width / 8;
  if (packed.len % size != 0) {
    return fail(f, "packed ids end inside an id: %lld bytes are no multiple of %d",
                (long long)packed.len, (int)size);
  }
  const size_t count = packed.len / size;
  if (ids_alloc(count, f, ids) != SQLITE_OK) return f->rc;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *p = packed.data + i * size;
    uint32_t id = p[0] | (uint32_t)p[1] << 8;
    if (size == 4) id |= (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    (*ids)[i] = id;
    if (id == BPE_NONE) {
      return fail(f, "id %u at position %lld is not an id", id, (long long)i);
    }
  }
  *n = count;
  return SQLITE_OK;
}

/* Ids as our own encoder writes them, "[1,2,3]" and nothing else: the common case, at the speed
** of reading. False: something else, which is for the JSON parser to take or to refuse. */
static bool take_plain(bytes text, uint32_t *ids, size_t *n)
{
  const uint8_t *p = text.data;
  const uint8_t *const end = p + text.len;
  if (text.len < 2 || *p++ != '[' || end[-1] != ']') return false;
  size_t count = 0;
  while (p < end - 1) {
    uint64_t id = 0;
    const uint8_t *const first = p;
    while (*p >= '0' && *p <= '9' && p - first < 10) id = id * 10 + (*p++ - '0');
    if (p == first || (*first == '0' && p - first > 1) || id >= BPE_NONE) return false;
    ids[count++] = (uint32_t)id;
    if (p == end - 1) break;
    if (*p++ != ',' || p == end - 1) return false;
  }
  *n = count;
  return true;
}

static int not_an_id(failure *f, const json_t *v, size_t at)
{
  const long long place = (long long)at;
  char text[SHOWN_SIZE];
  switch (json_typeof(v)) {
  case JSON_INTEGER:
    return fail(f, "id %lld at position %lld is not an id", (long long)json_integer_value(v),
                place);
  case JSON_REAL:
    sqlite3_snprintf(sizeof text, text, "%!.15g", json_real_value(v)); /* 1.0, not 1 */
    return fail(f, "id %s at position %lld is not an id", text, place);
  case JSON_STRING:
    shown((bytes){(const uint8_t *)json_string_value(v), json_string_length(v)}, text);
    return fail(f, "id \"%s\" at position %lld is not an id", text, place);
  case JSON_TRUE: return fail(f, "id true at position %lld is not an id", place);
  case JSON_FALSE: return fail(f, "id false at position %lld is not an id", place);
  case JSON_NULL: return fail(f, "id null at position %lld is not an id", place);
  default: return fail(f, "id at position %lld is an array or object", place);
  }
}

static int take_json(bytes text, failure *f, uint32_t **ids, size_t *n)
{
  json_doc doc;
  if (json_parse(text, "ids are not a JSON array", f, &doc) != SQLITE_OK) return f->rc;
  if (!json_is_array(doc.root)) {
    fail(f, "ids must be a JSON array or a packed BLOB, not a JSON object");
  } else if (ids_alloc(json_array_size(doc.root), f, ids) == SQLITE_OK) {
    const size_t count = json_array_size(doc.root);
    for (size_t i = 0; i < count && f->rc == SQLITE_OK; i++) {
      const json_t *v = json_array_get(doc.root, i);
      const json_int_t id = json_integer_value(v);
      if (json_is_integer(v) && id >= 0 && id < (json_int_t)BPE_NONE) {
        (*ids)[i] = (uint32_t)id;
      } else {
        not_an_id(f, v, i);
      }
    }
    *n = count;
  }
  json_doc_clear(&doc);
  return f->rc;
}

static int take_text(bytes text, failure *f, uint32_t **ids, size_t *n)
{
  /* The shortest id takes two bytes, itself and a comma or bracket. */
  if (ids_alloc(text.len / 2, f, ids) != SQLITE_OK) return f->rc;
  if (take_plain(text, *ids, n)) return SQLITE_OK;
  sqlite3_free(*ids);
  *ids = NULL;
  return take_json(text, f, ids, n);
}

int value_ids(sqlite3_value *v, int width, failure *f, uint32_t **ids, size_t *n)
{
  *ids = NULL;
  *n = 0;
  const int type = sqlite3_value_type(v);
  bytes text;
  if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
    return fail(f, "ids must be a JSON array or a packed BLOB; for one id use bpe_token");
  }
  if (!value_bytes(v, &text)) return fail_code(f, SQLITE_NOMEM);
  const int rc = type == SQLITE_BLOB ? unpack(text, width, f, ids, n) : take_text(text, f, ids, n);
  if (rc != SQLITE_OK) {
    sqlite3_free(*ids);
    *ids = NULL;
    *n = 0;
  }
  return rc;
}
