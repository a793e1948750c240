// SPDX-License-Identifier: Apache-2.0
//
// What a recorder writes of the rings of applications, and what it gives the Core of them.
#include "lib/record/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "lib/record/image.h"

namespace ub::record {
namespace {

constexpr uint32_t kSlots = 16, kId = 77;
constexpr std::byte kSecret{0xEE};

struct Posted {
  Entry entry;
  std::vector<std::byte> bytes;  // of the slots, as they are in the file
};

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    char name[] = "/tmp/softub-recorder-XXXXXX";
    directory = mkdtemp(name);
    ring.kind = RingKind::kSend;
    ring.id = kId;
    ring.slot_count = kSlots;
    ring.real_slots = reinterpret_cast<std::byte*>(slots);
    ring.real_indices = &indices;
    ring.real_work = work.data();
    ring.work_bytes = work.size();
  }
  ~RecorderTest() override { std::filesystem::remove_all(directory); }

  std::string path() const { return directory + "/a.rec"; }
  static RecorderOptions options_of(bool payload) {
    RecorderOptions options;
    options.payload = payload;
    return options;
  }
  void begin(bool payload = false) {
    std::string why;
    ASSERT_TRUE(recorder.begin_shadows());
    number = recorder.adopt(ring);
    ASSERT_NE(number, 0u);
    ASSERT_TRUE(recorder.begin(path(), options_of(payload), CoreConfig{}, {}, &why)) << why;
    recorder.end_image();
    read = recorder.file()->used();
  }
  // Another one can begin, with a ring that nobody has used.
  void end() {
    recorder.stop(Ended::kStopped);
    std::filesystem::remove(path());
    recorder.shadows().give_back(number);
    indices.produced = indices.consumed = 0;
    std::memset(like, 0, sizeof like);
  }
  std::vector<std::byte> contents() const {
    std::vector<std::byte> all(recorder.file()->used());
    std::ifstream(path(), std::ios::binary).read(reinterpret_cast<char*>(all.data()),
                                                 static_cast<std::streamsize>(all.size()));
    return all;
  }
  Ring& shadow() { return recorder.shadows()[number]; }

  Wqe element(WrOp op, uint32_t count, uint32_t bytes) {
    Wqe wqe{};
    wqe.op = op;
    wqe.flags = op == WrOp::kRead ? 0 : kWrInline;
    wqe.slots = static_cast<uint8_t>(count);
    wqe.user_ctx = ++posted % 100;  // has no secret byte
    wqe.length = bytes;
    return wqe;
  }
  // Puts an element with so many inline bytes, all of them secret, as are those that the slots had before; and what
  // fills the end of the ring before it.
  void post(WrOp op, uint32_t bytes) {
    const uint32_t count = wqe_slots(op, 0, bytes), at = indices.produced % kSlots;
    if (at + count > kSlots) {
      std::memset(static_cast<void*>(slots + at), static_cast<int>(kSecret), (kSlots - at) * kSlotBytes);
      slots[at].op = WrOp::kSkip;
      slots[at].flags = slots[at].sge_count = 0;
      slots[at].slots = static_cast<uint8_t>(kSlots - at);
      indices.produced += kSlots - at;
    }
    Wqe* wqe = &slots[indices.produced % kSlots];
    std::memset(static_cast<void*>(wqe), static_cast<int>(kSecret), count * kSlotBytes);
    *wqe = element(op, count, bytes);
    if (has_extra(op)) std::memset(static_cast<void*>(wqe + 1), 0x11, kSlotBytes);
    std::memset(const_cast<std::byte*>(inline_bytes(*wqe)), static_cast<int>(kSecret), bytes);
    indices.produced += count;
  }
  // Puts a READ with so many ranges.
  void post_ranges(uint8_t ranges) {
    const uint32_t count = wqe_slots(WrOp::kRead, ranges, 0);
    Wqe* wqe = slots;
    std::memset(static_cast<void*>(wqe), static_cast<int>(kSecret), count * kSlotBytes);
    *wqe = element(WrOp::kRead, count, 100u * ranges);
    wqe->sge_count = ranges;
    for (uint32_t i = 0; i < ranges; ++i) const_cast<Sge&>(sge_of(*wqe, i)) = {0x1000, 100, i};
    indices.produced += count;
  }
  // The Core is done with all that it has.
  void retire() {
    shadow().indices->consumed = shadow().produced;
    recorder.shadows().tell();
  }

  // A turn, and what it has written of the ring.
  std::optional<Posted> turn() {
    recorder.begin_turn();
    const std::vector<std::byte> all = contents();
    const size_t from = std::exchange(read, all.size());
    recorder.end_turn();
    read = recorder.file()->used();
    if (from == all.size()) return std::nullopt;
    Input input(all.data() + from, all.data() + all.size());
    Posted result{static_cast<Entry>(input.byte()), {}};
    EXPECT_EQ(input.varint(), number);
    uint64_t count = input.varint();
    if (result.entry != Entry::kPosted) return result;
    for (; count != 0; --count) {
      input.difference(like, kSlotBytes);
      result.bytes.insert(result.bytes.end(), like, like + kSlotBytes);
    }
    EXPECT_TRUE(input.good() && input.empty());
    return result;
  }

  // A turn writes all that was posted from slot `from` on, but for what is secret, which the Core alone gets.
  void expect_kept(uint32_t from) {
    const auto written = turn();
    ASSERT_TRUE(written && written->entry == Entry::kPosted);
    ASSERT_EQ(written->bytes.size(), size_t{indices.produced - from} * kSlotBytes);
    for (size_t i = 0; i < written->bytes.size(); ++i) {
      const size_t at = (from * kSlotBytes + i) % sizeof slots;
      const std::byte real = ring.real_slots[at];
      ASSERT_EQ(written->bytes[i], real == kSecret ? std::byte{0} : real) << "byte " << i;
      ASSERT_EQ(shadow().slots[at], real) << "byte " << i;
    }
  }

  std::string directory;
  Recorder recorder;
  Wqe slots[kSlots] = {};
  QueueIndices indices{};
  std::vector<std::byte> work{4 * 64, std::byte{0x22}};
  Ring ring;
  uint32_t number = 0;
  uint64_t posted = 0;
  size_t read = 0;
  std::byte like[kSlotBytes] = {};
};

// Calls fn() for inline elements of all operations that may be so, and of all lengths, wherever they lie in the ring.
template <class Fn>
void for_every_inline(Fn fn) {
  for (const WrOp op : {WrOp::kWrite, WrOp::kWriteImm, WrOp::kWriteNotify, WrOp::kSend, WrOp::kSendImm})
    for (uint32_t bytes = 1; bytes <= 3 * kSlotBytes; ++bytes) fn(op, bytes);
}

TEST_F(RecorderTest, InlinePayloadIsLeftOutAndNothingElse) {
  begin();
  for_every_inline([&](WrOp op, uint32_t bytes) {
    const uint32_t from = indices.produced;
    post(op, bytes);
    post(WrOp::kNop, 0);
    expect_kept(from);
    retire();
  });
}

TEST_F(RecorderTest, WhatSlotsHadBeforeIsLeftOutBehindRanges) {
  for (uint8_t ranges = 1; ranges <= 13; ++ranges) {
    begin();
    const uint32_t from = indices.produced;
    post_ranges(ranges);
    expect_kept(from);
    end();
  }
}

// Each file begins with an image.
TEST_F(RecorderTest, NoFileHasInlinePayloadOfWhatHasRetired) {
  for (const bool payload : {false, true}) {
    begin(payload);
    for (int i = 0; i < 20; ++i) {
      post(WrOp::kSend, 100);
      turn();
      retire();
    }
    recorder.stop(Ended::kNextFile);
    std::filesystem::remove(path());
    std::string why;
    ASSERT_TRUE(recorder.begin(path(), options_of(payload), CoreConfig{}, {}, &why)) << why;
    put_touched(recorder, recorder.shadows().used());
    recorder.end_image();
    const std::vector<std::byte> file = contents();
    const std::vector<std::byte> secret(16, kSecret);
    EXPECT_EQ(std::search(file.begin(), file.end(), secret.begin(), secret.end()) != file.end(), payload);
    end();
  }
}

TEST_F(RecorderTest, InlinePayloadIsThereIfItIsAskedFor) {
  begin(true);
  for_every_inline([&](WrOp op, uint32_t bytes) {
    const uint32_t from = indices.produced;
    post(op, bytes);
    const auto written = turn();
    ASSERT_TRUE(written && written->entry == Entry::kPosted);
    for (size_t i = 0; i < written->bytes.size(); ++i)
      ASSERT_EQ(written->bytes[i], ring.real_slots[(from * kSlotBytes + i) % sizeof slots]);
    retire();
  });
}

// Where elements begin is not known any more, so no byte can be taken for payload: a replay would differ.
TEST_F(RecorderTest, BehindAnImpossibleIndexOrElementAllIsWritten) {
  for (const bool by_index : {true, false}) {
    begin();
    if (by_index) {
      indices.produced += kSlots + 3;
      const auto jumped = turn();
      ASSERT_TRUE(jumped && jumped->entry == Entry::kJumped);
    } else {
      slots[indices.produced % kSlots] = element(WrOp::kWrite, 200, 8);
      ++indices.produced;
      ASSERT_TRUE(turn());
    }
    const uint32_t from = indices.produced;
    post(WrOp::kSend, 100);
    const auto written = turn();
    ASSERT_TRUE(written && written->entry == Entry::kPosted);
    for (size_t i = 0; i < written->bytes.size(); ++i)
      ASSERT_EQ(written->bytes[i], ring.real_slots[(from * kSlotBytes + i) % sizeof slots]);
    end();
  }
}

// A Core that was at work gets a ring as it was, and whoever takes over the application's finds that as a Core left it.
TEST_F(RecorderTest, AnAdoptedRingIsAsItWas) {
  const auto set = [](std::atomic<uint32_t>& index, uint32_t value) { index = value; };
  set(indices.consumed, 3);
  set(indices.produced, 3);
  post(WrOp::kSend, 100);
  post(WrOp::kWrite, 5);
  set(indices.retired, 2);
  set(indices.retiring, 3);
  set(indices.armed, static_cast<uint32_t>(Armed::kAny));
  set(indices.armed_at, 9);
  begin();
  const Ring& made = shadow();
  for (const auto member : {&QueueIndices::produced, &QueueIndices::consumed, &QueueIndices::retired,
                            &QueueIndices::retiring, &QueueIndices::armed, &QueueIndices::armed_at})
    EXPECT_EQ((made.indices->*member).load(), (indices.*member).load());
  EXPECT_EQ(std::memcmp(made.slots + 3 * kSlotBytes, slots + 3, (indices.produced - 3) * kSlotBytes), 0);
  EXPECT_EQ(std::memcmp(made.work, work.data(), work.size()), 0);
  EXPECT_FALSE(turn()) << "nothing is new";
  EXPECT_TRUE(recorder.shadows().tell().is_empty());
  EXPECT_EQ(recorder.shadows().find(RingKind::kSend, kId), number);
  EXPECT_EQ(indices.retiring.load(), 3u);
}

TEST_F(RecorderTest, AnotherRateBeginsAnewWhereACoreAndAReplayHaveIt) {
  OwnerLimits limits;
  limits.pacer.bytes_per_second = 5;
  ring.real_limits = &limits;
  begin();
  shadow().limits->pacer.next = Instant{1000};
  EXPECT_FALSE(turn());
  EXPECT_EQ(shadow().limits->pacer.next.ns, 1000u);
  limits.pacer.bytes_per_second = 6;
  const auto written = turn();
  ASSERT_TRUE(written);
  EXPECT_EQ(written->entry, Entry::kRate);
  EXPECT_EQ(shadow().limits->pacer.bytes_per_second, 6u);
  EXPECT_EQ(shadow().limits->pacer.next.ns, 0u) << "as a replay does it";
}

// An arm differs from the one before by its place alone.
TEST_F(RecorderTest, AnArmFurtherOnIsWritten) {
  ring.kind = RingKind::kCompletion;
  ring.real_work = nullptr;
  ring.work_bytes = 0;
  indices.armed = static_cast<uint32_t>(Armed::kAny);
  begin();
  EXPECT_FALSE(turn());
  indices.armed_at = 4;
  const auto written = turn();
  ASSERT_TRUE(written);
  EXPECT_EQ(written->entry, Entry::kArmed);
  EXPECT_EQ(shadow().indices->armed_at.load(), 4u);
}

}  // namespace
}  // namespace ub::record
