// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/coherent/core.h"

namespace ub::emu {
namespace {

bool is_enough(Right right, Access access) {
  switch (access) {
    case Access::kRead:
      return right != Right::kNone;
    case Access::kWrite:
      return right == Right::kWrite;
    case Access::kWholeLine:
      return false;
  }
  return false;
}

}  // namespace

CoherentCore::CoherentCore(Kernel& kernel, const Parameters& p, Home& home, uint32_t number)
    : p_(p),
      timing_{kernel, p},
      home_(home),
      number_(number),
      l1_(p.core_l1_lines, kWays),
      l2_(p.core_l2_lines, kWays),
      losses_(kernel, "the loss of a line") {}

bool CoherentCore::hits(Access access, uint64_t line) { return is_enough(l1_.touch(line), access); }

Task CoherentCore::miss(Access access, uint64_t line) {
  const Time begin = timing_.kernel.now();
  ++l1_misses_;
  co_await timing_.cycles(p_.core_l1_cycles);
  co_await timing_.link();
  co_await timing_.cycles(p_.core_l2_tag_cycles);
  if (const Right right = l2_.touch(line); is_enough(right, access)) {
    co_await timing_.cycles(p_.core_l2_data_cycles);
    co_await timing_.link();
    l1_.insert(line, right);
    co_await timing_.link();
  } else {
    ++l2_misses_;
    Task asking = ask_home(access, line);
    co_await asking;
  }
  missed_ += timing_.kernel.now() - begin;
}

Task CoherentCore::ask_home(Access access, uint64_t line) {
  Request request{*this, access, line};
  co_await timing_.link();
  Task serving = home_.serve(request);
  co_await serving;
  co_await timing_.link();
  if (request.granted != Right::kNone) keep_in_l2(line, request.granted);
  co_await timing_.link();
  if (request.granted != Right::kNone) l1_.insert(line, request.granted);
  co_await timing_.link();
  co_await timing_.link();
  home_.done(line);
}

void CoherentCore::keep_in_l2(uint64_t line, Right right) {
  const auto victim = l2_.insert(line, right);
  if (!victim) return;
  l1_.restrict_to(*victim, Right::kNone);
  home_.take_back(*this, *victim);
}

void CoherentCore::restrict_to(uint64_t line, Right right) {
  l1_.restrict_to(line, right);
  l2_.restrict_to(line, right);
  if (right == Right::kNone) losses_.let_in_all();
}

}  // namespace ub::emu
