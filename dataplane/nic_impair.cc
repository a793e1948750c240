// SPDX-License-Identifier: Apache-2.0
//
// Impairments of the NIC's wires that somebody asked for (docs/impair.md).
#include <memory>
#include <optional>
#include <utility>

#include "dataplane/nic.h"
#include "lib/impair/text.h"

namespace ub {

// Before there are links. The texts were checked when they were read.
void Nic::begin_impairments(const LoadedConfig& config) {
  if (!config.impair.is_set()) return;
  const impair::Script send = impair::parse(config.impair.send).script.value_or(impair::Script{});
  const impair::Script receive = impair::parse(config.impair.receive).script.value_or(impair::Script{});
  ports_.impair(std::make_unique<ImpairedWires>(send, receive, config.impair.seed, worker_->turn()));
  if (!notice_) return;
  notice_("the network of this NIC is impaired on purpose (impair.send, impair.receive): it sends with \"" +
          impair::to_text(send) + "\", and receives with \"" + impair::to_text(receive) + "\"");
}

Status Nic::impair(const impair::Script* send, const impair::Script* receive, std::string* why) {
  if (ports_.impaired() == nullptr) {
    *why =
        "the wires of this NIC cannot be impaired, as peers count on that: start it with impair.send or "
        "impair.receive, such as \"clear\"";
    return Status::kInvalid;
  }
  const auto copy = [](const impair::Script* script) {
    return script == nullptr ? std::nullopt : std::optional<impair::Script>(*script);
  };
  std::optional<impair::Script> of_send = copy(send), of_receive = copy(receive);  // here, as it may want memory
  return control([&](NicCore&, Instant now) {
    ports_.impaired()->set(now, std::move(of_send), std::move(of_receive));
    return Status::kOk;
  });
}

}  // namespace ub
