// SPDX-License-Identifier: Apache-2.0
//
// A daemon without a NIC, in a thread of the test: answers calls as it is told to, remembers what it was asked, and
// plays the worker where a test does so by hand.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lib/ipc/app_call.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"

namespace ub::test {

class FakeDaemon {
 public:
  FakeDaemon();
  ~FakeDaemon();

  const std::string& path() const { return path_; }

  // ---- what it says; before somebody connects, or from `on_call` ----
  uint32_t version = ipc::kAppCallVersion;
  std::string refusal;                                                                       // of the hello
  std::atomic<bool> mute{false};                                                             // reads, and says nothing
  std::function<void(const ipc::AppRequest&, ipc::AppAnswer*, std::string* extra)> on_call;  // changes the answer

  void say_goodbye(const std::string& sentence);
  void hang_up();
  void close_listener();

  // ---- what it got ----
  std::vector<ipc::AppRequest> requests();
  size_t count(ipc::AppCall call);
  ipc::AppPage& page() { return *reinterpret_cast<ipc::AppPage*>(page_.data()); }
  // What the daemon sees at that place.
  std::byte* at(uint32_t area, uint64_t offset);

  // ---- what its worker does ----
  void ring();  // the application, if it sleeps
  bool was_rung();
  ipc::AgentOp& ask(ipc::AgentOpKind kind, const void* address, uint32_t bytes);
  std::byte* data(const ipc::AgentOp& op) { return page().agent_data + (&op - page().ops) * ipc::kAgentBytes; }
  void raise(uint64_t object, uint32_t kind);

 private:
  void serve();
  bool answer(const ipc::AppRequest& request);
  void create(const ipc::AppRequest& request, ipc::AppAnswer* answer);
  void end_connection();
  void send(ipc::AppAnswer& answer, const std::string& extra, const std::vector<int>& fds);

  std::string directory_, path_;
  ipc::Fd listener_, stop_;
  ipc::Fd worker_bell_, app_bell_, app_bell_far_, page_fd_;
  ipc::Mapping page_;
  std::mutex mutex_;  // guards what follows
  ipc::Fd connection_;
  std::vector<ipc::AppRequest> requests_;
  std::map<uint32_t, ipc::Mapping> areas_;
  uint32_t last_id_ = 1000;
  std::thread thread_;
};

}  // namespace ub::test
