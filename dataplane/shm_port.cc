// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shm_port.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/ipc/barrier.h"
#include "lib/ipc/unix_socket.h"
#include "lib/transport/wire/network_header.h"

namespace ub {
namespace {

constexpr uint64_t kListenerTag = 1, kEmbryoTag = 2, kSlotTag = 3;
constexpr uint64_t tag_of(uint64_t kind, uint32_t generation, uint32_t index) {
  return kind << 60 | uint64_t{generation & 0xfffffff} << 32 | index;
}

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

uint16_t port_of(uint32_t uasid) { return uasid == 0 ? wire::kUbUdpPort : static_cast<uint16_t>(uasid & 0xffff); }

}  // namespace

// ---- life ----

ShmPort::ShmPort() = default;
ShmPort::~ShmPort() { close(); }

bool ShmPort::open(const ShmPortOptions& options, std::span<const Eid> eids, uint32_t uasid, std::string* error,
                   bool* taken) {
  close();
  if (taken != nullptr) *taken = false;
  if (!ipc::FrameRing::valid_size(options.ring_bytes)) {
    *error = "shared-memory ring of " + std::to_string(options.ring_bytes) +
             " bytes: must be a power of two from 64 KiB to 1 GiB (port.shm_ring_bytes)";
    return false;
  }
  if (eids.empty() || uasid == 0 || options.max_links == 0 || options.max_links > ipc::Doorbell::kMaxLinks) {
    *error =
        "shared-memory port: needs an EID, a uasid and 1 to " + std::to_string(ipc::Doorbell::kMaxLinks) + " links";
    return false;
  }
  options_ = options;
  uasid_ = uasid;
  eids_.assign(eids.begin(), eids.end());
  if (!rendezvous_.open(options.directory, error) || !doorbell_.create(error)) return false;
  have_membarrier_ = ipc::register_for_heavy_barrier();
  epoll_ = ipc::Fd(::epoll_create1(EPOLL_CLOEXEC));
  spare_fd_ = ipc::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!epoll_) {
    *error = std::string("shared-memory port: cannot create an epoll descriptor: ") + std::strerror(errno);
    close();
    return false;
  }
  for (const Eid& eid : eids_) {
    auto status = rendezvous_.publish({eid.bytes, port_of(uasid)}, error);
    if (status != ipc::Rendezvous::PublishStatus::kOk) {
      if (taken != nullptr) *taken = status == ipc::Rendezvous::PublishStatus::kTaken;
      close();
      return false;
    }
    auto index = static_cast<uint32_t>(rendezvous_.published() - 1);
    add_to_epoll(rendezvous_.listener(index), tag_of(kListenerTag, 0, index));
  }
  open_ = true;
  return true;
}

void ShmPort::close() {
  std::lock_guard lock(control_mutex_);
  open_ = false;
  rendezvous_.withdraw();
  for (auto* list : {&by_number_, &by_slot_, &order_, &active_, &unflushed_, &received_, &dying_}) list->clear();
  watch_ = {};
  rung_ = {};
  polled_.clear();
  turn_ = idle_turn_ = 0;
  scanning_ = false;
  notices_.clear();
  embryos_.clear();
  slots_.clear();
  pending_.store(false, std::memory_order_release);
  epoll_.reset();
  spare_fd_.reset();
  doorbell_.close();
}

// ---- control side ----

bool ShmPort::add_to_epoll(int fd, uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = tag;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void ShmPort::notify(Notice notice) {
  notices_.push_back(std::move(notice));
  pending_.store(true, std::memory_order_release);
}

bool ShmPort::take_slot(uint32_t* slot, std::string* error) {
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].state == Slot::State::kFree) {
      *slot = i;
      return true;
    }
  }
  if (slots_.size() >= options_.max_links) {
    *error = "all " + std::to_string(options_.max_links) + " links of the shared-memory port are in use";
    return false;
  }
  *slot = static_cast<uint32_t>(slots_.size());
  slots_.emplace_back();
  return true;
}

void ShmPort::free_slot(uint32_t slot) {
  Slot& s = slots_[slot];
  s.state = Slot::State::kFree;
  ++s.generation;
  s.socket.reset();
  s.link.reset();
}

bool ShmPort::is_listed(const Eid& eid, uint32_t uasid) const {
  return open_ && rendezvous_.listed({eid.bytes, port_of(uasid)});
}

std::string ShmPort::last_refusal() const {
  std::lock_guard lock(control_mutex_);
  return last_refusal_;
}

bool ShmPort::connect(const InstanceId& peer, std::string* error) {
  std::lock_guard lock(control_mutex_);
  if (!open_) {
    *error = "the shared-memory port is not open";
    return false;
  }
  ipc::Rendezvous::Name name{peer.eid.bytes, port_of(peer.uasid)};
  for (const Slot& s : slots_) {
    bool alive = s.state == Slot::State::kAwaitReply || s.state == Slot::State::kUp;
    if (alive && s.eid == peer.eid && s.port == name.port) return true;
  }
  ipc::Fd socket;
  switch (ipc::connect_unix(rendezvous_.path_of(name), &socket, error)) {
    case ipc::SocketStatus::kOk:
      break;
    case ipc::SocketStatus::kClosed:
      rendezvous_.remove_if_stale(name);
      *error += "; no instance with that EID and port runs on this host";
      return false;
    default:
      return false;
  }
  uint32_t slot;
  if (!take_slot(&slot, error)) return false;
  uint64_t ring_bytes = options_.ring_bytes;
  size_t bytes = ipc::link_memory_bytes(ring_bytes);
  auto link = std::make_unique<Link>();
  ipc::Fd memory = ipc::create_sealed_memfd("softub-wire", bytes, error);
  if (!memory || !link->rings.map(memory.get(), bytes, error)) return false;
  link->tx.attach(ipc::ring_area(link->rings.data(), ring_bytes, 0), ring_bytes);
  link->rx.attach(ipc::ring_area(link->rings.data(), ring_bytes, 1), ring_bytes);
  link->slot = slot;
  link->eid = peer.eid;
  link->port = name.port;
  link->mtu = options_.mtu;

  ipc::LinkHello hello = ipc::make_hello();
  hello.eid = eids_[0].bytes;
  hello.wanted_eid = peer.eid.bytes;
  hello.uasid = uasid_;
  hello.wanted_uasid = peer.uasid;
  hello.ring_bytes = ring_bytes;
  hello.mtu = options_.mtu;
  hello.link = slot;
  hello.flags = have_membarrier_ ? ipc::kHelloHasMembarrier : 0;
  int fds[] = {memory.get(), doorbell_.page_fd(), doorbell_.event_fd()};
  Slot& s = slots_[slot];
  if (!add_to_epoll(socket.get(), tag_of(kSlotTag, s.generation, slot)) ||
      ipc::send_message(socket.get(), bytes_of(hello), fds) != ipc::SocketStatus::kOk) {
    *error = "cannot greet the instance at " + rendezvous_.path_of(name) + ": " + std::strerror(errno);
    return false;
  }
  s.state = Slot::State::kAwaitReply;
  s.socket = std::move(socket);
  s.eid = peer.eid;
  s.port = name.port;
  s.link = std::move(link);
  notify({Notice::Kind::kAdopt, slot, s.link.get()});
  return true;
}

bool ShmPort::poll_control() {
  std::unique_lock lock(control_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !open_) return has_pending();
  epoll_event events[32];
  int n = ::epoll_wait(epoll_.get(), events, 32, 0);
  for (int i = 0; i < n; ++i) {
    uint64_t tag = events[i].data.u64;
    auto index = static_cast<uint32_t>(tag);
    auto generation = static_cast<uint32_t>(tag >> 32 & 0xfffffff);
    switch (tag >> 60) {
      case kListenerTag:
        accept_all(index);
        break;
      case kEmbryoTag:
        on_embryo(index);
        break;
      default:
        on_slot_event(index, generation);
        break;
    }
  }
  return has_pending();
}

void ShmPort::accept_all(size_t listener) {
  for (int i = 0; i < 16; ++i) {
    ipc::Fd socket = ipc::accept_unix(rendezvous_.listener(listener));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE) {
        // Else the connection waits for ever and the descriptor is readable for ever.
        spare_fd_.reset();
        ipc::accept_unix(rendezvous_.listener(listener));
        spare_fd_ = ipc::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        last_refusal_ = "a peer was turned away: no file descriptor left; raise the limit (ulimit -n)";
      }
      return;
    }
    if (embryos_.size() >= kMaxEmbryos) embryos_.erase(embryos_.begin());
    uint32_t id = next_embryo_++;
    add_to_epoll(socket.get(), tag_of(kEmbryoTag, 0, id));
    embryos_.push_back({id, listener, std::move(socket)});
    on_embryo(id);  // the hello is there already, as a rule
  }
}

void ShmPort::on_embryo(uint32_t id) {
  auto it = std::find_if(embryos_.begin(), embryos_.end(), [&](const Embryo& e) { return e.id == id; });
  if (it == embryos_.end()) return;
  alignas(8) std::byte message[512];
  size_t bytes, fd_count;
  ipc::Fd fds[ipc::kMaxMessageFds];
  auto status = ipc::receive_message(it->socket.get(), message, &bytes, fds, &fd_count);
  if (status == ipc::SocketStatus::kAgain) return;
  Embryo embryo = std::move(*it);
  embryos_.erase(it);
  if (status != ipc::SocketStatus::kOk) return;
  on_hello(embryo, {message, bytes}, fds, fd_count);
}

void ShmPort::refuse(int socket, ipc::Refusal code, const std::string& text) {
  last_refusal_ = "a peer was turned away: " + text;
  ipc::send_message(socket, bytes_of(ipc::make_refusal(code, text)), {});
}

void ShmPort::on_hello(Embryo& embryo, std::span<const std::byte> message, ipc::Fd* fds, size_t fd_count) {
  int socket = embryo.socket.get();
  ipc::LinkHello hello;
  std::string error;
  ipc::Refusal objection = ipc::check_hello(message, fd_count, &hello, &error);
  if (objection != ipc::Refusal::kNone) return refuse(socket, objection, error);
  ipc::PeerCredentials who;
  if (!ipc::peer_credentials(socket, &who) || (who.uid != ::geteuid() && who.uid != 0))
    return refuse(socket, ipc::Refusal::kNotAllowed, "the connecting process belongs to another user");
  if (hello.wanted_eid != rendezvous_.name(embryo.listener).eid)
    return refuse(socket, ipc::Refusal::kMalformed, "the greeting was meant for another EID");

  uint32_t slot;
  if (!take_slot(&slot, &error)) return refuse(socket, ipc::Refusal::kNoRoom, error);
  size_t bytes = ipc::link_memory_bytes(hello.ring_bytes);
  auto link = std::make_unique<Link>();
  if (!ipc::check_sealed_memfd(fds[0].get(), bytes, &error) ||
      !link->peer.attach(std::move(fds[1]), std::move(fds[2]), hello.link, &error))
    return refuse(socket, ipc::Refusal::kMalformed, error);
  if (!link->rings.map(fds[0].get(), bytes, &error)) return refuse(socket, ipc::Refusal::kNoRoom, error);
  link->peer.set_fence_needed(!have_membarrier_ || !(hello.flags & ipc::kHelloHasMembarrier));
  link->tx.attach(ipc::ring_area(link->rings.data(), hello.ring_bytes, 1), hello.ring_bytes);
  link->rx.attach(ipc::ring_area(link->rings.data(), hello.ring_bytes, 0), hello.ring_bytes);
  link->slot = slot;
  link->eid.bytes = hello.eid;
  link->port = port_of(hello.uasid);
  link->mtu = std::min(hello.mtu, options_.mtu);

  ipc::LinkReply reply = ipc::make_reply();
  reply.uasid = uasid_;
  reply.mtu = options_.mtu;
  reply.link = slot;
  reply.flags = have_membarrier_ ? ipc::kHelloHasMembarrier : 0;
  Slot& s = slots_[slot];
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = tag_of(kSlotTag, s.generation, slot);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &event);
  int reply_fds[] = {doorbell_.page_fd(), doorbell_.event_fd()};
  // A connector that is gone already may have left frames; its hang-up comes next.
  auto sent = ipc::send_message(socket, bytes_of(reply), reply_fds);
  if (sent != ipc::SocketStatus::kOk && sent != ipc::SocketStatus::kClosed) return;
  s.state = Slot::State::kUp;
  s.socket = std::move(embryo.socket);
  s.eid = link->eid;
  s.port = link->port;
  s.link = std::move(link);
  notify({Notice::Kind::kAdopt, slot, s.link.get()});
}

void ShmPort::on_slot_event(uint32_t slot, uint32_t generation) {
  if (slot >= slots_.size()) return;
  Slot& s = slots_[slot];
  if ((s.generation & 0xfffffff) != generation || !s.socket) return;
  alignas(8) std::byte message[512];
  for (int i = 0; i < 4; ++i) {
    size_t bytes, fd_count;
    ipc::Fd fds[ipc::kMaxMessageFds];
    switch (ipc::receive_message(s.socket.get(), message, &bytes, fds, &fd_count)) {
      case ipc::SocketStatus::kAgain:
        return;
      case ipc::SocketStatus::kOk:
        // Nothing is said on an established link; what a later version might say is not for us.
        if (s.state == Slot::State::kAwaitReply) on_reply(slot, {message, bytes}, fds, fd_count);
        if (s.state == Slot::State::kGone) return;
        break;
      default:
        return slot_gone(slot, "the peer process ended or closed the link");
    }
  }
}

void ShmPort::on_reply(uint32_t slot, std::span<const std::byte> message, ipc::Fd* fds, size_t fd_count) {
  ipc::LinkReply reply;
  std::string error;
  ipc::PeerDoorbell peer;
  if (ipc::check_reply(message, fd_count, &reply, &error) &&
      peer.attach(std::move(fds[0]), std::move(fds[1]), reply.link, &error)) {
    peer.set_fence_needed(!have_membarrier_ || !(reply.flags & ipc::kHelloHasMembarrier));
    slots_[slot].state = Slot::State::kUp;
    notify({Notice::Kind::kConfirm, slot, slots_[slot].link.get(), std::move(peer)});
    return;
  }
  last_refusal_ = error;
  slot_gone(slot, error);
}

void ShmPort::slot_gone(uint32_t slot, std::string why) {
  Slot& s = slots_[slot];
  if (s.state == Slot::State::kGone || s.state == Slot::State::kFree) return;
  s.state = Slot::State::kGone;
  s.socket.reset();
  notify({Notice::Kind::kDead, slot, s.link.get(), {}, std::move(why)});
}

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
        if (!gone) link->number = add({link->mtu, options_.icrc_optional, true});
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

void ShmPort::flush_link(Link& l) {
  l.unflushed = false;
  if (l.dead) [[unlikely]]
    return;
  l.tx.publish();
  if (l.peer.attached() && l.peer.after_publish()) ++counters_.tx_doorbells;
}

void ShmPort::tx_flush(Instant now) {
  for (Link* l : unflushed_) {
    flush_link(*l);
    if (!l->watched) watch(*l, now + l->patience);
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
      l->patience = progress ? std::min(l->patience * 2, options_.doorbell_after * 8) : options_.doorbell_after;
    if (consumed >= l->tx.published()) continue;
    if (progress || !l->peer.attached()) {
      watch(*l, now + l->patience);
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

bool ShmPort::prepare_sleep() {
  if (!open_) return false;
  give_back();
  for (Link* l : unflushed_) {
    flush_link(*l);
    if (!l->watched) watch(*l, Instant{});  // at the next flush
  }
  unflushed_.clear();
  // Nobody will look at these while we sleep.
  for (size_t i = watch_.head; i < watch_.links.size(); ++i) {
    Link* l = watch_.links[i];
    if (l == nullptr || l->dead || !l->peer.attached() || l->tx.consumed() >= l->tx.published()) continue;
    l->peer.ring();
    ++counters_.tx_doorbells_late;
  }
  doorbell_.begin_sleep();
  if (!order_.empty()) ipc::heavy_barrier();
  bool waiting = has_pending();
  for (size_t i = 0; i < order_.size() && !waiting; ++i) waiting = !order_[i]->broken && !order_[i]->rx.empty();
  if (waiting) doorbell_.end_sleep();
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
