// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/network.h"

#include <algorithm>

#include "lib/transport/wire/network_header.h"

namespace ub::fabric {
namespace {

// FNV-1a.
class Hash {
 public:
  void add(const void* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) value_ = (value_ ^ static_cast<const uint8_t*>(bytes)[i]) * 0x100000001B3;
  }
  uint64_t value() const { return value_ ^ value_ >> 32; }

 private:
  uint64_t value_ = 0xCBF29CE484222325;
};

// The same for frames with the same addresses and UDP ports; of frames without UDP, with the same Ethernet header.
uint64_t flow_of(std::span<const std::byte> frame) {
  Hash hash;
  wire::NetHeader net;
  if (wire::parse_network(frame, net) == wire::Drop::kNone) {
    for (const Endpoint& end : {net.src, net.dst}) {
      hash.add(end.ip.bytes.data(), end.ip.bytes.size());
      hash.add(&end.port, sizeof end.port);
    }
  } else {
    hash.add(frame.data(), std::min(frame.size(), wire::kEthSize));
  }
  return hash.value();
}

}  // namespace

Network::Network(const Config& config, Instant start)
    : nics_(config.nics.size()), paths_(config.paths), spray_(config.spray), next_path_(nics_ * nics_) {
  Prng seeds(config.seed);
  links_.reserve(nics_ * nics_ * paths_);
  for (size_t i = 0; i < nics_ * nics_ * paths_; ++i) links_.emplace_back(impair::Script(), seeds.next_u64(), start);
}

uint32_t Network::choose_path(size_t pair, std::span<const std::byte> frame) {
  if (paths_ == 1) return 0;
  if (spray_ == Spray::kFlow) return static_cast<uint32_t>(flow_of(frame) % paths_);
  return next_path_[pair]++ % paths_;
}

void Network::offer(Instant now, size_t from, size_t to, std::span<const std::byte> frame, uint64_t tag) {
  const size_t number = number_of({from, to, choose_path(from * nics_ + to, frame)});
  impair::Link& link = links_[number];
  const bool was_idle = link.under_way() == 0;
  link.offer(now, frame, tag);
  if (was_idle && link.under_way() != 0) busy_.push_back(number);
}

Instant Network::next_due() const {
  Instant due = Instant::never();
  for (size_t number : busy_) due = earlier(due, links_[number].next_due());
  return due;
}

std::vector<PathId> Network::all_paths() const {
  std::vector<PathId> all;
  for (size_t from = 0; from < nics_; ++from) {
    for (size_t to = 0; to < nics_; ++to) {
      for (uint32_t path = 0; path < paths_ && from != to; ++path) all.push_back({from, to, path});
    }
  }
  return all;
}

size_t Network::changes_to_come(Instant now) {
  size_t changes = 0;
  for (impair::Link& link : links_) changes += link.changes_to_come(now);
  return changes;
}

}  // namespace ub::fabric
