/* slt.c - runs SQL test files (sqllogictest style) against the built extension.
**
**     slt [--ext PATH | --no-ext] [--verify | --rewrite] [--oom | --oom=sticky]
**         [--encoding utf8|utf16le|utf16be] [--filter TEXT] FILE...
**
** --ext (default ./bpe) loads the extension with sqlite3_load_extension; a runner compiled with
** -DSLT_STATIC calls its entry point instead. --verify, the default, compares; --rewrite puts
** what came into the files. --oom lets every allocation fail in turn. --filter runs the files
** whose path contains TEXT. The grammar of the files stands in slt_parse.c.
**
** One line a file, and the details of each failure before it; the last line is
** "N passed, N failed". The status is 0 only if nothing failed and at least one record passed.
** A file fails also when a connection does not close (a statement is left), when SQLite's
** memory in use is not afterwards what it was before, and under --oom when no failed allocation
** was ever noticed while a bpe_ function ran.
**
** --selftest adds the helper functions and, with --selftest=mute, the fault of an allocator that
** never fails: selftest.sh shows with them that all this is noticed.
*/
#include "slt.h"

#include <stdio.h>
#include <string.h>

typedef struct totals {
  unsigned long passed, failed;
} totals;

typedef struct options {
  settings set;
  const char *filter;
  bool mute;
} options;

/* ---- One file ------------------------------------------------------------------------------- */

static void print_summary(const session *s) {
  printf("%s: %lu passed, %lu failed", s->path, s->passed, s->failed);
  if (s->skipped) printf(", %lu skipped", s->skipped);
  if (s->rewritten) printf(", %lu rewritten", s->rewritten);
  if (s->set->oom != OOM_OFF)
    printf("; %lu allocations failed, %lu NOMEM, %lu of them in bpe_ records, %lu uninjected",
           s->injected, s->nomem, s->nomem_in_bpe, s->uninjected);
  putchar('\n');
}

static void check_memory(session *s, sqlite3_int64 before) {
  const sqlite3_int64 after = sqlite3_memory_used();
  if (after == before) return;
  report(s, NULL, NULL, "memory leaked: %lld bytes", (long long)(after - before));
  fputs(text_str(&s->suspects), stdout);
}

static void run_file(const settings *set, const char *path, totals *sum) {
  text why = {0};
  script *sc = script_load(path, &why);
  if (!sc) {
    printf("%s\n", text_str(&why));
    sum->failed++;
    text_free(&why);
    return;
  }
  session s = {.set = set, .path = path, .db_kind = "memory", .real_format = "%.15g", .ticks = -1};
  const sqlite3_int64 before = sqlite3_memory_used();
  if (session_open(&s)) script_run(&s, sc, 0);
  session_close(&s);
  check_memory(&s, before);
  if (set->oom != OOM_OFF && s.bpe_records && s.nomem_in_bpe == 0)
    report(&s, NULL, NULL, "no failed allocation was noticed while a bpe_ function ran");
  if (set->rewrite) edits_write(&s, sc);
  print_summary(&s);
  sum->passed += s.passed;
  sum->failed += s.failed;
  session_free(&s);
  script_free(sc);
  text_free(&why);
}

/* What is allocated once for the whole process must not count as the first file's leak. */
static bool warm_up(const settings *set) {
  session s = {.set = set, .path = "slt", .db_kind = "memory", .real_format = "%.15g", .ticks = -1};
  const bool opened = session_open(&s);
  const bool closed = session_close(&s);
  session_free(&s);
  return opened && closed;
}

/* ---- Options -------------------------------------------------------------------------------- */

static bool starts(const char *s, const char *prefix) {
  return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool set_encoding(settings *set, const char *name) {
  if (strcmp(name, "utf8") != 0 && strcmp(name, "utf16le") != 0 && strcmp(name, "utf16be") != 0)
    return false;
  set->encoding = strcmp(name, "utf8") == 0 ? NULL : name;
  return true;
}

/* Options that stand alone. */
static bool take_flag(options *o, const char *arg) {
  settings *set = &o->set;
  if (strcmp(arg, "--no-ext") == 0) set->extension = NULL;
  else if (strcmp(arg, "--verify") == 0) set->rewrite = false;
  else if (strcmp(arg, "--rewrite") == 0) set->rewrite = true;
  else if (strcmp(arg, "--oom") == 0) set->oom = OOM_ONCE;
  else if (strcmp(arg, "--oom=sticky") == 0) set->oom = OOM_STICKY;
  else if (strcmp(arg, "--selftest") == 0) set->selftest = true;
  else if (strcmp(arg, "--selftest=mute") == 0) o->mute = set->selftest = true;
  else return false;
  return true;
}

/* Options with a value: "--name value" or "--name=value". */
static bool take_value(options *o, const char *arg, const char *next, bool *used_next) {
  static const char *const names[] = {"--ext", "--encoding", "--filter"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *end = arg + strlen(names[i]);
    if (!starts(arg, names[i]) || (*end != '\0' && *end != '=')) continue;
    const char *value = *end ? end + 1 : next;
    *used_next = *end == '\0';
    if (!value) return false;
    if (i == 0) o->set.extension = value;
    if (i == 1) return set_encoding(&o->set, value);
    if (i == 2) o->filter = value;
    return true;
  }
  return false;
}

/* Moves the files to the front of argv; their number, or -1 and a message. */
static int parse_options(options *o, int argc, char **argv) {
  int n = 0;
  for (int i = 1; i < argc; i++) {
    bool used_next = false;
    if (argv[i][0] != '-') {
      argv[n++] = argv[i];
    } else if (!take_flag(o, argv[i]) &&
               !take_value(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used_next)) {
      fprintf(stderr, "slt: not an option, or without its value: %s\n", argv[i]);
      return -1;
    }
    i += used_next;
  }
  if (o->set.rewrite && o->set.oom != OOM_OFF) {
    fputs("slt: --rewrite and --oom exclude each other\n", stderr);
    return -1;
  }
  return n;
}

int main(int argc, char **argv) {
  options o = {.set.extension = "./bpe"};
  totals sum = {0, 0};
  const int n = parse_options(&o, argc, argv);
  if (n < 0) return 2;
  setvbuf(stdout, NULL, _IOLBF, 1 << 16);
  if (o.set.oom != OOM_OFF && !oom_install()) {
    fputs("slt: SQLite's allocator cannot be replaced\n", stderr);
    return 2;
  }
  if (o.mute) oom_break();
  if (!warm_up(&o.set)) {
    puts("0 passed, 1 failed");
    return 1;
  }
  if (o.set.oom != OOM_OFF && !oom_load(&o.set)) sum.failed++;
  for (int i = 0; i < n; i++)
    if (!o.filter || strstr(argv[i], o.filter)) run_file(&o.set, argv[i], &sum);
  printf("%lu passed, %lu failed\n", sum.passed, sum.failed);
  return sum.failed != 0 || sum.passed == 0;
}
