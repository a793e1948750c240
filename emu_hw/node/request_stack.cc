// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/request_stack.h"

#include <utility>

namespace ub::emu {

RequestStack::RequestStack(const Parameters& p, EmulatedHost& here, const Peers& peers)
    : here_(here),
      peers_(peers.hosts),
      requests_(here.node),
      loses_frames_(p.loss == Loss::kLink),
      completion_(here.node.kernel(), "a completion of node " + std::to_string(here.node.number)) {
  if (!loses_frames_) return;
  UB_ASSERT(peers_.size() == 1);
  here.node.give_late_trains_to(this);
  peers_.front()->node.give_late_trains_to(this);
}

Task RequestStack::there_and_back(Operation& op, uint32_t queue) {
  return loses_frames_ ? until_complete(op, queue) : with_its_trains(op, queue);
}

Task RequestStack::with_its_trains(Operation& op, uint32_t queue) {
  Node& target = there(op).node;
  Train request = here_.node.hand_over(queue);
  requests_.expect_sent(op, request);
  Task way = go_there(op, request);
  co_await way;
  Train answer = target.deliver(request);
  if (op.verb == Verb::kSend) {
    Task told = tell_receiver(op);
    co_await told;
  }
  if (answer.empty()) {
    if (!target.has_answer()) co_await target.wait_for_answer(op);
    answer = target.take_answer(op);
  }
  Task way_back = go_back(op, answer);
  co_await way_back;
  here_.node.finish(answer);
}

// ---- on a link that loses frames ----------------------------------------------------------------------------------

Task RequestStack::until_complete(Operation& op, uint32_t queue) {
  latest_.emplace(op);
  start(here_.node, op, here_.node.hand_over(queue));
  if (!requests_.is_complete(op)) co_await completion_.wait(op);
  op.ledger = latest_->ledger;
  op.ledger.charge({"core", here_.node.number}, here_.node.kernel().now());
}

// What a Core sends because time passed, or for a frame of no operation.
void RequestStack::come(Node& from, Train train) {
  if (!latest_) return;  // there was no request yet
  Operation op = *latest_;
  op.ledger.charge({"core", from.number}, from.kernel().now());
  start(from, op, std::move(train));
  look_for_completion();
}

void RequestStack::start(Node& from, const Operation& op, Train train) {
  if (train.empty()) return;
  Operation part = op;
  part.train_bytes = static_cast<uint32_t>(train.size()) * kMtu;
  const bool goes_there = &from == &here_.node;
  spawn(from.kernel(), goes_there ? carry_there(part, std::move(train)) : carry_back(part, std::move(train)));
}

Task RequestStack::carry_there(Operation op, Train train) {
  Task way = go_there(op, train);
  co_await way;
  EmulatedHost& target = there(op);
  Train answer = target.node.deliver(train);
  arrived(op);
  if (op.verb == Verb::kSend && target.service.receivers.has_message()) {
    Task told = tell_receiver(op);
    co_await told;
  }
  start(target.node, op, std::move(answer));
}

Task RequestStack::carry_back(Operation op, Train train) {
  Task way = go_back(op, train);
  co_await way;
  Train more = here_.node.deliver(train);
  arrived(op);
  start(here_.node, op, std::move(more));
  look_for_completion();
}

// A train of a former operation may still be under way.
void RequestStack::arrived(const Operation& op) {
  if (op.number == latest_->number) latest_->ledger = op.ledger;
}

void RequestStack::look_for_completion() {
  if (!completion_.empty() && requests_.is_complete(*latest_)) completion_.let_in_next();
}

}  // namespace ub::emu
