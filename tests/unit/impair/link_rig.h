// SPDX-License-Identifier: Apache-2.0
//
// A link with frames whose first bytes are a number, and what came out of it.
#pragma once

#include <cstring>
#include <string_view>
#include <vector>

#include "lib/impair/link.h"
#include "lib/impair/text.h"

namespace ub::impair {

inline Script script_of(std::string_view text) { return parse(text).script.value(); }

struct Out {
  uint64_t number;  // of the frame
  Instant due;
  bool operator==(const Out&) const = default;
};

class LinkRig {
 public:
  explicit LinkRig(std::string_view text, uint64_t seed = 1) : link(script_of(text), seed, {}, 1 << 20) {}

  Verdict offer(Instant now, uint64_t number, size_t bytes = 100) {
    std::vector<std::byte> frame(bytes);
    std::memcpy(frame.data(), &number, sizeof number);
    return link.offer(now, frame, number);
  }
  // So many frames at once, with their numbers from 0 on.
  void offer_many(uint64_t frames, Instant now = {}, size_t bytes = 100) {
    for (uint64_t i = 0; i < frames; ++i) offer(now, i, bytes);
  }
  // All that comes until then.
  std::vector<Out> take(Instant now = {UINT64_MAX - 1}) {
    std::vector<Out> out;
    while (const std::optional<Arrival> a = link.take(now)) {
      out.push_back({a->tag, a->due});
      link.release(*a);
    }
    return out;
  }

  Link link;
};

}  // namespace ub::impair
