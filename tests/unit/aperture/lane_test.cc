// SPDX-License-Identifier: Apache-2.0
//
// Lanes from both ends: what a program loads and stores, and what a NIC makes of programs that sleep, die or lie.
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <random>

#include "tests/unit/aperture/lane_pair.h"

namespace {
ub::aperture::LanePath* g_path;  // behind the handle that inline calls are made with
}

// What inline calls leave; the library's own find the path by the handle.
void softub_ring(softub_aperture_t*) { g_path->ring(); }
urma_cr_status_t softub_store_any(softub_aperture_t*, uint64_t at, const void* from, uint32_t bytes) {
  return g_path->store({at, from, bytes, nullptr});
}

namespace ub::aperture {
namespace {

using ipc::LaneLayout;
using Bytes = std::vector<std::byte>;

class Lane : public testing::Test {
 protected:
  ServingNic nic;
};

TEST_F(Lane, loads_of_every_length_and_place_are_right) {
  Program program(nic, nic.add(0, nic.memory.size()));
  for (uint32_t bytes : {1u, 2u, 7u, 8u, 63u, 64u, 65u, 127u, 128u, 200u, 4096u, 4097u, 8191u, 8192u}) {
    for (uint64_t at : {0u, 1u, 8u, 63u, 64u, 100u, 4095u, 65536u - 8192u}) {
      Bytes got(bytes, std::byte{0xA5});
      ASSERT_EQ(program.load(at, got.data(), bytes), URMA_CR_SUCCESS) << at << ' ' << bytes;
      ASSERT_EQ(std::memcmp(got.data(), nic.memory.data() + at, bytes), 0) << at << ' ' << bytes;
    }
  }
}

TEST_F(Lane, stores_of_every_length_and_place_write_their_bytes_alone) {
  Program program(nic, nic.add(0, nic.memory.size()));
  Bytes expected = nic.memory;
  std::mt19937 random(1);
  for (uint32_t bytes : {1u, 2u, 8u, 63u, 64u, 65u, 128u, 200u, 1000u, 4096u, 4097u, 8192u}) {
    for (uint64_t at : {0u, 1u, 8u, 63u, 64u, 100u, 4095u, 65536u - 8192u}) {
      Bytes data(bytes);
      for (std::byte& b : data) b = static_cast<std::byte>(random());
      ASSERT_EQ(program.store(at, data.data(), bytes), URMA_CR_SUCCESS);
      std::copy(data.begin(), data.end(), expected.begin() + static_cast<ptrdiff_t>(at));
      ASSERT_EQ(program.path->fence(), URMA_CR_SUCCESS);
      ASSERT_EQ(nic.memory, expected) << at << ' ' << bytes;
    }
  }
}

TEST_F(Lane, of_a_store_with_enables_only_those_bytes_are_written) {
  Program program(nic, nic.add(0, nic.memory.size()));
  Bytes expected = nic.memory;
  const Bytes data(4096, std::byte{0xEE});
  std::mt19937_64 random(2);
  for (uint64_t at : {0u, 4096u, 8192u + 20u}) {
    std::array<uint64_t, 64> enables;
    for (uint64_t& word : enables) word = random() & random();
    enables[3] = 0;
    enables[4] = ~uint64_t{0};
    ASSERT_EQ(program.store(at, data.data(), 4096, enables.data()), URMA_CR_SUCCESS);
    for (uint32_t i = 0; i < 4096; ++i) {
      if ((enables[i / 64] >> i % 64 & 1) != 0) expected[at + i] = std::byte{0xEE};
    }
  }
  ASSERT_EQ(program.path->fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(nic.memory, expected);
}

// The inline call, whose fast part finds the answer only if somebody else serves; the rest is out of line.
TEST_F(Lane, loads_stores_and_long_ones_mix_in_order) {
  Program program(nic, nic.add(0, 16384));
  Bytes expected(nic.memory.begin(), nic.memory.begin() + 16384);
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    const uint32_t bytes = random() % 4 == 0 ? 1 + random() % 8192 : 1 + random() % 64;
    const uint64_t at = random() % (16384 - bytes + 1);
    Bytes data(bytes);
    if (random() % 2 == 0) {
      for (std::byte& b : data) b = static_cast<std::byte>(random());
      ASSERT_EQ(program.store(at, data.data(), bytes), URMA_CR_SUCCESS);
      std::copy(data.begin(), data.end(), expected.begin() + static_cast<ptrdiff_t>(at));
    } else {
      ASSERT_EQ(program.load(at, data.data(), bytes), URMA_CR_SUCCESS);
      ASSERT_EQ(std::memcmp(data.data(), expected.data() + at, bytes), 0) << i;
    }
  }
  EXPECT_EQ(program.path->fence(), URMA_CR_SUCCESS);
}

// The same by the inline calls. Nobody serves while their fast part looks, so all the rest is reached, too.
TEST_F(Lane, inline_stores_write_their_bytes_alone) {
  Program program(nic, nic.add(10, 4000));
  g_path = program.path.get();
  Bytes expected = nic.memory;
  for (uint32_t bytes = 1; bytes <= 64; ++bytes) {
    for (uint32_t at = 0; at < 200; at += 7) {
      Bytes data(bytes, static_cast<std::byte>(bytes + at));
      if ((10 + at) % 64 + bytes > 64) continue;  // out of line
      ASSERT_EQ(softub_store(&program.pub, at, data.data(), bytes), URMA_CR_SUCCESS);
      std::copy(data.begin(), data.end(), expected.begin() + 10 + at);
      ASSERT_EQ(program.path->fence(), URMA_CR_SUCCESS);
      ASSERT_EQ(nic.memory, expected) << at << ' ' << bytes;
    }
  }
}

TEST_F(Lane, whole_lines_at_once_and_stores_before_them) {
  Program program(nic, nic.add(0, nic.memory.size()));
  std::vector<uint64_t> at;
  for (uint64_t line = 0; line < 300; ++line) at.push_back(line * 7 % 1024 * 64);
  const uint64_t word = 0x1234567890abcdef;
  for (const uint64_t place : at) ASSERT_EQ(program.store(place + 8, &word, 8), URMA_CR_SUCCESS);
  Bytes got(300 * 64);
  ASSERT_EQ(program.path->load_lines(at, got.data()), URMA_CR_SUCCESS);
  for (size_t i = 0; i < at.size(); ++i) {
    ASSERT_EQ(std::memcmp(got.data() + i * 64, nic.memory.data() + at[i], 64), 0) << i;
    ASSERT_EQ(std::memcmp(got.data() + i * 64 + 8, &word, 8), 0) << i;
  }
  const uint64_t beyond[] = {0, nic.memory.size()};
  EXPECT_EQ(program.path->load_lines(beyond, got.data()), URMA_CR_REM_ACCESS_ABORT_ERR);
}

sigjmp_buf g_after_fault;

// The answers to loads that were left are not those to the stores behind them.
TEST_F(Lane, a_fence_behind_a_load_that_was_left_waits_for_the_stores) {
  Program program(nic, nic.add(0, nic.memory.size()));
  struct sigaction ours{}, before{};
  ours.sa_handler = [](int) { siglongjmp(g_after_fault, 1); };
  sigaction(SIGSEGV, &ours, &before);
  void* nowhere = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(nowhere, MAP_FAILED);
  const uint64_t places[] = {0, 64, 128, 192, 256, 320};
  if (sigsetjmp(g_after_fault, 1) == 0) {
    program.path->load_lines(places, static_cast<std::byte*>(nowhere));
    ADD_FAILURE() << "no fault";
  }
  sigaction(SIGSEGV, &before, nullptr);
  munmap(nowhere, 4096);
  const uint64_t word = 0x5151;
  g_path = program.path.get();
  ASSERT_EQ(softub_store(&program.pub, 512, &word, 8), URMA_CR_SUCCESS);  // inline: it knows of no load
  EXPECT_EQ(program.path->fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(program.pub.unanswered, 0u);
  EXPECT_EQ(program.pub.lane.next, program.pub.lane.answered);
  EXPECT_EQ(std::memcmp(nic.memory.data() + 512, &word, 8), 0);
}

// The NIC looks at one ring after the other, so a load in the large one could overtake a store in the small one.
TEST_F(Lane, a_load_across_lines_waits_for_the_stores_before_it) {
  ipc::OpenedLane lane = nic.connect();
  ipc::Mapping seen;
  std::string error;
  ASSERT_TRUE(seen.map(lane.memory.get(), LaneLayout::kBytes, &error)) << error;
  const auto* asked = reinterpret_cast<const uint64_t*>(seen.data() + LaneLayout::kLargeRequests);
  softub_aperture_t pub{};
  bool overtakes = false;
  LanePath::Options options;
  options.drive = [&] {
    overtakes |= pub.unanswered != 0 && *asked != 0;
    nic.drive();
  };
  const auto path = LanePath::make(std::move(lane), nic.add(0, 4096), std::move(options), &pub, &error);
  ASSERT_NE(path, nullptr) << error;
  const uint64_t word = 0x1122334455667788;
  uint64_t got = 0;
  ASSERT_EQ(path->store({60, &word, 4, nullptr}), URMA_CR_SUCCESS);
  const LoadBlock block{60, &got, 8};
  ASSERT_EQ(path->load({&block, 1}), URMA_CR_SUCCESS);
  EXPECT_FALSE(overtakes);
  EXPECT_EQ(std::memcmp(&got, &word, 4), 0);
}

TEST_F(Lane, of_a_refused_lane_nothing_is_left_for_the_next_one) {
  { const ipc::OpenedLane refused = nic.connect(); }  // its program hangs up
  nic.port.poll_control(nic.now);
  nic.port.adopt_pending(nic.now, [](const LinkConfig&) { return 0u; });
  const ipc::OpenedLane next = nic.connect();
  nic.port.poll_control(nic.now);
  nic.port.adopt_pending(nic.now, [](const LinkConfig&) { return 7u; });
  std::vector<uint32_t> dead;
  nic.port.take_dead_lanes(&dead);
  EXPECT_TRUE(dead.empty());
}

// Else the answer would come later, and be taken for that of another load.
TEST_F(Lane, a_thread_is_cancelled_behind_its_call) {
  Program program(nic, nic.add(0, nic.memory.size()));
  nic.serves = false;
  struct Loading {
    Program& program;
    std::atomic<bool> ended{false};
  } loading{program};
  pthread_t thread;
  const auto load = [](void* what) -> void* {
    auto& own = *static_cast<Loading*>(what);
    uint64_t word;
    own.program.load(512, &word, 8);
    own.ended = true;
    pthread_testcancel();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, load, &loading), 0);
  usleep(2000);
  pthread_cancel(thread);
  usleep(2000);  // it looks at its socket each 50 us
  nic.serves = true;
  void* result;
  pthread_join(thread, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(loading.ended);
  for (uint64_t at = 0; at < 1024; at += 8) {
    uint64_t word = 0;
    ASSERT_EQ(program.load(at, &word, 8), URMA_CR_SUCCESS);
    EXPECT_EQ(std::memcmp(&word, nic.memory.data() + at, 8), 0) << at;
  }
}

TEST_F(Lane, many_blocks_at_once_come_each_to_its_place) {
  Program program(nic, nic.add(0, nic.memory.size()));
  std::mt19937 random(4);
  std::vector<Bytes> got;
  std::vector<LoadBlock> blocks;
  for (int i = 0; i < 300; ++i) {
    const uint32_t bytes = i % 7 == 0 ? 5000 : 1 + random() % 200;
    got.emplace_back(bytes);
    blocks.push_back({random() % (nic.memory.size() - bytes), got.back().data(), bytes});
  }
  ASSERT_EQ(program.path->load(blocks), URMA_CR_SUCCESS);
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(std::memcmp(got[i].data(), nic.memory.data() + blocks[i].at, blocks[i].bytes), 0) << i;
  }
}

TEST_F(Lane, numbers_wrap) {
  Program program(nic, nic.add(0, 4096));
  uint64_t got = 0;
  for (uint64_t i = 0; i < 70'000; ++i) {
    ASSERT_EQ(program.store(i % 512 * 8, &i, sizeof i), URMA_CR_SUCCESS);
    if (i % 100 != 0) continue;
    ASSERT_EQ(program.load(i % 512 * 8, &got, sizeof got), URMA_CR_SUCCESS);
    ASSERT_EQ(got, i);
  }
  EXPECT_EQ(program.path->fence(), URMA_CR_SUCCESS);
}

TEST_F(Lane, a_segment_that_begins_and_ends_within_lines_is_used_to_its_last_byte) {
  Program program(nic, nic.add(74, 1001));
  Bytes got(1001);
  ASSERT_EQ(program.load(0, got.data(), 1001), URMA_CR_SUCCESS);
  EXPECT_EQ(std::memcmp(got.data(), nic.memory.data() + 74, 1001), 0);
  Bytes expected = nic.memory;
  std::fill(got.begin(), got.end(), std::byte{0xEE});
  ASSERT_EQ(program.store(0, got.data(), 1001), URMA_CR_SUCCESS);
  ASSERT_EQ(program.path->fence(), URMA_CR_SUCCESS);
  std::fill(expected.begin() + 74, expected.begin() + 74 + 1001, std::byte{0xEE});
  EXPECT_EQ(nic.memory, expected);
  EXPECT_EQ(program.load(1000, got.data(), 2), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(program.load(1001, got.data(), 1), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(program.load(~uint64_t{0}, got.data(), 1), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(program.load(0, got.data(), 0), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(program.load(0, got.data(), 8193), URMA_CR_LOC_LEN_ERR);
}

TEST_F(Lane, a_store_that_is_refused_is_told_by_the_fence_once) {
  Program program(nic, nic.add(0, 4096, kAccessRead));
  uint64_t word = 1;
  EXPECT_EQ(program.store(0, &word, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(program.load(0, &word, 8), URMA_CR_SUCCESS) << "a load is none of its business";
  EXPECT_EQ(program.path->fence(), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(program.path->fence(), URMA_CR_SUCCESS);
  const Bytes lines(4096);
  EXPECT_EQ(program.store(0, lines.data(), 4096), URMA_CR_SUCCESS);
  EXPECT_EQ(program.path->fence(), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(nic.memory[0], std::byte{0});
}

TEST_F(Lane, a_segment_that_goes_is_refused_and_the_lane_stays) {
  Program program(nic, nic.add(0, 4096));
  uint64_t word = 0;
  nic.unregister();
  Bytes page(4096);
  EXPECT_EQ(program.load(0, &word, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(program.load(0, page.data(), 4096), URMA_CR_REM_ACCESS_ABORT_ERR);
  nic.add(0, 4096);
  EXPECT_EQ(program.load(0, &word, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(program.load(0, page.data(), 4096), URMA_CR_SUCCESS);
}

TEST_F(Lane, a_nic_that_does_not_answer_breaks_the_handle_after_the_timeout) {
  Program program(nic, nic.add(0, 4096), milliseconds(5));
  nic.serves = false;
  uint64_t word = 0;
  EXPECT_EQ(program.store(0, &word, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(program.load(0, &word, 8), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(program.pub.path, static_cast<uint32_t>(SOFTUB_PATH_BROKEN));
  EXPECT_EQ(program.load(0, &word, 8), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(program.store(0, &word, 8), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(program.path->fence(), URMA_CR_ACK_TIMEOUT_ERR);
  nic.serves = true;
  nic.drive();
  EXPECT_EQ(nic.port.lane_count(), 0u) << "the NIC saw the hang-up";
}

TEST_F(Lane, a_nic_that_goes_breaks_the_handle_at_once) {
  Program program(nic, nic.add(0, 4096), seconds(3600));
  uint64_t word = 0;
  ASSERT_EQ(program.load(0, &word, 8), URMA_CR_SUCCESS);
  nic.port.close();
  nic.serves = false;
  EXPECT_EQ(program.load(0, &word, 8), URMA_CR_ACK_TIMEOUT_ERR);
}

TEST_F(Lane, a_program_that_goes_takes_its_lane_along_and_the_next_one_gets_the_place) {
  const RemoteSegment segment = nic.add(0, 4096);
  auto first = std::make_unique<Program>(nic, segment);
  Program second(nic, segment);
  uint64_t word = 0;
  ASSERT_EQ(first->load(0, &word, 8), URMA_CR_SUCCESS);
  ASSERT_EQ(second.load(0, &word, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(nic.port.lane_count(), 2u);
  first.reset();
  nic.drive();
  EXPECT_EQ(nic.port.lane_count(), 1u);
  EXPECT_EQ(nic.links_down, 1u);
  Program third(nic, segment);
  ASSERT_EQ(third.load(0, &word, 8), URMA_CR_SUCCESS);
  ASSERT_EQ(second.load(0, &word, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(nic.port.lane_count(), 2u);
}

TEST_F(Lane, a_nic_that_sleeps_is_rung_once) {
  Program program(nic, nic.add(0, 4096));
  uint64_t word = 0;
  ASSERT_EQ(program.load(0, &word, 8), URMA_CR_SUCCESS);
  ASSERT_FALSE(nic.port.prepare_sleep());
  pollfd bell{nic.port.control_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&bell, 1, 0), 0);
  ASSERT_EQ(program.store(0, &word, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(::poll(&bell, 1, 0), 1);
  nic.port.poll_control(nic.now);
  ASSERT_EQ(program.store(0, &word, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(::poll(&bell, 1, 0), 0) << "it has been woken";
  nic.port.finish_sleep();
  EXPECT_EQ(program.path->fence(), URMA_CR_SUCCESS);
}

TEST_F(Lane, who_would_sleep_on_a_request_does_not) {
  Program program(nic, nic.add(0, 4096));
  uint64_t word = 0;
  ASSERT_EQ(program.load(0, &word, 8), URMA_CR_SUCCESS);
  ASSERT_EQ(program.store(0, &word, 8), URMA_CR_SUCCESS);
  EXPECT_TRUE(nic.port.prepare_sleep());
  nic.drive();
  EXPECT_FALSE(nic.port.prepare_sleep());
}

TEST_F(Lane, another_version_is_refused_with_a_sentence) {
  const ipc::OpenedLane lane = nic.connect(7);
  EXPECT_FALSE(lane.memory);
  EXPECT_EQ(nic.reply.refused, 1u);
  EXPECT_NE(std::string(nic.reply.text).find("version 7"), std::string::npos);
  EXPECT_EQ(nic.port.counters().refused, 1u);
}

TEST_F(Lane, what_happens_is_counted) {
  uint64_t word = 0;
  {
    Program program(nic, nic.add(0, 4096));
    ASSERT_EQ(program.load(0, &word, 8), URMA_CR_SUCCESS);
    ASSERT_FALSE(nic.port.prepare_sleep());
    const uint64_t before = nic.port.counters().doorbells;
    ASSERT_EQ(program.store(0, &word, 8), URMA_CR_SUCCESS);
    nic.port.finish_sleep();
    EXPECT_EQ(program.path->fence(), URMA_CR_SUCCESS);
    EXPECT_EQ(nic.port.counters().doorbells, before + 1);
    EXPECT_EQ(nic.port.counters().opened, 1u);
    EXPECT_EQ(nic.port.counters().closed, 0u);
  }
  nic.drive();
  const LanePortCounters counters = nic.port.counters();
  EXPECT_EQ(counters.requests, nic.served);
  EXPECT_EQ(counters.answers, nic.served);
  EXPECT_EQ(counters.closed, 1u);
  EXPECT_EQ(counters.refused + counters.broken_word + counters.broken_request, 0u);
}

// ---- programs that lie -----------------------------------------------------------------------------------------

class Lying : public Lane {
 protected:
  Lying() {
    segment = nic.add(0, 4096);
    lane = nic.connect();
    std::string error;
    EXPECT_TRUE(memory.map(lane.memory.get(), LaneLayout::kBytes, &error)) << error;
    nic.drive();
    EXPECT_EQ(nic.port.lane_count(), 1u);
  }
  void write_word(size_t at, uint64_t word) {
    std::memcpy(memory.data() + at, &word, sizeof word);
    for (int i = 0; i < 3; ++i) nic.drive();
  }
  void expect_dropped(uint64_t LanePortCounters::* cause) {
    EXPECT_EQ(nic.port.lane_count(), 0u);
    const LanePortCounters counters = nic.port.counters();
    EXPECT_EQ(counters.*cause, 1u);
    EXPECT_EQ(counters.broken_word + counters.broken_request, 1u);
    EXPECT_EQ(counters.closed, 1u);
    // Others are served as before.
    Program other(nic, segment);
    uint64_t word;
    EXPECT_EQ(other.load(0, &word, 8), URMA_CR_SUCCESS);
  }

  RemoteSegment segment;
  ipc::OpenedLane lane;
  ipc::Mapping memory;
};

TEST_F(Lying, headers_longer_than_their_line_end_the_lane) {
  write_word(LaneLayout::kSmallRequests, LaneLayout::word(0, 60, 57));
  expect_dropped(&LanePortCounters::broken_word);
}
TEST_F(Lying, a_frame_shorter_than_its_headers_ends_the_lane) {
  write_word(LaneLayout::kSmallRequests, LaneLayout::word(0, 45, 46));
  expect_dropped(&LanePortCounters::broken_word);
}
TEST_F(Lying, payload_longer_than_its_slot_ends_the_lane) {
  write_word(LaneLayout::kSmallRequests, LaneLayout::word(0, 46 + 65, 46));
  expect_dropped(&LanePortCounters::broken_word);
}
TEST_F(Lying, payload_longer_than_a_large_slot_ends_the_lane) {
  write_word(LaneLayout::kLargeRequests, LaneLayout::word(0, 46 + 8193, 46));
  expect_dropped(&LanePortCounters::broken_word);
}
TEST_F(Lying, more_bits_in_a_word_end_the_lane) {
  write_word(LaneLayout::kSmallRequests, LaneLayout::word(0, 46, 46) | uint64_t{1} << 63);
  expect_dropped(&LanePortCounters::broken_word);
}
TEST_F(Lying, a_frame_that_cannot_be_read_ends_the_lane) {
  write_word(LaneLayout::kSmallRequests, LaneLayout::word(0, 46, 46));
  expect_dropped(&LanePortCounters::broken_request);
}
TEST_F(Lying, a_number_that_is_not_the_next_one_is_not_there) {
  write_word(LaneLayout::kSmallRequests, LaneLayout::word(1, 46, 46));
  EXPECT_EQ(nic.port.lane_count(), 1u);
  EXPECT_EQ(nic.served, 0u);
}
TEST_F(Lying, a_hint_which_has_no_answer_ends_the_lane) {
  wire::BypassPacket p;
  p.opcode = wire::TaOpcode::kPrefetch;
  p.ma = {kBase, 0, false, 0, nic.token_id};
  const size_t bytes = wire::bypass_header_size(p);
  wire::write_bypass_headers(p, memory.data() + LaneLayout::kSmallRequests + LaneLayout::kLine - bytes);
  write_word(LaneLayout::kSmallRequests, LaneLayout::word(0, bytes, bytes));
  expect_dropped(&LanePortCounters::broken_request);
}

}  // namespace
}  // namespace ub::aperture
