/* vfs_faulty.c - the VFS "faulty": every call of SQLite's to the file system can fail.
**
** A refused call does nothing, with two exceptions that are nearer to life: a refused write has
** written half of its bytes, and a refused unlock has unlocked.
**
** Closing cannot fail, and nor can what SQLite does not ask the answer of. There is no xFetch:
** with memory-mapped files there are fewer calls to refuse.
*/
#include "vfs_faulty.h"

#include <sqlite3.h>
#include <string.h>

typedef struct faulty_file {
  sqlite3_file base;
  sqlite3_file *real; /* behind this struct, in the same memory */
} faulty_file;

enum { MAX_CODES = 32 };

static sqlite3_vfs *below;
static sqlite3_vfs faulty;
static struct {
  faulty_plan plan;
  bool armed;
  long left, n_refused, open_files;
  int codes[MAX_CODES], n_codes; /* what refused calls answered, each once, in order */
} state;

/* ---- The plan ------------------------------------------------------------------------------- */

static void note_code(int code) {
  for (int i = 0; i < state.n_codes; i++)
    if (state.codes[i] == code) return;
  if (state.n_codes < MAX_CODES) state.codes[state.n_codes++] = code;
}

/* SQLITE_OK: the call passes. Else what it has to answer. */
static int refuse(faulty_kind kind, int code) {
  const faulty_plan *p = &state.plan;
  if (!state.armed || p->kind != kind) return SQLITE_OK;
  if (state.left > 0) {
    state.left--;
    return SQLITE_OK;
  }
  if (p->mute || (state.n_refused > 0 && !p->sticky)) return SQLITE_OK;
  state.n_refused++;
  if (p->refused) p->refused(p->ctx);
  note_code(code);
  return code;
}

void faulty_arm(faulty_plan plan) {
  state.plan = plan;
  state.left = plan.after;
  state.n_refused = 0;
  state.n_codes = 0;
  state.armed = true;
}

bool faulty_disarm(void) {
  state.armed = false;
  return state.n_refused > 0;
}

int faulty_first(void) {
  return state.n_codes > 0 ? state.codes[0] : SQLITE_OK;
}

bool faulty_gave(int code) {
  for (int i = 0; i < state.n_codes; i++)
    if (state.codes[i] == code) return true;
  return false;
}

long faulty_open_files(void) {
  return state.open_files;
}

/* ---- Files ---------------------------------------------------------------------------------- */

static sqlite3_file *real(sqlite3_file *f) {
  return ((faulty_file *)f)->real;
}

static int file_close(sqlite3_file *f) {
  state.open_files--;
  return real(f)->pMethods->xClose(real(f));
}

static int file_read(sqlite3_file *f, void *bytes, int n, sqlite3_int64 at) {
  const int rc = refuse(FAULTY_IO, SQLITE_IOERR_READ);
  return rc != SQLITE_OK ? rc : real(f)->pMethods->xRead(real(f), bytes, n, at);
}

static int file_write(sqlite3_file *f, const void *bytes, int n, sqlite3_int64 at) {
  int rc = refuse(FAULTY_IO, SQLITE_IOERR_WRITE);
  if (rc == SQLITE_OK) rc = refuse(FAULTY_FULL, SQLITE_FULL);
  if (rc == SQLITE_OK) return real(f)->pMethods->xWrite(real(f), bytes, n, at);
  if (n > 1) real(f)->pMethods->xWrite(real(f), bytes, n / 2, at);
  return rc;
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size) {
  const int rc = refuse(FAULTY_IO, SQLITE_IOERR_TRUNCATE);
  return rc != SQLITE_OK ? rc : real(f)->pMethods->xTruncate(real(f), size);
}

static int file_sync(sqlite3_file *f, int flags) {
  (void)f;
  (void)flags;
  return refuse(FAULTY_IO, SQLITE_IOERR_FSYNC);
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size) {
  const int rc = refuse(FAULTY_IO, SQLITE_IOERR_FSTAT);
  return rc != SQLITE_OK ? rc : real(f)->pMethods->xFileSize(real(f), size);
}

static int file_lock(sqlite3_file *f, int level) {
  int rc = refuse(FAULTY_IO, SQLITE_IOERR_LOCK);
  if (rc == SQLITE_OK) rc = refuse(FAULTY_BUSY, SQLITE_BUSY);
  return rc != SQLITE_OK ? rc : real(f)->pMethods->xLock(real(f), level);
}

static int file_unlock(sqlite3_file *f, int level) {
  const int rc = refuse(FAULTY_IO, SQLITE_IOERR_UNLOCK);
  const int done = real(f)->pMethods->xUnlock(real(f), level);
  return rc != SQLITE_OK ? rc : done;
}

static int file_check_reserved_lock(sqlite3_file *f, int *held) {
  const int rc = refuse(FAULTY_IO, SQLITE_IOERR_CHECKRESERVEDLOCK);
  return rc != SQLITE_OK ? rc : real(f)->pMethods->xCheckReservedLock(real(f), held);
}

static int file_control(sqlite3_file *f, int op, void *arg) {
  return real(f)->pMethods->xFileControl(real(f), op, arg);
}

static int file_sector_size(sqlite3_file *f) {
  return real(f)->pMethods->xSectorSize(real(f));
}

static int file_characteristics(sqlite3_file *f) {
  return real(f)->pMethods->xDeviceCharacteristics(real(f));
}

static int file_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **out) {
  const int rc = refuse(FAULTY_IO, SQLITE_IOERR_SHMMAP);
  return rc != SQLITE_OK ? rc : real(f)->pMethods->xShmMap(real(f), region, size, extend, out);
}

static int file_shm_lock(sqlite3_file *f, int offset, int n, int flags) {
  int rc = SQLITE_OK;
  if (flags & SQLITE_SHM_LOCK) {
    rc = refuse(FAULTY_IO, SQLITE_IOERR_SHMLOCK);
    if (rc == SQLITE_OK) rc = refuse(FAULTY_BUSY, SQLITE_BUSY);
  }
  return rc != SQLITE_OK ? rc : real(f)->pMethods->xShmLock(real(f), offset, n, flags);
}

static void file_shm_barrier(sqlite3_file *f) {
  real(f)->pMethods->xShmBarrier(real(f));
}

static int file_shm_unmap(sqlite3_file *f, int remove) {
  return real(f)->pMethods->xShmUnmap(real(f), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* ---- The file system ------------------------------------------------------------------------ */

static int vfs_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out) {
  (void)v;
  faulty_file *file = (faulty_file *)f;
  file->base.pMethods = NULL;
  file->real = (sqlite3_file *)(file + 1);
  int rc = refuse(FAULTY_IO, SQLITE_CANTOPEN);
  if (rc == SQLITE_OK) rc = below->xOpen(below, name, file->real, flags, out);
  if (rc != SQLITE_OK) return rc;
  file->base.pMethods = &methods;
  state.open_files++;
  return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *v, const char *name, int sync_folder) {
  (void)v;
  (void)sync_folder;
  const int rc = refuse(FAULTY_IO, SQLITE_IOERR_DELETE);
  return rc != SQLITE_OK ? rc : below->xDelete(below, name, 0);
}

static int vfs_access(sqlite3_vfs *v, const char *name, int flags, int *out) {
  (void)v;
  const int rc = refuse(FAULTY_IO, SQLITE_IOERR_ACCESS);
  return rc != SQLITE_OK ? rc : below->xAccess(below, name, flags, out);
}

static int vfs_full_pathname(sqlite3_vfs *v, const char *name, int size, char *out) {
  (void)v;
  return below->xFullPathname(below, name, size, out);
}

static int vfs_sleep(sqlite3_vfs *v, int microseconds) {
  (void)v;
  return microseconds;
}

bool faulty_install(void) {
  below = sqlite3_vfs_find(NULL);
  if (!below) return false;
  faulty = *below; /* what is not set here does not touch a file of the database */
  faulty.szOsFile = (int)sizeof(faulty_file) + below->szOsFile;
  faulty.zName = "faulty";
  faulty.pNext = NULL;
  faulty.xOpen = vfs_open;
  faulty.xDelete = vfs_delete;
  faulty.xAccess = vfs_access;
  faulty.xFullPathname = vfs_full_pathname;
  faulty.xSleep = vfs_sleep;
  return sqlite3_vfs_register(&faulty, 0) == SQLITE_OK;
}
