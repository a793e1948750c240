// SPDX-License-Identifier: Apache-2.0
//
// WRITE with byte enables at its target: which bytes are written, when it is refused, and how many of its copies are
// pending where memory answers later (UB Base Specification Rev 2.0, 7.4).
#include <functional>

#include "lib/base/prng.h"
#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::BeetahView;
using wire::TaOpcode;

using IsEnabled = std::function<bool(uint32_t)>;

// A packet with such enables; `enables` keeps their bytes.
wire::TaPacket with_enables(const Delivery& d, std::vector<std::byte>& enables, uint32_t length, uint64_t offset,
                            const IsEnabled& is_enabled) {
  wire::TaPacket p = d.on_memory(TaOpcode::kWriteByteEnable, length, offset);
  const uint32_t count = BeetahView::enables_of(length);
  enables.assign(count / 8, std::byte{0});
  for (uint32_t word = 0; word < count / 64; ++word) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 64; ++i) bits |= uint64_t{is_enabled(word * 64 + i)} << i;
    BeetahView::store_word(enables.data(), count, word, bits);
  }
  p.has_be = true;
  p.be = {enables.data(), count};
  return p;
}
void write(Delivery& d, uint32_t length, uint64_t offset, const IsEnabled& is_enabled) {
  std::vector<std::byte> enables;
  d.give(with_enables(d, enables, length, offset, is_enabled), length);
}

bool every_other(uint32_t i) { return i % 2 == 0; }
bool all(uint32_t) { return true; }

constexpr std::byte kUntouched{0xEE};
// Makes all memory of the target kUntouched.
void paint(Delivery& d) { std::memset(d.base, static_cast<int>(kUntouched), 256 * 1024); }
// The bytes around and between those that are enabled are as before.
bool holds_enabled(const Delivery& d, uint32_t length, uint64_t offset, const IsEnabled& is_enabled) {
  if (d.base[offset - 1] != kUntouched || d.base[offset + length] != kUntouched) return false;
  for (uint32_t i = 0; i < length; ++i) {
    const bool written = i >= BeetahView::kMaxEnables || is_enabled(i);
    if (d.base[offset + i] != (written ? d.bytes[i] : kUntouched)) return false;
  }
  return true;
}

// ---- which bytes -----------------------------------------------------------------------------------------------

TEST(ByteEnables, say_which_bytes_are_written_and_the_others_are_left) {
  Prng rng(7);
  const IsEnabled patterns[] = {
      all,
      [](uint32_t) { return false; },
      every_other,
      [](uint32_t i) { return i % 2 == 1; },
      [](uint32_t i) { return i == 0; },
      [](uint32_t i) { return i == 63; },
      [](uint32_t i) { return i >= 60 && i < 70; },
      [](uint32_t i) { return i % 64 >= 8; },
      [](uint32_t i) { return i / 64 % 2 == 1; },
      [seed = rng.next_u64()](uint32_t i) { return (seed * (i + 1) >> 40 & 3) == 0; },
  };
  for (const IsEnabled& pattern : patterns) {
    for (uint32_t length : {64u, 128u, 256u, 512u, 1024u}) {
      Delivery d;
      paint(d);
      write(d, length, 67, pattern);
      EXPECT_TRUE(holds_enabled(d, length, 67, pattern)) << (&pattern - patterns) << " of " << length;
      const std::vector<tp::TxMessage> a = d.answers();
      ASSERT_EQ(a.size(), 1u);
      EXPECT_EQ(a[0].opcode, TaOpcode::kTaack);
      EXPECT_EQ(a[0].rspst, wire::kRspOk);
    }
  }
}

TEST(ByteEnables, of_bytes_behind_them_say_nothing_and_those_are_written) {
  for (uint32_t length : {1025u, 1500u, 2048u, 4096u}) {
    for (bool last_enabled : {false, true}) {
      Delivery d;
      d.ch().mtu = 4096;
      paint(d);
      const IsEnabled pattern = [=](uint32_t i) { return i == 1023 ? last_enabled : i % 3 == 0; };
      write(d, length, 67, pattern);
      EXPECT_EQ(d.verdict(), kFine);
      EXPECT_TRUE(holds_enabled(d, length, 67, pattern)) << length;
    }
  }
}

TEST(ByteEnables, of_a_message_say_nothing_of_the_next_one) {
  Delivery d;
  for (uint32_t length : {1024u, 64u, 1024u}) {
    paint(d);
    write(d, length, 67, every_other);
    EXPECT_TRUE(holds_enabled(d, length, 67, every_other));
  }
}

TEST(ByteEnables, that_are_all_zero_write_nothing_and_succeed) {
  Slow d;
  paint(d);
  const IsEnabled none = [](uint32_t) { return false; };
  write(d, 128, 67, none);
  EXPECT_EQ(d.host.pending_copies(), 0u);
  EXPECT_EQ(d.verdict(), kFine);
}

// ---- what is refused -------------------------------------------------------------------------------------------

TEST(ByteEnables, do_not_narrow_what_the_peer_has_to_be_allowed_to_write) {
  const IsEnabled first = [](uint32_t i) { return i == 0; };
  const auto verdict = [&](uint64_t offset, void (*change)(wire::TaPacket&)) {
    Delivery d;
    paint(d);
    std::vector<std::byte> enables;
    wire::TaPacket p = with_enables(d, enables, 64, offset, first);
    change(p);
    d.give(p, 64);
    const std::pair<int, int> v = d.verdict();
    EXPECT_EQ(d.base[offset] == kUntouched, v != kFine);
    return v;
  };
  EXPECT_EQ(verdict(256 * 1024 - 64, [](wire::TaPacket&) {}), kFine);
  EXPECT_EQ(verdict(256 * 1024 - 63, [](wire::TaPacket&) {}), kAborted) << "a byte that is not enabled";
  EXPECT_EQ(verdict(0, [](wire::TaPacket& p) { ++p.token_value; }), kAborted);
  EXPECT_EQ(verdict(0, [](wire::TaPacket& p) { ++p.ma.token_id; }), kAborted);
  EXPECT_EQ(verdict(0, [](wire::TaPacket& p) { p.req.poison = true; }), kAborted);
}

TEST(ByteEnables, need_the_permission_to_write) {
  Delivery d;
  d.s->segments[d.target_memory.handle & 0xFFFFF].access = kAccessRead | kAccessAtomic;
  write(d, 64, 67, all);
  EXPECT_EQ(d.verdict(), kAborted);
}

TEST(ByteEnables, of_a_form_that_cannot_be_are_refused_as_unsupported) {
  std::vector<std::byte> enables;
  {
    Delivery d;
    wire::TaPacket p = with_enables(d, enables, 64, 67, all);
    d.give(p, 60);
    EXPECT_EQ(d.verdict(), kNotSupported) << "fewer bytes than enables";
    p.ma.length = 96;
    d.give(p, 96);
    EXPECT_EQ(d.verdict(), kNotSupported) << "no number of enables";
    d.give(with_enables(d, enables, kMtu + 4, 67, all), kMtu + 4);
    EXPECT_EQ(d.verdict(), kNotSupported) << "longer than a packet";
    EXPECT_EQ(d.base[67], std::byte{0});
  }
  {
    Delivery d;
    d.give(with_enables(d, enables, kMtu, 67, all), kMtu, false);
    d.give(with_enables(d, enables, kMtu, 67, all), kMtu);
    EXPECT_EQ(d.verdict(), kNotSupported) << "two packets";
    EXPECT_EQ(d.base[67], std::byte{0});
    d.give(d.on_memory(TaOpcode::kWrite, kMtu + 64, 4096), kMtu, false);
    d.give(with_enables(d, enables, 64, 67, all), 64);
    EXPECT_EQ(d.verdict(), kNotSupported) << "the end of another WRITE";
    EXPECT_EQ(d.base[67], std::byte{0});
  }
}

TEST(ByteEnables, into_memory_that_is_gone_fail_the_message_and_no_other) {
  Delivery d;
  d.host.gone = true;
  write(d, 1024, 67, every_other);
  EXPECT_EQ(d.verdict(), kAborted);
  d.host.gone = false;
  paint(d);
  write(d, 1024, 67, every_other);
  EXPECT_EQ(d.verdict(), kFine);
  EXPECT_TRUE(holds_enabled(d, 1024, 67, every_other));
}

// ---- memory that answers later ---------------------------------------------------------------------------------

// Alternating enables are 512 runs.
TEST(ByteEnables, of_many_runs_are_written_in_parts_of_64_copies) {
  Slow d;
  paint(d);
  write(d, 1024, 67, every_other);
  EXPECT_EQ(d.host.pending_copies(), 64u);
  size_t copies = 0;
  for (; d.host.pending_copies() != 0; ++copies) {
    EXPECT_LE(d.host.pending_copies(), 64u);
    EXPECT_TRUE(d.answers().empty());
    d.finish_copy();
  }
  EXPECT_EQ(copies, 512u);
  EXPECT_EQ(d.verdict(), kFine);
  EXPECT_TRUE(holds_enabled(d, 1024, 67, every_other));
  EXPECT_EQ(d.s->kept.in_use(), 0u);
  EXPECT_EQ(d.ch().parked, 0u);
}

TEST(ByteEnables, let_the_last_run_wait_for_the_others) {
  Slow d;
  paint(d);
  const IsEnabled three = [](uint32_t i) { return i < 8 || (i >= 16 && i < 24) || i >= 56; };
  write(d, 64, 67, three);
  EXPECT_EQ(d.host.pending_copies(), 2u);
  d.finish_copy(1);
  EXPECT_EQ(d.host.pending_copies(), 1u);
  d.finish_copy();
  EXPECT_EQ(d.base[67 + 56], kUntouched);
  EXPECT_EQ(d.host.pending_copies(), 1u) << "the final word becomes visible last";
  EXPECT_TRUE(d.answers().empty());
  d.finish_copy();
  EXPECT_EQ(d.verdict(), kFine);
  EXPECT_TRUE(holds_enabled(d, 64, 67, three));
}

TEST(ByteEnables, let_the_last_run_wait_for_a_single_other) {
  Slow d;
  paint(d);
  write(d, 64, 67, [](uint32_t i) { return i < 8 || i >= 56; });
  EXPECT_EQ(d.host.pending_copies(), 1u);
  d.finish_copy();
  EXPECT_EQ(d.base[67 + 56], kUntouched);
  EXPECT_EQ(d.host.pending_copies(), 1u);
  d.finish_copy();
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(ByteEnables, written_in_parts_without_a_record_hold_up_delivery_until_they_are_done) {
  Slow d;
  d.park_nothing();
  paint(d);
  write(d, 1024, 67, every_other);
  EXPECT_EQ(d.host.pending_copies(), 64u);
  d.give(d.on_memory(TaOpcode::kWrite, 8, 4096), 8);
  EXPECT_EQ(d.host.pending_copies(), 64u);
  d.finish_copies();
  EXPECT_EQ(d.answers().size(), 1u) << "one for both";
  EXPECT_TRUE(holds_enabled(d, 1024, 67, every_other));
  EXPECT_TRUE(d.holds(8, 4096));
  EXPECT_EQ(d.s->kept.in_use(), 0u);
}

TEST(ByteEnables, written_in_parts_behind_a_message_that_waits_are_answered_behind_it) {
  Slow d;
  paint(d);
  d.give(d.on_memory(TaOpcode::kWrite, 8, 4096), 8);
  write(d, 1024, 67, every_other);
  ASSERT_EQ(d.host.pending_copies(), 65u);
  while (d.host.pending_copies() > 1) d.finish_copy(1);
  EXPECT_TRUE(holds_enabled(d, 1024, 67, every_other));
  EXPECT_TRUE(d.answers().empty());
  d.finish_copy();
  EXPECT_EQ(d.answers().size(), 1u) << "one for both";
  EXPECT_EQ(d.s->kept.in_use(), 0u);
}

TEST(ByteEnables, whose_memory_is_unregistered_between_two_parts_write_no_more) {
  Slow d;
  paint(d);
  write(d, 1024, 67, every_other);
  ASSERT_EQ(unregister_segment(*d.s, d.target_memory.handle), Status::kOk);
  d.finish_copies();
  EXPECT_EQ(d.verdict(), kAborted);
  EXPECT_EQ(d.base[67 + 126], d.bytes[126]) << "the 64th run";
  EXPECT_EQ(d.base[67 + 128], kUntouched);
}

TEST(ByteEnables, fail_if_a_copy_of_any_part_fails) {
  for (uint32_t failing : {1u, 65u, 512u}) {
    Slow d;
    write(d, 1024, 67, every_other);
    for (uint32_t copy = 1; d.host.pending_copies() != 0; ++copy) {
      d.host.lost = copy == failing;
      d.finish_copy();
    }
    EXPECT_EQ(d.verdict(), kAborted) << failing;
    d.host.lost = false;
    write(d, 64, 67, all);
    d.finish_copies();
    EXPECT_EQ(d.verdict(), kFine) << "the next message begins anew";
  }
}

TEST(ByteEnables, that_a_hostile_peer_repeats_in_a_shorter_form_reach_nothing_outside) {
  Slow d;
  d.park_nothing();
  d.use_up_kept_places();
  paint(d);
  std::vector<std::byte> enables;
  for (uint32_t length : {1024u, 64u}) {
    d.give(0, with_enables(d, enables, length, 67, every_other), length, true, 0);
    d.finish_copies();
  }
  EXPECT_EQ(d.verdict(), kFine);
  EXPECT_EQ(d.base[67 + 126], d.bytes[126]) << "of the first form";
  EXPECT_EQ(d.base[67 + 128], kUntouched);
}

}  // namespace
}  // namespace ub::ta
