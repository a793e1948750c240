// SPDX-License-Identifier: Apache-2.0
//
// Two locks and a barrier in remote memory, for clients that have nothing else in common. In zeroed memory the locks
// are free, and nobody waits. Each word has a line of its own.
//
// An atomic of a handle runs after all its stores, and others see a store once it was fenced. So an unlock begins with
// a fence: what was written under the lock is there when the next client gets it.
//
// Thread: one for each object, whose handle it uses. Errors: far_error of an access; ToolError after 30 s of waiting.
#pragma once

#include <cstdint>
#include <softub_far.hpp>

#include "apps/aperture/patience.h"

namespace ub::apps {

using Word = softub::far_ptr<uint64_t>;

// Whoever comes first has it next.
class TicketLock {
 public:
  TicketLock(const softub::far_handle& handle, Word next_ticket, Word served)
      : handle_(handle), next_ticket_(next_ticket), served_(served) {}

  void lock() {
    ticket_ = next_ticket_.fetch_add(1);
    Patience patience("another client has the lock and does not unlock it: did it die?");
    while (served_.load() != ticket_) patience.wait();
  }
  void unlock() {
    handle_.fence();
    served_.store(ticket_ + 1);
    handle_.fence();
  }

 private:
  const softub::far_handle& handle_;
  Word next_ticket_, served_;
  uint64_t ticket_ = 0;
};

// Whoever asks at the right moment has it. It looks before it tries, since a look costs less.
class CasLock {
 public:
  // `me`: not 0, and no other client's.
  CasLock(const softub::far_handle& handle, Word owner, uint64_t me) : handle_(handle), owner_(owner), me_(me) {}

  void lock() {
    Patience patience("another client has the lock and does not unlock it: did it die?");
    for (uint64_t nobody = 0; owner_.load() != 0 || !owner_.compare_exchange(nobody, me_); nobody = 0) patience.wait();
  }
  void unlock() {
    handle_.fence();
    owner_.store(0);
    handle_.fence();
  }

 private:
  const softub::far_handle& handle_;
  Word owner_;
  uint64_t me_;
};

// Nobody passes before `clients` have come. Its sense changes each time that all have: who waits sees that, and the
// barrier can be used again at once.
class Barrier {
 public:
  Barrier(const softub::far_handle& handle, Word arrived, Word sense, uint64_t clients)
      : handle_(handle), arrived_(arrived), sense_(sense), clients_(clients) {}

  void wait() {
    const uint64_t before = sense_.load();
    if (arrived_.fetch_add(1) + 1 == clients_) {
      arrived_.store(0);
      handle_.fence();
      sense_.store(1 - before);
      handle_.fence();
      return;
    }
    Patience patience("not all clients came to the barrier: is --clients the same for all, and does each of them run?");
    while (sense_.load() == before) patience.wait();
  }

 private:
  const softub::far_handle& handle_;
  Word arrived_, sense_;
  uint64_t clients_;
};

}  // namespace ub::apps
