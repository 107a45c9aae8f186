/* prop.c - random texts through the core and through the oracle, which must agree.
**
**     prop [--cases N] [--sql N] [--seed S|time] [--only CASE] [--only-sql CASE]
**          [--jobs J] [--core] [--sabotage] [--ext ./bpe] [--encodings DIR] [--classes FILE]
**
** For any bytes x and any tokenizer: the walk's pieces tile x and are the oracle's, with the
** oracle's ids; the bytes of the ids tile x; count, JSON and packed ids are those of the walk; the
** ids decode to x; a byte without token is an error at the same place; the same holds with special
** tokens allowed (all, or some), forbidden, with BOS and EOS, and for two walks by turns.
**
** Cases come in groups of GROUP that share a tokenizer: a built-in encoding or, one group in
** three, a random one. Seed and number decide everything, so `--seed S --only CASE` repeats one
** (with the rest of its group before it, because the coder remembers). On a failure the text is
** shrunk as long as something fails, byte by byte. --sabotage gives the oracle wrong patterns, to
** show that a failure is one.
**
** A smaller number of cases (--sql) asks the same of the built extension; --core leaves them out.
** Last line: N passed, N failed.
*/
#define _POSIX_C_SOURCE 200809L
#include "prop_check.h"
#include "prop_sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GROUP = 128, MAX_JOBS = 16, MAX_FAILURES = 20 };
enum { N_BUILTINS = 7 };

static const char *const builtins[N_BUILTINS] = {
  "gpt2", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony", "r50k_base", "p50k_base"};
/* Share of each among the built-in groups, of 32: the last two have the tables of the first. */
static const uint8_t shares[N_BUILTINS] = {6, 4, 7, 7, 6, 1, 1};

/* What a process has done; added up at the end. */
typedef struct tally {
  uint64_t passed, failed, through_sql;
  uint64_t kinds[PROP_KINDS], subjects[N_BUILTINS + 1];
  uint64_t malformed, lengths[4]; /* up to 64, 300, 1023, above */
  prop_counts counts;
} tally;

typedef struct options {
  uint64_t seed, cases, sql;
  uint64_t only, only_sql; /* UINT64_MAX: all */
  uint32_t jobs;
  bool sabotage;
  const char *encodings, *classes, *extension;
} options;

typedef struct job {
  const options *o;
  prop_world world;
  prop_subject builtin[N_BUILTINS];
  tally t;
} job;

/* ---- Failures -------------------------------------------------------------------------------- */

static void print_hex(const char *label, const uint8_t *bytes, size_t len) {
  printf("  %s (%zu bytes): ", label, len);
  for (size_t i = 0; i < len && i < 400; i++) printf("%02x", bytes[i]);
  printf("%s\n", len > 400 ? "..." : "");
}

/* What is asked of a text: whether it still fails, from a fresh start. */
typedef struct question {
  prop_subject *s;
  const prop_mode *mode; /* NULL: through SQL */
  prop_sql *sql;
  bool allow, as_text;
} question;

static const char *ask(const question *q, const uint8_t *text, size_t len) {
  if (!q->mode) return prop_sql_check(q->sql, q->s, q->allow, q->as_text, text, len);
  return prop_subject_forget(q->s) ? prop_check(q->s, q->mode, text, len, NULL) : "no coder";
}

/* Takes out halves, quarters, ..., single bytes, as long as the text fails without them. */
static void shrink(const question *q, prop_text *text) {
  uint8_t *shorter = oracle_realloc(NULL, text->len);
  for (size_t step = text->len; step > 0;) {
    bool shrunk = false;
    for (size_t at = 0; at < text->len;) {
      const size_t out = step < text->len - at ? step : text->len - at;
      const size_t len = text->len - out;
      memcpy(shorter, text->bytes, at);
      memcpy(shorter + at, text->bytes + at + out, len - at);
      if (ask(q, shorter, len) != NULL) {
        memcpy(text->bytes, shorter, len);
        text->len = len;
        shrunk = true;
      } else {
        at += step;
      }
    }
    if (!shrunk) step /= 2;
    if (step > text->len && text->len > 0) step = text->len;
  }
  free(shorter);
}

static void report(const job *j, const question *q, uint64_t number, prop_text *text,
                   const char *what) {
  printf("FAILED --seed %llu --only%s %llu: %s\n  tokenizer %s; ",
         (unsigned long long)j->o->seed, q->mode ? "" : "-sql", (unsigned long long)number, what,
         q->s->name);
  if (q->mode) prop_mode_print(q->mode, q->s);
  else printf("%s, as %s\n", q->allow ? "everything allowed" : "nothing allowed",
              q->as_text ? "TEXT" : "BLOB");
  print_hex("text", text->bytes, text->len);
  if (q->mode) prop_check_print();
  if (!ask(q, text->bytes, text->len)) {
    printf("  but not from a fresh start: it depends on the texts before\n");
  } else {
    shrink(q, text);
    const char *again = ask(q, text->bytes, text->len);
    printf("  shrunk: %s\n", again ? again : "(passes now)");
    print_hex("text", text->bytes, text->len);
    if (q->mode) prop_check_print();
  }
  fflush(stdout);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

/* One of the built-in encodings, made when it is first wanted. */
static prop_subject *builtin_subject(job *j, prop_rng *rng) {
  int i = 0;
  for (uint32_t r = prop_below(rng, 32); r >= shares[i]; i++) r -= shares[i];
  prop_subject *s = &j->builtin[i];
  return s->model || prop_subject_builtin(s, &j->world, builtins[i]) ? s : NULL;
}

static bool is_well_formed(const prop_text *text) {
  uint32_t cp;
  for (size_t at = 0, step; at < text->len; at += step) {
    step = oracle_utf8(text->bytes + at, text->len - at, &cp);
    if (step == 0) return false;
  }
  return true;
}

static void run_case(job *j, prop_subject *s, uint64_t number, prop_text *text) {
  prop_rng rng = prop_seed(j->o->seed, number);
  const prop_mode mode = prop_mode_random(&rng, s);
  prop_text_make(text, &rng, &s->source);
  tally *t = &j->t;
  t->kinds[text->kind]++;
  t->malformed += !is_well_formed(text);
  t->lengths[text->len <= 64 ? 0 : text->len <= 300 ? 1 : text->len < 1024 ? 2 : 3]++;
  const char *what = prop_check(s, &mode, text->bytes, text->len, &t->counts);
  if (!what) {
    t->passed++;
  } else if (t->failed++ < MAX_FAILURES) {
    report(j, &(question){.s = s, .mode = &mode}, number, text, what);
  }
}

static void run_sql_case(job *j, prop_sql *sql, uint64_t number, prop_text *text) {
  prop_rng rng = prop_seed(~j->o->seed, UINT64_MAX - number);
  prop_subject *s = builtin_subject(j, &rng);
  if (!s) {
    j->t.failed++;
    return;
  }
  const question q = {.s = s, .sql = sql, .allow = prop_one_in(&rng, 3),
                      .as_text = prop_one_in(&rng, 2)};
  prop_text_make(text, &rng, &s->source);
  const char *what = ask(&q, text->bytes, text->len);
  j->t.through_sql++;
  if (!what) {
    j->t.passed++;
  } else if (j->t.failed++ < MAX_FAILURES) {
    report(j, &q, number, text, what);
  }
}

/* The tokenizer of a group; random ones are made in *own. */
static prop_subject *group_subject(job *j, uint64_t group, prop_subject *own) {
  prop_rng rng = prop_seed(~j->o->seed, group);
  if (prop_one_in(&rng, 3)) {
    j->t.subjects[N_BUILTINS]++;
    return prop_subject_random(own, &j->world, j->o->seed, group) ? own : NULL;
  }
  prop_subject *s = builtin_subject(j, &rng);
  if (s) j->t.subjects[s - j->builtin]++;
  return s;
}

static void run_group(job *j, uint64_t group, uint64_t end) {
  prop_text text = {0};
  prop_subject own = {0};
  prop_subject *s = group_subject(j, group, &own);
  if (!s) {
    j->t.failed++;
    printf("  in group %llu of seed %llu\n", (unsigned long long)group,
           (unsigned long long)j->o->seed);
  }
  for (uint64_t i = group * GROUP; s && i < (group + 1) * GROUP && i < end; i++) {
    run_case(j, s, i, &text);
  }
  prop_subject_clear(&own);
  prop_text_clear(&text);
}

static void run_core(job *j, uint32_t which) {
  const options *o = j->o;
  const bool all = o->only == UINT64_MAX;
  const uint64_t end = all ? o->cases : o->only + 1;
  for (uint64_t g = all ? which : o->only / GROUP; g * GROUP < end; g += o->jobs) {
    run_group(j, g, end);
  }
}

static void run_sql(job *j, uint32_t which) {
  const options *o = j->o;
  const bool all = o->only_sql == UINT64_MAX;
  prop_text text = {0};
  prop_sql sql;
  if (!prop_sql_open(&sql, o->extension)) {
    j->t.failed++;
  } else if (!all) {
    run_sql_case(j, &sql, o->only_sql, &text);
  } else {
    for (uint64_t i = which; i < o->sql; i += o->jobs) run_sql_case(j, &sql, i, &text);
  }
  prop_sql_close(&sql);
  prop_text_clear(&text);
}

static void run_job(job *j, uint32_t which) {
  const options *o = j->o;
  if (!prop_world_open(&j->world, o->encodings, o->classes, o->sabotage)) {
    j->t.failed++;
    return;
  }
  if (o->only_sql == UINT64_MAX) run_core(j, which);
  if (o->only == UINT64_MAX && o->sql > 0) run_sql(j, which);
  for (int i = 0; i < N_BUILTINS; i++) prop_subject_clear(&j->builtin[i]);
  prop_world_close(&j->world);
  prop_check_clear();
}

/* ---- The run --------------------------------------------------------------------------------- */

static void add(tally *sum, const tally *t) {
  uint64_t *to = (uint64_t *)sum;
  const uint64_t *from = (const uint64_t *)t; /* nothing but uint64_t in it */
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += from[i];
}

/* Every job in a process of its own; what one does not tell because it crashed is a failure. */
static void run_all(const options *o, tally *sum) {
  int from[MAX_JOBS];
  for (uint32_t k = 0; k < o->jobs; k++) {
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0) exit(2);
    const pid_t pid = fork();
    if (pid < 0) exit(2);
    if (pid == 0) {
      static job j;
      close(ends[0]);
      j.o = o;
      run_job(&j, k);
      fflush(stdout);
      const bool told = write(ends[1], &j.t, sizeof j.t) == (ssize_t)sizeof j.t;
      exit(told ? 0 : 2); /* not _exit: a leak checker reports at exit */
    }
    close(ends[1]);
    from[k] = ends[0];
  }
  for (uint32_t k = 0; k < o->jobs; k++) {
    tally t;
    int status = 0;
    if (read(from[k], &t, sizeof t) == (ssize_t)sizeof t) {
      add(sum, &t);
    } else {
      printf("FAILED job %u ended without a result\n", k);
      sum->failed++;
    }
    close(from[k]);
    if (wait(&status) < 0 || status != 0) sum->failed++;
  }
}

static void print_share(const char *name, uint64_t n, uint64_t all) {
  printf("  %-18s %9llu  %5.1f %%\n", name, (unsigned long long)n,
         all ? 100.0 * (double)n / (double)all : 0.0);
}

static void print_tally(const tally *t) {
  static const char *const lengths[] = {"to 64 bytes", "to 300", "to 1023", "longer"};
  const uint64_t all = t->passed + t->failed - t->through_sql; /* which are not in the shares */
  const prop_counts *c = &t->counts;
  uint64_t groups = 0;
  for (int k = 0; k < PROP_KINDS; k++) print_share(prop_kind_name((prop_kind)k), t->kinds[k], all);
  for (int k = 0; k < 4; k++) print_share(lengths[k], t->lengths[k], all);
  print_share("malformed UTF-8", t->malformed, all);
  print_share("specials allowed", c->allowed, all);
  print_share("specials found", c->found, all);
  print_share("text forbidden", c->forbidden, all);
  print_share("with BOS, EOS", c->document, all);
  print_share("two walks by turns", c->by_turns, all);
  print_share("another pattern", c->pattern, all);
  print_share("byte without token", c->untokenized, all);
  printf("  %llu bytes, %llu pieces, %llu ids; %llu bytes in pieces of 1024 or more\n",
         (unsigned long long)c->bytes, (unsigned long long)c->pieces, (unsigned long long)c->ids,
         (unsigned long long)c->long_bytes);
  for (int k = 0; k <= N_BUILTINS; k++) groups += t->subjects[k];
  printf("  of %llu tokenizers (%d texts each):", (unsigned long long)groups, GROUP);
  for (int k = 0; k <= N_BUILTINS; k++) {
    printf(" %s %llu", k < N_BUILTINS ? builtins[k] : "random", (unsigned long long)t->subjects[k]);
  }
  printf("\n");
}

static bool read_options(options *o, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i];
    if (strcmp(name, "--core") == 0) {
      o->sql = 0;
      continue;
    }
    if (strcmp(name, "--sabotage") == 0) {
      o->sabotage = true;
      continue;
    }
    const char *value = argv[++i];
    if (!value) return false;
    const uint64_t number = strcmp(value, "time") == 0 ? (uint64_t)time(NULL)
                                                       : strtoull(value, NULL, 10);
    if (strcmp(name, "--cases") == 0) o->cases = number;
    else if (strcmp(name, "--sql") == 0) o->sql = number;
    else if (strcmp(name, "--seed") == 0) o->seed = number;
    else if (strcmp(name, "--only") == 0) o->only = number;
    else if (strcmp(name, "--only-sql") == 0) o->only_sql = number;
    else if (strcmp(name, "--jobs") == 0) o->jobs = (uint32_t)number;
    else if (strcmp(name, "--ext") == 0) o->extension = value;
    else if (strcmp(name, "--encodings") == 0) o->encodings = value;
    else if (strcmp(name, "--classes") == 0) o->classes = value;
    else return false;
  }
  if (o->only != UINT64_MAX || o->only_sql != UINT64_MAX || o->jobs == 0) o->jobs = 1;
  if (o->jobs > MAX_JOBS) o->jobs = MAX_JOBS;
  return true;
}

int main(int argc, char **argv) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  options o = {.seed = 1, .cases = 1000000, .sql = 20000, .only = UINT64_MAX,
               .only_sql = UINT64_MAX, .jobs = cores > 0 ? (uint32_t)cores : 1,
               .encodings = "data/encodings", .classes = "tests/vectors/unicode-classes.json",
               .extension = "./bpe"};
  static tally sum;
  if (!read_options(&o, argc, argv)) {
    printf("usage: prop [--cases N] [--sql N] [--seed S|time] [--only CASE] [--only-sql CASE] "
           "[--jobs J]\n            [--core] [--sabotage] [--ext FILE] [--encodings DIR] "
           "[--classes FILE]\n");
    return 2;
  }
  printf("prop: seed %llu, %llu cases, %llu through SQL, %u jobs\n", (unsigned long long)o.seed,
         (unsigned long long)o.cases, (unsigned long long)o.sql, o.jobs);
  run_all(&o, &sum);
  print_tally(&sum);
  printf("%llu passed, %llu failed\n", (unsigned long long)sum.passed,
         (unsigned long long)sum.failed);
  return sum.failed > 0 || sum.passed == 0;
}
