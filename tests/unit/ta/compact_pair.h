// SPDX-License-Identifier: Apache-2.0
// compact_pair.h - two Cores whose wire carries CTP (UB Base Specification Rev 2.0, 6.2.1), and what its frames say.
#pragma once

#include <vector>

#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/response_status.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {

struct SeenCompact {
  wire::CompactPacket packet;
  wire::TaPacket ta;
  bool sealed;
};

class CompactPair : public UbPair {
 protected:
  static constexpr uint32_t kMtu = 1024;
  static constexpr size_t kLph = wire::kEthSize, kNth = kLph + 4, kCtph = kNth + 10, kBtah = kCtph + 1;

  explicit CompactPair(const UbOptions& o = options()) : UbPair(o) {}
  void SetUp() override { connect(); }

  static UbOptions options() {
    UbOptions o;
    o.core.lanes = 2;
    o.core.slow_memory = false;
    o.core.window_packets = 128;
    o.link = {.mtu = kMtu, .lossless = true, .compact = true};
    return o;
  }

  static SeenCompact parse_compact(const Bytes& frame) {
    SeenCompact seen{};
    EXPECT_TRUE(wire::has_link_header(frame));
    EXPECT_EQ(wire::parse_compact(frame, seen.packet), wire::Drop::kNone);
    seen.sealed = wire::icrc_matches(seen.packet);
    EXPECT_EQ(wire::parse_compact_transaction(seen.packet.rest, seen.packet.end, seen.packet.ctp.padding, seen.ta),
              wire::Drop::kNone);
    return seen;
  }
  /// What a node would send now, which is of CTP alone.
  std::vector<SeenCompact> compact_from(UbNode& node) {
    drain(node);
    std::vector<SeenCompact> all;
    for (const Bytes& frame : node.host.frames) all.push_back(parse_compact(frame));
    return all;
  }
  // The status of the only completion; success: none or several.
  CrStatus only_status(UbNode& node) {
    const std::vector<Cqe> done = node.poll();
    EXPECT_EQ(done.size(), 1u);
    return done.size() == 1 ? done[0].status : CrStatus::kSuccess;
  }
  /// Makes the sum right again.
  static void seal(Bytes& frame) {
    std::byte* end = frame.data() + frame.size() - wire::kIcrcSize;
    const std::byte* nth = frame.data() + wire::kEthSize + wire::LinkHeader::kSize;
    wire::icrc_store(end, wire::icrc_compute_nth24(nth, static_cast<size_t>(end - nth)));
  }
  uint64_t rtp_data(const UbNode& n) const { return count(n, Counter::kTpTxData); }
  uint32_t limit() const { return channel(a).agreed_window / 2; }
  void expect_at_rest() {
    EXPECT_EQ(state(a).peers[channel(a).peer].lanes[channel(a).lane].unanswered, 0u);
    for (const UbNode* n : {&a, &b}) {
      EXPECT_EQ(state(*n).messages.in_use(), 0u);
      EXPECT_EQ(state(*n).jobs.in_use(), 0u);
      EXPECT_EQ(n->host.open_frames(), 0u);
    }
    EXPECT_EQ(channel(a).next_psn, channel(b).expected);
    EXPECT_EQ(channel(b).next_psn, channel(a).expected);
  }
};

}  // namespace ub
