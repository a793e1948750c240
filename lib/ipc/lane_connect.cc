// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/lane_connect.h"

#include <cstring>
#include <span>
#include <utility>

#include "lib/ipc/ask_nic.h"
#include "lib/ipc/barrier.h"
#include "lib/ipc/link_hello.h"
#include "lib/ipc/memfd.h"

namespace ub::ipc {
namespace {

// True: the message opens a lane, whose memory came with it.
bool check_reply(const NicAnswer& answer, LaneReply* reply, std::string* why) {
  if (answer.bytes != sizeof *reply) {
    *why = "the NIC's answer is not one about lanes; it may be of an older version";
    return false;
  }
  std::memcpy(reply, answer.message, sizeof *reply);
  reply->text[sizeof reply->text - 1] = 0;
  if (reply->magic != kLaneMagic || reply->version != kLaneVersion) {
    *why = "the NIC's answer is of another version";
  } else if (reply->refused != 0) {
    *why = std::string("the NIC refused: ") + reply->text;
  } else if (answer.fd_count != 1) {
    *why = "the NIC's answer came without the memory of the lane (out of descriptors? see ulimit -n)";
  } else {
    return check_sealed_memfd(answer.fds[0].get(), LaneLayout::kBytes, why);
  }
  return false;
}

}  // namespace

LaneHello make_lane_hello(const std::array<uint8_t, 16>& eid, uint32_t uasid, int32_t process) {
  LaneHello hello{};
  hello.magic = kLaneMagic;
  hello.version = kLaneVersion;
  hello.bytes = sizeof hello;
  hello.wanted_eid = eid;
  hello.wanted_uasid = uasid;
  hello.process = process;
  hello.flags = register_for_heavy_barrier() ? kHelloHasMembarrier : 0;
  return hello;
}

bool connect_lane(const std::string& path, const LaneHello& hello, Duration patience,
                  const std::function<void()>& meanwhile, OpenedLane* out, std::string* why) {
  NicAnswer answer;
  if (!ask_nic(path, std::as_bytes(std::span(&hello, 1)), patience, meanwhile, &answer, why)) return false;
  LaneReply reply;
  if (!check_reply(answer, &reply, why)) return false;
  *out = {std::move(answer.socket), std::move(answer.fds[0]), (reply.flags & kHelloHasMembarrier) == 0};
  return true;
}

}  // namespace ub::ipc
