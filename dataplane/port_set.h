// SPDX-License-Identifier: Apache-2.0
//
// The ports of one instance and which of them each link of the Core belongs to. The set is fixed at compile time,
// so a burst is a few direct calls. It is also the Core's Host: frames come from the port of their link; memory of
// this process answers at once, memory of others (a daemon has such) by those who see it.
//
// Looking at a UDP socket is a system call. It is looked at in every round while it has traffic, and rarely
// otherwise: the helper thread sleeps on it and says when something arrived.
//
// Wires to other instances may be impaired on purpose (docs/impair.md), and frames may be captured (docs/capture.md).
// Links are then of the kind kHindered, and what is done for them, and for a port that a fault took down, stands in
// hindered_ports.cc.
//
// Thread: the owner of the Core.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/foreign_memory.h"
#include "dataplane/impaired_wires.h"
#include "dataplane/lane_port.h"
#include "dataplane/loopback_port.h"
#include "dataplane/plugin_port.h"
#include "dataplane/port_concept.h"
#include "dataplane/shm_port.h"
#include "dataplane/sleep_set.h"
#include "dataplane/udp_port.h"
#include "lib/base/application_memory.h"
#include "lib/base/word_copy.h"
#include "lib/ipc/access_gate.h"
#include "lib/ipc/not_cancelled.h"
#include "lib/transport/host.h"
#include "lib/transport/looking/note.h"

namespace ub {

class Capture;
namespace record {
class Recorder;
}  // namespace record

enum class LinkKind : uint8_t { kNone, kShm, kUdp, kPlugin, kLoopback, kLane, kHindered };

class PortSet {
 public:
  ShmPort shm;
  UdpPort udp;
  LoopbackPort loopback;
  LanePort lanes;
  std::vector<std::unique_ptr<PluginPort>> plugins;  // DPDK
  ForeignMemory* foreign = nullptr;                  // serves foreign pointers; null: there are none

  explicit PortSet(const LoopbackPortOptions& options = {}) : loopback(options) {}

  // Never kHindered.
  LinkKind kind_of(uint32_t link) const { return link < ports_.size() ? ports_[link] : LinkKind::kNone; }
  void set_kind(uint32_t link, LinkKind kind) {
    if (link >= ports_.size()) {
      ports_.resize(link + 1, LinkKind::kNone);
      kinds_.resize(link + 1, LinkKind::kNone);
      direct_.resize(link + 1, LinkKind::kNone);
    }
    ports_[link] = kind;
    set_way(link);
    if (capture_ != nullptr) forget_captured(link);
  }
  static bool can_be_impaired(LinkKind kind) {
    return kind == LinkKind::kShm || kind == LinkKind::kUdp || kind == LinkKind::kPlugin;
  }
  // The link of plugins[index].
  void set_plugin(uint32_t link, size_t index) {
    set_kind(link, LinkKind::kPlugin);
    if (link >= plugin_of_.size()) plugin_of_.resize(link + 1);
    plugin_of_[link] = plugins[index].get();
    plugins[index]->set_link(link);
  }

  // ---- a fault that somebody asked for: no frame passes ----
  // Rings of this host lose nothing, so frames wait there. Those of other ports are lost.
  bool is_down() const { return down_; }
  void set_down(bool down) {
    down_ = down;
    hindered_ = down_ || impaired_ || capture_ != nullptr || recorder_ != nullptr;
  }
  // How many, since the last call.
  uint64_t take_lost() { return std::exchange(lost_, 0); }

  // ---- impairments (docs/impair.md) ----
  // Before there are links. Frames to itself are never impaired.
  void impair(std::unique_ptr<ImpairedWires> impaired) {
    impaired_ = std::move(impaired);
    hindered_ = true;
  }
  // Null: none, and none can come.
  ImpairedWires* impaired() const { return impaired_.get(); }
  // Are frames under way that this process still has?
  bool is_sending() const { return impaired_ && impaired_->is_sending(); }

  // ---- looking ----
  // From now on it hears of all frames at the ports, outside of the impairments; null: nobody does.
  void set_capture(Capture* capture);
  Capture* capture() const { return capture_; }
  // From now on it hears of frames that the Core sends, and of those that found no room; null: nobody does.
  void set_recorder(record::Recorder* recorder);
  // Where notes go while Core::look(true) holds, if anywhere. Nobody looks yet (docs/looking.md).
  std::function<void(const Note&)> on_note;
  void note(const Note& note) {
    if (on_note) on_note(note);
  }

  // ---- frames in ----
  size_t rx_burst(Instant now, RxFrame* out, size_t room) {
    if (hindered_) [[unlikely]]
      return rx_hindered(now, out, room);
    return rx_ports(now, out, room);
  }
  void rx_release() {
    release_wires();
    if (loopback_used_) loopback.rx_release();
    if (hindered_ && impaired_) [[unlikely]]
      impaired_->release_received();
  }
  // Requests of loads and stores, apart from other frames because they are believed less.
  bool has_lanes() const { return lanes.watched_count() != 0; }
  size_t rx_lanes(RxFrame* out, size_t room) {
    if (hindered_) [[unlikely]]
      return rx_lanes_hindered(out, room);
    const size_t n = lanes.rx_burst(out, room);
    received_ += n;
    return n;
  }
  void release_lanes() { lanes.rx_release(); }
  void udp_readable() {
    udp_look_at_ = Instant{};
    udp.look_at_rare();
  }
  // Did datagrams come or leave just now? Who asks needs to know the time only if udp_was_hot().
  bool udp_was_hot() const { return udp_hot_until_ != Instant{}; }
  bool udp_is_hot(Instant now) {
    if (now < udp_hot_until_) return true;
    udp_hot_until_ = {};
    return false;
  }
  // How many frames came, ever.
  uint64_t received() const { return received_; }

  // ---- Host: frames out ----
  std::byte* tx_begin(uint32_t link, size_t bytes) {
    if (down_ && holds(link)) [[unlikely]]
      return refuse_while_down();
    return begun_ = begin_frame(kinds_[link], link, bytes);
  }
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes) {
    if (down_) [[unlikely]]
      return lose_sent(link, frame, bytes);
    commit_frame(kinds_[link], link, frame, bytes);
  }
  void tx_abort(uint32_t link, std::byte* frame) {
    if (foreign != nullptr) foreign->frame_aborted(frame);
    abort_frame(kinds_[link], link, frame);
  }
  void tx_may_wait(uint32_t link) {
    if (direct_[link] == LinkKind::kShm) shm.tx_may_wait(link);
  }
  void tx_hold(uint32_t link, std::byte* frame, std::byte* held) {
    foreign->frame_held(frame, held);
    abort_frame(kinds_[link], link, frame);
  }
  void tx_drop(std::byte* held) { foreign->frame_aborted(held); }
  void tx_flush(Instant now) {
    if (hindered_) [[unlikely]]
      flush_hindered(now);
    if (shm.link_count() != 0) shm.tx_flush(now);
    if (loopback_used_) loopback.tx_flush(now);
    if (!plugins.empty()) [[unlikely]]
      flush_plugins(now);
    if (udp_sent_ || (udp.is_open() && udp.has_unsent())) {
      if (udp_sent_) udp_hot_until_ = now + kUdpHot;  // answers come soon
      udp_sent_ = false;
      udp.tx_flush(now);
    }
  }

  // ---- Host: memory ----
  CopyResult gather(std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag) {
    if (is_foreign(src)) [[unlikely]]
      return foreign->gather(begun_, dst, src, bytes, tag);
    const ApplicationMemory memory;
    std::memcpy(dst, src, bytes);
    return CopyResult::kDone;
  }
  CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag tag) {
    if (is_foreign(dst)) [[unlikely]]
      return foreign->place(dst, src, bytes, final, tag);
    const ApplicationMemory memory;
    if (final) {
      copy_final_word_last(dst, src, bytes);
    } else {
      std::memcpy(dst, src, bytes);
    }
    return CopyResult::kDone;
  }
  CopyResult atomic(const AtomicRequest& request, uint128* old, CopyTag tag) {
    if (is_foreign(request.address)) [[unlikely]]
      return foreign->atomic(request, old, tag);
    const ApplicationMemory memory;
    *old = run_atomic(request);
    return CopyResult::kDone;
  }

  void load(std::byte* block, const std::byte* memory, size_t bytes) {
    const ApplicationMemory application;
    load_words(block, memory, bytes);
  }
  void store(std::byte* memory, const std::byte* block, size_t bytes) {
    const ApplicationMemory application;
    store_words(memory, block, bytes);
  }

  // ---- Host: memory of other NICs of this host (docs/same-host-design.md) ----
  bool write_mapped(void* gate, std::byte* remote, const std::byte* local, size_t bytes) {
    if (is_foreign(local)) return false;
    return through(gate, &ipc::AccessGate::writes, bytes, [=] { copy_final_word_last(remote, local, bytes); });
  }
  bool read_mapped(void* gate, std::byte* local, const std::byte* remote, size_t bytes) {
    if (is_foreign(local)) return false;
    return through(gate, &ipc::AccessGate::reads, bytes, [=] { copy_final_word_last(local, remote, bytes); });
  }
  bool atomic_mapped(void* gate, const AtomicRequest& request, uint128* old) {
    return through(gate, &ipc::AccessGate::atomics, request.bytes, [&] { *old = run_atomic(request); });
  }

  // When tx_flush() has something to do although nobody sent anything.
  Instant next_deadline() const {
    Instant deadline = Instant::never();
    for (const auto& plugin : plugins) deadline = earlier(deadline, plugin->next_deadline());
    return impaired_ && !down_ ? earlier(deadline, impaired_->next_due()) : deadline;
  }

  // Is there something to receive that rings nobody? Then whoever lets go must tell the helper.
  bool has_own_frames() const { return ((loopback_used_ && loopback.has_frames()) || lanes.was_rung()) && !down_; }

  // ---- sleep ----
  bool prepare_sleep() {
    unmute_udp();
    bool busy = shm.prepare_sleep();
    busy |= lanes.prepare_sleep();
    if (loopback_used_) busy |= loopback.prepare_sleep();
    busy &= !down_;  // what they have stays there
    if (udp.is_open()) busy |= udp.prepare_sleep();
    for (const auto& plugin : plugins) busy |= plugin->prepare_sleep();
    return busy;
  }
  // For a short time: see ShmPort::prepare_nap().
  bool prepare_nap(bool wake_for_all) {
    unmute_udp();
    bool busy = shm.prepare_nap(wake_for_all);
    busy |= lanes.prepare_sleep();  // who loads waits for nothing else
    if (loopback_used_) busy |= loopback.prepare_sleep();
    busy &= !down_;
    if (udp.is_open()) busy |= udp.prepare_sleep();
    return busy;
  }
  bool anything_waits() const { return shm.anything_waits() || lanes.anything_waits(); }
  // Was something sent to, or answered for, somebody who polls, since the last call? Then more will come soon.
  bool take_met_poller() {
    const bool lane = lanes.take_served();
    return shm.take_met_poller() || lane;
  }
  void stop_asking() {
    shm.stop_asking();
    lanes.finish_sleep();
  }
  // Is there a port that cannot wake a sleeper? Then somebody has to look now and then.
  bool must_be_polled() const {
    return udp_is_mute_ ||
           std::any_of(plugins.begin(), plugins.end(), [](const auto& plugin) { return !plugin->can_wake(); });
  }
  void finish_sleep() {
    shm.finish_sleep();
    lanes.finish_sleep();
    udp.finish_sleep();
    for (const auto& plugin : plugins) plugin->finish_sleep();
  }
  // What rings for frames, for a set whose sleeper takes frames only. False: no memory.
  bool watch_frames(SleepSet& sleeper) {
    udp_sleepers_.push_back(&sleeper);
    return watch_doorbell(sleeper) && watch_udp(sleeper);
  }
  // Everything that rings. False: no memory.
  bool watch(SleepSet& sleeper) {
    bool done = watch_frames(sleeper) && watch_control(sleeper);
    if (udp.is_open()) done &= sleeper.watch(udp.rare_fd(), Waker::kUdp);
    std::vector<int> fds;
    for (const auto& plugin : plugins) plugin->fds(fds);
    for (int fd : fds) done &= sleeper.watch(fd, Waker::kOthers);
    return done;
  }

  // What rings although an application polls: peers that have waited for long, and who wants a link. Datagrams would
  // wake us all the time. False: no memory.
  bool watch_if_polled(SleepSet& sleeper) const { return watch_doorbell(sleeper) && watch_control(sleeper); }

  // While an application polls nobody sleeps until datagrams come; yet the kernel goes through all who could, at each
  // one. prepare_sleep() and prepare_nap() end this.
  void mute_udp() {
    if (!udp.is_open()) return;
    udp.mute();
    for (SleepSet* sleeper : udp_sleepers_)
      for (int fd : udp_sockets()) sleeper->forget(fd);
    udp_is_mute_ = true;
  }

 private:
  // One access through a gate, which counts it. False: the gate is closed.
  template <class Fn>
  bool through(void* gate, std::atomic<uint64_t> ipc::AccessGate::*counter, size_t bytes, Fn access) {
    const auto& way = *static_cast<const ipc::AccessWay*>(gate);
    const ApplicationMemory memory;
    if (!way.enter()) [[unlikely]]
      return false;
    access();
    way.gate->leave();
    ipc::AccessGate::add(way.gate->*counter, 1);
    ipc::AccessGate::add(way.gate->bytes, bytes);
    return true;
  }

  // In the order in which they began to watch, which says whom the kernel wakes. For want of memory UDP stays mute, and
  // has to be polled.
  void unmute_udp() {
    if (!udp_is_mute_) return;
    bool done = udp.unmute();
    for (SleepSet* sleeper : udp_sleepers_) done &= watch_udp(*sleeper);
    udp_is_mute_ = !done;
  }
  std::vector<int> udp_sockets() const {
    std::vector<int> fds;
    if (udp.is_open()) udp.fds(fds);
    std::erase(fds, udp.rare_fd());
    return fds;
  }
  bool watch_udp(SleepSet& sleeper) const {
    bool done = true;
    for (int fd : udp_sockets()) done &= sleeper.watch(fd, Waker::kUdp, true);
    return done;
  }
  bool watch_doorbell(SleepSet& sleeper) const {
    return !shm.is_open() || sleeper.watch(shm.doorbell_fd(), Waker::kFrames, true);
  }
  bool watch_control(SleepSet& sleeper) const {
    return (!shm.is_open() || sleeper.watch(shm.control_fd(), Waker::kOthers)) &&
           (!lanes.is_open() || sleeper.watch(lanes.control_fd(), Waker::kOthers));
  }
  void flush_plugins(Instant now) {
    const ipc::NotCancelled guard;  // drivers make system calls
    for (const auto& plugin : plugins) plugin->tx_flush(now);
  }

  static constexpr Duration kUdpHot = milliseconds(1);
  static constexpr Duration kUdpPause = microseconds(20);

  void release_wires() {
    shm.rx_release();
    if (udp.is_open()) udp.rx_release();
    for (const auto& plugin : plugins) plugin->rx_release();
  }

  // The first is another one each time: a busy one leaves room for the rest.
  size_t rx_plugins(Instant now, RxFrame* out, size_t room) {
    size_t n = 0;
    if (plugins.empty()) return n;
    const ipc::NotCancelled guard;  // drivers make system calls
    if (++first_plugin_ >= plugins.size()) first_plugin_ = 0;
    for (size_t i = 0, at = first_plugin_; i < plugins.size() && n < room; ++i) {
      n += plugins[at]->rx_burst(now, out + n, room - n);
      if (++at == plugins.size()) at = 0;
    }
    return n;
  }

  bool udp_is_due(Instant now) const { return udp.is_open() && (now < udp_hot_until_ || now >= udp_look_at_); }
  size_t rx_udp(Instant now, RxFrame* out, size_t room) {
    const size_t got = udp.rx_burst(out, room);
    if (got != 0) udp_hot_until_ = now + kUdpHot;
    udp_look_at_ = now + kUdpPause;
    return got;
  }

  size_t rx_ports(Instant now, RxFrame* out, size_t room) {
    size_t n = shm.link_count() != 0 ? shm.rx_burst(out, room) : 0;
    if (n < room && loopback_used_) n += loopback.rx_burst(out + n, room - n);
    n += rx_plugins(now, out + n, room - n);
    if (n < room && udp_is_due(now)) n += rx_udp(now, out + n, room - n);
    received_ += n;
    return n;
  }

  bool is_impaired(uint32_t link) const { return impaired_ && can_be_impaired(ports_[link]); }
  // How frames leave by that link.
  void set_way(uint32_t link) {
    const bool watched = capture_ != nullptr && ports_[link] != LinkKind::kNone;
    kinds_[link] = watched || recorder_ != nullptr || is_impaired(link) ? LinkKind::kHindered : ports_[link];
    direct_[link] = is_impaired(link) ? LinkKind::kNone : ports_[link];
  }
  void forget_captured(uint32_t link);
  std::byte* refuse_while_down();
  void lose_sent(uint32_t link, std::byte* frame, size_t bytes);
  size_t rx_hindered(Instant now, RxFrame* out, size_t room);
  size_t rx_lanes_hindered(RxFrame* out, size_t room);
  void flush_hindered(Instant now);
  std::byte* begin_hindered(uint32_t link, size_t bytes);
  void commit_hindered(uint32_t link, std::byte* frame, size_t bytes);
  void commit_to_port(uint32_t link, std::byte* frame, size_t bytes);
  size_t lose_received(Instant now, RxFrame* out, size_t room);
  size_t rx_impaired(Instant now, RxFrame* out, size_t room);
  void abort_hindered(uint32_t link, std::byte* frame);
  void flush_impaired(Instant now);
  bool leave_impaired(uint32_t link, std::span<const std::byte> frame);

  // Does the port of this link hold frames while it is down?
  bool holds(uint32_t link) const {
    return ports_[link] == LinkKind::kShm || ports_[link] == LinkKind::kLoopback || ports_[link] == LinkKind::kLane;
  }

  std::byte* begin_frame(LinkKind kind, uint32_t link, size_t bytes) {
    switch (kind) {
      case LinkKind::kShm:
        return shm.tx_begin(link, bytes);
      case LinkKind::kUdp:
        return udp.tx_begin(link, bytes);
      case LinkKind::kPlugin:
        return plugin_of_[link]->tx_begin(bytes);
      case LinkKind::kLoopback:
        return loopback.tx_begin(link, bytes);
      case LinkKind::kLane:
        return lanes.tx_begin(link, bytes);
      case LinkKind::kHindered:
        return begin_hindered(link, bytes);
      case LinkKind::kNone:
        break;
    }
    return nullptr;
  }

  void commit_frame(LinkKind kind, uint32_t link, std::byte* frame, size_t bytes) {
    switch (kind) {
      case LinkKind::kShm:
        return shm.tx_commit(link, frame, bytes);
      case LinkKind::kUdp:
        udp_sent_ = true;
        return udp.tx_commit(link, frame, bytes);
      case LinkKind::kPlugin:
        return plugin_of_[link]->tx_commit(frame, bytes);
      case LinkKind::kLoopback:
        loopback_used_ = true;
        return loopback.tx_commit(link, frame, bytes);
      case LinkKind::kLane:
        return lanes.tx_commit(link, frame, bytes);
      case LinkKind::kHindered:
        return commit_hindered(link, frame, bytes);
      case LinkKind::kNone:
        return;
    }
  }

  void abort_frame(LinkKind kind, uint32_t link, std::byte* frame) {
    switch (kind) {
      case LinkKind::kShm:
        return shm.tx_abort(link, frame);
      case LinkKind::kUdp:
        return udp.tx_abort(link, frame);
      case LinkKind::kPlugin:
        return plugin_of_[link]->tx_abort(frame);
      case LinkKind::kLoopback:
        return loopback.tx_abort(link, frame);
      case LinkKind::kLane:
        return lanes.tx_abort(link, frame);
      case LinkKind::kHindered:
        return abort_hindered(link, frame);
      case LinkKind::kNone:
        return;
    }
  }

  std::vector<LinkKind> kinds_{LinkKind::kNone};  // how frames of a link are sent
  std::vector<LinkKind> ports_{LinkKind::kNone};  // by what port
  std::vector<LinkKind> direct_{LinkKind::kNone};  // the same; kNone: not when they are committed, but later
  std::unique_ptr<ImpairedWires> impaired_;
  Capture* capture_ = nullptr;
  record::Recorder* recorder_ = nullptr;
  std::vector<PluginPort*> plugin_of_;  // by link
  size_t first_plugin_ = 0;
  uint64_t received_ = 0;
  Instant udp_hot_until_{};
  std::vector<SleepSet*> udp_sleepers_;  // which watch its sockets
  bool udp_is_mute_ = false;
  Instant udp_look_at_{};
  std::byte* begun_ = nullptr;  // the frame that gather() fills
  bool udp_sent_ = false;
  bool loopback_used_ = false;
  bool down_ = false;
  bool hindered_ = false;  // down, impaired or captured
  uint64_t lost_ = 0;
};

}  // namespace ub
