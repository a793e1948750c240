// SPDX-License-Identifier: Apache-2.0
// Events: from the Core to the queues behind jfce->fd and ctx->async_fd, and from there to waiting threads.
// URMA API 0.9, 6.6.
#include <fcntl.h>

#include <cerrno>
#include <climits>

#include "lib/urma/data/perf.h"
#include "lib/urma/events/jfce.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/children.h"
#include "lib/urma/objects/jfc.h"
#include "lib/urma/wait.h"

namespace ub::urma {
namespace {

// The object an event names, if it is still there. Whatever the Core still had queued when it was deleted
// finds an object of its kind that is dead.
template <class T>
T* named(const Event& event) {
  auto* object = reinterpret_cast<T*>(event.object);
  return is_live(object) ? object : nullptr;
}

template <class T>
void push_async(const Event& event, urma_async_event_type_t type) {
  if (T* object = named<T>(event)) context_of(object->pub.urma_ctx).async.push(object->async, type);
}

// The newest state counts: of an event that nobody took and its opposite, one is told.
void port_changed(uint64_t port, bool up) {
  Library& library = Library::get();
  if (port >= MAX_PORT_CNT) return;
  library.set_port_lost(static_cast<uint32_t>(port), !up);
  const auto now = up ? URMA_EVENT_PORT_ACTIVE : URMA_EVENT_PORT_DOWN;
  const auto before = up ? URMA_EVENT_PORT_DOWN : URMA_EVENT_PORT_ACTIVE;
  library.for_each<Context>(
      [&](Context& context) { context.async.push(context.port_sources[port], now, 1U << before); });
}

class Waiter {  // leaves also when the thread is cancelled
 public:
  explicit Waiter(Jfce& jfce) : jfce_(jfce) { jfce_.waiters.fetch_add(1); }
  ~Waiter() { jfce_.waiters.fetch_sub(1); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

 private:
  Jfce& jfce_;
};

int wait(Jfce& jfce, uint32_t room, int time_out, urma_jfc_t* out[]) {
  uint32_t count = take_events(jfce, room, out);
  if (count != 0) return static_cast<int>(count);
  const Waiter waiter(jfce);
  if (!is_live(&jfce)) return -1;
  backend().drive();
  // From here on the back end's helper drives.
  return wait_and_take(
      jfce.pub.fd, time_out, WaitFor::kCompletion, [&] { return take_events(jfce, room, out); },
      [&] { return is_live(&jfce); });
}

void object_changed(const Event& event) {
  switch (event.kind) {
    case EventKind::kCompletion:
      if (auto* jfc = named<Jfc>(event)) {
        if (jfc->jfce != nullptr) push_event(*jfc->jfce, *jfc);
      }
      break;
    case EventKind::kJfcError:
      push_async<Jfc>(event, URMA_EVENT_JFC_ERR);
      break;
    // The Core names every broken send queue a jetty; its kind is ours to know.
    case EventKind::kJettyError:
    case EventKind::kJfsError:
      push_async<Jetty>(event, URMA_EVENT_JETTY_ERR);
      push_async<Jfs>(event, URMA_EVENT_JFS_ERR);
      break;
    case EventKind::kJfrLimit:
      push_async<Jfr>(event, URMA_EVENT_JFR_LIMIT);
      break;
    case EventKind::kChannelUp:
    case EventKind::kChannelDead:
    case EventKind::kChannelRejected:
    case EventKind::kQpError:  // RoCE has an interface of its own
    case EventKind::kQpDrained:
    case EventKind::kQpLastReceive:
    case EventKind::kConnection:
      break;
  }
}

void nic_is_gone() {
  Library::get().for_each<Context>(
      [](Context& context) { context.async.push(context.async_source, URMA_EVENT_DEV_FATAL); });
}

}  // namespace

void on_backend_event(const NicEvent& event) {
  std::visit(each_kind{[](const Event& of_object) { object_changed(of_object); },
                       [](const PortEvent& of_port) { port_changed(of_port.port, of_port.up); },
                       [](NicGone) { nic_is_gone(); }},
             event);
}

}  // namespace ub::urma

using namespace ub;
using namespace ub::urma;

namespace {

urma_status_t rearm(urma_jfc_t* jfc_handle, bool solicited_only) {
  auto* jfc = live<Jfc>(jfc_handle);
  if (jfc == nullptr) return URMA_EINVAL;
  if (jfc->jfce == nullptr) {
    URMA_LOG_ERROR("JFC %u has no JFCE for its events", jfc->pub.jfc_id.id);
    return URMA_EINVAL;
  }
  tell_if_drained(*jfc);  // the caller may wait now instead of polling until nothing is left
  arm(*jfc->indices, solicited_only ? Armed::kSolicited : Armed::kAny);
  backend().armed(jfc->handle);
  return URMA_SUCCESS;
}

int wait_handle(urma_jfce_t* jfce_handle, uint32_t jfc_cnt, int time_out, urma_jfc_t** jfc) {
  auto* jfce = live<Jfce>(jfce_handle);
  if (jfce == nullptr || jfc_cnt == 0 || jfc == nullptr) {
    errno = EINVAL;
    return -1;
  }
  if (jfc_cnt > INT_MAX) jfc_cnt = INT_MAX;
  return ub::urma::wait(*jfce, jfc_cnt, time_out, jfc);
}

void ack(urma_jfc_t** jfc, uint32_t* nevents, uint32_t jfc_cnt) {
  if (jfc == nullptr || nevents == nullptr) return;
  for (uint32_t i = 0; i < jfc_cnt; ++i) {
    if (nevents[i] == 0) continue;
    if (auto* object = live<Jfc>(jfc[i])) acknowledge(object->pub, &urma_jfc_t::comp_events_acked, nevents[i]);
  }
}

}  // namespace

urma_status_t urma_rearm_jfc(urma_jfc_t* jfc, bool solicited_only) {
  return with_perf<rearm>(PerfCall::kRearmJfc, jfc, solicited_only);
}

int urma_wait_jfc(urma_jfce_t* jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t* jfc[]) {
  return with_perf<wait_handle>(PerfCall::kWaitJfc, jfce, jfc_cnt, time_out, jfc);
}

void urma_ack_jfc(urma_jfc_t* jfc[], uint32_t nevents[], uint32_t jfc_cnt) {
  with_perf<ack>(PerfCall::kAckJfc, jfc, nevents, jfc_cnt);
}

urma_status_t urma_get_async_event(urma_context_t* ctx, urma_async_event_t* event) {
  auto* context = live<Context>(ctx);
  if (context == nullptr || event == nullptr) return URMA_EINVAL;
  *event = {};
  event->urma_ctx = ctx;
  if (context->async.take(event)) return URMA_SUCCESS;
  backend().drive();
  for (;;) {
    if (context->async.take(event)) return URMA_SUCCESS;
    int flags = fcntl(ctx->async_fd, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK) != 0) return URMA_FAIL;
    if (!wait_readable(ctx->async_fd, -1, WaitFor::kOther) || !is_live(context)) return URMA_FAIL;
  }
}

void urma_ack_async_event(urma_async_event_t* event) {
  if (event == nullptr) return;
  switch (event->event_type) {
    case URMA_EVENT_JFC_ERR:
      if (auto* jfc = live<Jfc>(event->element.jfc)) acknowledge(jfc->pub, &urma_jfc_t::async_events_acked, 1);
      break;
    case URMA_EVENT_JFS_ERR:
      if (auto* jfs = live<Jfs>(event->element.jfs)) acknowledge(jfs->pub, &urma_jfs_t::async_events_acked, 1);
      break;
    case URMA_EVENT_JFR_ERR:
    case URMA_EVENT_JFR_LIMIT:
      if (auto* jfr = live<Jfr>(event->element.jfr)) acknowledge(jfr->pub, &urma_jfr_t::async_events_acked, 1);
      break;
    case URMA_EVENT_JETTY_ERR:
    case URMA_EVENT_JETTY_LIMIT:
      if (auto* jetty = live<Jetty>(event->element.jetty)) {
        acknowledge(jetty->pub, &urma_jetty_t::async_events_acked, 1);
      }
      break;
    default:
      break;  // events of groups, ports, EIDs and the device need no bookkeeping
  }
}
