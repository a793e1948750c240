// SPDX-License-Identifier: Apache-2.0
//
// An engine is a protocol inside a Core. The Core drives a list of engines that is chosen at compile time; there is no
// base class and no virtual call. An engine has its own tables, and a reference to CoreState for what all engines
// share: segments, JFCs, JFRs and taken receives, ids, links, counters, events, `now`, random numbers. It is a template
// over Host with these members:
//
//   template <class Host> class Engine {
//     struct State;  // its own state
//     // Takes its tables from the arena (which only measures if its base is null) and its ranges of what all engines
//     // share: CoreCommon::timer_numbers, copy_prefixes and held.numbers, CoreState::receives_at_once, add_waiters().
//     // Its configuration is in CoreState::config; an engine that is off takes nothing.
//     static void lay_out(CoreState&, State&, Arena&);
//     Engine(CoreState&, State&, Host&);
//
//     // The Core asks one engine after the other, until one returns true: that was its own.
//     bool claims(const wire::NetHeader&) const;                  // is this packet for this engine?
//     bool on_link_frame(uint32_t link, std::span<const std::byte>);  // a frame with LPH instead of IP
//     bool on_posted(ObjectKind kind, uint32_t record);           // elements were posted to an object with an id
//     bool on_copy_done(CopyTag, bool ok);                        // a copy with one of its tags has finished
//     bool on_gathered(const HeldFrame&);                         // all bytes of one of its held frames are there
//     bool on_timer(uint32_t timer);                              // a timer of one of its ranges is due
//     bool has_packets(Acks) const;                               // has poll_packets() anything to send?
//
//     void on_packet(uint32_t link, const wire::NetHeader&);      // a packet that it claimed
//     size_t poll_packets(size_t budget, Acks);                   // sends at most `budget` frames; returns how many
//     void link_down(uint32_t link);                              // the link is down; its number is not yet used again
//     void close_owner(Owner);                                    // an application is gone, and so are its objects
//     void close();                                               // tells all peers that this instance ends
//   };
//
// CoreState::now is set before each call. The engines that have packets take turns at being polled first, so that none
// can use up the budget every time. The last engine of the list is polled even if it has no packets, because it may
// have to delay acknowledgements. The Core tells the host of held frames that an engine gave up before the next poll at
// the latest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "lib/base/arena.h"
#include "lib/transport/core_state.h"

namespace ub {

// Engines in the order in which they are asked. The last one gets every packet, copy and timer that no other one takes.
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

  // Adds up the memory that the tables of all engines need.
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
  template <class Fn>
  void each_state(Fn fn) {
    (fn(static_cast<EnginePlace<Engines<Host>, Host>&>(*this).state), ...);
  }
  // Calls fn() with one engine after the other until it returns true.
  template <class Fn>
  bool any(Fn fn) {
    return (fn(get<Engines<Host>>()) || ...);
  }
  template <class Fn>
  bool any(Fn fn) const {
    return (fn(get<Engines<Host>>()) || ...);
  }
  // The same, but for the last engine.
  template <class Fn>
  bool any_but_last(Fn fn) const {
    uint32_t i = 0;
    return ((++i < kCount && fn(get<Engines<Host>>())) || ...);
  }
  // fn() of the engine at this place in the list.
  template <class Fn>
  bool is_at(uint32_t place, Fn fn) const {
    uint32_t i = 0;
    return ((i++ == place && fn(get<Engines<Host>>())) || ...);
  }
  // Calls fn() with the engine at this place in the list.
  template <class Fn>
  void at(uint32_t place, Fn fn) {
    uint32_t i = 0;
    (void)((i++ == place ? (fn(get<Engines<Host>>()), true) : false) || ...);
  }
};

}  // namespace ub
