/* oracle_regex.c - a backtracking matcher that reads pattern strings as they were published.
**
** Understood: alternatives, (?:...), (?i:...), (?!...), classes with ranges and negation, \p{..}
** \P{..} \s \S \r \n \t and escaped punctuation, ? * + {n} {n,} {n,m} greedy or possessive, and $
** for the very end of the text. Anything else, lazy quantifiers and repeated groups that can be
** empty among it, is refused at compile time rather than guessed.
**
** Letters within (?i:...) match their two ASCII cases, s also U+017F: what the reference engines
** do for the letters that the published patterns have there.
**
** Several patterns, one per line, are steps: each splits the pieces of the one before.
**
** Invariant: a match is what a textbook backtracking engine finds, alternatives in order, each
** repetition as long as possible first. The backtracking stack is on the heap, and a repetition
** of one class is a single entry in it, so a run of a million letters is no danger. Only nesting
** in the pattern recurses.
**
**     ` ?\p{L}+` on " ab1"  is  RUN ' ' 0..1   RUN \p{L} 1..   ACCEPT      and matches 3
*/
#include "oracle.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_POINTS = 0x110000, SET_WORDS = N_POINTS / 64, MAX_CLASSES = 64 };
static const uint32_t UNLIMITED = UINT32_MAX;
static const size_t NO_MATCH = SIZE_MAX;

/* ---- Sets of code points --------------------------------------------------------------------- */

static uint64_t *set_new(void) {
  uint64_t *set = oracle_realloc(NULL, SET_WORDS * sizeof *set);
  memset(set, 0, SET_WORDS * sizeof *set);
  return set;
}

static void set_add(uint64_t *set, uint32_t cp) {
  set[cp / 64] |= UINT64_C(1) << (cp % 64);
}

static bool set_has(const uint64_t *set, uint32_t cp) {
  return set[cp / 64] >> (cp % 64) & 1;
}

static void set_invert(uint64_t *set) {
  for (size_t i = 0; i < SET_WORDS; i++) set[i] = ~set[i];
}

/* ---- Classes --------------------------------------------------------------------------------- */

struct oracle_classes {
  size_t n;
  char name[MAX_CLASSES][32];
  uint64_t *set[MAX_CLASSES]; /* owned */
};

/* "41-5a 61 aa-ab": hex, both ends included. */
static bool read_ranges(uint64_t *set, const char *text) {
  while (*text) {
    char *end;
    const unsigned long low = strtoul(text, &end, 16);
    unsigned long high = low;
    if (end == text) return false;
    if (*end == '-') {
      text = end + 1;
      high = strtoul(text, &end, 16);
      if (end == text) return false;
    }
    if (high < low || high >= N_POINTS) return false;
    for (unsigned long cp = low; cp <= high; cp++) set_add(set, (uint32_t)cp);
    for (text = end; *text == ' ';) text++;
  }
  return true;
}

oracle_classes *oracle_classes_read(const char *path) {
  json_error_t error;
  json_t *root = json_load_file(path, 0, &error);
  if (!root) {
    fprintf(stderr, "oracle: %s: %s\n", path, error.text);
    return NULL;
  }
  oracle_classes *classes = oracle_realloc(NULL, sizeof *classes);
  memset(classes, 0, sizeof *classes);
  const char *name;
  json_t *entry;
  bool ok = true;
  json_object_foreach(root, name, entry) {
    const char *ranges = json_string_value(json_object_get(entry, "tiktoken_wasm"));
    if (name[0] != '\\' || !ranges || strlen(name) >= sizeof classes->name[0]) continue;
    if (classes->n == MAX_CLASSES) break;
    uint64_t *set = set_new();
    if (!read_ranges(set, ranges)) ok = false;
    strcpy(classes->name[classes->n], name);
    classes->set[classes->n++] = set;
  }
  json_decref(root);
  if (ok && classes->n > 0) return classes;
  fprintf(stderr, "oracle: %s: not a file of classes\n", path);
  oracle_classes_free(classes);
  return NULL;
}

void oracle_classes_free(oracle_classes *classes) {
  if (!classes) return;
  for (size_t i = 0; i < classes->n; i++) free(classes->set[i]);
  free(classes);
}

static const uint64_t *class_find(const oracle_classes *classes, const char *name) {
  for (size_t i = 0; i < classes->n; i++) {
    if (strcmp(classes->name[i], name) == 0) return classes->set[i];
  }
  return NULL;
}

bool oracle_classes_has(const oracle_classes *classes, const char *name, uint32_t cp) {
  const uint64_t *set = class_find(classes, name);
  return set && cp < N_POINTS && set_has(set, cp);
}

/* ---- The tree -------------------------------------------------------------------------------- */

typedef enum node_kind {
  NODE_CHAR, NODE_SET, NODE_SEQ, NODE_ALT, NODE_REPEAT, NODE_NOT, NODE_END
} node_kind;

enum { NIL = -1 };

typedef struct node {
  node_kind kind;
  uint32_t what; /* code point, or index of a set */
  uint32_t min, max;
  bool possessive;
  int child, next; /* first of the children; next of the same parent */
} node;

typedef enum op { OP_ONE, OP_RUN, OP_SPLIT, OP_JUMP, OP_ATOMIC, OP_NOT, OP_END, OP_ACCEPT } op;

/* OP_ATOMIC and OP_NOT: their own program follows, up to an OP_ACCEPT, and `to` is behind it. */
typedef struct inst {
  op op;
  bool is_set, possessive;
  uint32_t what, min, max;
  size_t to; /* where OP_SPLIT goes on failure, OP_JUMP always */
} inst;

/* A place to go back to. A run may give back characters down to `low`. */
typedef struct frame {
  size_t pc, pos, low;
} frame;

struct oracle_regex {
  oracle_regex *next; /* owned; splits the pieces of this one further */
  uint64_t **sets;
  size_t n_sets;
  node *nodes;
  int n_nodes;
  inst *code;
  size_t n_code;
  frame *frames;
  size_t n_frames, cap_frames;
};

typedef struct parser {
  oracle_regex *re;
  const oracle_classes *classes;
  uint32_t *cps;
  size_t n, at;
  bool fold;
  const char *error;
} parser;

static int fail(parser *p, const char *error) {
  if (!p->error) p->error = error;
  return NIL;
}

static bool peek(const parser *p, uint32_t cp) {
  return p->at < p->n && p->cps[p->at] == cp;
}

static bool accept(parser *p, const char *ascii) {
  const size_t len = strlen(ascii);
  if (p->n - p->at < len) return false;
  for (size_t i = 0; i < len; i++) {
    if (p->cps[p->at + i] != (uint8_t)ascii[i]) return false;
  }
  p->at += len;
  return true;
}

static int node_new(parser *p, node_kind kind, uint32_t what, int child) {
  oracle_regex *re = p->re;
  re->nodes = oracle_realloc(re->nodes, ((size_t)re->n_nodes + 1) * sizeof *re->nodes);
  re->nodes[re->n_nodes] = (node){.kind = kind, .what = what, .child = child, .next = NIL};
  return re->n_nodes++;
}

/* Takes the set over. Equal sets are kept once. */
static uint32_t set_keep(oracle_regex *re, uint64_t *set) {
  for (size_t i = 0; i < re->n_sets; i++) {
    if (memcmp(re->sets[i], set, SET_WORDS * sizeof *set) == 0) {
      free(set);
      return (uint32_t)i;
    }
  }
  re->sets = oracle_realloc(re->sets, (re->n_sets + 1) * sizeof *re->sets);
  re->sets[re->n_sets] = set;
  return (uint32_t)re->n_sets++;
}

static void set_add_folded(uint64_t *set, uint32_t cp, bool fold) {
  set_add(set, cp);
  if (!fold) return;
  const bool lower = cp >= 'a' && cp <= 'z', upper = cp >= 'A' && cp <= 'Z';
  if (lower || upper) set_add(set, cp ^ 0x20);
  if (cp == 's' || cp == 'S') set_add(set, 0x17f);
}

/* Behind a backslash: a class is added to the set (true), a character is *cp (false). */
static bool parse_escape(parser *p, uint64_t *set, uint32_t *cp) {
  *cp = 0;
  if (p->at >= p->n) return fail(p, "pattern ends in a backslash"), false;
  const uint32_t c = p->cps[p->at++];
  char name[32] = {'\\', (char)c};
  size_t len = 2;
  const bool property = c == 'p' || c == 'P';
  if (property) {
    do {
      if (p->at >= p->n || len + 2 > sizeof name) return fail(p, "bad \\p{...}"), false;
      name[len++] = (char)p->cps[p->at++];
    } while (name[len - 1] != '}');
    name[1] = 'p';
  }
  if (property || c == 's' || c == 'S' || c == 'd' || c == 'w') {
    const uint64_t *class = class_find(p->classes, name);
    if (!class) return fail(p, "unknown class"), false;
    for (size_t i = 0; i < SET_WORDS; i++) set[i] |= c == 'P' ? ~class[i] : class[i];
    return true;
  }
  const bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  *cp = c == 'r' ? '\r' : c == 'n' ? '\n' : c == 't' ? '\t' : c;
  if (alnum && *cp == c) fail(p, "unknown escape");
  return false;
}

/* Behind an opening bracket. */
static int parse_class(parser *p) {
  uint64_t *set = set_new();
  const bool negated = accept(p, "^");
  bool first = true;
  while (!p->error && (first || !peek(p, ']'))) {
    first = false;
    if (p->at >= p->n) {
      fail(p, "class without end");
      break;
    }
    uint32_t low = p->cps[p->at++];
    if (low == '\\' && parse_escape(p, set, &low)) continue;
    uint32_t high = low;
    if (p->at + 1 < p->n && peek(p, '-') && p->cps[p->at + 1] != ']') {
      high = p->cps[p->at + 1];
      p->at += 2;
      if (high == '\\' && parse_escape(p, set, &high)) fail(p, "class as end of a range");
    }
    if (high < low) fail(p, "range out of order");
    for (uint32_t cp = low; cp <= high && !p->error; cp++) set_add_folded(set, cp, p->fold);
  }
  p->at++;
  if (negated) set_invert(set);
  return node_new(p, NODE_SET, set_keep(p->re, set), NIL);
}

static int parse_alt(parser *p);

static int parse_group(parser *p) {
  const bool fold = p->fold;
  bool negative = false;
  if (accept(p, "?!")) {
    negative = true;
  } else if (accept(p, "?i:")) {
    p->fold = true;
  } else if (!accept(p, "?:")) {
    return fail(p, "unknown kind of group");
  }
  const int inner = parse_alt(p);
  if (!accept(p, ")")) fail(p, "group without end");
  p->fold = fold;
  return negative ? node_new(p, NODE_NOT, 0, inner) : inner;
}

static int parse_char(parser *p, uint32_t cp) {
  uint64_t *set = set_new();
  if (cp == '\\' && parse_escape(p, set, &cp)) {
    return node_new(p, NODE_SET, set_keep(p->re, set), NIL);
  }
  set_add_folded(set, cp, p->fold);
  if (p->fold) return node_new(p, NODE_SET, set_keep(p->re, set), NIL);
  free(set);
  return node_new(p, NODE_CHAR, cp, NIL);
}

static int parse_atom(parser *p) {
  const uint32_t c = p->cps[p->at++];
  switch (c) {
    case '(': return parse_group(p);
    case '[': return parse_class(p);
    case '$': return node_new(p, NODE_END, 0, NIL);
    case '.': case '^': case '?': case '*': case '+': case '{':
      return fail(p, "character that needs an escape here");
    default: return parse_char(p, c);
  }
}

static uint32_t parse_number(parser *p) {
  uint32_t value = 0;
  if (p->at >= p->n || p->cps[p->at] < '0' || p->cps[p->at] > '9') fail(p, "number expected");
  while (p->at < p->n && p->cps[p->at] >= '0' && p->cps[p->at] <= '9' && value < 1000) {
    value = value * 10 + (p->cps[p->at++] - '0');
  }
  return value;
}

static bool can_be_empty(const oracle_regex *re, int i) {
  const node *n = &re->nodes[i];
  switch (n->kind) {
    case NODE_CHAR: case NODE_SET: return false;
    case NODE_NOT: case NODE_END: return true;
    case NODE_REPEAT: return n->min == 0 || can_be_empty(re, n->child);
    case NODE_SEQ:
      for (int k = n->child; k != NIL; k = re->nodes[k].next) {
        if (!can_be_empty(re, k)) return false;
      }
      return true;
    case NODE_ALT:
      for (int k = n->child; k != NIL; k = re->nodes[k].next) {
        if (can_be_empty(re, k)) return true;
      }
      return false;
  }
  return true;
}

static int parse_repeat(parser *p) {
  const int atom = parse_atom(p);
  if (p->error || p->at >= p->n) return atom;
  uint32_t min = 0, max = UNLIMITED;
  if (accept(p, "?")) {
    max = 1;
  } else if (accept(p, "+")) {
    min = 1;
  } else if (accept(p, "{")) {
    min = max = parse_number(p);
    if (accept(p, ",")) max = peek(p, '}') ? UNLIMITED : parse_number(p);
    if (!accept(p, "}") || max < min) return fail(p, "bad {n,m}");
  } else if (!accept(p, "*")) {
    return atom;
  }
  if (peek(p, '?')) return fail(p, "lazy quantifiers are not supported");
  if (can_be_empty(p->re, atom)) return fail(p, "repeated group that can be empty");
  const int repeat = node_new(p, NODE_REPEAT, 0, atom);
  node *n = &p->re->nodes[repeat];
  n->min = min;
  n->max = max;
  n->possessive = accept(p, "+");
  return repeat;
}

static int parse_seq(parser *p) {
  const int seq = node_new(p, NODE_SEQ, 0, NIL);
  for (int last = NIL; !p->error && p->at < p->n && !peek(p, '|') && !peek(p, ')');) {
    /* (?:...) gives a sequence or an alternative of its own, so each item is linked once. */
    const int item = parse_repeat(p);
    if (item == NIL) break;
    if (last == NIL) p->re->nodes[seq].child = item;
    else p->re->nodes[last].next = item;
    last = item;
  }
  return seq;
}

static int parse_alt(parser *p) {
  const int alt = node_new(p, NODE_ALT, 0, NIL);
  int last = NIL;
  do {
    const int seq = parse_seq(p);
    if (last == NIL) p->re->nodes[alt].child = seq;
    else p->re->nodes[last].next = seq;
    last = seq;
  } while (!p->error && accept(p, "|"));
  return alt;
}

/* ---- The program ----------------------------------------------------------------------------- */

static size_t emit(oracle_regex *re, inst in) {
  re->code = oracle_realloc(re->code, (re->n_code + 1) * sizeof *re->code);
  re->code[re->n_code] = in;
  return re->n_code++;
}

static void emit_node(oracle_regex *re, int i);

static void emit_repeat(oracle_regex *re, const node n) {
  const node child = re->nodes[n.child];
  if (child.kind == NODE_CHAR || child.kind == NODE_SET) {
    emit(re, (inst){.op = OP_RUN, .is_set = child.kind == NODE_SET, .possessive = n.possessive,
                    .what = child.what, .min = n.min, .max = n.max});
    return;
  }
  const size_t atomic = n.possessive ? emit(re, (inst){.op = OP_ATOMIC}) : 0;
  for (uint32_t k = 0; k < n.min; k++) emit_node(re, n.child);
  const size_t loop = re->n_code;
  const uint32_t optional = n.max == UNLIMITED ? 1 : n.max - n.min;
  for (uint32_t k = 0; k < optional; k++) {
    emit(re, (inst){.op = OP_SPLIT});
    emit_node(re, n.child);
  }
  if (n.max == UNLIMITED) emit(re, (inst){.op = OP_JUMP, .to = loop});
  for (size_t pc = loop; pc < re->n_code; pc++) {
    if (re->code[pc].op == OP_SPLIT && re->code[pc].to == 0) re->code[pc].to = re->n_code;
  }
  if (n.possessive) {
    emit(re, (inst){.op = OP_ACCEPT});
    re->code[atomic].to = re->n_code;
  }
}

static void emit_alt(oracle_regex *re, const node n) {
  oracle_list jumps = {0};
  for (int k = n.child; k != NIL; k = re->nodes[k].next) {
    if (re->nodes[k].next == NIL) {
      emit_node(re, k);
      break;
    }
    const size_t split = emit(re, (inst){.op = OP_SPLIT, .to = SIZE_MAX});
    emit_node(re, k);
    oracle_list_add(&jumps, (uint32_t)emit(re, (inst){.op = OP_JUMP}));
    re->code[split].to = re->n_code;
  }
  for (size_t k = 0; k < jumps.n; k++) re->code[jumps.at[k]].to = re->n_code;
  oracle_list_clear(&jumps);
}

static void emit_node(oracle_regex *re, int i) {
  const node n = re->nodes[i];
  switch (n.kind) {
    case NODE_CHAR: case NODE_SET:
      emit(re, (inst){.op = OP_ONE, .is_set = n.kind == NODE_SET, .what = n.what});
      break;
    case NODE_SEQ:
      for (int k = n.child; k != NIL; k = re->nodes[k].next) emit_node(re, k);
      break;
    case NODE_ALT: emit_alt(re, n); break;
    case NODE_REPEAT: emit_repeat(re, n); break;
    case NODE_END: emit(re, (inst){.op = OP_END}); break;
    case NODE_NOT: {
      const size_t not = emit(re, (inst){.op = OP_NOT});
      emit_node(re, n.child);
      emit(re, (inst){.op = OP_ACCEPT});
      re->code[not].to = re->n_code;
      break;
    }
  }
}

oracle_regex *oracle_regex_try(const oracle_classes *classes, const char *pattern,
                               const char **error, size_t *error_at) {
  oracle_regex *re = oracle_realloc(NULL, sizeof *re);
  memset(re, 0, sizeof *re);
  parser p = {.re = re, .classes = classes};
  const size_t len = strcspn(pattern, "\n");
  p.cps = oracle_realloc(NULL, (len + 1) * sizeof *p.cps);
  for (size_t at = 0, step; at < len; at += step) {
    step = oracle_utf8((const uint8_t *)pattern + at, len - at, &p.cps[p.n++]);
    if (step == 0) {
      fail(&p, "pattern is not UTF-8");
      break;
    }
  }
  const int root = p.error ? NIL : parse_alt(&p);
  if (!p.error && p.at < p.n) fail(&p, "unbalanced parenthesis");
  free(p.cps);
  *error = p.error;
  *error_at = p.at;
  if (!p.error) {
    emit_node(re, root);
    emit(re, (inst){.op = OP_ACCEPT});
    if (pattern[len]) re->next = oracle_regex_try(classes, pattern + len + 1, error, error_at);
  }
  if (!*error) return re;
  oracle_regex_free(re);
  return NULL;
}

oracle_regex *oracle_regex_new(const oracle_classes *classes, const char *pattern) {
  const char *error;
  size_t at;
  oracle_regex *re = oracle_regex_try(classes, pattern, &error, &at);
  if (!re) fprintf(stderr, "oracle: %s at character %zu of %s\n", error, at, pattern);
  return re;
}

oracle_regex *oracle_regex_next(const oracle_regex *re) {
  return re->next;
}

void oracle_regex_free(oracle_regex *re) {
  if (!re) return;
  oracle_regex_free(re->next);
  for (size_t i = 0; i < re->n_sets; i++) free(re->sets[i]);
  free(re->sets);
  free(re->nodes);
  free(re->code);
  free(re->frames);
  free(re);
}

/* ---- Matching -------------------------------------------------------------------------------- */

static bool accepts(const oracle_regex *re, const inst *in, uint32_t cp) {
  return in->is_set ? set_has(re->sets[in->what], cp) : cp == in->what;
}

static void push(oracle_regex *re, frame f) {
  if (re->n_frames == re->cap_frames) {
    re->cap_frames = re->cap_frames ? re->cap_frames * 2 : 64;
    re->frames = oracle_realloc(re->frames, re->cap_frames * sizeof *re->frames);
  }
  re->frames[re->n_frames++] = f;
}

/* Back to the latest frame above `base`, one character shorter if it is a run's. */
static bool pop(oracle_regex *re, size_t base, size_t *pc, size_t *pos) {
  if (re->n_frames == base) return false;
  frame *f = &re->frames[re->n_frames - 1];
  if (f->pos > f->low) f->pos--;
  if (f->pos == f->low) re->n_frames--;
  *pc = f->pc;
  *pos = f->pos;
  return true;
}

/* The program at pc, up to its OP_ACCEPT, on the text from pos. */
static size_t run(oracle_regex *re, size_t pc, const uint32_t *cps, size_t n, size_t pos) {
  const size_t base = re->n_frames;
  for (bool ok = true;;) {
    if (!ok && !pop(re, base, &pc, &pos)) return NO_MATCH;
    const inst *in = &re->code[pc++];
    ok = true;
    switch (in->op) {
      case OP_ONE:
        ok = pos < n && accepts(re, in, cps[pos]);
        pos++;
        break;
      case OP_RUN: {
        size_t end = pos;
        while (end < n && end - pos < in->max && accepts(re, in, cps[end])) end++;
        ok = end - pos >= in->min;
        if (ok && end - pos > in->min && !in->possessive) {
          push(re, (frame){.pc = pc, .pos = end, .low = pos + in->min});
        }
        pos = end;
        break;
      }
      case OP_SPLIT: push(re, (frame){.pc = in->to, .pos = pos, .low = pos}); break;
      case OP_JUMP: pc = in->to; break;
      case OP_ATOMIC:
        pos = run(re, pc, cps, n, pos);
        ok = pos != NO_MATCH;
        pc = in->to;
        break;
      case OP_NOT:
        ok = run(re, pc, cps, n, pos) == NO_MATCH;
        pc = in->to;
        break;
      case OP_END: ok = pos == n; break;
      case OP_ACCEPT: re->n_frames = base; return pos;
    }
  }
}

size_t oracle_regex_match(oracle_regex *re, const uint32_t *cps, size_t n, size_t at) {
  return run(re, 0, cps, n, at);
}
