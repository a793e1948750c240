// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tools/common/probe.h"
#include "tools/common/stats_directory.h"
#include "tools/common/tool_error.h"

namespace ub::tools {
namespace {

constexpr const char* kHead =
    "time_s,unix_s,row,tpn,path,local,remote,live,completions,bytes,gbit_s,p50_us,p99_us,congestion,rtt_us,window,"
    "rate_mbit_s,in_flight,marks,lost,deaths,tx_packets,rx_packets,age_ms";

ToolError cannot_write(const std::string& path, const std::string& why) {
  return ToolError(fmt::format("cannot write {}: {}", path, why));
}

uint64_t wall_ns() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
}

// The page of the NIC that this process uses, or null: then there are no lines of channels.
std::unique_ptr<StatsPageReader> find_page(uint32_t uasid) {
  std::string error;
  const auto directory = stats_directory(&error);
  if (!directory) return nullptr;
  for (const std::string& name : list_stats_pages(*directory)) {
    auto page = StatsPageReader::open(stats_page_path(*directory, name), &error);
    StatsReport report;
    if (page && page->alive() && page->read(&report, &error) && report.uasid == uasid) return page;
  }
  return nullptr;
}

std::string endpoint_text(const uint8_t (&ip)[16], uint16_t port) {
  Eid eid;
  std::copy(ip, ip + 16, eid.bytes.begin());
  const std::string text = eid_text(eid);
  return text.find(':') == std::string::npos ? fmt::format("{}:{}", text, port) : fmt::format("[{}]:{}", text, port);
}

double us_of(int64_t ns) { return static_cast<double>(ns) / 1000; }
double mbit_of(uint32_t kbytes_per_second) { return static_cast<double>(kbytes_per_second) * 8 / 1000; }

std::string channel_fields(const StatsChannel& c) {
  const auto marks = c.counts[static_cast<size_t>(ChannelCount::kMarks)];
  return fmt::format("channel,{},,,{},,,,,,,{},{:.3f},{},{:.1f},{},{},{},,{},{}", c.tpn,
                     endpoint_text(c.remote_ip, c.remote_port),
                     std::string_view(c.congestion_control, strnlen(c.congestion_control, sizeof c.congestion_control)),
                     us_of(c.smoothed_rtt_ns), c.window_packets, mbit_of(c.rate_kbytes_per_second),
                     in_flight_of(c), marks, c.lost, c.tx_packets, c.rx_packets);
}

std::string path_fields(const StatsPath& p) {
  return fmt::format("path,{},{},{},{},{},,,,,,,{:.3f},{},{:.1f},{},{},{},{},{},{}", p.tpn, p.number,
                     endpoint_text(p.local_ip, p.local_port), endpoint_text(p.remote_ip, p.remote_port), p.live,
                     us_of(p.smoothed_rtt_ns), p.window_packets, mbit_of(p.rate_kbytes_per_second), p.in_flight,
                     p.marks, p.lost, p.deaths, p.tx_packets, p.rx_packets);
}

}  // namespace

void want_statistics_for_trace(const Options& o) {
  if (o.trace_file.empty()) return;
  const auto us = std::max<int64_t>(static_cast<int64_t>(o.trace_interval_ms * 500), 1000);
  setenv("SOFTUB_LOG_STATS_INTERVAL", fmt::format("{}us", us).c_str(), 0);
}

Trace::Trace(const Options& o, const Progress& progress, uint32_t uasid)
    : progress_(progress),
      path_(o.trace_file),
      interval_(std::chrono::microseconds(static_cast<int64_t>(o.trace_interval_ms * 1000))),
      us_per_tick_(Ticks::ns_per_tick() / 1000 / (o.ping_pong() ? 2 : 1)),
      page_(find_page(uasid)) {
  if (!page_) fmt::print(stderr, "urma_perf: the trace has no channels: no statistics page of this NIC was found\n");
  std::error_code ignored;
  if (std::filesystem::is_fifo(path_, ignored)) throw cannot_write(path_, "a pipe would keep the program waiting");
  file_ = std::fopen(path_.c_str(), "we");
  if (file_ == nullptr) throw cannot_write(path_, std::strerror(errno));
  write(std::string(kHead) + "\n");
  thread_ = std::thread([this] { sample_until_end(); });
}

Trace::~Trace() {
  stop();
  if (file_ != nullptr) std::fclose(file_);
}

void Trace::begin() {
  {
    std::lock_guard guard(mutex_);
    begun_ = true;
  }
  changed_.notify_one();
}

void Trace::end() {
  stop();
  if (std::fclose(std::exchange(file_, nullptr)) != 0 && error_ == 0) error_ = errno;
  if (error_ != 0) throw cannot_write(path_, std::strerror(error_));
}

void Trace::stop() {
  {
    std::lock_guard guard(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// ---- the thread ------------------------------------------------------------------------------------------------

void Trace::sample_until_end() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return begun_ || ending_; });
  if (!begun_) return;
  begun_at_ = sampled_at_ = Clock::now();
  for (auto next = begun_at_ + interval_; !ending_; next = std::max(next + interval_, Clock::now())) {
    changed_.wait_until(lock, next, [this] { return ending_; });
    lock.unlock();
    sample();
    lock.lock();
  }
}

void Trace::sample() {
  const auto now = Clock::now();
  const auto seconds_since = [&](Clock::time_point then) { return std::chrono::duration<double>(now - then).count(); };
  const std::string at = fmt::format("{:.6f},{:.6f}", seconds_since(begun_at_), static_cast<double>(wall_ns()) / 1e9);
  write_program(at, seconds_since(sampled_at_));
  if (page_) write_nic(at);
  sampled_at_ = now;
}

void Trace::write_program(const std::string& at, double seconds) {
  const uint64_t requests = progress_.requests(), bytes = progress_.bytes();
  const double gbit_s = static_cast<double>(bytes - bytes_) * 8 / 1e9 / std::max(seconds, 1e-9);
  latest_.clear();
  times_.take(&times_seen_, [this](uint32_t ticks) { latest_.push_back(ticks); });
  std::string times = ",";
  if (!latest_.empty()) {
    std::sort(latest_.begin(), latest_.end());
    const auto us = [this](size_t percent) { return latest_[(latest_.size() - 1) * percent / 100] * us_per_tick_; };
    times = fmt::format("{:.3f},{:.3f}", us(50), us(99));
  }
  write(fmt::format("{},program,,,,,,{},{},{:.4f},{},,,,,,,,,,,\n", at, requests - requests_, bytes - bytes_, gbit_s,
                    times));
  requests_ = requests;
  bytes_ = bytes;
}

void Trace::write_nic(const std::string& at) {
  StatsReport report;
  std::string error;
  if (!page_->read(&report, &error)) return;
  const uint64_t now = wall_ns();
  const double age_ms = now > report.updated_ns ? static_cast<double>(now - report.updated_ns) / 1e6 : 0;
  for (const StatsChannel& c : report.channels) write(fmt::format("{},{},{:.3f}\n", at, channel_fields(c), age_ms));
  for (const StatsPath& p : report.paths) write(fmt::format("{},{},{:.3f}\n", at, path_fields(p), age_ms));
}

// What could not be written is said at the end: end() asks for it, and a thread may not throw.
void Trace::write(const std::string& text) {
  if (std::fputs(text.c_str(), file_) == EOF && error_ == 0) error_ = errno;
}

}  // namespace ub::tools
