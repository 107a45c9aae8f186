/* prop_sql.h - the properties again, asked of the built extension in SQL.
**
**     prop_sql q;
**     if (prop_sql_open(&q, "./bpe")) what = prop_sql_check(&q, subject, true, false, text, len);
**     prop_sql_close(&q);
**
** Built-in encodings only: subject.name is the tokenizer's name.
*/
#ifndef PROP_SQL_H
#define PROP_SQL_H

#include "prop_subject.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

enum { PROP_SQL_STATEMENTS = 3 };

typedef struct prop_sql {
  sqlite3 *db;
  sqlite3_stmt *statement[PROP_SQL_STATEMENTS];
  oracle_result expected;
} prop_sql;

/* False, with a line on stdout: the extension cannot be loaded, or lacks a function. */
bool prop_sql_open(prop_sql *, const char *extension);
void prop_sql_close(prop_sql *);
/* NULL, or what does not hold. allow: all special tokens are found; as_text: the value is TEXT. */
const char *prop_sql_check(prop_sql *, const prop_subject *, bool allow, bool as_text,
                           const uint8_t *text, size_t len);

#endif
