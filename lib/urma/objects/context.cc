// SPDX-License-Identifier: Apache-2.0
// Contexts: the device opened with one of its EIDs. All contexts of a process share one back end.
#include <cstring>
#include <iterator>

#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/children.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

urma_context_t* urma_create_context(urma_device_t* dev, uint32_t eid_index) {
  if (live<Device>(dev) == nullptr) return fail(EINVAL);
  Library& library = Library::get();
  if (eid_index >= library.eids().size()) {
    URMA_LOG_ERROR("EID index %u: the device has %zu EIDs", eid_index, library.eids().size());
    return fail(EIO);
  }
  auto* context = library.take<Context>();
  if (context == nullptr) return fail(ENOMEM);
  if (!context->async.open()) {
    int error = errno;
    library.give(context);
    return fail(error);
  }
  for (uintptr_t port = 0; port < std::size(context->port_sources); ++port) {
    context->port_sources[port].element = reinterpret_cast<void*>(port);
  }
  urma_context_t& pub = context->pub;
  pub.dev = dev;
  pub.ops = context_ops();
  pub.dev_fd = -1;
  pub.async_fd = context->async.fd();
  pthread_mutex_init(&pub.mutex, nullptr);
  memcpy(pub.eid.raw, library.eids()[eid_index].bytes.data(), sizeof pub.eid.raw);
  pub.eid_index = eid_index;
  pub.uasid = library.uasid();
  pub.ref.atomic_cnt = 1;
  pub.aggr_mode = URMA_AGGR_MODE_STANDALONE;
  context->magic = live_magic<Context>();
  return &pub;
}

urma_status_t urma_delete_context(urma_context_t* ctx) {
  auto* context = live<Context>(ctx);
  if (context == nullptr) return URMA_EINVAL;
  if (has_children(ctx)) {
    URMA_LOG_ERROR("the context still has %lu objects", ctx->ref.atomic_cnt.load() - 1);
    return URMA_EAGAIN;
  }
  context->magic = 0;
  context->async.remove(context->async_source);  // nobody pushes into a closed descriptor
  for (AsyncSource& port : context->port_sources) context->async.remove(port);
  context->async.close();
  context->tps.clear();
  pthread_mutex_destroy(&ctx->mutex);
  Library::get().give(context);
  return URMA_SUCCESS;
}

urma_status_t urma_set_context_opt(urma_context_t*, urma_opt_name_t, const void*, size_t) {
  return URMA_EINVAL;  // the only option belongs to bonding devices
}
