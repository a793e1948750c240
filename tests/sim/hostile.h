// SPDX-License-Identifier: Apache-2.0
//
// An application that keeps to no rule. Whatever it shares with its Core (send and receive elements, indices,
// completion slots) it overwrites at any moment, also while the Core is at work: with random bytes, with elements
// that name memory and targets of others, with indices that jump. What becomes of its own requests does not
// matter. The others must not notice it, none of their bytes may come to it, and its objects can be destroyed at
// any time.
//
// It knows no token of the others: a seed with hostile applications gives every segment and receive queue one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/sim/world.h"

namespace ub::sim {

class Hostile {
 public:
  // `others`: all of them, for they talk to each other. `number`: of this one in its node.
  Hostile(World&, Node&, uint32_t number, const std::vector<std::unique_ptr<Hostile>>& others);
  ~Hostile();

  void act();       // something at random
  void scribble();  // something at random, without a call of the Core
  void end();       // destroys everything, in any order that the Core should accept
  bool on(const Node& n) const { return &n == &node_ && alive(); }
  bool alive() const { return node_.up() && node_.epoch() == epoch_; }

 private:
  struct CompletionRing {
    uint32_t handle = 0;
    std::vector<Cqe> slots;
    std::unique_ptr<QueueIndices> indices = std::make_unique<QueueIndices>();
  };
  struct ReceiveRing {
    uint32_t id = 0;
    CompletionRing* jfc = nullptr;
    std::vector<Rqe> slots;
    std::unique_ptr<QueueIndices> indices = std::make_unique<QueueIndices>();
  };
  struct SendRing {
    uint32_t id = 0;
    CompletionRing* jfc = nullptr;
    CompletionRing* recv_jfc = nullptr;
    ReceiveRing* jfr = nullptr;
    std::vector<Wqe> slots, source;
    Bytes work;
    std::unique_ptr<QueueIndices> indices = std::make_unique<QueueIndices>();
  };

  SimCore& core() { return node_.core(); }
  void create();  // what is missing
  void create_jfc();
  void create_jfr();
  void create_queue();
  void create_region();
  void create_target();
  void destroy_one();
  void replace_target();
  void replace_broken();  // queues with a bad element, which the Core looks at no more
  bool destroy(size_t queue);
  void destroy_jfr(size_t jfr);
  void destroy_jfc(size_t jfc);
  void expect(Status got, bool free, const char* what);

  void post();
  void post_receive();
  void consume();
  void control();
  void call();  // a doorbell for nothing
  void write_element(SendRing&, uint32_t at);
  void write_receive(ReceiveRing&, uint32_t at);
  Sge draw_range();
  const Region* draw_remote();
  bool go_on(QueueIndices&, uint32_t slots);
  uint32_t jumped(uint32_t index, uint32_t slots);
  void scribble_indices(QueueIndices&, uint32_t slots);

  template <class T>
  T* any(std::vector<std::unique_ptr<T>>& all) {
    return all.empty() ? nullptr : all[rng_.below(all.size())].get();
  }

  World& world_;
  Node& node_;
  const std::vector<std::unique_ptr<Hostile>>& others_;
  Prng rng_;
  Owner owner_;
  uint32_t app_;
  uint32_t epoch_;
  std::vector<std::unique_ptr<CompletionRing>> jfcs_;
  std::vector<std::unique_ptr<ReceiveRing>> jfrs_;
  std::vector<std::unique_ptr<SendRing>> queues_;
  std::vector<Region*> regions_;
  std::vector<uint32_t> targets_;
};

}  // namespace ub::sim
