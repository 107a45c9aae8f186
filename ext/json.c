/* json.c - JSON in and out: option objects, id arrays, names in results.
**
** Reading is yajl's: it checks the whole text (one value, UTF-8, no JSON5), does not recurse, gives
** numbers as they are written, and hands over event by event, so an array of a million ids never
** becomes a million nodes. What is added here:
** (J1) Its memory, and that of documents, is an arena of chunks from sqlite3_malloc64, freed
**      together, so heap limits see it.
** (J2) yajl uses what its allocator returns without a look. So an allocation that fails does not
**      return: longjmp ends the parse, over yajl's frames only, and nothing is lost because the
**      arena holds all there is. What an event handler owns must hang at its ctx.
** (J3) Documents are the small trees that options need: depth and keys per object are limited,
**      and a key that is there twice is an error.
**
**     json_doc doc;
**     if (json_parse(text, "options", f, &doc) == SQLITE_OK) ... doc.root->first->key ...
**     json_doc_clear(&doc);
*/
#include "ext.h"

#include <setjmp.h>
#include <string.h>
#include <yajl/yajl_parse.h>

enum { MAX_NESTING = 8, MAX_KEYS = 64 };
enum { PARSE_WORK = 8 }; /* units for a byte */
enum { ALIGN = 16, FIRST_CHUNK = 2048, LAST_CHUNK = 1 << 20 };

/* ---- Arena (J1, J2) ------------------------------------------------------------------------ */

typedef struct json_chunk {
  struct json_chunk *next;
  size_t used, size; /* of the bytes behind this header */
} json_chunk;

enum { CHUNK_HEADER = (sizeof(json_chunk) + ALIGN - 1) / ALIGN * ALIGN };

typedef struct arena {
  json_chunk *chunks; /* newest first */
  jmp_buf failed;
} arena;

static void add_chunk(arena *a, size_t need) {
  size_t size = FIRST_CHUNK;
  if (a->chunks) size = a->chunks->size < LAST_CHUNK ? a->chunks->size * 2 : LAST_CHUNK;
  if (size < need) size = need;
  json_chunk *chunk = sqlite3_malloc64(CHUNK_HEADER + size);
  if (!chunk) longjmp(a->failed, 1);
  *chunk = (json_chunk){.next = a->chunks, .size = size};
  a->chunks = chunk;
}

/* Each block begins with its size, ALIGN bytes before the address that is returned. */
static void *arena_malloc(void *ctx, size_t n) {
  arena *a = ctx;
  if (n > SIZE_MAX / 4) longjmp(a->failed, 1);
  const size_t need = ALIGN + (n + ALIGN - 1) / ALIGN * ALIGN;
  if (!a->chunks || a->chunks->size - a->chunks->used < need) add_chunk(a, need);
  char *block = (char *)a->chunks + CHUNK_HEADER + a->chunks->used;
  a->chunks->used += need;
  memcpy(block, &n, sizeof n);
  return block + ALIGN;
}

static void *arena_realloc(void *ctx, void *p, size_t n) {
  size_t old = 0;
  if (p) memcpy(&old, (char *)p - ALIGN, sizeof old);
  if (p && n <= old) return p;
  void *grown = arena_malloc(ctx, n);
  if (p) memcpy(grown, p, old);
  return grown;
}

static void arena_free(void *ctx, void *p) {
  (void)ctx;
  (void)p; /* the chunks go together */
}

static void free_chunks(json_chunk *chunk) {
  while (chunk) {
    json_chunk *next = chunk->next;
    sqlite3_free(chunk);
    chunk = next;
  }
}

/* ---- Reading ------------------------------------------------------------------------------- */

typedef struct reading {
  arena arena;
  bool (*event)(void *ctx, json_kind, bytes);
  void *ctx;
  yajl_handle handle;
  size_t from; /* where the part that yajl reads begins */
  work work;
  int depth;
  size_t root_end; /* bytes read when the outermost array or object was complete */
  enum { READ, REFUSED, STOPPED, NO_MEMORY } end;
  size_t offset; /* where it was refused */
  char why[SHOWN_SIZE];
} reading;

static int send(void *p, json_kind kind, const void *text, size_t len) {
  reading *r = p;
  if (kind == JSON_ARRAY || kind == JSON_OBJECT) r->depth++;
  if (kind == JSON_END && --r->depth == 0) {
    r->root_end = r->from + yajl_get_bytes_consumed(r->handle);
  }
  return r->event(r->ctx, kind, (bytes){.data = text, .len = len});
}

static int on_null(void *p) {
  return send(p, JSON_NULL, "", 0);
}
static int on_boolean(void *p, int yes) {
  return send(p, yes ? JSON_TRUE : JSON_FALSE, "", 0);
}
static int on_number(void *p, const char *t, size_t n) {
  return send(p, JSON_NUMBER, t, n);
}
static int on_string(void *p, const unsigned char *t, size_t n) {
  return send(p, JSON_STRING, t, n);
}
static int on_key(void *p, const unsigned char *t, size_t n) {
  return send(p, JSON_KEY, t, n);
}
static int on_object(void *p) {
  return send(p, JSON_OBJECT, "", 0);
}
static int on_array(void *p) {
  return send(p, JSON_ARRAY, "", 0);
}
static int on_end(void *p) {
  return send(p, JSON_END, "", 0);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_map_key = on_key,
    .yajl_start_map = on_object,
    .yajl_end_map = on_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_end,
};

/* yajl's words for what is wrong, without "parse error: " before and ".\n" behind. */
static void explain(reading *r) {
  const char *text = (const char *)yajl_get_error(r->handle, 0, NULL, 0);
  const char *colon = strstr(text, ": ");
  if (colon) text = colon + 2;
  size_t len = strcspn(text, "\n");
  if (len > 0 && text[len - 1] == '.') len--;
  shown((bytes){(const uint8_t *)text, len}, r->why);
}

/* Where something begins after the root that is no white space; text.len if nothing does. */
static size_t find_garbage(reading *r, bytes text) {
  size_t i = r->root_end;
  if (i == 0) return text.len; /* no array, no object: what it is was for the handler to judge */
  while (i < text.len && text.data[i] > 0 && strchr(" \t\r\n", text.data[i]) &&
         !work_stopped(&r->work, 4)) {
    i++;
  }
  return i;
}

static int hex_value(const uint8_t *p) {
  int value = 0;
  for (int i = 0; i < 4; i++) {
    const uint8_t c = p[i];
    int digit;
    if (c >= '0' && c <= '9') digit = c - '0';
    else if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    else if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    else return -1;
    value = value * 16 + digit;
  }
  return value;
}

/* Whether there is one, and where. */
static bool find_lone_surrogate(reading *r, bytes text, size_t *offset) {
  for (size_t i = 0; i + 1 < text.len && !work_stopped(&r->work, 1); i++) {
    if (text.data[i] != '\\') continue;
    const int unit =
        text.data[i + 1] == 'u' && text.len - i >= 6 ? hex_value(text.data + i + 2) : -1;
    if (unit >= 0xD800 && unit <= 0xDFFF) {
      const uint8_t *next = text.data + i + 6;
      const bool pair = unit < 0xDC00 && text.len - i >= 12 && next[0] == '\\' && next[1] == 'u' &&
                        hex_value(next + 2) >= 0xDC00 && hex_value(next + 2) <= 0xDFFF;
      *offset = i;
      if (!pair) return true;
      i += 6;
    }
    i++; /* past what the backslash escapes */
  }
  return false;
}

/* Apart from its callers, so that no local of theirs is live across setjmp. */
static void run(reading *r, bytes text) {
  yajl_alloc_funcs memory = {arena_malloc, arena_realloc, arena_free, &r->arena};
  if (setjmp(r->arena.failed)) {
    r->end = NO_MEMORY;
    return;
  }
  yajl_handle h = r->handle = yajl_alloc(&callbacks, &memory, r);
  yajl_status st = yajl_status_ok;
  for (size_t to; r->from < text.len && st == yajl_status_ok; r->from = to) {
    to = bpe_json_part(text.data, text.len, r->from);
    if (to == 0) {
      r->end = REFUSED;
      r->offset = r->from;
      sqlite3_snprintf((int)sizeof r->why, r->why, "string too long");
      return;
    }
    st = yajl_parse(h, text.data + r->from, to - r->from);
    r->offset = r->from + yajl_get_bytes_consumed(h);
    if (work_stopped(&r->work, PARSE_WORK * (to - r->from))) return;
    if (st != yajl_status_ok) break;
  }
  if (st == yajl_status_ok) st = yajl_complete_parse(h);
  if (st == yajl_status_client_canceled) r->end = STOPPED;
  if (st == yajl_status_ok || st == yajl_status_error) {
    const size_t garbage = find_garbage(r, text);
    if (garbage < text.len) {
      r->end = REFUSED;
      r->offset = garbage;
      sqlite3_snprintf((int)sizeof r->why, r->why, "trailing garbage");
    } else if (st == yajl_status_error) {
      r->end = REFUSED;
      explain(r);
    }
  }
}

/* run, and its end as a failure; r->arena is the caller's to free whatever happens. */
static int read_events(reading *r, bytes text, const char *what, failure *f) {
  r->work = (work){.f = f};
  if (find_lone_surrogate(r, text, &r->offset)) {
    return fail(f, "%s: unpaired surrogate at byte %llu", what, (unsigned long long)r->offset);
  }
  if (f->rc == SQLITE_OK) run(r, text);
  if (f->rc != SQLITE_OK) return f->rc;
  switch (r->end) {
  case NO_MEMORY: return fail_code(f, SQLITE_NOMEM);
  case REFUSED: return fail(f, "%s: %s at byte %llu", what, r->why, (unsigned long long)r->offset);
  default: return f->rc;
  }
}

int json_read(bytes text, const char *what, failure *f, json_event *event, void *ctx) {
  reading r = {.event = event, .ctx = ctx};
  read_events(&r, text, what, f);
  free_chunks(r.arena.chunks);
  return f->rc;
}

/* ---- Documents (J3) ------------------------------------------------------------------------ */

typedef struct building {
  reading r;
  failure *f;
  json_value *root;
  json_value *open[MAX_NESTING]; /* containers not yet ended, outermost first */
  int depth;
  bytes key; /* for the next value */
} building;

static bytes keep(building *b, bytes text) {
  uint8_t *copy = arena_malloc(&b->r.arena, text.len + 1);
  memcpy(copy, text.data, text.len);
  return (bytes){.data = copy, .len = text.len};
}

static bool take_key(building *b, bytes key) {
  char text[SHOWN_SIZE];
  const json_value *object = b->open[b->depth - 1];
  if (object->n >= MAX_KEYS) {
    fail(b->f, "more than %d options", MAX_KEYS);
    return false;
  }
  for (const json_value *v = object->first; v; v = v->next) {
    if (v->key.len == key.len && memcmp(v->key.data, key.data, key.len) == 0) {
      const bytes in = object->key; /* of an option that is an object itself */
      fail(b->f, "option is given twice: %.*s%s%s", (int)in.len,
           in.len ? (const char *)in.data : "", in.len ? "." : "", shown(key, text));
      return false;
    }
  }
  b->key = keep(b, key);
  return true;
}

static bool build(void *ctx, json_kind kind, bytes text) {
  building *b = ctx;
  if (kind == JSON_KEY) return take_key(b, text);
  if (kind == JSON_END) {
    b->depth--;
    return true;
  }
  json_value *v = arena_malloc(&b->r.arena, sizeof *v);
  *v = (json_value){.kind = kind, .key = b->key, .text = keep(b, text)};
  json_value *parent = b->depth > 0 ? b->open[b->depth - 1] : NULL;
  if (!parent) b->root = v;
  else if (parent->last) parent->last->next = v;
  else parent->first = v;
  if (parent) {
    parent->last = v;
    parent->n++;
  }
  if (kind != JSON_OBJECT && kind != JSON_ARRAY) return true;
  if (b->depth == MAX_NESTING) {
    fail(b->f, "options are nested too deeply");
    return false;
  }
  b->open[b->depth++] = v;
  return true;
}

int json_parse(bytes text, const char *what, failure *f, json_doc *out) {
  *out = (json_doc){0};
  building b = {.f = f, .key = {(const uint8_t *)"", 0}};
  b.r.event = build;
  b.r.ctx = &b;
  if (read_events(&b.r, text, what, f) == SQLITE_OK) {
    *out = (json_doc){.root = b.root, .chunks = b.r.arena.chunks};
  } else {
    free_chunks(b.r.arena.chunks);
  }
  return f->rc;
}

void json_doc_clear(json_doc *doc) {
  free_chunks(doc->chunks);
  *doc = (json_doc){0};
}

/* ---- Writing ------------------------------------------------------------------------------- */

void json_append_ids(bpe_buffer *b, const uint32_t *ids, size_t n, failure *f) {
  enum { ID_WORK = 16 };
  work w = {.f = f};
  bpe_buffer_append(b, "[", 1);
  for (size_t i = 0; i < n && b->status == BPE_OK && !work_stopped(&w, ID_WORK); i++) {
    if (i) bpe_buffer_append(b, ",", 1);
    bpe_buffer_append_decimal(b, ids[i]);
  }
  bpe_buffer_append(b, "]", 1);
}
