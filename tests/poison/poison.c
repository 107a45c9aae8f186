/* poison.c - a neighbour that exports what bpe keeps to itself, and kills whoever calls it.
**
** SQLite loads extensions into one shared name space. An extension that leaves PCRE2, jansson or
** its own helpers visible can have its calls bound to another extension's copy, or bind another's
** calls to its own. This one exports such names with default visibility, each of which prints the
** name and aborts; and its sqlite3_api points at a table in which every entry does that too.
** Loaded before or after bpe it must change nothing. poison.sh tries both orders.
**
**     .load ./poison     then     SELECT poison()     -- 'present': it is loaded, and is harmless
**                                                     -- until one of its names is called
*/
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3ext.h>

/* Visible on purpose; most extensions export it without knowing. */
const sqlite3_api_routines *sqlite3_api;

static void fatal(const char *name) {
  const ssize_t n = write(2, "poison: called: ", 16) + write(2, name, strlen(name));
  if (n + write(2, "\n", 1) >= 0) abort();
  abort();
}

#define POISON(name)  \
  void name(void);    \
  void name(void) { fatal(#name); }

/* PCRE2 */
POISON(pcre2_code_free_8)
POISON(pcre2_compile_8)
POISON(pcre2_compile_context_create_8)
POISON(pcre2_compile_context_free_8)
POISON(pcre2_config_8)
POISON(pcre2_general_context_create_8)
POISON(pcre2_general_context_free_8)
POISON(pcre2_get_error_message_8)
POISON(pcre2_get_match_data_heapframes_size_8)
POISON(pcre2_get_match_data_size_8)
POISON(pcre2_get_ovector_count_8)
POISON(pcre2_get_ovector_pointer_8)
POISON(pcre2_get_startchar_8)
POISON(pcre2_jit_compile_8)
POISON(pcre2_jit_free_unused_memory_8)
POISON(pcre2_jit_match_8)
POISON(pcre2_jit_stack_assign_8)
POISON(pcre2_jit_stack_create_8)
POISON(pcre2_jit_stack_free_8)
POISON(pcre2_maketables_8)
POISON(pcre2_match_8)
POISON(pcre2_match_context_create_8)
POISON(pcre2_match_context_free_8)
POISON(pcre2_match_data_create_8)
POISON(pcre2_match_data_create_from_pattern_8)
POISON(pcre2_match_data_free_8)
POISON(pcre2_pattern_info_8)
POISON(pcre2_set_compile_extra_options_8)
POISON(pcre2_set_depth_limit_8)
POISON(pcre2_set_heap_limit_8)
POISON(pcre2_set_match_limit_8)
POISON(_pcre2_default_tables_8)
POISON(_pcre2_memctl_malloc_8)
POISON(_pcre2_study_8)
POISON(_pcre2_ucd_records_8)
POISON(_pcre2_valid_utf_8)

/* jansson */
POISON(json_array)
POISON(json_array_append_new)
POISON(json_array_get)
POISON(json_array_size)
POISON(json_delete)
POISON(json_dumpb)
POISON(json_dumps)
POISON(json_integer)
POISON(json_integer_value)
POISON(json_loadb)
POISON(json_loads)
POISON(json_object)
POISON(json_object_get)
POISON(json_object_iter)
POISON(json_object_iter_key)
POISON(json_object_iter_key_len)
POISON(json_object_iter_next)
POISON(json_object_iter_value)
POISON(json_object_set_new)
POISON(json_object_size)
POISON(json_pack)
POISON(json_set_alloc_funcs)
POISON(json_set_alloc_funcs2)
POISON(json_string)
POISON(json_string_length)
POISON(json_string_value)
POISON(json_stringn)
POISON(json_unpack)
POISON(jsonp_free)
POISON(jsonp_malloc)
POISON(hashtable_get)
POISON(hashtable_set)
POISON(strbuffer_init)

/* bpe's own core */
POISON(bpe_buffer_append)
POISON(bpe_builtin_load)
POISON(bpe_builtin_resolve)
POISON(bpe_coder_new)
POISON(bpe_count)
POISON(bpe_decode)
POISON(bpe_encode_json)
POISON(bpe_encode_packed)
POISON(bpe_finder_new)
POISON(bpe_model_info)
POISON(bpe_pattern_new)
POISON(bpe_utf8_next)
POISON(bpe_utf8_repair)
POISON(bpe_walk_next)
POISON(bpe_walk_start)

/* What sqlite3_api points at once this is loaded: every entry is stray_call. */
static union {
  sqlite3_api_routines routines;
  void (*entries[sizeof(sqlite3_api_routines) / sizeof(void (*)(void))])(void);
} poisoned;

static const sqlite3_api_routines *real; /* what this extension itself calls */

static void stray_call(void) { fatal("an entry of another extension's sqlite3_api"); }

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
