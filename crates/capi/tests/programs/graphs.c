/* Operators by name, symbols made and taken apart, executors, and arrays that share memory. */
#include <mxrt.h>

#include "check.h"

static AtomicSymbolCreator op(const char *name) {
    OpHandle made;
    WORKS(NNGetOpHandle(name, &made));
    return made;
}

static NDArrayHandle array(uint32_t ndim, const uint32_t *shape, const float *values) {
    NDArrayHandle made;
    size_t size = 1;
    uint32_t i;
    for (i = 0; i < ndim; ++i) size *= shape[i];
    WORKS(MXNDArrayCreate(shape, ndim, 1, 0, 0, &made));
    if (values) WORKS(MXNDArraySyncCopyFromCPU(made, values, size));
    return made;
}

static int equal(NDArrayHandle have, const float *wanted, size_t size) {
    float values[64];
    size_t i;
    WORKS(MXNDArraySyncCopyToCPU(have, values, size));
    for (i = 0; i < size; ++i)
        if (values[i] != wanted[i]) return 0;
    return 1;
}

/* Shapes that follow from contents: the call waits for them. */
static void boolean_mask(void) {
    static const uint32_t shape[] = {3, 2}, three[] = {3}, one[] = {1, 2};
    static const float x[] = {1, 2, 3, 4, 5, 6}, mask[] = {1, 0, 1}, second[] = {0, 1, 0};
    static const float rows[] = {1, 2, 5, 6}, row[] = {3, 4};
    NDArrayHandle inputs[2], *outputs = NULL, place[1];
    uint32_t ndim;
    const uint32_t *made;
    int out = 0;

    inputs[0] = array(2, shape, x);
    inputs[1] = array(1, three, mask);
    WORKS(MXImperativeInvoke(op("_contrib_boolean_mask"), 2, inputs, &out, &outputs, 0, NULL, NULL));
    CHECK(out == 1);
    WORKS(MXNDArrayGetShape(outputs[0], &ndim, &made));
    CHECK(ndim == 2 && made[0] == 2 && made[1] == 2);
    CHECK(equal(outputs[0], rows, 4));
    WORKS(MXNDArrayFree(outputs[0]));
    WORKS(MXNDArraySyncCopyFromCPU(inputs[1], second, 3));
    place[0] = array(2, one, NULL);
    outputs = place;
    out = 1;
    WORKS(MXImperativeInvoke(op("_contrib_boolean_mask"), 2, inputs, &out, &outputs, 0, NULL, NULL));
    CHECK(equal(place[0], row, 2));
    WORKS(MXNDArraySyncCopyFromCPU(inputs[1], mask, 3));
    FAILS(MXImperativeInvoke(op("_contrib_boolean_mask"), 2, inputs, &out, &outputs, 0, NULL, NULL), "output arrays");
    WORKS(MXNDArrayFree(place[0]));
    WORKS(MXNDArrayFree(inputs[0]));
    WORKS(MXNDArrayFree(inputs[1]));
}

static void operators(void) {
    static const uint32_t two[] = {2};
    static const float a[] = {1, -2}, sum[] = {2, -4}, relu[] = {1, 0};
    static const char *keys[] = {"act_type"}, *vals[] = {"relu"}, *unknown[] = {"zzz"};
    NDArrayHandle inputs[2], *outputs = NULL, place[1];
    uint32_t number, args, i, found = 0;
    const char **names, **arg_names, **types, **docs, *name, *doc, *count, *returns;
    AtomicSymbolCreator *creators;
    OpHandle handle = NULL;
    int out = 0;
    const int *stypes;

    WORKS(MXListAllOpNames(&number, &names));
    CHECK(number > 500);
    for (i = 0; i < number; ++i) found += strcmp(names[i], "Convolution") == 0;
    CHECK(found == 1);
    for (i = 1; i < number; ++i) CHECK(strcmp(names[i - 1], names[i]) < 0);
    WORKS(MXSymbolListAtomicSymbolCreators(&number, &creators));
    CHECK(number > 300);
    for (i = 0; i < number; ++i) {
        uint32_t j;
        WORKS(MXSymbolGetAtomicSymbolName(creators[i], &name));
        WORKS(MXSymbolGetAtomicSymbolInfo(creators[i], &name, &doc, &args, &arg_names, &types, &docs, &count, NULL));
        CHECK(name[0] != 0);
        for (j = 0; j < args; ++j) CHECK(arg_names[j][0] != 0 && types[j][0] != 0);
    }
    WORKS(MXSymbolGetAtomicSymbolInfo(op("Activation"), &name, &doc, &args, &arg_names, &types, &docs, &count, &returns));
    CHECK(strcmp(name, "Activation") == 0 && args == 2);
    CHECK(strcmp(arg_names[0], "data") == 0 && strcmp(types[0], "NDArray-or-Symbol") == 0);
    CHECK(strcmp(arg_names[1], "act_type") == 0 && types[1][0] == '{' && strstr(types[1], "required"));
    WORKS(MXSymbolGetAtomicSymbolInfo(op("Concat"), &name, &doc, &args, &arg_names, &types, &docs, &count, &returns));
    CHECK(strcmp(count, "num_args") == 0 && strcmp(types[0], "NDArray-or-Symbol[]") == 0);
    CHECK(args == 3 && strcmp(arg_names[1], "num_args") == 0 && returns == NULL);
    FAILS(NNGetOpHandle("NoSuchOperator", &handle), "NoSuchOperator is not registered");
    FAILS(NNGetOpHandle(NULL, &handle), "op_name");
    FAILS(MXSymbolGetAtomicSymbolName(NULL, &name), "it is null");
    FAILS(MXSymbolGetAtomicSymbolName(&handle, &name), "is not the handle of an operator");

    /* Operators that MXNet's Python package looks for while it is imported. */
    WORKS(MXSymbolGetAtomicSymbolInfo(op("_np__random_shuffle"), &name, &doc, &args, &arg_names, &types, &docs, &count, &returns));
    CHECK(strcmp(name, "_np__random_shuffle") == 0 && args == 0 && strstr(doc, "Not part of mxrt"));

    inputs[0] = array(1, two, a);
    inputs[1] = array(1, two, a);
    FAILS(MXImperativeInvoke(op("_np__random_shuffle"), 1, inputs, &out, &outputs, 0, NULL, NULL), "_np__random_shuffle is not part of mxrt");
    WORKS(MXImperativeInvoke(op("elemwise_add"), 2, inputs, &out, &outputs, 0, NULL, NULL));
    CHECK(out == 1 && equal(outputs[0], sum, 2));
    place[0] = outputs[0];
    outputs = place;
    WORKS(MXImperativeInvokeEx(op("Activation"), 1, inputs, &out, &outputs, 1, keys, vals, &stypes));
    CHECK(stypes[0] == 0 && equal(place[0], relu, 2));
    WORKS(MXNDArrayFree(place[0]));

    /* An array without a value takes shape and value of the result. */
    {
        int ndim = 7, dtype;
        const int *shape;
        void *data;
        NDArrayHandle none;
        WORKS(MXNDArrayCreateNone(&none));
        WORKS(MXNDArrayGetShapeEx(none, &ndim, &shape));
        CHECK(ndim == 0);
        WORKS(MXNDArrayWaitToRead(none));
        WORKS(MXNDArrayGetDType(none, &dtype));
        WORKS(MXNDArrayGetData(none, &data));
        CHECK(dtype == -1 && data == NULL);
        place[0] = none;
        outputs = place;
        out = 1;
        WORKS(MXImperativeInvoke(op("relu"), 1, inputs, &out, &outputs, 0, NULL, NULL));
        CHECK(equal(none, relu, 2));
        WORKS(MXNDArrayFree(none));
        WORKS(MXNDArrayCreateNone(&none));
        WORKS(MXNDArrayFree(none));
        FAILS(MXNDArrayFree(none), "freed before");
    }
    outputs = NULL;
    out = 0;
    FAILS(MXImperativeInvoke(op("Activation"), 1, inputs, &out, &outputs, 1, unknown, vals), "zzz");
    FAILS(MXImperativeInvoke(op("relu"), -1, inputs, &out, &outputs, 0, NULL, NULL), "num_inputs is -1");
    FAILS(MXImperativeInvoke(op("relu"), 1, NULL, &out, &outputs, 0, NULL, NULL), "inputs");
    FAILS(MXImperativeInvoke(op("relu"), 1, inputs, NULL, &outputs, 0, NULL, NULL), "num_outputs");
    FAILS(MXImperativeInvoke(inputs[0], 1, inputs, &out, &outputs, 0, NULL, NULL), "it is the handle of an NDArray");

    /* The same seed gives the same numbers. */
    {
        static const char *shape_key[] = {"shape"}, *shape_val[] = {"(8,)"};
        float first[8], second[8];
        WORKS(MXRandomSeed(7));
        WORKS(MXImperativeInvoke(op("_random_uniform"), 0, NULL, &out, &outputs, 1, shape_key, shape_val));
        WORKS(MXNDArraySyncCopyToCPU(outputs[0], first, 8));
        WORKS(MXNDArrayFree(outputs[0]));
        WORKS(MXRandomSeed(7));
        outputs = NULL;
        out = 0;
        WORKS(MXImperativeInvoke(op("_random_uniform"), 0, NULL, &out, &outputs, 1, shape_key, shape_val));
        WORKS(MXNDArraySyncCopyToCPU(outputs[0], second, 8));
        WORKS(MXNDArrayFree(outputs[0]));
        CHECK(memcmp(first, second, sizeof first) == 0 && first[0] != first[1]);
    }
    WORKS(MXNDArrayFree(inputs[0]));
    WORKS(MXNDArrayFree(inputs[1]));
}

/* relu(FullyConnected(data, num_hidden = 2)) */
static SymbolHandle network(void) {
    static const char *keys[] = {"num_hidden"}, *vals[] = {"2"}, *named[] = {"data"};
    SymbolHandle data, fc, relu;
    WORKS(MXSymbolCreateVariable("data", &data));
    WORKS(MXSymbolCreateAtomicSymbol(op("FullyConnected"), 1, keys, vals, &fc));
    WORKS(MXSymbolCompose(fc, "fc", 1, named, &data));
    WORKS(NNSymbolCreateAtomicSymbol(op("relu"), 0, NULL, NULL, &relu));
    WORKS(NNSymbolCompose(relu, "out", 1, NULL, &fc));
    WORKS(MXSymbolFree(data));
    WORKS(NNSymbolFree(fc));
    return relu;
}

static void symbols(void) {
    SymbolHandle net = network(), inner, first, copy, pair[2], group;
    uint32_t number, in_size, out_size, aux_size;
    const char **names, *text;
    const int *in_ndim, *out_ndim, *aux_ndim, **in_shapes, **out_shapes, **aux_shapes, *in_types, *out_types, *aux_types;
    int success, complete, data_shape[] = {3, 4}, f64 = 1;
    const uint32_t ends[] = {0, 2}, down[] = {2, 0};
    const char *keys[] = {"data"}, *bad[] = {"nothing"};
    WORKS(MXSymbolListArguments(net, &number, &names));
    CHECK(number == 3 && !strcmp(names[0], "data") && !strcmp(names[1], "fc_weight") && !strcmp(names[2], "fc_bias"));
    WORKS(MXSymbolGetName(net, &text, &success));
    CHECK(success == 1 && !strcmp(text, "out"));
    WORKS(MXSymbolGetNumOutputs(net, &number));
    CHECK(number == 1);
    WORKS(MXSymbolGetInternals(net, &inner));
    WORKS(NNSymbolListOutputNames(inner, &number, &names));
    CHECK(number == 5 && !strcmp(names[3], "fc_output"));
    WORKS(MXSymbolGetOutput(inner, 3, &first));
    WORKS(MXSymbolGetAttr(first, "num_hidden", &text, &success));
    CHECK(success == 1 && !strcmp(text, "2"));
    WORKS(MXSymbolGetAttr(first, "nothing", &text, &success));
    CHECK(success == 0);
    FAILS(MXSymbolGetOutput(inner, 5, &copy), "index is 5");
    WORKS(MXSymbolSetAttr(first, "__mood__", "good"));
    WORKS(MXSymbolListAttrShallow(first, &number, &names));
    CHECK(number >= 2);
    WORKS(MXSymbolListAttr(net, &number, &names));
    CHECK(number >= 2 && strchr(names[0], '$'));
    WORKS(MXSymbolPrint(net, &text));
    CHECK(strstr(text, "fc"));
    WORKS(MXSymbolCopy(net, &copy));
    WORKS(MXSymbolGetChildren(net, &pair[0]));
    WORKS(MXSymbolListOutputs(pair[0], &number, &names));
    CHECK(number == 1 && !strcmp(names[0], "fc_output"));
    pair[1] = copy;
    WORKS(MXSymbolCreateGroup(2, pair, &group));
    WORKS(MXSymbolListOutputs(group, &number, &names));
    CHECK(number == 2);

    WORKS(MXSymbolInferShapeEx(net, 1, keys, ends, data_shape, &in_size, &in_ndim, &in_shapes, &out_size, &out_ndim,
                               &out_shapes, &aux_size, &aux_ndim, &aux_shapes, &complete));
    CHECK(complete == 1 && in_size == 3 && out_size == 1 && aux_size == 0);
    CHECK(in_ndim[1] == 2 && in_shapes[1][0] == 2 && in_shapes[1][1] == 4);
    CHECK(out_ndim[0] == 2 && out_shapes[0][0] == 3 && out_shapes[0][1] == 2);
    WORKS(MXSymbolInferShapePartialEx(net, 0, NULL, NULL, NULL, &in_size, &in_ndim, &in_shapes, &out_size, &out_ndim,
                                      &out_shapes, &aux_size, &aux_ndim, &aux_shapes, &complete));
    CHECK(in_size == 3 && in_ndim[0] == 0);
    FAILS(MXSymbolInferShapeEx(net, 1, keys, down, data_shape, &in_size, &in_ndim, &in_shapes, &out_size, &out_ndim,
                               &out_shapes, &aux_size, &aux_ndim, &aux_shapes, &complete), "arg_ind_ptr goes down");
    WORKS(MXSymbolInferType(net, 1, keys, &f64, &in_size, &in_types, &out_size, &out_types, &aux_size, &aux_types,
                            &complete));
    CHECK(complete == 1 && in_types[1] == 1 && out_types[0] == 1);
    FAILS(MXSymbolCompose(net, NULL, 1, bad, &first), "nothing");
    WORKS(MXSymbolFree(net));
    FAILS(MXSymbolListArguments(net, &number, &names), "freed before");
    WORKS(MXSymbolFree(inner));
    WORKS(MXSymbolFree(first));
    WORKS(MXSymbolFree(copy));
    WORKS(MXSymbolFree(pair[0]));
    WORKS(MXSymbolFree(group));
}

static int told;
static void tell(const char *name, NDArrayHandle result, void *data) {
    CHECK(data == &told && name[0] != 0);
    ++told;
    WORKS(MXNDArrayFree(result));
}

/* Nodes of a subgraph are cut out, as MXNet's foreach and while_loop do. */
static void subgraphs(void) {
    static const char *JSON =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
        "{\"op\": \"relu\", \"name\": \"outer\", \"inputs\": [[0, 0, 0]]},"
        "{\"op\": \"elemwise_add\", \"name\": \"inner\", \"attrs\": {\"__subgraph_name__\": \"body\"},"
        "\"inputs\": [[1, 0, 0], [0, 0, 0]]}], \"arg_nodes\": [0], \"heads\": [[2, 0, 0]]}";
    SymbolHandle net, *cut;
    SymbolHandle first;
    int size;
    uint32_t number;
    const char **names;
    WORKS(MXSymbolCreateFromJSON(JSON, &net));
    WORKS(MXSymbolCutSubgraph(net, &cut, &size));
    CHECK(size == 2);
    first = cut[0];
    WORKS(MXSymbolListOutputs(first, &number, &names));
    CHECK(number == 1 && strcmp(names[0], "outer_output") == 0);
    WORKS(MXSymbolListArguments(net, &number, &names));
    CHECK(number == 2 && strcmp(names[0], "outer_output") == 0 && strcmp(names[1], "x") == 0);
    WORKS(MXSymbolFree(net));
    WORKS(MXSymbolCreateVariable("free", &net));
    WORKS(MXSymbolCutSubgraph(net, &cut, &size));
    CHECK(size == 0);
    WORKS(MXSymbolFree(net));
}

/* A copy converts, as the arrays of MXNet's Python do. */
static void conversions(void) {
    static const uint32_t two[] = {2};
    static const float values[] = {1.5f, -2};
    double found[2];
    NDArrayHandle from = array(1, two, values), to, *outputs = &to;
    int out = 1;
    WORKS(MXNDArrayCreateEx(two, 1, 1, 0, 0, 1, &to));
    WORKS(MXImperativeInvoke(op("_copyto"), 1, &from, &out, &outputs, 0, NULL, NULL));
    WORKS(MXNDArraySyncCopyToCPU(to, found, 2));
    CHECK(found[0] == 1.5 && found[1] == -2);
    WORKS(MXNDArrayFree(from));
    WORKS(MXNDArrayFree(to));
}

/* Lists of what there is nothing of. */
static void nothing(void) {
    uint32_t number = 1;
    int size = 1;
    FunctionHandle *functions;
    const char **names;
    void *function = &size;
    WORKS(MXListFunctions(&number, &functions));
    WORKS(MXNetFuncListGlobalNames(&size, &names));
    WORKS(MXNetFuncGetGlobal("_npi.zeros", &function));
    CHECK(number == 0 && size == 0 && function == NULL);
}

static void executors(void) {
    SymbolHandle net = network();
    ExecutorHandle bound, simple, other;
    static const uint32_t data_shape[] = {1, 2}, weight_shape[] = {2, 2}, bias_shape[] = {2}, ends[] = {0, 2};
    static const float x[] = {1, 2}, w[] = {1, 0, 0, -1}, b[] = {0.5f, 1}, y[] = {1.5f, 0}, x2[] = {3, -4},
                       y2[] = {3.5f, 5}, y3[] = {1.5f, 0, 3.5f, 5}, x3[] = {1, 2, 3, -4}, x4[] = {3, -4, 3, -4};
    NDArrayHandle args[3], *outputs, *in_args, *grads, *aux, first, kept;
    uint32_t number, in_number, aux_number;
    const char *keys[] = {"data"}, *text;
    const int shape[] = {2, 2}, smaller[] = {1, 2};
    args[0] = array(2, data_shape, x);
    args[1] = array(2, weight_shape, w);
    args[2] = array(1, bias_shape, b);
    WORKS(MXExecutorBindEX(net, 1, 0, 0, NULL, NULL, NULL, 3, args, NULL, NULL, 0, NULL, NULL, &bound));
    WORKS(MXExecutorOutputs(bound, &number, &outputs));
    CHECK(number == 1);
    first = outputs[0];
    WORKS(MXExecutorForward(bound, 0));
    CHECK(equal(first, y, 2));
    WORKS(MXNDArraySyncCopyFromCPU(args[0], x2, 2));
    WORKS(MXExecutorSetMonitorCallback(bound, tell, &told));
    WORKS(MXExecutorForward(bound, 0));
    CHECK(equal(first, y2, 2) && told == 2);
    WORKS(MXExecutorSetMonitorCallbackEX(bound, tell, &told, true));
    WORKS(MXExecutorForward(bound, 0));
    CHECK(told > 4);
    WORKS(MXExecutorPrint(bound, &text));
    CHECK(strstr(text, "fc") && strstr(text, "\nTotal 0 MB allocated\nTotal 0 TempSpace resource requested\n"));
    FAILS(MXExecutorBind(net, 1, 0, 2, args, NULL, NULL, 0, NULL, &other), "2 arguments were given, 3 are needed");
    FAILS(MXExecutorBind(net, 1, 0, 3, NULL, NULL, NULL, 0, NULL, &other), "in_args");

    WORKS(MXExecutorSimpleBindEx(net, 1, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, 1, keys, shape, ends, 0, NULL, NULL, 0,
                                 NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, &in_number, &in_args, &grads,
                                 &aux_number, &aux, NULL, &simple));
    CHECK(in_number == 3 && aux_number == 0 && grads[0] == NULL);
    kept = in_args[0];
    WORKS(MXNDArraySyncCopyFromCPU(in_args[0], x3, 4));
    WORKS(MXNDArraySyncCopyFromCPU(in_args[1], w, 4));
    WORKS(MXNDArraySyncCopyFromCPU(in_args[2], b, 2));
    WORKS(MXExecutorForward(simple, 0));
    WORKS(MXExecutorOutputs(simple, &number, &outputs));
    CHECK(equal(outputs[0], y3, 4));
    /* A smaller one shares the memory of the first rows. */
    WORKS(MXExecutorReshapeEx(0, 0, 1, 0, 0, NULL, NULL, NULL, 1, keys, smaller, ends, &in_number, &in_args, &grads,
                              &aux_number, &aux, simple, &other));
    WORKS(MXNDArraySyncCopyFromCPU(in_args[0], x2, 2));
    WORKS(MXExecutorForward(other, 0));
    WORKS(MXExecutorOutputs(other, &number, &outputs));
    CHECK(equal(outputs[0], y2, 2) && equal(kept, x4, 4));
    FAILS(MXExecutorForward(net, 0), "it is the handle of a Symbol");
    WORKS(MXExecutorFree(bound));
    WORKS(MXExecutorFree(simple));
    WORKS(MXExecutorFree(other));
    FAILS(MXExecutorFree(other), "freed before");
    CHECK(equal(first, y2, 2));
    WORKS(MXNDArrayFree(first));
    WORKS(MXSymbolFree(net));
}

static void views(void) {
    static const uint32_t shape[] = {3, 2};
    static const float values[] = {0, 1, 2, 3, 4, 5}, row[] = {8, 9}, after[] = {0, 1, 8, 9, 4, 5};
    NDArrayHandle a = array(2, shape, values), middle, one, flat, copy, back;
    int dims[] = {-1}, ndim, negative[] = {-7};
    int64_t wide[] = {0, -1};
    const int *extents;
    const int64_t *wide_extents;
    void *data;
    const char *bytes;
    size_t size;
    WORKS(MXNDArraySlice(a, 1, 2, &middle));
    WORKS(MXNDArrayAt(a, 1, &one));
    WORKS(MXNDArrayReshape(a, 1, dims, &flat));
    WORKS(MXNDArraySyncCopyFromCPU(middle, row, 2));
    CHECK(equal(one, row, 2) && equal(flat, after, 6) && equal(a, after, 6));
    WORKS(MXNDArrayGetShapeEx(one, &ndim, &extents));
    CHECK(ndim == 1 && extents[0] == 2);
    WORKS(MXNDArrayGetShapeEx64(flat, &ndim, &wide_extents));
    CHECK(ndim == 1 && wide_extents[0] == 6);
    WORKS(MXNDArrayReshape64(a, 2, wide, false, &copy));
    WORKS(MXNDArrayFree(copy));
    WORKS(MXNDArrayGetData(middle, &data));
    CHECK(((float *)data)[0] == 8 && ((float *)data)[1] == 9);
    FAILS(MXNDArraySlice(a, 1, 4, &copy), "slice_end 4");
    FAILS(MXNDArraySlice(a, 2, 1, &copy), "slice_begin 2");
    FAILS(MXNDArrayAt(a, 3, &copy), "idx is 3");
    FAILS(MXNDArrayReshape(a, 1, negative, &copy), "");
    FAILS(MXNDArrayReshape(a, -1, dims, &copy), "ndim is -1");
    dims[0] = 7;
    FAILS(MXNDArrayReshape(a, 1, dims, &copy), "lies outside");
    WORKS(MXNDArraySaveRawBytes(a, &size, &bytes));
    WORKS(MXNDArrayLoadFromRawBytes(bytes, size, &back));
    CHECK(equal(back, after, 6));
    FAILS(MXNDArrayLoadFromRawBytes(bytes, size - 1, &copy), "");
    FAILS(MXNDArrayLoadFromRawBytes(NULL, size, &copy), "buf");
    WORKS(MXNDArrayCreate(shape, 2, 1, 0, 0, &copy));
    WORKS(MXNDArraySyncCopyFromNDArray(copy, a, -1));
    CHECK(equal(copy, after, 6));
    FAILS(MXNDArraySyncCopyFromNDArray(copy, one, -1), "");
    WORKS(MXNDArrayFree(a));
    CHECK(equal(one, row, 2));
    WORKS(MXNDArrayFree(middle));
    WORKS(MXNDArrayFree(one));
    WORKS(MXNDArrayFree(flat));
    WORKS(MXNDArrayFree(copy));
    WORKS(MXNDArrayFree(back));
}

static void process(void) {
    int number = -1, before;
    const struct LibFeature *features;
    size_t size;
    const char *value = "";
    WORKS(MXSetEnv("MXRT_TEST_OF_C", "a value"));
    WORKS(MXGetEnv("MXRT_TEST_OF_C", &value));
    CHECK(!strcmp(value, "a value") && !strcmp(getenv("MXRT_TEST_OF_C"), "a value"));
    WORKS(MXSetEnv("MXRT_TEST_OF_C", NULL));
    WORKS(MXGetEnv("MXRT_TEST_OF_C", &value));
    CHECK(value == NULL && !getenv("MXRT_TEST_OF_C"));
    FAILS(MXSetEnv("A=B", "c"), "the argument name is \"A=B\"");
    FAILS(MXSetEnv("", "c"), "the argument name");
    FAILS(MXGetEnv(NULL, &value), "name");
    WORKS(MXGetGPUCount(&number));
    CHECK(number == 0);
    WORKS(MXLibInfoFeatures(&features, &size));
    CHECK(size > 3 && !strcmp(features[0].name, "CUDA") && !features[0].enabled);
    WORKS(MXEngineSetBulkSize(5, &before));
    WORKS(MXEngineSetBulkSize(before, &number));
    CHECK(number == 5);
    WORKS(MXSetIsNumpyShape(1, &before));
    WORKS(MXIsNumpyShape(&number));
    CHECK(before == 0 && number == 1);
    WORKS(MXSetIsNumpyShape(0, &before));
    WORKS(MXKVStoreIsWorkerNode(&number));
    CHECK(number == 1);
    WORKS(MXAutogradMarkVariables(0, NULL, NULL, NULL));
    WORKS(MXStorageEmptyCache(1, 0));
    FAILS(MXRandomSeedContext(1, 2, 77), "gpu(77)");
    WORKS(MXNotifyShutdown());
}

/* Casts of mixed precision are left out; the symbol itself stays. */
static void casts(void) {
    static const char *text =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
        "{\"op\": \"amp_cast\", \"name\": \"half\", \"attrs\": {\"dtype\": \"float16\"}, \"inputs\": [[0, 0, 0]]},"
        "{\"op\": \"amp_cast\", \"name\": \"back\", \"attrs\": {\"dtype\": \"float32\"}, \"inputs\": [[1, 0, 0]]},"
        "{\"op\": \"relu\", \"name\": \"y\", \"inputs\": [[2, 0, 0]]}],"
        "\"arg_nodes\": [0], \"heads\": [[3, 0, 0]]}";
    SymbolHandle with, without;
    const char *json;
    WORKS(MXSymbolCreateFromJSON(text, &with));
    WORKS(MXSymbolRemoveAmpCast(with, &without));
    WORKS(MXSymbolSaveToJSON(without, &json));
    CHECK(!strstr(json, "amp_cast") && strstr(json, "relu") && strstr(json, "\"x\""));
    WORKS(MXSymbolSaveToJSON(with, &json));
    CHECK(strstr(json, "amp_cast"));
    WORKS(MXSymbolFree(with));
    WORKS(MXSymbolFree(without));
}

int main(void) {
    operators();
    boolean_mask();
    symbols();
    casts();
    executors();
    subgraphs();
    conversions();
    nothing();
    views();
    process();
    printf("%d checks\n", checks);
    return 0;
}
