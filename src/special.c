/* special.c - the sorted list of names behind special.h. */
#include "special.h"

#include "unicode.h"
#include "utf8.h"

#include <string.h>

enum {
  STEP = 16,
  BLOCK = 256, /* bytes compared one by one before blocks are tried */
  /* Work is counted in units of a nanosecond or a few: */
  NAME_WORK = 8,      /* of a look at a name */
  SEARCH_WORK = 16,   /* of a binary search */
  BYTES_OF_WORK = 16, /* compared in one unit */
  CHAR_WORK = 8,      /* of a look at the class of a character */
  STRIDE = 1 << 16    /* bytes skipped at most between two questions to stop */
};

typedef struct name_entry {
  const uint8_t *text; /* of the slab, once sealed */
  size_t offset, len;
  size_t order; /* of adding: the first of equals counts */
  uint32_t id;
  uint8_t flags; /* entry_flag */
} name_entry;

struct bpe_finder {
  bpe_alloc alloc;
  name_entry *names; /* owned; sorted once sealed */
  size_t n, cap;
  uint8_t *slab; /* owned */
  size_t slab_len, slab_cap;
  bool first[256];  /* some name begins with this byte */
  int only;         /* the one byte that all names begin with, or -1 */
  bpe_finder *late; /* owned; NULL: none */
};

void bpe_finder_free(bpe_finder *f) {
  if (f == NULL) return;
  const bpe_alloc a = f->alloc;
  if (f->late != NULL) { /* one level: a late finder has none itself */
    mem_free(&a, f->late->names);
    mem_free(&a, f->late->slab);
    mem_free(&a, f->late);
  }
  mem_free(&a, f->names);
  mem_free(&a, f->slab);
  mem_free(&a, f);
}

bpe_status special_new(const bpe_alloc *a, bpe_error *e, bpe_finder **out) {
  *out = NULL;
  bpe_finder *f = mem_zero(a, 1, sizeof *f);
  if (f == NULL) return set_nomem(e);
  f->alloc = *a;
  *out = f;
  return BPE_OK;
}

bpe_status special_add(bpe_finder *f, const void *name, size_t len, uint32_t id, unsigned flags,
                       bpe_error *e) {
  if (len == 0) return set_error(e, BPE_MISUSE, f->n, "empty special token");
  if (len > SPECIAL_MAX)
    return set_error(e, BPE_MISUSE, f->n, "special token is longer than %d bytes: %zu", SPECIAL_MAX,
                     len);
  size_t need;
  if (!size_add(f->slab_len, len, &need) ||
      !mem_grow(&f->alloc, (void **)&f->slab, &f->slab_cap, need, 1) ||
      !mem_grow(&f->alloc, (void **)&f->names, &f->cap, f->n + 1, sizeof *f->names))
    return set_nomem(e);
  memcpy(f->slab + f->slab_len, name, len);
  f->names[f->n] = (name_entry){NULL, f->slab_len, len, f->n, id, (uint8_t)flags};
  f->slab_len = need;
  f->n++;
  return BPE_OK;
}

static int compare_names(const void *a, const void *b) {
  const name_entry *x = a, *y = b;
  const int c = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
  if (c != 0) return c;
  if (x->len != y->len) return x->len < y->len ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

bpe_status special_seal(bpe_finder *f, bpe_error *e) {
  pace p = pace_of(&f->alloc);
  for (size_t i = 0; i < f->n && !pace_stopped(&p, NAME_WORK); i++)
    f->names[i].text = f->slab + f->names[i].offset;
  if (p.stopped) return set_stopped(e);
  bpe_status st = pace_sort(&p, &f->alloc, f->names, f->n, sizeof *f->names, compare_names, e);
  if (st != BPE_OK) return st;
  size_t kept = 0;
  for (size_t i = 0; i < f->n; i++) {
    const name_entry *x = &f->names[i];
    if ((st = pace_add(&p, NAME_WORK, e)) != BPE_OK) return st;
    if (kept > 0 && f->names[kept - 1].len == x->len &&
        memcmp(f->names[kept - 1].text, x->text, x->len) == 0)
      continue;
    f->names[kept++] = *x;
    f->first[x->text[0]] = true;
  }
  f->n = kept;
  f->only =
      kept > 0 && f->names[0].text[0] == f->names[kept - 1].text[0] ? f->names[0].text[0] : -1;
  return BPE_OK;
}

/* First name in [low, high) whose byte at `at` is >= c; they agree before `at`, and a name that
** ends there counts as smaller than any byte. */
static size_t lower_bound(const bpe_finder *f, size_t low, size_t high, size_t at, unsigned c) {
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const name_entry *x = &f->names[middle];
    if (x->len <= at || x->text[at] < c) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Up to where a and b are the same, which they are before `at`; n bytes each. */
static size_t same_up_to(const uint8_t *a, const uint8_t *b, size_t at, size_t n) {
  while (at < n && a[at] == b[at])
    if ((++at & (STEP - 1)) == 0)
      while (n - at >= BLOCK && memcmp(a + at, b + at, BLOCK) == 0) at += BLOCK;
  return at;
}

/* Index of the longest name that begins text, or n. Adds to *work. */
static size_t longest_at(const bpe_finder *f, const uint8_t *text, size_t len, size_t *work) {
  size_t low = 0, high = f->n, at = 0;
  size_t best = high;
  while (low < high) {
    const name_entry *x = &f->names[low], *y = &f->names[high - 1];
    const size_t from = at;
    at = same_up_to(x->text, text, at, x->len < len ? x->len : len);
    *work += SEARCH_WORK + (at - from) / BYTES_OF_WORK;
    if (x != y) at = same_up_to(y->text, text, from, y->len < at ? y->len : at);
    /* All of the range agree with the text up to here; one that ends here comes first. */
    if (x->len == at) best = low++;
    if (at == len || (x == y && x->len != at)) break;
    low = lower_bound(f, low, high, at, text[at]);
    high = lower_bound(f, low, high, at, text[at] + 1u);
  }
  return best;
}

void special_set_late(bpe_finder *f, bpe_finder *late) {
  f->late = late;
}

const bpe_finder *special_late(const bpe_finder *f) {
  return f->late;
}

bool special_is_plain(const bpe_finder *f) {
  if (f == NULL) return true;
  for (size_t i = 0; i < f->n; i++)
    if (f->names[i].flags & (ENTRY_LSTRIP | ENTRY_RSTRIP | ENTRY_WORD)) return false;
  return f->late == NULL;
}

bool special_is_blind(const bpe_finder *f) {
  if (f == NULL) return true;
  for (size_t i = 0; i < f->n; i++)
    if (f->names[i].flags & ENTRY_WORD) return false;
  return true;
}

size_t special_longest(const bpe_finder *f) {
  size_t longest = 0;
  for (size_t i = 0; f != NULL && i < f->n; i++)
    if (f->names[i].len > longest) longest = f->names[i].len;
  return longest;
}

uint32_t special_id(const bpe_finder *f, const void *name, size_t len, unsigned *flags) {
  for (; f != NULL; f = f->late) {
    size_t work = 0;
    const size_t i = longest_at(f, name, len, &work);
    if (i == f->n || f->names[i].len != len) continue;
    if (flags != NULL) *flags = f->names[i].flags;
    return f->names[i].id;
  }
  return BPE_NONE;
}

/* Start of the character that ends at text[at], at > 0; at - 1 where that is malformed. */
static size_t char_before(const uint8_t *text, size_t at) {
  for (size_t n = 1; n <= 4 && n <= at; n++)
    if (utf8_length(text + at - n, n) == n) return at - n;
  return at - 1;
}

static unsigned class_of(const uint8_t *s, size_t len, uint32_t *cp) {
  size_t n;
  *cp = 0;
  if (utf8_length(s, len) == 0) return CLASS_OTHER;
  *cp = utf8_decode(s, &n);
  return unicode_class(*cp);
}

/* Of numbers, \w has the decimal ones and those that are letters: 2 and U+2161, not U+00B2. */
static bool is_word_number(uint32_t cp) {
  size_t low = 0, high = sizeof unicode_word_numbers / sizeof unicode_word_numbers[0];
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (unicode_word_numbers[middle][1] < cp) low = middle + 1;
    else high = middle;
  }
  return low < sizeof unicode_word_numbers / sizeof unicode_word_numbers[0] &&
         unicode_word_numbers[low][0] <= cp;
}

/* \w: Alphabetic, marks, decimal numbers, connector punctuation, joiners. */
static bool is_word(const uint8_t *s, size_t len) {
  uint32_t cp;
  const unsigned class = class_of(s, len, &cp);
  if (CLASS_BIT(class) & (CLASSES_L | CLASS_BIT(CLASS_MARK))) return true;
  if (class == CLASS_NUMBER) return is_word_number(cp);
  switch (cp) { /* connector punctuation, joiners */
  case 0x5f:
  case 0x200c:
  case 0x200d:
  case 0x203f:
  case 0x2040:
  case 0x2054:
  case 0xfe33:
  case 0xfe34:
  case 0xfe4d:
  case 0xfe4e:
  case 0xfe4f:
  case 0xff3f: return true;
  default: break;
  }
  return (cp >= 0x24b6 && cp <= 0x24e9) || (cp >= 0x1f130 && cp <= 0x1f149) ||
         (cp >= 0x1f150 && cp <= 0x1f169) || (cp >= 0x1f170 && cp <= 0x1f189); /* circled letters */
}

bool special_strips(const uint8_t *s, size_t len) {
  uint32_t cp;
  return class_of(s, len, &cp) == CLASS_SPACE;
}

/* What the name's flags make of its match; false: it does not count, or it was stopped. */
static bool apply_flags(unsigned flags, const uint8_t *text, size_t from, size_t len,
                        special_match *m, pace *p) {
  size_t stop = m->start + m->len;
  if (flags & ENTRY_WORD) {
    const size_t before = m->start == 0 ? 0 : char_before(text, m->start);
    if (m->start > 0 && is_word(text + before, m->start - before)) return false;
    if (stop < len && is_word(text + stop, len - stop)) return false;
  }
  if (flags & ENTRY_LSTRIP) {
    while (m->start > from && !pace_stopped(p, CHAR_WORK)) {
      const size_t before = char_before(text, m->start);
      if (before < from || !special_strips(text + before, m->start - before)) break;
      m->start = before;
    }
  }
  if (flags & ENTRY_RSTRIP)
    while (stop < len && special_strips(text + stop, len - stop) && !pace_stopped(p, CHAR_WORK))
      stop += utf8_length(text + stop, len - stop);
  m->len = stop - m->start;
  return true;
}

/* The next place from i on, before `end`, where a name may begin; end: none. */
static size_t next_start(const bpe_finder *f, const uint8_t *text, size_t i, size_t end) {
  if (f->only >= 0) {
    const uint8_t *p = memchr(text + i, f->only, end - i);
    return p == NULL ? end : (size_t)(p - text);
  }
  while (i < end && !f->first[text[i]]) i++;
  return i;
}

bpe_status special_find(const bpe_finder *f, const uint8_t *text, size_t from, size_t len,
                        int (*stop)(void *), void *ctx, bpe_error *e, special_match *m) {
  pace p = {.stop = stop, .ctx = ctx};
  *m = (special_match){len, 0, BPE_NONE};
  for (size_t i = from; i < len && f->n > 0;) {
    size_t work = 0;
    if (pace_stopped(&p, 0)) return set_stopped_at(e, i);
    const size_t end = len - i < STRIDE ? len : i + STRIDE;
    const size_t at = next_start(f, text, i, end);
    p.work += (at - i) * (PACE_STRIDE / STRIDE);
    i = at;
    if (i == end) continue;
    const size_t k = longest_at(f, text + i, len - i, &work);
    p.work += work;
    i++;
    if (k == f->n) continue;
    special_match found = {at, f->names[k].len, f->names[k].id};
    if (f->names[k].flags == 0 || apply_flags(f->names[k].flags, text, from, len, &found, &p)) {
      if (p.stopped) return set_stopped_at(e, i);
      *m = found;
      return BPE_OK;
    }
    i = at + found.len;
  }
  return BPE_OK;
}

special_match special_next(const bpe_finder *f, const uint8_t *text, size_t from, size_t len) {
  special_match m;
  (void)special_find(f, text, from, len, NULL, NULL, NULL, &m);
  return m;
}
