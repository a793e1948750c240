// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/ldst_stack.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace ub::emu {
namespace {

constexpr uint32_t kAnyId = 1;  // a target of loads and stores is an instance
constexpr uint64_t kLineBytes = 64;

bypass::Requester<CoreHost>& requester_of(Node& node) {
  return node.core.engine<bypass::Engine<CoreHost>>().requester();
}

}  // namespace

LdstStack::LdstStack(const Parameters& parameters, EmulatedHost& here, EmulatedHost& there, size_t memory_bytes)
    : cycles_(parameters.nic_cycles_ldst),
      here_(here),
      there_(there),
      cache_(here.site),
      contexts_here_(here.site, ub_contexts(parameters)),
      contexts_there_(there.site, ub_contexts(parameters)),
      loss_(here.site, cycles_, 1),
      remote_(there.node, memory_bytes),
      target_(here.node.add_target(there.node, ObjectKind::kJetty, kAnyId)) {}

void LdstStack::open() {
  bypass::OpenConfig config;
  config.target = target_;
  config.token_id = remote_.registered.token_id;
  const Status status = requester_of(here_.node).open(here_.node.now(), config, &handle_);
  if (status != Status::kOk) throw std::logic_error("no handle of loads and stores: does the link carry TP bypass?");
}

Task LdstStack::run(Operation& op) {
  LumpedNic::Pass pass = co_await here_.nic.enter(op);
  const Cache::Answer answer = cache_.ask(op.place, op.verb);
  co_await cache_.take(op, answer);
  if (answer.is_hit) co_return;
  co_await contexts_here_.touch(op);
  co_await here_.memory.cross_bus(op);
  co_await here_.psn.allocate(op);
  co_await here_.gate.pass_ub(op);
  begin(op);
  Task travel = there_and_back(op);
  co_await travel;
  end(op);
  co_await here_.memory.cross_bus(op);
}

// From the NIC of the initiator to the memory of the target, and back.
Task LdstStack::there_and_back(Operation& op) {
  const Train request = here_.node.send();
  co_await here_.nic.pipe(op, cycles_, op.bytes_there());
  co_await here_.link.wire(op, op.bytes_there());
  co_await loss_.draw(op);
  co_await there_.nic.pipe(op, cycles_, op.bytes_there());
  co_await contexts_there_.touch(op);
  co_await there_.memory.cross_bus(op);
  co_await there_.memory.access(op);
  const Train answer = there_.node.deliver(request);
  co_await there_.nic.pipe(op, cycles_, op.bytes_back());
  co_await there_.link.wire(op, op.bytes_back());
  co_await here_.nic.pipe(op, cycles_, op.bytes_back());
  here_.node.finish(answer);
}

// As many blocks as it takes, of whole lines.
void LdstStack::begin(const Operation& op) {
  bypass::Requester<CoreHost>& requester = requester_of(here_.node);
  const uint64_t first = op.place / kLineBytes * kLineBytes;
  const uint64_t end = (op.place + op.bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  local_.resize(end - first);
  for (uint64_t at = first; at < end;) {
    const uint64_t room = std::min<uint64_t>(end - at, requester.most_bytes(handle_));
    const auto code = static_cast<uint8_t>(std::bit_width(room / kLineBytes) - 1);
    const bypass::Block block{remote_.address() + at, code};
    uint32_t ticket = 0;
    std::byte* bytes = local_.data() + (at - first);
    bypass::StoreRequest store;
    store.block = block;
    store.from = bytes;
    const Status status = op.verb == Verb::kLoad
                              ? requester.load(here_.node.now(), handle_, block, bytes, &ticket)
                              : requester.store(here_.node.now(), handle_, store, &ticket);
    if (status != Status::kOk) throw std::runtime_error(op.name() + " cannot be sent");
    tickets_.push_back(ticket);
    at += block.bytes();
  }
}

void LdstStack::end(const Operation& op) {
  for (const uint32_t ticket : tickets_) {
    const bypass::Outcome outcome = requester_of(here_.node).take(handle_, ticket);
    if (outcome == bypass::Outcome::kPending) throw std::logic_error(op.name() + " is answered, and yet not complete");
    if (outcome != bypass::Outcome::kOk) throw std::runtime_error(op.name() + " was refused");
  }
  tickets_.clear();
}

}  // namespace ub::emu
