/* Checks of the test programs. */
#ifndef CHECK_H_
#define CHECK_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *MXGetLastError(void);

static int checks = 0;

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        __atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);                                 \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, MXGetLastError()); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

/* The call fails, and its message contains the text. */
#define FAILS(call, text)                                                                 \
    do {                                                                                  \
        CHECK((call) == -1);                                                              \
        CHECK(strstr(MXGetLastError(), text) != NULL);                                    \
    } while (0)

#define WORKS(call) CHECK((call) == 0)

static inline char *content(const char *path, int *size) {
    FILE *file = fopen(path, "rb");
    long length;
    char *bytes;
    if (!file) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(2);
    }
    fseek(file, 0, SEEK_END);
    length = ftell(file);
    rewind(file);
    bytes = malloc((size_t)length + 1);
    if (!bytes || fread(bytes, 1, (size_t)length, file) != (size_t)length) exit(2);
    bytes[length] = 0;
    fclose(file);
    if (size) *size = (int)length;
    return bytes;
}

#endif /* CHECK_H_ */
