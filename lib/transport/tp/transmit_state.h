// SPDX-License-Identifier: Apache-2.0
//
// The sending half of a channel (UB Base Specification Rev 2.0, 6.4, 6.7): what is in flight, what an
// acknowledgement means, what goes again and when. No packet is built here (transmitter.h does).
#pragma once

#include <algorithm>

#include "lib/transport/core_state.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/sack.h"

namespace ub::tp {

// May a packet with a new PSN leave?
inline uint32_t usable_window(const Channel& ch) {
  return ch.lossless ? ch.send_window : std::min(ch.send_window, ch.cc.window);
}
inline bool window_open(const Channel& ch) { return ch.outstanding() < usable_window(ch); }
// Does a packet demand an acknowledgement (A)? One that goes again does, and one that leaves a quarter of the window or
// less for those behind it.
inline bool asks_for_ack(const Channel& ch, bool again) {
  return again || ch.outstanding() >= usable_window(ch) - usable_window(ch) / 4 - 1;
}
// The gathers of the packet that leaves next are done. Nothing could be sent again meanwhile, so the peer had nothing to
// acknowledge: that time is no silence.
inline void waited_for_memory(Channel& ch, Instant now) {
  ch.progress_at = ch.progress_at < ch.gather_since ? ch.progress_at + (now - ch.gather_since) : now;
}
// Appends a message that starts with the next PSN and is the next to be started; nullptr: no room for its descriptor.
TxMessage* begin_message(CoreState& s, Channel& ch, const TxMessage& content = {});
// A new packet of the newest message left.
void packet_sent(CoreState& s, uint32_t channel);

// The message that a PSN in flight belongs to.
TxMessage* message_at(CoreState& s, Channel& ch, Psn psn);

// The lowest PSN that is to be sent again, if any.
bool next_resend(CoreState& s, Channel& ch, Psn* psn);
void resent(CoreState& s, Channel& ch, Psn psn);

void on_ack(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp);
void on_sack(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp, const wire::SackView& sack);
void on_nak(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp);
void on_retransmission_timeout(CoreState& s, uint32_t channel);

// If the newest message is half sent and belongs to this request, it ends here with a fake packet.
void stop_half_sent(CoreState& s, uint32_t channel, uint32_t queue, uint32_t number);
// The same for a READ job.
void stop_half_sent_job(CoreState& s, uint32_t channel, uint32_t job);

void arm_channel_timer(CoreState& s, uint32_t channel);

}  // namespace ub::tp
