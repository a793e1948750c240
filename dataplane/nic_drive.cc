// SPDX-License-Identifier: Apache-2.0
//
// A turn of the NIC, whoever takes it: an application thread that posts or polls, the helper (nic_helper.cc), the
// worker of a daemon (nic_worker.cc).
#include <new>

#include "dataplane/nic.h"
#include "lib/transport/core_impl.h"

namespace ub {

template class Core<PortSet>;
template class roce::Engine<PortSet>;

namespace {

constexpr Duration kOwnerPatience = microseconds(4);

}  // namespace

void Nic::set_event_sink(NicEventSink sink) {
  ownership_.own();
  sink_ = std::move(sink);
  ownership_.release();
}

// ---- a turn, owned ---------------------------------------------------------------------------------------------

void Nic::adopt_links() try {
  const ipc::NotCancelled guard;
  NicCore& core = worker_->core();
  ports_.shm.adopt_pending([&](const LinkConfig& config) {
    uint32_t link = core.add_link(config);
    if (link != 0) ports_.set_kind(link, LinkKind::kShm);
    return link;
  });
  std::vector<DeadLink> dead;
  ports_.shm.take_dead_links(&dead);
  for (const DeadLink& d : dead) {
    core.link_down(worker_->turn(), d.link);
    ports_.shm.drop_link(d.link);
    ports_.set_kind(d.link, LinkKind::kNone);
  }
  if (ports_.lanes.has_pending()) adopt_lanes();
} catch (const std::bad_alloc&) {  // as if the peers had not come
}

void Nic::adopt_lanes() {
  NicCore& core = worker_->core();
  ports_.lanes.adopt_pending(worker_->now(), [&](const LinkConfig& config) {
    const uint32_t link = core.add_link(config);
    if (link != 0) ports_.set_kind(link, LinkKind::kLane);
    return link;
  });
  std::vector<uint32_t> dead;
  ports_.lanes.take_dead_lanes(&dead);
  for (const uint32_t link : dead) {
    core.link_down(worker_->turn(), link);
    ports_.lanes.drop_lane(link);
    ports_.set_kind(link, LinkKind::kNone);
  }
}

ShareDoor::Rights Nic::share_rights() {
  NicCore& core = worker_->core();
  return {[&core](const RemoteAccess& range) { return core.accessible_segment(range); },
          [&core](Owner owner, uint32_t segment, uint64_t at) { return core.has_segment(owner, segment, at); },
          core.revocations()};
}

// Programs of this host that map memory (share_door.h): those who ask, and those whose right has ended.
void Nic::serve_shares() try {
  const ipc::NotCancelled guard;
  shares_.serve(share_rights());
} catch (const std::bad_alloc&) {  // who asked sees a hang-up
}

bool Nic::drive_owned(Acks acks) {
  if (ports_.shm.has_pending() || ports_.lanes.has_pending()) [[unlikely]]
    adopt_links();
  if (shares_.wants(worker_->core().revocations())) [[unlikely]]
    serve_shares();
  if (links_changed_.load(std::memory_order_relaxed)) [[unlikely]]
    report_links();
  if (is_special_) [[unlikely]]
    return drive_specially(acks);
  const bool worked = drive_by(worker_->core(), acks);
  if (shares_.wants(worker_->core().revocations())) [[unlikely]]  // a peer has revoked a token id
    serve_shares();
  return worked;
}

void Nic::report_links() {
  links_changed_.exchange(false, std::memory_order_acquire);
  for (size_t i = 0; i < ports_.plugins.size(); ++i) {
    const bool up = ports_.plugins[i]->has_link();
    if (up == dpdk_told_up_[i]) continue;
    dpdk_told_up_[i] = up;
    report(PortEvent{i, up});
  }
}

// Owned, by an application thread: the NIC stays asleep, so that peers go on ringing; who drives now may stop at any
// moment, and then no acknowledgement may be left that nobody looks after. Devices cannot be driven while they sleep.
Acks Nic::application_drives() {
  if (asleep_ && !ports_.plugins.empty()) [[unlikely]]
    wake_up();
  return asleep_ ? acks_at_rest() : Acks::kMayWait;
}

// Owned: somebody drives again. The helper is told, so that it looks now and then whether that goes on.
void Nic::wake_up() {
  if (!asleep_) return;
  ports_.finish_sleep();
  if (clients_ != nullptr) clients_->finish_sleep();
  asleep_ = false;
  if (helper_wakes_at_.load(std::memory_order_relaxed) != 0) wake_helper();
}

// Owned: lets go of the Core, then rings those who sleep.
void Nic::release() {
  if (!ports_.shm.has_bells()) [[likely]]
    return ownership_.release();
  ShmPort::Bells bells;
  ports_.shm.take_bells(&bells);
  ownership_.release();
  ShmPort::ring_bells(bells);
}

void Nic::after_control() {
  if (shares_.wants(worker_->core().revocations())) [[unlikely]]
    serve_shares();
  report_events();
  bool packets = worker_->core().has_packets();
  const Acks acks = application_drives();
  if (packets || is_recording()) drive_owned(acks);
  statistics_stale_ = true;
  tell_helper_deadline();
  release();
}

// ---- by an application thread ----------------------------------------------------------------------------------

// A helper that owns the Core is gone in a moment: it costs less to wait for that than to leave the doorbell to it, and
// peers are then rung from this CPU, which they can have.
void Nic::posted(uint32_t jetty) {
  ipc::KeepErrno kept;
  if (own_soon(kOwnerPatience)) {
    const Acks acks = application_drives();
    if (is_special_) [[unlikely]] {
      send_posted_specially(jetty, acks);
    } else {
      worker_->send_posted(worker_->core(), jetty, acks, [this](const Event& event) { report(event); });
    }
    drive_now_and_then(acks);
    tell_helper_deadline();
    release();
    return;
  }
  worker_->posted().set(jetty);
  // The owner may have looked before the bit was there: try again, or leave it to the helper.
  if (ownership_.try_own()) {
    drive_owned(application_drives());
    tell_helper_deadline();
    release();
  } else {
    wake_helper();
  }
}

// Owned: a thread may post for ever and never look for completions. The helper leaves the Core to it nevertheless, so
// that it has to receive, too.
void Nic::drive_now_and_then(Acks acks) {
  constexpr uint32_t kPostsBetween = 32;
  if (++posts_ % kPostsBetween == 0) drive_owned(acks);
}

void Nic::drive() {
  ipc::KeepErrno kept;
  if (!ownership_.try_own()) return;
  drive_owned(application_drives());
  tell_helper_deadline();
  release();
}

void Nic::begin_wait() {
  waiters_.fetch_add(1);
  expect_events();
}

void Nic::expect_events() {
  ipc::KeepErrno kept;
  const bool news = !events_used_.exchange(true);
  if (application_polls_.exchange(false) || news) wake_helper();
}

}  // namespace ub
