// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/dpdk_port.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "dataplane/dpdk/dpdk_log.h"
#include "dataplane/dpdk/eal.h"
#include "dataplane/dpdk_devices.h"
#include "dataplane/eid.h"
#include "lib/base/bytes.h"
#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/id_port.h"

namespace ub::dpdk {
namespace {

using wire::kEthSize;
using wire::kIpv4Size;
using wire::kIpv6Size;
using wire::kUdpSize;

constexpr uint32_t kIpOverhead = 150;               // more than all our headers and trailers behind Ethernet
constexpr unsigned long kMemifBuffer = 2048;        // unless the arguments have bsize
constexpr char kMemifSocket[] = "/run/memif.sock";  // unless they have socket
constexpr unsigned long kPacketHeader = 64;         // of a packet socket, in front of a frame in its ring
constexpr unsigned long kMemifRing = 10;             // log 2 of its places, unless they have rsize
constexpr Duration kRouteAge = milliseconds(100);

// The buffer behind a frame that tx_begin handed out.
rte_mbuf* mbuf_of(std::byte* frame) {
  return reinterpret_cast<rte_mbuf*>(frame - RTE_PKTMBUF_HEADROOM - sizeof(rte_mbuf));
}

std::byte* data_of(rte_mbuf* m) { return rte_pktmbuf_mtod(m, std::byte*); }

uint32_t payload_for_device_mtu(uint32_t device_mtu) {
  for (uint32_t mtu : {8192u, 4096u, 2048u})
    if (device_mtu >= mtu + kIpOverhead) return mtu;
  return 1024;
}

// Buffers without gaps between them, where addresses of the device are ours: without hugepages DPDK would not let one
// cross a page otherwise, and af_xdp, which counts on a row of them, would lose those behind the middle.
//
// A stack: what was freed last is in the cache and is used first. A ring would go round through all of the memory,
// which cost a third of memif's round trips and more than half of its bandwidth. Other threads give buffers back, too
// (memif's zero-copy client at the end of its peer), so it has a lock, or is the ring that all may use where DPDK lacks
// stacks.
rte_mempool* make_pool(const std::string& name, uint32_t buffers, uint16_t buffer) {
  rte_pktmbuf_pool_private data_size{};
  data_size.mbuf_data_room_size = buffer;
  const unsigned flags = rte_eal_iova_mode() == RTE_IOVA_VA ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
  rte_mempool* pool = rte_mempool_create_empty(name.c_str(), buffers, sizeof(rte_mbuf) + buffer, 0, sizeof data_size,
                                               SOCKET_ID_ANY, flags);
  if (pool == nullptr) return nullptr;
  rte_pktmbuf_pool_init(pool, &data_size);
  int status = rte_mempool_set_ops_byname(pool, "stack", nullptr);
  if (status != 0) status = rte_mempool_set_ops_byname(pool, "ring_mp_mc", nullptr);
  if (status == 0) status = std::min(rte_mempool_populate_default(pool), 0);
  if (status != 0) {
    rte_mempool_free(pool);
    rte_errno = -status;
    return nullptr;
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}

// Of a packet that the Core wrote: of IP, or of CTP, whose Ethernet header stands in for that of IPv4.
wire::IpAddress source_of(const std::byte* frame) {
  wire::IpAddress source;
  const uint16_t type = load_be16(frame + 12);
  if (type == wire::kEtherTypeIpv4) return wire::IpAddress::from_v4(load_be32(frame + kEthSize + 12));
  if (type == wire::kEtherTypeUb) return wire::v4_of_stand_in(frame + 6);
  std::memcpy(source.bytes.data(), frame + kEthSize + 8, 16);
  return source;
}

wire::IpAddress destination_of(const std::byte* frame) {
  wire::IpAddress destination;
  const uint16_t type = load_be16(frame + 12);
  if (type == wire::kEtherTypeIpv4) return wire::IpAddress::from_v4(load_be32(frame + kEthSize + 16));
  if (type == wire::kEtherTypeUb) return wire::v4_of_stand_in(frame);
  std::memcpy(destination.bytes.data(), frame + kEthSize + 24, 16);
  return destination;
}

// Of a packet that the Core wrote.
bool is_bypass(const std::byte* frame) {
  return load_be16(frame + 12) == wire::kEtherTypeUb && wire::is_bypass({frame, kEthSize + wire::LinkHeader::kSize});
}

size_t hash_of(const wire::IpAddress& ip) { return ip.bytes[15] ^ ip.bytes[14] << 3; }

}  // namespace

// ---- opening -------------------------------------------------------------------------------------------------------

std::unique_ptr<DpdkPort> DpdkPort::open(const PluginPortOptions& options, std::string* error) {
  if (!start_eal(options.arguments, options.notice, error)) return nullptr;
  std::unique_ptr<DpdkPort> port(new DpdkPort(options));
  bool ok = false;
  on_eal_thread([&] {
    LogCapture log(options.arguments);
    ok = port->probe(error) && port->configure(error) && port->set_up_queues(error) && port->start(error);
    if (!ok) *error += log.text();
    if (ok) hush_drivers(options.arguments);
  });
  if (!ok) return nullptr;
  port->telemetry_.emplace(options.telemetry);
  return port;
}

DpdkPort::DpdkPort(const PluginPortOptions& options) : options_(options), name_(dpdk_device_name(options.device)) {}

DpdkPort::~DpdkPort() {
  telemetry_.reset();
  on_eal_thread([this] { remove(); });
}

void DpdkPort::remove() {
  rte_eth_dev_info info;
  const bool is_there = port_ != kNone && rte_eth_dev_is_valid_port(port_);
  rte_device* device = is_there && rte_eth_dev_info_get(port_, &info) == 0 ? info.device : nullptr;
  watch_.reset();
  rte_pktmbuf_free_bulk(queued_, queued_count_);
  rte_pktmbuf_free_bulk(spare_, static_cast<unsigned>(spare_count_));
  while (std::byte* frame = waiting_.take_any()) rte_pktmbuf_free(mbuf_of(frame));
  rx_release();
  if (port_ != kNone && rte_eth_dev_is_valid_port(port_)) {
    rte_eth_dev_stop(port_);
    rte_eth_dev_close(port_);
  }
  if (device != nullptr) rte_dev_remove(device);
  rte_mempool_free(pool_);
}

bool DpdkPort::probe(std::string* error) {
  if (rte_eth_dev_get_port_by_name(name_.c_str(), &port_) == 0) {
    port_ = kNone;
    *error = "DPDK device " + name_ + " is in use in this process already; dpdk.device must name another one";
    return false;
  }
  int status = rte_dev_probe(options_.device.c_str());
  if (status != 0 || rte_eth_dev_get_port_by_name(name_.c_str(), &port_) != 0) {
    port_ = kNone;
    *error = "DPDK device \"" + options_.device + "\" cannot be opened" +
             (status != 0 ? " (" + error_text(status) + ")" : std::string()) +
             "; check dpdk.device: the driver's name, its arguments and what it needs";
    return false;
  }
  return true;
}

bool DpdkPort::configure(std::string* error) {
  rte_eth_dev_info info;
  if (int status = rte_eth_dev_info_get(port_, &info); status != 0) {
    *error = "DPDK device " + name_ + " gives no information: " + error_text(status);
    return false;
  }
  is_memif_ = std::strcmp(info.driver_name, "net_memif") == 0;
  is_af_packet_ = std::strcmp(info.driver_name, "net_af_packet") == 0;
  carries_compact_ = can_carry_compact(info.driver_name);
  carries_bypass_ = is_memif_ && carries_compact_ && !options_.switched;
  if (carries_bypass_) ring_age_.emplace(1u << argument("rsize=", kMemifRing), clock_.now());
  uint16_t device_mtu = 0;
  rte_eth_dev_get_mtu(port_, &device_mtu);
  mtu_ = options_.mtu != 0 ? options_.mtu : payload_for_device_mtu(device_mtu);
  if (!frames_fit_memif(error) || !configure_queues(info, error) || !widen(error)) return false;
  rte_ether_addr mac;
  rte_eth_macaddr_get(port_, &mac);
  wire::MacAddress own;
  std::copy_n(mac.addr_bytes, 6, own.begin());
  neighbours_ = std::make_unique<Neighbours>(options_.addresses, options_.gateway_v4, options_.gateway_v6);
  for (const auto& [ip, neighbour] : options_.neighbours) neighbours_->add_static(ip, neighbour);
  host_ = std::make_unique<EthernetHost>(own, neighbours_.get());
  return true;
}

// Both drivers hand over frames in memory, as long as they were sent.
bool DpdkPort::can_carry_compact(const char* driver) const {
  const bool keeps_length = is_memif_ || std::strcmp(driver, "net_ring") == 0;
  const bool has_gateway = options_.gateway_v4 != wire::IpAddress{} || options_.gateway_v6 != wire::IpAddress{};
  const auto is_v4 = [](const IpNetwork& network) { return network.address.is_v4(); };
  return keeps_length && !has_gateway && std::all_of(options_.addresses.begin(), options_.addresses.end(), is_v4);
}

// A number in the devargs.
unsigned long DpdkPort::argument(const char* text, unsigned long otherwise) const {
  const size_t at = options_.device.find(text);
  return at == std::string::npos ? otherwise : std::strtoul(&options_.device[at + std::strlen(text)], nullptr, 0);
}

std::string DpdkPort::text_argument(const char* text, const char* otherwise) const {
  const size_t at = options_.device.find(text);
  if (at == std::string::npos) return otherwise;
  const size_t begin = at + std::strlen(text);
  return options_.device.substr(begin, options_.device.find(',', begin) - begin);
}

// The driver takes a frame in several buffers, but later ones in the same places then look unfinished: frames come
// many times, and glued together (22.11).
bool DpdkPort::frames_fit_memif(std::string* error) const {
  if (!is_memif_) return true;
  const unsigned long buffer = argument("bsize=", kMemifBuffer);
  const uint32_t wanted = mtu_ + kIpOverhead + kEthSize + wire::kVlanSize;
  if (buffer >= wanted) return true;
  *error = "DPDK device " + name_ + " has buffers of " + std::to_string(buffer) + " bytes, and packets of " +
           std::to_string(mtu_) + " need " + std::to_string(wanted) +
           "; lower port.mtu, or add bsize=" + std::to_string(std::bit_ceil(wanted)) + " to dpdk.device at both ends";
  return false;
}

bool DpdkPort::configure_queues(const rte_eth_dev_info& info, std::string* error) {
  rte_eth_conf conf{};
  conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  conf.intr_conf.rxq = 1;
  if (rte_eth_dev_configure(port_, 1, 1, &conf) == 0) return true;
  conf.intr_conf.rxq = 0;  // a device that cannot interrupt
  int status = rte_eth_dev_configure(port_, 1, 1, &conf);
  if (status != 0) *error = "DPDK device " + name_ + " refuses one queue of each kind: " + error_text(status);
  return status == 0;
}

// Configuring may have put the MTU back to 1500.
bool DpdkPort::widen(std::string* error) {
  const uint32_t wanted = mtu_ + kIpOverhead;
  uint16_t device_mtu = 0;
  rte_eth_dev_get_mtu(port_, &device_mtu);
  if (device_mtu >= wanted) return true;
  int status = rte_eth_dev_set_mtu(port_, static_cast<uint16_t>(wanted));
  if (status == 0 || status == -ENOTSUP) return true;
  // af_packet names Ethernet's longest frame whatever the interface and its own ring take (22.11).
  if (is_af_packet_ && argument("framesz=", 0) >= wanted + kEthSize + wire::kVlanSize + kPacketHeader) return true;
  *error = "DPDK device " + name_ + " has an MTU of " + std::to_string(device_mtu) + " and does not take " +
           std::to_string(wanted) + " for packets of " + std::to_string(mtu_) +
           " bytes; lower port.mtu, or give the device larger buffers in dpdk.device";
  return false;
}

bool DpdkPort::set_up_queues(std::string* error) {
  // Some devices use only whole kilobytes of a buffer, and some want two of them.
  const uint32_t room = std::max((mtu_ + kFrameOverhead + 1023) / 1024 * 1024, 2048u);
  const auto buffer = static_cast<uint16_t>(RTE_PKTMBUF_HEADROOM + room);
  pool_ = make_pool("softub-" + std::to_string(port_), options_.buffers, buffer);
  if (pool_ == nullptr) {
    *error = "no memory for " + std::to_string(options_.buffers) + " buffers of " + std::to_string(buffer) +
             " bytes: " + error_text(rte_errno) + "; give DPDK more (dpdk.arguments, -m)";
    return false;
  }
  uint16_t rx = kRxRing, tx = kTxRing;
  rte_eth_dev_adjust_nb_rx_tx_desc(port_, &rx, &tx);
  int status = rte_eth_rx_queue_setup(port_, 0, rx, rte_eth_dev_socket_id(port_), nullptr, pool_);
  if (status == 0) status = rte_eth_tx_queue_setup(port_, 0, tx, rte_eth_dev_socket_id(port_), nullptr);
  if (status != 0) *error = "DPDK device " + name_ + " refuses its queues: " + error_text(status);
  return status == 0;
}

bool DpdkPort::start(std::string* error) {
  // A client of memif, which is the default, does not start without its server: its watch tries until there is one.
  const bool client = is_memif_ && !has_argument("role=server") && !has_argument("role=master");
  const int status = client ? 0 : rte_eth_dev_start(port_);
  if (status != 0) {
    *error = "DPDK device " + name_ + " does not start: " + error_text(status);
    return false;
  }
  if (options_.raw) rte_eth_promiscuous_enable(port_);  // memif hands over everything anyway, and cannot
  rte_eth_allmulticast_enable(port_);  // neighbour solicitations; devices without it are heard anyway or use ARP
  if (!is_memif_ && rte_eth_dev_rx_intr_enable(port_, 0) == 0) {
    interrupt_fd_ = rte_eth_dev_rx_intr_ctl_q_get_fd(port_, 0);
    rte_eth_dev_rx_intr_disable(port_, 0);
  }
  watch_ = std::make_unique<LinkWatch>(LinkWatch::Options{
      port_, name_, is_memif_, client, text_argument("socket=", kMemifSocket), options_.notice, options_.link_changed});
  return true;
}

PluginPortCounters DpdkPort::counters() {
  counters_.link_changes = watch_->changes();
  rte_eth_stats device;
  if (watch_->is_there() && rte_eth_stats_get(port_, &device) == 0) {
    counters_.device_rx_missed = device.imissed;
    counters_.device_rx_no_buffer = device.rx_nombuf;
    counters_.device_rx_errors = device.ierrors;
    counters_.device_tx_errors = device.oerrors;
  }
  return counters_;
}

// ---- receive -------------------------------------------------------------------------------------------------------

size_t DpdkPort::rx_burst(Instant now, RxFrame* out, size_t room) {
  now_ = now;
  if (!watch_->enter()) return 0;
  if (ring_age_) looked_at_ = clock_.now();
  const auto wanted = static_cast<uint16_t>(std::min(room, kBurst));
  received_count_ = rte_eth_rx_burst(port_, 0, received_, wanted);
  watch_->leave();
  size_t count = 0;
  for (uint16_t i = 0; i < received_count_; ++i) {
    rte_mbuf* m = received_[i];
    if (is_whole(m) && is_wanted(m)) out[count++] = {data_of(m), m->data_len, link_};
  }
  counters_.rx_frames += count;
  if (ring_age_) received_count_ < wanted ? ring_age_->seen_empty(looked_at_) : ring_age_->taken(looked_at_, wanted);
  return count;
}

void DpdkPort::rx_release() {
  if (received_count_ != 0) rte_pktmbuf_free_bulk(received_, received_count_);
  received_count_ = 0;
}

// The Core wants a frame in one piece. Drivers split one where a peer's buffers are smaller than ours.
bool DpdkPort::is_whole(rte_mbuf* m) {
  if (m->nb_segs == 1) [[likely]]
    return true;
  bool joined = rte_pktmbuf_linearize(m) == 0;
  ++(joined ? counters_.rx_joined : counters_.rx_drop_too_long);
  return joined;
}

bool DpdkPort::is_wanted(rte_mbuf* m) { return options_.raw || (strip_vlan(m) && is_for_core(m)); }

// Removes our tag. False: the frame belongs to another VLAN, or to none and we are in one.
bool DpdkPort::strip_vlan(rte_mbuf* m) {
  std::byte* frame = data_of(m);
  bool tagged = m->data_len >= kEthSize + wire::kVlanSize && load_be16(frame + 12) == wire::kEtherTypeVlan;
  uint16_t vlan = tagged ? load_be16(frame + 14) & 0xfff : 0;
  if (vlan != options_.vlan) [[unlikely]] {
    ++counters_.rx_drop_vlan;
    return false;
  }
  if (tagged) {
    std::memmove(frame + wire::kVlanSize, frame, 12);
    rte_pktmbuf_adj(m, wire::kVlanSize);
  }
  return true;
}

// Of CTP or TP bypass.
bool DpdkPort::is_for_core_without_ip(std::span<const std::byte> frame) {
  if (!carries_compact_ || std::memcmp(frame.data(), host_->mac().data(), host_->mac().size()) != 0) {
    ++counters_.rx_drop_foreign;
    return false;
  }
  if (!ring_age_ || looked_at_ - ring_age_->came_after() < kOldFrame) [[likely]]
    return true;
  const bool late = wire::is_bypass(frame);
  if (late) ++counters_.rx_drop_late;
  return !late;
}

bool DpdkPort::is_for_core(rte_mbuf* m) {
  const std::byte* frame = data_of(m);
  if (wire::has_link_header({frame, m->data_len})) return is_for_core_without_ip({frame, m->data_len});
  size_t ip_size = m->data_len > kEthSize && load_u8(frame + kEthSize) >> 4 == 6 ? kIpv6Size : kIpv4Size;
  if (m->data_len < kEthSize + kIpv4Size) {
    ++counters_.rx_drop_foreign;
    return false;
  }
  uint16_t type = load_be16(frame + 12);
  uint8_t protocol = type == wire::kEtherTypeIpv4   ? load_u8(frame + kEthSize + 9)
                     : type == wire::kEtherTypeIpv6 ? load_u8(frame + kEthSize + 6)
                                                    : uint8_t{0};
  if (protocol != IPPROTO_UDP) {
    answer_host(m);
    return false;
  }
  const size_t udp = kEthSize + ip_size;
  const uint16_t port = m->data_len >= udp + kUdpSize ? load_be16(frame + udp + 2) : uint16_t{0};
  const bool ours = port == options_.udp_port || wire::is_id_port(port) || (port == roce::kUdpPort && options_.roce);
  if (!ours) ++counters_.rx_drop_foreign;
  return ours;  // whether the address is ours the Core sees
}

void DpdkPort::answer_host(rte_mbuf* m) {
  rte_mbuf* answer = take_buffer();
  if (answer == nullptr) return;
  size_t bytes = 0;
  bool fits = m->data_len <= rte_pktmbuf_tailroom(answer);
  EthernetHost::Verdict verdict = EthernetHost::Verdict::kForeign;
  if (fits) verdict = host_->on_frame(now_, {data_of(m), m->data_len}, data_of(answer), &bytes);
  hear_news();
  ++(verdict == EthernetHost::Verdict::kForeign   ? counters_.rx_drop_foreign
     : verdict == EthernetHost::Verdict::kDamaged ? counters_.rx_drop_checksum
                                                  : counters_.rx_host);
  if (verdict != EthernetHost::Verdict::kAnswer) {
    spare_[spare_count_++] = answer;
    return;
  }
  answer->data_len = static_cast<uint16_t>(bytes);
  answer->pkt_len = static_cast<uint32_t>(bytes);
  queue(answer);
}

// ---- send ----------------------------------------------------------------------------------------------------------

rte_mbuf* DpdkPort::take_buffer() {
  if (spare_count_ == 0) {
    if (rte_pktmbuf_alloc_bulk(pool_, spare_, kSpare) != 0) [[unlikely]]
      return nullptr;
    spare_count_ = kSpare;
  }
  return spare_[--spare_count_];
}

std::byte* DpdkPort::tx_begin(size_t bytes) {
  if (queued_count_ == kTxQueue) send();
  if (queued_count_ == kTxQueue) [[unlikely]] {
    ++counters_.tx_full;
    return nullptr;
  }
  rte_mbuf* m = take_buffer();
  if (m == nullptr) [[unlikely]] {
    ++counters_.tx_no_buffer;
    return nullptr;
  }
  if (bytes > rte_pktmbuf_tailroom(m)) [[unlikely]] {
    spare_[spare_count_++] = m;
    ++counters_.tx_too_long;
    return nullptr;
  }
  return data_of(m);
}

void DpdkPort::tx_abort(std::byte* frame) { rte_pktmbuf_free(mbuf_of(frame)); }

void DpdkPort::tx_commit(std::byte* frame, size_t bytes) {
  rte_mbuf* m = mbuf_of(frame);
  m->data_len = static_cast<uint16_t>(bytes);
  m->pkt_len = static_cast<uint32_t>(bytes);
  if (options_.raw) [[unlikely]] {
    ++counters_.tx_frames;
    return queue(m);
  }
  const wire::MacAddress* mac = route(frame);
  if (mac != nullptr) send_to(*mac, frame);
}

// Null: the frame waits, or was dropped.
const wire::MacAddress* DpdkPort::route(std::byte* frame) {
  const wire::IpAddress destination = destination_of(frame);
  Route& r = routes_[hash_of(destination) % kRoutes];
  if (r.destination == destination && now_ < r.until) [[likely]]
    return &r.mac;
  wire::IpAddress hop;
  if (!neighbours_->next_hop(destination, &hop)) {
    ++counters_.tx_drop_no_route;
    rte_pktmbuf_free(mbuf_of(frame));
    return nullptr;
  }
  bool must_ask = false;
  const wire::MacAddress* mac = neighbours_->find(now_, hop, &must_ask);
  if (must_ask) ask(hop, source_of(frame));
  const bool others_wait = waiting_.waits_for(hop);
  if ((mac == nullptr || others_wait) && !is_bypass(frame)) {  // nobody overtakes those that wait
    hold(hop, frame);
    return nullptr;
  }
  if (mac == nullptr) {
    ++counters_.tx_drop_no_neighbour;
    rte_pktmbuf_free(mbuf_of(frame));
    return nullptr;
  }
  if (others_wait) return mac;
  r = {destination, *mac, now_ + kRouteAge};
  return &r.mac;
}

void DpdkPort::send_to(const wire::MacAddress& mac, std::byte* frame) {
  std::memcpy(frame, mac.data(), 6);
  std::memcpy(frame + 6, host_->mac().data(), 6);
  ++counters_.tx_frames;
  queue(mbuf_of(frame));
}

// ---- frames that wait for their next hop ---------------------------------------------------------------------------

void DpdkPort::hold(const wire::IpAddress& hop, std::byte* frame) {
  std::byte* dropped = waiting_.hold(hop, frame);
  if (dropped != frame) ++counters_.tx_waited;
  if (dropped == nullptr) return;
  ++counters_.tx_drop_waiting_full;
  rte_pktmbuf_free(mbuf_of(dropped));
}

void DpdkPort::hear_news() {
  const std::optional<wire::IpAddress> hop = neighbours_->take_news();
  if (!hop || waiting_.empty()) return;
  bool must_ask = false;
  const wire::MacAddress* mac = neighbours_->find(now_, *hop, &must_ask);
  if (mac != nullptr) waiting_.answer(*hop, *mac);
  send_answered();
}

void DpdkPort::send_answered() {
  while (waiting_.has_answered()) {
    if (queued_count_ == kTxQueue) send();
    if (queued_count_ == kTxQueue) return;
    wire::MacAddress mac;
    std::byte* frame = waiting_.take_answered(&mac);
    send_to(mac, frame);
  }
}

void DpdkPort::serve_waiting() {
  const uint64_t link_changes = watch_->changes();
  if (std::exchange(link_changes_, link_changes) != link_changes) waiting_.ask_again(now_);
  waiting_.ask(now_, [this](const wire::IpAddress& hop, const std::byte* frame) {
    bool must_ask = false;
    neighbours_->find(now_, hop, &must_ask);  // an answer is believed while we know that we asked
    if (queued_count_ == kTxQueue) send();
    if (queued_count_ == kTxQueue) return false;
    ask(hop, source_of(frame));
    return true;
  });
  while (std::byte* frame = waiting_.take_late(now_)) {
    ++counters_.tx_drop_no_neighbour;
    rte_pktmbuf_free(mbuf_of(frame));
  }
  send_answered();
}

bool DpdkPort::resolve(Instant now, const wire::IpAddress& destination, const wire::IpAddress& source) {
  wire::IpAddress hop;
  if (!neighbours_->next_hop(destination, &hop)) return false;
  bool must_ask = false;
  const bool known = neighbours_->find(now, hop, &must_ask) != nullptr;
  if (must_ask) ask(hop, source);
  return known;
}

void DpdkPort::ask(const wire::IpAddress& hop, const wire::IpAddress& source) {
  if (!watch_->has_link()) return;
  rte_mbuf* m = queued_count_ == kTxQueue ? nullptr : take_buffer();
  if (m == nullptr) return;
  auto bytes = static_cast<uint16_t>(host_->write_question(hop, source, data_of(m)));
  m->data_len = bytes;
  m->pkt_len = bytes;
  queue(m);
}

// Takes the frame, tagged where we are in a VLAN.
void DpdkPort::queue(rte_mbuf* m) {
  if (options_.vlan != 0) {
    auto* frame = reinterpret_cast<std::byte*>(rte_pktmbuf_prepend(m, wire::kVlanSize));
    if (frame == nullptr) return rte_pktmbuf_free(m);  // cannot be: the headroom is larger
    std::memmove(frame, frame + wire::kVlanSize, 12);
    store_be16(frame + 12, wire::kEtherTypeVlan);
    store_be16(frame + 14, options_.vlan);
  }
  if (queued_count_ == kTxQueue) send();
  if (queued_count_ == kTxQueue) return rte_pktmbuf_free(m);
  if (queued_count_ == 0) queued_link_ = watch_->changes();
  queued_[queued_count_++] = m;
}

void DpdkPort::send() {
  if (!watch_->has_link() || watch_->changes() != queued_link_) [[unlikely]]
    return drop_queued(&counters_.tx_drop_no_link);
  if (refused_age_ && clock_.now() - refused_age_->came_after() >= kOldFrame) [[unlikely]]
    return drop_queued(&counters_.tx_drop_late);
  if (!watch_->enter()) return note_refused(0);
  const uint16_t sent = rte_eth_tx_burst(port_, 0, queued_, queued_count_);
  watch_->leave();
  if (sent != 0 && sent != queued_count_) std::copy(queued_ + sent, queued_ + queued_count_, queued_);
  queued_count_ = static_cast<uint16_t>(queued_count_ - sent);
  if (queued_count_ == 0) [[likely]]
    return refused_age_.reset();
  note_refused(sent);
}

// Some frames have to wait, and so many have left.
void DpdkPort::note_refused(uint16_t sent) {
  const Instant now = clock_.now();
  refused_age_ ? refused_age_->taken(now, sent) : static_cast<void>(refused_age_.emplace(kTxQueue, now));
}

void DpdkPort::drop_queued(uint64_t* counter) {
  *counter += queued_count_;
  rte_pktmbuf_free_bulk(queued_, queued_count_);
  queued_count_ = 0;
  refused_age_.reset();
}

void DpdkPort::tx_flush(Instant now) {
  now_ = now;
  if (!waiting_.empty()) [[unlikely]]
    serve_waiting();
  if (queued_count_ != 0) send();
}

// ---- sleep ---------------------------------------------------------------------------------------------------------

bool DpdkPort::prepare_sleep() {
  if (!watch_->enter()) return false;
  armed_ = interrupt_fd_ >= 0 && rte_eth_dev_rx_intr_enable(port_, 0) == 0;
  bool busy = rte_eth_rx_queue_count(port_, 0) > 0 || queued_count_ != 0 || waiting_.has_answered();
  watch_->leave();
  return busy;
}

void DpdkPort::finish_sleep() {
  if (std::exchange(armed_, false)) rte_eth_dev_rx_intr_disable(port_, 0);
}

void DpdkPort::fds(std::vector<int>& out) const {
  if (interrupt_fd_ >= 0) out.push_back(interrupt_fd_);
}

}  // namespace ub::dpdk
