/* import_gpt2.c - GPT-2's vocab.json (token -> id) with merges.txt (one pair a line), both in
** GPT-2's characters for bytes.
**
** A first line of merges.txt that begins with #version is a header; every other line is a merge,
** "# #" too. Line ends may be CRLF, the last may be missing. A token in other characters is one
** that no text becomes; it keeps its id, and is a special token if the caller lists it.
*/
#include "bytelevel.h"
#include "import.h"

#include <string.h>

static bpe_status read_token(importing *in, const doc_node *v) {
  quoted q;
  uint32_t id;
  size_t n;
  if (!doc_id(v, &id))
    return set_error(in->e, BPE_BADMODEL, v->offset, "id is no number below 2^32-1: %s",
                     quote_bytes(&q, v->key, v->key_len));
  uint8_t *scratch = import_scratch(in, v->key_len);
  if (scratch == NULL) return set_nomem(in->e);
  if (bytelevel_decode(v->key, v->key_len, scratch, &n))
    return import_token(in, scratch, n, id, BPE_TOKEN, 0, v->offset);
  return import_token(in, v->key, v->key_len, id, BPE_TOKEN, ENTRY_UNUSED, v->offset);
}

bpe_status import_gpt2_vocab(importing *in, const doc_node *tokens) {
  bpe_status st = BPE_OK;
  for (const doc_node *v = tokens->first; v != NULL && st == BPE_OK; v = v->next)
    st = read_token(in, v);
  return st;
}

bpe_status import_named_merge(importing *in, uint32_t rank, const char *where, size_t at,
                              const char *left, size_t left_len, const char *right,
                              size_t right_len) {
  quoted p, q;
  const char *part[2] = {left, right};
  const size_t part_len[2] = {left_len, right_len};
  size_t token[2];
  for (int i = 0; i < 2; i++) {
    size_t n = 0;
    uint8_t *bytes = import_scratch(in, part_len[i]);
    if (bytes == NULL) return set_nomem(in->e);
    const bool ok = bytelevel_decode(part[i], part_len[i], bytes, &n) && n > 0;
    token[i] = ok ? import_find(in, bytes, n) : in->n_tokens;
    if (token[i] == in->n_tokens)
      return set_error(in->e, BPE_BADMODEL, at,
                       "%s %zu: merge of what is not in the vocabulary: %s", where, at,
                       quote_bytes(&q, part[i], part_len[i]));
  }
  size_t result;
  const bpe_status st = import_find_joined(in, token[0], token[1], &result);
  if (st != BPE_OK) return st;
  if (result == in->n_tokens)
    return set_error(in->e, BPE_BADMODEL, at,
                     "%s %zu: result of the merge is not in the vocabulary: %s + %s", where, at,
                     quote_bytes(&p, left, left_len), quote_bytes(&q, right, right_len));
  import_merge(in, rank, token[0], token[1], result);
  return BPE_OK;
}

static bpe_status read_merges(importing *in, const char *text, size_t len) {
  static const char header[] = "#version";
  if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, len -= 3;
  lines l = {text, text + len, 0};
  const char *line;
  size_t n;
  uint32_t rank = 0;
  while (next_line(&l, &line, &n)) {
    if (l.n == 1 && n >= strlen(header) && memcmp(line, header, strlen(header)) == 0) continue;
    if (n == 0 && l.at == l.end) break;
    const char *space = memchr(line, ' ', n);
    const size_t first = space == NULL ? n : (size_t)(space - line);
    if (space == NULL || first == 0 || first + 1 == n || memchr(space + 1, ' ', n - first - 1))
      return set_error(in->e, BPE_BADMODEL, l.n, "merges line %zu: not two tokens and a space",
                       l.n);
    const bpe_status st =
        import_named_merge(in, rank++, "merges line", l.n, line, first, space + 1, n - first - 1);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

bpe_status import_gpt2(importing *in, const doc_node *tokens, const char *merges, size_t len) {
  if (merges == NULL)
    return set_error(in->e, BPE_MISUSE, 0, "a vocab.json needs its merges.txt as merges");
  const bpe_import_options *o = in->options;
  bpe_status st = import_gpt2_vocab(in, tokens);
  if (st == BPE_OK) st = import_pattern(in, "a vocab.json");
  if (st == BPE_OK) st = read_merges(in, merges, len);
  if (st == BPE_OK) st = import_specials(in, o->special_tokens, o->special_len);
  return st;
}
