/* Arrays for results: given, without a value yet, or made; their storage types; entries of arrays;
 * content that is written through an address. Links to MXNet's library, too, without what only mxrt
 * says (-DMXNET). */
#ifdef MXNET
#include <mxnet/c_api.h>
#include <nnvm/c_api.h>
#else
#include <mxrt.h>
#endif
#include <stdint.h>

#include "check.h"

static NDArrayHandle array(uint32_t rows, uint32_t columns, const float *values) {
    uint32_t shape[2] = {rows, columns};
    NDArrayHandle made;
    WORKS(MXNDArrayCreate(shape, columns ? 2 : 1, 1, 0, 0, &made));
    if (values) WORKS(MXNDArraySyncCopyFromCPU(made, values, rows * (columns ? columns : 1)));
    return made;
}

static NDArrayHandle none(void) {
    NDArrayHandle made;
    WORKS(MXNDArrayCreateNone(&made));
    return made;
}

static void holds(NDArrayHandle array, size_t count, const float *wanted) {
    float found[16];
    WORKS(MXNDArraySyncCopyToCPU(array, found, count));
    for (size_t i = 0; i < count; i++) CHECK(found[i] - wanted[i] < 1e-4f && wanted[i] - found[i] < 1e-4f);
}

static int call(const char *name, int inputs, NDArrayHandle *in, int outputs, NDArrayHandle *out, const char *key,
                const char *value) {
    OpHandle op;
    WORKS(NNGetOpHandle(name, &op));
    return MXImperativeInvoke(op, inputs, in, &outputs, &out, key != NULL, &key, &value);
}

static SymbolHandle apply(const char *name, const char *key, const char *value, int inputs, SymbolHandle *in) {
    OpHandle op;
    SymbolHandle made;
    WORKS(NNGetOpHandle(name, &op));
    WORKS(MXSymbolCreateAtomicSymbol(op, key != NULL, &key, &value, &made));
    WORKS(MXSymbolCompose(made, name, (uint32_t)inputs, NULL, in));
    return made;
}

static void given_and_none(void) {
    const float six[6] = {1, 2, 3, 4, 5, 6}, first[2] = {1, 4}, second[2] = {2, 5}, third[2] = {3, 6};
    NDArrayHandle x = array(2, 3, six), out[3];
    const char *three = "3";
    {
        OpHandle op;
        int count = 3;
        NDArrayHandle *places = out;
        const char *keys[2] = {"num_outputs", "axis"}, *values[2] = {three, "1"};
        out[0] = none();
        out[1] = array(2, 1, NULL);
        out[2] = none();
        WORKS(NNGetOpHandle("split", &op));
        WORKS(MXImperativeInvoke(op, 1, &x, &count, &places, 2, keys, values));
        CHECK(count == 3 && places == out);
        holds(out[0], 2, first);
        holds(out[1], 2, second);
        holds(out[2], 2, third);
        for (int i = 0; i < 3; i++) WORKS(MXNDArrayFree(out[i]));
        /* Too few, too many, and one that does not fit. */
        out[0] = none();
        count = 1;
        CHECK(MXImperativeInvoke(op, 1, &x, &count, &places, 2, keys, values) == -1);
        out[1] = array(2, 2, NULL);
        out[2] = none();
        count = 3;
        CHECK(MXImperativeInvoke(op, 1, &x, &count, &places, 2, keys, values) == -1);
        CHECK(call("exp", 1, &x, 2, out, NULL, NULL) == -1);
        for (int i = 0; i < 3; i++) WORKS(MXNDArrayFree(out[i]));
    }
    WORKS(MXNDArrayFree(x));
}

/* Statistics have arrays of their own also where they are not visible. */
static void hidden(void) {
    const float six[6] = {1, 2, 3, 4, 5, 6}, ones[3] = {1, 1, 1}, zeros[3] = {0, 0, 0}, mean[3] = {1, 2, 3};
    const float variance[3] = {4, 4, 4}, wanted[6] = {0, 0, 0, 1.49981f, 1.49981f, 1.49981f};
    const float deviation[3] = {0.49994f, 0.49994f, 0.49994f};
    NDArrayHandle in[5] = {array(2, 3, six), array(3, 0, ones), array(3, 0, zeros), array(3, 0, mean),
                           array(3, 0, variance)};
    for (int given = 0; given < 2; given++) {
        NDArrayHandle out[3];
        out[0] = given ? array(2, 3, NULL) : none();
        out[1] = given ? array(3, 0, NULL) : none();
        out[2] = none();
        WORKS(call("BatchNorm", 5, in, 3, out, NULL, NULL));
        holds(out[0], 6, wanted);
        holds(out[1], 3, mean);
        holds(out[2], 3, deviation);
        for (int i = 0; i < 3; i++) WORKS(MXNDArrayFree(out[i]));
    }
    for (int i = 0; i < 5; i++) WORKS(MXNDArrayFree(in[i]));
}

static void of_graphs(void) {
    const float two[2] = {1, 2}, twice[2] = {2, 4};
    SymbolHandle x, net, in[2];
    CachedOpHandle op;
    NDArrayHandle data = array(2, 0, two), out = none(), *places = &out;
    const uint32_t *extents;
    uint32_t axes;
    const int *types;
    int count = 1;
    WORKS(MXSymbolCreateVariable("x", &x));
    in[0] = in[1] = x;
    net = apply("elemwise_add", NULL, NULL, 2, in);
    WORKS(MXCreateCachedOp(net, &op));
    WORKS(MXInvokeCachedOp(op, 1, &data, &count, &places));
    WORKS(MXNDArrayGetShape(out, &axes, &extents));
    CHECK(count == 1 && places == &out && axes == 1 && extents[0] == 2);
    holds(out, 2, twice);
    WORKS(MXNDArrayFree(out));
    out = none();
    WORKS(MXInvokeCachedOpEx(op, 1, &data, &count, &places, &types));
    CHECK(types[0] == 0);
    holds(out, 2, twice);
    WORKS(MXNDArrayFree(out));
    out = none();
    count = 2;
    CHECK(MXInvokeCachedOp(op, 1, &data, &count, &places) == -1);
    WORKS(MXNDArrayFree(out));
    WORKS(MXFreeCachedOp(op));
    WORKS(MXSymbolFree(net));
    WORKS(MXSymbolFree(x));
    WORKS(MXNDArrayFree(data));
}

#ifndef MXNET
static void of_models(void) {
    static const char *text =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
        "{\"op\": \"elemwise_add\", \"name\": \"y\", \"inputs\": [[0, 0, 0], [0, 0, 0]]}],"
        "\"arg_nodes\": [0], \"heads\": [[1, 0, 0]]}";
    const float two[2] = {1, 2}, twice[2] = {2, 4};
    const char *inputs[] = {"x"};
    ModelHandle model;
    for (int kind = 1; kind <= 5; kind += 2) {
        NDArrayHandle data, out = none(), *places = &out;
        uint32_t shape = 2;
        int count = 1, found, number;
        WORKS(MXRTModelCreate(text, NULL, 0, 1, inputs, kind, 2, 0, NULL, NULL, &model));
        WORKS(MXNDArrayCreate(&shape, 1, kind, 2, 0, &data));
        WORKS(MXNDArraySyncCopyFromCPU(data, two, 2));
        WORKS(MXRTModelCall(model, 1, &data, NULL, &count, &places));
        CHECK(count == 1 && places == &out);
        holds(out, 2, twice);
        WORKS(MXNDArrayGetContext(out, &found, &number));
        CHECK(found == kind);
        WORKS(MXNDArrayFree(data));
        WORKS(MXNDArrayFree(out));
        WORKS(MXRTModelFree(model));
    }
}
#endif

static void storage_types(void) {
    const float values[4] = {0, 1, 0, 2};
    const char *key = "stype", *csr = "csr";
    NDArrayHandle dense = array(2, 2, values), sparse = none(), *made = NULL;
    SymbolHandle x, net;
    CachedOpHandle op;
    OpHandle square;
    const int *types = NULL;
    int count = 0, code;
    WORKS(call("cast_storage", 1, &dense, 1, &sparse, key, csr));
    WORKS(NNGetOpHandle("square", &square));
    WORKS(MXImperativeInvokeEx(square, 1, &sparse, &count, &made, 0, NULL, NULL, &types));
    WORKS(MXNDArrayGetStorageType(made[0], &code));
    CHECK(count == 1 && code == 2 && types[0] == 2);
    WORKS(MXNDArrayFree(made[0]));
    made = NULL;
    count = 0;
    WORKS(MXImperativeInvokeEx(square, 1, &dense, &count, &made, 0, NULL, NULL, &types));
    CHECK(types[0] == 0);
    WORKS(MXNDArrayFree(made[0]));
    WORKS(MXSymbolCreateVariable("x", &x));
    net = apply("square", NULL, NULL, 1, &x);
    WORKS(MXCreateCachedOp(net, &op));
    made = NULL;
    WORKS(MXInvokeCachedOpEx(op, 1, &sparse, &count, &made, &types));
    WORKS(MXNDArrayGetStorageType(made[0], &code));
    CHECK(count == 1 && types[0] == code && code == 2);
    WORKS(MXNDArrayFree(made[0]));
    WORKS(MXFreeCachedOp(op));
    WORKS(MXSymbolFree(net));
    WORKS(MXSymbolFree(x));
    WORKS(MXNDArrayFree(sparse));
    WORKS(MXNDArrayFree(dense));
}

/* An entry of an array with one axis is an array of one element, which can be saved and joined. */
static void entries(void) {
    const float three[3] = {5, 6, 7}, both[2] = {6, 6};
    NDArrayHandle x = array(3, 0, three), one[2], joined;
    const uint32_t *extents;
    uint32_t axes;
    int before;
    WORKS(MXNDArrayAt(x, 1, &one[0]));
    WORKS(MXNDArrayAt64(x, 1, &one[1]));
    for (int i = 0; i < 2; i++) {
        WORKS(MXNDArrayGetShape(one[i], &axes, &extents));
        CHECK(axes == 1 && extents[0] == 1);
    }
    joined = none();
    {
        const char *keys[2] = {"num_args", "dim"}, *values[2] = {"2", "0"};
        OpHandle op;
        NDArrayHandle *places = &joined;
        int count = 1;
        WORKS(NNGetOpHandle("Concat", &op));
        WORKS(MXImperativeInvoke(op, 2, one, &count, &places, 2, keys, values));
    }
    holds(joined, 2, both);
    WORKS(MXNDArrayFree(joined));
    WORKS(MXNDArrayFree(one[0]));
    WORKS(MXNDArrayFree(one[1]));
#ifndef MXNET
    /* MXNet's own is a scalar only where it records gradients. */
    WORKS(MXSetIsNumpyShape(1, &before));
    WORKS(MXNDArrayAt(x, 1, &one[0]));
    WORKS(MXNDArrayGetShape(one[0], &axes, &extents));
    CHECK(axes == 0);
    WORKS(MXNDArrayFree(one[0]));
    WORKS(MXSetIsNumpyShape(before, &before));
#else
    (void)before;
#endif
    WORKS(MXNDArrayFree(x));
}

static void contexts(void) {
    static const char *wrong[] = {"bogus", "cuda(0)", "cuda", "cpu(0", "CPU(0)", "", "cpu(0) "};
    static const char *host[] = {"cpu(0)", "cpu(1)", "cpu_pinned(0)", "cpu_shared(0)"};
    static const int kinds[] = {1, 1, 3, 5}, numbers[] = {0, 1, 0, 0};
    const char *keys[2] = {"shape", "ctx"}, *values[2] = {"(2,)", NULL};
    OpHandle op;
    NDArrayHandle *made = NULL;
    int count = 0, kind, number;
    WORKS(NNGetOpHandle("_zeros", &op));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        values[1] = wrong[i];
        FAILS(MXImperativeInvoke(op, 0, NULL, &count, &made, 2, keys, values), "Invalid context string");
    }
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
        values[1] = host[i];
        made = NULL;
        count = 0;
        WORKS(MXImperativeInvoke(op, 0, NULL, &count, &made, 2, keys, values));
        WORKS(MXNDArrayGetContext(made[0], &kind, &number));
        CHECK(kind == kinds[i] && number == numbers[i]);
        WORKS(MXNDArrayFree(made[0]));
    }
}

static void without_value(void) {
    NDArrayHandle x = none(), copy = NULL, other = NULL;
    uint32_t axes;
    const uint32_t *extents;
    WORKS(MXNDArrayWaitToRead(x));
    WORKS(MXNDArrayWaitToWrite(x));
    WORKS(MXShallowCopyNDArray(x, &copy));
    WORKS(MXNDArrayDetach(x, &other));
    CHECK(copy && other && copy != x && other != x);
    WORKS(MXNDArrayGetShape(copy, &axes, &extents));
    CHECK(axes == 0);
    WORKS(MXNDArrayFree(x));
    WORKS(MXNDArrayFree(copy));
    WORKS(MXNDArrayFree(other));
}

/* What a program writes to the address of a weight, the next call uses, although a plan has packed
 * the weight before. */
static void written_weights(void) {
    float ones[6] = {1, 1, 1, 1, 1, 1}, two[2] = {1, 2}, zeros[3] = {0, 0, 0}, wanted[3] = {3, 3, 3}, *address;
    NDArrayHandle in[3] = {array(1, 2, two), array(3, 2, ones), array(3, 0, zeros)}, *made, *outputs;
    SymbolHandle x, net;
    CachedOpHandle op;
    ExecutorHandle executor;
    uint32_t grads[3] = {0, 0, 0}, number;
    NDArrayHandle nothing[3] = {NULL, NULL, NULL};
    int count = 0;
    WORKS(MXSymbolCreateVariable("x", &x));
    net = apply("FullyConnected", "num_hidden", "3", 1, &x);
    WORKS(MXCreateCachedOp(net, &op));
    WORKS(MXExecutorBind(net, 1, 0, 3, in, nothing, grads, 0, NULL, &executor));
    WORKS(MXNDArrayGetData(in[1], (void **)&address));
    for (int i = 0; i < 4; i++) {
        for (int twice = 0; twice < 2; twice++) {
            made = NULL;
            WORKS(MXInvokeCachedOp(op, 3, in, &count, &made));
            holds(made[0], 3, wanted);
            WORKS(MXNDArrayFree(made[0]));
            WORKS(MXExecutorForward(executor, 0));
            WORKS(MXExecutorOutputs(executor, &number, &outputs));
#ifndef MXNET
            /* An executor of MXNet keeps what oneDNN has packed. */
            holds(outputs[0], 3, wanted);
#endif
            WORKS(MXNDArrayFree(outputs[0]));
        }
        /* One element of a row at a time. */
        address[2 * (i % 3)] += 10;
        wanted[i % 3] += 10;
    }
    WORKS(MXExecutorFree(executor));
    WORKS(MXFreeCachedOp(op));
    WORKS(MXSymbolFree(net));
    WORKS(MXSymbolFree(x));
    for (int i = 0; i < 3; i++) WORKS(MXNDArrayFree(in[i]));
}

static void attributes(void) {
    static const char *keys[] = {"bogus", "num_hidden", "num_hidden", "weight_lr_mult"};
    static const char *values[] = {"1", "many", "0", "2"};
    OpHandle op;
    SymbolHandle made = NULL, x;
    const char **pairs, *key = "lr_mult", *value = "2", *number = "num_hidden", *three = "3";
    uint32_t size;
    WORKS(NNGetOpHandle("FullyConnected", &op));
    for (int i = 0; i < 4; i++) CHECK(MXSymbolCreateAtomicSymbol(op, 1, &keys[i], &values[i], &made) == -1);
    CHECK(MXSymbolCreateAtomicSymbol(op, 0, NULL, NULL, &made) == -1);
    CHECK(made == NULL);
    WORKS(MXSymbolCreateAtomicSymbol(op, 1, &number, &three, &made));
    WORKS(MXSymbolFree(made));
    /* NNVM's list has the keys as they are kept, MXNet's both spellings. */
    WORKS(MXSymbolCreateVariable("x", &x));
    WORKS(MXSymbolSetAttr(x, key, value));
    WORKS(NNSymbolListAttrs(x, 1, &size, &pairs));
    CHECK(size == 1 && !strcmp(pairs[0], "__lr_mult__"));
    WORKS(NNSymbolListAttrs(x, 0, &size, &pairs));
    CHECK(size == 1 && !strcmp(pairs[0], "x$__lr_mult__"));
    WORKS(MXSymbolListAttrShallow(x, &size, &pairs));
    CHECK(size == 2);
    WORKS(MXSymbolListAttr(x, &size, &pairs));
    CHECK(size == 2);
    WORKS(MXSymbolFree(x));
}

static void settings(void) {
    static const char *names[] = {"CUDA", "CPU_AVX2", "F16C", "LAPACK", "BLAS_OPEN", "PROFILER", "TVM_OP"};
    const char *key = "profile_all", *value = "maybe", *period = "dump_period", *long_time = "long";
    const struct LibFeature *features;
    size_t size;
    CHECK(MXSetProfilerConfig(1, &key, &value) == -1);
    CHECK(MXSetProfilerConfig(1, &period, &long_time) == -1);
    value = "True";
    WORKS(MXSetProfilerConfig(1, &key, &value));
    WORKS(MXLibInfoFeatures(&features, &size));
    CHECK(size == 32);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t found = 0;
        while (found < size && strcmp(features[found].name, names[i])) found++;
        CHECK(found < size);
    }
}

int main(void) {
    uint32_t operators;
    const char **names;
    /* As MXNet's bindings do first. */
    WORKS(MXListAllOpNames(&operators, &names));
    given_and_none();
    hidden();
    of_graphs();
#ifndef MXNET
    of_models();
#endif
    storage_types();
    entries();
    contexts();
    without_value();
    written_weights();
    attributes();
    settings();
    printf("%d checks\n", checks);
    return 0;
}
