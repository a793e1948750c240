// SPDX-License-Identifier: Apache-2.0
//
// By which port an instance is reached, and under which addresses.
#include <algorithm>

#include "dataplane/nic.h"
#include "lib/ipc/pause.h"

namespace ub {

namespace {

constexpr uint16_t kWellKnownPort = wire::kUbUdpPort;
constexpr Duration kLinkPatience = milliseconds(100);
constexpr Duration kNeighbourPatience = seconds(3);
constexpr Duration kLinkPause = microseconds(20);

bool same_family(const PeerAddress& path, std::string* why) {
  if (path.local.ip.is_v4() == path.remote.ip.is_v4()) return true;
  *why = to_text(path.local.ip) + " cannot reach " + to_text(path.remote.ip) +
         ": one is IPv4, the other IPv6; add an EID of the peer's family to device.eids";
  return false;
}

}  // namespace

bool Nic::find_path(const Eid& local, const InstanceId& instance, PeerAddress* path, std::string* why) {
  auto port = static_cast<uint16_t>(instance.uasid == 0 ? kWellKnownPort : instance.uasid & 0xffff);
  path->local = {wire::IpAddress{local.bytes}, udp_port_};
  path->remote = {wire::IpAddress{instance.eid.bytes}, port};
  bool own = eids_.is_local(instance.eid) &&
             (instance.uasid == uasid_ || (instance.uasid == 0 && udp_port_ == kWellKnownPort));
  if (own) {
    path->link = ports_.loopback.link();
    return true;
  }
  std::string shm_error;
  if (ports_.shm.is_open() && ports_.shm.is_listed(instance.eid, instance.uasid) &&
      link_to(instance, kLinkPatience, &path->link, &shm_error)) {
    return true;
  }
  if (wire_path(local, instance.eid, port, path, why)) return true;
  if (!shm_error.empty()) *why += " (" + shm_error + ")";
  return false;
}

// By IP: over a DPDK device or UDP sockets.
bool Nic::wire_path(const Eid& local, const Eid& eid, uint16_t port, PeerAddress* path, std::string* why) const {
  path->local = {eids_.ip_of(local), udp_port_};
  path->remote = {eids_.ip_of(eid), port};
  if (std::optional<size_t> of_dpdk = dpdk_port_of(path->local.ip)) {
    path->link = dpdk_links_[*of_dpdk];
  } else if (ports_.udp.is_open()) {
    path->link = ports_.udp.link();
  } else {
    *why = "no instance " + to_text(eid) + " port " + std::to_string(port) +
           " on this host, and port.kinds has no 'udp' to reach another one";
    return false;
  }
  return same_family(*path, why);
}

// A shared-memory link, if the other instance wants one. One that is stopped gets its link; it may go on later.
bool Nic::link_to(const InstanceId& instance, Duration patience, uint32_t* link, std::string* why) {
  if (!ports_.shm.connect(instance, why)) return false;
  Instant until = worker_->now() + patience;
  for (;;) {
    control_ports();
    ShmPort::LinkState state = ports_.shm.link_state(instance, why);
    if (state == ShmPort::LinkState::kGone) return false;
    if (state == ShmPort::LinkState::kUp || worker_->now() > until) break;
    ipc::pause_for(kLinkPause);
  }
  *link = control([&](NicCore&, Instant) {
    adopt_links();
    return ports_.shm.find_link(instance.eid, instance.uasid);
  });
  return *link != 0;
}

// Moves what may be our own NIC forward while we wait for its answer. A ring that we took off a lane's socket wakes
// nobody any more.
void Nic::await_answer() {
  control_ports();
  if (clients_ == nullptr) drive();  // a daemon's worker does
  if (ports_.lanes.has_pending()) wake_helper();
}

bool Nic::may_ask_host(std::string* why) const {
  if (!ports_.lanes.is_open()) *why = "this NIC has no shared-memory wire, or its wires are impaired";
  return ports_.lanes.is_open();
}

bool Nic::open_lane(const InstanceId& instance, int32_t process, ipc::OpenedLane* lane, std::string* why) {
  if (!may_ask_host(why)) return false;
  const ipc::LaneHello hello = ipc::make_lane_hello(instance.eid.bytes, instance.uasid, process);
  return ipc::connect_lane(ports_.shm.path_of(instance), hello, kLinkPatience, [this] { await_answer(); }, lane, why);
}

bool Nic::open_share(const InstanceId& instance, const ipc::ShareRequest& request, ipc::OpenedShare* share,
                     std::string* why) {
  if (!may_ask_host(why)) return false;
  const ipc::ShareHello hello = ipc::make_share_hello(instance.eid.bytes, instance.uasid, request);
  return ipc::connect_share(ports_.shm.path_of(instance), hello, kLinkPatience, [this] { await_answer(); }, share, why);
}

bool Nic::offer_share(uint32_t segment, const SegmentConfig& config, int memory, bool writable) {
  return control([&](NicCore&, Instant) {
    try {
      return shares_.offer(segment, config, memory, writable);
    } catch (const std::bad_alloc&) {
      return false;
    }
  });
}

std::vector<ipc::ShareHolder> Nic::share_holders(int memory) {
  return control([&](NicCore&, Instant) {
    try {
      return shares_.holders(memory, share_rights());
    } catch (const std::bad_alloc&) {
      return std::vector<ipc::ShareHolder>{};
    }
  });
}

// ---- what a path carries ---------------------------------------------------------------------------------------

uint32_t Nic::mtu() const {
  if (!ports_.plugins.empty()) {
    uint32_t mtu = UINT32_MAX;
    for (const auto& plugin : ports_.plugins) mtu = std::min(mtu, plugin->link_config().mtu);
    return mtu;
  }
  return ports_.udp.is_open() ? ports_.udp.mtu() : ports_.shm.mtu();
}

bool Nic::has_roce(std::string* why) const {
  if (ports_.shm.is_open() || !ports_.plugins.empty()) return true;
  for (const Eid& eid : eids()) {
    if (ports_.udp.has_roce(eids_.ip_of(eid))) return true;
  }
  *why = "nobody could reach this program by RoCE: UDP port " + std::to_string(roce::kUdpPort) +
         " of its addresses belongs to another program. Give it an address of its own (device.eids)";
  return false;
}

bool Nic::carries_roce(const PeerAddress& path, std::string* why) const {
  if (!ports_.udp.is_open() || path.link != ports_.udp.link() || ports_.udp.has_roce(path.local.ip)) return true;
  *why =
      "no RoCE at " + to_text(path.local.ip) + ": another program has its UDP port " + std::to_string(roce::kUdpPort);
  return false;
}

// ---- DPDK devices ----------------------------------------------------------------------------------------------

// The number of the DPDK port that has this address of ours.
std::optional<size_t> Nic::dpdk_port_of(const wire::IpAddress& ip) const {
  for (size_t i = 0; i < dpdk_ports_.size(); ++i) {
    for (const IpNetwork& network : dpdk_ports_[i].addresses) {
      if (network.address == ip) return i;
    }
  }
  return std::nullopt;
}

PluginPort* Nic::dpdk_port_at(uint32_t link) const {
  const auto found = std::find(dpdk_links_.begin(), dpdk_links_.end(), link);
  return found == dpdk_links_.end() ? nullptr : ports_.plugins[static_cast<size_t>(found - dpdk_links_.begin())].get();
}

void Nic::look_for_neighbour(const PeerAddress& path) {
  PluginPort* port = dpdk_port_at(path.link);
  if (port == nullptr) return;
  control([&](NicCore&, Instant now) {
    const bool known = port->resolve(now, path.remote.ip, path.local.ip);
    if (!known) port->tx_flush(now);
    return known;
  });
}

bool Nic::meet_neighbour(const PeerAddress& path, std::string* why) {
  PluginPort* port = dpdk_port_at(path.link);
  if (port == nullptr) return true;
  const Instant until = worker_->now() + kNeighbourPatience;
  while (!control([&](NicCore&, Instant now) { return port->resolve(now, path.remote.ip, path.local.ip); })) {
    if (worker_->now() > until) {
      *why = to_text(path.remote.ip) + " is not there: nobody answers for it, and no gateway leads to it";
      return false;
    }
    drive();
    ipc::pause_for(kLinkPause);
  }
  return true;
}

}  // namespace ub
