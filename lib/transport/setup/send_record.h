// SPDX-License-Identifier: Apache-2.0
//
// Makes control records and puts them into the outbox: records about a channel, answers, and repetitions.
// record_sender.h sends them.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"

namespace ub::setup {

struct Arrival;

// Puts a record into the outbox. If that is full, the record is lost and counted.
void send_record(CoreState& s, const OutRecord& out);
// Sends a record about a channel, with our terms in it (terms.h).
void send_about(CoreState& s, const tp::Channel& ch, wire::RecordType type);
// A PING about one of several paths of a channel, on that path. It is as long as the largest data packet.
void send_path_record(CoreState& s, const tp::Channel& ch, const tp::Path& path, wire::RecordType type);
// The PONG to one, to where it came from. It is as long if it says that the path is taken: nobody else gets more than
// was sent.
void send_path_answer(CoreState& s, const Arrival& from, const wire::ControlRecord& ping, wire::RecordReason reason);
// SC_FREE: tells the peer that no queue of ours uses this sequence context any more. It is a hint, and not repeated.
void send_context_free(CoreState& s, uint32_t peer, uint32_t scid);
// Makes the answer to a record, for answers that need no channel. send_reply() makes it and sends it.
wire::ControlRecord reply_to(const CoreState& s, const wire::ControlRecord& to, wire::RecordType type,
                             wire::RecordReason reason);
void send_reply(CoreState& s, const Arrival& from, const wire::ControlRecord& to, wire::RecordType type,
                wire::RecordReason reason);

// How long to wait for an answer before a record that was repeated `tries` times is sent again.
Duration setup_pause(const CoreState& s, uint32_t tries);
// Sets the timer of the channel to the time when its record is to be sent again.
void arm_setup(CoreState& s, uint32_t channel);

}  // namespace ub::setup
