// SPDX-License-Identifier: Apache-2.0
//
// UB over a DPDK ethdev: one receive and one transmit queue, any PMD. The port is its own IP host (ethernet_host.h).
//
// Buffers come from one pool, those freed last first. A frame that is being written lies in a buffer at a constant
// distance from its mbuf. What the device does not take stays queued and leaves at a later flush. Without a link,
// frames are dropped: what waits for ever would be kept for ever. A few wait for a while: those whose next hop is not
// known yet (waiting_frames.h).
//
// Packets of CTP, which have no IP header, find their next hop by the IPv4 addresses in their Ethernet header
// (wire/compact_packet.h). So a port carries them only if all its addresses are of IPv4, and if it has no gateway,
// behind which only IP goes on. And its wire must leave the length of frames as it is: Ethernet fills short ones up.
//
// Between two memif devices without a switch frames are never doubled and keep their order. So such ports also carry TP
// bypass, whose frames must come within two seconds or never: those that may have lain in the ring of a peer for one
// are dropped when they are received, what the peer takes nothing of for one is dropped here, and so is what was queued
// for a peer that went away, even if another one came. They do not wait for their next hop.
//
// A raw port is no IP host. It hands over every frame and sends them as they were written.
//
// Thread: the owner of the Core, except open().
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/dpdk/link_watch.h"
#include "dataplane/dpdk/queue_age.h"
#include "dataplane/dpdk/telemetry_commands.h"
#include "dataplane/ethernet_host.h"
#include "dataplane/plugin_port.h"
#include "dataplane/tsc_clock.h"
#include "dataplane/waiting_frames.h"

namespace ub::dpdk {

class DpdkPort final : public PluginPort {
 public:
  // Null and a sentence in `*error`: devargs that no PMD takes, no memory, no permission. A device may get its link
  // later.
  static std::unique_ptr<DpdkPort> open(const PluginPortOptions&, std::string* error);
  ~DpdkPort() override;

  // No device promises that it loses nothing: frames are gone when its link is.
  LinkConfig link_config() const override {
    return {.mtu = mtu_, .compact = carries_compact_, .link_frames = carries_compact_, .bypass = carries_bypass_};
  }
  PluginPortCounters counters() override;
  void set_link(uint32_t link) override { link_ = link; }
  bool has_link() const override { return watch_->has_link(); }
  bool resolve(Instant now, const wire::IpAddress& destination, const wire::IpAddress& source) override;

  size_t rx_burst(Instant now, RxFrame* out, size_t room) override;
  void rx_release() override;
  std::byte* tx_begin(size_t bytes) override;
  void tx_commit(std::byte* frame, size_t bytes) override;
  void tx_abort(std::byte* frame) override;
  void tx_flush(Instant now) override;
  Instant next_deadline() const override { return waiting_.next_deadline(); }
  bool prepare_sleep() override;
  void finish_sleep() override;
  void fds(std::vector<int>&) const override;
  bool can_wake() const override { return armed_; }

 private:
  static constexpr uint16_t kNone = UINT16_MAX;
  static constexpr uint16_t kRxRing = 1024, kTxRing = 1024;
  static constexpr size_t kTxQueue = 64;                // committed frames that wait for a flush
  static constexpr size_t kSpare = 64;                  // buffers taken from the pool at once
  static constexpr uint32_t kFrameOverhead = 14 + 300;  // headers and trailer around the largest payload
  static constexpr size_t kRoutes = 64;
  static constexpr Duration kOldFrame = seconds(1);

  // The last answer of the neighbour table for a destination: asked for every packet.
  struct Route {
    wire::IpAddress destination;
    wire::MacAddress mac;
    Instant until{};
  };

  explicit DpdkPort(const PluginPortOptions&);
  bool probe(std::string* error);
  bool configure(std::string* error);
  bool can_carry_compact(const char* driver) const;
  bool frames_fit_memif(std::string* error) const;
  bool configure_queues(const rte_eth_dev_info&, std::string* error);
  bool widen(std::string* error);
  bool set_up_queues(std::string* error);
  bool start(std::string* error);
  void remove();
  unsigned long argument(const char* text, unsigned long otherwise) const;
  std::string text_argument(const char* text, const char* otherwise) const;
  bool has_argument(const char* text) const { return options_.device.find(text) != std::string::npos; }

  bool is_whole(rte_mbuf*);
  bool is_wanted(rte_mbuf*);
  bool is_for_core(rte_mbuf*);
  bool is_for_core_without_ip(std::span<const std::byte> frame);
  bool strip_vlan(rte_mbuf*);
  void answer_host(rte_mbuf*);
  const wire::MacAddress* route(std::byte* frame);
  void hold(const wire::IpAddress& hop, std::byte* frame);
  void hear_news();
  void serve_waiting();
  void send_answered();
  void send_to(const wire::MacAddress&, std::byte* frame);
  void ask(const wire::IpAddress& hop, const wire::IpAddress& source);
  void queue(rte_mbuf*);
  void send();
  void note_refused(uint16_t sent);
  void drop_queued(uint64_t* counter);
  rte_mbuf* take_buffer();

  PluginPortOptions options_;
  std::string name_;  // of the device
  uint16_t port_ = kNone;
  rte_mempool* pool_ = nullptr;
  uint32_t mtu_ = 0;
  uint32_t link_ = 0;
  bool is_memif_ = false, is_af_packet_ = false;
  bool carries_compact_ = false;
  bool carries_bypass_ = false;
  int interrupt_fd_ = -1;
  bool armed_ = false;  // a frame makes it readable
  Instant now_{};

  std::unique_ptr<LinkWatch> watch_;
  std::optional<TelemetryAnswers> telemetry_;
  std::unique_ptr<Neighbours> neighbours_;
  std::unique_ptr<EthernetHost> host_;
  Route routes_[kRoutes];
  WaitingFrames waiting_;
  uint64_t link_changes_ = 0;  // that waiting_ was told of

  rte_mbuf* received_[kBurst];
  uint16_t received_count_ = 0;
  rte_mbuf* queued_[kTxQueue];
  uint16_t queued_count_ = 0;
  uint64_t queued_link_ = 0;  // LinkWatch::changes() when the first of them was queued
  TscClock clock_;            // goes on while nobody drives
  std::optional<QueueAge> refused_age_;  // of those that wait because the device did not take them
  std::optional<QueueAge> ring_age_;     // of what the peer sends, if the port carries TP bypass
  Instant looked_at_{};                  // at that ring
  rte_mbuf* spare_[kSpare];
  size_t spare_count_ = 0;
  PluginPortCounters counters_;
};

}  // namespace ub::dpdk
