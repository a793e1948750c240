// SPDX-License-Identifier: Apache-2.0
//
// Frames whose next hop is being asked for: a short queue for each hop, when to ask again, and when to give up. Frames
// are only pointed at; to send and to free them is the caller's. No IO, no clock.
//
// There are bounds, since anybody may send to addresses that nobody has. Of one hop kMostOfOne frames wait, of all
// hops kMost. Where those are reached, the hop that was waited for longest gives way: a neighbour that is there answers
// soon, so those that many are sent to in vain are the older ones.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <list>
#include <map>

#include "lib/base/time.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

class WaitingFrames {
 public:
  static constexpr size_t kMostOfOne = 64;
  static constexpr size_t kMost = 512;
  static constexpr Duration kPatience = seconds(3);  // with a hop, from its first frame on

  // Keeps a frame behind those that wait for the same hop. The first question is the caller's; the time of a hop begins
  // at the next ask(). Returns a frame to be dropped for it, perhaps itself; null: there was room.
  std::byte* hold(const wire::IpAddress& hop, std::byte* frame);
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  bool waits_for(const wire::IpAddress& hop) const { return by_hop_.contains(hop); }

  // The hop is known: its frames may leave, and so may those that are held behind them before the last one was taken.
  void answer(const wire::IpAddress& hop, const wire::MacAddress&);
  bool has_answered() const { return !answered_.empty(); }
  // The oldest frame of a hop that answered, and where it goes. Null: none.
  std::byte* take_answered(wire::MacAddress*);

  // Calls ask(hop, frame) for each hop that is to be asked for once more, with the first frame that waits for it. False
  // gives up: the others are asked for the next time.
  template <class Ask>
  void ask(Instant now, Ask&& ask) {
    if (now < deadline_) return;
    for (Queue& q : asked_) {
      if (q.since.is_never()) {
        q.since = now;
        q.ask_at = now + kFirstPause;
      }
      if (q.ask_at > now) continue;
      if (!ask(q.hop, q.frames[q.first])) break;
      q.ask_at = now + q.pause;
      q.pause = std::min(q.pause * 2, kLongestPause);
    }
    set_deadline();
  }
  // All hops are to be asked for now: questions got lost for a reason that is gone.
  void ask_again(Instant now);
  // A frame whose hop did not answer in time, to be dropped. Null: none now.
  std::byte* take_late(Instant now);
  // Of any frame, to be freed. Null: none is left.
  std::byte* take_any();

  // When ask() or take_late() have something to do, at the earliest.
  Instant next_deadline() const { return deadline_; }

 private:
  static constexpr Duration kFirstPause = milliseconds(20);  // between questions; doubles
  static constexpr Duration kLongestPause = milliseconds(320);

  struct Queue {
    wire::IpAddress hop;
    wire::MacAddress mac{};
    bool answered = false;
    Instant since = Instant::never();
    Instant ask_at{};
    Duration pause = kFirstPause;
    std::array<std::byte*, kMostOfOne> frames{};  // a ring
    size_t first = 0;
    size_t count = 0;
  };
  using Queues = std::list<Queue>;
  struct Less {
    bool operator()(const wire::IpAddress& a, const wire::IpAddress& b) const { return a.bytes < b.bytes; }
  };

  std::byte* take_first(Queues&);
  void set_deadline();

  Queues asked_;     // longest first
  Queues answered_;  // in order of the answers
  std::map<wire::IpAddress, Queues::iterator, Less> by_hop_;
  size_t count_ = 0;  // frames
  Instant deadline_ = Instant::never();
};

}  // namespace ub
