// SPDX-License-Identifier: Apache-2.0
//
// urma_admin doctor: does this host have what SoftUB needs, and does the way to a peer?
//
// Looking and judging are apart. doctor_host.cc and doctor_peer.cc look and fill the facts below; doctor_judge.cc
// and doctor_judge_peer.cc turn facts into findings, know no operating system, and are tested with invented facts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/config.h"

namespace ub::tools {

enum class Verdict : uint8_t { kOk, kSkipped, kWarning, kProblem };

struct Finding {
  std::string item;
  Verdict verdict = Verdict::kOk;
  std::string found;
  std::string advice;  // a command or a line of the configuration; empty if nothing is to be done
};
using Findings = std::vector<Finding>;

constexpr uint16_t kDoctorPort = 4793;  // beside 4792: the responder must not take the port of an instance

// ---- facts about this host -------------------------------------------------------------------------------------

// One EID and the socket that stands behind it.
struct AddressFacts {
  std::string eid, ip;
  std::string interface;  // empty: no interface has the address
  uint32_t interface_mtu = 0;
  bool up = true;
  bool loopback = false;
  bool dpdk = false;            // served by a DPDK device: the kernel knows nothing of it
  int bind_error = 0;           // errno of binding port.udp_port, 0: it is free
  std::string holder;           // who has the port, as far as this user may see: "pid 17, urma_perf"
  bool holder_is_ours = false;  // an instance of SoftUB
  bool echo = true;             // a datagram from the address to itself arrived
};

// Where applications look for a daemon.
struct DaemonFacts {
  struct Socket {
    std::string path;
    bool exists = false;
    std::string error;  // of connecting; empty: somebody answered
  };
  Socket socket;
  std::vector<uint32_t> cores;  // daemon.cores
};

struct DirectoryFacts {
  std::string path;
  bool configured = false;  // port.shm_dir names it
  bool exists = false;
  bool is_directory = false;
  bool parent_writable = false;
  uint32_t owner = 0, self = 0, mode = 0;
};

struct FirewallFacts {
  struct Rules {
    std::string tool;  // "nft", "iptables", "ip6tables"
    std::string text;  // of `nft -a list ruleset`, or `iptables-save`
  };
  std::vector<Rules> rules;  // empty: none could be read
  bool privileged = false;   // the effective user is root
};

struct HugepagePool {
  uint64_t kib = 0, total = 0, free = 0;
};

struct LimitFacts {
  uint64_t files = 0, files_hard = 0;  // RLIMIT_NOFILE
  uint64_t locked = 0;                 // RLIMIT_MEMLOCK, bytes; UINT64_MAX: none
  uint64_t maps = 0;                   // vm.max_map_count
};

struct BufferFacts {
  uint64_t send = 0, receive = 0;  // what the kernel granted of port.udp_sndbuf and port.udp_rcvbuf
  std::string error;
};

struct KernelFacts {
  bool membarrier = true;
  std::string memfd_error;  // empty: sealed shared memory can be made
};

struct CpuFacts {
  uint32_t online = 1;
  std::vector<uint32_t> allowed;  // by affinity
  double quota = 0;               // CPUs that the control group grants; 0: no limit
  uint32_t numa_nodes = 1;
  std::vector<uint32_t> allowed_nodes;
};

struct DpdkDeviceFacts {
  std::string devargs;
  // A PCI device.
  bool present = false;
  std::string driver;       // bound to it, empty: none
  std::string iommu_group;  // empty: none
  std::string group_error;  // of opening /dev/vfio/<group>; empty: may be used
  bool vfio = false;        // /dev/vfio/vfio is there
  bool unsafe_noiommu = false;
  int numa_node = -1;
  // A device on top of a kernel's interface (af_packet, af_xdp), or on a socket (memif, vhost).
  uint32_t interface_mtu = 0;    // 0: there is no such interface
  std::string raw_socket_error;  // of the address family that the driver needs
  std::string socket_directory;  // where its socket will be
  bool socket_directory_usable = true;
};

struct DpdkFacts {
  std::string plugin_error, plugin_path;
  std::vector<DpdkDeviceFacts> devices;
  std::string assignment_error;  // of devices and addresses to each other
};

struct HostFacts {
  std::string config_error;  // of loading; then defaults are judged
  std::vector<std::string> config_files;
  std::string eid_error;
  std::vector<AddressFacts> addresses;
  DaemonFacts daemon;
  DirectoryFacts directory;
  FirewallFacts firewall;
  std::vector<HugepagePool> hugepages;
  LimitFacts limits;
  BufferFacts buffers;
  KernelFacts kernel;
  CpuFacts cpus;
  DpdkFacts dpdk;
};

HostFacts look_at_host(const ConfigResult&, const Config& in_force);
Findings judge_host(const HostFacts&, const Config&);

// ---- a DPDK device by its devargs ------------------------------------------------------------------------------

struct DeviceName {
  enum class Kind : uint8_t { kBad, kPci, kAfPacket, kAfXdp, kSocket, kOther };
  Kind kind = Kind::kBad;
  std::string driver;     // "net_memif", empty for PCI
  std::string pci;        // "0000:01:00.0"
  std::string interface;  // of af_packet and af_xdp
  std::string socket;     // path of memif, vhost and virtio-user; empty: none, or an abstract one
  std::string error;      // of kBad, a sentence
};
DeviceName parse_device(const std::string& devargs);
// The cores that DPDK's arguments name ("-l", "--lcores"), as far as they are plain lists and ranges.
std::vector<uint32_t> cores_of(const std::vector<std::string>& arguments);
bool wants_hugepages(const std::vector<std::string>& arguments);

// ---- facts about a peer ----------------------------------------------------------------------------------------

struct RouteFacts {
  std::string error;  // empty: there is a route
  std::string source, interface, next_hop;
  uint32_t interface_mtu = 0;
  uint32_t kernel_mtu = 0;  // what the kernel knows of the path, after the probes
  bool source_is_eid = true;
};

// Small datagrams to one port of the peer.
struct PortFacts {
  uint16_t port = 0;
  bool answered = false;
  std::string error;     // what came back instead: an ICMP message, or what our own kernel said
  bool refused = false;  // the error is "nobody listens there", or a firewall that says so
  double best_us = 0;
  std::string source, seen_source;            // "address:port" here, and as it arrived
  std::string destination, seen_destination;  // addresses, likewise
};

struct SizeFacts {
  uint32_t ip_bytes = 0;
  bool sent = false;     // our own interface took it
  bool forward = false;  // it arrived
  bool back = false;     // an answer of the same size arrived
};

struct PeerFacts {
  std::string wanted, address;  // as the user wrote it, and the IP address of it
  std::string address_error;
  bool v6 = false;
  RouteFacts route;
  std::string tcp_error;      // empty: the responder told about itself
  std::string peer_holder;    // who has the peer's UB port; empty: the responder
  bool peer_listens = false;  // the responder has the UB port
  std::vector<std::string> peer_eids;
  uint32_t peer_payload = 0;
  uint16_t peer_ub_port = 0;
  uint32_t own_payload = 0;
  PortFacts probe, ub;
  std::vector<SizeFacts> sizes;  // ascending
};

PeerFacts look_at_peer(const Config&, const HostFacts&, const std::string& peer, uint16_t port);
Findings judge_peer(const PeerFacts&);

// Answers look_at_peer of other hosts until a signal ends it. Returns the exit code.
int answer_doctors(const Config&, const HostFacts&, uint16_t port);

// "a, b, c"
std::string joined(const std::vector<std::string>& words, const char* between = ", ");
std::string joined(const std::vector<uint32_t>& numbers);

// Payload bytes of the port of these addresses, as UdpPort chooses them.
uint32_t payload_of(const Config&, const std::vector<AddressFacts>&);

}  // namespace ub::tools
