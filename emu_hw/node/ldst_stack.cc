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

LdstStack::LdstStack(const Parameters& p, EmulatedHost& here, const Peers& peers)
    : cycles_(p.nic_cycles_ldst),
      is_pipelined_(p.engine == Engine::kPipelined),
      here_(here),
      peers_(peers.hosts),
      cache_(here.site),
      contexts_(ub_contexts(here.site)),
      loss_(here.site, cycles_, 1),
      jitter_(here.site),
      fused_ack_(p) {
  for (EmulatedHost* peer : peers_) targets_.push_back(here.node.add_target(peer->node, ObjectKind::kJetty, kAnyId));
}

void LdstStack::open() {
  for (size_t i = 0; i < peers_.size(); ++i) {
    bypass::OpenConfig config;
    config.target = targets_[i];
    config.token_id = peers_[i]->service.memory.registered.token_id;
    const Status status = requester_of(here_.node).open(here_.node.now(), config, &handles_.emplace_back());
    if (status != Status::kOk) throw std::logic_error("no handle of loads and stores: does the link carry TP bypass?");
  }
}

Task LdstStack::run(Operation& op) {
  LumpedNic::Pass pass = co_await here_.nic.enter(op);
  const Cache::Answer answer = cache_.ask(op.place, op.verb);
  co_await cache_.take(op, answer);
  if (answer.is_hit) co_return;
  co_await here_.contexts(contexts_).touch(op);
  co_await here_.memory.cross_bus(op);
  co_await here_.attachment.hand_over(op);
  co_await here_.psn.allocate(op);
  co_await here_.gate.pass_ub(op);
  Blocks blocks;
  begin(op, blocks);
  Task travel = there_and_back(op, here_.node.send());
  if (is_pipelined_) pass.leave();
  co_await travel;
  end(op, blocks);
  co_await here_.attachment.complete(op);
  co_await here_.memory.cross_bus(op);
}

// From the NIC of the initiator to the memory of the target, and back.
Task LdstStack::there_and_back(Operation& op, Train request) {
  EmulatedHost& there = *peers_[op.peer];
  co_await here_.nic.initiate(op);
  co_await here_.nic.pipe(op, cycles_, op.bytes_there());
  co_await here_.link.wire(op, op.bytes_there());
  co_await jitter_.stretch_wire(op, op.bytes_there());
  co_await here_.cross_fabric(op, there, op.bytes_there(), request);
  co_await loss_.draw(op);
  co_await there.nic.pipe(op, cycles_, op.bytes_there());
  co_await there.contexts(contexts_).touch(op);
  co_await there.memory.cross_bus(op);
  co_await jitter_.stretch(op, there.site.parameters.membus);
  co_await there.attachment.reach_memory(op);
  co_await there.memory.access(op);
  Train answer = there.node.deliver(request);
  const uint32_t sent_back = fused_ack_.bytes_sent_back(op);
  co_await there.nic.pipe(op, cycles_, sent_back);
  co_await there.link.wire(op, sent_back);
  co_await jitter_.stretch_wire(op, sent_back);
  co_await there.cross_fabric(op, here_, sent_back, answer);
  co_await here_.nic.pipe(op, cycles_, op.bytes_back());
  here_.node.finish(answer);
}

// As many blocks as it takes, of whole lines.
void LdstStack::begin(const Operation& op, Blocks& blocks) {
  bypass::Requester<CoreHost>& requester = requester_of(here_.node);
  const uint32_t handle = handles_[op.peer];
  const uint64_t first = op.place / kLineBytes * kLineBytes;
  const uint64_t end = (op.place + op.bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  blocks.local.resize(end - first);
  for (uint64_t at = first; at < end;) {
    const uint64_t room = std::min<uint64_t>(end - at, requester.most_bytes(handle));
    const auto code = static_cast<uint8_t>(std::bit_width(room / kLineBytes) - 1);
    const bypass::Block block{peers_[op.peer]->service.memory.address() + at, code};
    uint32_t ticket = 0;
    std::byte* bytes = blocks.local.data() + (at - first);
    bypass::StoreRequest store;
    store.block = block;
    store.from = bytes;
    const Status status = op.verb == Verb::kLoad
                              ? requester.load(here_.node.now(), handle, block, bytes, &ticket)
                              : requester.store(here_.node.now(), handle, store, &ticket);
    if (status != Status::kOk)
      throw std::runtime_error(op.name() + " cannot be sent: 64 blocks may be under way; give a lower in_flight");
    blocks.tickets.push_back(ticket);
    at += block.bytes();
  }
}

void LdstStack::end(const Operation& op, const Blocks& blocks) {
  for (const uint32_t ticket : blocks.tickets) {
    const bypass::Outcome outcome = requester_of(here_.node).take(handles_[op.peer], ticket);
    if (outcome == bypass::Outcome::kPending) throw std::logic_error(op.name() + " is answered, and yet not complete");
    if (outcome != bypass::Outcome::kOk) throw std::runtime_error(op.name() + " was refused");
  }
}

}  // namespace ub::emu
