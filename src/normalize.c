/* normalize.c - the steps of normalize.h, over utf8proc's tables.
**
** A Unicode form is applied segment by segment: a character that nothing before it can change,
** and what follows up to the next such character. Segments are a letter and its marks, so the map
** back to the source is fine-grained; and the marks of a long segment are sorted by counting, so
** that no text makes it slow.
*/
#include "normalize.h"

#include "doc.h"
#include "utf8.h"

#include <string.h>
#include <utf8proc.h>

enum { MAX_STEPS = 16, SMALL_RUN = 16 };

/* A segment of more code points is composed one pair at a time, which can be stopped. */
enum { LONG_SEGMENT = 1 << 14 };

enum { CHAR_WORK = 8, EDIT_WORK = 4, STEP_WORK = 2 }; /* units */
enum { MAX_DECOMPOSED = 32 }; /* code points that one becomes; U+FDFA becomes 18 */

/* A text may become so many times as long, and this much longer. */
enum { MOST_GROWTH = 64, GROWTH_ROOM = 1 << 16 };

typedef enum step_kind { STEP_FORM, STEP_REPLACE, STEP_PREPEND, STEP_PREFIX_SPACE } step_kind;

typedef struct form {
  const char *name;
  utf8proc_option_t options;
  int32_t simple; /* code points below stand for themselves and begin a segment */
  bool compose;
} form;

static const form forms[] = {
    {"nfc", UTF8PROC_DECOMPOSE, 0x300, true},
    {"nfd", UTF8PROC_DECOMPOSE, 0xc0, false},
    {"nfkc", UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, 0xa0, true},
    {"nfkd", UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, 0xa0, false},
};

#define N_FORMS (sizeof forms / sizeof *forms)

typedef struct step {
  step_kind kind;
  const form *form;
  char *from, *to; /* owned */
  size_t from_len, to_len;
  size_t *borders; /* owned; for from[0 .. i], how many of its first bytes it ends with, not all */
} step;

struct normalizer {
  bpe_alloc alloc;
  step steps[MAX_STEPS];
  size_t n;
};

/* A stretch of the input and what became of it. */
typedef struct edit {
  size_t from, to;         /* of the input */
  size_t out_from, out_to; /* of the output */
} edit;

typedef struct normal_stage {
  uint8_t *bytes; /* owned; the output, when there are edits */
  size_t len, cap;
  edit *edits; /* owned, rising */
  size_t n_edits, edits_cap;
  size_t copied; /* the input up to here is in the output */
  size_t most;   /* bytes of the output, before what is copied at the end */
  size_t cursor; /* edit of the last question */
} normal_stage;

const char *bpe_normalizer_unicode_version(void) {
  return utf8proc_unicode_version();
}

/* ---- The list of steps --------------------------------------------------------------------- */

bpe_status normalizer_new(const bpe_alloc *a, bpe_error *e, normalizer **out) {
  *out = mem_zero(a, 1, sizeof **out);
  if (*out == NULL) return set_nomem(e);
  (*out)->alloc = *a;
  return BPE_OK;
}

void normalizer_free(normalizer *n) {
  if (n == NULL) return;
  const bpe_alloc a = n->alloc;
  for (size_t i = 0; i < n->n; i++) {
    mem_free(&a, n->steps[i].from);
    mem_free(&a, n->steps[i].to);
    mem_free(&a, n->steps[i].borders);
  }
  mem_free(&a, n);
}

static const form *find_form(const char *name, size_t len) {
  for (size_t i = 0; i < N_FORMS; i++)
    if (strlen(forms[i].name) == len && memcmp(forms[i].name, name, len) == 0) return &forms[i];
  return NULL;
}

bool normalizer_is_form(const char *name, size_t len) {
  return find_form(name, len) != NULL;
}

/* A new step with copies of two strings. */
static bpe_status add_step(normalizer *n, step s, const char *from, const char *to, bpe_error *e) {
  if (n->n == MAX_STEPS)
    return set_error(e, BPE_BADMODEL, n->n, "more than %d normalizer steps", MAX_STEPS);
  s.from = mem_new(&n->alloc, s.from_len, 1);
  s.to = mem_new(&n->alloc, s.to_len, 1);
  n->steps[n->n++] = s; /* owned by the list from here on, whole or not */
  if (s.from == NULL || s.to == NULL) return set_nomem(e);
  if (s.from_len != 0) memcpy(s.from, from, s.from_len);
  if (s.to_len != 0) memcpy(s.to, to, s.to_len);
  return BPE_OK;
}

bpe_status normalizer_add_form(normalizer *n, const char *name, size_t len, bpe_error *e) {
  return add_step(n, (step){.kind = STEP_FORM, .form = find_form(name, len)}, NULL, NULL, e);
}

static bpe_status find_borders(normalizer *n, step *s, bpe_error *e) {
  pace work = pace_of(&n->alloc);
  s->borders = mem_new(&n->alloc, s->from_len, sizeof *s->borders);
  if (s->borders == NULL) return set_nomem(e);
  s->borders[0] = 0;
  for (size_t i = 1, same = 0; i < s->from_len;) {
    const bpe_status st = pace_add(&work, STEP_WORK, e);
    if (st != BPE_OK) return st;
    if (s->from[i] == s->from[same]) s->borders[i++] = ++same;
    else if (same > 0) same = s->borders[same - 1];
    else s->borders[i++] = 0;
  }
  return BPE_OK;
}

bpe_status normalizer_add_replace(normalizer *n, const char *from, size_t from_len, const char *to,
                                  size_t to_len, bpe_error *e) {
  const step s = {.kind = STEP_REPLACE, .from_len = from_len, .to_len = to_len};
  const bpe_status st = add_step(n, s, from, to, e);
  return st == BPE_OK ? find_borders(n, &n->steps[n->n - 1], e) : st;
}

bpe_status normalizer_add_prepend(normalizer *n, const char *text, size_t len, bpe_error *e) {
  return add_step(n, (step){.kind = STEP_PREPEND, .to_len = len}, NULL, text, e);
}

bpe_status normalizer_add_prefix_space(normalizer *n, bpe_error *e) {
  return add_step(n, (step){.kind = STEP_PREFIX_SPACE, .to_len = 1}, NULL, " ", e);
}

size_t normalizer_steps(const normalizer *n) {
  return n->n;
}

bool normalizer_is_plain(const normalizer *n) {
  for (size_t i = 0; i < n->n; i++)
    if (n->steps[i].kind != STEP_FORM) return false;
  return true;
}

static void write_step(const step *s, bpe_buffer *out) {
  switch (s->kind) {
  case STEP_FORM: bpe_buffer_append_json(out, s->form->name, strlen(s->form->name)); break;
  case STEP_PREFIX_SPACE: bpe_buffer_append_json(out, "prefix_space", 12); break;
  case STEP_PREPEND:
    bpe_buffer_append(out, "{\"prepend\":", 11);
    bpe_buffer_append_json(out, s->to, s->to_len);
    bpe_buffer_append(out, "}", 1);
    break;
  case STEP_REPLACE:
    bpe_buffer_append(out, "{\"replace\":[", 12);
    bpe_buffer_append_json(out, s->from, s->from_len);
    bpe_buffer_append(out, ",", 1);
    bpe_buffer_append_json(out, s->to, s->to_len);
    bpe_buffer_append(out, "]}", 2);
    break;
  }
}

void normalizer_write(const normalizer *n, bpe_buffer *out) {
  bpe_buffer_append(out, "[", 1);
  for (size_t i = 0; i < n->n; i++) {
    if (i > 0) bpe_buffer_append(out, ",", 1);
    write_step(&n->steps[i], out);
  }
  bpe_buffer_append(out, "]", 1);
}

/* ---- As tokenizer.json has it --------------------------------------------------------------- */

static const char space_mark[] = "\xe2\x96\x81"; /* U+2581 */

static bool turns_marks(const step *s) {
  return s->kind == STEP_REPLACE && s->from_len == 3 && memcmp(s->from, space_mark, 3) == 0 &&
         s->to_len == 1 && s->to[0] == ' ';
}

bool normalizer_marks_spaces(const normalizer *n) {
  for (size_t i = 0; i < n->n; i++)
    if (turns_marks(&n->steps[i])) return true;
  return false;
}

bool normalizer_has_prefix_space(const normalizer *n) {
  for (size_t i = 0; i < n->n; i++)
    if (n->steps[i].kind == STEP_PREFIX_SPACE) return true;
  return false;
}

static void write_hf_replace(const char *from, size_t from_len, const char *to, size_t to_len,
                             bpe_buffer *out) {
  static const char head[] = "{\"type\":\"Replace\",\"pattern\":{\"String\":",
                    middle[] = "},\"content\":";
  bpe_buffer_append(out, head, sizeof head - 1);
  bpe_buffer_append_json(out, from, from_len);
  bpe_buffer_append(out, middle, sizeof middle - 1);
  bpe_buffer_append_json(out, to, to_len);
  bpe_buffer_append(out, "}", 1);
}

static void write_hf_step(const step *s, bool marks, bpe_buffer *out) {
  static const char form_head[] = "{\"type\":\"", prepend[] = "{\"type\":\"Prepend\",\"prepend\":";
  if (s->kind == STEP_FORM) {
    bpe_buffer_append(out, form_head, sizeof form_head - 1);
    for (const char *c = s->form->name; *c != 0; c++) {
      const char upper = (char)(*c - 'a' + 'A');
      bpe_buffer_append(out, &upper, 1);
    }
    bpe_buffer_append(out, "\"}", 2);
  } else if (s->kind == STEP_REPLACE) {
    if (marks && turns_marks(s)) write_hf_replace(" ", 1, space_mark, 3, out);
    else write_hf_replace(s->from, s->from_len, s->to, s->to_len, out);
  } else {
    const bool mark = marks && s->to_len == 1 && s->to[0] == ' ';
    bpe_buffer_append(out, prepend, sizeof prepend - 1);
    bpe_buffer_append_json(out, mark ? space_mark : s->to, mark ? 3 : s->to_len);
    bpe_buffer_append(out, "}", 1);
  }
}

void normalizer_write_hf(const normalizer *n, bool marks, bpe_buffer *out) {
  static const char head[] = "{\"type\":\"Sequence\",\"normalizers\":[";
  bool any = false;
  bpe_buffer_append(out, head, sizeof head - 1);
  for (size_t i = 0; i < n->n; i++) {
    if (n->steps[i].kind == STEP_PREFIX_SPACE) continue;
    if (any) bpe_buffer_append(out, ",", 1);
    write_hf_step(&n->steps[i], marks, out);
    any = true;
  }
  bpe_buffer_append(out, "]}", 2);
}

/* ---- Output of one step -------------------------------------------------------------------- */

static bpe_status append(normal_text *t, normal_stage *g, const void *bytes, size_t n,
                         bpe_error *e) {
  size_t need;
  if (n == 0) return BPE_OK; /* before anything is there, bytes is NULL */
  if (!size_add(g->len, n, &need) || !mem_grow(&t->alloc, (void **)&g->bytes, &g->cap, need, 1))
    return set_nomem(e);
  const bpe_status st = pace_copy(&t->pace, g->bytes + g->len, bytes, n, e);
  if (st == BPE_OK) g->len = need;
  return st;
}

/* s[from .. to) becomes the n bytes. */
static bpe_status add_edit(normal_text *t, normal_stage *g, const uint8_t *s, size_t from,
                           size_t to, const void *bytes, size_t n, bpe_error *e) {
  bpe_status st = append(t, g, s + g->copied, from - g->copied, e);
  const size_t start = g->len;
  if (st == BPE_OK) st = append(t, g, bytes, n, e);
  if (st != BPE_OK) return st;
  if (!mem_grow(&t->alloc, (void **)&g->edits, &g->edits_cap, g->n_edits + 1, sizeof *g->edits))
    return set_nomem(e);
  g->edits[g->n_edits++] = (edit){from, to, start, g->len};
  g->copied = to;
  return pace_add(&t->pace, EDIT_WORK, e);
}

/* ---- Unicode forms ------------------------------------------------------------------------- */

static bool is_second(int32_t cp) {
  const utf8proc_property_t *p = utf8proc_get_property(cp);
  if (p->combining_class != 0) return true;
  if ((cp >= 0x1161 && cp <= 0x1175) || (cp >= 0x11a8 && cp <= 0x11c2)) return true; /* jamo */
#if UTF8PROC_VERSION_MAJOR > 2 || UTF8PROC_VERSION_MINOR >= 10
  return p->comb_issecond;
#else
  return p->comb_index != UINT16_MAX && p->comb_index >= 0x8000;
#endif
}

/* Whether cp begins a segment: nothing before it reorders or composes with what it becomes. */
static bool begins_segment(const form *f, int32_t cp) {
  if (cp < f->simple) return true;
  if (utf8proc_get_property(cp)->decomp_seqindex == UINT16_MAX) return !is_second(cp);
  int32_t to[MAX_DECOMPOSED];
  int class = 0;
  const utf8proc_ssize_t n = utf8proc_decompose_char(cp, to, MAX_DECOMPOSED, f->options, &class);
  return n > 0 && !is_second(to[0]);
}

static bool is_hangul(int32_t cp) {
  return cp >= 0xac00 && cp <= 0xd7a3;
}

/* Whether cp alone is its own normal form for sure. */
static bool is_stable(const form *f, int32_t cp) {
  return cp < f->simple || (utf8proc_get_property(cp)->decomp_seqindex == UINT16_MAX &&
                            (f->compose || !is_hangul(cp)));
}

/* Sorts each run of marks by combining class, keeping the order of equals. There is room for n
** more behind p[n]. */
static void sort_marks(int32_t *p, size_t n, pace *work) {
  for (size_t i = 0; i < n && !work->stopped;) {
    size_t end = i;
    while (end < n && utf8proc_get_property(p[end])->combining_class != 0 &&
           !pace_stopped(work, CHAR_WORK))
      end++;
    if (end - i > SMALL_RUN) {
      size_t start[256] = {0}, sum = 0;
      for (size_t k = i; k < end && !pace_stopped(work, CHAR_WORK); k++)
        start[utf8proc_get_property(p[k])->combining_class & 255]++;
      for (int c = 0; c < 256; c++) {
        const size_t here = start[c];
        start[c] = sum;
        sum += here;
      }
      for (size_t k = i; k < end && !pace_stopped(work, CHAR_WORK); k++)
        p[n + start[utf8proc_get_property(p[k])->combining_class & 255]++] = p[k];
      (void)pace_copy(work, p + i, p + n, (end - i) * sizeof *p, NULL);
    } else {
      for (size_t k = i + 1; k < end; k++) {
        const int32_t x = p[k];
        const int class = utf8proc_get_property(x)->combining_class;
        size_t at = k;
        for (; at > i && utf8proc_get_property(p[at - 1])->combining_class > class; at--)
          p[at] = p[at - 1];
        p[at] = x;
      }
    }
    i = end == i ? i + 1 : end;
  }
}

static size_t put_char(uint8_t *to, int32_t cp) {
  return (size_t)utf8proc_encode_char(cp, to);
}

/* Composes a long segment in place; returns its new length. By the definition: a code point joins
** the last starter if nothing between them has a class as high as its own, or none at all. */
static size_t compose_long(int32_t *p, size_t n, pace *work) {
  size_t to = 0, starter = SIZE_MAX;
  int highest = -1; /* class since the starter */
  for (size_t i = 0; i < n && !pace_stopped(work, CHAR_WORK); i++) {
    const int class = utf8proc_get_property(p[i])->combining_class;
    if (starter != SIZE_MAX && class > highest) {
      int32_t pair[2] = {p[starter], p[i]};
      pace_stopped(work, CHAR_WORK);
      if (utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1) {
        p[starter] = pair[0];
        continue;
      }
    }
    if (class == 0) starter = to;
    highest = class == 0 ? -1 : class > highest ? class : highest;
    p[to++] = p[i];
  }
  return to;
}

/* Normalizes the segment s[from .. to) and, if that changes it, adds the edit. */
static bpe_status normalize_segment(normal_text *t, normal_stage *g, const form *f,
                                    const uint8_t *s, size_t from, size_t to, bpe_error *e) {
  size_t n = 0;
  for (size_t i = from, k; i < to; i += k) {
    const int32_t cp = (int32_t)utf8_decode(s + i, &k);
    if (!mem_grow(&t->alloc, (void **)&t->points, &t->points_cap, 2 * (n + MAX_DECOMPOSED),
                  sizeof *t->points))
      return set_nomem(e);
    int class = 0;
    const utf8proc_ssize_t got =
        utf8proc_decompose_char(cp, t->points + n, MAX_DECOMPOSED, f->options, &class);
    if (got < 0 || got > MAX_DECOMPOSED) t->points[n++] = cp;
    else n += (size_t)got;
    const bpe_status st = pace_add(&t->pace, (size_t)2 * CHAR_WORK, e);
    if (st != BPE_OK) return st;
  }
  sort_marks(t->points, n, &t->pace);
  if (f->compose && n > LONG_SEGMENT) n = compose_long(t->points, n, &t->pace);
  else if (f->compose)
    n = (size_t)utf8proc_normalize_utf32(t->points, (utf8proc_ssize_t)n,
                                         UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  uint8_t bytes[4];
  size_t same = from; /* source that agrees so far */
  size_t i = 0;
  for (; i < n; i++) {
    const bpe_status st = pace_add(&t->pace, CHAR_WORK, e);
    if (st != BPE_OK) return st;
    const size_t k = put_char(bytes, t->points[i]);
    if (k > to - same || memcmp(s + same, bytes, k) != 0) break;
    same += k;
  }
  if (i == n && same == to) return BPE_OK;
  bpe_status st = add_edit(t, g, s, from, to, NULL, 0, e);
  for (i = 0; i < n && st == BPE_OK; i++) {
    st = append(t, g, bytes, put_char(bytes, t->points[i]), e);
    if (st == BPE_OK) st = pace_add(&t->pace, CHAR_WORK, e);
  }
  if (st == BPE_OK) g->edits[g->n_edits - 1].out_to = g->len;
  return st;
}

/* One well-formed run, s[from .. to). */
static bpe_status form_run(normal_text *t, normal_stage *g, const form *f, const uint8_t *s,
                           size_t from, size_t to, bpe_error *e) {
  for (size_t i = from; i < to;) {
    size_t k;
    bpe_status st = pace_add(&t->pace, 2, e);
    if (st != BPE_OK) return st;
    if (s[i] < 0x80 && (i + 1 == to || s[i + 1] < 0x80)) { /* nothing can follow it in */
      i++;
      continue;
    }
    const int32_t first = (int32_t)utf8_decode(s + i, &k);
    size_t end = i + k;
    while (end < to && !begins_segment(f, (int32_t)utf8_decode(s + end, &k)) &&
           !pace_stopped(&t->pace, CHAR_WORK))
      end += k;
    if ((st = pace_add(&t->pace, CHAR_WORK, e)) != BPE_OK) return st;
    const bool alone = end == i + (size_t)utf8_length(s + i, to - i);
    if (!alone || !is_stable(f, first)) {
      st = normalize_segment(t, g, f, s, i, end, e);
      if (st != BPE_OK) return st;
    }
    i = end;
  }
  return BPE_OK;
}

static bpe_status apply_form(normal_text *t, normal_stage *g, const form *f, const uint8_t *s,
                             size_t len, bpe_error *e) {
  bpe_status st = BPE_OK;
  for (size_t i = 0; i < len && st == BPE_OK;) {
    const size_t run = utf8_paced_valid_run(&t->pace, s + i, len - i);
    if ((st = pace_add(&t->pace, 0, e)) == BPE_OK) st = form_run(t, g, f, s, i, i + run, e);
    i += run;
    if (st == BPE_OK) i += utf8_paced_malformed_run(&t->pace, s + i, len - i);
    if (st == BPE_OK) st = pace_add(&t->pace, 0, e);
  }
  return st;
}

/* ---- Strings ------------------------------------------------------------------------------- */

/* Replacements that make a text longer and longer, step by step, could make it any length. */
static bpe_status check_growth(const normal_stage *g, size_t at, const step *x, bpe_error *e) {
  if (x->to_len <= g->most && g->len + (at - g->copied) <= g->most - x->to_len) return BPE_OK;
  return set_error(e, BPE_BADTEXT, at, "normalized text is more than %d times as long",
                   MOST_GROWTH);
}

/* Where the next x->from in s[i .. len) ends; 0: there is none. By Knuth, Morris and Pratt: what a
** longer start of it has in common with the text is not compared again. */
static bpe_status find_replaced(normal_text *t, const step *x, const uint8_t *s, size_t i,
                                size_t len, size_t *end, bpe_error *e) {
  enum { PART = 1 << 16 };
  size_t same = 0; /* first bytes of x->from that s[.. i) ends with */
  *end = 0;
  while (*end == 0 && len - i >= x->from_len - same) {
    size_t work = STEP_WORK;
    if (same > 0 && s[i] != (uint8_t)x->from[same]) {
      same = x->borders[same - 1];
    } else if (same > 0) {
      i++;
      same++;
    } else {
      const size_t part = len - i < PART ? len - i : PART;
      const uint8_t *p = memchr(s + i, (uint8_t)x->from[0], part);
      const size_t passed = p == NULL ? part : (size_t)(p - s) - i;
      work += passed / 4;
      i += passed;
      if (p != NULL) i++, same++;
    }
    if (same == x->from_len) *end = i;
    const bpe_status st = pace_add(&t->pace, work, e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

static bpe_status apply_replace(normal_text *t, normal_stage *g, const step *x, const uint8_t *s,
                                size_t len, bpe_error *e) {
  size_t end = 0;
  for (;;) {
    bpe_status st = find_replaced(t, x, s, end, len, &end, e);
    if (st != BPE_OK || end == 0) return st;
    st = check_growth(g, end - x->from_len, x, e);
    if (st == BPE_OK) st = add_edit(t, g, s, end - x->from_len, end, x->to, x->to_len, e);
    if (st != BPE_OK) return st;
  }
}

/* ---- All steps ------------------------------------------------------------------------------ */

static bpe_status apply_step(normal_text *t, normal_stage *g, const step *x, const uint8_t *s,
                             size_t len, bpe_error *e) {
  switch (x->kind) {
  case STEP_FORM: return apply_form(t, g, x->form, s, len, e);
  case STEP_REPLACE: return apply_replace(t, g, x, s, len, e);
  case STEP_PREFIX_SPACE:
    if (len > 0 && s[0] == ' ') return BPE_OK;
    break;
  case STEP_PREPEND: break;
  }
  return len == 0 ? BPE_OK : add_edit(t, g, s, 0, 0, x->to, x->to_len, e);
}

bpe_status normal_apply(normal_text *t, const normalizer *n, const uint8_t *s, size_t len,
                        bpe_error *e) {
  t->text = s;
  t->len = len;
  t->pace = (pace){.stop = t->stop, .ctx = t->stop_ctx};
  t->changed = false;
  t->n_used = 0;
  const size_t most = len < SIZE_MAX / MOST_GROWTH / 2 ? MOST_GROWTH * len + GROWTH_ROOM : SIZE_MAX;
  if (t->n_stages < n->n) {
    normal_stage *stages = mem_zero(&t->alloc, n->n, sizeof *stages);
    if (stages == NULL) return set_nomem(e);
    if (t->n_stages != 0) memcpy(stages, t->stages, t->n_stages * sizeof *stages);
    mem_free(&t->alloc, t->stages);
    t->stages = stages;
    t->n_stages = n->n;
  }
  for (size_t i = 0; i < n->n; i++) {
    normal_stage *g = &t->stages[t->n_used];
    g->most = most;
    g->len = g->n_edits = g->copied = g->cursor = 0;
    bpe_status st = apply_step(t, g, &n->steps[i], t->text, t->len, e);
    if (st != BPE_OK) return st;
    if (g->n_edits == 0) continue;
    if ((st = append(t, g, t->text + g->copied, t->len - g->copied, e)) != BPE_OK) return st;
    t->text = g->len == 0 ? s : g->bytes; /* no null pointer for a text that has become empty */
    t->len = g->len;
    t->changed = true;
    t->n_used++;
  }
  return BPE_OK;
}

/* ---- Cutting -------------------------------------------------------------------------------- */

enum { UNKNOWN_CHAR = -1 };

static int32_t char_at(const uint8_t *s, size_t len) {
  size_t n;
  return len > 0 && utf8_length(s, len) != 0 ? (int32_t)utf8_decode(s, &n) : UNKNOWN_CHAR;
}

/* Whether no step sees across the place before the character `first`, which `second` follows. A
** string that is replaced must be one character; a form must know what becomes of `first`. */
static bool cuts_before(const normalizer *n, int32_t first, int32_t second) {
  for (size_t i = 0; i < n->n; i++) {
    const step *x = &n->steps[i];
    if (x->kind == STEP_FORM) {
      if (first == UNKNOWN_CHAR || !begins_segment(x->form, first)) return false;
      const bool stays =
          is_stable(x->form, first) && second != UNKNOWN_CHAR && begins_segment(x->form, second);
      if (!stays) first = UNKNOWN_CHAR;
      second = UNKNOWN_CHAR;
    } else if (x->kind == STEP_REPLACE) {
      const uint8_t *from = (const uint8_t *)x->from, *to = (const uint8_t *)x->to;
      const int32_t c = char_at(from, x->from_len);
      if (utf8_length(from, x->from_len) != x->from_len) return false;
      if (second == c || first == c) second = first == c ? UNKNOWN_CHAR : char_at(to, x->to_len);
      if (first == c) first = char_at(to, x->to_len);
    }
  }
  return true;
}

size_t normalizer_cut(const normalizer *n, const uint8_t *s, size_t len, size_t behind, size_t at) {
  enum { FAR = 256 };
  if (at > FAR && at - FAR > behind) behind = at - FAR;
  for (; at > behind; at--) {
    const int32_t first = char_at(s + at, len - at);
    if (first == UNKNOWN_CHAR) continue;
    const size_t k = utf8_length(s + at, len - at);
    if (n == NULL || cuts_before(n, first, char_at(s + at + k, len - at - k))) return at;
  }
  return 0;
}

static size_t place_in_input(normal_stage *g, size_t at, pace *p) {
  size_t k = g->cursor;
  while (k + 1 < g->n_edits && g->edits[k + 1].out_from <= at && !pace_stopped(p, 1)) k++;
  while (k > 0 && at < g->edits[k].out_from && !pace_stopped(p, 1)) k--;
  g->cursor = k;
  const edit *x = &g->edits[k];
  if (at <= x->out_from && (at < x->out_from || x->out_from < x->out_to || x->from == x->to))
    return x->from - (x->out_from - at);
  return at < x->out_to ? x->to : x->to + (at - x->out_to);
}

size_t normal_place(const normal_text *t, size_t at) {
  for (size_t i = 0; i < t->n_used; i++) {
    const normal_stage *g = &t->stages[i];
    size_t low = 0, high = g->n_edits; /* edits before `at` */
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (g->edits[middle].to <= at) low = middle + 1;
      else high = middle;
    }
    if (low > 0) at = g->edits[low - 1].out_to + (at - g->edits[low - 1].to);
  }
  return at;
}

size_t normal_source(normal_text *t, size_t at) {
  for (size_t i = t->n_used; i-- > 0;) at = place_in_input(&t->stages[i], at, &t->pace);
  return at;
}

void normal_clear(normal_text *t) {
  const bpe_alloc a = t->alloc;
  for (size_t i = 0; i < t->n_stages; i++) {
    mem_free(&a, t->stages[i].bytes);
    mem_free(&a, t->stages[i].edits);
  }
  mem_free(&a, t->stages);
  mem_free(&a, t->points);
  *t = (normal_text){.alloc = a};
}
