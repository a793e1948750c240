// SPDX-License-Identifier: Apache-2.0
// children.h - counting the objects of a context, and waiting for acknowledged events before one goes away.
#pragma once

#include <pthread.h>

#include "lib/urma/objects/objects.h"

namespace ub::urma {

inline void add_child(urma_context_t* ctx) { ctx->ref.atomic_cnt.fetch_add(1, std::memory_order_relaxed); }
inline void drop_child(urma_context_t* ctx) { ctx->ref.atomic_cnt.fetch_sub(1, std::memory_order_release); }
inline bool has_children(urma_context_t* ctx) { return ctx->ref.atomic_cnt.load(std::memory_order_acquire) > 1; }

// The event members that JFC, JFS, JFR and jetty have in common.
template <class Public>
void init_event_members(Public& pub) {
  pthread_mutex_init(&pub.event_mutex, nullptr);
  pthread_cond_init(&pub.event_cond, nullptr);
}
template <class Public>
void destroy_event_members(Public& pub) {
  pthread_cond_destroy(&pub.event_cond);
  pthread_mutex_destroy(&pub.event_mutex);
}

// Counters wrap; the application acknowledges at most what it was given.
inline bool all_acked(uint32_t handed_out, uint32_t acked) { return static_cast<int32_t>(handed_out - acked) <= 0; }

// `acked` tells whether every event handed out was acknowledged; called under event_mutex.
template <class Public, class Acked>
void wait_for_acks(Public& pub, Acked acked) {
  pthread_mutex_lock(&pub.event_mutex);
  while (!acked()) pthread_cond_wait(&pub.event_cond, &pub.event_mutex);
  pthread_mutex_unlock(&pub.event_mutex);
}
template <class Public, class Acked>
bool acks_missing(Public& pub, Acked acked) {
  pthread_mutex_lock(&pub.event_mutex);
  bool missing = !acked();
  pthread_mutex_unlock(&pub.event_mutex);
  return missing;
}
template <class Public>
void acknowledge(Public& pub, uint32_t Public::*counter, uint32_t events) {
  pthread_mutex_lock(&pub.event_mutex);
  pub.*counter += events;
  pthread_cond_broadcast(&pub.event_cond);
  pthread_mutex_unlock(&pub.event_mutex);
}

}  // namespace ub::urma
