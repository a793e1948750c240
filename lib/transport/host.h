// SPDX-License-Identifier: Apache-2.0
//
// What a Core needs from its surroundings: room for outgoing frames, and access to application memory.
// A Core is a template over a type with these members; there is no base class and no virtual call.
//
//   struct Host {
//     // Room for one frame of at most `bytes` on this link, or nullptr: no room now (back-pressure; the Core
//     // comes back at the next poll). The memory stays valid until tx_commit or tx_abort; several may be open.
//     std::byte* tx_begin(uint32_t link, size_t bytes);
//     void       tx_commit(uint32_t link, std::byte* frame, size_t bytes);
//     void       tx_abort(uint32_t link, std::byte* frame);
//     // The frame committed last on this link brings its receiver nothing that cannot wait: an acknowledgement, or
//     // an answer without data. Nobody needs to be woken for it.
//     void       tx_may_wait(uint32_t link);
//
//     // Memory is IO: each answers kDone, kFailed (the memory is gone) or, only if CoreConfig::slow_memory is set, kPending;
//     // then the host calls Core::on_copy_done(tag, ok) later, in any order. place() must have taken `src` when it returns.
//     // The last (up to 8) bytes of a copy with `final` set become visible after all others. gather() fills the frame
//     // that was begun last; when that frame is aborted, what is still pending goes nowhere.
//     CopyResult gather(std::byte* dst, const std::byte* src, size_t bytes, CopyTag tag);
//     // The Core copied the frame to `held`, as something of it is pending, or of one that leaves before it. The host
//     // takes the frame back, so that nobody behind it waits for that memory, and lets what is pending for it, if any
//     // is, go to the copy. tx_drop: from now on it goes nowhere.
//     void tx_hold(uint32_t link, std::byte* frame, std::byte* held);
//     void tx_drop(std::byte* held);
//     CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag tag);
//     // run_atomic(); *old gets the former value.
//     CopyResult atomic(const AtomicRequest&, uint128* old, CopyTag tag);
//
//     // May be there: what happens to packets, requests and all else, while Core::look(true) holds (looking/note.h).
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

// The one copy routine for bytes that an application may be spinning on: the final word goes last.
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
