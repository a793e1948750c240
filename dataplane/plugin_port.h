// SPDX-License-Identifier: Apache-2.0
//
// A port whose code comes from a shared object that is loaded only when it is configured: libsoftub_dpdk.so, so that
// nothing else depends on DPDK. The members are those of port.h; the calls are virtual.
//
// Library and plugin are built together and compare kPluginPortVersion.
//
// Thread: the owner of the Core, except the opening.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/neighbours.h"
#include "dataplane/port_concept.h"
#include "lib/base/time.h"
#include "lib/transport/core_types.h"

namespace ub {

// What the NIC of a port answers to "/softub/counters" and such, in JSON (telemetry.h). Nothing and `*why`: none.
// Any thread, as long as there is the port.
using TelemetryAnswer = std::function<std::optional<std::string>(std::string_view request, std::string* why)>;

struct PluginPortOptions {
  std::string device;                  // devargs: "net_memif0,role=client", "0000:01:00.0", ...
  std::vector<std::string> arguments;  // further ones for the environment (EAL)
  std::vector<IpNetwork> addresses;    // ours, with their networks; at least one, unless raw
  wire::IpAddress gateway_v4, gateway_v6;
  std::vector<std::pair<wire::IpAddress, wire::MacAddress>> neighbours;  // known beforehand
  uint16_t udp_port = wire::kUbUdpPort;                                  // and those of ids; others' frames are dropped
  bool roce = false;                                                     // frames for RoCE are wanted, too
  uint16_t vlan = 0;                                                     // tag of all frames; 0: none
  bool switched = false;                                                 // a switch is between it and its peers
  uint32_t mtu = 0;                                                      // payload of a packet; 0: from the device
  uint32_t buffers = 8192;                                               // for frames that come and go
  // The port of a switch: all frames come in, and leave as they were written, with their Ethernet addresses. It is no
  // IP host: what is said above of addresses, neighbours, UDP ports and VLAN does not apply.
  bool raw = false;
  std::function<void(const std::string& sentence)> notice;  // what a person should know; any thread
  std::function<void()> link_changed;                       // has_link() did; any thread, must not block
  TelemetryAnswer telemetry;                                // empty: the port belongs to no NIC
};

struct PluginPortCounters {
#define UB_PORT_COUNTER(member, name, help) uint64_t member = 0;
#include "dataplane/plugin_port_counters.def"
#undef UB_PORT_COUNTER
};
// Their names, in order of the members.
inline constexpr const char* kPluginPortCounterNames[] = {
#define UB_PORT_COUNTER(member, name, help) name,
#include "dataplane/plugin_port_counters.def"
#undef UB_PORT_COUNTER
};
static_assert(sizeof(PluginPortCounters) == std::size(kPluginPortCounterNames) * sizeof(uint64_t));

class PluginPort {
 public:
  virtual ~PluginPort() = default;

  // The payload of its packets, and what its wire does to frames: may they be lost, does it carry CTP, and TP bypass?
  virtual LinkConfig link_config() const = 0;
  virtual PluginPortCounters counters() = 0;  // asks the device, too: a microsecond or more
  virtual void set_link(uint32_t link) = 0;
  virtual bool has_link() const = 0;
  // Is it known where frames for that address go? If not, it is asked for; frames for it wait meanwhile.
  virtual bool resolve(Instant now, const wire::IpAddress& destination, const wire::IpAddress& source) = 0;

  // ---- port.h ----
  virtual size_t rx_burst(Instant now, RxFrame* out, size_t room) = 0;
  virtual void rx_release() = 0;
  virtual std::byte* tx_begin(size_t bytes) = 0;
  virtual void tx_commit(std::byte* frame, size_t bytes) = 0;
  virtual void tx_abort(std::byte* frame) = 0;
  virtual void tx_flush(Instant now) = 0;
  // When tx_flush() has something to do although nobody sent anything.
  virtual Instant next_deadline() const = 0;
  // True: do not block. A device that cannot wake a sleeper (can_wake) is looked at by the helper now and then.
  virtual bool prepare_sleep() = 0;
  virtual void finish_sleep() = 0;
  virtual void fds(std::vector<int>&) const = 0;
  virtual bool can_wake() const = 0;
};

constexpr uint32_t kPluginPortVersion = 9;
// The one symbol of a plugin. Null and a sentence in `*error` if the port cannot be opened.
using OpenPluginPort = PluginPort* (*)(uint32_t version, const PluginPortOptions&, std::string* error);
inline constexpr char kOpenPluginPort[] = "softub_open_port";

// Loads the shared object (never unloaded) and opens a port. Null and a sentence in `*error`.
std::unique_ptr<PluginPort> open_plugin_port(const std::string& library, const PluginPortOptions&, std::string* error);

}  // namespace ub
