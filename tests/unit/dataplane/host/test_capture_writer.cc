// SPDX-License-Identifier: Apache-2.0
//
// How copies of frames get from the ring into a pcap-ng file, and what becomes of them where they do not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/capture_ring.h"
#include "dataplane/capture_writer.h"
#include "dataplane/pcapng.h"
#include "lib/base/counters.h"
#include "tests/unit/dataplane/host/pcapng_reader.h"

namespace ub {
namespace {

using namespace test;
using State = CaptureWriter::State;

constexpr size_t kSmallRing = 128 << 10;

std::string text_of(const pcapng::Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// ---- blocks ----------------------------------------------------------------------------------------------------

TEST(Pcapng, a_section_says_what_wrote_it_and_leaves_out_what_is_empty) {
  pcapng::Bytes bytes;
  pcapng::add_section(bytes, "x86_64", "", "SoftUB");
  const auto blocks = read_pcapng(text_of(bytes));
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].type, kSection);
  EXPECT_EQ(blocks[0].number(0), 0x1A2B3C4Du);
  EXPECT_EQ(blocks[0].number<uint16_t>(4), 1u);
  EXPECT_EQ(blocks[0].number<uint64_t>(8), ~uint64_t{0});
  EXPECT_EQ(blocks[0].options, (std::map<uint16_t, std::string>{{2, "x86_64"}, {4, "SoftUB"}}));
}

TEST(Pcapng, texts_of_any_length_are_filled_up) {
  for (size_t length = 1; length <= 9; ++length) {
    pcapng::Bytes bytes;
    pcapng::add_interface(bytes, std::string(length, 'n'), std::string(10 - length, 'd'), 96);
    const auto blocks = read_pcapng(text_of(bytes));
    ASSERT_EQ(blocks.size(), 1u);
    EXPECT_EQ(blocks[0].number<uint16_t>(0), 1u) << "Ethernet";
    EXPECT_EQ(blocks[0].number(4), 96u);
    EXPECT_EQ(blocks[0].text(2), std::string(length, 'n'));
    EXPECT_EQ(blocks[0].text(3), std::string(10 - length, 'd'));
    EXPECT_EQ(blocks[0].option<uint8_t>(9), 9u) << "nanoseconds";
  }
}

TEST(Pcapng, a_packet_has_its_time_direction_gap_and_comment) {
  const std::string frame = "seven b";
  pcapng::Bytes bytes;
  pcapng::add_packet(bytes, {3, 0x0123456789ABCDEF, pcapng::Direction::kOut, 1500, bytes_of(frame), 17, "dropped: x"});
  pcapng::add_packet(bytes, {0, 1, pcapng::Direction::kIn, 7, bytes_of(frame), 0, ""});
  const auto blocks = read_pcapng(text_of(bytes));
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].number(0), 3u);
  EXPECT_EQ(blocks[0].time_ns(), 0x0123456789ABCDEFu);
  EXPECT_EQ(blocks[0].packet, frame);
  EXPECT_EQ(blocks[0].number(16), 1500u);
  EXPECT_EQ(blocks[0].option<uint32_t>(2), 2u) << "out";
  EXPECT_EQ(blocks[0].option<uint64_t>(4), 17u);
  EXPECT_EQ(blocks[0].text(1), "dropped: x");
  EXPECT_EQ(blocks[1].option<uint32_t>(2), 1u) << "in";
  EXPECT_EQ(blocks[1].options.size(), 1u) << "nothing was missed, and there is no comment";
}

TEST(Pcapng, statistics_have_the_length_that_is_kept_free_for_them) {
  pcapng::Bytes bytes;
  pcapng::add_statistics(bytes, {2, 99, 50, 40, 30, 20, 10});
  EXPECT_EQ(bytes.size(), pcapng::kStatisticsBytes);
  const auto blocks = read_pcapng(text_of(bytes));
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].number(0), 2u);
  EXPECT_EQ(blocks[0].option<uint64_t>(4), 40u) << "isb_ifrecv";
  EXPECT_EQ(blocks[0].option<uint64_t>(6), 30u) << "isb_filteraccept";
  EXPECT_EQ(blocks[0].option<uint64_t>(5), 20u) << "isb_ifdrop";
  EXPECT_EQ(blocks[0].option<uint64_t>(8), 10u) << "isb_usrdeliv";
}

// ---- the ring --------------------------------------------------------------------------------------------------

// Puts a frame of that many bytes, all of them `number`.
bool put(CaptureRing& ring, uint32_t bytes, uint8_t number, CaptureInterface* interface = nullptr,
         uint16_t reason = 0) {
  CaptureRecord* record = ring.put(bytes);
  if (record == nullptr) return false;
  record->length = bytes;
  record->reason = reason;
  record->direction = pcapng::Direction::kIn;
  record->time_ns = 1;
  record->missed = interface == nullptr ? 0 : std::exchange(interface->missed_lately, 0);
  record->interface = interface;
  std::memset(record->frame(), number, bytes);
  return true;
}

bool is_whole(const CaptureRecord& record, uint8_t number) {
  for (const std::byte b : record.frame())
    if (b != std::byte{number}) return false;
  return true;
}

TEST(CaptureRing, nothing_is_seen_before_it_is_published) {
  CaptureRing ring(kSmallRing);
  int seen = 0;
  const auto count = [&](const CaptureRecord&) { return ++seen != 0; };
  ASSERT_TRUE(put(ring, 60, 1));
  ring.take(count);
  EXPECT_EQ(seen, 0);
  ring.publish();
  ring.take(count);
  EXPECT_EQ(seen, 1);
  ring.take(count);
  EXPECT_EQ(seen, 1) << "once";
}

TEST(CaptureRing, a_full_ring_takes_nothing_and_loses_nothing_that_it_has) {
  CaptureRing ring(kSmallRing);
  int in = 0, out = 0;
  while (put(ring, 1000, static_cast<uint8_t>(in))) ++in;
  EXPECT_GT(in, 100);
  EXPECT_FALSE(put(ring, 1000, 0));
  ring.publish();
  ring.take([&](const CaptureRecord& r) {
    EXPECT_TRUE(is_whole(r, static_cast<uint8_t>(out)));
    return ++out == 1;
  });
  EXPECT_EQ(out, 2) << "the second one is to come again";
  EXPECT_TRUE(put(ring, 900, 0)) << "there is room for one again";
}

TEST(CaptureRing, frames_of_all_lengths_come_out_as_they_went_in) {
  CaptureRing ring(kSmallRing);
  uint32_t in = 0, out = 0;
  const auto length = [](uint32_t i) { return 1 + i * 7919 % 9000; };
  while (out < 20000) {
    for (int i = 0; i < 13 && put(ring, length(in), static_cast<uint8_t>(in)); ++i) ++in;
    ring.publish();
    ring.take([&](const CaptureRecord& r) {
      EXPECT_EQ(r.kept, length(out));
      EXPECT_TRUE(is_whole(r, static_cast<uint8_t>(out)));
      ++out;
      return true;
    });
    ASSERT_EQ(in, out);
  }
}

// Wherever in its memory it begins, and whatever is left over at the end of that.
TEST(CaptureRing, a_ring_that_gets_full_overwrites_nothing) {
  for (uint32_t length = 100; length <= 60000; length += 997) {
    CaptureRing ring(kSmallRing);
    for (uint32_t begin = 0; begin < 5; ++begin) {
      ASSERT_TRUE(put(ring, 1 + length * begin / 7, 0));
      ring.publish();
      ring.take([](const CaptureRecord&) { return true; });
      std::vector<const CaptureRecord*> kept;
      while (CaptureRecord* record = ring.put(length)) {
        record->length = length;
        const std::byte *from = record->frame(), *to = from + length;
        for (const CaptureRecord* other : kept)
          ASSERT_TRUE(to <= reinterpret_cast<const std::byte*>(other) || from >= other->frame().data() + length)
              << "frame " << kept.size() << " of " << length << " bytes";
        kept.push_back(record);
      }
      EXPECT_FALSE(kept.empty());
      ring.publish();
      ring.take([](const CaptureRecord&) { return true; });
    }
  }
}

TEST(CaptureRing, a_writer_reads_while_frames_are_put) {
  CaptureRing ring(kSmallRing);
  constexpr uint32_t kFrames = 200000;
  std::thread writer([&] {
    for (uint32_t out = 0; out < kFrames;) {
      ring.take([&](const CaptureRecord& r) {
        EXPECT_TRUE(r.kept == out % 300 + 1 && is_whole(r, static_cast<uint8_t>(out)));
        ++out;
        return true;
      });
    }
  });
  for (uint32_t in = 0; in < kFrames; ring.publish())
    for (int i = 0; i < 32 && in < kFrames && put(ring, in % 300 + 1, static_cast<uint8_t>(in)); ++i) ++in;
  writer.join();
}

// ---- the writer ------------------------------------------------------------------------------------------------

class CaptureWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/capture_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    face.name = "shm.1";
    face.description = "to a peer";
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  std::string path(const std::string& name = "x.pcapng") const { return directory + "/" + name; }

  // Puts a frame; false: there was no room, which is counted.
  bool put_or_miss(CaptureWriter& writer, uint32_t bytes, uint8_t number = 0) {
    face.accepted.store(face.accepted + 1);
    if (put(writer.ring(), bytes, number, &face)) return true;
    ++face.missed_lately;
    face.missed.store(face.missed + 1);
    return false;
  }
  static State settled(const CaptureWriter& writer, State passing) {
    while (writer.state() == passing) std::this_thread::yield();
    return writer.state();
  }

  std::string directory, why;
  CaptureInterface face;
};

TEST_F(CaptureWriterTest, frames_get_into_a_file_that_is_for_its_user_alone) {
  CaptureWriter writer({.path = path()});
  ASSERT_TRUE(writer.start(&why)) << why;
  ASSERT_EQ(settled(writer, State::kOpening), State::kRunning);
  for (uint8_t i = 0; i < 100; ++i) EXPECT_TRUE(put_or_miss(writer, 60u + i, i));
  writer.ring().publish();
  writer.stop();
  ASSERT_EQ(settled(writer, State::kRunning), State::kEnded);

  struct stat about{};
  ASSERT_EQ(::stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(static_cast<uint64_t>(about.st_size), writer.bytes());
  const auto blocks = read_pcapng(read_file(path()));
  const auto packets = of_type(blocks, kPacket), statistics = of_type(blocks, kStatistics);
  ASSERT_EQ(blocks.size(), 1 + 1 + 100 + 1u) << "section, interface, packets, statistics";
  EXPECT_EQ(blocks[1].text(2), "shm.1");
  EXPECT_EQ(blocks[1].text(3), "to a peer");
  for (uint8_t i = 0; i < 100; ++i) EXPECT_EQ(packets[i].packet, std::string(60u + i, static_cast<char>(i)));
  EXPECT_EQ(statistics[0].option<uint64_t>(8), 100u);
  EXPECT_EQ(statistics[0].option<uint64_t>(5), 0u);
  EXPECT_EQ(writer.packets(), 100u);
}

TEST_F(CaptureWriterTest, a_frame_that_the_core_dropped_says_why) {
  CaptureWriter writer({.path = path()});
  ASSERT_TRUE(writer.start(&why)) << why;
  ASSERT_EQ(settled(writer, State::kOpening), State::kRunning);
  ASSERT_TRUE(put(writer.ring(), 60, 0, &face, static_cast<uint16_t>(Counter::kRxDropBadIcrc) + 1));
  ASSERT_TRUE(put(writer.ring(), 60, 0, &face));
  writer.ring().publish();
  writer.stop();
  ASSERT_EQ(settled(writer, State::kRunning), State::kEnded);
  const auto packets = of_type(read_pcapng(read_file(path())), kPacket);
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0].text(1), "dropped: rx.drop.bad_icrc");
  EXPECT_EQ(packets[1].text(1), "");
}

// The owner of the Core goes on, and the file says how many frames are missing, and where.
TEST_F(CaptureWriterTest, what_finds_no_room_is_counted_where_it_is_missing_and_at_the_end) {
  CaptureWriter writer({.path = path()}, kSmallRing);
  ASSERT_TRUE(writer.start(&why)) << why;
  ASSERT_EQ(settled(writer, State::kOpening), State::kRunning);
  uint64_t fitted = 0, missed = 0;
  while (put_or_miss(writer, 1000)) ++fitted;
  for (missed = 1; missed < 50; ++missed) EXPECT_FALSE(put_or_miss(writer, 1000)) << "nothing was published yet";
  writer.ring().publish();
  while (!put(writer.ring(), 1000, 7, &face)) std::this_thread::yield();
  face.accepted.store(face.accepted + 1);
  writer.ring().publish();
  writer.stop();
  ASSERT_EQ(settled(writer, State::kRunning), State::kEnded);

  const auto blocks = read_pcapng(read_file(path()));
  const auto packets = of_type(blocks, kPacket), statistics = of_type(blocks, kStatistics);
  ASSERT_EQ(packets.size(), fitted + 1);
  for (size_t i = 0; i < fitted; ++i) EXPECT_EQ(packets[i].options.count(4), 0u);
  EXPECT_EQ(packets[fitted].option<uint64_t>(4), missed) << "epb_dropcount";
  EXPECT_EQ(statistics[0].option<uint64_t>(5), missed) << "isb_ifdrop";
  EXPECT_EQ(statistics[0].option<uint64_t>(6), fitted + missed + 1);
  EXPECT_EQ(statistics[0].option<uint64_t>(8), fitted + 1);
}

TEST_F(CaptureWriterTest, a_file_that_is_full_ends_within_its_size) {
  CaptureWriter writer({.path = path(), .most_bytes = CaptureTarget::kLeastBytes});
  ASSERT_TRUE(writer.start(&why)) << why;
  ASSERT_EQ(settled(writer, State::kOpening), State::kRunning);
  for (int i = 0; i < 1000; ++i) put_or_miss(writer, 1000);
  writer.ring().publish();
  ASSERT_EQ(settled(writer, State::kRunning), State::kEnded);
  EXPECT_EQ(writer.why(), "the file is as large as it may be");
  const std::string file = read_file(path());
  EXPECT_LE(file.size(), CaptureTarget::kLeastBytes);
  EXPECT_GT(file.size(), CaptureTarget::kLeastBytes - 1200) << "one more would not have fitted";
  const auto blocks = read_pcapng(file);
  EXPECT_EQ(of_type(blocks, kPacket).size(), writer.packets());
  EXPECT_EQ(of_type(blocks, kStatistics)[0].option<uint64_t>(8), writer.packets());
}

TEST_F(CaptureWriterTest, of_several_files_the_last_ones_stay) {
  CaptureWriter writer({.path = path(), .most_bytes = CaptureTarget::kLeastBytes, .files = 2});
  ASSERT_TRUE(writer.start(&why)) << why;
  ASSERT_EQ(settled(writer, State::kOpening), State::kRunning);
  uint32_t frames = 0;
  for (; frames < 1100; ++frames) ASSERT_TRUE(put_or_miss(writer, 1000, static_cast<uint8_t>(frames)));
  writer.ring().publish();
  writer.stop();
  ASSERT_EQ(settled(writer, State::kRunning), State::kEnded);
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++files;
  EXPECT_EQ(files, 2u);
  const auto before = read_pcapng(read_file(path("x_00004.pcapng")));
  const auto last = read_pcapng(read_file(path("x_00005.pcapng")));
  for (const auto& blocks : {before, last}) {
    EXPECT_EQ(blocks[0].type, kSection);
    EXPECT_EQ(blocks[1].text(2), "shm.1") << "each one can be read alone";
    EXPECT_EQ(blocks.back().type, kStatistics);
  }
  EXPECT_EQ(of_type(last, kPacket).back().packet[0], static_cast<char>(frames - 1));
  EXPECT_EQ(static_cast<uint8_t>(of_type(last, kPacket)[0].packet[0]),
            static_cast<uint8_t>(of_type(before, kPacket).back().packet[0] + 1));
  EXPECT_EQ(writer.packets(), frames);
}

// An interface that comes with the first frame that finds no room is in the next file only.
TEST_F(CaptureWriterTest, each_file_has_the_interfaces_of_its_frames) {
  constexpr uint32_t kFaces = 2000;
  CaptureWriter writer({.path = path(), .most_bytes = CaptureTarget::kLeastBytes, .files = 99});
  std::deque<CaptureInterface> faces(kFaces);
  ASSERT_TRUE(writer.start(&why)) << why;
  ASSERT_EQ(settled(writer, State::kOpening), State::kRunning);
  for (uint32_t i = 0; i < kFaces; ++i) {
    faces[i].name = std::to_string(i);
    ASSERT_TRUE(put(writer.ring(), 1000, static_cast<uint8_t>(i), &faces[i]));
  }
  writer.ring().publish();
  writer.stop();
  ASSERT_EQ(settled(writer, State::kRunning), State::kEnded);
  uint32_t frames = 0, files = 0;
  for (; frames < kFaces && files < 99; ++files) {
    char name[32];
    std::snprintf(name, sizeof name, "x_%05u.pcapng", files + 1);
    const auto blocks = read_pcapng(read_file(path(name)));
    const auto interfaces = of_type(blocks, kInterface), packets = of_type(blocks, kPacket);
    ASSERT_FALSE(packets.empty());
    ASSERT_EQ(interfaces.size(), packets.size());
    EXPECT_EQ(of_type(blocks, kStatistics).size(), packets.size());
    for (const PcapngBlock& packet : packets) {
      EXPECT_EQ(interfaces[packet.number(0)].text(2), std::to_string(frames));
      EXPECT_EQ(packet.packet[0], static_cast<char>(frames++));
    }
  }
  EXPECT_EQ(frames, kFaces);
  EXPECT_GT(files, 5u);
}

TEST_F(CaptureWriterTest, a_file_that_exists_stays_as_it_is) {
  std::ofstream(path()) << "mine";
  CaptureWriter writer({.path = path()});
  ASSERT_TRUE(writer.start(&why)) << why;
  ASSERT_EQ(settled(writer, State::kOpening), State::kFailed);
  EXPECT_EQ(writer.why(), "cannot make " + path() + ": File exists");
  EXPECT_EQ(read_file(path()), "mine");
}

TEST_F(CaptureWriterTest, a_path_that_leads_nowhere_is_said) {
  CaptureWriter writer({.path = directory + "/no/x.pcapng"});
  ASSERT_TRUE(writer.start(&why)) << why;
  ASSERT_EQ(settled(writer, State::kOpening), State::kFailed);
  EXPECT_EQ(writer.why(), "cannot make " + directory + "/no/x.pcapng: No such file or directory");
}

TEST_F(CaptureWriterTest, a_full_disk_ends_it_and_loses_are_counted) {
  CaptureWriter writer({.path = "/dev/full"});
  ASSERT_TRUE(writer.start(CaptureFile(ipc::Fd(::open("/dev/full", O_WRONLY | O_CLOEXEC))), &why)) << why;
  EXPECT_EQ(settled(writer, State::kOpening), State::kFailed);
  EXPECT_NE(writer.why().find("No space left on device"), std::string::npos) << writer.why();
}

// As a disk that fills up: what was written is whole, and ends with the statistics.
TEST_F(CaptureWriterTest, a_disk_that_fills_leaves_a_file_that_is_whole) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{400'000, before.rlim_max};
  CaptureWriter writer({.path = path()});
  ASSERT_TRUE(writer.start(&why)) << why;
  ASSERT_EQ(settled(writer, State::kOpening), State::kRunning);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(put_or_miss(writer, 1000));
  writer.ring().publish();
  const State state = settled(writer, State::kRunning);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(state, State::kFailed);
  EXPECT_NE(writer.why().find("File too large"), std::string::npos) << writer.why();
  const auto blocks = read_pcapng(read_file(path()));
  const size_t written = of_type(blocks, kPacket).size();
  EXPECT_EQ(written, writer.packets());
  EXPECT_GT(written, 0u);
  EXPECT_EQ(written + writer.lost(), 1000u);
  ASSERT_EQ(blocks.back().type, kStatistics);
  EXPECT_EQ(blocks.back().option<uint64_t>(5), 1000 - written) << "isb_ifdrop";
}

}  // namespace
}  // namespace ub
