// SPDX-License-Identifier: Apache-2.0
//
// From "a 3 kB WRITE with a wrong token" to a send element in a ring and an expectation in the oracle.
#pragma once

#include <cstdint>

#include "tests/sim/world.h"

namespace ub::sim {

// What is wrong with a request on purpose.
enum class Wrong : uint8_t {
  kNothing,
  kToken,          // of the segment
  kTokenId,        // names no segment; UD: no queue pair that takes datagrams
  kRange,          // leaves the segment, or never meets it
  kReceiverToken,  // of the jetty or JFR; UD: the Q_Key
  kLocalRange,     // leaves its local segment
  kLocalHandle,    // names no local segment; UD: no address handle
};

constexpr uint64_t kAnywhere = UINT64_MAX;

struct RequestSpec {
  WrOp op = WrOp::kWrite;
  uint32_t length = 64;
  Receiver to;                  // whom a message goes to; otherwise: which instance
  Region* remote = nullptr;     // of memory operations and atomics
  uint64_t offset = kAnywhere;  // kAnywhere: a range that this request owns
  Region* notify = nullptr;     // null: the same as `remote`
  bool signaled = true, fence = false, solicited = false, inlined = false, comp_order = false;
  uint8_t order = 0;
  uint32_t sges = 1;
  uint64_t immediate = 0;  // 0: a number that no other request has
  Wrong wrong = Wrong::kNothing;
  bool plain_add = false;      // atomics: FADD of 1 on the first word
  bool packed = false;         // its ranges lie where the first free ones begin: quickly found if all have one size
  bool alone = false;          // READs and atomics: nobody else uses their remote range meanwhile
  bool must_arrive = false;    // UM, UD: nothing gets lost
  uint32_t target = 0;         // 0: imported (RC: bound) as needed
  uint32_t extra_allowed = 0;  // statuses that the caller provoked
};

// Bytes of UD.
uint32_t longest_datagram(const Options&);
/// Most bytes of a READ of RoCE.
uint32_t longest_roce_read(const Options&);

// Posts without ringing the doorbell. Null: no room in the queue or no memory left.
const Wr* post(World&, Queue*, const RequestSpec&);

}  // namespace ub::sim
