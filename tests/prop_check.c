/* prop_check.c - see prop_check.h.
**
** Expected is what the oracle says, with BOS and EOS put around it; got is what a walk said. Both
** are kept after a check, so that a failure can show them.
*/
#include "prop_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FOUND = 2048, LONG_PIECE = 1024, MAX_SHOWN = 60 };

static oracle_result expected, got, plain;     /* of the text */
static oracle_result expected2, got2;          /* of the second walk's */
static const char *checked; /* the part of the check that ran last */

/* ---- Modes ----------------------------------------------------------------------------------- */

prop_mode prop_mode_random(prop_rng *rng, const prop_subject *s) {
  const bool odd = prop_one_in(rng, 16);
  const uint32_t allow = prop_below(rng, 16);
  return (prop_mode){
    .allow = allow < 6 ? PROP_ALLOW_ALL : allow < 8 ? PROP_ALLOW_SOME : PROP_ALLOW_NONE,
    .subset = prop_next(rng),
    .forbid = prop_one_in(rng, 10),
    .document = s->n_bos + s->n_eos > 0 && prop_one_in(rng, 3),
    .by_turns = odd,
    .pattern = prop_one_in(rng, 12) ? 1 + prop_below(rng, (uint32_t)s->world->n_others) : 0,
    .tiny = prop_one_in(rng, 4),
  };
}

void prop_mode_print(const prop_mode *m, const prop_subject *s) {
  static const char *const allow[] = {"nothing", "some", "everything"};
  printf("%s allowed%s%s%s%s%s%s\n", allow[m->allow], m->forbid ? ", the rest forbidden" : "",
         m->document ? ", as a document" : "", m->by_turns ? ", two walks by turns" : "",
         m->tiny ? ", tiny piece table" : "", m->pattern ? ", pattern " : "",
         m->pattern ? s->world->other_name[m->pattern - 1] : "");
}

/* ---- What is allowed and forbidden ----------------------------------------------------------- */

/* The specials of this case: those that are found, and, apart, those that are forbidden. */
typedef struct rules {
  oracle_special found[MAX_FOUND], forbidden[MAX_FOUND];
  bpe_name names[MAX_FOUND]; /* of the special tokens among `found` */
  size_t n_found, n_forbidden, n_names;
  bpe_finder *allow, *forbid; /* owned, but for allow == subject.all */
} rules;

static rules r;

static const char *make_rules(const prop_subject *s, const prop_mode *mode) {
  r.n_found = r.n_forbidden = r.n_names = 0;
  for (size_t i = 0; i < s->n_found; i++) {
    const bool added = i < s->n_added;
    const bool allowed = mode->allow == PROP_ALLOW_ALL ||
                         (mode->allow == PROP_ALLOW_SOME && (mode->subset >> (i % 64) & 1));
    if (added || allowed) r.found[r.n_found++] = s->found[i];
    if (allowed && !added) r.names[r.n_names++] = (bpe_name){s->found[i].text, s->found[i].len};
    if (!added && !allowed && mode->forbid) r.forbidden[r.n_forbidden++] = s->found[i];
  }
  bpe_error e = {0};
  r.allow = mode->allow == PROP_ALLOW_ALL ? s->all : NULL;
  r.forbid = NULL;
  if (mode->allow == PROP_ALLOW_SOME &&
      bpe_finder_new(s->model, r.names, r.n_names, &e, &r.allow) != BPE_OK) {
    return "finder of some names refused";
  }
  if (mode->forbid && bpe_finder_new_forbidden(s->model, NULL, 0, r.names, r.n_names, &e,
                                               &r.forbid) != BPE_OK) {
    return "finder of forbidden names refused";
  }
  return NULL;
}

static void clear_rules(const prop_subject *s) {
  if (r.allow != s->all) bpe_finder_free(r.allow);
  bpe_finder_free(r.forbid);
}

/* Where the first forbidden special begins; len: nowhere. */
static size_t find_forbidden(const uint8_t *text, size_t len) {
  for (size_t at = 0; at < len && r.n_forbidden > 0; at++) {
    for (size_t i = 0; i < r.n_forbidden; i++) {
      const oracle_special *f = &r.forbidden[i];
      if (f->len <= len - at && memcmp(text + at, f->text, f->len) == 0) return at;
    }
  }
  return len;
}

/* ---- Expected and got ------------------------------------------------------------------------ */

static void put_piece(oracle_result *out, oracle_piece piece, const uint32_t *ids) {
  if (out->n_pieces == out->cap_pieces) {
    out->cap_pieces = out->cap_pieces * 2 + 64;
    out->pieces = oracle_realloc(out->pieces, out->cap_pieces * sizeof *out->pieces);
  }
  piece.first = out->ids.n;
  for (size_t i = 0; i < piece.n; i++) oracle_list_add(&out->ids, ids[i]);
  out->pieces[out->n_pieces++] = piece;
}

/* The oracle's answer, with BOS and EOS if it is for a document. */
static void expect(const prop_subject *s, const prop_mode *mode, const uint8_t *text, size_t len,
                   oracle_result *out) {
  oracle_model m = s->oracle;
  if (mode->pattern) m.regex = s->world->other_regex[mode->pattern - 1];
  if (!mode->document) {
    oracle_encode(&m, text, len, r.found, r.n_found, out);
    return;
  }
  oracle_encode(&m, text, len, r.found, r.n_found, &plain);
  out->n_pieces = out->ids.n = 0;
  out->failed = plain.failed;
  out->failed_at = plain.failed_at;
  if (s->n_bos > 0) put_piece(out, (oracle_piece){.n = s->n_bos, .special = true}, s->bos);
  for (size_t i = 0; i < plain.n_pieces; i++) {
    put_piece(out, plain.pieces[i], plain.ids.at + plain.pieces[i].first);
  }
  if (s->n_eos == 0 || plain.failed) return;
  put_piece(out, (oracle_piece){.start = len, .stop = len, .n = s->n_eos, .special = true}, s->eos);
}

/* One walk under way. */
typedef struct run {
  bpe_walk *walk;
  oracle_result *got;
  bpe_status status;
  bpe_error error;
} run;

static void run_start(run *w, const uint8_t *text, size_t len, const bpe_walk_options *o) {
  w->got->n_pieces = w->got->ids.n = 0;
  w->error = (bpe_error){0};
  w->status = bpe_walk_start(w->walk, text, len, o, &w->error);
}

static void run_step(run *w) {
  bpe_piece p;
  if (w->status != BPE_OK) return;
  w->status = bpe_walk_next(w->walk, &p, &w->error);
  if (w->status != BPE_OK) return;
  put_piece(w->got, (oracle_piece){.start = p.start, .stop = p.stop, .n = p.n_ids,
                                   .special = p.special}, p.ids);
}

static const char *compare(const run *w, const oracle_result *want) {
  const oracle_result *have = w->got;
  /* Of a piece with a byte that is no token nothing is told. */
  const size_t n = want->n_pieces - (want->failed ? 1 : 0);
  if (want->failed) {
    if (w->status != BPE_BADTEXT) return "no error for a byte without token";
    if (w->error.offset != want->failed_at) return "wrong offset of a byte without token";
  } else if (w->status != BPE_DONE) {
    return "the walk failed";
  }
  for (size_t i = 0; i < n && i < have->n_pieces; i++) {
    const oracle_piece *a = &want->pieces[i], *b = &have->pieces[i];
    if (a->start != b->start || a->stop != b->stop) return "pieces differ";
    if (a->special != b->special) return "special differs";
    if (a->n != b->n || memcmp(want->ids.at + a->first, have->ids.at + b->first,
                               a->n * sizeof *want->ids.at) != 0) {
      return "ids differ";
    }
  }
  return n == have->n_pieces ? NULL : "number of pieces differs";
}

/* Pieces tile the text, and the tokens' bytes tile each piece. It says the same as compare only
** if the oracle is right; so it is asked for itself. */
static const char *check_tiling(const prop_subject *s, const uint8_t *text, size_t len) {
  size_t at = 0;
  for (size_t i = 0; i < got.n_pieces; i++) {
    const oracle_piece *p = &got.pieces[i];
    if (p->start != at || p->stop < p->start) return "pieces do not tile the text";
    for (size_t k = 0; k < p->n && !p->special; k++) {
      const size_t entry = bpe_model_find_id(s->model, got.ids.at[p->first + k]);
      const bpe_token t = bpe_model_token(s->model, entry);
      if (t.len > p->stop - at || memcmp(t.bytes, text + at, t.len) != 0) {
        return "tokens are not the text's bytes";
      }
      at += t.len;
    }
    if (p->special) at = p->stop;
    if (at != p->stop) return "tokens do not tile the piece";
  }
  return expected.failed || at == len ? NULL : "pieces end early";
}

/* ---- The checks ------------------------------------------------------------------------------ */

static const char *check_walks(prop_subject *s, bpe_coder *coder, const prop_mode *mode,
                               const uint8_t *text, size_t len, const bpe_walk_options *o) {
  run a = {.got = &got}, b = {.got = &got2, .status = BPE_DONE};
  const char *what = NULL;
  bpe_error e = {0};
  if (bpe_walk_new(coder, &e, &a.walk) != BPE_OK) return "no walk";
  if (mode->by_turns && bpe_walk_new(coder, &e, &b.walk) != BPE_OK) return "no second walk";
  checked = "walk";
  run_start(&a, text, len, o);
  if (mode->by_turns) run_start(&b, text + len / 2, len - len / 2, o);
  while (a.status == BPE_OK || b.status == BPE_OK) {
    run_step(&a);
    run_step(&b);
  }
  what = compare(&a, &expected);
  if (!what) what = check_tiling(s, text, len);
  if (!what && mode->by_turns) {
    checked = "second walk, on the second half";
    expect(s, mode, text + len / 2, len - len / 2, &expected2);
    what = compare(&b, &expected2);
  }
  if (!what && !expected.failed) {
    checked = "the same walk again, for pieces only";
    bpe_walk_options split_only = *o;
    split_only.split_only = true;
    run_start(&a, text, len, &split_only);
    while (a.status == BPE_OK) run_step(&a);
    if (got.n_pieces != expected.n_pieces) what = "number of pieces differs";
    for (size_t i = 0; !what && i < got.n_pieces; i++) {
      if (got.pieces[i].stop != expected.pieces[i].stop) what = "pieces differ";
    }
  }
  bpe_walk_free(a.walk);
  bpe_walk_free(b.walk);
  return what;
}

/* Count, JSON and packed ids, each of which must fail like the walk if that failed. */
static const char *check_whole(bpe_coder *coder, const uint8_t *text, size_t len,
                               const bpe_walk_options *o, bpe_buffer *out) {
  const bpe_status want = expected.failed ? BPE_BADTEXT : BPE_OK;
  const uint32_t *ids = expected.ids.at;
  const size_t n = expected.ids.n;
  uint64_t count;
  checked = "count";
  if (bpe_count(coder, text, len, o, NULL, &count) != want) return "status";
  if (!expected.failed && count != n) return "count differs";
  checked = "JSON";
  if (bpe_encode_json(coder, text, len, o, NULL, out) != want) return "status";
  size_t at = 1;
  for (size_t i = 0; !expected.failed && i < n; i++) {
    char number[16];
    const size_t digits = (size_t)snprintf(number, sizeof number, "%u%c", ids[i],
                                           i + 1 < n ? ',' : ']');
    if (out->len < at + digits || memcmp(out->bytes + at, number, digits) != 0) return "differs";
    at += digits;
  }
  if (!expected.failed && out->len != at + (n == 0)) return "length differs";
  out->len = 0;
  checked = "packed, 32 bits";
  if (bpe_encode_packed(coder, text, len, 32, o, NULL, out) != want) return "status";
  if (expected.failed) return NULL;
  bool fits = true;
  if (out->len != 4 * n) return "length differs";
  for (size_t i = 0; i < n; i++) {
    const uint8_t *p = out->bytes + 4 * i;
    const uint32_t id = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    if (id != ids[i]) return "differs";
    fits = fits && id <= 0xffff;
  }
  out->len = 0;
  checked = "packed, 16 bits";
  const bpe_status st = bpe_encode_packed(coder, text, len, 16, o, NULL, out);
  if (!fits) return st == BPE_OK ? "an id that does not fit was written" : NULL;
  if (st != BPE_OK) return "status";
  if (out->len != 2 * n) return "length differs";
  for (size_t i = 0; i < n; i++) {
    if ((out->bytes[2 * i] | out->bytes[2 * i + 1] << 8) != (int)ids[i]) return "differs";
  }
  return NULL;
}

static bool is_control(const prop_subject *s, uint32_t id) {
  for (size_t i = 0; i < s->n_bos; i++) {
    if (s->bos[i] == id) return true;
  }
  for (size_t i = 0; i < s->n_eos; i++) {
    if (s->eos[i] == id) return true;
  }
  return false;
}

/* The ids give the text back; a special whose id has several names gives the first of them. */
static const char *check_decode(const prop_subject *s, const prop_mode *mode, const uint8_t *text,
                                bpe_buffer *out) {
  checked = "decode";
  bool interior = false;
  const bpe_status st = bpe_decode(s->model, expected.ids.at, expected.ids.n, BPE_SPECIALS_TEXT,
                                   mode->document, NULL, NULL, NULL, out);
  size_t at = 0;
  for (size_t i = 0; i < expected.n_pieces; i++) {
    const oracle_piece *p = &expected.pieces[i];
    const uint8_t *bytes = text + p->start;
    size_t len = p->stop - p->start;
    if (mode->document && p->special && len == 0) continue;
    if (mode->document && p->special && is_control(s, expected.ids.at[p->first])) interior = true;
    for (size_t k = 0; p->special && k < s->n_found; k++) {
      if (s->found[k].id != expected.ids.at[p->first]) continue;
      bytes = (const uint8_t *)s->found[k].text;
      len = s->found[k].len;
      break;
    }
    if (interior) break;
    if (st == BPE_OK) {
      if (out->len - at < len || memcmp(out->bytes + at, bytes, len) != 0) return "differs";
      at += len;
    }
  }
  if (interior) return st == BPE_BADTOKEN ? NULL : "control inside a document was accepted";
  if (st != BPE_OK) return "status";
  return at == out->len ? NULL : "length differs";
}

static void add_counts(prop_counts *c, const prop_mode *mode, size_t len, bool forbidden) {
  c->allowed += mode->allow != PROP_ALLOW_NONE;
  c->forbidden += forbidden;
  c->document += mode->document;
  c->by_turns += mode->by_turns;
  c->pattern += mode->pattern > 0;
  c->bytes += len;
  if (forbidden) return;
  c->untokenized += expected.failed;
  c->pieces += expected.n_pieces;
  c->ids += expected.ids.n;
  bool found = false;
  for (size_t i = 0; i < expected.n_pieces; i++) {
    const oracle_piece *p = &expected.pieces[i];
    if (p->stop - p->start >= LONG_PIECE) c->long_bytes += p->stop - p->start;
    found = found || (p->special && p->stop > p->start);
  }
  c->found += found;
}

const char *prop_check(prop_subject *s, const prop_mode *mode, const uint8_t *text, size_t len,
                       prop_counts *counts) {
  bpe_buffer out;
  bpe_coder *coder = mode->tiny ? s->tiny : s->coder;
  expected.n_pieces = expected.ids.n = got.n_pieces = got.ids.n = 0;
  checked = "rules";
  const char *what = make_rules(s, mode);
  const bpe_walk_options o = {
    .allowed = r.allow, .forbidden = r.forbid, .document = mode->document,
    .pattern = mode->pattern ? s->world->other[mode->pattern - 1] : NULL};
  const size_t forbidden = find_forbidden(text, len);
  bpe_buffer_init(&out, &s->world->alloc, 0);
  if (!what && forbidden < len) {
    bpe_error e = {0};
    uint64_t n;
    checked = "forbidden text";
    if (bpe_count(coder, text, len, &o, &e, &n) != BPE_BADTEXT) what = "no error";
    else if (e.offset != forbidden) what = "wrong offset";
  } else if (!what) {
    expect(s, mode, text, len, &expected);
    what = check_walks(s, coder, mode, text, len, &o);
    if (!what) what = check_whole(coder, text, len, &o, &out);
    out.len = 0;
    if (!what && !expected.failed) what = check_decode(s, mode, text, &out);
  }
  if (counts) add_counts(counts, mode, len, forbidden < len);
  bpe_buffer_clear(&out);
  clear_rules(s);
  return what;
}

/* ---- Showing --------------------------------------------------------------------------------- */

static void print_result(const char *label, const oracle_result *x) {
  printf("    %s: %zu pieces, %zu ids:", label, x->n_pieces, x->ids.n);
  for (size_t i = 0, shown = 0; i < x->n_pieces && shown < MAX_SHOWN; i++) {
    const oracle_piece *p = &x->pieces[i];
    printf(" %zu-%zu%s[", p->start, p->stop, p->special ? "*" : "");
    for (size_t k = 0; k < p->n && shown < MAX_SHOWN; k++, shown++) {
      printf("%s%u", k ? " " : "", x->ids.at[p->first + k]);
    }
    printf("]");
  }
  if (x->failed) printf(" no token for byte %zu", x->failed_at);
  printf("\n");
}

void prop_check_print(void) {
  const bool second = strncmp(checked, "second", 6) == 0;
  printf("  in %s\n", checked);
  print_result("expected", second ? &expected2 : &expected);
  print_result("got     ", second ? &got2 : &got);
}

void prop_check_clear(void) {
  oracle_result_clear(&expected);
  oracle_result_clear(&expected2);
  oracle_result_clear(&got);
  oracle_result_clear(&got2);
  oracle_result_clear(&plain);
}
