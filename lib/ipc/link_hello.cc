// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/link_hello.h"

#include <algorithm>
#include <cstring>

namespace ub::ipc {
namespace {

std::string version_text(const char* here, const char* there, uint32_t theirs) {
  return std::string("the ") + there + " side speaks version " + std::to_string(theirs) +
         " of the shared-memory wire, the " + here + " side version " + std::to_string(kHelloVersion) +
         "; update the older of the two";
}

}  // namespace

LinkReply make_reply() {
  LinkReply r{};
  r.head = {kHelloMagic, kHelloVersion, sizeof r};
  return r;
}

LinkReply make_refusal(Refusal code, const std::string& text) {
  LinkReply r = make_reply();
  r.code = code;
  std::memcpy(r.text, text.data(), std::min(text.size(), sizeof r.text - 1));
  return r;
}

Refusal check_hello(std::span<const std::byte> message, size_t fd_count, LinkHello* out, std::string* why) {
  *out = {};
  std::memcpy(out, message.data(), std::min(message.size(), sizeof *out));
  if (message.size() < sizeof out->head || out->head.magic != kHelloMagic) {
    *why = "not a greeting of the shared-memory wire";
    return Refusal::kMalformed;
  }
  if (out->head.version != kHelloVersion) {
    *why = version_text("accepting", "connecting", out->head.version);
    return Refusal::kVersion;
  }
  if (message.size() != sizeof *out || out->head.bytes != sizeof *out || fd_count != kHelloFds) {
    *why = "a greeting of wrong length or without its three descriptors (out of descriptors? see ulimit -n)";
    return Refusal::kMalformed;
  }
  if (out->uasid == 0 || !FrameRing::valid_size(out->ring_bytes)) {
    *why = "a uasid of 0, or a ring that is no power of two from 64 KiB to 1 GiB";
    return Refusal::kMalformed;
  }
  if (out->mtu != 1024 && out->mtu != 2048 && out->mtu != 4096 && out->mtu != 8192) {
    *why = "an MTU of " + std::to_string(out->mtu) + " bytes";
    return Refusal::kMalformed;
  }
  return Refusal::kNone;
}

bool check_reply(std::span<const std::byte> message, size_t fd_count, LinkReply* out, std::string* why) {
  *out = {};
  std::memcpy(out, message.data(), std::min(message.size(), sizeof *out));
  out->text[sizeof out->text - 1] = 0;
  if (message.size() < sizeof out->head || out->head.magic != kHelloMagic) {
    *why = "the peer's answer is not one of the shared-memory wire";
  } else if (message.size() == sizeof *out && out->code != Refusal::kNone) {
    *why = std::string("the peer refused: ") + out->text;  // it says more than a comparison of versions here
  } else if (out->head.version != kHelloVersion) {
    *why = version_text("connecting", "accepting", out->head.version);
  } else if (message.size() != sizeof *out || out->head.bytes != sizeof *out || fd_count != kReplyFds) {
    *why = "the peer's answer has a wrong length or not its two descriptors";
  } else {
    return true;
  }
  return false;
}

}  // namespace ub::ipc
