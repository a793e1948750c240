// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/stores/byte_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "tools/common/tool_error.h"

namespace ub::ycsb {
namespace {

constexpr size_t kRoom = 64 << 10;            // free bytes before something is received
constexpr uint64_t kBlockingNs = 10'000'000;  // a receive that blocks returns after this time

[[noreturn]] void lost() {
  throw tools::ToolError(tools::kExitPeerLost, "the other end closed the connection: it ended or was killed");
}

}  // namespace

ByteStream::ByteStream(tools::TcpSocket socket, Wait wait) : socket_(std::move(socket)), wait_(wait) {
  const timeval patience = {0, kBlockingNs / 1000};
  setsockopt(socket_.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

void ByteStream::exchange(uint64_t wait_ns) {
  send_some();
  // Now nobody looks at what was consumed.
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > kRoom) {
    in_.erase(0, begin_);
    end_ -= std::exchange(begin_, 0);
  }
  if (in_.size() < end_ + kRoom) in_.resize(2 * (end_ + kRoom));
  if (wait_ == Wait::kBlock && wait_ns >= kBlockingNs && out_.empty()) {
    receive_some(0);  // one system call
  } else if (!receive_some(MSG_DONTWAIT) && wait_ == Wait::kBlock && wait_ns > 0) {
    wait_for_events(wait_ns);
    send_some();
    receive_some(MSG_DONTWAIT);
  }
}

void ByteStream::send_some() {
  while (sent_ < out_.size()) {
    const ssize_t n = send(socket_.fd(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) lost();
    sent_ += static_cast<size_t>(n);
  }
  out_.clear();
  sent_ = 0;
}

bool ByteStream::receive_some(int flags) {
  const ssize_t n = recv(socket_.fd(), in_.data() + end_, in_.size() - end_, flags);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) lost();
  if (n > 0) end_ += static_cast<size_t>(n);
  return n > 0;
}

void ByteStream::wait_for_events(uint64_t wait_ns) const {
  const auto events = static_cast<short>(POLLIN | (out_.empty() ? 0 : POLLOUT));
  pollfd waiting = {socket_.fd(), events, 0};
  const timespec patience = {static_cast<time_t>(wait_ns / 1'000'000'000), static_cast<long>(wait_ns % 1'000'000'000)};
  ppoll(&waiting, 1, &patience, nullptr);
}

}  // namespace ub::ycsb
