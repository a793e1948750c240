// SPDX-License-Identifier: Apache-2.0
//
// A lane of a program to a NIC (lib/ipc/lane.h), as the simulation has it: two rings of slots with complete frames, of
// which the NIC takes requests at a time that the seed chooses, in order, and answers each at once. The answers lie
// there until the program looks. It keeps what the real ring keeps by its layout: a slot is used again when its answer
// was read, each request has one answer, and an answer says the number of its slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "tests/sim/aperture_model.h"

namespace ub::sim {

class Node;
class World;

class SimLane {
 public:
  static constexpr uint32_t kSmallSlots = 64, kLargeSlots = 8;

  // The NIC of `server` gets a link for it.
  SimLane(World&, ApertureModel&, Node& server);

  // ---- the program ----
  // A slot of its ring, and no store of the other one that is not answered: the rings keep no order between them.
  bool has_room(const Access&) const;
  void call(std::shared_ptr<Access>, std::vector<std::byte> frame);  // with room
  // The answers that lie there, in order, are told to the model.
  void look();
  uint16_t next_number(const Access& a) const { return ring_of(a).next; }
  uint64_t oldest_call_ns() const;  // UINT64_MAX: all are answered
  uint32_t unanswered() const;
  // The program hangs up, or sees that the NIC has: nothing is answered any more. What lies in the rings may still be
  // carried out until the NIC notices.
  void hang_up();

  // ---- the NIC ----
  bool served_by(const Node&) const;  // in the same life
  bool hung_up() const { return hung_up_; }
  Node& server() const { return server_; }
  uint32_t link() const { return link_; }
  bool serving_planned = false, looking_planned = false;
  bool has_requests() const { return !small_.requests.empty() || !large_.requests.empty(); }
  void serve(uint32_t most);  // of each ring
  std::byte* tx_begin(size_t bytes);
  void tx_commit(size_t bytes);
  void notice_hang_up();  // the link goes down

 private:
  struct Request {
    std::shared_ptr<Access> access;
    std::vector<std::byte> frame;
  };
  struct Ring {
    uint32_t slots;
    uint16_t next = 0;
    std::deque<Request> requests = {};                    // not taken
    std::deque<std::shared_ptr<Access>> unanswered = {};  // by the NIC or unread, the oldest first
    std::deque<std::vector<std::byte>> answers = {};
    uint16_t oldest = 0;  // number of unanswered.front()
  };
  Ring& ring_of(const Access& a) { return a.bytes > 64 ? large_ : small_; }
  const Ring& ring_of(const Access& a) const { return a.bytes > 64 ? large_ : small_; }
  void serve(Ring&, uint32_t most);
  void look(Ring&);
  void read(Access&, uint16_t number, std::span<const std::byte> frame);

  World& world_;
  ApertureModel& model_;
  Node& server_;
  uint32_t epoch_, link_;
  Ring small_{kSmallSlots}, large_{kLargeSlots};
  Ring* busy_ = nullptr;
  std::vector<std::byte> answer_;
  uint32_t stores_unanswered_ = 0;
  const Ring* last_ = nullptr;  // of the last call
  bool hung_up_ = false, noticed_ = false;
};

}  // namespace ub::sim
