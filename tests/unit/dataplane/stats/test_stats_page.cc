// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "dataplane/stats_page.h"
#include "dataplane/tsc_clock.h"
#include "lib/transport/wire/network_header.h"

namespace ub {
namespace {

Eid v4_eid(uint8_t last) {
  Eid e;
  e.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
  return e;
}

class StatsPage : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/stats_page_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  std::unique_ptr<StatsPageWriter> writer(uint8_t last = 1, uint16_t port = 4792) {
    StatsIdentity id;
    id.eids = {v4_eid(last), Eid{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}}};
    id.uasid = 0xabcd12b8;
    id.udp_port = port;
    id.wires = "shm, udp";
    id.device = "softub0";
    auto w = StatsPageWriter::create(directory, id, &error);
    EXPECT_TRUE(w) << error;
    return w;
  }
  std::unique_ptr<StatsPageReader> reader(const std::string& name = "10.0.0.1-4792") {
    auto r = StatsPageReader::open(stats_page_path(directory, name), &error);
    EXPECT_TRUE(r) << error;
    return r;
  }

  std::string directory, error;
};

ChannelInfo channel(uint32_t n) {
  ChannelInfo c{};
  c.tpn = n;
  c.peer_tpn = n + 1;
  c.peer = {v4_eid(7), 0x77};
  c.remote = {wire::IpAddress::from_v4(0x0a000007), 4793};
  c.mtu = 4096;
  c.bulk = c.ordered = c.compact = c.repeats = true;
  c.next_psn = 100 + n;
  c.tx_packets = 1000 + n;
  c.smoothed_rtt = microseconds(3);
  c.rto = milliseconds(4);
  c.go_back_n = true;
  c.congestion_control = "dcqcn";
  c.window_packets = 17;
  c.rate_kbytes_per_second = 125;
  c.paths = 2;
  for (uint64_t& v : c.counts.v) v = 10 * n + static_cast<uint64_t>(&v - c.counts.v);
  return c;
}

PathInfo path(uint8_t n) {
  PathInfo p{};
  p.local = {wire::IpAddress::from_v4(0x0a000001), 4792};
  p.remote = {wire::IpAddress::from_v4(0x0a000100u + n), 4793};
  p.live = n % 2 == 0;
  p.in_flight = n;
  p.window_packets = 20;
  p.rate_kbytes_per_second = 30;
  p.smoothed_rtt = microseconds(40);
  p.tx_packets = 50 + n;
  p.rx_packets = 60;
  p.lost = 70;
  p.marks = 80;
  p.deaths = 90;
  return p;
}

TEST_F(StatsPage, identity_and_values_arrive) {
  auto w = writer();
  Counters counters;
  counters.add(Counter::kRxPackets, 5);
  counters.add(Counter::kTxBytes, 1ull << 40);
  StatsObjects objects;
  objects.jetty = 3;
  objects.links = 2;
  objects.pools[kStatsPools - 1] = {.in_use = 1, .highest = 7, .size = 4096, .refused = 3};
  std::vector<ChannelInfo> channels = {channel(1), channel(2)};
  std::vector<StatsSegment> segments = {{.address = 0x1000, .length = 64, .token_id = 9, .access = 6}};
  std::vector<StatsName> names = {{.name = "table", .segment = segments[0]}};
  w->update(counters, objects, channels, segments, {}, {}, names);

  StatsReport r;
  ASSERT_TRUE(reader()->read(&r, &error)) << error;
  EXPECT_EQ(r.uasid, 0xabcd12b8u);
  EXPECT_EQ(r.udp_port, 4792);
  EXPECT_EQ(r.pid, getpid());
  ASSERT_EQ(r.eids.size(), 2u);
  EXPECT_EQ(eid_text(r.eids[0]), "10.0.0.1");
  EXPECT_EQ(eid_text(r.eids[1]), "fd00::9");
  EXPECT_EQ(r.placement, "embedded");
  EXPECT_EQ(r.wires, "shm, udp");
  EXPECT_EQ(r.device, "softub0");
  EXPECT_FALSE(r.program.empty());
  EXPECT_GE(r.updated_ns, r.started_ns);
  EXPECT_EQ(r.updates, 1u);
  ASSERT_EQ(r.counters.size(), kCounterCount);
  EXPECT_EQ(r.counters[0].first, "rx.packets");
  EXPECT_EQ(r.counters[0].second, 5u);
  EXPECT_EQ(r.counters[static_cast<size_t>(Counter::kTxBytes)].second, 1ull << 40);
  EXPECT_EQ(r.objects, objects);
  ASSERT_EQ(r.channels.size(), 2u);
  EXPECT_EQ(r.channels[1].tpn, 2u);
  EXPECT_EQ(r.channels[1].peer_tpn, 3u);
  EXPECT_EQ(r.channels[1].remote_port, 4793);
  EXPECT_EQ(r.channels[1].remote_ip[15], 7);
  EXPECT_EQ(r.channels[1].peer_uasid, 0x77u);
  EXPECT_EQ(r.channels[1].tx_packets, 1002u);
  EXPECT_EQ(r.channels[1].smoothed_rtt_ns, 3000);
  EXPECT_TRUE(r.channels[1].bulk);
  EXPECT_TRUE(r.channels[1].ordered);
  EXPECT_TRUE(r.channels[1].compact);
  EXPECT_TRUE(r.channels[1].repeats);
  EXPECT_TRUE(r.channels[1].go_back_n);
  for (size_t i = 0; i < kChannelCounts; ++i) EXPECT_EQ(r.channels[1].counts[i], 20 + i) << kChannelCountNames[i];
  EXPECT_STREQ(r.channels[1].congestion_control, "dcqcn");
  EXPECT_EQ(r.channels[1].window_packets, 17u);
  EXPECT_EQ(r.channels[1].rate_kbytes_per_second, 125u);
  EXPECT_EQ(r.channels[1].paths, 2u);
  EXPECT_EQ(r.channels[1].lost, channels[1].lost());
  EXPECT_EQ(r.segments, segments);
  EXPECT_EQ(r.names, names);
}

TEST_F(StatsPage, paths_arrive_as_far_as_there_is_room) {
  auto w = writer();
  auto rd = reader();
  const std::vector<StatsPath> two = {stats_path(7, 0, path(0)), stats_path(7, 1, path(1))};
  w->update({}, {}, {}, {}, {}, {}, {}, two);
  StatsReport r;
  ASSERT_TRUE(rd->read(&r, &error)) << error;
  ASSERT_EQ(r.paths.size(), 2u);
  const StatsPath& p = r.paths[1];
  EXPECT_EQ(p.tpn, 7u);
  EXPECT_EQ(p.number, 1);
  EXPECT_FALSE(p.live);
  EXPECT_TRUE(r.paths[0].live);
  EXPECT_EQ(p.local_ip[15], 1);
  EXPECT_EQ(p.local_port, 4792);
  EXPECT_EQ(p.remote_ip[14], 1);
  EXPECT_EQ(p.remote_port, 4793);
  EXPECT_EQ(p.in_flight, 1u);
  EXPECT_EQ(p.window_packets, 20u);
  EXPECT_EQ(p.rate_kbytes_per_second, 30u);
  EXPECT_EQ(p.smoothed_rtt_ns, 40'000);
  EXPECT_EQ(p.tx_packets, 51u);
  EXPECT_EQ(p.rx_packets, 60u);
  EXPECT_EQ(p.lost, 70u);
  EXPECT_EQ(p.marks, 80u);
  EXPECT_EQ(p.deaths, 90u);

  w->update({}, {}, {}, {}, {}, {}, {}, std::vector<StatsPath>(5000, two[0]));
  ASSERT_TRUE(rd->read(&r, &error)) << error;
  EXPECT_EQ(r.paths.size(), 1024u);
  w->update({}, {}, {}, {});
  ASSERT_TRUE(rd->read(&r, &error)) << error;
  EXPECT_TRUE(r.paths.empty());
}

TEST_F(StatsPage, before_the_first_update_everything_is_zero) {
  auto w = writer();
  StatsReport r;
  ASSERT_TRUE(reader()->read(&r, &error)) << error;
  EXPECT_EQ(r.updates, 0u);
  EXPECT_EQ(r.updated_ns, 0u);
  EXPECT_EQ(r.counters.size(), kCounterCount);
  EXPECT_TRUE(r.channels.empty());
}

TEST_F(StatsPage, tables_shrink_and_overflow) {
  auto w = writer();
  std::vector<ChannelInfo> many;
  for (uint32_t i = 0; i < 5000; ++i) many.push_back(channel(i));
  std::vector<StatsSegment> segments(3000);
  w->update({}, {}, many, segments);
  auto rd = reader();
  StatsReport r;
  ASSERT_TRUE(rd->read(&r, &error));
  EXPECT_EQ(r.channels_total, 5000u);
  EXPECT_EQ(r.segments_total, 3000u);
  EXPECT_LT(r.channels.size(), 5000u);
  EXPECT_EQ(r.channels.back().tpn, r.channels.size() - 1);
  w->update({}, {}, {}, {});
  ASSERT_TRUE(rd->read(&r, &error));
  EXPECT_TRUE(r.channels.empty());
  EXPECT_TRUE(r.segments.empty());
}

TEST_F(StatsPage, readers_see_whole_updates_only) {
  auto w = writer();
  constexpr uint64_t kReads = 2000;
  std::atomic<uint64_t> reads_begun = 0;
  // One update while each read is under way: a reader gives up if there are ever more of them.
  std::thread updates([&] {
    for (uint64_t n = 1; n <= kReads; ++n) {
      while (reads_begun < n) std::this_thread::yield();
      Counters counters;
      for (uint64_t& v : counters.v) v = n;
      StatsObjects objects;
      objects.jetty = objects.links = static_cast<uint32_t>(n);
      std::vector<ChannelInfo> channels(n % 20, channel(static_cast<uint32_t>(n)));
      w->update(counters, objects, channels, {});
    }
  });
  auto rd = reader();
  for (uint64_t i = 1; i <= kReads; ++i) {
    StatsReport r;
    reads_begun = i;
    EXPECT_TRUE(rd->read(&r, &error)) << error;
    const uint64_t n = r.updates;
    for (auto& [name, value] : r.counters) ASSERT_EQ(value, n) << name;
    ASSERT_EQ(r.objects.jetty, n);
    ASSERT_EQ(r.objects.links, n);
    ASSERT_EQ(r.channels.size(), n % 20);
    for (auto& c : r.channels) ASSERT_EQ(c.tpn, n);
  }
  updates.join();
}

TEST_F(StatsPage, last_notes_outlive_the_process) {
  const pid_t child = fork();
  if (child == 0) {
    auto w = writer(5);
    w->last_notes()->behind_ns = TscClock::monotonic_ns();
    w->last_notes()->add(Instant{}, {Stage::kChannelGivenUp, 3});
    w->last_notes()->add(Instant{1000}, {Stage::kChannelState, 3, 5});
    _exit(0);  // no destructor: as if killed
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  auto rd = reader("10.0.0.5-4792");
  std::vector<StatsNote> notes;
  ASSERT_TRUE(rd->read_last_notes(&notes, &error)) << error;
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].note, (Note{Stage::kChannelGivenUp, 3}));
  EXPECT_EQ(notes[1].last_ns, notes[0].last_ns + 1000);
  const auto now = static_cast<uint64_t>(time(nullptr)) * 1'000'000'000;
  EXPECT_LT(notes[0].first_ns, now + 1'000'000'000);
  EXPECT_GT(notes[0].first_ns, now - 60'000'000'000) << "wall time";
}

TEST_F(StatsPage, last_notes_of_another_build_are_refused) {
  auto w = writer();
  const int fd = ::open(w->path().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  int refused = 0;
  for (off_t at = 0; at < 128; at += 8) {  // one of these words says which stages there are
    uint64_t word;
    ASSERT_EQ(pread(fd, &word, sizeof word, at), 8);
    const uint64_t other = ~word;
    ASSERT_EQ(pwrite(fd, &other, sizeof other, at), 8);
    std::vector<StatsNote> notes;
    const auto rd = StatsPageReader::open(w->path(), &error);
    if (rd && !rd->read_last_notes(&notes, &error)) {
      EXPECT_NE(error.find("another build"), std::string::npos) << error;
      ++refused;
    }
    ASSERT_EQ(pwrite(fd, &word, sizeof word, at), 8);
  }
  ::close(fd);
  EXPECT_EQ(refused, 1);
}

TEST_F(StatsPage, removed_at_the_end) {
  auto w = writer();
  EXPECT_EQ(list_stats_pages(directory), std::vector<std::string>{"10.0.0.1-4792"});
  auto rd = reader();
  EXPECT_TRUE(rd->alive());
  w.reset();
  EXPECT_FALSE(rd->alive());
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST_F(StatsPage, dead_instances_are_recognised_and_swept) {
  pid_t child = fork();
  if (child == 0) {
    auto w = writer(5);
    _exit(w ? 0 : 1);  // no destructor: as if killed
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  {
    auto rd = reader("10.0.0.5-4792");
    EXPECT_FALSE(rd->alive());
    StatsReport r;
    EXPECT_TRUE(rd->read(&r, &error));
    EXPECT_EQ(r.pid, child);
  }
  const std::string door = directory + "/10.0.0.5-4792.look";
  std::ofstream(door).put('x');
  auto w = writer(1);
  EXPECT_FALSE(std::filesystem::exists(door)) << "its door is swept, too";
  auto second = writer(2, 5000);
  EXPECT_EQ(list_stats_pages(directory), (std::vector<std::string>{"10.0.0.1-4792", "10.0.0.2-5000"}));
}

TEST_F(StatsPage, unfinished_pages_are_swept_once_they_are_old) {
  const std::string young = directory + "/.10.0.0.7-4792.123.stats.tmp",
                    old = directory + "/.10.0.0.8-4792.124.stats.tmp";
  for (const std::string& path : {young, old}) close(creat(path.c_str(), 0600));
  const timespec times[] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, old.c_str(), times, 0), 0);
  auto w = writer();
  EXPECT_TRUE(std::filesystem::exists(young));
  EXPECT_FALSE(std::filesystem::exists(old));
}

TEST_F(StatsPage, foreign_files_are_not_swept) {
  const std::string path = directory + "/results.stats";
  for (const char* content : {"", "x", "numbers that somebody measured"}) {
    FILE* f = fopen(path.c_str(), "w");
    fputs(content, f);
    fclose(f);
    ASSERT_TRUE(writer(1));
    EXPECT_TRUE(std::filesystem::exists(path)) << content;
  }
}

TEST_F(StatsPage, a_forked_child_leaves_the_page_alone) {
  auto w = writer();
  pid_t child = fork();
  if (child == 0) {
    w->update({}, {}, {}, {});
    w.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  StatsReport r;
  ASSERT_TRUE(reader()->read(&r, &error));
  EXPECT_EQ(r.updates, 0u);
}

TEST_F(StatsPage, other_files_are_refused) {
  auto refuse = [&](const char* name, const std::string& content) {
    std::string path = stats_page_path(directory, name);
    FILE* f = fopen(path.c_str(), "w");
    fwrite(content.data(), 1, content.size(), f);
    fclose(f);
    error.clear();
    EXPECT_FALSE(StatsPageReader::open(path, &error));
    EXPECT_FALSE(error.empty());
  };
  refuse("empty", "");
  refuse("short", "UBSTATS1");
  refuse("text", std::string(1 << 18, 'x'));
  auto w = writer();
  std::string copy(std::filesystem::file_size(w->path()), 0);
  FILE* f = fopen(w->path().c_str(), "r");
  ASSERT_EQ(fread(copy.data(), 1, copy.size(), f), copy.size());
  fclose(f);
  std::string other = copy;
  other[8] = 99;  // version
  refuse("version", other);
  EXPECT_NE(error.find("version 99"), std::string::npos);
  refuse("truncated", copy.substr(0, copy.size() - 4096));
  EXPECT_FALSE(StatsPageReader::open(stats_page_path(directory, "none"), &error));
  mkdir(stats_page_path(directory, "dir").c_str(), 0700);
  EXPECT_FALSE(StatsPageReader::open(stats_page_path(directory, "dir"), &error));
}

TEST_F(StatsPage, the_directory_is_made_if_its_parent_exists) {
  StatsIdentity id;
  id.eids = {v4_eid(1)};
  auto w = StatsPageWriter::create(directory + "/new", id, &error);
  ASSERT_TRUE(w) << error;
  EXPECT_EQ(std::filesystem::status(directory + "/new").permissions(), std::filesystem::perms::owner_all);
}

TEST_F(StatsPage, no_directory_no_page) {
  StatsIdentity id;
  id.eids = {v4_eid(1)};
  EXPECT_FALSE(StatsPageWriter::create(directory + "/missing/deeper", id, &error));
  EXPECT_NE(error.find("missing"), std::string::npos);
  id.eids.clear();
  EXPECT_FALSE(StatsPageWriter::create(directory, id, &error));
  EXPECT_TRUE(list_stats_pages(directory + "/missing").empty());
}

}  // namespace
}  // namespace ub
