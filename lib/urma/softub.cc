// SPDX-License-Identifier: Apache-2.0
// What SoftUB adds to the URMA calls.
#include "lib/urma/include/ub/umdk/urma/softub_api.h"

#include "lib/urma/library.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

void* softub_alloc(size_t bytes) {
  Library& library = Library::get();
  if (bytes == 0) return fail(EINVAL);
  if (library.device() == nullptr) return fail(ENODEV);
  void* memory = library.lend(backend().memory(bytes));
  return memory != nullptr ? memory : fail(ENOMEM);
}

void softub_free(void* memory) { Library::get().take_back(memory); }

const char* softub_placement(void) { return Library::get().device() != nullptr ? backend().name() : nullptr; }
