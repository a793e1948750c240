// SPDX-License-Identifier: Apache-2.0
// icrc.h - the ICRC of a RoCEv2 packet: the CRC-32 and the masked IP and UDP headers of lib/transport/wire/icrc.h, with
// eight bytes of ones in front (where InfiniBand has its link header), and with the congestion bits of BTH masked, too.
// InfiniBand Architecture Specification volume 1, 7.8.1 and annex A17. The least significant of the four bytes comes
// first on the wire. A writer seals while it copies: state = icrc_begin(l3, v6); state = crc32_update(state, behind
// BTH...); wire::icrc_store(end, wire::icrc_finish(state)).
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/network_header.h"

namespace ub::roce {

/// What crc32_init() becomes after eight bytes of ones.
inline constexpr uint32_t kIcrcStart = 0xDEBB20E3;

/// CRC state after the masked IP and UDP headers at l3 and the masked BTH behind them.
[[nodiscard]] uint32_t icrc_begin(const std::byte* l3, bool is_v6);

/// ICRC of a whole packet: size_bytes counts from l3 to the first ICRC byte and reaches at least to the end of BTH.
[[nodiscard]] uint32_t icrc_compute(const std::byte* l3, size_t size_bytes, bool is_v6);

/// Does the ICRC at net.end fit the packet? It does not if there is no whole BTH.
[[nodiscard]] bool icrc_fits(const wire::NetHeader& net);

/// The same for a packet whose IPv4 identification, which the sum covers, is not known: is there one with which the
/// ICRC fits? Of the 32 bits of the sum, 16 are left to find errors. IPv6 has no identification, so nothing is lost
/// there.
[[nodiscard]] bool icrc_fits_some_identification(const wire::NetHeader& net);

}  // namespace ub::roce
