// SPDX-License-Identifier: Apache-2.0
//
// One application at the control socket: reads its requests, checks them, answers. Ends when it hangs up or breaks
// the protocol; what it had is destroyed then (server.cc).
//
// Thread: the control thread.
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "dataplane/softubd/client_table.h"
#include "dataplane/softubd/objects.h"
#include "dataplane/softubd/process_reader.h"
#include "lib/ipc/app_call.h"
#include "lib/ipc/lane_connect.h"
#include "lib/ipc/share_connect.h"
#include "lib/ipc/unix_socket.h"

namespace ub {

class Session {
 public:
  // `config` is the daemon's current one and outlives the session.
  Session(Nic& nic, ClientTable& clients, const LoadedConfig& config, ipc::Fd socket, const ipc::PeerCredentials& peer);

  int socket() const { return socket_.get(); }
  // "process 123 (redis-server), user 1000".
  const std::string& who() const { return who_; }
  bool attached() const { return client_ != nullptr; }
  Owner owner() const { return client_ == nullptr ? Owner{0} : client_->number(); }
  const AppObjects* objects() const { return objects_.get(); }

  // Serves what has arrived, a bounded number of requests. False: it is over, `*why` says why ("" for a hang-up).
  bool serve(std::string* why);
  // Tells the application the last sentence it gets, and hangs up.
  void say_goodbye(const std::string& sentence);
  // It leaves copies undone, in the wait with that number: what does it do? Given up for it or not, a sentence for the
  // log, "" if there is nothing to tell.
  std::string look_after(uint32_t wait);
  // A sentence about having been given up.
  static std::string describe_stall(const Agent::Stall&);
  // Destroys what it had. False: call again later.
  bool clean_up();
  // The daemon ends: what can be destroyed at once. No request of it fails before; it may not know yet.
  void destroy_objects();

 private:
  struct Reply {
    Reply() { std::memset(static_cast<void*>(&answer), 0, sizeof answer); }  // all of it goes to the application
    ipc::AppAnswer answer;
    std::byte extra[ipc::kAppAnswerExtra];
    size_t extra_bytes = 0;
    int fds[3];
    size_t fd_count = 0;
    ipc::Fd passed;  // closed after sending, as what belongs to a lane or share
    ipc::OpenedLane lane;
    ipc::OpenedShare share;
  };

  bool handle(std::span<const std::byte> message, std::string* why);
  Status hello(Reply*, std::string* why);
  bool begin_service(std::string* why);
  Status open_lane(const ipc::AppRequest&, Reply*, std::string* why);
  Status open_share(const ipc::AppRequest&, Reply*, std::string* why);
  Status share_holders(const ipc::AppRequest&, Reply*);
  Status call(const ipc::AppRequest&, Reply*, std::string* why);
  Status call_create(const ipc::AppRequest&, ipc::AppAnswer*, std::string* why);
  Status call_object(const ipc::AppRequest&, ipc::AppAnswer*, std::string* why);
  Status call_report(const ipc::AppRequest&, Reply*);
  bool send(Reply&, const std::string& sentence);

  Nic& nic_;
  ClientTable& clients_;
  const LoadedConfig& config_;
  ipc::Fd socket_;
  const ipc::PeerCredentials peer_;
  std::string who_;
  Client* client_ = nullptr;  // in the table
  bool served_ = false;
  std::unique_ptr<AppObjects> objects_;
  ProcessReader process_{0};  // once it is attached
  StarvationJudge judge_;
  uint32_t judged_wait_ = 0;
  std::chrono::steady_clock::time_point told_of_starving_{};
};

}  // namespace ub
