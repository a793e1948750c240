// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs and shared receive queues: making them, moving them through their states, posting.
#pragma once

#include <span>

#include "lib/ipc/memfd.h"
#include "lib/roce/completion_queue.h"
#include "lib/roce/device.h"
#include "lib/urma/data/ring.h"

namespace ub::verbs {

/// With the values of ibv_wr_opcode.
enum class WrOpcode : uint8_t {
  kRdmaWrite = 0,
  kRdmaWriteWithImm = 1,
  kSend = 2,
  kSendWithImm = 3,
  kRdmaRead = 4,
  kAtomicCmpAndSwp = 5,
  kAtomicFetchAndAdd = 6,
  kSendWithInv = 9,
};

/// Bits of SendRequest::send_flags, with the values of ibv_send_flags.
enum SendFlags : uint32_t {
  kSendFence = 1 << 0,
  kSendSignaled = 1 << 1,
  kSendSolicited = 1 << 2,
  kSendInline = 1 << 3,
};

/// ibv_send_wr. `segment` of a range is its lkey.
struct SendRequest {
  uint64_t wr_id = 0;
  std::span<const Sge> sg_list;
  WrOpcode opcode = WrOpcode::kSend;
  uint32_t send_flags = 0;  // without kSendSignaled, and sq_sig_all, success is not told
  uint32_t imm_data = 0;    // a number in the order of the host: no htonl()
  uint32_t invalidate_rkey = 0;
  uint64_t remote_addr = 0;
  uint32_t rkey = 0;
  uint64_t compare_add = 0, swap = 0;        // atomics
  const AddressHandle* ah = nullptr;         // UD
  uint32_t remote_qpn = 0, remote_qkey = 0;  // UD; bit 31 of the Q_Key: the queue pair's own instead
};

/// ibv_recv_wr. Of UD the first 40 bytes are for the GRH; an IPv4 header is in the last 20 of them.
struct ReceiveRequest {
  uint64_t wr_id = 0;
  std::span<const Sge> sg_list;
};

/// ibv_qp_cap. At most 16 384 requests, 16 ranges, 512 bytes inline.
struct QpCapabilities {
  uint32_t max_send_wr = 1, max_recv_wr = 1;
  uint32_t max_send_sge = 1, max_recv_sge = 1;
  uint32_t max_inline_data = 0;
};

/// Where receives are posted: of one queue pair, or shared.
class ReceiveQueue {
 public:
  explicit ReceiveQueue(Device& device) : device_(device) {}
  ~ReceiveQueue();
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  Status open(Owner owner, uint32_t jfc, uint32_t max_wr, uint32_t max_sge);
  Status post(const ReceiveRequest&);
  bool wants_bell() const;  // its queue pair is in ERROR, and is to be told of what was posted
  uint32_t id() const { return id_; }
  const Device& device() const { return device_; }

 private:
  Device& device_;
  ipc::Mapping memory_;
  urma::RingProducer<Rqe> ring_;
  uint32_t stride_ = 0, limit_ = 0, max_sge_ = 0;
  uint32_t id_ = 0;
};

class SharedReceiveQueue {
 public:
  /// At most 16 384 receives of 16 ranges.
  static Status create(ProtectionDomain&, uint32_t max_wr, uint32_t max_sge, std::unique_ptr<SharedReceiveQueue>* out);

  /// By any thread. kBusy: the queue is full. kInvalid: more ranges than were asked for at creation.
  Status post_recv(const ReceiveRequest& request) {
    const std::lock_guard guard(lock_);
    return receives_.post(request);
  }

 private:
  friend class QueuePair;
  explicit SharedReceiveQueue(Device& device) : receives_(device) {}

  std::mutex lock_;
  std::unique_ptr<CompletionQueue> unused_;  // a receive queue has one; that of the queue pair is used instead
  ReceiveQueue receives_;
};

/// ibv_qp_init_attr. Without `srq` the queue pair has a receive queue of its own.
struct QpInitAttributes {
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
  QpCapabilities cap;
  QpType qp_type = QpType::kRc;
  bool sq_sig_all = false;
  uint64_t qp_context = 0;  // comes back in AsyncEvent
};

class QueuePair {
 public:
  static Status create(ProtectionDomain& domain, const QpInitAttributes& attributes, std::unique_ptr<QueuePair>* out);
  ~QueuePair();  // its completions stay where they are
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  uint32_t qp_num() const { return qpn_; }
  /// To `qp_state`, which always counts, with the attributes that `mask` names: bits roce::kQp..., which are not those
  /// of ibv_qp_attr_mask. qp_access_flags: bits of Access. A step demands (and admits besides)
  ///   INIT    kQpPkey, kQpPort, and of RC and UC kQpAccess, of UD kQpQkey
  ///   RTR     of RC and UC kQpPath, kQpMtu, kQpDestination, kQpReceivePsn, of RC also kQpReadsServed, kQpRnrTimer
  ///           (kQpPkey, kQpAccess; of UD kQpPkey, kQpQkey)
  ///   RTS     kQpSendPsn, of RC also kQpTimeout, kQpRetries, kQpRnrRetries, kQpReadsInFlight (kQpAccess, kQpRnrTimer;
  ///           of UD kQpQkey); from SQD and SQE nothing
  ///   RESET, ERROR, SQD   nothing; RESET and ERROR are reached from everywhere, SQD from RTS
  /// kInvalid: no such step, too little or too much in `mask`, or a value out of its range (types.h). kBusy: memory or
  /// an answer to a READ is under way, or from SQE not everything has come back: later.
  Status modify(const QpAttributes& attributes, uint32_t mask);
  Status query(QpAttributes* attributes) const;

  /// kBusy: the queue is full. kInvalid: nothing was posted: more ranges or inline bytes than were asked for at
  /// creation, an atomic of other than 8 bytes, an operation that the type does not have. What else is wrong (lkey,
  /// state, length) comes as a completion. post_recv() of a queue pair with `srq`: kInvalid.
  Status post_send(const SendRequest&);
  Status post_recv(const ReceiveRequest&);

 private:
  QueuePair(Device& device, const QpInitAttributes& attributes) : device_(device), attributes_(attributes) {}

  Status open(Owner owner);
  Status check(const SendRequest&, uint32_t* length) const;
  bool has_place();
  void write(const SendRequest&, uint32_t length, uint32_t slots, Wqe* wqe) const;

  Device& device_;
  QpInitAttributes attributes_;
  ipc::Mapping memory_, work_;
  urma::RingProducer<Wqe> ring_;
  uint32_t posted_ = 0;
  uint32_t qpn_ = 0;
  std::unique_ptr<ReceiveQueue> own_receives_;  // null: shared
};

}  // namespace ub::verbs
