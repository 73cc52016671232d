/* An operator of the program: outputs are the input times a factor and the sum of both arrays. */
#include <mxrt.h>

#include <pthread.h>

#include "check.h"

static int live_props, live_operators;
static int refuse;

static int delete_prop(void *state) {
    __atomic_sub_fetch(&live_props, 1, __ATOMIC_SEQ_CST);
    free(state);
    return 1;
}

static int delete_operator(void *state) {
    (void)state;
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
    const float factor = *(const float *)state;
    float a[4], b[4], scaled[4], sum[4];
    int i;
    CHECK(number == 4 && tags[0] == 0 && tags[1] == 0 && tags[2] == 1 && tags[3] == 1);
    CHECK(requests[0] == 1 && requests[1] == 1 && !is_train);
    WORKS(MXNDArraySyncCopyToCPU(arrays[0], a, 4));
    WORKS(MXNDArraySyncCopyToCPU(arrays[1], b, 4));
    for (i = 0; i < 4; ++i) scaled[i] = factor * a[i], sum[i] = a[i] + b[i];
    WORKS(MXNDArraySyncCopyFromCPU(arrays[2], scaled, 4));
    WORKS(MXNDArraySyncCopyFromCPU(arrays[3], sum, 4));
    for (i = 0; i < number; ++i) WORKS(MXNDArrayFree(arrays[i]));
    return !refuse;
}

typedef int (*function)(void);

static int create_operator(const char *context, int number, unsigned **shapes, const int *ranks, const int *types,
                           struct MXCallbackList *made, void *state) {
    static function functions[2];
    static void *contexts[2];
    CHECK(strcmp(context, "cpu(0)") == 0 && number == 2 && ranks[0] == 1 && shapes[1][0] == 4 && types[0] == 0);
    functions[0] = (function)(void (*)(void))delete_operator;
    functions[1] = (function)(void (*)(void))forward;
    contexts[0] = contexts[1] = state;
    made->num_callbacks = 2;
    made->callbacks = functions;
    made->contexts = contexts;
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

int main(void) {
    SymbolHandle net, bad;
    pthread_t threads[8];
    const uint32_t shape[] = {4};
    const char *keys[] = {"op_type"}, *values[] = {"scale_and_add"};
    const char *both[] = {"op_type", "factor"}, *both_values[] = {"scale_and_add", "2"};
    const float four[] = {1, 2, 3, 4};
    NDArrayHandle in[2], *out = NULL;
    float found[4];
    size_t i;
    int made = 0;
    OpHandle custom;
    FAILS(MXSymbolCreateFromJSON(JSON, &bad), "scale_and_add");
    FAILS(MXCustomOpRegister("scale_and_add", NULL), "creator is a null pointer");
    WORKS(MXCustomOpRegister("scale_and_add", create));
    WORKS(MXSymbolCreateFromJSON(JSON, &net));
    WORKS(MXCreateCachedOp(net, &op));
    for (i = 0; i < 8; ++i) CHECK(pthread_create(&threads[i], NULL, call, (void *)(i + 1)) == 0);
    for (i = 0; i < 8; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(live_operators == 1);
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
    made = 0;
    out = NULL;
    FAILS(MXImperativeInvoke(custom, 2, in, &made, &out, 1, keys, values), "the creator of the custom operator 'scale_and_add' failed");
    refuse = 1;
    WORKS(MXInvokeCachedOp(op, 2, in, &made, &out));
    FAILS(MXNDArraySyncCopyToCPU(out[0], found, 4), "forward of the custom operator 'scale_and_add' failed");
    WORKS(MXFreeCachedOp(op));
    WORKS(MXSymbolFree(net));
    printf("%d checks\n", checks);
    return 0;
}
