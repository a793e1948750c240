// SPDX-License-Identifier: Apache-2.0
//
// A NIC begins and ends: its ports, identity, Core and thread.
#include <sys/eventfd.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <latch>

#include "dataplane/congestion_settings.h"
#include "dataplane/dpdk_devices.h"
#include "dataplane/extra_paths.h"
#include "dataplane/nic.h"
#include "lib/ipc/pause.h"
#include "lib/ipc/silent_thread.h"
#include "lib/transport/wire/id_port.h"

namespace ub {

namespace {

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
    nic->set_event_sink([clients](const NicEvent& event) { clients->on_event(event); });
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
  nic->wake_fd_ = ipc::Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));  // before there are ports, which may ring
  if (!nic->wake_fd_) {
    *error = "cannot create an eventfd: out of descriptors";
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
  nic->begin_impairments(config);
  nic->add_fixed_links();
  nic->adopt_claims();
  if (!nic->alarm_.create(error)) return nullptr;
  nic->open_statistics(config);
  nic->keep_last_notes();
  if (!nic->watch_all(error)) return nullptr;
  nic->open_look_door();
  if (config.log.latency && !nic->measure_latency(true)) {
    *error = "there is no memory for latencies, which log.latency wants";
    return nullptr;
  }
  if (!nic->start_helper(error)) return nullptr;
  return nic;
}

// The set of who stands in first: it is the one that is woken if somebody sleeps in both.
bool Nic::watch_all(std::string* error) {
  for (SleepSet* each : {&stand_in_wakers_, &wakers_, &away_wakers_})
    if (!each->create(error)) return false;
  leave_bell_ = ipc::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (leave_bell_ && stand_in_wakers_.watch(leave_bell_.get(), Waker::kOthers) &&
      ports_.watch_frames(stand_in_wakers_) && wakers_.watch(wake_fd_.get(), Waker::kRung) &&
      wakers_.watch(alarm_.fd(), Waker::kAlarm) && ports_.watch(wakers_) &&
      away_wakers_.watch(wake_fd_.get(), Waker::kRung) && ports_.watch_if_polled(away_wakers_) &&
      (clients_ == nullptr || wakers_.watch(clients_->fd(), Waker::kOthers))) {
    return true;
  }
  *error = std::string("cannot watch the descriptors of the NIC: ") + std::strerror(errno);
  return false;
}

bool Nic::start_helper(std::string* error) {
  std::latch begun(1);
  helper_ = ipc::silent_thread("softub", [this, &begun] {
    if (places_) begin_life();
    begun.count_down();
    clients_ != nullptr ? worker_main() : helper_main();
  });
  if (!helper_.joinable()) {
    *error = "cannot start a thread; raise the limit of processes (ulimit -u)";
    return false;
  }
  begun.wait();
  return true;
}

Nic::~Nic() {
  if (helper_.joinable()) {
    end();
  } else if (worker_) {  // it never ran
    forget_last_notes();
  }
}

void Nic::end() {
  stop_.store(true);
  wake_helper();
  helper_.join();
  for (uint16_t port : claims_.ports()) ports_.shm.retract_ids(port);  // while they are ours
  if (ownership_.is_mine()) {  // a signal handler ends the program, and nobody goes on with what the Core was doing
    forget_last_notes();
    return take_down();
  }
  // A thread that was interrupted while it owned the Core must not hang the exit.
  const Instant limit = worker_->now() + kTeardownWait;
  while (!ownership_.try_own()) {
    if (worker_->now() > limit) return;
    ipc::pause_for(microseconds(100));
  }
  end_recording(record::Ended::kStopped);
  if (!is_stopped()) say_goodbye();  // a NIC that a fault stopped says nothing to anybody
  end_capture();
  forget_last_notes();
  ShmPort::Bells bells;
  ports_.shm.take_bells(&bells);
  ShmPort::ring_bells(bells);
  take_down();
}

// Owned, for the last time.
void Nic::take_down() {
  shares_.close();
  look_door_.close();
  statistics_.reset();
  ports_.plugins.clear();
  ports_.udp.close();
  ports_.shm.close();
}

// Owned.
void Nic::say_goodbye() {
  worker_->core().close(worker_->turn());
  const Instant limit = worker_->now() + kTeardownWait;
  auto ignore = [](const Event&) {};
  const auto goes_on = [&] {
    return worker_->drive(worker_->core(), Acks::kNow, ignore) || worker_->core().has_packets() || ports_.is_sending();
  };
  while (worker_->now() < limit && goes_on()) {
  }
}

// ---- ports -----------------------------------------------------------------------------------------------------

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
    if (tries != 0) ipc::pause_for(kNamePause);
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
  options.receive_tos = reads_marks(config);
  extra_paths_.clear();
  return ports_.udp.open(options, error, taken, bound) &&
         open_extra_paths(config.transport, ports_.udp, &extra_paths_, error);
}

bool Nic::open_shm(const LoadedConfig& config, bool* taken, std::string* error) {
  ShmPortOptions options;
  options.directory = config.port.shm_dir;
  options.ring_bytes = config.port.shm_ring_bytes;
  options.mtu = config.port.shm_mtu;
  options.lossless = !config.impair.is_set();
  options.icrc_optional = !config.port.icrc_shm && options.lossless;
  options.doorbell_after = to_duration(config.progress.doorbell_after);
  places_ = config.port.shm_place;
  if (!config.impair.is_set() && !open_lanes(error)) return false;
  return ports_.shm.open(options, eids_.eids(), uasid_, error, taken);
}

// By the helper, which lives as long as the NIC: others know then when it died, and may access memory themselves.
void Nic::begin_life() {
  std::string why;
  if (!life_.begin(&why)) {  // the starting thread waits meanwhile, so there is one thread
    if (notice_) notice_("all requests to memory of this NIC go by packets, also those of its host: " + why);
    return;
  }
  ownership_.own();
  shares_.give_gates(life_.reader());
  ownership_.release();
}

// An instance that is tried under several ports has them once.
bool Nic::open_lanes(std::string* error) {
  if (ports_.lanes.is_open()) return true;
  if (!ports_.lanes.open(ipc::register_for_heavy_barrier(), error)) return false;
  ports_.shm.set_door([this](ipc::Fd socket, const ShmPort::Wish& wish) {
    if (const auto* lane = std::get_if<ipc::LaneHello>(&wish)) return ports_.lanes.admit(std::move(socket), *lane);
    shares_.admit(std::move(socket), std::get<ipc::ShareHello>(wish));
    wake_helper();  // whoever drives answers
  });
  return true;
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
    options.telemetry = [page = page_](std::string_view request, std::string* why) {
      return page->answer(request, why);
    };
    ports_.plugins.push_back(open_plugin_port(config.dpdk.plugin, options, error));
    if (ports_.plugins.back() == nullptr) return false;
  }
  dpdk_told_up_.assign(dpdk_ports_.size(), true);
  return true;
}

void Nic::add_fixed_links() {
  NicCore& core = worker_->core();
  ports_.loopback.set_link(core.add_link(ports_.loopback.link_config()));
  ports_.set_kind(ports_.loopback.link(), LinkKind::kLoopback);
  for (size_t i = 0; i < ports_.plugins.size(); ++i) {
    dpdk_links_.push_back(core.add_link(link_of(*ports_.plugins[i])));
    ports_.set_plugin(dpdk_links_.back(), i);
  }
  if (!ports_.udp.is_open()) return;
  ports_.udp.set_link(core.add_link(ports_.udp.link_config()));
  ports_.set_kind(ports_.udp.link(), LinkKind::kUdp);
  for (const ExtraPath& path : extra_paths_) core.add_path(path);
}

// ---- Core ------------------------------------------------------------------------------------------------------

CoreConfig Nic::core_config(const LoadedConfig& c) const {
  CoreConfig core;
  core.self = {eids_.eids().front(), uasid_};
  core.every_id = false;
  core.incarnation = random_u64();
  core.seed = random_u64();
  core.upi = c.device.upi;
  core.window_packets = c.transport.window_packets;
  core.reorder_packets = c.transport.reorder_packets;
  core.lanes = c.transport.lanes;
  core.lane_bulk_bytes = static_cast<uint32_t>(c.transport.lane_bulk_bytes);
  core.segment_bytes = static_cast<uint32_t>(c.transport.segment_bytes);
  core.fast_retransmit = c.transport.fast_retransmit;
  core.go_back_n = c.transport.retransmission == "go_back_n";
  core.loss_window = c.transport.loss_response == "window";
  core.most_paths = c.transport.most_paths;
  core.spread = c.transport.spread == "queues"     ? Spread::kQueues
                : c.transport.spread == "messages" ? Spread::kMessages
                                                   : Spread::kPackets;
  core.rol = c.transport.rol;
  core.compact = c.transport.compact;
  core.compact_answers = c.transport.compact_answers;
  core.rtp_over_cna = c.transport.rtp_over_cna;
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
  core.kept_small_packets = c.limits.small_reorder_buffers;
  core.roce.max_qps = c.roce.enable ? c.roce.max_qps : 0;
  core.roce.window_packets = static_cast<uint16_t>(c.roce.window_packets);
  core.roce.ack_every_message = c.roce.ack_every_message;
  core.roce.dcqcn = c.roce.dcqcn;
  set_congestion(c.congestion, &core);
  set_classes(c.port, &core);
  return core;
}

}  // namespace ub
