/* known.c - numbers for stored tokenizers: the first (schema, name) that comes is 0, and so on.
**
** A number stands for the same pair as long as the list lives. Names come schema by schema and in
** order, so new ones go to the end of the sorted list nearly always, and any number of names is
** numbered in n log n steps.
**
**     known_number(&k, "main", name)     0, again and again
*/
#include "ext.h"

#include <string.h>

void known_clear(known_list *k) {
  for (int i = 0; i < k->n; i++) sqlite3_free(k->list[i].owned);
  for (int i = 0; i < k->n_schemas; i++) sqlite3_free(k->schemas[i]);
  sqlite3_free(k->list);
  sqlite3_free(k->sorted);
  sqlite3_free(k->schemas);
  *k = (known_list){.n = 0};
}

/* Room for one more; false: out of memory. */
static bool grow(void **list, int n, sqlite3_uint64 size) {
  if (n % 16 != 0 || (n & (n - 1)) != 0) return true; /* at 0 and the powers of two from 16 on */
  void *more = sqlite3_realloc64(*list, (n == 0 ? 16 : 2 * (sqlite3_uint64)n) * size);
  if (more) *list = more;
  return more != NULL;
}

/* Schemas are numbered in the order in which they come; they are few. -1: out of memory. */
static int schema_number(known_list *k, const char *schema) {
  for (int i = 0; i < k->n_schemas; i++) {
    if (strcmp(k->schemas[i], schema) == 0) return i;
  }
  if (!grow((void **)&k->schemas, k->n_schemas, sizeof *k->schemas)) return -1;
  k->schemas[k->n_schemas] = sqlite3_mprintf("%s", schema);
  return k->schemas[k->n_schemas] ? k->n_schemas++ : -1;
}

static int compare(const known_list *k, int number, int schema, bytes name) {
  const known *x = &k->list[number];
  if (x->schema_number != schema) return x->schema_number < schema ? -1 : 1;
  const int c = memcmp(x->name.data, name.data, x->name.len < name.len ? x->name.len : name.len);
  if (c != 0 || x->name.len == name.len) return c;
  return x->name.len < name.len ? -1 : 1;
}

/* The one that k->n does not count yet. */
static bool set_next(known_list *k, int schema, bytes name) {
  if (k->n == INT32_MAX / 2 || !grow((void **)&k->list, k->n, sizeof *k->list) ||
      !grow((void **)&k->sorted, k->n, sizeof *k->sorted)) {
    return false;
  }
  uint8_t *copy = sqlite3_malloc64((sqlite3_uint64)name.len + 1);
  if (!copy) return false;
  memcpy(copy, name.data, name.len);
  k->list[k->n] = (known){k->schemas[schema], schema, {copy, name.len}, copy};
  return true;
}

int known_number(known_list *k, const char *schema, bytes name) {
  const int in = schema_number(k, schema);
  if (in < 0) return -1;
  int low = 0, high = k->n;
  if (k->n > 0 && compare(k, k->sorted[k->n - 1], in, name) < 0) low = k->n; /* as most do */
  while (low < high) {
    const int middle = low + (high - low) / 2, c = compare(k, k->sorted[middle], in, name);
    if (c == 0) return k->sorted[middle];
    if (c < 0) low = middle + 1;
    else high = middle;
  }
  if (!set_next(k, in, name)) return -1;
  memmove(k->sorted + low + 1, k->sorted + low, (size_t)(k->n - low) * sizeof *k->sorted);
  k->sorted[low] = k->n;
  return k->n++;
}
