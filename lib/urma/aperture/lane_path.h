// SPDX-License-Identifier: Apache-2.0
//
// A lane as a path (lib/ipc/lane.h): the program's end, out of line. softub_aperture.h has the fast part of a load
// inline, on the same state.
//
// Requests of up to a line go through the small ring, longer ones through the large ring. The NIC looks at one ring
// after the other, so a request may not enter a ring while a store in the other one is unanswered. Nothing is sent
// twice: a lane loses nothing, and whoever does not answer in time ends the lane.
//
// Thread: one at a time. Signal handlers: safe, if `drive` is empty.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "lib/base/time.h"
#include "lib/ipc/lane_connect.h"
#include "lib/ipc/memfd.h"
#include "lib/urma/aperture/piece.h"
#include "lib/urma/aperture/remote_path.h"
#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"

namespace ub::aperture {

class LanePath final : public RemotePath {
 public:
  struct Options {
    Duration timeout = seconds(4);
    std::function<void()> drive;  // moves our own NIC forward while we wait: it may serve the other end; empty: nobody
  };

  // `pub` is the part that inline calls use; it outlives the path. Null and `*error`: the memory cannot be mapped.
  static std::unique_ptr<LanePath> make(ipc::OpenedLane lane, const RemoteSegment& segment, Options options,
                                        softub_aperture_t* pub, std::string* error);
  ~LanePath() override;

  urma_cr_status_t load(std::span<const LoadBlock>) override;
  urma_cr_status_t store(const StoreBlock&) override;
  urma_cr_status_t fence() override;
  urma_cr_status_t settle() override {
    return forget_abandoned() && take_answers() ? URMA_CR_SUCCESS : URMA_CR_ACK_TIMEOUT_ERR;
  }
  bool carries_atomics() const override { return false; }
  urma_cr_status_t atomic(const RemoteAtomic&, uint64_t* old) override;
  bool ask(EarlyLoad*) override;
  void finish(EarlyLoad*) override;
  bool is_signal_safe() const override { return !options_.drive; }
  bool is_broken() const override { return broken_; }

  // The same as load(), for whole lines at places that are multiples of a line in the remote address space.
  urma_cr_status_t load_lines(std::span<const uint64_t> at, std::byte* to);

  // Wakes the NIC, if it says that it sleeps.
  void ring();

  // The answer to a load of one line that the inline call has sent and not found yet.
  urma_cr_status_t finish_load(uint64_t at, void* to, uint32_t bytes);

 private:
  using Layout = ipc::LaneLayout;

  LanePath(const RemoteSegment& segment, Options options, softub_aperture_t* pub)
      : segment_(segment), options_(std::move(options)), pub_(*pub), lane_(pub->lane) {}
  void set_up(const ipc::OpenedLane&);
  urma_cr_status_t check(uint64_t at, uint32_t bytes) const;

  // Small ring.
  bool has_room() const { return lane_.next - lane_.answered < SOFTUB_LANE_SLOTS; }
  void send_load(uint64_t address);
  urma_cr_status_t store_line(uint64_t address, const std::byte* from, uint64_t enables);
  urma_cr_status_t store_lines(const Piece&, const std::byte* from);
  bool take_answer();
  bool take_answers();
  bool make_room();
  bool forget_abandoned();
  void take_early(EarlyLoad&, const std::byte* line, uint64_t word);
  const std::byte* small_answer(uint32_t number) const {
    return memory_.data() + Layout::kSmallReplies + number % Layout::kSmallSlots * Layout::kSmallSlot;
  }
  // The caller waits for a load in the small ring.
  void expect_load() {
    ++pub_.unanswered;
    ++loads_;
  }
  void took_load() {
    ++lane_.answered;
    --pub_.unanswered;
    --loads_;
  }
  urma_cr_status_t take_load_answer(const Piece&, std::byte* to);

  // Large ring.
  void send_large(bool is_store, const Piece&, const std::byte* from);
  const std::byte* large_answer(uint32_t number) const {
    return memory_.data() + Layout::kLargeReplies + number % Layout::kLargeSlots * Layout::kLargeSlot;
  }
  urma_cr_status_t take_large_answer(const Piece&, std::byte* to);

  // Waits for the answer in this line, whose word is returned; 0: the lane is broken.
  uint64_t wait_for(const std::byte* line, uint32_t number);
  uint64_t wait_slowly(const std::byte* line, uint32_t number);
  void ring_if_asleep();
  bool is_hung_up() const;
  void break_off();

  RemoteSegment segment_;
  Options options_;
  softub_aperture_t& pub_;
  softub_lane_t& lane_;
  ipc::Mapping memory_;
  ipc::Fd socket_;
  bool broken_ = false;
  std::array<EarlyLoad*, SOFTUB_LANE_SLOTS> early_{};  // by slot of the small ring; null: a store
  uint32_t loads_ = 0;                          // in the small ring, that their caller waits for
  uint32_t large_next_ = 0, large_answered_ = 0;
  softub_lane_head_t large_load_{}, large_store_{};
  urma_cr_status_t store_error_ = URMA_CR_SUCCESS;  // the first one since the last fence
};

}  // namespace ub::aperture
