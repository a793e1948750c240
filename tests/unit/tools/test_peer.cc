// SPDX-License-Identifier: Apache-2.0
//
// What a side says when it ends: its own reason, unless a request of it failed because the other one ended.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <thread>

#include "tools/common/peer.h"
#include "tools/common/tool_error.h"

namespace ub::tools {
namespace {

class PeerEnds : public testing::Test {
 protected:
  PeerEnds() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) throw std::runtime_error("no pair of sockets");
    near_ = Peer(TcpSocket(fds[0]), "test", "the peer");
    far_ = Peer(TcpSocket(fds[1]), "test", "the peer");
  }

  // The error with which a side ends that met this one.
  template <class Error>
  static ToolError end(Peer& side, const Error& reason) {
    try {
      try {
        throw reason;
      } catch (const std::exception& e) {
        side.end_with(e);
      }
    } catch (const ToolError& e) {
      return e;
    }
  }
  // The error with which a side ends that heard of the other one's.
  static ToolError end_by_the_other(Peer& side) {
    try {
      side.expect("done");
    } catch (const PeerGaveUp& e) {
      return end(side, e);
    }
    return ToolError("the peer did not give up");
  }

  Peer near_{TcpSocket(), "", ""}, far_{TcpSocket(), "", ""};
};

const RequestFailed kNoAnswer(kExitPeerLost, "a request failed: no acknowledgement");

TEST_F(PeerEnds, a_failed_request_is_told_in_its_own_words__though_the_other_side_ends_because_of_it) {
  std::string far_says;
  std::thread far([&] { far_says = end_by_the_other(far_).what(); });
  const ToolError near = end(near_, kNoAnswer);
  far.join();
  EXPECT_STREQ(near.what(), "a request failed: no acknowledgement");
  EXPECT_EQ(near.code(), kExitPeerLost);
  EXPECT_EQ(far_says, "the peer gave up: a request failed: no acknowledgement");
}

TEST_F(PeerEnds, a_request_that_failed_because_the_other_side_was_interrupted_is_told_as_that) {
  end(far_, ToolError(kExitInterrupted, "interrupted"));
  const ToolError near = end(near_, kNoAnswer);
  EXPECT_STREQ(near.what(), "the peer gave up: it was interrupted");
  EXPECT_EQ(near.code(), kExitPeerLost);
}

TEST_F(PeerEnds, requests_that_fail_at_both_sides_are_told_by_each_in_its_own_words) {
  std::string far_says;
  const RequestFailed refused(kExitFailed, "a request failed: remote operation");
  std::thread far([&] { far_says = end(far_, refused).what(); });
  const ToolError near = end(near_, kNoAnswer);
  far.join();
  EXPECT_STREQ(near.what(), "a request failed: no acknowledgement");
  EXPECT_EQ(far_says, "a request failed: remote operation");
}

TEST_F(PeerEnds, a_request_that_failed_because_the_other_side_is_gone_is_told_as_that) {
  far_ = Peer(TcpSocket(), "", "");
  EXPECT_STREQ(end(near_, kNoAnswer).what(), "the peer ended or was killed");
}

}  // namespace
}  // namespace ub::tools
