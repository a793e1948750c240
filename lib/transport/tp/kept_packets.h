// SPDX-License-Identifier: Apache-2.0
//
// Packets that were accepted and cannot be delivered yet, because others before them are missing or wait. All channels
// share the places. Small packets have places of their own: a window holds many more of them than of large ones, and
// each of them is the last packet of its message, which must be kept.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "lib/base/arena.h"
#include "lib/base/slab.h"
#include "lib/transport/wire/rtp_header.h"

namespace ub::tp {

struct KeptPacket {
  wire::RtpHeader rtp;
  uint32_t bytes;  // behind the transport header
};

// How many places a channel has.
struct KeptCount {
  uint16_t small = 0, large = 0;

  uint32_t total() const { return uint32_t{small} + large; }
  bool operator==(const KeptCount&) const = default;
};

class KeptPackets {
 public:
  static constexpr uint32_t kSmallBytes = 256;

  // `large_bytes`: of the longest packet.
  void init(Arena& arena, uint32_t small, uint32_t large, uint32_t large_bytes) {
    large_bytes_ = large_bytes;
    small_.init(arena, small);
    large_.init(arena, large);
    small_data_ = arena.take<std::byte>(size_t{small + 1} * kSmallBytes);
    large_data_ = arena.take<std::byte>(size_t{large + 1} * large_bytes);
  }

  // Copies `rest`, the bytes behind the transport header; returns the index of the packet. 0: they are too many, or
  // there is no place for a user who has so many. A small packet takes a large place if no small one is left.
  uint32_t keep(const wire::RtpHeader& rtp, std::span<const std::byte> rest, KeptCount& held) {
    uint32_t index = 0;
    if (rest.size() <= kSmallBytes && has_share(small_, held.small)) {
      index = small_.alloc();
      ++held.small;
    } else if (rest.size() <= large_bytes_ && has_share(large_, held.large)) {
      index = small_.capacity() + large_.alloc();
      ++held.large;
    }
    if (index == 0) return 0;
    (*this)[index] = {rtp, static_cast<uint32_t>(rest.size())};
    if (!rest.empty()) std::memcpy(data(index), rest.data(), rest.size());
    return index;
  }
  void free(uint32_t index, KeptCount& held) {
    uint16_t& count = is_small(index) ? held.small : held.large;
    UB_DCHECK(count != 0);
    --count;
    is_small(index) ? small_.free(index) : large_.free(index - small_.capacity());
  }

  KeptPacket& operator[](uint32_t index) {
    return is_small(index) ? small_[index] : large_[index - small_.capacity()];
  }
  std::byte* data(uint32_t index) {
    return is_small(index) ? small_data_ + size_t{index} * kSmallBytes
                           : large_data_ + size_t{index - small_.capacity()} * large_bytes_;
  }

  uint32_t in_use() const { return small_.in_use() + large_.in_use(); }
  const Slab<KeptPacket>& small() const { return small_; }
  const Slab<KeptPacket>& large() const { return large_; }

 private:
  bool is_small(uint32_t index) const { return index <= small_.capacity(); }

  Slab<KeptPacket> small_, large_;
  std::byte* small_data_ = nullptr;
  std::byte* large_data_ = nullptr;
  uint32_t large_bytes_ = 0;
};

}  // namespace ub::tp
