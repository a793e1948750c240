// SPDX-License-Identifier: Apache-2.0
//
// A client under a clock of its own, with a store that takes as long as the test says.
#include "tools/ycsb/client.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "tests/unit/ycsb/workload.h"

namespace ub::ycsb {
namespace {

constexpr uint64_t kUs = 1000, kMs = 1'000'000, kS = 1'000'000'000;

struct FakeClock {
  uint64_t ns = 0;
  uint64_t now_ns() const { return ns; }
  void wait_until(uint64_t until) { ns = std::max(ns, until); }
  void idle() { ns += kUs; }
};

// Requests take `service_ns`, one after the other. The clock goes on when somebody waits.
class FakeStore : public Store {
 public:
  explicit FakeStore(FakeClock& clock) : clock_(clock) {}

  void start(const Request& request) override {
    started.push_back(request.operation);
    EXPECT_TRUE(tags_.insert(request.tag).second) << "tag " << request.tag << " is in flight";
    most_in_flight = std::max(most_in_flight, tags_.size());
    const uint64_t begin = std::max(clock_.ns, free_at_);
    free_at_ = begin + service_ns(begin);
    queue_.push_back({request.tag, free_at_});
  }
  size_t poll(std::span<Completion> done, uint64_t wait_ns) override {
    if (queue_.empty()) return 0;
    if (queue_.front().end > clock_.ns) clock_.ns = std::min(queue_.front().end, clock_.ns + wait_ns);
    if (queue_.front().end > clock_.ns) return 0;
    const uint32_t tag = queue_.front().tag;
    queue_.erase(queue_.begin());
    tags_.erase(tag);
    done[0] = {tag, status(ended++), {}};
    return 1;
  }
  std::string last_error() const override { return "out of order"; }

  std::function<uint64_t(uint64_t begin)> service_ns = [](uint64_t) { return 100 * kUs; };
  std::function<Status(uint64_t index)> status = [](uint64_t) { return Status::kOk; };
  std::vector<Operation> started;
  size_t most_in_flight = 0;
  uint64_t ended = 0;

 private:
  struct InFlight {
    uint32_t tag;
    uint64_t end;
  };
  FakeClock& clock_;
  std::vector<InFlight> queue_;
  std::set<uint32_t> tags_;
  uint64_t free_at_ = 0;
};

class ClientTest : public testing::Test {
 protected:
  void make(const std::string& text, double rate = 0) {
    spec_ = workload("recordcount=100\nfieldlength=1\n" + text);
    options_.intended = true;
    auto store = std::make_unique<FakeStore>(clock_);
    store_ = store.get();
    client_ = std::make_unique<Client<FakeClock>>(options_, Requests(spec_, KeyChooser(spec_), inserted_, 1, false),
                                                  inserted_, Schedule(rate, 1, 0, 0), std::move(store), clock_, stop_);
  }
  const Latencies& run() {
    client_->run();
    client_->recorder().take(&latencies_);
    return latencies_;
  }
  uint64_t count(Operation operation, Status status = Status::kOk) const {
    const LatencyHistogram* histogram = latencies_.get(operation, status, Clocked::kOperation);
    return histogram == nullptr ? 0 : histogram->count();
  }

  FakeClock clock_;
  Spec spec_;
  KeySequence inserted_{100};
  ClientOptions options_{.operations = 10'000};
  std::atomic<bool> stop_{false};
  FakeStore* store_ = nullptr;
  std::unique_ptr<Client<FakeClock>> client_;
  Latencies latencies_;
};

// 1000 operations each second, which take 100 us each; at second 1 the store stands still for a second. Requests are
// sent one at a time, so just one of them sees the stall. But 1000 were meant to begin meanwhile.
TEST_F(ClientTest, a_stall_shows_in_the_intended_latency_and_not_in_that_of_operations) {
  make("readproportion=1\nupdateproportion=0\n", 1000);
  store_->service_ns = [](uint64_t begin) { return begin >= kS && begin < kS + kMs ? kS : 100 * kUs; };
  const Latencies& latencies = run();
  const LatencyHistogram& operation = *latencies.get(Operation::kRead, Status::kOk, Clocked::kOperation);
  const LatencyHistogram& intended = *latencies.get(Operation::kRead, Status::kOk, Clocked::kIntended);
  ASSERT_EQ(operation.count(), 10'000u);
  ASSERT_EQ(intended.count(), 10'000u);
  EXPECT_EQ(operation.max(), kS);
  EXPECT_NEAR(static_cast<double>(operation.percentile(99.9)), 100e3, 100);
  EXPECT_EQ(intended.max(), kS);
  // About 1110 operations were late: those of the stall, and those of the time in which it was caught up with.
  EXPECT_NEAR(static_cast<double>(intended.percentile(88.5)), 100e3, 100);
  EXPECT_NEAR(static_cast<double>(intended.percentile(99)), 0.91e9, 0.02e9);
  EXPECT_NEAR(static_cast<double>(clock_.ns), 10e9, 2e6);  // the schedule is kept
}

TEST_F(ClientTest, without_a_target_both_latencies_are_the_same) {
  make("readproportion=1\nupdateproportion=0\n");
  const Latencies& latencies = run();
  for (const Clocked clocked : {Clocked::kOperation, Clocked::kIntended}) {
    EXPECT_EQ(latencies.get(Operation::kRead, Status::kOk, clocked)->max(), 100 * kUs);
  }
  EXPECT_EQ(clock_.ns, 10'000 * 100 * kUs);
}

TEST_F(ClientTest, so_many_requests_are_in_flight_as_the_window_has) {
  options_.window = 8;
  make("readproportion=1\nupdateproportion=0\n");
  run();
  EXPECT_EQ(store_->most_in_flight, 8u);
  EXPECT_EQ(count(Operation::kRead), 10'000u);
}

TEST_F(ClientTest, failures_and_what_is_not_found_are_counted_apart) {
  make("readproportion=1\nupdateproportion=0\n");
  store_->status = [](uint64_t i) {
    return i % 10 == 0 ? Status::kFailed : i % 10 == 1 ? Status::kNotFound : Status::kOk;
  };
  run();
  EXPECT_EQ(count(Operation::kRead), 8000u);
  EXPECT_EQ(count(Operation::kRead, Status::kNotFound), 1000u);
  EXPECT_EQ(count(Operation::kRead, Status::kFailed), 1000u);
  EXPECT_EQ(client_->first_error(), "out of order");
  std::map<std::string, uint64_t> names;
  latencies_.for_each([&](const std::string& name, const LatencyHistogram& h) { names[name] = h.count(); });
  EXPECT_EQ(names, (std::map<std::string, uint64_t>{{"READ", 8000},
                                                    {"READ-NOT_FOUND", 1000},
                                                    {"READ-FAILED", 1000},
                                                    {"Intended-READ", 8000},
                                                    {"Intended-READ-NOT_FOUND", 1000},
                                                    {"Intended-READ-FAILED", 1000}}));
}

TEST_F(ClientTest, read_modify_write_is_a_read_then_an_update_and_both_are_told) {
  options_.operations = 100;
  make("readproportion=0\nupdateproportion=0\nreadmodifywriteproportion=1\n");
  const Latencies& latencies = run();
  EXPECT_EQ(store_->started[0], Operation::kRead);
  EXPECT_EQ(store_->started[1], Operation::kUpdate);
  EXPECT_EQ(store_->started.size(), 200u);
  const std::map<Operation, uint64_t> expected = {
      {Operation::kRead, 100 * kUs}, {Operation::kUpdate, 100 * kUs}, {Operation::kReadModifyWrite, 200 * kUs}};
  for (const auto& [operation, ns] : expected) {
    const LatencyHistogram* histogram = latencies.get(operation, Status::kOk, Clocked::kOperation);
    ASSERT_NE(histogram, nullptr) << operation_name(operation);
    EXPECT_EQ(histogram->count(), 100u);
    EXPECT_EQ(histogram->max(), ns);
  }
  EXPECT_EQ(client_->ended(), 100u);
}

TEST_F(ClientTest, read_modify_write_of_nothing_updates_nothing) {
  options_.operations = 100;
  make("readproportion=0\nupdateproportion=0\nreadmodifywriteproportion=1\n");
  store_->status = [](uint64_t) { return Status::kNotFound; };
  run();
  EXPECT_EQ(store_->started.size(), 100u);
  EXPECT_EQ(count(Operation::kReadModifyWrite, Status::kNotFound), 100u);
}

TEST_F(ClientTest, insertions_make_records_exist) {
  make("readproportion=0\nupdateproportion=0\ninsertproportion=1\n");
  run();
  EXPECT_EQ(inserted_.existing_end(), 10'100u);
}

TEST_F(ClientTest, the_deadline_ends_it_and_what_is_in_flight_is_waited_for) {
  options_.window = 4;
  options_.deadline_ns = kS;
  options_.operations = UINT64_MAX;
  make("readproportion=1\nupdateproportion=0\n");
  run();
  EXPECT_EQ(count(Operation::kRead), store_->started.size());
  EXPECT_NEAR(static_cast<double>(clock_.ns), 1e9, 1e6);
}

TEST_F(ClientTest, what_is_never_answered_has_failed) {
  options_.operations = 10;
  options_.window = 4;
  make("readproportion=1\nupdateproportion=0\n");
  store_->service_ns = [](uint64_t begin) { return begin < 500 * kUs ? 100 * kUs : 3600 * kS; };
  store_->status = [this](uint64_t i) {
    if (i == 4) stop_ = true;
    return Status::kOk;
  };
  run();
  EXPECT_EQ(count(Operation::kRead), 5u);
  EXPECT_EQ(count(Operation::kRead, Status::kFailed), 3u);
  EXPECT_EQ(client_->first_error(), "no answer from the store");
}

TEST(Schedule, threads_take_turns) {
  const uint64_t start = 1000;
  std::vector<uint64_t> times;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    const Schedule schedule(1e6, 4, thread, start);
    for (uint64_t i = 0; i < 3; ++i) times.push_back(schedule.intended_ns(i));
  }
  std::sort(times.begin(), times.end());
  for (size_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i], start + i * 1000);
  EXPECT_FALSE(Schedule(0, 4, 0, start).has_target());
}

TEST(Schedule, has_no_drift) {
  const Schedule schedule(300'000, 1, 0, 0);  // 3333.3 ns apart
  EXPECT_EQ(schedule.intended_ns(300'000 * 100), 100 * kS);
}

TEST(Recorder, what_was_measured_is_taken_once) {
  Recorder recorder;
  Latencies sum;
  recorder.latencies().record(Operation::kRead, Status::kOk, Clocked::kOperation, 5);
  recorder.end();
  recorder.take(&sum);
  recorder.take(&sum);
  EXPECT_EQ(sum.get(Operation::kRead, Status::kOk, Clocked::kOperation)->count(), 1u);
}

}  // namespace
}  // namespace ub::ycsb
