// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/share_connect.h"

#include <cstring>
#include <span>
#include <utility>

#include "lib/ipc/access_gate.h"
#include "lib/ipc/ask_nic.h"
#include "lib/ipc/memfd.h"

namespace ub::ipc {
namespace {

// True: the message brings the memory.
bool check_reply(const NicAnswer& answer, const ShareRequest& request, ShareReply* reply, std::string* why) {
  const size_t descriptors = request.places != 0 ? 3 : 1;
  if (answer.bytes != sizeof *reply) {
    *why = "the NIC's answer is not one about shared memory; it may be of an older version";
    return false;
  }
  std::memcpy(reply, answer.message, sizeof *reply);
  reply->text[sizeof reply->text - 1] = 0;
  if (reply->magic != kShareMagic || reply->version != kShareVersion) {
    *why = "the NIC's answer is of another version";
  } else if (reply->refused != 0) {
    *why = std::string("the NIC refused: ") + reply->text;
  } else if (answer.fd_count != descriptors) {
    *why = "the NIC's answer came without the memory (out of descriptors? see ulimit -n)";
  } else {
    return check_sealed_memfd(answer.fds[0].get(), share_pages(request.length), why) &&
           (request.places == 0 || (check_sealed_memfd(answer.fds[1].get(), AccessGate::kBytes, why) &&
                                    check_sealed_memfd(answer.fds[2].get(), LifePage::kBytes, why)));
  }
  return false;
}

}  // namespace

bool connect_share(const std::string& path, const ShareHello& hello, Duration patience,
                   const std::function<void()>& meanwhile, OpenedShare* out, std::string* why) {
  NicAnswer answer;
  if (!ask_nic(path, std::as_bytes(std::span(&hello, 1)), patience, meanwhile, &answer, why)) return false;
  ShareReply reply;
  if (!check_reply(answer, hello.request, &reply, why)) return false;
  *out = {std::move(answer.socket), std::move(answer.fds[0]), reply.writable != 0, std::move(answer.fds[1]),
          std::move(answer.fds[2]), reply.writable != 0 && reply.atomics != 0};
  return true;
}

}  // namespace ub::ipc
