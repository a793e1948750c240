// SPDX-License-Identifier: Apache-2.0
//
// Memory that only another process can see (foreign_pointer.h). A Core computes with pointers to it as with any other;
// the port set sends accesses to whoever serves them. docs/daemon.md, "Memory".
//
// Thread: the owner of the Core.
#pragma once

#include <cstddef>

#include "lib/base/foreign_pointer.h"
#include "lib/transport/host.h"

namespace ub {

// The memory part of a Host (lib/transport/host.h).
class ForeignMemory {
 public:
  // `dst` lies in `frame`.
  virtual CopyResult gather(const std::byte* frame, std::byte* dst, const std::byte* src, size_t bytes, CopyTag) = 0;
  virtual CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag) = 0;
  virtual CopyResult atomic(const AtomicRequest&, uint128* old, CopyTag) = 0;
  // The frame was given back: what is still to be gathered into it goes nowhere, or to its copy at `held`.
  virtual void frame_aborted(const std::byte* frame) = 0;
  virtual void frame_held(const std::byte* frame, std::byte* held) = 0;

 protected:
  ~ForeignMemory() = default;
};

}  // namespace ub
