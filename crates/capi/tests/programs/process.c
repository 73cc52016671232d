/* How a process loads the library, forks, and ends beside it.
 *
 *   process exit SYMBOL PARAMS              exit by the main thread while eight others predict
 *   process exit-of-a-thread SYMBOL PARAMS  the same by one of the eight
 *   process fork SYMBOL PARAMS              children that were forked beside eight threads predict
 *   process threads                         threads that end while the library holds their error text
 *   process share FILE                      memory of predictors that share their parameters
 *
 * Its exit code is 5 where all is well.
 */
#define _GNU_SOURCE
#include "check.h"

#include <mxrt.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define WELL 5

static char *symbol, *params;
static int params_size;
static int exits;

/* Kilobytes that the process has in memory. */
static long resident(void) {
    char line[256];
    long found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %ld", &found);
    fclose(file);
    return found;
}

static PredictorHandle digits(void) {
    static const char *keys[] = {"data"};
    static const uint32_t ends[] = {0, 4}, dims[] = {1, 1, 8, 8};
    PredictorHandle made;
    WORKS(MXPredCreate(symbol, params, params_size, 1, 0, 1, keys, ends, dims, &made));
    return made;
}

static void predict(PredictorHandle predictor) {
    float pixels[64] = {0.5f}, scores[10];
    WORKS(MXPredSetInput(predictor, "data", pixels, 64));
    WORKS(MXPredForward(predictor));
    WORKS(MXPredGetOutput(predictor, 0, scores, 10));
}

static void *predicts(void *number) {
    PredictorHandle predictor = digits();
    for (int i = 0;; i++) {
        predict(predictor);
        if (exits && *(long *)number == 3 && i == 50) exit(WELL);
    }
    return NULL;
}

static void start(void) {
    static long numbers[THREADS];
    for (long i = 0; i < THREADS; i++) {
        pthread_t thread;
        numbers[i] = i;
        CHECK(pthread_create(&thread, NULL, predicts, &numbers[i]) == 0);
        pthread_detach(thread);
    }
}

static void forks(void) {
    start();
    for (int i = 0; i < 10; i++) {
        int status;
        pid_t child;
        usleep(3000);
        child = fork();
        CHECK(child >= 0);
        if (!child) {
            predict(digits());
            exit(WELL);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == WELL);
    }
}

static void *fails(void *unused) {
    FAILS(MXNDArrayWaitToRead(NULL), "null");
    return unused;
}

static void threads_end(void) {
    long before = 0;
    for (int i = 0; i < 4000; i++) {
        pthread_t thread;
        if (i == 1000) before = resident();
        CHECK(pthread_create(&thread, NULL, fails, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK(resident() - before < 512);
}

/* A layer with 16 MB of weights. */
static void share(const char *file) {
    static const char *keys[] = {"data"};
    static const uint32_t ends[] = {0, 2}, dims[] = {1, 2048}, shape[] = {2048, 2048};
    static const char *json =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []},"
        "{\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"
        "{\"op\": \"FullyConnected\", \"name\": \"y\", \"attrs\": {\"num_hidden\": \"2048\", \"no_bias\": \"True\"},"
        "\"inputs\": [[0, 0, 0], [1, 0, 0]]}], \"arg_nodes\": [0, 1], \"heads\": [[2, 0, 0]]}";
    static float weights[2048 * 2048], input[2048], output[2048];
    const char *name = "arg:w";
    PredictorHandle made[16];
    NDArrayHandle array;
    char *read;
    int size;
    long one = 0;
    for (int i = 0; i < 2048 * 2048; i++) weights[i] = (float)(i % 7) - 3;
    for (int i = 0; i < 2048; i++) input[i] = 1;
    WORKS(MXNDArrayCreate(shape, 2, 1, 0, 0, &array));
    WORKS(MXNDArraySyncCopyFromCPU(array, weights, 2048 * 2048));
    WORKS(MXNDArraySave(file, 1, &array, &name));
    WORKS(MXNDArrayFree(array));
    read = content(file, &size);
    CHECK((size_t)size > sizeof weights);
    WORKS(MXPredCreate(json, read, size, 1, 0, 1, keys, ends, dims, &made[0]));
    for (int i = 0; i < 16; i++) {
        if (i == 1) one = resident();
        if (i > 0) WORKS(MXPredReshape(1, keys, ends, dims, made[0], &made[i]));
        WORKS(MXPredSetInput(made[i], "data", input, 2048));
        WORKS(MXPredForward(made[i]));
        WORKS(MXPredGetOutput(made[i], 0, output, 2048));
        CHECK(output[0] == output[7] && output[0] != output[1]);
    }
    CHECK(resident() - one < 10 * 1024);
    for (int i = 0; i < 16; i++) WORKS(MXPredFree(made[i]));
    free(read);
}

int main(int argc, char **argv) {
    CHECK(argc >= 2 && argc <= 4);
    if (argc == 4) {
        symbol = content(argv[2], NULL);
        params = content(argv[3], &params_size);
    }
    if (!strcmp(argv[1], "threads")) threads_end();
    else if (!strcmp(argv[1], "share")) share(argv[2]);
    else if (!strcmp(argv[1], "fork")) forks();
    else {
        exits = !strcmp(argv[1], "exit-of-a-thread");
        start();
        if (exits) pause();
        usleep(20000);
    }
    exit(WELL);
}
