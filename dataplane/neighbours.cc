// SPDX-License-Identifier: Apache-2.0
#include "dataplane/neighbours.h"

#include <algorithm>

namespace ub {
namespace {

constexpr Duration kAskAgain = milliseconds(20);       // while unknown
constexpr Duration kConfirmAgain = milliseconds(500);  // while known, but old
constexpr Duration kFresh = seconds(30);
constexpr Duration kStale = seconds(60);  // not confirmed for so long: unknown again

}  // namespace

bool IpNetwork::contains(const wire::IpAddress& ip) const {
  if (ip.is_v4() != address.is_v4()) return false;
  uint32_t bits = prefix + (address.is_v4() ? 96u : 0u);
  for (uint32_t i = 0; i < 16 && bits != 0; ++i) {
    uint32_t n = std::min(bits, 8u);
    auto mask = static_cast<uint8_t>(0xff << (8 - n));
    if (((ip.bytes[i] ^ address.bytes[i]) & mask) != 0) return false;
    bits -= n;
  }
  return true;
}

Neighbours::Neighbours(std::vector<IpNetwork> own, const wire::IpAddress& gateway_v4, const wire::IpAddress& gateway_v6)
    : own_(std::move(own)), gateway_v4_(gateway_v4), gateway_v6_(gateway_v6) {}

void Neighbours::add_static(const wire::IpAddress& ip, const wire::MacAddress& mac) {
  Entry& e = entries_[ip];
  e.mac = mac;
  e.known = e.fixed = true;
}

bool Neighbours::is_own(const wire::IpAddress& ip) const {
  return std::any_of(own_.begin(), own_.end(), [&](const IpNetwork& n) { return n.address == ip; });
}

bool Neighbours::next_hop(const wire::IpAddress& destination, wire::IpAddress* hop) const {
  if (std::any_of(own_.begin(), own_.end(), [&](const IpNetwork& n) { return n.contains(destination); })) {
    *hop = destination;
    return true;
  }
  *hop = destination.is_v4() ? gateway_v4_ : gateway_v6_;
  return *hop != wire::IpAddress{};
}

const wire::MacAddress* Neighbours::find(Instant now, const wire::IpAddress& hop, bool* ask) {
  *ask = false;
  auto it = entries_.find(hop);
  if (it == entries_.end()) {
    if (entries_.size() >= kMaxEntries) make_room();
    it = entries_.try_emplace(hop).first;
    *ask = true;
  }
  Entry& e = it->second;
  e.used = now;
  if (e.fixed) return &e.mac;
  if (e.known && now - e.confirmed > kStale) e.known = false;
  bool wanted = !e.known || now - e.confirmed > kFresh;
  *ask |= wanted && now - e.asked >= (e.known ? kConfirmAgain : kAskAgain);
  if (*ask) e.asked = now;
  return e.known ? &e.mac : nullptr;
}

void Neighbours::learn(Instant now, const wire::IpAddress& ip, const wire::MacAddress& mac, bool asks_us) {
  if ((mac[0] & 1) != 0 || is_own(ip)) return;  // a group, or somebody with our address
  auto it = entries_.find(ip);
  if (it == entries_.end()) {
    wire::IpAddress hop;
    bool neighbour = next_hop(ip, &hop) && hop == ip;
    if (!asks_us || !neighbour || entries_.size() >= kMaxEntries) return;
    it = entries_.try_emplace(ip).first;
    it->second.used = now;
  }
  Entry& e = it->second;
  if (e.fixed) return;
  if (!e.known) news_ = ip;
  e.mac = mac;
  e.known = true;
  e.confirmed = now;
}

// Forgets the one that was not used for longest, those that never answered first: whoever sends to many addresses that
// nobody has takes no neighbour away from others.
void Neighbours::make_room() {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->second.fixed) continue;
    if (oldest == entries_.end() || goes_before(it->second, oldest->second)) oldest = it;
  }
  if (oldest != entries_.end()) entries_.erase(oldest);
}

}  // namespace ub
