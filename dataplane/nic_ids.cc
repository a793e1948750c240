// SPDX-License-Identifier: Apache-2.0
//
// The NIC's ids: from blocks that no other instance of the host has; and who has the id of another instance.
// docs/identity.md.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "dataplane/nic.h"
#include "dataplane/socket_address.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/pause.h"
#include "lib/transport/wire/id_port.h"

namespace ub {

namespace {

constexpr Duration kDeathPatience = seconds(1);
constexpr Duration kDeathLook = milliseconds(5);

// Does the kernel say at once that nobody has that port of this host?
bool is_refused(const wire::IpAddress& ip, uint16_t port) {
  SocketAddress to;
  const socklen_t bytes = fill(&to, ip, port);
  ipc::Fd fd(::socket(to.base.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  char none = 0;
  if (!fd || ::connect(fd.get(), &to.base, bytes) != 0 || ::send(fd.get(), &none, 0, MSG_NOSIGNAL) != 0) return false;
  return ::recv(fd.get(), &none, 0, MSG_PEEK) < 0 && errno == ECONNREFUSED;
}

}  // namespace

// Ports stand for ids at the addresses of the EIDs, wherever the wires listen.
bool Nic::claim_first_ids(const LoadedConfig& config, std::string* error) {
  std::vector<wire::IpAddress> addresses;
  for (size_t i = 0; i < eids_.eids().size(); ++i) {
    const wire::IpAddress& ip = eids_.local_ip(i);
    if (std::find(addresses.begin(), addresses.end(), ip) == addresses.end()) addresses.push_back(ip);
  }
  claims_.set_addresses(std::move(addresses));
  if (config.device.id_block != 0 && config.device.id_block < wire::kFirstIdBlock) {
    *error = "device.id_block: block " + std::to_string(config.device.id_block) +
             " holds ids that programs ask for by number; name one from " + std::to_string(wire::kFirstIdBlock) +
             " to " + std::to_string(wire::kIdBlocks - 1) + ", or 0 for any that is free";
    return false;
  }
  const bool claimed = claims_.claim_block(config.device.id_block, error).has_value();
  if (claimed && !error->empty() && notice_) {
    notice_("other processes may give out the ids that this one gives out: " + std::exchange(*error, {}));
  }
  return claimed;
}

// What was claimed since is told to processes of this user and given out, and what comes to its ports is read.
void Nic::adopt_claims() try {
  if (ports_.shm.is_open()) {
    for (uint16_t port : claims_.ports()) ports_.shm.announce_ids(port);
  }
  const std::vector<uint32_t> blocks = claims_.blocks();
  std::vector<ClaimSocket> sockets;
  if (ports_.udp.is_open()) sockets = claims_.take_sockets();
  control([&](NicCore& core, Instant) {
    for (uint32_t block : blocks) core.add_id_block(block);
    if (!sockets.empty()) ports_.udp.listen(std::move(sockets));
    return true;
  });
} catch (const std::bad_alloc&) {  // who looks for these ids does not find them
}

// One that was killed keeps its ports until the kernel has done with its memory: what has the port and does not answer
// is waited for. A daemon does not wait; others want something of it.
bool Nic::claim_id(uint32_t id) {
  const Instant until = worker_->now() + kDeathPatience;
  const Eid& here = eids().front();
  std::string why;
  for (bool dying = clients_ == nullptr;;) {
    if (claim_now(id, &why)) return true;
    if (!why.empty() && notice_) {
      notice_("the id " + std::to_string(id) + ", which was asked for, cannot be had: " + why);
    }
    if (!why.empty() || !dying || worker_->now() > until) return false;
    uint32_t holder;
    std::string ignored;
    dying = find_instance(here, here, id, false, &holder, &ignored) == Status::kBusy;
    drive();
    if (dying) ipc::pause_for(kDeathLook);
  }
}

bool Nic::claim_now(uint32_t id, std::string* why) {
  std::lock_guard guard(claiming_);
  if (!claims_.claim_id(id, why)) return false;
  adopt_claims();
  return true;
}

bool Nic::claim_more_ids() {
  std::lock_guard guard(claiming_);
  std::string why;
  if (!claims_.claim_block(0, &why)) {
    if (notice_) notice_(why);
    return false;
  }
  adopt_claims();
  return true;
}

void Nic::release_id(uint32_t id) {
  std::lock_guard guard(claiming_);
  if (!claims_.release_id(id)) return;
  const uint16_t port = wire::port_of_id(id);
  if (ports_.shm.is_open()) ports_.shm.retract_ids(port);
  if (!ports_.udp.is_open()) return;
  control([&](NicCore&, Instant) {
    ports_.udp.stop_listening(port);
    return true;
  });
}

// Asked over shared memory if a process of this user said that the port is its own, else at the port itself. The
// question waits in the link until the holder looks there, so nobody waits here for one that is stopped.
bool Nic::path_to_holder(const Eid& local, const Eid& eid, uint16_t port, uint32_t holder, PeerAddress* path,
                         std::string* why) {
  if (holder != 0 && ports_.shm.is_listed(eid, holder) && link_to({eid, holder}, Duration{}, &path->link, why)) {
    path->local = {wire::IpAddress{local.bytes}, udp_port_};
    path->remote = {wire::IpAddress{eid.bytes}, port};
    return true;
  }
  if (is_own_eid(eid) && is_refused(eids_.ip_of(eid), port)) {
    *why = "its UDP port " + std::to_string(port) + " is free on this host";
    return false;
  }
  return wire_path(local, eid, port, path, why);
}

Status Nic::find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, uint32_t* uasid,
                          std::string* why) {
  if (id >= kIdSpace) {  // it has no port
    *why = std::to_string(id) + " is no " + (token_id ? "token id" : "id") + ": they end with " +
           std::to_string(kIdSpace - 1);
    return Status::kInvalid;
  }
  const uint16_t port = wire::port_of_id(id);
  const std::string nobody =
      "no instance of " + to_text(eid) + " has the " + (token_id ? "token id " : "id ") + std::to_string(id);
  if (is_own_eid(eid)) {
    *uasid = uasid_;
    if (control([&](NicCore& core, Instant) { return core.has_id(id, token_id); })) return Status::kOk;
    if (claims_.has(port)) {
      *why = nobody + ": it would be one of this process, and is not";
      return Status::kInvalid;
    }
  }
  FindConfig what{local, eid, id, token_id, {}};
  const uint32_t holder = ports_.shm.holder_of_ids(eid, port);
  std::string no_way;
  if (!path_to_holder(local, eid, port, holder, &what.path, &no_way)) {
    *why = nobody + ": " + no_way;
    return Status::kInvalid;
  }
  bool over_shm = false;  // links come and go as soon as we let go of the Core
  const Status status = control([&](NicCore& core, Instant now) {
    over_shm = ports_.kind_of(what.path.link) == LinkKind::kShm;
    return core.find(now, what, uasid);
  });
  if (status == Status::kBusy) {
    *why = nobody + ", or it does not answer at UDP port " + std::to_string(port) +
           "; is its host up, and that port open?";
  } else if (over_shm && *uasid != holder) {
    ports_.shm.forget_holder(eid, port, holder);  // somebody else by now: the kernel knows who has the port
    return Status::kBusy;
  } else if (status == Status::kInvalid) {
    *why = nobody + ": the instance that has its UDP port " + std::to_string(port) + " does not";
  }
  return status;
}

}  // namespace ub
