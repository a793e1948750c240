// SPDX-License-Identifier: Apache-2.0
//
// One direction of a link that is not perfect: frames go in, and come out later, or twice, damaged, in another order,
// or not at all, as its script says (spec.h). It reads no clock and sends nothing: whoever drives it passes the time
// in, which must not go back, asks next_due() when to come again, and takes out what is due.
//
// A frame that enters takes its turn on the line, whether it is lost behind it or not; its copy, if it comes twice,
// takes another turn. So no fault makes a link faster. Frames that are dropped in front of the line (queue full, cut)
// take none. A late frame stands aside until so many others were let pass: the order is exact by frames, at any rate.
//
// A change of rate, delay, jitter, reorder or wait concerns what is under way, too, so that what comes after it is not
// held up by times that the former settings gave: such a frame arrives no later than if its turn on the line, and its
// delay, had come from then on under the new settings; a late frame waits no longer. Nothing becomes later by a change,
// and frames do not pass each other.
//
// The same seed, script, times and frames give the same results. Each fault has random numbers of its own, so that one
// more word in the text does not change which frames the others choose.
//
// Memory: frames are copied into a pool, which grows to the most that were ever under way and is then reused. No more
// than `most_frames` are under way, or stand in the line, whatever the script says.
// Thread: the caller serialises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/prng.h"
#include "lib/base/time.h"
#include "lib/impair/calendar.h"
#include "lib/impair/caqm_hop.h"
#include "lib/impair/line.h"
#include "lib/impair/losses.h"
#include "lib/impair/spec.h"

namespace ub::impair {

struct Counts {
#define UB_IMPAIR_COUNT(member, text) uint64_t member = 0;
#include "lib/impair/counts.def"
#undef UB_IMPAIR_COUNT
};

enum class Fate : uint8_t {
  kUnderWay,    // it will come out
  kLostRandom,  // the rest: it will not
  kLostBurst,
  kLostNth,
  kQueueFull,  // that of the spec, or as many frames are under way or in the line as may be
  kDown,
};

// What happens to a frame. All but the fate is false if it is lost.
struct Verdict {
  Fate fate = Fate::kUnderWay;
  bool marked = false;  // of congestion: its sender allowed that
  bool corrupted = false;
  bool late = false;  // others may pass it
  bool duplicated = false;
};

// A frame that comes out. The bytes are the caller's until release().
struct Arrival {
  std::span<std::byte> frame;
  uint64_t tag = 0;  // as it was offered
  Instant due{};     // it may be taken later than that
  uint32_t slot = 0;
};

class Link {
 public:
  static constexpr uint32_t kDefaultMostFrames = 1 << 16;

  // The script begins at `start`. `most_frames`: so many may be under way, duplicates included, and so many in the
  // line, those included that are lost behind it.
  Link(const Script& script, uint64_t seed, Instant start = {}, uint32_t most_frames = kDefaultMostFrames);

  // Another script, which begins now. Counts and random numbers go on. Allocates nothing.
  void set(Instant now, Script script);
  // What is in force.
  const Spec& spec_at(Instant now);
  // Changes of the script that are still to come.
  size_t changes_to_come(Instant now) {
    spec_at(now);
    return script_.changes.size() - changes_made_;
  }

  // A frame enters. The tag comes out with it.
  Verdict offer(Instant now, std::span<const std::byte> frame, uint64_t tag = 0);
  // The next frame that is due; empty: there is none yet.
  std::optional<Arrival> take(Instant now);
  void release(const Arrival& arrival) { free_.push_back(arrival.slot); }
  // When take() has a frame, or a change can make one due; never: none is under way.
  Instant next_due() const {
    return due_.empty() ? Instant::never() : earlier(Instant{due_.first().at}, next_change());
  }

  // When the last frame that entered has left the line. A sender that would rather wait than see its frames dropped
  // looks at it.
  Instant line_free_at() const { return line_.free_at(); }
  // Frames that entered and were not taken out.
  size_t under_way() const { return under_way_; }
  // Entries of its calendars: at most some 100, and a small multiple of the frames under way.
  size_t planned() const { return due_.size() + late_.size(); }
  const Counts& counts() const { return counts_; }

 private:
  struct Slot {
    std::vector<std::byte> bytes;
    size_t size = 0;
    uint64_t tag = 0;
    Instant due{};
    uint64_t position = 0;  // on the line: its own, or that of the frame behind which it was let
    uint64_t order = 0;     // of its entry in due_; 0: it is not under way
  };

  Instant next_change() const {
    return changes_made_ == script_.changes.size() ? Instant::never() : start_ + script_.changes[changes_made_].at;
  }
  void change(Instant at, const Spec& spec);
  Instant latest_arrival(Instant at, uint64_t position);
  bool has_no_room(size_t bytes, Instant now);
  bool mark(uint64_t in_front, std::span<std::byte> frame);
  Fate loss();
  bool is_late();
  uint32_t take_slot(std::span<const std::byte> frame, uint64_t tag);
  void flip_a_bit(std::span<std::byte> frame);
  Instant arrival(Instant now, size_t bytes);
  void plan(uint32_t slot, Instant due);
  void pass(uint32_t slot, Instant due);
  void hold(uint32_t slot, Instant due);
  bool is_gone(const Calendar::Entry& entry) const { return slots_[entry.slot].order != entry.order; }
  void drop_gone();

  Script script_;
  Instant start_;
  size_t changes_made_ = 0;
  Spec spec_;
  uint32_t most_frames_;

  Losses losses_;
  Prng jitter_, marks_, corruption_, lateness_, duplication_;
  CaqmHop caqm_;
  Line line_;
  Instant latest_{};         // the arrival of the latest frame that was not held up
  uint64_t candidates_ = 0;  // for being late
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  Calendar due_;         // by time; the first entry is never gone
  Calendar late_;        // by the number of frames that must have passed
  uint64_t passed_ = 0;  // frames that got their place in the order
  uint64_t order_ = 0;
  size_t under_way_ = 0;
  Counts counts_;
};

}  // namespace ub::impair
