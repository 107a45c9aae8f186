/* store_input.c - what an INSERT into bpe_tokenizers says: a name, a schema, and a source as a
** model.
**
** A name is TEXT, not empty, without NUL, not reserved, not taken, and does not begin with what
** would be taken for a schema.
**
**   source           a file in one of the formats of bpe_import, told apart by its content
**   merges           merges.txt, where source is GPT-2's vocab.json
**   pattern          a named pattern    } where the source does not carry them; to say what it
**   special_tokens   JSON               } does carry is an error
**   options          {"regex": "..."} instead of pattern; {"whole": true}: a piece that is a token
**                    stays whole; {"vocab_size": k}: cut to what training to k would have given
**
** Nothing is guessed: a source without what it needs is refused, and NULL is "nothing to store",
** because it is what bpe_train gives when there were no rows.
*/
#include "ext.h"

#include <string.h>

/* ---- Names --------------------------------------------------------------------------------- */

int store_take_name(const store *s, sqlite3_value *v, failure *f, bytes *out) {
  char text[SHOWN_SIZE];
  if (sqlite3_value_type(v) != SQLITE_TEXT) {
    return fail(f, "name must be TEXT, not %s", value_type_name(v));
  }
  if (!value_bytes(v, out)) return fail_code(f, SQLITE_NOMEM);
  shown(*out, text);
  if (out->len == 0) return fail(f, "name must not be empty");
  if (memchr(out->data, 0, out->len)) return fail(f, "name must not hold a NUL: %s", text);
  if (!bpe_utf8_valid(out->data, out->len)) return fail(f, "name is not UTF-8: %s", text);
  if (name_is_reserved(*out))
    return fail(f, "name is a built-in encoding's or a model's: %s", text);
  bytes rest = *out;
  const int pinned = store_split(s, &rest);
  if (pinned < 0) return SQLITE_OK;
  return fail(f, "name begins with that of schema %s, which would be taken for it: %s",
              store_schema(s, pinned), text);
}

int store_refuse(store *s, int place, bytes name, failure *f) {
  stored_row row;
  char text[SHOWN_SIZE];
  if (store_seek_in(s, place, name, f, &row) != SQLITE_OK || !row.found) return f->rc;
  return fail(f, "tokenizer exists already: %s", shown(name, text));
}

int store_take_schema(const store *s, sqlite3_value *v, failure *f, int *place) {
  bytes name = {(const uint8_t *)"main", 4};
  char text[SHOWN_SIZE];
  if (!value_is_null(v) && sqlite3_value_type(v) != SQLITE_TEXT) {
    return fail(f, "schema must be TEXT, not %s", value_type_name(v));
  }
  if (!value_is_null(v) && !value_bytes(v, &name)) return fail_code(f, SQLITE_NOMEM);
  *place = store_find_schema(s, name);
  return *place >= 0 ? SQLITE_OK : fail(f, "no such schema: %s", shown(name, text));
}

/* ---- Sources ------------------------------------------------------------------------------- */

/* TEXT or BLOB; NULL is no bytes, and no address. */
static int take_bytes(sqlite3_value *v, const char *what, failure *f, bytes *out) {
  const int type = sqlite3_value_type(v);
  *out = (bytes){.data = NULL};
  if (type == SQLITE_NULL) return SQLITE_OK;
  if (type != SQLITE_TEXT && type != SQLITE_BLOB) {
    return fail(f, "%s must be TEXT or BLOB, not %s", what, value_type_name(v));
  }
  return value_bytes(v, out) ? SQLITE_OK : fail_code(f, SQLITE_NOMEM);
}

static int take_text(sqlite3_value *v, const char *what, failure *f, bytes *out) {
  *out = (bytes){.data = NULL};
  if (sqlite3_value_type(v) == SQLITE_BLOB) return fail(f, "%s must be TEXT, not BLOB", what);
  return take_bytes(v, what, f, out);
}

static int take_import_options(const store_input *in, const options *o, failure *f,
                               bpe_import_options *out) {
  bytes pattern, specials;
  if (take_text(in->pattern, "pattern", f, &pattern) != SQLITE_OK ||
      take_text(in->special_tokens, "special_tokens", f, &specials) != SQLITE_OK) {
    return f->rc;
  }
  if (pattern.data && o->has_pattern) return fail(f, "pattern and option regex exclude each other");
  *out = (bpe_import_options){
      .pattern = o->has_pattern ? o->pattern.text : (const char *)pattern.data,
      .pattern_len = o->has_pattern ? o->pattern.len : pattern.len,
      .pattern_is_regex = o->has_pattern,
      .special_tokens = (const char *)specials.data,
      .special_len = specials.len,
      .whole = o->whole,
  };
  return SQLITE_OK;
}

/* BPE_TOOBIG of a source is about the source, not about SQLite's limits. */
static int fail_source(failure *f, bpe_status st, const bpe_error *e) {
  return st == BPE_TOOBIG ? fail_text(f, e) : fail_status(f, st, e);
}

static int import(conn *c, const store_input *in, const options *o, failure *f, bpe_model **out) {
  bytes source, merges;
  bpe_import_options how;
  bpe_error e = {0};
  bpe_model *whole;
  if (value_is_null(in->source)) return fail(f, "nothing to store: source is NULL");
  if (take_bytes(in->source, "source", f, &source) != SQLITE_OK ||
      take_bytes(in->merges, "merges", f, &merges) != SQLITE_OK ||
      take_import_options(in, o, f, &how) != SQLITE_OK) {
    return f->rc;
  }
  bpe_status st =
      bpe_import(&c->alloc, source.data, source.len, merges.data, merges.len, &how, &e, &whole);
  if (st != BPE_OK) return fail_source(f, st, &e);
  if (o->vocab_size == 0) {
    *out = whole;
    return SQLITE_OK;
  }
  st = bpe_model_cut(whole, (uint32_t)o->vocab_size, &e, out);
  bpe_model_free(whole);
  return st == BPE_OK ? SQLITE_OK : fail_source(f, st, &e);
}

int store_import(conn *c, const store_input *in, failure *f, bpe_model **out) {
  options o;
  *out = NULL;
  if (options_parse(in->options, FOR_STORE, f, &o) == SQLITE_OK) import(c, in, &o, f, out);
  options_clear(&o);
  return f->rc;
}
