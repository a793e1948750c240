// SPDX-License-Identifier: Apache-2.0
// life.h - the life of a JFC, JFS, JFR or jetty: inactive, active, inactive again, gone (URMA API 0.9, 5.7).
//
// Both ways to an object are made of these steps: urma_create_* and urma_delete_* take them all at once, the calls
// of steps.cc one by one. The handle stays the same pointer all the time. An inactive object has a magic of its own
// (live.h), so post, poll and the rest find no live object in it.
//
// Thread: any, but one at a time for one object.
#pragma once

#include "lib/urma/library.h"
#include "lib/urma/objects/children.h"
#include "lib/urma/objects/objects.h"
#include "lib/urma/status.h"

namespace ub::urma {

inline urma_jfc_cfg_t& config_of(Jfc& jfc) { return jfc.pub.jfc_cfg; }
inline urma_jfs_cfg_t& config_of(Jfs& jfs) { return jfs.pub.jfs_cfg; }
inline urma_jfr_cfg_t& config_of(Jfr& jfr) { return jfr.pub.jfr_cfg; }
inline urma_jetty_cfg_t& config_of(Jetty& jetty) { return jetty.pub.jetty_cfg; }

// An inactive object, which counts as a child of its context. Null: out of memory.
template <class T, class Config>
T* new_inactive(urma_context_t* ctx, const Config& cfg) {
  T* object = Library::get().take<T>();
  if (object == nullptr) return nullptr;
  object->pub.urma_ctx = ctx;
  init_event_members(object->pub);
  object->async.element = &object->pub;
  config_of(*object) = cfg;
  add_child(ctx);
  object->magic = inactive_magic<T>();
  return object;
}

// The address of an object that is being brought up, under the number that it was given.
inline urma_jetty_id_t full_id(const urma_context_t& ctx, uint32_t id) { return {ctx.eid, ctx.uasid, id}; }

// The end of an inactive object.
template <class T>
void dispose(T& object) {
  object.magic = 0;
  destroy_event_members(object.pub);
  drop_child(object.pub.urma_ctx);
  Library::get().give(&object);
}

// Checks the object's own configuration as urma_create_* checks the caller's, and makes the object live. On failure
// it stays inactive and can be tried again.
urma_status_t activate(Jfc& jfc);
urma_status_t activate(Jfs& jfs);
urma_status_t activate(Jfr& jfr);
urma_status_t activate(Jetty& jetty);

// Makes a live object inactive, under the conditions of urma_delete_*; waits for acknowledgements like it.
urma_status_t deactivate(Jfc& jfc);
urma_status_t deactivate(Jfs& jfs);
urma_status_t deactivate(Jfr& jfr);
urma_status_t deactivate(Jetty& jetty);

// What urma_create_* answers once its new object was brought up, or was not.
template <class T>
typename T::Public* created(T& object, Status brought_up) {
  if (brought_up == Status::kOk) return &object.pub;
  dispose(object);
  return fail(errno_of(brought_up));
}

// The same for activate(). The configuration was checked before: what is left is the device's matter.
inline urma_status_t activated(Status brought_up) {
  if (brought_up == Status::kOk) return URMA_SUCCESS;
  return brought_up == Status::kNoMemory ? URMA_ENOMEM : URMA_FAIL;
}

// urma_delete_*.
template <class T>
urma_status_t delete_object(typename T::Public* handle) {
  T* object = live<T>(handle);
  if (object == nullptr) return URMA_EINVAL;
  urma_status_t status = deactivate(*object);
  if (status == URMA_SUCCESS) dispose(*object);
  return status;
}

}  // namespace ub::urma
