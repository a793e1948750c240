// SPDX-License-Identifier: Apache-2.0
//
// What an engine is: a protocol inside a Core. The Core drives a list of them, chosen when it is compiled; there is no
// base class and no virtual call. An engine has tables of its own and a reference to CoreState for what all share:
// segments, JFCs, JFRs and taken receives, ids, links, counters, events, `now`, random numbers. An engine is a template
// over Host with these members:
//
//   template <class Host> class Engine {
//     struct State;  // what it knows; all zero is fine
//     // Takes its tables from the arena, which only measures where its base is null, and its ranges of what all share:
//     // CoreCommon::timer_numbers, held_places and copy_prefixes, CoreState::receives_at_once, add_waiters(). Its own
//     // configuration is in CoreState::config; what is off takes nothing.
//     static void lay_out(CoreState&, State&, Arena&);
//     Engine(CoreState&, State&, Host&);
//
//     // Each of these is asked of one engine after the other, until one answers that it was its own.
//     bool claims(const wire::NetHeader&) const;                  // is it a packet for this engine?
//     bool on_posted(ObjectKind kind, uint32_t record);           // elements were posted to an object with an id
//     bool on_copy_done(CopyTag, bool ok);                        // a copy under one of its tags is done
//     bool on_timer(uint32_t timer);                              // a timer of one of its ranges is due
//     bool has_packets(Acks) const;                               // does anything wait for poll_packets?
//
//     void on_packet(uint32_t link, const wire::NetHeader&);      // one that it claimed
//     size_t poll_packets(size_t budget, Acks);                   // at most so many frames; returns how many left
//     void link_down(uint32_t link);                              // it is not up any more; its number is still its own
//     void close_owner(Owner);                                    // an application is gone, its objects with it
//     void close();                                               // says goodbye to all peers
//   };
//
// CoreState::now is set before each call. Those who have packets have the first turn of a poll by turns, so that nobody can
// use up the budget every time; the last engine is polled even where it says that it has none: it may have acknowledgements that
// are to stay back. Frames that an engine gave up (CoreCommon::orphan) are told to the host at the latest before the next
// poll.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "lib/base/arena.h"
#include "lib/transport/core_state.h"

namespace ub {

// Engines in the order in which they are asked. The last one gets every packet, copy and timer that is nobody else's.
template <template <class> class... Engines>
struct EngineList {};

// An engine with its state.
template <class Engine, class Host>
struct EnginePlace {
  EnginePlace(CoreState& s, Arena& arena, Host& host) : engine(laid_out(s, arena), state, host) {}

  typename Engine::State state;
  Engine engine;

 private:
  CoreState& laid_out(CoreState& s, Arena& arena) {
    Engine::lay_out(s, state, arena);
    return s;
  }
};

template <class Host, class List>
class EngineSet;

template <class Host, template <class> class... Engines>
class EngineSet<Host, EngineList<Engines...>> : EnginePlace<Engines<Host>, Host>... {
 public:
  static constexpr uint32_t kCount = sizeof...(Engines);

  EngineSet(CoreState& s, Arena& arena, Host& host) : EnginePlace<Engines<Host>, Host>(s, arena, host)... {}
  EngineSet(const EngineSet&) = delete;
  EngineSet& operator=(const EngineSet&) = delete;

  // What their tables take.
  static void measure(CoreState& s, Arena& arena) {
    (
        [&] {
          typename Engines<Host>::State state;
          Engines<Host>::lay_out(s, state, arena);
        }(),
        ...);
  }

  template <class Engine>
  Engine& get() {
    return static_cast<EnginePlace<Engine, Host>&>(*this).engine;
  }
  template <class Engine>
  const Engine& get() const {
    return static_cast<const EnginePlace<Engine, Host>&>(*this).engine;
  }

  auto& last() { return get<std::tuple_element_t<kCount - 1, std::tuple<Engines<Host>...>>>(); }

  template <class Fn>
  void each(Fn fn) {
    (fn(get<Engines<Host>>()), ...);
  }
  // Of one after the other, until fn() is true.
  template <class Fn>
  bool any(Fn fn) {
    return (fn(get<Engines<Host>>()) || ...);
  }
  template <class Fn>
  bool any(Fn fn) const {
    return (fn(get<Engines<Host>>()) || ...);
  }
  // The same without the last one.
  template <class Fn>
  bool any_but_last(Fn fn) const {
    uint32_t i = 0;
    return ((++i < kCount && fn(get<Engines<Host>>())) || ...);
  }
  // Of the one at that place in the list.
  template <class Fn>
  bool is_at(uint32_t place, Fn fn) const {
    uint32_t i = 0;
    return ((i++ == place && fn(get<Engines<Host>>())) || ...);
  }
  // The one at that place in the list.
  template <class Fn>
  void at(uint32_t place, Fn fn) {
    uint32_t i = 0;
    (void)((i++ == place ? (fn(get<Engines<Host>>()), true) : false) || ...);
  }
};

}  // namespace ub
