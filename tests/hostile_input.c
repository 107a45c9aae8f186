/* hostile_input.c - model files, options and patterns that are small and want to be large or slow.
**
**     hostile_input [./bpe] [--full] [--sabotage]
**
** (1) Growth: each kind of source is made twice, the second four times as large. Reading it may take
**     TIMES times the CPU time at most, so nothing in it is quadratic, and memory in proportion to
**     the source. Where a source stands for more than a multiple of itself, it is refused by name.
** (2) Nonsense: JSON nested without end, keys that repeat, numbers of a megabyte, all that is no
**     UTF-8: refused by name, at once.
** (3) Patterns: in each place where a regex can be given, those that backtrack without end, compile
**     to much, recur, or look at all of a text from every place. Each ends, by itself or because it
**     is given up by name, within MOST_REGEX_MS of CPU time, and some must be given up.
**
** The whole runs with its address space limited. With --sabotage nothing may take any time.
*/
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#endif
#include "hostile.h"

#include <sys/resource.h>

enum { TIMES = 8, SLACK_MS = 30, RUNS = 3, MOST_REGEX_MS = 4000 };
enum { BASE_MB = 64, MEMORY_TIMES = 100, ADDRESS_SPACE_MB = 2048 };

static int slack_ms = SLACK_MS, times = TIMES;

/* ---- Sources: SQL expressions over the table seq(i), i = 0, 1, ..., with ?1 = n ------------------ */

#define LIST(text) "(SELECT group_concat(" text ") FROM seq WHERE i < ?1)"
#define BYTES_HEX "(SELECT group_concat(printf('\"%d\":\"%02x\"', i, i)) FROM seq WHERE i < 256)"
#define BYTES_HF "(SELECT group_concat(printf('\"<0x%02X>\":%d', i, i)) FROM seq WHERE i < 256)"
#define HF(added, normalizer, post, vocab) \
  "'{\"added_tokens\":[' || " added " || '],\"normalizer\":' || " normalizer \
  " || ',\"pre_tokenizer\":null,\"post_processor\":' || " post \
  " || ',\"decoder\":{\"type\":\"ByteFallback\"},\"model\":{\"type\":\"BPE\",\"byte_fallback\":true," \
  "\"vocab\":{' || " BYTES_HF " || " vocab " || '},\"merges\":[]}}'"
#define PREFIX "(SELECT group_concat('61', '') FROM seq WHERE i < 250)"

typedef struct growth {
  const char *what;
  const char *source, *specials; /* expressions; specials NULL: none */
  int n;
  const char *fault; /* part of the message; NULL: it is stored */
} growth;

static const growth growths[] = {
    {"merges that double", "'{\"pattern\":\"none\",\"merges\":[[97,97]' || "
     "(SELECT group_concat(printf(',[%d,%d]', 256 + i, 256 + i), '') FROM seq WHERE i < ?1) || ']}'",
     NULL, 40, "tokens have more than"},
    {"merges that add a letter", "'{\"pattern\":\"none\",\"merges\":[[97,97]' || "
     "(SELECT group_concat(printf(',[%d,97]', 256 + i), '') FROM seq WHERE i < ?1) || ']}'",
     NULL, 12000, "tokens have more than"},
    {"special tokens without ids", "'{\"pattern\":\"none\",\"merges\":[]}'",
     "'[' || " LIST("'\"<' || i || '>\"'") " || ']'", 6000, NULL},
    {"tokens around a document", "'{\"pattern\":\"none\",\"merges\":[],\"special_tokens\":[' || "
     LIST("'\"<' || i || '>\"'") " || '],\"bos\":[' || " LIST("'\"<9>\"'") " || ']}'", NULL, 4000,
     "more than 256 tokens before or after a document"},
    {"keys that repeat", HF("''", "'null'", "'null'", "(SELECT group_concat(',\"<0x00>\":' || (1000 + i),"
     " '') FROM seq WHERE i < ?1)"), NULL, 8000, "duplicate token"},
    {"an id that repeats", "'{\"pattern\":\"none\",\"vocab\":{\"0\":\"61\"},\"merges\":[]}'",
     "'{' || " LIST("'\"<' || (1000000 + i) || '>\":5000'") " || '}'", 4000,
     "more than 256 tokens share an id"},
    {"a long template", HF("'{\"id\":256,\"content\":\"<s>\",\"special\":true}'", "'null'",
     "'{\"type\":\"TemplateProcessing\",\"single\":[' || " LIST("'{\"SpecialToken\":{\"id\":\"x1\"}}'")
     " || ',{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{' || "
     LIST("'\"x' || (?1 - i) || '\":{\"ids\":[256]}'") " || '}}'", "''"), NULL, 3000,
     "more than 256 tokens before or after a document"},
    {"long tokens", "'{\"pattern\":\"none\",\"vocab\":{' || " BYTES_HEX " || (SELECT group_concat("
     "printf(',\"%d\":\"%s%06x\",\"%d\":\"%s%06x62\"', 1000 + i, p, i, 1000000 + i, p, i), '') FROM seq,"
     " (SELECT " PREFIX " AS p) WHERE i < ?1) || '},\"merges\":[' || (SELECT group_concat("
     "printf('[\"%s%06x\",\"62\"]', p, i)) FROM seq, (SELECT " PREFIX " AS p) WHERE i < ?1) || ']}'",
     NULL, 1200, NULL},
    {"arrays of nothing", "'{\"pattern\":\"none\",\"merges\":[' || " LIST("'[]'") " || ']}'", NULL, 20000,
     "is no pair of ids"},
    {"keys of nothing", "'{\"pattern\":\"none\"' || (SELECT group_concat(',\"x' || i || '\":1', '') FROM"
     " seq WHERE i < ?1) || ',\"merges\":[]}'", NULL, 20000, "unknown key: x0"},
    {"names in a schema", "'{\"pattern\":\"none\",\"merges\":[]}'", NULL, 4000, NULL},
};

enum { NAMES = sizeof growths / sizeof *growths - 1 }; /* the last, which is about the catalogue */

/* A value with ?1 = n, kept in the table src under a key. */
static void keep(hostile *h, sqlite3 *db, const char *key, const char *expression, int n) {
  sqlite3_stmt *s = NULL;
  char *sql = sqlite3_mprintf("INSERT INTO src SELECT %Q, %s", key, expression);
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  if (rc == SQLITE_OK && sqlite3_bind_parameter_count(s) > 0) sqlite3_bind_int(s, 1, n);
  if (rc == SQLITE_OK) rc = sqlite3_step(s);
  loaded_check(&h->t, rc == SQLITE_DONE, "%.300s: %s", sql, sqlite3_errmsg(db));
  sqlite3_finalize(s);
  sqlite3_free(sql);
}

static sqlite3 *open_with_seq(hostile *h) {
  sqlite3 *db = hostile_open(h, NULL);
  hostile_run(h, db, "CREATE TEMP TABLE seq AS WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1"
                     " FROM s WHERE i < 100000) SELECT i FROM s; CREATE TEMP TABLE src(key, value)");
  return db;
}

/* CPU time of reading one source, the least of some runs. */
static double time_of(hostile *h, sqlite3 *db, const growth *g, int n) {
  double least = 1e9;
  hostile_run(h, db, "DELETE FROM src");
  keep(h, db, "source", g->source, n);
  keep(h, db, "specials", g->specials ? g->specials : "NULL", n);
  char *size = hostile_value(h, db, "SELECT sum(length(value)) FROM src");
  for (int i = 0; i < RUNS; i++) {
    hostile_run(h, db, "SAVEPOINT s");
    if (g == &growths[NAMES]) {
      hostile_run(h, db, "INSERT INTO bpe_tokenizers(name, source) SELECT 'm', value FROM src WHERE key ="
                         " 'source'");
      char *fill = sqlite3_mprintf("INSERT INTO bpe_model(name) SELECT 'x%d.' || i FROM seq WHERE i < %d",
                                   i, n);
      hostile_run(h, db, fill); /* names that the catalogue has not seen */
      sqlite3_free(fill);
    }
    sqlite3_memory_highwater(1);
    const sqlite3_int64 before = sqlite3_memory_used();
    const double start = hostile_cpu_ms();
    const int rc =
        hostile_try(h, db, g == &growths[NAMES]
                               ? "SELECT count(*) FROM bpe_tokenizers"
                               : "INSERT INTO bpe_tokenizers(name, source, special_tokens) SELECT 'm',"
                                 " value, (SELECT value FROM src WHERE key = 'specials') FROM src WHERE"
                                 " key = 'source'");
    const double took = hostile_cpu_ms() - start;
    const sqlite3_int64 most = sqlite3_memory_highwater(0) - before;
    if (took < least) least = took;
    loaded_check(&h->t, most <= ((sqlite3_int64)BASE_MB << 20) + MEMORY_TIMES * atoll(size),
                 "%s: %lld bytes of memory for %s", g->what, (long long)most, size);
    if (g->fault)
      loaded_check(&h->t, rc == SQLITE_ERROR && strstr(sqlite3_errmsg(db), g->fault), "%s: %d %s",
                   g->what, rc, sqlite3_errmsg(db));
    else loaded_check(&h->t, rc == SQLITE_OK, "%s: %d %s", g->what, rc, sqlite3_errmsg(db));
    hostile_run(h, db, "ROLLBACK TO s; RELEASE s");
  }
  sqlite3_free(size);
  return least;
}

static void check_growth(hostile *h) {
  for (size_t i = 0; i < sizeof growths / sizeof *growths; i++) {
    sqlite3 *db = open_with_seq(h);
    const int n = growths[i].n;
    const double one = time_of(h, db, &growths[i], n), four = time_of(h, db, &growths[i], 4 * n);
    printf("%-28s %6d: %7.2f ms %6d: %7.2f ms\n", growths[i].what, n, one, 4 * n, four);
    loaded_check(&h->t, four <= times * one + slack_ms, "%s: %.1f ms, four times as many: %.1f ms",
                 growths[i].what, one, four);
    hostile_close(h, db);
  }
}

/* A normalizer of a few kilobytes that makes a letter a gigabyte. */
static void check_normalizer(hostile *h) {
  sqlite3 *db = open_with_seq(h);
  hostile_run(h, db, "INSERT INTO bpe_tokenizers(name, source) SELECT 'w', "
              HF("''", "'{\"type\":\"Sequence\",\"normalizers\":[' || s || ',' || s || ',' || s || ']}'",
                 "'null'", "''")
              " FROM (SELECT '{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"' ||"
              " group_concat('a', '') || '\"}' AS s FROM seq WHERE i < 1000)");
  sqlite3_memory_highwater(1);
  const sqlite3_int64 before = sqlite3_memory_used();
  hostile_fails(h, db, "SELECT bpe_count('a', 'w')", SQLITE_ERROR,
                "bpe_count: normalized text is more than 64 times as long");
  hostile_fails(h, db, "SELECT bpe_encode((SELECT group_concat('a', '') FROM seq WHERE i < 10000), 'w')",
                SQLITE_ERROR, "bpe_encode: normalized text is more than 64 times as long");
  hostile_gives(h, db, "SELECT bpe_count('bb', 'w')", "2");
  const sqlite3_int64 most = sqlite3_memory_highwater(0) - before;
  loaded_check(&h->t, most < (sqlite3_int64)BASE_MB << 20, "normalizing takes %lld bytes",
               (long long)most);
  hostile_close(h, db);
}

/* ---- (2) ------------------------------------------------------------------------------------- */

#define MANY(text) "(SELECT group_concat('" text "', '') FROM seq)"

static void check_nonsense(hostile *h) {
  static const char *const sources[] = {
      "'{\"a\":' || " MANY("[") , "'{\"a\":' || " MANY("{\"a\":"),
      "'{\"pattern\":\"none\",\"merges\":' || " MANY("[") " || " MANY("]") " || '}'",
      "'{' || " MANY("\"pattern\":\"none\",") " || '\"merges\":[]}'",
      "'{\"pattern\":\"none\",\"merges\":[[' || " MANY("9999999999") " || ',97]]}'",
      "'{\"pattern\":\"none\",\"merges\":[[1e400,97]]}'", "'{\"pattern\":\"none\",\"merges\":[[-0,97]]}'",
      "'{\"pattern\":\"none\",\"merges\":[[97.0,97]]}'", "'{\"pattern\":\"none\",\"merges\":[[0x61,97]]}'",
      "'{\"pattern\":\"none\",\"merges\":[[NaN,97]]}'", "'{\"pattern\":\"\\ud800\",\"merges\":[]}'",
      "'{\"pattern\":\"no\\u0000ne\",\"merges\":[]}'", "CAST(x'7b22ff223a317d' AS TEXT)",
      "x'7b22ff223a317d'", "'{\"pattern\":\"none\",\"merges\":[]}}'", "'{\"pattern\":\"none\",\"merges\":[],}'",
      "'{/*' || " MANY("x") " || '*/}'", "'{\"' || " MANY("x") " || '\":1}'", "'{'", "'[]'", "'{}'",
      "'{\"model\":' || " MANY("[") " || '}'", "'{\"model\":{\"vocab\":{},\"merges\":[]}}'",
      MANY("A"), MANY("="), MANY("IQ== 1 "), MANY("IQ== 99999999999\n"), "zeroblob(1000000)",
      "CAST('bpemodel' AS BLOB) || zeroblob(100)", "'minbpe v1' || char(10) || " MANY("x"),
      "'minbpe v1' || char(10) || '' || char(10) || '4000000000' || char(10)"};
  sqlite3 *db = open_with_seq(h);
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
    char *sql = sqlite3_mprintf("INSERT INTO src SELECT 'x', %s", sources[i]);
    hostile_run(h, db, "DELETE FROM src");
    hostile_run(h, db, sql);
    sqlite3_free(sql);
    const double start = hostile_cpu_ms();
    const int rc = hostile_try(h, db, "INSERT INTO bpe_tokenizers(name, source, pattern) SELECT 'n', value,"
                                      " NULL FROM src");
    const double took = hostile_cpu_ms() - start;
    loaded_check(&h->t, rc == SQLITE_ERROR && strncmp(sqlite3_errmsg(db), "bpe_tokenizers: ", 16) == 0,
                 "%s: %d %s", sources[i], rc, sqlite3_errmsg(db));
    loaded_check(&h->t, took < 10 * slack_ms, "%s takes %.0f ms", sources[i], took);
    /* The same as options, which are read by another hand. */
    if (strcmp(sources[i], "'{}'") == 0) continue; /* no options */
    const int other = hostile_try(h, db, "SELECT bpe_count('a', 'gpt2', CAST(value AS TEXT)) FROM src");
    loaded_check(&h->t, other == SQLITE_ERROR && strncmp(sqlite3_errmsg(db), "bpe_count: ", 11) == 0,
                 "options %s: %d %s", sources[i], other, sqlite3_errmsg(db));
  }
  hostile_gives(h, db, "SELECT count(*) FROM bpe_tokenizers WHERE schema = 'main'", "0");
  hostile_close(h, db);
}

/* A token that SQLite itself can hold, and the heap cannot twice. */
static void check_long_token(hostile *h) {
  sqlite3 *db = hostile_open(h, NULL);
  hostile_run(h, db, "INSERT INTO bpe_tokenizers(name, source) VALUES('m', '{\"pattern\":\"none\","
                     "\"merges\":[]}')");
  hostile_run(h, db, "INSERT INTO bpe_model_vocab VALUES(1, 300, zeroblob(40000000), 'token')");
  const sqlite3_int64 limit = sqlite3_memory_used() + 80000000;
  char *sql = sqlite3_mprintf("PRAGMA hard_heap_limit = %lld", (long long)limit);
  sqlite3_memory_highwater(1);
  hostile_run(h, db, sql);
  sqlite3_free(sql);
  const int rc = hostile_try(h, db, "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'm'");
  loaded_check(&h->t, rc == SQLITE_NOMEM || rc == SQLITE_ERROR, "a long token: %d %s", rc,
               sqlite3_errmsg(db));
  loaded_check(&h->t, sqlite3_memory_highwater(0) <= limit, "the heap limit is passed");
  sqlite3_hard_heap_limit64(0);
  hostile_run(h, db, "DELETE FROM bpe_model_vocab WHERE id = 300");
  hostile_run(h, db, "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'm'");
  hostile_gives(h, db, "SELECT bpe_encode('a', 'm')", "[97]");
  hostile_close(h, db);
}

/* ---- (3) ------------------------------------------------------------------------------------- */

#define TWICE(x) x x
#define FOUR(x) TWICE(TWICE(x))
#define SIXTEEN(x) FOUR(FOUR(x))

static const char *const patterns[] = {
    "(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*)*x", "(a*)*\\1b", "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(?:a?){64}a{64}b", "(a(?R)?a?)+b", "(?:(?:(?:a+)+)+)+b", "(?=(a+))\\1*b|a", "(?<=a)(a+)+b",
    "(.+)+\\1+b", "(?>a+)+b", "(a{0,100}){0,100}b", "\\w+\\s+x|.", "a+b|a", "[^x]*x|.", "(?i)(A+)+B",
    "(\\p{L}+\\p{L}+)+\\d", "(?:.{1,9}){1,99}b", "(?|(a+)|(a))+b", "(?(?=a)a+|b)*c",
    SIXTEEN(SIXTEEN("(")), "(((a{1000}){1000}){1000})", "a{65535}{65535}", "(?:a{0,65535}){0,65535}b",
    "(?<=a{1,1000})b", "(?R)", "(?1)", "(a|(?1))*", SIXTEEN(SIXTEEN("(?:a*")), "\\C", "(?C1)a",
    "(*LIMIT_MATCH=4000000000)(a+)+$", "(*LIMIT_HEAP=4000000000)(a+)+$", "(*NO_JIT)(a+)+$",
    "(*UTF)(*UCP)(a+)+$", "(*ANYCRLF)\\R+x", "(?#" SIXTEEN(SIXTEEN("x")), "\\K", "(?=\\K)a|", "(?<=\\K.)a",
};

static const char *const subjects[] = {
    "(SELECT group_concat('a', '') FROM seq WHERE i < 40) || '!'",
    "(SELECT group_concat('a', '') FROM seq WHERE i < 6000)",
    "(SELECT group_concat('ab c', '') FROM seq WHERE i < 1500)",
};

static const char *const entries[] = {
    "SELECT count(*) FROM bpe_pieces(?2, 'gpt2', json_object('regex', ?1))",
    "SELECT length(bpe_train(?2, 300, json_object('regex', ?1, 'threads', 1)))",
    "SELECT length(bpe_train(?2, 300, json_object('regex', ?1, 'threads', 2)))",
    "INSERT INTO bpe_tokenizers(name, source, options) VALUES('r', '{\"merges\":[]}',"
    " json_object('regex', ?1))",
    "INSERT INTO bpe_tokenizers(name, source) VALUES('r', json_object('merges', json('[]'), 'regex', ?1))",
    "INSERT INTO bpe_tokenizers(name, source) VALUES('r', json_object('model', json_object('vocab',"
    " json_object('a', 0), 'merges', json('[]')), 'pre_tokenizer', json_object('type', 'Sequence',"
    " 'pretokenizers', json_array(json_object('type', 'Split', 'behavior', 'Isolated', 'pattern',"
    " json_object('Regex', ?1)), json_object('type', 'ByteLevel', 'use_regex', json('false'),"
    " 'add_prefix_space', json('false'))))))",
    "INSERT INTO bpe_tokenizers(name, source) VALUES('r', 'minbpe v1' || char(10) || ?1 || char(10) || '0'"
    " || char(10))",
};

enum { N_ENTRIES = sizeof entries / sizeof *entries };

static int regex_step(hostile *h, sqlite3 *db, const char *sql, const char *pattern,
                      const char *subject, double *most) {
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  if (rc == SQLITE_OK) sqlite3_bind_text(s, 1, pattern, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK && sqlite3_bind_parameter_count(s) > 1)
    sqlite3_bind_text(s, 2, subject, -1, SQLITE_STATIC);
  const double start = hostile_cpu_ms();
  if (rc == SQLITE_OK) rc = sqlite3_step(s);
  const double took = hostile_cpu_ms() - start;
  if (took > *most) *most = took;
  loaded_check(&h->t, took < MOST_REGEX_MS, "%.40s by %.40s: %.0f ms", pattern, sql, took);
  const char *said = sqlite3_errmsg(db);
  loaded_check(&h->t,
               rc == SQLITE_ROW || rc == SQLITE_DONE ||
                   (rc == SQLITE_ERROR && strncmp(said, "bpe_", 4) == 0 &&
                    (strstr(said, "regex") || strstr(said, "pre_tokenizer") ||
                     strstr(said, "not in the vocabulary") || strstr(said, "no token"))),
               "%.40s by %.40s: %d %s", pattern, sql, rc, said);
  const bool gave_up = rc == SQLITE_ERROR && strstr(said, "regex gave up at byte ");
  sqlite3_finalize(s);
  return gave_up ? 1 : rc == SQLITE_DONE ? -1 : 0; /* -1: stored */
}

static void check_patterns(hostile *h) {
  double most = 0;
  int given_up[N_ENTRIES] = {0};
  sqlite3 *db = open_with_seq(h);
  sqlite3_progress_handler(db, 0, NULL, NULL);
  for (size_t k = 0; k < sizeof subjects / sizeof *subjects; k++) {
    char *sql = sqlite3_mprintf("SELECT %s", subjects[k]);
    char *subject = hostile_value(h, db, sql);
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
      for (int e = (h->full ? 0 : (int)(p + k) % 3); e < N_ENTRIES; e += h->full ? 1 : 3) {
        int end = regex_step(h, db, entries[e], patterns[p], subject, &most);
        if (end < 0) {
          end = regex_step(h, db, "SELECT bpe_count(?2, 'r') + length(?1)", patterns[p], subject, &most);
          hostile_run(h, db, "DELETE FROM bpe_tokenizers WHERE name = 'r'");
        }
        given_up[e] += end > 0;
      }
    }
    sqlite3_free(subject);
    sqlite3_free(sql);
  }
  printf("patterns: at most %.0f ms; given up", most);
  for (int e = 0; e < N_ENTRIES; e++) {
    printf(" %d", given_up[e]);
    loaded_check(&h->t, given_up[e] > 0 || e == 5, "entry %d never gives up", e);
  }
  printf(" times\n");
  hostile_gives(h, db, "SELECT bpe_count('hello world', 'gpt2')", "2");
  hostile_close(h, db);
}

int main(int argc, char **argv) {
  hostile h;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const struct rlimit space = {(rlim_t)ADDRESS_SPACE_MB << 20, (rlim_t)ADDRESS_SPACE_MB << 20};
  setrlimit(RLIMIT_AS, &space);
#endif
  hostile_begin(&h, argc, argv);
  if (h.sabotage) slack_ms = times = 0;
  check_growth(&h);
  check_normalizer(&h);
  check_nonsense(&h);
  if (!h.sabotage) {
    check_long_token(&h);
    check_patterns(&h);
  }
  return hostile_end(&h);
}
