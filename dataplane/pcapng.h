// SPDX-License-Identifier: Apache-2.0
//
// Blocks of a pcap-ng file (draft-ietf-opsawg-pcapng), in the byte order of this host: a section, interfaces, packets,
// statistics. Each function appends one whole block. Times are ns since 1970.
//
// Thread: any; there is no state. std::bad_alloc where there is no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ub::pcapng {

using Bytes = std::vector<std::byte>;

enum class Direction : uint8_t { kUnknown, kIn, kOut };

// The first block of a file. What is empty is left out.
void add_section(Bytes&, std::string_view hardware, std::string_view os, std::string_view application);

// An Ethernet interface. Those of a section are numbered from 0 on, in their order. `snap`: at most so many bytes of a
// frame are kept; 0: all.
void add_interface(Bytes&, std::string_view name, std::string_view description, uint32_t snap);

struct Packet {
  uint32_t interface = 0;
  uint64_t time_ns = 0;
  Direction direction = Direction::kUnknown;
  uint32_t length = 0;                 // of the frame
  std::span<const std::byte> bytes{};  // what is kept of it
  uint64_t missed = 0;                 // frames of this interface between the packet before and this one
  std::string_view comment{};          // empty: none
};
void add_packet(Bytes&, const Packet&);

struct Statistics {
  uint32_t interface = 0;
  uint64_t time_ns = 0, began_ns = 0;
  uint64_t seen = 0;      // frames that passed
  uint64_t accepted = 0;  // those that the filter took
  uint64_t missed = 0;    // those of them that could not be written
  uint64_t written = 0;
};
void add_statistics(Bytes&, const Statistics&);
inline constexpr size_t kStatisticsBytes = 24 + 5 * 12 + 12 + 4;  // of such a block

}  // namespace ub::pcapng
