// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_lane.h"

#include <algorithm>
#include <utility>

#include "lib/transport/wire/bypass_packet.h"
#include "tests/sim/world.h"

namespace ub::sim {

SimLane::SimLane(World& world, ApertureModel& model, Node& server)
    : world_(world), model_(model), server_(server), epoch_(server.epoch()), link_(server.add_lane()) {}

bool SimLane::served_by(const Node& n) const { return !noticed_ && &n == &server_ && n.up() && n.epoch() == epoch_; }

// ---- the program -------------------------------------------------------------------------------------------------

bool SimLane::has_room(const Access& a) const {
  const Ring& ring = ring_of(a);
  if (&ring != last_ && stores_unanswered_ != 0) return false;
  return ring.unanswered.size() < ring.slots;
}

void SimLane::call(std::shared_ptr<Access> access, std::vector<std::byte> frame) {
  Ring& ring = ring_of(*access);
  ++ring.next;
  last_ = &ring;
  if (!access->is_load()) ++stores_unanswered_;
  ring.unanswered.push_back(access);
  ring.requests.push_back({std::move(access), std::move(frame)});
}

uint64_t SimLane::oldest_call_ns() const {
  uint64_t oldest = UINT64_MAX;
  for (const Ring* ring : {&small_, &large_})
    if (!ring->unanswered.empty()) oldest = std::min(oldest, ring->unanswered.front()->issued_ns);
  return oldest;
}

uint32_t SimLane::unanswered() const {
  return static_cast<uint32_t>(small_.unanswered.size() + large_.unanswered.size());
}

void SimLane::look() {
  look(small_);
  look(large_);
}

void SimLane::look(Ring& ring) {
  while (!ring.answers.empty() && !world_.failed()) {
    const std::vector<std::byte> frame = std::move(ring.answers.front());
    ring.answers.pop_front();
    const std::shared_ptr<Access> access = std::move(ring.unanswered.front());
    ring.unanswered.pop_front();
    if (!access->is_load()) --stores_unanswered_;
    read(*access, ring.oldest++, frame);
  }
}

void SimLane::read(Access& access, uint16_t number, std::span<const std::byte> frame) {
  wire::BypassPacket p;
  if (wire::parse_bypass(frame, p) != wire::Drop::kNone || !p.is_response)
    return world_.model.fail("a lane holds an answer that is none");
  if (p.tassn.value() != number)
    return world_.model.fail("a lane holds answer %u in the slot of %u", p.tassn.value(), number);
  const bool ok = p.status == wire::AtahCompact::kOk;
  if (ok && (p.opcode == wire::TaOpcode::kReadResponse) != access.is_load())
    return world_.model.fail("a lane answers a load as a store, or a store as a load");
  model_.answered(access, ok, {p.payload, p.payload_len});
}

void SimLane::hang_up() {
  if (std::exchange(hung_up_, true)) return;
  const uint64_t for_ns = served_by(server_) ? UINT64_MAX / 2 : 0;
  for (Ring* ring : {&small_, &large_}) {
    for (const auto& access : ring->unanswered) model_.given_up(*access, for_ns);
    ring->unanswered.clear();
    ring->answers.clear();
  }
}

// ---- the NIC -----------------------------------------------------------------------------------------------------

void SimLane::serve(uint32_t most) {
  serve(small_, most);
  serve(large_, most);
}

void SimLane::serve(Ring& ring, uint32_t most) {
  busy_ = &ring;
  for (; most != 0 && !ring.requests.empty() && served_by(server_) && !world_.failed(); --most) {
    const Request request = std::move(ring.requests.front());
    ring.requests.pop_front();
    const size_t answered = ring.answers.size();
    model_.arrives(request.access.get());
    server_.on_lane_frame(link_, request.frame);
    model_.arrives(nullptr);
    if (!hung_up_ && ring.answers.size() != answered + 1)
      return world_.model.fail("a request of a lane has %zu answers", ring.answers.size() - answered);
  }
  busy_ = nullptr;
}

std::byte* SimLane::tx_begin(size_t bytes) {
  if (busy_ == nullptr) {
    world_.model.fail("a lane is answered that nobody serves");
    return nullptr;
  }
  answer_.resize(bytes);
  return answer_.data();
}

void SimLane::tx_commit(size_t bytes) {
  answer_.resize(bytes);
  if (!hung_up_) busy_->answers.push_back(std::move(answer_));
}

void SimLane::notice_hang_up() {
  if (served_by(server_)) server_.drop_lane(link_);
  noticed_ = true;
  small_.requests.clear();
  large_.requests.clear();
}

}  // namespace ub::sim
