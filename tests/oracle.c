/* oracle.c - splitting and encoding by the definition, on top of the oracle's pattern and tables.
**
** Split: a maximal run of malformed UTF-8 is one piece. Each well-formed stretch between two of
** them is a text of its own, in which the pattern is tried at every character from the left;
** characters that no match takes, and those where the match is empty, form pieces of their
** own, as long as they are neighbours. Without a pattern the text is one piece.
**
** Merge: of all adjacent pairs in a piece that are mergeable, the one of lowest rank, and of
** those the leftmost, becomes one; until there is none.
**
** Special tokens: at every byte all of them are tried and the longest that fits is taken. What lies
** between them is a text of its own.
**
**     `a\xff\xfeb 1` with gpt2 is  a | ff fe | b | ␠1
*/
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *oracle_realloc(void *p, size_t n) {
  void *q = realloc(p, n ? n : 1);
  if (!q) {
    fprintf(stderr, "oracle: out of memory\n");
    exit(2);
  }
  return q;
}

uint8_t *oracle_read_file(const char *path, size_t *len) {
  FILE *file = fopen(path, "rb");
  uint8_t *bytes = NULL;
  *len = 0;
  if (file) {
    size_t cap = 0;
    do {
      cap = cap * 2 + 65536;
      bytes = oracle_realloc(bytes, cap + 1);
      *len += fread(bytes + *len, 1, cap - *len, file);
    } while (*len == cap);
    bytes[*len] = 0;
  }
  if (!file || ferror(file)) {
    fprintf(stderr, "oracle: cannot read %s\n", path);
    free(bytes);
    bytes = NULL;
  }
  if (file) fclose(file);
  return bytes;
}

void oracle_list_add(oracle_list *list, uint32_t value) {
  if (list->n == list->cap) {
    list->cap = list->cap ? list->cap * 2 : 64;
    list->at = oracle_realloc(list->at, list->cap * sizeof *list->at);
  }
  list->at[list->n++] = value;
}

void oracle_list_clear(oracle_list *list) {
  free(list->at);
  *list = (oracle_list){0};
}

/* ---- Published patterns and special tokens --------------------------------------------------- */

/* gpt2, cl100k, o200k: pat_str of the tiktoken package, before the possessive rewrites. llama3,
** qwen2, tekken, deepseek3: the Split regexes in the tokenizer.json of Llama 3, Qwen 2.5, Mistral
** Nemo and DeepSeek V3. */
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define NOT_WORD "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPERS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWERS "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BLANKS "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const struct {
  const char *name, *pattern;
} patterns[] = {
  {"none", ""},
  {"gpt2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
  {"cl100k", CONTRACTION "|" NOT_WORD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS},
  {"o200k", NOT_WORD UPPERS "*" LOWERS "+" CONTRACTION "?|" NOT_WORD UPPERS "+" LOWERS
            "*" CONTRACTION "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS},
  {"llama3", CONTRACTION "|" NOT_WORD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS},
  {"qwen2", CONTRACTION "|" NOT_WORD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS},
  {"tekken", NOT_WORD UPPERS "*" LOWERS "+|" NOT_WORD UPPERS "+" LOWERS
             "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS},
  {"deepseek3", "\\p{N}{1,3}\n"
                "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+\n"
                "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
                "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" BLANKS},
  {"whitespace", "\\s+|\\S+"},
  {"words", "[\\p{L}\\p{M}\\p{N}_]+|\\s+|[^\\s\\p{L}\\p{M}\\p{N}_]+"},
};

const char *oracle_pattern(const char *name) {
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    if (strcmp(patterns[i].name, name) == 0) return patterns[i].pattern;
  }
  return NULL;
}

#define SPECIAL(text, id) {text, sizeof text - 1, id}
static const oracle_special p50k_specials[] = {
  SPECIAL("<|endoftext|>", 50256), SPECIAL("<|fim_prefix|>", 50281),
  SPECIAL("<|fim_middle|>", 50282), SPECIAL("<|fim_suffix|>", 50283)};
static const oracle_special cl100k_specials[] = {
  SPECIAL("<|endoftext|>", 100257), SPECIAL("<|fim_prefix|>", 100258),
  SPECIAL("<|fim_middle|>", 100259), SPECIAL("<|fim_suffix|>", 100260),
  SPECIAL("<|endofprompt|>", 100276)};
static const oracle_special o200k_specials[] = {
  SPECIAL("<|endoftext|>", 199999), SPECIAL("<|endofprompt|>", 200018)};
static const oracle_special harmony_specials[] = {
  SPECIAL("<|startoftext|>", 199998), SPECIAL("<|endoftext|>", 199999),
  SPECIAL("<|return|>", 200002), SPECIAL("<|constrain|>", 200003), SPECIAL("<|channel|>", 200005),
  SPECIAL("<|start|>", 200006), SPECIAL("<|end|>", 200007), SPECIAL("<|message|>", 200008),
  SPECIAL("<|call|>", 200012), SPECIAL("<|endofprompt|>", 200018)};

/* The named ones, and <|reserved_N|> for N = 200000 .. 201087 where no name has the id but
** endofprompt, which shares 200018. */
static const oracle_special *harmony(size_t *n) {
  enum { FIRST = 200000, LAST = 201087 };
  enum { N_NAMED = sizeof harmony_specials / sizeof(oracle_special) };
  static oracle_special all[N_NAMED + LAST - FIRST + 1];
  static char names[LAST - FIRST + 1][24];
  static size_t n_all;
  if (n_all == 0) {
    memcpy(all, harmony_specials, sizeof harmony_specials);
    n_all = N_NAMED;
    for (uint32_t id = FIRST; id <= LAST; id++) {
      bool named = false;
      for (size_t i = 0; i < N_NAMED; i++) named |= all[i].id == id && id != 200018;
      if (named) continue;
      const int len = snprintf(names[id - FIRST], sizeof names[0], "<|reserved_%u|>", id);
      all[n_all++] = (oracle_special){names[id - FIRST], (size_t)len, id};
    }
  }
  *n = n_all;
  return all;
}

const oracle_special *oracle_specials(const char *encoding, size_t *n) {
  if (strcmp(encoding, "o200k_harmony") == 0) return harmony(n);
  if (strcmp(encoding, "o200k_base") == 0) return *n = 2, o200k_specials;
  if (strcmp(encoding, "cl100k_base") == 0) return *n = 5, cl100k_specials;
  if (strcmp(encoding, "p50k_edit") == 0) return *n = 4, p50k_specials;
  *n = 1;
  if (strcmp(encoding, "gpt2") == 0 || strcmp(encoding, "r50k_base") == 0 ||
      strcmp(encoding, "p50k_base") == 0) {
    return p50k_specials;
  }
  *n = 0;
  return NULL;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

size_t oracle_utf8(const uint8_t *text, size_t len, uint32_t *cp) {
  static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
  *cp = 0;
  if (len == 0) return 0;
  const uint8_t b = text[0];
  const size_t n = b < 0x80 ? 1 : (b & 0xe0) == 0xc0 ? 2 : (b & 0xf0) == 0xe0 ? 3
                   : (b & 0xf8) == 0xf0 ? 4 : 0;
  if (n == 0 || n > len) return 0;
  uint32_t value = n == 1 ? b : b & (0x7fU >> n);
  for (size_t i = 1; i < n; i++) {
    if ((text[i] & 0xc0) != 0x80) return 0;
    value = value << 6 | (text[i] & 0x3f);
  }
  if (value < smallest[n] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
  *cp = value;
  return n;
}

/* Scratch that calls of one thread share; it only ever grows. */
typedef struct scratch {
  uint32_t *cps;
  size_t *offsets; /* of cps in the stretch, and its end */
  size_t cap;
} scratch;

static void split_stretch(oracle_regex *re, const uint32_t *cps, const size_t *offsets, size_t n,
                          oracle_list *lengths);

/* Characters from .. to - 1 are a piece of re's, and a text for the next step if there is one. */
static void end_piece(const oracle_regex *re, const uint32_t *cps, const size_t *offsets,
                      size_t from, size_t to, oracle_list *lengths) {
  oracle_regex *next = oracle_regex_next(re);
  if (from == to) return;
  if (next) split_stretch(next, cps + from, offsets + from, to - from, lengths);
  else oracle_list_add(lengths, (uint32_t)(offsets[to] - offsets[from]));
}

static void split_stretch(oracle_regex *re, const uint32_t *cps, const size_t *offsets, size_t n,
                          oracle_list *lengths) {
  size_t gap = 0; /* first character that no piece has yet */
  for (size_t at = 0; at < n;) {
    const size_t end = oracle_regex_match(re, cps, n, at);
    if (end == SIZE_MAX || end == at) {
      at++;
      continue;
    }
    end_piece(re, cps, offsets, gap, at, lengths);
    end_piece(re, cps, offsets, at, end, lengths);
    at = gap = end;
  }
  end_piece(re, cps, offsets, gap, n, lengths);
}

void oracle_split(oracle_regex *re, const void *text, size_t len, oracle_list *lengths) {
  static scratch s;
  if (len == 0) return;
  if (!re) {
    oracle_list_add(lengths, (uint32_t)len);
    return;
  }
  if (s.cap <= len) {
    s.cap = len + 1;
    s.cps = oracle_realloc(s.cps, s.cap * sizeof *s.cps);
    s.offsets = oracle_realloc(s.offsets, s.cap * sizeof *s.offsets);
  }
  const uint8_t *bytes = text;
  for (size_t at = 0; at < len;) {
    size_t n = 0;
    for (size_t step; (step = oracle_utf8(bytes + at, len - at, &s.cps[n])) > 0; at += step) {
      s.offsets[n++] = at;
    }
    s.offsets[n] = at;
    split_stretch(re, s.cps, s.offsets, n, lengths);
    const size_t malformed = at;
    uint32_t cp;
    while (at < len && oracle_utf8(bytes + at, len - at, &cp) == 0) at++;
    if (at > malformed) oracle_list_add(lengths, (uint32_t)(at - malformed));
  }
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* One part of a piece, and what it makes with the next. */
typedef struct parts {
  size_t *start;         /* n + 1 of them */
  uint32_t *id;          /* ORACLE_NONE: a byte that is no token */
  uint32_t *rank, *made; /* of the pair (i, i + 1); rank ORACLE_NONE: no merge */
  size_t n, cap;
} parts;

static void look_up_pair(const oracle_model *m, const uint8_t *piece, parts *p, size_t i) {
  p->rank[i] = p->made[i] = ORACLE_NONE;
  if (i + 1 >= p->n) return;
  if (m->by_rank) {
    const size_t from = p->start[i];
    p->rank[i] = p->made[i] = oracle_vocab_find(m->vocab, piece + from, p->start[i + 2] - from);
  } else {
    oracle_vocab_find_pair(m->vocab, p->id[i], p->id[i + 1], &p->rank[i], &p->made[i]);
  }
}

static void merge_at(const oracle_model *m, const uint8_t *piece, parts *p, size_t i) {
  const size_t tail = p->n - i - 2;
  p->id[i] = p->made[i];
  memmove(p->start + i + 1, p->start + i + 2, (tail + 1) * sizeof *p->start);
  memmove(p->id + i + 1, p->id + i + 2, tail * sizeof *p->id);
  memmove(p->rank + i + 1, p->rank + i + 2, tail * sizeof *p->rank);
  memmove(p->made + i + 1, p->made + i + 2, tail * sizeof *p->made);
  p->n--;
  look_up_pair(m, piece, p, i);
  if (i > 0) look_up_pair(m, piece, p, i - 1);
}

static void parts_reserve(parts *p, size_t n) {
  if (p->cap >= n) return;
  p->cap = n;
  p->start = oracle_realloc(p->start, (n + 1) * sizeof *p->start);
  p->id = oracle_realloc(p->id, n * sizeof *p->id);
  p->rank = oracle_realloc(p->rank, n * sizeof *p->rank);
  p->made = oracle_realloc(p->made, n * sizeof *p->made);
}

/* Appends the ids of one piece; false: the byte at *failed_at is left and is no token. */
static bool merge_piece(const oracle_model *m, const uint8_t *piece, size_t len, oracle_list *ids,
                        size_t *failed_at) {
  static parts p;
  const uint32_t whole = m->whole ? oracle_vocab_find(m->vocab, piece, len) : ORACLE_NONE;
  if (whole != ORACLE_NONE) {
    oracle_list_add(ids, whole);
    return true;
  }
  parts_reserve(&p, len);
  p.n = len;
  for (size_t i = 0; i < len; i++) {
    p.start[i] = i;
    p.id[i] = oracle_vocab_find(m->vocab, piece + i, 1);
  }
  p.start[len] = len;
  for (size_t i = 0; i < len; i++) look_up_pair(m, piece, &p, i);
  for (;;) {
    size_t best = 0;
    for (size_t i = 1; i < p.n; i++) {
      if (p.rank[i] < p.rank[best]) best = i;
    }
    if (p.rank[best] == ORACLE_NONE) break;
    merge_at(m, piece, &p, best);
  }
  for (size_t i = 0; i < p.n; i++) {
    if (p.id[i] == ORACLE_NONE) {
      *failed_at = p.start[i];
      return false;
    }
    oracle_list_add(ids, p.id[i]);
  }
  return true;
}

/* ---- Encoding -------------------------------------------------------------------------------- */

static oracle_piece *add_piece(oracle_result *out, size_t start, size_t stop) {
  if (out->n_pieces == out->cap_pieces) {
    out->cap_pieces = out->cap_pieces ? out->cap_pieces * 2 : 64;
    out->pieces = oracle_realloc(out->pieces, out->cap_pieces * sizeof *out->pieces);
  }
  oracle_piece *piece = &out->pieces[out->n_pieces++];
  *piece = (oracle_piece){.start = start, .stop = stop, .first = out->ids.n};
  return piece;
}

/* The text between two special tokens, which begins at `start` of the whole. */
static void encode_stretch(const oracle_model *m, const uint8_t *text, size_t start, size_t stop,
                           oracle_result *out) {
  static oracle_list lengths;
  lengths.n = 0;
  oracle_split(m->regex, text + start, stop - start, &lengths);
  for (size_t i = 0; i < lengths.n && !out->failed; i++) {
    const size_t len = lengths.at[i];
    size_t failed_at = 0;
    oracle_piece *piece = add_piece(out, start, start + len);
    if (!merge_piece(m, text + start, len, &out->ids, &failed_at)) {
      out->failed = true;
      out->failed_at = start + failed_at;
    }
    piece->n = out->ids.n - piece->first;
    start += len;
  }
}

void oracle_encode(const oracle_model *m, const void *text, size_t len,
                   const oracle_special *specials, size_t n_special, oracle_result *out) {
  const uint8_t *bytes = text;
  size_t start = 0; /* of the stretch not yet encoded */
  out->n_pieces = out->ids.n = out->failed_at = 0;
  out->failed = false;
  for (size_t at = 0; at < len && n_special > 0 && !out->failed;) {
    const oracle_special *longest = NULL;
    for (size_t i = 0; i < n_special; i++) {
      const oracle_special *s = &specials[i];
      if (s->text[0] == (char)bytes[at] && s->len <= len - at &&
          (!longest || s->len > longest->len) &&
          memcmp(s->text, bytes + at, s->len) == 0) {
        longest = s;
      }
    }
    if (!longest) {
      at++;
      continue;
    }
    encode_stretch(m, bytes, start, at, out);
    if (out->failed) return;
    oracle_piece *piece = add_piece(out, at, at + longest->len);
    piece->special = true;
    piece->n = 1;
    oracle_list_add(&out->ids, longest->id);
    start = at += longest->len;
  }
  if (!out->failed) encode_stretch(m, bytes, start, len, out);
}

void oracle_result_clear(oracle_result *out) {
  free(out->pieces);
  oracle_list_clear(&out->ids);
  *out = (oracle_result){0};
}
