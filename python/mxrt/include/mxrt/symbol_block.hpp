/* Models, and calls of them. Included by mxrt.hpp. */
#ifndef MXRT_SYMBOL_BLOCK_HPP_
#define MXRT_SYMBOL_BLOCK_HPP_

#include <mxrt.h>
#include <mxrt/array.hpp>
#include <mxrt/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mxrt {

namespace detail {

inline std::vector<const char *> pointers(const std::vector<std::string> &texts) {
  std::vector<const char *> made;
  for (const std::string &text : texts) made.push_back(text.c_str());
  return made;
}

}  // namespace detail

/* Ends calls from another thread. A copy ends the same calls. */
class Cancellation {
 public:
  /* Calls that have not started do not run, nor do those that are made later: reading their results
   * throws a CancelledError. */
  void cancel() const {
    std::vector<std::weak_ptr<detail::Handle>> results;
    {
      std::lock_guard<std::mutex> lock(state_->mutex);
      state_->cancelled = true;
      results.swap(state_->results);
    }
    for (const auto &result : results)
      if (const detail::SharedHandle alive = result.lock()) MXRTNDArrayCancel(alive->raw);
  }

  bool cancelled() const {
    std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->cancelled;
  }

 private:
  friend class SymbolBlock;
  struct State {
    std::mutex mutex;
    bool cancelled = false;
    std::vector<std::weak_ptr<detail::Handle>> results;
    std::size_t prune_at = 64;
  };

  void add(const std::vector<Array> &outputs) const {
    {
      std::lock_guard<std::mutex> lock(state_->mutex);
      if (!state_->cancelled) {
        auto &results = state_->results;
        for (const Array &output : outputs) results.push_back(output.handle_);
        if (results.size() > state_->prune_at) {
          const auto gone = [](const auto &result) { return result.expired(); };
          results.erase(std::remove_if(results.begin(), results.end(), gone), results.end());
          state_->prune_at = std::max<std::size_t>(64, 2 * results.size());
        }
        return;
      }
    }
    for (const Array &output : outputs) output.cancel();
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/* How a call is made. */
struct CallOptions {
  /* A call that has not started so much later does not run: reading its result throws a TimeoutError. */
  std::optional<std::chrono::duration<double>> deadline;
  /* While calls wait for cores, those with a higher number start first. */
  int priority = 0;
  /* A call does not run if all its results were dropped before it started. No effect on call_async:
   * what completes the future holds the results; a cancellation ends such a call. */
  bool cancel_on_drop = false;
  /* What may end the call. */
  std::optional<Cancellation> cancellation;
};

/* Flags of a model by name, such as {{"precision", "bf16"}}. */
using Flags = std::vector<std::pair<std::string, std::string>>;

/* A model with its parameters. Any number of threads may call one block at the same time. */
class SymbolBlock {
 public:
  /* Loads the files that MXNet wrote. input_names are the inputs of a call, in order; all others are
   * parameters. */
  static SymbolBlock imports(const std::string &symbol_file, const std::vector<std::string> &input_names,
                             const std::string &param_file = {}, Context context = cpu(), const Flags &flags = {}) {
    const auto load = [&](const Wanted &wanted, ModelHandle *out) {
      const char *params = param_file.empty() ? nullptr : param_file.c_str();
      return MXRTModelLoad(symbol_file.c_str(), params, wanted.count(), wanted.names, context.type, context.id,
                           wanted.flags(), wanted.keys, wanted.values, out);
    };
    return SymbolBlock(input_names, flags, load);
  }

  /* The same for the content of the files. */
  static SymbolBlock from_memory(const std::string &symbol_json, const std::vector<std::string> &input_names,
                                 const void *params, std::size_t param_size, Context context = cpu(),
                                 const Flags &flags = {}) {
    const auto load = [&](const Wanted &wanted, ModelHandle *out) {
      return MXRTModelCreate(symbol_json.c_str(), params, param_size, wanted.count(), wanted.names, context.type,
                             context.id, wanted.flags(), wanted.keys, wanted.values, out);
    };
    return SymbolBlock(input_names, flags, load);
  }

  const std::vector<std::string> &input_names() const noexcept { return *inputs_; }
  const std::vector<std::string> &output_names() const noexcept { return *outputs_; }

  /* Calls a model of one input and one output. Returns before the result is computed. */
  Array operator()(const Array &input, const CallOptions &options = {}) const {
    check_single();
    return call(&input, 1, options).front();
  }

  /* The same for any number of inputs and outputs. */
  std::vector<Array> operator()(const std::vector<Array> &inputs, const CallOptions &options = {}) const {
    return call(inputs.data(), inputs.size(), options);
  }

  /* A future of the result. All errors are those of the future, also wrong arguments. */
  std::future<Array> call_async(const Array &input, const CallOptions &options = {}) const {
    const auto start = [&] {
      check_single();
      return call(&input, 1, options);
    };
    return start_async<Array>(start);
  }

  /* The same for any number of inputs and outputs. */
  std::future<std::vector<Array>> call_async(const std::vector<Array> &inputs, const CallOptions &options = {}) const {
    return start_async<std::vector<Array>>([&] { return call(inputs.data(), inputs.size(), options); });
  }

 private:
  /* Names and flags as the C interface takes them. */
  struct Wanted {
    std::vector<const char *> inputs, flag_keys, flag_values;
    const char **names, **keys, **values;
    std::uint32_t count() const { return static_cast<std::uint32_t>(inputs.size()); }
    std::uint32_t flags() const { return static_cast<std::uint32_t>(flag_keys.size()); }
  };

  /* The results of a call that are waited for. */
  template <class Result>
  struct Pending {
    std::promise<Result> promise;
    std::vector<Array> outputs;
    std::atomic<std::size_t> left{0};
    std::mutex mutex;
    std::exception_ptr error;
  };

  template <class Load>
  SymbolBlock(const std::vector<std::string> &input_names, const Flags &flags, const Load &load)
      : model_(std::make_shared<detail::Handle>(&MXRTModelFree)) {
    Wanted wanted{detail::pointers(input_names), {}, {}, nullptr, nullptr, nullptr};
    for (const auto &[key, value] : flags) {
      wanted.flag_keys.push_back(key.c_str());
      wanted.flag_values.push_back(value.c_str());
    }
    wanted.names = wanted.inputs.data();
    wanted.keys = wanted.flag_keys.data();
    wanted.values = wanted.flag_values.data();
    detail::check(load(wanted, &model_->raw));
    inputs_ = list(MXRTModelListInputs);
    outputs_ = list(MXRTModelListOutputs);
  }

  using Names = std::shared_ptr<const std::vector<std::string>>;

  Names list(int (*ask)(ModelHandle, std::uint32_t *, const char ***)) const {
    std::uint32_t size = 0;
    const char **names = nullptr;
    detail::check(ask(model_->raw, &size, &names));
    return std::make_shared<const std::vector<std::string>>(names, names + size);
  }

  void check_single() const {
    if (outputs_->size() != 1)
      throw ValueError("value", "the model has " + std::to_string(outputs_->size()) +
                                    " outputs: give its inputs as a list to get a list");
  }

  std::vector<Array> call(const Array *inputs, std::size_t count, const CallOptions &options) const {
    std::vector<NDArrayHandle> handles;
    for (std::size_t i = 0; i < count; ++i) handles.push_back(inputs[i].handle());
    std::vector<Array> outputs;
    for (std::size_t i = 0; i < outputs_->size(); ++i) outputs.push_back(Array::empty());
    MXRTCallOptions how{};
    how.size = sizeof how;
    how.priority = options.priority;
    how.cancel_on_drop = options.cancel_on_drop ? 1 : 0;
    // A deadline that has passed is one: 0 stands for none.
    if (options.deadline) how.deadline = std::max(options.deadline->count(), 1e-9);
    int number = 0;
    NDArrayHandle *made = nullptr;
    detail::check(MXRTModelCall(model_->raw, static_cast<int>(count), handles.data(), &how, &number, &made));
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].handle_->raw = made[i];
    if (options.cancellation) options.cancellation->add(outputs);
    return outputs;
  }

  static void give(std::promise<Array> &promise, std::vector<Array> &outputs) { promise.set_value(outputs.front()); }
  static void give(std::promise<std::vector<Array>> &promise, std::vector<Array> &outputs) {
    promise.set_value(std::move(outputs));
  }

  /* Called for each result, in a thread of the library. The last one makes the future ready. */
  template <class Result>
  static void ready(void *data, const char *kind, const char *message) noexcept {
    const std::unique_ptr<std::shared_ptr<Pending<Result>>> owner(static_cast<std::shared_ptr<Pending<Result>> *>(data));
    Pending<Result> &pending = **owner;
    if (kind != nullptr) {
      try {
        detail::throw_error(kind, message);
      } catch (...) {
        std::lock_guard<std::mutex> lock(pending.mutex);
        if (!pending.error) pending.error = std::current_exception();
      }
    }
    if (pending.left.fetch_sub(1) == 1) {
      if (pending.error)
        pending.promise.set_exception(pending.error);
      else
        give(pending.promise, pending.outputs);
    }
  }

  template <class Result, class Start>
  static std::future<Result> start_async(const Start &start) {
    auto pending = std::make_shared<Pending<Result>>();
    std::future<Result> future = pending->promise.get_future();
    try {
      const std::vector<Array> outputs = start();
      pending->outputs = outputs;
      pending->left = outputs.size();
      for (const Array &output : outputs) {
        auto owner = std::make_unique<std::shared_ptr<Pending<Result>>>(pending);
        detail::check(MXRTNDArrayOnReady(output.handle(), &ready<Result>, owner.get()));
        static_cast<void>(owner.release());
      }
    } catch (...) {
      pending->promise.set_exception(std::current_exception());
    }
    return future;
  }

  detail::SharedHandle model_;
  Names inputs_, outputs_;
};

}  // namespace mxrt

#endif /* MXRT_SYMBOL_BLOCK_HPP_ */
