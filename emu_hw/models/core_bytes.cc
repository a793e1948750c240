// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/models/core_bytes.h"

#include <algorithm>

#include "emu_hw/node/emulated_host.h"
#include "emu_hw/node/stack.h"
#include "emu_hw/node/state_rows.h"



namespace ub::emu {
namespace {

constexpr uint32_t kReads = 1;  // that a connection serves at a time

struct Sum {
  uint64_t count = 0, bytes = 0;
};

Sum sum_of(const std::vector<StateRow>& rows, Per per) {
  Sum sum;
  for (const StateRow& row : rows) {
    if (row.per != per) continue;
    sum.count = std::max(sum.count, row.count);
    sum.bytes += row.bytes();
  }
  return sum;
}

// Of one, if there are several.
uint64_t bytes_each(const std::vector<StateRow>& rows, Per per) {
  const Sum sum = sum_of(rows, per);
  UB_ASSERT(sum.count != 0);
  return sum.bytes / sum.count;
}

// Two hosts with one connection of a stack.
struct Connected {
  Connected(const char* name, const Parameters& p)
      : here(kernel, p, kTwoNode, 1), there(kernel, p, kTwoNode, 2) {
    LinkConfig link;
    link.mtu = 4096;
    link.lossless = true;
    Node::join(here.node, there.node, link);
    stack = make_stack(name, p, here, there);
    Node::settle({&here.node, &there.node});
  }
  const CoreState& state() const { return here.node.core.state(); }

  Kernel kernel;
  EmulatedHost here, there;
  std::unique_ptr<Stack> stack;
};

}  // namespace

CoreBytes core_bytes(const Parameters& p) {
  const Connected ub("urma", p), roce("roce", p);
  const std::vector<StateRow> rows = state_of(ub.state());
  const std::vector<StateRow> roce_rows = roce_state_of(*roce.here.node.core.roce_state(), kReads);
  return {bytes_each(rows, Per::kJetty), bytes_each(rows, Per::kSegment), bytes_each(rows, Per::kImport),
          sum_of(rows, Per::kPeer).bytes, bytes_each(roce_rows, Per::kConnection)};
}

}  // namespace ub::emu
