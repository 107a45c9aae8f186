/* vfs_power.h - files in memory, on a machine whose power can fail.
**
** The VFS "power" keeps what was written since a file's last sync apart from what was there at it.
** When so many calls that change something have been made, the power fails: every call from there
** on is an I/O error. power_restore then decides, sector by sector, what the disk has of the rest:
** the old bytes, those of any later write, or rubbish; and how many of the makings and deletions
** of files since the folder's last sync were done. The connections must be closed between the two:
**
**     power_install();
**     power_file("x.db", bytes, len);                 // a disk with one file, all of it synced
**     power_cut_after(100);
**     ... SQLite, on a connection opened with the VFS "power", fails at some point; close it ...
**     if (power_is_cut()) power_restore(&random);
**     ... open it again ...
*/
#ifndef TEST_VFS_POWER_H
#define TEST_VFS_POWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool power_install(void);
/* Empties the disk and puts one file on it; no bytes: no file. False: out of memory. */
bool power_file(const char *name, const void *bytes, size_t len);
/* A file as it is; NULL: there is none. Lives until the next change. */
const void *power_bytes(const char *name, size_t *len);

/* What the machine is like from now on. The smallest unit that a write can spoil as a whole is a
** sector, or, with `powersafe`, what was written of it. */
void power_machine(int sector_size, bool powersafe);
void power_cut_after(long calls); /* < 0: never */
bool power_is_cut(void);
long power_calls(void); /* that changed something, since power_cut_after */
void power_restore(uint64_t *random);
void power_free(void); /* the disk; no file may be open */

/* Answers every xSync with a lie from now on: to see that someone notices. */
void power_lie(bool lies);

#endif
