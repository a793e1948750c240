// SPDX-License-Identifier: Apache-2.0
#include "dataplane/capture_writer.h"

#include <pthread.h>
#include <sys/utsname.h>

#include <new>
#include <string_view>
#include <utility>

#include "dataplane/tsc_clock.h"
#include "lib/base/counters.h"
#include "lib/base/time.h"
#include "lib/ipc/pause.h"
#include "lib/ipc/silent_thread.h"

namespace ub {
namespace {

constexpr Duration kPause = milliseconds(2);
constexpr size_t kMostBuffered = 256 << 10;  // then it is written

std::string comment_of(const CaptureRecord& record) {
  return record.reason == 0 ? std::string() : std::string("dropped: ") + kCounterNames[record.reason - 1];
}

}  // namespace

CaptureWriter::CaptureWriter(CaptureTarget target, size_t ring_bytes) : target_(std::move(target)), ring_(ring_bytes) {}

CaptureWriter::~CaptureWriter() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void CaptureWriter::free_memory() {
  if (thread_.joinable()) thread_.join();
  ring_.free();
}

bool CaptureWriter::start(std::string* why) {
  if (!ring_.is_usable()) {
    *why = "there is no memory for the frames of a capture";
    return false;
  }
  thread_ = ipc::silent_thread("softub-pcap", [this] { run(); });
  if (!thread_.joinable()) *why = "cannot start a thread; raise the limit of processes (ulimit -u)";
  return thread_.joinable();
}

bool CaptureWriter::start(CaptureFile file, std::string* why) {
  file_ = std::move(file);
  is_open_ = true;
  return start(why);
}

// ---- the thread ------------------------------------------------------------------------------------------------

void CaptureWriter::run() {
  if (target_.cpus) pthread_setaffinity_np(pthread_self(), sizeof *target_.cpus, &*target_.cpus);
  State end = State::kFailed;
  try {
    if (is_open_ || file_.open(target_.path, target_.files, &why_)) {
      ring_.touch();
      began_ns_ = TscClock::wall_ns();
      end = write_until_end();
      if (end == State::kFailed) lose_rest();
      end_file();
    }
  } catch (const std::bad_alloc&) {
    why_ = "there is no memory";
    end = State::kFailed;
  }
  state_.store(end, std::memory_order_release);
}

CaptureWriter::State CaptureWriter::write_until_end() {
  if (!begin_file()) return State::kFailed;
  state_.store(State::kRunning, std::memory_order_release);
  for (bool last = false; !last;) {
    last = stopping_.load(std::memory_order_acquire);
    if (!write_all()) return is_full_ ? State::kEnded : State::kFailed;
    if (!last) ipc::pause_for(kPause);
  }
  why_ = "it was told to end";
  return State::kEnded;
}

bool CaptureWriter::begin_file() {
  utsname os{};
  ::uname(&os);
  pcapng::add_section(buffer_, os.machine, std::string(os.sysname) + " " + os.release, "SoftUB");
  entered_.clear();
  return flush();
}

// The file is full.
bool CaptureWriter::next_file() {
  if (!flush()) return false;
  if (target_.files == 0) {
    why_ = "the file is as large as it may be";
    is_full_ = true;
    return false;
  }
  end_file();
  return file_.open_next(&why_) && begin_file();
}

// What is in the ring. False, with the reason in why_: that was the end.
bool CaptureWriter::write_all() {
  bool goes_on = true;
  ring_.take([&](const CaptureRecord& record) { return goes_on = add(record); });
  return goes_on && flush();
}

// False: it is not added.
bool CaptureWriter::add(const CaptureRecord& record) {
  if (buffer_.size() >= kMostBuffered && !flush()) return false;
  CaptureInterface& interface = *record.interface;
  const std::string comment = comment_of(record);
  for (;;) {
    const size_t before = buffer_.size();
    const bool is_new = interface.in_file != file_.number() + 1;
    if (is_new) enter(interface);
    pcapng::add_packet(buffer_, {interface.index, record.time_ns, record.direction, record.length, record.frame(),
                                 record.missed, comment});
    if (has_room(buffer_.size())) break;
    buffer_.resize(before);
    if (is_new) {
      entered_.pop_back();
      interface.in_file = 0;
    }
    if (!next_file()) return false;
  }
  ++interface.buffered;
  return true;
}

void CaptureWriter::enter(CaptureInterface& interface) {
  interface.in_file = file_.number() + 1;
  interface.index = static_cast<uint32_t>(entered_.size());
  entered_.push_back(&interface);
  pcapng::add_interface(buffer_, interface.name, interface.description, target_.snap);
}

// The statistics have to find room behind these bytes.
bool CaptureWriter::has_room(size_t bytes) const {
  const uint64_t needed = file_.bytes() + bytes + entered_.size() * pcapng::kStatisticsBytes;
  return target_.most_bytes == 0 || needed <= target_.most_bytes;
}

bool CaptureWriter::flush() {
  const uint64_t before = file_.bytes();
  const bool done = buffer_.empty() || file_.write(buffer_, &why_);
  bytes_.store(bytes_.load(std::memory_order_relaxed) + file_.bytes() - before, std::memory_order_relaxed);
  for (CaptureInterface* interface : entered_) {
    std::atomic<uint64_t>& sum = done ? packets_ : lost_;
    sum.store(sum.load(std::memory_order_relaxed) + interface->buffered, std::memory_order_relaxed);
    (done ? interface->written : interface->lost) += interface->buffered;
    interface->buffered = 0;
  }
  buffer_.clear();
  return done;
}

void CaptureWriter::lose_rest() {
  ring_.take([this](const CaptureRecord& record) {
    ++record.interface->lost;
    lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  });
}

void CaptureWriter::end_file() {
  pcapng::Bytes statistics;
  for (const CaptureInterface* i : entered_) {
    pcapng::Statistics s{i->index, TscClock::wall_ns(), began_ns_};
    s.seen = i->seen.load(std::memory_order_relaxed);
    s.accepted = i->accepted.load(std::memory_order_relaxed);
    s.missed = i->missed.load(std::memory_order_relaxed) + i->lost;
    s.written = i->written;
    pcapng::add_statistics(statistics, s);
  }
  const uint64_t before = file_.bytes();
  std::string why;
  if (!statistics.empty()) file_.write(statistics, &why);  // they are missing where there is no room for them
  bytes_.store(bytes_.load(std::memory_order_relaxed) + file_.bytes() - before, std::memory_order_relaxed);
  file_.close();
}

}  // namespace ub
