// SPDX-License-Identifier: Apache-2.0
//
// What a user may set, and where each setting came from.
//
// One plain struct `Config` with the defaults in it. `load_config` overlays, in this order:
//   built-in defaults
//   < /etc/softub/softub.toml
//   < $XDG_CONFIG_HOME/softub/softub.toml (or $HOME/.config/softub/softub.toml)
//   < the file named by $SOFTUB_CONFIG (which must exist)
//   < environment variables SOFTUB_<SECTION>_<KEY>
// Every value is checked once, here; whoever reads a Config need not check it again. A mistake of the user
// becomes a sentence with file, line, column, key, value and range; several mistakes give several lines.
//
// The keys are listed in config_keys.def: a field is called like its key, and a test keeps both in step.
// Nothing here resolves "automatic" (empty) values: the owner of the thing does (ports, device).
// Thread: start-up only. May allocate; throws nothing but std::bad_alloc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/time.h"

namespace ub {

constexpr Duration to_duration(std::chrono::nanoseconds d) { return {d.count()}; }

// What applications see.
struct DeviceConfig {
  // Name of the device that applications open. Default "softub0". Free.
  std::string name = "softub0";
  // EIDs, index 0 first, as IP literals. Default empty: source address of the default route, else the first
  // global address that is up, else 127.0.0.1. Each costs a socket.
  std::vector<std::string> eids;
  // Partition (24 bits), default 1. A peer of another one is refused at set-up. Free.
  uint32_t upi = 1;
  // First block of 1024 ids that the instance gives out, 3..1023; default 0: any that is free.
  uint32_t id_block = 0;
  // "EID=IP" pairs: where an EID is reached if it is not itself an address of its port. Default empty.
  std::vector<std::string> eid_map;
  // What programs see and nothing else depends on: ports, 1 to 8, and the state, speed and width of each.
  uint32_t ports = 1;
  std::string port_state = "active";
  std::string port_speed = "100G";
  uint32_t port_width = 1;
  // Names of the bits of urma_device_feature_t.
  std::vector<std::string> features = {
      "oor",           "non_pin",       "selective_retrans",     "jetty_grp",
      "error_suspend", "outorder_comp", "muti_seg_per_token_id", "ctp_en",
      "uboe"};
  // How many of the 16 priorities, lowest first, stand for RTP, then for CTP; the rest stands for UTP.
  uint32_t rtp_priorities = 8;
  uint32_t ctp_priorities = 6;
};

// Where the NIC runs.
struct PlacementConfig {
  // "embedded" (default): in the process of the application. "daemon": in softubd. "auto": there if it answers.
  std::string mode = "embedded";
};

// softubd. What is counted per application begins with app_; one more is refused.
struct DaemonConfig {
  // Control socket. Default empty: see daemon_socket.h.
  std::string socket;
  // Whose applications may connect: "user" (default), "group", "all".
  std::string access = "user";
  // Cores of the worker, as numbers. Default empty: any.
  std::vector<std::string> cores;
  // "poll", "adaptive" (default), "sleep".
  std::string idle = "adaptive";
  // How long an adaptive worker looks before it sleeps; default 200 us. Raising it keeps a core busy.
  std::chrono::nanoseconds idle_after = std::chrono::microseconds(200);
  // How long an application may leave a copy undone; default 250 ms. Raising it can hold up others for so long.
  std::chrono::nanoseconds agent_patience = std::chrono::milliseconds(250);
  // The same for one that is healthy and gets no CPU; default 30 s.
  std::chrono::nanoseconds starved_patience = std::chrono::seconds(30);
  uint32_t max_apps = 1024;
  uint32_t app_jetties = 4096;
  uint32_t app_jfrs = 4096;
  uint32_t app_jfcs = 4096;
  uint32_t app_groups = 64;
  uint32_t app_segments = 4096;
  uint32_t app_targets = 16384;
  // Instances that they name; default 1024. All applications share limits.max_peers.
  uint32_t app_peers = 1024;
  // Bytes shared with the daemon; default 4 GiB. Taken as they are touched.
  uint64_t app_memory = 4ULL << 30;
  // Bytes per second, each segment of a request with 256 more; default 0: no limit.
  uint64_t app_rate = 0;
  // Faults of its NIC: port down, stop (docs/fault-injection.md). Default empty: none.
  std::string inject;
  // "debug", "info" (default), "warning", "error".
  std::string log_level = "info";
};

// The wires.
struct PortConfig {
  // Wires to open, best first: "shm", "udp". Default both. Each costs its polling.
  std::vector<std::string> kinds = {"shm", "udp"};
  // Largest payload of a packet on IP ports, bytes: 1024, 2048, 4096, 8192; default 0: from the interface.
  // Larger saves packets, and is lost where the path is narrower.
  uint32_t mtu = 0;
  // Rendezvous directory of the shared-memory wire. Default empty: softub-<uid>-<inode of the
  // network namespace> in $XDG_RUNTIME_DIR, else in /run/user/<uid>, else in /tmp.
  std::string shm_dir;
  // Frame ring of the shared-memory wire per direction and peer process, bytes, power of two; default 8 MiB.
  // Costs that much memory for each peer.
  uint64_t shm_ring_bytes = 8ULL << 20;
  // Largest payload of a packet on the shared-memory wire, bytes; default 4096. Larger makes small messages
  // wait longer.
  uint32_t shm_mtu = 4096;
  // UDP port; the first instance of an address takes it, the others that of their first block of ids. Default 4792.
  uint32_t udp_port = 4792;
  // Addresses to bind UDP sockets to. Default empty: those of the EIDs.
  std::vector<std::string> udp_bind;
  // Wished send buffer of each UDP socket, bytes; default 4 MiB. Costs kernel memory while used.
  uint64_t udp_sndbuf = 4ULL << 20;
  // Wished receive buffer of each UDP socket, bytes; default 4 MiB. Costs kernel memory while used.
  uint64_t udp_rcvbuf = 4ULL << 20;
  // DSCP of packets, 0..63; default 0. Free.
  uint32_t dscp = 0;
  // DSCP of what channels for bulk messages send, 0..63, or 64: that of dscp. Default 64. Over UDP, another one costs a
  // control message for each packet.
  uint32_t bulk_dscp = 64;
  // ICRC on the shared-memory wire too; default off. Costs a pass over every payload byte on both sides.
  bool icrc_shm = false;
  // WRITEs, READs and atomics in memory that its owner on this host shares (softub_alloc_shared) are carried out by the
  // NIC of whoever asks, without packets, if both NICs have this on. Default on. Captures do not have such requests.
  bool shm_place = true;
};

// DPDK devices, opened if port.kinds has "dpdk"; dpdk_devices.h takes this apart.
struct DpdkConfig {
  // Devargs: "net_memif0,role=client,socket=/run/me/memif.sock", "net_af_packet0,iface=veth0", "0000:01:00.0". Several
  // are separated by semicolons.
  std::string device;
  // IP addresses with the lengths of their networks: "10.1.0.2/24" of the first device, "10.2.0.2/24@net_memif1" of
  // another one. They are EIDs unless device.eids says others.
  std::vector<std::string> addresses;
  // Next hop for everything else, one of each family and device at most.
  std::vector<std::string> gateways;
  // Neighbours that need not be asked for: "10.1.0.3=02:00:00:00:00:03".
  std::vector<std::string> neighbours;
  // Tag of all frames, 0: none.
  uint32_t vlan = 0;
  // A switch, or another program, is between a memif device and its peers.
  bool switched = false;
  // Further arguments of DPDK's environment, each an element: "--in-memory", "-m", "512".
  std::vector<std::string> arguments;
  // The shared object with the port.
  std::string plugin = "libsoftub_dpdk.so.0";
};

// Channels, loss, time.
struct TransportConfig {
  // Packets in flight per channel, power of two 128..2048, of which 1024 are sent at most; default 512. Costs bitmap
  // blocks and kept packets while something is missing.
  uint32_t window_packets = 512;
  uint32_t reorder_packets = 64;
  // Shortest retransmission time-out; default 4 ms. Raising it delays recovery of a lost last packet.
  std::chrono::nanoseconds rto_min = std::chrono::milliseconds(4);
  // Longest retransmission time-out; default 512 ms. Raising it delays recovery after a long outage.
  std::chrono::nanoseconds rto_max = std::chrono::milliseconds(512);
  // Retransmission time-out in smoothed round trips; default 8. Raising it delays recovery on slow paths.
  uint32_t rtt_multiplier = 8;
  // A channel without progress for so long is dead; default 4 s. Raising it delays error completions.
  std::chrono::nanoseconds channel_timeout = std::chrono::seconds(4);
  // Idle time before a keep-alive; default 10 s. Raising it delays the notice of a dead peer.
  std::chrono::nanoseconds keepalive_idle = std::chrono::seconds(10);
  // Lanes for each peer and service class, 1 or 2; default 2 (small and bulk). Each costs the state of a channel.
  uint32_t lanes = 2;
  // Messages longer than this take the bulk lane, bytes; default 16 KiB. Raising it makes small ones wait.
  uint64_t lane_bulk_bytes = 16ULL << 10;
  // Segment of a WRITE or READ, bytes, power of two; default 64 KiB. Raising it makes other queues wait.
  uint64_t segment_bytes = 64ULL << 10;
  // Send again at once what the peer reports missing; default on.
  bool fast_retransmit = true;
  // What goes again after a loss: "selective", what was lost, or "go_back_n", that and all behind it.
  std::string retransmission = "selective";
  // What losses do: "window" halves how many packets may be in flight, "none" does nothing.
  std::string loss_response = "window";
  // Source ports of a channel, to each peer; default 1. Each is a path through networks that choose a link by ports.
  uint32_t paths = 1;
  // Paths by other addresses, "PEER=LOCAL>REMOTE".
  std::vector<std::string> path_map;
  // Most paths of a channel, those that the peer asks for included; default 8.
  uint32_t most_paths = 8;
  // What stays on one of several paths while that has room: "packets" (nothing), "messages" or "queues".
  std::string spread = "packets";
  // Queues of RC with order type OL leave their order to channels of ROL; default on. Switching it off makes strong
  // requests wait for answers.
  bool rol = true;
  // Requests that fit one packet go by CTP between processes of one host; default on.
  bool compact = true;
  // Each request of ROL by CTP is answered; default on. Switching it off saves the answers to most short WRITEs without
  // a completion, whose failures show later.
  bool compact_answers = true;
  // Channels of RTP go over UB's own network header between processes of one host and over memif; default off. C-AQM
  // then has its whole congestion indicator.
  bool rtp_over_cna = false;
  // First repetition of a channel set-up record; default 5 ms, then doubling. Raising it delays set-up.
  std::chrono::nanoseconds setup_retry_min = std::chrono::milliseconds(5);
  // Time before the number of a closed channel is used again; default 2 s, at least the life of a packet.
  // Raising it keeps numbers unusable for longer.
  std::chrono::nanoseconds tpn_rest = std::chrono::seconds(2);
};

// RoCEv2 beside UB.
struct RoceKeys {
  // Speak it; default off.
  bool enable = false;
  // Queue pairs, default 65535. Memory is taken when one is created.
  uint32_t max_qps = 65535;
  // Packets of a queue pair in flight; default 128. More goes again after a loss.
  uint32_t window_packets = 128;
  // Ask for an acknowledgement with every message; default off.
  bool ack_every_message = false;
  // Congestion control of RoCE; default off.
  bool dcqcn = false;
};

// Congestion control of channels of UB, and the numbers of its algorithms (lib/transport/cc/constants.h).
struct CongestionKeys {
  // What limits a channel where the network is shared; default none, losses alone.
  std::string algorithm = "none";
  // Rate of the line, Mbit/s; no flow of DCQCN gets more.
  uint32_t line_rate = 100000;
  // C-AQM: window of a new channel.
  uint32_t caqm_initial_packets = 10;
  // C-AQM, alpha: of a packet, in a round trip.
  uint32_t caqm_increase = 50;
  // C-AQM, beta: of a packet, for each mark.
  uint32_t caqm_decrease = 50;
  // C-AQM, theta: round trips until slow start.
  uint32_t caqm_calm_round_trips = 10;
  // LDCP: window of a new channel.
  uint32_t ldcp_initial_packets = 10;
  // LDCP: weight of the latest round trip is 1/2^this.
  uint32_t ldcp_gain_shift = 4;
  // Swift: window of a new channel.
  uint32_t swift_initial_packets = 10;
  // Swift: round trip that a large window aims at.
  std::chrono::nanoseconds swift_base_target = std::chrono::microseconds(25);
  // Swift: how much more a small window aims at.
  std::chrono::nanoseconds swift_scaling = std::chrono::microseconds(25);
  // Swift: windows up to this one have all of the scaling.
  uint32_t swift_least_scaled = 1;
  // Swift: windows from this one on have none.
  uint32_t swift_most_scaled = 100;
  // Swift: of a packet, in a round trip.
  uint32_t swift_increase = 100;
  // Swift, beta: of the excess over the target.
  uint32_t swift_decrease = 80;
  // Swift: the most that a window loses at once.
  uint32_t swift_most_decrease = 50;
  // DCQCN: weight of the latest news is 1/2^this.
  uint32_t dcqcn_gain_shift = 8;
  // DCQCN: steps half of the way back.
  uint32_t dcqcn_fast_steps = 5;
  // DCQCN: bytes for a step.
  uint32_t dcqcn_step_bytes = 10000000;
  // DCQCN: time for a step.
  std::chrono::nanoseconds dcqcn_step = std::chrono::microseconds(55);
  // DCQCN: least rate, Mbit/s.
  uint32_t dcqcn_least_rate = 10;
  // DCQCN: what a step adds, Mbit/s.
  uint32_t dcqcn_add = 40;
  // DCQCN: what a late step adds, Mbit/s.
  uint32_t dcqcn_add_much = 400;
  // DCQCN: least time between notifications.
  std::chrono::nanoseconds dcqcn_pause = std::chrono::microseconds(50);
  // Window by losses: of a new channel.
  uint32_t loss_initial_packets = 32;
  // Window by losses: what a timeout leaves.
  uint32_t loss_least_packets = 2;
};

// Bounds of state; the max_ and _depth ones are also the capabilities that the device reports.
struct LimitsConfig {
  // Jetties per instance, default 65536. Memory is taken when one is created; so for the next four.
  uint32_t max_jetty = 65536;
  // Completion queues per instance, default 65536.
  uint32_t max_jfc = 65536;
  // Send queues without a Jetty per instance, default 65536.
  uint32_t max_jfs = 65536;
  // Receive queues per instance, default 65536.
  uint32_t max_jfr = 65536;
  // Registered segments per instance, default 65536.
  uint32_t max_segments = 65536;
  // Peer instances known at a time, in a daemon for each application; default 16384. Memory is taken when one is met.
  uint32_t max_peers = 16384;
  // Transport channels, one or two per peer, default 16384. Memory is taken when one is set up.
  uint32_t max_channels = 16384;
  // READs of peers under way here, default 4096. Each costs a record, taken at the start.
  uint32_t read_jobs = 4096;
  // Packets kept while an earlier one is missing, default 1024. Each costs a packet of memory while in use.
  uint32_t reorder_buffers = 1024;
  uint32_t small_reorder_buffers = 4096;
  // Largest depth of a send queue, default 16384. A queue costs memory for its own depth; so the next two.
  uint32_t jfs_depth = 16384;
  // Largest depth of a receive queue, default 32768.
  uint32_t jfr_depth = 32768;
  // Largest depth of a completion queue, default 65536.
  uint32_t jfc_depth = 65536;
};

// Who drives the NIC when the application does not.
struct ProgressConfig {
  // How long the helper thread polls before it blocks; default 5 us. Raising it burns a core.
  std::chrono::nanoseconds helper_spin = std::chrono::microseconds(5);
  // First time a woken helper that was not needed stays away; default 50 us, then doubling.
  std::chrono::nanoseconds helper_backoff_min = std::chrono::microseconds(50);
  // Longest time it stays away, and up to eight times that where the kernel has no tick before; default 1 ms. Raising
  // it delays progress when the application stops polling.
  std::chrono::nanoseconds helper_backoff_max = std::chrono::milliseconds(1);
  // Ring a consumer whose frame lies unconsumed for so long; default 5 us. Raising it delays idle peers.
  std::chrono::nanoseconds doorbell_after = std::chrono::microseconds(5);
};

struct LogConfig {
  // Where counters are published for the tools. Default empty: same as port.shm_dir.
  std::string stats_dir;
  // How often that is done while the NIC works; default 200 ms. Each time costs some microseconds.
  std::chrono::nanoseconds stats_interval = std::chrono::milliseconds(200);
  // Whether latencies inside are measured from the start (docs/telemetry.md); default false.
  bool latency = false;
};

// What is to go wrong in programs that use liburma.
struct FaultConfig {
  // docs/fault-injection.md. Default empty: nothing.
  std::string inject;
};

// What is wrong with the network of a NIC (docs/impair.md).
struct ImpairConfig {
  // Of frames that it sends, and that it receives. Default empty, both: nothing ever.
  std::string send;
  std::string receive;
  // Default 1.
  uint32_t seed = 1;

  bool is_set() const { return !send.empty() || !receive.empty(); }
};

struct Config {
  DeviceConfig device;
  PlacementConfig placement;
  FaultConfig fault;
  ImpairConfig impair;
  DaemonConfig daemon;
  PortConfig port;
  DpdkConfig dpdk;
  TransportConfig transport;
  RoceKeys roce;
  CongestionKeys congestion;
  LimitsConfig limits;
  ProgressConfig progress;
  LogConfig log;
};

// A Config that remembers where each value came from.
struct LoadedConfig : Config {
  // By key, in the order of config_keys.def: "default", "/path/file.toml:12" or "env SOFTUB_SECTION_KEY".
  std::vector<std::string> sources;
  // The files that were read, in order.
  std::vector<std::string> files;
};

struct ConfigResult {
  std::optional<LoadedConfig> config;  // set exactly when `error` is empty
  std::string error;                   // one sentence per line, without a final newline
};

// The world as load_config sees it; tests bring their own.
class Environment {
 public:
  enum class FileStatus { kOk, kMissing, kForbidden, kUnreadable };
  struct File {
    FileStatus status = FileStatus::kMissing;
    std::string text;  // kOk: the content. kForbidden, kUnreadable: why
  };

  virtual ~Environment() = default;
  virtual std::optional<std::string> get(const std::string& name) const = 0;
  // Names of all variables that begin with `prefix`, in any order: unknown ones are the user's typing errors.
  virtual std::vector<std::string> names(const std::string& prefix) const = 0;
  virtual File read_file(const std::string& path) const = 0;
};

// The process's own variables and files. Sees no variable in a set-user-id program.
class ProcessEnvironment final : public Environment {
 public:
  std::optional<std::string> get(const std::string& name) const override;
  std::vector<std::string> names(const std::string& prefix) const override;
  File read_file(const std::string& path) const override;
};

ConfigResult load_config(const Environment& environment);
ConfigResult load_config();  // of the process

// One row of `urma_admin config`; every value in the syntax of an environment variable.
struct ConfigRow {
  std::string key;            // "port.udp_port"
  std::string value;          // what is in force
  std::string default_value;  // what would be without files and variables
  std::string range;          // "1..65535", "embedded, daemon", "IP address", ... or empty
  std::string unit;           // "bytes", "time", "packets", ... or empty
  std::string source;         // see LoadedConfig::sources
  std::string help;
};

// Rows in the order of config_keys.def.
std::vector<ConfigRow> describe(const LoadedConfig& config);

}  // namespace ub
