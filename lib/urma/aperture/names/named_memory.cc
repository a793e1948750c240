// SPDX-License-Identifier: Apache-2.0
// Memory that is made with its segment and its name, and windows that are found by a name (softub_aperture.h).
#include <cerrno>
#include <map>
#include <mutex>
#include <new>

#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"
#include "lib/urma/include/ub/umdk/urma/softub_api.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/status.h"

using namespace ub::urma;

namespace {

constexpr uint32_t kAllAccess = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;

// The segment that belongs to an address; one that was forgotten there is replaced. Leaked, as threads may use it while
// destructors run.
class SegmentsByAddress {
 public:
  bool add(void* at, urma_target_seg_t* seg) try {
    std::lock_guard guard(mutex_);
    segments_.insert_or_assign(at, seg);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  urma_target_seg_t* take(void* at) {
    std::lock_guard guard(mutex_);
    const auto node = segments_.extract(at);
    return node.empty() ? nullptr : node.mapped();
  }
  bool has(void* at) {
    std::lock_guard guard(mutex_);
    return segments_.contains(at);
  }

 private:
  std::mutex mutex_;
  std::map<void*, urma_target_seg_t*> segments_;
};

SegmentsByAddress& created() {
  static auto* segments = new SegmentsByAddress;
  return *segments;
}
SegmentsByAddress& attached() {
  static auto* segments = new SegmentsByAddress;
  return *segments;
}

int errno_of(urma_status_t status) {
  switch (status) {
    case URMA_EINVAL:
      return EINVAL;
    case URMA_EEXIST:
      return EEXIST;
    case URMA_ENOMEM:
      return ENOMEM;
    default:
      return EIO;
  }
}

urma_target_seg_t* register_all(urma_context_t* context, void* memory, size_t bytes, const softub_create_options_t& o) {
  urma_seg_cfg_t config{};
  config.va = reinterpret_cast<uintptr_t>(memory);
  config.len = bytes;
  config.flag.bs.access = o.access != 0 ? o.access : kAllAccess;
  config.flag.bs.token_policy = o.token != nullptr ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE;
  if (o.token != nullptr) config.token_value = *o.token;
  return urma_register_seg(context, &config);
}

// 0, or an errno.
int publish_all(urma_context_t* context, const char* name, void* memory, size_t bytes,
                const softub_create_options_t& options) {
  urma_target_seg_t* seg = register_all(context, memory, bytes, options);
  if (seg == nullptr) return errno;
  const urma_status_t status = softub_publish(seg, name);
  const bool kept = status == URMA_SUCCESS && created().add(memory, seg);
  if (kept) return 0;
  urma_unregister_seg(seg);
  return status == URMA_SUCCESS ? ENOMEM : errno_of(status);
}

}  // namespace

void* softub_create(urma_context_t* context, const char* name, size_t bytes, const softub_create_options_t* wanted) {
  const softub_create_options_t options = wanted != nullptr ? *wanted : softub_create_options_t{};
  void* memory = options.share != 0 ? softub_alloc_shared(bytes, options.share) : softub_alloc(bytes);
  if (memory == nullptr) return nullptr;
  const int error = publish_all(context, name, memory, bytes, options);
  if (error == 0) return memory;
  softub_free(memory);
  return fail(error);
}

urma_status_t softub_destroy(void* memory) {
  urma_target_seg_t* seg = created().take(memory);
  if (seg == nullptr) return URMA_EINVAL;
  const urma_status_t status = urma_unregister_seg(seg);
  softub_free(memory);
  return status;
}

bool ub::urma::is_attached_window(void* window) { return attached().has(window); }

void* softub_attach(urma_context_t* context, const char* name, urma_token_t token,
                    const softub_map_options_t* options) {
  urma_target_seg_t* seg = softub_find(context, name, token);
  if (seg == nullptr) return nullptr;
  void* window = softub_map(seg, options);
  int error = errno;
  if (window != nullptr) {
    if (attached().add(window, seg)) return window;
    softub_unmap(window);
    error = ENOMEM;
  }
  urma_unimport_seg(seg);
  return fail(error);
}

urma_status_t softub_detach(void* window) {
  urma_target_seg_t* seg = attached().take(window);
  if (seg == nullptr) return URMA_EINVAL;
  const urma_status_t status = softub_unmap(window);
  urma_unimport_seg(seg);
  return status;
}
