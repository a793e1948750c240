// SPDX-License-Identifier: Apache-2.0
//
// The wires of a NIC behind impairments (lib/impair): one link for all that it sends, one for all that it receives, and
// what belongs around them where frames are real. The owner of the ports moves the frames (hindered_ports.cc).
//
// Out: frames that the Core committed stay open in their port until the end of its turn, then enter the link, and leave
// by their port when they are due. Where the link has a rate and no queue limit, a sender waits, as for a real port,
// while more than kPortTime of it is committed. A frame that is due and finds no room in its port (a full ring, say)
// waits for kPatience, and all behind it; then it is dropped.
//
// Thread: the owner of the Core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/port_concept.h"
#include "lib/base/time.h"
#include "lib/impair/link.h"

namespace ub {

class ImpairedWires {
 public:
  struct Staged {
    uint32_t link;
    std::byte* frame;
    size_t bytes;
  };

  ImpairedWires(const impair::Script& send, const impair::Script& receive, uint64_t seed, Instant now);
  // Other scripts, which begin now; without one that direction stays as it is.
  void set(Instant now, std::optional<impair::Script> send, std::optional<impair::Script> receive) noexcept;

  // ---- out ----
  bool has_room();
  // A frame was committed, and its port keeps its place. False: no memory.
  bool stage(const Staged& staged);
  // The staged frames enter. Their places are the ports' again: abort(const Staged&).
  template <class Abort>
  void enter(Instant now, Abort&& abort) {
    now_ = now;
    for (const Staged& staged : staged_) {
      offer(send_, {staged.frame, staged.bytes}, staged.link);
      abort(staged);
    }
    staged_.clear();
    staged_bytes_ = 0;
  }
  // What is due leaves: send(link, frame), which answers false where its port has no room.
  template <class Send>
  void leave(Instant now, Send&& send) {
    while (has_leaving(now)) {
      const bool sent = send(static_cast<uint32_t>(leaving_->tag), std::span<const std::byte>(leaving_->frame));
      if (!sent && now - leaving_->due < kPatience) return;
      if (!sent) ++no_room_;
      send_.release(*leaving_);
      leaving_.reset();
    }
  }

  // Has a frame that was committed not left yet?
  bool is_sending() const { return send_.under_way() != 0 || leaving_.has_value(); }

  // ---- in ----
  void receive(Instant now, std::span<const RxFrame> frames);
  // What is due. The bytes stay valid until release_received().
  size_t take_received(Instant now, RxFrame* out, size_t room);
  void release_received();

  // When leave() or take_received() has something to do.
  Instant next_due() const;
  // What happened, ever, by the names that tools show: in both directions together, and frames that were dropped
  // because their port, or this process, had no room.
  static constexpr auto kCounters = std::to_array({
#define UB_IMPAIR_COUNT(member, text) "impaired." #member,
#include "lib/impair/counts.def"
#undef UB_IMPAIR_COUNT
      "impaired.no_room",
  });
  std::array<uint64_t, kCounters.size()> counters() const;

 private:
  static constexpr Duration kPortTime = milliseconds(1);
  static constexpr Duration kPatience = milliseconds(1);
  static constexpr Duration kRetry = microseconds(50);

  void offer(impair::Link& link, std::span<const std::byte> frame, uint32_t number);
  bool has_leaving(Instant now);

  impair::Link send_, receive_;
  Instant now_;  // of the last turn
  std::vector<Staged> staged_;
  uint64_t staged_bytes_ = 0;
  std::optional<impair::Arrival> leaving_;
  std::vector<impair::Arrival> handed_on_;
  uint64_t no_room_ = 0;
};

}  // namespace ub
