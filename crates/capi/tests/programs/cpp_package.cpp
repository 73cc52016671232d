// A program over the cpp-package headers of MXNet 1.9.1. Arguments are a symbol, its parameters, a
// file of raw float32 inputs (3x1x8x8), another of the outputs (3x10) that are expected, and a folder.
#include <mxnet-cpp/MxNetCpp.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace mxnet::cpp;

static int checks = 0;

#define CHECK_THAT(condition)                                                                       \
  do {                                                                                              \
    ++checks;                                                                                       \
    if (!(condition)) {                                                                             \
      std::cerr << __FILE__ << ":" << __LINE__ << ": " << #condition << ": " << MXGetLastError() << "\n"; \
      std::exit(1);                                                                                 \
    }                                                                                               \
  } while (0)

static std::vector<float> floats(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char *>(values.data()));
  return values;
}

static std::vector<float> values(NDArray array) {
  std::vector<float> found(array.Size());
  array.SyncCopyToCPU(&found, found.size());
  return found;
}

static bool near(const std::vector<float> &a, const std::vector<float> &b, float tolerance) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= tolerance)) return false;
  }
  return true;
}

// A trained model, as cpp-package/example/inference loads and binds one.
static void model(char **argv) {
  const Context cpu = Context::cpu();
  Symbol net = Symbol::Load(argv[1]);
  std::map<std::string, NDArray> loaded, args, states;
  NDArray::Load(argv[2], nullptr, &loaded);
  for (const auto &entry : loaded) {
    const std::string name = entry.first.substr(4);
    if (entry.first.compare(0, 4, "aux:") == 0) states[name] = entry.second.Copy(cpu);
    if (entry.first.compare(0, 4, "arg:") == 0) args[name] = entry.second.Copy(cpu);
  }
  NDArray::WaitAll();
  const std::vector<float> in = floats(argv[3]), expected = floats(argv[4]);
  args["data"] = NDArray(Shape(3, 1, 8, 8), cpu, false);
  args["data"].SyncCopyFromCPU(in.data(), in.size());
  std::unique_ptr<Executor> executor(net.SimpleBind(cpu, args, std::map<std::string, NDArray>(),
                                                    std::map<std::string, OpReqType>(), states));
  for (int turn = 0; turn < 3; ++turn) {
    executor->Forward(false);
    CHECK_THAT(executor->outputs.size() == 1 && near(values(executor->outputs[0]), expected, 1e-4f));
  }
  // The executor reads its arrays as they are at a run.
  executor->arg_dict()["data"] = 0.0f;
  executor->Forward(false);
  CHECK_THAT(!near(values(executor->outputs[0]), expected, 1e-4f));
  NDArray best = executor->outputs[0].ArgmaxChannel();
  CHECK_THAT(best.GetShape() == std::vector<mx_uint>{3});
  CHECK_THAT(net.ListArguments().size() + net.ListAuxiliaryStates().size() == loaded.size() + 1);
  CHECK_THAT(Symbol::LoadJSON(net.ToJSON()).ListOutputs() == net.ListOutputs());
}

// A network made by functions of op.h, which asks the library for its operators.
static void made() {
  const Context cpu = Context::cpu();
  Symbol data = Symbol::Variable("data"), weight("weight"), bias("bias"), w2("w2"), b2("b2");
  Symbol hidden = Activation("act", FullyConnected("fc", data, weight, bias, 2), ActivationActType::kRelu);
  Symbol net = SoftmaxActivation("out", FullyConnected("fc2", hidden, w2, b2, 2));
  std::map<std::string, NDArray> args;
  args["data"] = NDArray(std::vector<float>{1, 2, 3, 4}, Shape(2, 2), cpu);
  net.InferArgsMap(cpu, &args, args);
  CHECK_THAT((args["weight"].GetShape() == std::vector<mx_uint>{2, 2}));
  args["weight"].SyncCopyFromCPU({1, -1, 1, 1});
  args["bias"].SyncCopyFromCPU({0, 1});
  args["w2"].SyncCopyFromCPU({0, 1, 1, 0});
  args["b2"].SyncCopyFromCPU({0, 0});
  std::unique_ptr<Executor> executor(net.SimpleBind(cpu, args));
  executor->Forward(false);
  // hidden: (0, 4) and (0, 8)
  const float first = 1 / (1 + std::exp(-4.0f)), second = 1 / (1 + std::exp(-8.0f));
  CHECK_THAT(near(values(executor->outputs[0]), {first, 1 - first, second, 1 - second}, 1e-5f));
  Symbol pooled = Pooling("pool", data, Shape(2, 2), PoolingPoolType::kMax);
  CHECK_THAT(pooled.ListArguments() == std::vector<std::string>{"data"});
}

static void arrays(const std::string &folder) {
  const Context cpu = Context::cpu();
  NDArray a(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape(2, 3), cpu);
  NDArray b = (a + a) * 2.0f - 1.0f;
  CHECK_THAT(near(values(b), {3, 7, 11, 15, 19, 23}, 0));
  CHECK_THAT(near(values(a.Slice(1, 2)), {4, 5, 6}, 0) && a.At(1, 2) == 6);
  CHECK_THAT(near(values(b / a), {3, 3.5f, 11 / 3.f, 3.75f, 3.8f, 23 / 6.f}, 1e-6f));
  b += 1.0f;
  NDArray target(Shape(2, 3), cpu);
  b.CopyTo(&target);
  CHECK_THAT(near(values(target), {4, 8, 12, 16, 20, 24}, 0));
  NDArray result(Shape(2, 3), cpu);
  Operator("broadcast_maximum")(a, NDArray(std::vector<float>{3}, Shape(1, 1), cpu)).Invoke(result);
  CHECK_THAT(near(values(result), {3, 3, 3, 4, 5, 6}, 0));
  const std::string path = folder + "/arrays.params";
  NDArray::Save(path, std::map<std::string, NDArray>{{"a", a}, {"b", b}});
  std::map<std::string, NDArray> loaded = NDArray::LoadToMap(path);
  CHECK_THAT(loaded.size() == 2 && near(values(loaded["b"]), values(b), 0));
  bool refused = false;
  try {
    Operator("elemwise_add")(a, NDArray(Shape(7, 7), cpu)).Invoke();
  } catch (const std::exception &) {
    const std::string why = MXGetLastError();
    refused = why.find("7, 7") != std::string::npos || why.find("7,7") != std::string::npos;
  }
  CHECK_THAT(refused);
}

static void iterator(const std::string &folder) {
  const std::string path = folder + "/rows.csv";
  std::ofstream(path) << "1,2\n3,4\n5,6\n7,8\n";
  MXDataIter rows("CSVIter");
  rows.SetParam("data_csv", path).SetParam("data_shape", Shape(2)).SetParam("batch_size", 2).CreateDataIter();
  std::vector<float> all;
  for (rows.Reset(); rows.Next();) {
    const std::vector<float> batch = values(rows.GetDataBatch().data);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  CHECK_THAT(near(all, {1, 2, 3, 4, 5, 6, 7, 8}, 0));
}

int main(int argc, char **argv) {
  CHECK_THAT(argc == 6);
  model(argv);
  made();
  arrays(argv[5]);
  iterator(argv[5]);
  MXNotifyShutdown();
  std::cout << checks << " checks\n";
  return 0;
}
