/* DLPack in both directions, and the profiler's objects. The argument is a directory for files. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mxrt.h>
#include <pthread.h>
#include <unistd.h>
#include <sys/wait.h>

#include "check.h"

/* As dlpack.h of version 0.2 lays it down. */
typedef struct {
    void *data;
    struct { int32_t kind, number; } device;
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;

typedef struct Managed {
    Tensor tensor;
    void *context;
    void (*deleter)(struct Managed *);
} Managed;

static int deleted;

static void count_deleted(Managed *managed) {
    CHECK(managed->context == &deleted);
    __atomic_add_fetch(&deleted, 1, __ATOMIC_SEQ_CST);
}

static Managed tensor(void *data, int32_t ndim, int64_t *shape, int64_t *strides) {
    Managed made;
    memset(&made, 0, sizeof made);
    made.tensor.data = data;
    made.tensor.device.kind = 1;
    made.tensor.ndim = ndim;
    made.tensor.dtype.code = 2;
    made.tensor.dtype.bits = 32;
    made.tensor.dtype.lanes = 1;
    made.tensor.shape = shape;
    made.tensor.strides = strides;
    made.context = &deleted;
    made.deleter = count_deleted;
    return made;
}

static void operate(const char *name, NDArrayHandle input, NDArrayHandle output) {
    OpHandle op;
    NDArrayHandle *outputs = &output;
    int number = 1;
    WORKS(NNGetOpHandle(name, &op));
    WORKS(MXImperativeInvoke(op, 1, &input, &number, &outputs, 0, NULL, NULL));
}

static void expect(NDArrayHandle array, const float *wanted, size_t size) {
    float found[16];
    WORKS(MXNDArraySyncCopyToCPU(array, found, size));
    CHECK(memcmp(found, wanted, size * sizeof(float)) == 0);
}

static void export_arrays(void) {
    static const uint32_t dims[] = {2, 3};
    static const float values[] = {1, 2, 3, 4, 5, 6}, changed[] = {1, 2, 3, 4, 5, 60};
    NDArrayHandle array, row;
    Managed *shared, *part;
    void *handle;
    WORKS(MXNDArrayCreate(dims, 2, 1, 0, 0, &array));
    WORKS(MXNDArraySyncCopyFromCPU(array, values, 6));
    WORKS(MXNDArrayToDLPack(array, &handle));
    shared = handle;
    CHECK(shared->tensor.ndim == 2 && shared->tensor.shape[0] == 2 && shared->tensor.shape[1] == 3);
    CHECK(shared->tensor.strides[0] == 3 && shared->tensor.strides[1] == 1 && shared->tensor.byte_offset == 0);
    CHECK(shared->tensor.device.kind == 1 && shared->tensor.dtype.code == 2 && shared->tensor.dtype.bits == 32);
    CHECK(memcmp(shared->tensor.data, values, sizeof values) == 0);
    /* What the consumer writes is in the array. */
    ((float *)shared->tensor.data)[5] = 60;
    expect(array, changed, 6);
    /* A view begins inside. */
    WORKS(MXNDArrayAt(array, 1, &row));
    WORKS(MXNDArrayToDLPack(row, &handle));
    part = handle;
    CHECK(part->tensor.ndim == 1 && part->tensor.data == (float *)shared->tensor.data + 3);
    /* The memory outlives the handles. */
    WORKS(MXNDArrayFree(array));
    WORKS(MXNDArrayFree(row));
    CHECK(((float *)shared->tensor.data)[5] == 60 && ((float *)part->tensor.data)[0] == 4);
    shared->deleter(shared);
    WORKS(MXNDArrayCallDLPackDeleter(part));
}

/* Booleans take a byte, whether a tensor says so as DLPack does or as MXNet does. */
static void booleans(void) {
    static const uint32_t dims[] = {4};
    static const struct { uint8_t code, bits; } kinds[] = {{6, 8}, {1, 1}};
    static uint8_t memory[64] __attribute__((aligned(64))) = {1, 0, 0, 1};
    int64_t shape[] = {4};
    NDArrayHandle array;
    Managed *shared;
    void *handle;
    uint8_t found[4];
    int type;
    WORKS(MXNDArrayCreateEx(dims, 1, 1, 0, 0, 7, &array));
    WORKS(MXNDArraySyncCopyFromCPU(array, memory, 4));
    WORKS(MXNDArrayToDLPack(array, &handle));
    shared = handle;
    CHECK(shared->tensor.dtype.code == 6 && shared->tensor.dtype.bits == 8 && shared->tensor.dtype.lanes == 1);
    CHECK(memcmp(shared->tensor.data, memory, 4) == 0);
    WORKS(MXNDArrayCallDLPackDeleter(shared));
    WORKS(MXNDArrayFree(array));
    for (int i = 0; i < 2; i++) {
        Managed given = tensor(memory, 1, shape, NULL);
        given.tensor.dtype.code = kinds[i].code;
        given.tensor.dtype.bits = kinds[i].bits;
        given.deleter = NULL;
        WORKS(MXNDArrayFromDLPack(&given, &array));
        WORKS(MXNDArrayGetDType(array, &type));
        WORKS(MXNDArraySyncCopyToCPU(array, found, 4));
        CHECK(type == 7 && memcmp(found, memory, 4) == 0);
        WORKS(MXNDArrayFree(array));
    }
}

static void import_tensors(void) {
    static float memory[12] __attribute__((aligned(64))) = {1, -2, 3, -4, 5, -6};
    static const float relu[] = {1, 0, 3, 0, 5, 0}, columns[] = {1, 3, 5}, minus[] = {-2, 5};
    int64_t shape[] = {2, 3}, three[] = {3}, two[] = {2}, gaps[] = {2}, reversed[] = {3}, negative[] = {-1};
    NDArrayHandle array, other;
    Managed whole = tensor(memory, 2, shape, NULL);
    int ndim;
    const int *dims;

    WORKS(MXNDArrayFromDLPack(&whole, &array));
    WORKS(MXNDArrayGetShapeEx(array, &ndim, &dims));
    CHECK(ndim == 2 && dims[0] == 2 && dims[1] == 3);
    operate("relu", array, array); /* writes the memory of the tensor */
    WORKS(MXNDArrayWaitToRead(array));
    CHECK(memcmp(memory, relu, sizeof relu) == 0 && deleted == 0);
    WORKS(MXShallowCopyNDArray(array, &other));
    WORKS(MXNDArrayFree(array));
    CHECK(deleted == 0);
    WORKS(MXNDArrayFree(other));
    WORKS(MXNDArrayWaitAll());
    CHECK(deleted == 1);

    /* The struct is gone when the function returns. */
    {
        Managed transient = tensor(memory, 1, three, NULL);
        WORKS(MXNDArrayFromDLPackEx(&transient, true, &array));
        memset(&transient, 0xff, sizeof transient);
    }
    WORKS(MXNDArrayFree(array));
    CHECK(deleted == 2);

    /* Gaps are copied, and the tensor is deleted at once. */
    memory[1] = -2;
    whole = tensor(memory, 1, three, gaps);
    WORKS(MXNDArrayFromDLPack(&whole, &array));
    CHECK(deleted == 3);
    expect(array, columns, 3);
    WORKS(MXNDArrayFree(array));
    whole = tensor(memory, 1, two, reversed);
    whole.tensor.byte_offset = sizeof(float);
    WORKS(MXNDArrayFromDLPack(&whole, &array));
    expect(array, minus, 2);
    WORKS(MXNDArrayFree(array));
    CHECK(deleted == 4);

    /* What is refused stays with its owner. */
    whole = tensor(memory, 1, negative, NULL);
    FAILS(MXNDArrayFromDLPack(&whole, &array), "-1");
    whole = tensor(NULL, 1, three, NULL);
    FAILS(MXNDArrayFromDLPack(&whole, &array), "no memory");
    whole = tensor(memory, -1, three, NULL);
    FAILS(MXNDArrayFromDLPack(&whole, &array), "ndim");
    whole = tensor(memory, 1, NULL, NULL);
    FAILS(MXNDArrayFromDLPack(&whole, &array), "shape");
    whole = tensor(memory, 1, three, NULL);
    whole.tensor.device.kind = 2;
    FAILS(MXNDArrayFromDLPack(&whole, &array), "move it to the host");
    whole.tensor.device.kind = 1;
    whole.tensor.dtype.lanes = 4;
    FAILS(MXNDArrayFromDLPack(&whole, &array), "4 lanes");
    FAILS(MXNDArrayFromDLPack(NULL, &array), "null");
    FAILS(MXNDArrayCallDLPackDeleter((void *)3), "no address");
    CHECK(deleted == 4);
}

static void *mark(void *domain) {
    WORKS(MXProfileSetMarker(domain, "other thread", "thread"));
    return NULL;
}

static void profile(const char *folder) {
    char path[4096], *text;
    const char *keys[] = {"filename"}, *values[1], *table;
    ProfileHandle domain, task, frame, event, counter;
    pthread_t thread;
    snprintf(path, sizeof path, "%s/objects.json", folder);
    values[0] = path;
    WORKS(MXSetProfilerConfig(1, keys, values));
    WORKS(MXProfileCreateDomain("a \"domain\"", &domain));
    WORKS(MXProfileCreateTask(domain, "work", &task));
    WORKS(MXProfileCreateFrame(domain, "pass", &frame));
    WORKS(MXProfileCreateEvent("happening", &event));
    WORKS(MXProfileCreateCounter(domain, "items", &counter));
    WORKS(MXProfileSetMarker(domain, "not recorded", "process"));
    WORKS(MXSetProfilerState(1));
    WORKS(MXProfileDurationStop(task)); /* without a beginning */
    WORKS(MXProfileDurationStart(task));
    WORKS(MXProfileDurationStart(event));
    WORKS(MXProfileSetCounter(counter, 40));
    WORKS(MXProfileAdjustCounter(counter, 5));
    WORKS(MXProfileAdjustCounter(counter, -3));
    CHECK(pthread_create(&thread, NULL, mark, domain) == 0 && pthread_join(thread, NULL) == 0);
    WORKS(MXProfileDurationStop(event));
    WORKS(MXProfileDurationStop(task));
    WORKS(MXProfileDurationStart(frame));
    WORKS(MXProfileDurationStop(frame));
    FAILS(MXProfileSetMarker(domain, "m", "galaxy"), "galaxy");
    FAILS(MXProfileDurationStart(counter), "the counter 'items'");
    FAILS(MXProfileSetCounter(task, 1), "expected a counter");
    FAILS(MXProfileCreateTask(task, "x", &frame), "expected a domain");
    WORKS(MXAggregateProfileStatsPrint(&table, 0));
    CHECK(strstr(table, "a \"domain\"") && strstr(table, "work") && strstr(table, "happening"));
    WORKS(MXProfileDestroyHandle(task));
    FAILS(MXProfileDurationStart(task), "freed before");
    WORKS(MXDumpProfile(1));
    text = content(path, NULL);
    CHECK(strstr(text, "{\"name\":\"work\",\"cat\":\"a \\\"domain\\\"\",\"ph\":\"X\""));
    CHECK(strstr(text, "\"args\":{\"value\":42}") && strstr(text, "other thread") && !strstr(text, "not recorded"));
    free(text);
    WORKS(MXDumpProfile(1));
    text = content(path, NULL);
    CHECK(!strstr(text, "other thread"));
    free(text);
}

static NDArrayHandle shared(int dev_type, const float *values) {
    const uint32_t shape[] = {4};
    NDArrayHandle array;
    WORKS(MXNDArrayCreate(shape, 1, dev_type, 0, 0, &array));
    WORKS(MXNDArraySyncCopyFromCPU(array, values, 4));
    return array;
}

static void processes(void) {
    const float first[] = {1, 2, 3, 4}, second[] = {9, 8, 7, 6};
    const uint32_t shape[] = {4};
    const int longer[] = {5}, wrong[] = {-1};
    float found[4];
    int pid, file, status;
    NDArrayHandle array = shared(5, first), other;
    WORKS(MXNDArrayGetSharedMemHandle(array, &pid, &file));
    CHECK(pid == (int)getpid() && file >= 0);
    FAILS(MXNDArrayCreateFromSharedMemEx(pid, file, longer, 1, 0, &other), "16 bytes: too few");
    FAILS(MXNDArrayCreateFromSharedMemEx(pid, file, wrong, 1, 0, &other), "shape is -1");
    FAILS(MXNDArrayCreateFromSharedMem(pid, -1, shape, 1, 0, &other), "shared_id is -1");
    FAILS(MXNDArrayCreateFromSharedMem(pid, 987654, shape, 1, 0, &other), "no open file");
    if (fork() == 0) {
        /* The descriptor is inherited; the function takes it over. */
        WORKS(MXNDArrayCreateFromSharedMem(pid, file, shape, 1, 0, &other));
        WORKS(MXNDArraySyncCopyToCPU(other, found, 4));
        CHECK(memcmp(found, first, sizeof first) == 0);
        WORKS(MXNDArraySyncCopyFromCPU(other, second, 4));
        WORKS(MXNDArrayWaitAll());
        WORKS(MXNDArrayFree(other));
        _exit(0);
    }
    CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    WORKS(MXNDArraySyncCopyToCPU(array, found, 4));
    CHECK(memcmp(found, second, sizeof second) == 0);
    WORKS(MXNDArrayFree(array));

    /* Any other array is copied, and the descriptor is the caller's. */
    array = shared(1, first);
    WORKS(MXNDArrayGetSharedMemHandle(array, &pid, &file));
    WORKS(MXNDArraySyncCopyFromCPU(array, second, 4));
    WORKS(MXNDArrayFree(array));
    WORKS(MXNDArrayCreateFromSharedMem(pid, file, shape, 1, 0, &other));
    WORKS(MXNDArraySyncCopyToCPU(other, found, 4));
    CHECK(memcmp(found, first, sizeof first) == 0);
    CHECK(fcntl(file, F_GETFD) == -1);
    WORKS(MXNDArrayFree(other));
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    processes();
    export_arrays();
    booleans();
    import_tensors();
    profile(argv[1]);
    printf("%d checks\n", checks);
    return 0;
}
