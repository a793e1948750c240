// SPDX-License-Identifier: Apache-2.0
//
// What must happen although no application thread calls anything: the NIC's helper sees to it, whatever the threads of
// the application were at. Each test makes sure that the helper sleeps, without a time at which it would wake by
// itself. A pause that is too short lets a fault pass and never fails a good NIC; what waits has a limit that only a
// fault reaches.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/eid.h"
#include "dataplane/nic.h"
#include "dataplane/socket_address.h"
#include "lib/ipc/pause.h"
#include "tests/unit/dataplane/ports/shm_node.h"
#include "tests/unit/threads.h"

namespace ub {
namespace {

constexpr const char* kAddress = "127.3.2.4";
constexpr uint32_t kIp = 0x7f030204;
constexpr Duration kMoment = milliseconds(50);
constexpr int kMostLooks = 10'000;  // one each millisecond

template <class Done>
bool wait_for(Done done) {
  for (int looks = 0; looks < kMostLooks; ++looks) {
    if (done()) return true;
    ipc::pause_for(milliseconds(1));
  }
  return false;
}

bool is_asleep(pid_t thread) { return test::state_of_thread(thread) == 'S'; }

bool helper_is_asleep() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "softub" && is_asleep(std::stoi(task.path().filename()))) return true;
  }
  return false;
}

class NicThreads : public testing::Test {
 protected:
  void start(const char* wire) {
    LoadedConfig config;
    config.port.kinds = {wire};
    config.port.shm_dir = dir.path;
    config.log.stats_dir = dir.path + "/no/where";  // statistics would wake the helper now and then
    config.device.eids = {kAddress};
    std::string error;
    nic = Nic::start(config, 0, {}, &error);
    ASSERT_NE(nic, nullptr) << error;
    let_helper_sleep();
  }
  // After traffic it naps at first.
  static void let_helper_sleep() {
    ipc::pause_for(kMoment);
    ASSERT_TRUE(wait_for(helper_is_asleep));
  }
  uint64_t count(Counter counter) {
    return nic->control([&](Nic::NicCore& core, Instant) { return core.counters()[counter]; });
  }

  TempDir dir;
  std::unique_ptr<Nic> nic;
};

// An application thread that waits for an event in place of the helper.
class StandIn {
 public:
  explicit StandIn(Nic& nic) : nic_(nic), event_(eventfd(0, EFD_CLOEXEC)), thread_([this] { wait(); }) {
    EXPECT_TRUE(wait_for([this] { return task_.load() != 0; }));
    EXPECT_TRUE(wait_for([this] { return is_asleep(task_); }));
  }
  ~StandIn() {
    const uint64_t one = 1;
    EXPECT_EQ(write(event_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }

 private:
  void wait() {
    nic_.begin_wait();
    EXPECT_TRUE(nic_.may_stand_in());
    task_.store(gettid());
    EXPECT_EQ(nic_.stand_in(event_.get(), -1), 1);
    nic_.end_wait();
  }

  Nic& nic_;
  ipc::Fd event_;
  std::atomic<pid_t> task_{0};
  std::jthread thread_;
};

// A wait that is over leaves nothing behind for the next one, though its descriptor is still readable.
TEST_F(NicThreads, each_wait_in_place_of_the_helper_is_for_its_own_descriptor) {
  ASSERT_NO_FATAL_FAILURE(start("shm"));
  const ipc::Fd rung(eventfd(1, EFD_CLOEXEC)), silent(eventfd(0, EFD_CLOEXEC));
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(nic->may_stand_in());
    EXPECT_EQ(nic->stand_in(rung.get(), -1), 1);
    ASSERT_TRUE(nic->may_stand_in());
    EXPECT_EQ(nic->stand_in(silent.get(), 0), 0);
  }
}

// Frames would lie until everybody else has nothing to do.
TEST_F(NicThreads, who_runs_only_on_an_idle_machine_does_not_wait_in_place_of_the_helper) {
  ASSERT_NO_FATAL_FAILURE(start("shm"));
  for (int policy : {SCHED_IDLE, SCHED_IDLE | SCHED_RESET_ON_FORK}) {
    std::jthread([&] {
      const sched_param none{};
      ASSERT_EQ(sched_setscheduler(0, policy, &none), 0);
      EXPECT_FALSE(nic->may_stand_in());
    }).join();
  }
  const ipc::Fd rung(eventfd(1, EFD_CLOEXEC));
  ASSERT_TRUE(nic->may_stand_in());
  EXPECT_EQ(nic->stand_in(rung.get(), -1), 1);
}

// A frame wakes a thread while another one owns the Core and does not look at frames any more. Its sender neither sends
// again nor rings again.
TEST_F(NicThreads, a_frame_that_comes_while_somebody_owns_is_received) {
  ASSERT_NO_FATAL_FAILURE(start("shm"));
  Node peer;
  ASSERT_TRUE(peer.open(dir.path, 1, 0x10001)) << peer.error;
  const InstanceId here{nic->eids().front(), nic->uasid()};
  ASSERT_TRUE(peer.port.connect(here, &peer.error)) << peer.error;
  ASSERT_TRUE(wait_for([&] {
    peer.control();
    return peer.port.connected(here.eid, here.uasid);
  }));
  const uint32_t link = peer.port.find_link(here.eid, here.uasid);
  for (const bool stands_in : {false, true}) {
    std::unique_ptr<StandIn> stand_in;
    if (stands_in) stand_in = std::make_unique<StandIn>(*nic);
    ASSERT_NO_FATAL_FAILURE(let_helper_sleep());
    const uint64_t before = count(Counter::kRxDropNotIp);
    nic->control([&](Nic::NicCore&, Instant) {
      EXPECT_TRUE(peer.send(link, 41));
      peer.port.tx_flush(at_us(0));
      ipc::pause_for(kMoment);
      return true;
    });
    EXPECT_TRUE(wait_for([&] { return count(Counter::kRxDropNotIp) == before + 1; }))
        << (stands_in ? "a thread stands in for the helper" : "nobody stands in for the helper");
  }
}

// A send queue of the application.
struct SendQueue {
  static constexpr uint32_t kSlots = 16;

  explicit SendQueue(Nic& owner) : nic(owner) {
    for (Wqe& e : elements) e.op = WrOp::kNop, e.slots = 1, e.flags = kWrSignaled;
    nic.control([this](Nic::NicCore& core, Instant) {
      EXPECT_EQ(core.create_jfc({.slots = completions.data(),
                                 .slot_count = kSlots,
                                 .depth = kSlots,
                                 .indices = &completed,
                                 .cookie = 0,
                                 .owner = 0},
                                &jfc),
                Status::kOk);
      JettyConfig c;
      c.sq = {.slots = elements.data(), .slot_count = kSlots, .depth = kSlots, .indices = &posted};
      c.sq.work = work.data();
      c.sq.jfc = jfc;
      c.kind = ObjectKind::kJfs;
      EXPECT_EQ(core.create_jetty(c, &id), Status::kOk);
      return true;
    });
  }
  ~SendQueue() {
    nic.control([this](Nic::NicCore& core, Instant now) {
      EXPECT_EQ(core.destroy_jetty(now, id), Status::kOk);
      EXPECT_EQ(core.destroy_jfc(jfc), Status::kOk);
      return true;
    });
  }
  void post() {
    posted.produced.fetch_add(1);
    nic.posted(id);
  }

  Nic& nic;
  std::vector<Cqe> completions{kSlots};
  std::vector<Wqe> elements{kSlots};
  std::vector<std::byte> work = std::vector<std::byte>(Nic::NicCore::send_queue_work_bytes(kSlots));
  QueueIndices completed{}, posted{};
  uint32_t jfc = 0, id = 0;
};

// The owner may have looked at what is posted before: whoever posts does not wait for it, and calls nothing afterwards.
TEST_F(NicThreads, what_is_posted_while_somebody_owns_is_sent) {
  ASSERT_NO_FATAL_FAILURE(start("loopback"));
  SendQueue queue(*nic);
  for (uint32_t times = 1; times <= 2; ++times) {
    ASSERT_NO_FATAL_FAILURE(let_helper_sleep());
    nic->control([&](Nic::NicCore&, Instant) {
      times == 1 ? queue.post() : std::jthread([&] { queue.post(); }).join();
      return true;
    });
    EXPECT_TRUE(wait_for([&] { return queue.completed.produced.load() == times; }))
        << (times == 1 ? "by the owner, in a signal handler" : "by another thread");
  }
}

// A thread asks for a channel and calls nothing afterwards; the peer does not answer.
TEST_F(NicThreads, what_a_thread_began_is_gone_on_with) {
  ASSERT_NO_FATAL_FAILURE(start("udp"));
  SocketAddress address;
  socklen_t bytes = fill(&address, wire::IpAddress::from_v4(kIp), 0);
  const ipc::Fd peer(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(peer.get(), &address.base, bytes), 0);
  ASSERT_EQ(getsockname(peer.get(), &address.base, &bytes), 0);
  const timeval limit{10, 0};
  ASSERT_EQ(setsockopt(peer.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  TargetConfig target;
  target.local_eid = nic->eids().front();
  target.instance = {nic->eids().front(), 0x10000u | ntohs(address.v4.sin_port)};
  target.id = 5000;
  std::string why;
  ASSERT_TRUE(nic->find_path(target.local_eid, target.instance, &target.path, &why)) << why;
  uint32_t handle = 0;
  ASSERT_EQ(nic->control([&](Nic::NicCore& core, Instant now) { return core.add_target(now, target, &handle); }),
            Status::kOk);
  char request[2048];
  for (int times = 0; times < 3; ++times) {
    ASSERT_GT(recv(peer.get(), request, sizeof request, 0), 0) << "asked " << times << " times";
  }
}

}  // namespace
}  // namespace ub
