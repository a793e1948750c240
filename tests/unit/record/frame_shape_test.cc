// SPDX-License-Identifier: Apache-2.0
//
// Of every kind of packet exactly its payload is left out of a recording: all of it, and nothing that the Core reads.
#include "lib/record/frame_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "lib/transport/roce/wire/mad.h"
#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/entity_header.h"
#include "lib/transport/wire/icrc.h"
#include "tests/unit/roce/roce_test_util.h"
#include "tests/unit/wire/wire_test_util.h"

namespace ub::record {
namespace {

using wire::Bytes;
using wire::TaOpcode;
using wire::TaPacket;

constexpr size_t kReadMeta = wire::Taidetah::kSize + wire::Ofstetah::kSize;

// A frame, and what is its payload.
struct Known {
  Bytes frame;
  size_t payload_at = 0, payload_bytes = 0;
  bool has_sum = true;
};

void expect_shape(const Known& known, const std::string& what) {
  const FrameShape shape = shape_of(known.frame);
  EXPECT_EQ(shape.payload_bytes, known.payload_bytes) << what;
  if (known.payload_bytes != 0) {
    EXPECT_EQ(shape.payload_at, known.payload_at) << what;
  }
  const size_t end = known.frame.size() - (known.has_sum ? wire::kIcrcSize : 0);
  ASSERT_EQ(shape.sum != FrameShape::Sum::kNone, known.has_sum) << what;
  if (known.has_sum) {
    EXPECT_EQ(shape.icrc_at, end) << what;
    EXPECT_TRUE(has_icrc(known.frame, shape)) << what;
    EXPECT_EQ(right_icrc(known.frame, shape), wire::icrc_load(known.frame.data() + end)) << what;
  }
  const size_t kept = known.payload_bytes != 0 ? known.payload_at : end;
  EXPECT_EQ(header_of(known.frame, shape).size(), std::min(kept, kMostKept)) << what;
}

Bytes payload_of(size_t bytes) { return Bytes(bytes, std::byte{0xEE}); }

// Behind a transport header: the headers of `packet`, a payload, and padding that counts `before` more bytes.
struct Transaction {
  Bytes bytes;
  size_t headers;
  uint8_t padding;
};
Transaction transaction(const TaPacket& packet, const Bytes& payload, size_t before) {
  Transaction t;
  t.bytes.resize(512);
  t.headers = wire::write_transaction_headers(packet, t.bytes.data());
  t.bytes.resize(t.headers);
  t.bytes.insert(t.bytes.end(), payload.begin(), payload.end());
  t.padding = wire::padding_for(before + t.bytes.size());
  t.bytes.resize(t.bytes.size() + t.padding);
  return t;
}

// Calls fn(packet, payload, what) for all that a transaction may look like.
void for_every_transaction(const std::function<void(TaPacket, const Bytes&, const std::string&)>& fn) {
  Prng rng(5);
  for (const TaOpcode op : wire::kAllOpcodes) {
    const uint16_t shape = wire::ta_shape(op);
    for (uint32_t flags = 0; flags < 8; ++flags) {
      for (const size_t bytes : {0, 1, 2, 3, 4, 7, 8, 9, 16, 64, 1000, 1024, 4096}) {
        if (bytes != 0 && (shape & wire::kShapePayload) == 0) continue;
        const bool has_be = (shape & wire::kShapeBe) != 0;
        const uint32_t enables = has_be ? wire::BeetahView::enables_of(static_cast<uint32_t>(bytes)) : 0;
        if (has_be && (enables == 0 || bytes > wire::BeetahView::kMaxEnables)) continue;
        TaPacket packet = wire::random_packet(op, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, rng);
        packet.mt.tc_id = 7;  // of a jetty, not of what sets up channels
        Bytes bits(wire::BeetahView::kMaxEnables / 8, std::byte{0x55});
        if (has_be) {
          packet.has_be = true;
          packet.be = {bits.data(), enables};
          packet.ma.length = static_cast<uint32_t>(bytes);
        }
        fn(packet, payload_of(bytes),
           std::string(wire::ta_opcode_name(op)) + ", flags " + std::to_string(flags) + ", " + std::to_string(bytes));
      }
    }
  }
}

Known around(const wire::NetTemplate& net, wire::RtpHeader rtp, const TaPacket& packet, const Bytes& payload) {
  const bool entity = rtp.nlp == wire::kNlpEntity;
  const Transaction t = transaction(packet, payload, 0);
  rtp.padding = t.padding;
  Bytes tp = wire::concat({wire::written(rtp), entity ? wire::written(wire::EntityHeader{}) : Bytes{}, t.bytes});
  Known known;
  known.payload_at = net.size + tp.size() - t.bytes.size() + t.headers;
  known.payload_bytes = payload.size();
  if (net.form != wire::NetForm::kCna24) {
    known.frame = wire::frame_of(net, tp);
    return known;
  }
  known.frame.resize(net.size + tp.size() + wire::kIcrcSize);
  net.write(known.frame.data(), tp.size() + wire::kIcrcSize, 0);
  std::copy(tp.begin(), tp.end(), known.frame.begin() + net.size);
  const size_t covered = net.size + tp.size() - wire::kEthSize;
  wire::icrc_store(known.frame.data() + net.size + tp.size(),
                   wire::icrc_of_packet(known.frame.data() + wire::kEthSize, covered, net.form));
  return known;
}

// Whether a Read response has meta headers only its channel knows, so their place is kept.
void keep_place_of_meta(const TaPacket& packet, Known* known) {
  if (packet.opcode() != TaOpcode::kReadResponse || packet.has_taid || known->payload_bytes < kReadMeta) return;
  known->payload_at += kReadMeta;
  known->payload_bytes -= kReadMeta;
}

TEST(FrameShape, PayloadOfChannelsIsFound) {
  const wire::NetTemplate nets[] = {wire::template_v4(), wire::template_v6(),
                                    wire::cna_template(wire::kV4A, wire::kV4B, 0)};
  for (const wire::NetTemplate& net : nets) {
    for (const uint8_t nlp : {wire::kNlpTransaction, wire::kNlpEntity}) {
      for_every_transaction([&](const TaPacket& packet, const Bytes& payload, const std::string& what) {
        wire::RtpHeader rtp;
        rtp.nlp = nlp;
        rtp.src_tpn = 5;
        rtp.dst_tpn = 6;
        Known known = around(net, rtp, packet, payload);
        keep_place_of_meta(packet, &known);
        expect_shape(known, what + ", form " + std::to_string(static_cast<int>(net.form)));
      });
    }
  }
}

TEST(FrameShape, PayloadOfDatagramsIsFoundButNotThatOfSetUp) {
  for_every_transaction([&](TaPacket packet, const Bytes& payload, const std::string& what) {
    if ((wire::ta_shape(packet.opcode()) & wire::kShapeReceive) == 0) return;
    wire::RtpHeader utp;
    utp.opcode = wire::TpOpcode::kUnreliable;
    expect_shape(around(wire::template_v4(), utp, packet, payload), what);
    packet.mt.tc_id = 0;
    Known record = around(wire::template_v4(), utp, packet, payload);
    if (packet.has_mt) record.payload_bytes = 0;
    expect_shape(record, "a record by " + what);
  });
}

TEST(FrameShape, PayloadOfCompactPacketsIsFound) {
  const wire::CompactTemplate head(wire::kV4A, wire::kV4B, 5, 6);
  for_every_transaction([&](const TaPacket& packet, const Bytes& payload, const std::string& what) {
    if (packet.has_taid) return;  // there is no such channel
    const Transaction t = transaction(packet, payload, wire::CtpHeader::kSize);
    Known known;
    known.frame.resize(wire::CompactTemplate::kSize);
    head.write(known.frame.data(), t.padding);
    known.payload_at = known.frame.size() + t.headers;
    known.payload_bytes = payload.size();
    known.frame.insert(known.frame.end(), t.bytes.begin(), t.bytes.end());
    const std::byte* nth = known.frame.data() + wire::kEthSize + wire::LinkHeader::kSize;
    const uint32_t icrc =
        wire::icrc_compute_nth24(nth, static_cast<size_t>(known.frame.data() + known.frame.size() - nth));
    known.frame.resize(known.frame.size() + wire::kIcrcSize);
    wire::icrc_store(known.frame.data() + known.frame.size() - wire::kIcrcSize, icrc);
    expect_shape(known, what);
  });
}

TEST(FrameShape, PayloadOfLoadsAndStoresIsFound) {
  for (const TaOpcode op : {TaOpcode::kWrite, TaOpcode::kReadResponse}) {
    wire::BypassPacket packet{};
    packet.is_response = op == TaOpcode::kReadResponse;
    packet.opcode = op;
    packet.ma = {0x1122334455667780, 0, true, 0, 0x54321};
    packet.payload_len = wire::kMinBypassPayload;
    Known known;
    known.has_sum = false;
    known.payload_at = wire::bypass_header_size(packet);
    known.payload_bytes = wire::bypass_payload_size(packet);
    known.frame.resize(known.payload_at);
    wire::write_bypass_headers(packet, known.frame.data());
    known.frame.resize(known.payload_at + known.payload_bytes, std::byte{0xEE});
    ASSERT_NE(known.payload_bytes, 0u);
    expect_shape(known, wire::ta_opcode_name(op));
  }
}

TEST(FrameShape, PayloadOfQueuePairsIsFoundButNotThatOfManagement) {
  constexpr size_t kOriginal = 8;  // what memory had before an atomic
  Prng rng(6);
  for (const roce::Opcode op : roce::kAllOpcodes) {
    for (const size_t bytes : roce::payload_lengths(op)) {
      for (const bool v6 : {false, true}) {
        roce::Packet packet = roce::random_packet(op, bytes, rng);
        packet.bth.dest_qp = 0x1234;
        Known known;
        known.frame = roce::frame_of(roce::packet_bytes(packet, payload_of(bytes)), v6);
        known.payload_at = roce::net_template(v6).size + roce::header_size(op);
        known.payload_bytes = bytes;
        if (packet.has(roce::kShapeAtomicAckEth)) {
          known.payload_at -= kOriginal;
          known.payload_bytes = kOriginal;
        }
        expect_shape(known, std::string(roce::opcode_name(op)) + ", " + std::to_string(bytes));
        packet.bth.dest_qp = roce::kGsiQp;
        known.frame = roce::frame_of(roce::packet_bytes(packet, payload_of(bytes)), v6);
        known.payload_bytes = 0;
        expect_shape(known, std::string("management by ") + roce::opcode_name(op));
      }
    }
  }
}

TEST(FrameShape, PacketsWithoutTransactionHaveNoPayload) {
  for (const auto opcode : {wire::TpOpcode::kAck, wire::TpOpcode::kSack, wire::TpOpcode::kCnp}) {
    wire::RtpHeader rtp;
    rtp.opcode = opcode;
    Known known;
    known.frame = wire::frame_of(wire::template_v4(), wire::concat({wire::written(rtp), payload_of(16)}));
    expect_shape(known, std::to_string(static_cast<int>(opcode)));
  }
  expect_shape({.frame = payload_of(60), .has_sum = false}, "no packet");
  expect_shape({.frame = payload_of(3), .has_sum = false}, "no frame");
}

TEST(FrameShape, NothingIsReadBeyondAFrameThatWasCut) {
  Prng rng(6);
  const TaPacket write = wire::random_packet(TaOpcode::kWrite, true, true, false, rng);
  for (const wire::NetTemplate& net : {wire::template_v4(), wire::cna_template(wire::kV4A, wire::kV4B, 0)}) {
    const Known known = around(net, {}, write, payload_of(20));
    for (size_t bytes = 0; bytes < known.frame.size(); ++bytes) {
      const wire::Exact cut({known.frame.data(), bytes});
      const FrameShape shape = shape_of(cut.span());
      EXPECT_LE(shape.payload_at + shape.payload_bytes, bytes);
      EXPECT_LE(header_of(cut.span(), shape).size(), bytes);
    }
  }
}

}  // namespace
}  // namespace ub::record
