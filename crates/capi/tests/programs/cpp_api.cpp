/* mxrt.hpp: arguments are a symbol, its parameters, and files of raw float32 inputs (3x1x8x8) and of
 * the outputs (3x10) that MXNet gave for them. */
#include <mxrt.hpp>

#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

using namespace std::chrono_literals;
using mxrt::Array;
using mxrt::SymbolBlock;

static std::atomic<int> checks{0};

#define CHECK(condition)                                                                \
  do {                                                                                  \
    ++checks;                                                                           \
    if (!(condition)) {                                                                 \
      std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (0)

/* The statement throws exactly this exception, of this kind, and its message has the text. */
#define THROWS(Exception, expected_kind, text, ...)                                                         \
  do {                                                                                                      \
    ++checks;                                                                                               \
    std::string found = "nothing";                                                                          \
    try {                                                                                                   \
      __VA_ARGS__;                                                                                          \
    } catch (const mxrt::Error &error) {                                                                    \
      found = std::string(error.kind()) + ": " + error.what();                                              \
      const bool exact = typeid(error) == typeid(Exception) && error.kind() == std::string(expected_kind);  \
      if (exact && std::string(error.what()).find(text) != std::string::npos) break;                        \
    }                                                                                                       \
    std::fprintf(stderr, "%s:%d: %s throws %s\n", __FILE__, __LINE__, #__VA_ARGS__, found.c_str());         \
    std::exit(1);                                                                                           \
  } while (0)

static std::string content(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static std::vector<float> floats(const std::string &path) {
  const std::string bytes = content(path);
  std::vector<float> made(bytes.size() / sizeof(float));
  std::memcpy(made.data(), bytes.data(), made.size() * sizeof(float));
  return made;
}

/* The outputs are 2 * a + b and a's largest element in each row. */
static const char *const TWO =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"a\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"b\", \"inputs\": []},"
    "{\"op\": \"_mul_scalar\", \"name\": \"twice\", \"attrs\": {\"scalar\": \"2\"}, \"inputs\": [[0, 0, 0]]},"
    "{\"op\": \"elemwise_add\", \"name\": \"sum\", \"inputs\": [[2, 0, 0], [1, 0, 0]]},"
    "{\"op\": \"max\", \"name\": \"most\", \"attrs\": {\"axis\": \"1\"}, \"inputs\": [[0, 0, 0]]}],"
    "\"arg_nodes\": [0, 1], \"heads\": [[3, 0, 0], [4, 0, 0]]}";

/* Keeps whatever reads or writes an array waiting until it is opened. */
class Gate {
 public:
  explicit Gate(const Array &array) {
    static const int cpu[] = {1, 0};
    NDArrayHandle written[] = {array.handle()};
    CHECK(MXEnginePushSyncND(&wait, this, nullptr, const_cast<int *>(cpu), nullptr, 0, written, 1, nullptr, 0, "gate") ==
          0);
  }
  void open() {
    std::lock_guard<std::mutex> lock(mutex_);
    opened_ = true;
    changed_.notify_all();
  }

 private:
  static void wait(void *, void *gate) {
    Gate &self = *static_cast<Gate *>(gate);
    std::unique_lock<std::mutex> lock(self.mutex_);
    self.changed_.wait(lock, [&] { return self.opened_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool opened_ = false;
};

struct Files {
  std::string symbol, params;
  std::vector<float> in, out;
};

static bool equal(const mxrt::View<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

static void answers(const Files &files) {
  auto net = SymbolBlock::imports(files.symbol, {"data"}, files.params);
  auto y = net(Array(files.in.data(), {3, 1, 8, 8}));
  auto scores = y.view<float>();
  CHECK(scores.size() == files.out.size() && (scores.shape() == mxrt::Shape{3, 10}));
  for (std::size_t i = 0; i < scores.size(); ++i) CHECK(std::fabs(scores[i] - files.out[i]) < 1e-4f);

  CHECK(net.input_names() == std::vector<std::string>{"data"} && net.output_names().size() == 1);
  CHECK(y.dtype() == mxrt::DType::float32 && y.size() == 30 && y.ready());
  const std::string json = content(files.symbol), params = content(files.params);
  auto same = SymbolBlock::from_memory(json, {"data"}, params.data(), params.size(), mxrt::cpu(), {{"precision", "exact"}});
  auto exact = same(Array(files.in, {3, 1, 8, 8})).to_vector<float>();
  for (std::size_t i = 0; i < exact.size(); ++i) CHECK(std::fabs(exact[i] - files.out[i]) < 1e-4f);
  // A view keeps its array, and a result its model's work.
  auto kept = [&] { return SymbolBlock(net)(Array(files.in, {3, 1, 8, 8})).view<float>(); }();
  CHECK(equal(kept, {scores.begin(), scores.end()}));
}

static void lists() {
  auto net = SymbolBlock::from_memory(TWO, {"b", "a"}, nullptr, 0);
  CHECK((net.input_names() == std::vector<std::string>{"b", "a"}));
  CHECK((net.output_names() == std::vector<std::string>{"sum_output", "most_output"}));
  const std::vector<float> a = {1, 2, 3, 6, 5, 4}, b = {10, 20, 30, 40, 50, 60};
  const std::vector<Array> inputs = {Array(b, {2, 3}), Array(a, {2, 3})};
  auto made = net(inputs);
  CHECK(made.size() == 2 && equal(made[0].view<float>(), {12, 24, 36, 52, 60, 68}));
  CHECK(equal(made[1].view<float>(), {3, 6}) && made[1].shape() == mxrt::Shape{2});
  auto later = net.call_async(inputs).get();
  CHECK(equal(later[0].view<float>(), {12, 24, 36, 52, 60, 68}) && equal(later[1].view<float>(), {3, 6}));
  THROWS(mxrt::ValueError, "value", "2 outputs", net(inputs[0]));
  THROWS(mxrt::ValueError, "value", "2 outputs", net.call_async(inputs[0]).get());
  THROWS(mxrt::ValueError, "value", "takes 2 inputs (b, a), but 1 were given", net(std::vector<Array>{inputs[0]}));

  const std::vector<std::int64_t> whole = {-1, 2};
  const std::vector<std::uint8_t> bytes = {0, 255};
  CHECK(Array(whole, {2}).to_vector<std::int64_t>() == whole && Array(bytes, {2, 1}).to_vector<std::uint8_t>() == bytes);
  auto shaped = mxrt::invoke("Reshape", {Array(a, {2, 3})}, {{"shape", "(3, 2)"}});
  CHECK((shaped.size() == 1 && shaped[0].shape() == mxrt::Shape{3, 2}));
  CHECK(!mxrt::version().empty());

  // Memory of the program: operators read and write it, and its owner stays as long as the array.
  auto memory = std::make_shared<std::vector<float>>(std::vector<float>{1, -2, 3, -4});
  const std::weak_ptr<std::vector<float>> watched = memory;
  float *first = memory->data();
  auto shared = Array::borrow(first, {2, 2}, std::move(memory));
  first[0] = 10;
  CHECK((shared.shape() == mxrt::Shape{2, 2}) && shared.view<float>().data() == first);
  auto clipped = mxrt::invoke("relu", {shared})[0];
  CHECK(equal(clipped.view<float>(), {10, 0, 3, 0}) && !watched.expired());
  shared = Array();
  mxrt::wait_all();
  CHECK(watched.expired());
  const std::uint16_t halves[] = {0x3c00, 0xc000};  // 1 and -2
  mxrt::Float16 bits[2];
  std::memcpy(bits, halves, sizeof bits);
  auto narrow = Array::borrow(bits, {2}, nullptr);
  CHECK(narrow.dtype() == mxrt::DType::float16 && narrow.view<mxrt::Float16>()[1].bits == 0xc000);
}

static void errors(const Files &files) {
  auto net = SymbolBlock::imports(files.symbol, {"data"}, files.params);
  THROWS(mxrt::FileNotFoundError, "file_not_found", "none.json", SymbolBlock::imports("none.json", {"data"}, files.params));
  THROWS(mxrt::FileNotFoundError, "file_not_found", "none.params", SymbolBlock::imports(files.symbol, {"data"}, "none.params"));
  THROWS(mxrt::DataError, "data", "", SymbolBlock::imports(files.params, {"data"}, files.params));
  THROWS(mxrt::ValueError, "value", "no input 'image'", SymbolBlock::imports(files.symbol, {"image"}, files.params));
  THROWS(mxrt::ValueError, "value", "data", SymbolBlock::imports(files.symbol, {}, files.params));
  THROWS(mxrt::ValueError, "value", "and 37 more", SymbolBlock::imports(files.symbol, {"data"}));
  THROWS(mxrt::ValueError, "value", "named twice", SymbolBlock::imports(files.symbol, {"data", "data"}, files.params));
  THROWS(mxrt::ValueError, "value", "speed",
         SymbolBlock::imports(files.symbol, {"data"}, files.params, mxrt::cpu(), {{"speed", "high"}}));
  THROWS(mxrt::DeviceError, "device", "gpu(77)",
         SymbolBlock::imports(files.symbol, {"data"}, files.params, mxrt::Context{2, 77}));

  const Array wrong(files.in, {3, 2, 8, 4});
  THROWS(mxrt::ShapeError, "shape", "(3, 2, 8, 4)", net(wrong));
  THROWS(mxrt::ShapeError, "shape", "(3, 2, 8, 4)", net.call_async(wrong).get());
  try {
    net(wrong);
  } catch (const mxrt::ValueError &error) {  // the family that it belongs to
    CHECK(std::string(error.what()).find("conv0") != std::string::npos);
  }
  THROWS(mxrt::ValueError, "value", "null", net(Array()));
  THROWS(mxrt::ValueError, "value", "null", Array().view<float>());
  THROWS(mxrt::ValueError, "value", "", Array(files.in, {3, 1, 8, 9}));
  THROWS(mxrt::ValueError, "value", "-1", Array(files.in.data(), {3, -1}));
  THROWS(mxrt::ValueError, "value", "too many", Array(files.in.data(), {1LL << 40, 1LL << 40}));
  THROWS(mxrt::TypeError, "type", "float32, but int32", net(Array(files.in, {3, 1, 8, 8})).view<std::int32_t>());
  THROWS(mxrt::DataError, "data", "", mxrt::imdecode(files.in.data(), 40));
  THROWS(mxrt::DeviceError, "device", "gpu(77)", Array(files.in, {3, 1, 8, 8}, mxrt::Context{2, 77}));

  // A failure of an operator reaches who reads the result.
  Array x(files.in, {3, 1, 8, 8});
  NDArrayHandle written[] = {x.handle()};
  static int cpu[] = {1, 0};
  const auto fail = [](void *, void *on_complete, void *) { MXRTEngineComplete(on_complete, "the camera is gone"); };
  CHECK(MXEnginePushAsyncND(fail, nullptr, nullptr, cpu, nullptr, 0, written, 1, nullptr, 0, "read", false) == 0);
  const Array y = net(x);
  THROWS(mxrt::Error, "operator", "the camera is gone", y.view<float>());
  THROWS(mxrt::Error, "operator", "the camera is gone", net.call_async(x).get());
}

static void limits(const Files &files) {
  auto net = SymbolBlock::imports(files.symbol, {"data"}, files.params);
  const Array x(files.in, {3, 1, 8, 8});
  const auto expected = net(x).to_vector<float>();
  mxrt::CallOptions soon, by_hand, unwanted;
  soon.deadline = 1ms;
  by_hand.cancellation = mxrt::Cancellation();
  unwanted.cancel_on_drop = true;
  {
    Gate gate(x);
    auto late = net(x, soon);
    auto late_future = net.call_async(x, soon);
    auto cancelled = net(x);
    auto cancelled_future = net.call_async(x, by_hand);
    auto patient = net.call_async(x);
    net(x, unwanted);
    CHECK(patient.wait_for(0s) == std::future_status::timeout && !late.ready());
    std::this_thread::sleep_for(20ms);
    cancelled.cancel();
    by_hand.cancellation->cancel();
    CHECK(by_hand.cancellation->cancelled());
    gate.open();
    THROWS(mxrt::TimeoutError, "deadline", "deadline", late.view<float>());
    THROWS(mxrt::TimeoutError, "deadline", "deadline", late_future.get());
    THROWS(mxrt::CancelledError, "cancelled", "cancelled", cancelled.wait());
    THROWS(mxrt::CancelledError, "cancelled", "cancelled", cancelled_future.get());
    CHECK(equal(patient.get().view<float>(), expected));
  }
  Gate gate(x);
  auto never = net.call_async(x, by_hand);  // cancelled before it is made
  gate.open();
  THROWS(mxrt::CancelledError, "cancelled", "cancelled", never.get());
  mxrt::CallOptions passed;
  passed.deadline = -1s;
  THROWS(mxrt::TimeoutError, "deadline", "deadline", net(x, passed).wait());
  mxrt::CallOptions generous;
  generous.deadline = std::chrono::hours(1000000);
  generous.priority = -5;
  CHECK(equal(net(x, generous).view<float>(), expected));
  mxrt::wait_all();
}

static void threads(const Files &files) {
  const auto net = SymbolBlock::imports(files.symbol, {"data"}, files.params);
  const auto two = SymbolBlock::from_memory(TWO, {"a", "b"}, nullptr, 0);
  std::vector<std::vector<float>> inputs, expected;
  for (int rows = 1; rows <= 4; ++rows) {
    std::vector<float> input(static_cast<std::size_t>(rows) * 64);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>((i * 7) % 17) / 17.0f;
    expected.push_back(net(Array(input, {rows, 1, 8, 8})).to_vector<float>());
    inputs.push_back(input);
  }
  std::vector<std::thread> pool;
  for (int t = 0; t < 32; ++t)
    pool.emplace_back([&, t] {
      for (int turn = 0; turn < 20; ++turn) {
        const int which = (t + turn) % 4;
        const Array x(inputs[static_cast<std::size_t>(which)], {which + 1, 1, 8, 8});
        const auto &wanted = expected[static_cast<std::size_t>(which)];
        switch (turn % 3) {
          case 0: CHECK(equal(net(x).view<float>(), wanted)); break;
          case 1: CHECK(equal(net.call_async(x).get().view<float>(), wanted)); break;
          default: {
            const Array one(std::vector<float>{static_cast<float>(t)}, {1, 1});
            CHECK(equal(two(std::vector<Array>{one, one})[0].view<float>(), {3.0f * static_cast<float>(t)}));
            THROWS(mxrt::ShapeError, "shape", "", net(Array(inputs[0], {1, 2, 8, 4})));
          }
        }
      }
    });
  for (auto &thread : pool) thread.join();
}

int main(int argc, char **argv) {
  CHECK(argc == 5);
  const Files files{argv[1], argv[2], floats(argv[3]), floats(argv[4])};
  try {
    answers(files);
    lists();
    errors(files);
    limits(files);
    threads(files);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "not expected: %s\n", error.what());
    return 1;
  }
  std::printf("%d checks\n", checks.load());
  return 0;
}
