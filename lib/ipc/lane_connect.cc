// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/lane_connect.h"

#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "lib/ipc/barrier.h"
#include "lib/ipc/link_hello.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/pause.h"
#include "lib/ipc/unix_socket.h"

namespace ub::ipc {
namespace {

constexpr Duration kPause = microseconds(20);

// True: the message opens a lane, whose memory came with it.
bool check_reply(std::span<const std::byte> message, Fd* fds, size_t fd_count, LaneReply* reply, std::string* why) {
  if (message.size() != sizeof *reply) {
    *why = "the NIC's answer is not one about lanes; it may be of an older version";
    return false;
  }
  std::memcpy(reply, message.data(), sizeof *reply);
  reply->text[sizeof reply->text - 1] = 0;
  if (reply->magic != kLaneMagic || reply->version != kLaneVersion) {
    *why = "the NIC's answer is of another version";
  } else if (reply->refused != 0) {
    *why = std::string("the NIC refused: ") + reply->text;
  } else if (fd_count != 1) {
    *why = "the NIC's answer came without the memory of the lane (out of descriptors? see ulimit -n)";
  } else {
    return check_sealed_memfd(fds[0].get(), LaneLayout::kBytes, why);
  }
  return false;
}

}  // namespace

LaneHello make_lane_hello(const std::array<uint8_t, 16>& eid, uint32_t uasid) {
  LaneHello hello{};
  hello.magic = kLaneMagic;
  hello.version = kLaneVersion;
  hello.bytes = sizeof hello;
  hello.wanted_eid = eid;
  hello.wanted_uasid = uasid;
  hello.flags = register_for_heavy_barrier() ? kHelloHasMembarrier : 0;
  return hello;
}

bool connect_lane(const std::string& path, const LaneHello& hello, Duration patience,
                  const std::function<void()>& meanwhile, OpenedLane* out, std::string* why) {
  Fd socket;
  if (connect_unix(path, &socket, why) != SocketStatus::kOk) return false;
  if (send_message(socket.get(), std::as_bytes(std::span(&hello, 1)), {}) != SocketStatus::kOk) {
    *why = "the NIC hung up";
    return false;
  }
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::nanoseconds(patience.ns);
  alignas(8) std::byte message[sizeof(LaneReply) + 8];
  Fd fds[kMaxMessageFds];
  size_t bytes = 0, fd_count = 0;
  SocketStatus status;
  while ((status = receive_message(socket.get(), message, &bytes, fds, &fd_count)) == SocketStatus::kAgain) {
    if (Clock::now() > until) {
      *why = "the NIC did not answer in time";
      return false;
    }
    meanwhile();
    pause_for(kPause);
  }
  LaneReply reply;
  if (status != SocketStatus::kOk) {
    *why = "the NIC hung up";
    return false;
  }
  if (!check_reply({message, bytes}, fds, fd_count, &reply, why)) return false;
  *out = {std::move(socket), std::move(fds[0]), (reply.flags & kHelloHasMembarrier) == 0};
  return true;
}

}  // namespace ub::ipc
