// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shm_port.h"

#include <algorithm>
#include <new>
#include <utility>

#include "dataplane/eid.h"
#include "lib/ipc/barrier.h"

namespace ub {

ShmPort::ShmPort() = default;
ShmPort::~ShmPort() { close(); }

// ---- links, owner ----

size_t ShmPort::adopt_pending(const AddLink& add) {
  std::vector<Notice> notices;
  {
    std::lock_guard lock(control_mutex_);
    notices.swap(notices_);
    pending_.store(false, std::memory_order_release);
  }
  size_t adopted = 0;
  for (size_t i = 0; i < notices.size(); ++i) {
    Notice& n = notices[i];
    Link* link = n.link;
    if (link == nullptr) continue;
    switch (n.kind) {
      case Notice::Kind::kAdopt: {
        // A connection that was refused at once needs no number.
        auto refused = [&](const Notice& o) { return o.link == link && o.kind == Notice::Kind::kDead; };
        bool gone = std::any_of(notices.begin(), notices.end(), refused) && link->rx.empty();
        const LinkConfig config{.mtu = link->mtu,
                                .icrc_optional = options_.icrc_optional,
                                .lossless = options_.lossless,
                                .compact = options_.lossless,
                                .link_frames = true};
        if (!gone) link->number = add(config);
        if (link->number == 0) {
          for (Notice& o : notices)
            if (o.link == link) o.link = nullptr;
          std::lock_guard lock(control_mutex_);
          std::erase_if(notices_, [&](const Notice& o) { return o.link == link; });
          free_slot(link->slot);
          break;
        }
        if (by_number_.size() <= link->number) by_number_.resize(link->number + 1);
        if (by_slot_.size() <= link->slot) by_slot_.resize(link->slot + 1);
        polled_.resize(by_slot_.size() / 64 + 1);
        by_number_[link->number] = link;
        by_slot_[link->slot] = link;
        order_.push_back(link);
        if (order_.size() > kPollAll && !scanning_) {
          scanning_ = true;
          doorbell_.start_scan();
          ipc::heavy_barrier();
        }
        activate(*link);
        link->patience = options_.doorbell_after;
        ++counters_.links_adopted;
        ++adopted;
        break;
      }
      case Notice::Kind::kConfirm:
        link->peer = std::move(n.peer);
        // It may have fallen asleep before we could tell.
        if (link->tx.consumed() < link->tx.published()) link->peer.ring();
        break;
      case Notice::Kind::kDead:
        link->why = std::move(n.why);
        start_dying(*link);
        break;
    }
  }
  return adopted;
}

void ShmPort::start_dying(Link& l) {
  l.dead = true;
  if (l.dying) return;
  l.dying = true;
  l.drain_limit = l.rx.position() + l.rings.bytes();
  if (!l.active) activate(l);
  dying_.push_back(&l);
  pending_.store(true, std::memory_order_release);
}

void ShmPort::give_up_ring(Link& l, const char* what) {
  if (l.broken) return;
  l.broken = true;
  ++counters_.rx_bad_ring;
  l.why = std::string("the peer wrote nonsense into the shared ring (") + what + ")";
  start_dying(l);
}

void ShmPort::take_dead_links(std::vector<DeadLink>* out) {
  std::erase_if(dying_, [&](Link* l) {
    // What it sent before it died is still to be received.
    if (!l->broken && !l->rx.empty() && l->rx.position() < l->drain_limit) return false;
    ++counters_.links_dead;
    out->push_back({l->number, l->why});
    return true;
  });
  if (!dying_.empty()) pending_.store(true, std::memory_order_release);
}

void ShmPort::drop_link(uint32_t number) {
  Link* l = link_at(number);
  if (l != nullptr) forget(l);
}

void ShmPort::forget(Link* l) {
  by_number_[l->number] = nullptr;
  by_slot_[l->slot] = nullptr;
  polled_[l->slot / 64] &= ~(uint64_t{1} << l->slot % 64);
  for (auto* list : {&order_, &active_, &unflushed_, &received_, &dying_}) std::erase(*list, l);
  watch_.remove(l);
  rung_.remove(l);
  std::lock_guard lock(control_mutex_);
  std::erase_if(notices_, [&](const Notice& n) { return n.link == l; });
  free_slot(l->slot);
}

uint32_t ShmPort::find_link(const Eid& eid, uint32_t uasid) const {
  uint16_t port = port_of(uasid);
  for (const Link* l : order_)
    if (!l->dead && l->port == port && l->eid == eid) return l->number;
  return 0;
}

std::string ShmPort::peer_of(uint32_t link) const {
  const Link* l = link_at(link);
  return l == nullptr ? "a peer that is gone" : to_text(l->eid) + ", port " + std::to_string(l->port);
}

// ---- receive ----

void ShmPort::activate(Link& l) {
  l.empty_polls = 0;
  if (l.active) return;
  l.active = true;
  active_.push_back(&l);
  polled_[l.slot / 64] |= uint64_t{1} << l.slot % 64;
  doorbell_.set_active(l.slot);
}

// True: left alone from now on; the caller takes it out of active_.
bool ShmPort::deactivate(Link& l) {
  l.empty_polls = 0;
  doorbell_.clear_active(l.slot);
  if (!l.rx.empty()) {
    doorbell_.set_active(l.slot);
    return false;
  }
  l.active = false;
  polled_[l.slot / 64] &= ~(uint64_t{1} << l.slot % 64);
  return true;
}

void ShmPort::scan_doorbell() {
  for (uint32_t w = 0; w < polled_.size(); ++w) {
    for (uint64_t fresh = doorbell_.active_word(w) & ~polled_[w]; fresh != 0; fresh &= fresh - 1) {
      uint32_t slot = w * 64 + static_cast<uint32_t>(__builtin_ctzll(fresh));
      Link* l = slot < by_slot_.size() ? by_slot_[slot] : nullptr;
      if (l != nullptr) activate(*l);
    }
  }
  // In case a bit was lost (a peer that writes into the page what it should not): one idle ring each time.
  if (order_.empty()) return;
  if (++idle_turn_ >= order_.size()) idle_turn_ = 0;
  Link& l = *order_[idle_turn_];
  if (!l.active && !l.rx.empty()) activate(l);
}

// True: nothing came and the link may be left alone.
inline bool ShmPort::poll_ring(Link& l, RxFrame* out, size_t room, size_t* count, size_t* bytes) {
  ipc::FrameRingReader::Frame frame;
  if (!l.rx.next(&frame)) [[likely]] {
    if (l.rx.broken()) [[unlikely]]
      give_up_ring(l, "impossible frame header");
    return ++l.empty_polls >= kIdlePolls && scanning_ && !l.dead;
  }
  // After an empty look, only what was published in one go: see FrameRingReader::more().
  bool busy = l.empty_polls == 0;
  size_t n = *count;
  do {
    out[n++] = {frame.data, frame.bytes, l.number};
    *bytes += frame.bytes;
  } while (n < room && *bytes < kBurstBytes && (busy || l.rx.more() != 0) && l.rx.next(&frame));
  counters_.rx_frames += n - *count;
  *count = n;
  received_.push_back(&l);
  released_ = false;
  l.empty_polls = 0;
  return false;
}

size_t ShmPort::rx_burst(RxFrame* out, size_t room) {
  if (released_) {
    released_ = false;
    give_back();
  }
  size_t count = 0, bytes = 0;
  if (!scanning_ && active_.size() == 1 && room != 0) [[likely]] {
    poll_ring(*active_[0], out, room, &count, &bytes);
    return count;
  }
  if (scanning_) scan_doorbell();
  size_t links = active_.size();
  if (links == 0) return 0;
  size_t at = turn_ + 1 < links ? turn_ + 1 : 0;
  turn_ = at;
  for (size_t looked = 0; looked < links && count < room && bytes < kBurstBytes; ++looked) {
    Link& l = *active_[at];
    if (poll_ring(l, out, room, &count, &bytes) && deactivate(l)) [[unlikely]] {
      active_.erase(active_.begin() + static_cast<ptrdiff_t>(at));
      if (at >= active_.size()) at = 0;
      continue;
    }
    if (++at >= active_.size()) at = 0;
  }
  return count;
}

// Telling the producer is put off until the next flush or burst: answers go first.
void ShmPort::give_back() {
  for (Link* l : received_) l->rx.release();
  received_.clear();
}

// ---- send ----

void ShmPort::no_room(Link& l) {
  if (l.tx.broken()) {
    give_up_ring(l, "impossible consumer position");
    return;
  }
  ++counters_.tx_no_room;
}

// True: it is worth watching whether the peer takes it.
bool ShmPort::flush_link(Link& l) {
  l.unflushed = false;
  const bool hurries = std::exchange(l.hurry, 0) != 0;
  if (l.dead) [[unlikely]]
    return false;
  l.tx.publish();
  if (!l.peer.attached()) return true;
  met_poller_ |= l.peer.polled();
  const ipc::Consumer found = l.peer.after_publish(hurries);
  if (found == ipc::Consumer::kAwake) [[likely]]
    return true;
  if (found == ipc::Consumer::kDozing) return false;
  ++counters_.tx_doorbells;
  if (!hold_bells_ || !hold_bell(l)) l.peer.ring();
  return true;
}

// False: no memory, so the peer is rung at once.
bool ShmPort::hold_bell(Link& l) try {
  bells_.push_back(l.peer.bell());
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void ShmPort::ring_bells(Bells& bells) {
  for (const auto& bell : bells) ipc::PeerDoorbell::ring(bell);
  bells.clear();
}

void ShmPort::tx_flush(Instant now) {
  for (Link* l : unflushed_) {
    if (flush_link(*l) && !l->watched) watch(*l, now + patience_with(*l));
  }
  unflushed_.clear();
  if (released_) {
    released_ = false;
    give_back();
  }
  if (watch_.due(now)) check_watch(watch_, now);
  if (rung_.due(now)) check_watch(rung_, now);
}

void ShmPort::watch(Link& l, Instant until) {
  l.watched = true;
  l.rung = false;
  l.watch_consumed = l.tx.consumed_seen();
  l.watch_until = until;
  watch_.push(&l);
}

// Links whose time is up: forgets those that consumed everything, gives more time to those that made
// progress, rings the others. A ring that is followed by progress sooner than anybody wakes up was not needed
// (the consumer was busy with a long burst): it gets more patience from then on.
void ShmPort::check_watch(WatchList& list, Instant now) {
  for (size_t left = list.links.size() - list.head; left != 0; --left) {
    Link* l = list.front();
    if (l == nullptr) {
      list.pop();
      continue;
    }
    if (l->watch_until > now) return;
    list.pop();
    l->watched = false;
    if (l->dead) continue;
    uint64_t consumed = l->tx.consumed();
    if (l->tx.broken()) {
      give_up_ring(*l, "impossible consumer position");
      continue;
    }
    bool progress = consumed > l->watch_consumed;
    if (l->rung && &list == &watch_)
      l->patience = progress ? std::min(l->patience * 2, most_patience()) : options_.doorbell_after;
    if (consumed >= l->tx.published()) continue;
    if (progress || !l->peer.attached()) {
      watch(*l, now + patience_with(*l));
      continue;
    }
    l->watched = true;
    if (l->rung && &list == &watch_) {  // rung a moment ago
      l->watch_until = now + options_.doorbell_repeat;
      rung_.push(l);
      continue;
    }
    l->peer.ring();
    ++counters_.tx_doorbells_late;
    l->watch_until = now + (l->rung ? options_.doorbell_repeat : options_.doorbell_after);
    (l->rung ? rung_ : watch_).push(l);
    l->rung = true;
  }
}

// ---- sleep ----

// What nobody was told of yet.
void ShmPort::announce() {
  for (Link* l : unflushed_) {
    if (flush_link(*l) && !l->watched) watch(*l, Instant{});  // at the next flush
  }
  unflushed_.clear();
}

bool ShmPort::prepare_sleep() {
  if (!open_) return false;
  give_back();
  announce();
  // Nobody will look at these while we sleep.
  for (size_t i = watch_.head; i < watch_.links.size(); ++i) {
    Link* l = watch_.links[i];
    if (l == nullptr || l->dead || !l->peer.attached() || l->tx.consumed() >= l->tx.published()) continue;
    l->peer.ring();
    ++counters_.tx_doorbells_late;
  }
  doorbell_.begin_sleep();
  if (!order_.empty()) ipc::heavy_barrier();
  const bool waiting = anything_waits();
  if (waiting) doorbell_.end_sleep();
  return waiting;
}

bool ShmPort::prepare_nap(bool wake_for_all) {
  if (!open_) return false;
  give_back();
  announce();
  wake_for_all ? doorbell_.begin_sleep() : doorbell_.begin_doze();
  const bool waiting = anything_waits();
  if (waiting) doorbell_.end_sleep();
  return waiting;
}

bool ShmPort::anything_waits() const {
  bool waiting = has_pending();
  for (size_t i = 0; i < order_.size() && !waiting; ++i) waiting = !order_[i]->broken && !order_[i]->rx.empty();
  return waiting;
}

void ShmPort::finish_sleep() {
  if (!open_) return;
  doorbell_.end_sleep();
  doorbell_.drain();
}

void ShmPort::fds(std::vector<int>& out) const {
  if (!open_) return;
  out.push_back(epoll_.get());
  out.push_back(doorbell_.event_fd());
}

}  // namespace ub
