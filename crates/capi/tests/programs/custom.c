/* An operator of the program: outputs are the input times a factor and the sum of both arrays. */
#include <mxrt.h>

#include <pthread.h>
#include <sched.h>

#include "check.h"

typedef int (*function)(void);

/* What create_operator makes. It serves one call at a time. */
struct instance {
    const float *factor;
    int busy;
    function functions[2];
    void *contexts[2];
};

enum { LONGEST = 300, THREADS = 8, SIGNATURES = 200, KEPT = 32 };

static int live_props, live_operators;
static int refuse;
/* Whether calls are told that they train. */
static int trains;
/* Calls that have begun, which wait for each other until there are as many as threads. */
static int gather, begun;

static int delete_prop(void *state) {
    __atomic_sub_fetch(&live_props, 1, __ATOMIC_SEQ_CST);
    free(state);
    return 1;
}

static int delete_operator(void *state) {
    CHECK(!((struct instance *)state)->busy);
    free(state);
    __atomic_sub_fetch(&live_operators, 1, __ATOMIC_SEQ_CST);
    return 1;
}

static int arguments(char ***names, void *state) {
    static char *list[] = {(char *)"data", (char *)"other", NULL};
    (void)state;
    *names = list;
    return 1;
}

static int outputs(char ***names, void *state) {
    static char *list[] = {(char *)"scaled", (char *)"sum", NULL};
    (void)state;
    *names = list;
    return 1;
}

static int states(char ***names, void *state) {
    static char *list[] = {NULL};
    (void)state;
    *names = list;
    return 1;
}

static int infer_shape(int number, int *ranks, int **shapes, void *state) {
    int i;
    (void)state;
    CHECK(number == 4);
    for (i = 1; i < number; ++i) {
        ranks[i] = ranks[0];
        shapes[i] = shapes[0];
    }
    return 1;
}

static int infer_type(int number, int *types, void *state) {
    int i;
    (void)state;
    CHECK(number == 4);
    for (i = 1; i < number; ++i) types[i] = types[0];
    return 1;
}

static int forward(int number, void **arrays, int *tags, const int *requests, const int is_train, void *state) {
    struct instance *instance = state;
    float a[LONGEST], b[LONGEST], scaled[LONGEST], sum[LONGEST];
    const uint32_t *shape;
    uint32_t rank, i;
    CHECK(!__atomic_exchange_n(&instance->busy, 1, __ATOMIC_SEQ_CST));
    if (gather) {
        __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) < THREADS) sched_yield();
    }
    CHECK(number == 4 && tags[0] == 0 && tags[1] == 0 && tags[2] == 1 && tags[3] == 1);
    CHECK(requests[0] == 1 && requests[1] == 1 && is_train == trains);
    WORKS(MXNDArrayGetShape(arrays[0], &rank, &shape));
    const uint32_t length = shape[0];
    WORKS(MXNDArraySyncCopyToCPU(arrays[0], a, length));
    WORKS(MXNDArraySyncCopyToCPU(arrays[1], b, length));
    for (i = 0; i < length; ++i) scaled[i] = *instance->factor * a[i], sum[i] = a[i] + b[i];
    WORKS(MXNDArraySyncCopyFromCPU(arrays[2], scaled, length));
    WORKS(MXNDArraySyncCopyFromCPU(arrays[3], sum, length));
    for (i = 0; i < 4; ++i) WORKS(MXNDArrayFree(arrays[i]));
    CHECK(__atomic_exchange_n(&instance->busy, 0, __ATOMIC_SEQ_CST));
    return !refuse;
}

static int create_operator(const char *context, int number, unsigned **shapes, const int *ranks, const int *types,
                           struct MXCallbackList *made, void *state) {
    struct instance *instance = calloc(1, sizeof *instance);
    CHECK(strcmp(context, "cpu(0)") == 0 && number == 2 && ranks[0] == 1 && shapes[1][0] >= 4 && types[0] == 0);
    instance->factor = state;
    instance->functions[0] = (function)(void (*)(void))delete_operator;
    instance->functions[1] = (function)(void (*)(void))forward;
    instance->contexts[0] = instance->contexts[1] = instance;
    made->num_callbacks = 2;
    made->callbacks = instance->functions;
    made->contexts = instance->contexts;
    __atomic_add_fetch(&live_operators, 1, __ATOMIC_SEQ_CST);
    return 1;
}

static int create(const char *op_type, const int number, const char **keys, const char **values,
                  struct MXCallbackList *made) {
    static void *contexts[8];
    static function functions[8];
    float *factor;
    int i;
    CHECK(strcmp(op_type, "scale_and_add") == 0);
    if (number != 1 || strcmp(keys[0], "factor") != 0) return 0;
    factor = malloc(sizeof *factor);
    *factor = (float)atof(values[0]);
    functions[0] = (function)(void (*)(void))delete_prop;
    functions[1] = (function)(void (*)(void))arguments;
    functions[2] = (function)(void (*)(void))outputs;
    functions[3] = (function)(void (*)(void))states;
    functions[4] = (function)(void (*)(void))infer_shape;
    functions[6] = (function)(void (*)(void))create_operator;
    functions[7] = (function)(void (*)(void))infer_type;
    for (i = 0; i < 8; ++i) contexts[i] = factor;
    made->num_callbacks = 8;
    made->callbacks = functions;
    made->contexts = contexts;
    __atomic_add_fetch(&live_props, 1, __ATOMIC_SEQ_CST);
    return 1;
}

static const char *JSON =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"a\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"b\", \"inputs\": []},"
    "{\"op\": \"relu\", \"name\": \"r\", \"inputs\": [[0, 0, 0]]},"
    "{\"op\": \"Custom\", \"name\": \"c\", \"attrs\": {\"op_type\": \"scale_and_add\", \"factor\": \"3\"},"
    "\"inputs\": [[2, 0, 0], [1, 0, 0]]}], \"arg_nodes\": [0, 1], \"heads\": [[3, 0, 0], [3, 1, 0]]}";

static CachedOpHandle op;

static void *call(void *number) {
    const uint32_t shape[] = {4};
    const float n = (float)(size_t)number, a[] = {n, -1, 2, 0}, b[] = {1, 1, 1, n};
    float scaled[4], sum[4];
    NDArrayHandle in[2], *out;
    NDArrayHandle first, second;
    int i, turn, made;
    for (turn = 0; turn < 10; ++turn) {
        WORKS(MXNDArrayCreate(shape, 1, 1, 0, 0, &in[0]));
        WORKS(MXNDArrayCreate(shape, 1, 1, 0, 0, &in[1]));
        WORKS(MXNDArraySyncCopyFromCPU(in[0], a, 4));
        WORKS(MXNDArraySyncCopyFromCPU(in[1], b, 4));
        out = NULL;
        WORKS(MXInvokeCachedOp(op, 2, in, &made, &out));
        first = out[0], second = out[1];
        WORKS(MXNDArraySyncCopyToCPU(first, scaled, 4));
        WORKS(MXNDArraySyncCopyToCPU(second, sum, 4));
        for (i = 0; i < 4; ++i) {
            const float x = a[i] > 0 ? a[i] : 0;
            CHECK(scaled[i] == 3 * x && sum[i] == x + b[i]);
        }
        WORKS(MXNDArrayFree(in[0]));
        WORKS(MXNDArrayFree(in[1]));
        WORKS(MXNDArrayFree(first));
        WORKS(MXNDArrayFree(second));
    }
    return NULL;
}

static void call_from_threads(void) {
    pthread_t threads[THREADS];
    size_t i;
    for (i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, call, (void *)(i + 1)) == 0);
    for (i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* One call on arrays of so many elements. */
static void call_with(uint32_t length) {
    NDArrayHandle in[2], *out = NULL;
    float content[LONGEST] = {1}, found[LONGEST];
    int i, made;
    for (i = 0; i < 2; ++i) {
        WORKS(MXNDArrayCreate(&length, 1, 1, 0, 0, &in[i]));
        WORKS(MXNDArraySyncCopyFromCPU(in[i], content, length));
    }
    WORKS(MXInvokeCachedOp(op, 2, in, &made, &out));
    NDArrayHandle results[] = {out[0], out[1]};
    WORKS(MXNDArraySyncCopyToCPU(results[0], found, length));
    CHECK(found[0] == 3 && found[length - 1] == 0);
    for (i = 0; i < 2; ++i) {
        WORKS(MXNDArrayFree(in[i]));
        WORKS(MXNDArrayFree(results[i]));
    }
}

int main(void) {
    SymbolHandle net, bad;
    const uint32_t shape[] = {4};
    const char *keys[] = {"op_type"}, *values[] = {"scale_and_add"};
    const char *both[] = {"op_type", "factor"}, *both_values[] = {"scale_and_add", "2"};
    const float four[] = {1, 2, 3, 4};
    NDArrayHandle in[2], *out = NULL;
    float found[4];
    int made = 0, before, i;
    uint32_t length;
    OpHandle custom;
    FAILS(MXSymbolCreateFromJSON(JSON, &bad), "scale_and_add");
    FAILS(MXCustomOpRegister("scale_and_add", NULL), "creator is a null pointer");
    WORKS(MXCustomOpRegister("scale_and_add", create));
    WORKS(MXSymbolCreateFromJSON(JSON, &net));
    WORKS(MXCreateCachedOp(net, &op));
    /* Concurrent calls have an instance each, and later ones take those again. */
    gather = 1;
    call_from_threads();
    CHECK(begun >= THREADS && live_operators == THREADS);
    gather = 0;
    call_from_threads();
    CHECK(live_operators == THREADS);
    /* Few are kept. */
    for (length = 4; length < 4 + SIGNATURES; ++length) {
        call_with(length);
        CHECK(live_operators <= KEPT);
    }
    CHECK(live_operators == KEPT);
    /* Functions that fail: the creator at once, the others through the array. */
    WORKS(MXNDArrayCreate(shape, 1, 1, 0, 0, &in[0]));
    WORKS(MXNDArrayCreate(shape, 1, 1, 0, 0, &in[1]));
    WORKS(NNGetOpHandle("Custom", &custom));
    WORKS(MXNDArraySyncCopyFromCPU(in[0], four, 4));
    WORKS(MXNDArraySyncCopyFromCPU(in[1], four, 4));
    WORKS(MXImperativeInvoke(custom, 2, in, &made, &out, 2, both, both_values));
    CHECK(made == 2);
    WORKS(MXNDArraySyncCopyToCPU(out[0], found, 4));
    CHECK(found[3] == 8);
    /* Calls are told that they train, in graphs too. */
    trains = 1;
    WORKS(MXAutogradSetIsTraining(1, &before));
    for (i = 0; i < 2; ++i) {
        made = 0;
        out = NULL;
        if (i) WORKS(MXInvokeCachedOp(op, 2, in, &made, &out));
        else WORKS(MXImperativeInvoke(custom, 2, in, &made, &out, 2, both, both_values));
        WORKS(MXNDArraySyncCopyToCPU(out[0], found, 4));
        CHECK(found[3] == (i ? 12 : 8));
        WORKS(MXNDArrayFree(out[0]));
        WORKS(MXNDArrayFree(out[1]));
    }
    WORKS(MXAutogradSetIsTraining(0, &before));
    trains = 0;
    made = 0;
    out = NULL;
    FAILS(MXImperativeInvoke(custom, 2, in, &made, &out, 1, keys, values), "the creator of the custom operator 'scale_and_add' failed");
    refuse = 1;
    WORKS(MXInvokeCachedOp(op, 2, in, &made, &out));
    FAILS(MXNDArraySyncCopyToCPU(out[0], found, 4), "forward of the custom operator 'scale_and_add' failed");
    WORKS(MXNDArrayFree(out[0]));
    WORKS(MXNDArrayFree(out[1]));
    WORKS(MXFreeCachedOp(op));
    WORKS(MXSymbolFree(net));
    /* They go with the graph, when its last call has ended. */
    while (__atomic_load_n(&live_operators, __ATOMIC_SEQ_CST) || __atomic_load_n(&live_props, __ATOMIC_SEQ_CST))
        sched_yield();
    printf("%d checks\n", checks);
    return 0;
}
