// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/wire/cm_message.h"

#include <gtest/gtest.h>

#include "tests/unit/roce/golden_frames.h"

namespace ub::roce {
namespace {

constexpr uint32_t kThere = 0x0A4D0003, kBack = 0x0A4D0002;  // 10.77.0.3, 10.77.0.2

Gid gid_v4(uint32_t ip) { return Gid::from_v4(ip); }

/// The datagram in a golden frame.
Exact mad_of(const Bytes& frame) {
  const auto end = frame.end() - wire::kIcrcSize;
  return Exact(Bytes(end - kMadSize, end));
}

const std::byte* body_of(const Exact& mad, CmType type) {
  CmHead head;
  EXPECT_EQ(CmHead::read(mad.span(), head), Drop::kNone);
  EXPECT_EQ(head.type, type);
  EXPECT_EQ(head.transaction_id, 0x000000028237577Eu);
  return mad.begin() + kMadHeadSize;
}

template <class Message>
Bytes datagram(CmType type, const Message& message, uint64_t transaction_id = 0x000000028237577E) {
  Bytes mad(kMadSize, std::byte{0xA5});
  write_cm({type, transaction_id}, message, std::span<std::byte, kMadSize>(mad));
  return mad;
}

template <class Message>
void written_again(CmType type, const Exact& mad, const Message& message) {
  EXPECT_EQ(to_hex(datagram(type, message)), to_hex(mad.span()));
}

bool all_zero(PrivateData data) {
  return std::all_of(data.begin(), data.end(), [](std::byte b) { return b == std::byte{0}; });
}

TEST(CmGolden, req) {
  const Exact mad = mad_of(golden::cm_req());
  const CmReq r = CmReq::read(body_of(mad, CmType::kReq));
  EXPECT_EQ(r.local_comm_id, 0x7E573782u);
  EXPECT_EQ(r.service_id, service_id_of_port(7174));
  EXPECT_EQ(r.ca_guid, 0x505400FFFE48011Eu);
  EXPECT_EQ(r.qpn, 17u);
  EXPECT_EQ(r.responder_resources, 1);
  EXPECT_EQ(r.initiator_depth, 1);
  EXPECT_EQ(r.remote_timeout, 20);
  EXPECT_EQ(r.transport, 0);
  EXPECT_FALSE(r.flow_control);
  EXPECT_EQ(r.starting_psn, Psn(0x692C37));
  EXPECT_EQ(r.local_timeout, 20);
  EXPECT_EQ(r.retry_count, 7);
  EXPECT_EQ(r.pkey, 0xFFFF);
  EXPECT_EQ(mtu_of_code(r.path_mtu_code), 1024u);
  EXPECT_EQ(r.rnr_retry, 7);
  EXPECT_EQ(r.max_cm_retries, 15);
  EXPECT_FALSE(r.srq);
  EXPECT_EQ(r.local_gid, gid_v4(kThere));
  EXPECT_EQ(r.remote_gid, gid_v4(kBack));
  EXPECT_EQ(r.flow_label, 0x5A77Bu);
  EXPECT_EQ(r.hop_limit, 64);
  EXPECT_EQ(r.ack_timeout, 19);
  written_again(CmType::kReq, mad, r);
}

TEST(CmGolden, req_has_addresses_of_rdma_cm) {
  const Exact mad = mad_of(golden::cm_req());
  const CmReq r = CmReq::read(body_of(mad, CmType::kReq));
  CmIpHeader ip;
  ASSERT_EQ(CmIpHeader::read(r.private_data, ip), Drop::kNone);
  EXPECT_EQ(ip, (CmIpHeader{{gid_v4(kThere), 0xB1EB}, gid_v4(kBack)}));
  Bytes again(CmIpHeader::kSize);
  ip.write(again.data());
  EXPECT_EQ(to_hex(again), to_hex(r.private_data.first(CmIpHeader::kSize)));
  EXPECT_TRUE(all_zero(r.private_data.subspan(CmIpHeader::kSize)));
}

TEST(CmGolden, rep) {
  const Exact mad = mad_of(golden::cm_rep());
  const CmRep r = CmRep::read(body_of(mad, CmType::kRep));
  EXPECT_EQ(r.local_comm_id, 0xC3C3B010u);
  EXPECT_EQ(r.remote_comm_id, 0x7E573782u);
  EXPECT_EQ(r.qpn, 17u);
  EXPECT_EQ(r.starting_psn, Psn(0xE2222F));
  EXPECT_EQ(r.responder_resources, 1);
  EXPECT_EQ(r.initiator_depth, 1);
  EXPECT_EQ(r.target_ack_delay, 15);
  EXPECT_EQ(r.rnr_retry, 7);
  EXPECT_FALSE(r.srq);
  EXPECT_EQ(r.ca_guid, 0x505400FFFEA35ECDu);
  EXPECT_TRUE(all_zero(r.private_data));
  written_again(CmType::kRep, mad, r);
}

TEST(CmGolden, rtu) {
  const Exact mad = mad_of(golden::cm_rtu());
  const CmRtu r = CmRtu::read(body_of(mad, CmType::kRtu));
  EXPECT_EQ(r.local_comm_id, 0x7E573782u);
  EXPECT_EQ(r.remote_comm_id, 0xC3C3B010u);
  written_again(CmType::kRtu, mad, r);
}

TEST(CmGolden, dreq_and_drep) {
  const Exact dreq = mad_of(golden::cm_dreq()), drep = mad_of(golden::cm_drep());
  const CmDreq q = CmDreq::read(body_of(dreq, CmType::kDreq));
  EXPECT_EQ(q.local_comm_id, 0x7E573782u);
  EXPECT_EQ(q.remote_comm_id, 0xC3C3B010u);
  EXPECT_EQ(q.remote_qpn, 17u);
  written_again(CmType::kDreq, dreq, q);
  const CmDrep p = CmDrep::read(body_of(drep, CmType::kDrep));
  EXPECT_EQ(p.local_comm_id, 0xC3C3B010u);
  EXPECT_EQ(p.remote_comm_id, 0x7E573782u);
  written_again(CmType::kDrep, drep, p);
}

// By the layout tables; no peer sent these.
TEST(CmLayout, rej) {
  const Bytes info = hex("0102"), text = hex("68656c6c6f");
  const Bytes mad = datagram(CmType::kRej, CmRej{1, 2, CmAbout::kRep, RejReason::kInvalidServiceId, 2, info, text}, 3);
  EXPECT_EQ(to_hex({mad.data(), 36}),
            to_hex(hex("0107020300000000 0000000000000003 0012000000000000 00000001 00000002 40 04 0008")));
  EXPECT_EQ(to_hex({&mad[24 + 12], 4}), to_hex(hex("01020000")));
  EXPECT_EQ(to_hex({&mad[24 + 84], 6}), to_hex(hex("68656c6c6f00")));
  const CmRej r = CmRej::read(&mad[24]);
  EXPECT_EQ(r.about, CmAbout::kRep);
  EXPECT_EQ(r.reason, RejReason::kInvalidServiceId);
  EXPECT_EQ(r.info_bytes, 2);
  EXPECT_EQ(r.info.size(), CmRej::kInfoSize);
  EXPECT_EQ(r.private_data.size(), CmRej::kPrivateDataSize);
}

TEST(CmLayout, mra) {
  const Bytes text = hex("ff");
  const Bytes mad = datagram(CmType::kMra, CmMra{1, 2, CmAbout::kReq, 21, text});
  EXPECT_EQ(to_hex({&mad[24], 12}), to_hex(hex("00000001 00000002 00 a8 ff 00")));
  const CmMra m = CmMra::read(&mad[24]);
  EXPECT_EQ(m.service_timeout, 21);
  EXPECT_EQ(m.about, CmAbout::kReq);
}

TEST(CmMessage, any_body_that_was_read_is_written_as_it_is_read_again) {
  Prng rng(81);
  const auto twice = [](const auto& first, std::span<std::byte, kCmBodySize> a, std::span<std::byte, kCmBodySize> b) {
    using Message = std::decay_t<decltype(first)>;
    first.write(a.data());
    Message::read(a.data()).write(b.data());
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << to_hex(a);
  };
  for (int i = 0; i < 300; ++i) {
    const Exact body(random_bytes(kCmBodySize, rng));
    std::array<std::byte, kCmBodySize> a, b;
    twice(CmReq::read(body.begin()), a, b);
    twice(CmRep::read(body.begin()), a, b);
    twice(CmRtu::read(body.begin()), a, b);
    twice(CmRej::read(body.begin()), a, b);
    twice(CmMra::read(body.begin()), a, b);
    twice(CmDreq::read(body.begin()), a, b);
  }
}

/// Neighbouring fields full and empty in turn.
CmReq striped(bool odd) {
  const auto full = [&odd](unsigned value) {
    odd = !odd;
    return static_cast<uint8_t>(odd ? value : 0);
  };
  CmReq r;
  r.responder_resources = full(255);
  r.initiator_depth = full(255);
  r.remote_timeout = full(31);
  r.transport = full(3);
  r.flow_control = full(1) != 0;
  r.local_timeout = full(31);
  r.retry_count = full(7);
  r.path_mtu_code = full(15);
  r.rnr_retry = full(7);
  r.max_cm_retries = full(15);
  r.srq = full(1) != 0;
  r.rate = full(63);
  r.traffic_class = full(255);
  r.hop_limit = full(255);
  r.sl = full(15);
  r.subnet_local = full(1) != 0;
  r.ack_timeout = full(31);
  return r;
}

TEST(CmMessage, fields_of_a_request_do_not_touch_each_other) {
  for (const bool odd : {false, true}) {
    const CmReq all = striped(odd);
    const Bytes mad = datagram(CmType::kReq, all);
    const CmReq r = CmReq::read(&mad[24]);
    EXPECT_EQ(r.responder_resources, all.responder_resources);
    EXPECT_EQ(r.initiator_depth, all.initiator_depth);
    EXPECT_EQ(r.remote_timeout, all.remote_timeout);
    EXPECT_EQ(r.transport, all.transport);
    EXPECT_EQ(r.flow_control, all.flow_control);
    EXPECT_EQ(r.local_timeout, all.local_timeout);
    EXPECT_EQ(r.retry_count, all.retry_count);
    EXPECT_EQ(r.path_mtu_code, all.path_mtu_code);
    EXPECT_EQ(r.rnr_retry, all.rnr_retry);
    EXPECT_EQ(r.max_cm_retries, all.max_cm_retries);
    EXPECT_EQ(r.srq, all.srq);
    EXPECT_EQ(r.rate, all.rate);
    EXPECT_EQ(r.traffic_class, all.traffic_class);
    EXPECT_EQ(r.hop_limit, all.hop_limit);
    EXPECT_EQ(r.sl, all.sl);
    EXPECT_EQ(r.subnet_local, all.subnet_local);
    EXPECT_EQ(r.ack_timeout, all.ack_timeout);
  }
}

TEST(CmMessage, fields_of_a_reply_do_not_touch_each_other) {
  for (const bool odd : {false, true}) {
    CmRep all;
    all.target_ack_delay = odd ? 31 : 0;
    all.failover = odd ? 0 : 3;
    all.flow_control = odd;
    all.rnr_retry = odd ? 0 : 7;
    all.srq = odd;
    const Bytes mad = datagram(CmType::kRep, all);
    const CmRep r = CmRep::read(&mad[24]);
    EXPECT_EQ(r.target_ack_delay, all.target_ack_delay);
    EXPECT_EQ(r.failover, all.failover);
    EXPECT_EQ(r.flow_control, all.flow_control);
    EXPECT_EQ(r.rnr_retry, all.rnr_retry);
    EXPECT_EQ(r.srq, all.srq);
  }
}

TEST(CmMessage, private_data_is_cut_and_filled_up) {
  const Bytes small = hex("0102"), large(kCmBodySize, std::byte{0xEE});
  CmRtu m{1, 2, large};
  Bytes mad = datagram(CmType::kRtu, m);
  EXPECT_EQ(CmRtu::read(&mad[24]).private_data.size(), CmRtu::kPrivateDataSize);
  EXPECT_EQ(mad.back(), std::byte{0xEE});
  m.private_data = small;
  mad = datagram(CmType::kRtu, m);
  const PrivateData back = CmRtu::read(&mad[24]).private_data;
  EXPECT_EQ(to_hex(back.first(3)), "01 02 00 ");
  EXPECT_TRUE(all_zero(back.subspan(2)));
}

TEST(CmHead, every_length_but_256_is_refused) {
  const Exact good = mad_of(golden::cm_rtu());
  for (size_t n = 0; n < kMadSize; ++n) {
    const Exact cut(good.span().first(n));
    CmHead head;
    EXPECT_EQ(CmHead::read(cut.span(), head), Drop::kBadMad) << n;
  }
  Bytes longer(good.begin(), good.end());
  longer.resize(kMadSize + 4);
  CmHead head;
  EXPECT_EQ(CmHead::read(longer, head), Drop::kBadMad);
}

TEST(CmHead, what_is_not_ours) {
  const Exact good = mad_of(golden::cm_rtu());
  const auto with = [&good](size_t at, uint8_t value, CmHead& head) {
    Bytes b(good.begin(), good.end());
    store_u8(&b[at], value);
    return CmHead::read(b, head);
  };
  CmHead head;
  EXPECT_EQ(with(0, 2, head), Drop::kBadMad);     // base version
  EXPECT_EQ(with(1, 0x03, head), Drop::kBadMad);  // subnet administration
  EXPECT_EQ(with(3, 0x01, head), Drop::kBadMad);  // Get
  head = {};
  EXPECT_EQ(with(2, 3, head), Drop::kBadCmVersion);
  EXPECT_EQ(head, (CmHead{CmType::kRtu, 0x000000028237577E}));
  for (const uint8_t type : {0x00, 0x0F, 0x17, 0x18, 0xFF}) {
    EXPECT_EQ(with(17, type, head), Drop::kUnknownCmMessage) << int{type};
    EXPECT_STREQ(cm_type_name(head.type), "?");
  }
  EXPECT_EQ(with(16, 1, head), Drop::kUnknownCmMessage);
}

TEST(CmIpHeader, ipv6_and_what_is_refused) {
  const CmIpHeader v6{{wire::v6_address(1), 7}, wire::v6_address(2)};
  Bytes b(CmIpHeader::kSize);
  v6.write(b.data());
  EXPECT_EQ(load_u8(&b[1]), 0x60);
  CmIpHeader back;
  ASSERT_EQ(CmIpHeader::read(b, back), Drop::kNone);
  EXPECT_EQ(back, v6);
  EXPECT_EQ(CmIpHeader::read(PrivateData(b).first(35), back), Drop::kBadCmPrivateData);
  EXPECT_EQ(CmIpHeader::read({}, back), Drop::kBadCmPrivateData);
  for (const uint8_t version : {0x00, 0x50, 0xF0}) {
    store_u8(&b[1], version);
    EXPECT_EQ(CmIpHeader::read(b, back), Drop::kBadCmPrivateData);
  }
  store_u8(&b[1], 0x60);
  store_u8(&b[0], 0x10);
  EXPECT_EQ(CmIpHeader::read(b, back), Drop::kBadCmPrivateData);
}

TEST(CmCodes, path_mtu_and_service) {
  EXPECT_EQ(mtu_of_code(0), 0u);
  EXPECT_EQ(mtu_of_code(1), 256u);
  EXPECT_EQ(mtu_of_code(5), 4096u);
  EXPECT_EQ(mtu_of_code(6), 0u);
  EXPECT_EQ(code_of_mtu(4096), 5);
  EXPECT_EQ(code_of_mtu(4095), 4);
  EXPECT_EQ(code_of_mtu(256), 1);
  EXPECT_TRUE(is_tcp_service(service_id_of_port(65535)));
  EXPECT_FALSE(is_tcp_service(0x0000000001110000));
}

}  // namespace
}  // namespace ub::roce
