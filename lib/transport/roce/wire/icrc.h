// SPDX-License-Identifier: Apache-2.0
// icrc.h - the ICRC of a RoCEv2 packet: the CRC-32 and the masked IP and UDP headers of lib/transport/wire/icrc.h,
// with eight bytes of ones in front (where InfiniBand has its link header) and the congestion bits of BTH masked too.
// InfiniBand Architecture Specification volume 1, 7.8.1 and annex A17. The four bytes travel least significant first.
// A writer seals while it copies: state = icrc_begin(l3, v6); state = crc32_update(state, behind BTH...);
// wire::icrc_store(end, wire::icrc_finish(state)).
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

/// Whether the ICRC at net.end fits the packet. False as well if there is no whole BTH.
[[nodiscard]] bool icrc_fits(const wire::NetHeader& net);

/// The same where nobody knows the IPv4 identification that the sender wrote, which the sum covers: whether there is
/// one that fits. Of 32 bits 16 are left to find errors with. IPv6 has none, so nothing is lost there.
[[nodiscard]] bool icrc_fits_some_identification(const wire::NetHeader& net);

}  // namespace ub::roce
