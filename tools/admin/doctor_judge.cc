// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/eid.h"
#include "tools/admin/doctor.h"
#include "tools/admin/doctor_firewall.h"

namespace ub::tools {
namespace {

constexpr uint64_t kFilesEnough = 1024;
constexpr uint64_t kMapsEnough = 65530;
constexpr uint64_t kDpdkBytes = 256ULL << 20;  // what the plugin asks for where dpdk.arguments say nothing
constexpr uint32_t kLoopbackPayload = 4096;

bool uses(const Config& c, const char* kind) {
  return std::find(c.port.kinds.begin(), c.port.kinds.end(), kind) != c.port.kinds.end();
}

std::string quoted_list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", w);
  return "[" + text + "]";
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ';');
  return text;
}

Finding judge_config(const HostFacts& f) {
  Finding r{"configuration", Verdict::kOk, "", ""};
  if (!f.config_error.empty()) {
    r.verdict = Verdict::kProblem;
    r.found = one_line(f.config_error);
    r.advice = "correct that line; programs do not start before. What follows is judged with the defaults";
  } else if (f.config_files.empty()) {
    r.found = "no file: everything is at its default or from the environment; see urma_admin config --changed";
  } else {
    r.found = fmt::format("read {}", joined(f.config_files));
  }
  return r;
}

Finding judge_placement(const HostFacts& f, const Config& c) {
  const std::string& mode = c.placement.mode;
  if (mode == "embedded") return {"placement", Verdict::kOk, "embedded: the NIC runs in each program", ""};
  const DaemonFacts::Socket& s = f.daemon.socket;
  if (s.exists && s.error.empty())
    return {"placement", Verdict::kOk,
            mode + ": a daemon answers at " + s.path +
                " and has the NIC; wires and addresses below are what this "
                "program would open itself",
            ""};
  const std::string tried = s.path + ": " + (s.exists ? s.error : "not there");
  if (s.exists && mode == "daemon") {
    return {
        "placement", Verdict::kProblem, mode + ", but none answers (" + tried + ")",
        "\"permission denied\": daemon.access of softubd says whom it serves, and its directory must be open to them; "
        "\"connection refused\": it is dead, start it again"};
  }
  if (mode == "auto") return {"placement", Verdict::kOk, "auto: embedded, for no daemon answers (" + tried + ")", ""};
  return {"placement", Verdict::kProblem, mode + ", but none answers (" + tried + ")",
          "start softubd, set daemon.socket to where it listens, or placement.mode = \"embedded\""};
}

Finding judge_wires(const Config& c) {
  const std::string kinds = joined(c.port.kinds);
  if (uses(c, "udp") || uses(c, "dpdk")) return {"wires", Verdict::kOk, kinds, ""};
  return {"wires", Verdict::kWarning, kinds + ": no wire leads to another host",
          "port.kinds = " + quoted_list({"shm", "udp"})};
}

// "eth0", and what its MTU gives.
Finding judge_address(const AddressFacts& a, const Config& c) {
  Finding r{"EID " + a.eid, Verdict::kOk, "", ""};
  const std::string where = a.ip == a.eid ? "" : "at " + a.ip + " ";
  if (a.dpdk) {
    r.found = where + "on the DPDK device";
    return r;
  }
  const uint32_t fits = payload_for_interface_mtu(a.interface_mtu);
  const uint32_t loopback_fits = std::min(fits, kLoopbackPayload);
  const uint32_t payload = c.port.mtu != 0 ? c.port.mtu : a.loopback ? loopback_fits : fits;
  r.found = fmt::format("{}on {}, MTU {}: {} bytes of payload a packet", where,
                        a.interface.empty() ? "no interface by name" : a.interface, a.interface_mtu, payload);
  if (a.loopback) {
    r.verdict = Verdict::kWarning;
    r.found += "; only this host reaches it";
    r.advice = "give an interface an address (ip address add ...), or name one: device.eids = [\"ADDRESS\"]";
  } else if (!a.up) {
    r.verdict = Verdict::kProblem;
    r.found += "; the interface is down or has no carrier";
    r.advice = fmt::format("ip link set {} up; then the cable, or the other end", a.interface);
  } else if (payload > fits) {
    r.verdict = Verdict::kProblem;
    r.found += ", which does not fit";
    r.advice = fmt::format("port.mtu = {} (or ip link set {} mtu {})", fits, a.interface,
                           payload == 8192 ? 9000 : payload + 163);
  } else if (a.interface_mtu < 1280) {
    r.verdict = Verdict::kWarning;
    r.found += "; large packets will be lost";
    r.advice = fmt::format("ip link set {} mtu 1500", a.interface);
  }
  return r;
}

Finding judge_port(const AddressFacts& a, const Config& c) {
  Finding r{fmt::format("UDP port {}", c.port.udp_port), Verdict::kOk, "free on " + a.ip, ""};
  if (a.bind_error == 0) return r;
  if (a.bind_error != EADDRINUSE) {
    r.verdict = Verdict::kProblem;
    r.found = fmt::format("cannot be bound on {}: {}", a.ip, std::strerror(a.bind_error));
    r.advice = a.bind_error == EACCES ? "port.udp_port = 4792 (ports below 1024 need privileges)"
                                      : "device.eids must name addresses of this host: ip -br address";
    return r;
  }
  r.found = fmt::format("taken on {} by {}: the next program takes an ephemeral port, which works as well", a.ip,
                        a.holder.empty() ? "a process of another user" : a.holder);
  if (a.holder_is_ours) return r;
  r.verdict = Verdict::kWarning;
  r.advice = fmt::format(
      "as root: ss -ulpn sport = :{} says who it is; port.udp_port = another, if it is no UB program", c.port.udp_port);
  return r;
}

Finding judge_echo(const AddressFacts& a) {
  if (a.echo) return {"UDP to itself", Verdict::kOk, "a datagram from " + a.ip + " to itself arrived", ""};
  return {"UDP to itself", Verdict::kProblem, "a datagram from " + a.ip + " to itself was lost",
          "a firewall rule stops it, or the loopback interface is down: ip link set lo up; as root: nft list ruleset"};
}

Finding judge_buffers(const BufferFacts& b, const Config& c) {
  Finding r{"socket buffers", Verdict::kOk, "", ""};
  if (!b.error.empty()) return {r.item, Verdict::kProblem, b.error, "see the other items"};
  r.found = fmt::format("send {} KiB of {}, receive {} KiB of {}", b.send >> 10, c.port.udp_sndbuf >> 10,
                        b.receive >> 10, c.port.udp_rcvbuf >> 10);
  std::vector<std::string> missing;
  if (b.receive < c.port.udp_rcvbuf) missing.push_back(fmt::format("net.core.rmem_max={}", c.port.udp_rcvbuf));
  if (b.send < c.port.udp_sndbuf) missing.push_back(fmt::format("net.core.wmem_max={}", c.port.udp_sndbuf));
  if (missing.empty()) return r;
  r.verdict = Verdict::kWarning;
  r.found += ": a burst that does not fit is lost and sent again";
  r.advice = fmt::format("as root: sysctl -w {} (to keep it: the same lines in /etc/sysctl.d/softub.conf)",
                         joined(missing, " "));
  return r;
}

Finding judge_hugepages(const HostFacts& f, const Config& c) {
  std::string pools;
  uint64_t free_bytes = 0;
  for (const HugepagePool& p : f.hugepages) {
    pools += fmt::format("{}{} free of {} of {} KiB", pools.empty() ? "" : ", ", p.free, p.total, p.kib);
    free_bytes += p.free * p.kib << 10;
  }
  if (pools.empty()) pools = "the kernel has none";
  Finding r{"hugepages", Verdict::kOk, pools, ""};
  if (!uses(c, "dpdk")) {
    r.found += "; shared memory and UDP need none";
  } else if (!wants_hugepages(c.dpdk.arguments)) {
    r.found += "; dpdk.arguments ask for none (256 MiB of ordinary memory serve)";
  } else if (free_bytes < kDpdkBytes) {
    r.verdict = Verdict::kProblem;
    r.found += "; dpdk.arguments ask for them";
    r.advice = "as root: echo 256 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages, or dpdk.arguments = []";
  }
  return r;
}

Findings judge_limits(const LimitFacts& l, const std::vector<DpdkDeviceFacts>& devices, const Config& c) {
  Findings out;
  Finding files{"open files", Verdict::kOk, fmt::format("{} (hard limit {})", l.files, l.files_hard), ""};
  if (l.files < kFilesEnough) {
    files.verdict = Verdict::kWarning;
    files.found += ": each peer process of this host takes some";
    files.advice = fmt::format("ulimit -n {}", std::min<uint64_t>(l.files_hard, 65536));
  }
  out.push_back(files);

  Finding maps{"memory maps", Verdict::kOk, fmt::format("vm.max_map_count = {}", l.maps), ""};
  if (l.maps < kMapsEnough) {
    maps.verdict = Verdict::kWarning;
    maps.found += ": each queue takes one";
    maps.advice = fmt::format("as root: sysctl -w vm.max_map_count={}", kMapsEnough);
  }
  out.push_back(maps);

  const bool pins = uses(c, "dpdk") && std::any_of(devices.begin(), devices.end(), [](const DpdkDeviceFacts& d) {
                      const DeviceName::Kind kind = parse_device(d.devargs).kind;
                      return kind == DeviceName::Kind::kPci || kind == DeviceName::Kind::kAfXdp;
                    });
  const std::string amount = l.locked == UINT64_MAX ? "no limit" : fmt::format("{} KiB", l.locked >> 10);
  Finding locked{"locked memory", Verdict::kOk, amount + (pins ? "" : "; nothing that is configured needs any"), ""};
  if (pins && l.locked < kDpdkBytes) {
    locked.verdict = Verdict::kWarning;
    locked.found += ": a device that reads memory by itself needs its buffers pinned (256 MiB)";
    locked.advice = "ulimit -l unlimited (to keep it: a line in /etc/security/limits.d, or LimitMEMLOCK=infinity)";
  }
  out.push_back(locked);
  return out;
}

Findings judge_kernel(const KernelFacts& k) {
  Findings out;
  out.push_back(k.memfd_error.empty()
                    ? Finding{"shared memory", Verdict::kOk, "sealed memfd can be made (/dev/shm is not used)", ""}
                    : Finding{"shared memory", Verdict::kProblem, k.memfd_error,
                              "let the sandbox allow memfd_create, or port.kinds = [\"udp\"]"});
  out.push_back(k.membarrier ? Finding{"membarrier", Verdict::kOk, "available", ""}
                             : Finding{"membarrier", Verdict::kWarning,
                                       "refused: a fence takes its place, which costs some nanoseconds an operation",
                                       "let the sandbox (seccomp) allow membarrier"});
  return out;
}

Finding judge_directory(const DirectoryFacts& d, const Config& c) {
  Finding r{"rendezvous", Verdict::kOk, d.path, ""};
  if (!uses(c, "shm")) {
    r.found += "; not used without the wire shm";
    return r;
  }
  constexpr size_t kLongestName = 32 + 1 + 5 + 6;  // EID, '-', port, ".sock" and '/'
  r.verdict = Verdict::kProblem;
  if (d.path.size() + kLongestName > 107) {
    r.found += " is too long for the sockets in it";
    r.advice = "port.shm_dir = \"/run/user/" + std::to_string(d.self) + "/softub\"";
  } else if (!d.exists && !d.parent_writable) {
    r.found += " is not there and cannot be made";
    r.advice = "make the folder above it, or port.shm_dir = a folder of yours";
  } else if (!d.exists) {
    r.verdict = Verdict::kOk;
    r.found += ", made by the first program";
  } else if (!d.is_directory) {
    r.found += " is no directory";
    r.advice = "rm " + d.path;
  } else if (d.owner != d.self) {
    r.found += fmt::format(" belongs to user {}, and this is user {}", d.owner, d.self);
    r.advice = "run as that user, or port.shm_dir = a folder of yours";
  } else if ((d.mode & 022) != 0) {
    r.found += fmt::format(" has mode {:04o}: others may write there", d.mode);
    r.advice = "chmod 700 " + d.path;
  } else {
    r.verdict = Verdict::kOk;
    r.found += fmt::format(", mode {:04o}", d.mode);
  }
  return r;
}

std::vector<uint32_t> not_allowed(const std::vector<uint32_t>& cores, const CpuFacts& p) {
  std::vector<uint32_t> missing;
  for (uint32_t core : cores)
    if (std::find(p.allowed.begin(), p.allowed.end(), core) == p.allowed.end()) missing.push_back(core);
  return missing;
}

Findings judge_cpus(const HostFacts& f, const Config& c) {
  const CpuFacts& p = f.cpus;
  Findings out;
  Finding cpus{"CPUs", Verdict::kOk,
               fmt::format("{} of {} may be used, {} NUMA node{}", p.allowed.size(), p.online, p.numa_nodes,
                           p.numa_nodes == 1 ? "" : "s"),
               ""};
  if (p.quota > 0) cpus.found += fmt::format(", the control group grants {:.1f}", p.quota);
  const auto of_dpdk = not_allowed(uses(c, "dpdk") ? cores_of(c.dpdk.arguments) : std::vector<uint32_t>{}, p);
  const auto of_daemon = not_allowed(f.daemon.cores, p);
  if (!of_dpdk.empty() || !of_daemon.empty()) {
    const auto& [key, missing] =
        of_dpdk.empty() ? std::pair{"daemon.cores", of_daemon} : std::pair{"dpdk.arguments", of_dpdk};
    cpus.verdict = Verdict::kProblem;
    cpus.found += fmt::format("; {} has {}, which may not", key, joined(missing));
    cpus.advice = fmt::format("{}: only of {}", key, joined(p.allowed));
  } else if (p.allowed.size() < 2 || (p.quota > 0 && p.quota < 2)) {
    cpus.verdict = Verdict::kWarning;
    cpus.found += "; a program that polls leaves none for its peer on this host, or for the NIC's helper";
    cpus.advice = "give it two: taskset -c 0,1, docker run --cpus 2, resources.limits.cpu of a pod";
  }
  out.push_back(cpus);
  const auto& nodes = p.allowed_nodes;
  if (!uses(c, "dpdk") || p.numa_nodes < 2) return out;
  for (const DpdkDeviceFacts& d : f.dpdk.devices) {
    if (d.numa_node < 0 || std::find(nodes.begin(), nodes.end(), static_cast<uint32_t>(d.numa_node)) != nodes.end()) {
      continue;
    }
    out.push_back({"NUMA", Verdict::kWarning,
                   fmt::format("{} is at node {}, the CPUs of this process are not", d.devargs, d.numa_node),
                   fmt::format("numactl --cpunodebind={0} --membind={0} PROGRAM", d.numa_node)});
  }
  return out;
}

// ---- DPDK ------------------------------------------------------------------------------------------------------

Finding judge_pci(const DeviceName& device, const DpdkDeviceFacts& d) {
  Finding r{"DPDK device", Verdict::kProblem, "PCI " + device.pci, ""};
  const std::string bind = "as root: modprobe vfio-pci && dpdk-devbind.py --bind=vfio-pci " + device.pci;
  if (!d.present) {
    r.found += " does not exist";
    r.advice = "lspci -D | grep -i ethernet";
  } else if (d.driver == "mlx5_core") {
    r.verdict = Verdict::kOk;
    r.found += " stays with mlx5_core, as it should";
  } else if (d.driver != "vfio-pci") {
    r.found += d.driver.empty() ? " has no driver" : " is bound to " + d.driver;
    r.advice = bind + " (the kernel loses the interface: never the one you are logged in by)";
  } else if (!d.vfio) {
    r.found += ": there is no /dev/vfio/vfio here";
    r.advice = "as root: modprobe vfio-pci; in a container: --device /dev/vfio";
  } else if (d.iommu_group.empty() && !d.unsafe_noiommu) {
    r.found += " has no IOMMU group";
    r.advice =
        "switch the IOMMU on (firmware, and intel_iommu=on or amd_iommu=on); in a VM without one, as root: "
        "echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
  } else if (!d.group_error.empty()) {
    r.found += fmt::format(", /dev/vfio/{}: {}", d.iommu_group, d.group_error);
    r.advice =
        fmt::format("as root: chown $USER /dev/vfio/{}; \"busy\" means that another process has it", d.iommu_group);
  } else {
    r.verdict = Verdict::kOk;
    r.found += " is bound to vfio-pci and may be opened";
  }
  return r;
}

Finding judge_interface(const DeviceName& device, const DpdkDeviceFacts& d) {
  Finding r{"DPDK device", Verdict::kProblem, fmt::format("{} on {}", device.driver, device.interface), ""};
  const bool xdp = device.kind == DeviceName::Kind::kAfXdp;
  if (device.interface.empty()) {
    r.found = device.driver + " names no interface";
    r.advice = fmt::format("dpdk.device = \"{}0,iface=eth1\"", device.driver);
  } else if (d.interface_mtu == 0) {
    r.found += ": there is no such interface";
    r.advice = "ip -br link";
  } else if (!d.raw_socket_error.empty()) {
    r.found += fmt::format(": no {} socket: {}", xdp ? "AF_XDP" : "AF_PACKET", d.raw_socket_error);
    r.advice = xdp ? "run as root, or setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM; the kernel needs "
                     "CONFIG_XDP_SOCKETS"
                   : "run as root, or setcap cap_net_raw+ep PROGRAM";
  } else if (xdp && d.interface_mtu > 3498) {
    // One page a frame: the driver's room in front and behind is taken off.
    r.verdict = Verdict::kWarning;
    r.found += fmt::format(", MTU {}: most drivers refuse XDP above some 3498", d.interface_mtu);
    r.advice = fmt::format("ip link set {} mtu 3498, port.mtu = 2048", device.interface);
  } else {
    r.verdict = Verdict::kOk;
    r.found += fmt::format(", MTU {}", d.interface_mtu);
  }
  return r;
}

Finding judge_socket_device(const DeviceName& device, const DpdkDeviceFacts& d) {
  Finding r{"DPDK device", Verdict::kOk, device.driver, ""};
  if (device.socket.empty()) return r;
  r.found += ", socket " + device.socket;
  if (d.socket_directory_usable) return r;
  r.verdict = Verdict::kProblem;
  r.found += ": its folder is not there or not writable";
  r.advice = "mkdir -p " + d.socket_directory;
  return r;
}

Finding judge_device(const DpdkDeviceFacts& d) {
  const DeviceName device = parse_device(d.devargs);
  switch (device.kind) {
    case DeviceName::Kind::kBad:
      return {"DPDK device", Verdict::kProblem, device.error,
              "dpdk.device = \"0000:01:00.0\", \"net_af_xdp0,iface=eth1\", or another driver and its arguments"};
    case DeviceName::Kind::kPci:
      return judge_pci(device, d);
    case DeviceName::Kind::kAfPacket:
    case DeviceName::Kind::kAfXdp:
      return judge_interface(device, d);
    case DeviceName::Kind::kSocket:
      return judge_socket_device(device, d);
    case DeviceName::Kind::kOther:
      break;
  }
  return {"DPDK device", Verdict::kSkipped, device.driver + ": nothing known about what it needs",
          "urma_admin devices opens it, and says what DPDK says"};
}

Findings judge_dpdk(const Config& c, const DpdkFacts& d) {
  if (!uses(c, "dpdk")) return {};
  Findings out;
  if (d.plugin_error.empty()) {
    out.push_back({"DPDK plugin", Verdict::kOk, d.plugin_path, ""});
  } else {
    out.push_back({"DPDK plugin", Verdict::kProblem, d.plugin_error,
                   "dpdk.plugin = \"/PATH/libsoftub_dpdk.so.0\"; it is built where libdpdk-dev is installed"});
  }
  if (d.devices.empty()) out.push_back(judge_device({}));
  for (const DpdkDeviceFacts& device : d.devices) out.push_back(judge_device(device));
  if (!d.assignment_error.empty()) {
    out.push_back({"DPDK addresses", Verdict::kProblem, d.assignment_error + "; each device is an IP host of its own",
                   "dpdk.addresses = [\"10.9.0.1/24\"]"});
  }
  return out;
}

}  // namespace

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : between) + w;
  return text;
}

std::string joined(const std::vector<uint32_t>& numbers) {
  std::vector<std::string> words;
  for (uint32_t n : numbers) words.push_back(std::to_string(n));
  return joined(words);
}

uint32_t payload_of(const Config& c, const std::vector<AddressFacts>& addresses) {
  if (c.port.mtu != 0) return c.port.mtu;
  uint32_t payload = 8192;
  for (const AddressFacts& a : addresses) {
    const uint32_t fits = payload_for_interface_mtu(a.interface_mtu);
    payload = std::min(payload, a.loopback ? std::min(fits, kLoopbackPayload) : fits);
  }
  return payload;
}

Findings judge_host(const HostFacts& f, const Config& c) {
  Findings out{judge_config(f), judge_placement(f, c), judge_wires(c)};
  auto append = [&out](const Findings& more) { out.insert(out.end(), more.begin(), more.end()); };
  if (!f.eid_error.empty()) {
    out.push_back({"EIDs", Verdict::kProblem, f.eid_error, "device.eids = [\"an address of: ip -br address\"]"});
  }
  for (const AddressFacts& a : f.addresses) {
    out.push_back(judge_address(a, c));
    if (a.dpdk || !uses(c, "udp")) continue;
    out.push_back(judge_port(a, c));
    out.push_back(judge_echo(a));
  }
  if (uses(c, "udp")) {
    out.push_back(judge_firewall(f.firewall, static_cast<uint16_t>(c.port.udp_port)));
    out.push_back(judge_buffers(f.buffers, c));
  }
  append(judge_kernel(f.kernel));
  out.push_back(judge_directory(f.directory, c));
  append(judge_limits(f.limits, f.dpdk.devices, c));
  append(judge_cpus(f, c));
  out.push_back(judge_hugepages(f, c));
  append(judge_dpdk(c, f.dpdk));
  return out;
}

}  // namespace ub::tools
