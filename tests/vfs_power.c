/* vfs_power.c - the VFS "power": files in memory that lose what was not synced.
**
** A node is a file's content, whatever names lead to it: `now` is what readers see, `synced` what
** the disk is sure to have, and between them stand the edits, in order. A node may be on the disk
** without having a name any more, or have one of which the disk does not know yet:
**
**     named, known          an ordinary file
**     named, not known      made since the folder's last sync
**     not named, known      deleted since then
**
** A deletion that asks for it syncs the folder, and so does the first sync of a new file, as the
** VFS for Unix does. What is written of the rest is written in any order, except that making,
** deleting and cutting off are done in their own order, as in a file system with a journal: SQLite
** counts on that when it deletes a journal and then cuts the database off. Locks do nothing:
** there is one connection at a time. The wal-index is memory, and gone when the power is.
*/
#include "vfs_power.h"
#include "random.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 24, NAME_SIZE = 64, MAX_REGIONS = 16 };

typedef struct content {
  uint8_t *bytes; /* owned */
  size_t len, cap;
} content;

/* A write, or with no bytes the cutting off of a file at `offset`. */
typedef struct edit {
  size_t offset, len;
  uint8_t *bytes; /* owned */
  long when;      /* of a cutting off */
} edit;

typedef struct node {
  char name[NAME_SIZE]; /* "": a temporary file */
  bool used, named, known;
  long when; /* it was made or deleted last */
  int open;  /* handles */
  content now, synced;
  edit *edits; /* owned */
  size_t n_edits, cap;
} node;

typedef struct power_handle {
  sqlite3_file base;
  node *node;
} power_handle;

static node nodes[MAX_NODES];
static void *regions[MAX_REGIONS]; /* of the wal-index */
static sqlite3_vfs *below;
static sqlite3_vfs power;
static struct {
  int sector;
  bool powersafe, cut, lies;
  long left, calls;
  long clock, settled; /* of makings, deletions and cuttings off: the last, the last on the disk */
} machine = {.sector = 512, .left = -1};

/* ---- Contents ------------------------------------------------------------------------------- */

/* What is between the old end and the new one is zero. */
static bool content_resize(content *c, size_t len) {
  if (len > c->cap) {
    const size_t cap = len + len / 2 + 512;
    uint8_t *bytes = realloc(c->bytes, cap);
    if (!bytes) return false;
    c->bytes = bytes;
    c->cap = cap;
  }
  if (len > c->len) memset(c->bytes + c->len, 0, len - c->len);
  c->len = len;
  return true;
}

static bool content_write(content *c, size_t offset, const void *bytes, size_t len) {
  if (offset + len > c->len && !content_resize(c, offset + len)) return false;
  if (len > 0) memcpy(c->bytes + offset, bytes, len);
  return true;
}

static bool content_copy(content *to, const content *from) {
  to->len = 0;
  return content_write(to, 0, from->bytes, from->len);
}

static void content_free(content *c) {
  free(c->bytes);
  *c = (content){0};
}

/* ---- Nodes ---------------------------------------------------------------------------------- */

static void forget_edits(node *n) {
  for (size_t i = 0; i < n->n_edits; i++) free(n->edits[i].bytes);
  n->n_edits = 0;
}

static void node_free(node *n) {
  forget_edits(n);
  free(n->edits);
  content_free(&n->now);
  content_free(&n->synced);
  *n = (node){.used = false};
}

static node *find(const char *name) {
  for (int i = 0; i < MAX_NODES; i++)
    if (nodes[i].used && nodes[i].named && strcmp(nodes[i].name, name) == 0) return &nodes[i];
  return NULL;
}

static node *node_new(const char *name) {
  for (int i = 0; i < MAX_NODES; i++) {
    if (nodes[i].used || strlen(name) >= NAME_SIZE) continue;
    nodes[i] = (node){.used = true, .named = true, .when = ++machine.clock};
    strcpy(nodes[i].name, name);
    return &nodes[i];
  }
  return NULL;
}

static void free_if_gone(node *n) {
  if (!n->named && !n->known && n->open == 0) node_free(n);
}

static void sync_folder(void) {
  machine.settled = machine.clock;
  for (int i = 0; i < MAX_NODES; i++) {
    if (!nodes[i].used || nodes[i].name[0] == 0) continue;
    nodes[i].known = nodes[i].named;
    free_if_gone(&nodes[i]);
  }
}

static bool note_edit(node *n, size_t offset, const void *bytes, size_t len) {
  if (n->n_edits == n->cap) {
    const size_t cap = n->cap * 2 + 64;
    edit *edits = realloc(n->edits, cap * sizeof *edits);
    if (!edits) return false;
    n->edits = edits;
    n->cap = cap;
  }
  edit e = {.offset = offset, .len = len, .when = bytes ? 0 : ++machine.clock};
  if (bytes) e.bytes = malloc(len > 0 ? len : 1);
  if (bytes && !e.bytes) return false;
  if (bytes && len > 0) memcpy(e.bytes, bytes, len);
  n->edits[n->n_edits++] = e;
  return true;
}

/* ---- The power ------------------------------------------------------------------------------ */

/* Counts a call that changes something. False: the power fails in it. */
static bool survives(void) {
  machine.calls++;
  if (machine.left > 0) machine.left--;
  else if (machine.left == 0) machine.cut = true;
  return !machine.cut;
}

void power_machine(int sector_size, bool powersafe) {
  machine.sector = sector_size;
  machine.powersafe = powersafe;
}

void power_cut_after(long calls) {
  machine.left = calls;
  machine.calls = 0;
}

bool power_is_cut(void) {
  return machine.cut;
}

long power_calls(void) {
  return machine.calls;
}

void power_lie(bool lies) {
  machine.lies = lies;
}

/* ---- After the power was gone ---------------------------------------------------------------- */

/* What may have become of one sector's part of an edit, bytes from .. to of the file. */
static bool settle_sector(node *n, const edit *e, size_t from, size_t to, uint32_t kept,
                          uint64_t *random) {
  if (random_below(random, 100) < kept)
    return content_write(&n->synced, from, e->bytes + (from - e->offset), to - from);
  if (random_below(random, 8) > 0) return true; /* it was not written at all */
  if (!machine.powersafe) { /* while it was being written, all of the sector was at risk */
    const size_t sector = (size_t)machine.sector;
    from -= from % sector;
    if (to % sector > 0) to += sector - to % sector;
  }
  for (size_t i = from; i < to; i++) {
    const uint8_t rubbish = (uint8_t)random_below(random, 256);
    if (!content_write(&n->synced, i, &rubbish, 1)) return false;
  }
  return true;
}

/* Makes `synced` what the disk has of the edits. kept: percent of the sectors that were written;
** until: the last cutting off that was done. */
static bool settle(node *n, uint32_t kept, long until, uint64_t *random) {
  const size_t sector = (size_t)machine.sector;
  for (size_t i = 0; i < n->n_edits; i++) {
    const edit *e = &n->edits[i];
    if (!e->bytes) {
      if (e->when <= until && !content_resize(&n->synced, e->offset)) return false;
      continue;
    }
    for (size_t from = e->offset, to; from < e->offset + e->len; from = to) {
      to = from - from % sector + sector;
      if (to > e->offset + e->len) to = e->offset + e->len;
      if (!settle_sector(n, e, from, to, kept, random)) return false;
    }
  }
  forget_edits(n);
  return content_copy(&n->now, &n->synced);
}

/* How much of the history of makings, deletions and cuttings off is on the disk. */
static long settle_history(uint64_t *random) {
  const uint32_t open = (uint32_t)(machine.clock - machine.settled);
  switch (random_below(random, 4)) {
  case 0: return machine.settled;
  case 1: return machine.clock;
  default: return machine.settled + (long)random_below(random, open + 1);
  }
}

static void forget_regions(void) {
  for (int i = 0; i < MAX_REGIONS; i++) {
    free(regions[i]);
    regions[i] = NULL;
  }
}

void power_restore(uint64_t *random) {
  static const uint32_t shares[] = {0, 10, 50, 90, 100};
  const long until = settle_history(random);
  for (int i = 0; i < MAX_NODES; i++) {
    node *n = &nodes[i];
    if (!n->used) continue;
    if (n->when > until) n->named = n->known;
    if (n->name[0] == 0) n->named = false;
    n->known = n->named;
    n->open = 0;
    if (n->named && settle(n, shares[random_below(random, 5)], until, random)) continue;
    node_free(n);
  }
  forget_regions();
  machine.settled = machine.clock;
  machine.cut = false;
  machine.left = -1;
}

void power_free(void) {
  for (int i = 0; i < MAX_NODES; i++) node_free(&nodes[i]);
  forget_regions();
}

bool power_file(const char *name, const void *bytes, size_t len) {
  power_free();
  machine.cut = false;
  machine.left = -1;
  if (!bytes) return true;
  node *n = node_new(name);
  if (!n || !content_write(&n->now, 0, bytes, len)) return false;
  n->known = true;
  return content_copy(&n->synced, &n->now);
}

const void *power_bytes(const char *name, size_t *len) {
  const node *n = find(name);
  *len = n ? n->now.len : 0;
  return n ? n->now.bytes : NULL;
}

/* ---- Files ---------------------------------------------------------------------------------- */

static node *node_of(sqlite3_file *f) {
  return ((power_handle *)f)->node;
}

static int file_close(sqlite3_file *f) {
  node *n = node_of(f);
  n->open--;
  if (n->name[0] == 0) n->named = false;
  free_if_gone(n);
  return SQLITE_OK;
}

static int file_read(sqlite3_file *f, void *bytes, int len, sqlite3_int64 at) {
  const node *n = node_of(f);
  const size_t wanted = (size_t)len, offset = (size_t)at;
  if (machine.cut) return SQLITE_IOERR_READ;
  const size_t there = offset < n->now.len ? n->now.len - offset : 0;
  const size_t some = there < wanted ? there : wanted;
  if (some > 0) memcpy(bytes, n->now.bytes + offset, some);
  if (some == wanted) return SQLITE_OK;
  memset((uint8_t *)bytes + some, 0, wanted - some);
  return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *f, const void *bytes, int len, sqlite3_int64 at) {
  node *n = node_of(f);
  if (machine.cut) return SQLITE_IOERR_WRITE;
  const bool alive = survives(); /* a write that the power fails in may be on the disk too */
  if (!note_edit(n, (size_t)at, bytes, (size_t)len) ||
      !content_write(&n->now, (size_t)at, bytes, (size_t)len)) {
    return SQLITE_FULL;
  }
  return alive ? SQLITE_OK : SQLITE_IOERR_WRITE;
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size) {
  node *n = node_of(f);
  if (machine.cut) return SQLITE_IOERR_TRUNCATE;
  const bool alive = survives();
  if (!note_edit(n, (size_t)size, NULL, 0) || !content_resize(&n->now, (size_t)size))
    return SQLITE_FULL;
  return alive ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int file_sync(sqlite3_file *f, int flags) {
  node *n = node_of(f);
  (void)flags;
  if (machine.cut || !survives()) return SQLITE_IOERR_FSYNC;
  if (machine.lies) return SQLITE_OK;
  for (size_t i = 0; i < n->n_edits; i++)
    if (n->edits[i].when > machine.settled) machine.settled = n->edits[i].when;
  forget_edits(n);
  if (!content_copy(&n->synced, &n->now)) return SQLITE_FULL;
  if (!n->known && n->name[0]) sync_folder();
  return SQLITE_OK;
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size) {
  if (machine.cut) return SQLITE_IOERR_FSTAT;
  *size = (sqlite3_int64)node_of(f)->now.len;
  return SQLITE_OK;
}

static int file_lock(sqlite3_file *f, int level) {
  (void)f;
  (void)level;
  return machine.cut ? SQLITE_IOERR_LOCK : SQLITE_OK;
}

static int file_unlock(sqlite3_file *f, int level) {
  (void)f;
  (void)level;
  return SQLITE_OK;
}

static int file_check_reserved_lock(sqlite3_file *f, int *held) {
  (void)f;
  *held = 0;
  return machine.cut ? SQLITE_IOERR_CHECKRESERVEDLOCK : SQLITE_OK;
}

static int file_control(sqlite3_file *f, int op, void *arg) {
  (void)f;
  (void)op;
  (void)arg;
  return SQLITE_NOTFOUND;
}

static int file_sector_size(sqlite3_file *f) {
  (void)f;
  return machine.sector;
}

static int file_characteristics(sqlite3_file *f) {
  (void)f;
  return machine.powersafe ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : 0;
}

static int file_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **out) {
  (void)f;
  *out = NULL;
  if (machine.cut) return SQLITE_IOERR_SHMMAP;
  if (region >= MAX_REGIONS) return SQLITE_FULL;
  if (!regions[region] && extend) {
    regions[region] = calloc(1, (size_t)size);
    if (!regions[region]) return SQLITE_NOMEM;
  }
  *out = regions[region];
  return SQLITE_OK;
}

static int file_shm_lock(sqlite3_file *f, int offset, int n, int flags) {
  (void)f;
  (void)offset;
  (void)n;
  return machine.cut && (flags & SQLITE_SHM_LOCK) ? SQLITE_IOERR_SHMLOCK : SQLITE_OK;
}

static void file_shm_barrier(sqlite3_file *f) {
  (void)f;
}

static int file_shm_unmap(sqlite3_file *f, int remove) {
  (void)f;
  if (remove) forget_regions();
  return SQLITE_OK;
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
  power_handle *h = (power_handle *)f;
  h->base.pMethods = NULL;
  if (machine.cut) return SQLITE_CANTOPEN;
  node *n = name ? find(name) : NULL;
  if (!n && (flags & SQLITE_OPEN_CREATE) && survives()) n = node_new(name ? name : "");
  if (!n) return SQLITE_CANTOPEN;
  n->open++;
  h->base.pMethods = &methods;
  h->node = n;
  if (out) *out = flags;
  return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *v, const char *name, int sync) {
  (void)v;
  node *n = find(name);
  if (machine.cut) return SQLITE_IOERR_DELETE;
  if (!n) return SQLITE_IOERR_DELETE_NOENT;
  const bool alive = survives();
  n->named = false;
  n->when = ++machine.clock;
  if (alive && sync && !machine.lies) sync_folder();
  else free_if_gone(n);
  return alive ? SQLITE_OK : SQLITE_IOERR_DELETE;
}

static int vfs_access(sqlite3_vfs *v, const char *name, int flags, int *out) {
  (void)v;
  (void)flags;
  if (machine.cut) return SQLITE_IOERR_ACCESS;
  const node *n = find(name);
  *out = n && (flags != SQLITE_ACCESS_EXISTS || n->now.len > 0);
  return SQLITE_OK;
}

static int vfs_full_pathname(sqlite3_vfs *v, const char *name, int size, char *out) {
  (void)v;
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

static int vfs_sleep(sqlite3_vfs *v, int microseconds) {
  (void)v;
  return microseconds;
}

bool power_install(void) {
  below = sqlite3_vfs_find(NULL);
  if (!below) return false;
  power = *below; /* what is not set here does not touch a file of the database */
  power.szOsFile = (int)sizeof(power_handle);
  power.mxPathname = NAME_SIZE - 1;
  power.zName = "power";
  power.pNext = NULL;
  power.xOpen = vfs_open;
  power.xDelete = vfs_delete;
  power.xAccess = vfs_access;
  power.xFullPathname = vfs_full_pathname;
  power.xSleep = vfs_sleep;
  return sqlite3_vfs_register(&power, 0) == SQLITE_OK;
}
