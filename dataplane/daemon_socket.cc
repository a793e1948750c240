// SPDX-License-Identifier: Apache-2.0
#include "dataplane/daemon_socket.h"

#include <unistd.h>

#include <cerrno>

#include "lib/ipc/rendezvous.h"
#include "lib/ipc/unix_socket.h"

namespace ub {

namespace {

constexpr const char* kSystemSocket = "/run/softub/softubd.sock";

// Does nobody listen there any more?
bool is_left_over(const std::string& path) {
  ipc::Fd socket;
  std::string error;
  return ipc::connect_unix(path, &socket, &error) != ipc::SocketStatus::kOk && errno == ECONNREFUSED;
}

std::string user_socket() { return ipc::Rendezvous::default_directory() + "/softubd.sock"; }

}  // namespace

std::string daemon_socket_to_listen(const std::string& configured) {
  if (!configured.empty()) return configured;
  return geteuid() == 0 ? kSystemSocket : user_socket();
}

std::string daemon_socket_to_connect(const std::string& configured) {
  if (!configured.empty()) return configured;
  std::string own = user_socket();
  if (access(own.c_str(), F_OK) != 0) return kSystemSocket;
  return access(kSystemSocket, F_OK) == 0 && is_left_over(own) ? kSystemSocket : own;
}

}  // namespace ub
