// SPDX-License-Identifier: Apache-2.0
// echo_engine.h - the smallest engine that takes some of everything a Core hands out. What arrives on its UDP port goes
// back, with bytes of its own memory behind it, a while later. It has a timer, a number for a frame that waits for that
// memory, a prefix for copy tags, a waiter for room in a JFC, and objects with ids, which are nothing but a JFC to
// complete into.
#pragma once

#include <array>
#include <cstring>
#include <span>

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/resource/id_space.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

inline constexpr uint16_t kEchoPort = 7;
inline constexpr Duration kEchoDelay = microseconds(10);
inline constexpr auto kEchoObject = static_cast<ObjectKind>(100);
inline constexpr size_t kEchoBytes = 8, kEchoTail = 4;

struct EchoObject {
  uint32_t jfc;
  uint32_t posted;  // not completed
  Waiter waiter;
};

template <class Host>
class EchoEngine {
 public:
  struct State {
    NumberRange timers, held_homes, waiters;
    uint32_t copy_prefix = 0;
    Slab<EchoObject> objects;

    bool has_one = false, due = false;
    uint32_t link = 0;
    wire::Endpoint from, to;
    std::array<std::byte, kEchoBytes> bytes{};
    std::array<std::byte, kEchoTail> tail{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    uint32_t copies_done = 0, sent = 0, links_down = 0, owners_gone = 0, closed = 0;
    HeldLine held;
  };

  static void lay_out(CoreState& s, State& e, Arena& arena) {
    e.objects.init(arena, 2);
    e.timers = s.timer_numbers.take(1);
    e.held_homes = s.held.numbers.take(1);
    e.copy_prefix = s.copy_prefixes.take(1).first;
    e.waiters = add_waiters<&EchoObject::waiter>(
        s, e.objects, 3, &e,
        [](CoreState& core, void* engine, uint32_t object) { complete(core, *static_cast<State*>(engine), object); });
  }
  EchoEngine(CoreState& s, State& e, Host& host) : s_(s), e_(e), host_(host) {}

  Status create(uint32_t jfc, uint32_t* id) {
    const uint32_t record = e_.objects.alloc();
    if (record == 0) return Status::kNoMemory;
    e_.objects[record] = {jfc, 0, {}};
    ++s_.jfcs[jfc].users;
    *id = allocate_id(s_, 0);
    s_.ids[*id] = {record, 0, kEchoObject};
    return Status::kOk;
  }

  bool claims(const wire::NetHeader& net) const { return net.dst.port == kEchoPort; }
  bool on_link_frame(uint32_t, std::span<const std::byte>) { return false; }
  void on_packet(uint32_t link, const wire::NetHeader& net) {
    if (net.tp_size() < kEchoBytes) return;
    e_.has_one = true;
    e_.due = false;
    e_.link = link;
    e_.from = net.dst;
    e_.to = net.src;
    std::memcpy(e_.bytes.data(), net.tph, kEchoBytes);
    s_.timers.arm(e_.timers.of(0), s_.now + kEchoDelay);
  }
  bool on_posted(ObjectKind kind, uint32_t record) {
    if (kind != kEchoObject) return false;
    ++e_.objects[record].posted;
    complete(s_, e_, record);
    return true;
  }
  bool on_timer(uint32_t timer) {
    if (!e_.timers.contains(timer)) return false;
    e_.due = true;
    return true;
  }
  bool on_copy_done(CopyTag tag, bool) {
    if (copy_prefix_of(tag) != e_.copy_prefix) return false;
    ++e_.copies_done;
    return true;
  }
  bool on_gathered(const HeldFrame& h) { return e_.held_homes.contains(h.home); }
  bool has_packets(Acks) const { return e_.has_one && e_.due && !s_.held.first_waits(e_.held); }
  size_t poll_packets(size_t budget, Acks acks) {
    if (budget == 0 || !has_packets(acks)) return 0;
    const bool holds = !e_.held.empty();
    std::byte* frame = holds ? s_.held.resume(host_, s_.held.first(e_.held)) : build();
    if (frame == nullptr) return 0;
    host_.tx_commit(e_.link, frame, frame_bytes());
    if (holds) s_.held.drop_first(e_.held);
    e_.has_one = false;
    ++e_.sent;
    return 1;
  }
  void link_down(uint32_t link) { e_.links_down += !s_.links[link].up; }
  void close_owner(Owner) { ++e_.owners_gone; }
  void close() { ++e_.closed; }

  State& state() { return e_; }

 private:
  wire::NetTemplate headers() const {
    wire::NetTemplate out;
    out.init({}, {}, e_.from, e_.to, 0);
    return out;
  }
  size_t frame_bytes() const { return headers().size + kEchoBytes + kEchoTail; }

  /// Null: no room, or the frame is held.
  std::byte* build() {
    const size_t bytes = frame_bytes();
    std::byte* frame = host_.tx_begin(e_.link, bytes);
    if (frame == nullptr) return nullptr;
    std::byte* at = frame + headers().write(frame, kEchoBytes + kEchoTail, wire::kEcnNotCapable);
    std::memcpy(at, e_.bytes.data(), kEchoBytes);
    HeldFrame& h = s_.held.take(e_.held_homes.of(0));
    if (host_.gather(at + kEchoBytes, e_.tail.data(), kEchoTail, s_.held.tag_of(h)) == CopyResult::kDone) {
      s_.held.free(h);
      return frame;
    }
    h.link = e_.link;
    h.bytes = static_cast<uint32_t>(bytes);
    h.pending = 1;
    s_.held.hold(host_, h, frame);
    s_.held.append(e_.held, h);
    return nullptr;
  }

  static void complete(CoreState& s, State& e, uint32_t record) {
    EchoObject& o = e.objects[record];
    for (; o.posted != 0; --o.posted) {
      if (!ta::jfc_has_room(s, o.jfc)) return ta::wait_for_room(s, o.jfc, e.waiters.of(record));
      ta::push_completion(s, o.jfc, Cqe{});
    }
  }

  CoreState& s_;
  State& e_;
  Host& host_;
};

}  // namespace ub
