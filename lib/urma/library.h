// SPDX-License-Identifier: Apache-2.0
// library.h - the state of liburma in this process: back end, device, and the pools of objects.
//
// One instance, leaked: exit runs destructors in an order nobody controls while other threads may still poll.
// Life: urma_init brings a back end up; urma_uninit, exit, and fork in the child end the epoch (live.h) and
// with it all handles. What the application left behind is collected at the next urma_init, when surely no
// call of the old epoch is still running.
//
// Thread: any. `lifecycle` is held over init and uninit, `control` for bookkeeping only and never over a call
// of the back end, whose event sink runs in other threads and may take `control`.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/urma/backends/backend.h"
#include "lib/urma/backends/placement.h"
#include "lib/urma/events/connector.h"
#include "lib/urma/objects/objects.h"
#include "lib/urma/objects/pool.h"

namespace ub::urma {

class Library {
 public:
  static Library& get();

  urma_status_t start(uint32_t wanted_uasid);
  urma_status_t stop();

  // Null: not started.
  Device* device();
  const DeviceSettings& settings() const { return settings_; }
  const urma_device_cap_t& caps() const { return caps_; }
  const std::vector<Eid>& eids() const { return eids_; }
  const std::vector<EidMapping>& eid_map() const { return settings_.eid_map; }
  uint32_t uasid() const { return uasid_; }
  // Ports whose link went down since the library was started, by bit.
  uint32_t lost_ports() const { return lost_ports_.load(std::memory_order_relaxed); }
  void set_port_lost(uint32_t port, bool lost) {
    const uint32_t bit = 1u << port;
    lost ? lost_ports_.fetch_or(bit) : lost_ports_.fetch_and(~bit);
  }
  uint32_t next_jfc_id();
  // Of the epoch: there is one while any object is live.
  Connector& connector() { return *connector_; }

  // A new object of this kind, not live yet (no magic), or null: out of memory.
  template <class T>
  T* take() {
    std::lock_guard guard(control_);
    return pool<T>().take();
  }
  // Ends an object's life; its memory stays an object of its kind.
  template <class T>
  void give(T* object) {
    object->magic = 0;
    std::lock_guard guard(control_);
    pool<T>().give(object);
  }

  // Memory of softub_alloc, from the back end: remembered by address until it is given back, whatever becomes of the
  // back end. Null: there was none, or no memory to remember it.
  void* lend(std::shared_ptr<std::byte> memory);
  void take_back(void* memory);

  // Each live object of this kind, under `control`; for the event sink, too.
  template <class T, class Fn>
  void for_each(Fn fn) {
    std::lock_guard guard(control_);
    pool<T>().for_each([&](T& object) {
      if (is_live(&object)) fn(object);
    });
  }

  // Bookkeeping that concerns two objects (bind): short, no back end calls inside.
  std::mutex& control() { return control_; }
  // Held while a jetty group is looked for by its name and made, over the call of the back end; before `control`.
  std::mutex& group_names() { return group_names_; }

 private:
  Library() = default;

  template <class T>
  ObjectPool<T>& pool() {
    return std::get<ObjectPool<T>>(pools_);
  }

  bool start_faults();
  void end_epoch();
  void wake_waiters();
  void collect_leftovers();
  void stop_at_exit();
  static void before_fork();
  static void after_fork_parent();
  static void after_fork_child();

  std::mutex lifecycle_;
  std::mutex control_;
  bool up_ = false;
  bool hooks_installed_ = false;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Connector> connector_;                    // its thread must be gone before an epoch ends
  std::vector<std::pair<Backend*, Connector*>> abandoned_;  // never destroyed: of parents, or left at exit
  std::vector<Eid> eids_;
  uint32_t uasid_ = 0;
  uint32_t jfc_ids_ = 0;
  std::atomic<uint32_t> lost_ports_{0};
  std::map<void*, std::shared_ptr<std::byte>> lent_;
  DeviceSettings settings_;
  urma_device_cap_t caps_{};
  Device device_;

  std::tuple<ObjectPool<Context>, ObjectPool<Jfce>, ObjectPool<Jfc>, ObjectPool<Jfs>, ObjectPool<Jfr>,
             ObjectPool<Jetty>, ObjectPool<JettyGroup>, ObjectPool<TokenId>, ObjectPool<Segment>, ObjectPool<Target>,
             ObjectPool<Notifier>>
      pools_;
  std::mutex group_names_;
};

// What urma_query_device answers, from the configuration and the back end.
urma_device_cap_t make_caps(const DeviceSettings& settings);

// The back end's event sink (events.cc).
void on_backend_event(const NicEvent& event);

// Is a part of that range a window of softub_map (aperture/map.cc)? An access to one may fault.
bool is_window_memory(uint64_t address, uint64_t bytes);
// Is it a window of softub_attach() that was not detached?
bool is_attached_window(void* window);

// The tables behind urma_device_t::ops and urma_context_t::ops (provider_ops.cc).
::urma_provider_ops* provider_ops();
::urma_ops* context_ops();

}  // namespace ub::urma
