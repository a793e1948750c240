// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/kernel/wait_list.h"

#include <algorithm>
#include <utility>

#include "emu_hw/kernel/task.h"

namespace ub::emu {

WaitList::WaitList(Kernel& kernel, std::string name) : kernel_(kernel), name_(std::move(name)) {
  kernel_.wait_lists_.push_back(this);
}

WaitList::~WaitList() { std::erase(kernel_.wait_lists_, this); }

void WaitList::append(Waiter* waiter) {
  (last_ != nullptr ? last_->next_ : first_) = waiter;
  last_ = waiter;
  ++size_;
}

const Named& WaitList::let_in_next() {
  Waiter* waiter = first_;
  first_ = waiter->next_;
  if (first_ == nullptr) last_ = nullptr;
  --size_;
  kernel_.push_now(event_of(waiter->handle_));
  return waiter->who_;
}

std::string WaitList::describe() const {
  std::string text;
  for (const Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next_) {
    text += "\n  " + waiter->who_.name() + " waits for " + name_;
    if (holder_ != nullptr) text += ", which " + holder_->name() + " has";
  }
  return text;
}

}  // namespace ub::emu
