// SPDX-License-Identifier: Apache-2.0
// Step-wise creation (URMA API 0.9, 5.7): an inactive object that is adjusted, then made usable, and back. What the
// steps do is in life.h and with each kind of object; here is who may take which.
#include <cstring>

#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/objects/life.h"
#include "lib/urma/objects/options.h"

using namespace ub::urma;

namespace {

// What a configuration must hold from the start; all else is checked at activation.
bool can_start(const urma_jfc_cfg_t&) { return true; }
bool can_start(const urma_jfs_cfg_t& cfg) { return cfg.jfc != nullptr; }
bool can_start(const urma_jfr_cfg_t& cfg) { return cfg.jfc != nullptr; }
bool can_start(const urma_jetty_cfg_t& cfg) { return cfg.jfs_cfg.jfc != nullptr; }

template <class T, class Config>
urma_status_t alloc(urma_context_t* ctx, const Config* cfg, typename T::Public** out) {
  if (live<Context>(ctx) == nullptr || cfg == nullptr || out == nullptr || !can_start(*cfg)) return URMA_EINVAL;
  T* object = new_inactive<T>(ctx, *cfg);
  if (object == nullptr) return URMA_ENOMEM;
  *out = &object->pub;
  return URMA_SUCCESS;
}

template <class T>
urma_status_t set_option(typename T::Public* handle, uint64_t option, const void* buf, uint32_t len) {
  T* object = inactive<T>(handle);
  if (object == nullptr || buf == nullptr) return URMA_EINVAL;
  OptionMember member = find_option(object->pub, option);
  if (member.value == nullptr || len != member.bytes) return URMA_EINVAL;
  memcpy(member.value, buf, len);
  if (member.mask != nullptr) *member.mask |= member.mask_bit;
  return URMA_SUCCESS;
}

template <class T>
urma_status_t get_option(typename T::Public* handle, uint64_t option, void* buf, uint32_t len) {
  T* object = live<T>(handle);
  if (object == nullptr) object = inactive<T>(handle);
  if (object == nullptr || buf == nullptr) return URMA_EINVAL;
  OptionMember member = find_option(object->pub, option);
  if (member.value == nullptr || len != member.bytes) return URMA_EINVAL;
  memcpy(buf, member.value, len);
  return URMA_SUCCESS;
}

template <class T>
urma_status_t active(typename T::Public* handle) {
  T* object = inactive<T>(handle);
  return object != nullptr ? activate(*object) : URMA_EINVAL;
}

template <class T>
urma_status_t deactive(typename T::Public* handle) {
  T* object = live<T>(handle);
  return object != nullptr ? deactivate(*object) : URMA_EINVAL;
}

template <class T>
urma_status_t free_object(typename T::Public* handle) {
  T* object = inactive<T>(handle);
  if (object == nullptr) return URMA_EINVAL;
  dispose(*object);
  return URMA_SUCCESS;
}

}  // namespace

// ---- JFC ------------------------------------------------------------------------------------------------------

urma_status_t urma_alloc_jfc(urma_context_t* urma_ctx, urma_jfc_cfg_t* cfg, urma_jfc_t** jfc) {
  return alloc<Jfc>(urma_ctx, cfg, jfc);
}
urma_status_t urma_set_jfc_opt(urma_jfc_t* jfc, uint64_t opt, void* buf, uint32_t len) {
  return set_option<Jfc>(jfc, opt, buf, len);
}
urma_status_t urma_active_jfc(urma_jfc_t* jfc) { return active<Jfc>(jfc); }
urma_status_t urma_get_jfc_opt(urma_jfc_t* jfc, uint64_t opt, void* buf, uint32_t len) {
  return get_option<Jfc>(jfc, opt, buf, len);
}
urma_status_t urma_deactive_jfc(urma_jfc_t* jfc) { return deactive<Jfc>(jfc); }
urma_status_t urma_free_jfc(urma_jfc_t* jfc) { return free_object<Jfc>(jfc); }

// ---- JFS ------------------------------------------------------------------------------------------------------

urma_status_t urma_alloc_jfs(urma_context_t* urma_ctx, urma_jfs_cfg_t* cfg, urma_jfs_t** jfs) {
  return alloc<Jfs>(urma_ctx, cfg, jfs);
}
urma_status_t urma_set_jfs_opt(urma_jfs_t* jfs, uint64_t opt, void* buf, uint32_t len) {
  return set_option<Jfs>(jfs, opt, buf, len);
}
urma_status_t urma_active_jfs(urma_jfs_t* jfs) { return active<Jfs>(jfs); }
urma_status_t urma_get_jfs_opt(urma_jfs_t* jfs, uint64_t opt, void* buf, uint32_t len) {
  return get_option<Jfs>(jfs, opt, buf, len);
}
urma_status_t urma_deactive_jfs(urma_jfs_t* jfs) { return deactive<Jfs>(jfs); }
urma_status_t urma_free_jfs(urma_jfs_t* jfs) { return free_object<Jfs>(jfs); }

// ---- JFR ------------------------------------------------------------------------------------------------------

urma_status_t urma_alloc_jfr(urma_context_t* urma_ctx, urma_jfr_cfg_t* cfg, urma_jfr_t** jfr) {
  return alloc<Jfr>(urma_ctx, cfg, jfr);
}
urma_status_t urma_set_jfr_opt(urma_jfr_t* jfr, uint64_t opt, void* buf, uint32_t len) {
  return set_option<Jfr>(jfr, opt, buf, len);
}
urma_status_t urma_active_jfr(urma_jfr_t* jfr) { return active<Jfr>(jfr); }
urma_status_t urma_get_jfr_opt(urma_jfr_t* jfr, uint64_t opt, void* buf, uint32_t len) {
  return get_option<Jfr>(jfr, opt, buf, len);
}
urma_status_t urma_deactive_jfr(urma_jfr_t* jfr) { return deactive<Jfr>(jfr); }
urma_status_t urma_free_jfr(urma_jfr_t* jfr) { return free_object<Jfr>(jfr); }

// ---- jetty ----------------------------------------------------------------------------------------------------

urma_status_t urma_alloc_jetty(urma_context_t* urma_ctx, urma_jetty_cfg_t* cfg, urma_jetty_t** jetty) {
  return alloc<Jetty>(urma_ctx, cfg, jetty);
}
urma_status_t urma_set_jetty_opt(urma_jetty_t* jetty, uint64_t opt, void* buf, uint32_t len) {
  return set_option<Jetty>(jetty, opt, buf, len);
}
urma_status_t urma_active_jetty(urma_jetty_t* jetty) { return active<Jetty>(jetty); }
urma_status_t urma_get_jetty_opt(urma_jetty_t* jetty, uint64_t opt, void* buf, uint32_t len) {
  return get_option<Jetty>(jetty, opt, buf, len);
}
urma_status_t urma_deactive_jetty(urma_jetty_t* jetty) { return deactive<Jetty>(jetty); }
urma_status_t urma_free_jetty(urma_jetty_t* handle) {
  auto* jetty = live<Jetty>(handle);
  if (jetty != nullptr && jetty->pub.remote_jetty != nullptr) return URMA_ENOPERM;
  return free_object<Jetty>(handle);
}
