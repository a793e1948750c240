// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pcapng.h"

#include <algorithm>
#include <cstring>

namespace ub::pcapng {
namespace {

constexpr uint32_t kSectionHeader = 0x0A0D0D0A, kInterfaceDescription = 1, kInterfaceStatistics = 5,
                   kEnhancedPacket = 6;
constexpr uint32_t kByteOrderMagic = 0x1A2B3C4D;
constexpr uint16_t kLinkTypeEthernet = 1;
constexpr uint8_t kNanoseconds = 9;  // 10^-9 s
constexpr size_t kLongestOption = 0xFFFF;

// Codes of options, for each kind of block.
constexpr uint16_t kComment = 1;
constexpr uint16_t kShbHardware = 2, kShbOs = 3, kShbUserAppl = 4;
constexpr uint16_t kIfName = 2, kIfDescription = 3, kIfTsResol = 9;
constexpr uint16_t kEpbFlags = 2, kEpbDropCount = 4;
constexpr uint16_t kIsbStartTime = 2, kIsbEndTime = 3, kIsbIfRecv = 4, kIsbIfDrop = 5, kIsbFilterAccept = 6,
                   kIsbUsrDeliv = 8;

// Appends a block: its fixed part, then its options; its lengths stand at both ends of it.
class Block {
 public:
  Block(Bytes& out, uint32_t type) : out_(out), start_(out.size()) {
    number(type);
    number(uint32_t{0});
  }
  ~Block() {
    if (has_options_) number(uint32_t{0});  // the end of them
    number(uint32_t{0});
    const auto bytes = static_cast<uint32_t>(out_.size() - start_);
    std::memcpy(&out_[start_ + 4], &bytes, sizeof bytes);
    std::memcpy(&out_[out_.size() - 4], &bytes, sizeof bytes);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  template <class Number>
  void number(Number n) {
    const auto* at = reinterpret_cast<const std::byte*>(&n);
    out_.insert(out_.end(), at, at + sizeof n);
  }
  // A time has its upper half first, whatever the byte order.
  void time(uint64_t ns) {
    number(static_cast<uint32_t>(ns >> 32));
    number(static_cast<uint32_t>(ns));
  }
  void padded(std::span<const std::byte> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    out_.resize(out_.size() + (-bytes.size() & 3));
  }
  void option(uint16_t code, std::span<const std::byte> value) {
    option_head(code, value.size());
    padded(value);
  }
  void option(uint16_t code, std::string_view text) {
    if (!text.empty()) option(code, std::as_bytes(std::span(text.substr(0, kLongestOption))));
  }
  template <class Number>
  void number_option(uint16_t code, Number n) {
    option(code, std::as_bytes(std::span(&n, 1)));
  }
  void time_option(uint16_t code, uint64_t ns) {
    option_head(code, sizeof ns);
    time(ns);
  }

 private:
  void option_head(uint16_t code, size_t bytes) {
    has_options_ = true;
    number(code);
    number(static_cast<uint16_t>(bytes));
  }

  Bytes& out_;
  const size_t start_;
  bool has_options_ = false;
};

}  // namespace

void add_section(Bytes& out, std::string_view hardware, std::string_view os, std::string_view application) {
  Block block(out, kSectionHeader);
  block.number(kByteOrderMagic);
  block.number(uint16_t{1});  // version 1.0
  block.number(uint16_t{0});
  block.number(~uint64_t{0});  // the section goes to the end of the file
  block.option(kShbHardware, hardware);
  block.option(kShbOs, os);
  block.option(kShbUserAppl, application);
}

void add_interface(Bytes& out, std::string_view name, std::string_view description, uint32_t snap) {
  Block block(out, kInterfaceDescription);
  block.number(kLinkTypeEthernet);
  block.number(uint16_t{0});
  block.number(snap);
  block.option(kIfName, name);
  block.option(kIfDescription, description);
  block.number_option(kIfTsResol, kNanoseconds);
}

void add_packet(Bytes& out, const Packet& packet) {
  Block block(out, kEnhancedPacket);
  block.number(packet.interface);
  block.time(packet.time_ns);
  block.number(static_cast<uint32_t>(packet.bytes.size()));
  block.number(packet.length);
  block.padded(packet.bytes);
  block.number_option(kEpbFlags, static_cast<uint32_t>(packet.direction));
  if (packet.missed != 0) block.number_option(kEpbDropCount, packet.missed);
  block.option(kComment, packet.comment);
}

void add_statistics(Bytes& out, const Statistics& s) {
  Block block(out, kInterfaceStatistics);
  block.number(s.interface);
  block.time(s.time_ns);
  block.time_option(kIsbStartTime, s.began_ns);
  block.time_option(kIsbEndTime, s.time_ns);
  block.number_option(kIsbIfRecv, s.seen);
  block.number_option(kIsbIfDrop, s.missed);
  block.number_option(kIsbFilterAccept, s.accepted);
  block.number_option(kIsbUsrDeliv, s.written);
}

}  // namespace ub::pcapng
