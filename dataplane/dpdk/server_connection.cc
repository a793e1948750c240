// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/server_connection.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace ub::dpdk {
namespace {

bool leads_to(int descriptor, const std::string& socket) {
  sockaddr_un name{};
  socklen_t bytes = sizeof name - 1;  // what follows is zero
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&name), &bytes) != 0 || name.sun_family != AF_UNIX) {
    return false;
  }
  const bool abstract = name.sun_path[0] == 0;
  return socket == name.sun_path + (abstract ? 1 : 0);
}

ino_t inode_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::vector<ServerConnection::Descriptor> ServerConnection::all() const {
  std::vector<Descriptor> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
  if (!directory) return found;
  while (const dirent* entry = readdir(directory.get())) {
    const int number = std::atoi(entry->d_name);  // 0 for "." and ".."
    if (leads_to(number, socket_)) found.push_back({number, inode_of(number)});
  }
  return found;
}

void ServerConnection::begin() { before_ = all(); }

void ServerConnection::end(bool reached) {
  reached_ = reached;
  ours_ = {};
  if (!reached) return;
  for (const Descriptor& d : all()) {
    if (std::find(before_.begin(), before_.end(), d) == before_.end()) ours_ = d;
  }
}

bool ServerConnection::is_open() const {
  return reached_ && (ours_.number < 0 || inode_of(ours_.number) == ours_.inode);
}

}  // namespace ub::dpdk
