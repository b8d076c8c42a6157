//===- CodecNames.h - Names of a codec's parts ------------------*- C++ -*-===//
#ifndef LOWLP_LIB_NUMERIC_CODECNAMES_H
#define LOWLP_LIB_NUMERIC_CODECNAMES_H

#include "lowlp/Numeric/Codec.h"

namespace lowlp {

/// The one of `allowed` with this name; fails with their names.
template <typename T>
Result<T> findName(std::string_view part, std::string_view name,
                   const std::vector<T> &allowed) {
  std::string names;
  for (T one : allowed) {
    if (getName(one) == name)
      return one;
    names += (names.empty() ? "" : ", ") + std::string(getName(one));
  }
  return Error{std::string(part) + ": must be one of " + names + ", got '" +
               std::string(name) + "'"};
}

} // namespace lowlp

#endif // LOWLP_LIB_NUMERIC_CODECNAMES_H
