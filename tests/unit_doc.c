/* unit_doc.c - JSON documents as trees: what each node says, what is refused and where, limits. */
#include "../src/doc.h"

#include "unit.h"

/* A tree as one line: keys before a colon, numbers as written, strings in '', and T, F, 0 for
** true, false, null. The fields that a node of its kind does not use must be empty. */
static size_t print_node(const doc_node *v, char *out, size_t room) {
  size_t n = 0;
  CHECK(v->key != NULL && v->text != NULL && strlen(v->key) == v->key_len);
  if (v->key_len > 0) n += (size_t)snprintf(out, room, "%s:", v->key);
  switch (v->kind) {
  case DOC_NUMBER: n += (size_t)snprintf(out + n, room - n, "%s", v->text); break;
  case DOC_STRING: n += (size_t)snprintf(out + n, room - n, "'%s'", v->text); break;
  case DOC_TRUE: n += (size_t)snprintf(out + n, room - n, "T"); break;
  case DOC_FALSE: n += (size_t)snprintf(out + n, room - n, "F"); break;
  case DOC_NULL: n += (size_t)snprintf(out + n, room - n, "0"); break;
  default: {
    uint32_t children = 0;
    n += (size_t)snprintf(out + n, room - n, v->kind == DOC_ARRAY ? "[" : "{");
    for (const doc_node *x = v->first; x != NULL; x = x->next, children++) {
      if (children > 0) n += (size_t)snprintf(out + n, room - n, " ");
      n += print_node(x, out + n, room - n);
    }
    n += (size_t)snprintf(out + n, room - n, v->kind == DOC_ARRAY ? "]" : "}");
    CHECK_EQ_INT(v->len, children);
    CHECK(v->text[0] == 0);
    return n;
  }
  }
  CHECK(v->first == NULL);
  CHECK_EQ_INT(v->len, strlen(v->text));
  return n;
}

static doc parsed(const char *text, size_t len) {
  doc d;
  bpe_error e = {.status = BPE_OK};
  if (!CHECK(doc_parse(&unit_alloc, text, len, "test", &e, &d) == BPE_OK)) printf("  %s\n", e.text);
  return d;
}

static void check_trees(void) {
  static const char *const rows[][2] = {
      {"null", "0"},
      {" -1.5e+3 ", "-1.5e+3"},
      {"\"a\\u00e9\\n\"", "'a\u00e9\n'"},
      {"[]", "[]"},
      {"{}", "{}"},
      {"[true,false,null,\"\"]", "[T F 0 '']"},
      {"{\"a\":{\"b\":[1,[2],{\"c\":3}],\"d\":4},\"e\":5}", "{a:{b:[1 [2] {c:3}] d:4} e:5}"},
      {"{\"a\":[{\"b\":[]},7],\"a\":\"x\"}", "{a:[{b:[]} 7] a:'x'}"},
      {"[[[]],[],[[1]]]", "[[[]] [] [[1]]]"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char out[200] = "";
    doc d = parsed(rows[i][0], strlen(rows[i][0]));
    if (d.root != NULL) print_node(d.root, out, sizeof out);
    if (!CHECK(strcmp(out, rows[i][1]) == 0)) printf("  %s: %s\n", rows[i][0], out);
    doc_clear(&d);
    CHECK(d.root == NULL);
    doc_clear(&d); /* a second time is fine */
  }
}

static void check_refused(void) {
  static const struct {
    const char *text;
    uint64_t at;
    const char *says;
  } rows[] = {{"", 0, "test: premature EOF at byte 0"},
              {"[1,", 3, "test: premature EOF at byte 3"},
              {"{\"a\" 1}", 6,
               "test: object key and value must be separated by a colon (':') at byte 6"},
              {"[01]", 3, "test: after array element, I expect ',' or ']' at byte 3"},
              {"\"\xff\"", 2, "test: invalid bytes in UTF8 string at byte 2"},
              {"1 2", 3, "test: trailing garbage at byte 3"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    doc d = {.root = (const doc_node *)&unit_memory};
    bpe_error e = {.status = BPE_OK};
    const size_t len = strlen(rows[i].text);
    CHECK_EQ_INT(doc_parse(&unit_alloc, rows[i].text, len, "test", &e, &d), BPE_BADMODEL);
    CHECK(unit_says(&e, BPE_BADMODEL, rows[i].at, rows[i].says));
    CHECK(d.root == NULL && d.chunks == NULL);
    doc_clear(&d);
  }
}

/* 32 containers inside each other are read, 33 are not. */
static void check_depth(void) {
  for (size_t depth = 31; depth <= 33; depth++) {
    char text[80];
    doc d;
    bpe_error e = {.status = BPE_OK};
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    const bpe_status st = doc_parse(&unit_alloc, text, 2 * depth, "test", &e, &d);
    CHECK_EQ_INT(st, depth <= 32 ? BPE_OK : BPE_BADMODEL);
    if (depth > 32) CHECK(unit_says(&e, st, 33, "test: nested too deeply at byte 33"));
    doc_clear(&d);
  }
}

/* Values behind the first part that the parser is given know their place; one may be as long as
** the limit, and no longer. */
static void check_long(void) {
  enum { LONG = BPE_JSON_LONGEST };
  char *text = malloc(LONG + 16);
  doc d;
  bpe_error e = {.status = BPE_OK};
  if (text == NULL) return;
  size_t len = 1;
  text[0] = '[';
  for (int i = 0; i < 50000; i++)
    len += (size_t)snprintf(text + len, 16, "%s%d", i > 0 ? "," : "", i);
  text[len++] = ']';
  d = parsed(text, len);
  uint32_t n = 0, id, wrong = 0;
  for (const doc_node *v = d.root->first; v != NULL; v = v->next, n++)
    wrong += !doc_id(v, &id) || id != n || memcmp(text + v->offset - v->len, v->text, v->len) != 0;
  CHECK(n == 50000 && d.root->len == n);
  CHECK_EQ_INT(wrong, 0);
  doc_clear(&d);
  for (size_t more = 0; more < 2; more++) { /* a string is as long as its text with the quotes */
    for (int quotes = 0; quotes < 2; quotes++) {
      len = LONG + more;
      memset(text, quotes ? 'x' : '1', len);
      if (quotes) text[0] = text[len - 1] = '"';
      const bpe_status st = doc_parse(&unit_alloc, text, len, "test", &e, &d);
      CHECK_EQ_INT(st, more == 0 ? BPE_OK : BPE_TOOBIG);
      if (st == BPE_OK) CHECK_EQ_INT(d.root->len, LONG - 2 * quotes);
      doc_clear(&d);
    }
  }
  CHECK(unit_says(&e, BPE_TOOBIG, 0, "test: string too long at byte 0"));
  free(text);
}

static void check_get(void) {
  static const char text[] = "{\"ab\":1,\"a\":2,\"a\\u0000\":3,\"a\":4,\"\":5,\"s\":\"ab\"}";
  doc d = parsed(text, sizeof text - 1);
  const doc_node *a = doc_get(d.root, "a"), *s = doc_get(d.root, "s");
  CHECK(a != NULL && strcmp(a->text, "2") == 0); /* the first of two, and no longer key */
  CHECK(doc_get(d.root, "b") == NULL && doc_get(d.root, "abc") == NULL);
  CHECK(doc_get(d.root, "") != NULL && strcmp(doc_get(d.root, "")->text, "5") == 0);
  CHECK(doc_get(NULL, "a") == NULL && doc_get(a, "a") == NULL);
  CHECK(doc_is(s, "ab") && !doc_is(s, "a") && !doc_is(s, "abc") && !doc_is(s, "ac"));
  CHECK(!doc_is(a, "2") && !doc_is(NULL, ""));
  doc_clear(&d);
}

static void check_ids(void) {
  static const struct {
    const char *text;
    bool is;
    uint32_t id;
  } rows[] = {{"0", true, 0},
              {"9", true, 9},
              {"1000000000", true, 1000000000},
              {"4294967294", true, BPE_NONE - 1},
              {"4294967295", false, 0},
              {"4294967296", false, 0},
              {"10000000000", false, 0},
              {"99999999999999999999", false, 0},
              {"-1", false, 0},
              {"1.0", false, 0},
              {"1e3", false, 0},
              {"\"7\"", false, 0},
              {"[7]", false, 0},
              {"true", false, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint32_t id = 0;
    doc d = parsed(rows[i].text, strlen(rows[i].text));
    if (!CHECK(doc_id(d.root, &id) == rows[i].is && id == rows[i].id))
      printf("  %s: %lu\n", rows[i].text, (unsigned long)id);
    doc_clear(&d);
  }
  CHECK(!doc_id(NULL, &(uint32_t){0}));
}

static void check_keys(void) {
  static const char *const known[] = {"a", "abc", NULL};
  static const struct {
    const char *text, *says;
    uint64_t at;
  } rows[] = {{"{}", NULL, 0},
              {"{\"abc\":1,\"a\":2}", NULL, 0},
              {"{\"a\":1,\"ab\":2}", "test: unknown key: ab", 13},
              {"{\"abd\":1}", "test: unknown key: abd", 8},
              {"{\"\":1}", "test: unknown key: ", 5},
              {"{\"a\\u0000\":1}", "test: unknown key: a\\x00", 12},
              {"{\"a\":1,\"abc\":2,\"a\":3}", "test: key given twice: a", 20}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bpe_error e = {.status = BPE_OK};
    doc d = parsed(rows[i].text, strlen(rows[i].text));
    const bpe_status st = doc_keys(d.root, "test", known, &e);
    if (rows[i].says == NULL) CHECK_EQ_INT(st, BPE_OK);
    else CHECK(st == BPE_BADMODEL && unit_says(&e, st, rows[i].at, rows[i].says));
    doc_clear(&d);
  }
}

static void check_append(void) {
  static const struct {
    const char *text;
    size_t len;
    const char *out;
  } rows[] = {{"", 0, "\"\""},
              {"a\"b\\c/", 6, "\"a\\\"b\\\\c/\""},
              {"\0\x1f \x7f", 4, "\"\\u0000\\u001f \x7f\""},
              {"\t\n\r", 3, "\"\\u0009\\u000a\\u000d\""},
              {"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", 9,
               "\"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80\""},
              {"\xff\xe4\xb8x\xc3", 5, "\"\xef\xbf\xbd\xef\xbf\xbdx\xef\xbf\xbd\""}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bpe_buffer b;
    bpe_buffer_init(&b, &unit_alloc, 0);
    bpe_buffer_append_json(&b, rows[i].text, rows[i].len);
    CHECK_BYTES(b.bytes, b.len, rows[i].out, strlen(rows[i].out));
    bpe_buffer_clear(&b);
  }
}

/* Every allocation fails once, in the parser's own memory too. */
static void check_memory(void) {
  char text[3000];
  size_t len = 1;
  text[0] = '[';
  for (int i = 0; i < 160; i++)
    len += (size_t)snprintf(text + len, sizeof text - len, "%s{\"key\":\"v%d\"}",
                            i > 0 ? "," : "", i);
  text[len++] = ']';
  for (size_t k = 1; k < 100; k++) {
    doc d;
    bpe_error e = {.status = BPE_OK};
    unit_fail(k, false);
    const bpe_status st = doc_parse(&unit_alloc, text, len, "test", &e, &d);
    const bool refused = unit_memory.refused > 0;
    unit_fail(0, false);
    CHECK(st == (refused ? BPE_NOMEM : BPE_OK) && (d.root == NULL) == refused);
    doc_clear(&d);
    if (!refused && CHECK(k > 3)) break;
  }
}

int main(void) {
  check_trees();
  check_refused();
  check_depth();
  check_long();
  check_get();
  check_ids();
  check_keys();
  check_append();
  check_memory();
  return unit_summary();
}
