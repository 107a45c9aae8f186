/* import_tiktoken.c - rank files of tiktoken: one line a token, its bytes in base64 and its rank.
**
**     IQ== 0          rank and id are one number; blank lines are skipped; ranks may have gaps
**
** All 256 single bytes must be there. tiktoken merges the adjacent pair whose joined bytes are the
** token of lowest rank, and emits a piece that is a token whole. Two forms of merges do the same:
**
** (1) If every token, merged as one piece, gives itself, its last merge alone is listed. On any
**     text each merge that tiktoken makes is then in the list: what is done inside a token's bytes
**     before they are joined is what would be done to those bytes alone, so the pair joined last is
**     the listed one. The others never get to be the lowest, so leaving them out changes nothing.
** (2) Otherwise every split of a token into two tokens is a pair of that token's rank, and pieces
**     that are tokens stay whole. The caller's `whole` asks for this form.
**
** No pattern is in the file, and none is guessed.
*/
#include "bytelevel.h"
#include "import.h"

#include <string.h>

/* Bytes of a token: keeps the quadratic search below short for any file. */
enum { LONGEST = USUALLY(4096, 256) };

/* Units of work: of a line besides its bytes, of a look for a token, of a part that is moved. */
enum { LINE_WORK = 8, FIND_WORK = 32, MOVE_WORK = 1 };

static bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

static bpe_status bad_line(importing *in, size_t n, const char *line, size_t len) {
  quoted q;
  return set_error(in->e, BPE_BADMODEL, n, "line %zu is not a token in base64 and its rank: %s", n,
                   quote_bytes(&q, line, len));
}

static bpe_status read_line(importing *in, size_t n, const char *line, size_t len) {
  const char *const whole = line;
  const size_t whole_len = len;
  uint8_t bytes[LONGEST + 3];
  while (len > 0 && is_blank(line[len - 1])) len--;
  while (len > 0 && is_blank(*line)) line++, len--;
  if (len == 0) return BPE_OK;
  size_t word = 0, rank = 0, n_bytes;
  while (word < len && !is_blank(line[word])) word++;
  rank = word;
  while (rank < len && is_blank(line[rank])) rank++;
  uint32_t id;
  const bool fits = word <= (size_t)(LONGEST + 2) / 3 * 4;
  if (fits &&
      (!base64_decode(line, word, bytes, &n_bytes) || !parse_id(line + rank, len - rank, &id)))
    return bad_line(in, n, whole, whole_len);
  if (!fits || n_bytes > LONGEST)
    return set_error(in->e, BPE_TOOBIG, n, "token of more than %d bytes in line %zu", LONGEST, n);
  return import_token(in, bytes, n_bytes, id, BPE_TOKEN, 0, n);
}

static bpe_status check_bytes(importing *in) {
  unsigned missing = 0, first = 0;
  for (unsigned c = 256; c-- > 0;) {
    const uint8_t byte = (uint8_t)c;
    if (import_find(in, &byte, 1) != in->n_tokens) continue;
    missing++;
    first = c;
  }
  if (missing == 0) return BPE_OK;
  return set_error(in->e, BPE_BADMODEL, 0, "no token for the byte 0x%02x (%u bytes have none)",
                   first, missing);
}

/* ---- Merges -------------------------------------------------------------------------------- */

typedef struct by_id {
  uint32_t id;
  size_t token;
} by_id;

static int compare_ids(const void *a, const void *b) {
  const by_id *x = a, *y = b;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* A token's bytes being merged: parts, and what each becomes with the next. */
typedef struct merging {
  size_t start[LONGEST + 1]; /* of part i; start[n] is the end */
  size_t joined[LONGEST];    /* token of parts i and i + 1, or n_tokens */
  size_t n;
} merging;

static size_t join(const importing *in, const merging *m, const uint8_t *s, size_t i) {
  return import_find(in, s + m->start[i], m->start[i + 2] - m->start[i]);
}

/* Merges token k as tiktoken would. True: it gives itself, lastly from parts *left and *right. */
static bool find_last_merge(importing *in, size_t k, merging *m, size_t *left, size_t *right) {
  const uint8_t *s = import_bytes(in, k);
  m->n = in->tokens[k].len;
  for (size_t i = 0; i <= m->n; i++) m->start[i] = i;
  for (size_t i = 0; i + 1 < m->n; i++) m->joined[i] = join(in, m, s, i);
  pace_stopped(&in->pace, m->n * FIND_WORK);
  while (m->n > 1 && !pace_stopped(&in->pace, (size_t)2 * FIND_WORK + 2 * m->n * MOVE_WORK)) {
    size_t best = in->n_tokens, at = 0;
    for (size_t i = 0; i + 1 < m->n; i++) {
      const size_t x = m->joined[i];
      if (x == in->n_tokens) continue;
      if (best == in->n_tokens || in->tokens[x].id < in->tokens[best].id) {
        best = x;
        at = i;
      }
    }
    if (best == in->n_tokens) return false;
    if (m->n == 2) {
      *left = import_find(in, s, m->start[1]);
      *right = import_find(in, s + m->start[1], m->start[2] - m->start[1]);
      return true;
    }
    memmove(m->start + at + 1, m->start + at + 2, (m->n - at - 1) * sizeof *m->start);
    memmove(m->joined + at, m->joined + at + 1, (m->n - at - 1) * sizeof *m->joined);
    m->n--;
    if (at + 1 < m->n) m->joined[at] = join(in, m, s, at);
    if (at > 0) m->joined[at - 1] = join(in, m, s, at - 1);
  }
  return false;
}

typedef struct split {
  size_t left, right;
} split;

/* Form (1), if it holds. */
static bool last_merges(importing *in, const by_id *order, split *splits, merging *m) {
  for (size_t i = 0; i < in->n_tokens; i++) {
    const size_t k = order[i].token;
    if (in->tokens[k].len < 2) continue;
    if (!find_last_merge(in, k, m, &splits[k].left, &splits[k].right)) return false;
  }
  uint32_t rank = 0;
  for (size_t i = 0; i < in->n_tokens; i++) {
    const size_t k = order[i].token;
    if (in->tokens[k].len >= 2) import_merge(in, rank++, splits[k].left, splits[k].right, k);
  }
  return true;
}

/* Form (2). */
static void all_splits(importing *in, const by_id *order) {
  for (size_t i = 0; i < in->n_tokens; i++) {
    const size_t k = order[i].token;
    const uint8_t *s = import_bytes(in, k);
    for (size_t cut = 1; cut < in->tokens[k].len; cut++) {
      if (pace_stopped(&in->pace, FIND_WORK + in->tokens[k].len / 4)) return;
      const size_t left = import_find(in, s, cut);
      if (left == in->n_tokens) continue;
      const size_t right = import_find(in, s + cut, in->tokens[k].len - cut);
      if (right != in->n_tokens) import_merge(in, order[i].id, left, right, k);
    }
  }
  bpe_builder_whole(in->b);
}

static bpe_status make_merges(importing *in) {
  by_id *order = mem_new(&in->alloc, in->n_tokens, sizeof *order);
  split *splits = mem_new(&in->alloc, in->n_tokens, sizeof *splits);
  merging *m = mem_new(&in->alloc, 1, sizeof *m);
  const bool ok = order != NULL && splits != NULL && m != NULL;
  bpe_status st = ok ? BPE_OK : set_nomem(in->e);
  if (ok) {
    for (size_t k = 0; k < in->n_tokens; k++) order[k] = (by_id){in->tokens[k].id, k};
    st = pace_sort(&in->pace, &in->alloc, order, in->n_tokens, sizeof *order, compare_ids, in->e);
  }
  if (st == BPE_OK && (in->options->whole || !last_merges(in, order, splits, m)))
    all_splits(in, order);
  if (st == BPE_OK) st = pace_add(&in->pace, 1, in->e);
  mem_free(&in->alloc, order);
  mem_free(&in->alloc, splits);
  mem_free(&in->alloc, m);
  return st;
}

bpe_status import_tiktoken(importing *in, const char *text, size_t len) {
  lines l = {text, text + len, 0};
  const char *line;
  size_t n;
  while (next_line(&l, &line, &n)) {
    bpe_status st = read_line(in, l.n, line, n);
    if (st == BPE_OK) st = pace_add(&in->pace, LINE_WORK + n, in->e);
    if (st != BPE_OK) return st;
  }
  bpe_status st = check_bytes(in);
  if (st == BPE_OK) st = import_pattern(in, "a rank file");
  if (st == BPE_OK) st = make_merges(in);
  const bpe_import_options *o = in->options;
  if (st == BPE_OK) st = import_specials(in, o->special_tokens, o->special_len);
  return st;
}
