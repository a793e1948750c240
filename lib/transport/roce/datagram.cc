// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/datagram.h"

#include <algorithm>
#include <cstring>

namespace ub::roce {
namespace {

constexpr uint16_t kFirstSourcePort = 0xC000;

bool drop(CoreState& s, Counter why) {
  s.drop(why);
  return false;
}

}  // namespace

Status create_ah(const CoreState& s, State& r, const AddressHandleConfig& config, uint32_t* ah) {
  const AhAttributes& path = config.attributes;
  if (path.link == 0 || path.link > s.links.high_water() || !s.links[path.link].up ||
      path.sgid.is_v4() != path.dgid.is_v4()) {
    return Status::kInvalid;
  }
  const uint32_t index = r.address_handles.alloc();
  if (index == 0) return Status::kNoMemory;
  AddressHandle& a = r.address_handles[index];
  a = {path, {}, config.owner, true};
  const uint16_t fixed = s.links[path.link].config.roce_port;
  const uint16_t port = fixed != 0 ? fixed : static_cast<uint16_t>(kFirstSourcePort | (index & 0x3FFF));
  a.headers.init({}, {}, {path.sgid, port}, {path.dgid, kUdpPort}, dscp_of(s.config, path));
  *ah = index;
  return Status::kOk;
}

Status destroy_ah(State& r, uint32_t ah) {
  if (ah == 0 || ah > r.address_handles.high_water() || !r.address_handles[ah].in_use) return Status::kInvalid;
  r.address_handles[ah].in_use = false;
  r.address_handles.free(ah);
  return Status::kOk;
}

bool admit_datagram(CoreState& s, Qp& qp, const Packet& packet) {
  if (packet.deth.qkey != qp.qkey) return drop(s, Counter::kRoceRxDropBadQkey);
  if (qp.receive != 0) return drop(s, Counter::kRoceRxDropBusy);
  const bool ready = s.jfrs[qp.jfr].state == QueueState::kReady;
  const uint32_t receive = ready ? take_receive(s, qp.jfr, qp.recv_jfc) : 0;
  if (receive == 0) return drop(s, Counter::kRoceRxDropNoReceive);
  if (kGrhBytes + packet.payload_bytes > s.receives[receive].length) {
    return_receive(s, receive);
    return drop(s, Counter::kRoceRxDropNoFit);
  }
  qp.receive = receive;
  qp.copy_failed = false;
  return true;
}

Cqe datagram_completion(const Packet& packet, const wire::NetHeader& net) {
  Cqe cqe{};
  cqe.opcode = packet.has(kShapeImm) ? CrOpcode::kSendImm : CrOpcode::kSend;
  cqe.immediate = packet.has(kShapeImm) ? packet.immediate : 0;
  cqe.flags = packet.bth.solicited ? kCqeSolicited : 0;
  cqe.length = kGrhBytes + packet.payload_bytes;
  cqe.remote_id = packet.deth.src_qp;
  std::copy(net.src.ip.bytes.begin(), net.src.ip.bytes.end(), cqe.remote_eid);
  return cqe;
}

void write_grh(const wire::NetHeader& net, std::byte (&grh)[kGrhBytes]) {
  const size_t bytes = net.v6 ? wire::kIpv6Size : wire::kIpv4Size;
  std::memset(grh, 0, sizeof grh);
  std::memcpy(grh + kGrhBytes - bytes, net.l3, bytes);
}

void complete_datagram(CoreState& s, State& r, uint32_t index) {
  Qp& qp = r.qps[index];
  if (qp.receive == 0) return;
  if (!qp.copy_failed) s.count(Counter::kRoceRxDatagram);
  if (qp.copy_failed) s.drop(Counter::kRoceRxDropNoFit);
  complete_receive(s, qp, qp.copy_failed ? CrStatus::kLocAccess : CrStatus::kSuccess, r.arriving[qp.arriving]);
  qp.copy_failed = false;
}

}  // namespace ub::roce
