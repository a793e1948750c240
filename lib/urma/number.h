// SPDX-License-Identifier: Apache-2.0
// number.h - an enumerator as an application wrote it: any number, which C++ must not load as one of the enumeration.
#pragma once

#include <cstdint>
#include <cstring>

namespace ub::urma {

template <class Enum>
uint32_t number_of(const Enum& enumerator) {
  static_assert(sizeof enumerator == sizeof(uint32_t));
  uint32_t number;
  std::memcpy(&number, &enumerator, sizeof number);
  return number;
}

}  // namespace ub::urma
