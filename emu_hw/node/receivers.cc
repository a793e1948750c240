// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/receivers.h"

#include <stdexcept>
#include <string>

namespace ub::emu {

Receivers::Receivers(Node& node)
    : jfc(node, kReceives), jfr(node, jfc, kReceives), node_(node), memory_(node, size_t{kReceives} * kReceiveBytes) {
  for (uint32_t i = 0; i < kReceives; ++i) post(i);
}

void Receivers::take(const Operation& op) {
  const Cqe* completion = jfc.front();
  if (completion == nullptr) throw std::logic_error(op.name() + " came, and nobody received it");
  if (completion->status != CrStatus::kSuccess)
    throw std::runtime_error(op.name() + " was not received, status " +
                             std::to_string(static_cast<int>(completion->status)));
  const uint64_t number = completion->user_ctx;
  jfc.pop();
  post(number);
  node_.completions_read(jfc.id);
}

}  // namespace ub::emu
