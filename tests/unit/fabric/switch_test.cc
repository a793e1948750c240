// SPDX-License-Identifier: Apache-2.0
//
// The switch, at whose ports the test is: where frames go, when it looks at ports that cannot tell, what it counts.
#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "lib/transport/wire/link_header.h"
#include "tests/unit/fabric/frames.h"
#include "tests/unit/fabric/medium_counts.h"
#include "tools/fabric/look_pause.h"
#include "tools/fabric/switch_medium.h"

namespace ub::fabric {
namespace {

using Frame = std::vector<std::byte>;

class TestPort final : public SwitchPort {
 public:
  explicit TestPort(int fd) : fd_(fd) {}

  int fd() const override { return fd_; }
  bool receive(const Receiver& receiver) override {
    if (came.empty()) return false;
    receiver(came.front(), kTag);
    came.pop_front();
    return true;
  }
  void send(std::span<const std::byte> frame, uint64_t tag) override {
    EXPECT_EQ(tag, kTag);
    sent.emplace_back(frame.begin(), frame.end());
  }
  PortCounts counts() const override { return counted; }

  static constexpr uint64_t kTag = 0x1234;
  std::deque<Frame> came;
  std::vector<Frame> sent;
  PortCounts counted;

 private:
  int fd_;
};

class Switch : public testing::Test {
 protected:
  // Ports with these descriptors.
  void plug(const std::vector<int>& fds) {
    std::vector<std::unique_ptr<SwitchPort>> all;
    for (int fd : fds) {
      ports_.push_back(new TestPort(fd));
      all.emplace_back(ports_.back());
    }
    medium_ = make_switch(std::move(all));
  }
  // A frame comes at NIC `from`, and the links carry it at once. Returns the NICs that it goes to.
  std::vector<size_t> pass(size_t from, const Frame& frame) {
    ports_[from]->came.push_back(frame);
    std::vector<size_t> receivers;
    medium_->receive(ports_[from]->fd(), carry(&receivers));
    return receivers;
  }
  Medium::Sink carry(std::vector<size_t>* receivers) {
    return [this, receivers](size_t, size_t to, std::span<const std::byte> frame, uint64_t tag) {
      receivers->push_back(to);
      medium_->send(to, frame, tag);
    };
  }
  uint64_t count(const std::string& name) const { return count_of(*medium_, name); }

  std::vector<TestPort*> ports_;  // of medium_
  std::unique_ptr<Medium> medium_;
};

TEST_F(Switch, floods_a_frame_until_its_receiver_was_seen) {
  plug({10, 11, 12});
  EXPECT_EQ(pass(0, frame_from_to(1, 2)), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(pass(1, frame_from_to(2, 1)), (std::vector<size_t>{0}));
  EXPECT_EQ(pass(0, frame_from_to(1, 2)), (std::vector<size_t>{1}));
  EXPECT_EQ(pass(2, frame_from_to(3, 0xff, 0xff)), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(count("flooded"), 2u);
  EXPECT_EQ(ports_[1]->sent.size(), 3u);
  EXPECT_EQ(ports_[1]->sent[0], frame_from_to(1, 2));
}

// Stores must not come late or twice. What goes by CTP may.
TEST_F(Switch, passes_no_frames_of_loads_and_stores_on) {
  plug({10, 11});
  Frame frame = frame_from_to(1, 2);
  store_be16(frame.data() + 12, wire::kEtherTypeUb);
  wire::LinkHeader header;
  header.cfg = wire::kCfgLoadStore;
  header.write(frame.data() + 14);
  EXPECT_EQ(pass(0, frame), std::vector<size_t>{});
  EXPECT_EQ(count("no_bypass"), 1u);
  header.cfg = wire::kCfgNoncoherent;
  header.write(frame.data() + 14);
  EXPECT_EQ(pass(0, frame), std::vector<size_t>{1});
}

TEST_F(Switch, a_frame_for_who_is_behind_the_same_port_goes_nowhere) {
  plug({10, 11});
  pass(0, frame_from_to(1, 9));
  EXPECT_EQ(pass(0, frame_from_to(2, 1)), std::vector<size_t>{});
}

TEST_F(Switch, joins_ports_that_can_tell_of_frames_and_those_that_cannot) {
  plug({-1, 11, -1});
  EXPECT_EQ(medium_->fds(), std::vector<int>{11});
  ports_[0]->came.push_back(frame_from_to(1, 7));
  ports_[2]->came.push_back(frame_from_to(3, 1));
  std::vector<size_t> receivers;
  medium_->look(Instant{1}, carry(&receivers));
  EXPECT_EQ(receivers, (std::vector<size_t>{1, 2, 0}));
  EXPECT_EQ(pass(1, frame_from_to(2, 3)), std::vector<size_t>{2});
}

TEST_F(Switch, is_never_to_look_where_all_ports_can_tell) {
  plug({10, 11});
  EXPECT_TRUE(medium_->next_look().is_never());
}

TEST_F(Switch, looks_more_and_more_rarely_until_a_frame_comes_or_goes) {
  plug({-1, -1});
  std::vector<size_t> receivers;
  const Instant start{5};
  EXPECT_LE(medium_->next_look(), start + LookPause::kLeast);
  Duration pause{};
  for (int look = 0; look < 20; ++look) {
    medium_->look(start, carry(&receivers));
    EXPECT_GE(medium_->next_look() - start, std::min(pause * 2, LookPause::kMost));
    pause = medium_->next_look() - start;
  }
  EXPECT_EQ(pause, LookPause::kMost);
  ports_[1]->came.push_back(frame_from_to(1, 2));
  medium_->look(start, [](auto&&...) {});
  EXPECT_EQ(medium_->next_look(), start + LookPause::kLeast) << "one came";
  for (int look = 0; look < 20; ++look) medium_->look(start, carry(&receivers));
  medium_->send(0, frame_from_to(1, 2), TestPort::kTag);
  EXPECT_EQ(medium_->next_look(), start + LookPause::kLeast) << "one went";
}

TEST_F(Switch, counts_what_its_ports_count) {
  plug({10, 11});
  ports_[0]->counted = {.unusable = 1, .refused = 2, .no_link = 3};
  ports_[1]->counted = {.unusable = 10, .refused = 20, .no_link = 30};
  EXPECT_EQ(count("unusable"), 11u);
  EXPECT_EQ(count("refused"), 22u);
  EXPECT_EQ(count("no_link"), 33u);
}

}  // namespace
}  // namespace ub::fabric
