// SPDX-License-Identifier: Apache-2.0
// extended_headers.h - the headers between BTH and the payload. InfiniBand Architecture Specification volume 1, 9.3.
// read() takes exactly kSize bytes; the caller has checked that they are there (packet.cc does so once for all headers
// of a packet). The structs have no default values, so that a decoder need not clear what it does not fill in.
// Initialise a struct with {} to clear it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/base/serial.h"
#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/roce/wire/syndrome.h"

namespace ub::roce {

using Msn = Serial<24, struct MsnTag>;  ///< requests that a responder has completed

/// The header of a datagram.
struct Deth {
  static constexpr size_t kSize = 8;

  uint32_t qkey;
  uint32_t src_qp;  ///< 24 bits

  static Deth read(const std::byte* p) { return {load_be32(p), load_be32(p + 4) & kQpnMask}; }
  void write(std::byte* p) const {
    store_be32(p, qkey);
    store_be32(p + 4, src_qp & kQpnMask);
  }
  bool operator==(const Deth&) const = default;
};

/// The memory of a WRITE or READ.
struct Reth {
  static constexpr size_t kSize = 16;

  uint64_t address;
  uint32_t rkey;
  uint32_t length;  ///< bytes of the whole message

  static Reth read(const std::byte* p) { return {load_be64(p), load_be32(p + 8), load_be32(p + 12)}; }
  void write(std::byte* p) const {
    store_be64(p, address);
    store_be32(p + 8, rkey);
    store_be32(p + 12, length);
  }
  bool operator==(const Reth&) const = default;
};

/// The memory and the operands of an atomic. All are numbers: the responder's memory holds them in its own byte order.
struct AtomicEth {
  static constexpr size_t kSize = 28;

  uint64_t address;
  uint32_t rkey;
  uint64_t swap_or_add;
  uint64_t compare;  ///< of a compare-and-swap only

  static AtomicEth read(const std::byte* p) {
    return {load_be64(p), load_be32(p + 8), load_be64(p + 12), load_be64(p + 20)};
  }
  void write(std::byte* p) const {
    store_be64(p, address);
    store_be32(p + 8, rkey);
    store_be64(p + 12, swap_or_add);
    store_be64(p + 20, compare);
  }
  bool operator==(const AtomicEth&) const = default;
};

/// The header of an acknowledgement.
struct Aeth {
  static constexpr size_t kSize = 4;

  Syndrome syndrome;
  Msn msn;

  static Aeth read(const std::byte* p) {
    const uint32_t w = load_be32(p);
    return {{static_cast<uint8_t>(w >> 24)}, Msn(w)};
  }
  void write(std::byte* p) const { store_be32(p, uint32_t{syndrome.code} << 24 | msn.value()); }
  bool operator==(const Aeth&) const = default;
};

inline constexpr size_t kAtomicAckEthSize = 8;  ///< the value that was there before
inline constexpr size_t kImmSize = 4;           ///< ImmDt: 32 bits for the application
inline constexpr size_t kIethSize = 4;          ///< the rkey to invalidate
inline constexpr size_t kCnpReservedSize = 16;

}  // namespace ub::roce
