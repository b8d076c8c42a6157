//===- Result.h - A value or the reason why there is none -------*- C++ -*-===//
//
// The return type of every fallible function of the layout and numeric
// libraries. These libraries see neither MLIR nor exceptions, so that passes
// can turn a failure into a diagnostic and the Python binding into a
// ValueError, each with the same words.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_LAYOUT_RESULT_H
#define LOWLP_LAYOUT_RESULT_H

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace lowlp {

/// Why a function has no value to return. The message is lower case, without a
/// final full stop, and says what was found and what is allowed.
struct Error {
  std::string message;
};

/// Either a `T` or an `Error`.
///
/// \code
///   Result<Layout> quotient = divideRight(f, g);
///   if (!quotient)
///     return op.emitOpError(quotient.error());
///   use(*quotient);
/// \endcode
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : storage(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : storage(std::in_place_index<1>, std::move(error)) {}

  /// True when there is a value.
  explicit operator bool() const { return storage.index() == 0; }

  /// The value. Requires: there is one.
  const T &operator*() const & {
    const T *value = std::get_if<0>(&storage);
    assert(value && "a failed result has no value");
    return *value;
  }
  // By value, so that a reference bound to the value of a temporary result
  // does not dangle.
  T operator*() && {
    T *value = std::get_if<0>(&storage);
    assert(value && "a failed result has no value");
    return std::move(*value);
  }
  const T *operator->() const { return &**this; }

  /// The message of the error. Requires: there is no value.
  const std::string &error() const {
    const Error *error = std::get_if<1>(&storage);
    assert(error && "a result with a value has no error");
    return error->message;
  }

private:
  std::variant<T, Error> storage;
};

} // namespace lowlp

#endif // LOWLP_LAYOUT_RESULT_H
