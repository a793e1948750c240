// SPDX-License-Identifier: Apache-2.0
// One end of a shared-memory wire as the tests of the port use it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "dataplane/shm_port.h"

namespace ub {

inline Eid test_eid(uint8_t last) {
  Eid e;
  e.bytes[15] = last;
  return e;
}

struct TempDir {
  std::string path = "/tmp/softub-test-XXXXXX";
  TempDir() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  ~TempDir() { EXPECT_EQ(std::system(("rm -rf " + path).c_str()), 0); }
};

struct Node {
  ShmPort port;
  InstanceId id;
  uint32_t next_link = 1;
  std::string error;
  std::vector<DeadLink> dead;

  bool open(const std::string& dir, uint8_t eid, uint32_t uasid, uint64_t ring_bytes = 1 << 20) {
    ShmPortOptions o;
    o.directory = dir;
    o.ring_bytes = ring_bytes;
    return open(o, eid, uasid);
  }
  bool open(const ShmPortOptions& o, uint8_t eid, uint32_t uasid) {
    id = {test_eid(eid), uasid};
    return port.open(o, {&id.eid, 1}, uasid, &error);
  }
  void control() {
    port.poll_control();
    port.adopt_pending([this](const LinkConfig&) { return next_link++; });
    size_t before = dead.size();
    port.take_dead_links(&dead);
    for (size_t i = before; i < dead.size(); ++i) port.drop_link(dead[i].link);
  }
  uint32_t link_to(const Node& peer) const { return port.find_link(peer.id.eid, peer.id.uasid); }
  bool send(uint32_t link, uint64_t value, size_t bytes = 64) {
    std::byte* f = port.tx_begin(link, bytes);
    if (f == nullptr) return false;
    std::memset(f, static_cast<int>(value), bytes);
    std::memcpy(f, &value, 8);
    port.tx_commit(link, f, bytes);
    return true;
  }
  std::vector<uint64_t> receive(size_t most = SIZE_MAX) {
    std::vector<uint64_t> values;
    RxFrame rx[kBurst];
    while (size_t n = values.size() < most ? port.rx_burst(rx, kBurst) : 0) {
      for (size_t i = 0; i < n; ++i) {
        values.emplace_back();
        std::memcpy(&values.back(), rx[i].data, 8);
      }
      port.rx_release();
    }
    return values;
  }
};

inline Instant at_us(int64_t us) { return {static_cast<uint64_t>(us) * 1000}; }

inline void connect(Node& a, Node& b) {
  ASSERT_TRUE(a.port.connect(b.id, &a.error)) << a.error;
  a.control();
  b.control();
  a.control();
  ASSERT_NE(a.link_to(b), 0u);
  ASSERT_NE(b.link_to(a), 0u);
  ASSERT_TRUE(a.port.connected(b.id.eid, b.id.uasid));
}

}  // namespace ub
