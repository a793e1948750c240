// SPDX-License-Identifier: Apache-2.0
// state.h - all that the RoCE engine of one Core knows: its tables, lists and outgoing management datagrams. Plain
// state beside CoreState, which has what UB and RoCE share.
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

/// A packet that waits for memory: so many bytes, from BTH to the ICRC (kept_packets.h).
struct KeptPacket {
  uint32_t bytes = 0;
  ListLink in_line;  ///< of the same queue pair
};

/// READ and atomic slots: blocks of 1, 2, 4, 8 or 16 of them, one for each queue pair that receives.
class ReadSlotPool {
 public:
  void init(Arena& arena, uint32_t max_qps);
  /// A block for so many slots (1 to kMaxReadSlots), all unused.
  uint32_t take(uint32_t slots);
  void give_back(uint32_t block, uint32_t slots);
  ReadSlot* at(uint32_t block) { return slots_ + block; }
  /// How many slots queue pairs have: walks all free blocks.
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
  uint32_t waiting = 0;  ///< requests that the application has not answered
};

/// A management datagram on its way out.
struct OutgoingMad {
  AhAttributes path;
  std::array<std::byte, kMadSize> mad;
};

inline constexpr uint32_t kMadRing = 256;
inline constexpr uint32_t kRequesterBuckets = 1024;

/// A connection and what is known of its peer.
struct Connection {
  CmConnection cm;
  AhAttributes path;
  uint64_t cookie = 0;
  uint32_t qpn = 0;  ///< 0: none yet
  uint32_t listener = 0;
  uint32_t generation = 0;
  uint32_t requester_id = 0;  ///< passive: communication id of who asked
  uint32_t next_in_bucket = 0;
  Psn local_psn, remote_psn;
  Owner owner = 0;
  uint16_t local_port = 0, remote_port = 0;
  uint8_t path_mtu = 0;
  uint8_t responder_resources = 0, initiator_depth = 0;  ///< what the two ends agree on, ours
  uint8_t timeout = 0, retry_count = 0, rnr_retry = 0;
  bool in_use = false;
  bool waits = false;  ///< counts in its listener's `waiting`
};

struct State {
  Slab<Qp> qps;
  cc::SendTimes send_times;  ///< of flows that want round trips
  Slab<AddressHandle> address_handles;
  Slab<Listener> listeners;
  Slab<Connection> connections;
  ReadSlotPool read_slots;
  Slab<KeptPacket> kept;
  std::byte* kept_bytes = nullptr;
  Slab<Cqe> arriving;  ///< of each UC and UD queue pair: what the message that it places will be completed with

  /// Queue pairs with something to send.
  IndexList active;

  OutgoingMad* mads = nullptr;  ///< kMadRing
  uint32_t mad_head = 0, mad_tail = 0;
  ConnectionEvent* connection_events = nullptr;  ///< event_room
  uint32_t event_room = 0;         ///< for the beginning and the end of every connection, and requests; a power of two
  uint32_t* requesters = nullptr;  ///< kRequesterBuckets: passive connections, by requester_id
  uint32_t event_head = 0, event_tail = 0;
  uint32_t next_qpn = 0;  ///< to be tried; 0: none was given yet
  uint64_t next_transaction = 0;
  uint32_t gsi_psn = 0;
  CmTimes times;

  NumberRange qp_timers, connection_timers;
  NumberRange held_homes;  ///< of queue pairs, for frames that wait for memory
  NumberRange waiters;     ///< for room in a JFC
  uint32_t copy_prefix = 0;
};

/// Takes its tables from the arena, and its ranges of what all engines share; nothing where RoCE is off.
void lay_out(CoreState& s, State& r, Arena& arena);
inline bool is_on(const State& r) { return r.qps.capacity() != 0; }

inline uint32_t timer_of_qp(const State& r, uint32_t qp) { return r.qp_timers.of(qp); }
inline uint32_t timer_of_connection(const State& r, uint32_t connection) { return r.connection_timers.of(connection); }
inline uint32_t home_of_qp(const State& r, uint32_t qp) { return r.held_homes.of(qp); }

/// Its READs and atomics.
inline std::span<ReadSlot> slots_of(State& r, const Qp& qp) { return {r.read_slots.at(qp.read_block), qp.reads.slots}; }

/// Record of a queue pair, 0: there is none of that number.
uint32_t find_qp(const CoreState& s, uint32_t qpn);

/// It has something to send.
void activate(State& r, uint32_t qp);

}  // namespace ub::roce
