// SPDX-License-Identifier: Apache-2.0
//
// The control side of the lanes: programs come and go. What comes of it is left for the owner (adopt_pending in
// lane_port.cc).
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "dataplane/lane_port.h"
#include "lib/ipc/link_hello.h"
#include "lib/ipc/unix_socket.h"

namespace ub {

using ipc::LaneLayout;

bool LanePort::open(bool has_membarrier, std::string* error) {
  has_membarrier_ = has_membarrier;
  epoll_ = ipc::Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) *error = std::string("lanes: cannot create an epoll descriptor: ") + std::strerror(errno);
  return is_open();
}

void LanePort::close() {
  std::lock_guard lock(control_mutex_);
  for (auto* list : {&by_link_, &watched_, &received_}) list->clear();
  count_ = 0;
  dead_.clear();
  slots_.clear();
  changed_.clear();
  epoll_.reset();
  pending_.store(false, std::memory_order_release);
}

std::unique_ptr<LanePort::Lane> LanePort::make_lane(ipc::Fd* memory, std::string* error) {
  auto lane = std::make_unique<Lane>();
  *memory = ipc::create_sealed_memfd("softub-lane", LaneLayout::kBytes, error);
  if (!*memory || !lane->memory.map(memory->get(), LaneLayout::kBytes, error)) return nullptr;
  std::byte* at = lane->memory.data();
  lane->control = reinterpret_cast<ipc::LaneControl*>(at + LaneLayout::kControl);
  lane->small = {at + LaneLayout::kSmallRequests, at + LaneLayout::kSmallReplies, LaneLayout::kSmallSlots,
                 LaneLayout::kSmallData};
  lane->large = {at + LaneLayout::kLargeRequests, at + LaneLayout::kLargeReplies, LaneLayout::kLargeSlots,
                 LaneLayout::kLargeData};
  // Whoever comes while the NIC sleeps has to ring.
  lane->control->nic_sleeps.store(1, std::memory_order_relaxed);
  return lane;
}

void LanePort::refuse(const ipc::Fd& socket, const std::string& text) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  const ipc::LaneReply reply = ipc::make_lane_refusal(text);
  ipc::send_message(socket.get(), std::as_bytes(std::span(&reply, 1)), {});
}

bool LanePort::may_have_lane(const ipc::LaneHello& hello, std::string* why) {
  const auto is_its = [&hello](const Slot& slot) { return slot.lane && slot.process == hello.process; };
  if (hello.version != ipc::kLaneVersion || hello.bytes != sizeof hello) {
    *why = "the NIC speaks version " + std::to_string(ipc::kLaneVersion) + " of lanes, the program version " +
           std::to_string(hello.version) + "; update the older of the two";
  } else if (std::count_if(slots_.begin(), slots_.end(), is_its) >= static_cast<ptrdiff_t>(kMaxLanesOfProgram)) {
    refused_program_.fetch_add(1, std::memory_order_relaxed);
    *why = "process " + std::to_string(hello.process) + " has " + std::to_string(kMaxLanesOfProgram) +
           " lanes of the NIC already, as many as one program may have";
  } else if (free_slot() == kMaxLanes) {
    *why = "all " + std::to_string(kMaxLanes) + " lanes of the NIC are in use";
  } else {
    return true;
  }
  return false;
}

// Its index; of one that is still to be made, or kMaxLanes.
size_t LanePort::free_slot() {
  const auto is_free = [](const Slot& slot) { return !slot.lane && !slot.socket; };
  return static_cast<size_t>(std::find_if(slots_.begin(), slots_.end(), is_free) - slots_.begin());
}

void LanePort::admit(ipc::Fd socket, const ipc::LaneHello& hello) {
  std::lock_guard lock(control_mutex_);
  std::string error;
  if (!may_have_lane(hello, &error)) return refuse(socket, error);
  const size_t index = free_slot();
  if (index == slots_.size()) slots_.emplace_back();
  Slot& slot = slots_[index];
  ipc::Fd memory;
  auto lane = make_lane(&memory, &error);
  if (!lane) return refuse(socket, error);
  lane->slot = static_cast<uint32_t>(index);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = uint64_t{slot.generation} << 32 | index;
  const bool both = has_membarrier_ && (hello.flags & ipc::kHelloHasMembarrier) != 0;
  ipc::LaneReply reply = ipc::make_lane_reply();
  reply.flags = both ? ipc::kHelloHasMembarrier : 0;
  const int fds[] = {memory.get()};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0 ||
      ipc::send_message(socket.get(), std::as_bytes(std::span(&reply, 1)), fds) != ipc::SocketStatus::kOk) {
    return;  // the program is gone
  }
  slot.socket = std::move(socket);
  slot.lane = std::move(lane);
  slot.process = hello.process;
  slot.fresh = true;
  tell_owner(static_cast<uint32_t>(index));
}

void LanePort::tell_owner(uint32_t index) {
  if (!std::exchange(slots_[index].changed, true)) changed_.push_back(index);
  pending_.store(true, std::memory_order_release);
}

bool LanePort::poll_control(Instant now) {
  std::unique_lock lock(control_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !is_open()) return has_pending();
  if (listens_again_at() <= now) listen_again();
  epoll_event events[32];
  const int n = ::epoll_wait(epoll_.get(), events, 32, 0);
  for (int i = 0; i < n; ++i) {
    on_event(static_cast<uint32_t>(events[i].data.u64), static_cast<uint32_t>(events[i].data.u64 >> 32));
  }
  return has_pending();
}

// What a program says is taken off the socket, and is a ring whatever it says.
void LanePort::on_event(uint32_t index, uint32_t generation) {
  if (index >= slots_.size()) return;
  Slot& slot = slots_[index];
  if (slot.generation != generation || !slot.socket) return;
  for (int i = 0; i < kRingsAtOnce; ++i) {
    std::byte ring[64];
    size_t bytes;
    bool had_fds;
    const auto status = ipc::receive_plain(slot.socket.get(), ring, &bytes, &had_fds);
    if (status == ipc::SocketStatus::kAgain) break;
    if (status != ipc::SocketStatus::kOk) {
      slot.socket.reset();
      slot.gone = true;
      break;
    }
    doorbells_.fetch_add(1, std::memory_order_relaxed);
    ++slot.rings;
  }
  if (slot.rings != 0 || slot.gone) tell_owner(index);
}

// Hang-ups are heard always. False: the kernel refuses.
bool LanePort::listen(uint32_t index, bool to_rings) {
  const Slot& slot = slots_[index];
  epoll_event event{};
  event.events = EPOLLRDHUP | (to_rings ? EPOLLIN : 0u);
  event.data.u64 = uint64_t{slot.generation} << 32 | index;
  return slot.socket && ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, slot.socket.get(), &event) == 0;
}

void LanePort::listen_again() {
  listens_again_at_.store(Instant::never().ns, std::memory_order_relaxed);
  for (uint32_t index = 0; index < slots_.size(); ++index) {
    if (std::exchange(slots_[index].unheard, false)) listen(index, true);
  }
}

}  // namespace ub
