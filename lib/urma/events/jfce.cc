// SPDX-License-Identifier: Apache-2.0
// Event channels: a chain of JFCs that have an event, behind an eventfd.
#include "lib/urma/events/jfce.h"

#include "lib/ipc/pause.h"
#include "lib/ipc/ring.h"
#include "lib/urma/events/event_fd.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/children.h"
#include "lib/urma/status.h"

namespace ub::urma {
namespace {

// Wakes the threads that wait for a JFCE which is being deleted, until all have left: they would sleep on its closed
// descriptor for ever. False: one did not leave within a second, as when its signal handler left the wait by longjmp.
bool send_waiters_away(Jfce& jfce) {
  constexpr int kMostLooks = 10'000;
  for (int looks = 0; jfce.waiters.load() != 0 && looks < kMostLooks; ++looks) {
    ipc::ring(jfce.pub.fd);
    ipc::pause_for(microseconds(100));
  }
  return jfce.waiters.load() == 0;
}

void settle(Jfce& jfce) {
  if (jfce.head == nullptr) lower_event_fd(jfce.pub.fd);
}

}  // namespace

void push_event(Jfce& jfce, Jfc& jfc) {
  std::lock_guard guard(jfce.mutex);
  if (jfc.closed) return;
  if (!jfc.event_queued) {
    jfc.event_queued = true;
    jfc.next_event = nullptr;
    (jfce.head == nullptr ? jfce.head : jfce.tail->next_event) = &jfc;
    jfce.tail = &jfc;
  }
  ipc::ring(jfce.pub.fd);
}

uint32_t take_events(Jfce& jfce, uint32_t room, urma_jfc_t* out[]) {
  std::lock_guard guard(jfce.mutex);
  if (jfce.head == nullptr) return 0;
  uint32_t count = 0;
  while (jfce.head != nullptr && count < room) {
    Jfc& jfc = *jfce.head;
    jfce.head = jfc.next_event;
    jfc.event_queued = false;
    ++jfc.events_handed_out;
    out[count++] = &jfc.pub;
  }
  settle(jfce);
  return count;
}

void readmit_events(Jfce& jfce, Jfc& jfc) {
  std::lock_guard guard(jfce.mutex);
  jfc.closed = false;
}

void drop_events(Jfce& jfce, Jfc& jfc) {
  std::lock_guard guard(jfce.mutex);
  jfc.closed = true;
  if (!jfc.event_queued) return;
  Jfc* before = nullptr;
  for (Jfc* at = jfce.head; at != &jfc; at = at->next_event) before = at;
  (before == nullptr ? jfce.head : before->next_event) = jfc.next_event;
  if (jfce.tail == &jfc) jfce.tail = before;
  jfc.event_queued = false;
  settle(jfce);
}

}  // namespace ub::urma

using namespace ub;
using namespace ub::urma;

urma_jfce_t* urma_create_jfce(urma_context_t* ctx) {
  if (live<Context>(ctx) == nullptr) return fail(EINVAL);
  Library& library = Library::get();
  auto* jfce = library.take<Jfce>();
  if (jfce == nullptr) return fail(ENOMEM);
  int fd = open_event_fd();
  if (fd < 0) {
    int error = errno;
    library.give(jfce);
    return fail(error);
  }
  jfce->pub.urma_ctx = ctx;
  jfce->pub.fd = fd;
  jfce->pub.ref.atomic_cnt = 1;
  add_child(ctx);
  jfce->magic = live_magic<Jfce>();
  return &jfce->pub;
}

urma_status_t urma_delete_jfce(urma_jfce_t* jfce_handle) {
  auto* jfce = live<Jfce>(jfce_handle);
  if (jfce == nullptr) return URMA_EINVAL;
  if (const auto refs = jfce->pub.ref.atomic_cnt.load(); refs > 1) {
    URMA_LOG_ERROR("the JFCE is still used by %lu JFCs", refs - 1);
    return URMA_FAIL;
  }
  jfce->magic = 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // whoever comes to wait sees this, or is seen
  const bool unused = send_waiters_away(*jfce);
  close(jfce->pub.fd);
  drop_child(jfce->pub.urma_ctx);
  if (unused) Library::get().give(jfce);  // else its memory stays, as a thread may come back to it one day
  return URMA_SUCCESS;
}
