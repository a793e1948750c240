// SPDX-License-Identifier: Apache-2.0
//
// Reads a pcap-ng file for tests, and believes nothing: whatever is not as the format wants it is a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ub::test {

struct PcapngBlock {
  uint32_t type = 0;
  std::string fixed;                        // behind the type and the length, up to the options
  std::string packet;                       // of a packet
  std::map<uint16_t, std::string> options;

  template <class Number = uint32_t>
  Number number(size_t at) const {
    Number n{};
    EXPECT_LE(at + sizeof n, fixed.size());
    if (at + sizeof n <= fixed.size()) std::memcpy(&n, fixed.data() + at, sizeof n);
    return n;
  }
  template <class Number>
  Number option(uint16_t code) const {
    Number n{};
    const auto found = options.find(code);
    EXPECT_TRUE(found != options.end() && found->second.size() == sizeof n) << "option " << code;
    if (found != options.end() && found->second.size() == sizeof n) std::memcpy(&n, found->second.data(), sizeof n);
    return n;
  }
  std::string text(uint16_t code) const {
    const auto found = options.find(code);
    return found == options.end() ? "" : found->second;
  }
  uint64_t time_ns() const { return uint64_t{number(4)} << 32 | number(8); }
};

inline constexpr uint32_t kSection = 0x0A0D0D0A, kInterface = 1, kStatistics = 5, kPacket = 6;

inline std::vector<PcapngBlock> read_pcapng(const std::string& bytes) {
  std::vector<PcapngBlock> blocks;
  uint32_t interfaces = 0;
  std::set<uint32_t> told;  // interfaces with statistics
  const auto number = [&](size_t at) {
    uint32_t n = 0;
    std::memcpy(&n, bytes.data() + at, 4);
    return n;
  };
  const bool is_file = bytes.size() >= 4 && number(0) == kSection;  // and not some blocks alone
  for (size_t at = 0; at != bytes.size();) {
    if (bytes.size() - at < 12) {
      ADD_FAILURE() << "a piece of a block at " << at;
      break;
    }
    PcapngBlock block;
    block.type = number(at);
    const uint32_t length = number(at + 4);
    if (length % 4 != 0 || length < 12 || length > bytes.size() - at || number(at + length - 4) != length) {
      ADD_FAILURE() << "block of " << length << " bytes at " << at << " of " << bytes.size();
      break;
    }
    const size_t end = at + length - 4;
    const std::map<uint32_t, size_t> fixed_bytes = {{kSection, 16}, {kInterface, 8}, {kStatistics, 12}, {kPacket, 20}};
    if (!fixed_bytes.contains(block.type)) {
      ADD_FAILURE() << "a block of type " << block.type;
      break;
    }
    size_t option = at + 8 + fixed_bytes.at(block.type);
    block.fixed = bytes.substr(at + 8, option - at - 8);
    if (block.type == kPacket) {
      const uint32_t kept = block.number(12);
      block.packet = bytes.substr(option, kept);
      option += (kept + 3) / 4 * 4;
    }
    bool ended = option == end;  // there need not be any
    while (!ended && option + 4 <= end) {
      uint16_t code, size;
      std::memcpy(&code, bytes.data() + option, 2);
      std::memcpy(&size, bytes.data() + option + 2, 2);
      option += 4;
      ended = code == 0;
      if (ended) break;
      EXPECT_TRUE(block.options.emplace(code, bytes.substr(option, size)).second) << "option " << code << " twice";
      for (size_t i = size; i % 4 != 0; ++i) EXPECT_EQ(bytes[option + i], '\0') << "what fills up option " << code;
      option += (size + 3u) / 4 * 4;
    }
    EXPECT_TRUE(ended && option == end) << "options of the block at " << at;
    if (block.type == kInterface) ++interfaces;
    if (is_file && (block.type == kPacket || block.type == kStatistics)) {
      EXPECT_LT(block.number(0), interfaces) << "the block at " << at << " is of an interface that is not there yet";
    }
    if (is_file && block.type == kStatistics) {
      EXPECT_TRUE(told.insert(block.number(0)).second) << "statistics of interface " << block.number(0) << " twice";
    }
    blocks.push_back(std::move(block));
    at += length;
  }
  return blocks;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<PcapngBlock> of_type(const std::vector<PcapngBlock>& blocks, uint32_t type) {
  std::vector<PcapngBlock> found;
  for (const PcapngBlock& b : blocks)
    if (b.type == type) found.push_back(b);
  return found;
}

}  // namespace ub::test
