// SPDX-License-Identifier: Apache-2.0
//
// A lane: the memory that a program and the NIC of a target share, so that the program's loads and stores reach the NIC
// without a system call. The NIC makes it (a sealed memfd) and passes it over a rendezvous socket, which stays open:
// its hang-up is the death of either end, and a message on it wakes a NIC that sleeps.
//
//   page 0            control: LaneControl
//   small requests    64 slots of two lines: head, data
//   small replies     the same
//   large requests    8 slots: head line, 8 KiB of data
//   large replies     the same
//
// A head line begins with a word; the frame's headers end where the line ends, and its payload is the data behind. So
// the frame lies in one piece, and payload is aligned. The word is stored last (release) and read first (acquire):
//
//   word   TASSN, 16 bits | bytes of the frame, 16 | bytes of its headers, 16 | 0
//
// Each of the two rings counts its requests by itself. Request n lies in slot n modulo the number of slots, and its
// TASSN is the lower half of n, so a word of the lap before is never taken for the next one. The reply to request n
// lies in slot n of the replies, with the same TASSN. Requests are served in order and each has exactly one reply; a
// slot may be used again when its reply was read. There is no index that one end would have to believe.
//
// Trust: only processes of the NIC's own user are let in, and the NIC believes nothing. Words are read once and
// checked, and what cannot be ends the lane. The program trusts the NIC with its data, as it does for READs, but takes
// no length from it.
//
// lib/urma/include/ub/umdk/urma/softub_lane.h has the program's end in C.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace ub::ipc {

struct LaneControl {
  // The NIC sets it before it sleeps: a program that has stored a word takes it off and sends a message on the socket.
  alignas(64) std::atomic<uint32_t> nic_sleeps;
};

struct LaneLayout {
  static constexpr size_t kLine = 64;
  static constexpr size_t kSmallSlots = 64, kSmallData = kLine;
  static constexpr size_t kLargeSlots = 8, kLargeData = 8192;
  static constexpr size_t kSmallSlot = kLine + kSmallData, kLargeSlot = kLine + kLargeData;

  static constexpr size_t kControl = 0;
  static constexpr size_t kSmallRequests = 4096;
  static constexpr size_t kSmallReplies = kSmallRequests + kSmallSlots * kSmallSlot;
  static constexpr size_t kLargeRequests = kSmallReplies + kSmallSlots * kSmallSlot;
  static constexpr size_t kLargeReplies = kLargeRequests + (kLargeSlots * kLargeSlot + 4095) / 4096 * 4096;
  static constexpr size_t kBytes = kLargeReplies + (kLargeSlots * kLargeSlot + 4095) / 4096 * 4096;
  static_assert(kLargeRequests % 4096 == 0);

  static constexpr size_t kMaxHeaders = kLine - 8;
  // All answers have headers of this length (wire::kBypassAnswerHeaderSize).
  static constexpr size_t kAnswerHeaders = 30;

  static constexpr uint64_t word(uint16_t tassn, size_t frame_bytes, size_t header_bytes) {
    return tassn | uint64_t{frame_bytes} << 16 | uint64_t{header_bytes} << 32;
  }
};

// From the program, with no descriptor.
struct LaneHello {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;                      // of the message
  std::array<uint8_t, 16> wanted_eid;  // of the NIC
  uint32_t wanted_uasid;
  uint32_t flags;   // kHelloHasMembarrier
  int32_t process;  // whose lane it will be: a daemon asks for its applications
  uint32_t reserved;
};
inline constexpr uint64_t kLaneMagic = 0x53'4f'46'54'55'42'6c'6e;  // "SOFTUBln"
inline constexpr uint32_t kLaneVersion = 2;
static_assert(sizeof(LaneHello) == 48);

// From the NIC, with the memfd; or a refusal, without it.
struct LaneReply {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;
  uint32_t refused;  // 0: the lane is open
  uint32_t flags;    // kHelloHasMembarrier: the NIC counts on heavy barriers, so the program needs no fence
  char text[232];    // why it is refused, ends with 0
};
static_assert(sizeof(LaneReply) == 256);

inline LaneReply make_lane_reply() {
  LaneReply reply{};
  reply.magic = kLaneMagic;
  reply.version = kLaneVersion;
  reply.bytes = sizeof reply;
  return reply;
}
inline LaneReply make_lane_refusal(const std::string& text) {
  LaneReply reply = make_lane_reply();
  reply.refused = 1;
  std::memcpy(reply.text, text.data(), std::min(text.size(), sizeof reply.text - 1));
  return reply;
}

}  // namespace ub::ipc
