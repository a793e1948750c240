// SPDX-License-Identifier: Apache-2.0
//
// What stacks of work requests share: how the frames of an operation travel to the target and back.
//
// Usually an operation takes its frames along: one train there, one train back. Where links lose frames (loss = link),
// or several operations are under way (engine = pipelined), with one peer, each train travels by itself, and the
// operation waits for its completion. A train leaves when the Core has frames to send: for a request that was handed
// over, for what it received, or because time passed. The ledger of an operation follows the train of it that arrived
// last; "core" is the time from there until the Core sent the next one.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "emu_hw/node/emulated_host.h"
#include "emu_hw/node/stack.h"
#include "emu_hw/node/work_requests.h"

namespace ub::emu {

class RequestStack : public Stack, private LateTrains {
 protected:
  RequestStack(const Parameters&, EmulatedHost& here, const Peers&);
  ~RequestStack() = default;

  // From the NIC of the initiator to the memory of the target. Then its Core gets the frames.
  virtual Task go_there(Operation& op, Train& train) = 0;
  // The receiver at the target gets to know of its message.
  virtual Task tell_receiver(Operation& op) = 0;
  // From the NIC of the target to where the Core of the initiator gets the frames.
  virtual Task go_back(Operation& op, Train& train) = 0;

  // The operation was posted to that queue: until its completion was taken. Who has the engine gives it back as soon
  // as another operation may have it.
  Task there_and_back(Operation& op, uint32_t queue, LumpedNic::Pass& engine);
  EmulatedHost& there(const Operation& op) { return *peers_[op.peer]; }

  EmulatedHost& here_;
  const std::vector<EmulatedHost*> peers_;
  WorkRequests requests_;

 private:
  // An operation whose completion is awaited.
  struct Pending {
    Pending(Kernel& kernel, const Operation& handed_over);
    Operation op;  // with the ledger of the train that arrived last
    WaitList completion;
  };

  Task with_its_trains(Operation& op, uint32_t queue);
  Task until_complete(Operation& op, uint32_t queue, LumpedNic::Pass& engine);
  void come(Node& from, Train train) override;
  void start_requests(const Operation& op, Train train);
  void start(Node& from, const Operation& op, Train train);
  Task carry_there(Operation op, Train train);
  Task carry_back(Operation op, Train train);
  void arrived(const Operation& op);
  void look_for_completion();

  const bool trains_travel_alone_, is_pipelined_;
  std::map<uint64_t, Pending> pending_;  // by number
  std::deque<uint64_t> unsent_;          // of those, the ones of which the Core has sent nothing
  std::optional<Operation> latest_;      // that was handed over
};

}  // namespace ub::emu
