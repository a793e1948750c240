// SPDX-License-Identifier: Apache-2.0
#include "apps/file_copy/buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "apps/file_copy/transfer.h"
#include "tools/common/tool_error.h"

namespace ub::apps {

Buffer::Map::Map(uint64_t size) : bytes(size) {
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED)
    throw tools::ToolError(fmt::format("no memory for {} of buffers", amount_text(static_cast<double>(size))));
  base = static_cast<std::byte*>(p);
}

Buffer::Map::~Map() { munmap(base, bytes); }

Buffer::Buffer(Nic& nic, uint64_t bytes) : map_(bytes), memory_(nic, map_.base, bytes) {}

}  // namespace ub::apps
