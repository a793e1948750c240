// SPDX-License-Identifier: Apache-2.0
// state.h - everything that the RoCE engine of one Core knows: its tables, lists and outgoing management datagrams. It
// is plain state beside CoreState, which has the state that UB and RoCE share.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lib/base/slab.h"
#include "lib/transport/core_state.h"
#include "lib/transport/roce/cm_connection.h"
#include "lib/transport/roce/qp.h"
#include "lib/transport/roce/read_slots.h"
#include "lib/transport/roce/types.h"

namespace ub::roce {

struct AddressHandle {
  AhAttributes attributes;
  wire::NetTemplate headers;
  Owner owner = 0;
  bool in_use = false;
};

/// A path without a traffic class has the DSCP of all else.
inline uint8_t dscp_of(const CoreConfig& config, const AhAttributes& path) {
  const auto own = static_cast<uint8_t>(path.traffic_class >> 2);
  return own != 0 ? own : config.dscp;
}

/// A packet that waits for memory: its bytes from BTH to the ICRC (kept_packets.h).
struct KeptPacket {
  uint32_t bytes = 0;
  ListLink in_line;  ///< of the packets of one queue pair
};

/// Slots for READs and atomics: blocks of 1, 2, 4, 8 or 16 of them, one block for each queue pair that receives.
class ReadSlotPool {
 public:
  void init(Arena& arena, uint32_t max_qps);
  /// Takes a block of so many slots (1 to kMaxReadSlots). All its slots are unused.
  uint32_t take(uint32_t slots);
  void give_back(uint32_t block, uint32_t slots);
  ReadSlot* at(uint32_t block) { return slots_ + block; }
  /// How many slots queue pairs have. It visits all free blocks.
  uint32_t lent() const;

 private:
  static constexpr uint32_t kSizes = 5;

  ReadSlot* slots_ = nullptr;
  uint32_t used_ = 1;  // 0 is no block
  uint32_t free_[kSizes] = {};
};

struct Listener {
  ListenConfig config;
  bool in_use = false;
  uint32_t waiting = 0;  ///< requests that the application has not answered yet
};

/// A management datagram that waits to be sent.
struct OutgoingMad {
  AhAttributes path;
  std::array<std::byte, kMadSize> mad;
};

inline constexpr uint32_t kMadRing = 256;
inline constexpr uint32_t kRequesterBuckets = 1024;

/// A connection, and what is known of its peer.
struct Connection {
  CmConnection cm;
  AhAttributes path;
  uint64_t cookie = 0;
  uint32_t qpn = 0;  ///< 0: none yet
  uint32_t listener = 0;
  uint32_t generation = 0;
  uint32_t requester_id = 0;  ///< passive side: the communication id of the peer that asked
  uint32_t next_in_bucket = 0;
  Psn local_psn, remote_psn;
  Owner owner = 0;
  uint16_t local_port = 0, remote_port = 0;
  uint8_t path_mtu = 0;
  uint8_t responder_resources = 0, initiator_depth = 0;  ///< of our side, as both ends agreed
  uint8_t timeout = 0, retry_count = 0, rnr_retry = 0;
  bool in_use = false;
  bool waits = false;  ///< it is counted in `waiting` of its listener
};

struct State {
  Slab<Qp> qps;
  cc::SendTimes send_times;  ///< for flows that want round trips
  Slab<AddressHandle> address_handles;
  Slab<Listener> listeners;
  Slab<Connection> connections;
  ReadSlotPool read_slots;
  Slab<KeptPacket> kept;
  std::byte* kept_bytes = nullptr;
  Slab<Cqe> arriving;  ///< one for each UC and UD queue pair: the completion of the message that it places

  /// Queue pairs that have something to send.
  IndexList active;

  OutgoingMad* mads = nullptr;  ///< a ring of kMadRing
  uint32_t mad_head = 0, mad_tail = 0;
  ConnectionEvent* connection_events = nullptr;  ///< a ring of event_room
  /// A power of two; there is room for the beginning and the end of every connection, and for requests.
  uint32_t event_room = 0;
  uint32_t* requesters = nullptr;  ///< a table of kRequesterBuckets: passive connections by requester_id
  uint32_t event_head = 0, event_tail = 0;
  uint32_t next_qpn = 0;  ///< the number to try next; 0: none was given yet
  uint64_t next_transaction = 0;
  uint32_t gsi_psn = 0;
  CmTimes times;

  NumberRange qp_timers, connection_timers;
  NumberRange held_homes;  ///< places of queue pairs for frames that wait for memory
  NumberRange waiters;     ///< queue pairs that wait for room in a JFC
  uint32_t copy_prefix = 0;
};

/// Takes the engine's tables from the arena, and its ranges of what all engines share. Where RoCE is off, it takes
/// nothing.
void lay_out(CoreState& s, State& r, Arena& arena);
inline bool is_on(const State& r) { return r.qps.capacity() != 0; }

inline uint32_t timer_of_qp(const State& r, uint32_t qp) { return r.qp_timers.of(qp); }
inline uint32_t timer_of_connection(const State& r, uint32_t connection) { return r.connection_timers.of(connection); }
inline uint32_t home_of_qp(const State& r, uint32_t qp) { return r.held_homes.of(qp); }

/// Its READs and atomics.
inline std::span<ReadSlot> slots_of(State& r, const Qp& qp) { return {r.read_slots.at(qp.read_block), qp.reads.slots}; }

/// The record of the queue pair with that number; 0: there is none.
uint32_t find_qp(const CoreState& s, uint32_t qpn);

/// The queue pair has something to send.
void activate(State& r, uint32_t qp);

}  // namespace ub::roce
