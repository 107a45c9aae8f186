/* pool.h - threads and a clock: what the core needs of the platform and C11 does not promise.
**
** A pool is some threads that share one lock with the thread that made it, the owner. All state
** that passes between them is read and written under that lock; two kinds of waiting are known:
** a worker waits for work, the owner waits for news, for a moment only, so that it can ask
** its caller whether to go on. Workers block every signal: a host's handlers run on its own
** threads. Where there are no threads (BPE_NO_THREADS), pool_start says no and the owner does
** all the work itself.
**
**     pool_lock(p);
**     while (!done) { ... pool_wait_news(p); }        // the owner
**     pool_unlock(p);
*/
#ifndef POOL_H
#define POOL_H

#include "base.h"

typedef struct pool pool;

/* Room for n threads, none started. NULL: out of memory. */
pool *pool_new(const bpe_alloc *, size_t n);
/* One more thread, which runs body(arg) and ends when it returns. False: the platform gives
** none, or n are started already. */
bool pool_start(pool *, void (*body)(void *arg), void *arg);
/* Waits for all threads to end, which the owner has told them to do. */
void pool_join(pool *);
void pool_free(pool *); /* after pool_join; NULL is fine */

void pool_lock(pool *);
void pool_unlock(pool *);
/* With the lock held; it is free while they wait. News also comes after some ms without any. */
void pool_wait_work(pool *);
void pool_wait_news(pool *);
void pool_wake_workers(pool *); /* all of them */
void pool_wake_owner(pool *);

unsigned pool_cores(void); /* those this process may use; at least 1 */
/* Nanoseconds of a clock that is not set back where the platform has one. */
uint64_t pool_clock(void);

#endif
