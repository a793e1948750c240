// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/memory.h"

#include <fmt/format.h>
#include <softub_aperture.h>
#include <softub_api.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tools/common/tool_error.h"

namespace ub::tools {

uint8_t* take_memory(const Options& options, uint64_t bytes) {
  void* memory = options.own_memory      ? std::aligned_alloc(4096, bytes)
                 : options.shared_memory ? softub_alloc_shared(bytes, SOFTUB_SHARE_READ | SOFTUB_SHARE_WRITE)
                                         : softub_alloc(bytes);
  if (memory == nullptr) throw ToolError(fmt::format("cannot allocate {} MiB: {}", bytes >> 20, std::strerror(errno)));
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return static_cast<uint8_t*>(memory);
}

void give_memory(const Options& options, uint8_t* memory) {
  if (options.own_memory) {
    std::free(memory);
  } else {
    softub_free(memory);
  }
}

}  // namespace ub::tools
