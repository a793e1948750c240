// SPDX-License-Identifier: Apache-2.0
//
// UB as an engine of a Core (engine.h). It only passes packets, copies and timers on to tp/ (one channel: PSNs,
// acknowledgement, loss), ta/ (requests and answers) and setup/ (channel set-up and teardown), which share CoreState.
// It is the last engine of the list, so it takes every packet that no other engine claims; what is not UB is dropped
// here.
//
// Thread: the owner of the Core.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/setup/record_sender.h"
#include "lib/transport/ta/channel_sender.h"
#include "lib/transport/ta/datagram_receiver.h"
#include "lib/transport/ta/datagram_sender.h"
#include "lib/transport/ta/receiver.h"
#include "lib/transport/ta/sent_messages.h"
#include "lib/transport/tp/transmitter.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

template <class Host>
class UbEngine {
 public:
  struct State {};  // UB's state is in CoreState
  static void lay_out(CoreState& s, State&, Arena& arena) { lay_out_ub(s, arena); }
  UbEngine(CoreState& s, State&, Host& host);

  bool claims(const wire::NetHeader&) const { return true; }
  void on_packet(uint32_t link, const wire::NetHeader& net);
  bool on_posted(ObjectKind kind, uint32_t record);
  bool on_copy_done(CopyTag, bool ok);
  bool on_gathered(const HeldFrame&);
  bool on_timer(uint32_t timer);
  size_t poll_packets(size_t budget, Acks acks);
  bool has_packets(Acks acks) const;
  void link_down(uint32_t link);
  void close_owner(Owner);
  void close();

 private:
  void on_unreliable(uint32_t link, const wire::NetHeader& net);
  void on_channel_packet(uint32_t link, const wire::NetHeader& net, const wire::RtpHeader& rtp);
  bool may_carry_data(uint32_t channel);
  size_t poll_requests(size_t budget);

  CoreState& s_;
  setup::RecordSender<Host> record_sender_;
  ta::DatagramSender<Host> datagram_sender_;
  ta::DatagramReceiver<Host> datagram_receiver_;
  tp::Transmitter<Host> transmitter_;
  ta::ChannelSender<Host> channel_sender_;
  ta::Receiver<Host> receiver_;
};

}  // namespace ub
