/* Errors of mxrt as exceptions. Included by mxrt.hpp. */
#ifndef MXRT_ERROR_HPP_
#define MXRT_ERROR_HPP_

#include <mxrt.h>

#include <cstring>
#include <stdexcept>
#include <string>

namespace mxrt {

/* What went wrong. what() names the operator, the node and the shapes, and ends with the code of the
 * kind, such as [MX-SHAPE]. */
class Error : public std::runtime_error {
 public:
  Error(const char *kind, const std::string &message) : std::runtime_error(message), kind_(kind) {}
  /* The kind by name, such as "shape". */
  const char *kind() const noexcept { return kind_; }

 private:
  const char *kind_;
};

/* An argument has a value that is not allowed. */
struct ValueError : Error {
  using Error::Error;
};
/* Shapes do not fit. */
struct ShapeError : ValueError {
  using ValueError::ValueError;
};
/* A file is damaged or truncated, or cannot be read. */
struct DataError : ValueError {
  using ValueError::ValueError;
};
/* A file, or the folder it is in, is not there. */
struct FileNotFoundError : DataError {
  using DataError::DataError;
};
/* Element types do not fit. */
struct TypeError : Error {
  using Error::Error;
};
/* An index is out of range. */
struct IndexError : Error {
  using Error::Error;
};
/* mxrt does not have it. */
struct NotImplementedError : Error {
  using Error::Error;
};
/* It belongs to training. */
struct TrainingError : NotImplementedError {
  using NotImplementedError::NotImplementedError;
};
/* No memory, or more than the limit allows. */
struct MemoryError : Error {
  using Error::Error;
};
/* The deadline of a call passed before it started. */
struct TimeoutError : Error {
  using Error::Error;
};
/* The call was cancelled. */
struct CancelledError : Error {
  using Error::Error;
};
/* The library is shutting down. */
struct ShutdownError : Error {
  using Error::Error;
};
/* A device reported an error. */
struct DeviceError : Error {
  using Error::Error;
};
/* A fault of mxrt, or of a function that was pushed. */
struct InternalError : Error {
  using Error::Error;
};

namespace detail {

template <class Kind>
[[noreturn]] void raise(const char *kind, const std::string &message) {
  throw Kind(kind, message);
}

struct KindRow {
  const char *name;
  void (*raise)(const char *, const std::string &);
};

/* Every kind of error and its exception. */
inline const KindRow kinds[] = {
    {"operator", raise<Error>},
    {"value", raise<ValueError>},
    {"type", raise<TypeError>},
    {"shape", raise<ShapeError>},
    {"index", raise<IndexError>},
    {"not_implemented", raise<NotImplementedError>},
    {"training", raise<TrainingError>},
    {"memory", raise<MemoryError>},
    {"panic", raise<InternalError>},
    {"not_completed", raise<InternalError>},
    {"shutdown", raise<ShutdownError>},
    {"deadline", raise<TimeoutError>},
    {"cancelled", raise<CancelledError>},
    {"data", raise<DataError>},
    {"file_not_found", raise<FileNotFoundError>},
    {"device", raise<DeviceError>},
};

[[noreturn]] inline void throw_error(const char *kind, const std::string &message) {
  for (const KindRow &row : kinds)
    if (std::strcmp(row.name, kind) == 0) row.raise(row.name, message);
  throw Error("operator", message);
}

/* Throws the last error of this thread if a function of the library says that there is one. */
inline void check(int code) {
  if (code == 0) return;
  const char *kind = "", *message = "";
  MXRTGetLastError(&kind, &message);
  throw_error(kind, message);
}

}  // namespace detail

}  // namespace mxrt

#endif /* MXRT_ERROR_HPP_ */
