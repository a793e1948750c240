// SPDX-License-Identifier: Apache-2.0
#include "lib/impair/packet_kind.h"

#include <gtest/gtest.h>

#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/utp_header.h"
#include "tests/unit/impair/rtp_frame.h"

namespace ub::impair {
namespace {

using wire::Bytes;

// A Send to Jetty 0 with that payload.
Bytes unreliable_frame(const Bytes& payload) {
  wire::TaPacket send;
  send.req.opcode = wire::TaOpcode::kSend;
  send.has_mt = send.has_ofst = true;
  send.mt = {0, wire::kTcTypeQueue, 0};
  send.ofst = {};
  const Bytes transaction = wire::transaction_of(send, payload);
  return wire::frame_of(wire::template_v6(), wire::concat({wire::written(wire::UtpHeader{}), transaction}));
}

TEST(PacketKind, data_of_a_channel_is_data_whether_request_or_fake) {
  EXPECT_EQ(kind_of(rtp_frame(wire::TpOpcode::kData)), Kind::kData);
  EXPECT_EQ(kind_of(rtp_frame(wire::TpOpcode::kData, true)), Kind::kData);
}

TEST(PacketKind, what_answers_data_without_a_number_of_its_own_is_ack) {
  for (auto opcode : {wire::TpOpcode::kAck, wire::TpOpcode::kAckCc, wire::TpOpcode::kSack, wire::TpOpcode::kSackCc,
                      wire::TpOpcode::kCnp}) {
    EXPECT_EQ(kind_of(rtp_frame(opcode)), Kind::kAck) << static_cast<int>(opcode);
  }
}

TEST(PacketKind, a_control_record_is_setup_and_another_datagram_is_data) {
  Bytes record(wire::kControlRecordSize);
  wire::write_control_record({}, record.data());
  EXPECT_EQ(kind_of(unreliable_frame(record)), Kind::kSetup);
  EXPECT_EQ(kind_of(unreliable_frame(Bytes(wire::kControlRecordSize))), Kind::kData);
}

TEST(PacketKind, compact_packets_are_known_by_their_ether_type) {
  Bytes frame(wire::CompactTemplate::kSize);
  wire::CompactTemplate(wire::kV4A, wire::kV4B, 1, 2).write(frame.data(), 0);
  EXPECT_EQ(kind_of(frame), Kind::kCtp);
}

TEST(PacketKind, packets_of_roce_are_known_by_their_port) {
  wire::NetTemplate net;
  net.init({}, {}, wire::kV4A, {wire::kV4B.ip, roce::kUdpPort}, 0);
  EXPECT_EQ(kind_of(wire::frame_of(net, wire::written(roce::Bth{}))), Kind::kRoce);
}

TEST(PacketKind, what_cannot_be_read_is_other__at_every_length) {
  const Bytes whole = rtp_frame(wire::TpOpcode::kData);
  for (size_t bytes = 0; bytes < whole.size() - 1; ++bytes) {
    const wire::Exact cut({whole.data(), bytes});
    EXPECT_EQ(kind_of(cut.span()), Kind::kOther) << bytes;
  }
  EXPECT_EQ(kind_of(Bytes(60)), Kind::kOther);
}

}  // namespace
}  // namespace ub::impair
