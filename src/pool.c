/* pool.c - POSIX threads behind pool.h; the only includer of pthread.h. */
#if !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "pool.h"

#include <time.h>

#if defined(_WIN32) && !defined(BPE_NO_THREADS)
#define BPE_NO_THREADS
#endif

#ifdef BPE_NO_THREADS

struct pool {
  bpe_alloc alloc;
};

pool *pool_new(const bpe_alloc *a, size_t n) {
  (void)n;
  pool *p = mem_zero(a, 1, sizeof *p);
  if (p != NULL) p->alloc = *a;
  return p;
}

bool pool_start(pool *p, void (*body)(void *), void *arg) {
  (void)p;
  (void)body;
  (void)arg;
  return false;
}

void pool_free(pool *p) {
  if (p == NULL) return;
  const bpe_alloc a = p->alloc;
  mem_free(&a, p);
}

void pool_join(pool *p) {
  (void)p;
}
void pool_lock(pool *p) {
  (void)p;
}
void pool_unlock(pool *p) {
  (void)p;
}
void pool_wait_work(pool *p) {
  (void)p;
}
void pool_wait_news(pool *p) {
  (void)p;
}
void pool_wake_workers(pool *p) {
  (void)p;
}
void pool_wake_owner(pool *p) {
  (void)p;
}

unsigned pool_cores(void) {
  return 1;
}

#else

#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

#define NEWS_NS 5000000 /* the owner waits this long at a time */

typedef struct starting {
  void (*body)(void *);
  void *arg;
} starting;

struct pool {
  bpe_alloc alloc;
  pthread_mutex_t lock;
  pthread_cond_t work, news;
  size_t n, cap;
  pthread_t *threads; /* in the same allocation, as is the next */
  starting *starts;
};

pool *pool_new(const bpe_alloc *a, size_t n) {
  if (n > 1 << 16) return NULL;
  pool *p = mem_zero(a, sizeof *p + n * (sizeof *p->threads + sizeof *p->starts), 1);
  if (p == NULL) return NULL;
  p->alloc = *a;
  p->cap = n;
  p->starts = (starting *)(p + 1);
  p->threads = (pthread_t *)(p->starts + n);
  if (pthread_mutex_init(&p->lock, NULL) != 0) goto no_lock;
  if (pthread_cond_init(&p->work, NULL) != 0) goto no_work;
  if (pthread_cond_init(&p->news, NULL) != 0) goto no_news;
  return p;
no_news:
  pthread_cond_destroy(&p->work);
no_work:
  pthread_mutex_destroy(&p->lock);
no_lock:
  mem_free(a, p);
  return NULL;
}

static void *run(void *arg) {
  const starting *s = arg;
  s->body(s->arg);
  return NULL;
}

bool pool_start(pool *p, void (*body)(void *), void *arg) {
  if (p->n == p->cap) return false;
  sigset_t all, old;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &old) != 0) return false; /* a thread inherits it */
  p->starts[p->n] = (starting){body, arg};
  const bool started = pthread_create(&p->threads[p->n], NULL, run, &p->starts[p->n]) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  p->n += started;
  return started;
}

void pool_join(pool *p) {
  while (p->n > 0) pthread_join(p->threads[--p->n], NULL);
}

void pool_free(pool *p) {
  if (p == NULL) return;
  const bpe_alloc a = p->alloc;
  pthread_cond_destroy(&p->news);
  pthread_cond_destroy(&p->work);
  pthread_mutex_destroy(&p->lock);
  mem_free(&a, p);
}

void pool_lock(pool *p) {
  pthread_mutex_lock(&p->lock);
}

void pool_unlock(pool *p) {
  pthread_mutex_unlock(&p->lock);
}

void pool_wait_work(pool *p) {
  pthread_cond_wait(&p->work, &p->lock);
}

void pool_wait_news(pool *p) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t); /* the clock of a condition variable by default */
  t.tv_nsec += NEWS_NS;
  if (t.tv_nsec >= 1000000000) {
    t.tv_nsec -= 1000000000;
    t.tv_sec++;
  }
  pthread_cond_timedwait(&p->news, &p->lock, &t);
}

void pool_wake_workers(pool *p) {
  pthread_cond_broadcast(&p->work);
}

void pool_wake_owner(pool *p) {
  pthread_cond_signal(&p->news);
}

unsigned pool_cores(void) {
#ifdef __linux__
  cpu_set_t set; /* fails on machines with more processors than it has bits */
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    return (unsigned)CPU_COUNT(&set);
#endif
  const long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (unsigned)n : 1;
}

#endif

uint64_t pool_clock(void) {
  struct timespec t = {0, 0};
#ifdef CLOCK_MONOTONIC
  if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) return 0;
#else
  timespec_get(&t, TIME_UTC);
#endif
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
