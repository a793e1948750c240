// SPDX-License-Identifier: Apache-2.0
//
// A way of remote memory, from the program's call to its end: what experiments compare.
#pragma once

#include <memory>
#include <string_view>

#include "emu_hw/kernel/task.h"
#include "emu_hw/parts/operation.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

struct EmulatedHost;
struct Peers;

class Stack {
 public:
  virtual ~Stack() = default;

  // After Node::settle(), before the first operation.
  virtual void open() {}
  // The operation has ended when the task ends. Throws if the Core refused it, or if the stack has no such verb.
  virtual Task run(Operation& op) = 0;
};

// ldst: loads and stores, with work requests for all other verbs; urma: work requests of UB; roce: those of RoCE; swap:
// swapping over RoCE, with one peer. Null: there is no stack of that name. `here` is joined to each of its peers by a
// link with TP bypass.
std::unique_ptr<Stack> make_stack(std::string_view name, const Parameters&, EmulatedHost& here, const Peers&);
// Does a program read by loads there? Else by READ.
bool has_loads(std::string_view name);

}  // namespace ub::emu
