// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/copy_tag.h"

#include <gtest/gtest.h>

#include "lib/transport/resource/records.h"
#include "lib/transport/roce/copy_tag.h"

namespace ub::ta {
namespace {

constexpr uint32_t kTpn = 0xABCDEF;

TEST(CopyTag, of_a_placed_payload_names_channel_and_message) {
  for (uint32_t message : {0u, 1u, 0xFFFFFFu}) {
    const CopyPurpose p = purpose_of(place_tag(kTpn, Tpmsn(message)));
    EXPECT_EQ(p.kind, CopyKind::kPlace);
    EXPECT_EQ(p.tpn, kTpn);
    EXPECT_EQ(p.message, Tpmsn(message));
  }
}

TEST(CopyTag, of_a_response_names_channel_queue_and_request) {
  for (uint32_t queue : {1u, 0xFFFFFu}) {
    for (uint32_t request : {0u, 1u, kMaxSendDepth - 1}) {
      const CopyPurpose p = purpose_of(response_tag(kTpn, queue, request));
      EXPECT_EQ(p.kind, CopyKind::kPlaceResponse);
      EXPECT_EQ(p.tpn, kTpn);
      EXPECT_EQ(p.queue, queue);
      EXPECT_EQ(p.work_request, request);
    }
  }
}

// Numbers of requests only grow; those of one queue that are under way differ in what the tag holds.
TEST(CopyTag, tells_the_requests_of_a_full_queue_apart) {
  EXPECT_EQ(kWorkRequestMask, kMaxSendDepth - 1);
  EXPECT_EQ(purpose_of(response_tag(kTpn, 1, kMaxSendDepth + 5)).work_request, 5u);
}

TEST(CopyTag, of_a_datagram_names_the_record_and_its_use) {
  for (uint32_t record : {1u, 0xFFFFu}) {
    const CopyTag tag = datagram_tag({record, 0xFFFFFFFF});
    EXPECT_EQ(purpose_of(tag).kind, CopyKind::kDatagram);
    const DatagramCopy c = datagram_copy_of(tag);
    EXPECT_EQ(c.record, record);
    EXPECT_EQ(c.generation, 0xFFFFFFFF);
  }
}

// What other engines took a prefix for is told apart by it.
TEST(CopyTag, has_no_prefix_that_is_handed_out) {
  for (CopyTag tag : {place_tag(kTpn, Tpmsn(0xFFFFFF)), response_tag(0xFFFFFF, 0xFFFFF, 0x3fff), place_tag(0, Tpmsn(0)),
                      response_tag(0, 0, 0), datagram_tag({0xFFFF, 0xFFFFFFFF}), datagram_tag({1, 0})}) {
    EXPECT_TRUE(copy_prefix_of(tag) == 0 || copy_prefix_of(tag) >= kCopyPrefixes) << tag;
  }
}

TEST(CopyTag, of_roce_says_what_for_behind_the_prefix_of_the_engine) {
  for (uint32_t prefix : {kFirstEngineCopyPrefix, kCopyPrefixes - 1}) {
    for (roce::CopyFor what : {roce::CopyFor::kPlace, roce::CopyFor::kResponse}) {
      const CopyTag tag = roce::copy_tag(prefix, {what, 0xFFFF, 0xFFFFFFFF});
      EXPECT_EQ(copy_prefix_of(tag), prefix);
      const roce::CopyPurpose p = roce::purpose_of(tag);
      EXPECT_EQ(p.what, what);
      EXPECT_EQ(p.qp, 0xFFFFu);
      EXPECT_EQ(p.number, 0xFFFFFFFF);
    }
  }
}

}  // namespace
}  // namespace ub::ta
