// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/readdress.h"

#include "lib/transport/wire/icrc.h"

namespace ub::fabric {
namespace {

std::span<std::byte> write_headers(std::span<std::byte> payload, uint8_t tos, const Route& route) {
  wire::NetTemplate headers;
  headers.init({}, {}, route.from, route.to, static_cast<uint8_t>(tos >> 2));
  std::byte* frame = payload.data() - headers.size;
  headers.write(frame, payload.size(), tos & 3);
  return {frame, headers.size + payload.size()};
}

uint32_t right_icrc(std::span<const std::byte> frame, bool is_v6) {
  const std::byte* l3 = frame.data() + wire::kEthSize;
  return wire::icrc_compute(l3, frame.size() - wire::kEthSize - wire::kIcrcSize, is_v6);
}

}  // namespace

std::span<const std::byte> readdress(std::span<std::byte> payload, uint8_t tos, const Route& was, const Route& is) {
  const bool is_v6 = !was.from.ip.is_v4();
  if (payload.size() < wire::kIcrcSize) return write_headers(payload, tos, is);  // no packet of UB
  std::byte* icrc = payload.data() + payload.size() - wire::kIcrcSize;
  const uint32_t difference = wire::icrc_load(icrc) ^ right_icrc(write_headers(payload, tos, was), is_v6);
  const std::span<const std::byte> frame = write_headers(payload, tos, is);
  wire::icrc_store(icrc, difference ^ right_icrc(frame, is_v6));
  return frame;
}

}  // namespace ub::fabric
