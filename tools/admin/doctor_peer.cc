// SPDX-License-Identifier: Apache-2.0
//
// Looks at the way to a peer: the route, what the responder there says of itself, small datagrams to both ports,
// then datagrams of the sizes that matter.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/errqueue.h>
#include <netdb.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "dataplane/eid.h"
#include "tools/admin/doctor_look.h"
#include "tools/admin/doctor_wire.h"

namespace ub::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTcpPatienceMs = 2000;
constexpr int kSmallTries = 5, kSizeTries = 3;
constexpr int kPauseMs = 200;
// Interfaces and tunnels (1280, 1400, 1420, 1450, 1500, 9000), and what packets of SoftUB need: set-up at the least
// payload (1148), the longest packet of each payload.
constexpr uint32_t kIpSizes[] = {576, 1148, 1280, 1400, 1420, 1450, 1500, 2211, 4259, 8355, 9000};

uint64_t random_nonce() {
  uint64_t value = 0;
  while (value == 0) [[maybe_unused]] const ssize_t n = ::getrandom(&value, sizeof value, 0);
  return value;
}

// ---- what came back instead of an answer -----------------------------------------------------------------------

struct Refusal {
  std::string text;
  bool port_unreachable = false;
};

const char* words_of_v4(uint8_t code) {
  switch (code) {
    case ICMP_NET_UNREACH:
      return "network unreachable";
    case ICMP_HOST_UNREACH:
      return "host unreachable";
    case ICMP_PORT_UNREACH:
      return "port unreachable";
    case ICMP_NET_ANO:
    case ICMP_HOST_ANO:
    case ICMP_PKT_FILTERED:
      return "prohibited by a firewall";
    default:
      return "unreachable";
  }
}

const char* words_of_v6(uint8_t code) {
  switch (code) {
    case ICMP6_DST_UNREACH_NOROUTE:
      return "no route";
    case ICMP6_DST_UNREACH_ADMIN:
      return "prohibited by a firewall";
    case ICMP6_DST_UNREACH_ADDR:
      return "host unreachable";
    case ICMP6_DST_UNREACH_NOPORT:
      return "port unreachable";
    default:
      return "unreachable";
  }
}

Refusal read_error(const sock_extended_err& e, const sockaddr* offender) {
  if (e.ee_errno == EMSGSIZE) return {};  // too long: the sizes tell
  const bool v4 = e.ee_origin == SO_EE_ORIGIN_ICMP, v6 = e.ee_origin == SO_EE_ORIGIN_ICMP6;
  if (!v4 && !v6) return {std::strerror(static_cast<int>(e.ee_errno)), false};
  SocketAddress from;
  std::memcpy(&from.base, offender, v4 ? sizeof from.v4 : sizeof from.v6);
  const bool port = v4 ? e.ee_type == ICMP_DEST_UNREACH && e.ee_code == ICMP_PORT_UNREACH
                       : e.ee_type == ICMP6_DST_UNREACH && e.ee_code == ICMP6_DST_UNREACH_NOPORT;
  return {fmt::format("{} says: {}", to_text(from.ip()), v4 ? words_of_v4(e.ee_code) : words_of_v6(e.ee_code)), port};
}

// ---- a socket that asks ----------------------------------------------------------------------------------------

class Asker {
 public:
  Asker(const wire::IpAddress& own, uint16_t wanted_port, const wire::IpAddress& peer, uint16_t port)
      : peer_(peer, port) {
    int error = 0;
    fd_ = open_udp(own, wanted_port, &error);
    if (!fd_) fd_ = open_udp(own, 0, &error);
    if (!fd_) {
      send_error_ = std::strerror(error);
      return;
    }
    const int on = 1;
    ::setsockopt(fd_.get(), own.is_v4() ? IPPROTO_IP : IPPROTO_IPV6, own.is_v4() ? IP_RECVERR : IPV6_RECVERR, &on,
                 sizeof on);
    ::getsockname(fd_.get(), &own_.base, &own_.bytes);
  }

  // False: our own kernel did not take it, and send_error says why.
  bool ask(uint64_t nonce, size_t bytes, size_t answer_bytes) {
    if (!fd_) return false;
    const std::string text = write_question({nonce, static_cast<uint32_t>(answer_bytes)}, bytes);
    // An ICMP message about an earlier packet is reported by the next call: the second try is the real one.
    for (int tries = 0; tries < 2; ++tries) {
      if (::sendto(fd_.get(), text.data(), text.size(), 0, &peer_.base, peer_.bytes) >= 0) return true;
      if (errno == ENOBUFS) return true;  // the device dropped it: lost, as anywhere on the way
      send_error_ = std::strerror(errno);
      read_errors();
    }
    return false;
  }

  // Takes what comes for so long, or until `enough`.
  void listen(int milliseconds, const std::function<bool(const Answer&, size_t)>& enough) {
    const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
    while (fd_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      if (left < 0 || !readable(fd_.get(), static_cast<int>(left))) return;
      read_errors();
      const ssize_t n = ::recv(fd_.get(), buffer_.data(), buffer_.size(), 0);
      if (n <= 0) continue;
      const auto answer = read_answer({buffer_.data(), static_cast<size_t>(n)});
      if (answer && enough(*answer, static_cast<size_t>(n))) return;
    }
  }

  const Refusal& refusal() const { return refusal_; }
  const std::string& send_error() const { return send_error_; }
  const SocketAddress& own() const { return own_; }

 private:
  void read_errors() {
    for (;;) {
      alignas(cmsghdr) std::array<char, 512> control;
      char data[64];
      iovec part{data, sizeof data};
      msghdr m{};
      m.msg_iov = &part;
      m.msg_iovlen = 1;
      m.msg_control = control.data();
      m.msg_controllen = control.size();
      if (::recvmsg(fd_.get(), &m, MSG_ERRQUEUE) < 0) return;
      for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
        const bool ours = (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
                          (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR);
        if (!ours) continue;
        const auto* e = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(c));
        Refusal r = read_error(*e, SO_EE_OFFENDER(e));
        if (!r.text.empty()) refusal_ = r;
      }
    }
  }

  SocketAddress peer_, own_;
  ipc::Fd fd_;
  Refusal refusal_;
  std::string send_error_;
  std::array<char, 65536> buffer_;
};

// ---- the steps -------------------------------------------------------------------------------------------------

std::optional<wire::IpAddress> resolve(const std::string& name, std::string* error) {
  if (auto ip = parse_ip(name)) return ip;
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_ADDRCONFIG;
  if (const int status = ::getaddrinfo(name.c_str(), nullptr, &hints, &list); status != 0) {
    *error = ::gai_strerror(status);
    return std::nullopt;
  }
  SocketAddress address;
  std::memcpy(&address.base, list->ai_addr, std::min<size_t>(list->ai_addrlen, sizeof address.v6));
  ::freeaddrinfo(list);
  return address.ip();
}

// The address that an instance would send from, and whether the kernel would choose the same.
wire::IpAddress own_address(const Config& c, const wire::IpAddress& peer, PeerFacts* f) {
  EidTable table;
  EidOptions options{c.device.eids, c.device.eid_map, {}};
  std::string error;
  if (!table.init(options, &error)) return peer.is_v4() ? wire::IpAddress::from_v4(0) : wire::IpAddress{};
  const auto index = table.route_to(eid_of(peer), &error);
  if (!index) f->route.error = error;
  return index ? table.local_ip(*index) : table.local_ip(0);
}

std::string connect_tcp(const wire::IpAddress& own, const SocketAddress& peer, std::string* line) {
  ipc::Fd fd(::socket(peer.base.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SocketAddress from(own, 0);
  if (!fd || ::bind(fd.get(), &from.base, from.bytes) != 0) return std::strerror(errno);
  int error = 0;
  if (::connect(fd.get(), &peer.base, peer.bytes) != 0 && errno != EINPROGRESS) return std::strerror(errno);
  pollfd p{fd.get(), POLLOUT, 0};
  if (::poll(&p, 1, kTcpPatienceMs) <= 0) return "no answer";
  socklen_t bytes = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error != 0) return std::strerror(error);
  char buffer[4096];
  while (readable(fd.get(), kTcpPatienceMs)) {
    const ssize_t n = ::recv(fd.get(), buffer, sizeof buffer, 0);
    if (n <= 0 || line->size() > 65536) break;
    line->append(buffer, static_cast<size_t>(n));
  }
  return "";
}

void read_description(const std::string& line, PeerFacts* f) {
  const auto j = nlohmann::json::parse(line, nullptr, false);
  if (!j.is_object() || j.value("softub_doctor", 0) != 1) {
    f->tcp_error = "what answers there is no doctor";
    return;
  }
  f->peer_listens = j.value("ub_listening", false);
  f->peer_holder = j.value("ub_holder", "");
  f->peer_payload = j.value("payload", 0U);
  f->peer_ub_port = j.value("ub_port", uint16_t{0});
  f->peer_eids = j.value("eids", std::vector<std::string>{});
}

void probe_port(Asker& asker, const wire::IpAddress& peer, PortFacts* p) {
  p->source = asker.own().text();
  p->destination = to_text(peer);
  bool sent = true;
  for (int tries = 0; tries < kSmallTries && !p->answered && !p->refused; ++tries) {
    const uint64_t nonce = random_nonce();
    const auto start = Clock::now();
    sent = asker.ask(nonce, kSmallProbe, kSmallProbe);
    asker.listen(kPauseMs, [&](const Answer& a, size_t) {
      if (a.nonce != nonce) return false;
      p->answered = true;
      p->best_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      p->seen_source = a.asker;
      p->seen_destination = a.destination;
      return true;
    });
    p->refused = asker.refusal().port_unreachable;
  }
  if (p->answered) return;
  p->error = asker.refusal().text;
  if (p->error.empty() && !sent) p->error = "this host does not send it: " + asker.send_error();
}

// All sizes in both manners, some times: a size that is lost every time does not pass.
void probe_sizes(Asker& asker, bool v6, std::vector<SizeFacts>* sizes) {
  const uint32_t headers = v6 ? 48 : 28;
  for (uint32_t ip_bytes : kIpSizes) sizes->push_back({ip_bytes, false, false, false});
  std::map<uint64_t, std::pair<SizeFacts*, bool>> waiting;
  for (int tries = 0; tries < kSizeTries; ++tries) {
    bool all = true;
    for (SizeFacts& s : *sizes) {
      for (bool back : {false, true}) {
        if (back ? s.back : s.forward) continue;
        const uint64_t nonce = random_nonce();
        const size_t bytes = s.ip_bytes - headers;
        if (!asker.ask(nonce, bytes, back ? bytes : kSmallProbe)) continue;
        s.sent = true;
        all = false;
        waiting[nonce] = {&s, back};
      }
    }
    if (all) return;
    asker.listen(kPauseMs, [&](const Answer& a, size_t) {
      const auto it = waiting.find(a.nonce);
      if (it == waiting.end()) return false;
      it->second.first->forward = true;
      it->second.first->back |= it->second.second;
      return std::all_of(sizes->begin(), sizes->end(), [](const SizeFacts& s) { return !s.sent || s.back; });
    });
  }
}

}  // namespace

PeerFacts look_at_peer(const Config& c, const HostFacts& host, const std::string& peer, uint16_t port) {
  PeerFacts f;
  f.wanted = peer;
  const auto ip = resolve(peer, &f.address_error);
  if (!ip) return f;
  f.address = to_text(*ip);
  f.v6 = !ip->is_v4();
  f.own_payload = payload_of(c, host.addresses);
  const wire::IpAddress own = own_address(c, *ip, &f);
  if (!f.route.error.empty()) return f;
  f.route = look_at_route(*ip, own);
  if (!f.route.error.empty()) return f;
  const RouteFacts free = look_at_route(*ip, f.v6 ? wire::IpAddress{} : wire::IpAddress::from_v4(0));
  f.route.source_is_eid = free.source == to_text(own);

  std::string line;
  f.tcp_error = connect_tcp(own, SocketAddress(*ip, port), &line);
  if (f.tcp_error.empty()) read_description(line, &f);
  f.probe.port = port;
  f.ub.port = f.peer_ub_port != 0 ? f.peer_ub_port : static_cast<uint16_t>(c.port.udp_port);
  auto probe = std::make_unique<Asker>(own, 0, *ip, port);
  auto ub = std::make_unique<Asker>(own, static_cast<uint16_t>(c.port.udp_port), *ip, f.ub.port);
  probe_port(*probe, *ip, &f.probe);
  if (f.peer_holder.empty()) probe_port(*ub, *ip, &f.ub);
  if (f.ub.answered || f.probe.answered) probe_sizes(f.ub.answered ? *ub : *probe, f.v6, &f.sizes);
  f.route.kernel_mtu = look_at_route(*ip, own).kernel_mtu;
  return f;
}

}  // namespace ub::tools
