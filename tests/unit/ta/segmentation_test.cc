// SPDX-License-Identifier: Apache-2.0
//
// How a request is cut into segments and these into packets (UB Base Specification Rev 2.0, 7.4).
#include "lib/transport/ta/segmentation.h"

#include <gtest/gtest.h>

namespace ub::ta {
namespace {

constexpr uint32_t kMtu = 1024, kSegment = 32 * 1024;

uint32_t segments(WrOp op, uint32_t length) { return segment_count(op, length, kMtu, kSegment); }
SegmentShape shape(WrOp op, uint32_t length, uint32_t segment) { return shape_of(op, length, kMtu, kSegment, segment); }

TEST(Segmentation, packets_of_a_length) {
  EXPECT_EQ(packets_of(0, kMtu), 1u);
  EXPECT_EQ(packets_of(1, kMtu), 1u);
  EXPECT_EQ(packets_of(kMtu, kMtu), 1u);
  EXPECT_EQ(packets_of(kMtu + 1, kMtu), 2u);
}

TEST(Segmentation, a_write_or_read_has_a_segment_for_each_part_of_it) {
  for (WrOp op : {WrOp::kWrite, WrOp::kRead}) {
    EXPECT_EQ(segments(op, 0), 1u);
    EXPECT_EQ(segments(op, kSegment), 1u);
    EXPECT_EQ(segments(op, kSegment + 1), 2u);
    EXPECT_EQ(segments(op, 1u << 30), (1u << 30) / kSegment);
    EXPECT_EQ(shape(op, kSegment + 5, 1).offset, kSegment);
    EXPECT_EQ(shape(op, kSegment + 5, 1).bytes, 5u);
    EXPECT_EQ(shape(op, kSegment + 5, 0).bytes, kSegment);
  }
  EXPECT_EQ(shape(WrOp::kWrite, kSegment, 0).packets, kSegment / kMtu);
  EXPECT_EQ(shape(WrOp::kRead, kSegment, 0).packets, 1u) << "that carry the request";
}

TEST(Segmentation, a_send_or_atomic_is_one_segment) {
  EXPECT_EQ(segments(WrOp::kSend, 10 * kSegment), 1u);
  EXPECT_EQ(shape(WrOp::kSend, 3 * kMtu + 1, 0).packets, 4u);
  EXPECT_EQ(segments(WrOp::kFetchAdd, 8), 1u);
  EXPECT_EQ(shape(WrOp::kFetchAdd, 8, 0).packets, 1u);
}

// The last part, of at most one packet, goes out when the others were answered.
TEST(Segmentation, what_notifies_ends_in_a_segment_of_one_packet) {
  for (WrOp op : {WrOp::kWriteImm, WrOp::kWriteNotify}) {
    EXPECT_EQ(segments(op, 0), 1u);
    EXPECT_EQ(segments(op, kMtu), 1u);
    EXPECT_EQ(shape(op, kMtu, 0).op, op);
    EXPECT_EQ(segments(op, kMtu + 1), 2u);
    EXPECT_EQ(shape(op, kMtu + 1, 0).op, WrOp::kWrite);
    EXPECT_EQ(shape(op, kMtu + 1, 0).bytes, kMtu);
    EXPECT_EQ(shape(op, kMtu + 1, 1).op, op);
    EXPECT_EQ(shape(op, kMtu + 1, 1).bytes, 1u);
    EXPECT_EQ(shape(op, kMtu + 1, 1).offset, kMtu);
    EXPECT_EQ(shape(op, 2 * kMtu, 1).bytes, kMtu) << "not nothing";
    EXPECT_EQ(segments(op, kSegment + kMtu), 2u);
    EXPECT_EQ(segments(op, kSegment + kMtu + 1), 3u);
  }
}

TEST(Segmentation, the_segments_of_a_request_are_all_of_its_bytes) {
  for (WrOp op : {WrOp::kWrite, WrOp::kWriteImm, WrOp::kWriteNotify, WrOp::kRead, WrOp::kSend}) {
    for (uint32_t length : {0u, 1u, kMtu, kMtu + 1, kSegment - 1, kSegment, kSegment + 1, 3 * kSegment + kMtu + 7}) {
      EXPECT_LE(segments(op, length), most_segments(length, kSegment));
      uint64_t at = 0;
      for (uint32_t i = 0; i < segments(op, length); ++i) {
        EXPECT_EQ(shape(op, length, i).offset, at);
        at += shape(op, length, i).bytes;
        EXPECT_EQ(shape(op, length, i).op, op_of_segment(op, i, segments(op, length)));
      }
      EXPECT_EQ(at, length);
    }
  }
}

// A request waits while the numbers that it may need are taken: more than that would hold it back for nothing.
TEST(Segmentation, what_a_length_may_need_is_no_more_than_some_request_of_it_has) {
  EXPECT_EQ(most_segments(kMinMtu, kSegment), 1u);
  // By CTP, a WRITE of that length has one for each packet.
  EXPECT_EQ(most_segments(kMinMtu + 1, kSegment), 1 + segment_count(WrOp::kWrite, kMinMtu + 1, kMinMtu, kMinMtu));
  EXPECT_EQ(most_segments(kMostCompactBytes, kSegment),
            2 + segment_count(WrOp::kWrite, kMostCompactBytes, kMinMtu, kMinMtu));
  const uint32_t length = kMostCompactBytes + kMinMtu + 1;
  EXPECT_EQ(most_segments(length, kSegment), segment_count(WrOp::kWriteImm, length, kMinMtu, kSegment));
}

}  // namespace
}  // namespace ub::ta
