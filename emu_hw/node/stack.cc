// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/stack.h"

#include "emu_hw/node/ldst_stack.h"
#include "emu_hw/node/roce_stack.h"
#include "emu_hw/node/swap_stack.h"
#include "emu_hw/node/urma_stack.h"

namespace ub::emu {
namespace {

constexpr size_t kFarMemoryBytes = size_t{1} << 34;  // costs what is touched of it

bool is_load_or_store(const Operation& op) { return op.verb == Verb::kLoad || op.verb == Verb::kStore; }

// A node of loads and stores, which has work requests as well.
class UbStack final : public Stack {
 public:
  UbStack(const Parameters& p, EmulatedHost& here, EmulatedHost& there)
      : loads_(p, here, there, kFarMemoryBytes), requests_(p, here, there) {}
  void open() override { loads_.open(); }
  Task run(Operation& op) override { return is_load_or_store(op) ? loads_.run(op) : requests_.run(op); }

 private:
  LdstStack loads_;
  UrmaStack requests_;
};

}  // namespace

std::unique_ptr<Stack> make_stack(std::string_view name, const Parameters& p, EmulatedHost& here, EmulatedHost& there) {
  if (name == "ldst") return std::make_unique<UbStack>(p, here, there);
  if (name == "urma") return std::make_unique<UrmaStack>(p, here, there);
  if (name == "roce") return std::make_unique<RoceStack>(p, here, there);
  if (name == "swap") return std::make_unique<SwapStack>(p, here, there);
  return nullptr;
}

bool has_loads(std::string_view name) { return name == "ldst" || name == "swap"; }

}  // namespace ub::emu
