// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/wire/packet.h"

#include <gtest/gtest.h>

#include "tests/unit/roce/golden_frames.h"

namespace ub::roce {
namespace {

/// Parses a copy without a byte to spare.
Drop parse(const Bytes& packet, Packet& out) {
  const Exact exact(packet);
  const Drop d = parse_packet(exact.begin(), exact.end(), out);
  if (d == Drop::kNone) {
    EXPECT_EQ(out.payload + out.payload_bytes + out.bth.padding, exact.end());
  }
  return d;
}

Drop parse(const Bytes& packet) {
  Packet out{};
  return parse(packet, out);
}

/// A good packet of that opcode, without payload where that is possible.
Packet plain(Opcode op) {
  Prng rng(71);
  return random_packet(op, 0, rng);
}

TEST(RocePacket, round_trip_of_every_opcode) {
  Prng rng(61);
  for (const Opcode op : kAllOpcodes) {
    for (const size_t bytes : payload_lengths(op)) {
      for (int i = 0; i < 10; ++i) {
        const Bytes payload = random_bytes(bytes, rng);
        const Bytes wire = packet_bytes(random_packet(op, bytes, rng), payload);
        const Exact exact(wire);
        Packet p{};
        ASSERT_EQ(parse_packet(exact.begin(), exact.end(), p), Drop::kNone) << opcode_name(op) << ' ' << bytes;
        ASSERT_EQ(p.payload_bytes, bytes);
        ASSERT_EQ(p.shape, packet_shape(op));
        ASSERT_EQ(static_cast<size_t>(p.payload - exact.begin()), header_size(op));
        ASSERT_TRUE(packet_bytes(p, payload) == wire) << opcode_name(op) << ' ' << to_hex(wire);
      }
    }
  }
}

TEST(RocePacket, fields_come_back) {
  Prng rng(62);
  for (const Opcode op : kAllOpcodes) {
    const uint16_t shape = packet_shape(op);
    const size_t bytes = (shape & kShapePayload) == 0 ? 0 : (shape & kShapeLast) == 0 ? 256 : 4;  // nothing to pad
    const Packet in = random_packet(op, bytes, rng);
    Packet out{};
    ASSERT_EQ(parse(packet_bytes(in, Bytes(bytes)), out), Drop::kNone);
    EXPECT_EQ(out.bth, in.bth);
    if (in.has(kShapeDeth)) {
      EXPECT_EQ(out.deth, in.deth);
    }
    if (in.has(kShapeReth)) {
      EXPECT_EQ(out.reth, in.reth);
    }
    if (in.has(kShapeAtomicEth)) {
      EXPECT_EQ(out.atomic, in.atomic);
    }
    if (in.has(kShapeAeth)) {
      EXPECT_EQ(out.aeth, in.aeth);
    }
    if (in.has(kShapeAtomicAckEth)) {
      EXPECT_EQ(out.original, in.original);
    }
    if (in.has(kShapeImm)) {
      EXPECT_EQ(out.immediate, in.immediate);
    }
    if (in.has(kShapeIeth)) {
      EXPECT_EQ(out.invalidated_rkey, in.invalidated_rkey);
    }
  }
}

// Written down independently: headers that the golden frames do not have.
TEST(RocePacket, header_bytes) {
  Packet p{};
  p.bth = {.opcode = Opcode::kRcSendOnlyInv, .dest_qp = 17, .psn = Psn(1)};
  p.invalidated_rkey = 0x11223344;
  EXPECT_EQ(to_hex(packet_bytes(p)), to_hex(hex("1740ffff 00000011 00000001 11223344")));
  p.bth.opcode = Opcode::kRcWriteOnlyImm;
  p.reth = {0x1000, 0x22, 4};
  p.immediate = 0xCAFEBABE;
  EXPECT_EQ(to_hex(packet_bytes(p, hex("01020304"))),
            to_hex(hex("0b40ffff 00000011 00000001 0000000000001000 00000022 00000004 cafebabe 01020304")));
  p.bth.opcode = Opcode::kUdSendOnlyImm;
  p.deth = {0x11111111, 9};
  EXPECT_EQ(to_hex(packet_bytes(p)), to_hex(hex("6540ffff 00000011 00000001 11111111 00000009 cafebabe")));
  p.bth = {.opcode = Opcode::kCnp, .becn = true, .dest_qp = 17};
  EXPECT_EQ(to_hex(packet_bytes(p)), to_hex(hex("8140ffff 40000011 00000000 00000000000000000000000000000000")));
}

TEST(RocePacket, truncation_at_every_length) {
  Prng rng(63);
  for (const Opcode op : kAllOpcodes) {
    const size_t bytes = payload_lengths(op).back();
    const Bytes wire = packet_bytes(random_packet(op, bytes, rng), random_bytes(bytes, rng));
    for (size_t n = 0; n < wire.size(); ++n) {
      const Drop d = parse(Bytes(wire.begin(), wire.begin() + static_cast<ptrdiff_t>(n)));
      if (n < Bth::kSize) {
        ASSERT_EQ(d, Drop::kTooShort) << opcode_name(op) << ' ' << n;
      } else if (n < header_size(op)) {
        ASSERT_EQ(d, Drop::kTruncatedHeader) << opcode_name(op) << ' ' << n;
      } else if (n % 4 != 0) {
        ASSERT_EQ(d, Drop::kBadPadding) << opcode_name(op) << ' ' << n;
      }
    }
  }
}

TEST(RocePacket, truncation_of_golden_frames_at_every_length) {
  for (const auto& [name, frame] : golden::all()) {
    const size_t begin = wire::NetTemplate::kSizeV4;
    for (size_t n = 0; n < frame.size(); ++n) {
      const Exact exact({frame.data(), n});
      wire::NetHeader net;
      ASSERT_NE(wire::parse_network(exact.span(), net), wire::Drop::kNone) << name << ' ' << n;
      // What a damaged length field would leave of it.
      if (n < begin) continue;
      Packet p{};
      const Drop d = parse_packet(exact.begin() + begin, exact.end(), p);
      if (n < begin + Bth::kSize) {
        ASSERT_EQ(d, Drop::kTooShort) << name << ' ' << n;
      }
    }
  }
}

TEST(RocePacket, unknown_opcodes) {
  for (int code = 0; code < 256; ++code) {
    const Opcode op{static_cast<uint8_t>(code)};
    if (packet_shape(op) != 0) continue;
    Packet p{};
    EXPECT_EQ(parse(wire::concat({wire::written(Bth{.opcode = op}), Bytes(64)}), p), Drop::kUnknownOpcode);
    EXPECT_EQ(p.bth.opcode, op);
    EXPECT_EQ(is_invalid_request(Drop::kUnknownOpcode, p), code < 0x20) << code;
  }
}

TEST(RocePacket, bad_version) {
  Packet p = plain(Opcode::kRcSendOnly);
  p.bth.version = 1;
  EXPECT_EQ(parse(packet_bytes(p)), Drop::kBadBthVersion);
}

TEST(RocePacket, padding_without_payload) {
  Bytes wire = packet_bytes(plain(Opcode::kRcSendOnly));
  store_u8(&wire[1], static_cast<uint8_t>(load_u8(&wire[1]) | 0x10));
  EXPECT_EQ(parse(wire), Drop::kBadPadding);
}

TEST(RocePacket, payload_where_none_belongs) {
  for (const Opcode op : kAllOpcodes) {
    if ((packet_shape(op) & kShapePayload) != 0) continue;
    Packet p{};
    EXPECT_EQ(parse(packet_bytes(plain(op), Bytes(4)), p), Drop::kUnexpectedPayload) << opcode_name(op);
    EXPECT_EQ(is_invalid_request(Drop::kUnexpectedPayload, p), p.has(kShapeRequest)) << opcode_name(op);
  }
}

TEST(RocePacket, impossible_payload_lengths) {
  Prng rng(64);
  for (const Opcode op : kAllOpcodes) {
    const uint16_t shape = packet_shape(op);
    if ((shape & kShapePayload) == 0) continue;
    std::vector<size_t> bad{4097, 8192};
    if ((shape & kShapeLast) == 0) bad.insert(bad.end(), {0, 1, 128, 255, 257, 1000, 1023, 3072});
    if ((shape & kShapeFirst) == 0) bad.push_back(0);
    for (const size_t bytes : bad) {
      Packet p{};
      ASSERT_EQ(parse(packet_bytes(random_packet(op, bytes, rng), Bytes(bytes)), p), Drop::kBadPayloadLength)
          << opcode_name(op) << ' ' << bytes;
      ASSERT_EQ(is_invalid_request(Drop::kBadPayloadLength, p),
                p.has(kShapeRequest) && transport_of(op) == Transport::kRc);
    }
  }
}

TEST(RocePacket, impossible_dma_lengths) {
  const auto with_length = [](Opcode op, size_t payload, uint32_t length) {
    Packet p = plain(op);
    p.reth.length = length;
    return parse(packet_bytes(p, Bytes(payload)));
  };
  EXPECT_EQ(with_length(Opcode::kRcReadRequest, 0, kMaxMessageBytes), Drop::kNone);
  EXPECT_EQ(with_length(Opcode::kRcReadRequest, 0, kMaxMessageBytes + 1), Drop::kBadDmaLength);
  EXPECT_EQ(with_length(Opcode::kRcWriteFirst, 1024, kMaxMessageBytes), Drop::kNone);
  EXPECT_EQ(with_length(Opcode::kRcWriteFirst, 1024, kMaxMessageBytes + 1), Drop::kBadDmaLength);
  EXPECT_EQ(with_length(Opcode::kRcWriteFirst, 1024, 1025), Drop::kNone);
  EXPECT_EQ(with_length(Opcode::kRcWriteFirst, 1024, 1024), Drop::kBadDmaLength);
  for (const Opcode op : {Opcode::kRcWriteOnly, Opcode::kRcWriteOnlyImm, Opcode::kUcWriteOnly}) {
    EXPECT_EQ(with_length(op, 7, 7), Drop::kNone);
    EXPECT_EQ(with_length(op, 7, 6), Drop::kBadDmaLength);
    EXPECT_EQ(with_length(op, 7, 8), Drop::kBadDmaLength);
  }
}

TEST(RocePacket, misaligned_atomics) {
  for (const Opcode op : {Opcode::kRcCompareSwap, Opcode::kRcFetchAdd}) {
    Packet p = plain(op);
    for (uint64_t off = 1; off < 8; ++off) {
      p.atomic.address = 0x1000 + off;
      Packet out{};
      EXPECT_EQ(parse(packet_bytes(p), out), Drop::kMisalignedAtomic);
      EXPECT_TRUE(is_invalid_request(Drop::kMisalignedAtomic, out));
    }
  }
}

TEST(RocePacket, syndromes_that_do_not_fit) {
  const auto with_syndrome = [](Opcode op, Syndrome s) {
    Packet p = plain(op);
    p.aeth.syndrome = s;
    Packet out{};
    const Drop d = parse(packet_bytes(p, Bytes(payload_lengths(op).front())), out);
    EXPECT_FALSE(is_invalid_request(d, out));
    return d;
  };
  for (const Opcode op :
       {Opcode::kRcAtomicAck, Opcode::kRcReadReplyFirst, Opcode::kRcReadReplyLast, Opcode::kRcReadReplyOnly}) {
    EXPECT_EQ(with_syndrome(op, Syndrome::ack(0)), Drop::kNone);
    EXPECT_EQ(with_syndrome(op, Syndrome::rnr(1)), Drop::kBadSyndrome);
    EXPECT_EQ(with_syndrome(op, Syndrome::nak(NakCode::kPsnSequence)), Drop::kBadSyndrome);
    EXPECT_EQ(with_syndrome(op, Syndrome{0x80}), Drop::kBadSyndrome);
  }
  EXPECT_EQ(with_syndrome(Opcode::kRcAck, Syndrome::rnr(0)), Drop::kNone);
  EXPECT_EQ(with_syndrome(Opcode::kRcAck, Syndrome::nak(NakCode::kRemoteOperation)), Drop::kNone);
  EXPECT_EQ(with_syndrome(Opcode::kRcAck, Syndrome{0x64}), Drop::kBadSyndrome);
  EXPECT_EQ(with_syndrome(Opcode::kRcAck, Syndrome{0x40}), Drop::kBadSyndrome);
}

TEST(RocePacket, whole_frames_over_both_versions_of_ip) {
  Prng rng(65);
  for (const bool v6 : {false, true}) {
    for (const Opcode op : kAllOpcodes) {
      const size_t bytes = payload_lengths(op).front();
      const Exact frame(frame_of(packet_bytes(random_packet(op, bytes, rng), random_bytes(bytes, rng)), v6));
      wire::NetHeader net;
      ASSERT_EQ(wire::parse_network(frame.span(), net), wire::Drop::kNone);
      EXPECT_TRUE(icrc_fits(net)) << opcode_name(op);
      Packet p{};
      EXPECT_EQ(parse_packet(net.tph, net.end, p), Drop::kNone) << opcode_name(op);
    }
  }
}

TEST(RoceDrop, names_and_counters) {
  EXPECT_STREQ(drop_name(Drop::kNone), "none");
  EXPECT_STREQ(drop_name(Drop::kBadDmaLength), "bad_dma_length");
  EXPECT_EQ(drop_counter(Drop::kBadIcrc), Counter::kRoceRxDropBadIcrc);
}

}  // namespace
}  // namespace ub::roce
