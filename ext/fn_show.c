/* fn_show.c - tokens for the eye.
**
**   bpe_ansi(text [, tokenizer [, options]])   TEXT with the escapes of a terminal
**   bpe_html(text [, tokenizer [, options]])   TEXT, an HTML element with its own style
**
** Tokens alternate between two colours, special and added tokens and BOS and EOS have a third.
** (W1) NULL text or tokenizer gives NULL. Options as for bpe_encode: special, document, digest.
** (W2) What the eye cannot see is shown: a blank as a middle dot, a tab as an arrow, the end of a
**      line as its sign before it, controls as their pictures, invisible characters as <U+200B>,
**      and bytes that are no whole character in their token as \xE3.
** (W3) In HTML each token is a <span> with its id and bytes as title; text is escaped. Contrast is
**      7:1 at least, and the lines under tokens alternate as the colours do.
*/
#include "ext.h"

#include <string.h>

typedef struct style {
  const char *open, *close;                /* of the whole */
  const char *token_open[3], *token_close; /* first, second, special */
  const char *line_end[3];                 /* at the end of a line inside a token */
  bool html;
} style;

#define FIRST "\x1b[48;5;153m\x1b[38;5;16m"
#define SECOND "\x1b[48;5;223m\x1b[38;5;16m"
#define SPECIAL "\x1b[48;5;54m\x1b[38;5;231m"
#define OFF "\x1b[0m"

static const style ansi = {
    .open = "",
    .close = "",
    .token_open = {FIRST, SECOND, SPECIAL},
    .token_close = OFF,
    .line_end = {OFF "\n" FIRST, OFF "\n" SECOND, OFF "\n" SPECIAL},
};

static const style html = {
    .open = "<div class=\"bpe\"><style>"
            ".bpe{font:1em/1.8 monospace;white-space:pre-wrap;overflow-wrap:anywhere}"
            ".bpe span{border-bottom:2px solid}"
            ".bpe .a{background:#cfe8ff;color:#0b2239;border-color:#1d5f99}"
            ".bpe .b{background:#ffe8bf;color:#3a2500;border-color:#8a5a00;"
            "border-bottom-style:dotted}"
            ".bpe .s{background:#4a1d6b;color:#fff;border-color:#4a1d6b}"
            "</style>",
    .close = "</div>",
    .token_open = {"<span class=\"a\"", "<span class=\"b\"", "<span class=\"s\""},
    .token_close = "</span>",
    .line_end = {"\n", "\n", "\n"},
    .html = true,
};

static void put(bpe_buffer *b, const char *text) {
  bpe_buffer_append(b, text, strlen(text));
}

static void put_hex(bpe_buffer *b, const char *before, unsigned byte) {
  char text[8];
  sqlite3_snprintf(sizeof text, text, "%s%02x", before, byte);
  put(b, text);
}

enum { TOKEN_WORK = 64, BYTE_WORK = 32 }; /* units, to show a token, and each of its bytes */

static uint32_t decode(const uint8_t *s, size_t n) {
  static const uint8_t first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t c = s[0] & first[n];
  for (size_t i = 1; i < n; i++) c = c << 6 | (s[i] & 0x3fu);
  return c;
}

static bool is_invisible(uint32_t c) {
  return c == 0xa0 || c == 0xad || c == 0x34f || c == 0x61c || c == 0x115f || c == 0x1160 ||
         c == 0x1680 || c == 0x17b4 || c == 0x17b5 || (c >= 0x180b && c <= 0x180f) || c == 0x2800 ||
         c == 0x3000 || c == 0x3164 || c == 0xfeff || c == 0xffa0 ||
         (c >= 0x1d173 && c <= 0x1d17a) || (c >= 0x80 && c < 0xa0) ||
         (c >= 0x2000 && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f) ||
         (c >= 0x205f && c <= 0x206f) || (c >= 0xfe00 && c <= 0xfe0f) ||
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

/* A control character as its picture, U+2400 and on. */
static void put_picture(bpe_buffer *b, uint8_t c) {
  const uint8_t low = c == 0x7f ? 0x21 : c;
  const uint8_t picture[3] = {0xe2, 0x90, (uint8_t)(0x80 | low)};
  bpe_buffer_append(b, picture, 3);
}

static void put_ascii(bpe_buffer *b, const style *s, int kind, uint8_t c) {
  switch (c) {
  case ' ': put(b, "\xc2\xb7"); return;
  case '\t': put(b, "\xe2\x86\x92"); return;
  case '\n':
    put(b, "\xe2\x8f\x8e");
    put(b, s->line_end[kind]);
    return;
  default: break;
  }
  if (c < 0x20 || c == 0x7f) {
    put_picture(b, c);
    return;
  }
  const char *entity = NULL;
  if (s->html) {
    entity = c == '&'    ? "&amp;"
             : c == '<'  ? "&lt;"
             : c == '>'  ? "&gt;"
             : c == '"'  ? "&quot;"
             : c == '\'' ? "&#39;"
                         : NULL;
  }
  if (entity) put(b, entity);
  else bpe_buffer_append(b, &c, 1);
}

/* W2. */
static void put_bytes(bpe_buffer *b, const style *s, int kind, const uint8_t *p, size_t len) {
  for (size_t i = 0, n; i < len; i += n) {
    n = bpe_utf8_next(p + i, len - i);
    if (!bpe_utf8_valid(p + i, n)) {
      for (size_t k = 0; k < n; k++) put_hex(b, "\\x", p[i + k]);
    } else if (n == 1) {
      put_ascii(b, s, kind, p[i]);
    } else if (is_invisible(decode(p + i, n))) {
      char text[24];
      sqlite3_snprintf(sizeof text, text, s->html ? "&lt;U+%04X&gt;" : "<U+%04X>",
                       decode(p + i, n));
      put(b, text);
    } else {
      bpe_buffer_append(b, p + i, n);
    }
  }
}

static void put_token(bpe_buffer *b, const style *s, int kind, const bpe_token *t) {
  put(b, s->token_open[kind]);
  if (s->html) {
    put(b, " title=\"id ");
    bpe_buffer_append_decimal(b, t->id);
    put(b, ":");
    for (size_t i = 0; i < t->len; i++) put_hex(b, " ", t->bytes[i]);
    put(b, "\">");
  }
  put_bytes(b, s, kind, t->bytes, t->len);
  put(b, s->token_close);
}

static bpe_status show(const call *k, const style *s, bytes text, failure *f, bpe_error *e,
                       bpe_buffer *b) {
  const bpe_model *m = k->tok->model;
  bpe_walk *w;
  bpe_piece p;
  int kind = 1;
  work todo = {.f = f};
  bpe_status st = bpe_walk_new(k->tok->coder, e, &w);
  put(b, s->open);
  if (st == BPE_OK) st = bpe_walk_start(w, text.data, text.len, &k->walk, e);
  while (st == BPE_OK && (st = bpe_walk_next(w, &p, e)) == BPE_OK) {
    for (size_t i = 0; i < p.n_ids; i++) {
      const bpe_token t = bpe_model_token(m, bpe_model_find_id(m, p.ids[i]));
      kind ^= 1;
      put_token(b, s, p.special ? 2 : kind, &t);
      if (b->status != BPE_OK || work_stopped(&todo, TOKEN_WORK + t.len * BYTE_WORK)) break;
    }
    if (f->rc != SQLITE_OK) st = BPE_STOPPED;
    if (b->status != BPE_OK) st = b->status;
  }
  bpe_walk_free(w);
  put(b, s->close);
  if (st != BPE_OK && st != BPE_DONE) return st;
  return b->status;
}

static void run(sqlite3_context *ctx, int argc, sqlite3_value **argv, const char *name,
                const style *s) {
  conn *c = sqlite3_user_data(ctx);
  failure f = {.name = name, .c = c};
  call *k;
  bytes text;
  if (!call_begin(ctx, argc, argv, 1, FOR_SHOW, &f, &k, &text)) return; /* W1 */
  bpe_error e = {0};
  bpe_buffer b;
  result_begin(c, &b);
  const bpe_status st = show(k, s, text, &f, &e, &b);
  if (st != BPE_OK) fail_status(&f, st, &e);
  if (result_end(ctx, c, &b, true, &f) != SQLITE_OK) failure_to_context(&f, ctx);
  call_release(k);
}

static void ansi_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  run(ctx, argc, argv, "bpe_ansi", &ansi);
}

static void html_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  run(ctx, argc, argv, "bpe_html", &html);
}

/* As in fn_encode.c, but not DETERMINISTIC: how tokens look may change with a release. */
enum { ALONE = SQLITE_UTF8 | SQLITE_INNOCUOUS, NAMED = SQLITE_UTF8 };

const function_row show_functions[] = {
    {"bpe_ansi", 1, ALONE, ansi_func},
    {"bpe_ansi", 2, NAMED, ansi_func},
    {"bpe_ansi", 3, NAMED, ansi_func},
    {"bpe_html", 1, ALONE, html_func},
    {"bpe_html", 2, NAMED, html_func},
    {"bpe_html", 3, NAMED, html_func},
    {NULL, 0, 0, NULL},
};
