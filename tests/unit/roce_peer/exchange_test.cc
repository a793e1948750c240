// SPDX-License-Identifier: Apache-2.0
//
// The items that foreign tools send over TCP, as rdma-core 44.0 and perftest 4.5 sent them, and what is no such item.
#include "tools/roce_peer/exchange.h"

#include <gtest/gtest.h>

#include "tools/common/tool_error.h"

namespace ub::roce_peer {
namespace {

using tools::ToolError;

std::string with_nul(std::string text) { return text + '\0'; }

const std::string kPingpong = with_nul("0000:000012:5f2565:00000000000000000000ffff0a4d0003");
const std::string kPerftest = with_nul(
    "0000:0001:000013:0e9144:000004e4:000055c3269c8000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:03:00000000:");
const Gid kGid = Gid::from_v4(0x0a4d0003);

std::string message_of(const std::string& bytes, auto parse) {
  try {
    parse(bytes);
  } catch (const ToolError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Pingpong, reads_what_was_captured) {
  const PingpongLine line = parse_pingpong_line(kPingpong);
  EXPECT_EQ(line.lid, 0);
  EXPECT_EQ(line.qpn, 0x12u);
  EXPECT_EQ(line.psn, 0x5f2565u);
  EXPECT_EQ(line.gid, kGid);
}

TEST(Pingpong, writes_it_again) { EXPECT_EQ(format(parse_pingpong_line(kPingpong)), kPingpong); }

TEST(Pingpong, refuses_what_is_none) {
  std::string no_colon = kPingpong, no_digit = kPingpong, no_end = kPingpong;
  no_colon[4] = '0';
  no_digit[20] = 'g';
  no_end.back() = '0';
  for (const std::string& bytes : {no_colon, no_digit, no_end, kPingpong.substr(1), std::string(), kPerftest}) {
    EXPECT_THROW(parse_pingpong_line(bytes), ToolError) << bytes;
  }
}

TEST(Pingpong, says_what_came) {
  std::string bytes = "GET / HTTP/1.0\r\n";
  bytes.resize(PingpongLine::kBytes);
  EXPECT_NE(message_of(bytes, parse_pingpong_line).find("\"GET / HTTP/1.0\\x0d\\x0a\\x00"), std::string::npos);
}

TEST(Perftest, reads_what_was_captured) {
  const PerftestLine line = parse_perftest_line(kPerftest);
  EXPECT_EQ(line.out_reads, 1);
  EXPECT_EQ(line.qpn, 0x13u);
  EXPECT_EQ(line.psn, 0x0e9144u);
  EXPECT_EQ(line.rkey, 0x4e4u);
  EXPECT_EQ(line.address, 0x55c3269c8000u);
  EXPECT_EQ(line.gid, kGid);
  EXPECT_EQ(line.srqn, 0u);
}

TEST(Perftest, writes_it_again) { EXPECT_EQ(format(parse_perftest_line(kPerftest)), kPerftest); }

TEST(Perftest, largest_numbers) {
  const PerftestLine line{0xffff, 0x10, 0xffffff, 0xffffff, UINT32_MAX, UINT64_MAX, kGid, UINT32_MAX};
  const std::string bytes = format(line);
  EXPECT_EQ(bytes.size(), PerftestLine::kBytes);
  EXPECT_EQ(parse_perftest_line(bytes).address, UINT64_MAX);
  EXPECT_EQ(parse_perftest_line(bytes).srqn, UINT32_MAX);
}

TEST(Perftest, refuses_what_is_none) {
  std::string sign = kPerftest, space = kPerftest;
  sign[0] = '-';
  space[31] = ' ';
  // A perftest without GIDs sends 59 bytes.
  for (const std::string& bytes : {sign, space, kPerftest.substr(0, 59), std::string(PerftestLine::kBytes, '\0')}) {
    EXPECT_THROW(parse_perftest_line(bytes), ToolError) << bytes;
  }
}

TEST(Perftest, versions) {
  const std::string captured = std::string("6.06") + std::string(12, '\0');
  EXPECT_EQ(format_version(), captured);
  auto padded = [](std::string text) {
    text.resize(kVersionBytes, '\0');
    return text;
  };
  for (const char* good : {"6.06", "5.70", "6.29"}) EXPECT_NO_THROW(check_version(padded(good))) << good;
  for (const char* bad : {"5.60", "4.5", "", "6", "6.", ".6", "6.x", "-6.06", "6.06.1", "100.0"}) {
    EXPECT_THROW(check_version(padded(bad)), ToolError) << bad;
  }
  EXPECT_THROW(check_version("6.06"), ToolError);
}

TEST(Perftest, numbers) {
  EXPECT_EQ(format_number(0x1000), std::string("\0\0\x10\0", 4));
  EXPECT_EQ(parse_number(std::string("\0\0\0\x40", 4)), 0x40u);
  EXPECT_THROW(parse_number("abc"), ToolError);
}

TEST(Perftest, path_mtu) {
  EXPECT_EQ(format_mtu(3), std::string("3\0", 2));
  for (uint8_t code = 1; code <= 5; ++code) EXPECT_EQ(parse_mtu(format_mtu(code)), code);
  for (const std::string& bad : {std::string("6\0", 2), std::string("0\0", 2), std::string("33"), std::string("3")}) {
    EXPECT_THROW(parse_mtu(bad), ToolError) << bad;
  }
}

}  // namespace
}  // namespace ub::roce_peer
