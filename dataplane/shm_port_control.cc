// SPDX-License-Identifier: Apache-2.0
//
// The control side of the shared-memory port: instances meet at unix sockets and exchange a hello, a reply and
// descriptors. What comes of it is left as a notice for the owner (adopt_pending in shm_port.cc).
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "dataplane/eid.h"
#include "dataplane/shm_port.h"
#include "lib/ipc/barrier.h"
#include "lib/ipc/unix_socket.h"

namespace ub {
namespace {

enum Tag : uint64_t { kListenerTag = 1, kEmbryoTag = 2, kSlotTag = 3 };

constexpr uint64_t tag_of(uint64_t kind, uint32_t generation, uint32_t index) {
  return kind << 60 | uint64_t{generation & 0xfffffff} << 32 | index;
}

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

template <class Hello>
std::optional<ShmPort::Wish> wish_of(uint64_t magic, std::span<const std::byte> message) {
  Hello hello;
  if (message.size() != sizeof hello) return std::nullopt;
  std::memcpy(&hello, message.data(), sizeof hello);
  return hello.magic == magic ? std::optional<ShmPort::Wish>(hello) : std::nullopt;
}

void refuse_wish(int socket, const ShmPort::Wish& wish, const std::string& text) {
  if (std::holds_alternative<ipc::LaneHello>(wish)) {
    ipc::send_message(socket, bytes_of(ipc::make_lane_refusal(text)), {});
  } else {
    ipc::send_message(socket, bytes_of(ipc::make_share_refusal(text)), {});
  }
}

}  // namespace

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
  spare_fd_.open();
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
  spare_fd_.close();
  doorbell_.close();
}

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

std::string ShmPort::path_of(const InstanceId& instance) const {
  return rendezvous_.path_of({instance.eid.bytes, port_of(instance.uasid)});
}

void ShmPort::announce_ids(uint16_t port) {
  std::lock_guard lock(control_mutex_);
  for (const Eid& eid : eids_) rendezvous_.announce({eid.bytes, port}, uasid_);
}

void ShmPort::retract_ids(uint16_t port) {
  std::lock_guard lock(control_mutex_);
  for (const Eid& eid : eids_) rendezvous_.retract({eid.bytes, port});
}

uint32_t ShmPort::holder_of_ids(const Eid& eid, uint16_t port) const {
  return open_ ? rendezvous_.holder({eid.bytes, port}).value_or(0) : 0;
}

void ShmPort::forget_holder(const Eid& eid, uint16_t port, uint32_t uasid) const {
  rendezvous_.forget_holder({eid.bytes, port}, uasid);
}

std::string ShmPort::take_refusal() {
  std::lock_guard lock(control_mutex_);
  return std::exchange(refusal_, {});
}

ShmPort::LinkState ShmPort::link_state(const InstanceId& peer, std::string* why) const {
  std::lock_guard lock(control_mutex_);
  for (const Slot& s : slots_) {
    if (s.eid != peer.eid || s.port != port_of(peer.uasid)) continue;
    if (s.state == Slot::State::kAwaitReply) return LinkState::kAwaitReply;
    if (s.state == Slot::State::kUp) return LinkState::kUp;
    if (s.state == Slot::State::kGone) *why = s.why;
  }
  return LinkState::kGone;
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
      if (spare_fd_.turn_away(rendezvous_.listener(listener))) {
        refusal_ = "a process of this host was turned away: no file descriptor left; raise the limit (ulimit -n)";
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
  const std::span<const std::byte> said{message, bytes};
  if (const auto wish = wish_of<ipc::LaneHello>(ipc::kLaneMagic, said)) return on_wish(embryo, *wish);
  if (const auto wish = wish_of<ipc::ShareHello>(ipc::kShareMagic, said)) return on_wish(embryo, *wish);
  on_hello(embryo, said, fds, fd_count);
}

void ShmPort::refuse(int socket, ipc::Refusal code, const std::string& text) {
  refusal_ = "a process of this host was turned away: " + text;
  ipc::send_message(socket, bytes_of(ipc::make_refusal(code, text)), {});
}

// Why the program at that socket gets nothing; "": it may.
std::string ShmPort::objection_to(const Embryo& embryo, const Wish& wish) const {
  ipc::PeerCredentials who;
  if (!ipc::peer_credentials(embryo.socket.get(), &who) || (who.uid != ::geteuid() && who.uid != 0)) {
    return "the program belongs to another user";
  }
  const auto is_for_us = [&](const auto& hello) {
    return hello.wanted_eid == rendezvous_.name(embryo.listener).eid && hello.wanted_uasid == uasid_;
  };
  if (!std::visit(is_for_us, wish)) return "another instance was meant";
  return door_ ? "" : "this NIC has no lanes and offers no memory, because its wires are impaired";
}

void ShmPort::on_wish(Embryo& embryo, const Wish& wish) {
  const int socket = embryo.socket.get();
  if (const std::string why = objection_to(embryo, wish); !why.empty()) return refuse_wish(socket, wish, why);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
  door_(std::move(embryo.socket), wish);
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
  slot_gone(slot, error);
}

void ShmPort::slot_gone(uint32_t slot, std::string why) {
  Slot& s = slots_[slot];
  if (s.state == Slot::State::kGone || s.state == Slot::State::kFree) return;
  if (s.state == Slot::State::kAwaitReply) {
    refusal_ = "no shared-memory link to " + to_text(s.eid) + " port " + std::to_string(s.port) + ": " + why;
    s.why = why;
  }
  s.state = Slot::State::kGone;
  s.socket.reset();
  notify({Notice::Kind::kDead, slot, s.link.get(), {}, std::move(why)});
}

}  // namespace ub
