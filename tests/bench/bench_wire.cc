// SPDX-License-Identifier: Apache-2.0
// bench_wire.cc - nanoseconds per packet of decoding, encoding and summing, beside memcpy of the same bytes
// in the same run. Frames come from a ring of 256 buffers, as they do from a port.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "lib/base/crc32.h"
#include "lib/base/prng.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/transaction_packet.h"

namespace {

using namespace ub;
using namespace ub::wire;

constexpr size_t kRing = 256;
constexpr size_t kSlot = 8192;

NetTemplate path(bool v6) {
  NetTemplate t;
  Endpoint a{IpAddress::from_v4(0x0A000001), 49152}, b{IpAddress::from_v4(0x0A000002), kUbUdpPort};
  if (v6) a.ip.bytes[0] = b.ip.bytes[0] = 0xFD;
  t.init({2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, a, b, 0);
  return t;
}

/// Headers, payload and, if wanted, ICRC of one WRITE packet; returns the frame's size.
template <bool kIcrc>
size_t write_frame(const NetTemplate& net, std::byte* frame, uint32_t n, const std::byte* payload, size_t size_bytes) {
  const RtpHeader rtp{.padding = padding_for(size_bytes),
                      .last = true,
                      .ack_req = true,
                      .src_tpn = 1,
                      .dst_tpn = 2,
                      .psn = Psn(n),
                      .tpmsn = Tpmsn(n)};
  const Btah btah{.opcode = TaOpcode::kWrite, .tv_en = true, .tassn = Tassn(n), .odr = kOdrRelaxed, .rc_id = 1025};
  const Maetah ma{0x1000 + n, 7, static_cast<uint32_t>(size_bytes)};
  constexpr size_t kHeaders = RtpHeader::kSize + Btah::kSize + Maetah::kSize + Tvetah::kSize;
  const size_t body = size_bytes + rtp.padding;
  std::byte* p = frame + net.write(frame, kHeaders + body + kIcrcSize, 0);
  rtp.write(p);
  btah.write(p + 16);
  ma.write(p + 24);
  Tvetah{0xDEADBEEF}.write(p + 40);
  std::byte* data = p + kHeaders;
  if (kIcrc) {
    uint32_t s = icrc_begin(frame + kEthSize, net.v6());
    s = crc32_update(s, p, kHeaders);
    s = crc32_copy_update(s, data, payload, size_bytes);
    icrc_store(data + body, icrc_finish(s));
  } else {
    std::memcpy(data, payload, size_bytes);
    icrc_store(data + body, 0);
  }
  return net.size + kHeaders + body + kIcrcSize;
}

struct Ring {
  std::vector<std::byte> memory = std::vector<std::byte>(kRing * kSlot);
  std::vector<std::byte> payload = std::vector<std::byte>(kSlot);
  size_t frame_size = 0;

  explicit Ring(const NetTemplate& net, size_t payload_size) {
    Prng(1).fill(payload.data(), payload.size());
    for (uint32_t i = 0; i < kRing; ++i) frame_size = write_frame<true>(net, slot(i), i, payload.data(), payload_size);
  }
  std::byte* slot(uint32_t i) { return memory.data() + (i % kRing) * kSlot; }
};

template <bool kIcrc>
void bm_parse(benchmark::State& state, bool v6, size_t payload_size) {
  Ring ring(path(v6), payload_size);
  uint32_t i = 0;
  TaPacket t;
  for (auto _ : state) {
    NetHeader net;
    RtpHeader rtp;
    Drop d = parse_network({ring.slot(i++), ring.frame_size}, net);
    if (kIcrc && d == Drop::kNone && !icrc_matches(net)) d = Drop::kBadIcrc;
    if (d == Drop::kNone) d = RtpHeader::read(net.tph, net.tp_size(), rtp);
    if (d == Drop::kNone) d = parse_transaction(net.tph + RtpHeader::kSize, net.end, rtp.padding, true, t);
    if (d != Drop::kNone) state.SkipWithError("dropped");
    benchmark::DoNotOptimize(net);
    benchmark::DoNotOptimize(rtp);
    benchmark::DoNotOptimize(t);
  }
}

template <bool kIcrc>
void bm_write(benchmark::State& state, bool v6, size_t payload_size) {
  const NetTemplate net = path(v6);
  Ring ring(net, payload_size);
  uint32_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(write_frame<kIcrc>(net, ring.slot(i), i, ring.payload.data(), payload_size));
    benchmark::ClobberMemory();
    ++i;
  }
}

void bm_parse_network(benchmark::State& state, bool v6) {
  Ring ring(path(v6), 64);
  uint32_t i = 0;
  for (auto _ : state) {
    NetHeader net;
    benchmark::DoNotOptimize(parse_network({ring.slot(i++), ring.frame_size}, net));
    benchmark::DoNotOptimize(net);
  }
}

void bm_memcpy(benchmark::State& state, size_t size_bytes) {
  Ring ring(path(false), 64);
  uint32_t i = 0;
  for (auto _ : state) {
    std::memcpy(ring.slot(i++), ring.payload.data(), size_bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * size_bytes));
}

void bm_crc(benchmark::State& state, Crc32Engine engine, size_t size_bytes, bool copy) {
  if (!crc32_engine_supported(engine)) return state.SkipWithError("not on this CPU");
  Ring ring(path(false), 64);
  uint32_t i = 0, s = crc32_init();
  for (auto _ : state) {
    s = copy ? crc32_copy_update_with(engine, s, ring.slot(i++), ring.payload.data(), size_bytes)
             : crc32_update_with(engine, s, ring.slot(i++), size_bytes);
    benchmark::DoNotOptimize(s);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * size_bytes));
}

std::string label(const char* what, const char* which, size_t size_bytes) {
  std::string s(what);
  s += '/';
  s += which;
  s += '/';
  s += std::to_string(size_bytes);
  return s;
}

template <class F>
void add(const char* what, const char* which, size_t size_bytes, F f) {
  benchmark::RegisterBenchmark(label(what, which, size_bytes).c_str(), f);
}

}  // namespace

int main(int argc, char** argv) {
  add("parse_network", "ipv4", 64, [](auto& s) { bm_parse_network(s, false); });
  add("parse_network", "ipv6", 64, [](auto& s) { bm_parse_network(s, true); });
  add("parse", "ipv4", 64, [](auto& s) { bm_parse<false>(s, false, 64); });
  add("parse", "ipv6", 64, [](auto& s) { bm_parse<false>(s, true, 64); });
  for (const size_t n : {size_t{64}, size_t{1024}, size_t{4096}}) {
    add("memcpy", "libc", n, [n](auto& s) { bm_memcpy(s, n); });
    add("parse_icrc", "ipv4", n, [n](auto& s) { bm_parse<true>(s, false, n); });
    add("write", "ipv4", n, [n](auto& s) { bm_write<false>(s, false, n); });
    add("write_icrc", "ipv4", n, [n](auto& s) { bm_write<true>(s, false, n); });
    for (const Crc32Engine e : {Crc32Engine::kTable, Crc32Engine::kPclmul, Crc32Engine::kVpclmul}) {
      add("crc", crc32_engine_name(e), n, [e, n](auto& s) { bm_crc(s, e, n, false); });
      add("crc_copy", crc32_engine_name(e), n, [e, n](auto& s) { bm_crc(s, e, n, true); });
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
