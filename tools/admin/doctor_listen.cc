// SPDX-License-Identifier: Apache-2.0
//
// urma_admin doctor --listen: answers the probes of doctors on other hosts.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "dataplane/eid.h"
#include "tools/admin/doctor_look.h"
#include "tools/admin/doctor_wire.h"

namespace ub::tools {
namespace {

volatile sig_atomic_t stopped = 0;

void stop(int) { stopped = 1; }

void end_on_signals() {
  struct sigaction action {};
  action.sa_handler = stop;  // without SA_RESTART: poll returns
  for (int s : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(s, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

class Responder {
 public:
  Responder(const Config& c, const HostFacts& f, uint16_t port)
      : config_(c), addresses_(f.addresses), ub_port_(static_cast<uint16_t>(c.port.udp_port)), port_(port) {
    description_ = {{"softub_doctor", 1}, {"ub_port", ub_port_}};
    description_["eids"] = nlohmann::json::array();
    for (const AddressFacts& a : f.addresses) {
      description_["eids"].push_back(a.eid);
      if (!a.holder.empty()) holder_ = a.holder;
    }
  }

  bool open(std::string* error) {
    const wire::IpAddress any_v4 = wire::IpAddress::from_v4(0), any_v6{};
    bool ub = true;
    for (const auto& ip : {any_v4, any_v6}) {
      int e = 0;
      if (!add_udp(ip, port_, &e) && ip.is_v4()) {
        *error = fmt::format("cannot listen on UDP port {}: {}; --port chooses another", port_, std::strerror(e));
        return false;
      }
      if (!add_udp(ip, ub_port_, &e) && e == EADDRINUSE) ub = false;
      add_tcp(ip);
    }
    description_["ub_listening"] = ub;
    description_["ub_holder"] = ub ? "" : holder_.empty() ? "a process that runs there" : holder_;
    return true;
  }

  void run() {
    fmt::print("answering on UDP {}{} and TCP {}; Ctrl-C ends it\n", port_, ub_text(), port_);
    std::fflush(stdout);
    std::vector<pollfd> polled;
    for (const Socket& s : sockets_) polled.push_back({s.fd.get(), POLLIN, 0});
    while (stopped == 0) {
      if (::poll(polled.data(), polled.size(), -1) < 0) continue;
      for (size_t i = 0; i < polled.size(); ++i) {
        if ((polled[i].revents & POLLIN) == 0) continue;
        sockets_[i].tcp ? describe(sockets_[i]) : answer(sockets_[i]);
      }
    }
  }

 private:
  struct Socket {
    ipc::Fd fd;
    bool tcp = false;
    bool v6 = false;
    uint16_t port = 0;
  };

  std::string ub_text() const {
    if (description_["ub_listening"]) return fmt::format(" and {}", ub_port_);
    return fmt::format(" (UDP {} is taken by {})", ub_port_, description_["ub_holder"].get<std::string>());
  }

  // Somebody may set an MTU right while he looks for what is wrong.
  uint32_t payload_now() {
    const auto locals = local_addresses();
    for (AddressFacts& a : addresses_)
      for (const LocalAddress& l : locals)
        if (to_text(l.ip) == a.ip) a.interface_mtu = l.interface_mtu;
    return payload_of(config_, addresses_);
  }

  bool add_udp(const wire::IpAddress& any, uint16_t port, int* error) {
    Socket s{open_udp(any, port, error), false, !any.is_v4(), port};
    if (!s.fd) return false;
    const int on = 1;
    if (s.v6) {
      ::setsockopt(s.fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
    } else {
      ::setsockopt(s.fd.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
    }
    sockets_.push_back(std::move(s));
    return true;
  }

  void add_tcp(const wire::IpAddress& any) {
    Socket s{ipc::Fd(::socket(any.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), true,
             !any.is_v4(), port_};
    if (!s.fd) return;
    const int on = 1;
    const SocketAddress address(any, port_);
    ::setsockopt(s.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (s.v6) ::setsockopt(s.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (::bind(s.fd.get(), &address.base, address.bytes) == 0 && ::listen(s.fd.get(), 8) == 0)
      sockets_.push_back(std::move(s));
  }

  void describe(const Socket& s) {
    SocketAddress peer;
    ipc::Fd connection(::accept4(s.fd.get(), &peer.base, &peer.bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return;
    description_["payload"] = payload_now();
    const std::string text = description_.dump() + "\n";
    // A fresh connection has room for one line; whoever does not read it gets none.
    [[maybe_unused]] const ssize_t n = ::send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL);
    tell(fmt::format("{} asked over TCP", to_text(peer.ip())));
  }

  // Answers from the very address that was asked: the control message that brought it goes back with the answer.
  void answer(const Socket& s) {
    SocketAddress peer;
    iovec part{buffer_.data(), buffer_.size()};
    alignas(cmsghdr) std::array<char, 128> control{};
    msghdr m{};
    m.msg_name = &peer.base;
    m.msg_namelen = peer.bytes;
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    m.msg_control = control.data();
    m.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(s.fd.get(), &m, 0);
    if (n <= 0) return;
    const auto question = read_question({buffer_.data(), static_cast<size_t>(n)});
    if (!question) return;
    peer.bytes = m.msg_namelen;
    const std::string text =
        write_answer({question->nonce, peer.text(), to_text(destination_of(&m))}, question->answer_bytes);
    if (text.size() > static_cast<size_t>(n)) return;
    part = {const_cast<char*>(text.data()), text.size()};
    ::sendmsg(s.fd.get(), &m, 0);
    tell(fmt::format("{} asked over UDP {}", to_text(peer.ip()), s.port));
  }

  // Also forgets the interface, so that the answer takes the route.
  static wire::IpAddress destination_of(msghdr* m) {
    for (cmsghdr* c = CMSG_FIRSTHDR(m); c != nullptr; c = CMSG_NXTHDR(m, c)) {
      if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
        auto* info = reinterpret_cast<in_pktinfo*>(CMSG_DATA(c));
        info->ipi_ifindex = 0;
        info->ipi_spec_dst = info->ipi_addr;
        return wire::IpAddress::from_v4(ntohl(info->ipi_addr.s_addr));
      }
      if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
        auto* info = reinterpret_cast<in6_pktinfo*>(CMSG_DATA(c));
        info->ipi6_ifindex = 0;
        wire::IpAddress ip;
        std::memcpy(ip.bytes.data(), &info->ipi6_addr, 16);
        return ip;
      }
    }
    return {};
  }

  // Once for each.
  void tell(const std::string& line) {
    if (told_.size() > 1000 || !told_.insert(line).second) return;
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  const Config& config_;
  std::vector<AddressFacts> addresses_;
  uint16_t ub_port_, port_;
  std::string holder_;
  nlohmann::json description_;
  std::vector<Socket> sockets_;
  std::array<char, 65536> buffer_;
  std::set<std::string> told_;
};

}  // namespace

int answer_doctors(const Config& c, const HostFacts& f, uint16_t port) {
  auto responder = std::make_unique<Responder>(c, f, port);
  std::string error;
  end_on_signals();
  if (!responder->open(&error)) {
    fmt::print(stderr, "urma_admin: {}\n", error);
    return 1;
  }
  responder->run();
  return 0;
}

}  // namespace ub::tools
