// SPDX-License-Identifier: Apache-2.0
// What tools read of a NIC follows what happens, also what only a timer does.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

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
    LoadedConfig config;
    config.port.kinds = {"udp"};
    config.device.eids = {kAddress};
    config.transport.setup_retry_min = config.transport.channel_timeout = kSilence;
    config.log.stats_dir = directory;
    std::string error;
    nic = Nic::start(config, 0, {}, &error);
    EXPECT_NE(nic, nullptr) << error;
  }
  ~NicStatistics() override {
    nic.reset();
    std::filesystem::remove_all(directory);
  }

  // An RC jetty has its channel set up when it is bound.
  void bind_to(const Eid& eid) {
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
    t.instance = {eid, 7};
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

  StatsReport read_page() {
    std::string error;
    const auto page = StatsPageReader::open(std::filesystem::directory_iterator(directory)->path(), &error);
    StatsReport report;
    EXPECT_TRUE(page != nullptr && page->read(&report, &error)) << error;
    return report;
  }

  std::string directory;
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

TEST_F(NicStatistics, have_each_count_of_lanes_once) {
  const StatsReport report = read_page();
  for (const std::string_view name : kLanePortCounterNames) {
    const auto is_it = [&](const auto& counter) { return counter.first == name; };
    EXPECT_EQ(std::count_if(report.counters.begin(), report.counters.end(), is_it), 1) << name;
  }
}

}  // namespace
}  // namespace ub
