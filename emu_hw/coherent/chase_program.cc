// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/coherent/chase_program.h"

#include <numeric>
#include <utility>

#include "emu_hw/coherent/program_start.h"

namespace ub::emu {
namespace {

constexpr uint64_t kNumbersOfLine = 8;

// Lines of the program: those that are chased come first, from 0.
constexpr uint64_t kList = uint64_t{1} << 40;
constexpr uint64_t kFirst = uint64_t{2} << 40;
constexpr uint64_t kStack = uint64_t{3} << 40;

uint64_t line_of_number(uint64_t number) { return kList + number / kNumbersOfLine; }

}  // namespace

ChaseProgram::ChaseProgram(Kernel& kernel, const Parameters& p, CoherentCore& core)
    : p_(p), timing_{kernel, p}, core_(core), random_(p.seed, "program", "shuffle"), order_(p.working_set) {
  std::iota(order_.begin(), order_.end(), 0);
}

Task ChaseProgram::run() {
  Task starting = start();
  co_await starting;
  Task writing = write_lines();
  co_await writing;
  Task filling = fill_list();
  co_await filling;
  Task shuffling = shuffle();
  co_await shuffling;
  Task linking = link_lines();
  co_await linking;
  Task chasing = chase();
  co_await chasing;
}

Task ChaseProgram::start() {
  for (uint64_t i = 0; i < kLinesOfProgram && begin(kStart); ++i) {
    Task going = use(Access::kRead, kFirst + i);
    co_await going;
  }
}

Task ChaseProgram::write_lines() {
  for (uint64_t line = 0; line < order_.size() && begin(kWriteLine); ++line) {
    Task going = use(Access::kWholeLine, line);
    co_await going;
  }
}

Task ChaseProgram::fill_list() {
  for (uint64_t i = 0; i < order_.size() && begin(kFill); ++i) {
    Task going = use(Access::kWrite, line_of_number(i));
    co_await going;
  }
}

Task ChaseProgram::shuffle() {
  for (uint64_t i = order_.size() - 1; i > 0 && begin(kShuffle); --i) {
    const uint64_t other = random_.below(i + 1);
    std::swap(order_[i], order_[other]);
    for (const uint64_t number : {other, i}) {
      Task going = use(Access::kWrite, line_of_number(number));
      co_await going;
    }
  }
}

Task ChaseProgram::link_lines() {
  for (uint64_t i = 0; i < order_.size() && begin(kLink); ++i) {
    Task reading = use(Access::kRead, line_of_number(i));
    co_await reading;
    Task going = use(Access::kWrite, order_[i]);
    co_await going;
  }
}

Task ChaseProgram::chase() {
  for (; begin(kHop); ++hops_) {
    Task going = use(Access::kRead, order_[hops_ % order_.size()]);
    co_await going;
  }
}

// False: the run ends before it.
bool ChaseProgram::begin(const Step& step) {
  constexpr uint64_t kAccessesOfUse = 2;  // of the stack and the line
  if (instructions_ + step.instructions > p_.chase_instructions) return false;
  instructions_ += step.instructions;
  accesses_ += step.accesses;
  hits_ += step.accesses - step.uses * kAccessesOfUse;
  return true;
}

// The stack comes first: it has where the line is.
Task ChaseProgram::use(Access access, uint64_t line) {
  Task of_stack = access_line(Access::kWrite, kStack);
  co_await of_stack;
  Task of_line = access_line(access, line);
  co_await of_line;
}

Task ChaseProgram::access_line(Access access, uint64_t line) {
  if (core_.hits(access, line)) {
    ++hits_;
    co_return;
  }
  co_await timing_.cycles(std::exchange(hits_, 0) * p_.core_l1_cycles);
  Task missing = core_.miss(access, line);
  co_await missing;
}

}  // namespace ub::emu
