// SPDX-License-Identifier: Apache-2.0
// live.h - is a handle still good? One load and one comparison on the object's hot line.
//
// Every object carries a magic made of its kind and the epoch in which it was created. Deletion clears it;
// urma_uninit, exit and fork (in the child) start a new epoch, which ends all objects of the old one at once.
// Objects never leave their pool (pool.h), so looking at a dead one is safe.
//
// An object that exists but is not active (life.h) carries the complement of the live magic: no call takes it for
// a live one, and those of steps.cc know it.
#pragma once

#include <atomic>
#include <cstdint>

#include "lib/urma/backends/backend.h"

namespace ub::urma {

struct LiveState {
  // The back end in use. Never null once an object exists: after the end it is one that refuses everything,
  // so that a thread that is inside a call finds something to call.
  std::atomic<Backend*> backend{nullptr};
  std::atomic<uint64_t> epoch{1};
  std::atomic<bool> faults{false};  // somebody asked for some (data/faults.h)
};
extern LiveState live_state;

// Whether an object is live, and of what kind. It may be looked at while another thread deletes the object, and whoever
// finds it live sees all that was written before it came alive: its address may have come by way of a daemon.
class Magic {
 public:
  Magic& operator=(uint64_t value) {
    value_.store(value, std::memory_order_release);
    return *this;
  }
  operator uint64_t() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> value_{0};
};

inline Backend& backend() { return *live_state.backend.load(std::memory_order_acquire); }

constexpr uint64_t magic_of(const char (&kind)[9]) {
  uint64_t magic = 0;
  for (int i = 0; i < 8; ++i) magic = magic << 8 | static_cast<uint8_t>(kind[i]);
  return magic;
}

template <class T>
uint64_t live_magic() {
  return T::kMagic ^ live_state.epoch.load(std::memory_order_relaxed) << 1;
}

// No kind's magic has the top bit, so this is no live magic.
template <class T>
uint64_t inactive_magic() {
  return ~live_magic<T>();
}

// Of a live object. Stays in the epoch in which it lived.
template <class T>
void make_inactive(T& object) {
  object.magic = ~object.magic;
}

template <class T>
bool is_live(const T* object) {
  return object != nullptr && object->magic == live_magic<T>();
}

// The private object behind a public pointer, or null: no live object of this kind.
template <class T>
T* live(const typename T::Public* handle) {
  T* object = reinterpret_cast<T*>(const_cast<typename T::Public*>(handle));  // public part is the first member
  return is_live(object) ? object : nullptr;
}

// The same for an object that is not active.
template <class T>
T* inactive(const typename T::Public* handle) {
  T* object = reinterpret_cast<T*>(const_cast<typename T::Public*>(handle));
  return object != nullptr && object->magic == inactive_magic<T>() ? object : nullptr;
}

}  // namespace ub::urma
