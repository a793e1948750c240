// SPDX-License-Identifier: Apache-2.0
//
// WRITE with byte enables at its target (UB Base Specification Rev 2.0, 7.4): places the bytes that are enabled, each
// run of them as a copy of its own.
//
// Enables may alternate, so a message may have hundreds of runs. Where memory answers later, they are placed in parts:
// no more copies of the message are pending at a time than of any other message, and the next part begins when those
// have ended. The packet is kept meanwhile, as that of any message whose end waits. Runs cannot be joined to a longer
// copy, because the bytes between them would be written, too, and somebody else may be changing these.
#pragma once

#include <bit>

#include "lib/transport/ta/payload.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

// The first byte of the payload, from `from` on, that is enabled or that is not; the length of the payload: there is
// none.
inline uint32_t find_byte(const wire::TaPacket& ta, uint32_t from, bool enabled) {
  for (; from < ta.be.enables; from = (from / 64 + 1) * 64) {
    const uint64_t word = ta.be.word(from / 64);
    const uint64_t rest = (enabled ? word : ~word) >> from % 64;
    if (rest != 0) return from + static_cast<uint32_t>(std::countr_zero(rest));
  }
  return enabled ? from : ta.payload_len;  // what has no enable is enabled
}

// Places enabled bytes of the payload, the first of which belongs at `memory`, until all are placed or `most_pending`
// copies are pending. The last run waits for all others, because its final word becomes visible last. `done`: the bytes
// before it are written. If the peer repeats the packet with a shorter payload, it may lie behind the end; then nothing
// is left to write. kPending: there are more, to be placed when no copy of the message is pending.
template <class Host>
CopyResult place_enabled(Host& host, const Copies& copies, std::byte* memory, const wire::TaPacket& ta,
                         uint32_t most_pending, uint16_t& done) {
  for (;;) {
    const uint32_t begin = find_byte(ta, done, true);
    if (begin >= ta.payload_len) return CopyResult::kDone;
    const uint32_t end = find_byte(ta, begin, false);
    const bool final = find_byte(ta, end, true) == ta.payload_len;
    if (copies.pending >= (final ? 1 : most_pending)) return CopyResult::kPending;
    if (place_piece(host, copies, memory + begin, ta.payload + begin, end - begin, final) == CopyResult::kFailed) {
      return CopyResult::kFailed;
    }
    done = static_cast<uint16_t>(end);
  }
}

}  // namespace ub::ta
