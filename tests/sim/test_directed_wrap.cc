// SPDX-License-Identifier: Apache-2.0
//
// Numbers that wrap while packets are lost, doubled and late: PSNs of RTP (24 bits), TASSNs of CTP (16 bits).
#include "lib/transport/wire/compact_packet.h"
#include "tests/sim/at_rest.h"
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr uint32_t kBeforeTheWrap = 0xFFFF80;

// Both directions of a channel wrap: data of WRITEs in one, answers to READs in the other.
void wrap_on(const Options& o) {
  Stage s(o);
  s.warm_up();
  std::vector<const Wr*> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(&s.write(200'000));
    all.push_back(&s.read(200'000));
  }
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, CrStatus::kSuccess) << op_name(w->op);
  for (const End& e : s.ends) {
    uint32_t wrapped = 0;
    for (const ChannelInfo& c : s.channels(e)) wrapped += c.next_psn < 0x1000;
    EXPECT_GE(wrapped, 1u);
    EXPECT_GE(s.count(e, Counter::kTpTxRetransmitFast), 10u);
    EXPECT_EQ(s.count(e, Counter::kTpChannelDead), 0u);
  }
  s.check_memory();
  check_quiet_state(s.world);
}

Options before_the_wrap() {
  Options o = directed_options();
  o.core.first_psn = kBeforeTheWrap;
  o.net.ns_per_byte = 0.08;
  o.net.loss = 0.02;
  o.net.duplicate = 0.05;
  return o;
}

TEST(Wrap, of_psns__selective_with_losses_duplicates_and_64_packets_out_of_order) {
  Options o = before_the_wrap();
  o.net.reorder_packets = 64;
  o.net.reorder_wait_ns = 64 * 80;
  wrap_on(o);
}

TEST(Wrap, of_psns__go_back_n_with_losses_duplicates_and_late_packets) {
  Options o = before_the_wrap();
  o.core.go_back_n = 1;
  o.net.reorder = 0.02;
  o.net.reorder_ns = 20'000;
  wrap_on(o);
}

// A segment of a WRITE takes a number, too.
TEST(Wrap, of_tassns__by_ctp_with_losses_duplicates_and_late_packets) {
  constexpr uint32_t kBytes = 16 * 1024, kNumbers = kBytes / 1024, kBefore = 65536 / kNumbers - 8;
  Options o = directed_options();
  o.compact = true;
  Stage s(o);
  s.warm_up();
  const auto write_and_finish = [&s](uint32_t count) {
    std::vector<const Wr*> all;
    for (uint32_t i = 0; i < count; ++i) all.push_back(&s.write(kBytes));
    s.finish();
    for (const Wr* w : all) EXPECT_EQ(w->status, CrStatus::kSuccess);
  };
  for (uint32_t done = 0; done < kBefore; done += 64) write_and_finish(std::min(64u, kBefore - done));

  uint32_t packets = 0;
  Tassn newest;
  bool wrapped = false;
  const auto every = [&](uint32_t nth) {
    return [&, nth](const PacketInfo& p) {
      wire::CompactPacket packet;
      wire::TaPacket ta;
      if (!wire::has_link_header(p.frame) || wire::parse_compact(p.frame, packet) != wire::Drop::kNone) return false;
      if (wire::parse_compact_transaction(packet.rest, packet.end, packet.ctp.padding, ta) != wire::Drop::kNone)
        return false;
      if (!ta.is_response && ta.req.tassn.value() < newest.value()) wrapped = true;
      if (!ta.is_response) newest = ta.req.tassn;
      return ++packets % nth == 0;
    };
  };
  s.world.network.tamper.add(drop(kAlways, every(7)));
  s.world.network.tamper.add(duplicate(kAlways, microseconds(300), every(5)));
  s.world.network.tamper.add(delay(kAlways, microseconds(90), every(11)));
  for (int i = 0; i < 8; ++i) {
    write_and_finish(2);
    const Wr& add = s.request(s.a(), s.b(), WrOp::kFetchAdd, 8);
    s.finish();
    EXPECT_EQ(add.status, CrStatus::kSuccess);
  }
  EXPECT_TRUE(wrapped);
  EXPECT_GE(s.count(s.a(), Counter::kCtpTxRepeat), 10u);
  EXPECT_GE(s.count(s.b(), Counter::kCtpRxDuplicate), 10u);
  s.check_memory();
  check_quiet_state(s.world);
}

}  // namespace
}  // namespace ub::sim
