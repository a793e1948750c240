// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/node.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "lib/impair/packet_kind.h"

namespace ub::emu {
namespace {

constexpr size_t kPollBudget = 64;

// Data of a channel: requests and answers. The rest only keeps channels going.
bool belongs_to_an_operation(const Frame& frame) {
  const impair::Kind kind = impair::kind_of(frame.bytes);
  return kind != impair::Kind::kAck && kind != impair::Kind::kSetup;
}

}  // namespace

CoreConfig plain_config(uint32_t number, uint64_t seed) {
  CoreConfig config;
  config.self = instance_of(number);
  config.incarnation = 0x1000 + number;
  config.seed = seed + number;
  config.lanes = 1;
  config.keepalive_idle = seconds(1'000'000);
  config.compact = false;
  config.roce.max_qps = 2048;
  config.roce.ack_every_message = true;
  return config;
}

Node::Node(Kernel& kernel, uint32_t node_number, const CoreConfig& config, Span wire_delay)
    : number(node_number),
      kernel_(kernel),
      wire_delay_(wire_delay),
      arena_(Core<CoreHost>::arena_bytes(config)),
      late_(kernel, "an answer of node " + std::to_string(node_number)),
      core(config, arena_.data(), host_) {}

// ---- set-up ------------------------------------------------------------------------------------------------------

void Node::join(Node& a, Node& b, const LinkConfig& config) {
  const uint32_t at_a = a.core.add_link(config), at_b = b.core.add_link(config);
  UB_ASSERT(at_a == a.peers_.size() && at_b == b.peers_.size());
  a.peers_.push_back(&b);
  a.links_of_peers_.push_back(at_b);
  b.peers_.push_back(&a);
  b.links_of_peers_.push_back(at_a);
}

bool Node::settle_once() {
  if (core.next_deadline() <= now()) core.on_timer(now());
  while (core.poll_packets(now(), kPollBudget) != 0) {
  }
  const Train frames = host_.take();
  for (const Frame& frame : frames) {
    Node& peer = *peers_[frame.link];
    peer.core.on_packet(now(), links_of_peers_[frame.link], frame.bytes);
  }
  return !frames.empty();
}

void Node::settle(const std::vector<Node*>& nodes) {
  for (bool busy = true; busy;) {
    busy = false;
    for (Node* node : nodes) busy |= node->settle_once();
    for (Node* node : nodes) node->settled_at_ += microseconds(1);
  }
}

uint32_t Node::link_to(const Node& peer) const {
  return static_cast<uint32_t>(std::find(peers_.begin(), peers_.end(), &peer) - peers_.begin());
}

uint32_t Node::add_target(const Node& peer, ObjectKind kind, uint32_t id) {
  TargetConfig config;
  config.instance = instance_of(peer.number);
  config.kind = kind;
  config.id = id;
  config.path = {link_to(peer), endpoint_of(number), endpoint_of(peer.number)};
  uint32_t target = 0;
  UB_ASSERT(core.add_target(now(), config, &target) == Status::kOk);
  return target;
}

// ---- operations --------------------------------------------------------------------------------------------------

Train Node::hand_over(uint32_t jetty) {
  core.on_posted(now(), jetty);
  return send();
}

void Node::finish(const Train& train) {
  if (!deliver(train).empty())
    throw std::logic_error("node " + std::to_string(number) + ": the Core sends the request in several trains");
}

Train Node::deliver(const Train& train) {
  for (const Frame& frame : train) receive(frame);
  kernel_.note_progress();
  return send();
}

Train Node::take_answer(Operation& op) {
  op.ledger.charge({"core", number}, kernel_.now());
  return std::exchange(answer_, {});
}

void Node::completions_read(uint32_t jfc) {
  core.on_completions_read(now(), jfc);
  set_deadline();
}

uint64_t Node::repeated_frames() const {
  const Counters& counters = core.counters();
  return counters[Counter::kTpTxRetransmitFast] + counters[Counter::kTpTxAgainProbe] +
         counters[Counter::kTpTxRetransmitTimeout] + counters[Counter::kRoceTxRetransmit];
}

// The frame names the link by which it comes.
void Node::receive(const Frame& frame) { core.on_packet(now(), frame.link, frame.bytes); }

// Everything that the Core has to send now. Frames of no operation leave by themselves; from now on frames name the
// link by which they come to the peer.
Train Node::send() {
  while (core.poll_packets(now(), kPollBudget) != 0) {
  }
  Train train;
  for (Frame& frame : host_.take()) {
    kernel_.note_progress();
    if (loss_ && loss_->draw()) continue;
    Node* peer = peers_[frame.link];
    frame.link = links_of_peers_[frame.link];
    if (belongs_to_an_operation(frame)) {
      train.push_back(std::move(frame));
      continue;
    }
    send_free(*peer, std::move(frame));
  }
  set_deadline();
  return train;
}

void Node::send_free(Node& to, Frame frame) {
  if (unused_free_frames_.empty()) unused_free_frames_.push_back(&free_frames_.emplace_back());
  FreeFrame* free = unused_free_frames_.back();
  unused_free_frames_.pop_back();
  *free = {{&Node::arrive}, this, &to, std::move(frame)};
  kernel_.push_after(wire_delay_, free, "a frame of no operation");
}

void Node::arrive(emu::Event* free_frame) {
  auto* free = static_cast<FreeFrame*>(free_frame);
  Node& to = *free->to;
  to.kernel_.note_progress();
  to.receive(free->frame);
  free->from->unused_free_frames_.push_back(free);
  to.keep_answer(to.send());
}

void Node::set_deadline() {
  const Instant next = core.next_deadline();
  if (next.is_never()) return kernel_.clear_deadline(deadline_);
  const uint64_t ns = std::max(next.ns, settled_at_.ns) - settled_at_.ns;
  const Time at = std::max(Time{ns * 1000}, kernel_.now());
  if (!deadline_.is_set() || at != deadline_.at()) kernel_.set_deadline(deadline_, at);
}

void Node::on_deadline() {
  core.on_timer(now());
  keep_answer(send());
}

// The Core sends it later than it got the request. Of those who wait one has room for it.
void Node::keep_answer(Train train) {
  if (late_trains_ != nullptr) return late_trains_->come(*this, std::move(train));
  if (train.empty()) return;
  std::move(train.begin(), train.end(), std::back_inserter(answer_));
  if (!late_.empty()) late_.let_in_next();
}

}  // namespace ub::emu
