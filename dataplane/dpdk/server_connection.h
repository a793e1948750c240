// SPDX-License-Identifier: Apache-2.0
//
// The connection of a memif client to its server, seen from outside: the driver holds it and tells nobody that the
// server hung up. It is found among the descriptors of the process by the name of the server's socket, and known by its
// inode from then on.
//
// Thread: the one on which the driver opens and closes connections, so that none goes unseen.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace ub::dpdk {

class ServerConnection {
 public:
  // `socket`: the server's, a path or an abstract name without the zero in front.
  explicit ServerConnection(std::string socket) : socket_(std::move(socket)) {}

  // Around the driver's attempt to connect. `reached`: it says that there is a server.
  void begin();
  void end(bool reached);

  // There was a server, and it has not hung up. True, too, where the connection could not be found.
  bool is_open() const;

 private:
  struct Descriptor {
    int number = -1;
    ino_t inode = 0;
    bool operator==(const Descriptor&) const = default;
  };
  std::vector<Descriptor> all() const;

  std::string socket_;
  std::vector<Descriptor> before_;
  bool reached_ = false;
  Descriptor ours_;
};

}  // namespace ub::dpdk
