// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/stack.h"

#include "emu_hw/node/ldst_stack.h"
#include "emu_hw/node/roce_stack.h"
#include "emu_hw/node/swap_stack.h"
#include "emu_hw/node/urma_stack.h"

namespace ub::emu {
namespace {

bool is_load_or_store(const Operation& op) { return op.verb == Verb::kLoad || op.verb == Verb::kStore; }

// A node of loads and stores, which has work requests as well.
class UbStack final : public Stack {
 public:
  UbStack(const Parameters& p, EmulatedHost& here, const Peers& peers)
      : loads_(p, here, peers), requests_(p, here, peers) {}
  void open() override { loads_.open(); }
  Task run(Operation& op) override { return is_load_or_store(op) ? loads_.run(op) : requests_.run(op); }

 private:
  LdstStack loads_;
  UrmaStack requests_;
};

}  // namespace

std::unique_ptr<Stack> make_stack(std::string_view name, const Parameters& p, EmulatedHost& here, const Peers& peers) {
  if (name == "ldst") return std::make_unique<UbStack>(p, here, peers);
  if (name == "urma") return std::make_unique<UrmaStack>(p, here, peers);
  if (name == "roce") return std::make_unique<RoceStack>(p, here, peers);
  if (name == "swap" && peers.hosts.size() == 1) return std::make_unique<SwapStack>(p, here, *peers.hosts.front());
  return nullptr;
}

bool has_loads(std::string_view name) { return name == "ldst" || name == "swap"; }

}  // namespace ub::emu
