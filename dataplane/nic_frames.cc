// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores over frames, for a thread of the program that waits for them: it owns the Core and drives it
// meanwhile, but lets others in now and then.
#include <sched.h>

#include "dataplane/nic.h"
#include "lib/ipc/pause.h"

namespace ub {

namespace {

constexpr uint32_t kAnyId = 1;  // a target is wanted for its instance alone
constexpr Duration kChannelPatience = seconds(1);
constexpr Duration kChannelPause = microseconds(20);
constexpr Duration kOwnerPatience = microseconds(4);
constexpr int kRoundsInARow = 64;  // then others are let in
constexpr Duration kSpin = milliseconds(1);

class HandleCalls final : public bypass::Calls {
 public:
  HandleCalls(bypass::Requester<PortSet>& requester, uint32_t handle) : requester_(requester), handle_(handle) {}
  void at(Instant now) { now_ = now; }

  Status load(const bypass::Block& block, std::byte* to, uint32_t* ticket) override {
    return requester_.load(now_, handle_, block, to, ticket);
  }
  Status store(const bypass::StoreRequest& request, uint32_t* ticket) override {
    return requester_.store(now_, handle_, request, ticket);
  }
  bypass::Outcome take(uint32_t ticket) override { return requester_.take(handle_, ticket); }

 private:
  bypass::Requester<PortSet>& requester_;
  uint32_t handle_;
  Instant now_{};
};

bypass::Requester<PortSet>& requester_of(Nic::NicCore& core) {
  return core.engine<bypass::Engine<PortSet>>().requester();
}

}  // namespace

// What a device does to frames, and what impairments do to them.
LinkConfig Nic::link_of(const PluginPort& port) const {
  LinkConfig link = port.link_config();
  link.bypass &= !config_.impair.is_set();
  return link;
}

bool Nic::open_frames(const Eid& local, const InstanceId& instance, bypass::OpenConfig config, bypass::Opened* opened,
                      std::string* why) {
  TargetConfig target;
  target.local_eid = local;
  target.instance = instance;
  target.id = kAnyId;
  if (!find_path(local, instance, &target.path, why)) return false;
  const PluginPort* port = dpdk_port_at(target.path.link);
  if (port == nullptr || !link_of(*port).bypass) {
    *why = "the wire to its NIC carries no frames of loads and stores";
    return false;
  }
  look_for_neighbour(target.path);
  Status status = control([&](NicCore& core, Instant now) { return core.add_target(now, target, &config.target); });
  if (status == Status::kOk) {
    status = await_channel(config, opened);
    if (status == Status::kOk) return true;
    control([&](NicCore& core, Instant) { return core.remove_target(config.target); });
  }
  *why = status == Status::kBusy      ? "its NIC does not answer"
         : status == Status::kInvalid ? "its NIC takes no frames of loads and stores"
                                      : "no handle, channel or target is left";
  return false;
}

Status Nic::await_channel(const bypass::OpenConfig& config, bypass::Opened* opened) {
  const Instant until = worker_->now() + kChannelPatience;
  for (;;) {
    const Status status = control([&](NicCore& core, Instant now) {
      const Status open = requester_of(core).open(now, config, &opened->handle);
      if (open == Status::kOk) opened->most_bytes = requester_of(core).most_bytes(opened->handle);
      return open;
    });
    opened->target = config.target;
    if (status != Status::kBusy || worker_->now() > until) return status;
    drive();
    ipc::pause_for(kChannelPause);
  }
}

void Nic::close_frames(const bypass::Opened& opened) {
  control([&](NicCore& core, Instant now) {
    requester_of(core).close(now, opened.handle);
    return core.remove_target(opened.target);
  });
}

bypass::Ran Nic::run_frames(uint32_t handle, bypass::Turns& turns, Duration patience) {
  ipc::KeepErrno kept;
  if (own_soon(kOwnerPatience) && take_turns(handle, turns)) return bypass::Ran::kDone;
  const Instant began = worker_->now();
  Instant yielded = began;
  for (Instant now = began; now - began < patience; now = worker_->now()) {
    if (ownership_.is_mine()) return bypass::Ran::kInside;
    if (now - yielded > kSpin) {  // whoever answers may need this CPU
      sched_yield();
      yielded = worker_->now();
    }
    if (own_soon(kOwnerPatience) && take_turns(handle, turns)) return bypass::Ran::kDone;
  }
  return bypass::Ran::kLate;
}

// Owned, and lets go.
bool Nic::take_turns(uint32_t handle, bypass::Turns& turns) {
  const Acks acks = application_drives();
  HandleCalls calls(requester_of(worker_->core()), handle);
  bool done = false;
  for (int round = 0; round < kRoundsInARow && !done; ++round) {
    if (round != 0) drive_owned(acks);
    if (is_special_ && step_faults()) [[unlikely]]
      break;
    const Instant now = worker_->turn();
    calls.at(now);
    done = turns.turn(calls);
    if (done || round == 0) ports_.tx_flush(now);
  }
  drives_.store(drives_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  statistics_stale_ = true;
  tell_helper_deadline();
  release();
  return done;
}

}  // namespace ub
