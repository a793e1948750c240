// SPDX-License-Identifier: Apache-2.0
// Where payload lies, for each opcode over each transport, compared with what the parser says.
#include "lib/record/frame_shape.h"

#include <gtest/gtest.h>

#include "lib/transport/wire/compact_packet.h"
#include "tests/unit/wire/wire_test_util.h"

namespace ub::record {
namespace {

using wire::Bytes;
using wire::TaOpcode;
using wire::TaPacket;

Bytes payload_of(size_t bytes) { return Bytes(bytes, std::byte{0xa5}); }

Bytes compact_frame(const TaPacket& ta, const Bytes& payload) {
  constexpr size_t kHeaders = wire::CompactTemplate::kSize;
  Bytes frame(kHeaders + 512);
  const size_t headers = wire::write_transaction_headers(ta, frame.data() + kHeaders);
  const uint8_t padding = wire::compact_padding_for(headers + payload.size());
  wire::CompactTemplate(wire::kV4A, wire::kV4B, 1, 2).write(frame.data(), padding);
  frame.resize(kHeaders + headers);
  frame.insert(frame.end(), payload.begin(), payload.end());
  frame.resize(frame.size() + padding + wire::kIcrcSize);
  return frame;
}

Bytes reliable_frame(const wire::NetTemplate& net, const TaPacket& ta, const Bytes& payload) {
  Bytes transaction(512);
  transaction.resize(wire::write_transaction_headers(ta, transaction.data()));
  transaction.insert(transaction.end(), payload.begin(), payload.end());
  const uint8_t padding = wire::padding_for(transaction.size());
  transaction.resize(transaction.size() + padding);
  wire::RtpHeader rtp;
  rtp.padding = padding;
  return wire::frame_of(net, wire::concat({wire::written(rtp), transaction}));
}

void expect_payload(const Bytes& frame, const Bytes& payload, const std::string& what) {
  const FrameShape shape = shape_of(frame);
  EXPECT_EQ(shape.icrc_at, frame.size() - wire::kIcrcSize) << what;
  ASSERT_EQ(shape.payload_bytes, payload.size()) << what;
  for (size_t i = 0; i < payload.size(); ++i) EXPECT_EQ(frame[shape.payload_at + i], payload[i]) << what;
  EXPECT_TRUE(payload.empty() || frame[shape.payload_at - 1] != payload[0]) << what << ": it begins earlier";
}

// Headers of zeros, in which nothing looks like payload.
TaPacket packet(TaOpcode op, bool ud, bool tv, bool meta) {
  TaPacket t{};
  Prng rng(1);
  const TaPacket form = wire::random_packet(op, ud, tv, meta, rng);
  t.is_response = form.is_response;
  t.req.opcode = t.rsp.opcode = op;
  t.has_ud = form.has_ud, t.has_mt = form.has_mt, t.has_taid = form.has_taid, t.has_ofst = form.has_ofst;
  t.has_ma = form.has_ma, t.has_imm = form.has_imm, t.has_ntf = form.has_ntf, t.has_mgmt = form.has_mgmt;
  t.tv = form.tv;
  t.mt = {}, t.ofst = {}, t.ma = {}, t.imm = {}, t.ntf = {}, t.mgmt = {};
  t.ud = t.token_value = 0, t.taid = 0;
  return t;
}

class EachOpcode : public testing::TestWithParam<TaOpcode> {
 protected:
  // Calls fn(packet, payload) for each form and several lengths.
  template <class Fn>
  void each(bool meta, Fn fn) {
    const TaOpcode op = GetParam();
    static std::byte enables[128];
    for (const bool ud : {false, true})
      for (const bool tv : {false, true})
        for (const size_t bytes : {size_t{0}, size_t{1}, size_t{7}, size_t{64}, size_t{200}}) {
          TaPacket t = packet(op, ud, tv, meta);
          size_t most = wire::ta_has_payload(op) ? bytes : 0;
          if ((wire::ta_shape(op) & wire::kShapeBe) != 0) {
            t.has_be = true;
            most = t.ma.length = 128;
            t.be = {enables, 128};
          }
          fn(t, payload_of(most));
        }
  }
};

TEST_P(EachOpcode, BehindCtp) {
  each(false, [](const TaPacket& t, const Bytes& payload) {
    expect_payload(compact_frame(t, payload), payload, wire::ta_opcode_name(t.opcode()));
  });
}

TEST_P(EachOpcode, BehindRtp) {
  each(true, [](const TaPacket& t, const Bytes& payload) {
    for (const wire::NetTemplate& net : {wire::template_v4(), wire::template_v6()})
      expect_payload(reliable_frame(net, t, payload), payload, wire::ta_opcode_name(t.opcode()));
  });
}

INSTANTIATE_TEST_SUITE_P(Opcodes, EachOpcode, testing::ValuesIn(wire::kAllOpcodes));

TEST(FrameShapeTest, NothingIsReadBeyondAFrameThatWasCut) {
  const Bytes whole = reliable_frame(wire::template_v4(), packet(TaOpcode::kWrite, true, true, false), payload_of(20));
  const Bytes compact = compact_frame(packet(TaOpcode::kWrite, true, true, false), payload_of(20));
  for (const Bytes* frame : {&whole, &compact}) {
    for (size_t bytes = 0; bytes < frame->size(); ++bytes) {
      const wire::Exact exact({frame->data(), bytes});
      const FrameShape shape = shape_of(exact.span());
      EXPECT_LE(shape.payload_at + shape.payload_bytes, bytes);
      EXPECT_LE(header_of(exact.span(), shape).size(), bytes);
    }
  }
}

// What belongs to set-up is read by the Core, so a recording keeps it.
TEST(FrameShapeTest, AMessageToJetty0HasNoPayload) {
  TaPacket send = packet(TaOpcode::kSend, false, false, false);
  wire::RtpHeader utp;
  utp.opcode = wire::TpOpcode::kUnreliable;
  for (const uint32_t jetty : {0u, 5u}) {
    send.mt = {0, wire::kTcTypeQueue, jetty};
    const Bytes transaction = wire::transaction_of(send, payload_of(64));
    const Bytes frame = wire::frame_of(wire::template_v4(), wire::concat({wire::written(utp), transaction}));
    EXPECT_EQ(shape_of(frame).payload_bytes, jetty == 0 ? 0u : 64u);
  }
}

}  // namespace
}  // namespace ub::record
