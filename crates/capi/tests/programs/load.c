/* The library, loaded with dlopen, used and closed, again and again.
 *
 *   load LIBRARY
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Create)(const uint32_t *, uint32_t, int, int, int, void **);
typedef int (*Copy)(void *, void *, size_t);
typedef int (*Free)(void *);
typedef const char *(*Text)(void);

#define CHECK(condition)                                                \
    do {                                                                \
        if (!(condition)) {                                             \
            fprintf(stderr, "round %d: %s\n", round, #condition);       \
            exit(1);                                                    \
        }                                                               \
    } while (0)

/* Threads of this process. */
static int threads(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count - 2;
}

/* What C has no cast for. */
#define FIND(pointer, name) (*(void **)&(pointer) = dlsym(library, name)) != NULL

int main(int argc, char **argv) {
    int round = 0, first = 0;
    CHECK(argc == 2);
    for (; round < 20; round++) {
        const uint32_t shape[] = {4};
        float values[] = {1, 2, 3, 4}, found[4];
        Create create;
        Copy fill, read;
        Free end;
        Text text;
        void *array, *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        CHECK(library);
        CHECK(FIND(create, "MXNDArrayCreate") && FIND(fill, "MXNDArraySyncCopyFromCPU"));
        CHECK(FIND(read, "MXNDArraySyncCopyToCPU") && FIND(end, "MXNDArrayFree") && FIND(text, "MXGetLastError"));
        CHECK(create(shape, 1, 1, 0, 0, &array) == 0);
        CHECK(fill(array, values, 4) == 0);
        CHECK(read(array, found, 4) == 0);
        CHECK(memcmp(values, found, sizeof found) == 0);
        CHECK(end(library) == -1);
        CHECK(strstr(text(), "not the handle"));
        CHECK(end(array) == 0);
        CHECK(dlclose(library) == 0);
        if (round == 0) first = threads();
        CHECK(threads() == first);
    }
    return 5;
}
