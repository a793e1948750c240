// SPDX-License-Identifier: Apache-2.0
// What tools read of a NIC follows what happens, also what only a timer does.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "dataplane/eid.h"
#include "dataplane/nic.h"
#include "dataplane/stats_page.h"

namespace ub {
namespace {

// Pages are written each 200 ms at most, so none is due when a channel ends so soon.
constexpr auto kSilence = std::chrono::milliseconds(100);

constexpr char kAddress[] = "127.3.2.5", kNobody[] = "127.3.2.6";

class NicStatistics : public testing::Test {
 protected:
  NicStatistics() {
    char name[] = "/tmp/softub-statistics-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    directory = name;
    nic = start(kAddress, [this](const std::string& sentence) {
      const std::lock_guard lock(said_mutex);
      said.push_back(sentence);
    });
  }
  ~NicStatistics() override {
    nic.reset();
    std::filesystem::remove_all(directory);
  }

  std::unique_ptr<Nic> start(const char* address, Nic::NoticeSink notice = {}) {
    LoadedConfig config;
    config.port.kinds = {"udp"};
    config.device.eids = {address};
    config.transport.setup_retry_min = config.transport.channel_timeout = config.transport.keepalive_idle = kSilence;
    config.log.stats_dir = directory;
    std::string error;
    auto started = Nic::start(config, 0, std::move(notice), &error);
    EXPECT_NE(started, nullptr) << error;
    return started;
  }

  // An RC jetty has its channel set up when it is bound.
  void bind_to(const Eid& eid, uint32_t uasid = 7) {
    Memory& m = memory.emplace_back();
    JfcConfig c{.slots = m.cqes, .slot_count = 8, .depth = 8, .indices = &m.rings[0]};
    JfrConfig r;
    r.slots = m.rqes;
    r.slot_count = 8;
    r.indices = &m.rings[1];
    JettyConfig j;
    j.mode = Mode::kRc;
    j.sq = {.slots = m.wqes, .slot_count = 8, .depth = 8, .indices = &m.rings[2]};
    j.sq.work = reinterpret_cast<std::byte*>(m.work);
    TargetConfig t;
    t.instance = {eid, uasid};
    t.mode = Mode::kRc;
    t.id = 1;
    t.path = path_to(t.instance);
    const Status status = nic->control([&](Nic::NicCore& core, Instant now) {
      uint32_t jetty, target;
      if (const Status s = core.create_jfc(c, &r.jfc); s != Status::kOk) return s;
      if (const Status s = core.create_jfr(r, &j.jfr); s != Status::kOk) return s;
      j.sq.jfc = r.jfc;
      if (const Status s = core.create_jetty(j, &jetty); s != Status::kOk) return s;
      if (const Status s = core.add_target(now, t, &target); s != Status::kOk) return s;
      return core.bind(now, jetty, target);
    });
    ASSERT_EQ(status, Status::kOk);
  }
  PeerAddress path_to(const InstanceId& instance) {
    PeerAddress path;
    std::string why;
    EXPECT_TRUE(nic->find_path(nic->eids().front(), instance, &path, &why)) << why;
    return path;
  }

  std::string page_path() const { return stats_page_path(directory, list_stats_pages(directory).at(0)); }
  StatsReport read_page() {
    std::string error;
    const auto page = StatsPageReader::open(page_path(), &error);
    StatsReport report;
    EXPECT_TRUE(page != nullptr && page->read(&report, &error)) << error;
    return report;
  }

  std::vector<std::string> all_said() {
    const std::lock_guard lock(said_mutex);
    return said;
  }

  std::string directory;
  std::mutex said_mutex;
  std::vector<std::string> said;  // by `nic`
  struct Memory {
    Cqe cqes[8];
    Rqe rqes[8];
    Wqe wqes[8];
    WrState work[8];
    QueueIndices rings[3]{};
  };
  std::deque<Memory> memory;  // of jettys
  std::unique_ptr<Nic> nic;
};

TEST_F(NicStatistics, tell_of_a_channel_that_ended_because_nobody_answered) {
  const Eid nobody = eid_of(parse_ip(kNobody).value());
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(3 * kSilence);  // a page is written as soon as there is a channel, as a rule
    bind_to(nobody);
    std::this_thread::sleep_for(8 * kSilence);
    EXPECT_EQ(read_page().channels.size(), 0) << "its end neither sends nor receives anything";
  }
}

TEST_F(NicStatistics, tell_what_happened_last) {
  bind_to(eid_of(parse_ip(kNobody).value()));
  std::this_thread::sleep_for(8 * kSilence);
  std::string error;
  const auto page = StatsPageReader::open(page_path(), &error);
  std::vector<StatsNote> notes;
  ASSERT_TRUE(page != nullptr && page->read_last_notes(&notes, &error)) << error;
  const auto count = [&](Stage stage) {
    return std::count_if(notes.begin(), notes.end(), [=](const StatsNote& n) { return n.note.stage == stage; });
  };
  EXPECT_EQ(count(Stage::kChannelGivenUp), 1);
  EXPECT_GE(count(Stage::kChannelState), 2) << "asking its peer, and dead";
  EXPECT_GE(count(Stage::kRecordPut), 1);
}

TEST_F(NicStatistics, a_peer_that_falls_silent_is_told_of_with_what_came_before) {
  const auto peer = start(kNobody);
  bind_to(peer->eids().front(), peer->uasid());
  std::this_thread::sleep_for(3 * kSilence);
  EXPECT_TRUE(all_said().empty());
  std::string why;
  ASSERT_EQ(peer->inject({.rnr = {}, .port_down = {}, .stop = fault::Window{}}, &why), Status::kOk) << why;
  for (int i = 0; i < 50 && all_said().empty(); ++i) std::this_thread::sleep_for(kSilence);
  const std::vector<std::string> lines = all_said();
  ASSERT_GE(lines.size(), 3u);
  EXPECT_NE(lines[0].find("given up because it was silent"), std::string::npos) << lines[0];
  const auto says = [&](const char* text) {
    return std::any_of(lines.begin(), lines.end(), [=](const std::string& l) { return l.find(text) != l.npos; });
  };
  EXPECT_TRUE(says("is given up: its peer was silent for too long"));
  EXPECT_TRUE(says("its timer ran out"));
}

TEST_F(NicStatistics, have_each_count_of_lanes_once) {
  const StatsReport report = read_page();
  for (const std::string_view name : kLanePortCounterNames) {
    const auto is_it = [&](const auto& counter) { return counter.first == name; };
    EXPECT_EQ(std::count_if(report.counters.begin(), report.counters.end(), is_it), 1) << name;
  }
}

}  // namespace
}  // namespace ub
