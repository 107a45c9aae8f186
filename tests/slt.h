/* slt.h - what the files of the SQL test runner share.
**
** slt.c        options, one file after the other, the summary
** slt_text.c   growable text, pools of strings, values as text, reports
** slt_parse.c  a test file to a script: every line understood or refused
** slt_db.c     databases, connections, the helper functions of SQL, the leak check
** slt_run.c    the script executed
** slt_check.c  a record's outcome against what the script expects; rewriting
** slt_oom.c    allocations that fail on purpose
**
** Everything the runner allocates itself comes from malloc and stops the program when it fails:
** only SQLite's memory is under test, and only SQLite's is counted.
*/
#ifndef SLT_H
#define SLT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#if defined(__GNUC__)
#define SLT_FORMAT(text_arg, first) __attribute__((format(printf, text_arg, first)))
#else
#define SLT_FORMAT(text_arg, first)
#endif

/* ---- Text (slt_text.c) ---------------------------------------------------------------------- */

/* Growable bytes; data is NUL-terminated once anything was appended. {0} is empty. */
typedef struct text {
  char *data;
  size_t len, capacity;
} text;

void text_append(text *, const void *bytes, size_t len);
void text_append_str(text *, const char *);
void text_printf(text *, const char *format, ...) SLT_FORMAT(2, 3);
void text_clear(text *); /* keeps the capacity */
void text_free(text *);
const char *text_str(const text *); /* "" when empty */

/* Strings freed together. {0} is empty. */
typedef struct pool {
  void **items;
  size_t n, capacity;
} pool;

void *slt_alloc(size_t); /* zeroed */
void *slt_grow(void *items, size_t *capacity, size_t needed, size_t item_size);
void *pool_alloc(pool *, size_t); /* zeroed */
char *pool_copy(pool *, const char *, size_t len);
char *pool_str(pool *, const char *);
void pool_clear(pool *);

bool read_file(const char *path, text *out); /* false: errno says why */
/* Writes path.tmp, then renames it over path. */
bool replace_file(const char *path, const text *);

/* One value as a test file shows it. bar: a '|' in TEXT is escaped. False: out of memory. */
bool value_render(sqlite3_stmt *, int column, const char *real_format, bool bar, text *out);
/* The inverse for TEXT: \n \t \\ \xHH. False: a backslash that starts none of them. */
bool text_unescape(const char *, size_t len, text *out);
int hex_digit(char); /* -1: none */

/* ---- Scripts (slt_parse.c) -------------------------------------------------------------------- */

typedef enum command_kind {
  CMD_STATEMENT, CMD_QUERY, CMD_HALT, CMD_CONTROL, CMD_CONNECTION, CMD_REOPEN, CMD_DB,
  CMD_CONFIG, CMD_LIMIT, CMD_INTERRUPT, CMD_PARAM, CMD_LOOP, CMD_FOREACH, CMD_ENDLOOP,
  CMD_INCLUDE, CMD_SKIPIF, CMD_ONLYIF, CMD_LOAD, CMD_BACKUP
} command_kind;

typedef enum expectation { EXPECT_OK, EXPECT_ERROR, EXPECT_COUNT, EXPECT_ROWS } expectation;
typedef enum sort_mode { SORT_NONE, SORT_ROWS, SORT_VALUES, SORT_DEFAULT } sort_mode;

/* A condition of skipif and onlyif, parsed. */
typedef enum condition_kind {
  IF_SQLITE, IF_OTHER_DB, IF_VERSION, IF_UTF16, IF_BIGENDIAN, IF_ASAN, IF_VALGRIND, IF_STATIC,
  IF_NOEXT, IF_OOM, IF_SMALL, IF_FEATURE
} condition_kind;

typedef struct condition {
  condition_kind kind;
  char op[3];          /* IF_VERSION: < <= = >= > != */
  int version;         /* IF_VERSION: as sqlite3_libversion_number has it */
  const char *feature; /* IF_FEATURE: a compile option */
} condition;

/* One directive or record head, understood. Which fields count depends on kind. */
typedef struct command {
  command_kind kind;
  expectation expect;   /* records */
  const char *types;    /* EXPECT_ROWS: letters of I R T B ? */
  sort_mode sort;
  const char *label;    /* EXPECT_ROWS: equal labels, equal results; or NULL */
  const char *on;       /* the record's own connection; NULL: the current one */
  const char *pattern;  /* EXPECT_ERROR: substring, or regex; NULL: any, or the block */
  bool regex;
  int code, extcode;    /* EXPECT_ERROR: 0 is any */
  const char *name;     /* control, connection, db, config, limit, param, loop, include */
  const char *value;    /* control; param's text; backup's target */
  bool on_off;          /* config */
  bool readonly, noext; /* connection */
  char type;            /* param: I R T B N */
  int64_t low, high;    /* statement count (low), limit (low), interrupt (low), loop */
  const char **words;   /* foreach */
  size_t n_words;
  condition when;       /* skipif, onlyif */
} command;

/* One command of a file with its place. Lines are counted from 0 here and from 1 in reports. */
typedef struct node {
  command cmd;
  const char *head;      /* the line itself */
  bool late;             /* holds ${...}: parsed again, substituted, each time it runs */
  size_t line;
  const char *sql;       /* records */
  const char **expected; /* the lines after ---- */
  size_t n_expected;
  bool has_block;        /* there was a ---- */
  size_t block, end;     /* first line after the SQL (its ---- if any); first line after all */
  size_t match;          /* loop: its endloop; endloop: its loop */
  bool in_loop;
  struct script *child;  /* include */
} node;

typedef struct script {
  const char *path;
  const char **lines;
  size_t n_lines;
  node *nodes;
  size_t n_nodes, nodes_capacity;
  size_t n_records; /* included ones too */
  text source;
  pool strings;
} script;

/* Reads and checks a file. NULL: *why is "path:line: reason". */
script *script_load(const char *path, text *why);
void script_free(script *);
/* One head. False: *why is the reason, without a place. */
bool command_parse(const char *line, pool *, command *out, text *why);
bool is_record(const command *);
/* Applies to the record that follows: skipif, onlyif, param, interrupt. */
bool is_prefix(const command *);

/* ---- Sessions ----------------------------------------------------------------------------------- */

typedef enum oom_mode { OOM_OFF, OOM_ONCE, OOM_STICKY } oom_mode;

typedef struct settings {
  const char *extension; /* NULL: none */
  const char *encoding;  /* NULL: UTF-8 */
  oom_mode oom;
  bool rewrite, selftest;
} settings;

typedef struct connection {
  char *name;
  sqlite3 *db;
  bool readonly, noext;
} connection;

typedef struct variable {
  const char *name;
  text value;
} variable;

/* A record's result. */
typedef struct outcome {
  int rc, extrc;        /* SQLITE_OK or the first failure */
  bool in_step;         /* it came after the statement was prepared */
  text error;           /* its message */
  text fault;           /* what no expectation accepts: two statements, a wrong type */
  int n_columns;
  int64_t changes;
  text values;          /* rendered cells, each NUL-terminated */
  size_t *cells;        /* their offsets */
  size_t n_cells, cells_capacity;
} outcome;

typedef struct edit { /* --rewrite: lines [from, to) become text */
  size_t from, to;
  text replacement;
} edit;

enum { MAX_LOOPS = 8, MAX_INCLUDES = 8 };

/* One test file being run. */
typedef struct session {
  const settings *set;
  const char *path;      /* of the file named on the command line */
  const char *db_kind;   /* memory file wal utf16le utf16be */
  char *dir;             /* of a database in a file; NULL: none made yet */
  connection *connections;
  size_t n_connections, connections_capacity;
  size_t current;        /* index; the connection of records that name none */
  variable variables[MAX_LOOPS];
  size_t n_variables;
  bool valuewise;
  const char *real_format;
  sort_mode sort;
  command *params;       /* of the next record */
  size_t n_params, params_capacity;
  int64_t ticks;         /* interrupt the next record after so many; -1: never */
  bool skip;             /* the next record or directive */
  pool record_strings;   /* until the next record is done */
  pool file_strings;
  struct { const char *name; text rows; } *labels;
  size_t n_labels, labels_capacity;
  edit *edits;
  size_t n_edits, edits_capacity;
  text suspects;         /* of a leak, under --oom; shown if the file does leak */
  unsigned long passed, failed, skipped, rewritten;
  unsigned long injected, nomem, nomem_in_bpe, bpe_records, uninjected;
} session;

/* Prints "path:line: reason" and counts a failure; node may be NULL. */
void report(session *, const script *, const node *, const char *format, ...) SLT_FORMAT(4, 5);

/* slt_db.c. Each reports its own failures. */
bool extension_load(const settings *, sqlite3 *, text *why);
bool session_open(session *);                      /* the connection "default" */
bool session_close(session *);                     /* with the leak checks; a failure is counted */
bool session_switch(session *, const command *);   /* connection NAME [readonly] [noext] */
bool session_restart(session *, const char *kind); /* db KIND: everything closed, a fresh one */
bool session_reopen(session *);                    /* the current connection */
bool session_backup(session *, const command *);   /* backup FROM TO */
connection *session_find(session *, const char *name);
void session_free(session *);

/* slt_run.c */
bool script_run(session *, const script *, int depth); /* false: stop this file */
void record_run(session *, sqlite3 *, const command *, const char *sql, outcome *);
bool outcome_equal(const outcome *, const outcome *);
void outcome_clear(outcome *);
void outcome_free(outcome *);

/* slt_check.c */
void record_check(session *, const script *, const node *, const command *, const char *sql,
                  const char **expected, outcome *);
bool edits_write(session *, const script *);

/* slt_oom.c */
bool oom_install(void); /* before anything else of SQLite */
void oom_break(void);   /* selftest: no allocation ever fails */
/* Every allocation of a record fails in turn; what survives is compared with `real`, which runs
** last and for good. */
void oom_record(session *, const script *, const node *, const command *, const char *sql,
                sqlite3 *, outcome *real);
/* The same for loading the extension. Prints a line. */
bool oom_load(const settings *);

#endif
