// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/coherent/home.h"

#include <algorithm>

namespace ub::emu {

Home::Home(Kernel& kernel, const Parameters& p)
    : kernel_(kernel), p_(p), timing_{kernel, p}, l3_(p.l3_lines, kWays) {}

Task Home::serve(Request& request) {
  Line& line = lines_[request.line];
  if (line.is_busy) {
    if (line.queue == nullptr) line.queue = std::make_unique<WaitList>(kernel_, "a line");
    co_await line.queue->wait(request.from);
  }
  line.is_busy = true;
  co_await look_up();
  const bool is_known = has(line, request.from);
  const bool another_writes = line.may_write && !is_known;
  if (request.access != Access::kRead || another_writes) {
    Task asking = ask_others(line, request, request.access == Access::kRead ? Right::kRead : Right::kNone);
    co_await asking;
  }
  if (request.access == Access::kWholeLine || another_writes) {  // the content came with a message
    l3_.insert(request.line, Right::kRead);
  } else if (!is_known) {
    Task fetching = fetch(request.line);
    co_await fetching;
  }
  grant(line, request);
}

bool Home::has(const Line& line, const Holder& holder) {
  return std::find(line.holders.begin(), line.holders.end(), &holder) != line.holders.end();
}

// Who alone has a line may write it.
void Home::grant(Line& line, Request& request) {
  if (request.access != Access::kRead) line.holders.clear();
  if (request.access != Access::kWholeLine) {
    if (!has(line, request.from)) line.holders.push_back(&request.from);
    request.granted = line.holders.size() == 1 ? Right::kWrite : Right::kRead;
  }
  line.may_write = request.granted == Right::kWrite;
}

void Home::done(uint64_t number) {
  Line& line = lines_[number];
  if (line.queue != nullptr && !line.queue->empty()) {
    line.queue->let_in_next();
  } else {
    line.is_busy = false;
  }
}

void Home::take_back(const Holder& from, uint64_t number) {
  Line& line = lines_[number];
  std::erase(line.holders, &from);
  line.may_write = false;
  l3_.insert(number, Right::kRead);
}

// From the last cache, or from memory.
Task Home::fetch(uint64_t line) {
  if (l3_.touch(line) != Right::kNone) {
    co_await timing_.cycles(p_.l3_data_cycles);
    co_return;
  }
  co_await timing_.link();
  co_await timing_.memory();
  co_await timing_.link();
  l3_.insert(line, Right::kRead);
}

// No other one keeps more than `right`.
Task Home::ask_others(Line& line, const Request& request, Right right) {
  std::vector<Holder*> others = line.holders;
  std::erase(others, &request.from);
  if (others.empty()) co_return;
  Answers answers{others.size(), {kernel_, "the answers of caches"}};
  for (Holder* other : others) spawn(kernel_, ask(*other, request.line, right, answers));
  co_await answers.all.wait(request.from);
}

// To the second cache of a core, to the first one, and back.
Task Home::ask(Holder& holder, uint64_t line, Right right, Answers& answers) {
  co_await timing_.link();
  co_await timing_.cycles(p_.core_l2_tag_cycles);
  co_await timing_.link();
  co_await timing_.cycles(p_.core_l1_cycles);
  holder.restrict_to(line, right);
  co_await timing_.link();
  co_await timing_.link();
  co_await look_up();
  if (--answers.missing == 0) answers.all.let_in_next();
}

Delay Home::look_up() {
  const Time begin = std::max(free_, kernel_.now());
  free_ = after(begin, CoherentTiming::kClock.cycles(p_.home_tag_cycles), "coherent.directory");
  return delay(kernel_, free_ - kernel_.now(), "coherent.directory");
}

}  // namespace ub::emu
