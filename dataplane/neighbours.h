// SPDX-License-Identifier: Apache-2.0
//
// Which Ethernet address has an IP address of the local network: the table, and when to ask. The frames that carry
// questions and answers are written and read in ethernet_host.h.
//
// An entry is confirmed by an answer, asked for again while it is used, and forgotten when nobody uses it. While an
// address is unknown its frames wait (waiting_frames.h).
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/time.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

struct IpNetwork {
  wire::IpAddress address;
  uint8_t prefix = 0;  // bits; of an IPv4 address 0 to 32

  bool contains(const wire::IpAddress&) const;
};

class Neighbours {
 public:
  static constexpr size_t kMaxEntries = 4096;

  // `own`: our addresses with their networks. Gateways: all zero if there is none.
  Neighbours(std::vector<IpNetwork> own, const wire::IpAddress& gateway_v4, const wire::IpAddress& gateway_v6);
  // For good; never asked for.
  void add_static(const wire::IpAddress&, const wire::MacAddress&);

  bool is_own(const wire::IpAddress&) const;
  // The neighbour that a packet to `destination` goes to. False: no network of ours holds it, and no gateway.
  bool next_hop(const wire::IpAddress& destination, wire::IpAddress* hop) const;

  // Null: not known (yet). `*ask` is set when a question should be sent now.
  const wire::MacAddress* find(Instant now, const wire::IpAddress& hop, bool* ask);
  // Somebody said who he is; believed if he is of our networks, and either asked for or asking us.
  void learn(Instant now, const wire::IpAddress&, const wire::MacAddress&, bool asks_us);

  // Whom learn() made known since the last call, if anybody: the last one.
  std::optional<wire::IpAddress> take_news() { return std::exchange(news_, std::nullopt); }

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    wire::MacAddress mac{};
    bool known = false;
    bool fixed = false;
    Instant confirmed{};
    Instant asked{};
    Instant used{};
  };
  struct Less {
    bool operator()(const wire::IpAddress& a, const wire::IpAddress& b) const { return a.bytes < b.bytes; }
  };

  static bool goes_before(const Entry& a, const Entry& b) { return a.known == b.known ? a.used < b.used : b.known; }
  void make_room();

  std::vector<IpNetwork> own_;
  wire::IpAddress gateway_v4_, gateway_v6_;
  std::map<wire::IpAddress, Entry, Less> entries_;
  std::optional<wire::IpAddress> news_;
};

}  // namespace ub
