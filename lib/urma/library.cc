// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/library.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lib/base/fault/plan_text.h"
#include "lib/ipc/ring.h"
#include "lib/urma/backends/null_backend.h"
#include "lib/urma/data/faults.h"
#include "lib/urma/data/perf.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/segment_memory.h"

namespace ub::urma {

LiveState live_state;

namespace {

Backend* null_backend() {
  static auto* const instance = new NullBackend;
  return instance;
}

// What a leftover holds besides its own memory.
void release_leftover(Context& context) { context.async.close(); }
void release_leftover(Jfce& jfce) { close(jfce.pub.fd); }
void release_leftover(Jfc& jfc) { jfc.ring.release(); }
void release_leftover(Jfs& jfs) { jfs.sq.memory.release(); }
void release_leftover(Jfr& jfr) { jfr.memory.release(); }
void release_leftover(Jetty& jetty) { jetty.sq.memory.release(); }
void release_leftover(JettyGroup&) {}
void release_leftover(TokenId&) {}
void release_leftover(Segment& segment) { segment.mapped.reset(); }
void release_leftover(Target&) {}
void release_leftover(Notifier& notifier) { close_fds(notifier); }

}  // namespace

Library& Library::get() {
  static Library* const instance = new Library;
  return *instance;
}

urma_status_t Library::start(uint32_t wanted_uasid) {
  std::lock_guard life(lifecycle_);
  if (up_) return URMA_EEXIST;
  collect_leftovers();
  live_state.backend.store(null_backend(), std::memory_order_release);

  Placement placement = place_nic(wanted_uasid);
  if (placement.backend == nullptr) {
    URMA_LOG_ERROR("no NIC: %s", placement.error.c_str());
    return URMA_FAIL;
  }
  lost_ports_.store(0, std::memory_order_relaxed);
  placement.backend->set_event_sink(on_backend_event);
  backend_ = std::move(placement.backend);
  eids_ = backend_->eids();
  uasid_ = backend_->uasid();
  settings_ = std::move(placement.settings);
  caps_ = make_caps(settings_);
  caps_.max_netaddr_cnt = static_cast<uint32_t>(eids_.size());

  device_.pub = {};
  snprintf(device_.pub.name, sizeof device_.pub.name, "%s", settings_.name.c_str());
  snprintf(device_.pub.path, sizeof device_.pub.path, "softub/%s", backend_->name());
  device_.pub.type = URMA_TRANSPORT_UB;
  device_.pub.ops = provider_ops();

  if (!hooks_installed_) {
    // Registered here rather than as a destructor of the library: static objects of the application that own
    // registered memory were made before, so they are destroyed after the NIC stopped.
    atexit([] { Library::get().stop_at_exit(); });
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    hooks_installed_ = true;
  }
  connector_ = std::make_unique<Connector>();
  if (!start_faults()) {
    backend_.reset();
    return URMA_FAIL;
  }
  live_state.backend.store(backend_.get(), std::memory_order_release);
  device_.magic = live_magic<Device>();
  up_ = true;
  URMA_LOG_INFO("device %s is up, back end %s, uasid 0x%08x", device_.pub.name, backend_->name(), uasid_);
  return URMA_SUCCESS;
}

// Those of the configuration, whose text was checked when it was read.
bool Library::start_faults() {
  const fault::Plan plan = fault::parse_plan(settings_.faults).plan.value_or(fault::Plan{});
  std::string why;
  if (!settings_.faults.empty() && backend_->inject(plan.nic, &why) != Status::kOk) {
    URMA_LOG_ERROR("fault.inject: %s", why.c_str());
    return false;
  }
  if (!settings_.faults.empty()) URMA_LOG_INFO("faults are injected: %s", settings_.faults.c_str());
  set_faults(plan.program);
  return true;
}

urma_status_t Library::stop() {
  std::lock_guard life(lifecycle_);
  if (!up_) return URMA_SUCCESS;
  connector_->stop();
  {
    std::lock_guard guard(control_);
    end_epoch();
    wake_waiters();
  }
  unmap_all_segments();
  backend_.reset();
  return URMA_SUCCESS;
}

void Library::end_epoch() {
  up_ = false;
  live_state.epoch.fetch_add(1, std::memory_order_seq_cst);
  live_state.backend.store(null_backend(), std::memory_order_seq_cst);
}

// Threads that wait find out that there is nothing to wait for. The descriptors are closed at the next start.
void Library::wake_waiters() {
  auto wake = [](int fd, uint64_t magic) {
    if (magic != 0) ipc::ring(fd);
  };
  pool<Context>().for_each([&](Context& context) { wake(context.async.fd(), context.magic); });
  pool<Jfce>().for_each([&](Jfce& jfce) { wake(jfce.pub.fd, jfce.magic); });
  pool<Notifier>().for_each([&](Notifier& notifier) { wake(notifier.results_fd, notifier.magic); });
}

// Rings and descriptors of objects that an earlier epoch left behind.
void Library::collect_leftovers() {
  std::lock_guard guard(control_);
  auto release = [](auto& object) {
    object.magic = 0;
    release_leftover(object);
  };
  std::apply([&](auto&... pools) { (pools.reclaim(release), ...); }, pools_);
}

// The program ends without urma_uninit. The helper thread must stop: soon the memory it serves is gone.
void Library::stop_at_exit() {
  std::unique_lock life(lifecycle_, std::try_to_lock);
  if (!life || !up_) return;
  connector_->stop();
  {
    std::lock_guard guard(control_);
    end_epoch();
  }
  unmap_all_segments();
  // Other threads may be inside calls that have already picked the back end, and may get no CPU before the exit is
  // over: it stays where it is.
  backend_->leave();
  abandoned_.emplace_back(backend_.release(), connector_.release());
}

void Library::before_fork() {
  get().lifecycle_.lock();
  get().group_names_.lock();
  get().control_.lock();
}

void Library::after_fork_parent() {
  get().control_.unlock();
  get().group_names_.unlock();
  get().lifecycle_.unlock();
}

// The NIC is the parent's: its threads do not exist here and its rings are not mapped. Even its destructor
// must not run.
void Library::after_fork_child() {
  abandon_perf();
  Library& library = get();
  if (library.up_) {
    library.end_epoch();
    library.abandoned_.emplace_back(library.backend_.release(), library.connector_.release());
  }
  after_fork_parent();
}

Device* Library::device() { return is_live(&device_) ? &device_ : nullptr; }

void* Library::lend(std::shared_ptr<std::byte> memory) try {
  void* address = memory.get();
  if (address == nullptr) return nullptr;
  std::lock_guard guard(control_);
  lent_[address].swap(memory);  // a forked child may find an entry of its parent
  return address;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void Library::take_back(void* memory) {
  decltype(lent_)::node_type node;  // ends after the lock: the back end may be called
  std::lock_guard guard(control_);
  node = lent_.extract(memory);
}

uint32_t Library::next_jfc_id() {
  std::lock_guard guard(control_);
  if (++jfc_ids_ == 0) ++jfc_ids_;
  return jfc_ids_;
}

}  // namespace ub::urma

using namespace ub::urma;

urma_status_t urma_init(urma_init_attr_t* conf) { return Library::get().start(conf != nullptr ? conf->uasid : 0); }

urma_status_t urma_uninit(void) { return Library::get().stop(); }

urma_status_t urma_get_uasid(uint32_t* uasid) {
  if (uasid == nullptr) return URMA_EINVAL;
  Library& library = Library::get();
  if (library.device() == nullptr) return URMA_FAIL;
  *uasid = library.uasid();
  return URMA_SUCCESS;
}
