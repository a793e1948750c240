// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/backends/shareable_blocks.h"

#include <fcntl.h>

#include <new>
#include <string>
#include <utility>

#include "lib/ipc/share.h"
#include "lib/urma/log.h"

namespace ub::urma {
namespace {

ipc::Fd duplicate(const ipc::Fd& fd) { return ipc::Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

}  // namespace

// Sealed when it is mapped: later mappings are those of others.
std::shared_ptr<std::byte> ShareableBlocks::allocate(size_t bytes, bool writable) try {
  bytes = ipc::share_pages(bytes);
  std::string why;
  Block block;
  block.writable = writable;
  block.memory = ipc::create_sealed_memfd("softub-shared", bytes, &why);
  const bool done = block.memory && block.mapping.map(block.memory.get(), bytes, &why) &&
                    (writable || ipc::seal_against_holes(block.memory.get(), &why)) &&
                    ipc::seal_seals(block.memory.get(), &why);
  if (!done) {
    URMA_LOG_ERROR("softub_alloc_shared: %s", why.c_str());
    return nullptr;
  }
  std::byte* at = block.mapping.data();
  {
    std::lock_guard guard(mutex_);
    blocks_.emplace(at, std::move(block));
  }
  const uint32_t process = ipc::fork_generation();
  return {at, [self = shared_from_this(), process](std::byte* gone) {  // a constructor that throws lets go
            if (process != ipc::fork_generation()) return;
            decltype(blocks_)::node_type node;  // unmapped after the lock
            std::lock_guard guard(self->mutex_);
            node = self->blocks_.extract(gone);
          }};
} catch (const std::bad_alloc&) {
  return nullptr;
}

std::optional<ShareableBlocks::Share> ShareableBlocks::share_of(const void* at, size_t bytes) const {
  std::lock_guard guard(mutex_);
  const auto found = blocks_.find(static_cast<const std::byte*>(at));
  if (found == blocks_.end()) return std::nullopt;
  const Block& block = found->second;
  if (bytes > block.mapping.bytes() || ipc::share_pages(bytes) != block.mapping.bytes()) return std::nullopt;
  return Share{duplicate(block.memory), block.writable};
}

ipc::Fd ShareableBlocks::memory_of(const void* block) const {
  std::lock_guard guard(mutex_);
  const auto found = blocks_.find(static_cast<const std::byte*>(block));
  return found != blocks_.end() ? duplicate(found->second.memory) : ipc::Fd();
}

}  // namespace ub::urma
