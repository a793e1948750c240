// SPDX-License-Identifier: Apache-2.0
// shareable_blocks.h - memory of softub_alloc_shared, for a NIC that lives in this process: memfds of whole pages that
// others may map.
//
// A block lives as long as a shared_ptr to it, which keeps what is remembered of it, too. In a forked child it is not
// there, and letting go of it does nothing. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"

namespace ub::urma {

class ShareableBlocks : public std::enable_shared_from_this<ShareableBlocks> {
 public:
  // Zeroed. Unless it is writable for others, the mapping of this process is the only one that can write. Null: out of
  // memory or descriptors.
  std::shared_ptr<std::byte> allocate(size_t bytes, bool writable);

  struct Share {
    ipc::Fd memory;
    bool writable;
  };
  // What others may map if a segment of [at, at + bytes) permits it: the range is all of a block but for the rest of
  // its last page.
  std::optional<Share> share_of(const void* at, size_t bytes) const;
  // The memory of the block that begins there. Empty: there is none.
  ipc::Fd memory_of(const void* block) const;

 private:
  struct Block {
    ipc::Fd memory;
    ipc::Mapping mapping;
    bool writable;
  };

  mutable std::mutex mutex_;
  std::map<const std::byte*, Block> blocks_;  // by address
};

}  // namespace ub::urma
