/* json.c - JSON in and out: option objects, id arrays, names in results.
**
** Parsing is jansson's. Two properties are added here.
** (1) All nodes of a document live in chunks of sqlite3_malloc64 that are freed together, so that
**     heap limits see them and an array of a million ids costs no million calls.
** (2) An allocation that fails ends the parse at once, by longjmp over jansson's frames. jansson
**     itself goes on after a failed growth of its token buffer, with bytes missing from the token,
**     and would answer with another string than the text holds. Nothing is lost by the jump: the
**     chunks hold all there is.
** Nesting is limited before jansson sees the text, because its parser recurses; no document of
** ours is deeper than an object of objects of arrays.
**
** The arena under way is a thread's, not a connection's: it is set only while json_parse runs.
*/
#include "ext.h"

#include <jansson.h>
#include <setjmp.h>
#include <string.h>

enum { MAX_NESTING = 8, ALIGN = 16, FIRST_CHUNK = 2048, LAST_CHUNK = 1 << 20 };

typedef struct json_chunk {
  struct json_chunk *next;
  size_t used, size; /* of the bytes behind this header */
} json_chunk;

enum { CHUNK_HEADER = (sizeof(json_chunk) + ALIGN - 1) / ALIGN * ALIGN };

typedef struct arena {
  json_chunk *chunks; /* newest first */
  jmp_buf failed;
} arena;

static _Thread_local arena *current;

/* In place of the stdin that jansson's json_loadf names, which nothing here calls: see Makefile. */
void *json_no_stdin;

static json_chunk *add_chunk(arena *a, size_t need)
{
  size_t size = FIRST_CHUNK;
  if (a->chunks) size = a->chunks->size < LAST_CHUNK ? a->chunks->size * 2 : LAST_CHUNK;
  if (size < need) size = need;
  json_chunk *chunk = sqlite3_malloc64(CHUNK_HEADER + size);
  if (!chunk) longjmp(a->failed, 1);
  *chunk = (json_chunk){.next = a->chunks, .size = size};
  a->chunks = chunk;
  return chunk;
}

static void *arena_malloc(size_t n)
{
  if (!current || n > SIZE_MAX / 4) return NULL;
  const size_t need = (n + ALIGN - 1) / ALIGN * ALIGN;
  json_chunk *chunk = current->chunks;
  if (!chunk || chunk->size - chunk->used < need) chunk = add_chunk(current, need);
  void *p = (char *)chunk + CHUNK_HEADER + chunk->used;
  chunk->used += need;
  return p;
}

static void arena_free(void *p)
{
  (void)p; /* the chunks go together */
}

void json_setup(void)
{
  /* The setting is one per process and always the same; the mutex orders the first write before
  ** every use. SQLite built without mutexes has none to give, and no threads to order. */
  sqlite3_mutex *mutex = NULL;
  if (HAVE(OLDEST_SQLITE, mutex_alloc)) mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
  if (mutex) sqlite3_mutex_enter(mutex);
  json_malloc_t now = NULL;
  json_free_t now_free = NULL;
  json_get_alloc_funcs(&now, &now_free);
  if (now != arena_malloc) json_set_alloc_funcs(arena_malloc, arena_free);
  if (mutex) sqlite3_mutex_leave(mutex);
}

static void free_chunks(json_chunk *chunk)
{
  while (chunk) {
    json_chunk *next = chunk->next;
    sqlite3_free(chunk);
    chunk = next;
  }
}

void json_doc_clear(json_doc *doc)
{
  free_chunks(doc->chunks);
  *doc = (json_doc){0};
}

static bool nested_too_deeply(bytes text)
{
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.len; i++) {
    const uint8_t b = text.data[i];
    if (in_string) {
      if (b == '\\') i++;
      else if (b == '"') in_string = false;
    } else if (b == '"') {
      in_string = true;
    } else if (b == '[' || b == '{') {
      if (++depth > MAX_NESTING) return true;
    } else if (b == ']' || b == '}') {
      depth--;
    }
  }
  return false;
}

/* Apart from its caller, so that no local of the caller's is live across setjmp. */
static json_t *load(arena *a, bytes text, json_error_t *e, bool *no_memory)
{
  if (setjmp(a->failed)) {
    *no_memory = true;
    return NULL;
  }
  return json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, e);
}

int json_parse(bytes text, const char *what, failure *f, json_doc *out)
{
  *out = (json_doc){0};
  if (nested_too_deeply(text)) return fail(f, "%s: nested too deeply", what);
  arena a = {0};
  json_error_t e = {0};
  bool no_memory = false;
  current = &a;
  json_t *root = load(&a, text, &e, &no_memory);
  current = NULL;
  if (!root) {
    free_chunks(a.chunks);
    if (no_memory) return fail_code(f, SQLITE_NOMEM);
    char why[SHOWN_SIZE];
    return fail(f, "%s: %s at byte %lld", what,
                shown((bytes){(const uint8_t *)e.text, strlen(e.text)}, why),
                (long long)e.position);
  }
  *out = (json_doc){.root = root, .chunks = a.chunks};
  return SQLITE_OK;
}

void json_append_string(bpe_buffer *b, const void *text, size_t len)
{
  static const char hex[] = "0123456789abcdef";
  const uint8_t *p = text;
  bpe_buffer_append(b, "\"", 1);
  for (size_t at = 0, step; at < len; at += step) {
    step = bpe_utf8_next(p + at, len - at);
    const uint8_t c = p[at];
    if (c == '"' || c == '\\') {
      bpe_buffer_append(b, "\\", 1);
      bpe_buffer_append(b, p + at, 1);
    } else if (c < 0x20) {
      const char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
      bpe_buffer_append(b, escape, 6);
    } else if (bpe_utf8_valid(p + at, step)) {
      bpe_buffer_append(b, p + at, step);
    } else {
      bpe_buffer_append(b, "\xEF\xBF\xBD", 3);
    }
  }
  bpe_buffer_append(b, "\"", 1);
}

void json_append_ids(bpe_buffer *b, const uint32_t *ids, size_t n)
{
  bpe_buffer_append(b, "[", 1);
  for (size_t i = 0; i < n; i++) {
    if (i) bpe_buffer_append(b, ",", 1);
    bpe_buffer_append_decimal(b, ids[i]);
  }
  bpe_buffer_append(b, "]", 1);
}
