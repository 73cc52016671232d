/* Executors that share arrays with another one, shapes of no axes, and monitors of runs as in
 * training. */
#include <mxrt.h>

#include <math.h>

#include "check.h"

/* BatchNorm(FullyConnected(data, num_hidden = 2)) */
static const char *NET =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"fc_weight\", \"inputs\": []},"
    "{\"op\": \"FullyConnected\", \"name\": \"fc\", \"attrs\": {\"num_hidden\": \"2\", \"no_bias\": \"True\"},"
    "\"inputs\": [[0, 0, 0], [1, 0, 0]]},"
    "{\"op\": \"null\", \"name\": \"bn_gamma\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"bn_beta\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"bn_moving_mean\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"bn_moving_var\", \"inputs\": []},"
    "{\"op\": \"BatchNorm\", \"name\": \"bn\", \"inputs\": [[2, 0, 0], [3, 0, 0], [4, 0, 0], [5, 0, 0], [6, 0, 0]]},"
    "{\"op\": \"Dropout\", \"name\": \"drop\", \"attrs\": {\"p\": \"0.5\"}, \"inputs\": [[7, 0, 0]]}],"
    "\"arg_nodes\": [0, 1, 3, 4, 5, 6], \"heads\": [[8, 0, 0]]}";

static SymbolHandle net;

/* An executor, and its arrays. */
struct Bound {
    ExecutorHandle executor;
    NDArrayHandle args[8], states[8];
    uint32_t num_args, num_states;
};

static int bind(struct Bound *made, const int *shape, ExecutorHandle from, int *buffer, uint32_t shared,
                const char **names) {
    static const char *keys[] = {"data"};
    static const uint32_t ends[] = {0, 2};
    NDArrayHandle *args, *grads, *states;
    const char **updated_names;
    NDArrayHandle *updated;
    if (MXExecutorSimpleBindEx(net, 1, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, 1, keys, shape, ends, 0, NULL, NULL, 0,
                               NULL, NULL, shared, names, buffer, NULL, NULL, &updated_names, &updated, &made->num_args,
                               &args, &grads, &made->num_states, &states, from, &made->executor))
        return -1;
    memcpy(made->args, args, made->num_args * sizeof *args);
    memcpy(made->states, states, made->num_states * sizeof *states);
    return 0;
}

static void unbind(struct Bound *made) {
    uint32_t i;
    for (i = 0; i < made->num_args; ++i) WORKS(MXNDArrayFree(made->args[i]));
    for (i = 0; i < made->num_states; ++i) WORKS(MXNDArrayFree(made->states[i]));
    WORKS(MXExecutorFree(made->executor));
}

static void fill(NDArrayHandle array, float value, size_t size) {
    float values[16];
    size_t i;
    for (i = 0; i < size; ++i) values[i] = value;
    WORKS(MXNDArraySyncCopyFromCPU(array, values, size));
}

static float first(NDArrayHandle array, size_t size) {
    float values[16];
    WORKS(MXNDArraySyncCopyToCPU(array, values, size));
    return values[0];
}

/* As in MXNet, whose buckets are bound so: arrays are shared where there is a buffer, if an empty
 * one, and auxiliary states with the arguments that are named. */
static void sharing(void) {
    const char *params[] = {"fc_weight", "bn_gamma"}, *unknown[] = {"fc_weight", "nothing"};
    const int shape[] = {2, 3}, more[] = {4, 3}, other[] = {2, 5};
    int none = -1, empty = 0;
    struct Bound one, two;
    WORKS(bind(&one, shape, NULL, &empty, 2, params));
    CHECK(one.num_args == 4 && one.num_states == 2);
    fill(one.args[0], 7, 6);
    fill(one.args[1], 3, 6);
    fill(one.args[2], 5, 2);
    fill(one.args[3], 6, 2);
    fill(one.states[1], 4, 2);

    WORKS(bind(&two, more, one.executor, &empty, 2, params));
    CHECK(first(two.args[1], 6) == 3 && first(two.args[2], 2) == 5 && first(two.states[1], 2) == 4);
    CHECK(first(two.args[0], 12) == 0 && first(two.args[3], 2) == 0);
    fill(two.args[1], 8, 6);
    CHECK(first(one.args[1], 6) == 8);
    fill(one.args[1], 3, 6);
    unbind(&two);

    /* Names that are no arguments of the graph count for nothing. */
    WORKS(bind(&two, more, one.executor, &empty, 2, unknown));
    CHECK(first(two.args[1], 6) == 3 && first(two.args[2], 2) == 0 && first(two.states[1], 2) == 4);
    unbind(&two);

    FAILS(bind(&two, other, one.executor, &empty, 2, params), "'fc_weight' of the shared executor is");
    WORKS(bind(&two, other, one.executor, &empty, 0, NULL));
    CHECK(first(two.states[1], 2) == 4);
    unbind(&two);

    /* Without a buffer nothing is shared. */
    WORKS(bind(&two, more, one.executor, &none, 2, params));
    CHECK(first(two.args[1], 6) == 0 && first(two.states[1], 2) == 0);
    unbind(&two);
    WORKS(bind(&two, other, one.executor, NULL, 2, params));
    CHECK(first(two.args[1], 10) == 0 && first(two.states[1], 2) == 0);
    unbind(&two);
    unbind(&one);
}

/* A shape of no axes is unknown, unless numpy's shapes are set. */
static void no_axes(void) {
    static const char *sum =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"a\", \"inputs\": []},"
        "{\"op\": \"null\", \"name\": \"b\", \"inputs\": []},"
        "{\"op\": \"elemwise_add\", \"name\": \"y\", \"inputs\": [[0, 0, 0], [1, 0, 0]]}],"
        "\"arg_nodes\": [0, 1], \"heads\": [[2, 0, 0]]}";
    static const char *keys[] = {"a", "b"};
    static const uint32_t ends[] = {0, 2, 2};
    static const int shapes[] = {2, 3};
    SymbolHandle symbol;
    ExecutorHandle made;
    NDArrayHandle *args, *grads, *states;
    uint32_t number, num_states, rank, i;
    const uint32_t *shape;
    WORKS(MXSymbolCreateFromJSON(sum, &symbol));
    WORKS(MXExecutorSimpleBindEx(symbol, 1, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, 2, keys, shapes, ends, 0, NULL, NULL,
                                 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, &number, &args, &grads,
                                 &num_states, &states, NULL, &made));
    CHECK(number == 2);
    WORKS(MXNDArrayGetShape(args[1], &rank, &shape));
    CHECK(rank == 2 && shape[0] == 2 && shape[1] == 3);
    for (i = 0; i < number; ++i) WORKS(MXNDArrayFree(args[i]));
    WORKS(MXExecutorFree(made));
    WORKS(MXSymbolFree(symbol));
}

struct Heard {
    float norm[16], drop[16];
};

static void hear(const char *name, NDArrayHandle array, void *data) {
    struct Heard *heard = data;
    if (!strcmp(name, "bn_output")) WORKS(MXNDArraySyncCopyToCPU(array, heard->norm, 16));
    if (!strcmp(name, "drop_output")) WORKS(MXNDArraySyncCopyToCPU(array, heard->drop, 16));
    WORKS(MXNDArrayFree(array));
}

/* A monitor hears what became the outputs: statistics of the batch, and the elements that were dropped. */
static void monitors(void) {
    const int shape[] = {8, 3};
    struct Bound one;
    struct Heard heard;
    NDArrayHandle *outputs;
    uint32_t number;
    float data[24], weight[6], made[16], sum = 0;
    int i, dropped = 0;
    for (i = 0; i < 24; ++i) data[i] = (float)(i * i % 11);
    for (i = 0; i < 6; ++i) weight[i] = (float)(i + 1);
    WORKS(bind(&one, shape, NULL, NULL, 0, NULL));
    WORKS(MXNDArraySyncCopyFromCPU(one.args[0], data, 24));
    WORKS(MXNDArraySyncCopyFromCPU(one.args[1], weight, 6));
    fill(one.args[2], 1, 2);
    fill(one.states[1], 1, 2);
    WORKS(MXExecutorOutputs(one.executor, &number, &outputs));
    WORKS(MXExecutorSetMonitorCallback(one.executor, hear, &heard));
    WORKS(MXExecutorForward(one.executor, 1));
    WORKS(MXNDArraySyncCopyToCPU(outputs[0], made, 16));
    CHECK(memcmp(made, heard.drop, sizeof made) == 0);
    for (i = 0; i < 16; ++i) {
        sum += heard.norm[i];
        dropped += made[i] == 0;
        CHECK(made[i] == 0 || fabsf(made[i] - 2 * heard.norm[i]) < 1e-5f);
    }
    CHECK(fabsf(sum) < 1e-4f && dropped > 0 && dropped < 16);

    WORKS(MXExecutorForward(one.executor, 0));
    WORKS(MXNDArraySyncCopyToCPU(outputs[0], made, 16));
    CHECK(memcmp(made, heard.drop, sizeof made) == 0 && memcmp(made, heard.norm, sizeof made) == 0);
    CHECK(made[0] > 1);
    WORKS(MXExecutorSetMonitorCallback(one.executor, NULL, NULL));
    WORKS(MXExecutorForward(one.executor, 0));
    WORKS(MXNDArraySyncCopyToCPU(outputs[0], made, 16));
    for (i = 0; i < 16; ++i) CHECK(fabsf(made[i] - heard.drop[i]) < 1e-4f * (1 + fabsf(made[i])));
    WORKS(MXNDArrayFree(outputs[0]));
    unbind(&one);
}

int main(void) {
    WORKS(MXSymbolCreateFromJSON(NET, &net));
    sharing();
    no_axes();
    monitors();
    WORKS(MXSymbolFree(net));
    printf("%d checks\n", checks);
    return 0;
}
