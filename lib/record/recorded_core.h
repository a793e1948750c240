// SPDX-License-Identifier: Apache-2.0
//
// The calls that every turn of a Core has, which do not say themselves that they are made. Whoever drives a Core that
// is recorded makes them here instead, with the same arguments and results.
//
// Thread: the owner of the Core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/record/recorder.h"
#include "lib/transport/core.h"

namespace ub::record {

// The fields of events, one after the other.
inline Digest digest_of(std::span<const Event> events) {
  Digest digest;
  for (const Event& e : events) {
    digest.add(static_cast<uint64_t>(e.kind) << 32 | uint64_t{e.owner} << 16 | uint64_t{e.reason} << 8 | e.version);
    digest.add(e.object);
    digest.add(std::as_bytes(std::span(&e.peer, 1)));
  }
  return digest;
}

template <class CoreType>
class RecordedCore {
 public:
  RecordedCore(CoreType& core, Recorder& recorder) : core_(core), recorder_(recorder) {}

  // Around a turn, and before applications are told of events.
  void begin_turn(Instant now, Recorder::Look look = Recorder::Look::kAll) {
    recorder_.begin_turn(look);
    for (const uint32_t id : recorder_.take_unflushed()) core_.set_state(now, id, QueueState::kError);
  }
  void end_turn() { recorder_.end_turn(); }

  void on_packet(Instant now, uint32_t link, std::span<const std::byte> frame) {
    recorder_.begin_frame(Call::kOnPacket, now, link, frame);
    core_.on_packet(now, link, frame);
    recorder_.end_call();
  }
  void on_lane_frame(Instant now, uint32_t link, std::span<const std::byte> frame) {
    recorder_.begin_frame(Call::kOnLaneFrame, now, link, frame);
    core_.on_lane_frame(now, link, frame);
    recorder_.end_call();
  }
  void on_posted(Instant now, uint32_t id) { core_.on_posted(now, id); }  // which says so itself
  size_t send_posted(Instant now, uint32_t id, size_t budget, Acks acks) {
    on_posted(now, id);
    return poll_packets(now, budget, acks);
  }
  void on_timer(Instant now) {
    recorder_.begin_turn_call(Call::kOnTimer, now);
    core_.on_timer(now);
    recorder_.end_call();
  }
  // A poll that finds nothing changes nothing, and is not written.
  size_t poll_packets(Instant now, size_t budget, Acks acks = Acks::kNow) {
    if (core_.is_at_rest()) return 0;
    recorder_.begin_turn_call(Call::kPollPackets, now, budget, static_cast<uint64_t>(acks));
    const size_t sent = core_.poll_packets(now, budget, acks);
    recorder_.end_call();  // what was sent, it has
    return sent;
  }
  size_t poll_events(std::span<Event> out) {
    if (!core_.has_events()) return 0;
    recorder_.tell();
    recorder_.begin_turn_call(Call::kPollEvents, core_.state().now, out.size());
    const size_t events = core_.poll_events(out);
    const uint32_t digest = digest_of(out.first(events)).sum();
    recorder_.end({CallLog::Bytes(std::as_bytes(std::span(&digest, 1)))});
    return events;
  }

  Instant next_deadline(Acks acks = Acks::kNow) const { return core_.next_deadline(acks); }
  bool has_packets(Acks acks = Acks::kNow) const { return core_.has_packets(acks); }

 private:
  CoreType& core_;
  Recorder& recorder_;
};

// A turn, to the end of the scope.
template <class Recorded>
class RecordedTurn {
 public:
  RecordedTurn(Recorded& recorded, Instant now, Recorder::Look look) : recorded_(recorded) {
    recorded_.begin_turn(now, look);
  }
  ~RecordedTurn() { recorded_.end_turn(); }
  RecordedTurn(const RecordedTurn&) = delete;
  RecordedTurn& operator=(const RecordedTurn&) = delete;

 private:
  Recorded& recorded_;
};

}  // namespace ub::record
