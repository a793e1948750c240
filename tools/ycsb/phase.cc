// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/phase.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "tools/common/tool_error.h"
#include "tools/ycsb/client.h"
#include "tools/ycsb/hdr_log.h"
#include "tools/ycsb/report.h"

namespace ub::ycsb {
namespace {

constexpr auto kLook = std::chrono::milliseconds(5);                  // how late the end of a phase may be noticed
constexpr uint64_t kStartNs = 1'000'000, kStartOfThreadNs = 100'000;  // until all threads are there

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// A log for each name of latencies, opened with the first that are to be written.
class Logs {
 public:
  Logs(std::string path, double epoch_s) : path_(std::move(path)), epoch_s_(epoch_s) {}

  void write(double begin_s, double length_s, const Latencies& latencies, const Settings& settings) {
    for_each_told(latencies, settings, [&](const std::string& name, const LatencyHistogram& histogram) {
      auto log = logs_.find(name);
      if (log == logs_.end()) log = logs_.emplace(name, HdrLog(path_ + name + ".hlog", epoch_s_)).first;
      log->second.write(begin_s, length_s, histogram);
    });
  }

 private:
  std::string path_;
  double epoch_s_;
  std::map<std::string, HdrLog> logs_;
};

class Phase {
 public:
  Phase(const Spec& spec, const Settings& settings, const PhaseOptions& options, Backend& backend, const TimeBase& time)
      : spec_(spec),
        settings_(settings),
        o_(options),
        time_(time),
        inserted_(options.load ? spec.insert_start : spec.record_count),
        total_(options.load                ? spec.insert_count
               : spec.operation_count != 0 ? spec.operation_count
                                           : UINT64_MAX) {
    if (settings.write_logs) {
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      logs_.emplace(settings.log_path + (options.load ? "load-" : ""), std::chrono::duration<double>(now).count());
    }
    const KeyChooser keys(spec);
    std::vector<std::unique_ptr<Store>> stores;
    for (uint32_t i = 0; i < settings.threads; ++i) stores.push_back(backend.connect(settings.window));
    start_ns_ = time.now_ns() + kStartNs + settings.threads * kStartOfThreadNs;
    for (uint32_t i = 0; i < settings.threads; ++i) add_client(i, keys, std::move(stores[i]));
  }

  PhaseResult run() {
    std::vector<std::jthread> threads;
    running_ = static_cast<uint32_t>(clients_.size());
    for (size_t i = 0; i < clients_.size(); ++i) threads.emplace_back([this, i] { run_client(i); });
    watch();
    threads.clear();  // waits for them
    for (const std::exception_ptr& error : errors_) {
      if (error) std::rethrow_exception(error);
    }
    return result();
  }

 private:
  void add_client(uint32_t thread, const KeyChooser& keys, std::unique_ptr<Store> store) {
    ClientOptions options;
    options.load = o_.load;
    options.operations = total_;
    if (total_ != UINT64_MAX) {
      options.operations = total_ / settings_.threads + (thread < total_ % settings_.threads ? 1 : 0);
    }
    if (settings_.max_seconds != 0) options.deadline_ns = start_ns_ + settings_.max_seconds * 1'000'000'000;
    options.window = settings_.window;
    options.intended = settings_.intended_latency;
    options.check_data = spec_.data_integrity;
    const uint64_t seed = spec_.seed * 2 * settings_.threads + thread * 2 + (o_.load ? 1 : 0);
    clocks_.emplace_back(time_);
    clients_.emplace_back(options, Requests(spec_, keys, inserted_, seed, o_.whole_records), inserted_,
                          Schedule(settings_.target, settings_.threads, thread, start_ns_), std::move(store),
                          clocks_.back(), stop_);
    errors_.emplace_back();
  }

  void run_client(size_t i) {
    try {
      clocks_[i].wait_until(start_ns_);
      clients_[i].run();
    } catch (...) {
      errors_[i] = std::current_exception();
      stop_ = true;
    }
    uint64_t now = time_.now_ns(), last = end_ns_.load();
    while (last < now && !end_ns_.compare_exchange_weak(last, now)) continue;
    running_.fetch_sub(1);
  }

  // Until all threads have ended; tells about each interval, if that is wanted.
  void watch() {
    const bool intervals = o_.status || settings_.write_logs;
    interval_begin_s_ = seconds(start_ns_);
    double next_s = intervals ? interval_begin_s_ + settings_.status_interval_s : 1e18;
    while (running_.load() > 0) {
      std::this_thread::sleep_for(kLook);
      if (tools::stop_requested) stop_ = true;
      if (seconds(time_.now_ns()) < next_s) continue;
      end_interval(seconds(time_.now_ns()), false);
      next_s += settings_.status_interval_s;
    }
    end_interval(seconds(end_ns_.load()), true);
  }
  void end_interval(double now_s, bool is_last) {
    interval_.clear();
    for (auto& client : clients_) client.recorder().take(&interval_);
    result_.latencies->merge(interval_);
    const double begin_s = interval_begin_s_ - seconds(start_ns_), length_s = now_s - interval_begin_s_;
    if (logs_) logs_->write(begin_s, length_s, interval_, settings_);
    const uint64_t ended = operations();
    if (o_.status && (!is_last || ended > told_)) {
      print_status({begin_s + length_s, length_s, ended, ended - told_, total_}, interval_, settings_);
    }
    told_ = ended;
    interval_begin_s_ = now_s;
  }

  uint64_t operations() const {
    uint64_t sum = 0;
    for (const auto& client : clients_) sum += client.ended();
    return sum;
  }

  PhaseResult result() {
    result_.load = o_.load;
    result_.seconds = seconds(end_ns_.load() - start_ns_);
    result_.operations = operations();
    for (const auto& client : clients_) {
      result_.checked += client.checked();
      result_.wrong += client.wrong();
      if (result_.first_wrong_key.empty()) result_.first_wrong_key = client.first_wrong_key();
      if (result_.first_error.empty()) result_.first_error = client.first_error();
      result_.draw_ns->merge(client.draw_ns());
    }
    return std::move(result_);
  }

  const Spec& spec_;
  const Settings& settings_;
  const PhaseOptions o_;
  const TimeBase& time_;
  KeySequence inserted_;
  const uint64_t total_;
  uint64_t start_ns_ = 0;
  std::optional<Logs> logs_;

  std::deque<ThreadClock> clocks_;  // one for each client
  std::deque<Client<ThreadClock>> clients_;
  std::deque<std::exception_ptr> errors_;  // one for each client
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> running_{0};
  std::atomic<uint64_t> end_ns_{0};

  Latencies interval_;
  double interval_begin_s_ = 0;
  uint64_t told_ = 0;
  PhaseResult result_;
};

}  // namespace

PhaseResult run_phase(const Spec& spec, const Settings& settings, const PhaseOptions& options, Backend& backend,
                      const TimeBase& time) {
  return Phase(spec, settings, options, backend, time).run();
}

}  // namespace ub::ycsb
