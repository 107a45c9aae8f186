/* vfs_faulty.h - a file system that can be told to fail.
**
** The VFS "faulty" passes everything on to the default one, and counts. Armed, it lets so many
** calls pass and refuses the next one, once or with all that come after it:
**
**     faulty_install();
**     faulty_arm((faulty_plan){.kind = FAULTY_IO, .after = 7});
**     ... SQLite, on a connection opened with the VFS "faulty" ...
**     if (faulty_disarm()) ... the eighth call failed, with faulty_first() ...
**
** Not passed on: xSync, because nothing is tested here that a sync to the disk would change, and
** xSleep, because whoever waits for a refused lock waits in vain.
*/
#ifndef TEST_VFS_FAULTY_H
#define TEST_VFS_FAULTY_H

#include <stdbool.h>

/* Which calls are counted, and what the refused ones answer. */
typedef enum faulty_kind {
  FAULTY_IO,   /* every call that has an error of its own: that error */
  FAULTY_FULL, /* xWrite: SQLITE_FULL */
  FAULTY_BUSY, /* xLock and xShmLock: SQLITE_BUSY */
} faulty_kind;

typedef struct faulty_plan {
  faulty_kind kind;
  bool sticky;                /* all from there on; else once */
  long after;                 /* calls that still pass */
  void (*refused)(void *ctx); /* called at each refusal, inside SQLite; may be NULL */
  void *ctx;
  bool mute; /* counts, and refuses nothing: to see that someone notices */
} faulty_plan;

bool faulty_install(void);
void faulty_arm(faulty_plan);
bool faulty_disarm(void);     /* whether a call was refused since faulty_arm */
int faulty_first(void);       /* what the first refused call answered */
bool faulty_gave(int code);   /* whether some refused call answered that */
long faulty_open_files(void); /* opened and not closed */

#endif
