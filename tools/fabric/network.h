// SPDX-License-Identifier: Apache-2.0
//
// The links of a fabric, without IO: one or several paths from each NIC to each other one, each of them an impair::Link
// of its own. Frames go in with a sender and a receiver, and come out when they are due. It reads no clock.
//
// Thread: the caller serialises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/impair/link.h"
#include "tools/fabric/config.h"

namespace ub::fabric {

// One path in one direction; all numbers count from 0.
struct PathId {
  size_t from = 0;
  size_t to = 0;
  uint32_t path = 0;

  bool operator==(const PathId&) const = default;
};

class Network {
 public:
  // Links begin without faults. What is random follows from config.seed.
  Network(const Config& config, Instant start);

  // A frame leaves NIC `from` for NIC `to`, which is another one. The tag comes out with it.
  void offer(Instant now, size_t from, size_t to, std::span<const std::byte> frame, uint64_t tag = 0);
  // When deliver() has something to do; never: nothing is under way.
  Instant next_due() const;
  // Calls send(to, frame, tag) for each frame that is due.
  template <class Send>
  void deliver(Instant now, Send&& send);

  impair::Link& link(const PathId& id) { return links_[number_of(id)]; }
  std::vector<PathId> all_paths() const;
  // Changes of all links that are still to come.
  size_t changes_to_come(Instant now);

 private:
  size_t number_of(const PathId& id) const { return (id.from * nics_ + id.to) * paths_ + id.path; }
  uint32_t choose_path(size_t pair, std::span<const std::byte> frame);

  size_t nics_;
  uint32_t paths_;
  Spray spray_;
  std::vector<impair::Link> links_;  // by number_of(); that of a NIC to itself is not used
  std::vector<size_t> busy_;         // links with frames under way
  std::vector<uint32_t> next_path_;  // of each pair, where every frame takes another
};

template <class Send>
void Network::deliver(Instant now, Send&& send) {
  std::erase_if(busy_, [&](size_t number) {
    impair::Link& link = links_[number];
    while (const auto arrival = link.take(now)) {
      send(number / paths_ % nics_, std::span<std::byte>(arrival->frame), arrival->tag);
      link.release(*arrival);
    }
    return link.under_way() == 0;
  });
}

}  // namespace ub::fabric
