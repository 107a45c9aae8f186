/* builtin.c - the encodings inside the extension, and the names that mean them.
**
** Data: data/encodings/NAME.merges, made by data/make_encodings.py from the published rank
** files: "BPEM", then varints (LEB128): n = highest id + 1; for each id from 256 to n - 1,
** left + 1 and right, the pair it is merged from, or 0 for an id that is not used. Ids 0 to 255
** are the single bytes, printable ones first. Names of models, exact and by prefix, are those of
** tiktoken 0.14; prefixes are tried in this order, after all exact names.
*/
#include "builtin_data.h"
#include "model.h"

#include <stdio.h>

enum {
  MEAN_BYTES = 7, /* of a token, about: what memory is made ready for */
  AHEAD = 16      /* merges read before they are made */
};

typedef struct special_row {
  const char *name;
  uint32_t id;
} special_row;

typedef struct encoding {
  const char *name, *pattern;
  const uint8_t *data, *data_end;
  const special_row *specials;         /* up to a row without a name */
  uint32_t reserved_from, reserved_to; /* <|reserved_N|> for N in [from, to] */
} encoding;

static const special_row gpt2_specials[] = {{"<|endoftext|>", 50256}, {NULL, 0}};

static const special_row p50k_edit_specials[] = {{"<|endoftext|>", 50256},
                                                 {"<|fim_prefix|>", 50281},
                                                 {"<|fim_middle|>", 50282},
                                                 {"<|fim_suffix|>", 50283},
                                                 {NULL, 0}};

static const special_row cl100k_specials[] = {
    {"<|endoftext|>", 100257},  {"<|fim_prefix|>", 100258},  {"<|fim_middle|>", 100259},
    {"<|fim_suffix|>", 100260}, {"<|endofprompt|>", 100276}, {NULL, 0}};

static const special_row o200k_specials[] = {
    {"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}, {NULL, 0}};

/* 200018 has two names; it decodes to the first, <|endofprompt|>. */
static const special_row harmony_specials[] = {{"<|startoftext|>", 199998},
                                               {"<|endoftext|>", 199999},
                                               {"<|reserved_200000|>", 200000},
                                               {"<|reserved_200001|>", 200001},
                                               {"<|return|>", 200002},
                                               {"<|constrain|>", 200003},
                                               {"<|reserved_200004|>", 200004},
                                               {"<|channel|>", 200005},
                                               {"<|start|>", 200006},
                                               {"<|end|>", 200007},
                                               {"<|message|>", 200008},
                                               {"<|reserved_200009|>", 200009},
                                               {"<|reserved_200010|>", 200010},
                                               {"<|reserved_200011|>", 200011},
                                               {"<|call|>", 200012},
                                               {"<|endofprompt|>", 200018},
                                               {NULL, 0}};

static const encoding encodings[] = {
    {"gpt2", "gpt2", builtin_r50k, builtin_r50k_end, gpt2_specials, 1, 0},
    {"r50k_base", "gpt2", builtin_r50k, builtin_r50k_end, gpt2_specials, 1, 0},
    {"p50k_base", "gpt2", builtin_p50k, builtin_p50k_end, gpt2_specials, 1, 0},
    {"p50k_edit", "gpt2", builtin_p50k, builtin_p50k_end, p50k_edit_specials, 1, 0},
    {"cl100k_base", "cl100k", builtin_cl100k, builtin_cl100k_end, cl100k_specials, 1, 0},
    {"o200k_base", "o200k", builtin_o200k, builtin_o200k_end, o200k_specials, 1, 0},
    {"o200k_harmony", "o200k", builtin_o200k, builtin_o200k_end, harmony_specials, 200013, 201087},
};

#define N_ENCODINGS ((int)(sizeof encodings / sizeof *encodings))

typedef struct name_row {
  const char *name, *encoding;
} name_row;

static const name_row model_names[] = {
    {"o1", "o200k_base"},
    {"o3", "o200k_base"},
    {"o4-mini", "o200k_base"},
    {"gpt-5", "o200k_base"},
    {"gpt-4.1", "o200k_base"},
    {"gpt-4o", "o200k_base"},
    {"gpt-4", "cl100k_base"},
    {"gpt-3.5-turbo", "cl100k_base"},
    {"gpt-3.5", "cl100k_base"},
    {"gpt-35-turbo", "cl100k_base"},
    {"davinci-002", "cl100k_base"},
    {"babbage-002", "cl100k_base"},
    {"text-embedding-ada-002", "cl100k_base"},
    {"text-embedding-3-small", "cl100k_base"},
    {"text-embedding-3-large", "cl100k_base"},
    {"text-davinci-003", "p50k_base"},
    {"text-davinci-002", "p50k_base"},
    {"text-davinci-001", "r50k_base"},
    {"text-curie-001", "r50k_base"},
    {"text-babbage-001", "r50k_base"},
    {"text-ada-001", "r50k_base"},
    {"davinci", "r50k_base"},
    {"curie", "r50k_base"},
    {"babbage", "r50k_base"},
    {"ada", "r50k_base"},
    {"code-davinci-002", "p50k_base"},
    {"code-davinci-001", "p50k_base"},
    {"code-cushman-002", "p50k_base"},
    {"code-cushman-001", "p50k_base"},
    {"davinci-codex", "p50k_base"},
    {"cushman-codex", "p50k_base"},
    {"text-davinci-edit-001", "p50k_edit"},
    {"code-davinci-edit-001", "p50k_edit"},
    {"text-similarity-davinci-001", "r50k_base"},
    {"text-similarity-curie-001", "r50k_base"},
    {"text-similarity-babbage-001", "r50k_base"},
    {"text-similarity-ada-001", "r50k_base"},
    {"text-search-davinci-doc-001", "r50k_base"},
    {"text-search-curie-doc-001", "r50k_base"},
    {"text-search-babbage-doc-001", "r50k_base"},
    {"text-search-ada-doc-001", "r50k_base"},
    {"code-search-babbage-code-001", "r50k_base"},
    {"code-search-ada-code-001", "r50k_base"},
    {"gpt-2", "gpt2"},
};

static const name_row model_prefixes[] = {
    {"o1-", "o200k_base"},
    {"o3-", "o200k_base"},
    {"o4-mini-", "o200k_base"},
    {"gpt-5", "o200k_base"},
    {"gpt-4.5-", "o200k_base"},
    {"gpt-4.1-", "o200k_base"},
    {"chatgpt-4o-", "o200k_base"},
    {"gpt-4o-", "o200k_base"},
    {"gpt-4-", "cl100k_base"},
    {"gpt-3.5-turbo-", "cl100k_base"},
    {"gpt-35-turbo-", "cl100k_base"},
    {"gpt-oss-", "o200k_harmony"},
    {"ft:gpt-4o", "o200k_base"},
    {"ft:gpt-4", "cl100k_base"},
    {"ft:gpt-3.5-turbo", "cl100k_base"},
    {"ft:davinci-002", "cl100k_base"},
    {"ft:babbage-002", "cl100k_base"},
};

#define N_MODEL_NAMES (sizeof model_names / sizeof *model_names)
#define N_MODEL_PREFIXES (sizeof model_prefixes / sizeof *model_prefixes)

int bpe_builtin_find(const char *name, size_t len) {
  for (int i = 0; i < N_ENCODINGS; i++)
    if (strlen(encodings[i].name) == len && memcmp(encodings[i].name, name, len) == 0) return i;
  return -1;
}

static int encoding_index(const char *name) {
  return bpe_builtin_find(name, strlen(name));
}

int bpe_builtin_resolve(const char *name, size_t len) {
  const int own = bpe_builtin_find(name, len);
  if (own >= 0) return own;
  for (size_t i = 0; i < N_MODEL_NAMES; i++) {
    const name_row *r = &model_names[i];
    if (strlen(r->name) == len && memcmp(r->name, name, len) == 0)
      return encoding_index(r->encoding);
  }
  for (size_t i = 0; i < N_MODEL_PREFIXES; i++) {
    const name_row *r = &model_prefixes[i];
    const size_t n = strlen(r->name);
    if (n <= len && memcmp(r->name, name, n) == 0) return encoding_index(r->encoding);
  }
  return -1;
}

const char *bpe_builtin_name(int which) {
  return which >= 0 && which < N_ENCODINGS ? encodings[which].name : NULL;
}

const char *bpe_builtin_alias(int i) {
  return i >= 0 && (size_t)i < N_MODEL_NAMES ? model_names[i].name : NULL;
}

/* Ids 0 to 255: the bytes of GPT-2's printable characters, then the others, each in order. */
static void add_single_bytes(bpe_builder *b) {
  uint32_t id = 0;
  for (int printable = 1; printable >= 0; printable--) {
    for (int c = 0; c < 256; c++) {
      const bool is = (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c != 0xad);
      if (is != (printable == 1)) continue;
      const uint8_t byte = (uint8_t)c;
      bpe_builder_token(b, id++, BPE_TOKEN, &byte, 1);
    }
  }
}

/* One varint of at most 32 bits; *at moves past it. False: the data ends or is no varint. */
static bool read_varint(const uint8_t **at, const uint8_t *end, uint32_t *out) {
  uint64_t value = 0;
  for (int shift = 0; shift < 35 && *at < end; shift += 7) {
    const uint8_t c = *(*at)++;
    value |= (uint64_t)(c & 0x7f) << shift;
    if (c < 0x80) {
      *out = (uint32_t)value;
      return value <= UINT32_MAX;
    }
  }
  return false;
}

/* The special token of this id among the merged ones, or NULL. */
static const char *special_at(const encoding *x, uint32_t id) {
  for (const special_row *s = x->specials; s->name != NULL; s++)
    if (s->id == id) return s->name;
  return NULL;
}

static void add_special(bpe_builder *b, const char *name, uint32_t id) {
  bpe_builder_token(b, id, BPE_SPECIAL, name, strlen(name));
}

/* Adds the merges in order of id, and each special in its place among them. The operands of AHEAD
** merges are read, and their places fetched, before the first of those is made. */
static bool add_merges(bpe_builder *b, const encoding *x) {
  const uint8_t *at = x->data;
  uint32_t n, left[AHEAD], right[AHEAD]; /* left: and 1; 0: no token */
  if (x->data_end - at < 4 || memcmp(at, "BPEM", 4) != 0) return false;
  at += 4;
  if (!read_varint(&at, x->data_end, &n)) return false;
  builder_reserve(b, n, (size_t)n * MEAN_BYTES);
  for (uint32_t from = 256; from < n; from += AHEAD) {
    const uint32_t some = n - from < AHEAD ? n - from : AHEAD;
    for (uint32_t i = 0; i < some; i++) {
      if (!read_varint(&at, x->data_end, &left[i])) return false;
      right[i] = 0;
      if (left[i] == 0) continue;
      if (!read_varint(&at, x->data_end, &right[i])) return false;
      builder_fetch(b, left[i] - 1);
      builder_fetch(b, right[i]);
    }
    for (uint32_t i = 0; i < some; i++) {
      const char *special = special_at(x, from + i);
      if (left[i] != 0 && special != NULL) return false;
      if (left[i] != 0) bpe_builder_grow(b, left[i] - 1, right[i], from + i);
      else if (special != NULL) add_special(b, special, from + i);
    }
  }
  for (const special_row *s = x->specials; s->name != NULL; s++)
    if (s->id >= n) add_special(b, s->name, s->id);
  for (uint32_t id = x->reserved_from; id <= x->reserved_to; id++) {
    char name[32];
    (void)snprintf(name, sizeof name, "<|reserved_%lu|>", (unsigned long)id);
    add_special(b, name, id);
  }
  return at == x->data_end;
}

bpe_status bpe_builtin_load(const bpe_alloc *a, int which, bpe_error *e, bpe_model **out) {
  *out = NULL;
  const encoding *x = &encodings[which];
  bpe_builder *b = bpe_builder_new(a);
  if (b == NULL) return set_nomem(e);
  add_single_bytes(b);
  const bool whole = add_merges(b, x);
  bpe_builder_pattern(b, x->pattern, strlen(x->pattern), false);
  builder_vouch(b);
  if (!whole) {
    bpe_builder_free(b);
    return set_error(e, BPE_BADMODEL, 0, "built-in data is damaged: %s", x->name);
  }
  return bpe_builder_finish(b, e, out);
}
