// SPDX-License-Identifier: Apache-2.0
#include "dataplane/stats_page.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "dataplane/look_door.h"
#include "dataplane/tsc_clock.h"
#include "lib/base/fnv.h"
#include "lib/transport/wire/network_header.h"

namespace ub {
namespace {

constexpr uint64_t kMagic = 0x3153544154534255;  // "UBSTATS1" in memory
constexpr uint32_t kVersion = 8;
constexpr uint32_t kMaxEids = 16;
constexpr uint32_t kMaxCounters = 256;
constexpr uint32_t kMaxChannels = 512;
constexpr uint32_t kMaxSegments = 1024;
constexpr uint32_t kMaxApps = 1024;
constexpr uint32_t kMaxNames = 1024;
constexpr uint32_t kMaxPaths = 1024;
constexpr size_t kNameBytes = 48;
constexpr const char* kSuffix = ".stats";
constexpr const char* kUnfinishedSuffix = ".stats.tmp";  // of a hidden file
constexpr time_t kUnfinishedSeconds = 60;                // a page is finished sooner, or never

static_assert(kCounterCount <= kMaxCounters);

// Written before the file gets its name, constant from then on.
struct Header {
  uint64_t magic;
  uint32_t version;
  uint32_t file_bytes;
  uint32_t counter_count, max_channels, max_segments;
  uint32_t eid_count;
  uint32_t uasid;
  uint32_t udp_port;
  int64_t pid;
  uint64_t started_ns;
  uint64_t started_monotonic_ns;  // the same moment by the clock of notes
  uint64_t stages;                // a hash of the names of all stages, whose numbers notes have
  uint8_t eids[kMaxEids][16];
  char program[kNameBytes], placement[kNameBytes], wires[kNameBytes], device[kNameBytes];
  char counter_names[kMaxCounters][kNameBytes];
};

// Changes with every update, guarded by the sequence number. Only 64-bit words, so that it can be copied with
// atomic accesses; the fields before the tables are always written whole, the tables as far as they are used.
struct Body {
  uint64_t updated_ns;
  uint64_t updates;
  uint32_t channels_total, channel_rows;
  uint32_t segments_total, segment_rows;
  uint32_t apps_total, app_rows;
  uint32_t names_total, name_rows;
  uint64_t path_rows;
  StatsObjects objects;
  WorkFigures work;
  uint64_t counters[kMaxCounters];
  StatsChannel channels[kMaxChannels];
  StatsSegment segments[kMaxSegments];
  StatsApp apps[kMaxApps];
  StatsName names[kMaxNames];
  StatsPath paths[kMaxPaths];
};

struct Page {
  Header header;
  alignas(64) uint64_t sequence;  // odd: a write is in progress
  alignas(64) Body body;
  alignas(64) LastNotes last_notes;
};

constexpr size_t kFileBytes = (sizeof(Page) + 4095) / 4096 * 4096;
static_assert(sizeof(Body) % 8 == 0 && offsetof(Body, channels) % 8 == 0 && offsetof(Body, segments) % 8 == 0);
static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);

// Of the names, each with its end.
uint64_t hash_of_stages() {
  uint64_t hash = kFnvBasis;
  for (const char* name : kStageNames) hash = fnv1a(std::string_view(name, std::strlen(name) + 1), hash);
  return hash;
}

// Words are released after the odd sequence number: whoever sees one of them sees that number too.
void publish_words(uint64_t* to, const uint64_t* from, size_t bytes) {
  for (size_t i = 0; i < bytes / 8; ++i) std::atomic_ref(to[i]).store(from[i], std::memory_order_release);
}

void read_words(uint64_t* to, const uint64_t* from, size_t bytes) {
  for (size_t i = 0; i < bytes / 8; ++i) {
    to[i] = std::atomic_ref(const_cast<uint64_t&>(from[i])).load(std::memory_order_acquire);
  }
}

void copy_name(char (&to)[kNameBytes], std::string_view from) {
  size_t n = std::min(from.size(), kNameBytes - 1);
  std::memcpy(to, from.data(), n);
  std::memset(to + n, 0, kNameBytes - n);
}

std::string read_name(const char (&from)[kNameBytes]) { return std::string(from, strnlen(from, kNameBytes)); }

std::string program_name() {
  char name[64] = {};
  int fd = ::open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "?";
  ssize_t n = ::read(fd, name, sizeof name - 1);
  ::close(fd);
  while (n > 0 && name[n - 1] == '\n') --n;
  return std::string(name, static_cast<size_t>(std::max<ssize_t>(n, 0)));
}

StatsChannel to_row(const ChannelInfo& c) {
  StatsChannel r{};
  r.tpn = c.tpn;
  r.peer_tpn = c.peer_tpn;
  std::memcpy(r.peer_eid, c.peer.eid.bytes.data(), 16);
  std::memcpy(r.remote_ip, c.remote.ip.bytes.data(), 16);
  r.peer_uasid = c.peer.uasid;
  r.remote_port = c.remote.port;
  r.mtu = c.mtu;
  r.link = c.link;
  r.bulk = c.bulk;
  r.ordered = c.ordered;
  r.compact = c.compact;
  r.repeats = c.repeats;
  r.cna = c.cna;
  r.go_back_n = c.go_back_n;
  r.state = c.state;
  r.next_psn = c.next_psn;
  r.oldest_unacked = c.oldest_unacked;
  r.expected_psn = c.expected_psn;
  r.queued_messages = c.queued_messages;
  r.tx_packets = c.tx_packets;
  r.rx_packets = c.rx_packets;
  r.retransmits = c.retransmits;
  r.smoothed_rtt_ns = c.smoothed_rtt.ns;
  r.rto_ns = c.rto.ns;
  std::strncpy(r.congestion_control, c.congestion_control, sizeof r.congestion_control - 1);
  r.window_packets = c.window_packets;
  r.rate_kbytes_per_second = c.rate_kbytes_per_second;
  r.paths = c.paths;
  r.lost = c.lost();
  std::copy(std::begin(c.counts.v), std::end(c.counts.v), r.counts);
  return r;
}

std::string system_error(const std::string& what) { return what + ": " + std::strerror(errno); }

// Names without the suffix.
std::vector<std::string> list_files(const std::string& directory, const char* suffix, bool hidden) {
  std::vector<std::string> names;
  DIR* dir = opendir(directory.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) {
    std::string_view name = entry->d_name;
    if (name.ends_with(suffix) && (name.front() == '.') == hidden) {
      names.emplace_back(name.substr(0, name.size() - std::strlen(suffix)));
    }
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

// Of instances that were killed before their page had its name.
void remove_unfinished_pages(const std::string& directory) {
  for (const std::string& name : list_files(directory, kUnfinishedSuffix, true)) {
    const std::string path = directory + "/" + name + kUnfinishedSuffix;
    struct stat st;
    const bool ours = lstat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
    if (ours && time(nullptr) - st.st_mtime > kUnfinishedSeconds) unlink(path.c_str());
  }
}

// Removes pages of instances that died. A page is locked before it gets its name, so a lock that can be taken
// means that its owner is gone.
// Somebody else's file may have the same suffix.
bool is_stats_page(int fd) {
  uint64_t magic;
  return pread(fd, &magic, sizeof magic, 0) == sizeof magic && magic == kMagic;
}

void remove_dead_pages(const std::string& directory) {
  for (const std::string& name : list_stats_pages(directory)) {
    std::string path = stats_page_path(directory, name);
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    struct stat st;
    bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && is_stats_page(fd);
    if (ours && flock(fd, LOCK_EX | LOCK_NB) == 0) {
      unlink(path.c_str());
      unlink(LookDoor::path_beside(path).c_str());
    }
    ::close(fd);
  }
}

void fill_header(Header& h, const StatsIdentity& id) {
  h.magic = kMagic;
  h.version = kVersion;
  h.file_bytes = kFileBytes;
  const size_t port_counters = std::min<size_t>(id.port_counters.size(), kMaxCounters - kCounterCount);
  h.counter_count = static_cast<uint32_t>(kCounterCount + port_counters);
  h.max_channels = kMaxChannels;
  h.max_segments = kMaxSegments;
  h.eid_count = static_cast<uint32_t>(std::min<size_t>(id.eids.size(), kMaxEids));
  for (uint32_t i = 0; i < h.eid_count; ++i) std::memcpy(h.eids[i], id.eids[i].bytes.data(), 16);
  h.uasid = id.uasid;
  h.udp_port = id.udp_port;
  h.pid = getpid();
  h.started_ns = TscClock::wall_ns();
  h.started_monotonic_ns = TscClock::monotonic_ns();
  h.stages = hash_of_stages();
  copy_name(h.program, program_name());
  copy_name(h.placement, id.placement);
  copy_name(h.wires, id.wires);
  copy_name(h.device, id.device);
  for (size_t i = 0; i < kCounterCount; ++i) copy_name(h.counter_names[i], kCounterNames[i]);
  for (size_t i = 0; i < port_counters; ++i) copy_name(h.counter_names[kCounterCount + i], id.port_counters[i]);
}

}  // namespace

std::string eid_text(const Eid& eid) {
  char text[INET6_ADDRSTRLEN] = "?";
  wire::IpAddress ip{eid.bytes};
  if (ip.is_v4()) {
    inet_ntop(AF_INET, eid.bytes.data() + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, eid.bytes.data(), text, sizeof text);
  }
  return text;
}

StatsPath stats_path(uint32_t tpn, uint16_t number, const PathInfo& p) {
  StatsPath r{};
  r.tpn = tpn;
  r.number = number;
  r.live = p.live;
  std::memcpy(r.local_ip, p.local.ip.bytes.data(), 16);
  std::memcpy(r.remote_ip, p.remote.ip.bytes.data(), 16);
  r.local_port = p.local.port;
  r.remote_port = p.remote.port;
  r.window_packets = p.window_packets;
  r.rate_kbytes_per_second = p.rate_kbytes_per_second;
  r.in_flight = p.in_flight;
  r.deaths = p.deaths;
  r.tx_packets = p.tx_packets;
  r.rx_packets = p.rx_packets;
  r.lost = p.lost;
  r.marks = p.marks;
  r.smoothed_rtt_ns = p.smoothed_rtt.ns;
  return r;
}

std::string stats_page_path(const std::string& directory, std::string_view name) {
  return directory + "/" + std::string(name) + kSuffix;
}

std::vector<std::string> list_stats_pages(const std::string& directory) {
  return list_files(directory, kSuffix, false);
}

// ---- writer ---------------------------------------------------------------------------------------------------

std::unique_ptr<StatsPageWriter> StatsPageWriter::create(const std::string& directory, const StatsIdentity& id,
                                                         std::string* error) {
  if (id.eids.empty()) {
    *error = "a statistics page needs an EID";
    return nullptr;
  }
  mkdir(directory.c_str(), 0700);  // it usually exists; whether it serves is seen below
  remove_dead_pages(directory);
  remove_unfinished_pages(directory);
  const std::string name = eid_text(id.eids.front()) + "-" + std::to_string(id.udp_port);
  const std::string path = stats_page_path(directory, name);
  const std::string temporary = directory + "/." + name + "." + std::to_string(getpid()) + kUnfinishedSuffix;
  unlink(temporary.c_str());

  std::unique_ptr<StatsPageWriter> w(new StatsPageWriter);
  auto fail = [&](const std::string& what) {
    *error = system_error(what);
    unlink(temporary.c_str());
    return nullptr;
  };
  w->fd_ = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (w->fd_ < 0) return fail("cannot create " + temporary);
  // Blocks are taken now: a full file system must give an error here, not a SIGBUS later.
  if (int e = posix_fallocate(w->fd_, 0, kFileBytes); e != 0) {
    errno = e;
    return fail("no room for " + temporary);
  }
  if (flock(w->fd_, LOCK_EX | LOCK_NB) != 0) return fail("cannot lock " + temporary);
  void* map = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd_, 0);
  if (map == MAP_FAILED) return fail("cannot map " + temporary);
  w->map_ = static_cast<std::byte*>(map);
  w->owner_ = getpid();
  madvise(map, kFileBytes, MADV_DONTFORK);
  w->image_.resize(sizeof(Body) / 8);
  Header& header = reinterpret_cast<Page*>(map)->header;
  fill_header(header, id);
  w->port_counters_ = header.counter_count - kCounterCount;
  if (rename(temporary.c_str(), path.c_str()) != 0) return fail("cannot rename " + temporary);
  w->path_ = path;
  return w;
}

LastNotes* StatsPageWriter::last_notes() { return &reinterpret_cast<Page*>(map_)->last_notes; }

StatsPageWriter::~StatsPageWriter() {
  const bool mine = owner_ == getpid();
  if (map_ != nullptr && mine) munmap(map_, kFileBytes);
  if (!path_.empty() && mine) {
    // Another instance may have taken the name meanwhile.
    struct stat by_name, by_fd;
    if (stat(path_.c_str(), &by_name) == 0 && fstat(fd_, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino) {
      unlink(path_.c_str());
    }
  }
  if (fd_ >= 0) ::close(fd_);
}

void StatsPageWriter::update(const Counters& counters, const StatsObjects& objects,
                             std::span<const ChannelInfo> channels, std::span<const StatsSegment> segments,
                             std::span<const uint64_t> port_counters, std::span<const StatsApp> apps,
                             std::span<const StatsName> names, std::span<const StatsPath> paths,
                             const WorkFigures& work) {
  if (owner_ != getpid()) return;
  Page* page = reinterpret_cast<Page*>(map_);
  Body& next = *reinterpret_cast<Body*>(image_.data());
  next.updated_ns = TscClock::wall_ns();
  ++next.updates;
  next.objects = objects;
  next.work = work;
  std::copy(std::begin(counters.v), std::end(counters.v), next.counters);
  std::copy_n(port_counters.begin(), std::min(port_counters.size(), port_counters_), next.counters + kCounterCount);
  next.channels_total = static_cast<uint32_t>(channels.size());
  next.channel_rows = std::min(next.channels_total, kMaxChannels);
  next.segments_total = static_cast<uint32_t>(segments.size());
  next.segment_rows = std::min(next.segments_total, kMaxSegments);
  for (uint32_t i = 0; i < next.channel_rows; ++i) next.channels[i] = to_row(channels[i]);
  for (uint32_t i = 0; i < next.segment_rows; ++i) next.segments[i] = segments[i];
  next.apps_total = static_cast<uint32_t>(apps.size());
  next.app_rows = std::min(next.apps_total, kMaxApps);
  std::copy_n(apps.begin(), next.app_rows, next.apps);
  next.names_total = static_cast<uint32_t>(names.size());
  next.name_rows = std::min(next.names_total, kMaxNames);
  std::copy_n(names.begin(), next.name_rows, next.names);
  next.path_rows = std::min<uint64_t>(paths.size(), kMaxPaths);
  std::copy_n(paths.begin(), next.path_rows, next.paths);

  auto publish = [&](size_t offset, size_t bytes) {
    publish_words(reinterpret_cast<uint64_t*>(reinterpret_cast<std::byte*>(&page->body) + offset),
                  image_.data() + offset / 8, bytes);
  };
  std::atomic_ref sequence(page->sequence);
  const uint64_t s = sequence.load(std::memory_order_relaxed);
  sequence.store(s + 1, std::memory_order_relaxed);
  publish(0, offsetof(Body, counters) + (kCounterCount + port_counters_) * sizeof(uint64_t));
  publish(offsetof(Body, channels), next.channel_rows * sizeof(StatsChannel));
  publish(offsetof(Body, segments), next.segment_rows * sizeof(StatsSegment));
  publish(offsetof(Body, apps), next.app_rows * sizeof(StatsApp));
  publish(offsetof(Body, names), next.name_rows * sizeof(StatsName));
  publish(offsetof(Body, paths), next.path_rows * sizeof(StatsPath));
  sequence.store(s + 2, std::memory_order_release);
}

// ---- reader ---------------------------------------------------------------------------------------------------

std::unique_ptr<StatsPageReader> StatsPageReader::open(const std::string& path, std::string* error) {
  std::unique_ptr<StatsPageReader> r(new StatsPageReader);
  r->fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (r->fd_ < 0) {
    *error = system_error("cannot open " + path);
    return nullptr;
  }
  struct stat st;
  if (fstat(r->fd_, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < static_cast<off_t>(sizeof(Header))) {
    *error = path + " is not a statistics page";
    return nullptr;
  }
  Header h;
  if (pread(r->fd_, &h, sizeof h, 0) != static_cast<ssize_t>(sizeof h) || h.magic != kMagic) {
    *error = path + " is not a statistics page";
    return nullptr;
  }
  if (h.version != kVersion) {
    *error = path + " has version " + std::to_string(h.version) + ", this program reads " + std::to_string(kVersion);
    return nullptr;
  }
  if (h.file_bytes != kFileBytes || st.st_size != static_cast<off_t>(kFileBytes) || h.eid_count > kMaxEids ||
      h.counter_count > kMaxCounters || h.max_channels != kMaxChannels || h.max_segments != kMaxSegments) {
    *error = path + " is damaged";
    return nullptr;
  }
  void* map = mmap(nullptr, kFileBytes, PROT_READ, MAP_SHARED, r->fd_, 0);
  if (map == MAP_FAILED) {
    *error = system_error("cannot map " + path);
    return nullptr;
  }
  r->map_ = static_cast<const std::byte*>(map);
  return r;
}

StatsPageReader::~StatsPageReader() {
  if (map_ != nullptr) munmap(const_cast<std::byte*>(map_), kFileBytes);
  if (fd_ >= 0) ::close(fd_);
}

bool StatsPageReader::read_last_notes(std::vector<StatsNote>* notes, std::string* error) const {
  const Page* page = reinterpret_cast<const Page*>(map_);
  const Header& h = page->header;
  if (h.stages != hash_of_stages()) {
    *error = "the instance is of another build, whose events this program does not know";
    return false;
  }
  notes->clear();
  const uint64_t to_wall = h.started_ns - h.started_monotonic_ns;
  page->last_notes.each([&](const LastNote& n) {
    if (static_cast<uint32_t>(n.note.stage) >= kStageCount) return;  // a torn or damaged one
    notes->push_back({n.first_ns + to_wall, n.last_ns + to_wall, n.note, n.times});
  });
  return true;
}

bool StatsPageReader::alive() const {
  if (flock(fd_, LOCK_SH | LOCK_NB) != 0) return true;
  flock(fd_, LOCK_UN);
  return false;
}

namespace {

// The body as far as it is used: the tables are large, and mostly empty. Numbers of rows may change while they are
// read, and are bounded like all others.
void read_body(uint64_t* to, const Body& from) {
  const auto copy = [&](size_t offset, size_t bytes) {
    read_words(to + offset / 8, reinterpret_cast<const uint64_t*>(reinterpret_cast<const std::byte*>(&from) + offset),
               bytes);
  };
  const auto table = [&](size_t offset, size_t row_bytes, uint64_t rows, uint32_t most) {
    copy(offset, row_bytes * std::min<uint64_t>(rows, most));
  };
  copy(0, offsetof(Body, channels));
  const Body& head = *reinterpret_cast<const Body*>(to);
  table(offsetof(Body, channels), sizeof(StatsChannel), head.channel_rows, kMaxChannels);
  table(offsetof(Body, segments), sizeof(StatsSegment), head.segment_rows, kMaxSegments);
  table(offsetof(Body, apps), sizeof(StatsApp), head.app_rows, kMaxApps);
  table(offsetof(Body, names), sizeof(StatsName), head.name_rows, kMaxNames);
  table(offsetof(Body, paths), sizeof(StatsPath), head.path_rows, kMaxPaths);
}

}  // namespace

bool StatsPageReader::read(StatsReport* report, std::string* error) const {
  const Page* page = reinterpret_cast<const Page*>(map_);
  const auto image = std::make_unique_for_overwrite<uint64_t[]>(sizeof(Body) / 8);  // most of it is never touched
  std::atomic_ref sequence(const_cast<uint64_t&>(page->sequence));
  bool consistent = false;
  for (int attempt = 0; attempt < 2000 && !consistent; ++attempt) {
    const uint64_t before = sequence.load(std::memory_order_acquire);
    if (before % 2 == 0) {
      read_body(image.get(), page->body);
      consistent = sequence.load(std::memory_order_relaxed) == before;
    }
    if (!consistent && attempt % 16 == 15) usleep(50);
  }
  if (!consistent) {
    *error = "the instance died while it wrote its statistics";
    return false;
  }

  const Header& h = page->header;
  const Body& b = *reinterpret_cast<const Body*>(image.get());
  StatsReport out;
  out.uasid = h.uasid;
  out.udp_port = static_cast<uint16_t>(h.udp_port);
  out.pid = static_cast<pid_t>(h.pid);
  for (uint32_t i = 0; i < std::min(h.eid_count, kMaxEids); ++i) {
    Eid eid;
    std::memcpy(eid.bytes.data(), h.eids[i], 16);
    out.eids.push_back(eid);
  }
  out.program = read_name(h.program);
  out.placement = read_name(h.placement);
  out.wires = read_name(h.wires);
  out.device = read_name(h.device);
  out.started_ns = h.started_ns;
  out.updated_ns = b.updated_ns;
  out.updates = b.updates;
  for (uint32_t i = 0; i < std::min(h.counter_count, kMaxCounters); ++i) {
    out.counters.emplace_back(read_name(h.counter_names[i]), b.counters[i]);
  }
  out.objects = b.objects;
  out.work = b.work;
  out.channels.assign(b.channels, b.channels + std::min(b.channel_rows, kMaxChannels));
  out.channels_total = b.channels_total;
  out.segments.assign(b.segments, b.segments + std::min(b.segment_rows, kMaxSegments));
  out.segments_total = b.segments_total;
  out.apps.assign(b.apps, b.apps + std::min(b.app_rows, kMaxApps));
  out.apps_total = b.apps_total;
  out.names.assign(b.names, b.names + std::min(b.name_rows, kMaxNames));
  out.names_total = b.names_total;
  out.paths.assign(b.paths, b.paths + std::min<uint64_t>(b.path_rows, kMaxPaths));
  *report = std::move(out);
  return true;
}

}  // namespace ub
