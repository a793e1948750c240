// SPDX-License-Identifier: Apache-2.0
//
// The two messages that set up a link of the shared-memory wire, over a rendezvous socket.
//
//   hello   from connector to acceptor, with 3 descriptors: the memfd of the rings, and the connector's doorbell page
//           and eventfd
//   reply   from acceptor to connector, with 2 descriptors: the acceptor's doorbell page and eventfd; or a refusal
//
// The memfd holds two FrameRing areas: the connector writes the first one, the acceptor the second one. Integers are in
// native byte order, because both run on one host. The head never changes, so that any two versions can name each
// other. A message is the word of a peer, so check_* believes nothing. Thread: any; there is no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lib/ipc/frame_ring.h"

namespace ub::ipc {

inline constexpr uint64_t kHelloMagic = 0x53'4f'46'54'55'42'73'68;  // "SOFTUBsh"
inline constexpr uint32_t kHelloVersion = 1;
inline constexpr uint32_t kHelloHasMembarrier = 1;  // a bit of flags: heavy barriers reach this process
inline constexpr size_t kHelloFds = 3;
inline constexpr size_t kReplyFds = 2;

struct HelloHead {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;  // of the whole message
};

struct LinkHello {
  HelloHead head;
  std::array<uint8_t, 16> eid;         // of the connector
  std::array<uint8_t, 16> wanted_eid;  // of the acceptor
  uint32_t uasid;
  uint32_t wanted_uasid;  // 0: any instance that holds the port
  uint64_t ring_bytes;
  uint32_t mtu;
  uint32_t link;  // bit in the connector's doorbell that the acceptor sets
  uint32_t flags;
  uint32_t reserved;
};
static_assert(sizeof(LinkHello) == 80);

enum class Refusal : uint32_t { kNone = 0, kVersion = 1, kMalformed = 2, kNotAllowed = 3, kNoRoom = 4 };

struct LinkReply {
  HelloHead head;
  Refusal code;
  uint32_t uasid;  // of the acceptor
  uint32_t mtu;
  uint32_t link;  // bit in the acceptor's doorbell that the connector sets
  uint32_t flags;
  uint32_t reserved;
  char text[256];  // why it refuses, ends with 0
};
static_assert(sizeof(LinkReply) == 296);

inline LinkHello make_hello() {
  LinkHello h{};
  h.head = {kHelloMagic, kHelloVersion, sizeof h};
  return h;
}
LinkReply make_reply();
LinkReply make_refusal(Refusal, const std::string& text);

// kNone: `*out` is a hello of this version, and every value in it is possible. Else `*why` is a sentence that says what
// is wrong.
Refusal check_hello(std::span<const std::byte> message, size_t fd_count, LinkHello* out, std::string* why);
// True: the peer accepted. Else `*why` says what the peer or this side objects to.
bool check_reply(std::span<const std::byte> message, size_t fd_count, LinkReply* out, std::string* why);

// The area that one side writes: 0 is the connector, 1 the acceptor.
inline std::byte* ring_area(std::byte* memory, uint64_t ring_bytes, size_t writer) {
  return memory + writer * FrameRing::area_bytes(ring_bytes);
}
inline size_t link_memory_bytes(uint64_t ring_bytes) { return 2 * FrameRing::area_bytes(ring_bytes); }

}  // namespace ub::ipc
