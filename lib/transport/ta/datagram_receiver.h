// SPDX-License-Identifier: Apache-2.0
//
// Receives datagrams (UM): it copies the payload of a datagram into the receive that datagram_admission.h took for it.
// Memory may answer later. The receive completes when all pieces of the payload are copied.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/ta/copy_tag.h"
#include "lib/transport/ta/datagram_admission.h"
#include "lib/transport/ta/payload.h"

namespace ub::ta {

template <class Host>
class DatagramReceiver {
 public:
  DatagramReceiver(CoreState& s, Host& host) : s_(s), host_(host) {}

  void on_datagram(uint32_t link, const wire::Endpoint& source, const wire::TaPacket& packet) {
    note_of<Host>(s_, Stage::kDatagramArrived, link, packet.payload_len);
    const uint32_t record = admit_datagram(s_, link, source, packet);
    if (record == 0) return;
    ArrivingDatagram& d = s_.arriving[record];
    const RxReceive& receive = s_.receives[d.receive];
    if (packet.payload_len > receive.length) return complete_datagram(s_, record, CrStatus::kLocLen);
    const Copies copies{datagram_tag({record, d.generation}), d.pending};
    d.failed = !scatter(s_, host_, copies, receive, packet.payload, packet.payload_len, true);
    if (d.pending == 0) complete(record);
  }

  void on_placed(const DatagramCopy& copy, bool ok) {
    ArrivingDatagram& d = s_.arriving[copy.record];
    if (!d.in_use || d.generation != copy.generation) return;
    d.failed |= !ok;
    if (--d.pending == 0) complete(copy.record);
  }

 private:
  void complete(uint32_t record) {
    complete_datagram(s_, record, s_.arriving[record].failed ? CrStatus::kLocAccess : CrStatus::kSuccess);
  }

  CoreState& s_;
  Host& host_;
};

}  // namespace ub::ta
