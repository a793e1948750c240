// SPDX-License-Identifier: Apache-2.0
#include "lib/roce/device.h"

#include <sys/random.h>

#include <algorithm>

#include "dataplane/config.h"
#include "dataplane/eid.h"
#include "lib/ipc/mapped.h"

namespace ub::verbs {
namespace {

constexpr size_t kMostAsyncEvents = 4096;

std::optional<AsyncEventKind> async_kind_of(EventKind kind) {
  switch (kind) {
    case EventKind::kQpError:
      return AsyncEventKind::kQpFatal;
    case EventKind::kQpDrained:
      return AsyncEventKind::kSqDrained;
    case EventKind::kQpLastReceive:
      return AsyncEventKind::kQpLastWqeReached;
    default:
      return std::nullopt;
  }
}

// What a program is told of an event, if anything.
std::optional<AsyncEvent> async_event_of(const NicEvent& event) {
  using Told = std::optional<AsyncEvent>;
  return std::visit(
      each_kind{[](const Event& of_object) -> Told {
                  const auto kind = async_kind_of(of_object.kind);
                  return kind ? Told({*kind, of_object.object}) : std::nullopt;
                },
                [](const PortEvent& of_port) -> Told {
                  return AsyncEvent{of_port.up ? AsyncEventKind::kPortUp : AsyncEventKind::kPortDown, of_port.port};
                },
                [](NicGone) -> Told { return std::nullopt; }},
      event);
}

}  // namespace

// ---- device --------------------------------------------------------------------------------------------------------

std::unique_ptr<Device> Device::open(std::function<void(const std::string&)> notice, std::string* error) {
  ConfigResult loaded = load_config();
  if (!loaded.config) {
    *error = loaded.error;
    return nullptr;
  }
  loaded.config->roce.enable = true;
  std::unique_ptr<Device> device(new Device);
  device->nic_ = Nic::start(*loaded.config, 0, std::move(notice), error);
  if (!device->nic_ || !device->nic_->has_roce(error)) return nullptr;
  error->clear();
  device->nic_->set_event_sink([self = device.get()](const NicEvent& event) { self->on_event(event); });
  return device;
}

std::vector<Gid> Device::gids() const {
  std::vector<Gid> all;
  for (const Eid& eid : nic_->eids()) all.push_back(Gid{eid.bytes});
  return all;
}

uint8_t Device::active_mtu() const { return roce::code_of_mtu(nic_->mtu()); }

bool Device::find_path(const Gid& sgid, const Gid& dgid, AhAttributes* path, std::string* why) {
  PeerAddress address;
  if (!nic_->find_path(eid_of(sgid), {eid_of(dgid), 0}, &address, why)) return false;
  if (!nic_->carries_roce(address, why) || !nic_->meet_neighbour(address, why)) return false;
  path->link = address.link;
  path->sgid = address.local.ip;
  path->dgid = address.remote.ip;
  return true;
}

Counters Device::counters() {
  return control([](NicCore& core, Instant) { return core.counters(); });
}

// ---- events --------------------------------------------------------------------------------------------------------

void Device::on_event(const NicEvent& event) {
  const std::lock_guard guard(event_lock_);
  if (const auto told = async_event_of(event); told && async_events_.size() < kMostAsyncEvents) {
    async_events_.push_back(*told);
  }
  ++events_told_;
  event_told_.notify_all();
}

bool Device::wait_until(std::chrono::nanoseconds limit, const std::function<bool()>& ready) {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  const auto end = limit < Clock::time_point::max() - now ? now + limit : Clock::time_point::max();
  nic_->begin_wait();
  bool is_ready, in_time = true;
  for (;;) {
    std::unique_lock guard(event_lock_);
    const uint64_t seen = events_told_;
    guard.unlock();
    is_ready = ready();
    if (is_ready || !in_time) break;
    guard.lock();
    in_time = event_told_.wait_until(guard, end, [&] { return events_told_ != seen; });
  }
  nic_->end_wait();
  return is_ready;
}

std::optional<AsyncEvent> Device::take_async_event() {
  const std::lock_guard guard(event_lock_);
  if (async_events_.empty()) return std::nullopt;
  const AsyncEvent event = async_events_.front();
  async_events_.pop_front();
  return event;
}

std::optional<AsyncEvent> Device::poll_async_event() {
  if (const auto event = take_async_event()) return event;
  drive();
  return take_async_event();
}

std::optional<AsyncEvent> Device::wait_async_event(std::chrono::nanoseconds limit) {
  std::optional<AsyncEvent> event;
  wait_until(limit, [&] { return (event = take_async_event()).has_value(); });
  return event;
}

// ---- what belongs to it --------------------------------------------------------------------------------------------

Owner Device::next_domain() {
  const std::lock_guard guard(lock_);
  return ++last_domain_;
}

Status ProtectionDomain::create(Device& device, std::unique_ptr<ProtectionDomain>* out) {
  const Owner owner = device.next_domain();
  if (owner == 0) return Status::kNoMemory;  // all numbers were used; they are not used twice
  out->reset(new ProtectionDomain(device, owner));
  return Status::kOk;
}

Status MemoryRegion::create(ProtectionDomain& domain, void* address, size_t length, uint32_t access,
                            std::unique_ptr<MemoryRegion>* out) {
  const bool written = (access & (kLocalWrite | kRemoteWrite | kRemoteAtomic)) != 0;
  const bool there = ipc::is_mapped(reinterpret_cast<uintptr_t>(address), length, written);
  if ((access & ~kEveryAccess) != 0 || !there) return Status::kInvalid;
  uint32_t key = 0;
  if (getrandom(&key, sizeof key, 0) != sizeof key) return Status::kNoMemory;
  SegmentConfig config;
  config.memory = static_cast<std::byte*>(address);
  config.address = config.local_address = reinterpret_cast<uintptr_t>(address);
  config.length = length;
  config.token = {true, key & roce::kKeyMask};
  config.access = to_engine_access(access) != 0 ? to_engine_access(access) : kAccessLocalOnly;
  config.owner = domain.owner_;
  RegisteredSegment segment;
  const Status status =
      domain.device_.control([&](Nic::NicCore& core, Instant) { return core.register_segment(config, &segment); });
  if (status == Status::kOk) out->reset(new MemoryRegion(domain.device_, segment, key & roce::kKeyMask));
  return status;
}

MemoryRegion::~MemoryRegion() {
  device_.control([&](Nic::NicCore& core, Instant now) { return core.unregister_segment(now, segment_.handle); });
}

Status AddressHandle::create(ProtectionDomain& domain, const AhAttributes& attributes,
                             std::unique_ptr<AddressHandle>* out) {
  uint32_t handle = 0;
  const Status status = domain.device_.engine([&](auto& engine, Instant) {
    return engine.create_ah({attributes, domain.owner_}, &handle);
  });
  if (status == Status::kOk) out->reset(new AddressHandle(domain.device_, handle));
  return status;
}

AddressHandle::~AddressHandle() {
  device_.engine([&](auto& engine, Instant) { return engine.destroy_ah(handle_); });
}

}  // namespace ub::verbs
