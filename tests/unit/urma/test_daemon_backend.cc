// SPDX-License-Identifier: Apache-2.0
// liburma's back end on a daemon of the test: what it asks for, what it serves, and what it says and does when the
// daemon is not there, not ours, silent, or gone.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "lib/urma/backends/daemon/daemon_backend.h"
#include "lib/urma/data/ring.h"
#include "tests/unit/threads.h"
#include "tests/unit/urma/fake_daemon.h"
#include "urma_api.h"

namespace ub::urma {
namespace {

using ipc::AppCall;
using test::eventually;
using test::FakeDaemon;

std::mutex log_lock;
std::string logged;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class DaemonBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    {
      std::lock_guard guard(log_lock);
      logged.clear();
    }
    urma_register_log_func([](int, char* line) {
      std::lock_guard guard(log_lock);
      logged += line;
    });
  }
  void TearDown() override {
    nic.reset();
    urma_unregister_log_func();
  }

  bool attach() {
    DaemonOptions options;
    options.socket = daemon.path();
    options.patience = patience;
    nic = start_daemon_backend(options, &error);
    return nic != nullptr;
  }
  void listen() {
    nic->set_event_sink([this](const NicEvent& event) {
      std::lock_guard guard(events_lock);
      events.push_back(event);
    });
  }
  bool start() {
    if (!attach()) return false;
    listen();
    return true;
  }
  std::string log() {
    std::lock_guard guard(log_lock);
    return logged;
  }
  size_t count_events(EventKind kind) {
    std::lock_guard guard(events_lock);
    return static_cast<size_t>(std::count_if(events.begin(), events.end(), [&](const NicEvent& event) {
      return std::holds_alternative<Event>(event) && std::get<Event>(event).kind == kind;
    }));
  }
  // Of ports, or of the end of the daemon.
  template <class Kind>
  size_t count_events() {
    std::lock_guard guard(events_lock);
    return static_cast<size_t>(
        std::count_if(events.begin(), events.end(), std::holds_alternative<Kind, Event, PortEvent, NicGone>));
  }

  template <class Slot, class Config>
  void make_ring(uint32_t slots, Config* config) {
    memory.push_back(nic->memory(sizeof(QueueIndices) + slots * kSlotBytes));
    ASSERT_NE(memory.back(), nullptr);
    config->indices = reinterpret_cast<QueueIndices*>(memory.back().get());
    config->slots = reinterpret_cast<Slot*>(memory.back().get() + sizeof(QueueIndices));
    config->slot_count = slots;
  }
  Status make_jfc() {
    make_ring<Cqe>(16, &jfc_config);
    jfc_config.depth = 16;
    jfc_config.cookie = 0xc00c1e;
    return nic->create_jfc(jfc_config, &jfc);
  }
  Status make_jetty() {
    make_ring<Wqe>(16, &jetty_config.sq);
    jetty_config.kind = ObjectKind::kJfs;
    jetty_config.sq.depth = 8;
    jetty_config.sq.jfc = jfc;
    jetty_config.user_data = 0xabc;
    return nic->create_jetty(jetty_config, &jetty);
  }
  void post(uint64_t user_ctx) {
    QueueIndices& indices = *jetty_config.sq.indices;
    Wqe& wqe = jetty_config.sq.slots[indices.produced.load() % 16];
    wqe = {};
    wqe.slots = 1;
    wqe.user_ctx = user_ctx;
    indices.produced.fetch_add(1);
    nic->posted(jetty);
  }
  uint32_t completions() const { return jfc_config.indices->produced.load(); }
  const Cqe& completion(uint32_t n) const { return jfc_config.slots[n % 16]; }

  FakeDaemon daemon;
  std::chrono::milliseconds patience{10'000};
  std::string error;
  std::mutex events_lock;
  std::vector<NicEvent> events;
  std::deque<std::shared_ptr<std::byte>> memory;
  JfcConfig jfc_config;
  JettyConfig jetty_config;
  uint32_t jfc = 0, jetty = 0;
  std::unique_ptr<Backend> nic;
};

// ---- start -----------------------------------------------------------------------------------------------------

TEST_F(DaemonBackendTest, no_daemon) {
  DaemonOptions options;
  options.socket = daemon.path() + ".none";
  EXPECT_EQ(start_daemon_backend(options, &error), nullptr);
  EXPECT_TRUE(contains(error, options.socket)) << error;
  EXPECT_TRUE(contains(error, "start softubd")) << error;
}

TEST_F(DaemonBackendTest, another_version) {
  daemon.version = 77;
  daemon.refusal = "your version";
  EXPECT_FALSE(start());
  EXPECT_TRUE(contains(error, "speaks version 77")) << error;
  EXPECT_TRUE(contains(error, "this liburma version " + std::to_string(ipc::kAppCallVersion))) << error;
}

TEST_F(DaemonBackendTest, refused) {
  daemon.refusal = "there are 1024 applications already";
  EXPECT_FALSE(start());
  EXPECT_TRUE(contains(error, "refused: there are 1024 applications already")) << error;
}

TEST_F(DaemonBackendTest, no_answer_to_the_hello) {
  patience = std::chrono::milliseconds(50);
  daemon.mute = true;
  EXPECT_FALSE(start());
  EXPECT_TRUE(contains(error, "did not answer for 50 ms")) << error;
}

TEST_F(DaemonBackendTest, identity) {
  ASSERT_TRUE(start()) << error;
  EXPECT_STREQ(nic->name(), "daemon");
  EXPECT_EQ(nic->uasid(), 0x12345678u);
  EXPECT_EQ(nic->port_mtu_bytes(), 4096u);
  ASSERT_EQ(nic->eids().size(), 1u);
  EXPECT_EQ(nic->eids()[0].bytes[15], 1);
}

// ---- calls -----------------------------------------------------------------------------------------------------

TEST_F(DaemonBackendTest, rings_are_named_by_area_and_offset) {
  ASSERT_TRUE(start()) << error;
  ASSERT_EQ(make_jfc(), Status::kOk);
  ASSERT_EQ(make_jetty(), Status::kOk);
  const ipc::AppRequest request = daemon.requests().back();
  ASSERT_EQ(request.call, AppCall::kCreateJetty);
  EXPECT_EQ(request.queue.jfc, jfc);
  EXPECT_EQ(request.queue.user_data, 0xabcu);
  EXPECT_EQ(request.queue.ring.slot_count, 16u);
  jetty_config.sq.slots[3].user_ctx = 99;
  auto* theirs = daemon.at(request.queue.ring.area, request.queue.ring.offset) + sizeof(QueueIndices);
  EXPECT_EQ(reinterpret_cast<Wqe*>(theirs)[3].user_ctx, 99u);
  EXPECT_EQ(nic->state(jetty), QueueState::kReady);
  EXPECT_EQ(nic->destroy_jetty(jetty), Status::kOk);
  EXPECT_EQ(nic->destroy_jfc(jfc), Status::kOk);
}

TEST_F(DaemonBackendTest, posting_sets_the_bit_and_wakes_a_sleeper) {
  ASSERT_TRUE(start()) << error;
  make_jfc();
  make_jetty();
  post(1);
  EXPECT_FALSE(daemon.was_rung());
  std::vector<uint32_t> bells;
  daemon.page().posted.take([&](uint32_t bell) { bells.push_back(bell); });
  EXPECT_EQ(bells, (std::vector<uint32_t>{jetty - 900}));
  ipc::begin_sleep(daemon.page().worker_sleeps);
  post(2);
  EXPECT_TRUE(daemon.was_rung());
  post(3);
  EXPECT_FALSE(daemon.was_rung());  // once per sleep
  nic->armed(jfc);
  nic->completions_read(jfc);
  bells.clear();
  daemon.page().attention.take([&](uint32_t bell) { bells.push_back(bell); });
  EXPECT_EQ(bells, (std::vector<uint32_t>{jfc - 900}));
}

TEST_F(DaemonBackendTest, tokens_are_set_by_id_and_by_handle) {
  ASSERT_TRUE(start()) << error;
  std::vector<std::array<uint32_t, 4>> calls;
  daemon.on_call = [&](const ipc::AppRequest& request, ipc::AppAnswer*, std::string*) {
    calls.push_back({static_cast<uint32_t>(request.call), request.id, request.token.value, request.token.former});
  };
  EXPECT_EQ(nic->set_queue_token(2901, 7, 5), Status::kOk);
  EXPECT_EQ(nic->set_segment_token(3, 8, 6), Status::kOk);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0], (std::array{static_cast<uint32_t>(AppCall::kSetQueueToken), 2901u, 7u, 5u}));
  EXPECT_EQ(calls[1], (std::array{static_cast<uint32_t>(AppCall::kSetSegmentToken), 3u, 8u, 6u}));
}

TEST_F(DaemonBackendTest, segments_become_exclusive_by_handle) {
  ASSERT_TRUE(start()) << error;
  std::vector<std::array<uint32_t, 3>> calls;
  daemon.on_call = [&](const ipc::AppRequest& request, ipc::AppAnswer*, std::string*) {
    calls.push_back({static_cast<uint32_t>(request.call), request.id, request.value});
  };
  EXPECT_EQ(nic->set_segment_exclusive(3, true), Status::kOk);
  EXPECT_EQ(nic->set_segment_exclusive(4, false), Status::kOk);
  const auto number = static_cast<uint32_t>(AppCall::kSetExclusive);
  EXPECT_EQ(calls, (std::vector<std::array<uint32_t, 3>>{{number, 3, 1}, {number, 4, 0}}));
}

TEST_F(DaemonBackendTest, rnr_is_asked_for_and_faults_of_the_nic_are_refused) {
  ASSERT_TRUE(start()) << error;
  std::vector<ipc::AppRequest> calls;
  daemon.on_call = [&](const ipc::AppRequest& request, ipc::AppAnswer* answer, std::string*) {
    calls.push_back(request);
    if (request.call == AppCall::kInjected) answer->count = uint64_t{5} << 32;
  };
  fault::NicPlan plan;
  plan.rnr = {.jfr = 9, .choice = {.by = fault::By::kChance, .n = 20, .at_most = 3, .seed = 7}};
  EXPECT_EQ(nic->inject(plan, &error), Status::kOk);
  EXPECT_EQ(nic->inject({}, &error), Status::kOk);
  ASSERT_EQ(calls.size(), 2u);
  const ipc::AppFault& asked = calls[0].fault;
  EXPECT_EQ(calls[0].call, AppCall::kInjectRnr);
  EXPECT_EQ(asked.jfr, 9u);
  EXPECT_EQ(asked.by, static_cast<uint8_t>(fault::By::kChance));
  EXPECT_EQ((std::array<uint64_t, 3>{asked.n, asked.at_most, asked.seed}), (std::array<uint64_t, 3>{20, 3, 7}));
  EXPECT_EQ(calls[1].fault.by, ipc::AppFault::kNone);
  EXPECT_EQ(nic->injected().rnr, uint64_t{5} << 32);
  plan.stop.emplace();
  EXPECT_EQ(nic->inject(plan, &error), Status::kInvalid);
  EXPECT_TRUE(contains(error, "daemon.inject")) << error;
  EXPECT_EQ(calls.size(), 3u) << "nothing was asked for";
}

TEST_F(DaemonBackendTest, moderation_names_what_changes) {
  ASSERT_TRUE(start()) << error;
  std::vector<ipc::AppRequest> calls;
  daemon.on_call = [&](const ipc::AppRequest& request, ipc::AppAnswer*, std::string*) { calls.push_back(request); };
  EXPECT_EQ(nic->moderate_jfc(3, {uint16_t{65535}, microseconds(65535)}), Status::kOk);
  EXPECT_EQ(nic->moderate_jfc(4, {uint16_t{0}, std::nullopt}), Status::kOk);
  EXPECT_EQ(nic->moderate_jfc(5, {std::nullopt, Duration{}}), Status::kOk);
  const std::array<uint32_t, 5> expected[] = {{3, 1, 65535, 1, 65535}, {4, 1, 0, 0, 0}, {5, 0, 0, 1, 0}};
  ASSERT_EQ(calls.size(), std::size(expected));
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].call, AppCall::kModerateJfc);
    const ipc::AppModeration& m = calls[i].moderation;
    EXPECT_EQ((std::array<uint32_t, 5>{calls[i].id, m.count_given, m.count, m.period_given, m.period_us}), expected[i]);
  }
}

TEST_F(DaemonBackendTest, refusals_go_to_the_log_or_to_why) {
  ASSERT_TRUE(start()) << error;
  daemon.on_call = [](const ipc::AppRequest& request, ipc::AppAnswer* answer, std::string*) {
    if (request.call == AppCall::kAddArea || request.call == AppCall::kAreaMapped) return;
    answer->status = static_cast<uint32_t>(Status::kNoMemory);
    std::strcpy(answer->text, "no more than 3");
  };
  EXPECT_EQ(make_jfc(), Status::kNoMemory);
  EXPECT_TRUE(contains(log(), "refused by the daemon: no more than 3")) << log();
  uint32_t target;
  EXPECT_EQ(nic->add_target({}, {}, &target, &error), Status::kNoMemory);
  EXPECT_EQ(error, "no more than 3");
}

TEST_F(DaemonBackendTest, what_comes_behind_an_answer) {
  ASSERT_TRUE(start()) << error;
  constexpr uint32_t kChannels = 50;
  daemon.on_call = [](const ipc::AppRequest& request, ipc::AppAnswer* answer, std::string* extra) {
    if (request.call == AppCall::kCounters) {
      Counters counters;
      counters.v[3] = 33;
      extra->assign(reinterpret_cast<const char*>(&counters), sizeof counters);
    } else if (request.call == AppCall::kChannels) {
      uint32_t n = request.value;
      for (; n < kChannels && extra->size() + sizeof(ChannelInfo) <= 4096; ++n) {
        ChannelInfo info{};
        info.tpn = n;
        extra->append(reinterpret_cast<const char*>(&info), sizeof info);
        ++answer->value;
      }
      answer->id = n == kChannels ? 0 : n;
    } else if (request.call == AppCall::kTakeUnhandled) {
      Cqe cqe{};
      cqe.user_ctx = 5;
      extra->assign(reinterpret_cast<const char*>(&cqe), sizeof cqe);
      answer->value = 100;  // more than there are
    }
  };
  EXPECT_EQ(nic->counters().v[3], 33u);
  std::vector<ChannelInfo> channels = nic->channels();
  ASSERT_EQ(channels.size(), kChannels);
  EXPECT_EQ(channels[49].tpn, 49u);
  Cqe cqes[4];
  EXPECT_EQ(nic->take_unhandled(1, cqes, 4), 1u);
  EXPECT_EQ(cqes[0].user_ctx, 5u);
}

// ---- memory, agent, events -------------------------------------------------------------------------------------

TEST_F(DaemonBackendTest, segments_in_areas_and_elsewhere) {
  ASSERT_TRUE(start()) << error;
  auto shared = nic->memory(8192);
  SegmentConfig config;
  config.memory = shared.get() + 100;
  config.length = 1000;
  RegisteredSegment in_area, elsewhere;
  ASSERT_EQ(nic->register_segment(config, &in_area), Status::kOk);
  ipc::AppSegment said = daemon.requests().back().segment;
  EXPECT_NE(said.area, 0u);
  EXPECT_EQ(daemon.at(said.area, said.offset)[0], shared.get()[100]);
  shared.get()[100] = std::byte{4};
  EXPECT_EQ(daemon.at(said.area, said.offset)[0], std::byte{4});

  std::vector<std::byte> own(5000, std::byte{9});
  config.memory = own.data();
  config.length = own.size();
  ASSERT_EQ(nic->register_segment(config, &elsewhere), Status::kOk);
  said = daemon.requests().back().segment;
  EXPECT_EQ(said.area, 0u);
  EXPECT_EQ(said.memory, reinterpret_cast<uint64_t>(own.data()));
  // Nobody polls: the helper does it.
  ipc::AgentOp& op = daemon.ask(ipc::AgentOpKind::kGather, own.data() + 10, 100);
  ASSERT_TRUE(eventually([&] { return daemon.page().ops_consumed.load() == 1; }));
  EXPECT_TRUE(op.done_ok);
  EXPECT_EQ(daemon.data(op)[99], std::byte{9});
  EXPECT_EQ(nic->unregister_segment(elsewhere.handle), Status::kOk);
  EXPECT_EQ(nic->unregister_segment(in_area.handle), Status::kOk);
  EXPECT_EQ(nic->unregister_segment(in_area.handle), Status::kInvalid);
  ipc::AgentOp& late = daemon.ask(ipc::AgentOpKind::kPlace, own.data(), 100);
  ASSERT_TRUE(eventually([&] { return daemon.page().ops_consumed.load() == 2; }));
  EXPECT_FALSE(late.done_ok);
}

TEST_F(DaemonBackendTest, a_segment_that_the_daemon_refuses_is_not_served) {
  ASSERT_TRUE(start()) << error;
  daemon.on_call = [](const ipc::AppRequest&, ipc::AppAnswer* answer, std::string*) {
    answer->status = static_cast<uint32_t>(Status::kExists);
  };
  std::byte own[64];
  SegmentConfig config;
  config.memory = own;
  config.length = sizeof own;
  RegisteredSegment out;
  EXPECT_EQ(nic->register_segment(config, &out), Status::kExists);
  ipc::AgentOp& op = daemon.ask(ipc::AgentOpKind::kGather, own, 1);
  ASSERT_TRUE(eventually([&] { return daemon.page().ops_consumed.load() == 1; }));
  EXPECT_FALSE(op.done_ok);
}

TEST_F(DaemonBackendTest, polling_threads_serve_and_the_helper_stays_away) {
  ASSERT_TRUE(start()) << error;
  std::byte own[64] = {};
  SegmentConfig config;
  config.memory = own;
  config.length = sizeof own;
  RegisteredSegment out;
  ASSERT_EQ(nic->register_segment(config, &out), Status::kOk);
  for (uint32_t n = 1; n <= 1000; ++n) {
    daemon.ask(ipc::AgentOpKind::kGather, own, 8);
    for (int i = 0; daemon.page().ops_consumed.load() != n && i < 1'000'000; ++i) nic->drive();
    ASSERT_EQ(daemon.page().ops_consumed.load(), n);
  }
  ASSERT_TRUE(eventually([&] { return daemon.page().app_sleeps.load() == 1; }));  // nobody polls any more
}

TEST_F(DaemonBackendTest, events_reach_the_sink) {
  ASSERT_TRUE(start()) << error;
  make_jfc();
  daemon.raise(0xc00c1e, static_cast<uint32_t>(EventKind::kCompletion));
  daemon.raise(5, static_cast<uint32_t>(EventKind::kJettyError));
  daemon.raise(5, 12345);  // unknown
  ASSERT_TRUE(eventually([&] { return count_events(EventKind::kJettyError) == 1; }));
  EXPECT_EQ(count_events(EventKind::kCompletion), 1u);
  ASSERT_TRUE(eventually([&] { return daemon.page().events_consumed.load() == 3; }));
  // Lost ones: whoever has something unread is told.
  jfc_config.indices->produced.store(1);
  daemon.page().events_lost.store(1);
  nic->drive();
  ASSERT_TRUE(eventually([&] { return count_events(EventKind::kCompletion) == 2; }));
}

TEST_F(DaemonBackendTest, what_is_told_before_somebody_listens_is_not_lost) {
  ASSERT_TRUE(attach()) << error;
  daemon.raise(0, ipc::kAppEventPortDown);
  ASSERT_TRUE(eventually([&] { return daemon.page().events_consumed.load() == 1; }));
  nic->drive();  // whoever took it has told it
  listen();
  EXPECT_TRUE(eventually([&] { return count_events<PortEvent>() == 1; }));
}

TEST_F(DaemonBackendTest, a_waiter_wakes_the_helper) {
  ASSERT_TRUE(start()) << error;
  for (int i = 0; i < 1000; ++i) nic->drive();
  nic->begin_wait();
  ASSERT_TRUE(eventually([&] { return daemon.page().app_sleeps.load() == 1; }));
  daemon.raise(1, static_cast<uint32_t>(EventKind::kCompletion));
  ASSERT_TRUE(eventually([&] { return count_events(EventKind::kCompletion) == 1; }));
  nic->end_wait();
}

// ---- the end ---------------------------------------------------------------------------------------------------

TEST_F(DaemonBackendTest, death_flushes_and_is_told) {
  ASSERT_TRUE(start()) << error;
  make_jfc();
  make_jetty();
  RegisteredSegment segment;
  SegmentConfig config;
  std::byte own[64];
  config.memory = own;
  config.length = sizeof own;
  ASSERT_EQ(nic->register_segment(config, &segment), Status::kOk);
  post(1);
  post(2);
  jfc_config.indices->armed.store(static_cast<uint32_t>(Armed::kAny));
  daemon.say_goodbye("somebody pulled the plug");
  ASSERT_TRUE(eventually([&] { return count_events<NicGone>() == 1; }));
  ASSERT_EQ(completions(), 3u);
  EXPECT_EQ(completion(0).status, CrStatus::kWrFlush);
  EXPECT_EQ(completion(1).user_ctx, 2u);
  EXPECT_EQ(completion(2).status, CrStatus::kWrFlushDone);
  EXPECT_EQ(count_events(EventKind::kCompletion), 1u);
  EXPECT_TRUE(contains(log(), "somebody pulled the plug")) << log();
  EXPECT_TRUE(contains(log(), "urma_uninit, urma_init attach again")) << log();

  post(3);
  EXPECT_EQ(completions(), 4u);
  nic->drive();
  EXPECT_EQ(nic->state(jetty), QueueState::kError);
  EXPECT_EQ(nic->set_state(jetty, QueueState::kError), Status::kOk);
  EXPECT_EQ(nic->set_state(jetty, QueueState::kReady), Status::kGone);
  uint32_t id;
  EXPECT_EQ(nic->alloc_token_id(&id), Status::kGone);
  EXPECT_EQ(nic->add_target({}, {}, &id, &error), Status::kGone);
  EXPECT_TRUE(contains(error, "somebody pulled the plug")) << error;
  RegisteredSegment out;
  EXPECT_EQ(nic->register_segment(config, &out), Status::kGone);
  EXPECT_EQ(nic->take_unhandled(jetty, nullptr, 0), 0u);
  EXPECT_TRUE(nic->channels().empty());
  EXPECT_EQ(nic->unregister_segment(segment.handle), Status::kOk);
  EXPECT_EQ(nic->remove_target(1), Status::kOk);
  EXPECT_EQ(nic->unbind(jetty), Status::kOk);
  EXPECT_EQ(nic->free_token_id(1), Status::kOk);
  EXPECT_EQ(nic->destroy_jetty(jetty), Status::kOk);
  EXPECT_EQ(nic->destroy_jfc(jfc), Status::kOk);
  EXPECT_EQ(make_jfc(), Status::kGone);
  EXPECT_EQ(make_jetty(), Status::kGone);
  EXPECT_EQ(count_events<NicGone>(), 1u);
}

TEST_F(DaemonBackendTest, silence_is_death_and_a_slow_daemon_harms_nobody) {
  patience = std::chrono::milliseconds(100);
  ASSERT_TRUE(start()) << error;
  make_jfc();
  const ipc::AppRing ring = daemon.requests().back().queue.ring;
  make_jetty();
  post(1);
  daemon.mute = true;
  EXPECT_EQ(nic->bind(jetty, 1), Status::kGone);
  EXPECT_TRUE(contains(log(), "did not answer for 100 ms")) << log();
  ASSERT_EQ(completions(), 2u);
  // Late, it still writes into the ring.
  auto* theirs = reinterpret_cast<QueueIndices*>(daemon.at(ring.area, ring.offset));
  reinterpret_cast<Cqe*>(theirs + 1)[0].user_ctx = 666;
  theirs->produced.store(1);
  EXPECT_EQ(completions(), 2u);
  EXPECT_EQ(completion(0).user_ctx, 1u);
}

TEST_F(DaemonBackendTest, death_while_others_post) {
  ASSERT_TRUE(start()) << error;
  make_jfc();
  make_jetty();
  std::atomic<uint64_t> posted = 0;
  std::thread killer([&] {
    EXPECT_TRUE(eventually([&] { return posted >= 4; }));
    daemon.hang_up();
  });
  uint64_t seen = 0;
  uint32_t read = 0;
  bool done = false;
  while (seen < 500 || !done) {
    if (posted - jetty_config.sq.indices->retired.load() < 8 && posted < 500) post(++posted);
    nic->drive();
    for (; read != completions(); ++read) {
      const Cqe& cqe = completion(read);
      if (cqe.status == CrStatus::kWrFlushDone) {
        EXPECT_FALSE(done);
        done = true;
      } else {
        ASSERT_EQ(cqe.user_ctx, ++seen);
      }
    }
    jfc_config.indices->consumed.store(read);
  }
  killer.join();
}

TEST_F(DaemonBackendTest, an_answer_that_nobody_asked_for_ends_it) {
  ASSERT_TRUE(start()) << error;
  daemon.on_call = [](const ipc::AppRequest&, ipc::AppAnswer* answer, std::string*) { answer->number += 5; };
  EXPECT_EQ(nic->bind(1, 1), Status::kGone);
  EXPECT_TRUE(contains(log(), "nobody had asked")) << log();
}

TEST_F(DaemonBackendTest, the_end_of_the_back_end_is_no_death) {
  ASSERT_TRUE(start()) << error;
  make_jfc();
  nic.reset();
  EXPECT_EQ(log(), "");
  EXPECT_EQ(count_events<NicGone>(), 0u);
  memory.clear();  // rings outlive the back end
}

}  // namespace
}  // namespace ub::urma
