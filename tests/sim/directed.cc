// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/directed.h"

#include "lib/transport/wire/utp_header.h"

namespace ub::sim {

std::vector<std::byte> control_frame(const wire::ControlRecord& record, const wire::Endpoint& src,
                                     const wire::Endpoint& dst) {
  wire::NetTemplate net;
  net.init({2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, src, dst, 0);
  wire::TaPacket ta{};
  ta.has_mt = ta.has_ofst = true;
  ta.mt = {};
  ta.ofst = {};
  ta.req = {};
  ta.req.opcode = wire::TaOpcode::kSend;
  std::byte headers[wire::kMaxTransactionHeaderSize];
  size_t header_bytes = wire::write_transaction_headers(ta, headers);
  size_t udp = wire::UtpHeader::kSize + header_bytes + wire::kControlRecordSize + wire::kIcrcSize;
  std::vector<std::byte> frame(net.size + udp);
  size_t at = net.write(frame.data(), udp, wire::kEcnNotCapable);
  wire::UtpHeader{}.write(frame.data() + at);
  at += wire::UtpHeader::kSize;
  std::memcpy(frame.data() + at, headers, header_bytes);
  wire::write_control_record(record, frame.data() + at + header_bytes);
  reseal(frame);
  return frame;
}

}  // namespace ub::sim
