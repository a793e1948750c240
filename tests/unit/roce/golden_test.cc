// SPDX-License-Identifier: Apache-2.0
// Frames of another implementation: each is read as what it is, and written again byte by byte.
#include <gtest/gtest.h>

#include "lib/transport/roce/wire/mad.h"
#include "tests/unit/roce/golden_frames.h"

namespace ub::roce {
namespace {

constexpr uint32_t kThere = 0x0A4D0003, kBack = 0x0A4D0002;  // 10.77.0.3, 10.77.0.2

/// Network and RoCE headers of a frame that must be good.
struct Read {
  explicit Read(const Bytes& f) : frame(f) {
    EXPECT_EQ(wire::parse_network(frame.span(), net), wire::Drop::kNone);
    EXPECT_EQ(net.dst.port, kUdpPort);
    EXPECT_TRUE(icrc_fits(net));
    EXPECT_EQ(parse_packet(net.tph, net.end, packet), Drop::kNone);
  }
  Bytes payload() const { return Bytes(packet.payload, packet.payload + packet.payload_bytes); }
  bool from(uint32_t ip) const { return net.src.ip == wire::IpAddress::from_v4(ip); }

  Exact frame;
  wire::NetHeader net;
  Packet packet{};
};

Bth bth_of(Opcode op, uint32_t qp, uint32_t psn, bool ack_req) {
  return {.opcode = op, .migrated = false, .dest_qp = qp, .ack_req = ack_req, .psn = Psn(psn)};
}

TEST(Golden, every_frame_is_read_and_written_again) {
  for (const auto& [name, frame] : golden::all()) {
    const Read r(frame);
    EXPECT_EQ(to_hex(packet_bytes(r.packet, r.payload())), to_hex({r.net.tph, r.net.end})) << name;
  }
}

TEST(Golden, send_of_three_packets) {
  const Read first(golden::send_first()), middle(golden::send_middle()), last(golden::send_last());
  EXPECT_TRUE(first.from(kThere));
  EXPECT_EQ(first.packet.bth, bth_of(Opcode::kRcSendFirst, 17, 2936865, false));
  EXPECT_EQ(first.packet.payload_bytes, 1024u);
  EXPECT_EQ(middle.packet.bth, bth_of(Opcode::kRcSendMiddle, 17, 2936866, false));
  EXPECT_EQ(middle.packet.payload_bytes, 1024u);
  EXPECT_EQ(last.packet.bth, bth_of(Opcode::kRcSendLast, 17, 2936867, true));
  EXPECT_EQ(last.packet.payload_bytes, 952u);
}

TEST(Golden, ack) {
  const Read r(golden::ack());
  EXPECT_TRUE(r.from(kBack));
  EXPECT_EQ(r.packet.bth, bth_of(Opcode::kRcAck, 17, 2936867, false));
  EXPECT_EQ(r.packet.aeth, (Aeth{Syndrome::ack(), Msn(1)}));
  EXPECT_EQ(r.packet.payload_bytes, 0u);
}

TEST(Golden, send_with_padding) {
  const Read r(golden::send_only_padded());
  EXPECT_EQ(r.packet.bth.padding, 2);
  EXPECT_EQ(to_hex(r.payload()), "33 00 ");
}

TEST(Golden, write) {
  const Read r(golden::write_only());
  EXPECT_TRUE(r.from(kBack));
  EXPECT_EQ(r.packet.bth, bth_of(Opcode::kRcWriteOnly, 18, 3922030, true));
  EXPECT_EQ(r.packet.reth, (Reth{0x000055F8325B7000, 0x349, 16}));
  EXPECT_EQ(r.packet.payload_bytes, 16u);
}

TEST(Golden, read_and_its_response) {
  const Read request(golden::read_request()), reply(golden::read_reply_only());
  EXPECT_EQ(request.packet.bth, bth_of(Opcode::kRcReadRequest, 19, 16252333, true));
  EXPECT_EQ(request.packet.reth, (Reth{0x000055C70008D000, 0x450, 2000}));
  EXPECT_EQ(reply.packet.bth, bth_of(Opcode::kRcReadReplyOnly, 17, 6892599, false));
  EXPECT_EQ(reply.packet.aeth, (Aeth{Syndrome::ack(), Msn(1)}));
  EXPECT_EQ(reply.packet.payload_bytes, 64u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(reply.packet.payload), 13), "rdma-ping-0: ");
}

TEST(Golden, atomic_and_its_answer) {
  const Read request(golden::fetch_add()), reply(golden::atomic_ack());
  EXPECT_EQ(request.packet.bth, bth_of(Opcode::kRcFetchAdd, 20, 15713690, true));
  EXPECT_EQ(request.packet.atomic, (AtomicEth{0x000056430D609000, 0x535, 1, 0}));
  EXPECT_EQ(reply.packet.bth, bth_of(Opcode::kRcAtomicAck, 20, 15713690, false));
  EXPECT_EQ(reply.packet.aeth, (Aeth{Syndrome::ack(), Msn(1)}));
  EXPECT_EQ(reply.packet.original, 0x482AD585DB84B21Fu);
}

TEST(Golden, datagram) {
  const Read r(golden::ud_send());
  EXPECT_EQ(r.packet.bth, bth_of(Opcode::kUdSendOnly, 21, 15679760, false));
  EXPECT_EQ(r.packet.deth, (Deth{0x11111111, 21}));
  EXPECT_EQ(r.packet.payload_bytes, 700u);
}

TEST(Golden, management_datagrams_go_to_queue_pair_1) {
  for (const Bytes& frame : {golden::cm_req(), golden::cm_rep(), golden::cm_rtu(), golden::cm_dreq()}) {
    const Read r(frame);
    EXPECT_EQ(r.packet.bth.dest_qp, kGsiQp);
    EXPECT_EQ(r.packet.deth, (Deth{kGsiQkey, kGsiQp}));
    EXPECT_EQ(r.packet.payload_bytes, kMadSize);
  }
}

}  // namespace
}  // namespace ub::roce
