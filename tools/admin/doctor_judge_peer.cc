// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "dataplane/eid.h"
#include "tools/admin/doctor.h"

namespace ub::tools {
namespace {

constexpr uint32_t kLeastPath = 1148;  // set-up at the least payload, 1024, over IPv6

Finding judge_name(const PeerFacts& f) {
  if (!f.address_error.empty())
    return {"peer", Verdict::kProblem, f.wanted + ": " + f.address_error, "give an IP address"};
  return {"peer", Verdict::kOk, f.wanted == f.address ? f.address : f.wanted + " is " + f.address, ""};
}

Finding judge_route(const PeerFacts& f) {
  const RouteFacts& r = f.route;
  if (!r.error.empty()) {
    return {"route", Verdict::kProblem, fmt::format("to {}: {}", f.address, r.error),
            fmt::format("ip route get {}; device.eids must name an address that leads there", f.address)};
  }
  Finding out{"route", Verdict::kOk,
              fmt::format("from {} on {}, {}, MTU {}", r.source, r.interface,
                          r.next_hop.empty() ? "no router between" : "through " + r.next_hop, r.interface_mtu),
              ""};
  if (r.source_is_eid) return out;
  out.verdict = Verdict::kWarning;
  out.found += "; the kernel itself would send from another address of this host";
  out.advice = "name the addresses to use, the best first: device.eids = [\"ADDRESS\"]; ip route get " + f.address;
  return out;
}

// ---- does anything answer? -------------------------------------------------------------------------------------

std::string allow(uint16_t port) {
  return fmt::format(
      "on both hosts, as root: nft insert rule inet filter input udp dport {0} accept, or iptables -I INPUT -p udp "
      "--dport {0} -j ACCEPT, or ufw allow {0}/udp; in a cloud: the security group",
      port);
}

Finding judge_silence(const PeerFacts& f) {
  Finding r{"peer answers", Verdict::kProblem, "", ""};
  const std::string start = fmt::format("on {}: urma_admin doctor --listen", f.address);
  const std::string& error = !f.probe.error.empty() ? f.probe.error : f.ub.error;
  if (f.tcp_error.empty()) {
    r.found = fmt::format("UDP is blocked: TCP {} answers, UDP {} and UDP {} do not{}", f.probe.port, f.probe.port,
                          f.ub.port, error.empty() ? "" : " (" + error + ")");
    r.advice = allow(f.ub.port);
  } else if (f.probe.refused || f.tcp_error == "Connection refused") {
    r.found = "the host is there, but no doctor listens";
    r.advice = start;
  } else {
    r.found = "nothing comes back: " + (error.empty() ? "TCP and UDP are silent" : error);
    r.advice = start + fmt::format(", and ping {}; if both are well, a firewall drops UDP {}", f.address, f.ub.port);
  }
  return r;
}

Finding judge_ub_port(const PeerFacts& f) {
  Finding r{fmt::format("UDP {} of the peer", f.ub.port), Verdict::kOk, "", ""};
  if (f.ub.answered) {
    r.found = fmt::format("open, round trip {:.0f} us", f.ub.best_us);
  } else if (!f.peer_holder.empty()) {
    r.verdict = Verdict::kSkipped;
    r.found = fmt::format("not tried: {} has it; UDP {} passes", f.peer_holder, f.probe.port);
    r.advice = "end that program, start urma_admin doctor --listen again, and repeat";
  } else if (!f.peer_listens) {
    r.verdict = Verdict::kWarning;
    r.found = fmt::format("silent, UDP {} passes; whether somebody listens there is not known", f.probe.port);
    r.advice = allow(f.ub.port);
  } else {
    r.verdict = Verdict::kProblem;
    r.found = fmt::format("blocked, though UDP {} passes and the responder listens on both{}", f.probe.port,
                          f.ub.error.empty() ? "" : " (" + f.ub.error + ")");
    r.advice = allow(f.ub.port);
  }
  return r;
}

Finding judge_tcp(const PeerFacts& f) {
  if (f.tcp_error.empty()) return {"TCP", Verdict::kOk, fmt::format("port {} answers", f.probe.port), ""};
  return {"TCP", Verdict::kWarning,
          fmt::format("port {}: {}; liburma needs no TCP, but urma_perf, urma_pingpong and file_copy do", f.probe.port,
                      f.tcp_error),
          "open their ports: 21115, 21116, 21117"};
}

// ---- addresses -------------------------------------------------------------------------------------------------

Findings judge_translation(const PortFacts& p) {
  Findings out;
  const std::string why =
      "SoftUB does not cross NAT: both ends must see each other's own addresses (a common network, "
      "a routed one, or a tunnel such as WireGuard between them)";
  if (p.seen_source != p.source) {
    out.push_back({"NAT", Verdict::kProblem,
                   fmt::format("sent from {}, and seen by the peer as {}", p.source, p.seen_source), why});
  }
  if (p.seen_destination != p.destination) {
    out.push_back({"NAT", Verdict::kProblem,
                   fmt::format("sent to {}, and arrived at {}", p.destination, p.seen_destination), why});
  }
  if (out.empty()) out.push_back({"NAT", Verdict::kOk, "none: the peer sees " + p.seen_source, ""});
  return out;
}

Findings judge_eids(const PeerFacts& f) {
  if (f.peer_eids.empty()) return {};
  const std::string list = joined(f.peer_eids);
  if (std::find(f.peer_eids.begin(), f.peer_eids.end(), f.address) != f.peer_eids.end())
    return {{"EIDs of the peer", Verdict::kOk, list, ""}};
  return {{"EIDs of the peer", Verdict::kWarning, fmt::format("{}, and not {}", list, f.address),
           fmt::format("on the peer: device.eids = [\"{}\"], if programs shall meet there", f.address)}};
}

// ---- sizes -----------------------------------------------------------------------------------------------------

// The largest size below the first that does not pass.
uint32_t largest(const std::vector<SizeFacts>& sizes, bool SizeFacts::*passed) {
  uint32_t bytes = 0;
  for (const SizeFacts& s : sizes) {
    if (!s.sent || !(s.*passed)) break;
    bytes = s.ip_bytes;
  }
  return bytes;
}

Finding judge_path(const PeerFacts& f) {
  const uint32_t forward = largest(f.sizes, &SizeFacts::forward);
  const uint32_t path = std::min(forward, largest(f.sizes, &SizeFacts::back));
  const uint32_t wanted = f.peer_payload == 0 ? f.own_payload : std::min(f.own_payload, f.peer_payload);
  const uint32_t fits = payload_for_interface_mtu(path);
  const bool told = f.route.kernel_mtu != 0 && f.route.kernel_mtu < f.route.interface_mtu;
  uint32_t lost = 0;
  for (const SizeFacts& s : f.sizes)
    if (s.sent && s.ip_bytes > path && lost == 0) lost = s.ip_bytes;

  Finding r{"path MTU", Verdict::kOk,
            fmt::format("IP packets of {} bytes pass with \"don't fragment\": {} bytes of payload", path,
                        std::min(wanted, fits)),
            ""};
  if (lost == 0) return r;
  r.found =
      fmt::format("IP packets of {} bytes pass, those of {} do not{}", path, lost, forward > path ? " come back" : "");
  r.found += told ? fmt::format("; the kernel was told {}", f.route.kernel_mtu) : "; nobody said so: an MTU black hole";
  const std::string look =
      fmt::format("the MTU of an interface on the way is smaller than {}: ip link, tracepath -n {}", lost, f.address);
  if (path < kLeastPath) {
    r.verdict = Verdict::kProblem;
    r.found += fmt::format("; SoftUB needs {}", kLeastPath);
    r.advice = look;
  } else if (fits < wanted) {
    r.verdict = Verdict::kWarning;
    r.found += fmt::format("; set-up finds that out, and agrees on {} of payload instead of {}", fits, wanted);
    r.advice = fmt::format("{}; or spare the search: port.mtu = {} on both hosts", look, fits);
  } else {
    r.verdict = told ? Verdict::kOk : Verdict::kWarning;
    r.found += fmt::format("; {} bytes of payload fit", wanted);
    if (!told) r.advice = look + " (TCP suffers from it, SoftUB does not)";
  }
  return r;
}

}  // namespace

Findings judge_peer(const PeerFacts& f) {
  Findings out{judge_name(f)};
  auto append = [&out](const Findings& more) { out.insert(out.end(), more.begin(), more.end()); };
  if (!f.address_error.empty()) return out;
  out.push_back(judge_route(f));
  if (!f.route.error.empty()) return out;
  if (!f.probe.answered && !f.ub.answered) {
    out.push_back(judge_silence(f));
    return out;
  }
  out.push_back(judge_ub_port(f));
  out.push_back(judge_tcp(f));
  append(judge_translation(f.ub.answered ? f.ub : f.probe));
  append(judge_eids(f));
  out.push_back(judge_path(f));
  return out;
}

}  // namespace ub::tools
