// SPDX-License-Identifier: Apache-2.0
#include "dataplane/id_claims.h"

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "dataplane/eid.h"
#include "dataplane/socket_address.h"
#include "lib/transport/wire/id_port.h"

namespace ub {

namespace {

// A queue for each default limit's objects, all at once, and some more: 262 144 ids.
constexpr size_t kMostBlocks = 256;
constexpr size_t kMostBlocksForNumbers = 64;

uint32_t random_block() {
  uint32_t value = 0;
  [[maybe_unused]] ssize_t n = getrandom(&value, sizeof value, 0);
  return wire::kFirstIdBlock + value % (wire::kIdBlocks - wire::kFirstIdBlock);
}

std::string text_of_block(uint32_t block) {
  const uint32_t first = block * wire::kIdsOfBlock;
  return "block " + std::to_string(block) + " of ids (" + std::to_string(first) + " to " +
         std::to_string(first + wire::kIdsOfBlock - 1) + ", UDP port " + std::to_string(wire::port_of_block(block)) +
         ")";
}

// A sandbox or namespace that lets us have no such socket lets nobody else in it have one, either.
bool is_forbidden(int error) {
  return error == EAFNOSUPPORT || error == EPROTONOSUPPORT || error == EPERM || error == EACCES ||
         error == EADDRNOTAVAIL;
}

}  // namespace

void IdClaims::set_addresses(std::vector<wire::IpAddress> addresses) {
  std::lock_guard guard(mutex_);
  addresses_ = std::move(addresses);
}

IdClaims::Bound IdClaims::bind_port(uint16_t port, std::vector<ClaimSocket>* out, std::string* why) const {
  for (const wire::IpAddress& ip : addresses_) {
    const bool v4 = ip.is_v4();
    ClaimSocket s{ipc::Fd(::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)), ip, port};
    const int on = 1;
    SocketAddress address;
    const socklen_t bytes = fill(&address, ip, port);
    if (s.fd) {
      if (!v4) ::setsockopt(s.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
      ::setsockopt(s.fd.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND, &on, sizeof on);
      if (::bind(s.fd.get(), &address.base, bytes) == 0) {
        out->push_back(std::move(s));
        continue;
      }
    }
    const int error = errno;
    *why = "cannot bind " + to_text(ip) + " port " + std::to_string(port) + ": " + std::strerror(error);
    return error == EADDRINUSE ? Bound::kTaken : is_forbidden(error) ? Bound::kForbidden : Bound::kFailed;
  }
  return Bound::kYes;
}

IdClaims::Bound IdClaims::take(uint16_t port, std::string* why) {
  std::vector<ClaimSocket> made;
  const Bound bound = bind_port(port, &made, why);
  if (bound == Bound::kYes) std::move(made.begin(), made.end(), std::back_inserter(sockets_));
  return bound;
}

// The kernel closes the sockets of a process that was killed only when its memory is gone.
IdClaims::Bound IdClaims::take_patiently(uint16_t port, std::string* why) {
  constexpr int kTries = 100;
  constexpr useconds_t kPauseUs = 10'000;
  Bound bound = take(port, why);
  for (int tries = 1; tries < kTries && bound == Bound::kTaken; ++tries) {
    ::usleep(kPauseUs);
    bound = take(port, why);
  }
  return bound;
}

std::optional<uint32_t> IdClaims::claim_block(uint32_t wanted, std::string* why) {
  std::lock_guard guard(mutex_);
  if (blocks_.size() >= kMostBlocks) {
    *why = "this NIC has " + std::to_string(kMostBlocks) + " blocks of ids, which is as many as one may have";
    return std::nullopt;
  }
  why->clear();
  uint32_t block = wanted != 0 ? wanted : random_block();
  Bound bound = Bound::kTaken;
  for (uint32_t tries = wanted != 0 ? 1 : wire::kIdBlocks - wire::kFirstIdBlock; tries != 0; --tries) {
    if (!blocks_.contains(block)) {
      bound = wanted != 0 ? take_patiently(wire::port_of_block(block), why) : take(wire::port_of_block(block), why);
      if (bound != Bound::kTaken) break;
    }
    if (++block == wire::kIdBlocks) block = wire::kFirstIdBlock;
  }
  if (bound == Bound::kYes || bound == Bound::kForbidden) {
    blocks_.insert(block);
    if (bound == Bound::kYes) why->clear();
    return block;
  }
  *why = wanted != 0 ? text_of_block(wanted) + " cannot be had: " + *why +
                           "; name another one (device.id_block), or 0 for any that is free"
                     : "no block of ids can be had: " + *why;
  return std::nullopt;
}

std::vector<uint32_t> IdClaims::blocks() const {
  std::lock_guard guard(mutex_);
  return {blocks_.begin(), blocks_.end()};
}

bool IdClaims::claim_id(uint32_t id, std::string* why) {
  std::lock_guard guard(mutex_);
  if (id < kFirstRequestableId || id >= kIdSpace) return false;
  const bool single = id < kFirstDynamicId;
  const uint32_t block = id / wire::kIdsOfBlock;
  if (!(single ? single_ids_.contains(id) : blocks_.contains(block))) {
    if (!single && blocks_for_numbers_ == kMostBlocksForNumbers) {
      *why = "this NIC took " + std::to_string(kMostBlocksForNumbers) + " blocks for single ids, and takes no more";
      return false;
    }
    const Bound bound = take(wire::port_of_id(id), why);
    if (bound == Bound::kTaken) why->clear();
    if (bound != Bound::kYes) return false;
    if (!single) ++blocks_for_numbers_;
  }
  if (single) {
    ++single_ids_[id];
  } else {
    blocks_.insert(block);
  }
  return true;
}

bool IdClaims::release_id(uint32_t id) {
  std::lock_guard guard(mutex_);
  const auto claims = single_ids_.find(id);
  if (claims == single_ids_.end() || --claims->second != 0) return false;
  single_ids_.erase(claims);
  std::erase_if(sockets_, [&](const ClaimSocket& s) { return s.port == wire::port_of_id(id); });
  return true;
}

std::vector<uint16_t> IdClaims::ports() const {
  std::lock_guard guard(mutex_);
  std::vector<uint16_t> ports;
  for (uint32_t block : blocks_) ports.push_back(wire::port_of_block(block));
  for (const auto& [id, claims] : single_ids_) ports.push_back(wire::port_of_id(id));
  return ports;
}

bool IdClaims::has(uint16_t port) const {
  const std::vector<uint16_t> ours = ports();
  return std::find(ours.begin(), ours.end(), port) != ours.end();
}

std::vector<ClaimSocket> IdClaims::take_sockets() {
  std::lock_guard guard(mutex_);
  return std::exchange(sockets_, {});
}

void IdClaims::give_back(std::vector<ClaimSocket> sockets) {
  std::lock_guard guard(mutex_);
  std::move(sockets.begin(), sockets.end(), std::back_inserter(sockets_));
}

}  // namespace ub
