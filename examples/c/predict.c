/* Loads a model that MXNet exported and answers from eight threads, which share one CachedOp.
 *
 *   cargo build --release -p mxrt-capi
 *   cc examples/c/predict.c -I crates/capi/include -L target/release -lmxrt_capi -lpthread \
 *      -o predict
 *   LD_LIBRARY_PATH=target/release ./predict model-symbol.json model-0000.params data 1,3,224,224
 */
#include <mxrt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, CALLS = 20, MAX_DIMS = 8 };

#define CHECK(call)                                                       \
  do {                                                                    \
    if ((call) != 0) {                                                    \
      fprintf(stderr, "%s\n", MXGetLastError());                          \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

struct model {
  CachedOpHandle op;
  int num_inputs;
  int data_index; /* which of the inputs is the data */
  NDArrayHandle *inputs;
  uint32_t shape[MAX_DIMS];
  uint32_t ndim;
  size_t size;
};

struct answer {
  const struct model *model;
  float *values;
  size_t count;
};

static void *xmalloc(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);
  if (!memory) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return memory;
}

static char *copy(const char *text) {
  char *mine = xmalloc(strlen(text) + 1);
  return strcpy(mine, text);
}

/* One call: a fresh input array, the shared parameters, and the first result. */
static void predict(const struct model *model, const float *data, float **values, size_t *count) {
  NDArrayHandle *inputs = xmalloc(sizeof(NDArrayHandle) * (size_t)model->num_inputs);
  memcpy(inputs, model->inputs, sizeof(NDArrayHandle) * (size_t)model->num_inputs);
  CHECK(MXNDArrayCreate(model->shape, model->ndim, 1, 0, 0, &inputs[model->data_index]));
  CHECK(MXNDArraySyncCopyFromCPU(inputs[model->data_index], data, model->size));

  int num_outputs = 0;
  NDArrayHandle *outputs = NULL;
  CHECK(MXInvokeCachedOp(model->op, model->num_inputs, inputs, &num_outputs, &outputs));

  uint32_t ndim;
  const uint32_t *shape;
  CHECK(MXNDArrayGetShape(outputs[0], &ndim, &shape));
  *count = 1;
  for (uint32_t i = 0; i < ndim; ++i) *count *= shape[i];
  *values = xmalloc(sizeof(float) * *count);
  CHECK(MXNDArraySyncCopyToCPU(outputs[0], *values, *count));

  for (int i = 0; i < num_outputs; ++i) CHECK(MXNDArrayFree(outputs[i]));
  CHECK(MXNDArrayFree(inputs[model->data_index]));
  free(inputs);
}

static float *make_data(size_t size) {
  float *data = xmalloc(sizeof(float) * size);
  for (size_t i = 0; i < size; ++i) data[i] = (float)(i % 17) / 17.0f;
  return data;
}

static void *work(void *argument) {
  struct answer *answer = argument;
  float *data = make_data(answer->model->size);
  for (int i = 0; i < CALLS; ++i) {
    free(answer->values);
    predict(answer->model, data, &answer->values, &answer->count);
  }
  free(data);
  return NULL;
}

static uint32_t parse_shape(const char *text, uint32_t *shape) {
  uint32_t ndim = 0;
  while (*text && ndim < MAX_DIMS) {
    char *end;
    shape[ndim++] = (uint32_t)strtoul(text, &end, 10);
    if (end == text) return 0;
    text = *end == ',' ? end + 1 : end;
  }
  return ndim;
}

/* The parameter called `arg:name` or `aux:name`. */
static NDArrayHandle find(const char *name, char **names, NDArrayHandle *arrays, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const char *bare = strchr(names[i], ':');
    if (strcmp(bare ? bare + 1 : names[i], name) == 0) return arrays[i];
  }
  return NULL;
}

int main(int argc, char **argv) {
  struct model model = {0};
  if (argc != 5 || (model.ndim = parse_shape(argv[4], model.shape)) == 0) {
    fprintf(stderr, "usage: %s SYMBOL.json FILE.params INPUT-NAME 1,3,224,224\n", argv[0]);
    return 2;
  }
  model.size = 1;
  for (uint32_t i = 0; i < model.ndim; ++i) model.size *= model.shape[i];

  /* The parameters. What the library returns is the thread's, so names and handles are copied. */
  uint32_t num_arrays, num_names;
  NDArrayHandle *loaded;
  const char **loaded_names;
  CHECK(MXNDArrayLoad(argv[2], &num_arrays, &loaded, &num_names, &loaded_names));
  if (num_names != num_arrays) {
    fprintf(stderr, "%s: the parameters have no names\n", argv[2]);
    return 1;
  }
  NDArrayHandle *arrays = xmalloc(sizeof(NDArrayHandle) * num_arrays);
  char **names = xmalloc(sizeof(char *) * num_arrays);
  for (uint32_t i = 0; i < num_arrays; ++i) {
    arrays[i] = loaded[i];
    names[i] = copy(loaded_names[i]);
  }

  /* The graph, and which array each of its inputs is. */
  SymbolHandle symbol;
  uint32_t num_inputs;
  const char **inputs;
  CHECK(MXSymbolCreateFromFile(argv[1], &symbol));
  CHECK(NNSymbolListInputNames(symbol, 0, &num_inputs, &inputs));
  model.num_inputs = (int)num_inputs;
  model.inputs = xmalloc(sizeof(NDArrayHandle) * num_inputs);
  model.data_index = -1;
  for (uint32_t i = 0; i < num_inputs; ++i) {
    model.inputs[i] = NULL;
    if (strcmp(inputs[i], argv[3]) == 0) {
      model.data_index = (int)i;
    } else if (!(model.inputs[i] = find(inputs[i], names, arrays, num_arrays))) {
      fprintf(stderr, "%s: no parameter for the input %s\n", argv[2], inputs[i]);
      return 1;
    }
  }
  if (model.data_index < 0) {
    fprintf(stderr, "%s: no input is called %s\n", argv[1], argv[3]);
    return 1;
  }

  CHECK(MXCreateCachedOpEX(symbol, 0, NULL, NULL, &model.op, true));
  CHECK(MXSymbolFree(symbol));

  /* One answer alone, then many at the same time: they must be equal, bit for bit. */
  float *data = make_data(model.size);
  float *expected;
  size_t count;
  predict(&model, data, &expected, &count);

  pthread_t threads[THREADS];
  struct answer answers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    answers[i] = (struct answer){&model, NULL, 0};
    if (pthread_create(&threads[i], NULL, work, &answers[i]) != 0) return 1;
  }
  int equal = 1;
  for (int i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    if (answers[i].count != count || memcmp(answers[i].values, expected, sizeof(float) * count) != 0) equal = 0;
    free(answers[i].values);
  }

  size_t best = 0;
  for (size_t i = 1; i < count; ++i)
    if (expected[i] > expected[best]) best = i;
  printf("%d threads, %d answers of %zu values each, %s\n", THREADS, THREADS * CALLS, count,
         equal ? "all equal" : "DIFFERENT");
  printf("largest: %g at %zu\n", expected[best], best);

  for (uint32_t i = 0; i < num_arrays; ++i) {
    CHECK(MXNDArrayFree(arrays[i]));
    free(names[i]);
  }
  CHECK(MXFreeCachedOp(model.op));
  free(names);
  free(arrays);
  free(model.inputs);
  free(data);
  free(expected);
  return equal ? 0 : 1;
}
