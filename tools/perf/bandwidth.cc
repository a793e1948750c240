// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "tools/common/probe.h"
#include "tools/perf/idle.h"
#include "tools/perf/meter.h"
#include "tools/perf/tests.h"

namespace ub::tools {
namespace {

class Transfer {
 public:
  Transfer(const Options& o, Endpoint& endpoint, Peer& peer) : o_(o), endpoint_(endpoint), peer_(peer) {}

  // Sends `total` messages, or for as long as `end` says, and waits for their end.
  void run(uint64_t total, uint64_t end, Meter* meter) {
    left_.assign(o_.jettys, total / o_.jettys);
    for (uint64_t i = 0; i < total % o_.jettys; ++i) ++left_[i];
    Idle idle(peer_);
    bool stopping = false;
    for (;;) {
      bool busy = post_all();
      if (const uint32_t ended = endpoint_.reap(); ended != 0) {
        busy = true;
        if (meter != nullptr) meter->add(ended);
      }
      if (o_.bidirectional && o_.verb == Verb::kSend) {
        busy |= endpoint_.receive() != 0;
        endpoint_.advertise_receives();
      }
      if (busy) {
        idle.progress();
      } else {
        const bool sleep = o_.events && !o_.bidirectional && endpoint_.outstanding() != 0;
        if (sleep) endpoint_.wait_event(false);
        if (sleep) {
          idle.now();
        } else {
          idle();
        }
      }
      if (!stopping && (stop_requested || Ticks::now() >= end)) {
        throw_if_stopped();
        stopping = true;
        // What was sent without asking for a completion ends visibly with one message more.
        for (uint32_t j = 0; j < o_.jettys; ++j) left_[j] = endpoint_.unsignaled(j) != 0 ? 1 : 0;
      }
      if (endpoint_.outstanding() == 0 && std::all_of(left_.begin(), left_.end(), [](uint64_t n) { return n == 0; }))
        return;
    }
  }

 private:
  // As much as the queues take. True if there was something.
  bool post_all() {
    bool posted = false;
    for (uint32_t j = 0; j < o_.jettys; ++j) {
      for (;;) {
        uint64_t n = std::min<uint64_t>({o_.post_list, left_[j], endpoint_.depth()});
        if (n == 0 || endpoint_.room(j) < n) break;
        if (o_.verb == Verb::kSend) n = std::min(n, endpoint_.credit());
        if (n == 0) break;
        endpoint_.post(j, static_cast<uint32_t>(n), n == left_[j]);
        left_[j] -= n;
        posted = true;
      }
    }
    return posted;
  }

  const Options& o_;
  Endpoint& endpoint_;
  Peer& peer_;
  std::vector<uint64_t> left_;
};

}  // namespace

Json measure_bandwidth(const Options& o, Endpoint& endpoint, Peer& peer) {
  const double ns_per_tick = Ticks::ns_per_tick();
  const uint64_t size = endpoint.layout().size;
  const bool timed = o.duration_s > 0;
  Transfer transfer(o, endpoint, peer);
  const uint64_t iterations = o.iterations_for(size);
  transfer.run(std::min(o.warmup, iterations), UINT64_MAX, nullptr);
  Meter meter;
  const uint64_t end = timed ? meter.start() + static_cast<uint64_t>(o.duration_s * 1e9 / ns_per_tick) : UINT64_MAX;
  transfer.run(timed ? UINT64_MAX / 2 : iterations, end, &meter);
  return meter.row(size);
}

void answer_bandwidth(const Options& o, Endpoint& endpoint, Peer& peer) {
  Idle idle(peer, Idle::kNoLimit);
  if (o.verb == Verb::kSend) {
    for (;;) {
      const bool busy = endpoint.receive() != 0;
      endpoint.advertise_receives();
      if (busy) {
        if (stop_requested) [[unlikely]]
          throw_if_stopped();
        idle.progress();
      } else if (o.events && endpoint.control_idle()) {
        endpoint.wait_event(true);
        if (idle.now()) return;
      } else if (idle()) {
        return;
      }
    }
  }
  switch (o.target_mode) {
    case TargetMode::kBlock:
      return;  // the caller waits for the message
    case TargetMode::kPoll:
      while (!idle()) endpoint.reap();
      return;
    case TargetMode::kSpinMemory:
      for (uint32_t turns = 1; endpoint.control(Endpoint::kDone) == 0; ++turns) {
        if (turns % (1u << 22) == 0 && peer.message_waits()) return;
      }
      return;
  }
}

void receive_rest(Endpoint& endpoint, Peer& peer, uint64_t total) {
  Idle idle(peer, 10);
  while (endpoint.messages_received() < total) {
    if (endpoint.receive() != 0) {
      idle.progress();
    } else {
      idle();
    }
  }
  if (endpoint.messages_received() > total) throw ToolError(kExitWrongData, "more messages came than were sent");
  // What was told about receives is done, too, before the next size begins.
  while (!endpoint.control_idle()) idle();
}

}  // namespace ub::tools
