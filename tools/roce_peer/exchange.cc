// SPDX-License-Identifier: Apache-2.0
#include "tools/roce_peer/exchange.h"

#include <fmt/format.h>

#include <charconv>

#include "lib/base/bytes.h"
#include "tools/common/tool_error.h"

namespace ub::roce_peer {
namespace {

std::string quote(std::string_view bytes) {
  std::string text;
  for (char c : bytes) text += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", c & 0xff);
  return text;
}

[[noreturn]] void refuse(const char* what, std::string_view bytes) {
  throw tools::ToolError(fmt::format("the other tool sent no {}, but \"{}\": does it run the test that was asked for?",
                                     what, quote(bytes)));
}

// Reads fields of hex digits, each of its own length, with ':' between them.
class Fields {
 public:
  Fields(const char* what, std::string_view line, size_t bytes) : what_(what), line_(line) {
    if (line.size() != bytes || line.back() != '\0') refuse(what_, line_);
  }

  template <class Number>
  Number take(size_t digits) {
    if (at_ != 0 && line_[at_++] != ':') refuse(what_, line_);
    return take_adjacent<Number>(digits);
  }
  template <class Number>
  Number take_adjacent(size_t digits) {
    Number value = 0;
    const char *from = line_.data() + at_, *to = from + digits;
    auto [end, error] = std::from_chars(from, to, value, 16);
    if (error != std::errc() || end != to) refuse(what_, line_);
    at_ += digits;
    return value;
  }

 private:
  const char* what_;
  std::string_view line_;
  size_t at_ = 0;
};

std::string with_nul(std::string text, size_t bytes) {
  text.resize(bytes, '\0');
  return text;
}

}  // namespace

// ---- pingpong ------------------------------------------------------------------------------------------------------

std::string format(const PingpongLine& line) {
  std::string text = fmt::format("{:04x}:{:06x}:{:06x}:", line.lid, line.qpn, line.psn);
  for (uint8_t byte : line.gid.bytes) text += fmt::format("{:02x}", byte);
  return with_nul(text, PingpongLine::kBytes);
}

PingpongLine parse_pingpong_line(std::string_view bytes) {
  Fields fields("address of a pingpong", bytes, PingpongLine::kBytes);
  PingpongLine line;
  line.lid = fields.take<uint16_t>(4);
  line.qpn = fields.take<uint32_t>(6);
  line.psn = fields.take<uint32_t>(6);
  line.gid.bytes[0] = fields.take<uint8_t>(2);
  for (size_t i = 1; i < line.gid.bytes.size(); ++i) line.gid.bytes[i] = fields.take_adjacent<uint8_t>(2);
  return line;
}

// ---- perftest ------------------------------------------------------------------------------------------------------

std::string format_version() { return with_nul(std::string(kVersion), kVersionBytes); }

void check_version(std::string_view bytes) {
  constexpr int kOldest = 570;  // hundredths
  const std::string_view text = bytes.substr(0, bytes.find('\0'));
  int major = 0, minor = 0;
  const char* const end = text.data() + text.size();
  auto [dot, error] = std::from_chars(text.data(), end, major);
  const bool has_minor = error == std::errc() && dot != end && *dot == '.' &&
                         std::from_chars(dot + 1, end, minor).ptr == end && dot + 1 != end;
  if (!has_minor || bytes.size() != kVersionBytes || major < 0 || major > 99 || minor < 0 || minor > 99) {
    refuse("version of perftest", bytes);
  }
  if (major * 100 + minor < kOldest) {
    throw tools::ToolError(fmt::format("the other tool is perftest {}; 5.70 is the oldest that speaks as we do", text));
  }
}

std::string format_number(uint32_t value) {
  std::string bytes(4, '\0');
  store_be32(reinterpret_cast<std::byte*>(bytes.data()), value);
  return bytes;
}

uint32_t parse_number(std::string_view bytes) {
  if (bytes.size() != 4) refuse("number", bytes);
  return load_be32(reinterpret_cast<const std::byte*>(bytes.data()));
}

std::string format_mtu(uint8_t code) { return with_nul(std::to_string(code), 2); }

uint8_t parse_mtu(std::string_view bytes) {
  if (bytes.size() != 2 || bytes[0] < '1' || bytes[0] > '5' || bytes[1] != '\0') refuse("path MTU", bytes);
  return static_cast<uint8_t>(bytes[0] - '0');
}

std::string format(const PerftestLine& line) {
  std::string text = fmt::format("{:04x}:{:04x}:{:06x}:{:06x}:{:08x}:{:016x}:", line.lid, line.out_reads, line.qpn,
                                 line.psn, line.rkey, line.address);
  for (uint8_t byte : line.gid.bytes) text += fmt::format("{:02x}:", byte);
  text += fmt::format("{:08x}:", line.srqn);
  return with_nul(text, PerftestLine::kBytes);
}

PerftestLine parse_perftest_line(std::string_view bytes) {
  Fields fields("keys of a perftest queue pair with a GID", bytes, PerftestLine::kBytes);
  PerftestLine line;
  line.lid = fields.take<uint16_t>(4);
  line.out_reads = fields.take<uint16_t>(4);
  line.qpn = fields.take<uint32_t>(6);
  line.psn = fields.take<uint32_t>(6);
  line.rkey = fields.take<uint32_t>(8);
  line.address = fields.take<uint64_t>(16);
  for (uint8_t& byte : line.gid.bytes) byte = fields.take<uint8_t>(2);
  line.srqn = fields.take<uint32_t>(8);
  return line;
}

}  // namespace ub::roce_peer
