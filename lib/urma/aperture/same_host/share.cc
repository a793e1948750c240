// SPDX-License-Identifier: Apache-2.0
// Memory that others of this host may map, on the owner's side (softub_aperture.h).
#include <algorithm>
#include <cerrno>
#include <new>
#include <vector>

#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"
#include "lib/urma/library.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

void* softub_alloc_shared(size_t bytes, uint32_t rights) {
  Library& library = Library::get();
  constexpr uint32_t kRights = SOFTUB_SHARE_READ | SOFTUB_SHARE_WRITE;
  if (bytes == 0 || rights == 0 || (rights & ~kRights) != 0) return fail(EINVAL);
  if (library.device() == nullptr) return fail(ENODEV);
  void* memory = library.lend(backend().shareable_memory(bytes, (rights & SOFTUB_SHARE_WRITE) != 0));
  return memory != nullptr ? memory : fail(ENOMEM);
}

urma_status_t softub_holders(const void* memory, softub_holder_t* holders, uint32_t* count) try {
  if (count == nullptr || (holders == nullptr && *count != 0)) return URMA_EINVAL;
  if (Library::get().device() == nullptr) return URMA_FAIL;
  std::vector<ipc::ShareHolder> found;
  const Status status = backend().share_holders(memory, &found);
  if (status != Status::kOk) return status_of(status);
  for (size_t i = 0; i < std::min<size_t>(found.size(), *count); ++i) holders[i] = {found[i].process, found[i].told};
  *count = static_cast<uint32_t>(found.size());
  return URMA_SUCCESS;
} catch (const std::bad_alloc&) {
  return URMA_ENOMEM;
}
