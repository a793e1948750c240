// SPDX-License-Identifier: Apache-2.0
//
// Sending the control records of the outbox where links have no room: each holds up its own records alone.
#include "lib/transport/setup/record_sender.h"

#include <map>

#include "tests/unit/setup/instance.h"
#include "tests/unit/transport/test_host.h"

namespace ub::setup {
namespace {

struct NarrowHost : TestHost {
  std::map<uint32_t, size_t> room;  // by link: longer frames find none
  std::byte* tx_begin(uint32_t link, size_t bytes) {
    const auto narrow = room.find(link);
    return narrow != room.end() && bytes > narrow->second ? nullptr : TestHost::tx_begin(link, bytes);
  }
};

// The indices of its ring are about to wrap.
struct Outbox : Instance {
  Outbox() {
    while (s->links.in_use() < 3) s->links[s->links.alloc()] = LinkRecord{.up = true, .config = {.mtu = 4096}};
    s->outbox_head = s->outbox_tail = kOutboxRing - 2;
  }
  void put(uint32_t link, uint32_t attempt = 0, uint32_t pad_to_mtu = 0) {
    OutRecord out{};
    out.link = link;
    out.pad_to_mtu = pad_to_mtu;
    out.local = from.local;
    out.remote = from.remote;
    out.record.attempt = attempt;
    send_record(*s, out);
  }
  void put_of_class(bool bulk) {
    put(1);
    s->outbox[(s->outbox_tail - 1) % kOutboxRing].bulk = bulk;
  }
  size_t send(size_t budget = 64) { return RecordSender<NarrowHost>(*s, host).send(budget); }
  // The attempts in the records that have not left.
  std::vector<uint32_t> waiting() const {
    std::vector<uint32_t> all;
    for (uint32_t at = s->outbox_head; at != s->outbox_tail; ++at) {
      all.push_back(s->outbox[at % kOutboxRing].record.attempt);
    }
    return all;
  }
  NarrowHost host;
};

using Attempts = std::vector<uint32_t>;

TEST(RecordSender, writes_the_code_point_of_the_class) {
  Outbox o;
  o.s->config.dscp = 46;
  o.s->config.bulk_dscp = 8;
  for (const bool bulk : {false, true}) o.put_of_class(bulk);
  ASSERT_EQ(o.send(), 2u);
  for (const size_t at : {0, 1}) {
    wire::NetHeader net;
    ASSERT_EQ(wire::parse_network(o.host.frames[at], net), wire::Drop::kNone);
    EXPECT_EQ(net.dscp(), at == 0 ? 46 : 8);
  }
}

TEST(RecordSender, that_passes_over_a_link_keeps_to_its_budget) {
  for (const bool first : {false, true}) {
    Outbox o;
    o.host.room[2] = 0;
    if (first) o.put(2);
    o.put(1);
    if (!first) o.put(2);
    for (int n = 0; n < 3; ++n) o.put(1);
    EXPECT_EQ(o.send(2), 2u);
    EXPECT_EQ(o.host.frames.size(), 2u);
    EXPECT_EQ(o.waiting().size(), 3u);
    EXPECT_EQ(o.send(), 2u);
    EXPECT_EQ(o.waiting().size(), 1u);
  }
}

TEST(RecordSender, keeps_the_order_of_a_link_although_a_short_record_would_find_room_before_a_long_one) {
  Outbox o;
  o.host.room[2] = 1024;
  o.put(2, 1, 4096);
  o.put(2, 2);
  o.put(1, 3);
  o.put(2, 4);
  EXPECT_EQ(o.send(), 1u);
  EXPECT_EQ(o.waiting(), (Attempts{1, 2, 4}));
  o.host.room.clear();
  EXPECT_EQ(o.send(), 3u);
  EXPECT_EQ(o.waiting(), Attempts{});
}

TEST(RecordSender, that_passed_over_a_link_tries_it_again_the_next_time) {
  Outbox o;
  o.host.room[2] = o.host.room[3] = 0;
  o.put(2, 1);
  o.put(3, 2);
  EXPECT_EQ(o.send(), 0u);
  o.host.room.erase(3);
  EXPECT_EQ(o.send(), 1u);
  EXPECT_EQ(o.waiting(), Attempts{1});
}

}  // namespace
}  // namespace ub::setup
