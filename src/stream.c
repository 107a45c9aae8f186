/* stream.c - a text that comes in parts, encoded as if it were there at once.
**
** What has come but is not decided lies in a buffer. When there is enough of it, it is walked like
** a text of its own, and pieces are handed out as long as they are certain to be pieces of the
** whole text too:
**
**     buffer      |the| cat| sat| on th             what follows may be "e", or a special token
**                                 ^ unsure          scan_settled: a piece must end before this
**     kept                       | on th
**
** Three things make a piece unsure: the pattern may look further than the buffer, a special token
** may begin in its last bytes and go on, and its last bytes may be a cut character. So the place is
** counted from the end less the longest name and less a character. A piece longer than the buffer
** is not certain at all; the next attempt then waits until there is twice as much, so that the
** attempts together cost no more than the text. Memory is thus a piece, twice, and a constant.
**
** A byte without a token is a failure of its piece, and no more certain than that: it may belong to
** a special token, or to a piece that is a token as a whole.
*/
#include "encode.h"

#include "utf8.h"

#include <string.h>

enum {
  ENOUGH = USUALLY(1 << 16, 64), /* bytes that are worth an attempt */
  CUT_CHAR = 3                   /* bytes of a character whose last one is missing */
};

struct bpe_stream {
  bpe_coder *coder;
  bpe_alloc alloc;
  bpe_walk_options options; /* without BOS, EOS and what is forbidden */
  const bpe_finder *forbidden;
  bool document;
  size_t longest;     /* bytes of the longest special token that is looked for */
  size_t longest_bad; /* and of the longest forbidden string */
  bpe_walk *walk;     /* owned */
  uint8_t *bytes;     /* owned; the buffer */
  size_t n, cap;
  uint64_t offset;      /* of bytes[0] in the text */
  size_t at;            /* what comes before is handed out */
  size_t bad_from;      /* what begins before is not forbidden */
  size_t need;          /* undecided bytes that make the next attempt */
  size_t base, settled; /* the attempt under way: where it began, and how far it is certain */
  bool walking, began, ended, finished;
  bool searched; /* to the end, for what is forbidden */
  pace pace;     /* of what is not walking */
};

bpe_status bpe_stream_new(bpe_coder *c, const bpe_walk_options *o, bpe_error *e, bpe_stream **out) {
  *out = NULL;
  const bpe_model *m = bpe_coder_model(c);
  const bpe_walk_options none = {0};
  if (o == NULL) o = &none;
  const bpe_pattern *p = o->pattern != NULL ? o->pattern : m->pattern;
  const bpe_finder *finder = o->allowed != NULL ? o->allowed : m->added;
  if (p->scan == NULL)
    return set_error(e, BPE_MISUSE, 0, "a tokenizer with this pattern cannot stream: %.60s",
                     p->text);
  if (m->alters)
    return set_error(e, BPE_MISUSE, 0,
                     "a tokenizer that normalizes text or looks beside its tokens cannot stream");
  if (o->document && m->bos.n + m->eos.n == 0)
    return set_error(e, BPE_MISUSE, 0, "tokenizer has no BOS or EOS tokens");
  bpe_stream *s = mem_zero(&m->alloc, 1, sizeof *s);
  if (s == NULL) return set_nomem(e);
  s->coder = c;
  s->alloc = m->alloc;
  s->options = (bpe_walk_options){
      .allowed = o->allowed, .pattern = o->pattern, .stop = o->stop, .stop_ctx = o->stop_ctx};
  s->pace = (pace){.stop = o->stop, .ctx = o->stop_ctx};
  s->forbidden = o->forbidden;
  s->document = o->document;
  s->longest = special_longest(finder);
  s->longest_bad = special_longest(o->forbidden);
  s->need = ENOUGH;
  const bpe_status st = bpe_walk_new(c, e, &s->walk);
  if (st != BPE_OK) {
    bpe_stream_free(s);
    return st;
  }
  *out = s;
  return BPE_OK;
}

void bpe_stream_free(bpe_stream *s) {
  if (s == NULL) return;
  const bpe_alloc a = s->alloc;
  bpe_walk_free(s->walk);
  mem_free(&a, s->bytes);
  mem_free(&a, s);
}

/* Looks for a forbidden string that is whole, as far as that is certain. */
static bpe_status check_forbidden(bpe_stream *s, bpe_error *e) {
  if (s->forbidden == NULL) return BPE_OK;
  special_match f;
  const bpe_status st = special_find(s->forbidden, s->bytes, s->bad_from, s->n, s->options.stop,
                                     s->options.stop_ctx, e, &f);
  if (st != BPE_OK) return st;
  if (f.start == s->n) {
    if (s->n - s->bad_from >= s->longest_bad) s->bad_from = s->n - (s->longest_bad - 1);
    return BPE_OK;
  }
  s->bad_from = f.start;
  if (!s->ended && s->n - f.start < s->longest_bad) return BPE_OK; /* a longer one may be coming */
  quoted q;
  const uint64_t place = s->offset + f.start;
  return set_error(e, BPE_BADTEXT, place, "special token not allowed at byte %llu: %s",
                   (unsigned long long)place, quote_bytes(&q, s->bytes + f.start, f.len));
}

/* Forgets what is handed out, and need not be looked at for forbidden strings either. */
static bpe_status forget(bpe_stream *s, bpe_error *e) {
  size_t done = s->at;
  if (s->forbidden != NULL && s->bad_from < done) done = s->bad_from;
  if (done == 0 || done < s->n - done) return BPE_OK; /* moving would cost more than it gains */
  /* What is left is not more than what goes, so the two do not overlap. */
  const bpe_status st = pace_copy(&s->pace, s->bytes, s->bytes + done, s->n - done, e);
  if (st != BPE_OK) return st;
  s->n -= done;
  s->at -= done;
  s->bad_from = s->bad_from > done ? s->bad_from - done : 0;
  s->offset += done;
  return BPE_OK;
}

bpe_status bpe_stream_add(bpe_stream *s, const void *part, size_t len, bpe_error *e) {
  size_t n;
  if (len == 0) return BPE_OK;
  s->walking = false; /* the buffer moves */
  bpe_status st = forget(s, e);
  if (st != BPE_OK) return st;
  if (!size_add(s->n, len, &n) ||
      !mem_grow(&s->alloc, (void **)&s->bytes, &s->cap, n, sizeof *s->bytes))
    return set_nomem(e);
  st = pace_copy(&s->pace, s->bytes + s->n, part, len, e);
  if (st != BPE_OK) return st;
  s->n = n;
  return check_forbidden(s, e);
}

void bpe_stream_end(bpe_stream *s) {
  s->ended = true;
  s->walking = false;
}

/* How far the undecided bytes are certain to be split as they are. */
static size_t certain_part(bpe_stream *s) {
  const uint8_t *text = s->bytes + s->at;
  const size_t len = s->n - s->at;
  const size_t margin = (s->longest > 0 ? s->longest - 1 : 0) + CUT_CHAR;
  if (len <= margin) return 0;
  size_t end = len - margin;
  for (int k = 0; k < CUT_CHAR && end > 0 && (text[end] & 0xc0) == 0x80; k++) end--;
  return scan_settled(text, end, &s->pace);
}

static bpe_status begin_attempt(bpe_stream *s, bpe_error *e) {
  s->base = s->at;
  s->settled = s->ended ? SIZE_MAX : certain_part(s);
  if (s->pace.stopped) return set_stopped(e);
  s->walking = true;
  return bpe_walk_start(s->walk, s->bytes + s->at, s->n - s->at, &s->options, e);
}

/* Whether the byte at `at` of the attempt, which has no token, has none in the whole text either.
** Its piece goes up to the settled place at least, and is then longer than any token. */
static bool certainly_bad(const bpe_stream *s, size_t at) {
  const size_t longest = bpe_coder_model(s->coder)->v.longest;
  return s->ended || (at < s->settled && longest < s->settled - at);
}

/* The walk's next piece, if it is certain. BPE_DONE: it is not, or there is none. */
static bpe_status next_certain(bpe_stream *s, bpe_piece *p, bpe_error *e) {
  bpe_error local = {.status = BPE_OK};
  const bpe_status st = bpe_walk_next(s->walk, p, &local);
  const size_t left = s->n - s->base;
  if (st == BPE_BADTEXT) { /* its offset is one of the attempt */
    if (certainly_bad(s, (size_t)local.offset)) {
      const uint64_t place = s->offset + s->base + local.offset;
      return set_error(e, st, place, "no token for the byte at %llu: 0x%02x",
                       (unsigned long long)place, s->bytes[s->base + local.offset]);
    }
  } else if (st != BPE_OK && st != BPE_DONE) {
    return set_error(e, st, local.offset, "%s", local.text);
  }
  const bool certain =
      st == BPE_OK &&
      (s->ended || (p->special ? left - p->start >= s->longest : p->stop < s->settled));
  if (certain) return BPE_OK;
  s->walking = false;
  s->need = 2 * (s->n - s->at) > ENOUGH ? 2 * (s->n - s->at) : ENOUGH;
  return BPE_DONE;
}

static bpe_status wrapping(const id_list *list, const uint32_t **ids, size_t *n) {
  *ids = list->ids;
  *n = list->n;
  return BPE_OK;
}

bpe_status bpe_stream_next(bpe_stream *s, const uint32_t **ids, size_t *n, bpe_error *e) {
  const bpe_model *m = bpe_coder_model(s->coder);
  bpe_piece p;
  *ids = NULL;
  *n = 0;
  if (s->ended && !s->searched) {
    const bpe_status bad = check_forbidden(s, e);
    if (bad != BPE_OK) return bad;
    s->searched = true;
  }
  if (!s->began) {
    s->began = true;
    if (s->document && m->bos.n > 0) return wrapping(&m->bos, ids, n);
  }
  if (!s->walking) {
    const size_t left = s->n - s->at;
    if (left > 0 && (s->ended || left >= s->need)) {
      const bpe_status st = begin_attempt(s, e);
      if (st != BPE_OK) return st;
    }
  }
  if (s->walking) {
    const bpe_status st = next_certain(s, &p, e);
    if (st == BPE_OK) {
      s->at = s->base + p.stop;
      *ids = p.ids;
      *n = p.n_ids;
    }
    if (st != BPE_DONE) return st;
  }
  if (s->ended && !s->finished) {
    s->finished = true;
    if (s->document && m->eos.n > 0) return wrapping(&m->eos, ids, n);
  }
  return BPE_DONE;
}
