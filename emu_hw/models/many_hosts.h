// SPDX-License-Identifier: Apache-2.0
//
// Hosts, and programs on some of them, each with the hosts that it talks to. Only hosts that talk are joined.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emu_hw/models/model.h"
#include "emu_hw/node/emulated_host.h"
#include "emu_hw/workload/closed_loop.h"

namespace ub::emu {

class ManyHosts {
 public:
  // So many, with numbers from 1 on. `p` outlives them.
  ManyHosts(const Parameters& p, Fidelity, uint32_t count);
  // Tasks go before the parts that they hold.
  ~ManyHosts() { kernel.destroy_tasks(); }

  // Behind all links from now on; it outlives the hosts.
  void put_between(Fabric&);
  // A host with that number runs a program, and `peers` are the hosts that its steps name. Throws BadPoint: there is no
  // such stack.
  void add_program(uint32_t host, const std::string& stack, const std::vector<uint32_t>& peers,
                   std::unique_ptr<Workload>);
  // The programs carry out Parameters::operations each: values of latency and rate (measures.h), of all programs
  // together, and the ledger of the first operation of the first program.
  PointResult run();

  Kernel kernel;

 private:
  struct Program {
    uint32_t host;
    std::unique_ptr<Stack> stack;
    std::unique_ptr<Workload> workload;
    std::unique_ptr<ClosedLoop> loop;
  };

  void join(uint32_t a, uint32_t b);
  void open();
  std::string fault() const;
  std::vector<Sample> samples() const;
  EmulatedHost& host(uint32_t number) { return *hosts_[number - 1]; }

  const Parameters& parameters_;
  std::vector<std::unique_ptr<EmulatedHost>> hosts_;
  std::set<std::pair<uint32_t, uint32_t>> joined_;
  std::vector<Program> programs_;
};

}  // namespace ub::emu
