// SPDX-License-Identifier: Apache-2.0
//
// What tests/bench/instructions runs under callgrind for loads and stores by a lane: a program and the NIC of the
// target in turn, as the NIC's owner serves its lanes. The program's part is what softub_load() and softub_store() have
// inline; an answer is there when it is looked for.
//
//   count_lane --operation "load 64" --window 16 --count 256
//   count_lane --operation "load 64" --idle 512 --count 2000000     # beside silent lanes; also tells the time
//
// Collect measured_section() alone; what it calls are the stages.
#include <sys/socket.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/port_set.h"
#include "lib/ipc/unix_socket.h"
#include "lib/transport/core.h"
#include "lib/urma/aperture/lane_path.h"
#include "tests/unit/transport/zeroed_memory.h"

// What the inline calls leave, which does not happen here.
void softub_ring(softub_aperture_t*) { std::abort(); }
urma_cr_status_t softub_store_any(softub_aperture_t*, uint64_t, const void*, uint32_t) { std::abort(); }

namespace ub {
extern template class Core<PortSet>;
}

namespace ub::bench {
namespace {

using aperture::LanePath;

constexpr uint64_t kBase = 0x7000'0000;
constexpr uint32_t kLine = SOFTUB_LANE_LINE;
constexpr uint32_t kLines = 1024;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "count_lane: %s fails\n", what);
  std::exit(1);
}

class Exchange {
 public:
  Exchange(bool loads, uint32_t window, uint32_t idle)
      : loads_(loads),
        window_(window),
        core_memory_(Core<PortSet>::arena_bytes(CoreConfig{})),
        core_(CoreConfig{}, core_memory_.get(), ports_) {
    for (size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<uint8_t>(i * 7 + i / kLine);
    std::string error;
    check(ports_.lanes.open(true, &error), "opening lanes");
    path_ = LanePath::make(connect(), register_memory(), {}, &handle_, &error);
    check(path_ != nullptr, "mapping a lane");
    for (uint32_t i = 0; i < idle; ++i) connect(static_cast<int32_t>(i / 128));  // nobody looks whether they hang up
    ports_.lanes.adopt_pending(now_, [this](const LinkConfig& config) {
      const uint32_t link = core_.add_link(config);
      ports_.set_kind(link, LinkKind::kLane);
      return link;
    });
    ports_.lanes.prepare_sleep();  // and is awake from now on
    ports_.lanes.finish_sleep();
  }

  // `count` operations, in whole windows.
  void run(uint64_t count) {
    for (uint64_t done = 0; done < count; done += window_) {
      post_window();
      target_receives();
      initiator_receives();
    }
  }
  void check_bytes() const {
    if (loads_)
      check(std::equal(loaded_.begin(), loaded_.begin() + window_ * kLine, memory_.data() + last_at()), "a load");
    if (!loads_) check(std::equal(line_.begin(), line_.end(), memory_.data() + last_at()), "a store");
  }
  uint64_t packets() const { return ports_.lanes.counters().requests + ports_.lanes.counters().answers; }

 private:
  ipc::OpenedLane connect(int32_t process = -1) {
    int ends[2];
    check(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
    ports_.lanes.admit(ipc::Fd(ends[0]),
                       {ipc::kLaneMagic, ipc::kLaneVersion, sizeof(ipc::LaneHello), {}, 0, 0, process, 0});
    ipc::OpenedLane lane;
    lane.socket = ipc::Fd(ends[1]);
    lane.fence_needed = false;
    ipc::LaneReply reply;
    ipc::Fd fds[ipc::kMaxMessageFds];
    size_t bytes = 0, count = 0;
    ipc::receive_message(ends[1], std::as_writable_bytes(std::span(&reply, 1)), &bytes, fds, &count);
    check(count == 1, "opening a lane");
    lane.memory = std::move(fds[0]);
    return lane;
  }
  aperture::RemoteSegment register_memory() {
    SegmentConfig config;
    config.memory = reinterpret_cast<std::byte*>(memory_.data());
    config.address = config.local_address = kBase;
    config.length = memory_.size();
    config.access = kAccessRead | kAccessWrite;
    config.token = {true, 4711};
    config.direct = true;
    RegisteredSegment segment;
    check(core_.register_segment(config, &segment) == Status::kOk, "registering memory");
    return {kBase, memory_.size(), segment.token_id, true, 4711};
  }

  [[gnu::noinline]] void post_window() {
    at_ = next_at();
    for (uint32_t i = 0; i < window_; ++i) {
      if (loads_) {
        softub_lane_t* lane = &handle_.lane;
        softub_lane_send(lane, &lane->load, softub_lane_begin(lane, &lane->load, kBase + at_ + i * kLine));
        check(!softub_lane_must_ring(lane), "being awake");
      } else {
        check(softub_store(&handle_, at_ + i * kLine, line_.data(), kLine) == URMA_CR_SUCCESS, "a store");
      }
    }
  }
  // As the owner of a NIC's Core does (dataplane/worker.h).
  [[gnu::noinline]] void target_receives() {
    RxFrame frames[kBurst];
    const size_t requests = ports_.rx_lanes(frames, kBurst);
    for (size_t i = 0; i < requests; ++i) {
      core_.on_lane_frame(now_, frames[i].link, {frames[i].data, frames[i].bytes});
    }
    ports_.release_lanes();
  }
  [[gnu::noinline]] void initiator_receives() {
    if (!loads_) return check(path_->fence() == URMA_CR_SUCCESS, "a fence");
    softub_lane_t* lane = &handle_.lane;
    for (uint32_t i = 0; i < window_; ++i) {
      const uint32_t number = lane->answered++;
      check(softub_lane_answer(lane, number) == softub_lane_data_word(number), "finding an answer");
      std::memcpy(loaded_.data() + i * kLine, softub_lane_answer_data(lane, number), kLine);
    }
  }

  uint64_t next_at() const { return (at_ + window_ * kLine) % (memory_.size() / 2); }
  uint64_t last_at() const { return at_; }

  bool loads_;
  uint32_t window_;
  alignas(64) std::array<uint8_t, kLines * kLine> memory_;
  alignas(64) std::array<uint8_t, 64 * kLine> loaded_{};
  alignas(64) std::array<uint8_t, kLine> line_{1, 2, 3};
  PortSet ports_;
  ZeroedMemory core_memory_;
  Core<PortSet> core_;
  softub_aperture_t handle_{};
  std::unique_ptr<LanePath> path_;
  Instant now_{1'000'000};
  uint64_t at_ = 0;
};

// A call of its own, found by name.
[[gnu::noinline]] void measured_section(Exchange& exchange, uint64_t count) { exchange.run(count); }

int run(const std::string& operation, uint32_t window, uint32_t idle, uint64_t count) {
  const auto exchange = std::make_unique<Exchange>(operation == "load 64", window, idle);
  exchange->run(idle == 0 ? 2 * window : 2 * LanePort::kIdleRounds * window);
  const uint64_t before = exchange->packets();
  const auto began = std::chrono::steady_clock::now();
  measured_section(*exchange, count);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
  std::printf("packets: %llu\n", static_cast<unsigned long long>(exchange->packets() - before));
  if (idle != 0) std::printf("ns for each operation: %.1f\n", took.count() / static_cast<double>(count));
  exchange->check_bytes();
  return 0;
}

}  // namespace
}  // namespace ub::bench

int main(int argc, char** argv) {
  CLI::App app{"Loads or stores by a lane, for a profiler"};
  std::string operation;
  uint32_t window = 1, idle = 0;
  uint64_t count = 256;
  app.add_option("--operation", operation, "\"load 64\" or \"store 64\"")
      ->required()
      ->check(CLI::IsMember({"load 64", "store 64"}));
  app.add_option("--window", window, "operations sent together")->check(CLI::Range(1, 32));
  app.add_option("--idle", idle, "more lanes, without requests")->check(CLI::Range(0, 900));
  app.add_option("--count", count, "operations, a multiple of the window");
  CLI11_PARSE(app, argc, argv);
  return ub::bench::run(operation, window, idle, count);
}
