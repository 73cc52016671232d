/* Arrays in memory that processes share, and arrays in other shapes. */
#include <mxrt.h>

#include "check.h"

static int number_of_file(NDArrayHandle array) {
    int process, number;
    WORKS(MXNDArrayGetSharedMemHandle(array, &process, &number));
    return number;
}

/* Every way to make an array on cpu_shared gives one that has a file; others are copied to one. */
static void shared_memory(void) {
    static const uint32_t shape[] = {3};
    static const int64_t wide[] = {3};
    static const float values[] = {1, 2, 3};
    NDArrayHandle made[4];
    float found[3];
    int i, kind, place;
    WORKS(MXNDArrayCreate(shape, 1, 5, 0, 0, &made[0]));
    WORKS(MXNDArrayCreateEx(shape, 1, 5, 0, 0, 0, &made[1]));
    WORKS(MXNDArrayCreateEx64(wide, 1, 5, 0, 0, 0, &made[2]));
    WORKS(MXRTNDArrayFromData(values, sizeof values, wide, 1, 5, 0, 0, &made[3]));
    FAILS(MXRTNDArrayFromData(values, sizeof values - 1, wide, 1, 5, 0, 0, &made[3]), "11 bytes");
    WORKS(MXNDArraySyncCopyToCPU(made[3], found, 3));
    CHECK(memcmp(found, values, sizeof found) == 0);
    for (i = 0; i < 4; ++i) {
        WORKS(MXNDArrayGetContext(made[i], &kind, &place));
        CHECK(kind == 5 && place == 0);
        CHECK(number_of_file(made[i]) == number_of_file(made[i]));
        WORKS(MXNDArrayFree(made[i]));
    }
}

static NDArrayHandle shaped(NDArrayHandle array, int rank, const int *extents) {
    NDArrayHandle made;
    int dims[4];
    memcpy(dims, extents, (size_t)rank * sizeof *dims);
    WORKS(MXNDArrayReshape(array, rank, dims, &made));
    return made;
}

#define SHAPED(rank, ...) shaped(a, rank, (const int[]){__VA_ARGS__})
#define REFUSED(rank, text, ...) FAILS(MXNDArrayReshape(a, rank, (int[]){__VA_ARGS__}, &other), text)

static int is_like(NDArrayHandle array, int rank, int first, int last) {
    int ndim;
    const int *extents;
    WORKS(MXNDArrayGetShapeEx(array, &ndim, &extents));
    CHECK(ndim == rank);
    first = extents[0] == first && extents[rank - 1] == last;
    WORKS(MXNDArrayFree(array));
    return first;
}

/* MXNDArrayReshape gives the beginning of an array, as in MXNet; the codes of the operator are for
 * MXNDArrayReshape64. */
static void shapes(void) {
    static const uint32_t shape[] = {2, 3, 4};
    NDArrayHandle a, part, other;
    float values[24], found[6];
    int i, before;
    for (i = 0; i < 24; ++i) values[i] = (float)i;
    WORKS(MXNDArrayCreate(shape, 3, 1, 0, 0, &a));
    WORKS(MXNDArraySyncCopyFromCPU(a, values, 24));
    part = SHAPED(2, 2, 3);
    WORKS(MXNDArraySyncCopyToCPU(part, found, 6));
    CHECK(memcmp(found, values, sizeof found) == 0);
    found[5] = 50;
    WORKS(MXNDArraySyncCopyFromCPU(part, found, 6));
    WORKS(MXNDArraySyncCopyToCPU(a, values, 24));
    CHECK(values[5] == 50 && values[6] == 6);
    WORKS(MXNDArrayFree(part));
    CHECK(is_like(SHAPED(2, 0, -1), 2, 2, 12));
    CHECK(is_like(SHAPED(2, -1, 5), 2, 4, 5));
    CHECK(is_like(SHAPED(3, 0, 0, 0), 3, 2, 4));
    REFUSED(1, "lies outside", 25);
    REFUSED(2, "more than one extent is -1", -1, -1);
    REFUSED(1, "extents are -1, 0 or positive", -2);
    REFUSED(2, "extents are -1, 0 or positive", -3, 4);
    REFUSED(4, "beyond the axes", 2, 3, 4, 0);
    WORKS(MXNDArrayReshape64(a, 2, (dim_t[]){-3, 4}, false, &other));
    CHECK(is_like(other, 2, 6, 4));
    FAILS(MXNDArrayReshape64(a, 1, (dim_t[]){6}, false, &other), "");
    WORKS(MXSetIsNumpyShape(1, &before));
    REFUSED(2, "the sizes must be equal", 2, 3);
    CHECK(is_like(SHAPED(2, 4, 6), 2, 4, 6));
    WORKS(MXSetIsNumpyShape(before, &before));
    WORKS(MXNDArrayFree(a));
}

int main(void) {
    shared_memory();
    shapes();
    printf("%d checks\n", checks);
    return 0;
}
