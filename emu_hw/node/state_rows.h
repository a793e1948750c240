// SPDX-License-Identifier: Apache-2.0
//
// What a Core holds, kind by kind: how many records, and what each of them takes.
#pragma once

#include <bit>
#include <vector>

#include "lib/transport/core_impl.h"

namespace ub::emu {

// What a kind of record grows with.
enum class Per : uint8_t { kCore, kConnection, kJetty, kSegment, kImport, kPeer };

struct StateRow {
  const char* name;
  uint64_t count;
  uint64_t bytes_each;
  Per per = Per::kCore;
  uint64_t bytes() const { return count * bytes_each; }
};

constexpr uint64_t kTimerBytes = 20;  // an entry of the heap and its place in it

// Sizes of a record include its places in the tables beside it. Of RoCE: roce_state_of().
inline std::vector<StateRow> state_of(const CoreState& s) {
  uint64_t window = s.config.window_packets;
  return {
      {"jetty records", s.jettys.in_use(), sizeof(Jetty) + sizeof(IdSlot), Per::kJetty},
      {"send queue records", s.queues.in_use(), sizeof(ub::SendQueue) + kTimerBytes, Per::kJetty},
      {"JFR records", s.jfrs.in_use(), sizeof(Jfr) + sizeof(IdSlot)},
      {"JFC records", s.jfcs.in_use(), sizeof(Jfc)},
      {"segment records", s.segments.in_use(), sizeof(Segment) + sizeof(TokenId), Per::kSegment},
      {"target records (imports)", s.targets.in_use(), sizeof(Target), Per::kImport},
      {"link records", s.links.in_use(), sizeof(LinkRecord)},
      {"peer records", s.peers.in_use(), sizeof(Peer), Per::kPeer},
      {"channels", s.channels.in_use(), sizeof(tp::Channel) + kTimerBytes, Per::kPeer},
      {"message chunks", s.messages.in_use(), sizeof(tp::MessageChunk)},
      {"answer chunks", s.answers.in_use(), sizeof(tp::MessageChunk)},
      {"READ jobs", s.jobs.in_use(), sizeof(ReadJob)},
      {"receives taken", s.receives.in_use(), sizeof(RxReceive)},
      {"held datagrams", s.held_datagrams.places.in_use(), sizeof(HeldFrame)},
      {"datagrams arriving", s.arriving.in_use(), sizeof(ArrivingDatagram)},
      {"reorder blocks", s.reorder.in_use(), window / 8, Per::kPeer},
      {"recovery blocks", s.recovery.in_use(), sizeof(tp::RecoveryBlock), Per::kPeer},
      {"kept packets", s.kept.in_use(), sizeof(tp::KeptPacket) + s.config.max_frame_bytes},
  };
}

// Queue pairs that serve `reads` READs and atomics at a time. Connections of CM: none were made here.
inline std::vector<StateRow> roce_state_of(const roce::State& r, uint32_t reads) {
  const uint64_t qps = r.qps.in_use();
  return {
      {"queue pair records", qps, sizeof(roce::Qp) + sizeof(IdSlot) + kTimerBytes, Per::kConnection},
      {"READ and atomic slots", qps * std::bit_ceil(reads), sizeof(roce::ReadSlot), Per::kConnection},
  };
}

inline uint64_t total(const std::vector<StateRow>& rows) {
  uint64_t sum = 0;
  for (const StateRow& row : rows) sum += row.bytes();
  return sum;
}

inline uint64_t total(const std::vector<StateRow>& rows, Per per) {
  uint64_t sum = 0;
  for (const StateRow& row : rows) sum += row.per == per ? row.bytes() : 0;
  return sum;
}

}  // namespace ub::emu
