// SPDX-License-Identifier: Apache-2.0
//
// The statistics page: what a running instance shows to urma_admin and other tools. A file of fixed size in
// the statistics directory, `<eid>-<udp port>.stats`, written by one thread and mapped read-only by any
// number of readers. The writer never waits for a reader; a reader that meets a write in progress tries
// again.
//
// The writer holds an flock on the file for its whole life, so a page whose lock can be taken is that of an
// instance that died; it is removed when the next instance of the same user starts.
//
// The layout is versioned and meant for tools of another build: names travel with the counters, tables have
// their capacity in the header, and a reader refuses another version.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/work_figures.h"
#include "lib/base/counters.h"
#include "lib/transport/core_types.h"
#include "lib/transport/looking/last_notes.h"

namespace ub {

// ---- what is shown --------------------------------------------------------------------------------------------

// Who an instance is; set once.
struct StatsIdentity {
  std::vector<Eid> eids;  // at least one; the first names the file
  uint32_t uasid = 0;
  uint16_t udp_port = 0;  // of the instance, also where it has no socket
  std::string placement = "embedded";
  std::string wires;                       // "shm, udp": what was opened
  std::string device;                      // "softub0"
  std::vector<std::string> port_counters;  // names of counters beside those of the Core
};

// A pool that all channels share.
struct StatsPool {
  uint32_t in_use = 0, highest = 0;  // now, and at most since the start
  uint64_t size = 0;
  uint64_t refused = 0;  // times that nothing was left for somebody
  bool operator==(const StatsPool&) const = default;
};
// kept_small, kept_large: packets that wait for their delivery; one that finds no small place takes a large one, and is
// refused only there. bitmaps: of what arrived beyond a gap. recovery: of what was lost. records: of retransmissions.
inline constexpr const char* kStatsPoolNames[] = {"kept_small", "kept_large", "bitmaps", "recovery", "records"};
inline constexpr size_t kStatsPools = sizeof kStatsPoolNames / sizeof kStatsPoolNames[0];

// How many there are of each.
struct StatsObjects {
  uint32_t jfc = 0;
  uint32_t jfr = 0;
  uint32_t jfs = 0;
  uint32_t jetty = 0;
  uint32_t groups = 0;
  uint32_t segments = 0;
  uint32_t targets = 0;
  uint32_t peers = 0;
  uint32_t channels = 0;
  uint32_t links = 0;
  StatsPool pools[kStatsPools];  // in the order of their names
  bool operator==(const StatsObjects&) const = default;
};

// A registered segment. Token values are not shown.
struct StatsSegment {
  uint64_t address = 0;  // as peers name it
  uint64_t length = 0;
  uint32_t token_id = 0;
  uint8_t access = 0;  // kAccess*
  uint8_t token_required = 0;
  uint16_t reserved = 0;
  bool operator==(const StatsSegment&) const = default;
};
static_assert(sizeof(StatsSegment) == 24);

// A name that somebody gave a segment (softub_publish).
struct StatsName {
  char name[64] = {};  // ends with 0
  StatsSegment segment;
  bool operator==(const StatsName&) const = default;
};

// An application of a daemon.
struct StatsApp {
  uint32_t pid = 0, uid = 0;
  char program[16] = {};  // as it calls itself
  uint32_t send_queues = 0, receive_queues = 0, jfcs = 0, segments = 0, targets = 0;
  uint32_t stalls = 0;              // times that its agent was given up
  uint32_t starved = 0;             // times that its agent was waited for because it got no CPU
  uint32_t longest_starved_ms = 0;  // the longest of them
  uint64_t shared_bytes = 0;        // areas
  uint64_t posts = 0;               // doorbells that the worker took
  uint64_t copies = 0;              // done by its agent
  uint64_t events_lost = 0;
};
static_assert(sizeof(StatsApp) == 88);

// A ChannelInfo in a layout of its own.
struct StatsChannel {
  uint32_t tpn, peer_tpn;
  uint8_t peer_eid[16];
  uint8_t remote_ip[16];
  uint32_t peer_uasid;
  uint16_t remote_port, mtu;
  uint32_t link;
  uint8_t bulk, state, ordered, compact, go_back_n, repeats, cna;
  uint8_t reserved[5];
  uint32_t next_psn, oldest_unacked, expected_psn, queued_messages;
  uint64_t tx_packets, rx_packets, retransmits;
  int64_t smoothed_rtt_ns, rto_ns;
  char congestion_control[16];      // the name of its algorithm, ends with 0
  uint32_t window_packets;          // most packets in flight, by the peer and by that algorithm; 0: CTP, which has none
  uint32_t rate_kbytes_per_second;  // 0: none limits it
  uint32_t paths;                   // how many it has, also those that are not shown
  uint32_t reserved2;
  uint64_t lost;                    // packets that were taken for lost
  uint64_t counts[kChannelCounts];  // in the order of kChannelCountNames
};
static_assert(sizeof(StatsChannel) == 160 + 8 * kChannelCounts);
// Packets sent and not acknowledged: their numbers have 24 bits.
constexpr uint32_t in_flight_of(const StatsChannel& c) { return (c.next_psn - c.oldest_unacked) & 0xffffff; }

// One path of a channel that has several: a PathInfo in a layout of its own. A channel shows its first 8.
constexpr uint32_t kStatsPathsOfChannel = 8;
struct StatsPath {
  uint32_t tpn;     // of the channel
  uint16_t number;  // 0: that of its set-up
  uint8_t live;
  uint8_t reserved;
  uint8_t local_ip[16], remote_ip[16];
  uint16_t local_port, remote_port;
  uint32_t window_packets, rate_kbytes_per_second, in_flight;
  uint32_t deaths;  // how often it ceased to be live
  uint32_t reserved2;
  uint64_t tx_packets, rx_packets, lost, marks;
  int64_t smoothed_rtt_ns;
};
static_assert(sizeof(StatsPath) == 104);
StatsPath stats_path(uint32_t tpn, uint16_t number, const PathInfo&);

// ---- writing --------------------------------------------------------------------------------------------------

// Thread: one at a time. In a forked child the object does nothing.
class StatsPageWriter {
 public:
  // Creates the page, with all values zero, and its directory (private to the user) if its parent exists.
  // Null and `*error`, a sentence, on failure: an instance can live without its page.
  static std::unique_ptr<StatsPageWriter> create(const std::string& directory, const StatsIdentity&,
                                                 std::string* error);
  ~StatsPageWriter();  // removes the file
  StatsPageWriter(const StatsPageWriter&) = delete;
  StatsPageWriter& operator=(const StatsPageWriter&) = delete;

  // Publishes all values together. Rows beyond the capacity are counted and not shown. Copies some kilobytes
  // and makes no system call but one for the time of day: meant to be called at most every 100 ms.
  // `port_counters`: values in the order of their names.
  void update(const Counters&, const StatsObjects&, std::span<const ChannelInfo>, std::span<const StatsSegment>,
              std::span<const uint64_t> port_counters = {}, std::span<const StatsApp> apps = {},
              std::span<const StatsName> names = {}, std::span<const StatsPath> paths = {},
              const WorkFigures& work = {});

  // Where the Core of the instance keeps its last notes (Core::keep_last_notes). They are in the file at once, whether
  // update() is called or not, and stay there when the process is killed.
  LastNotes* last_notes();

  const std::string& path() const { return path_; }

 private:
  StatsPageWriter() = default;

  std::string path_;
  int fd_ = -1;
  std::byte* map_ = nullptr;
  pid_t owner_ = 0;
  std::vector<uint64_t> image_;  // the next body
  size_t port_counters_ = 0;
};

// ---- reading --------------------------------------------------------------------------------------------------

// One consistent picture.
struct StatsReport {
  uint32_t uasid = 0;
  uint16_t udp_port = 0;
  pid_t pid = 0;  // in the PID namespace of the instance
  std::vector<Eid> eids;
  std::string program, placement, wires, device;
  uint64_t started_ns = 0;  // wall clock, since 1970
  uint64_t updated_ns = 0;  // of these values; 0: never
  uint64_t updates = 0;
  std::vector<std::pair<std::string, uint64_t>> counters;
  StatsObjects objects;
  WorkFigures work{};
  std::vector<StatsChannel> channels;
  uint32_t channels_total = 0;  // more than there are rows: the rest did not fit
  std::vector<StatsSegment> segments;
  uint32_t segments_total = 0;
  std::vector<StatsApp> apps;
  uint32_t apps_total = 0;
  std::vector<StatsName> names;
  uint32_t names_total = 0;
  std::vector<StatsPath> paths;  // those of a channel in a row; of all, the first 1024 that StatsPath allows
};

// A LastNote with the time of the wall clock, since 1970.
struct StatsNote {
  uint64_t first_ns = 0, last_ns = 0;
  Note note{};
  uint32_t times = 0;
};

class StatsPageReader {
 public:
  // Null and `*error` if there is no page, or one of another version.
  static std::unique_ptr<StatsPageReader> open(const std::string& path, std::string* error);
  ~StatsPageReader();
  StatsPageReader(const StatsPageReader&) = delete;
  StatsPageReader& operator=(const StatsPageReader&) = delete;

  // False and `*error` if no consistent picture could be had, which means that the writer died while writing.
  bool read(StatsReport*, std::string* error) const;
  // The oldest first. False and `*error`: the instance is of a build that has other stages.
  bool read_last_notes(std::vector<StatsNote>*, std::string* error) const;
  // Does the instance still run?
  bool alive() const;

 private:
  StatsPageReader() = default;

  int fd_ = -1;
  const std::byte* map_ = nullptr;
};

// The names of all pages in a directory, sorted, without directory and suffix: "10.0.0.1-4792".
std::vector<std::string> list_stats_pages(const std::string& directory);
std::string stats_page_path(const std::string& directory, std::string_view name);

// "10.0.0.1" for IPv4-mapped ones, else the IPv6 notation.
std::string eid_text(const Eid&);

}  // namespace ub
