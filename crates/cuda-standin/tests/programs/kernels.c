/* A library of one kernel, which notes whether it runs while the process takes the library down. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

atomic_int entered, leaving;
static atomic_int inside;

void host_slow(void **arguments) { (void)arguments; }
int host_sizes_slow(size_t *sizes) {
    (void)sizes;
    return 0;
}
int host_barriers_slow(void) { return 0; }

static void turns(int number) {
    for (volatile int turn = 0; turn < number; ++turn) {}
}

const char *host_launch(void (*body)(void **), int barriers, const unsigned *grid, const unsigned *threads,
                        size_t dynamic, void **arguments, unsigned seed) {
    (void)body, (void)barriers, (void)grid, (void)threads, (void)dynamic, (void)arguments, (void)seed;
    ++inside;
    entered = 1;
    while (!leaving) {}
    turns(1000000);
    --inside;
    return NULL;
}

__attribute__((destructor)) static void down(void) {
    for (int look = 0; look < 1000; ++look) {
        if (inside) {
            fputs("a kernel runs while its library is taken down\n", stderr);
            _exit(7);
        }
        turns(100000);
    }
    puts("no kernel ran");
}
