/* published.c - see published.h. The texts are verbatim: tidying one changes the format. gpt2,
** cl100k and o200k are those of tiktoken up to 0.7 (github.com/openai/tiktoken), qwen2, tekken and
** deepseek3 those of the models' tokenizer.json (huggingface.co), whitespace and words ours. */
#include "published.h"

#include <string.h>

typedef struct published {
  const char *name, *regex;
} published;

static const published rows[] = {
    {"gpt2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\"
             "s+"},
    {"cl100k", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\"
               "p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {"o200k", "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{L"
              "o}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\"
              "p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
              "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {"qwen2", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}"
              "\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {"tekken", "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{L"
               "o}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\"
               "p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+("
               "?!\\S)|\\s+"},
    {"whitespace", "\\s+|\\S+"},
    {"words", "[\\p{L}\\p{M}\\p{N}_]+|\\s+|[^\\s\\p{L}\\p{M}\\p{N}_]+"},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

const char *const published_deepseek3[DEEPSEEK3_STEPS] = {
    "\\p{N}{1,3}",
    ("[\xe4\xb8\x80"
     "-\xe9\xbe\xa5"
     "\xe3\x81\x80"
     "-\xe3\x82\x9f"
     "\xe3\x82\xa0"
     "-\xe3\x83\xbf"
     ""
     "]+"),
    ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]"
     "?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
};

static bool is(const char *text, const char *s, size_t len) {
  return strlen(text) == len && memcmp(text, s, len) == 0;
}

const char *published_regex(const char *name, size_t len) {
  if (is("llama3", name, len)) name = "cl100k", len = 6;
  for (int i = 0; i < N_ROWS; i++)
    if (is(rows[i].name, name, len)) return rows[i].regex;
  return NULL;
}

const char *published_name(const char *regex, size_t len) {
  for (int i = 0; i < N_ROWS; i++)
    if (is(rows[i].regex, regex, len)) return rows[i].name;
  return NULL;
}
