/* fuzz_config.c - tokenizer.json made up whole, with its merges in either form.
**
** Input: whether parts that do not go together may be chosen, family, parts and flags, each a byte,
*then tokens and merges as pairs of earlier tokens,
** then a text. The file is written three times: merges as strings, as pairs, and as either by
** turns with its parts in another order. All three are refused, or all are the same tokenizer,
** which must then be sound, survive its exports, and keep its promises on the text.
*/
#include "import.h"

#include <stdarg.h>

enum {
  MOST_TOKENS = 40,
  LETTERS = 8,
  MOST_ADDED = 4,
  MOST_TEXT = 300,
  HALF = 60,
  TOKEN_TEXT = 2 * HALF + 1
};

typedef struct token {
  char text[TOKEN_TEXT]; /* as it stands in JSON */
} token;

typedef struct design {
  unsigned family; /* 0, 1: byte-level; 2: characters, with or without byte_fallback */
  unsigned normalizer, pre_tokenizer, decoder, post, model_flags, order;
  token tokens[MOST_TOKENS];
  uint8_t left[MOST_TOKENS], right[MOST_TOKENS]; /* of tokens that a merge makes */
  uint32_t ids[MOST_TOKENS];
  unsigned n_letters, n_tokens, n_added;
  unsigned added_flags[MOST_ADDED + 1], added_name[MOST_ADDED + 1];
} design;

static const char *const normalizers[] = {
    "null",
    "{'type':'NFC'}",
    "{'type':'NFD'}",
    "{'type':'NFKC'}",
    "{'type':'NFKD'}",
    "{'type':'Sequence','normalizers':[]}",
    "{'type':'Sequence','normalizers':[{'type':'NFC'},{'type':'NFKC'}]}",
    ("{'type':'Sequence','normalizers':[{'type':'Prepend','prepend':'\\u2581'},{'type':'Replace','"
     "pattern':{'String':' '},'content':'\\u2581'}]}"),
    "{'type':'Replace','pattern':{'String':' '},'content':'\\u2581'}",
    "{'type':'Replace','pattern':{'Regex':' +'},'content':' '}",
    "{'type':'Prepend','prepend':'a'}",
    "{'type':'Lowercase'}",
    "{'type':'Replace','pattern':{'String':''},'content':'b'}"};
static const char *const pre_tokenizers[] = {
    "{'type':'ByteLevel','add_prefix_space':false,'trim_offsets':true,'use_regex':true}",
    "{'type':'ByteLevel','add_prefix_space':true,'trim_offsets':true}",
    "null",
    ("{'type':'Sequence','pretokenizers':[{'type':'Split','pattern':{'Regex':'a+|\\\\s'},'behavior'"
     ":"
     "'Isolated','invert':false},{'type':'ByteLevel','add_prefix_space':false,'trim_offsets':true,'"
     "use_regex':false}]}"),
    ("{'type':'Sequence','pretokenizers':[{'type':'Digits','individual_digits':true},{'type':'"
     "ByteLevel','add_prefix_space':false,'use_regex':true}]}"),
    ("{'type':'Sequence','pretokenizers':[{'type':'Split','pattern':{'String':' "
     "'},'behavior':'MergedWithNext','invert':false}]}"),
    "{'type':'Split','pattern':{'Regex':'[^a]+|a'},'behavior':'Removed','invert':true}",
    "{'type':'Metaspace','replacement':'\\u2581','prepend_scheme':'always'}",
    ("{'type':'Sequence','pretokenizers':[{'type':'Split','pattern':{'Regex':'\\\\p{N}{1,3}'},'"
     "behavior':'Isolated','invert':false},{'type':'Split','pattern':{'Regex':'b|c'},'behavior':'"
     "Isolated'},{'type':'ByteLevel','use_regex':false,'add_prefix_space':false}]}")};
static const char *const decoders[] = {
    "null", "{'type':'ByteLevel','add_prefix_space':true,'trim_offsets':true,'use_regex':true}",
    ("{'type':'Sequence','decoders':[{'type':'Replace','pattern':{'String':'\\u2581'},'content':' "
     "'},{'type':'ByteFallback'},{'type':'Fuse'},{'type':'Strip','content':' "
     "','start':1,'stop':0}]}"),
    ("{'type':'Sequence','decoders':[{'type':'Replace','pattern':{'String':'\\u2581'},'content':' "
     "'},{'type':'ByteFallback'},{'type':'Fuse'}]}"),
    "{'type':'WordPiece'}"};
static const char *const posts[] = {
    "null", "{'type':'ByteLevel','add_prefix_space':true,'trim_offsets':false}",
    ("{'type':'TemplateProcessing','single':[{'SpecialToken':{'id':'<s>','type_id':0}},{'Sequence':"
     "{"
     "'id':'A','type_id':0}}],'pair':[],'special_tokens':{'<s>':{'id':'<s>','ids':[%u],'tokens':['"
     "<"
     "s>']}}}"),
    ("{'type':'TemplateProcessing','single':[{'Sequence':{'id':'A','type_id':0}},{'SpecialToken':{'"
     "id':'</s>','type_id':0}}],'pair':[],'special_tokens':{'</s>':{'id':'</"
     "s>','ids':[%u],'tokens':['</s>']}}}"),
    ("{'type':'Sequence','processors':[{'type':'ByteLevel'},{'type':'TemplateProcessing','single':["
     "{"
     "'Sequence':{'id':'A','type_id':0}}],'pair':[],'special_tokens':{}}]}")};
static const char *const model_flags[] = {"",
                                          "'ignore_merges':true,",
                                          "'fuse_unk':true,'unk_token':'<unk>',",
                                          "'dropout':null,'ignore_merges':false,",
                                          "'dropout':0.1,",
                                          "'continuing_subword_prefix':'','end_of_word_suffix':'',",
                                          "'unk_token':null,",
                                          "'continuing_subword_prefix':'##',"};
static const char *const added_names[] = {"<s>",     "</s>", "<unk>",   "ab",    "a",
                                          "\\u00e9", " x ",  "<|\\n|>", "<0x41>"};
static const char *const byte_letters[] = {"a",       "b",       "c",       "\\u0120",
                                           "\\u010a", "\\u00c3", "\\u00a9", "1"};
static const char *const char_letters[] = {"a",   "b",       "c",       "\\u2581",
                                           "\\n", "\\u00e9", "\\u4e2d", "1"};

#define LENGTH(array) ((unsigned)(sizeof(array) / sizeof *(array)))
#define CHOOSE(in, list) take(in, LENGTH(list))

/* Whether a token of this text is there. */
static bool has_token(const design *d, const char *text) {
  for (unsigned i = 0; i < d->n_tokens; i++)
    if (strcmp(d->tokens[i].text, text) == 0) return true;
  return false;
}

static void take_tokens(input *in, design *d, bool odd) {
  d->n_letters = LETTERS;
  for (unsigned i = 0; i < d->n_letters; i++)
    strcpy(d->tokens[i].text, d->family < 2 ? byte_letters[i] : char_letters[i]);
  d->n_tokens = d->n_letters;
  for (unsigned n = take(in, MOST_TOKENS - LETTERS); n > 0; n--) {
    const unsigned l = take(in, d->n_tokens), r = take(in, d->n_tokens), gap = take(in, 16),
                   k = d->n_tokens;
    token *t = &d->tokens[k];
    if (strlen(d->tokens[l].text) > HALF || strlen(d->tokens[r].text) > HALF) continue;
    d->left[k] = (uint8_t)l, d->right[k] = (uint8_t)r;
    const token left = d->tokens[l], right = d->tokens[r];
    snprintf(t->text, TOKEN_TEXT, "%.*s%.*s", HALF, left.text, HALF, right.text);
    if (!odd && has_token(d, t->text)) continue;
    d->ids[k] = odd && gap == 15 ? 300 : 300 + 2 * k + (gap == 14 ? 300 : 0);
    d->n_tokens++;
  }
}

static void take_added(input *in, design *d, bool odd) {
  const unsigned n = take(in, MOST_ADDED);
  unsigned used = 0;
  if (d->post == 2 || d->post == 3) { /* what the template names */
    d->added_name[0] = d->post - 2;
    d->added_flags[d->n_added++] = 16;
    used = 1U << (d->post - 2);
  }
  for (unsigned i = 0; i < n; i++) {
    const unsigned name = CHOOSE(in, added_names), flags = take(in, 64);
    if (!odd && (used >> name & 1)) continue;
    used |= 1U << name;
    d->added_name[d->n_added] = name;
    d->added_flags[d->n_added++] = odd ? flags : flags & 23;
  }
}

/* One of those that go with the family; any, if odd. */
static unsigned choose(input *in, bool odd, const char *among, unsigned all) {
  const unsigned x = take(in, 256);
  return odd ? x % all : (unsigned)(among[x % strlen(among)] - 'a');
}

static void take_design(input *in, design *d) {
  const bool odd = take(in, 4) == 3;
  d->family = take(in, 3);
  const bool chars = d->family == 2;
  d->normalizer = choose(in, odd, chars ? "hi" : "abcdefg", LENGTH(normalizers));
  d->pre_tokenizer = choose(in, odd, chars ? "c" : "aabdei", LENGTH(pre_tokenizers));
  d->decoder = choose(in, odd, chars ? "cd" : "b", LENGTH(decoders));
  d->post = choose(in, odd, "abcde", LENGTH(posts));
  d->model_flags = choose(in, odd, "aabbdfg", LENGTH(model_flags));
  d->order = take(in, 24);
  take_added(in, d, odd);
  take_tokens(in, d, odd);
}

/* JSON with ' for its quotes. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
say(page *p, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  REQUIRE(n >= 0 && (size_t)n < sizeof text);
  for (int i = 0; i < n; i++)
    if (text[i] == '\'') text[i] = '"';
  put(p, text, (size_t)n);
}

static void put_vocab(page *p, const design *d) {
  if (d->family < 2) put_members(p);
  for (unsigned i = 0; d->family == 2 && i < d->n_letters; i++)
    say(p, "%s'%s':%u", i == 0 ? "" : ",", d->tokens[i].text, i);
  for (unsigned i = 0; d->family == 2 && i < 256; i++) say(p, ",'<0x%02X>':%u", i, LETTERS + i);
  for (unsigned i = d->n_letters; i < d->n_tokens; i++)
    say(p, ",'%s':%u", d->tokens[i].text, d->ids[i]);
}

/* form: 0 strings, 1 pairs, 2 by turns. */
static void put_merges(page *p, const design *d, unsigned form) {
  for (unsigned i = d->n_letters; i < d->n_tokens; i++) {
    const char *comma = i == d->n_letters + (form == 1 && sabotage()) ? "" : ",";
    const char *l = d->tokens[d->left[i]].text, *r = d->tokens[d->right[i]].text;
    if (form == 1 && i == d->n_letters && sabotage()) continue;
    if (form == 1 || (form == 2 && i % 2)) say(p, "%s['%s','%s']", comma, l, r);
    else say(p, "%s'%s %s'", comma, l, r);
  }
}

/* Where the ids of what the vocabulary lacks begin: its size. */
static unsigned first_added(const design *d) {
  return 256 + d->n_tokens - (d->family < 2 ? d->n_letters : 0);
}

/* The id that the vocabulary or the place in the list gives this name. */
static unsigned added_id(const design *d, const char *name, unsigned *next) {
  unsigned i = 0;
  while (i < d->n_tokens && strcmp(d->tokens[i].text, name) != 0) i++;
  if (i == d->n_tokens) return (*next)++;
  if (i >= d->n_letters) return d->ids[i];
  return d->family == 2 ? i : 'a' - 0x21; /* the only such letter of the bytes */
}

static void put_added(page *p, const design *d) {
  static const char *const word[] = {"false", "true"};
  unsigned next = first_added(d);
  for (unsigned i = 0; i < d->n_added; i++) {
    const unsigned f = d->added_flags[i], name = d->added_name[i];
    const unsigned id = added_id(d, added_names[name], &next);
    say(p, "%s{'id':%u,'content':'%s',", i == 0 ? "" : ",", f & 32 ? 97 : id, added_names[name]);
    say(p, "'single_word':%s,'lstrip':%s,'rstrip':%s,'normalized':%s,'special':%s}", word[f & 1],
        word[f >> 1 & 1], word[f >> 2 & 1], word[f >> 3 & 1], word[f >> 4 & 1]);
  }
}

static void put_part(page *p, const design *d, unsigned part, unsigned form) {
  switch (part) {
  case 0: say(p, "'normalizer':"), say(p, "%s", normalizers[d->normalizer]); break;
  case 1: say(p, "'pre_tokenizer':"), say(p, "%s", pre_tokenizers[d->pre_tokenizer]); break;
  case 2: say(p, "'decoder':"), say(p, "%s", decoders[d->decoder]); break;
  case 3: say(p, "'added_tokens':["), put_added(p, d), say(p, "]"); break;
  case 4: say(p, "'post_processor':"), say(p, posts[d->post], first_added(d)); break;
  default:
    say(p, "'model':{'type':'BPE',");
    say(p, "%s", model_flags[d->model_flags]);
    say(p, "%s'vocab':{", d->family == 2 ? "'byte_fallback':true," : "");
    put_vocab(p, d);
    say(p, "},'merges':[");
    put_merges(p, d, form);
    say(p, "]}");
  }
}

static void put_config(page *p, const design *d, unsigned form) {
  p->len = 0;
  say(p, "{'version':'1.0','truncation':null,'padding':null");
  for (unsigned i = 0; i < 6; i++) {
    say(p, "%s", form == 2 ? ", " : ",");
    put_part(p, d, form == 2 ? (i + d->order) % 6 : i, form);
  }
  say(p, "}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static page p;
  static design d;
  input in = {data, size};
  bpe_model *m[3];
  memset(&d, 0, sizeof d);
  take_design(&in, &d);
  if (in.left > MOST_TEXT) in.left = MOST_TEXT;
  const size_t blocks = fuzz_blocks;
  for (unsigned form = 0; form < 3; form++) {
    bpe_error e = {.status = BPE_OK};
    put_config(&p, &d, form);
    const bpe_status st = bpe_import(&fuzz_alloc, p.at, p.len, NULL, 0, NULL, &e, &m[form]);
    fuzz_check_error(st, &e);
    if (getenv("FUZZ_SHOW") != NULL) fprintf(stderr, "%.*s\n%s\n", (int)p.len, p.at, e.text);
    REQUIRE((st == BPE_OK) == (m[form] != NULL));
    if (form > 0)
      REQUIRE((m[0] == NULL) == (m[form] == NULL) && (m[0] == NULL || same_model(m[0], m[form])));
  }
  if (m[0] != NULL) {
    if (d.order % 4 == 0) check_exports(m[0]);
    check_text(m[0], in.at, in.left, false);
    check_text(m[0], in.at, in.left, true);
  }
  for (unsigned form = 0; form < 3; form++) bpe_model_free(m[form]);
  REQUIRE(fuzz_blocks == blocks);
  return 0;
}
