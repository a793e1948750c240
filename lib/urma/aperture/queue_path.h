// SPDX-License-Identifier: Apache-2.0
//
// The path for all wires: READs, WRITEs and atomics of a JFS that belongs to the handle, in RM. The channel beneath
// knows about loss, order and death, so that each happens once, or the request fails.
//
// Bytes pass through a buffer of the path, which is registered once, so that the program's own need not be. Requests of
// RM have no order among themselves. So a load waits until all stores before it are executed, and so does a store for
// those that it overlaps.
//
// Thread: one at a time. In a signal handler it works unless the handler has interrupted a thread inside this library,
// which may have the NIC: then nothing completes, and the path gives up after kPatience.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/base/time.h"
#include "lib/urma/aperture/remote_path.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"

namespace ub::aperture {

class QueuePath final : public RemotePath {
 public:
  // `seg` stays imported. Null and `*error`, a sentence: the queue cannot be made, or nothing leads to the owner of the
  // segment.
  static std::unique_ptr<QueuePath> make(urma_target_seg_t* seg, uint32_t owner_uasid, std::string* error);
  ~QueuePath() override;

  urma_cr_status_t load(std::span<const LoadBlock>) override;
  urma_cr_status_t store(const StoreBlock&) override;
  urma_cr_status_t fence() override;
  urma_cr_status_t atomic(const RemoteAtomic&, uint64_t* old) override;
  bool ask(EarlyLoad*) override;
  void finish(EarlyLoad*) override;
  bool is_signal_safe() const override { return true; }
  bool is_broken() const override { return broken_; }

 private:
  static constexpr uint32_t kDepth = 256;
  static constexpr uint32_t kSlots = 16;
  static constexpr uint32_t kSlotsForOthers = 4;  // which loads ahead of their use leave
  // Requests have deadlines of their own, but these do not count time in which nobody drives the NIC.
  static constexpr Duration kPatience = seconds(20);
  static constexpr uint32_t kInlineBytes = 64;
  static constexpr uint64_t kNoSlot = kSlots;

  // A part of the buffer, in use until all requests that have bytes there are complete.
  struct Slot {
    uint32_t requests = 0;
    bool is_load = false;  // or an atomic
    void* to = nullptr;    // where the bytes of a load go; null: nobody wants them any more
    uint32_t bytes = 0;
    EarlyLoad* early = nullptr;  // whose load this is; null: of the call that waits
  };

  explicit QueuePath(urma_target_seg_t* seg) : seg_(seg) {}
  bool set_up(uint32_t owner_uasid, std::string* error);
  urma_cr_status_t check(uint64_t at, uint32_t bytes) const;

  std::byte* memory_of(uint64_t slot) const { return buffer_ + slot * kMaxBlockBytes; }
  uint64_t take_slot();
  uint64_t free_slot() const;
  urma_cr_status_t read(const LoadBlock&, uint64_t slot);
  urma_sge_t local(const void* bytes, uint32_t count) const;
  urma_sge_t remote(uint64_t at, uint32_t count) const;
  bool overlaps(uint64_t at, uint32_t bytes) const;
  urma_cr_status_t post(urma_jfs_wr_t& request, uint64_t slot, uint64_t at, uint32_t bytes);
  urma_cr_status_t write(uint64_t at, const std::byte* from, uint32_t bytes, uint64_t slot);
  void poll();
  void give_up();
  void complete(const urma_cr_t&);
  void end_load(Slot&, uint64_t slot, urma_cr_status_t);
  void forget_abandoned();
  void drain();

  urma_target_seg_t* seg_;
  urma_jfc_t* jfc_ = nullptr;
  urma_jfs_t* jfs_ = nullptr;
  urma_target_jetty_t* target_ = nullptr;
  std::byte* buffer_ = nullptr;
  urma_target_seg_t* buffer_seg_ = nullptr;
  std::array<Slot, kSlots> slots_{};
  std::array<urma_cr_t, 32> records_;  // those from records_at_ on are to be handled
  uint32_t records_at_ = 0, records_end_ = 0;
  bool waits_ = false;  // a load has begun and not returned: its caller waits, or has left it by a jump
  // Where the requests in flight write, in the order in which they complete: that of posting.
  struct Range {
    uint64_t at;
    uint32_t bytes;
  };
  std::array<Range, kDepth> ranges_{};
  uint32_t oldest_ = 0;  // of ranges_, modulo kDepth
  uint32_t in_flight_ = 0;
  int64_t waits_since_ns_ = 0;  // for a completion; 0: not now
  bool broken_ = false;
  urma_cr_status_t load_error_ = URMA_CR_SUCCESS;   // of the call that waits
  urma_cr_status_t store_error_ = URMA_CR_SUCCESS;  // the first one since the last fence
};

}  // namespace ub::aperture
