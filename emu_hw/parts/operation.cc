// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/parts/operation.h"

namespace ub::emu {

std::string_view name_of(Verb verb) {
  switch (verb) {
    case Verb::kLoad: return "LOAD";
    case Verb::kStore: return "STORE";
    case Verb::kRead: return "READ";
    case Verb::kWrite: return "WRITE";
    case Verb::kSend: return "SEND";
    case Verb::kFetchAdd: return "FAA";
    case Verb::kCompareSwap: return "CAS";
  }
  return "?";
}

}  // namespace ub::emu
