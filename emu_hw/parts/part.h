// SPDX-License-Identifier: Apache-2.0
//
// What all parts of a host have: where they are, and how a time of theirs is charged.
#pragma once

#include <cstdint>
#include <string_view>

#include "emu_hw/parts/fidelity.h"
#include "emu_hw/parts/operation.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

// What a part is in. Kernel and parameters outlive it.
struct Site {
  Kernel& kernel;
  const Parameters& parameters;
  const Fidelity fidelity;
  const uint32_t host;  // its number, for the ledger
};

class Part {
 public:
  explicit Part(const Site& site)
      : kernel_(site.kernel), parameters_(site.parameters), fidelity_(site.fidelity), host_(site.host) {}

 protected:
  ~Part() = default;

  // `line`: a literal, the name in the ledger. `span`: before it is cut.
  Charge take(Operation& op, std::string_view line, Span span) const { return wait(op, line, fidelity_.delay(span)); }
  // As take(), of a time that is cut already.
  Charge wait(Operation& op, std::string_view line, Span span) const { return {kernel_, op, {line, host_}, span}; }

  Kernel& kernel_;
  const Parameters& parameters_;
  const Fidelity fidelity_;
  const uint32_t host_;
};

}  // namespace ub::emu
