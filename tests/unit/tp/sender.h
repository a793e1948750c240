// SPDX-License-Identifier: Apache-2.0
// sender.h - the sending half of an open channel in the hands of a test: packets that carry no transaction, and what a
// peer says of them. Everything is named by PSN.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <span>
#include <vector>

#include "lib/transport/tp/acknowledged_packets.h"
#include "lib/transport/tp/congestion.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/response_status.h"
#include "tests/unit/tp/channels.h"

namespace ub::tp {

inline CoreConfig with_slow_memory() {
  CoreConfig c = small_tables();
  c.slow_memory = true;
  return c;
}

struct Sender : Channels {
  static constexpr size_t kPacketBytes = 1000;  ///< on the wire, of a packet whose flow hears of it

  explicit Sender(uint32_t first_psn = 100, const CoreConfig& config = small_tables()) : Channels(config) {
    channel = s->channels.alloc();
    Channel& c = ch();
    c = Channel{};
    c.state = ChannelState::kOpen;
    c.tpn = 1u << kTpnIndexBits | channel;
    c.next_psn = c.oldest_unacked = Psn(first_psn);
    c.headers.init({}, {}, {}, {}, 0);
    c.send_window = c.agreed_window = config.window_packets;
    c.mtu = 1024;
    c.fast = true;
    c.rto = c.patience = config.rto_min;
    c.rto_at = Instant::never();
  }

  Channel& ch() { return s->channels[channel]; }
  /// From now on; without it the channel has none.
  void govern(cc::Algorithm algorithm) { begin_flow(*s, ch(), algorithm); }
  RecoveryBlock& recovery() { return s->recovery[ch().recovery]; }

  /// Sends one message of so many packets. Not complete: more would follow.
  TxMessage& send(uint32_t packets = 1, bool complete = true) {
    TxMessage* m = begin_message(*s, ch());
    EXPECT_NE(m, nullptr);
    m->kind = MessageKind::kAnswer;
    m->source = source;
    send_more(packets, complete);
    return *m;
  }
  void send_more(uint32_t packets, bool complete = true) {
    for (uint32_t i = 0; i < packets; ++i) {
      if (ch().tells_sent) tell(ch().in_flight.back(s->messages), ch().next_psn, false);
      packet_sent(*s, channel, ch().in_flight.back(s->messages), now);
    }
    ch().in_flight.back(s->messages).complete = complete;
    ch().mid_message = !complete;
    if (complete) ++ch().next_tpmsn;
  }
  void send_one_by_one(uint32_t messages) {
    for (uint32_t i = 0; i < messages; ++i) send();
  }

  /// What came of it is in `acknowledged`, and the messages that were walked in `walked`.
  void ack(uint32_t psn) { walk(on_ack(*s, channel, now, header(psn))); }
  /// `psn`: the first one missing.
  void nak(uint32_t psn) { walk(on_nak(*s, channel, now, header(psn))); }
  /// All up to `cumulative`, and beyond it these.
  void sack(uint32_t cumulative, std::initializer_list<uint32_t> beyond, uint8_t size_code = 0) {
    sack(cumulative, std::vector<uint32_t>(beyond), size_code);
  }
  void sack(uint32_t cumulative, const std::vector<uint32_t>& beyond, uint8_t size_code = 0) {
    uint64_t bits[wire::kSackMaxWords] = {1};
    for (uint32_t psn : beyond) set_bit(bits, Psn(psn).distance(Psn(cumulative)));
    const Psn highest(beyond.empty() ? cumulative : beyond.back());
    std::byte bytes[wire::sack_size(wire::kSackSizeCodeMax)];
    const size_t size = wire::write_sack(bytes, size_code, highest, bits);
    wire::SackView view;
    ASSERT_EQ(wire::SackView::read(bytes, size, view), wire::Drop::kNone);
    walk(on_sack(*s, channel, now, header(cumulative), view));
  }
  void timeout() {
    now = ch().rto_at;
    on_retransmission_timeout(*s, channel, now);
  }
  void pass(Duration d) { now += d; }
  /// The frame of the packet that left last and whose flow heard of it.
  std::span<const std::byte> last_frame() const { return frame_; }

  /// Sends again what is to go again; the PSNs.
  std::vector<uint32_t> resend() {
    std::vector<uint32_t> all;
    for (Psn psn; next_resend(*s, ch(), &psn); resent(*s, ch(), psn, now)) {
      if (ch().tells_sent) tell(*message_at(*s, ch(), psn), psn, true);
      all.push_back(psn.value());
    }
    return all;
  }

  /// The retransmissions whose fate is not known, the oldest first.
  struct Record {
    uint32_t psn, mark, number;
    bool operator==(const Record&) const = default;
  };
  std::vector<Record> records() {
    std::vector<Record> all;
    if (ch().recovery == 0 || recovery().records.empty()) return all;
    for (uint32_t at = recovery().records.front<&Resent::in_line>(s->resent); at != 0;
         at = recovery().records.behind<&Resent::in_line>(s->resent, at)) {
      all.push_back({s->resent[at].psn.value(), s->resent[at].mark.value(), s->resent[at].number});
    }
    return all;
  }

  struct Walked {
    uint32_t first_psn;
    bool whole;
    bool operator==(const Walked&) const = default;
  };
  uint32_t channel = 0;
  uint32_t source = 0;  ///< of the messages that are sent from now on
  bool all_ask = true;  ///< packets that are sent ask for an acknowledgement
  Acknowledged acknowledged;
  std::vector<Walked> walked;  ///< because of the latest acknowledgement

 private:
  std::byte frame_[kPacketBytes];

  void tell(const TxMessage& m, Psn psn, bool again) {
    wire::RtpHeader rtp;
    rtp.psn = psn;
    rtp.ack_req = all_ask;
    rtp.write(frame_ + ch().headers.size);
    tell_sent(*s, channel, now, m, psn, frame_, again);
  }
  void walk(const Acknowledged& a) {
    acknowledged = a;
    walked.clear();
    acknowledged_messages(*s, ch(), a, [this](const TxMessage& m, bool whole) {
      walked.push_back({m.first_psn.value(), whole});
    });
  }
  static wire::RtpHeader header(uint32_t psn) {
    wire::RtpHeader rtp;
    rtp.psn = Psn(psn);
    return rtp;
  }
};

using Psns = std::vector<uint32_t>;

/// `first`, `first` + 1 and so on, with the wrap.
inline Psns psns(uint32_t first, uint32_t count) {
  Psns all;
  for (uint32_t i = 0; i < count; ++i) all.push_back((Psn(first) + i).value());
  return all;
}

}  // namespace ub::tp
