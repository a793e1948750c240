// SPDX-License-Identifier: Apache-2.0
//
// Places the bytes of READ and atomic responses into the memory of the requests that they answer.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/early_completion.h"
#include "lib/transport/ta/payload.h"
#include "lib/transport/ta/receive_answer.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/segmentation.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

template <class Host>
class ResponsePlacer {
 public:
  ResponsePlacer(CoreState& s, Host& host) : s_(s), host_(host) {}

  // Places a packet of a response that arrived in order. A failure becomes the error of the open message, as a
  // completion status. False: too many copies are pending; the packet has to wait. The final word of a response becomes
  // visible last.
  bool place(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    AnsweredSegment a;
    if (!find_segment(s_, channel, ta.rsp, &a)) return true;
    const bool ends_others = rtp.last && rtp.psn != ch.message_start;
    if (a.wr->copies >= (ends_others ? 1 : kMostCopies)) return false;
    place_checked(channel, rtp, ta, a);
    return true;
  }

  // Places a packet of a READ response that arrived beyond a gap and is not the last of its message. False: the packet
  // was not placed.
  bool place_ahead(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta) {
    tp::Channel& ch = s_.channels[channel];
    AnsweredSegment a;
    uint64_t offset;
    if (ta.rsp.poison) return false;
    return find_segment(s_, channel, ta.rsp, &a) && response_offset(ch, a, ta, rtp, &offset) &&
           place_response(ch, a, offset, ta.payload, ta.payload_len, false) != CopyResult::kFailed;
  }

  // A pending copy is done. Its channel may have died meanwhile.
  void on_placed(const CopyPurpose& purpose, bool ok) {
    SendQueue& q = s_.queues[purpose.queue];
    --q.copies_pending;
    if (!q.in_use) {  // the queue was destroyed meanwhile
      if (q.copies_pending == 0) s_.queues.free(purpose.queue);
      return;
    }
    const uint32_t number = q.started_head + ((purpose.work_request - q.started_head) & kWorkRequestMask);
    UB_DCHECK(number - q.started_head < q.started_tail - q.started_head);  // a request with copies does not retire
    WrState& wr = q.work[number & q.work_mask];
    UB_DCHECK(wr.copies != 0);
    --wr.copies;
    if (!ok) fail_request(s_, q, wr, CrStatus::kLocAccess);
    if (wr.copies == 0) {
      on_ended(s_, purpose.queue, number);
      retire_requests(s_, purpose.queue);
    }
    if (q.copies_pending == 0) schedule_queue(s_, purpose.queue);  // a fence may have waited for it
  }

 private:
  static constexpr uint32_t kMostCopies = 64;  // most pending copies of one request

  void place_checked(uint32_t channel, const wire::RtpHeader& rtp, const wire::TaPacket& ta, const AnsweredSegment& a) {
    tp::Channel& ch = s_.channels[channel];
    const Wqe& wqe = wqe_of(s_.queues[a.queue], *a.wr);
    if (ta.rsp.poison) return note_failure(ch, CrStatus::kRemDataPoison);
    if (ta.rsp.opcode == wire::TaOpcode::kAtomicResponse) {
      if (!is_atomic(wqe.op) || ta.payload_len != wqe.length) return note_failure(ch, CrStatus::kRemRespLen);
      const uint128 old = load_operand_be(ta.payload, wqe.length);
      std::byte native[sizeof old];
      std::memcpy(native, &old, sizeof native);
      return check_response(ch, place_response(ch, a, 0, native, wqe.length, true));
    }
    uint64_t offset;
    SegmentShape shape = shape_of(wqe.op, wqe.length, ch.mtu, ch.segment_bytes, a.segment);
    uint64_t before = uint64_t{rtp.psn.distance(ch.message_start)} * ch.mtu;
    bool fits = response_offset(ch, a, ta, rtp, &offset) && offset == shape.offset + before &&
                (rtp.last ? before + ta.payload_len == shape.bytes : ta.payload_len == ch.mtu);
    if (!fits) return note_failure(ch, CrStatus::kRemRespLen);
    check_response(ch, place_response(ch, a, offset, ta.payload, ta.payload_len, rtp.last));
  }

  static uint128 load_operand_be(const std::byte* from, uint32_t bytes) {
    switch (bytes) {
      case 16:
        return load_be128(from);
      case 8:
        return load_be64(from);
      case 4:
        return load_be32(from);
      case 2:
        return load_be16(from);
      default:
        return load_u8(from);
    }
  }

  static void note_failure(tp::Channel& ch, CrStatus status) {
    if (ch.open.rspst == 0) ch.open.rspst = static_cast<uint8_t>(status);
  }
  static void check_response(tp::Channel& ch, CopyResult result) {
    if (result == CopyResult::kFailed) note_failure(ch, CrStatus::kLocAccess);
  }

  // Computes where in the request the bytes of a READ response packet belong. False: they do not belong to the segment
  // that is answered.
  bool response_offset(const tp::Channel& ch, const AnsweredSegment& a, const wire::TaPacket& ta,
                       const wire::RtpHeader& rtp, uint64_t* offset) {
    const Wqe& wqe = wqe_of(s_.queues[a.queue], *a.wr);
    if (wqe.op != WrOp::kRead) return false;
    SegmentShape shape = shape_of(wqe.op, wqe.length, ch.mtu, ch.segment_bytes, a.segment);
    *offset = ta.has_ofst ? uint64_t{ta.ofst.offset_kib} * 1024
                          : shape.offset + uint64_t{rtp.psn.distance(ch.message_start)} * ch.mtu;
    return *offset >= shape.offset && *offset + ta.payload_len <= shape.offset + shape.bytes;
  }

  CopyResult place_response(tp::Channel& ch, const AnsweredSegment& a, uint64_t skip, const std::byte* src,
                            uint32_t bytes, bool last) {
    SendQueue& q = s_.queues[a.queue];
    uint32_t pending = 0;
    const Copies copies{response_tag(ch.tpn, a.queue, a.number), pending};
    const bool placed = scatter_request(s_, host_, copies, wqe_of(q, *a.wr), q.owner, skip, src, bytes, last);
    a.wr->copies = static_cast<uint16_t>(a.wr->copies + pending);
    q.copies_pending += pending;
    return placed ? CopyResult::kDone : CopyResult::kFailed;
  }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
