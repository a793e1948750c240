// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/doorbell.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/ipc/not_cancelled.h"
#include "lib/ipc/ring.h"

namespace ub::ipc {

bool Doorbell::create(std::string* error) {
  close();
  page_fd_ = create_sealed_memfd("softub-doorbell", kPageBytes, error);
  if (!page_fd_ || !mapping_.map(page_fd_.get(), kPageBytes, error)) {
    close();
    return false;
  }
  event_fd_ = Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event_fd_) {
    *error = std::string("cannot create an eventfd: ") + std::strerror(errno);
    close();
    return false;
  }
  return true;
}

void Doorbell::close() {
  mapping_.reset();
  page_fd_.reset();
  event_fd_.reset();
}

void Doorbell::drain() {
  const NotCancelled guard;
  uint64_t count;
  [[maybe_unused]] ssize_t n = ::read(event_fd_.get(), &count, sizeof count);
}

bool PeerDoorbell::attach(Fd page, Fd event, uint32_t link, std::string* error) {
  if (link >= Doorbell::kMaxLinks) {
    *error = "the peer's link number " + std::to_string(link) + " is out of range";
    return false;
  }
  if (!check_sealed_memfd(page.get(), Doorbell::kPageBytes, error)) return false;
  if (!is_eventfd(event.get())) {
    *error = "the peer's doorbell is not an eventfd";
    return false;
  }
  if (!mapping_.map(page.get(), Doorbell::kPageBytes, error)) return false;
  // To ring must never block us. The flag belongs to the open file, and so it counts for everybody.
  ::fcntl(event.get(), F_SETFL, ::fcntl(event.get(), F_GETFL) | O_NONBLOCK);
  event_fd_ = std::make_shared<const Fd>(std::move(event));
  link_ = link;
  return true;
}

Consumer PeerDoorbell::after_publish_slow(uint32_t mode, bool hurries) {
  if (mode & DoorbellPage::kScan) {
    full_fence();
    std::atomic<uint64_t>& word = page()->active[link_ / 64];
    uint64_t bit = uint64_t{1} << link_ % 64;
    if (!(word.load(std::memory_order_relaxed) & bit)) word.fetch_or(bit, std::memory_order_seq_cst);
  }
  // The bit may be newer than `mode`. Only one producer takes it off.
  if (!(mode & DoorbellPage::kSleep)) return Consumer::kAwake;
  if ((mode & DoorbellPage::kDoze) && !hurries) return Consumer::kDozing;
  page()->rung_from.store(static_cast<uint32_t>(::sched_getcpu() + 1), std::memory_order_relaxed);
  if (!(page()->mode.fetch_and(~DoorbellPage::kAsleep, std::memory_order_seq_cst) & DoorbellPage::kSleep)) {
    return Consumer::kAwake;
  }
  return Consumer::kAsleep;
}

void PeerDoorbell::ring(const Bell& bell) {
  if (bell == nullptr) return;
  ipc::ring(bell->get());
}

}  // namespace ub::ipc
