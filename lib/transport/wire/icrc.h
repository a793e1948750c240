// SPDX-License-Identifier: Apache-2.0
// icrc.h - the invariant CRC that ends every UB packet over IP or NTH24: the CRC-32 from the network header to the last
// pad byte, where fields that a hop may change count as all ones. UB Base Specification Rev 2.0, 5.3.7. A writer seals
// while it copies: state = icrc_begin(l3, v6); state = crc32_update(state, tph...); state = crc32_copy_update(state,
// payload...); icrc_store(end, icrc_finish(state)). The least significant of the four bytes comes first on the wire, as
// in an Ethernet FCS. If both ends agreed to leave the ICRC out, its kIcrcSize bytes are zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/base/crc32.h"

namespace ub::wire {

enum class NetForm : uint8_t;

inline constexpr size_t kIcrcSize = 4;

/// The CRC state after the masked IP and UDP headers at l3 (28 bytes for IPv4, 48 for IPv6). The masked fields are ToS,
/// TTL and header checksum; traffic class, flow label and hop limit; UDP checksum. `state` covers what comes before
/// them, which is nothing, or what another protocol sums first.
[[nodiscard]] uint32_t icrc_begin(const std::byte* l3, bool is_v6, uint32_t state = crc32_init());

/// The CRC state after the masked NTH24 (10 bytes). The masked fields are CCI and LBF.
[[nodiscard]] uint32_t icrc_begin_nth24(const std::byte* nth);

[[nodiscard]] inline uint32_t icrc_finish(uint32_t state) { return crc32_final(state); }

inline void icrc_store(std::byte* p, uint32_t icrc) { store_le32(p, icrc); }
[[nodiscard]] inline uint32_t icrc_load(const std::byte* p) { return load_le32(p); }

/// The ICRC of a whole packet. size_bytes counts from l3 to the first ICRC byte, and covers at least the headers.
[[nodiscard]] uint32_t icrc_compute(const std::byte* l3, size_t size_bytes, bool is_v6);
[[nodiscard]] uint32_t icrc_compute_nth24(const std::byte* nth, size_t size_bytes);
/// The same of a packet of any form. size_bytes counts from the first byte behind the Ethernet header.
[[nodiscard]] uint32_t icrc_of_packet(const std::byte* behind_ethernet, size_t size_bytes, NetForm form);

}  // namespace ub::wire
