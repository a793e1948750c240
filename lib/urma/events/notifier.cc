// SPDX-License-Identifier: Apache-2.0
// Asynchronous connect. URMA API 0.9, 5.6.
//
// An import is done when the way to the peer is found and the channel to it is begun, as when urma_import_jetty
// returns: nothing waits until the peer answers, for it may start later. What can take time is a shared-memory link
// that the other process has to accept, and the daemon; that is left to a thread (connector.h). Binding is an entry
// in a table, so it is done at once.
#include <climits>
#include <new>

#include "lib/urma/events/connector.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/objects/children.h"
#include "lib/urma/objects/import.h"
#include "lib/urma/status.h"
#include "lib/urma/wait.h"

using namespace ub;
using namespace ub::urma;

urma_notifier_t* urma_create_notifier(urma_context_t* ctx) {
  if (live<Context>(ctx) == nullptr) return fail(EINVAL);
  Library& library = Library::get();
  auto* notifier = library.take<Notifier>();
  if (notifier == nullptr) return fail(ENOMEM);
  if (!open_fds(*notifier)) {
    int error = errno;
    library.give(notifier);
    return fail(error);
  }
  notifier->pub.urma_ctx = ctx;
  add_child(ctx);
  notifier->magic = live_magic<Notifier>();
  return &notifier->pub;
}

urma_status_t urma_delete_notifier(urma_notifier_t* handle) {
  auto* notifier = live<Notifier>(handle);
  if (notifier == nullptr) return URMA_EINVAL;
  Library& library = Library::get();
  library.connector().cancel(*notifier);
  notifier->magic = 0;
  close_fds(*notifier);
  drop_child(notifier->pub.urma_ctx);
  library.give(notifier);
  return URMA_SUCCESS;
}

urma_target_jetty_t* urma_import_jetty_async(urma_notifier_t* handle, const urma_rjetty_t* rjetty,
                                             const urma_token_t* token_value, uint64_t user_ctx, int timeout) {
  auto* notifier = live<Notifier>(handle);
  if (notifier == nullptr || rjetty == nullptr) return fail(EINVAL);
  urma_rjetty_t description = *rjetty;
  Import import;
  if (int error = check_import(description, token_value, &import)) return fail(error);
  TargetConfig config;
  Target* target = new_target(notifier->pub.urma_ctx, import, &config);
  if (target == nullptr) return fail(ENOMEM);
  if (!Library::get().connector().submit(*notifier, *target, config, user_ctx, timeout)) {
    discard(*target);
    return fail(ENOMEM);
  }
  return &target->pub;
}

urma_status_t urma_bind_jetty_async(urma_notifier_t* handle, urma_jetty_t* jetty_handle, urma_target_jetty_t* tjetty,
                                    uint64_t user_ctx, int) try {
  auto* notifier = live<Notifier>(handle);
  auto* jetty = live<Jetty>(jetty_handle);
  auto* target = live<Target>(tjetty);
  if (notifier == nullptr || jetty == nullptr || target == nullptr) return URMA_EINVAL;
  if (notifier->pub.urma_ctx != jetty->pub.urma_ctx) return URMA_EINVAL;
  std::list<Connect> made(1);  // first: once bound there is a result
  urma_notify_t& result = made.front().result;
  result.type = URMA_BIND_JETTY_NOTIFY;
  result.user_ctx = user_ctx;
  result.jetty = jetty_handle;
  bool bound = false;
  urma_status_t refused = begin_bind(*jetty, *target, &bound);
  if (refused != URMA_SUCCESS) return refused;
  result.status = bound ? URMA_SUCCESS : finish_bind(*jetty, *target);
  add_result(*notifier, made);
  return URMA_SUCCESS;
} catch (const std::bad_alloc&) {
  return URMA_ENOMEM;
}

urma_status_t urma_unbind_jetty_async(urma_jetty_t* jetty) { return urma_unbind_jetty(jetty); }

int urma_wait_notify(urma_notifier_t* handle, uint32_t cnt, urma_notify_t* notify, int timeout) {
  auto* notifier = live<Notifier>(handle);
  if (notifier == nullptr || (cnt != 0 && notify == nullptr)) {
    errno = EINVAL;
    return -1;
  }
  if (cnt == 0) return 0;
  if (cnt > INT_MAX) cnt = INT_MAX;
  return wait_and_take(
      notifier->pub.fd, timeout, WaitFor::kOther, [&] { return take_results(*notifier, cnt, notify); },
      [&] { return is_live(notifier); });
}

urma_status_t urma_ack_notify(urma_context_t* ctx, uint32_t, urma_notify_t* notify) {
  return live<Context>(ctx) != nullptr && notify != nullptr ? URMA_SUCCESS : URMA_EINVAL;
}
