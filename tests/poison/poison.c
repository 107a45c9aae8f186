/* poison.c - a neighbour that exports what bpe keeps to itself, and kills whoever calls it.
**
** SQLite loads extensions into one shared name space. An extension that leaves its libraries or its
** own helpers visible can have its calls bound to another extension's copy, or bind another's calls
** to its own. poison.sh links this file with one function per name that bpe.so has inside, all
** visible, each of which comes to poison_called: that prints the name and aborts. The sqlite3_api
** that this exports points at a table in which every entry does that too. Loaded before or after
** bpe it must change nothing.
**
**     .load ./poison     then     SELECT poison()     -- 'present': it is loaded, and is harmless
**                                                     -- until one of its names is called
*/
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3ext.h>

/* Visible on purpose; most extensions export it without knowing. */
const sqlite3_api_routines *sqlite3_api;

void poison_called(const char *name);
void poison_called(const char *name) {
  const ssize_t n = write(2, "poison: called: ", 16) + write(2, name, strlen(name));
  if (n + write(2, "\n", 1) >= 0) abort();
  abort();
}

/* What sqlite3_api points at once this is loaded: every entry is stray_call. */
static union {
  sqlite3_api_routines routines;
  void (*entries[sizeof(sqlite3_api_routines) / sizeof(void (*)(void))])(void);
} poisoned;

static const sqlite3_api_routines *real; /* what this extension itself calls */

static void stray_call(void) {
  poison_called("an entry of another extension's sqlite3_api");
}

static void present(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc, (void)argv;
  real->result_text(context, "present", -1, SQLITE_STATIC);
}

int sqlite3_poison_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);
int sqlite3_poison_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
  (void)message;
  for (size_t i = 0; i < sizeof poisoned.entries / sizeof *poisoned.entries; i++) {
    poisoned.entries[i] = stray_call;
  }
  real = api;
  sqlite3_api = &poisoned.routines;
  return real->create_function(db, "poison", 0, SQLITE_UTF8, NULL, present, NULL, NULL);
}
