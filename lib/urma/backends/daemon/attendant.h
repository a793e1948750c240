// SPDX-License-Identifier: Apache-2.0
// attendant.h - rings the daemon, does what it asks for, and does what is left when it is gone.
//
// The daemon asks through its page: operations for the agent, events for the sink. Whichever thread polls serves
// them. When none does, a helper thread takes over: it sleeps until the daemon rings, and while others poll it stays
// away, longer and longer. It blocks all signals.
//
// The end is noticed by the helper (the socket hangs up) or by a call that gets no answer. From then on the orphans
// are served instead, at each poll and by the helper now and then.
//
// Thread: any.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/ipc/app_page.h"
#include "lib/ipc/fd.h"
#include "lib/urma/backends/backend.h"
#include "lib/urma/backends/daemon/agent.h"
#include "lib/urma/backends/daemon/client.h"
#include "lib/urma/backends/daemon/daemon_backend.h"
#include "lib/urma/backends/daemon/orphans.h"
#include "lib/urma/backends/daemon/shared_heap.h"

namespace ub::urma {

class Attendant {
 public:
  Attendant(const DaemonOptions& options, Client& client, SharedHeap& heap, Client::Welcome welcome);
  ~Attendant() { stop(); }

  // False and `*error`: no thread, no descriptor.
  bool start_helper(std::string* error);
  // Ends the helper. From now on the daemon's end is none of our business.
  void stop();
  void set_event_sink(NicEventSink sink);
  Agent& agent() { return agent_; }
  Orphans& orphans() { return orphans_; }

  // ---- see Backend; bells are those of the daemon ----
  void posted(uint32_t id, uint32_t bell);
  void attend(uint32_t jfc, uint32_t bell);
  void drive();
  void begin_wait();
  void end_wait() { waiters_.fetch_sub(1, std::memory_order_relaxed); }

  // The daemon is gone; `why`, unless the client knows better. When this returns its work is taken over.
  void lose(const char* why);
  bool gone() const { return gone_.load(std::memory_order_seq_cst); }

 private:
  ipc::AppPage& page() const { return *reinterpret_cast<ipc::AppPage*>(welcome_.page.data()); }
  bool has_work() const;
  bool serve();
  bool take_events();
  void report(const NicEvent& event);
  void ring_daemon();

  // ---- helper thread ----
  void helper_main();
  void take_over();
  void block(std::chrono::nanoseconds limit);
  void wake_helper();

  const DaemonOptions options_;
  Client& client_;
  SharedHeap& heap_;
  const Client::Welcome welcome_;
  std::atomic<bool> gone_{false};

  std::mutex serving_;  // held by the one thread that serves, or takes over from the daemon
  Agent agent_;
  std::atomic<uint32_t> events_taken_{0};  // written under serving_, as the next one
  std::atomic<uint32_t> losses_seen_{0};
  std::mutex sink_lock_;  // events are reported one at a time
  NicEventSink sink_;
  std::vector<NicEvent> early_;  // came before there was a sink: which ports are down
  Orphans orphans_;

  std::thread helper_;
  ipc::Fd wake_;  // ours, besides the daemon's bell
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<bool> driven_{false};  // an application thread polled since the helper looked
  std::atomic<uint32_t> waiters_{0};             // application threads in begin_wait()
};

}  // namespace ub::urma
