// SPDX-License-Identifier: Apache-2.0
//
// The switch at memif sockets, whose clients are ports of the test's: what goes through shared memory, and what cannot.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "dataplane/plugin_port.h"
#include "tests/unit/fabric/frames.h"
#include "tests/unit/fabric/medium_counts.h"
#include "tests/unit/fabric/two_nics.h"
#include "tests/unit/threads.h"
#include "tools/fabric/medium.h"
#include "tools/fabric/offload.h"

namespace ub::fabric {
namespace {

using Frame = std::vector<std::byte>;

class MemifPort : public testing::Test {
 protected:
  MemifPort() {
    Draft draft;
    draft.nics = {{"a", "memif " + socket("a"), ""}, {"b", "memif " + socket("b"), ""}};
    config_ = finish(std::move(draft));
    medium_ = open_switch_medium(config_);
  }

  // Of each test another one: the driver keeps a socket for a moment after its device.
  static std::string socket(const std::string& name) {
    const char* test = testing::UnitTest::GetInstance()->current_test_info()->name();
    return "softub-" + std::to_string(::getpid()) + "-" + std::string(test).substr(0, 40) + "-" + name;
  }

  static Frame of_length(size_t bytes) {
    const Frame begin = frame_from_to(1, 2);
    Frame frame(bytes, static_cast<std::byte>(bytes));
    std::copy_n(begin.begin(), std::min(bytes, wire::kEthSize), frame.begin());
    return frame;
  }

  static std::unique_ptr<PluginPort> open_client(const std::string& name) {
    PluginPortOptions options;
    options.device = "net_memif_" + name + ",role=client,bsize=16384,socket=" + socket(name);
    options.raw = true;
    options.mtu = 8192;
    options.buffers = 512;
    std::string error;
    auto port = open_plugin_port(std::getenv("SOFTUB_DPDK_PLUGIN"), options, &error);
    EXPECT_NE(port, nullptr) << error;
    return port;
  }
  // Connected at both ends: a frame of the client comes to the switch.
  std::unique_ptr<PluginPort> connect(const std::string& name) {
    auto client = open_client(name);
    EXPECT_TRUE(client && test::eventually([&] { return client->has_link(); }));
    return client;
  }
  static void send(PluginPort& client, const Frame& frame) {
    std::byte* room = nullptr;
    ASSERT_TRUE(test::eventually([&] { return (room = client.tx_begin(frame.size())) != nullptr; }));
    std::copy(frame.begin(), frame.end(), room);
    client.tx_commit(room, frame.size());
    client.tx_flush({});
  }
  // What the switch has for others, after frames have come.
  std::vector<Frame> look(PluginPort& client, size_t wanted) {
    std::vector<Frame> seen;
    EXPECT_TRUE(test::eventually([&] {
      client.tx_flush({});
      medium_->look({}, [&](size_t, size_t, std::span<const std::byte> frame, uint64_t) {
        seen.emplace_back(frame.begin(), frame.end());
      });
      return seen.size() >= wanted;
    }));
    return seen;
  }
  // What comes of the switch, until there are so many.
  std::vector<Frame> receive(PluginPort& client, size_t wanted) {
    std::vector<Frame> got;
    EXPECT_TRUE(test::eventually([&] {
      medium_->look({}, [](auto&&...) {});
      RxFrame frames[kBurst];
      const size_t count = client.rx_burst({}, frames, kBurst);
      for (size_t i = 0; i < count; ++i) got.emplace_back(frames[i].data, frames[i].data + frames[i].bytes);
      client.rx_release();
      return got.size() >= wanted;
    })) << got.size();
    return got;
  }
  // The switch notices a link by itself.
  void wait_for_link(size_t nic, PluginPort& client) {
    EXPECT_TRUE(test::eventually([&] {
      const uint64_t before = count("no_link");
      medium_->send(nic, frame_from_to(9, 8), 0);
      return count("no_link") == before;
    }));
    receive(client, 1);
  }
  uint64_t count(const std::string& name) const { return count_of(*medium_, name); }

  Config config_;
  std::unique_ptr<Medium> medium_;
};

TEST_F(MemifPort, cannot_tell_that_a_frame_came) {
  EXPECT_TRUE(medium_->fds().empty());
  EXPECT_FALSE(medium_->next_look().is_never());
}

TEST_F(MemifPort, frames_of_any_length_pass_as_they_are) {
  auto a = connect("a"), b = connect("b");
  wait_for_link(0, *a);
  wait_for_link(1, *b);
  for (size_t bytes : {14u, 44u, 1500u, 8400u}) {
    const Frame frame = of_length(bytes);
    send(*a, frame);
    EXPECT_EQ(look(*a, 1), std::vector<Frame>{frame});
    medium_->send(1, frame, 0);
    EXPECT_EQ(receive(*b, 1), std::vector<Frame>{frame});
  }
  EXPECT_EQ(count("refused"), 0u);
}

TEST_F(MemifPort, keeps_more_frames_than_the_device_takes_at_once_and_their_order) {
  auto b = connect("b");
  wait_for_link(1, *b);
  constexpr size_t kFrames = 1500;  // longer than its ring
  std::vector<Frame> all;
  for (size_t i = 0; i < kFrames; ++i) {
    all.push_back(frame_from_to(1, 2));
    store_be32(all.back().data() + 20, static_cast<uint32_t>(i));
    medium_->send(1, all.back(), 0);
  }
  EXPECT_EQ(receive(*b, kFrames), all);
  EXPECT_EQ(count("refused"), 0u);
}

TEST_F(MemifPort, counts_and_drops_what_its_nic_cannot_take) {
  medium_->send(1, frame_from_to(1, 2), 0);
  EXPECT_EQ(count("no_link"), 1u);
  auto b = connect("b");
  wait_for_link(1, *b);
  const uint64_t without_link = count("no_link");
  medium_->send(1, Frame(9000), 0);
  EXPECT_EQ(count("refused"), 1u) << "longer than any packet";
  medium_->send(1, frame_from_to(1, 2), tag_of(Offload{.segmentation = 1}));
  EXPECT_EQ(count("refused"), 2u) << "a kernel left it to us to cut it";
  EXPECT_EQ(count("no_link"), without_link);
}

TEST_F(MemifPort, drops_what_is_too_short_for_ethernet) {
  auto a = connect("a");
  wait_for_link(0, *a);
  send(*a, of_length(13));
  send(*a, of_length(14));
  EXPECT_EQ(look(*a, 1), std::vector<Frame>{of_length(14)});
  EXPECT_EQ(count("unusable"), 1u);
}

TEST_F(MemifPort, a_nic_may_go_and_another_one_come_to_its_place) {
  for (int i = 0; i < 2; ++i) {
    auto b = connect("b");
    wait_for_link(1, *b);
    medium_->send(1, frame_from_to(1, 2), 0);
    EXPECT_EQ(receive(*b, 1), std::vector<Frame>{frame_from_to(1, 2)});
    b.reset();
    EXPECT_TRUE(test::eventually([&] {
      const uint64_t before = count("no_link");
      medium_->send(1, frame_from_to(1, 2), 0);
      return count("no_link") > before;
    }));
  }
}

}  // namespace
}  // namespace ub::fabric
