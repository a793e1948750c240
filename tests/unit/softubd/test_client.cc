// SPDX-License-Identifier: Apache-2.0
// What an application's ringing may cost: as often as it likes for something, a little for nothing.
#include "dataplane/softubd/client.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "dataplane/nic.h"

namespace ub {
namespace {

constexpr uint32_t kSlots = 16;

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    LoadedConfig config;
    config.port.kinds = {"loopback"};
    config.device.eids = {"127.0.0.1"};
    std::string error;
    nic = Nic::start(config, 0, {}, &error);
    EXPECT_NE(nic, nullptr) << error;
    client = Client::create(1, &error);
    EXPECT_NE(client, nullptr) << error;
    EXPECT_TRUE(page_memory.map(client->page_fd(), sizeof(ipc::AppPage), &error)) << error;
    nic->control([&](Nic::NicCore& core, Instant) {
      EXPECT_EQ(core.create_jfc({.slots = completions.data(),
                                 .slot_count = kSlots,
                                 .depth = kSlots,
                                 .indices = &jfc_indices,
                                 .cookie = 0,
                                 .owner = 1},
                                &jfc),
                Status::kOk);
      JettyConfig c;
      c.sq = {.slots = elements.data(), .slot_count = kSlots, .depth = kSlots, .indices = &indices};
      c.sq.work = work.data();
      c.sq.jfc = jfc;
      c.owner = 1;
      c.kind = ObjectKind::kJfs;
      EXPECT_EQ(core.create_jetty(c, &jfs), Status::kOk);
      return 0;
    });
    EXPECT_TRUE(client->add_queue(jfs, &bell));
    EXPECT_TRUE(client->add_jfc(jfc, &jfc_bell));
    for (Wqe& e : elements) e.op = WrOp::kNop, e.slots = 1, e.flags = kWrSignaled;
  }
  ~ClientTest() override {
    nic->control([&](Nic::NicCore& core, Instant) {
      EXPECT_EQ(core.destroy_jetty(now, jfs), Status::kOk);
      EXPECT_EQ(core.destroy_jfc(jfc), Status::kOk);
      return 0;
    });
  }
  ipc::AppPage& page() { return *reinterpret_cast<ipc::AppPage*>(page_memory.data()); }
  Agent::Verdict look() {
    now += microseconds(1);
    return nic->control([&](Nic::NicCore& core, Instant) { return client->poll(core, now, Patience{}); });
  }
  bool heard() const { return client->unheard_until() <= now; }
  // So many times; true: it is heard to the end.
  template <class Ring>
  bool rings(int times, Ring ring) {
    for (int i = 0; i < times; ++i) {
      ring();
      look();
      if (!heard()) return false;
    }
    return true;
  }

  std::unique_ptr<Nic> nic;
  std::unique_ptr<Client> client;
  ipc::Mapping page_memory;
  std::vector<Cqe> completions{kSlots};
  std::vector<Wqe> elements{kSlots};
  std::vector<std::byte> work = std::vector<std::byte>(Nic::NicCore::send_queue_work_bytes(kSlots));
  QueueIndices jfc_indices, indices;
  uint32_t jfc = 0, jfs = 0, bell = 0, jfc_bell = 0;
  Instant now = Instant{} + seconds(1000);
};

TEST_F(ClientTest, who_posts_may_ring) {
  EXPECT_TRUE(rings(10'000, [&] {
    indices.produced.fetch_add(1);
    page().posted.set(bell);
    page().attention.set(jfc_bell);
    client->woke_us();
    jfc_indices.consumed.store(jfc_indices.produced.load());
  }));
  EXPECT_EQ(indices.consumed.load(), 10'000u);
}

// The worker looks between the element and its bell.
TEST_F(ClientTest, a_bell_may_come_late) {
  EXPECT_TRUE(rings(10'000, [&, n = 0]() mutable {
    if (++n % 3 != 0) indices.produced.fetch_add(1);
    page().posted.set(bell);
    jfc_indices.consumed.store(jfc_indices.produced.load());
  }));
}

TEST_F(ClientTest, who_rings_for_nothing_is_not_heard_for_a_while) {
  EXPECT_FALSE(rings(10'000, [&] { page().posted.set(bell); }));
  const Instant until = client->unheard_until();
  EXPECT_LE(until - now, Allowance::kMost);
  indices.produced.store(1);
  page().posted.set(bell);
  EXPECT_EQ(look(), Agent::Verdict::kNothing);
  EXPECT_EQ(indices.consumed.load(), 0u);
  now = until;
  EXPECT_EQ(look(), Agent::Verdict::kWorked);
  EXPECT_EQ(indices.consumed.load(), 1u);
}

TEST_F(ClientTest, bells_of_completions_of_nobody_and_wakes_count) {
  EXPECT_FALSE(rings(10'000, [&] { page().attention.set(jfc_bell); }));
  now = client->unheard_until() + Allowance::kMost;
  EXPECT_FALSE(rings(10'000, [&] { page().posted.set(77); }));
  now = client->unheard_until() + Allowance::kMost;
  EXPECT_FALSE(rings(100, [&] { client->woke_us(); }));
}

TEST_F(ClientTest, a_few_for_nothing_are_free) {
  EXPECT_TRUE(rings(40, [&] { page().posted.set(bell); }));
  now += Allowance::kMost;
  EXPECT_TRUE(rings(5, [&] { client->woke_us(); }));
}

}  // namespace
}  // namespace ub
