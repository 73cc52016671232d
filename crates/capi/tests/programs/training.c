/* The mode of training: what operators, callable graphs and executors compute in it. */
#include <mxrt.h>
#include <pthread.h>

#include "check.h"

/* Not in the headers: they are refused. */
int MXAutogradBackward(uint32_t number, NDArrayHandle *outputs, NDArrayHandle *gradients, int retain_graph);
int MXExecutorBackward(ExecutorHandle handle, uint32_t number, NDArrayHandle *gradients);

enum { MANY = 1000, IMAGE = 24 };

/* What MXNet 1.9.1 gives for BatchNorm of 0 .. 23 to the power of 1.5 as (2, 3, 2, 2) with gamma 1, 2, 3,
 * beta 1 and eps 1e-3: as in inference, and as in training. */
static const float data[] = {0,       1,       2.82843, 5.19615, 8,       11.1803, 14.6969, 18.5203,
                             22.6274, 27,      31.6228, 36.4829, 41.5692, 46.8722, 52.3832, 58.0948,
                             64,      70.0928, 76.3675, 82.8191, 89.4427, 96.2341, 103.189, 110.304};
static const float inferred[] = {1, 1.9995, 3.8270, 6.1936}, trained[] = {-0.0753f, -0.0339f, 0.0417f, 0.1397f};

static const char *NORMALISES =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"gamma\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"beta\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"mean\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"var\", \"inputs\": []},"
    "{\"op\": \"BatchNorm\", \"name\": \"n\", \"attrs\": {\"fix_gamma\": \"False\", \"eps\": \"1e-3\"},"
    "\"inputs\": [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]]}],"
    "\"arg_nodes\": [0, 1, 2, 3, 4], \"heads\": [[5, 0, 0]]}";

static NDArrayHandle array(uint32_t ndim, const uint32_t *shape, const float *values, size_t size) {
    NDArrayHandle made;
    WORKS(MXNDArrayCreate(shape, ndim, 1, 0, 0, &made));
    WORKS(MXNDArraySyncCopyFromCPU(made, values, size));
    return made;
}

/* The first numbers of an array are these. */
static int begins(NDArrayHandle have, const float *wanted, size_t size, size_t number) {
    float values[IMAGE];
    size_t i;
    WORKS(MXNDArraySyncCopyToCPU(have, values, size));
    for (i = 0; i < number; ++i)
        if (values[i] - wanted[i] > 2e-4f || wanted[i] - values[i] > 2e-4f) return 0;
    return 1;
}

static void train(int on, int before) {
    int previous = 7;
    bool says = !on;
    WORKS(MXAutogradSetIsTraining(on, &previous));
    WORKS(MXAutogradIsTraining(&says));
    CHECK(previous == before && says == (on != 0));
}

static void *of_another_thread(void *unused) {
    bool on = true;
    (void)unused;
    WORKS(MXAutogradIsTraining(&on));
    CHECK(!on);
    WORKS(MXAutogradIsRecording(&on));
    CHECK(!on);
    return NULL;
}

static void modes(void) {
    pthread_t thread;
    int before = 7;
    bool on = true;
    WORKS(MXAutogradIsRecording(&on));
    CHECK(!on);
    train(1, 0);
    WORKS(MXAutogradSetIsRecording(1, &before));
    WORKS(MXAutogradIsRecording(&on));
    CHECK(before == 0 && on);
    CHECK(pthread_create(&thread, NULL, of_another_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    FAILS(MXAutogradBackward(0, NULL, NULL, 0), "belongs to training");
    WORKS(MXAutogradSetIsRecording(0, &before));
    CHECK(before == 1);
    train(0, 1);
    FAILS(MXAutogradSetIsTraining(1, NULL), "prev");
    WORKS(MXAutogradIsTraining(&on));
    CHECK(!on);
}

/* How many of many ones a Dropout of 0.5 drops; the others are doubled. */
static int dropped(void) {
    static const uint32_t shape[] = {MANY};
    static const char *keys[] = {"p"}, *vals[] = {"0.5"};
    float values[MANY];
    NDArrayHandle in, *out = NULL;
    OpHandle op;
    int number = 0, zeros = 0, i;
    for (i = 0; i < MANY; ++i) values[i] = 1;
    in = array(1, shape, values, MANY);
    WORKS(NNGetOpHandle("Dropout", &op));
    WORKS(MXImperativeInvoke(op, 1, &in, &number, &out, 1, keys, vals));
    CHECK(number == 1);
    WORKS(MXNDArraySyncCopyToCPU(out[0], values, MANY));
    for (i = 0; i < MANY; ++i) zeros += values[i] == 0;
    for (i = 0; i < MANY; ++i) CHECK(values[i] == 0 || values[i] == (zeros ? 2 : 1));
    WORKS(MXNDArrayFree(out[0]));
    WORKS(MXNDArrayFree(in));
    return zeros;
}

static void operators(void) {
    CHECK(dropped() == 0);
    train(1, 0);
    CHECK(dropped() > 300 && dropped() < 700);
    train(0, 1);
    CHECK(dropped() == 0);
}

static void graphs(void) {
    static const uint32_t image[] = {2, 3, 2, 2}, channels[] = {3};
    static const float gamma[] = {1, 2, 3}, ones[] = {1, 1, 1}, zeros[] = {0, 0, 0};
    SymbolHandle net;
    CachedOpHandle op;
    ExecutorHandle bound;
    uint32_t size;
    NDArrayHandle *out = NULL;
    NDArrayHandle in[] = {array(4, image, data, IMAGE), array(1, channels, gamma, 3), array(1, channels, ones, 3),
                          array(1, channels, zeros, 3), array(1, channels, ones, 3)};
    int number, i;
    WORKS(MXSymbolCreateFromJSON(NORMALISES, &net));
    WORKS(MXCreateCachedOp(net, &op));
    for (i = 0; i < 4; ++i) {
        out = NULL;
        if (i % 2) train(1, 0);
        WORKS(MXInvokeCachedOp(op, 5, in, &number, &out));
        CHECK(begins(out[0], i % 2 ? trained : inferred, IMAGE, 4));
        WORKS(MXNDArrayFree(out[0]));
        if (i % 2) {
            out = NULL;
            FAILS(MXInvokeCachedOp(op, 4, in, &number, &out), "requires 5 inputs but got 4");
            train(0, 1);
        }
    }
    /* The argument of an executor decides, whatever the mode is. */
    WORKS(MXExecutorBind(net, 1, 0, 3, in, NULL, NULL, 2, in + 3, &bound));
    WORKS(MXExecutorOutputs(bound, &size, &out));
    for (i = 0; i < 4; ++i) {
        train(i >= 2, i > 2);
        WORKS(MXExecutorForward(bound, i % 2));
        CHECK(begins(out[0], i % 2 ? trained : inferred, IMAGE, 4));
    }
    train(0, 1);
    CHECK(begins(in[3], zeros, 3, 3) && begins(in[4], ones, 3, 3));
    FAILS(MXExecutorBackward(bound, 0, NULL), "belongs to training");
    WORKS(MXNDArrayFree(out[0]));
    for (i = 0; i < 5; ++i) WORKS(MXNDArrayFree(in[i]));
    WORKS(MXExecutorFree(bound));
    WORKS(MXFreeCachedOp(op));
    WORKS(MXSymbolFree(net));
}

int main(void) {
    modes();
    operators();
    graphs();
    printf("%d checks\n", checks);
    return 0;
}
