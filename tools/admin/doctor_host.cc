// SPDX-License-Identifier: Apache-2.0
//
// Looks at this host. Changes nothing: sockets are closed again, no file is made.
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "dataplane/daemon_socket.h"
#include "dataplane/eid.h"
#include "dataplane/stats_page.h"
#include "lib/ipc/barrier.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/rendezvous.h"
#include "tools/admin/doctor.h"
#include "tools/admin/doctor_look.h"

namespace ub::tools {
namespace {

namespace fs = std::filesystem;

// ---- the UDP port ----------------------------------------------------------------------------------------------

// The inode of the socket bound to a UDP port, on this address or on all, as /proc/net/udp lists it.
uint64_t inode_of_port(bool v6, uint16_t port) {
  std::ifstream file(v6 ? "/proc/net/udp6" : "/proc/net/udp");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string slot, local, skipped;
    uint64_t inode = 0;
    fields >> slot >> local;
    for (int i = 0; i < 7; ++i) fields >> skipped;
    fields >> inode;
    const size_t colon = local.rfind(':');
    if (colon != std::string::npos && std::strtoul(local.c_str() + colon + 1, nullptr, 16) == port) return inode;
  }
  return 0;
}

// The process that has a socket, if this user may see that; 0: not found.
pid_t process_of_inode(uint64_t inode) {
  const std::string wanted = fmt::format("socket:[{}]", inode);
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const pid_t pid = std::atoi(process.path().filename().c_str());
    if (pid == 0) continue;
    std::error_code denied;
    for (const auto& fd : fs::directory_iterator(process.path() / "fd", denied)) {
      std::error_code gone;
      if (fs::read_symlink(fd.path(), gone) == wanted) return pid;
    }
  }
  return 0;
}

bool is_instance(const std::string& statistics, pid_t pid) {
  for (const std::string& name : list_stats_pages(statistics)) {
    std::string error;
    auto reader = StatsPageReader::open(stats_page_path(statistics, name), &error);
    StatsReport report;
    if (reader && reader->alive() && reader->read(&report, &error) && report.pid == pid) return true;
  }
  return false;
}

void look_at_port(AddressFacts* a, uint16_t port, const std::string& statistics) {
  const wire::IpAddress ip = *parse_ip(a->ip);
  ipc::Fd socket = open_udp(ip, port, &a->bind_error);
  if (a->bind_error == EADDRINUSE) {
    const uint64_t inode = inode_of_port(!ip.is_v4(), port);
    const pid_t pid = inode == 0 ? 0 : process_of_inode(inode);
    if (pid != 0) a->holder = fmt::format("pid {}, {}", pid, first_line(fmt::format("/proc/{}/comm", pid)));
    a->holder_is_ours = pid != 0 && is_instance(statistics, pid);
  }
  int error = 0;
  if (!socket) socket = open_udp(ip, 0, &error);
  a->echo = socket && echoes(socket.get());
}

// ---- the rest, one thing a function ----------------------------------------------------------------------------

// "0-3,8"
std::vector<uint32_t> parse_cpu_list(const std::string& text) {
  std::vector<uint32_t> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    unsigned low = 0, high = 0;
    const int n = std::sscanf(part.c_str(), "%u-%u", &low, &high);
    for (unsigned cpu = low; n >= 1 && cpu <= (n == 2 ? high : low); ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

bool uses(const Config& c, const char* kind) {
  return std::find(c.port.kinds.begin(), c.port.kinds.end(), kind) != c.port.kinds.end();
}

std::string statistics_directory(const Config& c) {
  if (!c.log.stats_dir.empty()) return c.log.stats_dir;
  return c.port.shm_dir.empty() ? ipc::Rendezvous::default_directory() : c.port.shm_dir;
}

void look_at_addresses(const Config& c, HostFacts* f) {
  EidOptions options{c.device.eids, c.device.eid_map, {}};
  if (uses(c, "dpdk")) {
    for (const std::string& text : c.dpdk.addresses) {
      options.port_addresses.push_back(parse_network(text.substr(0, text.find('@')))->address);
    }
  }
  EidTable table;
  if (!table.init(options, &f->eid_error)) return;
  const auto locals = local_addresses();
  const auto& dpdk = options.port_addresses;
  for (size_t i = 0; i < table.eids().size(); ++i) {
    const wire::IpAddress& ip = table.local_ip(i);
    AddressFacts a;
    a.eid = to_text(table.eids()[i]);
    a.ip = to_text(ip);
    a.dpdk = std::find(dpdk.begin(), dpdk.end(), ip) != dpdk.end();
    a.loopback = ip.is_v4() && ip.v4() >> 24 == 127;
    a.interface_mtu = a.loopback ? 65536 : 0;
    for (const LocalAddress& l : locals) {
      if (l.ip != ip) continue;
      a.interface = l.interface, a.interface_mtu = l.interface_mtu, a.up = l.up, a.loopback = l.loopback;
    }
    if (!a.dpdk) look_at_port(&a, static_cast<uint16_t>(c.port.udp_port), statistics_directory(c));
    f->addresses.push_back(a);
  }
}

DaemonFacts::Socket look_at_socket(const std::string& path) {
  DaemonFacts::Socket s{path, false, ""};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  struct stat st;
  s.exists = ::stat(path.c_str(), &st) == 0 || errno == EACCES;  // in a directory that is closed to us
  if (path.size() >= sizeof address.sun_path) {
    s.error = "the path is too long for a socket";
    return s;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  for (int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    ipc::Fd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const bool connected = fd && ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    s.error = connected ? "" : std::strerror(errno);
    if (connected || errno != EPROTOTYPE) break;
  }
  return s;
}

DaemonFacts look_at_daemon(const LoadedConfig& c) {
  DaemonFacts d;
  for (const std::string& list : c.daemon.cores) {
    for (uint32_t cpu : parse_cpu_list(list)) d.cores.push_back(cpu);
  }
  if (c.placement.mode != "embedded") d.socket = look_at_socket(daemon_socket_to_connect(c.daemon.socket));
  return d;
}

DirectoryFacts look_at_directory(const Config& c) {
  DirectoryFacts d;
  d.configured = !c.port.shm_dir.empty();
  d.path = d.configured ? c.port.shm_dir : ipc::Rendezvous::default_directory();
  while (d.path.size() > 1 && d.path.back() == '/') d.path.pop_back();
  d.self = ::geteuid();
  d.parent_writable = ::access(fs::path(d.path).parent_path().c_str(), W_OK | X_OK) == 0;
  struct stat st;
  if (::lstat(d.path.c_str(), &st) != 0) return d;
  d.exists = true;
  d.is_directory = S_ISDIR(st.st_mode);
  d.owner = st.st_uid;
  d.mode = st.st_mode & 07777;
  return d;
}

// Output of a command, and whether it ended well.
bool run(const char* command, std::string* output) {
  FILE* pipe = ::popen(command, "r");
  if (pipe == nullptr) return false;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) != 0;) output->append(buffer, n);
  return ::pclose(pipe) == 0;
}

FirewallFacts look_at_firewall() {
  FirewallFacts f;
  f.privileged = ::geteuid() == 0;
  static constexpr std::pair<const char*, const char*> kCommands[] = {
      {"nft", "nft -a list ruleset"},
      {"iptables", "iptables-save -t filter"},
      {"ip6tables", "ip6tables-save -t filter"},
  };
  for (const auto& [tool, command] : kCommands) {
    std::string text;
    // These programs lie where an ordinary user's PATH does not lead.
    if (run(fmt::format("PATH=$PATH:/usr/sbin:/sbin {} 2>/dev/null", command).c_str(), &text))
      f.rules.push_back({tool, text});
  }
  return f;
}

std::vector<HugepagePool> look_at_hugepages() {
  std::vector<HugepagePool> pools;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    const std::string name = entry.path().filename();
    HugepagePool p;
    p.kib = std::strtoull(name.c_str() + std::min(name.size(), std::strlen("hugepages-")), nullptr, 10);
    p.total = number_in(entry.path() / "nr_hugepages");
    p.free = number_in(entry.path() / "free_hugepages");
    pools.push_back(p);
  }
  std::sort(pools.begin(), pools.end(), [](const auto& a, const auto& b) { return a.kib < b.kib; });
  return pools;
}

LimitFacts look_at_limits() {
  LimitFacts l;
  rlimit r{};
  ::getrlimit(RLIMIT_NOFILE, &r);
  l.files = r.rlim_cur;
  l.files_hard = r.rlim_max;
  ::getrlimit(RLIMIT_MEMLOCK, &r);
  l.locked = r.rlim_cur == RLIM_INFINITY ? UINT64_MAX : r.rlim_cur;
  l.maps = number_in("/proc/sys/vm/max_map_count");
  return l;
}

KernelFacts look_at_kernel() {
  KernelFacts k;
  k.membarrier = ipc::register_for_heavy_barrier();
  ipc::create_sealed_memfd("softub-doctor", 1 << 20, &k.memfd_error);
  return k;
}

double cgroup_quota() {
  double quota = 0, period = 0;
  std::istringstream v2(first_line("/sys/fs/cgroup/cpu.max"));
  if (v2 >> quota >> period && period > 0) return quota / period;
  std::istringstream v1(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"));
  std::istringstream v1_period(first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  if (v1 >> quota && v1_period >> period && quota > 0 && period > 0) return quota / period;
  return 0;
}

CpuFacts look_at_cpus() {
  CpuFacts c;
  c.online = static_cast<uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) c.allowed.push_back(cpu);
  c.quota = cgroup_quota();
  const auto nodes = parse_cpu_list(first_line("/sys/devices/system/node/online"));
  c.numa_nodes = std::max<uint32_t>(1, static_cast<uint32_t>(nodes.size()));
  for (uint32_t node : nodes) {
    const auto cpus = parse_cpu_list(first_line(fmt::format("/sys/devices/system/node/node{}/cpulist", node)));
    const bool ours = std::any_of(cpus.begin(), cpus.end(), [&](uint32_t cpu) {
      return std::find(c.allowed.begin(), c.allowed.end(), cpu) != c.allowed.end();
    });
    if (ours) c.allowed_nodes.push_back(node);
  }
  return c;
}

}  // namespace

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

uint64_t number_in(const std::string& path) { return std::strtoull(first_line(path).c_str(), nullptr, 10); }

HostFacts look_at_host(const ConfigResult& loaded, const Config& c) {
  HostFacts f;
  f.config_error = loaded.error;
  if (loaded.config) f.config_files = loaded.config->files;
  look_at_addresses(c, &f);
  if (loaded.config) f.daemon = look_at_daemon(*loaded.config);
  f.directory = look_at_directory(c);
  f.firewall = look_at_firewall();
  f.hugepages = look_at_hugepages();
  f.limits = look_at_limits();
  f.buffers = look_at_buffers(c);
  f.kernel = look_at_kernel();
  f.cpus = look_at_cpus();
  if (uses(c, "dpdk")) f.dpdk = look_at_dpdk(c);
  return f;
}

}  // namespace ub::tools
