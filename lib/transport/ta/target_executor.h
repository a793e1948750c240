// SPDX-License-Identifier: Apache-2.0
//
// Executes the packets of requests at their target: it places payload (the copy is in payload.h; packets ahead of a gap
// are placed by packet_receiver.h), runs atomics, starts READ jobs, and queues answers and completions (UB Base
// Specification Rev 2.0, 7.2, 7.3). Because memory may answer later, the last packet of a message goes through phases:
// its payload is placed when all payload before it is placed, then the notification is written, and the answer is
// queued when no copy is pending.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/ta/atomic_function.h"
#include "lib/transport/ta/byte_enables.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/fused_answer.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/ta/receive_matching.h"
#include "lib/transport/tp/fused_ack.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

constexpr uint32_t kCopiesOfMessage = 64;  // most pending copies before further packets have to wait

// A packet of a request, and the progress of its message.
struct RequestPacket {
  uint32_t channel;
  tp::OpenMessage& message;
  Psn start;  // first packet of the message
  const wire::RtpHeader& rtp;
  const wire::TaPacket& ta;
};

// OpenMessage::phase of a request, for its last packet: it arrived, its payload is placed, its notification is written.
enum Phase : uint8_t { kArrived, kPlaced, kNotified };
inline bool is_placed(const tp::OpenMessage& m) { return m.phase != kArrived; }

inline void fail_message(tp::OpenMessage& m, Verdict v) {
  if (m.rspst != 0) return;
  m.rspst = v.rspst;
  m.rspinfo = v.rspinfo;
}

template <class Host>
class TargetExecutor {
 public:
  TargetExecutor(CoreState& s, Host& host) : s_(s), host_(host) {}

  // Executes a packet that is not the last of its message. False: too many copies are pending; the packet has to wait.
  bool execute(const RequestPacket& p) {
    if (p.message.copies >= kCopiesOfMessage) return false;
    begin(p);
    return true;
  }

  // Executes the last packet of a message as far as memory allows. True: the message has ended. False: to be called
  // again when the copies of the message are done, or because its failure has to wait (ROL). The final word of a
  // message becomes visible last, because applications spin on it.
  bool execute_last(const RequestPacket& p) {
    tp::OpenMessage& m = p.message;
    if (m.phase == kArrived) {
      if (m.copies != 0) return false;
      place_last(p);
    }
    if (m.copies != 0) return false;
    if (m.copy_failed) fail_message(m, kAbort);  // its memory went away after the check
    if (p.ta.req.opcode == wire::TaOpcode::kWriteNotify && m.phase == kPlaced && m.rspst == 0) {
      m.phase = kNotified;
      notify(p);
      if (m.copies != 0) return false;
    }
    if (m.rspst != 0) [[unlikely]]
      return finish_failed(p);
    finish(p);
    return true;
  }

  // The first phase of execute_last(): places the payload of the last packet. No copy of the message may be pending. It
  // has to be called again if then is_placed() does not hold; copies are pending in that case.
  void place_last(const RequestPacket& p) {
    p.message.phase = kPlaced;
    begin(p);
  }

  // The last packet of the message cannot be understood: queues an error answer.
  void answer_malformed(const RequestPacket& p) { queue_failure(p, 0, 0); }

  // The memory that a WRITE packet writes to; nullptr: token, bounds, permission or E_bit do not allow it.
  std::byte* written_memory(const wire::TaPacket& ta, uint64_t bytes) {
    return remote_memory(s_, access_of(ta, bytes, kAccessWrite), nullptr);
  }

 private:
  static constexpr Verdict kAbort{wire::kRspError, wire::kErrRemoteAbort};
  static constexpr Verdict kUnsupported{wire::kRspError, wire::kErrUnsupportedRequest};
  // RxReceive::filled of a receive whose message has failed for this reason.
  static constexpr uint32_t kTooLong = UINT32_MAX, kPoisoned = UINT32_MAX - 1;

  // The message failed: queues an error answer. That to a READ says where the response would have been placed. On ROL
  // the acknowledgement says it. False: not yet.
  bool answer_failure(const RequestPacket& p) {
    const tp::OpenMessage& m = p.message;
    if (answered_by_ack(channel_of(p), p.ta.req.opcode)) {
      return fail_by_ack(s_, p.channel, p.rtp, p.ta.req, m.rspst, m.rspinfo);
    }
    const bool says_place = p.ta.has_taid;
    queue_failure(p, says_place ? p.ta.ofst.offset_kib : 0, says_place ? p.ta.taid : 0);
    return true;
  }

  void queue_failure(const RequestPacket& p, uint32_t offset_kib, uint16_t taid) {
    const tp::OpenMessage& m = p.message;
    const wire::Btah& request = p.ta.req;
    if (m.rspst == kSilent) return s_.drop(Counter::kRxTargetNotReady);
    if (request.opcode == wire::TaOpcode::kRead)
      return answer_failed_read(s_, p.channel, request, offset_kib, taid, m.rspst, m.rspinfo);
    answer(s_, p.channel, request, answer_opcode(request.opcode), m.rspst, m.rspinfo);
  }

  // Checks a packet and places its payload.
  void begin(const RequestPacket& p) {
    if (p.message.rspst != 0) return;
    Verdict v = check_and_place(p);
    if (!v.ok()) fail_message(p.message, v);
  }

  Verdict check_and_place(const RequestPacket& p) {
    const uint16_t mtu = channel_of(p).mtu;
    if (p.ta.req.poison) [[unlikely]]
      return refuse_poison(p.message);
    if (p.ta.payload_len > mtu || (!p.rtp.last && p.ta.payload_len != mtu)) return kUnsupported;
    wire::TaOpcode op = p.ta.req.opcode;
    switch (op) {
      case wire::TaOpcode::kWrite:
      case wire::TaOpcode::kWriteNotify:
        return check_write<false>(p);
      case wire::TaOpcode::kWriteImmediate:
        return check_write<true>(p);
      case wire::TaOpcode::kWriteByteEnable:
        return check_byte_enables(p);
      case wire::TaOpcode::kRead:
        return p.rtp.last ? check_read(p) : kUnsupported;
      case wire::TaOpcode::kSend:
      case wire::TaOpcode::kSendImmediate:
      case wire::TaOpcode::kSendInvalidate:
        return check_send(p);
      default:
        return run_atomic(p);  // its payload fits every MTU; what we do not have is kUnsupported there
    }
  }

  // 7.2.1: the bytes are known to be bad. None of them is placed, and the message fails; if it has a receive, that says
  // why.
  Verdict refuse_poison(const tp::OpenMessage& m) {
    s_.count(Counter::kTaRxPoison);
    if (m.receive != 0) s_.receives[m.receive].filled = kPoisoned;
    return kAbort;
  }

  template <bool kImmediate>
  Verdict check_write(const RequestPacket& p) {
    const wire::TaPacket& ta = p.ta;
    // It takes a receive, and a message takes one at most.
    if (kImmediate && !(p.rtp.last && p.rtp.psn == p.start)) return kUnsupported;
    if (p.rtp.last) {
      uint64_t before = uint64_t{p.rtp.psn.distance(p.start)} * channel_of(p).mtu;
      if (before + ta.payload_len != ta.ma.length) return kUnsupported;
    }
    std::byte* memory = nullptr;
    if (ta.payload_len != 0) {
      memory = written_memory(ta, ta.payload_len);
      if (memory == nullptr) return kAbort;
    }
    if constexpr (kImmediate) {
      Verdict v = admit_message(s_, p.channel, p.message, ta);
      if (!v.ok()) return v;
    }
    if (memory != nullptr &&
        place_piece(host_, copies_of(p), memory, ta.payload, ta.payload_len, p.rtp.last) == CopyResult::kFailed) {
      return kAbort;
    }
    return kAccepted;
  }

  // A message of one packet. Its memory is checked again for each part of it that is placed.
  Verdict check_byte_enables(const RequestPacket& p) {
    if (!(p.rtp.last && p.rtp.psn == p.start)) return kUnsupported;
    tp::OpenMessage& m = p.message;
    std::byte* memory = written_memory(p.ta, p.ta.payload_len);
    const CopyResult result = memory == nullptr
                                  ? CopyResult::kFailed
                                  : place_enabled(host_, copies_of(p), memory, p.ta, kCopiesOfMessage, m.written);
    if (result == CopyResult::kPending) {
      m.phase = kArrived;  // there is more to place
    } else {
      m.written = 0;
    }
    return result == CopyResult::kFailed ? kAbort : kAccepted;
  }

  void notify(const RequestPacket& p) {
    const wire::Ntfetah& ntf = p.ta.ntf;
    const RemoteAccess access{ntf.token_id, p.ta.tv,         ntf.token_value,
                              ntf.address,  sizeof ntf.data, rights_of(p.ta, kAccessWrite)};
    std::byte* memory = remote_memory(s_, access, nullptr);
    std::byte word[sizeof ntf.data];
    std::memcpy(word, &ntf.data, sizeof word);
    if (memory == nullptr || place_piece(host_, copies_of(p), memory, word, sizeof word, true) == CopyResult::kFailed) {
      fail_message(p.message, kAbort);
    }
  }

  Verdict check_read(const RequestPacket& p) {
    const wire::TaPacket& ta = p.ta;
    ReadJob job{};
    job.length = ta.ma.length;
    const bool too_long = channel_of(p).compact ? job.length > channel_of(p).mtu : job.length > kMaxMessageBytes;
    if (too_long) return kUnsupported;
    if (job.length != 0) {
      job.memory = remote_memory(s_, access_of(ta, job.length, kAccessRead), &job.segment);
      if (job.memory == nullptr) return kAbort;
    }
    job.channel = p.channel;
    job.source = ta.req.rc_id;
    job.tassn = ta.req.tassn;
    job.offset_kib = ta.has_ofst ? ta.ofst.offset_kib : 0;
    job.taid = ta.has_taid ? ta.taid : 0;
    if (start_read_job(s_, p.channel, job) == 0) {
      s_.count(Counter::kNoReadJob);
      return {wire::kRspRnr, kSoon};
    }
    return kAccepted;
  }

  Verdict run_atomic(const RequestPacket& p) {
    const wire::TaPacket& ta = p.ta;
    const AtomicOp op = atomic_op(ta);
    uint32_t bytes = ta.ma.length;
    if (op == kNoAtomicOp) return kUnsupported;
    if (!is_atomic_width(bytes) || ta.payload_len != 2 * bytes || ta.ma.address % bytes != 0) return kUnsupported;
    std::byte* memory = remote_memory(s_, access_of(ta, bytes, kAccessAtomic), nullptr);
    if (memory == nullptr) return kAbort;
    if (reinterpret_cast<uintptr_t>(memory) % bytes != 0) return kUnsupported;
    AtomicRequest request{memory, op, bytes, 0, 0};
    std::memcpy(&request.operand, ta.payload, bytes);
    std::memcpy(&request.compare, ta.payload + bytes, bytes);
    const Copies copies = copies_of(p);
    CopyResult result = host_.atomic(request, &p.message.atomic_old, copies.tag);
    if (result == CopyResult::kPending) ++copies.pending;
    return result == CopyResult::kFailed ? kAbort : kAccepted;
  }

  Verdict check_send(const RequestPacket& p) {
    const wire::TaPacket& ta = p.ta;
    if (p.rtp.psn == p.start) {
      Verdict v = admit_message(s_, p.channel, p.message, ta);
      if (!v.ok()) return v;
    } else if (p.message.receive == 0) {
      return kAbort;
    }
    RxReceive& receive = s_.receives[p.message.receive];
    uint64_t offset = uint64_t{ta.ofst.offset_kib} * 1024;
    if (offset != receive.filled) return kUnsupported;
    if (offset + ta.payload_len > receive.length) {
      receive.filled = kTooLong;
      return kUnsupported;
    }
    if (!scatter(s_, host_, copies_of(p), receive, ta.payload, ta.payload_len, p.rtp.last)) return kAbort;
    receive.filled += ta.payload_len;
    return kAccepted;
  }

  static bool answered_with_data(wire::TaOpcode op) {
    using enum wire::TaOpcode;
    static_assert(wire::TaOpcode{static_cast<uint8_t>(kRead) + 1} == kAtomicCompareSwap);
    return op >= kRead && op <= kAtomicFetchXor;
  }

  // The job of a READ sends the response.
  void finish_with_data(const RequestPacket& p) {
    const wire::TaPacket& ta = p.ta;
    if (ta.req.opcode == wire::TaOpcode::kRead) return;
    const bool told = ta.req.opcode != wire::TaOpcode::kAtomicStore;
    answer_atomic(s_, p.channel, ta.req, p.message.atomic_old, static_cast<uint8_t>(told ? ta.ma.length : 0));
  }

  // The message was executed.
  void finish(const RequestPacket& p) {
    const tp::OpenMessage& m = p.message;
    const wire::TaPacket& ta = p.ta;
    if (m.receive != 0) {
      const bool write = ta.req.opcode == wire::TaOpcode::kWriteImmediate;
      const uint64_t bytes = write ? ta.imm.msg_length : s_.receives[m.receive].filled;
      complete_receive(s_, p.channel, p.message, ta, CrStatus::kSuccess, bytes);
    }
    if (answered_with_data(ta.req.opcode)) return finish_with_data(p);
    if (ta.req.alloc) [[unlikely]]
      return answer_with_context(s_, p.channel, ta.req);
    answer(s_, p.channel, ta.req, wire::TaOpcode::kTaack, 0, 0);
  }

  // The message failed. False: it has not ended, because its answer has to wait (ROL).
  bool finish_failed(const RequestPacket& p) {
    const tp::OpenMessage& m = p.message;
    if (m.receive != 0) {
      complete_receive(s_, p.channel, p.message, p.ta, failure_of(s_.receives[m.receive]), 0);
    }
    return answer_failure(p);
  }

  // What a packet wants to do with the memory that its MAETAH names.
  static RemoteAccess access_of(const wire::TaPacket& ta, uint64_t bytes, uint8_t access) {
    return {ta.ma.token_id, ta.tv, ta.token_value, ta.ma.address, bytes, rights_of(ta, access)};
  }
  static uint8_t rights_of(const wire::TaPacket& ta, uint8_t access) {
    if (ta.req.e_bit) [[unlikely]]
      access |= exclusively(access);
    return access;
  }

  static CrStatus failure_of(const RxReceive& receive) {
    if (receive.filled == kTooLong) return CrStatus::kLocLen;
    return receive.filled == kPoisoned ? CrStatus::kLocDataPoison : CrStatus::kLocAccess;
  }

  const tp::Channel& channel_of(const RequestPacket& p) const { return s_.channels[p.channel]; }
  Copies copies_of(const RequestPacket& p) const {
    return {place_tag(channel_of(p).tpn, p.rtp.tpmsn), p.message.copies};
  }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
