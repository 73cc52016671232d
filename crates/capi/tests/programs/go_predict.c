/* What bindings in other languages do: the predict interface from threads, each with a predictor of
 * its own. Arguments are a symbol, its parameters, a file of raw float32 inputs (3x1x8x8), a mean
 * image as an array file or "-", and the number of threads. Prints the outputs. The headers are
 * MXNet's or ours. */
#include <stdbool.h>
#include <stdint.h>

#include <mxnet/c_predict_api.h>
#include <pthread.h>

#include "check.h"

#define IN (3 * 64)

static char *symbol, *params;
static int params_size;
static float in[IN];
static float outputs[64][30];

static void *predict(void *number) {
    const char *keys[] = {"data"};
    const uint32_t ends[] = {0, 4}, dims[] = {3, 1, 8, 8};
    uint32_t *shape, ndim, size = 1, i;
    int turn;
    PredictorHandle predictor = NULL;
    if (MXPredCreate(symbol, params, params_size, 1, 0, 1, keys, ends, dims, &predictor)) return "create";
    for (turn = 0; turn < 5; ++turn) {
        if (MXPredSetInput(predictor, "data", in, IN)) return "input";
        if (MXPredForward(predictor)) return "forward";
        if (MXPredGetOutputShape(predictor, 0, &shape, &ndim)) return "shape";
        for (size = 1, i = 0; i < ndim; ++i) size *= shape[i];
        if (size != 30 || MXPredGetOutput(predictor, 0, outputs[(size_t)number], size)) return "output";
    }
    return MXPredFree(predictor) ? "free" : NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[64];
    int number, i;
    void *wrong;
    CHECK(argc == 6);
    symbol = content(argv[1], NULL);
    params = content(argv[2], &params_size);
    memcpy(in, content(argv[3], NULL), sizeof in);
    if (strcmp(argv[4], "-") != 0) {
        NDListHandle list;
        uint32_t length, ndim;
        const uint32_t *shape;
        const char *key, *bytes;
        const float *mean;
        int size;
        bytes = content(argv[4], &size);
        WORKS(MXNDListCreate(bytes, size, &list, &length));
        CHECK(length == 1);
        WORKS(MXNDListGet(list, 0, &key, &mean, &shape, &ndim));
        CHECK(ndim == 1 && shape[0] == 64);
        for (i = 0; i < IN; ++i) in[i] -= mean[i % 64];
        WORKS(MXNDListFree(list));
    }
    number = atoi(argv[5]);
    CHECK(number > 0 && number <= 64);
    for (i = 0; i < number; ++i) CHECK(pthread_create(&threads[i], NULL, predict, (void *)(size_t)i) == 0);
    for (i = 0; i < number; ++i) {
        CHECK(pthread_join(threads[i], &wrong) == 0);
        if (wrong) fprintf(stderr, "thread %d: %s\n", i, (const char *)wrong);
        CHECK(wrong == NULL && memcmp(outputs[i], outputs[0], sizeof outputs[0]) == 0);
    }
    for (i = 0; i < 30; ++i) printf("%.9g\n", (double)outputs[0][i]);
    return 0;
}
