// SPDX-License-Identifier: Apache-2.0
// fuzz_ethernet_host.cc - any frames, one after the other, at the small IP host of a DPDK port. It may read no byte
// outside the frame, answer with no more than it has room for, and learn nothing that it may not believe.
//
// The input is a row of frames, each behind a byte with its length; a length of 255 takes all the rest.
#include <algorithm>
#include <cstring>
#include <memory>

#include "dataplane/ethernet_host.h"
#include "lib/base/assert.h"

namespace {

using namespace ub;
using wire::IpAddress;
using wire::MacAddress;
using Verdict = EthernetHost::Verdict;

constexpr MacAddress kMac{2, 0, 0, 0, 0, 1}, kFixedMac{2, 0, 0, 0, 0, 9}, kPeerMac{2, 0, 0, 0, 0, 2};
const IpAddress kOwn4 = IpAddress::from_v4(0x0a000001), kAsked4 = IpAddress::from_v4(0x0a000002);
const IpAddress kFixed4 = IpAddress::from_v4(0x0a000009);
const IpAddress kOwn6{{0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xbb, 1}};
const IpAddress kAsked6{{0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xcc, 0xdd, 2}};

struct Host {
  Neighbours table{{{kOwn4, 24}, {kOwn6, 64}}, {}, {}};
  EthernetHost host{kMac, &table};
  Instant now{1'000'000'000};

  Host() {
    bool ask;
    table.add_static(kFixed4, kFixedMac);
    for (const IpAddress& ip : {kAsked4, kAsked6}) table.find(now, ip, &ask);
  }

  void take(const uint8_t* data, size_t size) {
    std::unique_ptr<std::byte[]> frame(new std::byte[size]);
    if (size != 0) std::memcpy(frame.get(), data, size);
    const size_t room = std::max(size, EthernetHost::kMaxQuestion);
    std::unique_ptr<std::byte[]> answer(new std::byte[room]);
    size_t bytes = 0;
    Verdict verdict = host.on_frame(now, {frame.get(), size}, answer.get(), &bytes);
    if (verdict == Verdict::kAnswer) check_answer({answer.get(), bytes}, room);
    UB_ASSERT(verdict == Verdict::kAnswer || bytes == 0);
    UB_ASSERT(table.size() <= Neighbours::kMaxEntries);
    bool ask;
    if (const auto news = table.take_news()) UB_ASSERT(table.find(now, *news, &ask) != nullptr);
    const MacAddress* fixed = table.find(now, kFixed4, &ask);
    UB_ASSERT(fixed != nullptr && *fixed == kFixedMac && !ask);
    for (const IpAddress& ip : {kAsked4, kAsked6}) {
      const MacAddress* mac = table.find(now, ip, &ask);
      UB_ASSERT(mac == nullptr || ((*mac)[0] & 1) == 0);  // never a group
    }
    now += milliseconds(7);
  }

  // Another host takes what this one says for a good frame.
  static void check_answer(std::span<const std::byte> answer, size_t room) {
    UB_ASSERT(answer.size() >= 42 && answer.size() <= room);
    UB_ASSERT(std::memcmp(answer.data() + 6, kMac.data(), 6) == 0);
    Neighbours table{{{kAsked4, 24}, {kAsked6, 64}}, {}, {}};
    EthernetHost other{kPeerMac, &table};
    std::unique_ptr<std::byte[]> out(new std::byte[room]);
    size_t bytes = 0;
    UB_ASSERT(other.on_frame(Instant{1}, answer, out.get(), &bytes) != Verdict::kDamaged);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Host host;
  while (size != 0) {
    size_t length = data[0] == 255 ? size - 1 : std::min<size_t>(data[0], size - 1);
    host.take(data + 1, length);
    data += 1 + length;
    size -= 1 + length;
  }
  return 0;
}
