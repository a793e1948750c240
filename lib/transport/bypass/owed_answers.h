// SPDX-License-Identifier: Apache-2.0
//
// Answers to stores that found no room in the port of a wire. The store has been carried out and its sender would not
// send it again, so its answer waits for room. It does so for kFrameLife at most: the sender counts on that before it
// uses the TASSN again. The answer to a load needs no place: a load that finds no room is dropped, and goes again.
#pragma once

#include <cstdint>

#include "lib/base/serial.h"
#include "lib/transport/bypass/pair.h"
#include "lib/transport/wire/bypass_packet.h"

namespace ub::bypass {

struct OwedAnswer {
  uint32_t link;
  wire::BypassRoute route;  // of the request
  Tassn tassn;
  uint8_t status;
  Instant since;

  bool is_late(Instant now) const { return now - since > kFrameLife; }
};

class OwedAnswers {
 public:
  bool empty() const { return head_ == tail_; }
  bool full() const { return size() == kPlaces; }
  uint32_t size() const { return tail_ - head_; }
  void push(const OwedAnswer& answer) { places_[tail_++ % kPlaces] = answer; }
  OwedAnswer pop() { return places_[head_++ % kPlaces]; }
  // Forgets those of a link.
  void drop(uint32_t link) {
    for (uint32_t left = size(); left != 0; --left) {
      const OwedAnswer answer = pop();
      if (answer.link != link) push(answer);
    }
  }

 private:
  static constexpr uint32_t kPlaces = 256;

  OwedAnswer places_[kPlaces];
  uint32_t head_ = 0, tail_ = 0;
};

}  // namespace ub::bypass
