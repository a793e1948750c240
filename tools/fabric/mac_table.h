// SPDX-License-Identifier: Apache-2.0
//
// Which NIC has which MAC address, as a switch learns it from the frames that it sees.
//
// Thread: the caller serialises.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <unordered_map>

namespace ub::fabric {

class MacTable {
 public:
  // So many addresses are learned; further ones are flooded, so that nobody can make the table grow for ever.
  static constexpr size_t kMostAddresses = 4096;

  // A frame came from NIC `from`. Empty: it goes to all others, since it is for many (group address), or for one that
  // was not seen yet. A NIC that is `from` itself: the receiver lies behind the same NIC, and the frame goes nowhere.
  std::optional<size_t> look_up(std::span<const std::byte> frame, size_t from) {
    const uint64_t to = address(frame.data());
    const uint64_t sender = address(frame.data() + kSize);
    if (!is_group(frame.data() + kSize) && (nic_of_.size() < kMostAddresses || nic_of_.contains(sender))) {
      nic_of_[sender] = from;
    }
    const auto known = nic_of_.find(to);
    if (is_group(frame.data()) || known == nic_of_.end()) return std::nullopt;
    return known->second;
  }

  size_t size() const { return nic_of_.size(); }

 private:
  static constexpr size_t kSize = 6;

  static bool is_group(const std::byte* mac) { return (mac[0] & std::byte{1}) != std::byte{0}; }
  static uint64_t address(const std::byte* mac) {
    uint64_t value = 0;
    std::memcpy(&value, mac, kSize);
    return value;
  }

  std::unordered_map<uint64_t, size_t> nic_of_;
};

}  // namespace ub::fabric
