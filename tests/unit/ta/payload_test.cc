// SPDX-License-Identifier: Apache-2.0
//
// Bytes between packets and the ranges of requests and receives, piece by piece: which pieces, in which order, and
// which of them is the last.
#include "lib/transport/ta/payload.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/transport/test_state.h"

namespace ub::ta {
namespace {

// Notes what is copied, and answers as the test says.
struct Copying {
  struct Piece {
    uint64_t at;  // in the segment
    uint32_t bytes;
    bool final;
    bool operator==(const Piece&) const = default;
  };
  CopyResult gather(std::byte* dst, const std::byte* src, size_t bytes, CopyTag) {
    return note(src, bytes, false, dst);
  }
  CopyResult place(std::byte* dst, const std::byte*, size_t bytes, bool final, CopyTag) {
    return note(dst, bytes, final, nullptr);
  }
  CopyResult note(const std::byte* memory, size_t bytes, bool final, std::byte* dst) {
    pieces.push_back({static_cast<uint64_t>(memory - base), static_cast<uint32_t>(bytes), final});
    destinations.push_back(dst);
    return pieces.size() == odd_one ? odd : usual;
  }
  const std::byte* base = nullptr;
  std::vector<Piece> pieces;
  std::vector<std::byte*> destinations;
  CopyResult usual = CopyResult::kDone, odd = CopyResult::kDone;
  size_t odd_one = 0;
};
using Pieces = std::vector<Copying::Piece>;

struct Payload : TestState {
  Payload() : bytes(256), elements(4) {
    SegmentConfig c;
    c.memory = bytes.data();
    c.address = c.local_address = address();
    c.length = bytes.size();
    c.owner = 7;
    EXPECT_EQ(register_segment(*s, c, &segment), Status::kOk);
    s->jfrs[s->jfrs.alloc()].owner = 7;
    host.base = bytes.data();
    Wqe& w = wqe();
    w = {};
    w.slots = 2;
    w.sge_count = 3;
    w.sge = {address() + 100, 8, segment.handle};
    Sge* more = reinterpret_cast<Sge*>(&w + 1);
    more[0] = {address() + 0, 4, segment.handle};
    more[1] = {address() + 50, 20, segment.handle};
    more[2] = {address() + 200, 10, segment.handle};  // one too many
    for (uint32_t i = 0; i < 4; ++i) receive.sges[i] = sge_of(w, i);
    receive.sge_count = 3;
    receive.jfr = 1;
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes.data()); }
  Wqe& wqe() { return elements[0]; }
  CopyResult gather(uint64_t offset, uint32_t length) {
    return gather_request(*s, host, {1, pending}, wqe(), 7, offset, length, out);
  }
  bool into_receive(uint32_t filled, uint32_t length, bool final = true) {
    receive.filled = filled;
    return scatter(*s, host, {1, pending}, receive, out, length, final);
  }
  bool into_request(uint64_t offset, uint32_t length, bool final = true) {
    return scatter_request(*s, host, {1, pending}, wqe(), 7, offset, out, length, final);
  }

  std::vector<std::byte> bytes;
  std::vector<Wqe> elements;
  RxReceive receive{};
  RegisteredSegment segment;
  Copying host;
  uint32_t pending = 0;
  std::byte out[256];
};

TEST(Gather, takes_the_ranges_one_behind_the_other) {
  Payload p;
  EXPECT_EQ(p.gather(0, 32), CopyResult::kDone);
  EXPECT_EQ(p.host.pieces, (Pieces{{100, 8, false}, {0, 4, false}, {50, 20, false}}));
  EXPECT_EQ(p.host.destinations, (std::vector<std::byte*>{p.out, p.out + 8, p.out + 12}));
  EXPECT_EQ(p.pending, 0u);
}

TEST(Gather, begins_and_ends_anywhere) {
  Payload p;
  EXPECT_EQ(p.gather(3, 5), CopyResult::kDone);
  EXPECT_EQ(p.host.pieces, (Pieces{{103, 5, false}})) << "to the end of a range, and nothing of the next";
  p.host.pieces.clear();
  EXPECT_EQ(p.gather(8, 5), CopyResult::kDone);
  EXPECT_EQ(p.host.pieces, (Pieces{{0, 4, false}, {50, 1, false}})) << "from the beginning of a range";
  p.host.pieces.clear();
  EXPECT_EQ(p.gather(13, 19), CopyResult::kDone);
  EXPECT_EQ(p.host.pieces, (Pieces{{51, 19, false}}));
}

TEST(Gather, of_more_than_there_is_fails) {
  Payload p;
  EXPECT_EQ(p.gather(0, 33), CopyResult::kFailed);
  EXPECT_EQ(p.host.pieces.size(), 3u) << "the fourth range is none";
}

TEST(Gather, of_memory_that_is_not_there_fails) {
  Payload p;
  reinterpret_cast<Sge*>(&p.wqe() + 1)[0].segment = 0;
  EXPECT_EQ(p.gather(0, 20), CopyResult::kFailed);
  EXPECT_EQ(p.host.pieces.size(), 1u) << "and ends there";
}

TEST(Gather, is_pending_if_any_piece_is) {
  Payload p;
  p.host.odd = CopyResult::kPending;
  p.host.odd_one = 1;
  EXPECT_EQ(p.gather(0, 12), CopyResult::kPending);
  EXPECT_EQ(p.pending, 1u);
  p.host.odd_one = 0;
  p.host.usual = CopyResult::kPending;
  EXPECT_EQ(p.gather(0, 12), CopyResult::kPending);
  EXPECT_EQ(p.pending, 3u);
  p.host.usual = CopyResult::kFailed;
  EXPECT_EQ(p.gather(0, 12), CopyResult::kFailed);
}

TEST(Gather, inline_bytes_lie_in_the_element) {
  Payload p;
  p.wqe().flags = kWrInline;
  p.host.base = inline_bytes(p.wqe());
  EXPECT_EQ(p.gather(5, 11), CopyResult::kDone);
  EXPECT_EQ(p.host.pieces, (Pieces{{5, 11, false}}));
}

// The final word of a message is stored after everything else: applications spin on it.
TEST(Scatter, fills_the_ranges_of_a_receive_and_the_last_piece_alone_is_final) {
  Payload p;
  EXPECT_TRUE(p.into_receive(0, 32));
  EXPECT_EQ(p.host.pieces, (Pieces{{100, 8, false}, {0, 4, false}, {50, 20, true}}));
  p.host.pieces.clear();
  EXPECT_TRUE(p.into_receive(3, 5));
  EXPECT_EQ(p.host.pieces, (Pieces{{103, 5, true}}));
  p.host.pieces.clear();
  EXPECT_TRUE(p.into_receive(8, 5, false));
  EXPECT_EQ(p.host.pieces, (Pieces{{0, 4, false}, {50, 1, false}})) << "more of the message follows";
}

TEST(Scatter, into_a_receive_that_is_too_short_or_not_there_fails) {
  Payload p;
  EXPECT_FALSE(p.into_receive(0, 33));
  EXPECT_EQ(p.host.pieces.size(), 3u);
  p.host.pieces.clear();
  p.host.usual = CopyResult::kFailed;
  EXPECT_FALSE(p.into_receive(0, 32));
  EXPECT_EQ(p.host.pieces.size(), 1u);
  p.host.pieces.clear();
  p.receive.sges[0].segment = 0;
  EXPECT_FALSE(p.into_receive(0, 1));
  EXPECT_TRUE(p.host.pieces.empty());
}

TEST(Scatter, into_a_request_is_the_same) {
  Payload p;
  EXPECT_TRUE(p.into_request(0, 32));
  EXPECT_EQ(p.host.pieces, (Pieces{{100, 8, false}, {0, 4, false}, {50, 20, true}}));
  p.host.pieces.clear();
  EXPECT_TRUE(p.into_request(3, 5));
  EXPECT_EQ(p.host.pieces, (Pieces{{103, 5, true}}));
  p.host.pieces.clear();
  EXPECT_TRUE(p.into_request(8, 5, false));
  EXPECT_EQ(p.host.pieces, (Pieces{{0, 4, false}, {50, 1, false}}));
  p.host.pieces.clear();
  EXPECT_FALSE(p.into_request(0, 33));
  EXPECT_EQ(p.host.pieces.size(), 3u);
  p.host.usual = CopyResult::kPending;
  EXPECT_TRUE(p.into_request(0, 12));
  EXPECT_EQ(p.pending, 2u);
  p.host.usual = CopyResult::kFailed;
  EXPECT_FALSE(p.into_request(0, 12));
  p.wqe().sge.segment = 0;
  p.host.usual = CopyResult::kDone;
  EXPECT_FALSE(p.into_request(0, 12));
}

}  // namespace
}  // namespace ub::ta
