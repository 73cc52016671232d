/* Files: empty records, arrays of equal names, addresses of local files. The argument is a directory
 * for files. Links to MXNet's library, too, without what only mxrt says (-DMXNET). */
#include <mxnet/c_api.h>
#include <mxnet/c_predict_api.h>
#include <stdint.h>

#include "check.h"

static const char *folder;

/* The path of a file, as an address or as it is. */
static const char *path(int address, const char *name) {
    static char paths[4][4096];
    static int next;
    char *made = paths[next++ % 4];
    snprintf(made, sizeof paths[0], "%s%s/%s", address ? "file://" : "", folder, name);
    return made;
}

static NDArrayHandle array(float value) {
    uint32_t one = 1;
    NDArrayHandle made;
    WORKS(MXNDArrayCreate(&one, 1, 1, 0, 0, &made));
    WORKS(MXNDArraySyncCopyFromCPU(made, &value, 1));
    return made;
}

static void records(int address) {
    static const char *texts[] = {"", "one", "", "", "two"};
    RecordIOHandle file;
    const char *record;
    size_t size;
    WORKS(MXRecordIOWriterCreate(path(address, "a%20b.rec"), &file));
    for (int i = 0; i < 5; i++) WORKS(MXRecordIOWriterWriteRecord(file, texts[i], strlen(texts[i])));
    WORKS(MXRecordIOWriterFree(file));
    WORKS(MXRecordIOReaderCreate(path(!address, "a%20b.rec"), &file));
    for (int i = 0; i < 5; i++) {
        record = NULL;
        WORKS(MXRecordIOReaderReadRecord(file, (char const **)&record, &size));
        CHECK(record != NULL && size == strlen(texts[i]) && memcmp(record, texts[i], size) == 0);
    }
    WORKS(MXRecordIOReaderReadRecord(file, (char const **)&record, &size));
    CHECK(record == NULL && size == 0);
    WORKS(MXRecordIOReaderFree(file));
}

static void expect(uint32_t count, NDArrayHandle *arrays, uint32_t name_count, const char **names,
                   const char **wanted) {
    float value;
    CHECK(count == 3 && name_count == 3);
    for (int i = 0; i < 3; i++) {
        CHECK(strcmp(names[i], wanted[i]) == 0);
        WORKS(MXNDArraySyncCopyToCPU(arrays[i], &value, 1));
        CHECK(value == (float)i);
        WORKS(MXNDArrayFree(arrays[i]));
    }
}

/* All arrays of a file are there in order, whatever their names. */
static void arrays(int address) {
    static const char *sets[2][3] = {{"a", "b", "a"}, {"", "", ""}};
    NDArrayHandle three[3] = {array(0), array(1), array(2)}, *loaded;
    uint32_t count, name_count, axes;
    const char **names, *key;
    for (int set = 0; set < 2; set++) {
        NDListHandle list;
        const uint32_t *extents;
        const float *values;
        char *bytes;
        int size;
        WORKS(MXNDArraySave(path(address, "equal.params"), 3, three, sets[set]));
        WORKS(MXNDArrayLoad(path(!address, "equal.params"), &count, &loaded, &name_count, &names));
        expect(count, loaded, name_count, names, sets[set]);
        bytes = content(path(0, "equal.params"), &size);
        WORKS(MXNDArrayLoadFromBuffer(bytes, (size_t)size, &count, &loaded, &name_count, &names));
        expect(count, loaded, name_count, names, sets[set]);
        WORKS(MXNDListCreate(bytes, size, &list, &count));
        CHECK(count == 3);
        for (uint32_t i = 0; i < count; i++) {
            WORKS(MXNDListGet(list, i, &key, &values, &extents, &axes));
            CHECK(strcmp(key, sets[set][i]) == 0 && values[0] == (float)i && axes == 1 && extents[0] == 1);
        }
        WORKS(MXNDListFree(list));
        free(bytes);
    }
    for (int i = 0; i < 3; i++) WORKS(MXNDArrayFree(three[i]));
}

static void symbols(int address) {
    SymbolHandle x, loaded;
    const char **names;
    uint32_t count;
    WORKS(MXSymbolCreateVariable("x", &x));
    WORKS(MXSymbolSaveToFile(x, path(address, "x-symbol.json")));
    WORKS(MXSymbolCreateFromFile(path(!address, "x-symbol.json"), &loaded));
    WORKS(MXSymbolListArguments(loaded, &count, &names));
    CHECK(count == 1 && strcmp(names[0], "x") == 0);
    WORKS(MXSymbolFree(loaded));
    WORKS(MXSymbolFree(x));
}

static void elsewhere(void) {
    SymbolHandle made = NULL;
    NDArrayHandle *loaded;
    const char **names;
    uint32_t count, name_count;
    CHECK(MXSymbolCreateFromFile("file:///no/such/file", &made) == -1);
    CHECK(MXSymbolCreateFromFile("s3://bucket/name", &made) == -1 && made == NULL);
    CHECK(MXNDArrayLoad("gopher://host/name", &count, &loaded, &name_count, &names) == -1);
#ifndef MXNET
    FAILS(MXSymbolCreateFromFile("file:///no/such/file", &made), "Open \"/no/such/file\": No such file");
    FAILS(MXSymbolCreateFromFile("s3://bucket/name", &made), "This is an address");
    FAILS(MXNDArrayLoad("gopher://host/name", &count, &loaded, &name_count, &names), "This is an address");
#endif
}

int main(int argc, char **argv) {
    uint32_t operators;
    const char **names;
    if (argc != 2) return 2;
    folder = argv[1];
    /* As MXNet's bindings do first. */
    WORKS(MXListAllOpNames(&operators, &names));
    for (int address = 0; address < 2; address++) {
        records(address);
        arrays(address);
        symbols(address);
    }
    elsewhere();
    printf("%d checks\n", checks);
    return 0;
}
