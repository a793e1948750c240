// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/dpdk_port.h"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <cstring>

#include "dataplane/dpdk/eal.h"
#include "dataplane/eid.h"
#include "lib/base/bytes.h"

namespace ub::dpdk {
namespace {

using wire::kEthSize;
using wire::kIpv4Size;
using wire::kIpv6Size;
using wire::kUdpSize;

constexpr Duration kRouteAge = milliseconds(100);
constexpr uint32_t kPoolBuffers = 8192;

// The buffer behind a frame that tx_begin handed out.
rte_mbuf* mbuf_of(std::byte* frame) {
  return reinterpret_cast<rte_mbuf*>(frame - RTE_PKTMBUF_HEADROOM - sizeof(rte_mbuf));
}

std::byte* data_of(rte_mbuf* m) { return rte_pktmbuf_mtod(m, std::byte*); }

uint32_t payload_for_device_mtu(uint32_t device_mtu) {
  for (uint32_t mtu : {8192u, 4096u, 2048u})
    if (device_mtu >= mtu + 150) return mtu;
  return 1024;
}

// "net_memif0,role=client" names net_memif0.
std::string name_of(const std::string& devargs) { return devargs.substr(0, devargs.find(',')); }

size_t hash_of(const wire::IpAddress& ip) { return ip.bytes[15] ^ ip.bytes[14] << 3; }

}  // namespace

// ---- opening -------------------------------------------------------------------------------------------------------

std::unique_ptr<DpdkPort> DpdkPort::open(const PluginPortOptions& options, std::string* error) {
  if (!start_eal(options.arguments, error)) return nullptr;
  std::unique_ptr<DpdkPort> port(new DpdkPort(options));
  bool ok = false;
  on_eal_thread([&] { ok = port->probe(error) && port->configure(error) && port->set_up_queues(error); });
  if (!ok) return nullptr;
  return port;
}

DpdkPort::DpdkPort(const PluginPortOptions& options) : options_(options), name_(name_of(options.device)) {}

DpdkPort::~DpdkPort() {
  on_eal_thread([this] { remove(); });
}

void DpdkPort::remove() {
  if (port_ != kNone) {
    for (uint16_t i = 0; i < queued_count_; ++i) rte_pktmbuf_free(queued_[i]);
    rx_release();
    for (size_t i = 0; i < spare_count_; ++i) rte_pktmbuf_free(spare_[i]);
    rte_eth_dev_stop(port_);
    rte_eth_dev_info info;
    rte_device* device = rte_eth_dev_info_get(port_, &info) == 0 ? info.device : nullptr;
    rte_eth_dev_close(port_);
    if (device != nullptr) rte_dev_remove(device);
    port_ = kNone;
  }
  rte_mempool_free(pool_);
  pool_ = nullptr;
}

bool DpdkPort::probe(std::string* error) {
  if (rte_eth_dev_get_port_by_name(name_.c_str(), &port_) == 0) {
    port_ = kNone;
    *error = "DPDK device " + name_ + " is in use in this process already";
    return false;
  }
  int status = rte_dev_probe(options_.device.c_str());
  if (status != 0 || rte_eth_dev_get_port_by_name(name_.c_str(), &port_) != 0) {
    port_ = kNone;
    *error = "DPDK device \"" + options_.device + "\" cannot be opened" +
             (status != 0 ? ": " + error_text(status) : std::string()) +
             "; check the name of the driver, its arguments and permissions (dpdk.device)";
    return false;
  }
  return true;
}

bool DpdkPort::configure(std::string* error) {
  rte_eth_dev_info info;
  if (int status = rte_eth_dev_info_get(port_, &info); status != 0) {
    *error = "DPDK device " + name_ + ": no information: " + error_text(status);
    return false;
  }
  uint16_t device_mtu = 0;
  rte_eth_dev_get_mtu(port_, &device_mtu);
  mtu_ = options_.mtu != 0 ? options_.mtu : payload_for_device_mtu(device_mtu);
  rte_eth_conf conf{};
  tx_offloads_ = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  conf.txmode.offloads = tx_offloads_;
  conf.intr_conf.rxq = 1;
  if (rte_eth_dev_configure(port_, 1, 1, &conf) != 0) {
    conf.intr_conf.rxq = 0;  // a device that cannot interrupt
    if (int status = rte_eth_dev_configure(port_, 1, 1, &conf); status != 0) {
      *error = "DPDK device " + name_ + " refuses one queue of each kind: " + error_text(status);
      return false;
    }
  }
  uint32_t wanted = mtu_ + 150;
  if (device_mtu < wanted) {
    int status = rte_eth_dev_set_mtu(port_, static_cast<uint16_t>(wanted));
    if (status != 0 && status != -ENOTSUP) {
      *error = "DPDK device " + name_ + " has an MTU of " + std::to_string(device_mtu) + " and does not take " +
               std::to_string(wanted) + " for packets of " + std::to_string(mtu_) + " bytes (port.mtu)";
      return false;
    }
  }
  rte_ether_addr mac;
  rte_eth_macaddr_get(port_, &mac);
  wire::MacAddress own;
  std::copy_n(mac.addr_bytes, 6, own.begin());
  neighbours_ = std::make_unique<Neighbours>(options_.addresses, options_.gateway_v4, options_.gateway_v6);
  for (const auto& [ip, neighbour] : options_.neighbours) neighbours_->add_static(ip, neighbour);
  host_ = std::make_unique<EthernetHost>(own, neighbours_.get());
  return true;
}

bool DpdkPort::set_up_queues(std::string* error) {
  auto buffer = static_cast<uint16_t>(RTE_PKTMBUF_HEADROOM + kFrameOverhead + mtu_);
  std::string pool = "softub-" + std::to_string(port_);
  pool_ = rte_pktmbuf_pool_create_by_ops(pool.c_str(), kPoolBuffers, 0, 0, buffer, SOCKET_ID_ANY, "ring_sp_sc");
  if (pool_ == nullptr) {
    *error = "no memory for " + std::to_string(kPoolBuffers) + " buffers of " + std::to_string(buffer) +
             " bytes: " + error_text(rte_errno) + "; give DPDK more (dpdk.arguments, -m)";
    return false;
  }
  uint16_t rx = kRxRing, tx = kTxRing;
  rte_eth_dev_adjust_nb_rx_tx_desc(port_, &rx, &tx);
  int status = rte_eth_rx_queue_setup(port_, 0, rx, rte_eth_dev_socket_id(port_), nullptr, pool_);
  if (status == 0) status = rte_eth_tx_queue_setup(port_, 0, tx, rte_eth_dev_socket_id(port_), nullptr);
  if (status == 0) status = rte_eth_dev_start(port_);
  if (status != 0) {
    *error = "DPDK device " + name_ + " does not start: " + error_text(status);
    return false;
  }
  rte_eth_allmulticast_enable(port_);  // neighbour solicitations; devices without it are heard anyway or use ARP
  if (rte_eth_dev_rx_intr_enable(port_, 0) == 0) {
    interrupt_fd_ = rte_eth_dev_rx_intr_ctl_q_get_fd(port_, 0);
    rte_eth_dev_rx_intr_disable(port_, 0);
  }
  return true;
}

// ---- receive -------------------------------------------------------------------------------------------------------

size_t DpdkPort::rx_burst(Instant now, RxFrame* out, size_t room) {
  now_ = now;
  received_count_ = rte_eth_rx_burst(port_, 0, received_, static_cast<uint16_t>(std::min(room, kBurst)));
  size_t count = 0;
  for (uint16_t i = 0; i < received_count_; ++i) {
    rte_mbuf* m = received_[i];
    if (m->nb_segs != 1) [[unlikely]] {
      ++counters_.rx_drop_segments;
    } else if (strip_vlan(m) && is_for_core(m)) {
      out[count++] = {data_of(m), m->data_len, link_};
    }
  }
  counters_.rx_frames += count;
  return count;
}

void DpdkPort::rx_release() {
  if (received_count_ != 0) rte_pktmbuf_free_bulk(received_, received_count_);
  received_count_ = 0;
}

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

bool DpdkPort::is_for_core(rte_mbuf* m) {
  const std::byte* frame = data_of(m);
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
  bool ours =
      m->data_len >= kEthSize + ip_size + kUdpSize && load_be16(frame + kEthSize + ip_size + 2) == options_.udp_port;
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
  ++(verdict == EthernetHost::Verdict::kForeign ? counters_.rx_drop_foreign : counters_.rx_host);
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
  rte_mbuf* m = queued_count_ == kTxQueue ? nullptr : take_buffer();
  if (m == nullptr) [[unlikely]] {
    ++counters_.tx_no_room;
    return nullptr;
  }
  if (bytes > rte_pktmbuf_tailroom(m)) [[unlikely]] {
    spare_[spare_count_++] = m;
    ++counters_.tx_no_room;
    return nullptr;
  }
  return data_of(m);
}

void DpdkPort::tx_abort(std::byte* frame) { rte_pktmbuf_free(mbuf_of(frame)); }

void DpdkPort::tx_commit(std::byte* frame, size_t bytes) {
  rte_mbuf* m = mbuf_of(frame);
  m->data_len = static_cast<uint16_t>(bytes);
  m->pkt_len = static_cast<uint32_t>(bytes);
  bool v4 = load_be16(frame + 12) == wire::kEtherTypeIpv4;
  wire::IpAddress source, destination;
  if (v4) {
    source = wire::IpAddress::from_v4(load_be32(frame + kEthSize + 12));
    destination = wire::IpAddress::from_v4(load_be32(frame + kEthSize + 16));
  } else {
    std::memcpy(source.bytes.data(), frame + kEthSize + 8, 16);
    std::memcpy(destination.bytes.data(), frame + kEthSize + 24, 16);
  }
  const wire::MacAddress* mac = route(destination, source);
  if (mac == nullptr) return rte_pktmbuf_free(m);
  std::memcpy(frame, mac->data(), 6);
  std::memcpy(frame + 6, host_->mac().data(), 6);
  ++counters_.tx_frames;
  queue(m);
}

const wire::MacAddress* DpdkPort::route(const wire::IpAddress& destination, const wire::IpAddress& source) {
  Route& r = routes_[hash_of(destination) % kRoutes];
  if (r.destination == destination && now_ < r.until) [[likely]]
    return &r.mac;
  wire::IpAddress hop;
  if (!neighbours_->next_hop(destination, &hop)) {
    ++counters_.tx_drop_no_route;
    return nullptr;
  }
  bool must_ask = false;
  const wire::MacAddress* mac = neighbours_->find(now_, hop, &must_ask);
  if (must_ask) ask(hop, source);
  if (mac == nullptr) {
    ++counters_.tx_drop_no_neighbour;
    return nullptr;
  }
  r = {destination, *mac, now_ + kRouteAge};
  return &r.mac;
}

void DpdkPort::ask(const wire::IpAddress& hop, const wire::IpAddress& source) {
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
  queued_[queued_count_++] = m;
}

void DpdkPort::send() {
  uint16_t sent = rte_eth_tx_burst(port_, 0, queued_, queued_count_);
  if (sent != 0 && sent != queued_count_) std::copy(queued_ + sent, queued_ + queued_count_, queued_);
  queued_count_ = static_cast<uint16_t>(queued_count_ - sent);
}

void DpdkPort::tx_flush(Instant now) {
  now_ = now;
  if (queued_count_ != 0) send();
}

// ---- sleep ---------------------------------------------------------------------------------------------------------

bool DpdkPort::prepare_sleep() {
  if (interrupt_fd_ >= 0) rte_eth_dev_rx_intr_enable(port_, 0);
  return rte_eth_rx_queue_count(port_, 0) > 0 || queued_count_ != 0;
}

void DpdkPort::finish_sleep() {
  if (interrupt_fd_ >= 0) rte_eth_dev_rx_intr_disable(port_, 0);
}

void DpdkPort::fds(std::vector<int>& out) const {
  if (interrupt_fd_ >= 0) out.push_back(interrupt_fd_);
}

}  // namespace ub::dpdk
