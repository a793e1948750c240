// SPDX-License-Identifier: Apache-2.0
//
// Sends the control records that wait in the outbox, as unreliable Sends (UTPH, UB Base Specification Rev 2.0, 6.2.1)
// to Jetty 0 (docs/wire.md).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/seal_and_commit.h"
#include "lib/transport/wire/transaction_packet.h"
#include "lib/transport/wire/utp_header.h"

namespace ub::setup {

template <class Host>
class RecordSender {
 public:
  RecordSender(CoreState& s, Host& host) : s_(s), host_(host) {}

  // Sends at most `budget` records and returns how many left the outbox. Those whose link is down are dropped, and
  // count, too.
  size_t send(size_t budget) {
    size_t sent = 0;
    while (s_.outbox_head != s_.outbox_tail && sent < budget) {
      if (!send_or_drop(s_.outbox[s_.outbox_head % kOutboxRing])) return sent + pass_over(budget - sent);
      ++s_.outbox_head;
      ++sent;
    }
    return sent;
  }

 private:
  // False: its link has no room.
  bool send_or_drop(const OutRecord& out) { return out.link == 0 || !s_.links[out.link].up || send_record(out); }

  // The link of the first record has no room, which may last as long as its peer is stopped. Sends what is for other
  // links; the order of those for one link stays.
  [[gnu::noinline, gnu::cold]] size_t pass_over(size_t budget) {
    size_t sent = 0;
    uint32_t kept = s_.outbox_head;
    for (uint32_t at = s_.outbox_head; at != s_.outbox_tail; ++at) {
      const OutRecord& out = s_.outbox[at % kOutboxRing];
      bool& full = s_.links[out.link].records_wait;
      if (sent < budget && !full && send_or_drop(out)) {
        ++sent;
        continue;
      }
      full = true;
      s_.outbox[kept++ % kOutboxRing] = out;
    }
    s_.outbox_tail = kept;
    for (uint32_t at = s_.outbox_head; at != kept; ++at) {
      s_.links[s_.outbox[at % kOutboxRing].link].records_wait = false;
    }
    return sent;
  }

  bool send_record(const OutRecord& out) {
    wire::NetTemplate headers;
    headers.init({}, {}, out.local, out.remote, s_.config.dscp_of(out.bulk));
    wire::TaPacket ta;
    ta.has_mt = ta.has_ofst = true;
    ta.mt = {0, wire::kTcTypeQueue, 0};
    ta.ofst.offset_kib = 0;
    // Headers of the largest request: a padded record is as long as such a request with a full payload.
    constexpr size_t kLargestRequest = wire::Btah::kSize + 4 + 16 + 24 + 4;
    size_t headers_bytes = wire::request_header_size(wire::TaOpcode::kSend, {});
    const size_t record_bytes = wire::control_record_size(out.record);
    size_t payload = record_bytes;
    if (out.pad_to_mtu != 0) payload = out.pad_to_mtu + kLargestRequest - headers_bytes;
    size_t tp_bytes = wire::UtpHeader::kSize + headers_bytes + payload;
    size_t bytes = headers.size + tp_bytes + wire::kIcrcSize;
    std::byte* frame = host_.tx_begin(out.link, bytes);
    if (frame == nullptr) return false;
    std::byte* at = frame + headers.write(frame, tp_bytes + wire::kIcrcSize, wire::kEcnNotCapable);
    wire::UtpHeader{}.write(at);
    at += wire::UtpHeader::kSize;
    at += wire::write_transaction_headers(ta, at);
    wire::write_control_record(out.record, at);
    std::memset(at + record_bytes, 0, payload - record_bytes);
    seal_and_commit(s_, host_, out.link, frame, bytes, UbIcrc{headers.form});
    s_.count(Counter::kTpTxRecord);
    note_of<Host>(s_, Stage::kRecordSent, out.link, static_cast<uint32_t>(out.record.type));
    return true;
  }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::setup
