// SPDX-License-Identifier: Apache-2.0
//
// A TCP connection with a buffer in each direction, for requests that are sent ahead and answers that come in their
// order. ToolError (kExitPeerLost) if the peer is gone. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/common/tcp_socket.h"

namespace ub::ycsb {

enum class Wait { kBlock, kBusy };  // sleep until something comes, or look again and again

class ByteStream {
 public:
  ByteStream(tools::TcpSocket socket, Wait wait);

  // What is appended here leaves with the next `exchange`.
  std::string& out() { return out_; }
  // Sends, and receives what is there; with nothing there, sleeps for at most `wait_ns` (Wait::kBlock).
  void exchange(uint64_t wait_ns);
  // What came and was not consumed yet. Valid until the next `exchange`.
  std::string_view in() const { return {in_.data() + begin_, end_ - begin_}; }
  void consume(size_t bytes) { begin_ += bytes; }

 private:
  void send_some();
  bool receive_some(int flags);
  void wait_for_events(uint64_t wait_ns) const;

  tools::TcpSocket socket_;
  Wait wait_;
  std::string out_, in_;
  size_t sent_ = 0;             // of out_
  size_t begin_ = 0, end_ = 0;  // of what was received in in_
};

}  // namespace ub::ycsb
