// SPDX-License-Identifier: Apache-2.0
//
// The ids of this host that are ours to give out: sockets bound to the UDP ports that stand for them
// (wire/id_port.h) at every address of the instance. The kernel gives a port to one process only, of whatever user, and
// takes it back when that process ends. docs/identity.md tells more.
//
// Where a UDP wire is open it takes the sockets over and reads what comes (take_sockets); else they lie here unread,
// and only their being bound matters.
//
// Thread: any; locked.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/ipc/fd.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

struct ClaimSocket {
  ipc::Fd fd;
  wire::IpAddress ip;
  uint16_t port = 0;
};

class IdClaims {
 public:
  // Once, before the others: where ports are bound. An address may be one that the kernel does not have.
  void set_addresses(std::vector<wire::IpAddress>);

  // That block; 0: any free one, looked for from a random one on. Empty and a sentence in `*why`: it is taken, or all
  // are, or this instance has as many as one may have. A block and a sentence: a sandbox forbids such sockets, so
  // nothing keeps others from giving out the same ids.
  std::optional<uint32_t> claim_block(uint32_t wanted, std::string* why);
  std::vector<uint32_t> blocks() const;

  // Is an id that a program asks for by number ours? It was, or its port or block could be had now. No, and `*why`
  // unless it is simply somebody else's. Each such claim of an id with a port of its own is to be released once; the
  // last release answers true, and the port is to be closed.
  bool claim_id(uint32_t id, std::string* why);
  bool release_id(uint32_t id);

  // Those that stand for what is ours.
  std::vector<uint16_t> ports() const;
  bool has(uint16_t port) const;

  // Sockets that were bound since the last call, or given back: the caller's from now on.
  std::vector<ClaimSocket> take_sockets();
  void give_back(std::vector<ClaimSocket>);

 private:
  enum class Bound : uint8_t { kYes, kTaken, kForbidden, kFailed };
  Bound bind_port(uint16_t port, std::vector<ClaimSocket>* out, std::string* why) const;
  Bound take(uint16_t port, std::string* why);
  Bound take_patiently(uint16_t port, std::string* why);

  mutable std::mutex mutex_;
  std::vector<wire::IpAddress> addresses_;
  std::set<uint32_t> blocks_;
  size_t blocks_for_numbers_ = 0;            // of them, those taken for one id that was asked for
  std::map<uint32_t, uint32_t> single_ids_;  // and how many claims each has
  std::vector<ClaimSocket> sockets_;
};

}  // namespace ub
