// SPDX-License-Identifier: Apache-2.0
// agent.h - the application's hands for the daemon: copies and atomics in memory that only this process can see, done
// in the order in which the daemon wrote them into its ring.
//
// Registered ranges are kept as a line of boundaries, each with the number of registrations that cover what lies
// between it and the next one. So registrations may overlap and repeat, an access may cross from one into another,
// and taking one away allocates nothing.
//
// Thread: add and remove any; serve one at a time. After remove() returned, no thread touches that registration's
// memory any more.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "lib/ipc/app_page.h"

namespace ub::urma {

class Agent {
 public:
  // Before the daemon hears of the memory. May throw std::bad_alloc, and has done nothing then.
  void add(uint64_t address, uint64_t bytes);
  // Before the daemon hears that it is gone. Exactly what was added.
  void remove(uint64_t address, uint64_t bytes);

  // Does operations that wait, up to a bounded number. True: there were some.
  bool serve(ipc::AppPage& page);
  bool has_work(const ipc::AppPage& page) const {
    return page.ops_produced.load(std::memory_order_relaxed) != done_.load(std::memory_order_relaxed);
  }

 private:
  struct Boundary {
    uint32_t covers = 0;  // registrations, from here to the next boundary
    uint32_t ends = 0;    // registrations that begin or end here
  };

  bool run(const ipc::AgentOp& op, std::byte* data, uint128* old) const;
  bool is_registered(uint64_t address, uint64_t bytes) const;
  std::map<uint64_t, Boundary>::iterator boundary(uint64_t address);
  void drop(std::map<uint64_t, Boundary>::iterator boundary);

  std::mutex mutex_;  // held while memory is touched
  std::map<uint64_t, Boundary> line_;
  std::atomic<uint32_t> done_{0};  // operations; written by serve()
};

}  // namespace ub::urma
