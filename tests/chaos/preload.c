/* Moves the wall clock of one process, and lets its look-up of the API server's name fail.

   Loaded by LD_PRELOAD into an operator, whose code is the installed one. The file that CHAOS_CONTROL names is
   mapped, so that the run steps the clock while the process works: all of it, C extensions and OpenSSL too.
   Clocks that only go forward are left alone, as a step of the wall clock leaves them. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control {
    int64_t ahead_s;
    int64_t no_names;
};

static volatile const struct control *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CHAOS_CONTROL");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (found != MAP_FAILED) control = found;
}

static int64_t ahead(void) { return control ? control->ahead_s : 0; }

int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(which, now);
    if (!result && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (!real)
        real = (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(
            RTLD_NEXT, "getaddrinfo");
    if (node && !strcmp(node, "plimsoll-chaos.test")) {
        if (control && control->no_names) return EAI_AGAIN;
        node = "127.0.0.1";
    }
    return real(node, service, hints, found);
}
