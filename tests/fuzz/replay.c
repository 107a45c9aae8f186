/* replay.c - runs a fuzz target over kept inputs, without libFuzzer.
**
**     replay-encode tests/fuzz/corpus/encode [folder or file ...]
**
** Each file of a folder is one input, in order of name; beside it, its first half is run too,
** and an empty input. A target that fails ends the process, and the input is named. The last
** line counts inputs; none at all is a failure.
*/
#define _POSIX_C_SOURCE 200809L

#include "fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char current[4096]; /* the input being run */

static void name_input(int signal_number) {
  static const char prefix[] = "input: ";
  (void)!write(STDERR_FILENO, prefix, sizeof prefix - 1);
  (void)!write(STDERR_FILENO, current, strlen(current));
  (void)!write(STDERR_FILENO, "\n", 1);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

/* In memory of exactly its size, so that a sanitizer sees a byte read behind it. */
static void run_bytes(const uint8_t *bytes, size_t len) {
  uint8_t *copy = malloc(len == 0 ? 1 : len);
  if (copy == NULL) abort();
  if (len != 0) memcpy(copy, bytes, len);
  LLVMFuzzerTestOneInput(copy, len);
  free(copy);
}

static size_t run_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (f == NULL) {
    printf("%s: cannot read\n", path);
    return 0;
  }
  uint8_t *bytes = NULL;
  size_t len = 0, cap = 0, n = 1;
  while (n > 0) {
    if (len == cap && (bytes = realloc(bytes, cap = 2 * cap + 4096)) == NULL) abort();
    n = fread(bytes + len, 1, cap - len, f);
    len += n;
  }
  fclose(f);
  snprintf(current, sizeof current, "%s", path);
  run_bytes(bytes, len);
  run_bytes(bytes, len / 2);
  free(bytes);
  return 1;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t run_folder(const char *path) {
  DIR *dir = opendir(path);
  if (dir == NULL) {
    printf("%s: cannot read\n", path);
    return 0;
  }
  char **names = NULL;
  size_t n = 0, ran = 0;
  for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    names = realloc(names, (n + 1) * sizeof *names);
    char *full = malloc(strlen(path) + strlen(entry->d_name) + 2);
    if (names == NULL || full == NULL) abort();
    sprintf(full, "%s/%s", path, entry->d_name);
    names[n++] = full;
  }
  closedir(dir);
  if (n > 0) qsort(names, n, sizeof *names, compare_names);
  for (size_t i = 0; i < n; i++) {
    ran += run_file(names[i]);
    free(names[i]);
  }
  free(names);
  if (ran == 0) printf("%s: no inputs\n", path);
  return ran == n ? ran : 0;
}

int main(int argc, char **argv) {
  unsigned long passed = 0, failed = argc < 2;
  signal(SIGABRT, name_input);
  signal(SIGSEGV, name_input);
  snprintf(current, sizeof current, "(no bytes)");
  run_bytes(NULL, 0);
  for (int i = 1; i < argc; i++) {
    struct stat st;
    const bool is_folder = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);
    const size_t ran = is_folder ? run_folder(argv[i]) : run_file(argv[i]);
    passed += ran;
    failed += ran == 0;
  }
  printf("%lu passed, %lu failed\n", passed, failed);
  return failed != 0;
}
