// SPDX-License-Identifier: Apache-2.0
#include "tools/roce_peer/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tools/common/tool_error.h"

namespace ub::roce_peer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kCycleBuffer = 4096, kCacheLine = 64;
constexpr size_t kReportItems = 5, kReportBytes = 8;

tools::TcpSocket open(const Options& o) {
  const int limit_ms = static_cast<int>(o.time_limit_s * 1000);
  if (!o.serves()) return tools::TcpSocket::connect(o.host, o.port, limit_ms);
  tools::TcpListener listener(o.port);
  fmt::print("listening on TCP port {}\n", listener.port());
  std::fflush(stdout);
  return listener.accept(limit_ms);
}

}  // namespace

Conversation::Conversation(const Options& o, std::function<void()> idle)
    : idle_(std::move(idle)), serves_(o.serves()), time_limit_s_(o.time_limit_s), socket_(open(o)) {}

std::string Conversation::receive(size_t bytes) {
  const auto end = Clock::now() + std::chrono::duration<double>(time_limit_s_);
  while (socket_.state() == tools::TcpSocket::State::kQuiet && Clock::now() < end) idle_();
  std::string text(bytes, '\0');
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  socket_.receive_bytes(text.data(), bytes, static_cast<int>(std::max<int64_t>(left, 0)));
  return text;
}

std::string Conversation::swap_bytes(const std::string& ours, size_t theirs) {
  std::string answer;
  if (serves_) answer = receive(theirs);
  socket_.send_bytes(ours);
  if (!serves_) answer = receive(theirs);
  return answer;
}

void Conversation::meet_pingpong(const PingpongLine& ours, const std::function<void(const PingpongLine&)>& connect) {
  if (!serves_) socket_.send_bytes(format(ours));
  connect(parse_pingpong_line(receive(PingpongLine::kBytes)));
  if (!serves_) {
    socket_.send_bytes(kDone);
    return;
  }
  socket_.send_bytes(format(ours));
  if (receive(kDone.size()) != kDone) throw tools::ToolError("the other tool did not say that it is ready");
}

PerftestLine Conversation::swap(const PerftestLine& ours) {
  return parse_perftest_line(swap_bytes(format(ours), PerftestLine::kBytes));
}

uint8_t Conversation::start_perftest(uint8_t mtu) {
  check_version(swap_bytes(format_version(), kVersionBytes));
  parse_number(swap_bytes(format_number(kCycleBuffer), sizeof kCycleBuffer));
  parse_number(swap_bytes(format_number(kCacheLine), sizeof kCacheLine));
  return std::min(mtu, parse_mtu(swap_bytes(format_mtu(mtu), 2)));
}

void Conversation::swap_report(uint32_t size, uint32_t iterations) {
  for (size_t i = 0; i < kReportItems; ++i) {
    const uint32_t value = i == 0 ? size : i == 1 ? iterations : 0;  // then three numbers that nobody measured
    swap_bytes(std::string(4, '\0') + format_number(value), kReportBytes);
  }
}

void Conversation::finish_perftest() {
  socket_.send_bytes(kDone);
  if (receive(kDone.size()) != kDone) throw tools::ToolError("the other tool did not say that it is done");
}

void Conversation::wait_for_end(double limit_s) {
  const auto end = Clock::now() + std::chrono::duration<double>(limit_s);
  while (socket_.state() != tools::TcpSocket::State::kClosed && Clock::now() < end) idle_();
}

}  // namespace ub::roce_peer
