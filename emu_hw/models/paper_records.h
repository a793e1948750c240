// SPDX-License-Identifier: Apache-2.0
//
// Records of a NIC, and objects of a host library, with the fields that the OpenURMA paper lists. Their sizes are what
// its tables of state count; the records of this project's Core are in lib/transport.
#pragma once

#include <cstdint>

namespace ub::emu::paper {

#pragma pack(push, 1)

struct Jetty {
  uint32_t id, token, jfc;
  uint8_t type, state, is_valid, pad[5];
};
static_assert(sizeof(Jetty) == 20);

// With all that the specification gives a Jetty.
struct FullJetty {
  uint32_t id, token, jfc, event_queue, send_queue, receive_queue, public_owner, group;
  uint16_t pending, drain, faults, permission;
  uint8_t type, state, exception_mode, is_valid, pad[4];
};
static_assert(sizeof(FullJetty) == 48);

struct TpChannel {
  uint32_t remote_address, local_number, remote_number, next_psn, next_message, last_acknowledged;
  uint16_t flags;
  uint32_t expected_psn, expected_message, window_base;
  uint64_t selective;
  uint32_t most_received;
  uint16_t modes;
  uint8_t pad[4];
};
static_assert(sizeof(TpChannel) == 56);

struct MemoryRegion {
  uint32_t id, token;
  uint64_t address, offset;
  uint32_t length;
  uint16_t flags;
  uint8_t pad[2];
};
static_assert(sizeof(MemoryRegion) == 32);

// The paper gives sizes of the following ones, and no fields.
struct QueuePair { uint8_t bytes[512]; };
struct HostJetty { uint8_t bytes[64]; };
struct HostJfc { uint8_t bytes[88]; };
struct HostSegment { uint8_t bytes[40]; };
struct HostRemoteSegment { uint8_t bytes[12]; };
struct HostTarget { uint8_t bytes[12]; };
struct HostQueuePair { uint8_t bytes[384]; };
struct HostMemoryRegion { uint8_t bytes[48]; };
struct HostCompletionQueue { uint8_t bytes[120]; };

#pragma pack(pop)

}  // namespace ub::emu::paper
