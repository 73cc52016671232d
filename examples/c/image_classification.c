/* Names what an image shows, by the predict interface.
 *
 *   cc -O2 image_classification.c $(pkg-config --cflags --libs mxrt) -o image_classification
 *   ./image_classification MODEL_PREFIX IMAGE [3,224,224]
 *
 * The model is MODEL_PREFIX-symbol.json with MODEL_PREFIX-0000.params; its input is called data. The
 * image is a JPEG or PNG file. synset.txt in the working folder gives the names of the classes. A
 * program that was written for MXNet's c_predict_api.h looks the same, but for reading the image.
 */
#include <mxrt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEST = 5, MEAN = 117 };

#define CHECK(call)                              \
  do {                                           \
    if ((call) != 0) {                           \
      fprintf(stderr, "%s\n", MXGetLastError()); \
      exit(1);                                   \
    }                                            \
  } while (0)

static void *xmalloc(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);
  if (!memory) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return memory;
}

/* The content of the file PREFIX SUFFIX, with a zero byte after it. */
static char *read_file(const char *prefix, const char *suffix, size_t *size) {
  char *path = xmalloc(strlen(prefix) + strlen(suffix) + 1);
  strcat(strcpy(path, prefix), suffix);
  FILE *file = fopen(path, "rb");
  long length = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  if (length < 0) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(1);
  }
  rewind(file);
  char *content = xmalloc((size_t)length + 1);
  *size = fread(content, 1, (size_t)length, file);
  content[*size] = 0;
  fclose(file);
  free(path);
  return content;
}

/* The image as the model wants it: channel by channel, red first, less the mean. */
static float *read_image(const char *path, const uint32_t *shape) {
  size_t size;
  char *file = read_file(path, "", &size);
  NDArrayHandle image;
  CHECK(MXRTImageDecode(file, size, shape[1] == 3, 1, &image));
  free(file);

  char wanted[64];
  snprintf(wanted, sizeof wanted, "(%u, %u)", shape[3], shape[2]);
  const char *keys[] = {"size"}, *values[] = {wanted};
  OpHandle resize;
  NDArrayHandle *resized = NULL;
  int number = 0;
  CHECK(NNGetOpHandle("_image_resize", &resize));
  CHECK(MXImperativeInvoke(resize, 1, &image, &number, &resized, 1, keys, values));
  CHECK(MXNDArrayFree(image));
  image = resized[0];

  void *data;
  CHECK(MXNDArrayGetData(image, &data)); /* waits */
  const unsigned char *pixels = data;
  const size_t channels = shape[1], plane = (size_t)shape[2] * shape[3];
  float *made = xmalloc(sizeof(float) * channels * plane);
  for (size_t i = 0; i < channels * plane; ++i)
    made[i % channels * plane + i / channels] = (float)pixels[i] - (float)MEAN;
  CHECK(MXNDArrayFree(image));
  return made;
}

/* Prints the name of a class, if synset.txt has one. */
static void print_class(uint32_t number, float score) {
  char line[256] = "";
  FILE *file = fopen("synset.txt", "r");
  if (file) {
    for (uint32_t i = 0; i <= number; ++i)
      if (!fgets(line, sizeof line, file)) line[0] = 0;
    fclose(file);
  }
  line[strcspn(line, "\r\n")] = 0;
  printf("class %u%s%s, score %g\n", number, line[0] ? " " : "", line, score);
}

int main(int argc, char **argv) {
  uint32_t shape[4] = {1, 3, 224, 224};
  const int enough = argc == 3 || (argc == 4 && sscanf(argv[3], "%u,%u,%u", &shape[1], &shape[2], &shape[3]) == 3);
  if (!enough) {
    fprintf(stderr, "usage: %s MODEL_PREFIX IMAGE [3,224,224]\n", argv[0]);
    return 2;
  }
  size_t symbol_size, params_size;
  char *symbol = read_file(argv[1], "-symbol.json", &symbol_size);
  char *params = read_file(argv[1], "-0000.params", &params_size);
  const char *inputs[] = {"data"};
  const uint32_t ends[] = {0, 4};
  PredictorHandle predictor;
  CHECK(MXPredCreate(symbol, params, (int)params_size, 1, 0, 1, inputs, ends, shape, &predictor));
  free(symbol);
  free(params);

  float *image = read_image(argv[2], shape);
  CHECK(MXPredSetInput(predictor, "data", image, shape[1] * shape[2] * shape[3]));
  CHECK(MXPredForward(predictor));
  free(image);

  uint32_t *extents, rank, count = 1;
  CHECK(MXPredGetOutputShape(predictor, 0, &extents, &rank));
  for (uint32_t i = 0; i < rank; ++i) count *= extents[i];
  float *scores = xmalloc(sizeof(float) * count);
  CHECK(MXPredGetOutput(predictor, 0, scores, count)); /* waits */
  CHECK(MXPredFree(predictor));

  char *printed = memset(xmalloc(count), 0, count);
  for (uint32_t place = 0; place < BEST && place < count; ++place) {
    uint32_t best = count;
    for (uint32_t i = 0; i < count; ++i)
      if (!printed[i] && (best == count || scores[i] > scores[best])) best = i;
    printed[best] = 1;
    print_class(best, scores[best]);
  }
  free(printed);
  free(scores);
  return 0;
}
