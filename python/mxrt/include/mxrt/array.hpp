/* Arrays, and operators by name. Included by mxrt.hpp. */
#ifndef MXRT_ARRAY_HPP_
#define MXRT_ARRAY_HPP_

#include <mxrt.h>
#include <mxrt/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mxrt {

namespace detail {

/* Owner of a handle. It is made before there is a handle to lose. */
struct Handle {
  explicit Handle(int (*release)(void *)) : free(release) {}
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() {
    if (raw != nullptr) free(raw);
  }

  void *raw = nullptr;
  int (*free)(void *);
};

using SharedHandle = std::shared_ptr<Handle>;

}  // namespace detail

/* Extents, outermost first. */
using Shape = std::vector<std::int64_t>;

/* Element types, with the codes of the C interface. */
enum class DType : int {
  float32 = 0,
  float64 = 1,
  float16 = 2,
  uint8 = 3,
  int32 = 4,
  int8 = 5,
  int64 = 6,
  boolean = 7,
  int16 = 8,
  uint16 = 9,
  uint32 = 10,
  uint64 = 11,
  bfloat16 = 12,
};

/* The bits of half-precision numbers, which C++17 has no types for. */
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

/* The element type that arrays of T have. */
template <class T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<float> { static constexpr DType value = DType::float32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::float64; };
template <> struct DTypeOf<Float16> { static constexpr DType value = DType::float16; };
template <> struct DTypeOf<BFloat16> { static constexpr DType value = DType::bfloat16; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::boolean; };
template <> struct DTypeOf<std::int8_t> { static constexpr DType value = DType::int8; };
template <> struct DTypeOf<std::int16_t> { static constexpr DType value = DType::int16; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::int32; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::int64; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::uint8; };
template <> struct DTypeOf<std::uint16_t> { static constexpr DType value = DType::uint16; };
template <> struct DTypeOf<std::uint32_t> { static constexpr DType value = DType::uint32; };
template <> struct DTypeOf<std::uint64_t> { static constexpr DType value = DType::uint64; };
// clang-format on

/* The name of an element type. */
inline const char *name(DType dtype) {
  static const char *const names[] = {"float32", "float64", "float16", "uint8",  "int32",  "int8",    "int64",
                                      "bool",    "int16",   "uint16",  "uint32", "uint64", "bfloat16"};
  const auto code = static_cast<std::size_t>(dtype);
  return code < sizeof names / sizeof *names ? names[code] : "unknown";
}

namespace detail {

/* DLManagedTensor of DLPack, for memory of the caller. */
struct Borrowed {
  void *data;
  std::int32_t device_type, device_id, ndim;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
  void *owner;
  void (*deleter)(Borrowed *);
};

/* DLPack's number for a kind of elements. */
inline std::uint8_t dlpack_code(DType dtype) {
  switch (dtype) {
    case DType::float16:
    case DType::float32:
    case DType::float64: return 2;
    case DType::bfloat16: return 4;
    case DType::boolean: return 6;
    case DType::uint8:
    case DType::uint16:
    case DType::uint32:
    case DType::uint64: return 1;
    default: return 0;
  }
}

}  // namespace detail

/* Where arrays live. */
struct Context {
  int type = 1;
  int id = 0;
};
inline Context cpu(int id = 0) { return Context{1, id}; }

template <class T>
class View;

/* An array. A copy is another handle of the same array. */
class Array {
 public:
  /* No array: giving it to a call is a ValueError. */
  Array() = default;

  /* An array with a copy of the elements at data, row-major. */
  template <class T>
  Array(const T *data, const Shape &shape, Context context = cpu()) {
    make(data, sizeof(T) * count(shape), shape, DTypeOf<T>::value, context);
  }

  /* An array with a copy of a vector, which must have as many elements as the shape. */
  template <class T>
  Array(const std::vector<T> &data, const Shape &shape, Context context = cpu()) {
    make(data.data(), sizeof(T) * data.size(), shape, DTypeOf<T>::value, context);
  }

  /* An array in memory of the caller: row-major elements, which operators may write. It keeps owner
   * until no thread uses the array any more. */
  template <class T>
  static Array borrow(T *data, const Shape &shape, std::shared_ptr<const void> owner) {
    using Owner = std::shared_ptr<const void>;
    Array array = empty();
    count(shape);
    Shape extents = shape;
    auto kept = std::make_unique<Owner>(std::move(owner));
    detail::Borrowed tensor{};
    tensor.data = data;
    tensor.device_type = 1;
    tensor.ndim = static_cast<std::int32_t>(shape.size());
    tensor.code = detail::dlpack_code(DTypeOf<T>::value);
    tensor.bits = 8 * sizeof(T);
    tensor.lanes = 1;
    tensor.shape = extents.data();
    tensor.owner = kept.get();
    tensor.deleter = [](detail::Borrowed *done) { delete static_cast<Owner *>(done->owner); };
    detail::check(MXNDArrayFromDLPackEx(&tensor, true, &array.handle_->raw));
    static_cast<void>(kept.release());
    return array;
  }

  Shape shape() const {
    int rank = 0;
    const std::int64_t *extents = nullptr;
    detail::check(MXNDArrayGetShapeEx64(handle(), &rank, &extents));
    return Shape(extents, extents + rank);
  }

  DType dtype() const {
    int code = 0;
    detail::check(MXNDArrayGetDType(handle(), &code));
    return static_cast<DType>(code);
  }

  /* Number of elements. */
  std::size_t size() const { return count(shape()); }

  /* Waits for the value, which is read in place. The view keeps the array. */
  template <class T>
  View<T> view() const;

  /* Waits for the value and copies it. */
  template <class T>
  std::vector<T> to_vector() const;

  /* Waits for the value; throws the failure that took its place. */
  void wait() const { detail::check(MXNDArrayWaitToRead(handle())); }

  /* Whether waiting would return at once. */
  bool ready() const {
    int ready = 0;
    detail::check(MXRTNDArrayIsReady(handle(), &ready));
    return ready != 0;
  }

  /* A call that should compute the array and has not started does not run, unless another of its
   * results is wanted. Reading the array then throws a CancelledError. */
  void cancel() const { detail::check(MXRTNDArrayCancel(handle())); }

  /* For functions of the C interface. It belongs to the array. */
  NDArrayHandle handle() const noexcept { return handle_ ? handle_->raw : nullptr; }

  /* An array from the C interface, which belongs to the Array from now on. */
  static Array adopt(NDArrayHandle raw) {
    Array array = empty();
    array.handle_->raw = raw;
    return array;
  }

 private:
  friend class SymbolBlock;
  friend class Cancellation;
  friend Array imdecode(const void *, std::size_t, bool, bool);
  friend std::vector<Array> invoke(const std::string &, const std::vector<Array> &,
                                   const std::vector<std::pair<std::string, std::string>> &);

  /* The place for a handle. */
  static Array empty() {
    Array array;
    array.handle_ = std::make_shared<detail::Handle>(&MXNDArrayFree);
    return array;
  }

  static std::size_t count(const Shape &shape) {
    std::size_t product = 1;
    for (std::int64_t extent : shape) {
      if (extent < 0) throw ValueError("value", "a shape has the extent " + std::to_string(extent));
      const auto more = static_cast<std::size_t>(extent);
      if (more != 0 && product > PTRDIFF_MAX / more) throw ValueError("value", "a shape has too many elements");
      product *= more;
    }
    return product;
  }

  void make(const void *data, std::size_t bytes, const Shape &shape, DType dtype, Context context) {
    *this = empty();
    detail::check(MXRTNDArrayFromData(data, bytes, shape.data(), static_cast<int>(shape.size()), context.type,
                                      context.id, static_cast<int>(dtype), &handle_->raw));
  }

  detail::SharedHandle handle_;
};

/* The elements of an array, row-major. They stay while the view does. */
template <class T>
class View {
 public:
  using value_type = T;

  const T *data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const T *begin() const noexcept { return data_; }
  const T *end() const noexcept { return data_ + size_; }
  const T &operator[](std::size_t index) const noexcept { return data_[index]; }
  const Shape &shape() const noexcept { return shape_; }

 private:
  friend class Array;
  explicit View(Array array) : array_(std::move(array)), shape_(array_.shape()), size_(array_.size()) {
    const DType dtype = array_.dtype();
    if (dtype != DTypeOf<T>::value)
      throw TypeError("type", std::string("the elements are ") + name(dtype) + ", but " + name(DTypeOf<T>::value) +
                                  " was asked for");
    void *data = nullptr;
    detail::check(MXNDArrayGetData(array_.handle(), &data));
    data_ = static_cast<const T *>(data);
  }

  Array array_;
  Shape shape_;
  std::size_t size_;
  const T *data_ = nullptr;
};

template <class T>
View<T> Array::view() const {
  return View<T>(*this);
}

template <class T>
std::vector<T> Array::to_vector() const {
  const View<T> elements = view<T>();
  return std::vector<T>(elements.begin(), elements.end());
}

/* The pixels of a JPEG or PNG file: (height, width, channels) of uint8. */
inline Array imdecode(const void *data, std::size_t size, bool colour = true, bool rgb = true) {
  Array image = Array::empty();
  detail::check(MXRTImageDecode(data, size, colour, rgb, &image.handle_->raw));
  return image;
}

/* Runs an operator by its name in MXNet, such as invoke("relu", {x}) or
 * invoke("Reshape", {x}, {{"shape", "(0, -1)"}}). */
inline std::vector<Array> invoke(const std::string &op, const std::vector<Array> &inputs,
                                 const std::vector<std::pair<std::string, std::string>> &attrs = {}) {
  std::vector<NDArrayHandle> handles;
  for (const Array &array : inputs) handles.push_back(array.handle());
  std::vector<const char *> keys, values;
  for (const auto &[key, value] : attrs) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  OpHandle creator = nullptr;
  detail::check(NNGetOpHandle(op.c_str(), &creator));
  int number = 0;
  NDArrayHandle *made = nullptr;
  detail::check(MXImperativeInvoke(creator, static_cast<int>(handles.size()), handles.data(), &number, &made,
                                   static_cast<int>(keys.size()), keys.data(), values.data()));
  std::vector<Array> outputs;
  for (int i = 0; i < number; ++i) outputs.push_back(Array::adopt(made[i]));
  return outputs;
}

/* Waits for all pending work; throws a failure that no wait has thrown yet. */
inline void wait_all() { detail::check(MXNDArrayWaitAll()); }

/* The version of the library. */
inline std::string version() { return MXRTGetVersion(); }

}  // namespace mxrt

#endif /* MXRT_ARRAY_HPP_ */
