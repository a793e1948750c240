// SPDX-License-Identifier: Apache-2.0
//
// Everything that a seed draws before its run (swarm testing: each seed switches a different set of features
// and faults on, so that rare combinations meet). Times are nanoseconds, probabilities 0..1.
#pragma once

#include <cstdint>
#include <string>

#include "lib/transport/core_types.h"

namespace ub::sim {

struct NetworkOptions {
  double loss = 0;
  double burst_start = 0;    // chance per packet that a burst of loss begins; then all losses come in bursts
  double burst_packets = 8;  // mean length of a burst
  double duplicate = 0;
  double reorder = 0;   // chance of an extra delay of up to reorder_ns
  uint32_t reorder_packets = 0;  // every second packet is overtaken by up to so many
  uint64_t reorder_wait_ns = 0;  // or leaves after so long
  double corrupt = 0;   // chance of flipped bits (only on links with ICRC)
  double lifetime = 0;  // chance of a delay of up to the packet lifetime
  uint64_t delay_ns = 2000;
  uint64_t jitter_ns = 0;
  uint64_t reorder_ns = 50'000;
  uint64_t lifetime_ns = 1'990'000'000;
  double ns_per_byte = 0;  // serialisation; 0: infinitely fast
  uint32_t queue_frames = 4096;
  uint64_t port_ns = 0;  // a sender waits while what it sent takes so long to leave; 0: it never waits
  uint32_t path_mtu = 65535;  // longer IP packets vanish
  double mark = 0;            // chance that a packet which may be marked says congestion
  uint32_t paths = 1;         // between each two nodes; at most kMaxPaths
  bool paths_by_address = false;  // each has addresses of its own at both ends; else a port at one end
  double refuse = 0;          // chance that a hop refuses a packet of C-AQM what it asks for
};

struct HostOptions {
  double pending = 0;  // chance that a copy is answered kPending
  uint64_t pending_ns = 5000;
  uint64_t gather_ns = 0;  // every gather takes just so long; 0: see above
  double tx_refuse = 0;    // chance that tx_begin has no room
  uint64_t tx_room_ns = 10'000;
  uint64_t burst_ns = 0;  // what comes within so long may come in one burst: nothing is sent meanwhile
};

// Which nodes have the straight path for requests of the usual kind (docs/straight-path-design.md).
enum class Straight : uint8_t { kNone, kSome, kAll };

struct CoreOptions {
  uint32_t window_packets = 512;
  uint32_t lanes = 2;
  uint32_t lane_bulk_bytes = 16 * 1024;
  uint32_t channels_per_lane = 1;
  bool fast_retransmit = true;
  double go_back_n = 0;  // share of the instances that want Go-Back-N
  bool loss_window = true;
  uint32_t path_channels = 64;     // channels of a node that may have several paths
  Spread spread = Spread::kPackets;
  uint32_t read_jobs = 64;
  uint32_t kept_packets = 256;
  uint32_t kept_small_packets = 256;
  uint64_t keepalive_ns = 10'000'000'000;
  uint32_t first_psn = UINT32_MAX;
  uint32_t questions_until_calm = 32;
  uint32_t segment_bytes = 64 * 1024;
  uint32_t compact_repeats = 64;
  bool compact_answers = true;  // to requests of ROL by CTP
  Straight straight = Straight::kAll;
  bool bells_send = true;  // whoever rings owns the Core, as a thread of an embedded NIC does, and sends at once
  double mapped = 0;  // share of the regions that the host of an application has mapped (mappings.h)
  double cna = 0;  // share of the instances that want RTP over UB's own network header
  double rol = 0;  // share of the instances that make channels of ROL
};

struct WorkloadOptions {
  uint32_t requests = 60;  // of the whole world
  uint32_t apps_per_node = 1;
  uint32_t queues_per_app = 2;
  double rc = 0.3;   // share of RC pairs among the queues
  double jfs = 0.2;  // share of send-only queues
  double um = 0;
  uint32_t size_cap = 64 * 1024;  // bytes of a WRITE or READ
  uint32_t send_cap = 16 * 1024;  // bytes of a SEND
  double large = 0.1;             // chance that a size is near the cap instead of small
  uint32_t batch = 4;             // requests posted together, at most
  uint64_t gap_ns = 20'000;       // mean pause between batches of a queue
  double unsignaled = 0.2;
  double fence = 0.1;
  double strong = 0.15, relaxed = 0.3;
  double inlined = 0.2;
  uint32_t sges = 4;
  double comp_order = 0.2;
  double overlap = 0;   // chance that a WRITE goes to the shared, contended part
  double wrong = 0.05;  // chance of a wrong token, range or permission
  double wrong_local = 0.02;
  double too_long = 0.03;  // SEND longer than the receives
  uint32_t weight_write = 4, weight_write_imm = 1, weight_notify = 1, weight_read = 3, weight_send = 3,
           weight_send_imm = 1, weight_atomic = 3, weight_nop = 1;
  uint32_t sq_depth = 16, rq_depth = 16, jfc_depth = 64;
  double starve = 0;        // chance that receives are not refilled at a refill
  uint64_t poll_ns = 2000;  // mean delay until an application looks at its completions
  uint32_t poll_batch = 16;
  uint8_t rnr_retry = 7;
  uint8_t err_timeout = 17;
  uint8_t min_rnr_timer = 6;
  double required_token = 0.6;
  double late_token = 0.1;   // chance that a request shows a token that was withdrawn
  double odd_address = 0.3;  // segments named by an address other than their va
  double suspends = 0;       // share of the send queues that a failure suspends
  double completes_early = 0;  // share of the send queues whose requests complete as they finish
  double rot = 0;              // share of the send queues of RC whose targets keep their order
  double priorities = 0;     // share of the send queues that have one above 0
  double fetched = 0;        // share of the send queues from which the Core fetches elements
  uint32_t qp_pairs = 0;     // pairs of RoCE queue pairs of each two nodes
  double srq = 0;            // share of the queue pairs whose receive queue is the application's
  uint32_t roce_mtu = 1024;
  uint8_t roce_timeout = 17;
  uint8_t roce_reads = 4;  // READs and atomics in flight
  uint8_t roce_retry_cnt = 7;
  bool roce_ack_every = false;          // an acknowledgement with every message
  uint32_t ud_queues = 0;               // UD queue pairs of each application
  bool dcqcn = false;                   // of queue pairs
  cc::Control control = cc::Control::kNone;  // of channels
  uint64_t line_rate = 12'500'000'000;  // DCQCN: bytes in a second, at most
  uint32_t connects = 0;                // queue pairs that are to be connected by RDMA-CM, in the whole world
  double hang_up = 0;                   // chance that an application ends a connection without need
  double reject = 0;                    // chance that it refuses one
  uint8_t cm_tries = 15;
  uint32_t cm_table = 4096;
};

struct FaultOptions {
  uint32_t partitions = 0;
  uint64_t partition_ns = 100'000'000;
  uint32_t path_faults = 0;  // one of several paths is cut, loses much or becomes slow, for some time
  uint32_t app_kills = 0;
  uint32_t crashes = 0;      // an instance stops without a word and starts anew
  uint32_t flushes = 0;      // a queue is set to ERROR
  uint32_t jfr_flushes = 0;  // a JFR is set to ERROR, and half of the times to READY again
  uint32_t resets = 0;       // a queue or a JFR is set to RESET, and later to READY again
  uint32_t rotations = 0;    // the token of a region or a JFR is replaced
  uint32_t unregisters = 0;
  uint32_t closes = 0;           // an instance leaves in order and starts anew
  uint32_t hostile = 0;          // applications on each node that keep to no rule (hostile.h)
  uint32_t hostile_acts = 0;     // of each
  double meddle = 0;             // chance that one overwrites something while its Core calls its host
  uint64_t span_ns = 5'000'000;  // faults happen within this time
};

// Programs that load and store (apertures.h).
struct ApertureOptions {
  uint32_t handles = 0;         // of each node, to each other one; 0: there are no such programs
  uint32_t calls = 40;          // of each handle
  uint64_t gap_ns = 5000;       // mean pause between its bursts
  uint32_t burst = 8;           // calls at once, at most
  double large = 0.2;           // chance of more than a line
  double load = 0.6;            // chance of a load; else a store
  double wrong = 0;             // chance of a place beyond the segment, or of a wrong token
  uint64_t serve_ns = 2000;     // mean time until a NIC looks at a lane, or a program at its answers
  double stall = 0;             // chance that it takes longer, each time
  uint64_t stall_ns = 100'000;  // up to so much
  uint32_t shuts = 0;           // how often a port has no room for a while, at most
  uint32_t faults = 0;          // regions that are unregistered, or get another token
  float frames = 0;             // share of the handles that go by frames, where the wire carries them; else by lanes
};

struct Options {
  uint64_t seed = 1;
  bool busy = false;  // the first node has more to do than it gets done, with the second, all the time
  uint32_t nodes = 2;
  bool ipv6 = false;
  bool shared_port_ip = false;  // two instances behind one address
  uint32_t mtu = 1024;
  bool icrc_optional = false;
  bool lossless = false;
  bool compact = false;  // it carries CTP, and memory answers at once
  NetworkOptions net;
  HostOptions host;
  CoreOptions core;
  WorkloadOptions work;
  FaultOptions fault;
  ApertureOptions aperture;

  // No fault that could starve a request of progress for as long as its deadline: timeouts are then
  // forbidden.
  bool mild() const;

  static Options draw(uint64_t seed);               // a swarm seed
  static Options draw_repeated(uint64_t seed);      // a swarm seed whose packets come twice, late and again much later
  static Options draw_rol_by_ctp(uint64_t seed);    // a swarm seed on a wire that loses nothing, with queues of ROL
  static Options draw_apertures(uint64_t seed);     // a swarm seed with programs that load and store
  static Options draw_queue_path(uint64_t seed);    // some of these: what apertures do by queues, under all faults
  static Options draw_with_paths(uint64_t seed);    // a swarm seed with several paths, which have faults
  static Options draw_for_programs(uint64_t seed);  // mild, and two nodes without a workload (order_programs.h)
  std::string text() const;                         // every option, one line each
};

}  // namespace ub::sim
