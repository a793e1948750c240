// SPDX-License-Identifier: Apache-2.0
//
// What the inline calls on a CachedHandle leave; in a program they are the library's own.
#include "tests/unit/aperture/cached_handle.h"

using ub::aperture::test::CachedHandle;

// What inline calls leave.
urma_cr_status_t softub_load_any(softub_aperture_t*, uint64_t at, void* to, uint32_t bytes) {
  const ub::aperture::LoadBlock block{at, to, bytes};
  return CachedHandle::current->cache.load({&block, 1});
}
urma_cr_status_t softub_store_any(softub_aperture_t*, uint64_t at, const void* from, uint32_t bytes) {
  return CachedHandle::current->cache.store({at, from, bytes, nullptr});
}
urma_cr_status_t softub_wait_load(softub_aperture_t*, uint64_t, void*, uint32_t) { return URMA_CR_LOC_OPERATION_ERR; }
void softub_ring(softub_aperture_t*) {}
