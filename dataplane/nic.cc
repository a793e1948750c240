// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nic.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "dataplane/dpdk_devices.h"
#include "dataplane/nic_report.h"
#include "lib/ipc/sleep_for.h"
#include "lib/transport/core_impl.h"
#include "lib/transport/wire/id_port.h"

namespace ub {

template class Core<PortSet>;
template class roce::Engine<PortSet>;

namespace {

constexpr uint16_t kWellKnownPort = wire::kUbUdpPort;
constexpr Duration kLinkPatience = milliseconds(100);
constexpr Duration kNeighbourPatience = seconds(3);
constexpr Duration kLinkPause = microseconds(20);
constexpr Duration kOwnerPatience = microseconds(4);
constexpr int kNameTries = 100;
constexpr Duration kNamePause = milliseconds(10);

uint64_t random_u64() {
  uint64_t value = 0;
  while (value == 0) {
    if (getrandom(&value, sizeof value, 0) != sizeof value) value = TscClock::monotonic_ns();
  }
  return value;
}

bool uses(const Config& config, const char* kind) {
  return std::find(config.port.kinds.begin(), config.port.kinds.end(), kind) != config.port.kinds.end();
}

}  // namespace

std::unique_ptr<Nic> Nic::start(const LoadedConfig& config, uint32_t wanted_uasid, NoticeSink notice,
                                std::string* error, NicClients* clients) {
  std::unique_ptr<Nic> nic(new Nic);
  nic->config_ = config;
  nic->notice_ = std::move(notice);
  nic->clients_ = clients;
  if (clients != nullptr) {
    nic->ports_.foreign = &clients->memory();
    nic->set_event_sink([clients](const Event& event) { clients->on_event(event); });
  }
  if (uses(config, "dpdk")) nic->dpdk_ports_ = dpdk_ports(config.dpdk, error);
  if (uses(config, "dpdk") && nic->dpdk_ports_.empty()) return nullptr;
  std::vector<wire::IpAddress> dpdk_addresses;
  for (const PluginPortOptions& port : nic->dpdk_ports_) {
    for (const IpNetwork& network : port.addresses) dpdk_addresses.push_back(network.address);
  }
  if (!nic->eids_.init({config.device.eids, config.device.eid_map, dpdk_addresses}, error)) return nullptr;
  if (!nic->ports_.loopback.ok()) {
    *error = "no memory for the loopback queue";
    return nullptr;
  }
  if (!nic->open_ports(config, wanted_uasid, error)) return nullptr;
  CoreConfig core = nic->core_config(config);
  size_t bytes = NicCore::arena_bytes(core);
  if (!nic->arena_.map_private(bytes)) {
    *error =
        "cannot reserve " + std::to_string(bytes >> 20) + " MiB of address space for the NIC's tables; lower [limits]";
    return nullptr;
  }
  if (clients == nullptr) nic->ports_.shm.hold_bells();
  nic->worker_ = std::make_unique<Worker<PortSet>>(core, nic->arena_.data(), nic->ports_);
  for (size_t i = 1; i < nic->eids_.eids().size(); ++i) nic->worker_->core().add_eid(nic->eids_.eids()[i]);
  nic->add_fixed_links();
  nic->adopt_claims();
  if (!nic->alarm_.create(error)) return nullptr;
  nic->wake_fd_ = ipc::Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!nic->wake_fd_) {
    *error = "cannot create an eventfd: out of descriptors";
    return nullptr;
  }
  std::string statistics_error;  // an instance can live without its page
  StatsIdentity identity;
  identity.eids = nic->eids_.eids();
  identity.uasid = nic->uasid_;
  identity.udp_port = nic->udp_port_;
  const std::pair<bool, const char*> wires[] = {
      {nic->ports_.shm.is_open(), "shm"}, {nic->ports_.udp.is_open(), "udp"}, {!nic->ports_.plugins.empty(), "dpdk"}};
  for (auto [open, name] : wires) {
    if (open) identity.wires += (identity.wires.empty() ? "" : ", ") + std::string(name);
  }
  if (!nic->ports_.plugins.empty()) {
    identity.port_counters.assign(std::begin(kPluginPortCounterNames), std::end(kPluginPortCounterNames));
  }
  identity.device = config.device.name;
  if (clients != nullptr) identity.placement = "daemon";
  std::string directory = config.log.stats_dir;
  if (directory.empty()) {
    directory = nic->ports_.shm.is_open() ? nic->ports_.shm.directory() : ipc::Rendezvous::default_directory();
  }
  nic->statistics_ = StatsPageWriter::create(directory, identity, &statistics_error);
  if (!nic->watch_all(error)) return nullptr;
  nic->start_helper();
  return nic;
}

// The set of who stands in first: it is the one that is woken if somebody sleeps in both.
bool Nic::watch_all(std::string* error) {
  if (!stand_in_wakers_.create(error) || !wakers_.create(error)) return false;
  leave_bell_ = ipc::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (leave_bell_ && stand_in_wakers_.watch(leave_bell_.get(), Waker::kOthers) &&
      ports_.watch_frames(stand_in_wakers_) && wakers_.watch(wake_fd_.get(), Waker::kRung) &&
      wakers_.watch(alarm_.fd(), Waker::kAlarm) && ports_.watch(wakers_) &&
      (clients_ == nullptr || wakers_.watch(clients_->fd(), Waker::kOthers))) {
    return true;
  }
  *error = std::string("cannot watch the descriptors of the NIC: ") + std::strerror(errno);
  return false;
}

void Nic::start_helper() {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  helper_ = std::thread([this] { clients_ != nullptr ? worker_main() : helper_main(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  pthread_setname_np(helper_.native_handle(), "softub");
}

Nic::~Nic() {
  if (!helper_.joinable()) return;
  stop_.store(true);
  wake_helper();
  helper_.join();
  for (uint16_t port : claims_.ports()) ports_.shm.retract_ids(port);  // while they are ours
  // A thread that was interrupted while it owned the Core must not hang the exit.
  Instant limit = worker_->now() + kTeardownWait;
  while (!ownership_.try_own()) {
    if (worker_->now() > limit) return;
    ipc::sleep_for(microseconds(100));
  }
  worker_->core().close(worker_->turn());
  limit = worker_->now() + kTeardownWait;
  auto ignore = [](const Event&) {};
  while (worker_->now() < limit && (worker_->drive(Acks::kNow, ignore) || worker_->core().has_packets())) {
  }
  release();
}

// ---- start-up --------------------------------------------------------------------------------------------------

// An instance has one port number for all its wires: the wanted one, or that of its first block of ids, which nobody
// else can have.
bool Nic::open_ports(const LoadedConfig& config, uint32_t wanted_uasid, std::string* error) {
  if (!claim_first_ids(config, error)) return false;
  auto generation = static_cast<uint32_t>(random_u64() >> 48);
  // The low half says where we are reached; only the generation is free to choose.
  if (wanted_uasid >> 16 != 0) generation = wanted_uasid >> 16;
  uasid_ = (generation == 0 ? 1 : generation) << 16;
  std::vector<ClaimSocket> bound = claims_.take_sockets();
  bool taken = false;
  bool open = open_at(config, static_cast<uint16_t>(config.port.udp_port), &bound, &taken, error);
  // Nobody else has the second name. Where processes were killed, others may be clearing it up, who are as slow as the
  // machine is busy.
  for (int tries = 0; !open && taken && tries < kNameTries; ++tries) {
    if (tries != 0) ipc::sleep_for(kNamePause);
    open = open_at(config, wire::port_of_block(claims_.blocks().front()), &bound, &taken, error);
  }
  if (!open) return false;
  claims_.give_back(std::move(bound));
  if (config.roce.enable && ports_.udp.is_open()) ports_.udp.open_roce(notice_);
  return open_dpdk(config, error);  // the last: the port number is final now
}

// `*taken`: another instance has the port on one of the wires.
bool Nic::open_at(const LoadedConfig& config, uint16_t port, std::vector<ClaimSocket>* bound, bool* taken,
                  std::string* error) {
  udp_port_ = port;
  uasid_ = (uasid_ & 0xffff0000) | port;
  if (uses(config, "shm") && !open_shm(config, taken, error)) return false;
  if (!uses(config, "udp") || open_udp(config, bound, taken, error)) return true;
  ports_.shm.close();
  return false;
}

bool Nic::udp_addresses(const LoadedConfig& config, std::vector<wire::IpAddress>* addresses, std::string* error) const {
  for (const std::string& text : config.port.udp_bind) {
    std::optional<wire::IpAddress> ip = parse_ip(text);
    if (!ip) {
      *error = "port.udp_bind: '" + text + "' is no IP address";
      return false;
    }
    addresses->push_back(*ip);
  }
  for (size_t i = 0; config.port.udp_bind.empty() && i < eids_.eids().size(); ++i) {
    if (!dpdk_port_of(eids_.local_ip(i))) addresses->push_back(eids_.local_ip(i));
  }
  return true;
}

bool Nic::open_udp(const LoadedConfig& config, std::vector<ClaimSocket>* bound, bool* taken, std::string* error) {
  UdpPortOptions options;
  if (!udp_addresses(config, &options.addresses, error)) return false;
  options.wanted_port = udp_port_;
  options.port_required = true;
  options.mtu = config.port.mtu;
  options.send_buffer_bytes = config.port.udp_sndbuf;
  options.receive_buffer_bytes = config.port.udp_rcvbuf;
  options.dscp = static_cast<uint8_t>(config.port.dscp);
  return ports_.udp.open(options, error, taken, bound);
}

bool Nic::open_shm(const LoadedConfig& config, bool* taken, std::string* error) {
  ShmPortOptions options;
  options.directory = config.port.shm_dir;
  options.ring_bytes = config.port.shm_ring_bytes;
  options.mtu = config.port.shm_mtu;
  options.icrc_optional = !config.port.icrc_shm;
  options.doorbell_after = to_duration(config.progress.doorbell_after);
  return ports_.shm.open(options, eids_.eids(), uasid_, error, taken);
}

// The number of the DPDK port that has this address of ours.
std::optional<size_t> Nic::dpdk_port_of(const wire::IpAddress& ip) const {
  for (size_t i = 0; i < dpdk_ports_.size(); ++i) {
    for (const IpNetwork& network : dpdk_ports_[i].addresses) {
      if (network.address == ip) return i;
    }
  }
  return std::nullopt;
}

bool Nic::open_dpdk(const LoadedConfig& config, std::string* error) {
  for (PluginPortOptions& options : dpdk_ports_) {
    options.udp_port = udp_port_;
    options.roce = config.roce.enable;
    options.mtu = config.port.mtu;
    options.notice = notice_;
    options.link_changed = [this] {
      links_changed_.store(true, std::memory_order_release);
      wake_helper();
    };
    ports_.plugins.push_back(open_plugin_port(config.dpdk.plugin, options, error));
    if (ports_.plugins.back() == nullptr) return false;
  }
  dpdk_told_up_.assign(dpdk_ports_.size(), true);
  return true;
}

CoreConfig Nic::core_config(const LoadedConfig& c) const {
  CoreConfig core;
  core.self = {eids_.eids().front(), uasid_};
  core.every_id = false;
  core.incarnation = random_u64();
  core.seed = random_u64();
  core.upi = c.device.upi;
  core.window_packets = c.transport.window_packets;
  core.lanes = c.transport.lanes;
  core.lane_bulk_bytes = static_cast<uint32_t>(c.transport.lane_bulk_bytes);
  core.segment_bytes = static_cast<uint32_t>(c.transport.segment_bytes);
  core.fast_retransmit = c.transport.fast_retransmit;
  core.rto_min = to_duration(c.transport.rto_min);
  core.rto_max = to_duration(c.transport.rto_max);
  core.rtt_multiplier = c.transport.rtt_multiplier;
  core.channel_timeout = to_duration(c.transport.channel_timeout);
  core.keepalive_idle = to_duration(c.transport.keepalive_idle);
  core.setup_retry_min = to_duration(c.transport.setup_retry_min);
  core.id_rest = to_duration(c.transport.tpn_rest);
  core.max_jfc = c.limits.max_jfc;
  core.max_queues = c.limits.max_jetty + c.limits.max_jfs + c.limits.max_jfr;
  core.max_segments = c.limits.max_segments;
  core.slow_memory = clients_ != nullptr;
  core.max_peers = c.limits.max_peers;
  core.max_channels = c.limits.max_channels;
  core.read_jobs = c.limits.read_jobs;
  core.kept_packets = c.limits.reorder_buffers;
  core.roce.max_qps = c.roce.enable ? c.roce.max_qps : 0;
  core.roce.window_packets = static_cast<uint16_t>(c.roce.window_packets);
  core.roce.ack_every_message = c.roce.ack_every_message;
  core.roce.dcqcn = c.roce.dcqcn;
  return core;
}

void Nic::add_fixed_links() {
  NicCore& core = worker_->core();
  ports_.loopback.set_link(core.add_link(ports_.loopback.link_config()));
  ports_.set_kind(ports_.loopback.link(), LinkKind::kLoopback);
  for (size_t i = 0; i < ports_.plugins.size(); ++i) {
    dpdk_links_.push_back(core.add_link({ports_.plugins[i]->mtu(), false, false}));
    ports_.set_plugin(dpdk_links_.back(), i);
  }
  if (!ports_.udp.is_open()) return;
  ports_.udp.set_link(core.add_link(ports_.udp.link_config()));
  ports_.set_kind(ports_.udp.link(), LinkKind::kUdp);
}

uint32_t Nic::mtu() const {
  if (!ports_.plugins.empty()) {
    uint32_t mtu = UINT32_MAX;
    for (const auto& plugin : ports_.plugins) mtu = std::min(mtu, plugin->mtu());
    return mtu;
  }
  return ports_.udp.is_open() ? ports_.udp.mtu() : ports_.shm.mtu();
}

void Nic::set_event_sink(EventSink sink) {
  ownership_.own();
  sink_ = std::move(sink);
  ownership_.release();
}

// ---- driving ---------------------------------------------------------------------------------------------------

void Nic::adopt_links() try {
  NicCore& core = worker_->core();
  ports_.shm.adopt_pending([&](const LinkConfig& config) {
    uint32_t link = core.add_link(config);
    if (link != 0) ports_.set_kind(link, LinkKind::kShm);
    return link;
  });
  std::vector<DeadLink> dead;
  ports_.shm.take_dead_links(&dead);
  for (const DeadLink& d : dead) {
    core.link_down(worker_->turn(), d.link);
    ports_.shm.drop_link(d.link);
    ports_.set_kind(d.link, LinkKind::kNone);
  }
} catch (const std::bad_alloc&) {  // as if the peers had not come
}

bool Nic::drive_owned(Acks acks) {
  if (ports_.shm.has_pending()) [[unlikely]]
    adopt_links();
  if (links_changed_.load(std::memory_order_relaxed)) [[unlikely]]
    report_links();
  bool worked = clients_ != nullptr && clients_->poll(worker_->core(), worker_->turn());
  worked |= worker_->drive(acks, [this](const Event& event) { report(event); });
  statistics_stale_ |= worked;
  drives_.store(drives_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return worked;
}

void Nic::report_links() {
  links_changed_.exchange(false, std::memory_order_acquire);
  for (size_t i = 0; i < ports_.plugins.size(); ++i) {
    const bool up = ports_.plugins[i]->has_link();
    if (up == dpdk_told_up_[i]) continue;
    dpdk_told_up_[i] = up;
    report({up ? EventKind::kPortUp : EventKind::kPortDown, i});
  }
}

// Owned, by an application thread: the NIC stays asleep, so that peers go on ringing; who drives now may stop at any
// moment, and then no acknowledgement may be left that nobody looks after. Devices cannot be driven while they sleep.
Acks Nic::application_drives() {
  if (asleep_ && !ports_.plugins.empty()) [[unlikely]]
    wake_up();
  return asleep_ ? acks_at_rest() : Acks::kMayWait;
}

// Owned: somebody drives again. The helper is told, so that it looks now and then whether that goes on.
void Nic::wake_up() {
  if (!asleep_) return;
  ports_.finish_sleep();
  if (clients_ != nullptr) clients_->finish_sleep();
  asleep_ = false;
  if (helper_wakes_at_.load(std::memory_order_relaxed) != 0) wake_helper();
}

// Owned: lets go of the Core, then rings those who sleep.
void Nic::release() {
  if (!ports_.shm.has_bells()) [[likely]]
    return ownership_.release();
  ShmPort::Bells bells;
  ports_.shm.take_bells(&bells);
  ownership_.release();
  ShmPort::ring_bells(bells);
}

void Nic::after_control() {
  worker_->report([this](const Event& event) { report(event); });
  bool packets = worker_->core().has_packets();
  const Acks acks = application_drives();
  if (packets) drive_owned(acks);
  statistics_stale_ = true;
  tell_helper_deadline();
  release();
}

// A helper that owns the Core is gone in a moment: it costs less to wait for that than to leave the doorbell to it, and
// peers are then rung from this CPU, which they can have.
void Nic::posted(uint32_t jetty) {
  ipc::KeepErrno kept;
  if (own_soon(kOwnerPatience)) {
    const Acks acks = application_drives();
    drives_.store(drives_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    worker_->send_posted(jetty, acks, [this](const Event& event) { report(event); });
    tell_helper_deadline();
    release();
    return;
  }
  worker_->posted().set(jetty);
  // The owner may have looked before the bit was there: try again, or leave it to the helper.
  if (ownership_.try_own()) {
    drive_owned(application_drives());
    tell_helper_deadline();
    release();
  } else {
    wake_helper();
  }
}

void Nic::drive() {
  ipc::KeepErrno kept;
  if (!ownership_.try_own()) return;
  drive_owned(application_drives());
  tell_helper_deadline();
  release();
}

void Nic::begin_wait() {
  waiters_.fetch_add(1);
  expect_events();
}

void Nic::expect_events() {
  ipc::KeepErrno kept;
  const bool news = !events_used_.exchange(true);
  if (application_polls_.exchange(false) || news) wake_helper();
}

namespace {

bool same_family(const PeerAddress& path, std::string* why) {
  if (path.local.ip.is_v4() == path.remote.ip.is_v4()) return true;
  *why = to_text(path.local.ip) + " cannot reach " + to_text(path.remote.ip) +
         ": one is IPv4, the other IPv6; add an EID of the peer's family to device.eids";
  return false;
}

}  // namespace

bool Nic::find_path(const Eid& local, const InstanceId& instance, PeerAddress* path, std::string* why) {
  auto port = static_cast<uint16_t>(instance.uasid == 0 ? kWellKnownPort : instance.uasid & 0xffff);
  path->local = {wire::IpAddress{local.bytes}, udp_port_};
  path->remote = {wire::IpAddress{instance.eid.bytes}, port};
  bool own = eids_.is_local(instance.eid) &&
             (instance.uasid == uasid_ || (instance.uasid == 0 && udp_port_ == kWellKnownPort));
  if (own) {
    path->link = ports_.loopback.link();
    return true;
  }
  std::string shm_error;
  if (ports_.shm.is_open() && ports_.shm.is_listed(instance.eid, instance.uasid) &&
      link_to(instance, kLinkPatience, &path->link, &shm_error)) {
    return true;
  }
  if (wire_path(local, instance.eid, port, path, why)) return true;
  if (!shm_error.empty()) *why += " (" + shm_error + ")";
  return false;
}

// By IP: over a DPDK device or UDP sockets.
bool Nic::wire_path(const Eid& local, const Eid& eid, uint16_t port, PeerAddress* path, std::string* why) const {
  path->local = {eids_.ip_of(local), udp_port_};
  path->remote = {eids_.ip_of(eid), port};
  if (std::optional<size_t> of_dpdk = dpdk_port_of(path->local.ip)) {
    path->link = dpdk_links_[*of_dpdk];
  } else if (ports_.udp.is_open()) {
    path->link = ports_.udp.link();
  } else {
    *why = "no instance " + to_text(eid) + " port " + std::to_string(port) +
           " on this host, and port.kinds has no 'udp' to reach another one";
    return false;
  }
  return same_family(*path, why);
}

bool Nic::has_roce(std::string* why) const {
  if (ports_.shm.is_open() || !ports_.plugins.empty()) return true;
  for (const Eid& eid : eids()) {
    if (ports_.udp.has_roce(eids_.ip_of(eid))) return true;
  }
  *why = "nobody could reach this program by RoCE: UDP port " + std::to_string(roce::kUdpPort) +
         " of its addresses belongs to another program. Give it an address of its own (device.eids)";
  return false;
}

bool Nic::carries_roce(const PeerAddress& path, std::string* why) const {
  if (!ports_.udp.is_open() || path.link != ports_.udp.link() || ports_.udp.has_roce(path.local.ip)) return true;
  *why =
      "no RoCE at " + to_text(path.local.ip) + ": another program has its UDP port " + std::to_string(roce::kUdpPort);
  return false;
}

PluginPort* Nic::dpdk_port_at(uint32_t link) const {
  const auto found = std::find(dpdk_links_.begin(), dpdk_links_.end(), link);
  return found == dpdk_links_.end() ? nullptr : ports_.plugins[static_cast<size_t>(found - dpdk_links_.begin())].get();
}

void Nic::look_for_neighbour(const PeerAddress& path) {
  PluginPort* port = dpdk_port_at(path.link);
  if (port == nullptr) return;
  control([&](NicCore&, Instant now) {
    const bool known = port->resolve(now, path.remote.ip, path.local.ip);
    if (!known) port->tx_flush(now);
    return known;
  });
}

bool Nic::meet_neighbour(const PeerAddress& path, std::string* why) {
  PluginPort* port = dpdk_port_at(path.link);
  if (port == nullptr) return true;
  const Instant until = worker_->now() + kNeighbourPatience;
  while (!control([&](NicCore&, Instant now) { return port->resolve(now, path.remote.ip, path.local.ip); })) {
    if (worker_->now() > until) {
      *why = to_text(path.remote.ip) + " is not there: nobody answers for it, and no gateway leads to it";
      return false;
    }
    drive();
    ipc::sleep_for(kLinkPause);
  }
  return true;
}

// A shared-memory link, if the other instance wants one. One that is stopped gets its link; it may go on later.
bool Nic::link_to(const InstanceId& instance, Duration patience, uint32_t* link, std::string* why) {
  if (!ports_.shm.connect(instance, why)) return false;
  Instant until = worker_->now() + patience;
  for (;;) {
    control_ports();
    ShmPort::LinkState state = ports_.shm.link_state(instance, why);
    if (state == ShmPort::LinkState::kGone) return false;
    if (state == ShmPort::LinkState::kUp || worker_->now() > until) break;
    ipc::sleep_for(kLinkPause);
  }
  *link = control([&](NicCore&, Instant) {
    adopt_links();
    return ports_.shm.find_link(instance.eid, instance.uasid);
  });
  return *link != 0;
}

std::vector<ChannelInfo> Nic::channels() {
  std::vector<ChannelInfo> rows;
  ChannelInfo page[64];
  uint32_t from = 1;
  do {
    const size_t count = channels(page, &from);
    rows.insert(rows.end(), page, page + count);
  } while (from != 0);
  return rows;
}

size_t Nic::channels(std::span<ChannelInfo> out, uint32_t* from) {
  constexpr uint32_t kMostLooks = 1024;
  return control([&](NicCore& core, Instant) {
    size_t count = 0;
    const uint32_t end = core.channel_table_size() + 1;
    uint32_t at = std::max(*from, 1u);
    for (uint32_t looks = 0; at < end && looks < kMostLooks && count < out.size(); ++at, ++looks) {
      count += core.channel_info(at, &out[count]) ? 1 : 0;
    }
    *from = at < end ? at : 0;
    return count;
  });
}

// ---- statistics ------------------------------------------------------------------------------------------------

bool Nic::statistics_due() const { return statistics_ && worker_->now() - statistics_at_ >= kStatisticsPause; }

void Nic::publish_statistics() try {
  statistics_at_ = worker_->now();
  statistics_stale_ = false;
  std::vector<ChannelInfo> channels;
  ChannelInfo info;
  NicCore& core = worker_->core();
  for (uint32_t i = 1; i <= core.channel_table_size(); ++i) {
    if (core.channel_info(i, &info)) channels.push_back(info);
  }
  const NicReport report = report_nic(core.state());
  std::array<uint64_t, std::size(kPluginPortCounterNames)> of_plugins{};
  for (const auto& plugin : ports_.plugins) {
    const auto counters = std::bit_cast<decltype(of_plugins)>(plugin->counters());
    for (size_t i = 0; i < counters.size(); ++i) of_plugins[i] += counters[i];
  }
  statistics_->update(core.counters(), report.objects, channels, report.segments, of_plugins,
                      clients_ == nullptr ? std::vector<StatsApp>{} : clients_->report());
} catch (const std::bad_alloc&) {  // the page keeps its last picture
}

}  // namespace ub
