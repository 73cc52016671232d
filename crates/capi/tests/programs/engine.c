/* Functions under the engine's order, iterators, files of records, the profiler. Arguments: a
 * directory for files. */
#define _GNU_SOURCE
#include <mxrt.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static const struct { int dev_type, dev_id; } cpu = {1, 0};
static int deleted;

static void counted_free(void *param) {
    __atomic_add_fetch(&deleted, 1, __ATOMIC_SEQ_CST);
    free(param);
}

static NDArrayHandle zeros(uint32_t size) {
    NDArrayHandle made;
    float nothing[64] = {0};
    WORKS(MXNDArrayCreate(&size, 1, 1, 0, 0, &made));
    WORKS(MXNDArraySyncCopyFromCPU(made, nothing, size));
    return made;
}

struct add {
    float *to;
    float by;
};

static void *param(float *to, float by) {
    struct add *made = malloc(sizeof *made);
    made->to = to;
    made->by = by;
    return made;
}

static void add(void *context, void *argument) {
    struct add *given = argument;
    CHECK(context != NULL);
    *given->to = *given->to * 2 + given->by;
}

static void *late_token;
static void start(void *context, void *on_complete, void *argument) {
    add(context, argument);
    __atomic_store_n(&late_token, on_complete, __ATOMIC_SEQ_CST);
}

static void *finish(void *error) {
    void *token;
    while (!(token = __atomic_exchange_n(&late_token, NULL, __ATOMIC_SEQ_CST))) usleep(1000);
    usleep(20000);
    WORKS(MXRTEngineComplete(token, error));
    FAILS(MXRTEngineComplete(token, error), "freed before");
    return NULL;
}

static void at_once(void *context, void *on_complete, void *argument) {
    add(context, argument);
    WORKS(MXRTEngineComplete(on_complete, NULL));
}

static NDArrayHandle later;

/* Calls back: reads, makes, computes and pushes; waiting is refused, as it could be for itself. */
static void call_back(void *context, void *argument) {
    static const uint32_t one[] = {1};
    struct add *given = argument;
    OpHandle relu;
    NDArrayHandle made, *outputs = NULL;
    float value = 0;
    int number = 0, dtype = -1;
    (void)context;
    WORKS(MXNDArrayGetDType(later, &dtype));
    CHECK(dtype == 0);
    WORKS(NNGetOpHandle("relu", &relu));
    WORKS(MXImperativeInvoke(relu, 1, &later, &number, &outputs, 0, NULL, NULL));
    made = outputs[0];
    FAILS(MXNDArrayWaitToRead(made), "waiting inside an operator is not possible");
    FAILS(MXNDArraySyncCopyToCPU(made, &value, 1), "waiting inside an operator is not possible");
    FAILS(MXNDArrayWaitAll(), "waiting inside an operator is not possible");
    FAILS(MXNDArrayFree(argument), "is not the handle of an NDArray");
    WORKS(MXNDArrayFree(made));
    WORKS(MXNDArrayCreate(one, 1, 1, 0, 0, &made));
    WORKS(MXEnginePushSyncND(add, param(given->to, 1), counted_free, &cpu, NULL, 0, &later, 1, NULL, 0, "inner"));
    WORKS(MXNDArrayFree(made));
}

static int ready;
static void on_ready(void *data, const char *kind, const char *message) {
    OpHandle relu;
    NDArrayHandle *outputs = NULL;
    int number = 0;
    CHECK(data == &ready && kind == NULL && message == NULL);
    WORKS(NNGetOpHandle("relu", &relu));
    WORKS(MXImperativeInvoke(relu, 1, &later, &number, &outputs, 0, NULL, NULL));
    WORKS(MXNDArrayFree(outputs[0]));
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
}

static void functions_that_call_back(void) {
    NDArrayHandle a = zeros(1);
    void *data;
    float value = -1;
    int i;
    later = zeros(1);
    deleted = 0;
    WORKS(MXNDArrayGetData(later, &data));
    WORKS(MXEnginePushSyncND(call_back, param(data, 0), counted_free, &cpu, NULL, 0, &a, 1, NULL, 0, "outer"));
    WORKS(MXNDArrayWaitToRead(a));
    WORKS(MXNDArraySyncCopyToCPU(later, &value, 1));
    CHECK(value == 1);
    WORKS(MXRTNDArrayOnReady(a, on_ready, &ready));
    FAILS(MXRTNDArrayOnReady(a, NULL, &ready), "callback");
    for (i = 0; i < 1000 && !__atomic_load_n(&ready, __ATOMIC_SEQ_CST); ++i) usleep(1000);
    CHECK(__atomic_load_n(&ready, __ATOMIC_SEQ_CST) == 1);
    WORKS(MXNDArrayWaitAll());
    for (i = 0; i < 1000 && __atomic_load_n(&deleted, __ATOMIC_SEQ_CST) != 2; ++i) usleep(1000);
    CHECK(deleted == 2);
    WORKS(MXNDArrayFree(a));
    WORKS(MXNDArrayFree(later));
}

static void end(void *context, void *on_complete, void *argument) {
    CHECK(context != NULL);
    __atomic_add_fetch((int *)argument, 1, __ATOMIC_SEQ_CST);
    WORKS(MXRTEngineComplete(on_complete, NULL));
}

static void end_badly(void *context, void *on_complete, void *argument) {
    CHECK(context != NULL);
    __atomic_add_fetch((int *)argument, 1, __ATOMIC_SEQ_CST);
    WORKS(MXRTEngineComplete(on_complete, "no luck"));
}

/* wait: until the function is done, also one that writes no array, or has none at all. */
static void waits(void) {
    NDArrayHandle a = zeros(1);
    int reads, writes, ended = 0, number = 0;
    for (reads = 0; reads < 2; ++reads)
        for (writes = 0; writes < 2 - reads; ++writes) {
            NDArrayHandle b = zeros(1);
            WORKS(MXEnginePushAsyncND(end, &ended, NULL, &cpu, &a, reads, &b, writes, NULL, 0, "ends", true));
            CHECK(__atomic_load_n(&ended, __ATOMIC_SEQ_CST) == ++number);
            FAILS(MXEnginePushAsyncND(end_badly, &ended, NULL, &cpu, &a, reads, &b, writes, NULL, 0, "fails", true),
                  "no luck");
            CHECK(__atomic_load_n(&ended, __ATOMIC_SEQ_CST) == ++number);
            if (writes) FAILS(MXNDArrayWaitToRead(b), "no luck");
            WORKS(MXNDArrayFree(b));
        }
    WORKS(MXNDArrayWaitAll());
    WORKS(MXNDArrayFree(a));
}

static void pushes(void) {
    NDArrayHandle a = zeros(1), b = zeros(1);
    void *data;
    float value;
    int i, number = 0;
    pthread_t thread;
    WORKS(MXNDArrayGetData(a, &data));
    /* In order: ((0 * 2 + 1) * 2 + 2) * 2 + 3 */
    for (i = 1; i <= 3; ++i)
        WORKS(MXEnginePushSyncND(add, param(data, (float)i), counted_free, &cpu, &b, 1, &a, 1, NULL, 0, "add"));
    number += 3;
    WORKS(MXNDArraySyncCopyToCPU(a, &value, 1));
    CHECK(value == 11);
    WORKS(MXEnginePushAsyncND(at_once, param(data, 0), counted_free, &cpu, NULL, 0, &a, 1, NULL, 5, NULL, true));
    number += 1;
    WORKS(MXNDArraySyncCopyToCPU(a, &value, 1));
    CHECK(value == 22);

    /* Completed by another thread, later. */
    CHECK(pthread_create(&thread, NULL, finish, NULL) == 0);
    WORKS(MXEnginePushAsyncND(start, param(data, 1), counted_free, &cpu, NULL, 0, &a, 1, NULL, 0, "late", false));
    WORKS(MXEnginePushSyncND(add, param(data, 0), counted_free, &cpu, NULL, 0, &a, 1, NULL, 0, "next"));
    number += 2;
    WORKS(MXNDArraySyncCopyToCPU(a, &value, 1));
    CHECK(value == 90);
    pthread_join(thread, NULL);

    /* A failure travels as others do, and what follows is skipped; its argument is freed too. */
    CHECK(pthread_create(&thread, NULL, finish, "the disk is full") == 0);
    WORKS(MXEnginePushAsyncND(start, param(data, 1), counted_free, &cpu, NULL, 0, &b, 1, NULL, 0, "late", false));
    WORKS(MXEnginePushSyncND(add, param(data, 0), counted_free, &cpu, &b, 1, &a, 1, NULL, 0, "skipped"));
    number += 2;
    FAILS(MXNDArraySyncCopyToCPU(a, &value, 1), "the disk is full");
    FAILS(MXNDArrayWaitToRead(b), "the disk is full");
    pthread_join(thread, NULL);

    /* Refused, and the argument is freed once. */
    FAILS(MXEnginePushSyncND(NULL, param(data, 0), counted_free, &cpu, NULL, 0, &a, 1, NULL, 0, NULL), "sync_func");
    FAILS(MXEnginePushAsyncND(NULL, param(data, 0), counted_free, &cpu, NULL, 0, &a, 1, NULL, 0, NULL, false),
          "async_func");
    FAILS(MXEnginePushSyncND(add, param(data, 0), counted_free, NULL, NULL, 0, &a, 1, NULL, 0, NULL), "ctx_handle");
    FAILS(MXEnginePushSyncND(add, param(data, 0), counted_free, &cpu, &a, 1, &a, 1, NULL, 0, NULL), "named twice");
    FAILS(MXEnginePushSyncND(add, param(data, 0), counted_free, &cpu, NULL, -1, &a, 1, NULL, 0, NULL),
          "num_const_nds is -1");
    FAILS(MXEnginePushSyncND(add, param(data, 0), counted_free, &cpu, NULL, 0, NULL, 1, NULL, 0, NULL),
          "mutable_nds_handle");
    number += 6;
    FAILS(MXRTEngineComplete(NULL, NULL), "it is null");
    FAILS(MXRTEngineComplete(a, NULL), "it is the handle of an NDArray");

    /* Never completed: the shutdown fails it, and what waits goes on. */
    b = zeros(1);
    WORKS(MXNDArrayGetData(b, &data));
    WORKS(MXEnginePushAsyncND(start, param(data, 1), counted_free, &cpu, NULL, 0, &b, 1, NULL, 0, "lost", false));
    number += 1;
    while (!__atomic_load_n(&late_token, __ATOMIC_SEQ_CST)) usleep(1000);
    WORKS(MXNotifyShutdown());
    FAILS(MXNDArrayWaitToRead(b), "never completed");
    FAILS(MXRTEngineComplete(late_token, NULL), "freed before");
    for (i = 0; i < 1000 && __atomic_load_n(&deleted, __ATOMIC_SEQ_CST) != number; ++i) usleep(1000);
    CHECK(deleted == number);
    WORKS(MXNDArrayFree(a));
    WORKS(MXNDArrayFree(b));
}

static char *path(const char *directory, const char *name) {
    char *made = malloc(strlen(directory) + strlen(name) + 2);
    sprintf(made, "%s/%s", directory, name);
    return made;
}

static void iterators(const char *directory) {
    char *csv = path(directory, "rows.csv");
    const char *keys[] = {"data_csv", "data_shape", "batch_size"}, *vals[] = {csv, "(2,)", "2"};
    const char *name, *doc, **names, **types, **docs;
    static const float first[] = {1, 2, 3, 4};
    float values[4];
    uint32_t number, args, i;
    DataIterCreator *creators, creator = NULL;
    DataIterHandle iter;
    NDArrayHandle data;
    int there, pad, batches = 0;
    uint64_t *index, size;
    FILE *file = fopen(csv, "w");
    fputs("1,2\n3,4\n5,6\n", file);
    fclose(file);
    WORKS(MXListDataIters(&number, &creators));
    for (i = 0; i < number; ++i) {
        WORKS(MXDataIterGetIterInfo(creators[i], &name, &doc, &args, &names, &types, &docs));
        if (strcmp(name, "CSVIter") == 0) creator = creators[i];
    }
    CHECK(creator != NULL);
    WORKS(MXDataIterCreateIter(creator, 3, keys, vals, &iter));
    FAILS(MXDataIterGetData(iter, &data), "MXDataIterNext");
    for (;;) {
        WORKS(MXDataIterNext(iter, &there));
        if (!there) break;
        WORKS(MXDataIterGetData(iter, &data));
        WORKS(MXNDArraySyncCopyToCPU(data, values, 4));
        WORKS(MXDataIterGetIndex(iter, &index, &size));
        WORKS(MXDataIterGetPadNum(iter, &pad));
        if (batches == 0) CHECK(memcmp(values, first, sizeof first) == 0 && pad == 0 && size == 2 && index[1] == 1);
        if (batches == 1) CHECK(values[0] == 5 && pad == 1);
        WORKS(MXNDArrayFree(data));
        ++batches;
    }
    CHECK(batches == 2);
    WORKS(MXDataIterBeforeFirst(iter));
    WORKS(MXDataIterNext(iter, &there));
    CHECK(there == 1);
    WORKS(MXDataIterGetLabel(iter, &data));
    WORKS(MXNDArrayFree(data));
    WORKS(MXDataIterFree(iter));
    FAILS(MXDataIterNext(iter, &there), "freed before");
    vals[0] = "/no/such/file";
    FAILS(MXDataIterCreateIter(creator, 3, keys, vals, &iter), "/no/such/file");
    FAILS(MXDataIterCreateIter(NULL, 3, keys, vals, &iter), "it is null");
    free(csv);
}

static void records(const char *directory) {
    char *rec = path(directory, "some.rec");
    RecordIOHandle writer, reader;
    size_t second, end, size, at;
    const char *bytes;
    WORKS(MXRecordIOWriterCreate(rec, &writer));
    WORKS(MXRecordIOWriterWriteRecord(writer, "hello", 5));
    WORKS(MXRecordIOWriterTell(writer, &second));
    WORKS(MXRecordIOWriterWriteRecord(writer, "record", 6));
    WORKS(MXRecordIOWriterTell(writer, &end));
    FAILS(MXRecordIOWriterWriteRecord(writer, NULL, 6), "buf");
    WORKS(MXRecordIOWriterFree(writer));
    FAILS(MXRecordIOWriterFree(writer), "freed before");
    WORKS(MXRecordIOReaderCreate(rec, &reader));
    WORKS(MXRecordIOReaderReadRecord(reader, &bytes, &size));
    CHECK(size == 5 && memcmp(bytes, "hello", 5) == 0);
    WORKS(MXRecordIOReaderTell(reader, &at));
    CHECK(at == second);
    WORKS(MXRecordIOReaderReadRecord(reader, &bytes, &size));
    CHECK(size == 6 && memcmp(bytes, "record", 6) == 0);
    WORKS(MXRecordIOReaderReadRecord(reader, &bytes, &size));
    CHECK(size == 0 && bytes == NULL);
    WORKS(MXRecordIOReaderSeek(reader, second));
    WORKS(MXRecordIOReaderReadRecord(reader, &bytes, &size));
    CHECK(size == 6);
    FAILS(MXRecordIOWriterTell(reader, &at), "it is the handle of a reader of records");
    WORKS(MXRecordIOReaderFree(reader));
    FAILS(MXRecordIOReaderCreate("/no/such/file", &reader), "/no/such/file");
    free(rec);
}

static void profiler(const char *directory) {
    char *json = path(directory, "profile.json"), *text;
    const char *keys[] = {"filename"}, *vals[] = {json}, *table, *unknown[] = {"zzz"};
    OpHandle relu;
    NDArrayHandle a = zeros(4), *outputs = NULL;
    int number = 0;
    WORKS(NNGetOpHandle("relu", &relu));
    /* A pause that ends begins nothing. */
    WORKS(MXProfilePause(0));
    WORKS(MXProcessProfilePause(0, 0, NULL));
    WORKS(MXImperativeInvoke(relu, 1, &a, &number, &outputs, 0, NULL, NULL));
    WORKS(MXNDArrayWaitToRead(outputs[0]));
    WORKS(MXNDArrayFree(outputs[0]));
    WORKS(MXAggregateProfileStatsPrint(&table, 0));
    CHECK(!strstr(table, "relu"));
    outputs = NULL;
    number = 0;
    WORKS(MXSetProfilerConfig(1, keys, vals));
    FAILS(MXSetProfilerConfig(1, unknown, vals), "zzz");
    FAILS(MXSetProfilerState(7), "state is 7");
    WORKS(MXSetProcessProfilerState(1, 0, NULL));
    WORKS(MXProfilePause(1));
    WORKS(MXProfilePause(0));
    WORKS(MXImperativeInvoke(relu, 1, &a, &number, &outputs, 0, NULL, NULL));
    WORKS(MXNDArrayWaitToRead(outputs[0]));
    WORKS(MXNDArrayFree(outputs[0]));
    WORKS(MXSetProfilerState(0));
    WORKS(MXAggregateProfileStatsPrintEx(&table, 0, 0, 0, 0));
    CHECK(strstr(table, "relu") && strstr(table, "Total Count"));
    WORKS(MXAggregateProfileStatsPrintEx(&table, 0, 1, 4, 1));
    CHECK(strstr(table, "{\n  \"Time\": {\n    \"operator\": {") && strstr(table, "\"relu\": {\n        \"Count\": 1,"));
    CHECK(strstr(table, "\"Memory\": {}") && strstr(table, "\"Time\": \"ms\",\n    \"Memory\": \"kB\"\n"));
    FAILS(MXAggregateProfileStatsPrintEx(&table, 0, 2, 0, 0), "format is 2");
    FAILS(MXAggregateProfileStatsPrintEx(&table, 0, 0, 5, 0), "sort_by is 5");
    WORKS(MXDumpProfile(1));
    text = content(json, NULL);
    CHECK(strstr(text, "traceEvents") && strstr(text, "relu"));
    free(text);
    free(json);
    WORKS(MXNDArrayFree(a));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    functions_that_call_back();
    waits();
    deleted = 0;
    pushes();
    iterators(argv[1]);
    records(argv[1]);
    profiler(argv[1]);
    printf("%d checks\n", checks);
    return 0;
}
