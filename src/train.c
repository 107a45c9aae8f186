/* train.c - the trainer of bpe.h: options, rows in, the two phases, the model out.
**
**     bpe_trainer_add     rows --> crew: pieces and their counts
**     bpe_trainer_finish  pieces --> train_start, train_queue, train_merge_pair --> bpe_builder
**
** Ids: the 256 bytes, the merges in the order they were learned, and the special tokens as given,
** which stand before, between or after them (bpe_place). That no two tokens have equal bytes, and
** that each token, taken as one piece, merges to itself, follows from the definition: when (l, r)
** is merged, l and r are what the merges so far make of these bytes, and of these bytes alone;
** from then on merging makes one token of them, so no later pair can spell them again.
*/
#include "crew.h"
#include "model.h"
#include "pool.h"
#include "train_queue.h"

enum { MAX_VOCAB = INT32_MAX, PROGRESS_NS = 100000000 };

/* Units of work: of a name that is looked at, copied, looked up; of a piece that is added up, of a
** new pair. */
enum { NAME_WORK = 2, COPY_WORK = 32, FIND_WORK = 128, PIECE_WORK = 8, PAIR_WORK = 32 };

struct bpe_trainer {
  bpe_alloc alloc;
  bpe_train_options o;  /* what it points at is copied: */
  bpe_pattern *pattern; /* owned, as is all below; what the model gets */
  bpe_pattern *none;    /* what is applied when texts are pieces */
  bpe_finder *finder;
  bpe_name *specials; /* the texts lie behind the list */
  uint32_t *wraps;    /* BOS, then EOS */
  crew *crew;
  uint32_t wanted;      /* merges */
  uint64_t rows, bytes; /* bytes: of all texts, which is where the next one's place begins */
  uint64_t started, counted, next_progress; /* nanoseconds */
  bpe_status status;                        /* the first failure */
  bpe_error error;
};

/* ---- Making one ---------------------------------------------------------------------------- */

static bpe_status copy_specials(bpe_trainer *t, const bpe_train_options *o, bpe_error *e) {
  pace p = pace_of(&t->alloc);
  size_t bytes = 0, size;
  for (size_t i = 0; i < o->n_specials && !pace_stopped(&p, NAME_WORK); i++) {
    if (o->specials[i].len == 0) return set_error(e, BPE_MISUSE, i, "empty special token");
    if (!size_add(bytes, o->specials[i].len, &bytes)) return set_nomem(e);
  }
  if (p.stopped) return set_stopped(e);
  if (o->n_specials > MAX_VOCAB || !size_add(bytes, o->n_specials * sizeof(bpe_name), &size))
    return set_nomem(e);
  t->specials = mem_new(&t->alloc, size, 1);
  if (t->specials == NULL) return set_nomem(e);
  bpe_status st = special_new(&t->alloc, e, &t->finder);
  if (st != BPE_OK) return st;
  char *to = (char *)(t->specials + o->n_specials);
  for (size_t i = 0; i < o->n_specials && st == BPE_OK; i++) {
    const bpe_name *x = &o->specials[i];
    memcpy(to, x->text, x->len);
    t->specials[i] = (bpe_name){to, x->len};
    to += x->len;
    st = special_add(t->finder, x->text, x->len, (uint32_t)i, 0, e);
    if (st == BPE_OK) st = pace_add(&p, COPY_WORK + x->len, e);
  }
  if (st != BPE_OK) return st;
  if ((st = special_seal(t->finder, e)) != BPE_OK) return st;
  for (size_t i = 0; i < o->n_specials; i++) {
    const bpe_name *x = &t->specials[i];
    quoted q;
    if (special_id(t->finder, x->text, x->len, NULL) != i)
      return set_error(e, BPE_MISUSE, i, "special token is given twice: %s",
                       quote_bytes(&q, x->text, x->len));
    if ((st = pace_add(&p, FIND_WORK + x->len, e)) != BPE_OK) return st;
  }
  t->o.specials = t->specials;
  return BPE_OK;
}

static bpe_status copy_wraps(bpe_trainer *t, const bpe_train_options *o, bpe_error *e) {
  if (o->n_bos > BPE_MOST_AROUND || o->n_eos > BPE_MOST_AROUND)
    return set_error(e, BPE_MISUSE, BPE_MOST_AROUND,
                     "more than %d tokens before or after a document", BPE_MOST_AROUND);
  t->wraps = mem_new(&t->alloc, o->n_bos + o->n_eos, sizeof *t->wraps);
  if (t->wraps == NULL) return set_nomem(e);
  for (size_t i = 0; i < o->n_bos; i++) t->wraps[i] = o->bos[i];
  for (size_t i = 0; i < o->n_eos; i++) t->wraps[o->n_bos + i] = o->eos[i];
  for (size_t i = 0; i < o->n_bos + o->n_eos; i++)
    if (t->wraps[i] >= o->n_specials)
      return set_error(e, BPE_MISUSE, i, "BOS or EOS is no special token");
  t->o.bos = t->wraps;
  t->o.eos = t->wraps + o->n_bos;
  return BPE_OK;
}

static bpe_status make_patterns(bpe_trainer *t, const bpe_train_options *o, bpe_error *e) {
  static const char standard[] = "o200k", none[] = "none";
  const char *text = o->pattern != NULL ? o->pattern : standard;
  const size_t len = o->pattern != NULL ? o->pattern_len : sizeof standard - 1;
  bpe_status st = bpe_pattern_new(&t->alloc, text, len, o->is_regex, e, &t->pattern);
  if (st == BPE_OK && o->pretokenized)
    st = bpe_pattern_new(&t->alloc, none, sizeof none - 1, false, e, &t->none);
  t->o.pattern = NULL;
  return st;
}

static bpe_status hire(bpe_trainer *t, bpe_error *e) {
  static const char whitespace[] = "whitespace";
  const bpe_pattern *p = t->pattern;
  unsigned threads = t->o.threads != 0 ? t->o.threads : pool_cores();
  if (threads > BPE_MOST_THREADS) threads = BPE_MOST_THREADS;
  const crew_options o = {
      .n_workers = threads - 1,
      .rules = {.specials = t->o.n_specials > 0 ? t->finder : NULL,
                .skip_space = p->scan != NULL && p->len == sizeof whitespace - 1 &&
                              memcmp(p->text, whitespace, p->len) == 0},
      .pattern = t->none != NULL ? t->none : p,
      .keep_rows = t->none != NULL,
      .stop = t->o.stop,
      .stop_ctx = t->o.stop_ctx,
  };
  return crew_new(&t->alloc, &o, e, &t->crew);
}

bpe_status bpe_trainer_new(const bpe_alloc *a, uint32_t vocab_size, const bpe_train_options *o,
                           bpe_error *e, bpe_trainer **out) {
  *out = NULL;
  if (vocab_size > MAX_VOCAB)
    return set_error(e, BPE_MISUSE, 0, "vocab_size must be less than 2^31: %lu",
                     (unsigned long)vocab_size);
  if (vocab_size < 256 + o->n_specials)
    return set_error(e, BPE_MISUSE, 0,
                     "vocab_size is too small for 256 bytes and %lu special tokens: %lu",
                     (unsigned long)o->n_specials, (unsigned long)vocab_size);
  bpe_trainer *t = mem_zero(a, 1, sizeof *t);
  if (t == NULL) return set_nomem(e);
  t->alloc = *a;
  t->o = *o;
  t->wanted = vocab_size - 256 - (uint32_t)o->n_specials;
  t->started = pool_clock();
  bpe_status st = copy_specials(t, o, e);
  if (st == BPE_OK) st = copy_wraps(t, o, e);
  if (st == BPE_OK) st = make_patterns(t, o, e);
  if (st == BPE_OK) st = hire(t, e);
  if (st != BPE_OK) {
    bpe_trainer_free(t);
    return st;
  }
  *out = t;
  return BPE_OK;
}

void bpe_trainer_free(bpe_trainer *t) {
  if (t == NULL) return;
  const bpe_alloc a = t->alloc;
  crew_free(t->crew);
  bpe_pattern_free(t->pattern);
  bpe_pattern_free(t->none);
  bpe_finder_free(t->finder);
  mem_free(&a, t->specials);
  mem_free(&a, t->wraps);
  mem_free(&a, t);
}

/* ---- Rows ---------------------------------------------------------------------------------- */

static bpe_status keep_failure(bpe_trainer *t, bpe_status st, const bpe_error *own, bpe_error *e) {
  if (st == BPE_OK) return st;
  if (t->status == BPE_OK) {
    t->status = st;
    t->error = *own;
  }
  return set_error(e, t->status, t->error.offset, "%s", t->error.text);
}

/* Tells how far it is, not more often than anyone can read. */
static void report(bpe_trainer *t, const train_state *s, bool now) {
  if (t->o.progress == NULL) return;
  const uint64_t clock = pool_clock();
  if (!now && clock < t->next_progress) return;
  t->next_progress = clock + PROGRESS_NS;
  const bpe_train_progress p = {
      .merging = s != NULL,
      .rows = t->rows,
      .bytes = t->bytes,
      .distinct = crew_total(t->crew)->n,
      .merges = s != NULL ? (uint32_t)s->n_merges : 0,
      .wanted = t->wanted,
      .count_ns = (s != NULL ? t->counted : clock) - t->started,
      .merge_ns = s != NULL ? clock - t->counted : 0,
  };
  t->o.progress(t->o.progress_ctx, &p);
}

bpe_status bpe_trainer_add(bpe_trainer *t, const void *text, size_t len, uint64_t weight,
                           bpe_error *e) {
  bpe_error own = {.status = BPE_OK};
  if (t->status != BPE_OK) return keep_failure(t, t->status, &own, e);
  if (weight == 0) return BPE_OK;
  bpe_status st;
  if (weight > COUNT_MAX) st = set_error(&own, BPE_MISUSE, 0, "weight is over 2^63 - 1");
  else if (len > COUNT_MAX - t->bytes)
    st = set_error(&own, BPE_TOOBIG, 0, "more than 2^63 - 1 bytes of text");
  else st = crew_add(t->crew, text, len, weight, t->bytes, &own);
  if (st != BPE_OK) return keep_failure(t, st, &own, e);
  t->rows++;
  t->bytes += len;
  report(t, NULL, false);
  return BPE_OK;
}

/* ---- The model ----------------------------------------------------------------------------- */

/* Bytes in the order of their ids. */
static void order_bytes(bool gpt2, uint8_t out[256]) {
  int n = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int b = 0; b < 256; b++) {
      const bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      if (gpt2 ? printable == (pass == 0) : pass == 0) out[n++] = (uint8_t)b;
    }
}

/* Where the three kinds of ids begin. */
typedef struct layout {
  uint32_t bytes, merges, specials;
} layout;

static layout lay_out_ids(bpe_place place, uint32_t n_specials, uint32_t n_merges) {
  switch (place) {
  case BPE_PLACE_FIRST: return (layout){n_specials, n_specials + 256, 0};
  case BPE_PLACE_AFTER_BYTES: return (layout){0, 256 + n_specials, 256};
  default: return (layout){0, 256, 256 + n_merges};
  }
}

/* What a table's counts amount to; at most COUNT_MAX each. */
typedef struct figures {
  uint64_t pieces, bytes, distinct, singles; /* singles: pieces of one byte */
} figures;

static uint64_t add_up(uint64_t sum, uint64_t n, uint64_t times) {
  return n > (COUNT_MAX - sum) / times ? COUNT_MAX : sum + n * times;
}

static bpe_status count_figures(train_state *s, const count_table *table, figures *f,
                                bpe_error *e) {
  uint8_t room[16];
  size_t len;
  *f = (figures){.distinct = table->n};
  for (size_t i = 0; i < table->n; i++) {
    const count_entry *x = &table->entries[i];
    count_bytes(table, x, room, &len);
    f->pieces = add_up(f->pieces, 1, x->count);
    f->bytes = add_up(f->bytes, len, x->count);
    if (len == 1) f->singles = add_up(f->singles, 1, x->count);
    const bpe_status st = pace_add(&s->pace, PIECE_WORK, e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

static void add_figure(bpe_buffer *b, const char *name, uint64_t value) {
  bpe_buffer_append(b, name, strlen(name));
  bpe_buffer_append_decimal(b, value);
}

static void add_seconds(bpe_buffer *b, const char *name, uint64_t ns) {
  char digits[8] = ".000000";
  uint64_t micro = ns / 1000 % 1000000;
  for (int i = 6; i > 0; i--, micro /= 10) digits[i] = (char)('0' + micro % 10);
  add_figure(b, name, ns / 1000000000);
  bpe_buffer_append(b, digits, 7);
}

static bpe_status add_stats(const bpe_trainer *t, const train_state *s, const figures *f,
                            uint64_t tokens, bpe_builder *to, bpe_error *e) {
  bpe_buffer b;
  bpe_buffer_init(&b, &t->alloc, 0);
  add_figure(&b, "{\"rows\":", t->rows);
  add_figure(&b, ",\"bytes\":", f->bytes);
  add_figure(&b, ",\"pieces\":", f->pieces);
  add_figure(&b, ",\"distinct_pieces\":", f->distinct);
  add_figure(&b, ",\"tokens\":", add_up(tokens, f->singles, 1));
  add_figure(&b, ",\"merges\":", s->n_merges);
  add_figure(&b, ",\"merges_wanted\":", t->wanted);
  add_seconds(&b, ",\"seconds_counting\":", t->counted - t->started);
  add_seconds(&b, ",\"seconds_merging\":", pool_clock() - t->counted);
  bpe_buffer_append(&b, "}", 1);
  const bpe_status st = buffer_status(&b, e);
  if (st == BPE_OK) bpe_builder_stats(to, (const char *)b.bytes, b.len);
  bpe_buffer_clear(&b);
  return st;
}

static void add_specials(const bpe_trainer *t, const layout *ids, bpe_builder *to) {
  for (size_t i = 0; i < t->o.n_specials; i++)
    bpe_builder_token(to, ids->specials + (uint32_t)i, BPE_SPECIAL, t->specials[i].text,
                      t->specials[i].len);
  for (size_t i = 0; i < t->o.n_bos; i++) bpe_builder_bos(to, ids->specials + t->o.bos[i]);
  for (size_t i = 0; i < t->o.n_eos; i++) bpe_builder_eos(to, ids->specials + t->o.eos[i]);
}

static bpe_status make_model(bpe_trainer *t, train_state *s, const figures *f, bpe_error *e,
                             bpe_model **out) {
  const layout ids = lay_out_ids(t->o.place, (uint32_t)t->o.n_specials, (uint32_t)s->n_merges);
  const uint32_t beyond = ids.merges - 256; /* of a merge's symbol to its id */
  uint64_t tokens;
  bpe_status st = train_tokens(s, &tokens, e);
  if (st != BPE_OK) return st;
  bpe_builder *to = bpe_builder_new(&t->alloc);
  if (to == NULL) return set_nomem(e);
  builder_vouch(to);
  bpe_builder_pattern(to, t->pattern->text, t->pattern->len, t->pattern->is_regex);
  if (t->o.place == BPE_PLACE_FIRST) add_specials(t, &ids, to);
  for (uint32_t k = 0; k < s->n_symbols && !builder_failed(to); k++) {
    if (k == 256 && t->o.place == BPE_PLACE_AFTER_BYTES) add_specials(t, &ids, to);
    bpe_builder_token(to, k < 256 ? ids.bytes + k : beyond + k, BPE_TOKEN,
                      s->text + s->symbols[k].at, s->symbols[k].len);
  }
  if (t->o.place == BPE_PLACE_LAST || (t->o.place == BPE_PLACE_AFTER_BYTES && s->n_symbols == 256))
    add_specials(t, &ids, to);
  for (uint32_t r = 0; r < s->n_merges && !builder_failed(to); r++) {
    const train_merge *m = &s->merges[r];
    bpe_builder_merge(to, r, (m->left < 256 ? ids.bytes : beyond) + m->left,
                      (m->right < 256 ? ids.bytes : beyond) + m->right, ids.merges + r, m->count);
  }
  st = add_stats(t, s, f, tokens, to, e);
  if (st != BPE_OK) {
    bpe_builder_free(to);
    return st;
  }
  return bpe_builder_finish(to, e, out);
}

static bpe_status merge_loop(bpe_trainer *t, train_state *s, bpe_error *e) {
  train_queue q;
  bpe_status st = train_queue_init(&q, s, e);
  for (uint32_t k = 1; k < s->n_pairs && st == BPE_OK; k++)
    if (s->pairs[k].count > 0) st = train_queue_add(&q, s, k, e);
  while (st == BPE_OK && s->n_merges < t->wanted) {
    uint32_t pair;
    size_t first_new;
    st = train_queue_take(&q, s, &pair, e);
    if (st != BPE_OK || pair == TRAIN_NONE) break;
    st = train_merge_pair(s, pair, &first_new, e);
    for (size_t k = first_new; st == BPE_OK && k < s->n_pairs; k++) {
      if (s->pairs[k].count >= s->min_count) st = train_queue_add(&q, s, (uint32_t)k, e);
      if (st == BPE_OK) st = pace_add(&s->pace, PAIR_WORK, e);
    }
    report(t, s, false);
  }
  train_queue_clear(&q, &s->alloc);
  return st;
}

static bpe_status finish(bpe_trainer *t, bpe_error *e, bpe_model **out) {
  bpe_status st = crew_finish(t->crew, e);
  if (st != BPE_OK) return st;
  count_table *table = crew_total(t->crew);
  if (table->overflow)
    return set_error(e, BPE_TOOBIG, 0, "weights of a piece add up to more than 2^63 - 1");
  report(t, NULL, true);
  t->counted = pool_clock();
  train_state s = {
      .alloc = t->alloc,
      .tie = t->o.tie,
      .min_count = t->o.min_frequency == 0 ? 1 : t->o.min_frequency,
      .max_len = t->o.max_token_length == 0 ? UINT64_MAX : t->o.max_token_length,
      .pace = {.stop = t->o.stop, .ctx = t->o.stop_ctx},
  };
  uint8_t order[256], symbol_of[256];
  order_bytes(t->o.gpt2_bytes, order);
  for (int k = 0; k < 256; k++) symbol_of[order[k]] = (uint8_t)k;
  figures f;
  st = count_figures(&s, table, &f, e);
  if (st == BPE_OK) st = train_start(&s, table, symbol_of, e);
  if (st == BPE_OK) crew_release(t->crew);
  if (st == BPE_OK) st = merge_loop(t, &s, e);
  if (st == BPE_OK) st = make_model(t, &s, &f, e, out);
  if (st == BPE_OK) report(t, &s, true);
  train_clear(&s);
  return st;
}

bpe_status bpe_trainer_finish(bpe_trainer *t, bpe_error *e, bpe_model **out) {
  *out = NULL;
  bpe_error own = {.status = BPE_OK};
  if (t->status != BPE_OK) return keep_failure(t, t->status, &own, e);
  bpe_status st = finish(t, &own, out);
  if (st == BPE_OK) {
    t->status = set_error(&t->error, BPE_MISUSE, 0, "training is finished already");
    return BPE_OK;
  }
  return keep_failure(t, st, &own, e);
}
