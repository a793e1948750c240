// SPDX-License-Identifier: Apache-2.0
//
// One NIC of the daemon and its control socket: accepts applications, serves their sessions, ends them.
//
// Thread: the control thread (the one that runs the io_context).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <string>

#include "dataplane/config.h"
#include "dataplane/softubd/client_table.h"
#include "dataplane/softubd/limited_log.h"
#include "dataplane/softubd/session.h"

namespace ub {

class NicServer {
 public:
  // Opens socket, ports and NIC. Null and `*error`, a sentence that says what to do.
  static std::unique_ptr<NicServer> start(boost::asio::io_context&, const LoadedConfig&, std::string* error);
  ~NicServer();  // tells the applications, closes the channels

  const std::string& socket_path() const { return socket_path_; }
  const Nic& nic() const { return *nic_; }
  // Takes over what may change while running; answers the keys that differ and may not, separated by commas.
  std::string reload(const LoadedConfig&);

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    Connection(boost::asio::io_context& io, std::unique_ptr<Session> s)
        : session(std::move(s)), readable(io, session->socket()), since(Clock::now()) {}
    std::unique_ptr<Session> session;
    boost::asio::posix::stream_descriptor readable;  // borrows the session's socket
    Clock::time_point since;
  };
  using Connections = std::list<std::shared_ptr<Connection>>;

  NicServer(boost::asio::io_context& io, const LoadedConfig& config);
  bool lock_socket(std::string* error);
  bool listen(std::string* error);
  void apply_settings();
  void apply_impairments(const ImpairConfig& wanted);
  void accept();
  bool accept_some();
  void end_oldest_stranger();
  void read(const std::shared_ptr<Connection>&);
  void end(const std::shared_ptr<Connection>&, const std::string& why);
  void on_trouble(Owner owner, const ClientTable::Trouble&);
  void tick();
  void arm_timer();
  bool may_connect(const ipc::PeerCredentials&) const;

  boost::asio::io_context& io_;
  LoadedConfig config_;
  const bool impaired_;  // the NIC was started with impairments, so it takes others
  std::string socket_path_;
  std::string injected_;  // daemon.inject, as it is in force
  ipc::Fd lock_, listener_fd_;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer timer_;
  bool accepting_ = true;
  LimitedLog log_;
  LimitedLog log_of_strangers_;  // who is not attached cannot hide what others did
  ClientTable clients_;
  std::unique_ptr<Nic> nic_;
  Connections connections_;
  std::list<std::unique_ptr<Session>> dying_;                   // of which something was busy
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what other threads post
};

}  // namespace ub
