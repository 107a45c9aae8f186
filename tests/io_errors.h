/* io_errors.h - what io_errors.c does with files failing under it: the scenarios. */
#ifndef TEST_IO_ERRORS_H
#define TEST_IO_ERRORS_H

#include <stdbool.h>

enum { MAX_STATEMENTS = 8 };

typedef enum scenario_files {
  FILES_FULL,  /* what scenario_setup makes */
  FILES_EMPTY, /* docs alone: our tables are not there yet */
} scenario_files;

typedef struct scenario {
  const char *name;                /* NULL ends the table */
  const char *before;              /* on the same connection, with no failures; NULL: nothing */
  const char *sql[MAX_STATEMENTS]; /* run in turn, until one fails */
  scenario_files files;
  bool temp;      /* something is stored in the schema temp */
  bool other;     /* and this in a second file, attached as "other" */
  bool two_files; /* one transaction in both files: all or nothing only with a rollback journal */
  bool full_text; /* FTS5 hands on a tokenizer's code, but has no place for its message */
} scenario;

extern const scenario scenarios[];
extern const char scenario_setup[];

#endif
