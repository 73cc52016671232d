/* Sparse arrays: made part by part, read, computed with, saved. The argument is a directory for
 * files. Links to MXNet's library, too, without the calls that only mxrt refuses (-DMXNET). */
#include <mxnet/c_api.h>
#include <nnvm/c_api.h>
#include <stdint.h>

#include "check.h"

enum { F32 = 0, I64 = 6, ROW_SPARSE = 1, CSR = 2 };

static NDArrayHandle dense(int type, const void *values, uint32_t rows, uint32_t columns) {
    uint32_t shape[2] = {rows, columns};
    NDArrayHandle made;
    WORKS(MXNDArrayCreateEx(shape, columns ? 2 : 1, 1, 0, 0, type, &made));
    if (rows) WORKS(MXNDArraySyncCopyFromCPU(made, values, rows * (columns ? columns : 1)));
    return made;
}

static void fill(NDArrayHandle array, int part, int type, const void *values, uint32_t rows, uint32_t columns) {
    NDArrayHandle from = dense(type, values, rows, columns);
    WORKS(MXNDArraySyncCopyFromNDArray(array, from, part));
    WORKS(MXNDArrayFree(from));
}

static NDArrayHandle sparse(int storage, uint32_t rows, uint32_t columns, uint32_t stored) {
    uint32_t shape[2] = {rows, columns}, ndims[2] = {1, 1}, lengths[2] = {rows + 1, stored};
    int types[2] = {I64, I64};
    NDArrayHandle made;
    if (storage == ROW_SPARSE) lengths[0] = stored;
    WORKS(MXNDArrayCreateSparseEx(storage, shape, 2, 1, 0, 0, F32, storage, types, ndims, lengths, &made));
    return made;
}

static void expect(NDArrayHandle array, const void *wanted, size_t count, size_t bytes) {
    char found[256];
    const int *extents;
    int axes;
    size_t size = 1;
    WORKS(MXNDArrayGetShapeEx(array, &axes, &extents));
    for (int i = 0; i < axes; i++) size *= (size_t)extents[i];
    CHECK(size == count);
    WORKS(MXNDArraySyncCopyToCPU(array, found, count));
    CHECK(memcmp(found, wanted, bytes) == 0);
    WORKS(MXNDArrayFree(array));
}

static NDArrayHandle part(NDArrayHandle array, int number) {
    NDArrayHandle made;
    if (number < 0) {
        WORKS(MXNDArrayGetDataNDArray(array, &made));
    } else {
        WORKS(MXNDArrayGetAuxNDArray(array, (uint32_t)number, &made));
    }
    return made;
}

static NDArrayHandle call(const char *name, int count, NDArrayHandle *inputs, const char *key, const char *value) {
    OpHandle op;
    NDArrayHandle *outputs = NULL, made;
    int number = 0;
    WORKS(NNGetOpHandle(name, &op));
    WORKS(MXImperativeInvoke(op, count, inputs, &number, &outputs, key != NULL, &key, &value));
    CHECK(number == 1);
    made = outputs[0];
    return made;
}

static void is_dense(NDArrayHandle array, const float *wanted) {
    expect(call("cast_storage", 1, &array, "stype", "default"), wanted, 6, 6 * sizeof *wanted);
}

/* One part after the other, through two handles of one array, and again. */
static void replaced_parts(void) {
    const float five[2] = {5, 6}, seven[2] = {7, 8}, first[6] = {0, 0, 5, 6, 0, 0}, second[6] = {0, 0, 7, 8, 0, 0};
    const float third[6] = {7, 0, 0, 0, 8, 0}, fourth[6] = {0, 0, 0, 7, 0, 8};
    const int64_t pointers[3] = {0, 1, 2}, falling[2] = {2, 0}, rising[2] = {0, 1}, one_row[3] = {0, 0, 2};
    const int64_t apart[2] = {0, 2}, zero[3] = {0, 0, 0}, last[1] = {1};
    const float lines[2][6] = {{5, 6, 0, 0, 0, 0}, {0, 0, 0, 0, 5, 6}};
    NDArrayHandle csr = sparse(CSR, 2, 3, 2), other, rows = sparse(ROW_SPARSE, 3, 2, 1);
#ifndef MXNET
    expect(part(csr, 0), zero, 3, sizeof zero);
#endif
    fill(csr, 0, I64, pointers, 3, 0);
    expect(part(csr, 0), pointers, 3, sizeof pointers);
    fill(csr, -1, F32, five, 2, 0);
    expect(part(csr, -1), five, 2, sizeof five);
    WORKS(MXShallowCopyNDArray(csr, &other));
    fill(other, 1, I64, falling, 2, 0);
    is_dense(csr, first);
    is_dense(other, first);
    fill(csr, -1, F32, seven, 2, 0);
    is_dense(other, second);
    fill(other, 1, I64, rising, 2, 0);
    is_dense(csr, third);
    fill(csr, 1, I64, apart, 2, 0);
    fill(csr, 0, I64, one_row, 3, 0);
    is_dense(csr, fourth);
    WORKS(MXNDArrayFree(other));
    fill(rows, -1, F32, five, 1, 2);
    fill(rows, 0, I64, zero, 1, 0);
    is_dense(rows, lines[0]);
    fill(rows, 0, I64, apart + 1, 1, 0);
    is_dense(rows, lines[1]);
#ifndef MXNET
    {
        /* Parts that do not agree yet are an error of reading alone; MXNet has room for as many
         * values as at first. */
        const float three[3] = {1, 2, 3}, longer[6] = {1, 0, 2, 0, 3, 0};
        const int64_t three_columns[3] = {0, 2, 1}, three_pointers[3] = {0, 2, 3};
        float found[6];
        fill(csr, -1, F32, three, 3, 0);
        CHECK(MXNDArraySyncCopyToCPU(csr, found, 6) == -1);
        FAILS(MXNDArraySyncCheckFormat(csr, 1), "3 values of float32 for 2 positions");
        expect(part(csr, -1), three, 3, sizeof three);
        expect(part(csr, 1), apart, 2, sizeof apart);
        fill(csr, 1, I64, three_columns, 3, 0);
        fill(csr, 0, I64, three_pointers, 3, 0);
        WORKS(MXNDArraySyncCheckFormat(csr, 1));
        is_dense(csr, longer);
        /* An operator that writes the array meanwhile counts, not what was left unfinished. */
        fill(csr, 0, I64, zero, 3, 0);
        {
            const float both[6] = {1, 0, 0, 0, 0, 2};
            NDArrayHandle whole = dense(F32, both, 2, 3), stored = call("cast_storage", 1, &whole, "stype", "csr");
            WORKS(MXNDArraySyncCopyFromNDArray(csr, stored, -1));
            WORKS(MXNDArrayFree(stored));
            WORKS(MXNDArrayFree(whole));
            is_dense(csr, both);
        }
        fill(csr, 1, I64, last, 1, 0);
        CHECK(MXNDArraySyncCheckFormat(csr, 1) == -1);
        fill(csr, 1, I64, rising, 2, 0);
        WORKS(MXNDArraySyncCheckFormat(csr, 1));
    }
#else
    (void)last;
#endif
    WORKS(MXNDArrayFree(csr));
    WORKS(MXNDArrayFree(rows));
}

int main(int argc, char **argv) {
    const float values[4] = {1, 2, 3, -4}, columns[4] = {1, 10, 100, 1000};
    const int64_t indices[4] = {1, 3, 0, 2}, pointers[4] = {0, 2, 2, 4}, rows[2] = {0, 2};
    const float product[3] = {2010, 0, -397}, whole[12] = {0, 1, 0, 2, 0, 0, 0, 0, 3, 0, -4, 0};
    NDArrayHandle csr, inputs[2], made, *loaded;
    const char **names, *key = "csr";
    char path[512];
    int code;
    uint32_t count, name_count;

    if (argc != 2) return 2;
    csr = sparse(CSR, 3, 4, 4);
    WORKS(MXNDArrayGetStorageType(csr, &code));
    CHECK(code == CSR);
    fill(csr, -1, F32, values, 4, 0);
    fill(csr, 0, I64, pointers, 4, 0);
    fill(csr, 1, I64, indices, 4, 0);
    WORKS(MXNDArraySyncCheckFormat(csr, 1));
    WORKS(MXNDArrayGetAuxType(csr, 1, &code));
    CHECK(code == I64);
    expect(part(csr, -1), values, 4, sizeof values);
    expect(part(csr, 0), pointers, 4, sizeof pointers);
    expect(part(csr, 1), indices, 4, sizeof indices);

    inputs[0] = csr;
    inputs[1] = dense(F32, columns, 4, 1);
    expect(call("dot", 2, inputs, NULL, NULL), product, 3, sizeof product);
    expect(call("cast_storage", 1, inputs, "stype", "default"), whole, 12, sizeof whole);
    made = call("square", 1, inputs, NULL, NULL);
    WORKS(MXNDArrayGetStorageType(made, &code));
    CHECK(code == CSR);
    expect(part(made, 1), indices, 4, sizeof indices);
    WORKS(MXNDArrayFree(made));

    snprintf(path, sizeof path, "%s/sparse.params", argv[1]);
    WORKS(MXNDArraySave(path, 1, &csr, &key));
    WORKS(MXNDArrayLoad(path, &count, &loaded, &name_count, &names));
    CHECK(count == 1 && name_count == 1);
    WORKS(MXNDArrayGetStorageType(loaded[0], &code));
    CHECK(code == CSR);
    expect(part(loaded[0], -1), values, 4, sizeof values);
    WORKS(MXNDArrayFree(loaded[0]));

    made = sparse(ROW_SPARSE, 3, 2, 2);
    fill(made, -1, F32, values, 2, 2);
    fill(made, 0, I64, rows, 2, 0);
    WORKS(MXNDArraySyncCheckFormat(made, 1));
    expect(part(made, 0), rows, 2, sizeof rows);
    expect(part(made, -1), values, 4, sizeof values);
    WORKS(MXNDArrayFree(made));

#ifndef MXNET
    {
        const int64_t outside[4] = {1, 3, 0, 4};
        NDArrayHandle from = dense(I64, outside, 4, 0), numbers = dense(F32, values, 4, 0);
        FAILS(MXNDArrayGetAuxType(csr, 2, &code), "2 arrays of positions");
        FAILS(MXNDArrayGetAuxNDArray(inputs[1], 0, &made), "stored as default");
        FAILS(MXNDArraySyncCopyFromNDArray(csr, numbers, 1), "positions are int64");
        FAILS(MXNDArraySyncCopyFromNDArray(csr, from, -1), "values of int64");
        made = sparse(CSR, 3, 4, 4);
        fill(made, -1, F32, values, 4, 0);
        fill(made, 0, I64, pointers, 4, 0);
        FAILS(MXNDArraySyncCopyFromNDArray(made, from, 1), "column 4");
        FAILS(MXNDArraySyncCheckFormat(made, 1), "column 4");
        FAILS(MXNDArrayGetDataNDArray(made, &csr), "column 4");
        WORKS(MXNDArrayFree(made));
        WORKS(MXNDArrayFree(from));
        WORKS(MXNDArrayFree(numbers));
    }
#endif
    WORKS(MXNDArrayFree(inputs[1]));
    WORKS(MXNDArrayFree(inputs[0]));
    replaced_parts();
    printf("%d checks\n", checks);
    return 0;
}
