// SPDX-License-Identifier: Apache-2.0
//
// One queue pair with its memory and completion queues, for tests in which one thread does everything. What fails is a
// ToolError.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/roce/connection.h"
#include "lib/roce/queue_pair.h"
#include "tools/roce_peer/options.h"

namespace ub::roce_peer {

using verbs::Gid;

// Bytes that tell where they are and of which message: what is misplaced, stale or mixed up differs.
void fill_pattern(std::span<std::byte> out, uint64_t message);
// Where they first differ, or the size.
size_t first_difference(std::span<const std::byte> data, std::span<const std::byte> expected);
// Throws ToolError of kExitWrongData unless they are the same.
void compare(std::span<const std::byte> data, std::span<const std::byte> expected, const std::string& what);
void compare_pattern(std::span<const std::byte> data, uint64_t message, const std::string& what);

// Memory that is registered.
struct Buffer {
  Buffer(verbs::ProtectionDomain& domain, size_t bytes, uint32_t access);
  uint64_t address() const { return reinterpret_cast<uintptr_t>(bytes.data()); }
  Sge range(size_t offset, uint32_t length) const;

  std::vector<std::byte> bytes;
  std::unique_ptr<verbs::MemoryRegion> region;
};

class Endpoint {
 public:
  Endpoint(const Options& options, verbs::QpType type);

  verbs::Device& device() { return *device_; }
  verbs::ProtectionDomain& domain() { return *domain_; }
  verbs::QueuePair& qp() { return *qp_; }
  uint32_t qpn() const { return qp_->qp_num(); }
  verbs::CompletionQueue& send_queue() { return *send_queue_; }
  verbs::CompletionQueue& receive_queue() { return *receive_queue_; }
  const Gid& gid() const { return gid_; }
  uint32_t psn() const { return psn_; }
  uint8_t port_mtu() const;  // of the options, as a code

  void to_init(uint32_t access, uint32_t qkey = 0);
  struct Remote {
    Gid gid;
    uint32_t qpn = 0;
    uint32_t psn = 0;
    uint8_t mtu = 0;
    uint8_t reads = 1;  // READs and atomics that it takes at a time
  };
  void connect(const Remote& remote, uint8_t reads_served);
  verbs::AhAttributes path_to(const Gid& gid);

  void post_receive(uint64_t id, const Sge& where);
  void post_send(const verbs::SendRequest&);
  // Takes some completions and returns how many; moves the NIC forward if there are none. One that failed is an error.
  uint32_t take(verbs::CompletionQueue& queue);
  // The next completion, in the same way.
  verbs::WorkCompletion wait_for_send();
  verbs::WorkCompletion wait_for_receive();
  // Of a tool that leaves when it has what it waits for: the acknowledgement of our last message may be lost, and
  // then nobody is there to repeat it. Whether it had everything says its own exit status.
  void wait_for_last_send();
  // Moves the NIC forward, and throws when the time is over or we were interrupted.
  void turn();
  void linger();

  std::string counters();  // those that say what was lost and sent again

 private:
  using Clock = std::chrono::steady_clock;
  verbs::WorkCompletion next(verbs::CompletionQueue& queue);
  void check(const verbs::WorkCompletion&);

  Options options_;
  verbs::QpType type_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<verbs::CompletionQueue> send_queue_, receive_queue_;
  std::unique_ptr<verbs::QueuePair> qp_;
  Gid gid_;
  uint32_t psn_ = 0;
  Clock::time_point end_;
};

}  // namespace ub::roce_peer
