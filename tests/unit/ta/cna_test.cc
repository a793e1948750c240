// SPDX-License-Identifier: Apache-2.0
//
// Channels of RTP over UB's own network header (UB Base Specification Rev 2.0, 5.2.2), and what their congestion
// control indicator (5.3.5) makes of congestion.
#include "lib/impair/congestion_mark.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

UbOptions over_cna(cc::Control control = cc::Control::kNone) {
  UbOptions o;
  o.link.link_frames = true;
  o.core.rtp_over_cna = true;
  o.core.congestion_control = control;
  o.core.line_bytes_per_second = 1'000'000'000;
  return o;
}

class CnaTest : public UbPair {
 protected:
  explicit CnaTest(const UbOptions& o = over_cna()) : UbPair(o) {}
  void SetUp() override { connect(); }

  struct Seen {
    wire::CnaPacket at;
    wire::RtpHeader rtp;
    wire::Cci cci;
  };
  static Seen read(const Bytes& frame) {
    Seen seen;
    EXPECT_TRUE(wire::has_link_header(frame));
    EXPECT_EQ(wire::parse_cna(frame, seen.at), wire::Drop::kNone);
    const auto bytes = static_cast<size_t>(seen.at.end - seen.at.tph);
    EXPECT_EQ(wire::RtpHeader::read(seen.at.tph, bytes, seen.rtp), wire::Drop::kNone);
    EXPECT_TRUE(wire::Cci::unpack(seen.at.cci, seen.cci));
    EXPECT_TRUE(wire::icrc_matches(seen.at));
    return seen;
  }
  static std::vector<Seen> read_all(const UbNode& from) {
    std::vector<Seen> all;
    for (const Bytes& frame : from.host.frames) all.push_back(read(frame));
    return all;
  }
  /// A packet of a goes through a hop that makes its CCI this one, and what b says of it arrives.
  void send_through(const wire::Cci& cci) {
    request(WrOp::kWrite, 1024);
    drain(a);
    ASSERT_EQ(a.host.frames.size(), 1u);
    wire::write_cci(a.host.frames[0].data(), cci);
    exchange();
  }
  /// The only packet of a WRITE of a, changed, comes to b, which drops it by this name.
  template <class Change>
  void expect_drop(Counter name, Change change) {
    request(WrOp::kWrite, 100);
    drain(a);
    Bytes frame = a.host.frames.at(0);
    a.host.frames.clear();
    change(frame);
    const uint64_t before = count(b, name);
    b.core->on_packet(now, b.link, frame);
    EXPECT_EQ(count(b, name), before + 1);
    drain(b);
    EXPECT_TRUE(b.host.frames.empty());
  }
};

TEST_F(CnaTest, all_of_a_channel_goes_by_it) {
  request(WrOp::kWrite, 5000);
  drain(a);
  EXPECT_EQ(a.host.frames.size(), 5u);
  for (const Seen& seen : read_all(a)) {
    EXPECT_EQ(seen.at.scna, wire::cna_of(a.at.ip));
    EXPECT_EQ(seen.at.dcna, wire::cna_of(b.at.ip));
    EXPECT_EQ(seen.at.cci, 0);
  }
  deliver(a, b);
  drain(b);
  EXPECT_FALSE(read_all(b).empty()) << "its acknowledgement or answer";
  exchange();
  EXPECT_TRUE(arrived(5000));
  ASSERT_EQ(a.poll().size(), 1u);
  ChannelInfo shown;
  ASSERT_TRUE(a.core->channel_info(1, &shown));
  EXPECT_TRUE(shown.cna);
}

struct CnaClasses : CnaTest {
  CnaClasses() : CnaTest(classes()) {}
  static UbOptions classes() {
    UbOptions o = over_cna();
    o.core.lanes = 2;
    o.core.lane_bulk_bytes = 1024;
    o.core.dscp = 46;
    o.core.bulk_dscp = 8;
    return o;
  }
};

TEST_F(CnaClasses, tell_the_service_level) {
  request(WrOp::kWrite, 5000);  // which sets its channel up
  exchange();
  for (const auto& [bytes, level] : {std::pair(5000, 1), std::pair(100, 5)}) {
    request(WrOp::kWrite, bytes);
    drain(a);
    EXPECT_FALSE(a.host.frames.empty());
    for (const Seen& seen : read_all(a)) EXPECT_EQ(seen.at.sl, level) << bytes;
    exchange();
  }
}

TEST_F(CnaTest, reads_and_sends_and_atomics_do) {
  request(WrOp::kRead, 5000);
  b.post_receive(b.receive_indices[0], b.receives[0], 0, 4096);
  request(WrOp::kSend, 4096);
  request(WrOp::kFetchAdd, 8);
  exchange();
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 3u);
  for (const Cqe& c : done) EXPECT_EQ(c.status, CrStatus::kSuccess);
}

TEST_F(CnaTest, what_is_lost_goes_again_by_it) {
  request(WrOp::kWrite, 5000);
  drain(a);
  a.host.frames.erase(a.host.frames.begin() + 1);
  deliver(a, b);
  drain(b);
  deliver(b, a);
  drain(a);
  ASSERT_EQ(a.host.frames.size(), 1u);
  EXPECT_EQ(read_all(a)[0].rtp.psn.value(), 101u);
  exchange();
  EXPECT_TRUE(arrived(5000));
}

class CnaAtOneEnd : public CnaTest, public testing::WithParamInterface<bool> {
 protected:
  CnaAtOneEnd() : CnaTest(options(GetParam())) {}
  static UbOptions options(bool on_the_link) {
    UbOptions o = over_cna();
    o.link.link_frames = on_the_link;
    o.cna_at_b = !on_the_link;
    return o;
  }
};

TEST_P(CnaAtOneEnd, or_on_a_link_without_such_frames_leaves_uboe) {
  EXPECT_FALSE(channel(a).cna || channel(b).cna);
  request(WrOp::kWrite, 1000);
  EXPECT_TRUE(sent_by(a).at(0).sealed);
  exchange();
  EXPECT_TRUE(arrived(1000));
}

INSTANTIATE_TEST_SUITE_P(Cna, CnaAtOneEnd, testing::Bool());

TEST(CnaTerms, a_channel_has_no_other_paths) {
  struct Lossy : CnaTest {
    static UbOptions options() {
      UbOptions o = over_cna();
      o.link.lossless = false;
      o.core.most_paths = 4;
      o.core.path_channels = 4;
      return o;
    }
    Lossy() : CnaTest(options()) { connect(); }
    void TestBody() override {
      EXPECT_TRUE(channel(a).cna && channel(b).cna);
      EXPECT_FALSE(channel(a).takes_paths || channel(b).takes_paths);
    }
  };
  Lossy().TestBody();
}

// ---- what does not belong there ----------------------------------------------------------------------------------

TEST_F(CnaTest, packets_of_others_are_dropped_by_name) {
  constexpr size_t kNth = wire::kEthSize + wire::LinkHeader::kSize;
  expect_drop(Counter::kRxDropWrongPeer, [](Bytes& f) { f[kNth + 2] ^= std::byte{1}; });  // SCNA
  expect_drop(Counter::kRxDropWrongPeer, [](Bytes& f) { f[kNth + 5] ^= std::byte{1}; });  // DCNA
  expect_drop(Counter::kRxDropBadIcrc, [](Bytes& f) { f.back() ^= std::byte{1}; });
  expect_drop(Counter::kRxDropTooShort, [](Bytes& f) { f.resize(wire::kCnaHeadersSize + 3); });
  expect_drop(Counter::kRxDropTooShort, [](Bytes& f) { f.resize(wire::kCnaHeadersSize + wire::kIcrcSize + 3); });
  expect_drop(Counter::kRxDropBadNlp, [](Bytes& f) { f[wire::kCnaHeadersSize - 1] = std::byte{3}; });
  const size_t tpn = wire::kCnaHeadersSize;
  expect_drop(Counter::kRxDropUnknownTpn, [&](Bytes& f) {
    wire::RtpHeader rtp;
    ASSERT_EQ(wire::RtpHeader::read(f.data() + tpn, wire::RtpHeader::kSize, rtp), wire::Drop::kNone);
    rtp.dst_tpn ^= 0x10;
    rtp.write(f.data() + tpn);
  });
}

TEST_F(CnaTest, packets_of_uboe_do_not_belong_to_its_channel) {
  expect_drop(Counter::kRxDropWrongPeer, [&](Bytes& f) {
    wire::NetTemplate uboe;
    uboe.init({}, {}, a.at, b.at, 0);
    Bytes other(f.size() - wire::kCnaHeadersSize + uboe.size);
    uboe.write(other.data(), other.size() - uboe.size, wire::kEcnNotCapable);
    std::copy(f.begin() + wire::kCnaHeadersSize, f.end(), other.begin() + uboe.size);
    std::byte* end = other.data() + other.size() - wire::kIcrcSize;
    const std::byte* l3 = other.data() + wire::kEthSize;
    wire::icrc_store(end, wire::icrc_compute(l3, static_cast<size_t>(end - l3), false));
    f = other;
  });
}

// ---- congestion --------------------------------------------------------------------------------------------------

struct CnaCaqm : CnaTest {
  CnaCaqm() : CnaTest(over_cna(cc::Control::kCaqm)) {}
  uint32_t window() const { return channel(a).flow.caqm.window_bytes; }
};

TEST_F(CnaCaqm, packets_ask_for_bytes_and_answers_do_not) {
  request(WrOp::kWrite, 8 * 1024);
  drain(a);
  for (const Seen& seen : read_all(a)) {
    EXPECT_TRUE(seen.cci.enable);
    EXPECT_FALSE(seen.cci.congested);
    EXPECT_EQ(seen.cci.hint != 0, seen.cci.increase);
  }
  EXPECT_GE(read_all(a)[0].cci.hint, 1024 / 32) << "the first one asks for as much as it has";
  EXPECT_FALSE(read_all(a)[1].cci.increase) << "less than half of the window was used";
  EXPECT_GE(read_all(a)[7].cci.hint, 1024 / 32) << "slow start asks for as much as it sends";
  deliver(a, b);
  drain(b);
  for (const Seen& seen : read_all(b)) {
    EXPECT_EQ(seen.at.cci != 0, seen.rtp.is_data());
  }
}

TEST_F(CnaCaqm, what_a_hop_grants_widens_the_window_by_as_much) {
  const uint32_t before = window();
  send_through({.enable = true, .increase = true, .hint = 5});
  EXPECT_EQ(window(), before + 5 * 32);
}

TEST_F(CnaCaqm, a_mark_takes_half_a_packet_and_a_refusal_nothing) {
  const uint32_t before = window();
  send_through({.enable = true});
  EXPECT_EQ(window(), before);
  send_through({.loc = true, .enable = true, .congested = true});
  EXPECT_LT(window(), before);
  EXPECT_EQ(count(b, Counter::kTpRxMarked), 1u);
}

TEST_F(CnaCaqm, another_mode_says_nothing) {
  const uint32_t before = window();
  send_through({.mode = wire::CciMode::kFecn, .fecn = wire::kEcnCe});
  EXPECT_EQ(window(), before);
  EXPECT_EQ(count(b, Counter::kTpRxMarked), 0u);
}

struct CnaLdcp : CnaTest {
  CnaLdcp() : CnaTest(over_cna(cc::Control::kLdcp)) {}
};

TEST_F(CnaLdcp, counts_light_and_severe_congestion_alike) {
  for (const uint8_t fecn : {wire::kEcnEct1, wire::kEcnCe}) {
    const uint32_t before = channel(b).heard.marked_words;
    send_through({.mode = wire::CciMode::kFecn, .fecn = fecn});
    EXPECT_GT(channel(b).heard.marked_words, before) << int{fecn};
  }
  const uint32_t before = channel(b).heard.marked_words;
  send_through({.mode = wire::CciMode::kFecn, .fecn = wire::kEcnEct0});
  EXPECT_EQ(channel(b).heard.marked_words, before);
}

TEST_F(CnaLdcp, packets_may_be_marked) {
  request(WrOp::kWrite, 100);
  drain(a);
  EXPECT_EQ(read_all(a).at(0).cci, (wire::Cci{.mode = wire::CciMode::kFecn, .fecn = wire::kEcnEct0}));
  Bytes& frame = a.host.frames[0];
  EXPECT_TRUE(mark_congestion(frame));
  EXPECT_EQ(read(frame).cci, (wire::Cci{.mode = wire::CciMode::kFecn, .fecn = wire::kEcnCe}));
}

struct CnaDcqcn : CnaTest {
  CnaDcqcn() : CnaTest(over_cna(cc::Control::kDcqcn)) {}
};

TEST_F(CnaDcqcn, is_notified_by_it) {
  send_through({.mode = wire::CciMode::kFecn, .fecn = wire::kEcnCe});
  EXPECT_EQ(count(a, Counter::kTpRxCnp), 1u);
  EXPECT_EQ(channel(a).flow.dcqcn.rate_kbytes_per_second, 500'000u);
}

TEST(MarkOfCci, takes_the_wish_with_it) {
  std::vector<std::byte> frame(100);
  wire::cna_template({wire::IpAddress::from_v4(1), 1}, {wire::IpAddress::from_v4(2), 2}, 0).write(frame.data(), 0, 0);
  EXPECT_FALSE(mark_congestion(frame)) << "its sender allows none";
  wire::write_cci(frame.data(), {.enable = true, .increase = true, .hint = 9});
  wire::Cci cci;
  EXPECT_TRUE(mark_congestion(frame, wire::kEcnEct0));
  ASSERT_TRUE(wire::read_cci(frame, cci));
  EXPECT_EQ(cci, (wire::Cci{.enable = true})) << "refused";
  wire::write_cci(frame.data(), {.enable = true, .increase = true, .hint = 9});
  EXPECT_TRUE(mark_congestion(frame));
  ASSERT_TRUE(wire::read_cci(frame, cci));
  EXPECT_EQ(cci, (wire::Cci{.enable = true, .congested = true}));
}

}  // namespace
}  // namespace ub
