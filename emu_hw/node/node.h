// SPDX-License-Identifier: Apache-2.0
//
// A Core in virtual time. The Core decides what is sent, when, and what completes; whoever calls hand_over() and
// deliver() decides how long that takes.
//
// Frames that carry a request or an answer come back from these calls as a train, for the operation to take along.
// Others (acknowledgements that end nothing, set-up) take the time of a link and no other. Deadlines of the Core are
// deadlines of the kernel.
//
// Set-up comes before the first operation: join() and settle() move the Core's clock, not that of the kernel.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu_hw/kernel/kernel.h"
#include "emu_hw/kernel/wait_list.h"
#include "emu_hw/node/core_host.h"
#include "emu_hw/node/core_objects.h"
#include "emu_hw/parts/frame_loss.h"
#include "emu_hw/parts/operation.h"
#include "lib/transport/core.h"

extern template class ub::Core<ub::emu::CoreHost>;
extern template class ub::roce::Engine<ub::emu::CoreHost>;

namespace ub::emu {

// A wire that loses nothing, one lane, no compact transport: no probes and no choices mix into what is measured.
CoreConfig plain_config(uint32_t number, uint64_t seed);

class Node;

// Who takes along what a Core sends later than it was asked to.
class LateTrains {
 public:
  // Also if there is nothing to send: the Core may have completed something.
  virtual void come(Node& from, Train train) = 0;

 protected:
  ~LateTrains() = default;
};

class Node {
 public:
  // `wire_delay`: of frames that belong to no operation.
  Node(Kernel&, uint32_t number, const CoreConfig&, Span wire_delay);
  // Frames that are still on their way are lost: the kernel must not run then.
  ~Node() { kernel_.clear_deadline(deadline_); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // ---- before the first operation -----------------------------------------------------------------------
  static void join(Node& a, Node& b, const LinkConfig&);
  // Drives these nodes by a clock of their own until nothing moves. The kernel must not have run.
  static void settle(const std::vector<Node*>& nodes);
  // The link that joins the two nodes.
  uint32_t link_to(const Node& peer) const;
  // From the first operation on its links lose each frame that it sends with that chance.
  void lose_frames(double chance, uint64_t seed) { loss_.emplace(chance, seed, number); }
  // In place of wait_for_answer(). They outlive the operations.
  void give_late_trains_to(LateTrains* late) { late_trains_ = late; }
  uint32_t add_target(const Node& peer, ObjectKind kind, uint32_t id);

  // ---- operations ---------------------------------------------------------------------------------------
  // The Core is told of what was posted to a jetty. The frames of the request.
  Train hand_over(uint32_t jetty);
  // What the Core has to send now, for calls of the Core that hand nothing over themselves.
  Train send();
  // Frames from a peer: requests, or answers. At the target: the frames of the answer, or none if the Core sends them
  // later, when wait_for_answer() returns them.
  [[nodiscard]] Train deliver(const Train& train);
  // The answer, at its initiator: nothing more is to be sent for the operation. Throws if there is.
  void finish(const Train& train);
  // Is there an answer that was not taken? One operation at a time may wait for one of this node.
  bool has_answer() const { return !answer_.empty(); }
  WaitList::Waiter wait_for_answer(const Operation& op) { return late_.wait(op); }
  // Writes down how long the Core let the operation wait.
  Train take_answer(Operation& op);
  // The program took completions of a JFC.
  void completions_read(uint32_t jfc);

  // That the Core sent again.
  uint64_t repeated_frames() const;

  Kernel& kernel() const { return kernel_; }
  Instant now() const { return {settled_at_.ns + kernel_.now().whole_ns()}; }

  const uint32_t number;

 private:
  // A frame of no operation, on its way. It belongs to the node that sent it, which uses it again.
  struct FreeFrame : emu::Event {
    Node* from;
    Node* to;
    Frame frame;
  };
  struct CoreDeadline : Deadline {
    explicit CoreDeadline(Node& its_node) : Deadline(&come), node(its_node) {}
    static void come(emu::Event* event) { static_cast<CoreDeadline*>(event)->node.on_deadline(); }
    Node& node;
  };

  void receive(const Frame& frame);
  void send_free(Node& to, Frame frame);
  static void arrive(emu::Event* free_frame);
  void keep_answer(Train train);
  void set_deadline();
  void on_deadline();
  bool settle_once();

  Kernel& kernel_;
  const Span wire_delay_;
  Instant settled_at_{1'000'000'000};
  Pages arena_;
  CoreHost host_;
  std::vector<Node*> peers_{nullptr};           // by link
  std::vector<uint32_t> links_of_peers_{0};     // by link: what the peer calls it
  CoreDeadline deadline_{*this};
  std::deque<FreeFrame> free_frames_;
  std::vector<FreeFrame*> unused_free_frames_;
  WaitList late_;
  Train answer_;
  std::optional<FrameLoss> loss_;
  LateTrains* late_trains_ = nullptr;

 public:
  Core<CoreHost> core;
};

}  // namespace ub::emu
