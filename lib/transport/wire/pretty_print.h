// SPDX-License-Identifier: Apache-2.0
// pretty_print.h - any frame as one line of text, for tools and failing tests; not for the data path.
//   10.0.0.1:49152 > 10.0.0.2:4792 data L A tpn 123456>abcdef psn 10 msn 7 WRITE tassn 4660 ro rc abcde
//   addr 1122334455667788 id 54321 len 5 tv deadbeef | 5 B pad 3 icrc ok
// What does not decode is named ("drop truncated_header"), and what came before it is still printed.
#pragma once

#include <cstddef>
#include <span>

namespace ub::wire {

/// Writes at most cap bytes, the terminating zero included (cap 0 writes nothing), and returns the length
/// without it. `read_meta` is the channel's attribute; a Read request shows by its length which it is, a
/// response does not.
size_t format_packet(std::span<const std::byte> eth_frame, char* out, size_t cap, bool read_meta = true);

}  // namespace ub::wire
