// SPDX-License-Identifier: Apache-2.0
// The end of the daemon, seen in the rings: every request and receive completes exactly once, whatever the daemon had
// done with it.
#include <gtest/gtest.h>

#include <vector>

#include "lib/urma/backends/daemon/orphans.h"
#include "lib/urma/backends/private_memory.h"
#include "lib/urma/data/ring.h"

namespace ub::urma {
namespace {

constexpr uint32_t kJfc = 1, kSends = 2000, kReceives = 3000;
constexpr uint64_t kCookie = 0xc00c1e, kSendData = 0x5e4d, kReceiveData = 0x4ece;

template <class Slot>
struct Ring {
  explicit Ring(uint32_t slot_count)
      : memory(private_memory(sizeof(QueueIndices) + slot_count * kSlotBytes)),
        indices(reinterpret_cast<QueueIndices*>(memory.get())),
        slots(reinterpret_cast<Slot*>(memory.get() + sizeof(QueueIndices))),
        count(slot_count) {}
  std::shared_ptr<std::byte> memory;
  QueueIndices* indices;
  Slot* slots;
  uint32_t count;
};

class OrphansTest : public testing::Test {
 protected:
  void make(uint32_t jfc_slots = 64, uint32_t jfc_depth = 0, ObjectKind kind = ObjectKind::kJetty) {
    completions = Ring<Cqe>(jfc_slots);
    JfcConfig jfc;
    jfc.slots = completions.slots;
    jfc.slot_count = jfc_slots;
    jfc.depth = jfc_depth == 0 ? jfc_slots : jfc_depth;
    jfc.indices = completions.indices;
    jfc.cookie = kCookie;
    orphans.add_jfc(kJfc, jfc);
    JettyConfig jetty;
    jetty.kind = kind;
    jetty.sq.slots = sends.slots;
    jetty.sq.slot_count = sends.count;
    jetty.sq.indices = sends.indices;
    jetty.sq.jfc = kJfc;
    jetty.user_data = kSendData;
    orphans.add_queue(kSends, jetty);
    producer.slots = sends.slots;
    producer.indices = sends.indices;
    producer.mask = sends.count - 1;
  }
  void make_jfr() {
    JfrConfig jfr;
    jfr.slots = receives.slots;
    jfr.slot_count = receives.count;
    jfr.indices = receives.indices;
    jfr.jfc = kJfc;
    jfr.user_data = kReceiveData;
    orphans.add_jfr(kReceives, jfr);
  }

  void post(uint64_t user_ctx, uint32_t slots = 1) {
    Wqe* wqe = reserve(producer, slots);
    ASSERT_NE(wqe, nullptr);
    *wqe = {};
    wqe->op = WrOp::kSend;
    wqe->slots = static_cast<uint8_t>(slots);
    wqe->user_ctx = user_ctx;
    wqe->length = static_cast<uint32_t>(user_ctx) * 10;
    producer.produced += slots;
    producer.publish();
  }
  void post_receive(uint64_t user_ctx) {
    uint32_t at = receives.indices->produced.load();
    Rqe& rqe = receives.slots[at & (receives.count - 1)];
    rqe = {};
    rqe.user_ctx = user_ctx;
    rqe.slots = 1;
    receives.indices->produced.store(at + 1);
  }

  // ---- the daemon ----
  void complete(const Cqe& cqe) {
    uint32_t at = completions.indices->produced.load();
    completions.slots[at & (completions.count - 1)] = cqe;
    completions.indices->produced.store(at + 1);
  }
  static Cqe success(uint64_t user_ctx, uint32_t stamp) {
    Cqe cqe{};
    cqe.user_ctx = user_ctx;
    cqe.length = static_cast<uint32_t>(user_ctx) * 10;
    cqe.local_id = kSends;
    cqe.user_data = kSendData;
    cqe.flags = kCqeJetty;
    cqe.opcode = CrOpcode::kNone;
    cqe.stamp = stamp;
    return cqe;
  }
  void give_back(uint32_t slots) {
    sends.indices->retired.fetch_add(1);
    sends.indices->consumed.fetch_add(slots);
  }

  // ---- the application ----
  struct Record {
    CrStatus status;
    uint64_t user_ctx;
    bool operator==(const Record&) const = default;
  };
  std::vector<Record> poll() {
    std::vector<Record> out;
    uint32_t consumed = completions.indices->consumed.load();
    for (; consumed != completions.indices->produced.load(); ++consumed) {
      const Cqe& cqe = completions.slots[consumed & (completions.count - 1)];
      out.push_back({cqe.status, cqe.user_ctx});
      last = cqe;
    }
    completions.indices->consumed.store(consumed);
    return out;
  }
  static Record flush(uint64_t user_ctx) { return {CrStatus::kWrFlush, user_ctx}; }
  static constexpr Record kDone{CrStatus::kWrFlushDone, 0};

  Ring<Cqe> completions{64};
  Ring<Wqe> sends{16};
  Ring<Rqe> receives{16};
  RingProducer<Wqe> producer;
  Cqe last{};
  std::vector<Event> events;
  Orphans orphans{[this](const NicEvent& event) { events.push_back(std::get<Event>(event)); }};
};

TEST_F(OrphansTest, nothing_happens_while_the_daemon_lives) {
  make();
  post(1);
  orphans.posted(kSends);
  orphans.serve();
  orphans.attend(kJfc);
  EXPECT_TRUE(poll().empty());
}

TEST_F(OrphansTest, requests_and_receives_are_flushed_in_order) {
  make();
  make_jfr();
  post(1);
  post(2, 3);
  post_receive(11);
  post_receive(12);
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{flush(1), flush(2), kDone, flush(11), flush(12)}));
  EXPECT_EQ(last.flags, kCqeReceive);
  EXPECT_EQ(last.local_id, kReceives);
  EXPECT_EQ(last.user_data, kReceiveData);
  EXPECT_EQ(sends.indices->retired.load(), 2u);
  EXPECT_EQ(sends.indices->consumed.load(), sends.indices->produced.load());
  EXPECT_EQ(receives.indices->retired.load(), 2u);
  EXPECT_EQ(receives.indices->consumed.load(), 2u);
  orphans.adopt();
  orphans.serve();
  EXPECT_TRUE(poll().empty());
}

TEST_F(OrphansTest, what_comes_later_is_flushed_too) {
  make();
  make_jfr();
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{kDone}));
  post(1);
  orphans.posted(kSends);
  EXPECT_EQ(poll(), (std::vector<Record>{flush(1)}));
  EXPECT_EQ(last.length, 10u);
  EXPECT_EQ(last.flags, kCqeJetty);
  post_receive(11);
  orphans.serve();
  EXPECT_EQ(poll(), (std::vector<Record>{flush(11)}));
}

TEST_F(OrphansTest, fillers_are_skipped_and_rings_wrap) {
  make(64, 0, ObjectKind::kJfs);
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{kDone}));
  EXPECT_EQ(last.flags, 0);
  for (uint64_t i = 1; i < 100; ++i) {
    post(i, 1 + i % 5);
    orphans.posted(kSends);
    ASSERT_EQ(poll(), (std::vector<Record>{flush(i)}));
  }
  EXPECT_EQ(sends.indices->retired.load(), 99u);
}

TEST_F(OrphansTest, a_full_jfc_goes_on_when_there_is_room) {
  make(2);
  make_jfr();
  for (uint64_t i = 1; i <= 5; ++i) post(i);
  post_receive(11);
  orphans.adopt();
  EXPECT_EQ(sends.indices->retired.load(), 2u);
  std::vector<Record> all, some;
  while (!(some = poll()).empty()) {
    EXPECT_LE(some.size(), 2u);
    all.insert(all.end(), some.begin(), some.end());
    orphans.attend(kJfc);
  }
  EXPECT_EQ(all, (std::vector<Record>{flush(1), flush(2), flush(3), flush(4), flush(5), kDone, flush(11)}));
}

TEST_F(OrphansTest, a_request_that_was_delivered_is_only_given_back) {
  make();
  post(1);
  post(2);
  post(3);
  complete(success(1, 1));
  give_back(1);
  complete(success(2, 2));  // and there it died
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{{CrStatus::kSuccess, 1}, {CrStatus::kSuccess, 2}, flush(3), kDone}));
  EXPECT_EQ(sends.indices->retired.load(), 3u);
}

TEST_F(OrphansTest, delivered_behind_a_filler_and_polled_already) {
  make();
  for (uint64_t i = 1; i <= 15; ++i) {
    post(i);
    complete(success(i, i));
    give_back(1);
  }
  post(16, 4);  // a filler of one slot comes first
  complete(success(16, 16));
  EXPECT_EQ(poll().size(), 16u);
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{kDone}));
  EXPECT_EQ(sends.indices->consumed.load(), sends.indices->produced.load());
}

TEST_F(OrphansTest, the_stamp_of_an_older_request_is_not_believed) {
  make();
  post(1);
  complete(success(1, 1));
  give_back(1);
  sends.indices->retired.store(256);  // 255 requests that completed nothing came between
  post(1);
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{{CrStatus::kSuccess, 1}, flush(1), kDone}));
}

TEST_F(OrphansTest, who_completed_before_older_ones_does_not_complete_again) {
  make();
  for (uint64_t i = 1; i <= 4; ++i) post(i);
  complete(success(3, 3));
  sends.slots[2].flags |= kWrReported;
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{{CrStatus::kSuccess, 3}, flush(1), flush(2), flush(4), kDone}));
  EXPECT_EQ(sends.indices->retired.load(), 4u);
}

TEST_F(OrphansTest, who_completed_before_older_ones_and_was_not_marked_does_not_complete_again) {
  make();
  sends.indices->retired.store(0xfffffffe);  // it wraps meanwhile
  for (uint64_t i = 1; i <= 4; ++i) post(7);
  complete(success(7, 1));  // the third of them
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{{CrStatus::kSuccess, 7}, flush(7), flush(7), flush(7), kDone}));
  EXPECT_EQ(sends.indices->consumed.load(), 4u);
}

TEST_F(OrphansTest, others_completions_are_none_of_this_queue) {
  make();
  post(1);
  Cqe cqe = success(1, 1);
  cqe.flags = kCqeReceive;  // a message that arrived at the same jetty
  complete(cqe);
  orphans.adopt();
  EXPECT_EQ(poll().size(), 3u);
}

TEST_F(OrphansTest, flush_done_comes_once_unless_the_queue_left_error) {
  make();
  Cqe done = success(0, 0);
  done.status = CrStatus::kWrFlushDone;
  complete(done);
  poll();
  post(1);
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{flush(1)}));
}

TEST_F(OrphansTest, flush_done_of_an_earlier_life_does_not_count) {
  make();
  Cqe done = success(0, 0);
  done.status = CrStatus::kWrFlushDone;
  complete(done);
  poll();
  orphans.left_error(kSends);
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{kDone}));
}

TEST_F(OrphansTest, broken_elements_end_the_queue) {
  make();
  make_jfr();
  post(1);
  post(2);
  sends.slots[1].slots = 200;
  post_receive(11);
  receives.slots[0].slots = 0;
  orphans.adopt();
  EXPECT_EQ(poll(), (std::vector<Record>{flush(1), kDone}));
  EXPECT_EQ(sends.indices->consumed.load(), sends.indices->produced.load());
  EXPECT_EQ(receives.indices->consumed.load(), receives.indices->produced.load());
}

TEST_F(OrphansTest, events_reach_whoever_waits) {
  make();
  completions.indices->armed.store(static_cast<uint32_t>(Armed::kSolicited));
  post(1);
  orphans.adopt();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kCompletion);
  EXPECT_EQ(events[0].object, kCookie);
  EXPECT_EQ(completions.indices->armed.load(), 0u);
  poll();
  completions.indices->armed.store(static_cast<uint32_t>(Armed::kAny));
  orphans.attend(kJfc);
  EXPECT_EQ(events.size(), 1u);
  post(2);
  orphans.posted(kSends);
  EXPECT_EQ(events.size(), 2u);
  completions.indices->armed.store(static_cast<uint32_t>(Armed::kAny));
  orphans.attend(kJfc);  // something unread
  EXPECT_EQ(events.size(), 3u);
}

TEST_F(OrphansTest, whoever_waits_for_nothing_is_woken_once) {
  make(64);
  orphans.remove_queue(kSends);
  completions.indices->armed.store(static_cast<uint32_t>(Armed::kAny));
  orphans.adopt();
  EXPECT_EQ(events.size(), 1u);
}

TEST_F(OrphansTest, an_event_that_died_with_the_daemon_is_told) {
  make();
  complete(success(1, 1));  // which took the arming
  poll();
  orphans.adopt();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].object, kCookie);
}

TEST_F(OrphansTest, lost_events_are_reported_for_unread_jfcs) {
  make();
  orphans.report_unread();
  EXPECT_TRUE(events.empty());
  complete(success(1, 1));
  orphans.report_unread();
  EXPECT_EQ(events.size(), 1u);
  completions.indices->armed.store(static_cast<uint32_t>(Armed::kAny));
  orphans.report_unread();
  EXPECT_EQ(events.size(), 1u);
}

TEST_F(OrphansTest, removed_objects_are_left_alone) {
  make();
  make_jfr();
  post(1);
  post_receive(11);
  orphans.remove_queue(kSends);
  orphans.remove_jfr(kReceives);
  orphans.adopt();
  EXPECT_TRUE(poll().empty());
  orphans.remove_jfc(kJfc);
  orphans.serve();
}

}  // namespace
}  // namespace ub::urma
