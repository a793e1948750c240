// SPDX-License-Identifier: Apache-2.0
// The latency statistics: what is counted, when, and how the table reads.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/urma_api/fixture.h"
#include "urma_perf.h"

namespace ub::test {
namespace {

struct Row {
  uint64_t samples = 0, average = 0, min = 0, max = 0, p50 = 0, p90 = 0, p99 = 0, p9999 = 0;
};

class Perf : public UrmaTest {
 protected:
  void TearDown() override {
    urma_stop_perf();  // for the next test
    UrmaTest::TearDown();
  }

  static std::string text() {
    std::vector<char> room(65536, '#');
    auto length = static_cast<uint32_t>(room.size());
    EXPECT_EQ(urma_get_perf_info(room.data(), &length), URMA_SUCCESS);
    EXPECT_EQ(strlen(room.data()) + 1, length);
    EXPECT_EQ(room[length], '#');
    return room.data();
  }
  static std::map<std::string, Row> table() {
    std::istringstream lines(text());
    std::string line;
    EXPECT_TRUE(std::getline(lines, line));
    EXPECT_NE(line.find("samples"), std::string::npos);
    std::map<std::string, Row> rows;
    while (std::getline(lines, line)) {
      std::istringstream fields(line);
      std::string name;
      Row row;
      fields >> name >> row.samples >> row.average >> row.min >> row.max >> row.p50 >> row.p90 >> row.p99 >> row.p9999;
      EXPECT_TRUE(fields) << line;
      rows[name] = row;
    }
    return rows;
  }
  static uint64_t samples(const std::string& call) { return table().at(call).samples; }

  // Every measured call once. That some are refused does not matter: they were called.
  void call_all(urma_jfce_t* jfce, urma_jfc_t* jfc, urma_jfs_t* jfs, urma_jfr_t* jfr, urma_jetty_t* jetty) {
    urma_jfs_wr_t send{};
    urma_jfs_wr_t* bad_send = nullptr;
    urma_jfr_wr_t receive{};
    urma_jfr_wr_t* bad_receive = nullptr;
    urma_post_jfs_wr(jfs, &send, &bad_send);
    urma_post_jetty_send_wr(jetty, &send, &bad_send);
    urma_post_jfr_wr(jfr, &receive, &bad_receive);
    urma_post_jetty_recv_wr(jetty, &receive, &bad_receive);
    urma_cr_t cr;
    urma_poll_jfc(jfc, 1, &cr);
    urma_rearm_jfc(jfc, false);
    urma_jfc_t* got = nullptr;
    urma_wait_jfc(jfce, 1, 0, &got);
    uint32_t none = 0;
    urma_ack_jfc(&jfc, &none, 1);
  }
  void call_all() {
    urma_jfce_t* jfce = urma_create_jfce(ctx);
    urma_jfc_t* jfc = make_jfc(16, jfce);
    urma_jfr_t* jfr = make_jfr(jfc);
    call_all(jfce, jfc, make_jfs(jfc), jfr, make_jetty(jfc, jfr));
  }
};

const char* const kCalls[] = {"UB_JETTY_POST_SEND", "UB_JFS_POST_SEND", "UB_JETTY_POST_RECV", "UB_POST_JFR_RECV",
                              "UB_POLL_JFC",        "UB_WAIT_JFC",      "UB_ACK_JFC",         "UB_REARM_JFC"};

TEST_F(Perf, start_and_stop_answer_by_state) {
  EXPECT_EQ(urma_stop_perf(), URMA_FAIL);
  EXPECT_EQ(urma_start_perf(), URMA_SUCCESS);
  EXPECT_EQ(urma_start_perf(), URMA_EEXIST);
  EXPECT_EQ(urma_stop_perf(), URMA_SUCCESS);
  EXPECT_EQ(urma_stop_perf(), URMA_FAIL);
}

TEST_F(Perf, counts_every_call_while_it_is_on) {
  EXPECT_EQ(table().size(), std::size(kCalls)) << "also before the first start";
  ASSERT_EQ(urma_start_perf(), URMA_SUCCESS);
  call_all();
  for (const char* call : kCalls) EXPECT_EQ(samples(call), 1u) << call;
  EXPECT_EQ(table().size(), std::size(kCalls));
  ASSERT_EQ(urma_stop_perf(), URMA_SUCCESS);
  call_all();
  for (const char* call : kCalls) EXPECT_EQ(samples(call), 1u) << call << ", after the stop";
  ASSERT_EQ(urma_start_perf(), URMA_SUCCESS);
  for (const char* call : kCalls) EXPECT_EQ(samples(call), 0u) << call << ", after another start";
}

TEST_F(Perf, convenience_calls_are_counted_as_what_they_post) {
  urma_jfc_t* jfc = make_jfc();
  urma_jfr_t* jfr = make_jfr(jfc);
  char memory[64];
  urma_target_seg_t* seg = make_seg(memory, sizeof memory);
  ASSERT_EQ(urma_start_perf(), URMA_SUCCESS);
  EXPECT_EQ(urma_recv(jfr, seg, reinterpret_cast<uint64_t>(memory), 8, 0), URMA_SUCCESS);
  EXPECT_EQ(urma_send(make_jfs(jfc), make_target(), seg, reinterpret_cast<uint64_t>(memory), 8, {}, 0), URMA_SUCCESS);
  EXPECT_EQ(samples("UB_POST_JFR_RECV"), 1u);
  EXPECT_EQ(samples("UB_JFS_POST_SEND"), 1u);
}

TEST_F(Perf, numbers_are_in_order) {
  urma_jfc_t* jfc = make_jfc();
  ASSERT_EQ(urma_start_perf(), URMA_SUCCESS);
  urma_cr_t cr;
  for (int i = 0; i < 1000; ++i) urma_poll_jfc(jfc, 1, &cr);
  const Row row = table().at("UB_POLL_JFC");
  EXPECT_EQ(row.samples, 1000u);
  EXPECT_LE(row.min, row.p50);
  EXPECT_LE(row.p50, row.p90);
  EXPECT_LE(row.p90, row.p99);
  EXPECT_LE(row.p99, row.p9999);
  EXPECT_LE(row.p9999, row.max);
  EXPECT_LE(row.min, row.average);
  EXPECT_LE(row.average, row.max);
}

TEST_F(Perf, time_spent_waiting_is_measured) {
  urma_jfce_t* jfce = urma_create_jfce(ctx);
  ASSERT_EQ(urma_start_perf(), URMA_SUCCESS);
  urma_jfc_t* got = nullptr;
  EXPECT_EQ(urma_wait_jfc(jfce, 1, 20, &got), 0);
  EXPECT_GE(table().at("UB_WAIT_JFC").min, 19'000'000u);  // ns; the wait never ends early
}

TEST_F(Perf, room_is_checked) {
  ASSERT_EQ(urma_start_perf(), URMA_SUCCESS);
  const std::string whole = text();
  auto needed = static_cast<uint32_t>(whole.size() + 1);
  std::vector<char> room(needed + 1, '#');
  uint32_t length = needed;
  EXPECT_EQ(urma_get_perf_info(nullptr, &length), URMA_EINVAL);
  EXPECT_EQ(urma_get_perf_info(room.data(), nullptr), URMA_EINVAL);
  for (uint32_t small : {0u, 1u, needed - 1}) {
    length = small;
    EXPECT_EQ(urma_get_perf_info(room.data(), &length), URMA_EINVAL);
    EXPECT_EQ(room[0], '#') << "nothing is written";
  }
  length = needed;
  EXPECT_EQ(urma_get_perf_info(room.data(), &length), URMA_SUCCESS);
  EXPECT_EQ(length, needed);
  EXPECT_EQ(whole, room.data());
  EXPECT_EQ(room[needed], '#');
}

// More threads than there are sets of histograms, and readers and a restart among them.
TEST_F(Perf, threads_lose_no_sample) {
  constexpr int kThreads = 12;
  constexpr int kPolls = 2000;
  std::vector<urma_jfc_t*> jfcs;
  for (int i = 0; i < kThreads; ++i) jfcs.push_back(make_jfc());
  ASSERT_EQ(urma_start_perf(), URMA_SUCCESS);
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (urma_jfc_t* jfc : jfcs) {
    threads.emplace_back([jfc, &running] {
      urma_cr_t cr;
      for (int i = 0; i < kPolls; ++i) urma_poll_jfc(jfc, 1, &cr);
      running.fetch_sub(1);
    });
  }
  uint64_t last = 0;
  while (running.load() != 0) {
    const uint64_t now = samples("UB_POLL_JFC");
    EXPECT_GE(now, last);
    last = now;
    EXPECT_EQ(urma_start_perf(), URMA_EEXIST);  // clears nothing
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(samples("UB_POLL_JFC"), uint64_t{kThreads} * kPolls);
}

TEST_F(Perf, forked_child_measures_nothing_until_it_starts) {
  urma_jfc_t* jfc = make_jfc();
  ASSERT_EQ(urma_start_perf(), URMA_SUCCESS);
  urma_cr_t cr;
  urma_poll_jfc(jfc, 1, &cr);
  pid_t child = fork();
  if (child == 0) {
    if (urma_stop_perf() != URMA_FAIL) _exit(1);
    if (urma_start_perf() != URMA_SUCCESS) _exit(2);
    urma_poll_jfc(jfc, 1, &cr);
    urma_poll_jfc(jfc, 1, &cr);
    _exit(samples("UB_POLL_JFC") == 2 ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(samples("UB_POLL_JFC"), 1u);
}

}  // namespace
}  // namespace ub::test
