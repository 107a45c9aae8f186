/* work.c - counts the work of ext/'s own loops, so that they too ask whether to stop.
**
**     work w = {.f = f};
**     for (size_t i = 0; i < n; i++) {
**       if (work_stopped(&w, 4)) return f->rc;
**       ...
**     }
*/
#include "ext.h"

bool work_stopped(work *w, size_t units) {
  enum { STRIDE = 1 << 18 }; /* units between two questions */
  failure *f = w->f;
  w->done += units;
  if (w->done < STRIDE || f->rc != SQLITE_OK) return f->rc != SQLITE_OK;
  w->done = 0;
  if (interrupted(f->c)) fail_code(f, f->c->stopped_by);
  return f->rc != SQLITE_OK;
}
