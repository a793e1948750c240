// SPDX-License-Identifier: Apache-2.0
//
// UB as an engine of a Core (engine.h). It only passes packets, copies and timers on to tp/ (one channel: PSNs,
// acknowledgement, loss), ta/ (requests and answers) and setup/ (channel set-up and teardown), which share CoreState.
// It is the last engine of the list, so it takes every packet that no other engine claims; what is not UB is dropped
// here. Whoever drives a Core includes this file, so it only declares the templates of the data path: ub_engine_impl.h
// includes them.
//
// Thread: the owner of the Core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/flatten.h"
#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/rtp_header.h"

namespace ub {

namespace setup {
template <class Host>
class RecordSender;
}  // namespace setup
namespace tp {
template <class Host>
class Transmitter;
}  // namespace tp
namespace ta {
template <class Host>
class PacketSender;
template <class Host>
class DatagramReceiver;
template <class Host>
class DatagramSender;
template <class Host>
class PacketReceiver;
template <class Host>
class StraightArrival;
template <class Host>
class StraightSender;
}  // namespace ta

template <class Host>
class UbEngine {
 public:
  struct State {};  // UB's state is in CoreState
  static void lay_out(CoreState& s, State&, Arena& arena) { lay_out_ub(s, arena); }
  UbEngine(CoreState& s, State&, Host& host) : s_(s), host_(host) {}

  bool claims(const wire::NetHeader&) const { return true; }
  // Attributes stand here, because the class may be instantiated before its definitions are seen.
  // Flattened: a call costs as much as the work of most functions that a packet runs through. Hot: the compiler takes
  // what lies behind many questions for rarely reached, and would save space there instead of time.
  [[gnu::hot]] UB_FLATTEN void on_packet(uint32_t link, const wire::NetHeader& net);
  // The same for a packet of CTP.
  [[gnu::hot]] UB_FLATTEN bool on_link_frame(uint32_t link, std::span<const std::byte> eth_frame);
  [[gnu::noinline, gnu::hot]] UB_FLATTEN bool take_link_frame(uint32_t link, std::span<const std::byte> eth_frame);
  bool on_posted(ObjectKind kind, uint32_t record);
  // Sends what was posted to the object, if it can leave at once and nothing else is to be sent. True: that was all.
  [[gnu::hot]] UB_FLATTEN bool send_straight(ObjectKind kind, uint32_t record, size_t budget, size_t* sent);
  bool on_copy_done(CopyTag, bool ok);
  bool on_gathered(const HeldFrame&);
  bool on_timer(uint32_t timer);
  // Inline, because this function mostly finds nothing to send, which costs no more than a call.
  [[gnu::always_inline]] inline size_t poll_packets(size_t budget, Acks acks);
  bool has_packets(Acks acks) const;
  void link_down(uint32_t link);
  void close_owner(Owner);
  void close();

 private:
  [[gnu::noinline]] void on_unreliable(uint32_t link, const wire::NetHeader& net);
  void on_channel_packet(uint32_t link, const wire::NetHeader& net, const wire::RtpHeader& rtp);
  bool comes_by_path(uint32_t channel, uint32_t link, const wire::NetHeader& net, const wire::RtpHeader& rtp);
  void take_channel_packet(uint32_t channel, const wire::NetHeader& net, const wire::RtpHeader& rtp);
  void on_compact(uint32_t link, const wire::CompactPacket& packet);
  [[gnu::noinline]] void on_cna(uint32_t link, std::span<const std::byte> eth_frame);
  bool may_carry_data(uint32_t channel);
  bool run_mapped(uint32_t queue);
  [[gnu::always_inline]] inline size_t poll_requests(size_t budget);

  // They hold nothing but references to the state and the host.
  setup::RecordSender<Host> record_sender() { return {s_, host_}; }
  tp::Transmitter<Host> transmitter() { return {s_, host_}; }
  ta::PacketSender<Host> packet_sender() { return {s_, host_}; }
  ta::PacketReceiver<Host> packet_receiver() { return {s_, host_}; }
  ta::StraightSender<Host> straight_sender() { return {s_, host_}; }
  ta::StraightArrival<Host> straight_arrival() { return {s_, host_}; }
  ta::DatagramSender<Host> datagram_sender() { return {s_, host_}; }
  ta::DatagramReceiver<Host> datagram_receiver() { return {s_, host_}; }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub
