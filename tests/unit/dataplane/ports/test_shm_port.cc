// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/dataplane/ports/shm_node.h"

namespace ub {
namespace {

TEST(ShmPort, frames_both_ways__and_before_the_peer_accepted) {
  TempDir dir;
  Node a, b;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001)) << a.error;
  ASSERT_TRUE(b.open(dir.path, 1, 0x10002)) << b.error;
  EXPECT_TRUE(a.port.is_listed(b.id.eid, b.id.uasid));
  EXPECT_FALSE(a.port.is_listed(b.id.eid, 0));
  ASSERT_TRUE(a.port.connect(b.id, &a.error)) << a.error;
  a.control();
  uint32_t link = a.link_to(b);
  ASSERT_NE(link, 0u);
  ASSERT_TRUE(a.send(link, 41));
  a.port.tx_flush(at_us(0));
  b.control();
  EXPECT_EQ(b.receive(), std::vector<uint64_t>{41});
  ASSERT_TRUE(b.send(b.link_to(a), 42, 4200));
  b.port.tx_flush(at_us(0));
  EXPECT_EQ(a.receive(), std::vector<uint64_t>{42});
  a.control();
  EXPECT_TRUE(a.port.connected(b.id.eid, b.id.uasid));
  // A second connect changes nothing.
  ASSERT_TRUE(a.port.connect(b.id, &a.error));
  EXPECT_FALSE(a.port.has_pending());
  EXPECT_EQ(a.port.link_count(), 1u);
}

// It was not there to be rung when the frame was sent.
TEST(ShmPort, a_peer_that_sleeps_since_it_accepted__is_rung_for_what_was_sent_meanwhile) {
  for (const bool nap : {false, true}) {
    TempDir dir;
    Node a, b;
    ASSERT_TRUE(a.open(dir.path, 1, 0x10001)) << a.error;
    ASSERT_TRUE(b.open(dir.path, 1, 0x10002)) << b.error;
    ASSERT_TRUE(a.port.connect(b.id, &a.error)) << a.error;
    a.port.adopt_pending([&](const LinkConfig&) { return a.next_link++; });
    b.control();
    ASSERT_NE(b.link_to(a), 0u);
    ASSERT_FALSE(nap ? b.port.prepare_nap(true) : b.port.prepare_sleep());
    ASSERT_TRUE(a.send(a.link_to(b), 43));
    a.port.tx_flush(at_us(0));
    pollfd bell{b.port.doorbell_fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&bell, 1, 0), 0) << "nobody can ring yet";
    a.control();
    EXPECT_EQ(::poll(&bell, 1, 0), 1);
    b.port.finish_sleep();
    EXPECT_EQ(b.receive(), std::vector<uint64_t>{43});
  }
}

TEST(ShmPort, connect__both_at_once_gives_two_links_that_work) {
  TempDir dir;
  Node a, b;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  ASSERT_TRUE(b.open(dir.path, 2, 0x10001));
  ASSERT_TRUE(a.port.connect(b.id, &a.error));
  ASSERT_TRUE(b.port.connect(a.id, &b.error));
  for (int i = 0; i < 3; ++i) {
    a.control();
    b.control();
  }
  EXPECT_EQ(a.port.link_count(), 2u);
  EXPECT_EQ(b.port.link_count(), 2u);
  for (uint32_t link : {1u, 2u}) ASSERT_TRUE(a.send(link, link));
  a.port.tx_flush(at_us(0));
  EXPECT_EQ(b.receive().size(), 2u);
}

// An instance without this wire has the port all the same.
TEST(ShmPort, sleep__of_a_port_that_is_not_open) {
  ShmPort port;
  EXPECT_FALSE(port.prepare_sleep());
  port.finish_sleep();
  EXPECT_FALSE(port.prepare_nap(false));
  port.stop_asking();
  port.clear_doorbell();
  port.set_polled(true);
  port.tx_flush(at_us(0));
  EXPECT_FALSE(port.has_bells());
}

TEST(ShmPort, open__name_taken) {
  TempDir dir;
  Node a, b;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  bool taken = false;
  ShmPortOptions o;
  o.directory = dir.path;
  Eid eids[] = {test_eid(2), test_eid(1)};
  EXPECT_FALSE(b.port.open(o, eids, 0x20001, &b.error, &taken));
  EXPECT_TRUE(taken);
  EXPECT_NE(b.error.find("taken"), std::string::npos) << b.error;
  EXPECT_FALSE(b.port.is_open());
  a.port.close();
  EXPECT_TRUE(b.port.open(o, eids, 0x20001, &b.error, &taken)) << b.error;
}

TEST(ShmPort, connect__nobody_there_and_stale_socket) {
  TempDir dir;
  Node a;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  EXPECT_FALSE(a.port.connect({test_eid(7), 0x10009}, &a.error));
  EXPECT_NE(a.error.find("no instance"), std::string::npos) << a.error;
  pid_t pid = ::fork();
  if (pid == 0) {
    Node b;
    ::kill(::getpid(), b.open(dir.path, 7, 0x10009) ? SIGKILL : SIGTERM);
  }
  int status;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(a.port.is_listed(test_eid(7), 0x10009));
  EXPECT_FALSE(a.port.connect({test_eid(7), 0x10009}, &a.error));
  EXPECT_FALSE(a.port.is_listed(test_eid(7), 0x10009));
  Node b;
  EXPECT_TRUE(b.open(dir.path, 7, 0x10009)) << b.error;
}

TEST(ShmPort, doorbell__sleeper_is_rung_at_flush_and_late_one_after_a_while) {
  TempDir dir;
  Node a, b;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  ASSERT_TRUE(b.open(dir.path, 1, 0x10002));
  connect(a, b);
  std::vector<int> fds;
  b.port.fds(fds);
  ASSERT_EQ(fds.size(), 2u);
  pollfd bell{fds[1], POLLIN, 0};
  auto rung = [&] {
    bool yes = ::poll(&bell, 1, 0) == 1;
    if (yes) b.port.clear_doorbell();
    return yes;
  };
  rung();
  ASSERT_FALSE(b.port.prepare_sleep());
  ASSERT_TRUE(a.send(a.link_to(b), 1));
  EXPECT_FALSE(rung());
  a.port.tx_flush(at_us(100));
  EXPECT_TRUE(rung());
  EXPECT_EQ(a.port.counters().tx_doorbells, 1u);
  EXPECT_TRUE(b.port.prepare_sleep());
  b.port.finish_sleep();
  EXPECT_EQ(b.receive().size(), 1u);

  // Awake, but nobody looks.
  ASSERT_TRUE(a.send(a.link_to(b), 2));
  a.port.tx_flush(at_us(200));
  a.port.tx_flush(at_us(204));
  EXPECT_FALSE(rung());
  a.port.tx_flush(at_us(206));
  EXPECT_TRUE(rung());
  a.port.tx_flush(at_us(300));
  EXPECT_FALSE(rung());  // once, and then at long intervals
  a.port.tx_flush(at_us(1300));
  EXPECT_TRUE(rung());
  EXPECT_EQ(b.receive().size(), 1u);
  b.port.tx_flush(at_us(1300));  // room given back
  a.port.tx_flush(at_us(3000));
  a.port.tx_flush(at_us(6000));
  EXPECT_FALSE(rung());

  // The producer falls asleep with a frame on the way.
  ASSERT_TRUE(a.send(a.link_to(b), 3));
  EXPECT_FALSE(a.port.prepare_sleep());
  EXPECT_TRUE(rung());
  EXPECT_EQ(b.receive().size(), 1u);
}

// A consumer and who sends to it.
struct Rung {
  TempDir dir;
  Node a, b;
  Rung() {
    EXPECT_TRUE(a.open(dir.path, 1, 0x10001)) << a.error;
    EXPECT_TRUE(b.open(dir.path, 1, 0x10002)) << b.error;
    connect(a, b);
    rung();
  }
  bool rung() {
    pollfd bell{b.port.doorbell_fd(), POLLIN, 0};
    const bool yes = ::poll(&bell, 1, 0) == 1;
    if (yes) b.port.clear_doorbell();
    return yes;
  }
  void send(bool may_wait) {
    const uint32_t link = a.link_to(b);
    ASSERT_TRUE(a.send(link, 1));
    if (may_wait) a.port.tx_may_wait(link);
  }
  void take() {
    b.port.stop_asking();
    b.receive();
    b.port.tx_flush(at_us(1));
  }
};

TEST(ShmPort, nap__is_ended_by_what_hurries_alone) {
  Rung r;
  ASSERT_FALSE(r.b.port.prepare_nap(false));
  r.send(true);
  r.a.port.tx_flush(at_us(10));
  EXPECT_FALSE(r.rung());
  r.a.port.tx_flush(at_us(10'000));
  EXPECT_FALSE(r.rung()) << "it looks by itself";
  EXPECT_EQ(r.a.port.counters().tx_doorbells + r.a.port.counters().tx_doorbells_late, 0u);
  r.send(false);
  r.a.port.tx_flush(at_us(10'001));
  EXPECT_TRUE(r.rung());
  EXPECT_EQ(r.a.port.counters().tx_doorbells, 1u);
  r.take();

  // One of several that leave together hurries, wherever it stands.
  for (int hurries = 0; hurries < 3; ++hurries) {
    ASSERT_FALSE(r.b.port.prepare_nap(false));
    for (int i = 0; i < 3; ++i) r.send(i != hurries);
    r.a.port.tx_flush(at_us(20'000));
    EXPECT_TRUE(r.rung()) << hurries;
    r.take();
  }
  // What hurried before hurries no more.
  ASSERT_FALSE(r.b.port.prepare_nap(false));
  for (int i = 0; i < 3; ++i) r.send(true);
  r.a.port.tx_flush(at_us(30'000));
  EXPECT_FALSE(r.rung());
  r.take();
}

TEST(ShmPort, nap__for_all_and_sleep_are_ended_by_what_can_wait) {
  Rung r;
  ASSERT_FALSE(r.b.port.prepare_nap(true));
  r.send(true);
  r.a.port.tx_flush(at_us(10));
  EXPECT_TRUE(r.rung());
  r.take();
  ASSERT_FALSE(r.b.port.prepare_nap(false));
  r.b.port.stop_asking();
  ASSERT_FALSE(r.b.port.prepare_sleep());
  r.send(true);
  r.a.port.tx_flush(at_us(20));
  EXPECT_TRUE(r.rung());
  r.take();
}

TEST(ShmPort, nap__not_with_a_frame_that_waits) {
  Rung r;
  r.send(true);
  r.a.port.tx_flush(at_us(10));
  for (bool wake_for_all : {false, true}) {
    EXPECT_TRUE(r.b.port.prepare_nap(wake_for_all));
    r.send(false);
    r.a.port.tx_flush(at_us(10));
    EXPECT_FALSE(r.rung()) << "it is awake";
  }
  r.take();
  ASSERT_TRUE(r.a.port.connect(r.b.id, &r.a.error));
  Node c;
  ASSERT_TRUE(c.open(r.dir.path, 1, 0x10003));
  ASSERT_TRUE(c.port.connect(r.b.id, &c.error));
  r.b.port.poll_control();
  EXPECT_TRUE(r.b.port.prepare_nap(false)) << "a link waits to be adopted";
}

TEST(ShmPort, nap__not_on_a_frame_that_nobody_was_told_of) {
  Rung r;
  ASSERT_FALSE(r.b.port.prepare_sleep());
  r.send(false);
  EXPECT_FALSE(r.a.port.prepare_nap(false));
  EXPECT_TRUE(r.rung());
  EXPECT_EQ(r.b.receive().size(), 1u);
}

TEST(ShmPort, stop_asking__leaves_the_bell_for_later) {
  Rung r;
  ASSERT_FALSE(r.b.port.prepare_sleep());
  r.send(false);
  r.a.port.tx_flush(at_us(10));
  r.b.port.stop_asking();
  EXPECT_TRUE(r.rung());
  ASSERT_EQ(r.b.receive().size(), 1u);
  r.send(false);
  r.a.port.tx_flush(at_us(11));
  EXPECT_FALSE(r.rung());
}

TEST(ShmPort, sleeper__is_rung_by_one_of_its_peers) {
  Rung r;
  Node c;
  ASSERT_TRUE(c.open(r.dir.path, 1, 0x10003));
  connect(c, r.b);
  r.rung();
  for (int i = 0; i < 10; ++i) {
    ASSERT_FALSE(r.b.port.prepare_nap(i % 2 == 0));
    r.send(false);
    ASSERT_TRUE(c.send(c.link_to(r.b), 2));
    for (ShmPort* port : {i % 3 == 0 ? &c.port : &r.a.port, i % 3 == 0 ? &r.a.port : &c.port}) port->tx_flush(at_us(i));
    EXPECT_TRUE(r.rung());
    EXPECT_EQ(r.a.port.counters().tx_doorbells + c.port.counters().tx_doorbells, static_cast<uint64_t>(i + 1));
    r.take();
    r.a.port.tx_flush(at_us(i));
    c.port.tx_flush(at_us(i));
  }
}

TEST(ShmPort, bells__are_held_until_they_are_taken) {
  Rung r;
  r.a.port.hold_bells();
  EXPECT_FALSE(r.a.port.has_bells());
  ASSERT_FALSE(r.b.port.prepare_sleep());
  r.send(false);
  r.a.port.tx_flush(at_us(10));
  EXPECT_TRUE(r.a.port.has_bells());
  EXPECT_FALSE(r.rung());
  EXPECT_EQ(r.b.receive().size(), 1u) << "what it is to be rung for is there";
  ShmPort::Bells bells;
  r.a.port.take_bells(&bells);
  EXPECT_FALSE(r.a.port.has_bells());
  ASSERT_EQ(bells.size(), 1u);
  EXPECT_FALSE(r.rung());
  ShmPort::ring_bells(bells);
  EXPECT_TRUE(r.rung());
  EXPECT_TRUE(bells.empty());
  // Whoever goes to sleep announces what it has left, and then has the bell, too.
  ASSERT_FALSE(r.b.port.prepare_sleep());
  r.send(false);
  EXPECT_FALSE(r.a.port.prepare_sleep());
  EXPECT_TRUE(r.a.port.has_bells());
  EXPECT_EQ(r.b.receive().size(), 1u);
}

TEST(ShmPort, bells__of_a_link_that_died_stay_good) {
  Rung r;
  r.a.port.hold_bells();
  const int event = ::dup(r.b.port.doorbell_fd());
  ASSERT_FALSE(r.b.port.prepare_sleep());
  r.send(false);
  r.a.port.tx_flush(at_us(10));
  r.b.port.close();
  r.a.control();
  ASSERT_EQ(r.a.dead.size(), 1u);
  EXPECT_EQ(r.a.port.link_count(), 0u);
  ShmPort::Bells bells;
  r.a.port.take_bells(&bells);
  ASSERT_EQ(bells.size(), 1u);
  r.a.port.close();
  ShmPort::ring_bells(bells);
  uint64_t count = 0;
  EXPECT_EQ(::read(event, &count, sizeof count), 8);
  ::close(event);
}

TEST(ShmPort, met_poller__is_told_once) {
  Rung r;
  r.send(false);
  r.a.port.tx_flush(at_us(10));
  EXPECT_FALSE(r.a.port.take_met_poller());
  r.b.port.set_polled(true);
  EXPECT_FALSE(r.a.port.take_met_poller()) << "nothing was sent to it since";
  r.send(true);
  r.a.port.tx_flush(at_us(10));
  EXPECT_TRUE(r.a.port.take_met_poller());
  EXPECT_FALSE(r.a.port.take_met_poller());
  r.b.port.set_polled(false);
  r.send(false);
  r.a.port.tx_flush(at_us(10));
  EXPECT_FALSE(r.a.port.take_met_poller());
}

TEST(ShmPort, back_pressure) {
  TempDir dir;
  Node a, b;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001, 1 << 16));
  ASSERT_TRUE(b.open(dir.path, 1, 0x10002, 1 << 16));
  connect(a, b);
  uint64_t sent = 0, got = 0;
  while (got < 5000) {
    while (sent < 5000 && a.send(a.link_to(b), sent, 100 + sent % 4000)) ++sent;
    a.port.tx_flush(at_us(1));
    for (uint64_t v : b.receive()) {
      ASSERT_EQ(v, got);
      ++got;
    }
    b.port.tx_flush(at_us(1));
  }
  EXPECT_GT(a.port.counters().tx_no_room, 0u);
}

// A consumer that says that it polls may lose its CPU for a moment: it is rung later.
TEST(ShmPort, doorbell__who_polls_has_eight_times_as_long) {
  Rung r;
  r.b.port.set_polled(true);
  r.send(false);
  r.a.port.tx_flush(at_us(100));
  r.a.port.tx_flush(at_us(139));
  EXPECT_FALSE(r.rung());
  r.a.port.tx_flush(at_us(141));
  EXPECT_TRUE(r.rung());
}

// A consumer that is slow but awake is not rung over and over.
TEST(ShmPort, doorbell__needless_rings_get_rarer) {
  TempDir dir;
  Node a, b;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  ASSERT_TRUE(b.open(dir.path, 1, 0x10002));
  connect(a, b);
  for (int64_t us = 0; us < 4000; ++us) {
    a.send(1, static_cast<uint64_t>(us));
    a.port.tx_flush(at_us(us));
    if (us % 8 == 0) {
      b.receive();
      b.port.tx_flush(at_us(us));
    }
  }
  EXPECT_LT(a.port.counters().tx_doorbells_late, 10u);
}

// Control on a helper thread while peers come and go and the owner works.
TEST(ShmPort, poll_control__on_another_thread) {
  TempDir dir;
  Node hub;
  ASSERT_TRUE(hub.open(dir.path, 1, 0x10001));
  std::atomic<bool> stop{false};
  std::thread helper([&] {
    while (!stop) {
      hub.port.poll_control();
      std::this_thread::yield();
    }
  });
  std::atomic<uint64_t> sent{0};
  std::thread peers([&] {
    for (uint8_t i = 0; i < 60; ++i) {
      Node n;
      if (!n.open(dir.path, 2, 0x10001 + i, 1 << 16) || !n.port.connect(hub.id, &n.error)) break;
      for (uint64_t k = 0; k < 20; ++k) {
        n.control();
        if (n.send(n.link_to(hub), k)) ++sent;
        n.port.tx_flush(at_us(static_cast<int64_t>(k)));
        n.receive();
      }
    }
    stop = true;
  });
  uint64_t got = 0;
  auto own = [&] {
    if (hub.port.has_pending()) {
      hub.port.adopt_pending([&](const LinkConfig&) { return hub.next_link++; });
      std::vector<DeadLink> dead;
      hub.port.take_dead_links(&dead);
      for (DeadLink& d : dead) hub.port.drop_link(d.link);
    }
    RxFrame rx[kBurst];
    size_t n = hub.port.rx_burst(rx, kBurst);
    for (size_t i = 0; i < n; ++i) {
      std::byte* f = hub.port.tx_begin(rx[i].link, rx[i].bytes);
      if (f == nullptr) continue;
      std::memcpy(f, rx[i].data, rx[i].bytes);
      hub.port.tx_commit(rx[i].link, f, rx[i].bytes);
    }
    got += n;
    hub.port.rx_release();
    hub.port.tx_flush(at_us(1));
    if (n == 0) std::this_thread::yield();
  };
  while (!stop) own();
  peers.join();
  helper.join();
  for (int i = 0; i < 200; ++i) {
    hub.port.poll_control();
    own();
  }
  EXPECT_EQ(sent, 60u * 20);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(hub.port.link_count(), 0u);
}

// More links than are always polled: idle ones are left alone and come back.
TEST(ShmPort, many_links) {
  TempDir dir;
  Node hub;
  ASSERT_TRUE(hub.open(dir.path, 1, 0x10001));
  std::vector<std::unique_ptr<Node>> spokes;
  for (uint8_t i = 0; i < 80; ++i) {
    spokes.push_back(std::make_unique<Node>());
    ASSERT_TRUE(spokes.back()->open(dir.path, static_cast<uint8_t>(10 + i), 0x10001, 1 << 16)) << spokes.back()->error;
    connect(*spokes.back(), hub);
  }
  EXPECT_EQ(hub.port.link_count(), 80u);
  for (int round = 0; round < 200; ++round) {
    RxFrame rx[kBurst];
    for (int i = 0; i < 1000 && round % 20 == 0; ++i) {
      ASSERT_EQ(hub.port.rx_burst(rx, kBurst), 0u);  // all fall idle
    }
    size_t sent = 0;
    for (size_t i = static_cast<size_t>(round) % 7; i < spokes.size(); i += 1 + static_cast<size_t>(round) % 5, ++sent)
      ASSERT_TRUE(spokes[i]->send(1, i));
    for (auto& s : spokes) s->port.tx_flush(at_us(round));
    std::vector<uint64_t> got;
    for (int i = 0; i < 20 && got.size() < sent; ++i) {
      auto more = hub.receive();
      got.insert(got.end(), more.begin(), more.end());
    }
    ASSERT_EQ(got.size(), sent) << round;
  }
  ASSERT_TRUE(spokes[3]->send(1, 3));
  spokes[3]->port.tx_flush(at_us(1));
  EXPECT_TRUE(hub.port.prepare_sleep());
  // They all leave.
  spokes.clear();
  for (int i = 0; i < 10; ++i) {
    hub.control();
    hub.receive();
  }
  EXPECT_EQ(hub.dead.size(), 80u);
  EXPECT_EQ(hub.port.link_count(), 0u);
}

TEST(ShmPort, peer_ends__what_it_sent_is_received_first) {
  TempDir dir;
  Node a;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  {
    Node b;
    ASSERT_TRUE(b.open(dir.path, 1, 0x10002));
    connect(a, b);
    for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(b.send(b.link_to(a), i));
    b.port.tx_flush(at_us(0));
  }
  a.control();
  EXPECT_TRUE(a.dead.empty());
  EXPECT_TRUE(a.port.has_pending());
  EXPECT_EQ(a.port.tx_begin(1, 64), nullptr);
  EXPECT_EQ(a.receive().size(), 100u);
  a.control();
  ASSERT_EQ(a.dead.size(), 1u);
  EXPECT_FALSE(a.port.has_pending());
  // The name can be used again.
  Node c;
  ASSERT_TRUE(c.open(dir.path, 1, 0x20002)) << c.error;
  connect(a, c);
}

TEST(ShmPort, adopt_pending__open_frames_of_a_dead_link) {
  TempDir dir;
  Node a;
  auto b = std::make_unique<Node>();
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  ASSERT_TRUE(b->open(dir.path, 1, 0x10002));
  connect(a, *b);
  std::byte* f = a.port.tx_begin(1, 4000);
  std::byte* g = a.port.tx_begin(1, 50);
  b.reset();
  a.port.poll_control();
  a.port.adopt_pending([](const LinkConfig&) { return 0u; });
  std::vector<DeadLink> dead;
  a.port.take_dead_links(&dead);
  ASSERT_EQ(dead.size(), 1u);
  std::memset(f, 1, 4000);
  a.port.tx_commit(1, f, 4000);
  a.port.tx_abort(1, g);
  a.port.tx_flush(at_us(0));
  a.port.drop_link(1);
  a.port.tx_flush(at_us(1000));
  EXPECT_EQ(a.port.tx_begin(1, 4), nullptr);
}

TEST(ShmPort, adopt_pending__table_of_the_core_full) {
  TempDir dir;
  Node a, b;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  ASSERT_TRUE(b.open(dir.path, 1, 0x10002));
  ASSERT_TRUE(a.port.connect(b.id, &a.error));
  a.control();
  b.port.poll_control();
  EXPECT_EQ(b.port.adopt_pending([](const LinkConfig&) { return 0u; }), 0u);
  a.control();
  ASSERT_EQ(a.dead.size(), 1u);
}

// Two threads that sleep whenever there is nothing to do: no wake-up is lost.
TEST(ShmPort, ping_pong_of_sleepers) {
  TempDir dir;
  Node a, b;
  ASSERT_TRUE(a.open(dir.path, 1, 0x10001));
  ASSERT_TRUE(b.open(dir.path, 1, 0x10002));
  connect(a, b);
  constexpr uint64_t kTurns = 2000;
  auto wait = [](Node& n) {
    if (!n.port.prepare_sleep()) {
      std::vector<int> fds;
      n.port.fds(fds);
      pollfd p[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
      if (::poll(p, 2, 5000) != 1) return false;
    }
    n.port.finish_sleep();
    return true;
  };
  std::atomic<bool> lost{false};
  std::thread other([&] {
    for (uint64_t turn = 0; turn < kTurns && !lost;) {
      auto got = b.receive();
      if (got.empty()) {
        if (!wait(b)) lost = true;
        continue;
      }
      turn += got.size();
      b.send(1, turn);
      b.port.tx_flush(at_us(static_cast<int64_t>(turn)));
    }
  });
  for (uint64_t turn = 0; turn < kTurns && !lost; ++turn) {
    ASSERT_TRUE(a.send(1, turn));
    a.port.tx_flush(at_us(static_cast<int64_t>(turn)));
    while (a.receive().empty() && !lost)
      if (!wait(a)) lost = true;
  }
  other.join();
  EXPECT_FALSE(lost);
}

}  // namespace
}  // namespace ub
