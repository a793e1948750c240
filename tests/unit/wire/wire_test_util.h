// SPDX-License-Identifier: Apache-2.0
// wire_test_util.h - bytes from hex, and buffers of exactly the size they claim, so that a sanitizer sees any
// read beyond them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/prng.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::wire {

using Bytes = std::vector<std::byte>;

/// Hex digits; spaces and '|' are decoration.
inline Bytes hex(const char* text) {
  Bytes out;
  int high = -1;
  for (; *text != '\0'; ++text) {
    if (std::isxdigit(static_cast<unsigned char>(*text)) == 0) continue;
    const int v = std::isdigit(static_cast<unsigned char>(*text)) != 0 ? *text - '0' : (*text | 32) - 'a' + 10;
    if (high < 0) {
      high = v;
    } else {
      out.push_back(static_cast<std::byte>(high << 4 | v));
      high = -1;
    }
  }
  return out;
}

inline std::string to_hex(std::span<const std::byte> b) {
  std::string s;
  char two[4];
  for (std::byte x : b) {
    std::snprintf(two, sizeof two, "%02x ", static_cast<unsigned>(x));
    s += two;
  }
  return s;
}

/// A copy on the heap with not one byte to spare.
class Exact {
 public:
  explicit Exact(std::span<const std::byte> b) : size_(b.size()), p_(new std::byte[b.size()]) {
    if (!b.empty()) std::memcpy(p_.get(), b.data(), b.size());
  }
  const std::byte* begin() const { return p_.get(); }
  const std::byte* end() const { return p_.get() + size_; }
  size_t size() const { return size_; }
  std::span<const std::byte> span() const { return {p_.get(), size_}; }

 private:
  size_t size_;
  std::unique_ptr<std::byte[]> p_;
};

template <class Header>
Bytes written(const Header& h) {
  Bytes b(Header::kSize);
  h.write(b.data());
  return b;
}

inline Bytes concat(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes& p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}

inline constexpr Endpoint kV4A{IpAddress::from_v4(0x0A000001), 49152};
inline constexpr Endpoint kV4B{IpAddress::from_v4(0x0A000002), kUbUdpPort};

inline IpAddress v6_address(uint8_t last) {
  IpAddress a;
  a.bytes[0] = 0xFD;
  a.bytes[15] = last;
  return a;
}

/// Ethernet, IP and UDP around `tp` (TPH to pad), sealed with an ICRC.
inline Bytes frame_of(const NetTemplate& net, const Bytes& tp, uint8_t ecn = 0) {
  Bytes f(net.size + tp.size() + kIcrcSize);
  const size_t head = net.write(f.data(), tp.size() + kIcrcSize, ecn);
  EXPECT_EQ(head, net.size);
  std::copy(tp.begin(), tp.end(), f.begin() + static_cast<ptrdiff_t>(head));
  icrc_store(f.data() + f.size() - kIcrcSize,
             icrc_compute(f.data() + kEthSize, f.size() - kEthSize - kIcrcSize, net.v6()));
  return f;
}

inline NetTemplate template_v4(uint8_t dscp = 0) {
  NetTemplate t;
  t.init({2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, kV4A, kV4B, dscp);
  return t;
}

inline NetTemplate template_v6(uint8_t dscp = 0) {
  NetTemplate t;
  t.init({2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {v6_address(1), 49152}, {v6_address(2), kUbUdpPort}, dscp);
  return t;
}

/// Headers, payload and padding of a transaction.
inline Bytes transaction_of(const TaPacket& t, const Bytes& payload = {}) {
  Bytes b(512);
  b.resize(write_transaction_headers(t, b.data()));
  b.insert(b.end(), payload.begin(), payload.end());
  b.resize(b.size() + padding_for(b.size()));
  return b;
}

/// A packet of the given opcode with every header it may have, random contents.
inline TaPacket random_packet(TaOpcode op, bool ud, bool tv, bool read_meta, Prng& rng) {
  const uint16_t shape = ta_shape(op);
  const auto coin = [&rng] { return rng.chance(0.5); };
  TaPacket t{};
  const Tassn tassn(rng.next_u32());
  const uint32_t rc = static_cast<uint32_t>(rng.below(1 << 20));
  t.is_response = !ta_is_request(op);
  if (t.is_response) {
    t.rsp = {.opcode = op,
             .poison = coin(),
             .sv = coin(),
             .tassn = tassn,
             .rspinfo = static_cast<uint8_t>(rng.below(32)),
             .rspst = 0,
             .rc_type = 1,
             .rc_id = rc};
  } else {
    t.req.opcode = op;
    t.req.tassn = tassn;
    t.req.rc_id = rc;
    t.req.odr = static_cast<uint8_t>(rng.below(7));
    t.req.fce = coin();
    t.req.retry = coin();
    t.req.e_bit = coin();
    t.has_ud = t.req.ud_flag = ud;
    t.has_mt = t.req.mt_en = (shape & kShapeMt) != 0;
    t.tv = t.req.tv_en = tv && (shape & kShapeTv) != 0;
  }
  t.has_taid = (shape & kShapeReadMeta) != 0 && read_meta;
  t.has_ofst = t.has_taid || (shape & kShapeOfst) != 0;
  t.has_ma = (shape & kShapeMa) != 0;
  t.has_imm = (shape & kShapeImm) != 0;
  t.has_ntf = (shape & kShapeNtf) != 0;
  t.has_mgmt = (shape & kShapeMgmt) != 0;
  t.ud = rng.next_u32();
  t.token_value = rng.next_u32();
  t.taid = static_cast<uint16_t>(rng.next_u32());
  const auto id20 = [&rng] { return static_cast<uint32_t>(rng.below(1 << 20)); };
  t.mt = {static_cast<uint8_t>(rng.next_u32()), static_cast<uint8_t>(rng.below(3)), id20()};
  t.ofst = {static_cast<uint32_t>(rng.below(1 << 24))};
  t.ma = {rng.next_u64(), id20(), rng.next_u32()};
  t.imm = {rng.next_u64(), rng.next_u32(), rng.next_u32()};
  t.ntf = {rng.next_u64(), id20(), rng.next_u32(), rng.next_u64()};
  t.mgmt = {static_cast<uint8_t>(rng.below(16)), static_cast<uint8_t>(rng.below(8)), coin(),
            static_cast<uint8_t>(rng.next_u32()), static_cast<uint16_t>(rng.below(4096))};
  return t;
}

inline constexpr TaOpcode kAllOpcodes[] = {
#define X(id, code, name, shape) TaOpcode::k##id,
    UB_TA_OPCODES(X)
#undef X
};

}  // namespace ub::wire
