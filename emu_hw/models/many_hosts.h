// SPDX-License-Identifier: Apache-2.0
//
// Hosts, and programs on some of them, each with the hosts that it talks to. Only hosts that talk are joined.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emu_hw/models/model.h"
#include "emu_hw/node/emulated_host.h"
#include "emu_hw/parts/switch.h"
#include "emu_hw/rules/contention.h"
#include "emu_hw/workload/closed_loop.h"

namespace ub::emu {

class ManyHosts {
 public:
  // So many, with numbers from 1 on, and what Parameters::fabric says between them. `p` outlives them.
  ManyHosts(const Parameters& p, Fidelity, uint32_t count);
  // Tasks go before the parts that they hold.
  ~ManyHosts() { kernel.destroy_tasks(); }

  // Of the host with that number, which reaches `peers`. Throws BadPoint: there is no such stack.
  Stack& add_stack(uint32_t host, const std::string& name, const std::vector<uint32_t>& peers);
  // What it runs: operations of a workload, so many of them in flight as the parameters say, or something of its own.
  // Throws BadPoint: there is no workload.
  void add_program(uint32_t host, Stack&, std::unique_ptr<Workload>);
  void add_program(uint32_t host, std::unique_ptr<Loop>);
  // The programs carry out Parameters::operations each. Values of latency and rate (measures.h), of all of them
  // together, and the ledger of the first operation of the first one. With a switch also queue_bytes, what was at one
  // of its ports at most, and marked, the frames that it marked.
  PointResult run();

  Kernel kernel;

 private:
  struct Program {
    uint32_t host;
    std::unique_ptr<Loop> loop;
  };

  void put_between(Fabric&);
  void join(uint32_t a, uint32_t b);
  void open();
  std::string fault() const;
  std::map<std::string, double> values() const;
  std::vector<Sample> samples() const;
  EmulatedHost& host(uint32_t number) { return *hosts_[number - 1]; }

  const Parameters& parameters_;
  std::unique_ptr<ContentionRule> rule_;
  std::unique_ptr<Switch> switch_;
  std::vector<std::unique_ptr<EmulatedHost>> hosts_;
  std::set<std::pair<uint32_t, uint32_t>> joined_;
  std::vector<std::unique_ptr<Stack>> stacks_;
  std::vector<std::unique_ptr<Workload>> workloads_;
  std::vector<Program> programs_;
};

}  // namespace ub::emu
