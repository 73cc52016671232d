/* Functions of the program that throw: the process ends. The argument says which. */
#include <mxrt.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

static const struct { int dev_type, dev_id; } cpu = {1, 0};

static void sync(void *, void *) { throw std::runtime_error("from the program"); }
static void async(void *, void *, void *) { throw std::runtime_error("from the program"); }
static void nothing(void *, void *) {}
static void throwing_deleter(void *) { throw std::runtime_error("from the program"); }
static void ready(void *, const char *, const char *) { throw std::runtime_error("from the program"); }
static void monitor(const char *, NDArrayHandle, void *) { throw std::runtime_error("from the program"); }

#define WORKS(call)                                                \
  do {                                                             \
    if ((call) != 0) {                                             \
      std::fprintf(stderr, "went on: %s: %s\n", #call, MXGetLastError()); \
      return 1;                                                    \
    }                                                              \
  } while (0)

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const uint32_t one = 1;
  int where = 0;
  NDArrayHandle array = nullptr;
  void *context = const_cast<void *>(static_cast<const void *>(&cpu));
  WORKS(MXNDArrayCreate(&one, 1, 1, 0, 0, &array));
  if (!std::strcmp(argv[1], "sync")) {
    WORKS(MXEnginePushSyncND(sync, &where, nullptr, context, nullptr, 0, &array, 1));
  } else if (!std::strcmp(argv[1], "async")) {
    WORKS(MXEnginePushAsyncND(async, &where, nullptr, context, nullptr, 0, &array, 1));
  } else if (!std::strcmp(argv[1], "deleter")) {
    WORKS(MXEnginePushSyncND(nothing, &where, throwing_deleter, context, nullptr, 0, &array, 1));
  } else if (!std::strcmp(argv[1], "ready")) {
    WORKS(MXRTNDArrayOnReady(array, ready, &where));
  } else {
    SymbolHandle symbol = nullptr;
    ExecutorHandle executor = nullptr;
    WORKS(MXSymbolCreateFromJSON("{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
                                 "{\"op\": \"relu\", \"name\": \"y\", \"inputs\": [[0, 0, 0]]}],"
                                 "\"arg_nodes\": [0], \"heads\": [[1, 0, 0]]}",
                                 &symbol));
    WORKS(MXExecutorBind(symbol, 1, 0, 1, &array, nullptr, nullptr, 0, nullptr, &executor));
    WORKS(MXExecutorSetMonitorCallback(executor, monitor, &where));
    WORKS(MXExecutorForward(executor, 0));
  }
  WORKS(MXNDArrayWaitAll());
  std::fprintf(stderr, "went on\n");
  return 0;
}
