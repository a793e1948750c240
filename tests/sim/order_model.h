// SPDX-License-Identifier: Apache-2.0
//
// The rules of order within a send queue (UB Base Specification Rev 2.0, 7.3.2), and nothing of the code that keeps
// them. The model hears which requests a queue posts and which memory each of them alone touches; then the simulated
// hosts tell it of every touch. For each pair of requests it knows whether the later one may be observed before the
// earlier one, and a touch that shows the contrary is a violation.
//
//  - A strong request (SO) has no effect before all earlier relaxed (RO) and strong ones have had theirs. So no memory
//    of an RO or SO may be touched once a later SO of its queue has begun.
//  - A fence holds back its request and all behind it until earlier READs and atomics are answered. So no result may
//    arrive once a request at or behind a later fence has begun.
//
// A request that was given up may still arrive, while those that waited for it go on. So a violation counts when the
// earlier request succeeds. A response to a READ may be made again after it has arrived. So reading its range too late
// counts when a part of the response arrives afterwards.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ub::sim {

class OrderModel {
 public:
  enum class Tag : uint8_t { kNo, kRelaxed, kStrong };
  // What a request does with its range: the first two at the target, the last at the initiator, for the answer.
  enum class Use : uint8_t { kRead, kWritten, kResult };

  struct Violation {
    uint64_t earlier, later;  // ids: memory of `earlier` was touched after `later` had begun
    bool fence;               // else a strong request overtook it
  };

  // The requests of a queue in the order in which they are posted. Ids are never used again.
  void post(uint64_t id, uint32_t queue, Tag tag, bool fence);
  // From now on this range of a region is used so by that request alone.
  void own(uint64_t id, uint32_t region, uint64_t offset, uint64_t bytes, Use use);
  // Does no request use a part of this range alone?
  bool unused(uint32_t region, uint64_t offset, uint64_t bytes) const;
  // Who writes there, if that is one request alone.
  std::optional<uint64_t> writer_at(uint32_t region, uint64_t offset) const;
  // Somebody read or wrote there.
  void touch(uint32_t region, uint64_t offset, bool read);
  // Bytes arrived that will be written there.
  void arrive(uint32_t region, uint64_t offset);
  // As touch(), for an effect of a request that is known by other means.
  void touch(uint64_t id);

  // It completed, or its queue is gone: its ranges may be used by others. Returns what was seen of it that must not be.
  std::optional<Violation> end(uint64_t id);

 private:
  struct Request {
    uint32_t queue;
    uint64_t place;  // in its queue, from 1 on
    Tag tag;
    std::vector<std::pair<uint32_t, uint64_t>> ranges;  // keys in ranges_
    std::optional<Violation> seen = {};
    std::optional<Violation> read_late = {};  // nobody sees that if nothing of the response arrives afterwards
  };
  struct Begun {
    uint64_t place = 0, id = 0;
  };
  struct Queue {
    uint64_t posted = 0;
    Begun newest, newest_strong;  // the latest in posting order that have begun
    std::deque<uint64_t> fences;  // places of fenced requests
  };
  struct Range {
    uint64_t end, id;
    Use use;
  };

  // The use that includes this offset; null: none.
  const Range* use_at(uint32_t region, uint64_t offset) const;
  std::optional<Violation> effect(uint64_t id, const Request& r);
  void result(uint64_t id, Request& r);

  std::unordered_map<uint64_t, Request> requests_;
  std::unordered_map<uint32_t, Queue> queues_;
  std::map<std::pair<uint32_t, uint64_t>, Range> ranges_;
};

}  // namespace ub::sim
