// SPDX-License-Identifier: Apache-2.0
//
// The path over frames, above a handle that the test plays: which blocks it asks for, what it makes of answers, and
// what it does where there is no room, no answer, or no Core.
#include "lib/urma/aperture/frames_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <vector>

namespace ub::aperture {
namespace {

using bypass::Outcome;

constexpr uint64_t kBase = 0x7000'0010;  // not at a line
constexpr uint32_t kRecords = 64;

// A handle, whose calls are carried out when the test lets their answers come.
class Handle final : public bypass::Calls {
 public:
  explicit Handle(size_t bytes) : memory(bytes + 128) {
    std::iota(reinterpret_cast<uint8_t*>(memory.data()), reinterpret_cast<uint8_t*>(memory.data() + memory.size()), 7);
  }

  Status load(const bypass::Block& block, std::byte* to, uint32_t* ticket) override {
    return begin({.block = block, .to = to}, ticket);
  }
  Status store(const bypass::StoreRequest& request, uint32_t* ticket) override {
    Call call{.block = request.block, .is_store = true};
    call.bytes.assign(request.from, request.from + request.block.bytes());
    call.enables = request.enables != nullptr ? *request.enables : kAllBytes;
    return begin(call, ticket);
  }
  Outcome take(uint32_t ticket) override {
    const auto found = calls.find(ticket);
    EXPECT_NE(found, calls.end());
    const Outcome outcome = found->second.outcome;
    if (outcome != Outcome::kPending) calls.erase(found);
    return outcome;
  }

  // The answers to all that was asked.
  void answer(Outcome outcome) {
    for (auto& [ticket, call] : calls) {
      if (call.outcome != Outcome::kPending) continue;
      call.outcome = outcome;
      if (outcome == Outcome::kOk) carry_out(call);
    }
  }

  std::byte* at(uint64_t place) { return memory.data() + kBase % kLineBytes + place; }  // of the segment

  std::vector<std::byte> memory;  // from the line on in which the segment begins
  Status says = Status::kOk;      // to a call
  size_t most_pending = 0, loads = 0, stores = 0;

 private:
  struct Call {
    bypass::Block block;
    std::byte* to = nullptr;
    bool is_store = false;
    std::vector<std::byte> bytes{};
    uint64_t enables = kAllBytes;
    Outcome outcome = Outcome::kPending;
  };

  Status begin(const Call& call, uint32_t* ticket) {
    if (says != Status::kOk) return says;
    if (calls.size() == kRecords) return Status::kBusy;
    EXPECT_EQ(call.block.address % kLineBytes, 0u);
    *ticket = next_ticket_++;
    calls[*ticket] = call;
    most_pending = std::max(most_pending, calls.size());
    ++(call.is_store ? stores : loads);
    return Status::kOk;
  }
  void carry_out(const Call& call) {
    std::byte* there = memory.data() + (call.block.address - kBase / kLineBytes * kLineBytes);
    for (uint32_t i = 0; i < call.block.bytes(); ++i) {
      if (!call.is_store) {
        call.to[i] = there[i];
      } else if (i >= 64 || (call.enables >> i & 1) != 0) {
        there[i] = call.bytes[i];
      }
    }
  }

  std::map<uint32_t, Call> calls;
  uint32_t next_ticket_ = 0;
};

class Path : public testing::Test {
 protected:
  static constexpr uint32_t kBytes = 65536;

  Path() {
    FramesPath::Way way;
    way.most_bytes = 4096;
    way.run = [this](bypass::Turns& turns, Duration patience) {
      last_patience = patience;
      if (inside) return bypass::Ran::kInside;
      for (int i = 0; i < 100; ++i) {
        if (turns.turn(handle)) return bypass::Ran::kDone;
        if (between) between();
      }
      return bypass::Ran::kLate;
    };
    way.close = [this] { ++closed; };
    path = std::make_unique<FramesPath>(way, RemoteSegment{.base = kBase, .bytes = kBytes});
    between = [this] { handle.answer(Outcome::kOk); };
  }

  urma_cr_status_t load(uint64_t at, uint32_t bytes) {
    const LoadBlock block{at, to.data(), bytes};
    return path->load({&block, 1});
  }
  urma_cr_status_t store(uint64_t at, uint32_t bytes, const uint64_t* enables = nullptr) {
    return path->store({at, from.data(), bytes, enables});
  }

  Handle handle{kBytes};
  std::function<void()> between;
  std::vector<std::byte> to = std::vector<std::byte>(8192), from = std::vector<std::byte>(8192, std::byte{0xEE});
  bool inside = false;
  int closed = 0;
  Duration last_patience{};
  std::unique_ptr<FramesPath> path;
};

TEST_F(Path, loads_of_all_lengths_and_places_bring_their_bytes) {
  for (const uint32_t bytes : {1u, 8u, 63u, 64u, 65u, 4096u, 8191u, 8192u}) {
    for (const uint64_t at : {0ul, 1ul, 47ul, 48ul, 112ul, uint64_t{kBytes} - bytes}) {
      std::fill(to.begin(), to.end(), std::byte{0});
      ASSERT_EQ(load(at, bytes), URMA_CR_SUCCESS);
      ASSERT_EQ(std::memcmp(to.data(), handle.at(at), bytes), 0) << bytes << " at " << at;
      ASSERT_TRUE(bytes == to.size() || to[bytes] == std::byte{0});
    }
  }
}

TEST_F(Path, stores_of_all_lengths_and_places_change_their_bytes_alone) {
  std::vector<std::byte> model = handle.memory;
  for (const uint32_t bytes : {1u, 8u, 63u, 64u, 65u, 192u, 4096u, 8191u, 8192u}) {
    for (const uint64_t at : {0ul, 1ul, 47ul, 48ul, 112ul, uint64_t{kBytes} - bytes}) {
      std::fill(from.begin(), from.end(), static_cast<std::byte>(at + bytes));
      ASSERT_EQ(store(at, bytes), URMA_CR_SUCCESS);
      ASSERT_EQ(path->fence(), URMA_CR_SUCCESS);
      std::memcpy(model.data() + kBase % kLineBytes + at, from.data(), bytes);
      ASSERT_EQ(model, handle.memory) << bytes << " at " << at;
    }
  }
}

TEST_F(Path, byte_enables_are_kept) {
  std::vector<std::byte> model = handle.memory;
  const uint64_t enables[2] = {0x8000'0000'0000'0F01, 0x3};
  ASSERT_EQ(store(40, 128, enables), URMA_CR_SUCCESS);
  ASSERT_EQ(path->fence(), URMA_CR_SUCCESS);
  for (uint32_t i = 0; i < 128; ++i) {
    if ((enables[i / 64] >> i % 64 & 1) != 0) model[kBase % kLineBytes + 40 + i] = from[i];
  }
  EXPECT_EQ(model, handle.memory);
}

TEST_F(Path, loads_of_one_call_are_under_way_together) {
  std::vector<LoadBlock> blocks;
  for (uint32_t i = 0; i < 100; ++i) blocks.push_back({i * 128, to.data() + i * 64, 64});
  ASSERT_EQ(path->load(blocks), URMA_CR_SUCCESS);
  EXPECT_EQ(handle.most_pending, kRecords);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(std::memcmp(to.data() + i * 64, handle.at(i * 128), 64), 0) << i;
}

TEST_F(Path, a_store_waits_for_nobody_and_a_load_for_the_stores) {
  between = {};
  EXPECT_EQ(store(0, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(store(8, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(handle.stores, 2u);
  between = [this] {
    EXPECT_TRUE(handle.loads == 0 || handle.at(8)[0] == std::byte{0xEE});
    handle.answer(Outcome::kOk);
  };
  EXPECT_EQ(load(8, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(to[0], std::byte{0xEE});
}

TEST_F(Path, more_stores_than_there_are_records_wait_for_answers) {
  int waited = 0;
  between = [&] {
    ++waited;
    handle.answer(Outcome::kOk);
  };
  for (uint32_t i = 0; i < kRecords + 10; ++i) ASSERT_EQ(store(i * 64 + 48, 64), URMA_CR_SUCCESS);
  EXPECT_EQ(waited, 1);
  EXPECT_EQ(path->fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(handle.at(48 + 64 * (kRecords + 9))[63], std::byte{0xEE});
}

TEST_F(Path, calls_that_find_no_room_are_made_again) {
  for (const bool is_store : {false, true}) {
    handle.says = Status::kBusy;
    int waited = 0;
    between = [&] {
      if (++waited == 3) handle.says = Status::kOk;
      handle.answer(Outcome::kOk);
    };
    EXPECT_EQ(is_store ? store(0, 8) : load(0, 8), URMA_CR_SUCCESS);
    EXPECT_GE(waited, 3);
  }
}

TEST_F(Path, a_refusal_is_told_and_the_path_works_on) {
  between = [this] { handle.answer(Outcome::kRefused); };
  EXPECT_EQ(load(0, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(store(0, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(path->settle(), URMA_CR_SUCCESS);
  between = [this] { handle.answer(Outcome::kOk); };
  EXPECT_EQ(store(0, 8), URMA_CR_SUCCESS);
  EXPECT_EQ(path->fence(), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(path->fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(load(0, 8), URMA_CR_SUCCESS);
  EXPECT_FALSE(path->is_broken());
}

TEST_F(Path, what_is_unanswered_breaks_it) {
  EXPECT_EQ(store(0, 8), URMA_CR_SUCCESS);
  between = [this] { handle.answer(Outcome::kUnanswered); };
  EXPECT_EQ(path->fence(), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_TRUE(path->is_broken());
  const size_t before = handle.loads + handle.stores;
  EXPECT_EQ(load(0, 8), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(store(0, 8), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(path->fence(), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_EQ(handle.loads + handle.stores, before);
}

TEST_F(Path, a_handle_that_is_gone_breaks_it) {
  for (const bool is_store : {false, true}) {
    handle.says = Status::kGone;
    EXPECT_EQ(is_store ? store(0, 8) : load(0, 8), URMA_CR_ACK_TIMEOUT_ERR);
    EXPECT_TRUE(path->is_broken());
  }
}

// Nobody drives the Core, so it cannot give up by itself. Late bytes must find nothing.
TEST_F(Path, where_nothing_goes_on_it_closes_its_handle) {
  between = {};
  EXPECT_EQ(load(0, 8), URMA_CR_ACK_TIMEOUT_ERR);
  EXPECT_TRUE(path->is_broken());
  EXPECT_EQ(closed, 1);
  path.reset();
  EXPECT_EQ(closed, 1);
}

TEST_F(Path, a_signal_handler_inside_the_library_is_refused_and_nothing_is_lost) {
  EXPECT_EQ(store(0, 8), URMA_CR_SUCCESS);
  inside = true;
  EXPECT_EQ(load(0, 8), URMA_CR_LOC_OPERATION_ERR);
  EXPECT_EQ(store(0, 8), URMA_CR_LOC_OPERATION_ERR);
  EXPECT_EQ(path->fence(), URMA_CR_LOC_OPERATION_ERR);
  inside = false;
  EXPECT_FALSE(path->is_broken());
  EXPECT_EQ(path->fence(), URMA_CR_SUCCESS);
  EXPECT_EQ(handle.at(0)[0], std::byte{0xEE});
}

TEST_F(Path, to_try_it_out_takes_no_longer_than_is_wished) {
  EXPECT_EQ(path->try_out(milliseconds(3)), URMA_CR_SUCCESS);
  EXPECT_EQ(last_patience, milliseconds(3));
  EXPECT_EQ(load(0, 8), URMA_CR_SUCCESS);
  EXPECT_GT(last_patience, seconds(4));
}

TEST_F(Path, what_lies_beyond_the_segment_is_not_asked_for) {
  EXPECT_EQ(load(kBytes, 1), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(load(kBytes - 7, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(store(UINT64_MAX, 8), URMA_CR_REM_ACCESS_ABORT_ERR);
  EXPECT_EQ(load(0, 0), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(load(0, 8193), URMA_CR_LOC_LEN_ERR);
  EXPECT_EQ(handle.loads + handle.stores, 0u);
}

}  // namespace
}  // namespace ub::aperture
