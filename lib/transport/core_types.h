// SPDX-License-Identifier: Apache-2.0
//
// The values that the Core and its callers exchange: identities, configurations of objects, events. They are plain data
// without behaviour. Handles are small integers that the Core chooses; 0 is never a valid one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "lib/base/channel_counts.h"
#include "lib/base/status.h"
#include "lib/base/time.h"
#include "lib/base/work_queue.h"
#include "lib/transport/addresses.h"
#include "lib/transport/cc/constants.h"

namespace ub {

struct OwnerLimits;

// An instance is one Core: a process, or a daemon. Its uasid is non-zero and constant for its life.
struct InstanceId {
  Eid eid;
  uint32_t uasid = 0;
  bool operator==(const InstanceId&) const = default;
};

// May acknowledgements that nobody waits for be delayed, so that they cover more packets? A caller that says kMayWait
// has to poll again soon.
enum class Acks : uint8_t { kNow, kMayWait };

// The values of urma_transport_mode_t. kRoce is our own, for a JFR of RoCE queue pairs, which messages of UB cannot
// use.
enum class Mode : uint8_t { kRm = 1, kRc = 2, kUm = 4, kRoce = 8 };
enum class ObjectKind : uint8_t { kNone, kJfs, kJfr, kJetty, kGroup, kQp };
enum class QueueState : uint8_t { kReset, kReady, kSuspended, kError };

// Access bits of a segment, with the values of URMA_ACCESS_*.
constexpr uint8_t kAccessLocalOnly = 1;
constexpr uint8_t kAccessRead = 2;
constexpr uint8_t kAccessWrite = 4;
constexpr uint8_t kAccessAtomic = 8;

struct Token {
  bool required = false;  // PLAIN_TEXT: the peer must present `value`
  uint32_t value = 0;
};

// The token that a receiver or segment asks for. It accepts two values while one takes the place of the other (9.4,
// 11.4); else both are the same.
struct AcceptedToken {
  uint32_t value = 0, former = 0;
  bool required = false;

  AcceptedToken() = default;
  AcceptedToken(const Token& token) : value(token.value), former(token.value), required(token.required) {}
  bool fits(uint32_t presented) const { return presented == value || presented == former; }
};

// kInvalid: the object asks for no token.
inline Status set_token(AcceptedToken& token, uint32_t value, uint32_t former) {
  if (!token.required) return Status::kInvalid;
  token.value = value;
  token.former = former;
  return Status::kOk;
}

// ---- limits and protocol constants of one Core -------------------------------------------------------------
// The configuration of the RoCEv2 engine; lib/transport/roce/types.h has the other values of RoCE.
struct RoceConfig {
  uint32_t max_qps = 0;  // 0: RoCE is off; at most 65535
  uint32_t max_address_handles = 4096;
  uint32_t max_listeners = 64;
  uint32_t max_connections = 4096;  // at most 65535
  uint16_t window_packets = 128;    // of a queue pair, in flight
  bool ack_every_message = false;   // ask for an acknowledgement with every message
  bool dcqcn = false;               // mark data as ECN capable and slow down where the network says so
};

// Where a channel has several paths (tp/paths.h), what stays on one of them as long as that has room.
enum class Spread : uint8_t {
  kPackets,   // nothing
  kMessages,  // the packets of a message
  kQueues,    // the messages of a queue
};

struct CoreConfig {
  InstanceId self;
  uint64_t incarnation = 1;  // random, non-zero, new at every start
  uint64_t seed = 1;         // of every random choice that the Core makes
  uint32_t upi = 1;
  bool every_id = true;  // this instance gives out all ids; false: only those of blocks added by add_id_block()
  uint32_t first_psn = UINT32_MAX;  // initial PSN of every channel, for tests; UINT32_MAX: random
  uint32_t first_tassn = UINT32_MAX;  // first TASSN of every queue, for tests; UINT32_MAX: random

  // Protocol.
  uint32_t window_packets = 512;         // out-of-order window W offered to peers: power of two, 128..2048
  uint32_t lanes = 2;                    // 1, or 2: bulk messages have a channel of their own
  uint32_t lane_bulk_bytes = 16 * 1024;  // messages longer than this are bulk
  // The code points of DSCP: of what channels for bulk messages send, and of all else. A queue pair with a traffic
  // class has the one of that.
  uint8_t dscp = 0, bulk_dscp = 0;
  // A power of two, at most 8. Send queues are spread over the channels of a lane, and so are the segments of a WRITE
  // or READ that asks for no order. The last segment of such a WRITE waits until the others are answered, because its
  // final word must become visible last. There is no configuration key yet, because all channels take the same path.
  uint32_t channels_per_lane = 1;
  // Channels on wires that may lose packets take up to so many paths, if the peer has it, too; at most 64. 1: one, and
  // there is no memory for more. Each channel with several has a block of 16 KB and 400 bytes for each path, and there
  // are blocks for `path_channels` (docs/paths-design.md).
  uint32_t most_paths = 1;
  uint32_t path_channels = 1024;
  Spread spread = Spread::kPackets;
  // RC queues of order type OL leave their order to channels of ROL (7.3.3), if the peer has this on, too.
  bool rol = false;
  uint32_t segment_bytes = 64 * 1024;  // of a WRITE or READ, at least kMinSegmentBytes: one TASSN, one answer
  // One-packet requests of RM, and of RC in ROL, go by CTP (7.3.1), where the wire carries it and the peer has it.
  bool compact = true;
  // Requests of ROL by CTP are all answered (ta/silent_requests.h).
  bool compact_answers = true;
  // How many channels of CTP there may be on wires that lose packets. Each has a record of 56 KB, which is touched as
  // it is used. Where there is none left, RTP carries all. At most 65535.
  uint32_t compact_repeats = 64;
  // Channels of RTP go over UB's own network header instead of UBoE, where the link carries such frames and the peer
  // wants it, too: C-AQM then has its whole indicator (CCI) instead of two bits of IP.
  bool rtp_over_cna = false;
  // Requests of the usual kind take the straight path (docs/straight-path-design.md). Off, for tests: all take the
  // general one.
  bool straight = true;
  bool fast_retransmit = true;
  bool go_back_n = false;  // discard what comes ahead of a gap, on channels of which one end wants that
  Duration rto_min = milliseconds(4);
  Duration rto_max = milliseconds(512);
  uint32_t rtt_multiplier = 8;
  uint8_t questions_until_calm = 32;  // until few packets ask for acknowledgements (tp/transmit_state.h); tests vary it
  uint32_t reorder_packets = 64;  // a packet that comes later than so many that were sent after it is taken for lost
  bool loss_window = true;  // losses halve the window of a channel without other congestion control (cc/loss_window.h)
  cc::Control congestion_control = cc::Control::kNone;  // of channels; a peer with another one is refused
  uint64_t line_bytes_per_second = 12'500'000'000;  // DCQCN: the highest rate of a channel or queue pair
  cc::Constants congestion;
  // Flows without an algorithm record the feedback of the network (cc/listener.h). Tests and the simulator read it in
  // the state. No tool shows it, so there is no configuration key.
  bool listen_to_network = false;
  Duration channel_timeout = seconds(4);  // a channel without progress for so long is dead
  Duration keepalive_idle = seconds(10);
  Duration setup_retry_min = milliseconds(5);
  Duration setup_retry_max = milliseconds(640);
  Duration id_rest = seconds(2);  // how long a freed TPN, object id or token id is not used again

  // Table sizes. Memory is touched only as it is used.
  uint32_t max_jfc = 65536;
  uint32_t max_queues = 65536 * 2;  // JFS, JFR and jettys together
  uint32_t max_groups = 1024;
  uint32_t max_segments = 65536;
  uint32_t max_targets = 1 << 18;
  uint32_t max_mapped = 1024;  // memories of others that the host has mapped
  uint32_t max_peers = 4096;
  uint32_t max_channels = 8192;  // at most 65535
  uint32_t max_links = 4096;
  uint32_t read_jobs = 4096;  // READs served at the same time
  // Packets of channels that arrived beyond a gap and are kept. RoCE has another pool of that size, for packets that
  // wait for memory.
  uint32_t kept_packets = 1024;
  uint32_t kept_small_packets = 4096;  // the same for those of UB that are small (tp::KeptPackets)
  uint32_t max_frame_bytes = 9216;  // longest frame of any link
  bool slow_memory = false;         // the host may answer a copy with kPending (host.h)

  RoceConfig roce;

  uint8_t dscp_of(bool bulk) const { return bulk ? bulk_dscp : dscp; }
};

// ---- objects -----------------------------------------------------------------------------------------------
// The memory of rings belongs to the caller and must outlive the object.
//
// Several applications may share a Core. The caller gives each object the number of its owner. A request that names a
// segment or target of another owner fails as if there were none. The Core does not check who may destroy or change an
// object: the caller has to.
using Owner = uint16_t;

struct JfcConfig {
  Cqe* slots = nullptr;
  uint32_t slot_count = 0;  // power of two
  uint32_t depth = 0;       // completions it may hold, <= slot_count
  QueueIndices* indices = nullptr;
  uint64_t cookie = 0;  // comes back in events
  Owner owner = 0;
};

// When a JFC that is armed for any completion tells of what it got (8.2.2): with the `count`-th completion, or `period`
// after the first one, whichever is sooner. So one event tells of several. Solicited completions and failures are told
// at once. What is not given stays as it was. Of a new JFC both are 0, and it tells of the first completion.
struct Moderation {
  std::optional<uint16_t> count;   // 0: the number of completions does not matter
  std::optional<Duration> period;  // 0: the time does not matter
};

struct JfrConfig {
  uint32_t wanted_id = 0;  // 0: any
  Mode mode = Mode::kRm;
  Rqe* slots = nullptr;
  uint32_t slot_count = 0;
  QueueIndices* indices = nullptr;
  uint32_t jfc = 0;
  Token token;
  uint8_t min_rnr_timer = 12;  // the API's code (0 to 31); the time is rounded up to one that the wire has a code for
  uint64_t user_data = 0;      // Cqe::user_data of messages addressed to the JFR itself
  uint8_t receive_slots = 1;   // ring slots of each receive, if all have the same number: RoCE counts credits by it
  Owner owner = 0;
};

constexpr uint8_t kMostPriority = 15;

struct SendQueueConfig {
  Wqe* slots = nullptr;
  // Null: the application writes `slots` itself. Else it writes here, into as many slots, and the Core copies each
  // element to `slots` once, so that the application cannot change an element that is being executed. In it the Core
  // marks those that completed before older ones (kWrReported).
  Wqe* source = nullptr;
  uint32_t slot_count = 0;
  uint32_t depth = 0;  // work requests it may hold
  QueueIndices* indices = nullptr;
  std::byte* work = nullptr;  // Core::send_queue_work_bytes(depth) bytes, 64-byte aligned, zeroed
  uint32_t jfc = 0;
  OwnerLimits* limits = nullptr;  // null: none
  uint8_t rnr_retry = 7;          // 7: for ever
  uint8_t err_timeout = 17;       // n of 4.096 us * 2^n; a request's deadline is 8 times that (docs/wire.md, Failures)
  uint8_t priority = 0;           // 0..kMostPriority, larger: more urgent (ta/turns_by_priority.h)
  bool suspends = false;          // a request that fails suspends the queue (8.2.2.3); else those behind it go on
  bool completes_early = false;   // RM, RC: a request completes when it ends, whatever is older (7.3.2.3)
};

struct JettyConfig {
  uint32_t wanted_id = 0;
  ObjectKind kind = ObjectKind::kJetty;  // kJfs: no receive side
  Mode mode = Mode::kRm;
  SendQueueConfig sq;
  uint32_t jfr = 0;                // id of the shared JFR (kJetty)
  uint32_t recv_jfc = 0;           // gets the completions of messages addressed to this jetty; 0: the JFC of the JFR
  uint32_t group = 0;              // id of the group that it joins; 0: none
  bool lower_layer_order = false;  // RC: all messages of the queue stay on one lane
  bool target_order = false;       // RC: the target keeps the order of the queue, if the peer can (ROT, 7.3.3)
  uint64_t user_data = 0;
  Owner owner = 0;
};

// How a group chooses the member that gets a message. The first two values are the API's; only the specification has
// the third policy.
enum class GroupPolicy : uint8_t {
  kRoundRobin,
  kHint,        // by the hint that the sender put into the message
  kQueueDepth,  // the member with the most receives posted
};

struct GroupConfig {
  uint32_t wanted_id = 0;
  GroupPolicy policy = GroupPolicy::kRoundRobin;
  Token token;  // checked instead of the token of the member's JFR
  Owner owner = 0;
};

struct SegmentConfig {
  std::byte* memory = nullptr;  // where the bytes are
  uint64_t address = 0;         // how peers and local SGEs name the first byte (va, or iova)
  uint64_t local_address = 0;   // how local SGEs name the first byte (always va)
  uint64_t length = 0;
  uint32_t token_id = 0;  // 0: the Core allocates one
  Token token;
  uint8_t access = 0;
  bool exclusive = false;  // only requests with E_bit reach it (9.4)
  bool direct = false;     // the host reaches the memory at once, so loads and stores by TP bypass do, too
  Owner owner = 0;
};

// Memory of another instance of this host, or of this one, that the host has mapped (docs/same-host-design.md).
struct MappedConfig {
  InstanceId instance;          // whose it is
  std::byte* memory = nullptr;  // where the bytes are here
  void* gate = nullptr;         // the host's name for it
  uint64_t address = 0;         // how the owner names the first byte
  uint64_t length = 0;
  uint32_t token_id = 0;
  Token token;
  uint8_t access = 0;  // what the owner allows to whoever has the token
  Owner owner = 0;     // the application of ours that may
};

struct RegisteredSegment {
  uint32_t handle = 0;  // for Sge::segment
  uint32_t token_id = 0;
  uint32_t shareable = 0;  // 1: others of this host may map it, which the NIC around the Core says
};
static_assert(std::has_unique_object_representations_v<RegisteredSegment>);  // recordings have its bytes

constexpr uint32_t kMinMtu = 1024, kMaxMtu = 8192;  // the MTU of a link or channel is a power of two
constexpr uint32_t kMinSegmentBytes = 32 * 1024;    // of the segments that a WRITE or READ is cut into

// How packets reach a peer. Frames carry complete addresses, so a port needs no more than the frame and its link.
struct LinkConfig {
  uint32_t mtu = 1024;               // payload bytes of a packet: 1024, 2048, 4096 or 8192
  bool icrc_optional = false;        // the wire cannot corrupt packets: offer to leave the ICRC out
  bool lossless = false;             // the wire holds the sender back instead of losing packets: no congestion window
  uint16_t roce_port = 0;            // UDP source port of all RoCE packets; 0: each queue pair has its own
  bool identification_lost = false;  // the port rebuilds the IPv4 headers of received packets, with ID 0
  // It carries CTP: it leaves the length of frames as it is, and takes those of the MTU. If it is lossless, it also
  // keeps the order of frames. If it is not, it may lose, double and reorder them, and no frame may come later than a
  // queue takes for 32768 transactions.
  bool compact = false;
  // It carries RTP over UB's own network header (wire/cna_packet.h): it leaves the length of frames as it is.
  bool link_frames = false;
  // It carries loads and stores (TP bypass): it loses a frame only if it finds no room or the link is dead, doubles
  // none, keeps their order, delivers within 2 s or never, and forgets what is under way when a process at one of its
  // ends ends. They go to a peer whose link says so, too.
  bool bypass = false;
};

struct PeerAddress {
  uint32_t link = 0;
  Endpoint local;
  Endpoint remote;
};

// A path for channels besides that of their set-up (tp/paths.h).
struct ExtraPath {
  IpAddress peer;    // for channels whose set-up went to this address; all zero: for all from the address `local.ip`
  Endpoint local;
  IpAddress remote;  // where it leads to; all zero: where the set-up went. The port is that of the set-up
};

struct TargetConfig {
  Eid local_eid;        // which of our EIDs the requests come from; all zero: CoreConfig::self.eid
  InstanceId instance;  // its uasid must be set; Core::find() finds it
  ObjectKind kind = ObjectKind::kJetty;
  uint32_t id = 0;
  Mode mode = Mode::kRm;
  Token token;  // presented with every message that takes a receive
  PeerAddress path;
  Owner owner = 0;
};

// The object whose instance Core::find() looks for.
struct FindConfig {
  Eid local_eid;  // which of our EIDs asks
  Eid eid;
  uint32_t id = 0;
  bool token_id = false;  // `id` is a token id, not that of a queue or group
  PeerAddress path;       // its remote port is the port of the id (wire/id_port.h)
};

// ---- out ---------------------------------------------------------------------------------------------------
enum class EventKind : uint8_t {
  kCompletion,       // an armed JFC got completions: object = its cookie
  kJfcError,         // a JFC became full (reported again only after it had room): object = its cookie
  kJettyError,       // object = user_data
  kJfsError,         // object = user_data
  kJfrLimit,         // fewer receives are posted than the threshold: object = user_data
  kChannelUp,        // object = TPN
  kChannelDead,      // object = TPN
  kChannelRejected,  // `peer` refused set-up, for `reason` (wire::RecordReason), by version `version`; object = TPN
  kQpError,          // a queue pair failed by itself: object = user_data
  kQpDrained,        // a queue pair is in SQD, and all that it had begun is complete: object = user_data
  kQpLastReceive,    // a queue pair is in ERROR and takes no more receives of its shared JFR: object = user_data
  kConnection,       // roce::Engine::poll_connection_events() has an event: object = its cookie
};

struct Event {
  EventKind kind;
  uint64_t object;
  Owner owner = 0;  // the object's owner; channels have none
  uint8_t reason = 0, version = 0;
  Eid peer{};
};

// A snapshot of one channel, for tools and tests.
struct ChannelInfo {
  uint32_t tpn, peer_tpn;
  InstanceId peer;
  Endpoint remote;
  uint32_t link;
  uint16_t mtu;
  bool bulk;      // its lane is for long messages
  bool ordered;   // it keeps the order of its messages (ROL)
  bool compact;   // it is one of CTP, which has no packet numbers
  bool cna;       // it is one of RTP over UB's own network header
  bool repeats;   // of CTP: its requests are repeated, because its wire may lose packets
  bool go_back_n;  // after a loss everything behind it goes again
  uint8_t state;  // tp::ChannelState
  uint32_t next_psn, oldest_unacked, expected_psn;
  uint32_t queued_messages;
  uint64_t tx_packets, rx_packets, retransmits;
  Duration smoothed_rtt, rto;
  const char* congestion_control;   // the name of its algorithm (cc::name_of())
  uint32_t window_packets;          // most packets in flight, by the peer and by that algorithm; of all live paths
  uint32_t rate_kbytes_per_second;  // the same, by DCQCN; 0: none limits it
  uint32_t paths;                   // how many it has
  ChannelCounts counts;

  // Packets that were taken for lost. Those of CTP are not counted.
  uint64_t lost() const {
    return counts[ChannelCount::kAgainDistance] + counts[ChannelCount::kAgainTime] + counts[ChannelCount::kAgainNak] +
           counts[ChannelCount::kAgainTimeout];
  }
};

// One path of a channel that has several. Window, rate and the rest are those of this moment.
struct PathInfo {
  Endpoint local, remote;
  bool live;
  uint32_t in_flight;               // packets
  uint32_t window_packets;          // most packets in flight, by the peer and by its congestion control
  uint32_t rate_kbytes_per_second;  // by DCQCN; 0: none limits it
  Duration smoothed_rtt;
  uint64_t tx_packets, rx_packets, lost, marks;
  uint32_t deaths;  // how often it ceased to be live
};

}  // namespace ub
