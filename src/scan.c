/* scan.c - the splitters of scan.h: one function per family, told apart by a row of scan_table.
**
** The published patterns, with L N M Lu ... the Unicode classes, \s White_Space, and
** C = 's|'t|'re|'ve|'m|'ll|'d :
**
**   gpt2     C | ?L+ | ?N+ | ?[^\sLN]+ |\s+(?!\S)|\s+                          C is case-sensitive
**   cl100k   (?i:C)|[^\r\nLN]?L+|N{1,3}| ?[^\sLN]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
**   llama3   the same; qwen2 the same with N for N{1,3}
**   o200k    [^\r\nLN]?U*W+(?i:C)?|[^\r\nLN]?U+W*(?i:C)?|N{1,3}| ?[^\sLN]+[\r\n/]*|\s*[\r\n]+
**            |\s+(?!\S)|\s+        where U = [Lu Lt Lm Lo M], W = [Ll Lm Lo M]
**   tekken   the same without (?i:C)?, and N for N{1,3}
**   deepseek3  N{1,3} is cut out first, then [U+4E00-9FA5 U+3040-30FF]+; these runs and what lies
**            between are each cut by A[A-Za-z]+|[^\r\nLPS]?[LM]+| ?[PS]+[\r\n]*|\s*[\r\n]+
**            |\s+(?!\S)|\s+ where A is ASCII's punctuation; what that leaves over are pieces too
**   whitespace  \s+|\S+
**   words    [LMN_]+|\s+|[^\sLMN_]+
**
** (?i:s) also matches U+017F. Regexes try alternatives in order and give back greedily; each
** function below says where that shows.
*/
#include "scan.h"

#include "blocks.h"
#include "unicode.h"
#include "utf8.h"

#include <limits.h>
#include <string.h>

enum { MOST_SINGLES = 16 }; /* pieces taken one by one before blocks are tried again */
enum { CLASS_END = 31 };    /* class of "no character here": in none of the sets below */
enum { STRIDE = 1 << 16 };  /* bytes of a piece between two looks at the pace */
enum { BYTE_WORK = 4 };     /* units for each */

#define SET_SPACE CLASS_BIT(CLASS_SPACE)
#define SET_N CLASS_BIT(CLASS_NUMBER)
#define SET_U (CLASS_BIT(CLASS_UPPER) | CLASS_BIT(CLASS_LETTER) | CLASS_BIT(CLASS_MARK))
#define SET_W (CLASS_BIT(CLASS_LOWER) | CLASS_BIT(CLASS_LETTER) | CLASS_BIT(CLASS_MARK))
#define SET_LM (CLASSES_L | CLASS_BIT(CLASS_MARK))
/* [^\s L N] */
#define SET_OTHER                                                                                  \
  (CLASS_BIT(CLASS_OTHER) | CLASS_BIT(CLASS_MARK) | CLASS_BIT(CLASS_PUNCT) |                       \
   CLASS_BIT(CLASS_SYMBOL))

enum contraction { NO_CONTRACTION, EXACT_CONTRACTION, FOLDED_CONTRACTION };

struct scan_rules {
  const char *name;
  size_t (*piece)(const scan_rules *, const uint8_t *s, size_t len, pace *);
  bool (*same_end)(const scan_rules *, const uint8_t *s, const scan_found *, size_t at, size_t len);
  block_rules blocks; /* the same rules for many pieces at once */
  enum contraction contraction;
  unsigned max_digits;
  bool slash_ends_other; /* [\r\n/]* after a run of others, not [\r\n]* */
};

/* Class of the character at s[i] and its length; CLASS_END and 0 at the end. */
static inline unsigned class_at(const uint8_t *s, size_t i, size_t len, size_t *n) {
  if (i >= len) {
    *n = 0;
    return CLASS_END;
  }
  return unicode_class(utf8_decode(s + i, n));
}

static inline bool in_set(unsigned class, unsigned set) {
  return set >> class & 1;
}

static inline bool is_newline(uint8_t c) {
  return c == '\n' || c == '\r';
}

/* How far a loop over characters goes before it looks at the pace. */
static inline size_t near_end(size_t i, size_t len) {
  return len - i < STRIDE ? len : i + STRIDE;
}

/* A loop has come to its near end, and the run goes on: whether to follow it. */
static inline bool goes_on(size_t i, size_t near, size_t len, pace *p) {
  return i >= near && i < len && !pace_stopped(p, (size_t)STRIDE * BYTE_WORK);
}

/* run_end in a text that is long enough to ask meanwhile. Apart: most are not. */
static NEVER_INLINE size_t long_run_end(const uint8_t *s, size_t i, size_t len, unsigned set,
                                        pace *p) {
  size_t n, near;
  do {
    near = near_end(i, len);
    while (in_set(class_at(s, i, near, &n), set)) i += n;
  } while (goes_on(i, near, len, p));
  return i;
}

/* End of the run of characters of the set that starts at s[i]. */
static inline size_t run_end(const uint8_t *s, size_t i, size_t len, unsigned set, pace *p) {
  size_t n;
  if (len > STRIDE) return long_run_end(s, i, len, set, p);
  while (in_set(class_at(s, i, len, &n), set)) i += n;
  return i;
}

/* Length of C at s[0], or 0. */
static size_t contraction_length(const uint8_t *s, size_t len, enum contraction how) {
  if (how == NO_CONTRACTION || len < 2 || s[0] != '\'') return 0;
  const uint8_t fold = how == FOLDED_CONTRACTION ? 0x20 : 0;
  const uint8_t c = s[1] | fold, d = len > 2 ? s[2] | fold : 0;
  switch (c) {
  case 's':
  case 't':
  case 'm':
  case 'd': return 2;
  case 'r':
  case 'v': return d == 'e' ? 3 : 0;
  case 'l': return d == 'l' ? 3 : 0;
  default: break;
  }
  return fold != 0 && len > 2 && s[1] == 0xc5 && s[2] == 0xbf ? 3 : 0; /* U+017F */
}

/* White space at s[0]. \s*[\r\n]+ gives back to the last newline of the run; \s+(?!\S) gives back
** one character, unless the run ends the text or has only one. */
static size_t space_length(const uint8_t *s, size_t len, bool newlines_first, pace *p) {
  size_t i = 0, last = 0, after_newline = 0, n;
  while (class_at(s, i, len, &n) == CLASS_SPACE) {
    last = i;
    i += n;
    if (is_newline(s[last])) after_newline = i;
    if ((i ^ last) >= STRIDE && pace_stopped(p, (size_t)STRIDE * BYTE_WORK)) return len;
  }
  if (newlines_first && after_newline != 0) return after_newline;
  return i == len || last == 0 ? i : last;
}

/* N{1,max} at s[i]; 0 if there is no number. */
static size_t digits_length(const uint8_t *s, size_t len, unsigned max, pace *p) {
  size_t i = 0, n;
  if (max == UINT_MAX) return run_end(s, i, len, SET_N, p);
  for (unsigned k = 0; k < max && class_at(s, i, len, &n) == CLASS_NUMBER; k++) i += n;
  return i;
}

static size_t gpt2_piece(const scan_rules *r, const uint8_t *s, size_t len, pace *p) {
  const size_t c = contraction_length(s, len, r->contraction);
  if (c != 0) return c;
  const size_t at = s[0] == ' ' ? 1 : 0;
  size_t n;
  const unsigned class = class_at(s, at, len, &n);
  if (in_set(class, CLASSES_L)) return run_end(s, at + n, len, CLASSES_L, p);
  if (in_set(class, SET_N)) return run_end(s, at + n, len, SET_N, p);
  if (in_set(class, SET_OTHER)) return run_end(s, at + n, len, SET_OTHER, p);
  return space_length(s, len, false, p);
}

/* From | ?[^\sLN]+ on, which cl100k and o200k share; s[0] begins no word and no number. */
static size_t rest_length(const scan_rules *r, const uint8_t *s, size_t len, pace *p) {
  const size_t at = s[0] == ' ' ? 1 : 0;
  size_t n;
  if (!in_set(class_at(s, at, len, &n), SET_OTHER)) return space_length(s, len, true, p);
  size_t end = run_end(s, at + n, len, SET_OTHER, p);
  while (end < len && (is_newline(s[end]) || (r->slash_ends_other && s[end] == '/')) &&
         !pace_stopped(p, 1))
    end++;
  return end;
}

static size_t cl100k_piece(const scan_rules *r, const uint8_t *s, size_t len, pace *p) {
  const size_t c = contraction_length(s, len, r->contraction);
  if (c != 0) return c;
  size_t n, m;
  const unsigned class = class_at(s, 0, len, &n);
  if (in_set(class, CLASSES_L)) return run_end(s, n, len, CLASSES_L, p);
  if (class == CLASS_NUMBER) return digits_length(s, len, r->max_digits, p);
  if (!is_newline(s[0]) && in_set(class_at(s, n, len, &m), CLASSES_L))
    return run_end(s, n + m, len, CLASSES_L, p);
  return rest_length(r, s, len, p);
}

/* U*W+ or, failing that, U+W* at s[at]: its end, or `at` if neither matches. *first: U*W+ did.
**
**     U U B U U l l B U      l = Ll; B = in both sets
**     |---U*--| |W+-|        a lower-case letter follows U*: W+ goes on from there
**     U U B U U x            none follows: U* gives back to before the last B, which W+ takes
**     |U*|B|                 (only "UUB" matches)
**     U U U x                no B either: W+ fails, U+ matches all
*/
static size_t word_end(const uint8_t *s, size_t at, size_t len, bool *first, pace *p) {
  size_t i = at, n, near, after_both = 0;
  unsigned class;
  do {
    near = near_end(i, len);
    while (in_set(class = class_at(s, i, near, &n), SET_U)) {
      i += n;
      if (class != CLASS_UPPER) after_both = i;
    }
  } while (goes_on(i, near, len, p));
  *first = class == CLASS_LOWER || after_both != 0;
  if (class == CLASS_LOWER) return run_end(s, i + n, len, SET_W, p);
  return after_both != 0 ? after_both : i;
}

static size_t o200k_piece(const scan_rules *r, const uint8_t *s, size_t len, pace *p) {
  size_t n, end = 0;
  bool first;
  const unsigned class = class_at(s, 0, len, &n);
  if (class == CLASS_NUMBER) return digits_length(s, len, r->max_digits, p);
  if (in_set(class, CLASSES_L)) {
    end = word_end(s, 0, len, &first, p);
  } else if (!is_newline(
                 s[0])) { /* [^\r\nLN]? takes the character; without a word, gives it back */
    end = word_end(s, n, len, &first, p);
    if (class == CLASS_MARK && !first) end = n; /* a mark is a W: U*W+ matches it alone */
    else if (end == n) end = 0;
  }
  if (end == 0) return rest_length(r, s, len, p);
  return end + contraction_length(s + end, len - end, r->contraction);
}

#define SET_PS (CLASS_BIT(CLASS_PUNCT) | CLASS_BIT(CLASS_SYMBOL))

static bool is_cjk(uint32_t cp) {
  return (cp >= 0x4e00 && cp <= 0x9fa5) || (cp >= 0x3040 && cp <= 0x30ff);
}

/* As class_at, for deepseek3's last pattern, which sees a CJK run, or what lies between, as a text
** of its own: numbers end it, and a character of the other side does. */
static unsigned deepseek3_class(const uint8_t *s, size_t i, size_t len, bool cjk, size_t *n) {
  if (i >= len) {
    *n = 0;
    return CLASS_END;
  }
  const uint32_t cp = utf8_decode(s + i, n);
  const unsigned class = unicode_class(cp);
  if (class != CLASS_NUMBER && is_cjk(cp) == cjk) return class;
  *n = 0;
  return CLASS_END;
}

static size_t deepseek3_run(const uint8_t *s, size_t i, size_t len, bool cjk, unsigned set,
                            pace *p) {
  size_t n;
  while (in_set(deepseek3_class(s, i, len, cjk, &n), set) && !pace_stopped(p, n * BYTE_WORK))
    i += n;
  return i;
}

static bool is_ascii_letter(uint8_t c) {
  return (uint8_t)((c | 0x20) - 'a') < 26;
}

/* White space and what no pattern matches, from the class of s[0] on. */
static size_t deepseek3_rest(const uint8_t *s, size_t len, bool cjk, unsigned class, pace *p) {
  size_t i = 0, last = 0, after_newline = 0, n;
  if (class == CLASS_SPACE) {
    for (; (class = deepseek3_class(s, i, len, cjk, &n)) == CLASS_SPACE; i += n) {
      if (pace_stopped(p, n * BYTE_WORK)) break;
      last = i;
      if (is_newline(s[i])) after_newline = i + n;
    }
    if (after_newline != 0) return after_newline;
    return class == CLASS_END || last == 0 ? i : last;
  }
  for (; (class = deepseek3_class(s, i, len, cjk, &n)) == CLASS_OTHER; i += n) {
    if (pace_stopped(p, n * BYTE_WORK)) break;
    last = i;
  }
  return in_set(class, SET_LM) && last != 0 ? last : i; /* [^\r\nLPS]? takes the last along */
}

static size_t deepseek3_piece(const scan_rules *r, const uint8_t *s, size_t len, pace *p) {
  size_t n, m, k;
  const uint32_t cp = utf8_decode(s, &n);
  const bool cjk = is_cjk(cp);
  const unsigned class = unicode_class(cp);
  if (class == CLASS_NUMBER) return digits_length(s, len, r->max_digits, p);
  if (in_set(class, SET_PS) && cp < 0x80 && len > 1 && is_ascii_letter(s[1])) {
    size_t i = 1;
    while (i < len && is_ascii_letter(s[i]) && !pace_stopped(p, BYTE_WORK)) i++;
    return i;
  }
  if (in_set(class, SET_LM)) return deepseek3_run(s, n, len, cjk, SET_LM, p);
  if (!in_set(class, SET_PS) && !is_newline(s[0]) &&
      in_set(deepseek3_class(s, n, len, cjk, &m), SET_LM))
    return deepseek3_run(s, n + m, len, cjk, SET_LM, p);
  const size_t at = s[0] == ' ' ? 1 : 0;
  if (!in_set(deepseek3_class(s, at, len, cjk, &k), SET_PS))
    return deepseek3_rest(s, len, cjk, class, p);
  size_t end = deepseek3_run(s, at + k, len, cjk, SET_PS, p);
  while (!cjk && end < len && is_newline(s[end]) && !pace_stopped(p, 1)) end++;
  return end;
}

#define SET_ALL ((1u << CLASS_END) - 1)

static size_t whitespace_piece(const scan_rules *r, const uint8_t *s, size_t len, pace *p) {
  (void)r;
  size_t n;
  const bool space = class_at(s, 0, len, &n) == CLASS_SPACE;
  return run_end(s, n, len, space ? SET_SPACE : SET_ALL & ~SET_SPACE, p);
}

enum word_kind { WORD_PART, WORD_SPACE, WORD_REST, WORD_END };

static enum word_kind word_kind_at(const uint8_t *s, size_t i, size_t len, size_t *n) {
  const unsigned class = class_at(s, i, len, n);
  if (class == CLASS_END) return WORD_END;
  if (in_set(class, SET_LM | SET_N) || s[i] == '_') return WORD_PART;
  return class == CLASS_SPACE ? WORD_SPACE : WORD_REST;
}

static size_t words_piece(const scan_rules *r, const uint8_t *s, size_t len, pace *p) {
  (void)r;
  size_t n, i = 0;
  const enum word_kind first = word_kind_at(s, 0, len, &n);
  do i += n;
  while (!pace_stopped(p, n * BYTE_WORK) && word_kind_at(s, i, len, &n) == first);
  return i;
}

/* ---- Pieces met again in their middle ------------------------------------------------------- */

/* Each function is asked about a character s[at] that is not the first of the piece f. Its class
** and the first two characters say which part of which alternative it is in. */

/* Two of white space are the start of a run of it, and the newlines and the end that decide about it
** lie ahead of each place. Newlines behind others are no such run; but met by themselves they are,
** and then found as one. */
static bool is_space_run(const uint8_t *s, const scan_found *f, size_t len) {
  size_t n, m;
  return class_at(s, f->start, len, &n) == CLASS_SPACE &&
         class_at(s, f->start + n, len, &m) == CLASS_SPACE;
}

/* Pieces are runs, told apart by their characters alone. */
static bool always_same(const scan_rules *r, const uint8_t *s, const scan_found *f, size_t at,
                        size_t len) {
  (void)r, (void)s, (void)f, (void)at, (void)len;
  return true;
}

/* Nothing but a blank comes before a run, and no run is cut short but that of white space, by what
** is behind it. */
static bool gpt2_same(const scan_rules *r, const uint8_t *s, const scan_found *f, size_t at,
                      size_t len) {
  return contraction_length(s + f->start, len - f->start, r->contraction) == 0 &&
         contraction_length(s + at, len - at, r->contraction) == 0;
}

static bool cl100k_same(const scan_rules *r, const uint8_t *s, const scan_found *f, size_t at,
                        size_t len) {
  size_t n, m;
  const unsigned class = class_at(s, at, len, &n);
  if (contraction_length(s + f->start, len - f->start, r->contraction) != 0) return false;
  if (in_set(class, CLASSES_L)) return true;
  if (class == CLASS_SPACE) return is_space_run(s, f, len);
  /* The last of a run of others joins the letters behind it. */
  return in_set(class, SET_OTHER) && !in_set(class_at(s, at + n, len, &m), CLASSES_L);
}

/* Class of the character that ends at s[at]; CLASS_END: that is not in the piece. */
static unsigned class_before(const uint8_t *s, const scan_found *f, size_t at) {
  size_t n;
  if (at <= f->start) return CLASS_END;
  do at--;
  while ((s[at] & 0xc0) == 0x80);
  return unicode_class(utf8_decode(s + at, &n));
}

/* A word of o200k, in the terms of word_end: what decides lies ahead of a place, or, where U*
** gave back, in the last B, which does too. Only behind the last lower-case letter a B, which
** W+ took, may begin a U* that goes on through a capital behind the piece. */
static bool same_end_of_word(const scan_rules *r, const uint8_t *s, const scan_found *f, size_t at,
                             size_t len) {
  enum { SUFFIX = 3 }; /* bytes of the longest contraction, whose letters begin words */
  size_t n;
  if (r->contraction != NO_CONTRACTION && f->stop - at <= SUFFIX) return false;
  if (!in_set(class_at(s, at, len, &n), SET_U & SET_W)) return true;
  return at < f->tail || class_at(s, f->stop, len, &n) != CLASS_UPPER ||
         class_before(s, f, f->tail) != CLASS_LOWER;
}

static bool o200k_same(const scan_rules *r, const uint8_t *s, const scan_found *f, size_t at,
                       size_t len) {
  size_t n, m;
  const unsigned class = class_at(s, at, len, &n);
  if (class == CLASS_NUMBER) return false;
  if (class == CLASS_SPACE) return is_space_run(s, f, len);
  if (in_set(class_at(s, f->start, len, &m), SET_LM) ||
      in_set(class_at(s, f->start + m, len, &m), SET_LM))
    return same_end_of_word(r, s, f, at, len);
  /* Others, of which marks, and the one before a mark or letter, begin words. */
  if (class == CLASS_MARK || in_set(class_at(s, at + n, len, &m), SET_LM)) return false;
  /* Slashes behind the last newline are others by themselves, like what is behind them. */
  return at < f->tail || !in_set(class_at(s, f->stop, len, &n), SET_OTHER);
}

static bool deepseek3_same(const scan_rules *r, const uint8_t *s, const scan_found *f, size_t at,
                           size_t len) {
  (void)r;
  size_t n, m;
  const uint32_t cp = utf8_decode(s + at, &n);
  const unsigned class = unicode_class(cp);
  const unsigned behind = deepseek3_class(s, f->stop, len, is_cjk(cp), &m);
  switch (class) {
  case CLASS_NUMBER: return false;
  case CLASS_PUNCT:
  case CLASS_SYMBOL: return cp >= 0x80 || at + 1 >= len || !is_ascii_letter(s[at + 1]);
  case CLASS_SPACE: return is_space_run(s, f, len);
  case CLASS_OTHER: return true;
  default: return !in_set(behind, SET_LM); /* A[A-Za-z]+ ended before letters of others */
  }
}

/* ---- The table ------------------------------------------------------------------------------ */

#define NO_BLOCKS                                                                                  \
  { FAMILY_NONE, 0, false }

static const scan_rules scan_table[] = {
    {"gpt2", gpt2_piece, gpt2_same, {FAMILY_GPT2, 0, false}, EXACT_CONTRACTION, 0, false},
    {"cl100k", cl100k_piece, cl100k_same, {FAMILY_CL100K, 3, false}, FOLDED_CONTRACTION, 3, false},
    {"o200k", o200k_piece, o200k_same, {FAMILY_O200K, 3, true}, FOLDED_CONTRACTION, 3, true},
    {"llama3", cl100k_piece, cl100k_same, {FAMILY_CL100K, 3, false}, FOLDED_CONTRACTION, 3, false},
    {"qwen2", cl100k_piece, cl100k_same, {FAMILY_CL100K, 1, false}, FOLDED_CONTRACTION, 1, false},
    {"tekken", o200k_piece, o200k_same, {FAMILY_O200K, 1, false}, NO_CONTRACTION, 1, true},
    {"deepseek3", deepseek3_piece, deepseek3_same, NO_BLOCKS, NO_CONTRACTION, 3, false},
    {"whitespace", whitespace_piece, always_same, NO_BLOCKS, NO_CONTRACTION, 0, false},
    {"words", words_piece, always_same, NO_BLOCKS, NO_CONTRACTION, 0, false},
};

#define N_SCANNERS ((int)(sizeof scan_table / sizeof *scan_table))

/* \p{N} or \p{N}+, and what lies between. */
static size_t digits_piece(const scan_rules *r, const uint8_t *s, size_t len, pace *p) {
  const size_t i = digits_length(s, len, r->max_digits, p);
  if (i != 0) return i;
  return run_end(s, i, len, SET_ALL & ~SET_N, p);
}

static const scan_rules regex_table[] = {
    {"\\p{N}", digits_piece, always_same, NO_BLOCKS, NO_CONTRACTION, 1, false},
    {"\\p{N}+", digits_piece, always_same, NO_BLOCKS, NO_CONTRACTION, UINT_MAX, false},
};

const scan_rules *scan_find_regex(const char *text, size_t len) {
  for (size_t i = 0; i < sizeof regex_table / sizeof *regex_table; i++)
    if (strlen(regex_table[i].name) == len && memcmp(regex_table[i].name, text, len) == 0)
      return &regex_table[i];
  return NULL;
}

const scan_rules *scan_find(const char *name, size_t len) {
  for (int i = 0; i < N_SCANNERS; i++) {
    const char *known = scan_table[i].name;
    if (strlen(known) == len && memcmp(known, name, len) == 0) return &scan_table[i];
  }
  return NULL;
}

const char *scan_name(int i) {
  return i >= 0 && i < N_SCANNERS ? scan_table[i].name : NULL;
}

const char *scan_first_name(const scan_rules *r) {
  const scan_rules *x = scan_table;
  while (x->piece != r->piece || x->contraction != r->contraction ||
         x->max_digits != r->max_digits || x->slash_ends_other != r->slash_ends_other)
    x++;
  return x->name;
}

size_t scan_piece(const scan_rules *r, const uint8_t *s, size_t len) {
  pace p = {.stop = NULL};
  return r->piece(r, s, len, &p);
}

static size_t pieces_by(blocks_list *list, const scan_rules *r, const uint8_t *s, size_t len,
                        size_t *ends, size_t max, pace *p) {
  size_t at = 0, n = 0;
  for (unsigned singles = 1; at < len && n + SCAN_LEAST <= max;) {
    const size_t found = list(&r->blocks, s, len, at, ends + n, max - n);
    if (found != 0) {
      n += found;
      at = ends[n - 1];
      singles = 1;
      if (n + SCAN_LEAST > max) break;
    }
    /* Where blocks decide nothing, they are tried less and less often. */
    for (unsigned k = 0; k < singles && at < len; k++) {
      at += r->piece(r, s + at, len - at, p);
      ends[n++] = at;
    }
    if (found == 0 && singles < MOST_SINGLES) singles *= 2;
  }
  return n;
}

size_t scan_pieces_by(blocks_list *list, const scan_rules *r, const uint8_t *s, size_t len,
                      size_t *ends, size_t max) {
  pace p = {.stop = NULL};
  return pieces_by(list, r, s, len, ends, max, &p);
}

size_t scan_pieces(const scan_rules *r, const uint8_t *s, size_t len, size_t *ends, size_t max,
                   pace *p) {
  return pieces_by(blocks_best(), r, s, len, ends, max, p);
}

/* Start of the run of characters of the set that ends at s[end]. */
static size_t run_start(const uint8_t *s, size_t end, unsigned set, pace *p) {
  while (end > 0 && !pace_stopped(p, 4)) {
    size_t at = end - 1, n;
    while (at > 0 && end - at < 4 && (s[at] & 0xc0) == 0x80) at--;
    if (utf8_length(s + at, end - at) != end - at) break;
    if (!in_set(unicode_class(utf8_decode(s + at, &n)), set)) break;
    end = at;
  }
  return end;
}

/* A scanner looks at the piece, at a character and a contraction behind it, and further only where
** it gave back: through the rest of a run of white space, or of U. */
size_t scan_settled(const uint8_t *s, size_t len, pace *p) {
  enum { BEHIND = 8 }; /* bytes: a character and a contraction */
  if (len <= BEHIND) return 0;
  size_t at = len - BEHIND;
  while (at > 0 && (s[at] & 0xc0) == 0x80) at--;
  const size_t space = run_start(s, at, SET_SPACE, p), word = run_start(s, at, SET_U, p);
  return p->stopped ? 0 : space < word ? space : word;
}

scan_found scan_long(const uint8_t *s, size_t start, size_t stop, pace *p) {
  size_t tail = stop;
  while (tail > start && s[tail - 1] == '/' && !pace_stopped(p, 1)) tail--;
  if (tail == stop) tail = start + run_start(s + start, stop - start, SET_U & SET_W, p);
  return (scan_found){start, stop, tail};
}

bool scan_same_end(const scan_rules *r, const uint8_t *s, const scan_found *f, size_t at,
                   size_t len) {
  return r->same_end(r, s, f, at, len);
}
