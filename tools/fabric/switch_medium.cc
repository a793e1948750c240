// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/switch_medium.h"

#include <utility>

#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "tools/fabric/look_pause.h"
#include "tools/fabric/mac_table.h"

namespace ub::fabric {
namespace {

class SwitchMedium final : public Medium {
 public:
  explicit SwitchMedium(std::vector<std::unique_ptr<SwitchPort>> ports) : ports_(std::move(ports)) {
    for (const auto& port : ports_) must_look_ |= port->fd() < 0;
  }

  std::vector<int> fds() const override;
  void receive(int fd, const Sink& sink) override;
  Instant next_look() const override { return must_look_ ? pause_.next_look() : Instant::never(); }
  void look(Instant now, const Sink& sink) override;
  void send(size_t to, std::span<const std::byte> frame, uint64_t tag) override;
  std::vector<MediumCount> counts() const override;

 private:
  bool receive_from(size_t nic, const Sink& sink);
  void forward(size_t from, std::span<const std::byte> frame, uint64_t tag, const Sink& sink);

  std::vector<std::unique_ptr<SwitchPort>> ports_;  // by the number of the NIC
  bool must_look_ = false;                          // at some of them
  LookPause pause_;
  MacTable table_;
  uint64_t flooded_ = 0;    // sent to all other NICs
  uint64_t no_bypass_ = 0;  // loads and stores, dropped
};

std::vector<int> SwitchMedium::fds() const {
  std::vector<int> all;
  for (const auto& port : ports_) {
    if (port->fd() >= 0) all.push_back(port->fd());
  }
  return all;
}

void SwitchMedium::receive(int fd, const Sink& sink) {
  for (size_t nic = 0; nic < ports_.size(); ++nic) {
    if (ports_[nic]->fd() == fd) receive_from(nic, sink);
  }
}

void SwitchMedium::look(Instant now, const Sink& sink) {
  pause_.looked(now);
  for (size_t nic = 0; nic < ports_.size(); ++nic) {
    if (ports_[nic]->fd() < 0 && receive_from(nic, sink)) pause_.hurry();
  }
}

void SwitchMedium::send(size_t to, std::span<const std::byte> frame, uint64_t tag) {
  ports_[to]->send(frame, tag);
  pause_.hurry();
}

std::vector<MediumCount> SwitchMedium::counts() const {
  PortCounts sum;
  for (const auto& port : ports_) {
    const PortCounts counts = port->counts();
    sum.unusable += counts.unusable;
    sum.refused += counts.refused;
    sum.no_link += counts.no_link;
  }
  return {{"flooded", flooded_},
          {"no_bypass", no_bypass_},
          {"unusable", sum.unusable},
          {"refused", sum.refused},
          {"no_link", sum.no_link}};
}

bool SwitchMedium::receive_from(size_t nic, const Sink& sink) {
  return ports_[nic]->receive([&](std::span<const std::byte> frame, uint64_t tag) { forward(nic, frame, tag, sink); });
}

void SwitchMedium::forward(size_t from, std::span<const std::byte> frame, uint64_t tag, const Sink& sink) {
  // Whoever sends such frames does not know that there is a switch, and believes that its wire loses and doubles none.
  if (wire::has_link_header(frame) && wire::is_bypass(frame)) {
    ++no_bypass_;
    return;
  }
  if (const std::optional<size_t> to = table_.look_up(frame, from)) {
    if (*to != from) sink(from, *to, frame, tag);
    return;
  }
  ++flooded_;
  for (size_t to = 0; to < ports_.size(); ++to) {
    if (to != from) sink(from, to, frame, tag);
  }
}

std::unique_ptr<SwitchPort> open_port(const Config& config, size_t nic) {
  const bool memif = config.nics[nic].kind == NicKind::kMemif;
  return memif ? open_memif_port(config, nic) : open_interface_port(config.nics[nic]);
}

}  // namespace

std::unique_ptr<Medium> make_switch(std::vector<std::unique_ptr<SwitchPort>> ports) {
  return std::make_unique<SwitchMedium>(std::move(ports));
}

std::unique_ptr<Medium> open_switch_medium(const Config& config) {
  std::vector<std::unique_ptr<SwitchPort>> ports;
  for (size_t nic = 0; nic < config.nics.size(); ++nic) ports.push_back(open_port(config, nic));
  return make_switch(std::move(ports));
}

}  // namespace ub::fabric
