/* prop_subject.c - see prop_subject.h.
**
** A description is fed to both sides step by step: what adds a token adds it to the builder and to
** the oracle's vocabulary. Merge lists are told to the oracle as pairs; rank files only as tokens,
** because the oracle knows the definition by ranks, while the builder gets every split of every
** token: that the two agree is one of the things to find out.
**
** Regexes run in PCRE2, whose Unicode may be older than the oracle's. The code points on which a
** class differs are found by asking, once, and kept out of the texts of regex subjects.
*/
#include "prop_subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The world ------------------------------------------------------------------------------- */

static void *resize(void *ctx, void *p, size_t n) {
  (void)ctx;
  if (n > 0) return realloc(p, n);
  free(p);
  return NULL;
}

enum { N_POINTS = 0x110000 };
static uint8_t avoided[N_POINTS / 8]; /* code points whose class PCRE2 sees otherwise */

static bool is_avoided(uint32_t cp) {
  return avoided[cp / 8] >> (cp % 8) & 1;
}

/* All code points, each followed by a byte 1, which no class here has: a piece ends between the two
** exactly if the regex, one character of the class, has matched there. */
static bool compare_class(const prop_world *w, bpe_coder *coder, const uint8_t *text, size_t len,
                          const char *class) {
  bpe_walk *walk = NULL;
  bpe_pattern *pattern = NULL;
  bpe_piece piece;
  char regex[32]; /* in a group, because a bare class may be the name of a scanner to the core */
  snprintf(regex, sizeof regex, "(?:%s)", class);
  bool ok = bpe_pattern_new(&w->alloc, regex, strlen(regex), true, NULL, &pattern) == BPE_OK &&
            bpe_walk_new(coder, NULL, &walk) == BPE_OK;
  const bpe_walk_options options = {.pattern = pattern, .split_only = true};
  ok = ok && bpe_walk_start(walk, text, len, &options, NULL) == BPE_OK;
  size_t stop = 0;
  for (size_t at = 0, step; ok && at < len; at += step + 1) {
    uint32_t cp;
    step = oracle_utf8(text + at, len - at, &cp);
    while (ok && stop < at + step) {
      ok = bpe_walk_next(walk, &piece, NULL) == BPE_OK;
      stop = piece.stop;
    }
    const bool matched = stop == at + step;
    if (matched != oracle_classes_has(w->classes, class, cp)) {
      avoided[cp / 8] |= (uint8_t)(1U << (cp % 8));
    }
  }
  bpe_walk_free(walk);
  bpe_pattern_free(pattern);
  return ok;
}

/* A tokenizer of bytes and nothing else: an added token would cut the text, too. */
static bpe_model *bytes_only(const prop_world *w) {
  bpe_model *m = NULL;
  bpe_builder *b = bpe_builder_new(&w->alloc);
  for (uint32_t i = 0; i < 256; i++) {
    const uint8_t byte = (uint8_t)i;
    bpe_builder_token(b, i, BPE_TOKEN, &byte, 1);
  }
  bpe_builder_pattern(b, "none", 4, false);
  return bpe_builder_finish(b, NULL, &m) == BPE_OK ? m : NULL;
}

static bool compare_classes(const prop_world *w) {
  static const char *const classes[] = {
    "\\p{L}", "\\p{N}", "\\p{Lu}", "\\p{Lt}", "\\p{Lm}", "\\p{Lo}", "\\p{Ll}", "\\p{M}", "\\p{P}",
    "\\p{S}", "\\s", "\\S"};
  uint8_t *text = oracle_realloc(NULL, (size_t)N_POINTS * 5);
  size_t len = 0;
  for (uint32_t cp = 2; cp < N_POINTS; cp++) {
    if (cp >= 0xd800 && cp < 0xe000) continue;
    const uint32_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    text[len++] = (uint8_t)(n == 1 ? cp : (0xf00U >> n & 0xff) | cp >> (6 * (n - 1)));
    for (uint32_t i = n - 1; i-- > 0;) text[len++] = (uint8_t)(0x80 | (cp >> (6 * i) & 0x3f));
    text[len++] = 1;
  }
  bpe_model *model = bytes_only(w);
  bpe_coder *coder = NULL;
  bool ok = model && bpe_coder_new(model, 0, NULL, &coder) == BPE_OK;
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
    /* Byte 1 is in \S; \s has told all about it. */
    if (classes[i][1] != 'S') ok = ok && compare_class(w, coder, text, len, classes[i]);
  }
  bpe_coder_free(coder);
  bpe_model_free(model);
  free(text);
  /* A newer Unicode changes nothing here; if something differs, the regex is called wrongly. */
  for (size_t i = 0; i < 0x250 / 8; i++) ok = ok && avoided[i] == 0;
  return ok;
}

bool prop_world_avoid(const prop_world *w, bool (**avoid)(uint32_t cp)) {
  static bool compared;
  if (!compared && !compare_classes(w)) return false;
  compared = true;
  *avoid = is_avoided;
  return true;
}

void prop_world_close(prop_world *w) {
  oracle_classes_free(w->classes);
  for (size_t i = 0; i < sizeof w->ranks / sizeof *w->ranks; i++) oracle_vocab_free(w->ranks[i]);
  for (size_t i = 0; i < w->n_patterns; i++) oracle_regex_free(w->regex[i]);
  for (size_t i = 0; i < w->n_others; i++) bpe_pattern_free(w->other[i]);
}

oracle_regex *prop_world_regex(prop_world *w, const char *pattern) {
  if (w->sabotage) pattern = oracle_pattern("whitespace");
  if (!*pattern) return NULL;
  for (size_t i = 0; i < w->n_patterns; i++) {
    if (strcmp(w->pattern[i], pattern) == 0) return w->regex[i];
  }
  oracle_regex *re = oracle_regex_new(w->classes, pattern);
  if (!re || w->n_patterns == PROP_PATTERNS) exit(2); /* ours to mend, not the core's */
  w->pattern[w->n_patterns] = pattern;
  return w->regex[w->n_patterns++] = re;
}

static bool add_other(prop_world *w, const char *name, bool is_regex) {
  const size_t n = w->n_others;
  const char *published = is_regex ? name : oracle_pattern(name);
  if (!published || n == PROP_OTHERS) {
    printf("FAILED the oracle does not know the pattern %s\n", name);
    return false;
  }
  w->other_name[n] = name;
  w->other_regex[n] = prop_world_regex(w, published);
  bpe_error e = {0};
  if (bpe_pattern_new(&w->alloc, name, strlen(name), is_regex, &e, &w->other[n]) != BPE_OK) {
    printf("FAILED pattern %s: %s\n", name, e.text);
    return false;
  }
  w->n_others++;
  return true;
}

bool prop_world_open(prop_world *w, const char *encodings, const char *classes, bool sabotage) {
  /* Without classes: those are not the same in every PCRE2. */
  static const char *const others[] = {"a*", "(?:ab)+|b{2,3}", "[a-zA-Z]+| ?[0-9]{1,2}+"};
  *w = (prop_world){.alloc = {.resize = resize}, .encodings = encodings, .sabotage = sabotage};
  w->classes = oracle_classes_read(classes);
  bool ok = w->classes != NULL;
  for (int i = 0; ok && bpe_pattern_name(i); i++) ok = add_other(w, bpe_pattern_name(i), false);
  for (size_t i = 0; ok && i < sizeof others / sizeof *others; i++) {
    ok = add_other(w, others[i], true);
  }
  return ok;
}

/* ---- Any subject ----------------------------------------------------------------------------- */

static bool refused(const prop_subject *s, const char *what, const bpe_error *e) {
  printf("FAILED %s: %s: status %d: %s\n", s->name, what, (int)e->status, e->text);
  return false;
}

bool prop_subject_forget(prop_subject *s) {
  bpe_error e = {0};
  bpe_coder_free(s->coder);
  bpe_coder_free(s->tiny);
  s->tiny = NULL;
  if (bpe_coder_new(s->model, 0, &e, &s->coder) == BPE_OK &&
      bpe_coder_new(s->model, 4, &e, &s->tiny) == BPE_OK) {
    return true;
  }
  return refused(s, "coder", &e);
}

/* The parts that follow from the model and the description. */
static bool complete(prop_subject *s, const prop_world *w) {
  bpe_error e = {0};
  s->world = w;
  s->source.specials = s->found;
  s->source.n_specials = s->n_found;
  s->source.vocab = s->oracle.vocab;
  if (bpe_finder_new(s->model, NULL, 0, &e, &s->all) != BPE_OK) return refused(s, "finder", &e);
  return prop_subject_forget(s);
}

void prop_subject_clear(prop_subject *s) {
  bpe_finder_free(s->all);
  bpe_coder_free(s->coder);
  bpe_coder_free(s->tiny);
  bpe_model_free(s->model);
  if (s->is_random) oracle_vocab_free(s->oracle.vocab);
  *s = (prop_subject){0};
}

/* ---- Built-in encodings ---------------------------------------------------------------------- */

static const struct {
  const char *name, *pattern;
  int ranks;
} builtins[] = {{"gpt2", "gpt2", 0},          {"r50k_base", "gpt2", 0},
                {"p50k_base", "gpt2", 1},     {"p50k_edit", "gpt2", 1},
                {"cl100k_base", "cl100k", 2}, {"o200k_base", "o200k", 3},
                {"o200k_harmony", "o200k", 3}};
static const char *const rank_files[] = {"r50k_base", "p50k_base", "cl100k_base", "o200k_base"};

bool prop_subject_builtin(prop_subject *s, prop_world *w, const char *name) {
  *s = (prop_subject){0};
  snprintf(s->name, sizeof s->name, "%s", name);
  size_t i = 0;
  while (i < sizeof builtins / sizeof *builtins && strcmp(builtins[i].name, name) != 0) i++;
  bpe_error e = {0};
  const int which = bpe_builtin_find(name, strlen(name));
  if (i == sizeof builtins / sizeof *builtins || which < 0) return refused(s, "no such name", &e);
  oracle_vocab **ranks = &w->ranks[builtins[i].ranks];
  if (!*ranks) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.merges", w->encodings, rank_files[builtins[i].ranks]);
    *ranks = oracle_vocab_read_merges(path);
    if (!*ranks) return false;
  }
  s->oracle = (oracle_model){.regex = prop_world_regex(w, oracle_pattern(builtins[i].pattern)),
                             .vocab = *ranks, .by_rank = true, .whole = true};
  s->found = oracle_specials(name, &s->n_found);
  if (bpe_builtin_load(&w->alloc, which, &e, &s->model) != BPE_OK) return refused(s, "load", &e);
  return complete(s, w);
}

/* ---- Random ones: tokens --------------------------------------------------------------------- */

static const char *const alphabets[] = {
  "ab", "abc", "aab ", "ab1 \n", "abcdefgh", "\xc3\xa9\xa8 ", "a\xff\xfe", "0123456789", "'stmdlr ",
  "AaBb' ", "\xe4\xb8\xad\xaa", "\r\n a.", "xyz/!\n"};

enum { MAX_POOL = 512, MAX_TOKEN = 300 };

/* One random tokenizer under construction. */
typedef struct maker {
  prop_rng *rng;
  prop_subject *s;
  bpe_builder *b;
  uint32_t pool[MAX_POOL]; /* ids that merges and tokens are made of */
  uint32_t n_pool;
  uint32_t next_id;
} maker;

static void make_token(maker *m, uint32_t id, const void *bytes, size_t len) {
  bpe_builder_token(m->b, id, BPE_TOKEN, bytes, len);
  oracle_vocab_add(m->s->oracle.vocab, id, bytes, len);
  if (id >= m->next_id) m->next_id = id + 1;
}

static void shuffle(prop_rng *rng, uint32_t *at, uint32_t n) {
  for (uint32_t i = n; i > 1; i--) {
    const uint32_t k = prop_below(rng, i), t = at[k];
    at[k] = at[i - 1];
    at[i - 1] = t;
  }
}

static bool in_alphabet(const prop_subject *s, uint32_t byte) {
  return memchr(s->own_alphabet, (int)byte, s->source.alphabet_len) != NULL;
}

/* Single bytes as tokens: all 256, or (lacking) those of the alphabet, half of the time without its
** first. */
static void make_bytes(maker *m, bool lacking) {
  uint32_t order[257], n = 0;
  const uint32_t left_out = prop_one_in(m->rng, 2) ? (uint8_t)m->s->own_alphabet[0] : 256;
  for (uint32_t b = 0; b < 256; b++) {
    if (!lacking || (in_alphabet(m->s, b) && b != left_out)) order[n++] = b;
  }
  if (prop_one_in(m->rng, 2)) shuffle(m->rng, order, n);
  static const uint32_t firsts[] = {0, 0, 1, 65400, 300000};
  uint32_t id = firsts[prop_below(m->rng, sizeof firsts / sizeof *firsts)];
  const uint32_t step = 1 + prop_below(m->rng, 2);
  /* A byte twice: the lower id counts. */
  if (prop_one_in(m->rng, 5)) order[n++] = (uint8_t)m->s->own_alphabet[1];
  for (uint32_t i = 0; i < n; i++, id += step) {
    const uint8_t byte = (uint8_t)order[i];
    make_token(m, id, &byte, 1);
    if (in_alphabet(m->s, byte)) m->pool[m->n_pool++] = id;
  }
}

/* Two members of the pool and their bytes joined; 0: too long. */
static size_t join_two(maker *m, uint32_t *left, uint32_t *right, uint8_t joined[MAX_TOKEN]) {
  size_t l, r;
  *left = m->pool[prop_below(m->rng, m->n_pool)];
  *right = m->pool[prop_below(m->rng, m->n_pool)];
  const uint8_t *a = oracle_vocab_bytes(m->s->oracle.vocab, *left, &l);
  const uint8_t *b = oracle_vocab_bytes(m->s->oracle.vocab, *right, &r);
  if (l + r > MAX_TOKEN) return 0;
  memcpy(joined, a, l);
  memcpy(joined + l, b, r);
  return l + r;
}

/* ---- Random ones: merge lists ---------------------------------------------------------------- */

typedef struct merge {
  uint32_t left, right, id;
} merge;

static bool has_pair(const merge *list, uint32_t n, uint32_t left, uint32_t right) {
  for (uint32_t i = 0; i < n; i++) {
    if (list[i].left == left && list[i].right == right) return true;
  }
  return false;
}

/* Merges and the tokens they make. again: a pair whose bytes are a token already may lead to that
** token; otherwise it makes another one of the same bytes. */
static uint32_t make_merges(maker *m, merge *list, uint32_t n_wanted, bool grow) {
  uint32_t n = 0;
  const bool again = !grow && prop_one_in(m->rng, 2), sparse = prop_one_in(m->rng, 4);
  for (uint32_t tries = 0; n < n_wanted && tries < 4 * n_wanted; tries++) {
    uint8_t joined[MAX_TOKEN];
    uint32_t left, right;
    const size_t len = join_two(m, &left, &right, joined);
    if (len == 0 || has_pair(list, n, left, right)) continue;
    uint32_t id = oracle_vocab_find(m->s->oracle.vocab, joined, len);
    if (id == ORACLE_NONE || !again) {
      id = m->next_id + (sparse ? prop_below(m->rng, 5) : 0);
      if (grow) {
        bpe_builder_grow(m->b, left, right, id);
        oracle_vocab_add(m->s->oracle.vocab, id, joined, len);
        m->next_id = id + 1;
      } else {
        make_token(m, id, joined, len);
      }
      if (m->n_pool < MAX_POOL) m->pool[m->n_pool++] = id;
    }
    list[n++] = (merge){left, right, id};
  }
  return n;
}

/* Pairs of neighbours in the alphabet, later ones first: in `abcde` de merges, so not cd, so bc;
** but in `abcd` cd, so not bc, so ab. */
static uint32_t make_chain(maker *m, merge *list) {
  const uint32_t n = (uint32_t)m->s->source.alphabet_len - 1;
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t *pair = (const uint8_t *)m->s->own_alphabet + i;
    const oracle_vocab *v = m->s->oracle.vocab;
    const uint32_t left = oracle_vocab_find(v, pair, 1), right = oracle_vocab_find(v, pair + 1, 1);
    list[n - 1 - i] = (merge){left, right, m->next_id};
    make_token(m, m->next_id, pair, 2);
  }
  return n;
}

static void make_merge_list(maker *m, bool chain) {
  merge list[MAX_POOL];
  uint32_t rank[MAX_POOL];
  const uint32_t n_wanted = 1 + prop_below(m->rng, prop_one_in(m->rng, 8) ? MAX_POOL - 16 : 60);
  make_bytes(m, !chain && prop_one_in(m->rng, 3));
  /* grow wants tokens in order of id, and only make_bytes and it give them so. */
  const bool grow = !chain && prop_one_in(m->rng, 3);
  const uint32_t n = chain ? make_chain(m, list) : make_merges(m, list, n_wanted, grow);
  const uint32_t step = grow ? 1 : 1 + prop_below(m->rng, 3);
  for (uint32_t i = 0; i < n; i++) rank[i] = i * step;
  if (!grow && !chain && prop_one_in(m->rng, 2)) shuffle(m->rng, rank, n);
  for (uint32_t i = 0; i < n; i++) {
    const merge *x = &list[i];
    if (!grow) bpe_builder_merge(m->b, rank[i], x->left, x->right, x->id, i % 7);
    oracle_vocab_merge(m->s->oracle.vocab, rank[i], x->left, x->right, x->id);
  }
  if (prop_one_in(m->rng, 3)) {
    m->s->oracle.whole = true;
    bpe_builder_whole(m->b);
  }
}

/* ---- Random ones: rank files ----------------------------------------------------------------- */

/* Every split of the token into two tokens is a merge of the token's rank. */
static void make_splits(maker *m, uint32_t id) {
  const oracle_vocab *v = m->s->oracle.vocab;
  size_t len;
  const uint8_t *bytes = oracle_vocab_bytes(v, id, &len);
  for (size_t at = 1; at < len; at++) {
    const uint32_t left = oracle_vocab_find(v, bytes, at);
    const uint32_t right = oracle_vocab_find(v, bytes + at, len - at);
    if (left != ORACLE_NONE && right != ORACLE_NONE) {
      bpe_builder_merge(m->b, id, left, right, id, 0);
    }
  }
}

static void make_rank_file(maker *m) {
  enum { MAX_TOKENS = 256 + 300 };
  uint32_t ranks[MAX_TOKENS];
  const uint32_t n_more = 1 + prop_below(m->rng, prop_one_in(m->rng, 6) ? 300 : 40);
  for (uint32_t i = 0; i < 256 + n_more; i++) ranks[i] = i;
  if (prop_one_in(m->rng, 3)) shuffle(m->rng, ranks, 256 + n_more);
  else shuffle(m->rng, ranks + 256, n_more);
  for (uint32_t b = 0; b < 256; b++) {
    const uint8_t byte = (uint8_t)b;
    make_token(m, ranks[b], &byte, 1);
    if (in_alphabet(m->s, b)) m->pool[m->n_pool++] = ranks[b];
  }
  for (uint32_t i = 256; i < 256 + n_more; i++) {
    uint8_t bytes[MAX_TOKEN];
    uint32_t left, right;
    size_t len = join_two(m, &left, &right, bytes);
    if (len == 0 || prop_one_in(m->rng, 3)) {
      len = 2 + prop_below(m->rng, 5); /* a token that its parts may never lead to */
      for (size_t k = 0; k < len; k++) {
        bytes[k] = (uint8_t)m->s->own_alphabet[prop_below(
          m->rng, (uint32_t)m->s->source.alphabet_len)];
      }
    }
    if (oracle_vocab_find(m->s->oracle.vocab, bytes, len) != ORACLE_NONE) continue;
    make_token(m, ranks[i], bytes, len);
    if (m->n_pool < MAX_POOL) m->pool[m->n_pool++] = ranks[i];
  }
  for (uint32_t id = 0; id < m->next_id; id++) make_splits(m, id);
  m->s->oracle.by_rank = m->s->oracle.whole = true;
  bpe_builder_whole(m->b);
}

/* ---- Random ones: the rest ------------------------------------------------------------------- */

static void make_name(maker *m, char *name, size_t *len) {
  prop_subject *s = m->s;
  if (s->n_found > 0 && prop_one_in(m->rng, 2)) { /* begins like one that is there */
    const oracle_special *other = &s->own_found[prop_below(m->rng, (uint32_t)s->n_found)];
    *len = other->len > 8 ? 8 : other->len;
    memcpy(name, other->text, *len);
  } else if (prop_one_in(m->rng, 3)) {
    memcpy(name, "<|a|>", *len = 5);
  }
  for (uint32_t i = 1 + prop_below(m->rng, 4); i > 0; i--) {
    name[(*len)++] = s->own_alphabet[prop_below(m->rng, (uint32_t)s->source.alphabet_len)];
  }
}

/* Added tokens first, as prop_subject wants them. */
static void make_specials(maker *m) {
  prop_subject *s = m->s;
  const uint32_t n = prop_below(m->rng, 5);
  const uint32_t n_added = prop_one_in(m->rng, 3) ? prop_below(m->rng, n + 1) : 0;
  for (uint32_t i = 0; i < n; i++) {
    oracle_special *t = &s->own_found[s->n_found];
    char *name = s->own_names[s->n_found];
    size_t len = 0;
    make_name(m, name, &len);
    bool known = false;
    for (size_t k = 0; k < s->n_found; k++) {
      known |= s->own_found[k].len == len && memcmp(s->own_found[k].text, name, len) == 0;
    }
    if (known) continue;
    const bool shares = s->n_found > 0 && prop_one_in(m->rng, 10);
    const uint32_t id = shares ? t[-1].id : m->next_id++ + prop_below(m->rng, 2);
    if (id >= m->next_id) m->next_id = id + 1;
    *t = (oracle_special){name, len, id};
    bpe_builder_token(m->b, id, i < n_added ? BPE_ADDED : BPE_SPECIAL, name, len);
    s->n_found++;
    if (i < n_added) s->n_added = s->n_found;
  }
  s->found = s->own_found;
  if (s->n_found == 0 || !prop_one_in(m->rng, 3)) return;
  while (s->n_bos < prop_below(m->rng, PROP_WRAP + 1)) {
    s->bos[s->n_bos] = s->own_found[prop_below(m->rng, (uint32_t)s->n_found)].id;
    bpe_builder_bos(m->b, s->bos[s->n_bos++]);
  }
  while (s->n_eos < prop_below(m->rng, PROP_WRAP + 1)) {
    s->eos[s->n_eos] = s->own_found[prop_below(m->rng, (uint32_t)s->n_found)].id;
    bpe_builder_eos(m->b, s->eos[s->n_eos++]);
  }
}

/* The possessive rewrites of cl100k and gpt2 that later versions of tiktoken have. */
#define CL100K_REWRITTEN \
  "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+|" \
  " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s"
#define GPT2_REWRITTEN \
  "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|" \
  "\\s++$|\\s+(?!\\S)|\\s"
static const char *const regexes[] = {
  "[a-c]+|\\s+", "a*", "(?:ab)+|b{2,3}", "\\p{L}+|\\p{N}", "[^\\s]+", "\\S+\\s*", "a+b|a",
  "(?i:'s|'t|'re)|\\p{Lu}?\\p{Ll}+|[^\\p{Ll}]", "\\s++$|\\s+(?!\\S)|\\s|\\p{L}++",
  CL100K_REWRITTEN, GPT2_REWRITTEN};

/* Patterns one inside the other, as the core and as the oracle spell them. */
static const struct {
  const char *json, *lines;
} chains[] = {
  {"[{\"regex\":\"\\\\p{N}{1,3}\"},{\"regex\":\"[ab]+(?!\\\\S)|\\\\s+\"}]",
   "\\p{N}{1,3}\n[ab]+(?!\\S)|\\s+"},
  {"[\"whitespace\",{\"regex\":\"[a-c]+\"},{\"regex\":\"b|\\\\p{L}\"}]",
   "\\s+|\\S+\n[a-c]+\nb|\\p{L}"}};

/* A pattern's text for the core and what the oracle takes for it. */
typedef struct choice {
  const char *text, *published;
  bool is_regex;
} choice;

static choice choose_pattern(prop_rng *rng) {
  const char *name = "none";
  uint32_t n = 0;
  while (bpe_pattern_name((int)n)) n++;
  const char *any = bpe_pattern_name((int)prop_below(rng, n));
  switch (prop_below(rng, 6)) {
    case 0: name = any; break;
    case 1: { /* a published string, said as a regex */
      const char *text = oracle_pattern(any);
      if (*text && !strchr(text, '\n')) return (choice){text, text, true};
      break;
    }
    case 2: case 3: {
      const char *text = regexes[prop_below(rng, sizeof regexes / sizeof *regexes)];
      return (choice){text, text, true};
    }
    case 4:
      if (prop_one_in(rng, 3)) {
        const uint32_t i = prop_below(rng, sizeof chains / sizeof *chains);
        return (choice){chains[i].json, chains[i].lines, false};
      }
      break;
    default: break;
  }
  return (choice){name, oracle_pattern(name), false};
}

/* A short list of bytes, or for a chain a longer one in order: letters, so that patterns do not cut
** it either, then the bytes above them. */
static void choose_alphabet(prop_subject *s, prop_rng *rng, bool chain) {
  const char *alphabet = alphabets[prop_below(rng, sizeof alphabets / sizeof *alphabets)];
  const size_t len = chain ? 4 + prop_below(rng, prop_one_in(rng, 3) ? 150 : 22) : strlen(alphabet);
  for (size_t i = 0; i < len; i++) s->own_alphabet[i] = chain ? (char)('a' + i) : alphabet[i];
  s->source.alphabet = s->own_alphabet;
  s->source.alphabet_len = len;
}

bool prop_subject_random(prop_subject *s, prop_world *w, uint64_t seed, uint64_t number) {
  prop_rng rng = prop_seed(seed, ~number);
  return prop_subject_make(s, w, &rng, number);
}

bool prop_subject_make(prop_subject *s, prop_world *w, prop_rng *rng, uint64_t number) {
  static const char *const families[] = {"rank file", "rank file", "chain"};
  *s = (prop_subject){.is_random = true};
  maker m = {.rng = rng, .s = s, .b = bpe_builder_new(&w->alloc)};
  const uint32_t family = prop_below(rng, 6);
  choose_alphabet(s, rng, family == 2);
  s->source.long_often = true;
  s->oracle.vocab = oracle_vocab_new();
  if (family < 2) make_rank_file(&m);
  else make_merge_list(&m, family == 2);
  make_specials(&m);
  const choice pattern = choose_pattern(rng);
  s->oracle.regex = prop_world_regex(w, pattern.published);
  bpe_builder_pattern(m.b, pattern.text, strlen(pattern.text), pattern.is_regex);
  snprintf(s->name, sizeof s->name, "random %s %llu, %u ids%s, pattern %.60s",
           family < 3 ? families[family] : "merge list", (unsigned long long)number, m.next_id,
           s->oracle.whole ? ", whole" : "", pattern.text);
  bpe_error e = {0};
  if (bpe_builder_finish(m.b, &e, &s->model) != BPE_OK) return refused(s, "builder", &e);
  if (!complete(s, w)) return false;
  if (!pattern.is_regex && pattern.text[0] != '[') return true;
  return prop_world_avoid(w, &s->source.avoid) || refused(s, "classes by regex", &e);
}
