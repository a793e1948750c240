// SPDX-License-Identifier: Apache-2.0
//
// Anonymous shared memory that may be passed to another process: a memfd sealed against shrinking and
// growing, so that no access through a mapping can fault, whatever the other side does.
//
// Mappings are MADV_DONTFORK (a child gets none), and descriptors are close-on-exec. The memory starts as zeros, and
// its pages are taken when they are touched. Thread: set-up only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/ipc/fd.h"

namespace ub::ipc {

// A mapped range. It is unmapped when it is destroyed, except in a forked child, which never had it.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping() { reset(); }
  Mapping(Mapping&& o) noexcept : data_(o.data_), bytes_(o.bytes_), process_(o.process_) {
    o.data_ = nullptr;
    o.bytes_ = 0;
  }
  Mapping& operator=(Mapping&& o) noexcept;

  // Maps all of a shared-memory descriptor; not `writable`: for reading. False and `*error` if the kernel refuses.
  bool map(int fd, size_t bytes, std::string* error, bool writable = true);
  // Maps private zeroed memory, which a replay of a recording can have at the same addresses (placed_memory.h).
  bool map_private(size_t bytes);

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }
  void reset();

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  uint32_t process_ = 0;
};

// `label` appears in /proc/<pid>/maps. On failure the result is an empty Fd, and `*error` says why.
Fd create_sealed_memfd(const char* label, size_t bytes, std::string* error);

// Is a descriptor that came from a peer shared memory of exactly that size, which can neither shrink nor grow?
bool check_sealed_memfd(int fd, size_t bytes, std::string* error);

// From now on nobody can map it for writing, write to its descriptor or punch holes into it; mappings that exist stay
// as they are. A thread that faults on a page waits while a hole is punched around the page. So memory that is shared
// with somebody who is not trusted must be sealed before it is touched. To seal it waits for all who write to the
// descriptor. Therefore the one who is not trusted seals, and the other only looks whether it was done, which never
// waits.
bool seal_against_holes(int fd, std::string* error);
bool is_sealed_against_holes(int fd);

// No seal can be added any more: whoever holds a descriptor leaves the memory as writable as it is.
bool seal_seals(int fd, std::string* error);
// A descriptor of the same memory that can neither write nor map it for writing. Empty and `*error`: no /proc, or out
// of descriptors.
Fd reopen_to_read(int fd, std::string* error);

// Is it an eventfd (and not a pipe or socket, which could block or name other things)?
bool is_eventfd(int fd);

}  // namespace ub::ipc
