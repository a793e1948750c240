// SPDX-License-Identifier: Apache-2.0
//
// The thread of a capture that writes what the owner of the Core put into the ring (capture_ring.h) to a file
// (capture_file.h). It looks into the ring every other millisecond, so that the owner needs no system call to wake it.
//
// It ends when it is told to, when the file is as large as it may be, or when it cannot be written. Then statistics of
// each interface are its last blocks.
//
// Thread: the owner of the Core, but for what says otherwise.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/capture_file.h"
#include "dataplane/capture_ring.h"
#include "dataplane/pcapng.h"

namespace ub {

// A link, as readers of the file see it. The counters are written by the owner of the Core, what is behind them by the
// writer.
struct CaptureInterface {
  std::string name, description;
  std::atomic<uint64_t> seen{0};      // frames that passed
  std::atomic<uint64_t> accepted{0};  // those that the filter took
  std::atomic<uint64_t> missed{0};    // those that found no room in the ring
  uint64_t missed_lately = 0;         // the owner's: since the last one that did

  uint32_t in_file = 0;        // the number of the file that it is in; 0: none
  uint32_t index = 0;          // there
  uint64_t buffered = 0;       // frames that are not in the file yet
  uint64_t written = 0, lost = 0;
};

struct CaptureTarget {
  static constexpr uint64_t kLeastBytes = 256 << 10;

  std::string path;         // absolute
  uint64_t most_bytes = 0;  // of a file; 0: no limit
  uint32_t files = 0;       // so many stay, and there is always another one; 0: one file, which gets full
  uint32_t snap = 0;        // so many bytes of a frame are kept; 0: all
  std::optional<cpu_set_t> cpus = {};  // where the thread may run; none: where the one that starts it may
};

class CaptureWriter {
 public:
  static constexpr size_t kRingBytes = 16 << 20;

  enum class State : uint8_t { kOpening, kRunning, kEnded, kFailed };

  explicit CaptureWriter(CaptureTarget target, size_t ring_bytes = kRingBytes);
  ~CaptureWriter();  // as stop(), and waits for it
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;

  // Makes the file, and begins. False and `*why`: no memory or no thread. Whether there is a file, state() says.
  bool start(std::string* why);
  // The same with a file that is open.
  bool start(CaptureFile file, std::string* why);
  // Nothing more is put in; what is there is written, and the file ends.
  void stop() { stopping_.store(true, std::memory_order_release); }

  // Once it has ended.
  void free_memory();
  bool is_stopping() const { return stopping_.load(std::memory_order_relaxed); }

  CaptureRing& ring() { return ring_; }

  // ---- any thread ----
  State state() const { return state_.load(std::memory_order_acquire); }
  // Why it ended, once it has; a sentence.
  const std::string& why() const { return why_; }
  const CaptureTarget& target() const { return target_; }
  uint64_t packets() const { return packets_.load(std::memory_order_relaxed); }  // in files
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }      // of all files together
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }        // frames that could not be written

 private:
  void run();
  State write_until_end();
  bool begin_file();
  bool next_file();
  bool write_all();
  bool add(const CaptureRecord&);
  void enter(CaptureInterface&);
  bool has_room(size_t bytes) const;
  bool flush();
  void lose_rest();
  void end_file();

  CaptureTarget target_;
  CaptureRing ring_;
  CaptureFile file_;
  bool is_open_ = false;  // from the start
  bool is_full_ = false;
  pcapng::Bytes buffer_;
  uint64_t began_ns_ = 0;
  std::vector<CaptureInterface*> entered_;  // in the file that is open
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<State> state_{State::kOpening};
  std::string why_;
  std::atomic<uint64_t> packets_{0}, bytes_{0}, lost_{0};
};

}  // namespace ub
