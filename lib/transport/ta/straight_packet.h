// SPDX-License-Identifier: Apache-2.0
//
// The packet of a straight request (routes.h): its transaction headers are written at once, from the element, and not
// described first (docs/straight-path-design.md).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/routes.h"
#include "lib/transport/ta/silent_requests.h"
#include "lib/transport/wire/extension_headers.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

struct StraightRequest {
  const SendQueue* queue = nullptr;  // null: it is none
  const Wqe* wqe = nullptr;

  explicit operator bool() const { return queue != nullptr; }
  uint32_t payload_bytes() const { return wqe->op == WrOp::kWrite ? wqe->length : 0; }
  // BTAH, MAETAH, and TVETAH if there is a token.
  size_t header_bytes() const {
    return wire::Btah::kSize + wire::Maetah::kSize + ((wqe->flags & kWrToken) != 0 ? wire::Tvetah::kSize : 0);
  }
};

// What a message carries, if that is a straight request. It must be alive.
inline StraightRequest straight_request(const CoreState& s, const tp::Channel& ch, const tp::TxMessage& m) {
  if (!s.config.straight || m.kind != tp::MessageKind::kRequest || m.retry || m.value != 0) return {};
  if (has_silent(s, ch)) return {};
  const SendQueue& q = s.queues[m.source];
  const WrState& wr = q.work[m.work_request & q.work_mask];
  const Wqe& wqe = wqe_of(q, wr);
  const bool one_packet = wr.segments == 1 && wqe.length - 1 < ch.mtu && wqe.sge.length >= wqe.length;
  if (!is_straight(wqe) || !one_packet) return {};
  return {&q, &wqe};
}

// Writes the headers between the transport header and the payload. Returns their end.
inline std::byte* write_headers(const StraightRequest& r, Tassn tassn, std::byte* at) {
  const Wqe& wqe = *r.wqe;
  wire::Btah btah;
  btah.opcode = wqe.op == WrOp::kWrite ? wire::TaOpcode::kWrite : wire::TaOpcode::kRead;
  btah.tv_en = (wqe.flags & kWrToken) != 0;
  btah.tassn = tassn;
  btah.rc_id = r.queue->rcid;
  btah.write(at);
  at += wire::Btah::kSize;
  wire::Maetah{wqe.remote_address, wqe.token_id, wqe.length}.write(at);
  at += wire::Maetah::kSize;
  if (!btah.tv_en) return at;
  wire::Tvetah{wqe.token_value}.write(at);
  return at + wire::Tvetah::kSize;
}

}  // namespace ub::ta
