// SPDX-License-Identifier: Apache-2.0
//
// RoCEv2 for applications, with the nouns of verbs: a device, and what belongs to it. What a queue pair does is in
// queue_pair.h, how connections are made in connection.h. Attributes have the names and units of libibverbs, so that a
// front with its calls would translate structs and nothing else.
//
// Objects are made by `create`, end with their destructor, and must end before what they were made of. Those of a queue
// pair, a completion queue and a connection are for one thread at a time: unlike in libibverbs they have no lock.
// Everything else may be called by any.
//
// Calls that fail change nothing. kInvalid: an argument is out of its range, names an object of another device or
// domain, or does not fit the state; the comment of each call names its own. kNoMemory: no memory, or a table of the
// NIC is full (65 535 queue pairs or roce.max_qps, 4 096 address handles, 64 listeners, 4 096 connections). kBusy: said
// where it can be.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/nic.h"
#include "lib/roce/access.h"
#include "lib/transport/roce/types.h"

namespace ub::verbs {

using roce::AhAttributes;
using roce::Gid;
using roce::QpAttributes;
using roce::QpState;
using roce::QpType;

class ConnectionId;

enum class AsyncEventKind : uint8_t {
  kQpFatal,           // it went to ERROR by itself
  kSqDrained,         // in SQD, and all that was begun is complete
  kQpLastWqeReached,  // in ERROR, and takes no more of its shared receive queue
  kPortDown,
  kPortUp,  // of a DPDK device
};

/// ibv_async_event.
struct AsyncEvent {
  AsyncEventKind kind;
  uint64_t object;  // QpInitAttributes::qp_context; of a port, its number in the configuration
};

/// A NIC in this process.
class Device {
 public:
  /// Of the configuration files and the environment, with RoCE switched on whatever they say. `notice` is told, by any
  /// thread, what a person should know; it may be empty. Null and a sentence in `*error`. A process may have several,
  /// each with addresses of its own (device.eids).
  static std::unique_ptr<Device> open(std::function<void(const std::string&)> notice, std::string* error);

  std::vector<Gid> gids() const;
  /// Of the largest path MTU, 1 to 5.
  uint8_t active_mtu() const;
  /// Fills in how `dgid` is reached from `sgid`, once it has answered: blocks, on a DPDK port up to 3 s (ARP, neighbour
  /// discovery). False and a sentence: there is no way.
  bool find_path(const Gid& sgid, const Gid& dgid, AhAttributes* path, std::string* why);
  Counters counters();
  /// The oldest event of the device; moves the NIC forward if there is none. 4 096 are kept, and
  /// 1 024 of what happens at one moment; later ones are lost (counter events_lost).
  std::optional<AsyncEvent> poll_async_event();
  /// The same, but blocks until there is one, at most for `limit`.
  std::optional<AsyncEvent> wait_async_event(std::chrono::nanoseconds limit);
  /// Moves the NIC forward if nobody else does. Polling an empty completion queue does so, too.
  void drive() { nic_->drive(); }
  /// What it is made of, for those who speak UB on it, too. Its event sink is taken.
  Nic& nic() { return *nic_; }

 private:
  friend class ProtectionDomain;
  friend class MemoryRegion;
  friend class AddressHandle;
  friend class CompletionQueue;
  friend class ReceiveQueue;
  friend class SharedReceiveQueue;
  friend class QueuePair;
  friend class ConnectionId;
  using NicCore = Nic::NicCore;

  Device() = default;

  template <class Fn>
  auto control(Fn&& fn) {
    return nic_->control(std::forward<Fn>(fn));
  }
  template <class Fn>
  auto engine(Fn&& fn) {
    return nic_->control([&](NicCore& core, Instant now) { return fn(*core.roce(), now); });
  }
  Owner next_domain();
  void take_connection_events();
  void on_event(const NicEvent&);
  std::optional<AsyncEvent> take_async_event();
  // Blocks until `ready()` or the end of `limit`, and says which. It is asked again after each event of the NIC.
  bool wait_until(std::chrono::nanoseconds limit, const std::function<bool()>& ready);

  std::mutex distribution_lock_;  // events of connections on their way from the engine to their ids
  std::mutex lock_;               // of what follows; never held while the NIC is called
  Owner last_domain_ = 0;
  std::map<uint32_t, uint32_t> qpn_of_receive_queue_;
  uint64_t last_cookie_ = 0;
  std::map<uint64_t, ConnectionId*> connections_;  // by cookie

  std::mutex event_lock_;  // of what follows; taken inside the NIC, too
  std::condition_variable event_told_;
  uint64_t events_told_ = 0;
  std::deque<AsyncEvent> async_events_;

  std::unique_ptr<Nic> nic_;  // ends first: until then it tells events
};

/// Regions and queue pairs of one domain cannot be used with those of another.
class ProtectionDomain {
 public:
  static Status create(Device& device, std::unique_ptr<ProtectionDomain>* out);
  Device& device() const { return device_; }

 private:
  friend class MemoryRegion;
  friend class AddressHandle;
  friend class QueuePair;
  friend class SharedReceiveQueue;
  friend class ConnectionId;
  ProtectionDomain(Device& device, Owner owner) : device_(device), owner_(owner) {}

  Device& device_;
  Owner owner_;
};

/// Registered memory; the application's, which must live longer, since the NIC of this process writes there for peers.
/// `access`: bits of Access. kInvalid: no bytes, other bits, or memory that is not mapped, or not writable and is to be
/// written. When it ends, requests that name it fail, here with kLocProtErr, of peers with kRemAccessErr.
class MemoryRegion {
 public:
  static Status create(ProtectionDomain& domain, void* address, size_t length, uint32_t access,
                       std::unique_ptr<MemoryRegion>* out);
  ~MemoryRegion();
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  uint32_t lkey() const { return segment_.handle; }
  uint32_t rkey() const { return roce::make_rkey(segment_.token_id, key_); }

 private:
  MemoryRegion(Device& device, RegisteredSegment segment, uint32_t key)
      : device_(device), segment_(segment), key_(key) {}

  Device& device_;
  RegisteredSegment segment_;
  uint32_t key_;
};

/// Where a datagram goes; as find_path() says. kInvalid: that path is not there (any more).
class AddressHandle {
 public:
  static Status create(ProtectionDomain& domain, const AhAttributes& attributes, std::unique_ptr<AddressHandle>* out);
  ~AddressHandle();
  AddressHandle(const AddressHandle&) = delete;
  AddressHandle& operator=(const AddressHandle&) = delete;

  uint32_t handle() const { return handle_; }

 private:
  AddressHandle(Device& device, uint32_t handle) : device_(device), handle_(handle) {}

  Device& device_;
  uint32_t handle_;
};

}  // namespace ub::verbs
