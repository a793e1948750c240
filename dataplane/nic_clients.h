// SPDX-License-Identifier: Apache-2.0
//
// The applications of a NIC that is not in their process, as its worker sees them. One implementation: the daemon's.
//
// Thread: the owner of the Core, except where said.
#pragma once

#include <vector>

#include "dataplane/foreign_memory.h"
#include "dataplane/port_set.h"
#include "dataplane/stats_page.h"
#include "lib/base/time.h"
#include "lib/transport/core.h"
#include "lib/transport/nic_event.h"

namespace ub {

class NicClients {
 public:
  // Takes what they posted and what their agents finished. True: there was something.
  virtual bool poll(Core<PortSet>&, Instant now) = 0;
  virtual void on_event(const NicEvent&) = 0;
  virtual ForeignMemory& memory() = 0;
  // A row for each.
  virtual std::vector<StatsApp> report() const = 0;
  // When poll() has something to do although nobody rings.
  virtual Instant next_deadline() const = 0;

  // Around a sleep of the worker. True: something came meanwhile, do not sleep.
  virtual bool prepare_sleep(Instant now) = 0;
  virtual void finish_sleep() = 0;
  // Readable when a client rings; worker thread, without ownership.
  virtual int fd() const = 0;
  virtual void clear_rings() = 0;

 protected:
  ~NicClients() = default;
};

}  // namespace ub
