/* import_minbpe.c - minbpe's .model files.
**
**     minbpe v1
**     \S+|\s+             the pattern, may be empty; a published one becomes its name,
**                         any other is read as bpe_pattern_new reads a regex
**     2                   number of special tokens
**     <|a b|> 258         name and id: the id is what follows the last space
**     <|x|> 259
**     97 98               merges of ids: 0-255 are the bytes, each merge makes the next id
**     256 99
*/
#include "import.h"
#include "published.h"

#include <string.h>

static bpe_status bad_line(importing *in, size_t n, const char *what) {
  return set_error(in->e, BPE_BADMODEL, n, "line %zu: %s", n, what);
}

static void set_pattern(importing *in, const char *text, size_t len) {
  const char *name = len == 0 ? "none" : published_name(text, len);
  if (name != NULL) bpe_builder_pattern(in->b, name, strlen(name), false);
  else bpe_builder_pattern(in->b, text, len, true);
}

static bpe_status read_special(importing *in, lines *l) {
  const char *line;
  size_t len;
  uint32_t id;
  if (!next_line(l, &line, &len)) return bad_line(in, l->n + 1, "ends before all special tokens");
  size_t space = len;
  while (space > 0 && line[space - 1] != ' ') space--;
  if (space < 2 || !parse_id(line + space, len - space, &id))
    return bad_line(in, l->n, "is no special token and its id");
  const size_t had = import_find_id(in, id);
  if (had != in->n_tokens && in->tokens[had].kind == BPE_TOKEN)
    return bad_line(in, l->n, "special token has the id of a byte");
  return import_special(in, line, space - 1, id, l->n);
}

static bpe_status read_merge(importing *in, size_t n, const char *line, size_t len, uint32_t rank) {
  uint32_t id[2];
  size_t part[2];
  const char *space = memchr(line, ' ', len);
  const size_t first = space == NULL ? len : (size_t)(space - line);
  if (space == NULL || !parse_id(line, first, &id[0]) ||
      !parse_id(space + 1, len - first - 1, &id[1]))
    return bad_line(in, n, "is no merge of two ids");
  for (int i = 0; i < 2; i++) {
    part[i] = import_find_id(in, id[i]);
    if (part[i] == in->n_tokens || in->tokens[part[i]].kind != BPE_TOKEN)
      return bad_line(in, n, "merge names an id that is not made yet");
  }
  const size_t l = in->tokens[part[0]].len, r = in->tokens[part[1]].len;
  uint8_t *bytes = import_scratch(in, l + r);
  if (bytes == NULL) return set_nomem(in->e);
  memcpy(bytes, import_bytes(in, part[0]), l);
  memcpy(bytes + l, import_bytes(in, part[1]), r);
  if (import_find_id(in, 256 + rank) != in->n_tokens)
    return bad_line(in, n, "merge makes the id of a special token");
  const bpe_status st = import_token(in, bytes, l + r, 256 + rank, BPE_TOKEN, 0, n);
  if (st == BPE_OK) import_merge(in, rank, part[0], part[1], in->n_tokens - 1);
  return st;
}

bpe_status import_minbpe(importing *in, const char *text, size_t len) {
  static const char version[] = "minbpe v1";
  lines l = {text, text + len, 0};
  const char *line;
  size_t n;
  uint32_t n_specials;
  bpe_status st = import_no_options(in, "a minbpe model");
  if (st == BPE_OK) st = import_single_bytes(in, false, 0);
  if (st != BPE_OK) return st;
  if (!next_line(&l, &line, &n) || n != strlen(version) || memcmp(line, version, n) != 0)
    return bad_line(in, 1, "version of minbpe is not v1");
  if (!next_line(&l, &line, &n)) return bad_line(in, 2, "no pattern");
  while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t')) n--;
  while (n > 0 && (*line == ' ' || *line == '\t')) line++, n--;
  set_pattern(in, line, n);
  if (!next_line(&l, &line, &n) || !parse_id(line, n, &n_specials))
    return bad_line(in, 3, "is no number of special tokens");
  for (uint32_t i = 0; i < n_specials && st == BPE_OK; i++) st = read_special(in, &l);
  for (uint32_t rank = 0; st == BPE_OK && next_line(&l, &line, &n);) {
    if (n == 0 && l.at == l.end) break;
    st = read_merge(in, l.n, line, n, rank++);
  }
  return st;
}
