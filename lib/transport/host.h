// SPDX-License-Identifier: Apache-2.0
//
// What a Core needs from its surroundings: room for outgoing frames, and access to application memory.
// A Core is a template over a type with the members below; there is no base class and no virtual call.
//
//   struct Host {
//     // Room for one frame of at most `bytes` on this link; nullptr if there is none now (back-pressure: the Core
//     // tries again at the next poll). The memory stays valid until tx_commit or tx_abort; several frames may be open.
//     std::byte* tx_begin(uint32_t link, size_t bytes);
//     void       tx_commit(uint32_t link, std::byte* frame, size_t bytes);
//     void       tx_abort(uint32_t link, std::byte* frame);
//     // The frame committed last on this link is an acknowledgement, or an answer without data: its receiver need not
//     // be woken for it.
//     void       tx_may_wait(uint32_t link);
//
//     // Memory is IO: gather(), place() and atomic() return kDone, kFailed (the memory is gone) or, only if
//     // CoreConfig::slow_memory is set, kPending. After kPending the host calls Core::on_copy_done(tag, ok) later, in
//     // any order. gather() copies into the frame that was begun last; if that frame is aborted, its pending copies
//     // write nowhere. place() must have read `src` when it returns; if `final` is set, the last (up to 8) bytes
//     // become visible after all others. atomic() does run_atomic() and stores the former value in *old.
//     CopyResult gather(std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag);
//     CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag tag);
//     CopyResult atomic(const AtomicRequest&, uint128* old, CopyTag tag);
//     // Between a block of a load or store and memory of a segment that is direct (SegmentConfig): at once, and
//     // naturally aligned words of the memory as such (lib/base/word_copy.h).
//     void load(std::byte* block, const std::byte* memory, size_t bytes);
//     void store(std::byte* memory, const std::byte* block, size_t bytes);
//     // tx_hold: a copy into this frame, or into one that leaves before it, is pending, and the Core has copied the
//     // frame to `held`. The host takes the frame back, so that no frame behind it waits for that memory, and its
//     // pending copies write to `held` from now on. tx_drop: these copies write nowhere from now on.
//     void tx_hold(uint32_t link, std::byte* frame, std::byte* held);
//     void tx_drop(std::byte* held);
//
//     // Optional, all three: accesses to memory that the host has mapped (MappedConfig); words are stored as place()
//     // and atomic() do. False: its gate is closed, and nothing has happened.
//     bool write_mapped(void* gate, std::byte* remote, const std::byte* local, size_t bytes);
//     bool read_mapped(void* gate, std::byte* local, const std::byte* remote, size_t bytes);
//     bool atomic_mapped(void* gate, const AtomicRequest&, uint128* old);
//
//     // Optional: called for every change of state while Core::look(true) holds (looking/note.h).
//     void note(const Note&);
//   };
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/base/atomic_operation.h"

namespace ub {

enum class CopyResult : uint8_t { kDone, kPending, kFailed };

using CopyTag = uint64_t;  // opaque to the host

// The only copy routine for memory that an application may spin on: it stores the final word last.
inline void copy_final_word_last(std::byte* dst, const std::byte* src, size_t bytes) {
  if (bytes == 0) return;
  size_t tail = bytes < 8 ? 1 : 8;
  std::memcpy(dst, src, bytes - tail);
  std::atomic_thread_fence(std::memory_order_release);
  if (tail == 8) {
    uint64_t word;
    std::memcpy(&word, src + bytes - 8, 8);
    std::byte* at = dst + bytes - 8;
    if (reinterpret_cast<uintptr_t>(at) % 8 == 0) {
      __atomic_store_n(reinterpret_cast<uint64_t*>(at), word, __ATOMIC_RELEASE);
    } else {
      std::memcpy(at, &word, 7);
      std::atomic_thread_fence(std::memory_order_release);
      __atomic_store_n(reinterpret_cast<uint8_t*>(at) + 7, static_cast<uint8_t>(src[bytes - 1]), __ATOMIC_RELEASE);
    }
  } else {
    __atomic_store_n(reinterpret_cast<uint8_t*>(dst) + bytes - 1, static_cast<uint8_t>(src[bytes - 1]),
                     __ATOMIC_RELEASE);
  }
}

}  // namespace ub
