/* Lists of arguments that contradict themselves: keys named twice, and places of shapes that go down,
 * in every function that takes such lists. Arguments: a directory for files. */
#include <mxrt.h>

#include "check.h"

static const char *TEXT =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"
    "{\"op\": \"elemwise_add\", \"name\": \"y\", \"inputs\": [[0, 0, 0], [1, 0, 0]]}],"
    "\"arg_nodes\": [0, 1], \"heads\": [[2, 0, 0]]}";

static const char *twice[] = {"x", "x"}, *once[] = {"x", "w"};
static const uint32_t up[] = {0, 1, 2}, down[] = {0, 2, 1}, dims[] = {3, 3};
static const int codes[] = {0, 0}, signed_dims[] = {3, 3};
static const int64_t wide_up[] = {0, 1, 2}, wide_down[] = {0, 2, 1}, negative[] = {0, -1, 2}, wide_dims[] = {3, 3};

static SymbolHandle symbol(void) {
    SymbolHandle made;
    WORKS(MXSymbolCreateFromJSON(TEXT, &made));
    return made;
}

#define SHAPES_OUT &n, &ranks, &shapes, &n, &ranks, &shapes, &n, &ranks, &shapes, &complete

static void inference(void) {
    SymbolHandle net = symbol();
    int complete;
    {
        uint32_t n;
        const uint32_t *ranks, **shapes;
        WORKS(MXSymbolInferShape(net, 2, once, up, dims, SHAPES_OUT));
        FAILS(MXSymbolInferShape(net, 2, twice, up, dims, SHAPES_OUT), "keys names x twice");
        FAILS(MXSymbolInferShape(net, 2, once, down, dims, SHAPES_OUT), "arg_ind_ptr goes down");
        FAILS(MXSymbolInferShapePartial(net, 2, twice, up, dims, SHAPES_OUT), "keys names x twice");
        FAILS(MXSymbolInferShapePartial(net, 2, once, down, dims, SHAPES_OUT), "arg_ind_ptr goes down");
    }
    {
        uint32_t n;
        const int *ranks, **shapes;
        WORKS(MXSymbolInferShapeEx(net, 2, once, up, signed_dims, SHAPES_OUT));
        FAILS(MXSymbolInferShapeEx(net, 2, twice, up, signed_dims, SHAPES_OUT), "keys names x twice");
        FAILS(MXSymbolInferShapeEx(net, 2, once, down, signed_dims, SHAPES_OUT), "arg_ind_ptr goes down");
        FAILS(MXSymbolInferShapePartialEx(net, 2, twice, up, signed_dims, SHAPES_OUT), "keys names x twice");
        FAILS(MXSymbolInferShapePartialEx(net, 2, once, down, signed_dims, SHAPES_OUT), "arg_ind_ptr goes down");
    }
    {
        size_t n;
        const int *ranks;
        const int64_t **shapes;
        WORKS(MXSymbolInferShapeEx64(net, 2, once, wide_up, wide_dims, SHAPES_OUT));
        FAILS(MXSymbolInferShapeEx64(net, 2, twice, wide_up, wide_dims, SHAPES_OUT), "keys names x twice");
        FAILS(MXSymbolInferShapeEx64(net, 2, once, wide_down, wide_dims, SHAPES_OUT), "arg_ind_ptr goes down");
        FAILS(MXSymbolInferShapeEx64(net, 2, once, negative, wide_dims, SHAPES_OUT), "arg_ind_ptr has a negative");
        FAILS(MXSymbolInferShapePartialEx64(net, 2, once, wide_down, wide_dims, SHAPES_OUT), "arg_ind_ptr goes down");
    }
    {
        uint32_t n;
        const int *types;
        WORKS(MXSymbolInferType(net, 2, once, codes, &n, &types, &n, &types, &n, &types, &complete));
        FAILS(MXSymbolInferType(net, 2, twice, codes, &n, &types, &n, &types, &n, &types, &complete),
              "keys names x twice");
        FAILS(MXSymbolInferTypePartial(net, 2, twice, codes, &n, &types, &n, &types, &n, &types, &complete),
              "keys names x twice");
    }
    WORKS(MXSymbolFree(net));
}

static void executors(void) {
    SymbolHandle net = symbol();
    ExecutorHandle made = NULL, other;
    NDArrayHandle *args, *grads, *states;
    uint32_t n;
#define BIND(names, data, idx, type_names)                                                               \
    net, 1, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, 2, names, data, idx, 2, type_names, codes, 0, NULL,   \
        NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, &n, &args, &grads, &n, &states, NULL, &made
    FAILS(MXExecutorSimpleBind(BIND(twice, dims, up, once)), "provided_arg_shape_names names x twice");
    FAILS(MXExecutorSimpleBind(BIND(once, dims, down, once)), "provided_arg_shape_idx goes down");
    FAILS(MXExecutorSimpleBind(BIND(once, dims, up, twice)), "provided_arg_dtype_names names x twice");
    FAILS(MXExecutorSimpleBindEx(BIND(twice, signed_dims, up, once)), "provided_arg_shape_names names x twice");
    FAILS(MXExecutorSimpleBindEx(BIND(once, signed_dims, down, once)), "provided_arg_shape_idx goes down");
    FAILS(MXExecutorSimpleBindEx64(BIND(once, wide_dims, down, once)), "provided_arg_shape_idx goes down");
    CHECK(made == NULL);
    WORKS(MXExecutorSimpleBindEx(BIND(once, signed_dims, up, once)));
    /* Shapes and types of names that the symbol lacks count for nothing, as in MXNet. */
    {
        static const char *label[] = {"softmax_label", "x"};
        ExecutorHandle more;
        WORKS(MXExecutorFree(made));
        WORKS(MXExecutorSimpleBindEx(BIND(label, signed_dims, up, label)));
        CHECK(n == 0 && made != NULL);
        WORKS(MXExecutorReshapeEx(1, 1, 1, 0, 0, NULL, NULL, NULL, 2, label, signed_dims, up, &n, &args, &grads, &n,
                                  &states, made, &more));
        WORKS(MXExecutorFree(more));
    }
#define RESHAPE(names, data, idx) \
    0, 0, 1, 0, 0, NULL, NULL, NULL, 2, names, data, idx, &n, &args, &grads, &n, &states, made, &other
    FAILS(MXExecutorReshape(RESHAPE(twice, dims, up)), "provided_arg_shape_names names x twice");
    FAILS(MXExecutorReshape(RESHAPE(once, dims, down)), "provided_arg_shape_idx goes down");
    FAILS(MXExecutorReshapeEx(RESHAPE(twice, signed_dims, up)), "provided_arg_shape_names names x twice");
    FAILS(MXExecutorReshapeEx(RESHAPE(once, signed_dims, down)), "provided_arg_shape_idx goes down");
    WORKS(MXExecutorFree(made));
    WORKS(MXSymbolFree(net));
}

static void attributes(void) {
    static const char *axes[] = {"axis", "axis"}, *numbers[] = {"0", "1"}, *flags[] = {"static_alloc", "static_alloc"};
    static const char *on[] = {"true", "false"}, *files[] = {"filename", "filename"}, *rows[] = {"data_csv", "data_csv"};
    static const uint32_t one[] = {1};
    SymbolHandle net = symbol(), x, pair[2], made = NULL;
    NDArrayHandle a, *outputs = NULL;
    OpHandle softmax;
    CachedOpHandle op = NULL;
    ModelHandle model = NULL;
    DataIterCreator *creators;
    DataIterHandle iter = NULL;
    uint32_t size;
    int number = 0;
    WORKS(MXNDArrayCreate(one, 1, 1, 0, 0, &a));
    WORKS(NNGetOpHandle("softmax", &softmax));
    FAILS(MXImperativeInvoke(softmax, 1, &a, &number, &outputs, 2, axes, numbers), "param_keys names axis twice");
    FAILS(MXSymbolCreateAtomicSymbol(softmax, 2, axes, numbers, &made), "keys names axis twice");
    FAILS(MXCreateCachedOpEX(net, 2, flags, on, &op, true), "keys names static_alloc twice");
    WORKS(MXSymbolCreateVariable("v", &x));
    pair[0] = pair[1] = x;
    FAILS(MXSymbolCompose(net, NULL, 2, twice, pair), "keys names x twice");
    FAILS(MXRTModelCreate(TEXT, NULL, 0, 2, twice, 1, 0, 0, NULL, NULL, &model), "'x' is named twice");
    FAILS(MXRTModelCreate(TEXT, NULL, 0, 2, once, 1, 0, 2, flags, on, &model), "flag_keys names static_alloc twice");
    FAILS(MXSetProfilerConfig(2, files, files), "keys names filename twice");
    WORKS(MXListDataIters(&size, &creators));
    FAILS(MXDataIterCreateIter(creators[0], 2, rows, rows, &iter), "keys names data_csv twice");
    CHECK(made == NULL && op == NULL && model == NULL && iter == NULL && outputs == NULL);
    WORKS(MXSymbolFree(x));
    WORKS(MXSymbolFree(net));
    WORKS(MXNDArrayFree(a));
}

/* Of equal names in a file the last one counts, as in MXNet. */
static void parameters(const char *directory) {
    static const char *names[] = {"arg:w", "arg:w"}, *in[] = {"x"};
    static const char *types[] = {"x", "x"};
    static const uint32_t three[] = {3}, ends[] = {0, 1};
    static const float values[2][3] = {{1, 1, 1}, {2, 3, 4}}, zeros[3] = {0, 0, 0};
    float found[3];
    char path[4096], *bytes;
    int size;
    NDArrayHandle both[2];
    PredictorHandle predictor = NULL;
    ModelHandle model = NULL;
    snprintf(path, sizeof path, "%s/twice.params", directory);
    WORKS(MXNDArrayCreate(three, 1, 1, 0, 0, &both[0]));
    WORKS(MXNDArrayCreate(three, 1, 1, 0, 0, &both[1]));
    WORKS(MXNDArraySyncCopyFromCPU(both[0], values[0], 3));
    WORKS(MXNDArraySyncCopyFromCPU(both[1], values[1], 3));
    WORKS(MXNDArraySave(path, 2, both, names));
    bytes = content(path, &size);
    WORKS(MXPredCreate(TEXT, bytes, size, 1, 0, 1, in, ends, three, &predictor));
    WORKS(MXPredSetInput(predictor, "x", zeros, 3));
    WORKS(MXPredForward(predictor));
    WORKS(MXPredGetOutput(predictor, 0, found, 3));
    CHECK(memcmp(found, values[1], sizeof found) == 0);
    WORKS(MXPredFree(predictor));
    predictor = NULL;
    FAILS(MXRTModelLoad("/no/such", path, 1, in, 1, 0, 0, NULL, NULL, &model), "/no/such");
    WORKS(MXNDArraySave(path, 1, both, names));
    free(bytes);
    bytes = content(path, &size);
    FAILS(MXPredCreateEx(TEXT, bytes, size, 1, 0, 1, in, ends, three, 2, types, codes, &predictor),
          "provided_arg_dtype_names names x twice");
    CHECK(predictor == NULL && model == NULL);
    /* Truncated anywhere: an error, with whatever arrays lie before. */
    for (; size > 0; --size) FAILS(MXPredCreate(TEXT, bytes, size - 1, 1, 0, 1, in, ends, three, &predictor), "");
    CHECK(predictor == NULL);
    free(bytes);
    WORKS(MXNDArrayFree(both[0]));
    WORKS(MXNDArrayFree(both[1]));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    inference();
    executors();
    attributes();
    parameters(argv[1]);
    printf("%d checks\n", checks);
    return 0;
}
