// SPDX-License-Identifier: Apache-2.0
//
// Memory of softub_alloc_shared that another program of the host maps: what it and the NIC of the owner say to each
// other over a rendezvous socket.
//
//   program   ShareHello: which segment, with which token, also to write?
//   NIC       ShareReply with the memory's descriptor; or a refusal, without one
//   NIC       ShareNotice: the right has ended
//
// The NIC of a program asks so, too, for memory that it will access itself (ShareRequest::places). It gets the
// descriptors of an AccessGate, which it enters for each access, and of the LifePage of the owner's NIC, too.
//
// The socket stays open as long as the program has the memory mapped. Its hang-up by the program says that it let go,
// that by the NIC that the owner or its NIC is gone. The NIC can take nothing back that is mapped: it tells, and knows
// who has not hung up.
//
// Where the segment does not permit writing, the descriptor is open for reading alone; a hostile program of the same
// user can undo that. Memory that its owner offered for reading is sealed with F_SEAL_FUTURE_WRITE, for good.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace ub::ipc {

inline constexpr uint64_t kShareMagic = 0x53'4f'46'54'55'42'73'68;  // "SOFTUBsh"
inline constexpr uint32_t kShareVersion = 2;
inline constexpr size_t kSharePage = 4096;

constexpr uint64_t share_pages(uint64_t bytes) { return (bytes + kSharePage - 1) / kSharePage * kSharePage; }

// The segment, all of it, as its owner registered it.
struct ShareRequest {
  uint64_t address, length;
  uint32_t token_id;
  uint32_t token_value;
  uint8_t token_required;
  uint8_t writes;  // 0 or 1; with 0, or without permission, the memory comes for reading
  uint8_t places;  // 0 or 1: a NIC asks, for itself
  uint8_t atomics;  // 0 or 1: it would run atomics; the NIC of the owner may make it 0
  int32_t process;  // that maps it
};
static_assert(sizeof(ShareRequest) == 32);

struct ShareHello {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;                      // of the message
  std::array<uint8_t, 16> wanted_eid;  // of the NIC
  uint32_t wanted_uasid;
  uint32_t reserved;
  ShareRequest request;
};
static_assert(sizeof(ShareHello) == 72);

struct ShareReply {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;
  uint32_t refused;   // 0: the memory is there
  uint32_t writable;  // 0 or 1
  uint32_t atomics;   // 0 or 1
  char text[228];     // why it is refused, ends with 0
};
static_assert(sizeof(ShareReply) == 256);

struct ShareNotice {
  uint64_t magic;
};

inline ShareHello make_share_hello(const std::array<uint8_t, 16>& eid, uint32_t uasid, const ShareRequest& request) {
  return {kShareMagic, kShareVersion, sizeof(ShareHello), eid, uasid, 0, request};
}
inline ShareReply make_share_reply(bool writable, bool atomics = false) {
  ShareReply reply{};
  reply.magic = kShareMagic;
  reply.version = kShareVersion;
  reply.bytes = sizeof reply;
  reply.writable = writable ? 1 : 0;
  reply.atomics = atomics ? 1 : 0;
  return reply;
}
inline ShareReply make_share_refusal(const std::string& text) {
  ShareReply reply = make_share_reply(false);
  reply.refused = 1;
  std::memcpy(reply.text, text.data(), std::min(text.size(), sizeof reply.text - 1));
  return reply;
}

// Who maps a memory, as an owner asks.
struct ShareHolder {
  int32_t process;
  uint32_t told;  // 1: its right has ended, it was told so, and it has not let go
};

}  // namespace ub::ipc
