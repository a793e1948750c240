// SPDX-License-Identifier: Apache-2.0
//
// Where the work of queue pairs comes back.
#pragma once

#include <span>

#include "lib/ipc/memfd.h"
#include "lib/roce/device.h"

namespace ub::verbs {

/// With the values of ibv_wc_status.
enum class WcStatus : uint8_t {
  kSuccess = 0,
  kLocLenErr = 1,
  kLocQpOpErr = 2,
  kLocProtErr = 4,
  kWrFlushErr = 5,
  kBadRespErr = 7,
  kRemInvReqErr = 9,
  kRemAccessErr = 10,
  kRemOpErr = 11,
  kRetryExcErr = 12,
  kRnrRetryExcErr = 13,
  kGeneralErr = 21,
};
const char* wc_status_name(WcStatus);

/// With the values of ibv_wc_opcode.
enum class WcOpcode : uint8_t {
  kSend = 0,
  kRdmaWrite = 1,
  kRdmaRead = 2,
  kCompSwap = 3,
  kFetchAdd = 4,
  kRecv = 128,
  kRecvRdmaWithImm = 129,
};

/// Bits of WorkCompletion::wc_flags, with the values of ibv_wc_flags.
enum WcFlags : uint32_t {
  kWcGrh = 1 << 0,  // a datagram: 40 bytes are in front of the payload
  kWcWithImm = 1 << 1,
  kWcWithInv = 1 << 3,
};

/// ibv_wc.
struct WorkCompletion {
  uint64_t wr_id = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;  // if it succeeded
  uint32_t byte_len = 0;
  uint32_t imm_data = 0;  // a number in the order of the host: no ntohl(); or the rkey that was invalidated
  uint32_t qp_num = 0;
  uint32_t src_qp = 0;
  uint32_t wc_flags = 0;
  Gid src_gid;  // of a datagram's sender
};

class CompletionQueue {
 public:
  static Status create(Device& device, uint32_t cqe, std::unique_ptr<CompletionQueue>* out);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  /// Takes the oldest completions and returns how many; moves the NIC forward if there are none.
  size_t poll(std::span<WorkCompletion> out);
  /// Blocks until there is something to take, at most for `limit`; nanoseconds::max(): for ever. False: there is not.
  bool wait(std::chrono::nanoseconds limit);

 private:
  friend class QueuePair;
  friend class SharedReceiveQueue;
  explicit CompletionQueue(Device& device) : device_(device) {}

  uint32_t waiting() const;
  size_t take(std::span<WorkCompletion> out);
  void tell_read();

  Device& device_;
  ipc::Mapping memory_;
  QueueIndices* indices_ = nullptr;
  Cqe* slots_ = nullptr;
  uint32_t mask_ = 0, depth_ = 0;
  uint32_t jfc_ = 0;
  uint32_t read_since_told_ = 0;
};

}  // namespace ub::verbs
