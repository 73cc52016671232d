/* Devices: arguments are a symbol, its parameters, and a file of raw float32 inputs (3x1x8x8) with
 * another of the outputs (3x10) that are expected. There are two GPUs, which are simulated. */
#include <mxrt.h>

#include <math.h>

#include "check.h"

#define IN (3 * 64)
#define OUT (3 * 10)

static void counts(void) {
    int gpus, free_int, total_int;
    uint64_t free_mem, total_mem;
    WORKS(MXGetGPUCount(&gpus));
    CHECK(gpus == 2);
    WORKS(MXGetGPUMemoryInformation64(1, &free_mem, &total_mem));
    CHECK(total_mem > 0 && free_mem <= total_mem);
    WORKS(MXGetGPUMemoryInformation(1, &free_int, &total_int));
    CHECK(free_int > 0 && total_int >= free_int);
    FAILS(MXGetGPUMemoryInformation64(2, &free_mem, &total_mem), "gpu(2)");
    FAILS(MXGetGPUMemoryInformation64(-1, &free_mem, &total_mem), "dev is -1");
    WORKS(MXStorageEmptyCache(2, 0));
}

static void arrays(void) {
    const uint32_t shape[] = {2, 2};
    const float values[] = {1, -2, 3, -4};
    const char *relu[] = {"act_type"}, *vals[] = {"relu"};
    float found[4];
    int type, number, made = 0, cpu[] = {1, 0};
    void *address;
    NDArrayHandle x, *y = NULL, none;
    OpHandle op;
    WORKS(MXNDArrayCreate(shape, 2, 2, 1, 0, &x));
    WORKS(MXNDArrayGetContext(x, &type, &number));
    CHECK(type == 2 && number == 1);
    WORKS(MXNDArraySyncCopyFromCPU(x, values, 4));
    WORKS(NNGetOpHandle("Activation", &op));
    WORKS(MXImperativeInvoke(op, 1, &x, &made, &y, 1, relu, vals));
    CHECK(made == 1);
    WORKS(MXNDArrayGetContext(y[0], &type, &number));
    CHECK(type == 2 && number == 1);
    none = y[0];
    WORKS(MXNDArraySyncCopyToCPU(none, found, 4));
    CHECK(found[0] == 1 && found[1] == 0 && found[2] == 3 && found[3] == 0);
    FAILS(MXNDArrayGetData(x, &address), "gpu(1)");
    FAILS(MXEnginePushSyncND((EngineSyncFunc)1, NULL, NULL, cpu, &x, 1, NULL, 0, NULL, 0, NULL), "gpu(1)");
    WORKS(MXNDArrayFree(x));
    WORKS(MXNDArrayFree(none));
    FAILS(MXNDArrayCreate(shape, 2, 2, 7, 0, &x), "gpu(7)");
    FAILS(MXNDArrayCreate(shape, 2, 4, 0, 0, &x), "2 (gpu)");
}

int main(int argc, char **argv) {
    const char *keys[] = {"data"};
    const uint32_t ends[] = {0, 4}, dims[] = {3, 1, 8, 8};
    float out[OUT];
    const float *in, *expected;
    int i, size;
    char *symbol, *params;
    PredictorHandle predictor;
    CHECK(argc == 5);
    symbol = content(argv[1], NULL);
    params = content(argv[2], &size);
    in = (const float *)(void *)content(argv[3], NULL);
    expected = (const float *)(void *)content(argv[4], NULL);
    counts();
    arrays();
    /* A whole model. */
    WORKS(MXPredCreate(symbol, params, size, 2, 1, 1, keys, ends, dims, &predictor));
    WORKS(MXPredSetInput(predictor, "data", in, IN));
    WORKS(MXPredForward(predictor));
    WORKS(MXPredGetOutput(predictor, 0, out, OUT));
    for (i = 0; i < OUT; ++i) CHECK(fabsf(out[i] - expected[i]) < 1e-4f);
    WORKS(MXPredFree(predictor));
    printf("%d checks\n", checks);
    return 0;
}
