/* options.c - the JSON object that is the last argument of most functions.
**
** One table says which functions know a key; a key that the asking function does not know, a key
** said twice, a JSON null and a value of the wrong type are errors that name the key, so a
** misspelt option never means "the default". NULL, like an absent argument, is no options.
**
**     {"special": {"allow": ["<|endoftext|>"], "error": "rest"}, "document": true}
**
** Only what the text alone decides is checked here. Whether a name is a special token, or a regex
** compiles, is the core's question when call.c binds the options to a tokenizer.
*/
#include "ext.h"

#include <string.h>

enum {
  ENCODE_FAMILY = FOR_COUNT | FOR_ENCODE | FOR_ENCODE_BLOB | FOR_TOKENS | FOR_FITS | FOR_TRUNCATE |
                  FOR_CHUNKS | FOR_TRACE | FOR_STREAM | FOR_SHOW,
  DECODE_FAMILY = FOR_DECODE | FOR_DECODE_BLOB
};

static bool is(bytes text, const char *word) {
  return text.len == strlen(word) && memcmp(text.data, word, text.len) == 0;
}

static bool is_word(const json_value *v, const char *word) {
  return v->kind == JSON_STRING && is(v->text, word);
}

static bpe_name name_of(const json_value *v) {
  return (bpe_name){.text = (const char *)v->text.data, .len = v->text.len};
}

static int take_names(const json_value *array, const char *key, name_list *out, failure *f) {
  enum { NAME_WORK = 64 }; /* units */
  work w = {.f = f};
  out->names = sqlite3_malloc64((sqlite3_uint64)array->n * sizeof *out->names + 1);
  if (!out->names) return fail_code(f, SQLITE_NOMEM);
  for (const json_value *v = array->first; v; v = v->next) {
    if (work_stopped(&w, NAME_WORK)) return f->rc;
    if (v->kind != JSON_STRING || v->text.len == 0) {
      return fail(f, "option %s: item %llu of the array is no name", key,
                  (unsigned long long)out->n);
    }
    out->names[out->n++] = name_of(v);
  }
  return SQLITE_OK;
}

static int take_special_object(const json_value *object, options *o, failure *f) {
  for (const json_value *v = object->first; v; v = v->next) {
    char text[SHOWN_SIZE];
    if (is(v->key, "allow")) {
      if (is_word(v, "all")) o->allow_all = true;
      else if (v->kind == JSON_ARRAY) take_names(v, "special.allow", &o->allow, f);
      else fail(f, "option special.allow must be \"all\" or an array of names");
    } else if (is(v->key, "error")) {
      if (is_word(v, "rest")) o->forbid_rest = true;
      else if (v->kind == JSON_ARRAY) take_names(v, "special.error", &o->forbid, f);
      else fail(f, "option special.error must be \"rest\" or an array of strings");
    } else {
      fail(f, "no such option: special.%s", shown(v->key, text));
    }
    if (f->rc != SQLITE_OK) return f->rc;
  }
  return SQLITE_OK;
}

static int take_special(const json_value *v, options *o, failure *f) {
  if (v->kind == JSON_ARRAY) return take_names(v, "special", &o->allow, f);
  if (v->kind == JSON_OBJECT) return take_special_object(v, o, f);
  if (is_word(v, "text")) return SQLITE_OK;
  if (is_word(v, "allow")) {
    o->allow_all = true;
    return SQLITE_OK;
  }
  if (is_word(v, "error")) {
    o->forbid_all = true;
    return SQLITE_OK;
  }
  return fail(f, "option special must be \"text\", \"allow\", \"error\", an array of names or an "
                 "object");
}

static int take_decode_special(const json_value *v, options *o, failure *f) {
  if (is_word(v, "text")) o->specials = BPE_SPECIALS_TEXT;
  else if (is_word(v, "skip")) o->specials = BPE_SPECIALS_SKIP;
  else if (is_word(v, "error")) o->specials = BPE_SPECIALS_ERROR;
  else return fail(f, "option special must be \"text\", \"skip\" or \"error\"");
  return SQLITE_OK;
}

static int take_document(const json_value *v, options *o, failure *f) {
  if (v->kind != JSON_TRUE && v->kind != JSON_FALSE) {
    return fail(f, "option document must be true or false");
  }
  o->document = v->kind == JSON_TRUE;
  return SQLITE_OK;
}

static int hex_digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

static int take_digest(const json_value *v, options *o, failure *f) {
  const size_t n = sizeof o->digest;
  const uint8_t *text = v->text.data;
  bool good = v->kind == JSON_STRING && v->text.len == 2 * n;
  for (size_t i = 0; i < n && good; i++) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    if (good) o->digest[i] = (uint8_t)(high * 16 + low);
  }
  if (!good) return fail(f, "option digest must be a string of 64 hexadecimal digits");
  o->has_digest = true;
  return SQLITE_OK;
}

static int take_width(const json_value *v, options *o, failure *f) {
  if (v->kind == JSON_NUMBER && is(v->text, "16")) o->width = 16;
  else if (v->kind == JSON_NUMBER && is(v->text, "32")) o->width = 32;
  else return fail(f, "option width must be 16 or 32");
  return SQLITE_OK;
}

/* A JSON number of digits alone. One beyond SQL's integers is the greatest of them, as all that is
** counted here is less. */
static bool whole_number(const json_value *v, uint64_t *n) {
  bool good = v->kind == JSON_NUMBER;
  *n = 0;
  for (size_t i = 0; i < v->text.len && good; i++) {
    const uint8_t c = v->text.data[i];
    good = c >= '0' && c <= '9';
    const uint64_t digit = c - (uint64_t)'0';
    *n = *n > (INT64_MAX - digit) / 10 ? INT64_MAX : *n * 10 + digit;
  }
  return good;
}

static int take_pad_to(const json_value *v, options *o, failure *f) {
  if (!whole_number(v, &o->pad_to)) {
    return fail(f, "option pad_to must be a whole number, 0 or more");
  }
  o->has_pad_to = true;
  return SQLITE_OK;
}

static int take_pad(const json_value *v, options *o, failure *f) {
  if (v->kind != JSON_STRING) return fail(f, "option pad must be the name of a token");
  o->pad_name = name_of(v);
  o->pad = &o->pad_name;
  return SQLITE_OK;
}

static int take_errors(const json_value *v, options *o, failure *f) {
  if (is_word(v, "replace")) o->errors = BPE_REPAIR_REPLACE;
  else if (is_word(v, "strict")) o->errors = BPE_REPAIR_STRICT;
  else if (is_word(v, "ignore")) o->errors = BPE_REPAIR_IGNORE;
  else if (is_word(v, "hold")) o->errors = BPE_REPAIR_HOLD;
  else return fail(f, "option errors must be \"replace\", \"strict\", \"ignore\" or \"hold\"");
  return SQLITE_OK;
}

static int take_side(const json_value *v, options *o, failure *f) {
  if (!is_word(v, "left") && !is_word(v, "right")) {
    return fail(f, "option side must be \"left\" or \"right\"");
  }
  o->left = is_word(v, "left");
  return SQLITE_OK;
}

static int take_overlap(const json_value *v, options *o, failure *f) {
  if (whole_number(v, &o->overlap)) return SQLITE_OK;
  return fail(f, "option overlap must be a whole number, 0 or more");
}

static int take_at(const json_value *v, options *o, failure *f) {
  if (is_word(v, "token")) o->cut = BPE_CUT_TOKEN;
  else if (is_word(v, "piece")) o->cut = BPE_CUT_PIECE;
  else if (is_word(v, "sentence")) o->cut = BPE_CUT_SENTENCE;
  else if (is_word(v, "paragraph")) o->cut = BPE_CUT_PARAGRAPH;
  else return fail(f, "option at must be \"token\", \"piece\", \"sentence\" or \"paragraph\"");
  return SQLITE_OK;
}

static int take_split(const json_value *v, options *o, bool is_regex, failure *f) {
  const char *key = is_regex ? "regex" : "pattern";
  if (v->kind != JSON_STRING) return fail(f, "option %s must be a string", key);
  if (o->has_pattern) return fail(f, "options pattern and regex exclude each other");
  o->has_pattern = true;
  o->is_regex = is_regex;
  o->pattern = name_of(v);
  return SQLITE_OK;
}

static int take_pattern(const json_value *v, options *o, failure *f) {
  return take_split(v, o, false, f);
}

static int take_regex(const json_value *v, options *o, failure *f) {
  return take_split(v, o, true, f);
}

/* ---- bpe_train ------------------------------------------------------------------------------ */

static int take_flag(const json_value *v, const char *key, bool *out, failure *f) {
  if (v->kind != JSON_TRUE && v->kind != JSON_FALSE) {
    return fail(f, "option %s must be true or false", key);
  }
  *out = v->kind == JSON_TRUE;
  return SQLITE_OK;
}

static int take_pretokenized(const json_value *v, options *o, failure *f) {
  return take_flag(v, "pretokenized", &o->train.pretokenized, f);
}

static int take_progress(const json_value *v, options *o, failure *f) {
  return take_flag(v, "progress", &o->train.progress, f);
}

static int take_list(const json_value *v, const char *key, name_list *out, failure *f) {
  if (v->kind != JSON_ARRAY) return fail(f, "option %s must be an array of names", key);
  return take_names(v, key, out, f);
}

static int take_special_tokens(const json_value *v, options *o, failure *f) {
  return take_list(v, "special_tokens", &o->train.special_tokens, f);
}

static int take_bos(const json_value *v, options *o, failure *f) {
  return take_list(v, "bos", &o->train.bos, f);
}

static int take_eos(const json_value *v, options *o, failure *f) {
  return take_list(v, "eos", &o->train.eos, f);
}

static int take_special_ids(const json_value *v, options *o, failure *f) {
  if (is_word(v, "last")) o->train.special_ids = BPE_PLACE_LAST;
  else if (is_word(v, "first")) o->train.special_ids = BPE_PLACE_FIRST;
  else if (is_word(v, "after_bytes")) o->train.special_ids = BPE_PLACE_AFTER_BYTES;
  else return fail(f, "option special_ids must be \"last\", \"first\" or \"after_bytes\"");
  return SQLITE_OK;
}

static int take_byte_order(const json_value *v, options *o, failure *f) {
  if (!is_word(v, "raw") && !is_word(v, "gpt2")) {
    return fail(f, "option byte_order must be \"raw\" or \"gpt2\"");
  }
  o->train.gpt2_bytes = is_word(v, "gpt2");
  return SQLITE_OK;
}

static int take_tie(const json_value *v, options *o, failure *f) {
  if (is_word(v, "bytes")) o->train.tie = BPE_TIE_BYTES;
  else if (is_word(v, "ids")) o->train.tie = BPE_TIE_IDS;
  else if (is_word(v, "first")) o->train.tie = BPE_TIE_FIRST;
  else return fail(f, "option tie must be \"bytes\", \"ids\" or \"first\"");
  return SQLITE_OK;
}

static int take_min_frequency(const json_value *v, options *o, failure *f) {
  if (whole_number(v, &o->train.min_frequency)) return SQLITE_OK;
  return fail(f, "option min_frequency must be a whole number, 0 or more");
}

static int take_max_token_length(const json_value *v, options *o, failure *f) {
  uint64_t *n = &o->train.max_token_length;
  if (whole_number(v, n) && *n > 0) return SQLITE_OK;
  return fail(f, "option max_token_length must be a whole number, 1 or more");
}

static int take_threads(const json_value *v, options *o, failure *f) {
  uint64_t n;
  if (!whole_number(v, &n) || n > BPE_MOST_THREADS) {
    return fail(f, "option threads must be a whole number, 0 to %d", BPE_MOST_THREADS);
  }
  o->train.threads = (unsigned)n;
  return SQLITE_OK;
}

/* ---- bpe_tokenizers ------------------------------------------------------------------------- */

static int take_whole(const json_value *v, options *o, failure *f) {
  return take_flag(v, "whole", &o->whole, f);
}

static int take_vocab_size(const json_value *v, options *o, failure *f) {
  if (whole_number(v, &o->vocab_size) && o->vocab_size > 0 && o->vocab_size < BPE_NONE) {
    return SQLITE_OK;
  }
  return fail(f, "option vocab_size must be a whole number, 1 or more");
}

static const struct key {
  const char *name;
  int who;
  int (*take)(const json_value *, options *, failure *);
} keys[] = {
    {"special", ENCODE_FAMILY | FOR_PIECES, take_special},
    {"special", DECODE_FAMILY, take_decode_special},
    {"document", ENCODE_FAMILY | DECODE_FAMILY, take_document},
    {"digest", ENCODE_FAMILY, take_digest},
    {"width", FOR_ENCODE_BLOB | DECODE_FAMILY, take_width},
    {"pad_to", FOR_ENCODE_BLOB, take_pad_to},
    {"pad", FOR_ENCODE_BLOB, take_pad},
    {"side", FOR_TRUNCATE, take_side},
    {"overlap", FOR_CHUNKS, take_overlap},
    {"at", FOR_CHUNKS, take_at},
    {"errors", FOR_DECODE, take_errors},
    {"pattern", FOR_PIECES | FOR_TRAIN, take_pattern},
    {"regex", FOR_PIECES | FOR_STORE | FOR_TRAIN, take_regex},
    {"whole", FOR_STORE, take_whole},
    {"vocab_size", FOR_STORE, take_vocab_size},
    {"pretokenized", FOR_TRAIN, take_pretokenized},
    {"special_tokens", FOR_TRAIN, take_special_tokens},
    {"special_ids", FOR_TRAIN, take_special_ids},
    {"bos", FOR_TRAIN, take_bos},
    {"eos", FOR_TRAIN, take_eos},
    {"byte_order", FOR_TRAIN, take_byte_order},
    {"tie", FOR_TRAIN, take_tie},
    {"min_frequency", FOR_TRAIN, take_min_frequency},
    {"max_token_length", FOR_TRAIN, take_max_token_length},
    {"threads", FOR_TRAIN, take_threads},
    {"progress", FOR_TRAIN, take_progress},
};

static const struct key *find_key(bytes name, int who) {
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    if ((keys[i].who & who) && is(name, keys[i].name)) return &keys[i];
  }
  return NULL;
}

static int take_object(const json_value *root, int who, options *o, failure *f) {
  for (const json_value *v = root->first; v; v = v->next) {
    const struct key *k = find_key(v->key, who);
    char text[SHOWN_SIZE];
    if (!k) return fail(f, "no such option: %s", shown(v->key, text));
    if (v->kind == JSON_NULL) return fail(f, "option %s must not be null", k->name);
    if (k->take(v, o, f) != SQLITE_OK) return f->rc;
  }
  if (o->has_pad_to && !o->pad) return fail(f, "option pad_to needs option pad");
  if (o->pad && !o->has_pad_to) return fail(f, "option pad needs option pad_to");
  return SQLITE_OK;
}

int options_parse(sqlite3_value *v, int who, failure *f, options *out) {
  *out = (options){.width = 32};
  if (!v || value_is_null(v)) return SQLITE_OK;
  bytes text;
  if (sqlite3_value_type(v) != SQLITE_TEXT) {
    return fail(f, "options must be a JSON object (TEXT), not %s", value_type_name(v));
  }
  if (!value_bytes(v, &text)) return fail_code(f, SQLITE_NOMEM);
  if (json_parse(text, "options are not a JSON object", f, &out->doc) != SQLITE_OK) return f->rc;
  if (out->doc.root->kind != JSON_OBJECT) return fail(f, "options must be a JSON object");
  return take_object(out->doc.root, who, out, f);
}

void options_clear(options *o) {
  sqlite3_free(o->allow.names);
  sqlite3_free(o->forbid.names);
  sqlite3_free(o->train.special_tokens.names);
  sqlite3_free(o->train.bos.names);
  sqlite3_free(o->train.eos.names);
  json_doc_clear(&o->doc);
  *o = (options){.width = 32};
}
