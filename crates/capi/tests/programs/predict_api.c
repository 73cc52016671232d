/* The predict interface: arguments are a symbol, its parameters, and a file of raw float32 inputs
 * (3x1x8x8) with another of the outputs (3x10) that are expected. */
#include <mxnet/c_predict_api.h>

#include <math.h>
#include <pthread.h>
#include <sched.h>

#include "check.h"

#define IN (3 * 64)
#define OUT (3 * 10)
#define THREADS 8

int MXNDArrayFree(NDArrayHandle handle);
int MXNDArrayGetShape(NDArrayHandle handle, uint32_t *out_dim, const uint32_t **out_pdata);

static char *symbol, *params;
static int params_size;
static const char *keys[] = {"data"};
static const uint32_t indptr[] = {0, 4}, dims[] = {3, 1, 8, 8};

static PredictorHandle create(void) {
    PredictorHandle made = NULL;
    WORKS(MXPredCreate(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, &made));
    return made;
}

static uint32_t out_size(PredictorHandle p, uint32_t index) {
    uint32_t *shape, ndim, i, size = 1;
    WORKS(MXPredGetOutputShape(p, index, &shape, &ndim));
    for (i = 0; i < ndim; ++i) size *= shape[i];
    return size;
}

static void fill(float *input, int seed, int number) {
    int i;
    for (i = 0; i < number; ++i) input[i] = (float)((i * 7 + seed * 13) % 17) / 17.0f;
}

static void answer(PredictorHandle p, int seed, float *out) {
    float input[IN];
    fill(input, seed, IN);
    WORKS(MXPredSetInput(p, "data", input, IN));
    WORKS(MXPredForward(p));
    WORKS(MXPredGetOutput(p, 0, out, out_size(p, 0)));
}

static float expected[THREADS][OUT];

static void *own_predictor(void *argument) {
    void **pair = argument;
    int seed = (int)(size_t)pair[1], turn;
    float out[OUT];
    for (turn = 0; turn < 20; ++turn) {
        answer(pair[0], seed, out);
        if (memcmp(out, expected[seed], sizeof out) != 0) return "a predictor of its own gave another answer";
    }
    return NULL;
}

static void *shared_predictor(void *argument) {
    void **pair = argument;
    int seed = (int)(size_t)pair[1], turn, i;
    float out[OUT];
    for (turn = 0; turn < 20; ++turn) {
        answer(pair[0], seed, out);
        for (i = 0; i < THREADS; ++i)
            if (memcmp(out, expected[i], sizeof out) == 0) break;
        if (i == THREADS) return "an answer is that of no request";
    }
    return NULL;
}

static void run_threads(void *(*body)(void *), PredictorHandle *predictors, int step) {
    pthread_t threads[THREADS];
    void *pairs[THREADS][2], *problem;
    size_t i;
    for (i = 0; i < THREADS; ++i) {
        pairs[i][0] = predictors[(int)i * step];
        pairs[i][1] = (void *)i;
        CHECK(pthread_create(&threads[i], NULL, body, pairs[i]) == 0);
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], &problem);
        if (problem) fprintf(stderr, "%s\n", (char *)problem);
        CHECK(problem == NULL);
    }
}

static int running, freed, ended_well;

/* Answers until the predictor is freed; what was begun before ends well. */
static void *until_freed(void *predictor) {
    float input[IN], out[OUT];
    fill(input, 0, IN);
    __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        if (MXPredSetInput(predictor, "data", input, IN) != 0 || MXPredForward(predictor) != 0 ||
            MXPredGetOutput(predictor, 0, out, OUT) != 0) {
            if (!__atomic_load_n(&freed, __ATOMIC_SEQ_CST)) return "a call failed before the predictor was freed";
            return strstr(MXGetLastError(), "it was freed before") ? NULL : "the error does not say why";
        }
        if (memcmp(out, expected[0], sizeof out) != 0) return "a call gave another answer";
        __atomic_add_fetch(&ended_well, 1, __ATOMIC_SEQ_CST);
    }
}

/* Called while a run computes: frees its predictor. */
static void free_within(const char *name, NDArrayHandle array, void *predictor) {
    CHECK(name[0] != 0);
    WORKS(MXNDArrayFree(array));
    if (!__atomic_exchange_n(&freed, 1, __ATOMIC_SEQ_CST)) WORKS(MXPredFree(predictor));
}

static void freed_while_it_runs(void) {
    pthread_t threads[THREADS];
    float input[IN];
    void *problem;
    int i, turn;
    for (turn = 0; turn < 20; ++turn) {
        PredictorHandle p = create();
        freed = running = ended_well = 0;
        for (i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, until_freed, p) == 0);
        while (__atomic_load_n(&ended_well, __ATOMIC_SEQ_CST) < turn) sched_yield();
        __atomic_store_n(&freed, 1, __ATOMIC_SEQ_CST);
        WORKS(MXPredFree(p));
        FAILS(MXPredFree(p), "it was freed before");
        for (i = 0; i < THREADS; ++i) {
            pthread_join(threads[i], &problem);
            if (problem) fprintf(stderr, "%s\n", (char *)problem);
            CHECK(problem == NULL);
        }
        CHECK(running == THREADS);
    }
    /* In the middle of a run, without luck: its own monitor frees the predictor. */
    {
        PredictorHandle p = create();
        freed = 0;
        fill(input, 0, IN);
        WORKS(MXPredSetMonitorCallback(p, free_within, p, false));
        WORKS(MXPredSetInput(p, "data", input, IN));
        WORKS(MXPredForward(p));
        FAILS(MXPredForward(p), "it was freed before");
        CHECK(freed == 1);
    }
}

static int seen, data_seen;
static void monitor(const char *name, NDArrayHandle array, void *data) {
    uint32_t ndim;
    const uint32_t *shape;
    CHECK(data == &seen);
    WORKS(MXNDArrayGetShape(array, &ndim, &shape));
    CHECK(ndim > 0);
    ++seen;
    if (strcmp(name, "data") == 0) ++data_seen;
    WORKS(MXNDArrayFree(array));
}

static void errors(void) {
    static const char *wrong[] = {"fc_weight"}, *twice[] = {"data", "data"}, *bad_text[] = {"\xff"}, *none[] = {NULL};
    static const uint32_t down[] = {4, 0}, bad_dims[] = {3, 2, 8, 8}, two[] = {0, 4, 8};
    static const uint32_t eight[] = {3, 1, 8, 8, 3, 1, 8, 8};
    PredictorHandle p = NULL, q = NULL;
    float numbers[IN] = {0};
    uint32_t *shape, ndim;
    int left, dtype;
    FAILS(MXPredCreate(NULL, params, params_size, 1, 0, 1, keys, indptr, dims, &p), "symbol_json_str");
    FAILS(MXPredCreate("{", params, params_size, 1, 0, 1, keys, indptr, dims, &p), "symbol");
    FAILS(MXPredCreate(symbol, NULL, params_size, 1, 0, 1, keys, indptr, dims, &p), "param_bytes");
    FAILS(MXPredCreate(symbol, params, 0, 1, 0, 1, keys, indptr, dims, &p), "");
    FAILS(MXPredCreate(symbol, params, -1, 1, 0, 1, keys, indptr, dims, &p), "param_size is -1");
    FAILS(MXPredCreate(symbol, params, params_size - 9, 1, 0, 1, keys, indptr, dims, &p), "truncated");
    FAILS(MXPredCreate(symbol, params, params_size, 2, 0, 1, keys, indptr, dims, &p), "gpu");
    FAILS(MXPredCreate(symbol, params, params_size, 9, 0, 1, keys, indptr, dims, &p), "dev_type 9");
    FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 0, keys, indptr, dims, &p), "shape");
    FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 1, NULL, indptr, dims, &p), "input_keys");
    FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 1, none, indptr, dims, &p), "input_keys");
    FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 1, bad_text, indptr, dims, &p), "not UTF-8");
    FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 1, keys, NULL, dims, &p), "input_shape_indptr");
    FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 1, keys, down, dims, &p), "input_shape_indptr goes down");
    FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 1, keys, indptr, NULL, &p), "input_shape_data");
    FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 1, keys, indptr, bad_dims, &p), "(16, 2, 3, 3)");
    FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 2, twice, two, eight, &p), "input_keys names data twice");
    FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, NULL), "out");
    FAILS(MXPredCreateMultiThread(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, -1, &p), "num_threads");
    FAILS(MXPredCreateMultiThread(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, 0, &p), "num_threads");
    FAILS(MXPredCreateMultiThread(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, 4, NULL), "out");
    CHECK(p == NULL);

    p = create();
    FAILS(MXPredForward(p), "the inputs data are not set");
    FAILS(MXPredPartialForward(p, 0, &left), "the inputs data are not set");
    FAILS(MXPredGetOutput(p, 0, numbers, OUT), "set the inputs data and run");
    FAILS(MXPredSetInput(p, "fc_weight", numbers, 1), "cannot find input key fc_weight");
    FAILS(MXPredSetInput(p, NULL, numbers, 1), "key");
    FAILS(MXPredSetInput(p, "data", numbers, IN - 1), "Memory size do not match (192 vs. 191)");
    FAILS(MXPredSetInput(p, "data", NULL, IN), "data");
    FAILS(MXPredGetOutputShape(p, 9, &shape, &ndim), "Output index out of range (9 vs. 1)");
    FAILS(MXPredGetOutputType(p, 9, &dtype), "Output index out of range");
    /* A key that the symbol lacks counts for nothing. */
    WORKS(MXPredReshape(1, wrong, indptr, dims, p, &q));
    WORKS(MXPredFree(q));
    WORKS(MXPredSetInput(p, "data", numbers, IN));
    WORKS(MXPredForward(p));
    FAILS(MXPredGetOutput(p, 0, numbers, OUT - 1), "Memory size do not match (30 vs. 29)");
    FAILS(MXPredGetOutput(p, 0, NULL, OUT), "data");
    WORKS(MXPredFree(p));
    FAILS(MXPredFree(p), "it was freed before");
    FAILS(MXPredForward(p), "it was freed before");
    FAILS(MXPredForward(NULL), "it is null");
    FAILS(MXPredSetInput(&left, "data", numbers, IN), "is not the handle of a Predictor");
    FAILS(MXNDListFree(p), "it is the handle of a Predictor");
}

int main(int argc, char **argv) {
    PredictorHandle p, q, many[THREADS];
    float *input, *wanted, out[OUT], again[OUT], double_out[2 * OUT], double_in[2 * IN];
    static const uint32_t six[] = {6, 1, 8, 8};
    static const char *inner[] = {"digitsnet_flatten0_flatten0"};
    static float features[1 << 16];
    uint32_t length, ndim;
    const uint32_t *shape;
    const char *key;
    const float *values;
    NDListHandle list;
    int i, dtype = -1, left = -1, step = 0, before, outputs_file;
    if (argc < 5) return 2;
    symbol = content(argv[1], NULL);
    params = content(argv[2], &params_size);
    input = (float *)(void *)content(argv[3], NULL);
    wanted = (float *)(void *)content(argv[4], &outputs_file);
    CHECK(outputs_file == (int)sizeof out);
    CHECK(strcmp(MXGetLastError(), "") == 0);

    p = create();
    WORKS(MXPredSetInput(p, "data", input, IN));
    WORKS(MXPredForward(p));
    CHECK(out_size(p, 0) == OUT);
    WORKS(MXPredGetOutput(p, 0, out, OUT));
    for (i = 0; i < OUT; ++i) CHECK(fabsf(out[i] - wanted[i]) <= 1e-5f);
    WORKS(MXPredGetOutputType(p, 0, &dtype));
    CHECK(dtype == 0);

    /* A run in steps gives the same bits. */
    do {
        before = left;
        WORKS(MXPredPartialForward(p, step++, &left));
        CHECK(before == -1 || left == before - 1);
    } while (left > 0);
    WORKS(MXPredGetOutput(p, 0, again, OUT));
    CHECK(memcmp(out, again, sizeof out) == 0);
    left = 7;
    WORKS(MXPredPartialForward(p, step, &left));
    CHECK(left == 0);
    WORKS(MXPredPartialForward(p, -1, &left));
    CHECK(left == 0);

    /* Other shapes over the same parameters; the first predictor stays as it was. */
    WORKS(MXPredReshape(1, keys, indptr, six, p, &q));
    memcpy(double_in, input, IN * sizeof(float));
    memcpy(double_in + IN, input, IN * sizeof(float));
    FAILS(MXPredForward(q), "the inputs data are not set");
    WORKS(MXPredSetInput(q, "data", double_in, 2 * IN));
    WORKS(MXPredForward(q));
    WORKS(MXPredGetOutput(q, 0, double_out, 2 * OUT));
    for (i = 0; i < 2 * OUT; ++i) CHECK(fabsf(double_out[i] - wanted[i % OUT]) <= 1e-5f);
    WORKS(MXPredGetOutput(p, 0, again, OUT));
    CHECK(memcmp(out, again, sizeof out) == 0);
    WORKS(MXPredFree(p));
    WORKS(MXPredForward(q));
    WORKS(MXPredFree(q));

    /* The monitor hears of every operator, set before the first run too. */
    p = create();
    WORKS(MXPredSetMonitorCallback(p, monitor, &seen, false));
    answer(p, 0, out);
    CHECK(seen > 3 && data_seen == 0);
    before = seen;
    WORKS(MXPredSetMonitorCallback(p, monitor, &seen, true));
    answer(p, 0, again);
    CHECK(seen > 2 * before && data_seen > 0);
    CHECK(memcmp(out, again, sizeof out) == 0);
    WORKS(MXPredSetMonitorCallback(p, NULL, NULL, true));
    before = seen;
    answer(p, 0, again);
    CHECK(seen == before);

    for (i = 0; i < THREADS; ++i) answer(p, i, expected[i]);
    run_threads(shared_predictor, &p, 0);
    WORKS(MXPredFree(p));
    freed_while_it_runs();
    WORKS(MXPredCreateMultiThread(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, THREADS, many));
    run_threads(own_predictor, many, 1);
    for (i = 0; i < THREADS; ++i) WORKS(MXPredFree(many[i]));

    WORKS(MXPredCreatePartialOut(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, 1, inner, &p));
    CHECK(out_size(p, 0) <= 1 << 16 && out_size(p, 0) != OUT);
    answer(p, 0, features);
    for (i = 0; features[i] == 0.0f; ++i) CHECK(i < 1 << 10);
    CHECK(features[i] > 0.0f);
    WORKS(MXPredFree(p));
    inner[0] = "nothing";
    FAILS(MXPredCreatePartialOut(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, 1, inner, &p),
          "didn't find node name: nothing_output");

    {
        /* Keys that the symbol lacks count for nothing: programs name the label of any network. */
        static const char *label[] = {"softmax_label", "data", "extra"}, *other[] = {"softmax_label", "dat"};
        static const uint32_t three[] = {0, 1, 5, 5}, shapes[] = {3, 3, 1, 8, 8}, turned[] = {6, 6, 1, 8, 8};
        WORKS(MXPredCreate(symbol, params, params_size, 1, 0, 3, label, three, shapes, &p));
        answer(p, 0, out);
        CHECK(memcmp(out, expected[0], sizeof out) == 0);
        FAILS(MXPredSetInput(p, "extra", out, 1), "cannot find input key extra");
        WORKS(MXPredReshape(2, label, three, turned, p, &q));
        WORKS(MXPredFree(q));
        WORKS(MXPredFree(p));
        FAILS(MXPredCreate(symbol, params, params_size, 1, 0, 2, other, three, shapes, &p),
              "cannot find input key softmax_label, dat: the inputs are data");
    }

    {
        /* Every context of the host computes the same. */
        static const int kinds[] = {1, 1, 3, 3, 5, 5}, numbers_of[] = {1, 5, 0, 1, 0, 7};
        for (i = 0; i < 6; ++i) {
            WORKS(MXPredCreate(symbol, params, params_size, kinds[i], numbers_of[i], 1, keys, indptr, dims, &p));
            answer(p, 0, out);
            CHECK(memcmp(out, expected[0], sizeof out) == 0);
            WORKS(MXPredFree(p));
        }
    }

    {
        /* float64 data over float32 parameters: the types do not fit. */
        static const int f64[] = {1}, f32[] = {0}, unknown[] = {77};
        FAILS(MXPredCreateEx(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, 1, keys, f64, &p), "float64");
        FAILS(MXPredCreateEx(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, 1, keys, unknown, &p),
              "dtype 77");
        WORKS(MXPredCreateEx(symbol, params, params_size, 1, 0, 1, keys, indptr, dims, 1, keys, f32, &p));
        answer(p, 0, out);
        CHECK(memcmp(out, expected[0], sizeof out) == 0);
        WORKS(MXPredFree(p));
    }

    WORKS(MXNDListCreate(params, params_size, &list, &length));
    CHECK(length > 2);
    for (i = 0; i < (int)length; ++i) {
        WORKS(MXNDListGet(list, (uint32_t)i, &key, &values, &shape, &ndim));
        CHECK(strncmp(key, "arg:", 4) == 0 || strncmp(key, "aux:", 4) == 0);
        CHECK(ndim > 0 && shape[0] > 0 && values[0] == values[0]);
    }
    FAILS(MXNDListGet(list, length, &key, &values, &shape, &ndim), "index");
    FAILS(MXNDListGet(list, 0, NULL, &values, &shape, &ndim), "out_key");
    FAILS(MXNDListCreate(params, -1, &list, &length), "nd_file_size is -1");
    WORKS(MXNDListFree(list));
    errors();
    printf("%d checks\n", checks);
    return 0;
}
