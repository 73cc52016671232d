/* Lists that functions return stay until the same function is called again, whatever others return.
 * Arguments: a directory for files. */
#include <mxrt.h>

#include "check.h"

static SymbolHandle variable(const char *name) {
    SymbolHandle made;
    WORKS(MXSymbolCreateVariable(name, &made));
    return made;
}

static void attributes(void) {
    SymbolHandle x = variable("a_long_name_of_a_variable"), y = variable("other");
    const char **all, **own, **kept, *text, *other;
    uint32_t number, own_number, kept_number;
    int success;
    WORKS(MXSymbolSetAttr(x, "color", "red"));
    WORKS(MXSymbolSetAttr(y, "shape of it", "round and long, as long as this text"));
    WORKS(MXSymbolListAttr(x, &number, &all));
    WORKS(MXSymbolListAttrShallow(y, &own_number, &own));
    WORKS(NNSymbolListAttrs(x, 1, &kept_number, &kept));
    CHECK(number == 1 && own_number == 1 && kept_number == 1);
    CHECK(!strcmp(all[0], "a_long_name_of_a_variable$color") && !strcmp(all[1], "red"));
    CHECK(!strcmp(own[0], "shape of it") && !strcmp(kept[0], "color"));
    WORKS(MXSymbolGetAttr(x, "color", &text, &success));
    WORKS(NNSymbolGetAttr(y, "shape of it", &other, &success));
    CHECK(!strcmp(text, "red") && !strncmp(other, "round", 5));
    WORKS(MXSymbolPrint(x, &text));
    WORKS(NNSymbolPrint(y, &other));
    CHECK(strstr(text, "a_long_name_of_a_variable") && strstr(other, "other"));
    WORKS(MXSymbolFree(x));
    WORKS(MXSymbolFree(y));
}

static void names(void) {
    SymbolHandle x = variable("a_name_of_a_variable"), y = variable("other");
    const char **arguments, **inputs, **outputs, **others;
    uint32_t number;
    WORKS(MXSymbolListArguments(x, &number, &arguments));
    WORKS(NNSymbolListInputNames(y, 1, &number, &inputs));
    CHECK(!strcmp(arguments[0], "a_name_of_a_variable") && !strcmp(inputs[0], "other"));
    WORKS(MXSymbolListOutputs(x, &number, &outputs));
    WORKS(NNSymbolListOutputNames(y, &number, &others));
    CHECK(!strcmp(outputs[0], "a_name_of_a_variable") && !strcmp(others[0], "other"));
    WORKS(MXSymbolFree(x));
    WORKS(MXSymbolFree(y));
}

static float only(NDArrayHandle array) {
    float value;
    WORKS(MXNDArraySyncCopyToCPU(array, &value, 1));
    return value;
}

static NDArrayHandle number_of(float value) {
    static const uint32_t one[] = {1};
    NDArrayHandle made;
    WORKS(MXNDArrayCreate(one, 1, 1, 0, 0, &made));
    WORKS(MXNDArraySyncCopyFromCPU(made, &value, 1));
    return made;
}

/* The handles of results: of each function that calls something, its own list. */
static void results(void) {
    static const char *TEXT =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
        "{\"op\": \"negative\", \"name\": \"y\", \"inputs\": [[0, 0, 0]]}], \"arg_nodes\": [0], \"heads\": [[1, 0, 0]]}";
    static const char *in[] = {"x"};
    NDArrayHandle inputs[6], *lists[6] = {NULL};
    const int *stypes[3] = {NULL};
    SymbolHandle net;
    CachedOpHandle op;
    ModelHandle model;
    OpHandle negative;
    int i, number;
    WORKS(MXSymbolCreateFromJSON(TEXT, &net));
    WORKS(MXCreateCachedOp(net, &op));
    WORKS(MXRTModelCreate(TEXT, NULL, 0, 1, in, 1, 0, 0, NULL, NULL, &model));
    WORKS(NNGetOpHandle("negative", &negative));
    for (i = 0; i < 6; ++i) inputs[i] = number_of((float)(i + 1));
    number = 0;
    WORKS(MXImperativeInvoke(negative, 1, &inputs[0], &number, &lists[0], 0, NULL, NULL));
    number = 0;
    WORKS(MXImperativeInvokeEx(negative, 1, &inputs[1], &number, &lists[1], 0, NULL, NULL, &stypes[0]));
    WORKS(MXInvokeCachedOp(op, 1, &inputs[2], &number, &lists[2]));
    WORKS(MXInvokeCachedOpEx(op, 1, &inputs[3], &number, &lists[3], &stypes[1]));
    WORKS(MXInvokeCachedOpEX(op, 1, &inputs[4], &number, &lists[4], &stypes[2], false));
    WORKS(MXRTModelCall(model, 1, &inputs[5], NULL, &number, &lists[5]));
    for (i = 0; i < 3; ++i) CHECK(stypes[i][0] == 0 && stypes[i] != stypes[(i + 1) % 3]);
    for (i = 0; i < 6; ++i) {
        CHECK(only(lists[i][0]) == -(float)(i + 1));
        WORKS(MXNDArrayFree(lists[i][0]));
        WORKS(MXNDArrayFree(inputs[i]));
    }
    WORKS(MXRTModelFree(model));
    WORKS(MXFreeCachedOp(op));
    WORKS(MXSymbolFree(net));
}

static void files(const char *directory) {
    static const char *first[] = {"a_name_in_the_first_file"}, *second[] = {"another"};
    NDArrayHandle one = number_of(1), two = number_of(2), *loaded, *more;
    const char **names, **others;
    uint32_t number, number_of_names;
    char path[4096], *bytes;
    int size;
    snprintf(path, sizeof path, "%s/first.params", directory);
    WORKS(MXNDArraySave(path, 1, &two, second));
    bytes = content(path, &size);
    WORKS(MXNDArraySave(path, 1, &one, first));
    WORKS(MXNDArrayLoad(path, &number, &loaded, &number_of_names, &names));
    WORKS(MXNDArrayLoadFromBuffer(bytes, (size_t)size, &number, &more, &number_of_names, &others));
    CHECK(only(loaded[0]) == 1 && only(more[0]) == 2);
    CHECK(!strcmp(names[0], first[0]) && !strcmp(others[0], second[0]));
    WORKS(MXNDArrayFree(loaded[0]));
    WORKS(MXNDArrayFree(more[0]));
    WORKS(MXNDArrayFree(one));
    WORKS(MXNDArrayFree(two));
    free(bytes);
}

/* The arrays of executors, which are made by several functions. */
static void executors(void) {
    static const char *keys[] = {"x"};
    static const uint32_t ends[] = {0, 1}, dims[] = {3};
    static const int signed_dims[] = {2};
    SymbolHandle net = variable("x");
    ExecutorHandle made, other, shaped;
    NDArrayHandle *args, *more, *again, *grads, *states;
    uint32_t number, none, rank;
    const uint32_t *shape;
    WORKS(MXExecutorSimpleBind(net, 1, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, 1, keys, dims, ends, 0, NULL, NULL, 0,
                               NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, &number, &args, &grads, &none,
                               &states, NULL, &made));
    WORKS(MXExecutorSimpleBindEx(net, 1, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, 1, keys, signed_dims, ends, 0, NULL,
                                 NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, &number, &more, &grads,
                                 &none, &states, NULL, &other));
    WORKS(MXExecutorReshapeEx(1, 1, 1, 0, 0, NULL, NULL, NULL, 1, keys, signed_dims, ends, &number, &again, &grads,
                              &none, &states, made, &shaped));
    WORKS(MXNDArrayGetShape(args[0], &rank, &shape));
    CHECK(rank == 1 && shape[0] == 3);
    WORKS(MXNDArrayGetShape(more[0], &rank, &shape));
    CHECK(rank == 1 && shape[0] == 2 && more[0] != again[0]);
    WORKS(MXNDArrayFree(args[0]));
    WORKS(MXNDArrayFree(more[0]));
    WORKS(MXNDArrayFree(again[0]));
    WORKS(MXExecutorFree(made));
    WORKS(MXExecutorFree(other));
    WORKS(MXExecutorFree(shaped));
    WORKS(MXSymbolFree(net));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    attributes();
    names();
    results();
    files(argv[1]);
    executors();
    printf("%d checks\n", checks);
    return 0;
}
