// SPDX-License-Identifier: Apache-2.0
//
// Notes as sentences: "at 12.345 us channel 3 sent packet 17 of message 5 again".
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "lib/base/time.h"
#include "lib/transport/looking/note.h"

namespace ub {

// The longest has less.
constexpr size_t kSentenceRoom = 320;

// Into `out`, cut where that ends; the view is of it.
std::string_view write_sentence(const Note& note, std::span<char> out);
// The same with its time.
std::string_view write_sentence(Instant at, const Note& note, std::span<char> out);

// The words for states of channels (tp::ChannelState) and queues (QueueState).
std::string_view channel_state_text(uint32_t state);
std::string_view queue_state_text(uint32_t state);

}  // namespace ub
