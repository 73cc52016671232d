/* Answers from many threads that share one model, each checked against the answer of one thread.
 *
 *   c++ -std=c++17 -O2 multi_threaded_inference.cpp $(pkg-config --cflags --libs mxrt) -lpthread \
 *       -o multi_threaded_inference
 *   ./multi_threaded_inference MODEL_PREFIX IS_GPU IMAGE...
 *   ./multi_threaded_inference MODEL_PREFIX IS_GPU --threads 8 --requests 100
 *
 * The model is MODEL_PREFIX-symbol.json with MODEL_PREFIX-0000.params. Images are JPEG or PNG files,
 * one thread each unless --threads says otherwise; without images the input is random. --shape (of
 * one request, 1,3,224,224), --input (its name, data), --mean (117) and --seed are for other models.
 * synset.txt in the working folder gives the names of the classes.
 */
#include <mxrt.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string prefix, input = "data";
  bool gpu = false;
  std::vector<std::string> images;
  std::size_t threads = 0, requests = 100;
  mxrt::Shape shape = {1, 3, 224, 224};
  float mean = 117;
  unsigned seed = 1;
};

[[noreturn]] static void usage() {
  std::fprintf(stderr,
               "usage: multi_threaded_inference MODEL_PREFIX IS_GPU IMAGE... [--threads N] [--requests M]\n"
               "           [--shape 1,3,224,224] [--input data] [--mean 117] [--seed 1]\n"
               "IS_GPU is 0 or 1; --requests counts those of each thread\n");
  std::exit(2);
}

static mxrt::Shape parse_shape(const std::string &text) {
  mxrt::Shape shape;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) shape.push_back(std::stoll(part));
  if (shape.size() != 4) throw std::invalid_argument("--shape: expected four extents, such as 1,3,224,224");
  return shape;
}

static Arguments parse(int argc, char **argv) {
  Arguments given;
  std::vector<std::string> plain;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      plain.push_back(word);
      continue;
    }
    if (++i == argc) usage();
    const std::string value = argv[i];
    if (word == "--threads") given.threads = std::stoul(value);
    else if (word == "--requests") given.requests = std::stoul(value);
    else if (word == "--shape") given.shape = parse_shape(value);
    else if (word == "--input") given.input = value;
    else if (word == "--mean") given.mean = std::stof(value);
    else if (word == "--seed") given.seed = static_cast<unsigned>(std::stoul(value));
    else usage();
  }
  if (plain.size() < 2 || (plain[1] != "0" && plain[1] != "1")) usage();
  given.prefix = plain[0];
  given.gpu = plain[1] == "1";
  given.images.assign(plain.begin() + 2, plain.end());
  if (given.threads == 0) given.threads = given.images.empty() ? 8 : given.images.size();
  return given;
}

static std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/* The pixels of a file in the order of the model: channel by channel, red first, less the mean. */
static std::vector<float> load_image(const std::string &path, const Arguments &given) {
  const auto channels = static_cast<std::size_t>(given.shape[1]);
  const std::int64_t height = given.shape[2], width = given.shape[3];
  const std::string file = read_file(path);
  const mxrt::Array decoded = mxrt::imdecode(file.data(), file.size(), channels == 3);
  const std::string size = "(" + std::to_string(width) + ", " + std::to_string(height) + ")";
  const auto resized = mxrt::invoke("_image_resize", {decoded}, {{"size", size}});
  const auto pixels = resized.at(0).view<std::uint8_t>();
  const std::size_t plane = pixels.size() / channels;
  std::vector<float> made(pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i)
    made[i % channels * plane + i / channels] = static_cast<float>(pixels[i]) - given.mean;
  return made;
}

static std::vector<float> random_image(std::size_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> made(size);
  std::generate(made.begin(), made.end(), [&] { return values(generator); });
  return made;
}

static std::vector<std::string> class_names() {
  std::vector<std::string> names;
  std::ifstream file("synset.txt");
  for (std::string line; std::getline(file, line);) names.push_back(line);
  return names;
}

static double percentile(std::vector<double> &sorted, double share) {
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

static int run(const Arguments &given) {
  const mxrt::Context context{given.gpu ? 2 : 1, 0};
  const auto net = mxrt::SymbolBlock::imports(given.prefix + "-symbol.json", {given.input}, given.prefix + "-0000.params",
                                              context);

  std::size_t size = 1;
  for (std::int64_t extent : given.shape) size *= static_cast<std::size_t>(extent);
  std::vector<std::vector<float>> inputs;
  for (const std::string &path : given.images) inputs.push_back(load_image(path, given));
  for (unsigned i = 0; inputs.size() < std::min<std::size_t>(given.threads, 16) && given.images.empty(); ++i)
    inputs.push_back(random_image(size, given.seed + i));

  // One thread answers everything; afterwards many must give the same answers, bit for bit.
  std::vector<std::vector<float>> expected;
  for (const auto &input : inputs) expected.push_back(net(mxrt::Array(input, given.shape, context)).to_vector<float>());

  std::atomic<std::size_t> wrong{0};
  std::vector<std::vector<double>> latencies(given.threads);
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  for (std::size_t t = 0; t < given.threads; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t request = 0; request < given.requests; ++request) {
        const std::size_t which = (t + request) % inputs.size();
        const auto start = Clock::now();
        try {
          const auto answer = net(mxrt::Array(inputs[which], given.shape, context)).view<float>();
          if (!std::equal(answer.begin(), answer.end(), expected[which].begin(), expected[which].end())) ++wrong;
        } catch (const mxrt::Error &error) {
          std::fprintf(stderr, "thread %zu: %s\n", t, error.what());
          ++wrong;
        }
        latencies[t].push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
      }
    });
  for (auto &thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();

  const auto names = class_names();
  for (std::size_t i = 0; i < given.images.size(); ++i) {
    const auto best = static_cast<std::size_t>(
        std::max_element(expected[i].begin(), expected[i].end()) - expected[i].begin());
    std::printf("%s: class %zu%s%s, score %g\n", given.images[i].c_str(), best, best < names.size() ? " " : "",
                best < names.size() ? names[best].c_str() : "", static_cast<double>(expected[i][best]));
  }
  std::vector<double> all;
  for (const auto &some : latencies) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  const double images = static_cast<double>(all.size()) * static_cast<double>(given.shape[0]);
  std::printf("%zu threads, %zu requests, %zu wrong\n", given.threads, all.size(), wrong.load());
  if (!all.empty())
    std::printf("%.1f images/s, p50 %.3f ms, p99 %.3f ms\n", images / seconds, percentile(all, 0.50),
                percentile(all, 0.99));
  return wrong == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
