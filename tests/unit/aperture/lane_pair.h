// SPDX-License-Identifier: Apache-2.0
// lane_pair.h - both ends of lanes in one process: a NIC that serves, driven by whoever waits for it, and programs.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/lane_port.h"
#include "lib/ipc/unix_socket.h"
#include "lib/urma/aperture/lane_path.h"
#include "tests/unit/transport/core_pair.h"
#include "tests/unit/transport/direct_segment.h"

namespace ub::aperture {

inline constexpr uint64_t kBase = 0x7000'0000;
inline constexpr uint32_t kToken = 0x5EC2E7;

/// A NIC with memory that programs load from.
class ServingNic {
 public:
  explicit ServingNic(size_t bytes = 65536) : memory(bytes), node_(config()) {
    std::iota(reinterpret_cast<uint8_t*>(memory.data()), reinterpret_cast<uint8_t*>(memory.data() + bytes), 0);
    std::string error;
    EXPECT_TRUE(port.open(true, &error)) << error;
    EXPECT_EQ(node_.core->alloc_token_id(&token_id), Status::kOk);
  }

  /// Registers bytes of the memory.
  RemoteSegment add(uint64_t offset, uint64_t bytes, uint8_t access = kAccessRead | kAccessWrite) {
    SegmentConfig config = direct_segment(memory.data(), kBase, offset, bytes, access);
    config.token_id = token_id;
    config.token = {true, kToken};
    EXPECT_EQ(node_.core->register_segment(config, &registered), Status::kOk);
    return {kBase + offset, bytes, token_id, true, kToken};
  }
  void unregister() { EXPECT_EQ(node_.core->unregister_segment(now, registered.handle), Status::kOk); }

  /// A program's end of a new lane.
  ipc::OpenedLane connect(uint32_t version = ipc::kLaneVersion, int32_t process = 1) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    ipc::LaneHello hello{};
    hello.magic = ipc::kLaneMagic;
    hello.version = version;
    hello.bytes = sizeof hello;
    hello.process = process;
    port.admit(ipc::Fd(ends[0]), hello);
    ipc::OpenedLane lane;
    lane.socket = ipc::Fd(ends[1]);
    ipc::Fd fds[ipc::kMaxMessageFds];
    size_t bytes = 0, count = 0;
    EXPECT_EQ(ipc::receive_message(ends[1], std::as_writable_bytes(std::span(&reply, 1)), &bytes, fds, &count),
              ipc::SocketStatus::kOk);
    EXPECT_EQ(bytes, sizeof reply);
    if (count == 1) lane.memory = std::move(fds[0]);
    return lane;
  }

  /// One round: requests in, answers out; how many.
  size_t drive() {
    if (!serves) return 0;
    port.poll_control(now);
    if (port.has_pending()) look_at_lanes();
    RxFrame frames[kBurst];
    const size_t count = port.rx_burst(frames, kBurst);
    for (size_t i = 0; i < count; ++i) {
      node_.core->on_lane_frame(now, frames[i].link, {frames[i].data, frames[i].bytes});
      send_answers(frames[i].link);
    }
    port.rx_release();
    served += count;
    return count;
  }
  uint64_t counted(Counter c) const { return node_.core->counters()[c]; }

  std::vector<std::byte> memory;
  LanePort port;
  uint32_t token_id = 0;
  RegisteredSegment registered;
  ipc::LaneReply reply{};
  std::atomic<bool> serves = true;
  size_t served = 0, links_down = 0;
  Instant now{1'000'000};

 private:
  static CoreConfig config() {
    CoreConfig config = CoreNode::small_config(1);
    config.max_links = 512;
    return config;
  }
  void look_at_lanes() {
    port.adopt_pending(now, [&](const LinkConfig& config) { return node_.core->add_link(config); });
    std::vector<uint32_t> dead;
    port.take_dead_lanes(&dead);
    for (uint32_t link : dead) {
      node_.core->link_down(now, link);
      port.drop_lane(link);
      ++links_down;
    }
  }
  void send_answers(uint32_t link) {
    auto& frames = node_.host.frames;
    for (; !frames.empty(); frames.pop_front()) {
      std::byte* frame = port.tx_begin(link, frames.front().size());
      ASSERT_NE(frame, nullptr);
      std::memcpy(frame, frames.front().data(), frames.front().size());
      port.tx_commit(link, frame, frames.front().size());
    }
  }

  CoreNode node_;
};

/// A program with a lane; it drives the NIC while it waits, unless somebody else does.
struct Program {
  Program(ServingNic& nic, const RemoteSegment& segment, Duration timeout = seconds(4), bool drives = true) {
    std::string error;
    LanePath::Options options;
    options.timeout = timeout;
    if (drives) options.drive = [&nic] { nic.drive(); };
    path = LanePath::make(nic.connect(), segment, std::move(options), &pub, &error);
    EXPECT_NE(path, nullptr) << error;
  }

  urma_cr_status_t load(uint64_t at, void* to, uint32_t bytes) {
    const LoadBlock block{at, to, bytes};
    return path->load({&block, 1});
  }
  urma_cr_status_t store(uint64_t at, const void* from, uint32_t bytes, const uint64_t* enables = nullptr) {
    return path->store({at, from, bytes, enables});
  }

  softub_aperture_t pub{};
  std::unique_ptr<LanePath> path;
};

}  // namespace ub::aperture
