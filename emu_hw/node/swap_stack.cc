// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/swap_stack.h"

#include <stdexcept>

namespace ub::emu {

SwapStack::SwapStack(const Parameters& p, EmulatedHost& here, EmulatedHost& there)
    : parameters_(p),
      here_(here),
      there_(there),
      requests_(here.node),
      connections_(here, there, requests_.jfc, 1),
      resident_(p.resident_pages),
      reads_(here.site.kernel, "a read of the swap device", p.parallel_swap_depth) {}

Task SwapStack::run(Operation& op) {
  if (op.verb != Verb::kLoad && op.verb != Verb::kStore)
    throw std::invalid_argument(op.name() + ": a swap device has loads and stores alone");
  LumpedNic::Pass pass = co_await here_.nic.enter(op);
  const uint64_t page = op.place / parameters_.page_size;
  if (!resident_.touch(page)) {
    const uint64_t bytes = parameters_.page_size * parameters_.prefetch_window;
    if (bytes > WorkRequests::kMostBytes)
      throw std::invalid_argument("a page fault reads 1 MiB at most: give a smaller page_size or prefetch_window");
    Operation read(op.number, op.node, Verb::kRead, static_cast<uint32_t>(bytes), op.ledger.end());
    read.place = page * parameters_.page_size;
    Slots::Place place = co_await reads_.enter(op);
    co_await here_.cpu.take_fault(op, parameters_.kernel_pf);
    Task task = read_pages(op, read);
    co_await task;
    for (uint64_t i = 0; i < parameters_.prefetch_window; ++i) resident_.insert(page + i);
  }
  co_await here_.memory.access_local(op);
}

// What is charged is charged to the operation that faults.
Task SwapStack::read_pages(Operation& op, Operation& read) {
  const uint64_t cycles = parameters_.nic_cycles_roce;
  co_await here_.cpu.post_lib(op);
  co_await here_.cpu.build(op);
  co_await here_.pcie.ring_doorbell(op);
  co_await here_.pcie.fetch_request(op);
  requests_.post(connections_.here(0), read, roce_destination(there_));
  const Train request = here_.node.hand_over(connections_.here(0).id);
  requests_.expect_sent(read, request);
  co_await here_.nic.pipe(op, cycles, read.bytes_there());
  co_await here_.link.wire(op, read.bytes_there());
  co_await there_.pcie.read(op);
  co_await there_.memory.access(op);
  const Train answer = there_.node.deliver(request);
  co_await there_.nic.pipe(op, cycles, read.bytes_back());
  co_await there_.link.wire(op, read.bytes_back());
  co_await here_.nic.pipe(op, cycles, read.bytes_back());
  co_await here_.pcie.land(op);
  here_.node.finish(answer);
  requests_.complete(read);
  co_await here_.pcie.write_completion(op);
  co_await here_.cpu.poll_host(op);
  co_await here_.cpu.poll_lib(op);
}

}  // namespace ub::emu
