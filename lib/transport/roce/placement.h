// SPDX-License-Identifier: Apache-2.0
// placement.h - puts the payload of SENDs and WRITEs where it belongs: into a receive, or where the rkey says. It
// places the packets of one message at a time, in order. The rules of the connection are in executor.h and
// unreliable.h.
//
// Memory may answer later: Qp::copies_pending counts the copies that it has not answered.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/roce/copy_tag.h"
#include "lib/transport/roce/state.h"
#include "lib/transport/ta/payload.h"

namespace ub::roce {

/// What became of a packet. kInvalid: the queue pair does not do what it asks for, or it is longer than the receive.
enum class Verdict : uint8_t { kDone, kNotReady, kInvalid, kAccess, kOperation };

inline constexpr uint32_t kCopiesAhead = 64;  ///< most copies of one queue pair that may be pending

template <class Host>
class Placement {
 public:
  Placement(CoreState& s, State& r, Host& host) : s_(s), r_(r), host_(host) {}

  /// Places a packet of a SEND or WRITE.
  Verdict place(uint32_t index, const Packet& packet) {
    if (packet.has(kShapeFirst)) r_.qps[index].message_bytes = 0;
    return packet.has(kShapeSend) ? place_send(index, packet) : place_write(index, packet);
  }

  /// The memory that the rkey names. Null: the owner has no such memory, or it does not allow this access.
  std::byte* memory(const Qp& qp, uint32_t rkey, uint64_t address, uint64_t bytes, uint8_t access) {
    return remote_memory_of(s_, qp.owner, {token_id_of(rkey), true, key_of(rkey), address, bytes, access});
  }

 private:
  Verdict place_send(uint32_t index, const Packet& packet) {
    Qp& qp = r_.qps[index];
    if (packet.has(kShapeFirst) && !take(qp)) return Verdict::kNotReady;
    RxReceive& receive = s_.receives[qp.receive];
    if (packet.payload_bytes > receive.length - receive.filled) {
      qp.receive_status = CrStatus::kLocLen;
      return Verdict::kInvalid;
    }
    const ta::Copies copies{copy_tag(r_.copy_prefix, {CopyFor::kPlace, index, 0}), qp.copies_pending};
    if (!ta::scatter(s_, host_, copies, receive, packet.payload, packet.payload_bytes, packet.has(kShapeLast))) {
      qp.receive_status = CrStatus::kLocAccess;
      return Verdict::kOperation;
    }
    receive.filled += packet.payload_bytes;
    qp.message_bytes += packet.payload_bytes;
    return Verdict::kDone;
  }

  bool take(Qp& qp) {
    if (s_.jfrs[qp.jfr].state != QueueState::kReady) return false;
    qp.receive = take_receive(s_, qp.jfr, qp.recv_jfc);
    qp.receive_status = CrStatus::kSuccess;
    return qp.receive != 0;
  }

  Verdict place_write(uint32_t index, const Packet& packet) {
    Qp& qp = r_.qps[index];
    if (packet.has(kShapeFirst)) {
      if ((qp.access & kAccessWrite) == 0 || packet.reth.length > kMaxRequestBytes) return Verdict::kInvalid;
      const Reth& whole = packet.reth;
      if (whole.length != 0 && memory(qp, whole.rkey, whole.address, whole.length, kAccessWrite) == nullptr) {
        return Verdict::kAccess;
      }
    }
    if (packet.has(kShapeImm) && !take(qp)) return Verdict::kNotReady;
    qp.message_bytes += packet.payload_bytes;
    if (packet.payload_bytes == 0) return Verdict::kDone;
    const WritePlace place = write_place(qp.resp, packet);
    std::byte* to = memory(qp, place.rkey, place.address, packet.payload_bytes, kAccessWrite);
    if (to == nullptr) return Verdict::kAccess;  // the memory is gone since the first packet
    const ta::Copies copies{copy_tag(r_.copy_prefix, {CopyFor::kPlace, index, 0}), qp.copies_pending};
    const CopyResult result =
        ta::place_piece(host_, copies, to, packet.payload, packet.payload_bytes, packet.has(kShapeLast));
    return result == CopyResult::kFailed ? Verdict::kOperation : Verdict::kDone;
  }

  CoreState& s_;
  State& r_;
  Host& host_;
};

}  // namespace ub::roce
