// SPDX-License-Identifier: Apache-2.0
//
// One application as the worker sees it: its page, its doorbells, its agent. What it owns is its session's business.
//
// Thread: the owner of the Core; create() any.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/softubd/agent.h"
#include "dataplane/stats_page.h"
#include "lib/base/allowance.h"
#include "lib/ipc/app_page.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/unix_socket.h"
#include "lib/transport/nic_event.h"
#include "lib/transport/resource/owner_limits.h"

namespace ub {

class Client {
 public:
  // Null and `*error`: out of memory or descriptors.
  static std::unique_ptr<Client> create(Owner number, std::string* error);

  Owner number() const { return number_; }
  Agent& agent() { return agent_; }
  OwnerLimits& limits() { return limits_; }

  // For the application: its page; what it writes to to wake the worker; what it reads when it sleeps.
  int page_fd() const { return page_fd_.get(); }
  int worker_bell_fd() const { return worker_bell_.get(); }
  int app_bell_fd() const { return app_bell_far_.get(); }
  void close_passed_fds() { app_bell_far_.reset(); }
  // The application has mapped its page, and must have sealed it.
  bool check_page(std::string* error);

  // The objects behind its doorbells; 0: none any more. False: out of memory.
  bool add_queue(uint32_t id, uint32_t* bell) { return add_bell(queues_, id, bell); }
  bool add_jfc(uint32_t jfc, uint32_t* bell) { return add_bell(jfcs_, jfc, bell); }
  void remove_queue(uint32_t bell) {
    queues_.objects[bell] = {};
    queues_.free.push_back(bell);
  }
  void remove_jfc(uint32_t bell) {
    jfcs_.objects[bell] = {};
    jfcs_.free.push_back(bell);
  }

  void set_rate(Core<PortSet>&, Instant now, uint64_t bytes_per_second);

  // What was posted, what the agent finished. kLied: end its session.
  Agent::Verdict poll(Core<PortSet>&, Instant now, const Patience&);
  void push_event(const Event& event) { push_event(event.object, static_cast<uint32_t>(event.kind)); }
  void push_event(const PortEvent& event) {
    push_event(event.port, event.up ? ipc::kAppEventPortUp : ipc::kAppEventPortDown);
  }
  // Wakes the application if it sleeps and something was published for it since the last call.
  void ring_if_asleep(Instant now);

  bool listened_to = false;  // its table watches worker_bell_fd()

  void prepare_sleep() { ipc::begin_sleep(page().worker_sleeps); }
  void finish_sleep() { ipc::end_sleep(page().worker_sleeps); }
  bool has_posted() const { return page().posted.any() || page().attention.any(); }
  // It rang while we slept.
  void woke_us() { woke_us_ = true; }
  // Until then it is not heard: it rang too often for nothing.
  Instant unheard_until() const { return ringing_.ready_at(); }
  bool has_finished_copies() const;

  // For the statistics page. What the control thread counts is told by its session.
  struct Usage {
    std::atomic<uint32_t> send_queues{0}, receive_queues{0}, jfcs{0}, segments{0}, targets{0};
    std::atomic<uint64_t> shared_bytes{0};
  };
  Usage usage;  // written by the control thread
  StatsApp report() const;
  void set_process(const ipc::PeerCredentials&, const std::string& program);

 private:
  void push_event(uint64_t object, uint32_t kind);

  static constexpr uint32_t kBellsPerRound = 64;  // of each kind; others wait meanwhile

  // What ringing for nothing costs an application: some twenty times what it costs us. A bell may come after the worker
  // found what it was for, so each useful look makes up for half an idle one.
  static constexpr Duration kIdleBell = microseconds(1), kIdleLook = microseconds(40), kIdleWake = microseconds(100);

  struct Rung {
    uint32_t object = 0;
    uint32_t progress = 0;  // of the object, when its bell rang last
  };
  struct Bells {
    std::vector<Rung> objects{Rung{}};  // by number; 0 is nobody's
    std::vector<uint32_t> free;         // has room for all of them: giving back never allocates
    uint32_t from = 0;                  // whose turn is next
  };

  Client(Owner number, ipc::Mapping page);
  // True: something had come of it.
  template <class Serve>
  bool take_bells(ipc::AppBells&, Bells&, Instant now, Serve);
  bool hear(Core<PortSet>&, Instant now);
  static bool add_bell(Bells&, uint32_t object, uint32_t* bell);
  ipc::AppPage& page() const { return *reinterpret_cast<ipc::AppPage*>(page_.data()); }

  Owner number_;
  ipc::Mapping page_;
  ipc::Fd page_fd_, worker_bell_, app_bell_, app_bell_far_;
  Bells queues_, jfcs_;
  Allowance ringing_;
  bool woke_us_ = false;
  Agent agent_;
  OwnerLimits limits_;
  uint32_t events_produced_ = 0;
  bool published_ = false;  // something that a sleeping application must be woken for
  uint64_t posts_ = 0, events_lost_ = 0;
  StatsApp identity_;
};

}  // namespace ub
