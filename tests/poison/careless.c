/* careless.c - an extension built as ours must not be, to show that the poison works.
**
** It exports its sqlite3_api and takes PCRE2 from the shared library. Alone it loads and
** `SELECT careless()` says which PCRE2 it has. After poison.so its calls go to the poison, and the
** process dies in sqlite3_careless_init; if it did not, poison.sh would prove nothing.
*/
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <sqlite3ext.h>

SQLITE_EXTENSION_INIT1

static void version(sqlite3_context *context, int argc, sqlite3_value **argv) {
  char text[64] = "";
  (void)argc, (void)argv;
  pcre2_config(PCRE2_CONFIG_VERSION, text);
  sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

int sqlite3_careless_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);
int sqlite3_careless_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
  (void)message;
  SQLITE_EXTENSION_INIT2(api);
  return sqlite3_create_function(db, "careless", 0, SQLITE_UTF8, NULL, version, NULL, NULL);
}
