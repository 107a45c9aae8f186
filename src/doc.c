/* doc.c - the tree builder behind doc.h.
**
** yajl uses what its allocator returns without a look. So an allocation that fails does not
** return: longjmp ends the parse, over yajl's frames only, and nothing is lost because the chunks
** hold all there is. The nodes of open containers are linked through themselves, so depth costs
** no stack here; it is limited all the same.
*/
#include "doc.h"

#include <setjmp.h>
#include <string.h>
#include <yajl/yajl_parse.h>

enum { MAX_DEPTH = 32 };
enum { PARSE_WORK = 8 }; /* units for a byte */
enum { ALIGN = 16, FIRST_CHUNK = 4096, LAST_CHUNK = 1 << 20 };

typedef struct doc_chunk {
  struct doc_chunk *next;
  size_t used, size; /* of the bytes behind this header */
} doc_chunk;

enum { CHUNK_HEADER = (sizeof(doc_chunk) + ALIGN - 1) / ALIGN * ALIGN };

typedef struct arena {
  bpe_alloc alloc;
  doc_chunk *chunks; /* newest first */
} arena;

typedef struct building {
  arena kept;    /* the document's */
  arena scratch; /* yajl's */
  jmp_buf failed;
  yajl_handle handle;
  const char *key; /* for the next value */
  size_t key_len;
  doc_node *root;
  doc_node *open[MAX_DEPTH], *last[MAX_DEPTH]; /* containers not yet ended; their last children */
  int depth;
  size_t at;  /* where the part that yajl reads begins */
  bool ended; /* all parts are read */
  bool too_deep, too_long;
  pace pace;
} building;

static void free_chunks(arena *a) {
  for (doc_chunk *c = a->chunks; c != NULL;) {
    doc_chunk *next = c->next;
    mem_free(&a->alloc, c);
    c = next;
  }
}

static void *take(building *b, arena *a, size_t n) {
  if (n > SIZE_MAX / 4) longjmp(b->failed, 1);
  const size_t need = (n + ALIGN - 1) / ALIGN * ALIGN;
  if (a->chunks == NULL || a->chunks->size - a->chunks->used < need) {
    size_t size = FIRST_CHUNK;
    if (a->chunks != NULL) size = a->chunks->size < LAST_CHUNK ? a->chunks->size * 2 : LAST_CHUNK;
    if (size < need) size = need;
    doc_chunk *c = mem_new(&a->alloc, 1, CHUNK_HEADER + size);
    if (c == NULL) longjmp(b->failed, 1);
    *c = (doc_chunk){.next = a->chunks, .size = size};
    a->chunks = c;
  }
  char *p = (char *)a->chunks + CHUNK_HEADER + a->chunks->used;
  a->chunks->used += need;
  return p;
}

/* yajl's blocks begin with their size, ALIGN bytes before the address it gets. */
static void *yajl_take(void *ctx, size_t n) {
  building *b = ctx;
  if (n > SIZE_MAX / 8) longjmp(b->failed, 1);
  char *block = take(b, &b->scratch, ALIGN + n);
  memcpy(block, &n, sizeof n);
  return block + ALIGN;
}

static void *yajl_retake(void *ctx, void *p, size_t n) {
  size_t old = 0;
  if (p != NULL) memcpy(&old, (char *)p - ALIGN, sizeof old);
  if (p != NULL && n <= old) return p;
  void *grown = yajl_take(ctx, n);
  if (p != NULL) memcpy(grown, p, old);
  return grown;
}

static void yajl_leave(void *ctx, void *p) {
  (void)ctx;
  (void)p; /* the chunks go together */
}

static const char *keep(building *b, const void *text, size_t len) {
  char *copy = take(b, &b->kept, len + 1);
  memcpy(copy, text, len);
  copy[len] = 0;
  return copy;
}

/* No string is longer than the document, whose length fits 32 bits. */
static doc_node *add_node(building *b, doc_kind kind, const void *text, size_t len) {
  doc_node *v = take(b, &b->kept, sizeof *v);
  *v = (doc_node){.kind = (uint8_t)kind, .key = b->key, .key_len = (uint32_t)b->key_len};
  v->offset = (uint32_t)(b->at + yajl_get_bytes_consumed(b->handle));
  v->text = "";
  if (text != NULL) {
    v->text = keep(b, text, len);
    v->len = (uint32_t)len;
  }
  if (b->depth == 0) {
    b->root = v;
    return v;
  }
  doc_node *parent = b->open[b->depth - 1], **last = &b->last[b->depth - 1];
  if (*last == NULL) parent->first = v;
  else (*last)->next = v;
  *last = v;
  parent->len++;
  b->key = "";
  b->key_len = 0;
  return v;
}

static int open_node(building *b, doc_kind kind) {
  if (b->depth == MAX_DEPTH) {
    b->too_deep = true;
    return 0;
  }
  b->open[b->depth] = add_node(b, kind, NULL, 0);
  b->last[b->depth++] = NULL;
  return 1;
}

static int on_null(void *ctx) {
  add_node(ctx, DOC_NULL, NULL, 0);
  return 1;
}

static int on_boolean(void *ctx, int yes) {
  add_node(ctx, yes ? DOC_TRUE : DOC_FALSE, NULL, 0);
  return 1;
}

static int on_number(void *ctx, const char *text, size_t len) {
  add_node(ctx, DOC_NUMBER, text, len);
  return 1;
}

static int on_string(void *ctx, const unsigned char *text, size_t len) {
  add_node(ctx, DOC_STRING, text, len);
  return 1;
}

static int on_key(void *ctx, const unsigned char *text, size_t len) {
  building *b = ctx;
  b->key = keep(b, text, len);
  b->key_len = len;
  return 1;
}

static int on_object(void *ctx) {
  return open_node(ctx, DOC_OBJECT);
}

static int on_array(void *ctx) {
  return open_node(ctx, DOC_ARRAY);
}

static int on_end(void *ctx) {
  building *b = ctx;
  b->depth--;
  return 1;
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

static bpe_status explain(building *b, const char *what, bpe_error *e) {
  const size_t at = b->at + (b->ended ? 0 : yajl_get_bytes_consumed(b->handle));
  if (b->too_deep)
    return set_error(e, BPE_BADMODEL, at, "%s: nested too deeply at byte %zu", what, at);
  if (b->too_long) return set_error(e, BPE_TOOBIG, at, "%s: string too long at byte %zu", what, at);
  const char *text = (const char *)yajl_get_error(b->handle, 0, NULL, 0);
  const char *colon = strstr(text, ": ");
  if (colon != NULL) text = colon + 2;
  int len = (int)strcspn(text, "\n");
  if (len > 0 && text[len - 1] == '.') len--;
  return set_error(e, BPE_BADMODEL, at, "%s: %.*s at byte %zu", what, len, text, at);
}

/* Apart from its caller, so that no local of the caller's is live across setjmp. */
static bpe_status run(building *b, const uint8_t *text, size_t len, const char *what,
                      bpe_error *e) {
  yajl_alloc_funcs memory = {yajl_take, yajl_retake, yajl_leave, b};
  if (setjmp(b->failed)) return set_nomem(e);
  b->handle = yajl_alloc(&callbacks, &memory, b);
  yajl_status st = yajl_status_ok;
  for (size_t to; b->at < len && st == yajl_status_ok; b->at = to) {
    to = bpe_json_part(text, len, b->at);
    b->too_long = to == 0;
    if (b->too_long) return explain(b, what, e);
    st = yajl_parse(b->handle, text + b->at, to - b->at);
    const bpe_status go_on = pace_add(&b->pace, PARSE_WORK * (to - b->at), e);
    if (go_on != BPE_OK) return go_on;
    if (st != yajl_status_ok) break;
  }
  b->ended = st == yajl_status_ok;
  if (st == yajl_status_ok) st = yajl_complete_parse(b->handle);
  return st == yajl_status_ok ? BPE_OK : explain(b, what, e);
}

bpe_status doc_parse(const bpe_alloc *a, const void *text, size_t len, const char *what,
                     bpe_error *e, doc *out) {
  *out = (doc){.alloc = *a};
  if (len > UINT32_MAX) return set_error(e, BPE_TOOBIG, len, "%s: too long", what);
  building b = {.kept.alloc = *a, .scratch.alloc = *a, .key = "", .pace = pace_of(a)};
  const bpe_status st = run(&b, text, len, what, e);
  free_chunks(&b.scratch);
  if (st != BPE_OK) {
    free_chunks(&b.kept);
    return st;
  }
  out->root = b.root;
  out->chunks = b.kept.chunks;
  return BPE_OK;
}

void doc_clear(doc *d) {
  arena a = {d->alloc, d->chunks};
  free_chunks(&a);
  d->root = NULL;
  d->chunks = NULL;
}

const doc_node *doc_get(const doc_node *object, const char *key) {
  if (!doc_has_kind(object, DOC_OBJECT)) return NULL;
  const size_t len = strlen(key);
  for (const doc_node *v = object->first; v != NULL; v = v->next)
    if (v->key_len == len && memcmp(v->key, key, len) == 0) return v;
  return NULL;
}

bool doc_is(const doc_node *v, const char *text) {
  const size_t len = strlen(text);
  return doc_has_kind(v, DOC_STRING) && v->len == len && memcmp(v->text, text, len) == 0;
}

bool doc_id(const doc_node *v, uint32_t *id) {
  if (!doc_has_kind(v, DOC_NUMBER) || v->len > 10) return false;
  uint64_t n = 0;
  for (size_t i = 0; i < v->len; i++) {
    if (v->text[i] < '0' || v->text[i] > '9') return false;
    n = n * 10 + (uint64_t)(v->text[i] - '0');
  }
  if (n >= BPE_NONE) return false;
  *id = (uint32_t)n;
  return true;
}

bpe_status doc_keys(const doc_node *object, const char *what, const char *const *known,
                    bpe_error *e) {
  for (const doc_node *v = object->first; v != NULL; v = v->next) {
    quoted q;
    size_t i = 0;
    while (known[i] != NULL &&
           (strlen(known[i]) != v->key_len || memcmp(known[i], v->key, v->key_len) != 0))
      i++;
    if (known[i] == NULL)
      return set_error(e, BPE_BADMODEL, v->offset, "%s: unknown key: %s", what,
                       quote_bytes(&q, v->key, v->key_len));
    if (doc_get(object, known[i]) != v)
      return set_error(e, BPE_BADMODEL, v->offset, "%s: key given twice: %s", what, known[i]);
  }
  return BPE_OK;
}

void bpe_buffer_append_json(bpe_buffer *b, const void *text, size_t len) {
  static const char hex[] = "0123456789abcdef";
  const uint8_t *s = text;
  bpe_buffer_append(b, "\"", 1);
  for (size_t i = 0, n; i < len; i += n) {
    n = bpe_utf8_next(s + i, len - i);
    const uint8_t c = s[i];
    if (c == '"' || c == '\\') {
      const char escape[2] = {'\\', (char)c};
      bpe_buffer_append(b, escape, 2);
    } else if (c < 0x20) {
      const char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
      bpe_buffer_append(b, escape, 6);
    } else if (c < 0x80 || bpe_utf8_valid(s + i, n)) {
      bpe_buffer_append(b, s + i, n);
    } else {
      bpe_buffer_append(b, "\xef\xbf\xbd", 3);
    }
  }
  bpe_buffer_append(b, "\"", 1);
}
