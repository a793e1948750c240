// SPDX-License-Identifier: Apache-2.0
// mad.h - the head of a management datagram of the class "communication management" (CM): the 256-byte payload of a UD
// SEND to QP 1. InfiniBand Architecture Specification volume 1, 13.4 and 16.7. No other class is supported, because
// RoCE has no subnet manager to ask. What follows the head is in cm_message.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/bytes.h"
#include "lib/transport/roce/wire/drop.h"

namespace ub::roce {

inline constexpr uint32_t kGsiQp = 1;             ///< management datagrams go there, on every NIC
inline constexpr uint32_t kGsiQkey = 0x80010000;  ///< their DETH carries this Q_Key
inline constexpr size_t kMadSize = 256;
inline constexpr size_t kMadHeadSize = 24;
inline constexpr size_t kCmBodySize = kMadSize - kMadHeadSize;

/// The attribute of the datagram.
enum class CmType : uint16_t {
  kReq = 0x10,
  kMra = 0x11,
  kRej = 0x12,
  kRep = 0x13,
  kRtu = 0x14,
  kDreq = 0x15,
  kDrep = 0x16,
};

constexpr bool cm_type_is_known(CmType type) { return type >= CmType::kReq && type <= CmType::kDrep; }

/// What differs from one CM datagram to the next; the rest is constant.
struct CmHead {
  static constexpr uint8_t kBaseVersion = 1;
  static constexpr uint8_t kClass = 7;
  static constexpr uint8_t kClassVersion = 2;
  static constexpr uint8_t kMethodSend = 3;

  CmType type = CmType::kReq;   ///< as it came, known or not
  uint64_t transaction_id = 0;  ///< chosen by the side that asks (REQ, DREQ); the answer has the same one

  /// `h` is set for every result but kBadMad.
  static Drop read(std::span<const std::byte> mad, CmHead& h) {
    const std::byte* p = mad.data();
    if (mad.size() != kMadSize || load_u8(p) != kBaseVersion || load_u8(p + 1) != kClass ||
        load_u8(p + 3) != kMethodSend)
      return Drop::kBadMad;
    h.transaction_id = load_be64(p + 8);
    h.type = static_cast<CmType>(load_be16(p + 16));
    if (load_u8(p + 2) != kClassVersion) return Drop::kBadCmVersion;
    return cm_type_is_known(h.type) ? Drop::kNone : Drop::kUnknownCmMessage;
  }

  /// Writes kMadHeadSize bytes. Status, class-specific field and attribute modifier are not used and are zero.
  void write(std::byte* mad) const {
    store_be32(mad, uint32_t{kBaseVersion} << 24 | kClass << 16 | kClassVersion << 8 | kMethodSend);
    store_be32(mad + 4, 0);
    store_be64(mad + 8, transaction_id);
    store_be32(mad + 16, uint32_t{static_cast<uint16_t>(type)} << 16);
    store_be32(mad + 20, 0);
  }

  bool operator==(const CmHead&) const = default;
};

}  // namespace ub::roce
