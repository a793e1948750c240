// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/request_stack.h"

#include <utility>

namespace ub::emu {

RequestStack::RequestStack(const Parameters& p, EmulatedHost& here, const Peers& peers)
    : here_(here),
      peers_(peers.hosts),
      requests_(here.node),
      trains_travel_alone_(p.loss == Loss::kLink || p.engine == Engine::kPipelined),
      is_pipelined_(p.engine == Engine::kPipelined) {
  if (!trains_travel_alone_) return;
  UB_ASSERT(peers_.size() == 1);
  here.node.give_late_trains_to(this);
  peers_.front()->node.give_late_trains_to(this);
}

Task RequestStack::there_and_back(Operation& op, uint32_t queue, LumpedNic::Pass& engine) {
  return trains_travel_alone_ ? until_complete(op, queue, engine) : with_its_trains(op, queue);
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
  requests_.complete(op);
}

// ---- trains that travel by themselves -----------------------------------------------------------------------------

RequestStack::Pending::Pending(Kernel& kernel, const Operation& handed_over)
    : op(handed_over), completion(kernel, "its completion") {}

Task RequestStack::until_complete(Operation& op, uint32_t queue, LumpedNic::Pass& engine) {
  latest_.emplace(op);
  Pending& pending = pending_.try_emplace(op.number, here_.node.kernel(), op).first->second;
  unsent_.push_back(op.number);
  start_requests(op, here_.node.hand_over(queue));
  if (is_pipelined_) engine.leave();
  if (!requests_.is_complete(op)) co_await pending.completion.wait(op);
  op.ledger = pending.op.ledger;
  op.ledger.charge({"core", here_.node.number}, here_.node.kernel().now());
  std::erase(unsent_, op.number);
  pending_.erase(op.number);
  requests_.complete(op);
  look_for_completion();
}

// What a Core sends because time passed, or for a frame of no operation.
void RequestStack::come(Node& from, Train train) {
  if (!latest_) return;  // there was no request yet
  if (&from == &here_.node) {
    start_requests(*latest_, std::move(train));
  } else {
    start(from, *latest_, std::move(train));
  }
  look_for_completion();
}

// Requests leave in the order in which they were handed over. One that stood at a gate leaves later, with a train that
// another operation caused.
void RequestStack::start_requests(const Operation& cause, Train train) {
  while (!unsent_.empty() && train.size() > 1 && train.size() <= unsent_.size()) {
    const Operation& op = pending_.at(unsent_.front()).op;
    unsent_.pop_front();
    Train first;
    first.push_back(std::move(train.front()));
    train.erase(train.begin());
    start(here_.node, op, std::move(first));
  }
  if (train.empty()) return;
  if (unsent_.empty()) return start(here_.node, cause, std::move(train));
  const uint64_t number = unsent_.front();
  unsent_.pop_front();
  start(here_.node, pending_.at(number).op, std::move(train));
}

void RequestStack::start(Node& from, const Operation& op, Train train) {
  if (train.empty()) return;
  const auto pending = pending_.find(op.number);
  Operation part = pending == pending_.end() ? op : pending->second.op;
  part.ledger.charge({"core", from.number}, from.kernel().now());
  part.train_bytes = static_cast<uint32_t>(train.size()) * kMtu;
  const bool goes_there = &from == &here_.node;
  spawn(from.kernel(), goes_there ? carry_there(part, std::move(train)) : carry_back(part, std::move(train)));
}

Task RequestStack::carry_there(Operation op, Train train) {
  Task way = go_there(op, train);
  co_await way;
  EmulatedHost& target = there(op);
  Train answer = target.node.deliver(train);
  if (op.verb == Verb::kSend && target.service.receivers.has_message()) {
    Task told = tell_receiver(op);
    co_await told;
  }
  arrived(op);
  start(target.node, op, std::move(answer));
}

Task RequestStack::carry_back(Operation op, Train train) {
  Task way = go_back(op, train);
  co_await way;
  Train more = here_.node.deliver(train);
  arrived(op);
  start_requests(op, std::move(more));
  look_for_completion();
}

// A train of a former operation may still be under way.
void RequestStack::arrived(const Operation& op) {
  if (const auto pending = pending_.find(op.number); pending != pending_.end()) pending->second.op.ledger = op.ledger;
}

// Who waits for the oldest completion goes on, and looks for the next one.
void RequestStack::look_for_completion() {
  for (auto& [number, pending] : pending_)
    if (!pending.completion.empty() && requests_.is_complete(pending.op)) return pending.completion.let_in_all();
}

}  // namespace ub::emu
