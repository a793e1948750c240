// SPDX-License-Identifier: Apache-2.0
//
// How producers wake a consumer that has many rings: each consumer has one page of shared memory and one eventfd, and
// gives both to every producer.
//
//   word        written by                                          read by
//   mode        the consumer (sleep, doze, scan bits on);           every producer, at each flush
//               a producer that rings takes sleep and doze off
//   polled      the consumer, when that changes                     a producer that may spin for the answer
//   rung_from   a producer that rings: the CPU that it runs on      the consumer, when it wakes
//   active[]    the consumer (bit on: "I poll this ring");          producers in scan mode; the consumer, each scan
//               a producer turns its own bit on
//
// Both lines change only when somebody falls asleep, or when a ring falls idle or comes alive. So a producer that looks
// at `mode` finds it in its own cache.
//
// Sleeping. The consumer sets kSleep, calls heavy_barrier(), looks at all rings once more, then blocks on the eventfd.
// A producer publishes, then reads `mode`. If both processes are registered for heavy barriers it needs no fence in
// between, else it needs a full fence. Either the consumer sees the frame, or the producer sees kSleep. The first
// producer that sees it takes the bit off and rings, so there is one system call for each sleep, not one for each
// frame. If that producer is killed in between, its socket hangs up, which wakes the consumer, too.
//
// Dozing. With kDoze beside it, kSleep asks to be rung only for what hurries: the consumer looks at its rings again
// within a time that is shorter than anybody waits for the rest. A consumer that dozes may therefore do without the
// heavy barrier (a ring that is missed costs that time), but it must not doze for long.
//
// Scanning. With few rings the consumer polls all of them, all bits are on, and nobody looks at `active`. With many
// rings (kScan) it takes the bit of an idle ring off, fences, and looks at the ring once more. A producer then fences
// after it published, and turns its bit on if it is off. Every active[] word belongs to all producers, so a faulty one
// can make the consumer deaf to others. Therefore the consumer also polls idle rings in turn.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/time.h"
#include "lib/ipc/barrier.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"

namespace ub::ipc {

struct DoorbellPage {
  static constexpr uint32_t kSleep = 1;
  static constexpr uint32_t kScan = 2;
  static constexpr uint32_t kDoze = 4;
  static constexpr uint32_t kAsleep = kSleep | kDoze;
  static constexpr uint32_t kWords = 64;

  alignas(64) std::atomic<uint32_t> mode;
  std::atomic<uint32_t> polled;  // not 0: an application thread polls all the time
  alignas(64) std::atomic<uint64_t> active[kWords];
  alignas(64) std::atomic<uint32_t> rung_from;  // number of the CPU + 1; 0: it is not known
};
static_assert(sizeof(DoorbellPage) <= 4096);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

// The consumer's end. Thread: the consumer; any thread may call drain().
class Doorbell {
 public:
  static constexpr uint32_t kMaxLinks = DoorbellPage::kWords * 64;
  static constexpr size_t kPageBytes = 4096;
  static constexpr Duration kLongestDoze = milliseconds(2);

  bool create(std::string* error);
  void close();
  int page_fd() const { return page_fd_.get(); }
  int event_fd() const { return event_fd_.get(); }
  DoorbellPage* page() const { return reinterpret_cast<DoorbellPage*>(mapping_.data()); }

  // The caller calls begin_sleep and heavy_barrier, and looks at all rings. Then it blocks on event_fd, or calls
  // end_sleep.
  void begin_sleep() { begin(DoorbellPage::kSleep); }
  // The caller looks at all rings. Then it blocks on event_fd for at most kLongestDoze, or calls end_sleep.
  void begin_doze() { begin(DoorbellPage::kSleep | DoorbellPage::kDoze); }
  void end_sleep() {
    if (page()->mode.load(std::memory_order_relaxed) & DoorbellPage::kAsleep)
      page()->mode.fetch_and(~DoorbellPage::kAsleep, std::memory_order_seq_cst);
  }
  void set_polled(bool yes) { page()->polled.store(yes ? 1 : 0, std::memory_order_relaxed); }
  // The CPU of the peer that rang last, as the peer says; -1: it is not known.
  int rung_from() const { return static_cast<int>(page()->rung_from.load(std::memory_order_relaxed)) - 1; }
  void drain();  // empties the eventfd

  void start_scan() { page()->mode.fetch_or(DoorbellPage::kScan, std::memory_order_seq_cst); }
  void set_active(uint32_t link) {
    page()->active[link / 64].fetch_or(uint64_t{1} << link % 64, std::memory_order_seq_cst);
  }
  // The caller looks at the ring once more afterwards (this is a full fence).
  void clear_active(uint32_t link) {
    page()->active[link / 64].fetch_and(~(uint64_t{1} << link % 64), std::memory_order_seq_cst);
    full_fence();
  }
  uint64_t active_word(uint32_t word) const { return page()->active[word].load(std::memory_order_acquire); }

 private:
  void begin(uint32_t bits) {
    end_sleep();
    page()->mode.fetch_or(bits, std::memory_order_seq_cst);
  }

  Fd page_fd_;
  Fd event_fd_;
  Mapping mapping_;
};

// What state the consumer was in when something was published.
enum class Consumer : uint8_t {
  kAwake,
  kDozing,  // it will see by itself what does not hurry
  kAsleep   // it has to be rung
};

// A producer's end of the doorbell of another process. Thread: the producer.
class PeerDoorbell {
 public:
  // Checks what a peer sent and takes it over: its page, its eventfd, and our bit in its bitmap.
  bool attach(Fd page, Fd event, uint32_t link, std::string* error);
  bool attached() const { return static_cast<bool>(mapping_); }
  bool polled() const { return page()->polled.load(std::memory_order_relaxed) != 0; }
  // The consumer does not count on heavy barriers that reach us.
  void set_fence_needed(bool needed) { fence_ = needed; }

  // Call it after something was published in the consumer's ring. kAsleep: the caller must ring, and nobody else will.
  Consumer after_publish(bool hurries = true) {
    if (fence_) full_fence();
    // The barrier needs nothing of us but the program order of the ring's release store and this load, which the
    // compiler must keep.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    uint32_t mode = page()->mode.load(std::memory_order_relaxed);
    if (mode == 0) [[likely]]
      return Consumer::kAwake;
    return after_publish_slow(mode, hurries);
  }
  // Wakes the thread that blocks on the eventfd. It costs one system call, and the woken thread may then run in our
  // place.
  void ring() const { ring(event_fd_); }
  // The bell alone, for a caller that rings it when the doorbell may be gone.
  using Bell = std::shared_ptr<const Fd>;
  const Bell& bell() const { return event_fd_; }
  static void ring(const Bell&);

 private:
  DoorbellPage* page() const { return reinterpret_cast<DoorbellPage*>(mapping_.data()); }
  Consumer after_publish_slow(uint32_t mode, bool hurries);

  Mapping mapping_;
  Bell event_fd_;
  uint32_t link_ = 0;
  bool fence_ = true;
};

}  // namespace ub::ipc
