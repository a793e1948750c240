// SPDX-License-Identifier: Apache-2.0
// mad_sender.h - sends the management datagrams that wait in State::mads, each as a SEND of the GSI queue pair.
#pragma once

#include <cstring>

#include "lib/transport/roce/frame_builder.h"
#include "lib/transport/roce/state.h"

namespace ub::roce {

template <class Host>
class MadSender {
 public:
  MadSender(CoreState& s, State& r, Host& host) : s_(s), r_(r), frames_(s, host) {}

  /// At most `budget` of them, until the port is full; returns how many left.
  size_t send(size_t budget) {
    size_t n = 0;
    for (; n < budget && r_.mad_head != r_.mad_tail; ++n, ++r_.mad_head) {
      if (!send_one(r_.mads[r_.mad_head % kMadRing])) break;
    }
    return n;
  }

 private:
  static constexpr uint16_t kSourcePort = 0xC001;  // unless the link has one for all packets

  /// False: the port is full.
  bool send_one(const OutgoingMad& out) {
    const LinkRecord& link = s_.links[out.path.link];
    if (!link.up) return true;  // nobody is there any more
    const uint16_t fixed = link.config.roce_port;
    wire::NetTemplate headers;
    headers.init({}, {}, {out.path.sgid, fixed != 0 ? fixed : kSourcePort}, {out.path.dgid, kUdpPort}, s_.config.dscp);
    Packet packet{};
    packet.bth.opcode = Opcode::kUdSendOnly;
    packet.bth.dest_qp = kGsiQp;
    packet.bth.psn = Psn(r_.gsi_psn);
    packet.deth = {kGsiQkey, kGsiQp};
    Frame frame;
    if (!frames_.begin(out.path.link, headers, packet, kMadSize, wire::kEcnNotCapable, &frame)) return false;
    std::memcpy(frame.payload, out.mad.data(), kMadSize);
    frames_.commit(out.path.link, headers.v6(), frame.begin, frame.bytes);
    ++r_.gsi_psn;
    s_.count(Counter::kRoceTxDatagram);
    note_of<Host>(s_, Stage::kMadSent, out.path.link);
    return true;
  }

  CoreState& s_;
  State& r_;
  FrameBuilder<Host> frames_;
};

}  // namespace ub::roce
