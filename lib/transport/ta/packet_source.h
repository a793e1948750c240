// SPDX-License-Identifier: Apache-2.0
//
// Where the bytes of a packet come from: the work request, READ job or answer that its message names.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/giving_up.h"
#include "lib/transport/ta/packet_content.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/scheduler.h"

namespace ub::ta {

// What became of the next packet of a channel.
enum class Sent : uint8_t {
  kYes,
  kNothing,  // there is none that may leave
  kNoRoom,   // the port has no room
  kPending,  // the packets that were built before it wait for memory
  kHeld,     // it was built and waits for memory
};

template <class Host>
class PacketSource {
 public:
  PacketSource(CoreState& s, Host& host) : s_(s), host_(host) {}

  // Is what the message is made from still there? Once gone, it stays gone.
  bool alive(tp::TxMessage& m) {
    if (!m.vanished) m.vanished = !exists(m);
    return !m.vanished;
  }

  // The memory that the message is gathered from is not there, or not any more. Its request or READ ends with an error.
  void vanished(tp::TxMessage& m) {
    if (m.kind == tp::MessageKind::kRequest) {
      uint32_t queue = m.source;
      uint32_t number = m.work_request;
      give_up(s_, queue, number, CrStatus::kLocAccess);
      retire_requests(s_, queue);
      schedule_queue(s_, queue);
    } else {
      abort_job(s_, m.source);
    }
  }

  // Copies the payload of a packet to `dst`. kFailed: its memory is not there.
  CopyResult gather(const Payload& p, const Copies& copies, std::byte* dst) {
    if (p.gone) return CopyResult::kFailed;
    if (p.bytes == 0) return CopyResult::kDone;
    if (p.answer != nullptr) {
      store_operand_be(dst, make_uint128(p.answer->value, p.answer->value_high), p.bytes);
      return CopyResult::kDone;
    }
    if (p.atomic_operands) {
      // Operand 1 is the swap value or operand, operand 2 what is compared; both always travel, little-endian.
      const uint128 operand = operand_of(*p.wqe), compare = compare_of(*p.wqe);
      const uint32_t each = p.bytes / 2;
      std::memcpy(dst, &operand, each);
      std::memcpy(dst + each, &compare, each);
      return CopyResult::kDone;
    }
    if (p.memory != nullptr) return gather_piece(host_, copies, dst, p.memory, p.bytes);
    return gather_request(s_, host_, copies, *p.wqe, p.owner, p.offset, p.bytes, dst);
  }

 private:
  // Is the source of the message still there? A message of kind kFake has no source, so the answer is no.
  bool exists(const tp::TxMessage& m) {
    switch (m.kind) {
      case tp::MessageKind::kRequest:
        return request_of(s_, m) != nullptr;
      case tp::MessageKind::kReadResponse:
        return job_of(s_, m) != nullptr;
      default:
        return m.kind == tp::MessageKind::kAnswer;
    }
  }
  static void store_operand_be(std::byte* dst, uint128 value, uint32_t bytes) {
    switch (bytes) {
      case 16:
        return store_be128(dst, value);
      case 8:
        return store_be64(dst, low_half(value));
      case 4:
        return store_be32(dst, static_cast<uint32_t>(value));
      case 2:
        return store_be16(dst, static_cast<uint16_t>(value));
      default:
        return store_u8(dst, static_cast<uint8_t>(value));
    }
  }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
