// SPDX-License-Identifier: Apache-2.0
// What SoftUB adds to the URMA calls.
#include "lib/urma/include/ub/umdk/urma/softub_api.h"

#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/fault/plan_text.h"
#include "lib/impair/text.h"
#include "lib/urma/data/faults.h"
#include "lib/urma/device/eid.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/objects/objects.h"
#include "lib/urma/status.h"

using namespace ub;
using namespace ub::urma;

void* softub_alloc(size_t bytes) {
  Library& library = Library::get();
  if (bytes == 0) return fail(EINVAL);
  if (library.device() == nullptr) return fail(ENODEV);
  void* memory = library.lend(backend().memory(bytes));
  return memory != nullptr ? memory : fail(ENOMEM);
}

void softub_free(void* memory) { Library::get().take_back(memory); }

const char* softub_placement(void) { return Library::get().device() != nullptr ? backend().name() : nullptr; }

urma_status_t softub_inject(const char* text) try {
  static std::mutex one_at_a_time;
  const fault::ParsedPlan parsed = fault::parse_plan(text != nullptr ? text : "");
  if (!parsed.plan) {
    URMA_LOG_ERROR("softub_inject: %s", parsed.error.c_str());
    return URMA_EINVAL;
  }
  std::lock_guard guard(one_at_a_time);
  if (Library::get().device() == nullptr) return URMA_FAIL;
  std::string why;
  const Status status = backend().inject(parsed.plan->nic, &why);
  if (status != Status::kOk) {
    URMA_LOG_ERROR("softub_inject: %s", why.c_str());
    return status == Status::kInvalid ? URMA_ENOPERM : status_of(status);
  }
  set_faults(parsed.plan->program);
  return URMA_SUCCESS;
} catch (const std::bad_alloc&) {
  return URMA_ENOMEM;
}

urma_status_t softub_get_injected(softub_injected_t* counts) {
  if (counts == nullptr) return URMA_EINVAL;
  if (Library::get().device() == nullptr) return URMA_FAIL;
  const fault::ProgramCounts of_program = fault_counts();
  const fault::NicCounts of_nic = backend().injected();
  *counts = {.completions = of_program.completions,
             .posts = of_program.posts,
             .rnr = of_nic.rnr,
             .ports_down = of_nic.ports_down,
             .stops = of_nic.stops};
  return URMA_SUCCESS;
}

namespace {

// False: the log says what is wrong. A text that is not there leaves no script.
bool read_impairments(const char* direction, const char* text, std::optional<impair::Script>* script) {
  if (text == nullptr) return true;
  impair::Parsed parsed = impair::parse(text);
  *script = std::move(parsed.script);
  if (!*script) URMA_LOG_ERROR("softub_impair: %s: %s", direction, parsed.error.c_str());
  return script->has_value();
}

}  // namespace

urma_status_t softub_impair(const char* send, const char* receive) try {
  std::optional<impair::Script> of_send, of_receive;
  if (!read_impairments("send", send, &of_send) || !read_impairments("receive", receive, &of_receive)) {
    return URMA_EINVAL;
  }
  if (Library::get().device() == nullptr) return URMA_FAIL;
  std::string why;
  const Status status = backend().impair(of_send ? &*of_send : nullptr, of_receive ? &*of_receive : nullptr, &why);
  if (status == Status::kOk) return URMA_SUCCESS;
  URMA_LOG_ERROR("softub_impair: %s", why.c_str());
  return status == Status::kInvalid ? URMA_ENOPERM : status_of(status);
} catch (const std::bad_alloc&) {
  return URMA_ENOMEM;
}

urma_status_t softub_get_transports(const urma_target_jetty_t* handle, softub_transports_t* packets) try {
  if (Library::get().device() == nullptr) return URMA_FAIL;
  const auto* target = live<Target>(handle);
  if (target == nullptr || packets == nullptr) return URMA_EINVAL;
  const InstanceId peer{eid_of(target->pub.id.eid), target->uasid};
  *packets = {};
  for (const ChannelInfo& channel : backend().channels()) {
    if (channel.peer != peer) continue;
    (!channel.compact ? packets->rtp : channel.repeats ? packets->ctp_repeats : packets->ctp) += channel.tx_packets;
  }
  return URMA_SUCCESS;
} catch (const std::bad_alloc&) {
  return URMA_ENOMEM;
}
