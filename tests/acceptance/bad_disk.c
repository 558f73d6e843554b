/* A disk that fails on command: the n-th call that changes a file below a folder answers with an error.

   Loaded in front of the C library (LD_PRELOAD). Python sets it by name:
     bad_disk_watch(folder)        which files count
     bad_disk_arm(kind, n)         fail call n from now: 1 EIO, 2 ENOSPC, 3 half of a write and then ENOSPC; n = 0 never
     bad_disk_calls()              calls counted since it was armed
     bad_disk_failed()             calls that were failed since it was armed
     bad_disk_shadow(folder)       keep there, of each file, what a power cut would leave: its bytes at its last fsync */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char watched[4096];
static size_t watched_size;
static int kind, nth, calls, failed, half_done;

void bad_disk_watch(const char *folder) {
    strncpy(watched, folder, sizeof watched - 1);
    watched_size = strlen(watched);
}
void bad_disk_arm(int how, int n) { kind = how; nth = n; calls = failed = half_done = 0; }
int bad_disk_calls(void) { return calls; }
int bad_disk_failed(void) { return failed; }

static int counts(int file) {
    char link[64], path[4096];
    if (!watched_size) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    return size >= (ssize_t)watched_size && !memcmp(path, watched, watched_size);
}

/* 0: go on. -1: fail. 1: write half of it. */
static int fate(int file, int writes) {
    if (!counts(file)) return 0;
    calls++;
    if (half_done) { half_done = 0; failed++; errno = ENOSPC; return -1; }
    if (!nth || calls != nth) return 0;
    if (kind == 3 && writes) { half_done = 1; return 1; }
    failed++;
    errno = kind == 1 ? EIO : ENOSPC;
    return -1;
}

static char shadow[4096];
void bad_disk_shadow(const char *folder) { strncpy(shadow, folder, sizeof shadow - 1); }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define PWRITE(name, offset_type)                                                        \
    ssize_t name(int file, const void *data, size_t size, offset_type offset) {          \
        int how = fate(file, 1);                                                         \
        return how < 0 ? -1 : REAL(name)(file, data, how ? (size + 1) / 2 : size, offset); \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t write(int file, const void *data, size_t size) {
    int how = fate(file, 1);
    return how < 0 ? -1 : REAL(write)(file, data, how ? (size + 1) / 2 : size);
}

static int kept(int file, int result) {
    if (result || !shadow[0] || !counts(file)) return result;
    char link[64], path[4096], copy[8300], buffer[65536];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size] = 0;
    const char *name = strrchr(path, '/');
    snprintf(copy, sizeof copy, "%s%s", shadow, name);
    int to = open(copy, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    off_t at = 0;
    while ((size = pread(file, buffer, sizeof buffer, at)) > 0) {
        if (REAL(write)(to, buffer, size) != size) break;
        at += size;
    }
    close(to);
    return result;
}
int fsync(int file) { return fate(file, 0) < 0 ? -1 : kept(file, REAL(fsync)(file)); }
int fdatasync(int file) { return fate(file, 0) < 0 ? -1 : kept(file, REAL(fdatasync)(file)); }
int ftruncate(int file, off_t size) { return fate(file, 0) < 0 ? -1 : REAL(ftruncate)(file, size); }
int ftruncate64(int file, off64_t size) { return fate(file, 0) < 0 ? -1 : REAL(ftruncate64)(file, size); }
