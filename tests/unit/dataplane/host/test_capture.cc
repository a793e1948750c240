// SPDX-License-Identifier: Apache-2.0
//
// A capture in the hands of the ports and of the Core: what is kept of which frame, and what is said of it. And ports
// that are captured.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/capture.h"
#include "dataplane/port_set.h"
#include "lib/impair/text.h"
#include "tests/unit/dataplane/host/pcapng_reader.h"
#include "tests/unit/dataplane/host/test_port.h"

namespace ub {
namespace {

using namespace test;

constexpr uint32_t kWire = 2, kOwn = 5;
constexpr Instant kNow{1'000'000'000};

class CaptureTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/capture_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override {
    capture.reset();
    std::filesystem::remove_all(directory);
  }

  void begin(std::string_view filter = "", bool impaired = false, uint32_t snap = 0) {
    CaptureFilter wanted;
    std::string why;
    ASSERT_TRUE(wanted.parse(filter, &why)) << why;
    const CaptureTarget target{.path = directory + "/x.pcapng", .snap = snap};
    capture = std::make_unique<Capture>(wanted, target, impaired, clock, [this](uint32_t link) {
      return Capture::LinkText{"link." + std::to_string(link), "generation " + std::to_string(generation),
                               link != kOwn};
    });
    ASSERT_TRUE(capture->start(&why)) << why;
    while (capture->status().starts_with("ok opening")) std::this_thread::yield();
  }
  std::vector<PcapngBlock> end() {
    capture->stop();
    while (!capture->has_ended()) std::this_thread::yield();
    return read_pcapng(read_file(directory + "/x.pcapng"));
  }
  // A frame that the ports have, until the test ends.
  RxFrame frame(uint8_t number, uint32_t link = kWire, uint32_t bytes = 60) {
    frames.emplace_back(bytes, std::byte{number});
    return {frames.back().data(), bytes, link};
  }
  // The Core gets it, and notes these drops.
  void handle(const RxFrame& f, std::initializer_list<Counter> drops = {}) {
    capture->before_frame(f.link, {f.data, f.bytes});
    for (const Counter why : drops) capture->hear(0, {Stage::kPacketDropped, 0, static_cast<uint32_t>(why)});
    capture->after_frame();
  }
  void receive(const std::vector<RxFrame>& all) { capture->received(all); }

  std::string directory;
  TscClock clock;
  std::unique_ptr<Capture> capture;
  std::deque<std::vector<std::byte>> frames;
  int generation = 1;
};

TEST_F(CaptureTest, both_directions_with_links_as_interfaces) {
  begin();
  const uint64_t before = TscClock::wall_ns();
  receive({frame(1), frame(2, 7)});
  capture->sent(kWire, std::vector(80, std::byte{3}));
  capture->publish();
  const auto blocks = end();
  const auto interfaces = of_type(blocks, kInterface), packets = of_type(blocks, kPacket);
  ASSERT_EQ(interfaces.size(), 2u);
  EXPECT_EQ(interfaces[0].text(2), "link.2");
  EXPECT_EQ(interfaces[1].text(2), "link.7");
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_EQ(packets[0].option<uint32_t>(2), 1u);
  EXPECT_EQ(packets[1].number(0), 1u) << "the other interface";
  EXPECT_EQ(packets[2].option<uint32_t>(2), 2u);
  EXPECT_EQ(packets[2].number(16), 80u);
  EXPECT_GE(packets[0].time_ns() + 1'000'000, before);
  EXPECT_LE(packets[2].time_ns(), TscClock::wall_ns() + 1'000'000);
  EXPECT_LE(packets[0].time_ns(), packets[2].time_ns());
}

TEST_F(CaptureTest, the_frame_that_the_core_drops_is_the_one_with_the_comment) {
  begin();
  const RxFrame a = frame(1), b = frame(2), c = frame(3), d = frame(4);
  receive({a, b, c, d});
  capture->hear(0, {Stage::kPacketDropped, 0, 1});  // of nobody
  handle(a);
  handle(b, {Counter::kRxDropUnknownTpn});
  capture->hear(0, {Stage::kPacketDropped, 0, 1});
  handle(c, {Counter::kRxDropBadIcrc, Counter::kRxDropNotIp});
  handle(d);
  capture->publish();
  const auto packets = of_type(end(), kPacket);
  ASSERT_EQ(packets.size(), 4u);
  EXPECT_EQ(packets[0].text(1), "");
  EXPECT_EQ(packets[1].text(1), "dropped: rx.drop.unknown_tpn");
  EXPECT_EQ(packets[2].text(1), "dropped: rx.drop.bad_icrc") << "the first reason";
  EXPECT_EQ(packets[3].text(1), "");
}

TEST_F(CaptureTest, of_frames_that_are_not_wanted_nothing_is_said) {
  begin("link=3");
  const RxFrame a = frame(1), b = frame(2, 3);
  receive({a, b});
  handle(a, {Counter::kRxDropNotIp});
  handle(b);
  capture->publish();
  const auto packets = of_type(end(), kPacket);
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(packets[0].text(1), "");
}

TEST_F(CaptureTest, only_those_that_are_dropped_for_some_reason) {
  begin("dropped=rx.drop.bad_*");
  const RxFrame a = frame(1), b = frame(2), c = frame(3);
  receive({a, b, c});
  capture->sent(kWire, std::vector(80, std::byte{3}));
  handle(a);
  handle(b, {Counter::kRxDropBadIcrc});
  handle(c, {Counter::kRxDropUnknownTpn});
  capture->publish();
  const auto packets = of_type(end(), kPacket);
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(packets[0].packet[0], 2);
  EXPECT_EQ(packets[0].text(1), "dropped: rx.drop.bad_icrc");
}

// Behind impairments the Core gets copies.
TEST_F(CaptureTest, what_the_core_drops_behind_impairments_is_kept_as_the_core_saw_it) {
  begin("", true);
  const RxFrame came = frame(1), changed = frame(9), own = frame(3, kOwn);
  receive({came, own});
  handle(changed, {Counter::kRxDropBadIcrc});
  handle(own, {Counter::kRxDropNotIp});
  capture->publish();
  const auto blocks = end();
  const auto interfaces = of_type(blocks, kInterface), packets = of_type(blocks, kPacket);
  ASSERT_EQ(interfaces.size(), 3u);
  EXPECT_EQ(interfaces[2].text(2), "link.2.behind");
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_EQ(packets[0].text(1), "");
  EXPECT_EQ(packets[1].text(1), "dropped: rx.drop.not_ip") << "frames to itself are not impaired";
  EXPECT_EQ(packets[2].packet[0], 9);
  EXPECT_EQ(packets[2].number(0), 2u);
  EXPECT_EQ(packets[2].text(1), "dropped: rx.drop.bad_icrc");
}

TEST_F(CaptureTest, the_beginnings_of_frames_with_their_true_lengths) {
  begin("", false, 64);
  receive({frame(1, kWire, 1500), frame(2, kWire, 60)});
  capture->publish();
  const auto blocks = end();
  const auto packets = of_type(blocks, kPacket);
  EXPECT_EQ(of_type(blocks, kInterface)[0].number(4), 64u);
  EXPECT_EQ(packets[0].packet.size(), 64u);
  EXPECT_EQ(packets[0].number(16), 1500u);
  EXPECT_EQ(packets[1].packet.size(), 60u);
}

TEST_F(CaptureTest, a_link_whose_number_is_used_again_is_another_interface) {
  begin();
  receive({frame(1)});
  capture->forget(kWire);
  generation = 2;
  receive({frame(2)});
  capture->publish();
  const auto interfaces = of_type(end(), kInterface);
  ASSERT_EQ(interfaces.size(), 2u);
  EXPECT_EQ(interfaces[0].text(3), "generation 1");
  EXPECT_EQ(interfaces[1].text(3), "generation 2");
}

// ---- the calls of the Core --------------------------------------------------------------------------------------

using Log = std::vector<std::string>;

struct LoggingCore {
  void on_packet(Instant, uint32_t link, std::span<const std::byte>) {
    log.push_back("packet " + std::to_string(link));
  }
  void on_lane_frame(Instant, uint32_t, std::span<const std::byte>) { log.push_back("lane frame"); }
  Log& log;
};

struct LoggingWatcher final : CoreWatcher {
  LoggingWatcher(Log& to, std::string called) : log(to), name(std::move(called)) {}
  void before_frame(uint32_t link, std::span<const std::byte>) override {
    log.push_back(name + " before " + std::to_string(link));
  }
  void after_frame() override { log.push_back(name + " after"); }
  Log& log;
  std::string name;
};

TEST(WatchedCore, watchers_hear_of_a_frame_before_and_after_the_core) {
  Log log;
  LoggingCore core{log};
  LoggingWatcher a(log, "a"), b(log, "b");
  const std::vector<CoreWatcher*> watchers{&a, &b};
  WatchedCore<LoggingCore> entry(core, watchers);
  entry.on_packet(kNow, 3, {});
  EXPECT_EQ(log, (Log{"a before 3", "b before 3", "packet 3", "a after", "b after"}));
  log.clear();
  entry.on_lane_frame(kNow, 4, {});
  EXPECT_EQ(log, (Log{"a before 4", "b before 4", "lane frame", "a after", "b after"}));
}

// ---- a set of ports --------------------------------------------------------------------------------------------

struct OwnFrames {
  OwnFrames() {
    set.loopback.set_link(kOwn);
    set.set_kind(kOwn, LinkKind::kLoopback);
  }
  void send(uint8_t number) {
    std::byte* frame = set.tx_begin(kOwn, 64);
    ASSERT_NE(frame, nullptr);
    std::fill_n(frame, 64, std::byte{number});
    set.tx_commit(kOwn, frame, 64);
    set.tx_flush(kNow);
  }
  size_t receive() {
    RxFrame in[kBurst];
    const size_t n = set.rx_burst(kNow, in, kBurst);
    set.rx_release();
    set.tx_flush(kNow);
    return n;
  }
  PortSet set;
};

TEST_F(CaptureTest, ports_tell_of_frames_from_when_they_are_told_to_until_they_are_not) {
  begin();
  OwnFrames ports;
  ports.send(1);
  ports.set.set_capture(capture.get());
  EXPECT_EQ(ports.receive(), 1u);
  std::byte* open = ports.set.tx_begin(kOwn, 64);
  ports.send(2);
  std::byte* committed_later = ports.set.tx_begin(kOwn, 64);
  ports.set.tx_abort(kOwn, open);
  ports.set.set_capture(nullptr);
  std::fill_n(committed_later, 64, std::byte{3});
  ports.set.tx_commit(kOwn, committed_later, 64);
  ports.set.tx_flush(kNow);
  EXPECT_EQ(ports.receive(), 2u);
  const auto packets = of_type(end(), kPacket);
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0].packet, std::string(64, 1)) << "the one that was received";
  EXPECT_EQ(packets[0].option<uint32_t>(2), 1u);
  EXPECT_EQ(packets[1].packet, std::string(64, 2)) << "the one that was sent; the aborted one never left";
  EXPECT_EQ(packets[1].option<uint32_t>(2), 2u);
}

// A port with impaired wires.
struct Impaired {
  Impaired(std::string_view send, std::string_view receive) {
    auto own = std::make_unique<TestPort>();
    port = own.get();
    set.plugins.push_back(std::move(own));
    set.impair(std::make_unique<ImpairedWires>(impair::parse(send).script.value(),
                                               impair::parse(receive).script.value(), 1, kNow));
    set.set_plugin(kWire, 0);
  }
  void send(uint8_t number) {
    std::byte* frame = set.tx_begin(kWire, 64);
    ASSERT_NE(frame, nullptr);
    std::fill_n(frame, 64, std::byte{number});
    set.tx_commit(kWire, frame, 64);
  }
  size_t receive(Instant now) {
    RxFrame in[kBurst];
    const size_t n = set.rx_burst(now, in, kBurst);
    set.rx_release();
    set.tx_flush(now);
    return n;
  }
  PortSet set;
  TestPort* port;
};

TEST_F(CaptureTest, frames_are_kept_when_they_really_leave_and_as_they_came) {
  begin("", true);
  Impaired ports("delay=5us", "loss=100%");
  ports.set.set_capture(capture.get());
  ports.send(1);
  ports.set.tx_flush(kNow);
  ports.port->arriving = {2};
  EXPECT_EQ(ports.receive(kNow), 0u) << "it is lost behind the port";
  ports.set.tx_flush(kNow + microseconds(5));
  ports.set.set_capture(nullptr);
  EXPECT_EQ(ports.port->left, std::vector<uint8_t>{1});
  const auto packets = of_type(end(), kPacket);
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0].packet, std::string(64, 2));
  EXPECT_EQ(packets[0].option<uint32_t>(2), 1u);
  EXPECT_EQ(packets[1].packet, std::string(64, 1)) << "it left 5 us later";
  EXPECT_EQ(packets[1].option<uint32_t>(2), 2u);
}

TEST_F(CaptureTest, frames_that_the_impairments_lose_never_leave) {
  begin("", true);
  Impaired ports("loss=100%", "");
  ports.set.set_capture(capture.get());
  ports.send(1);
  ports.set.tx_flush(kNow);
  ports.set.set_capture(nullptr);
  EXPECT_TRUE(of_type(end(), kPacket).empty());
}

TEST_F(CaptureTest, what_comes_to_a_port_that_a_fault_took_down_is_dropped_for_that) {
  begin("", true);
  Impaired ports("", "");
  ports.set.set_capture(capture.get());
  ports.set.set_down(true);
  ports.port->arriving = {2};
  EXPECT_EQ(ports.receive(kNow), 0u);
  ports.set.set_capture(nullptr);
  const auto packets = of_type(end(), kPacket);
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(packets[0].text(1), std::string("dropped: ") + counter_name(Counter::kInjectedFrames));
}

}  // namespace
}  // namespace ub
