// SPDX-License-Identifier: Apache-2.0
//
// Where commands come from: a Unix socket with any number of clients, and the standard input, if wanted. Each line is a
// command, and each gets an answer (console.h).
//
// Thread: one. It blocks for nothing: a client that does not read its answers is dropped.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ipc/fd.h"

namespace ub::fabric {

class Control {
 public:
  using Obey = std::function<std::string(std::string_view line)>;

  // `path` empty: no socket. Only the user who runs the fabric can connect. Throws ToolError: the path is in use, or no
  // socket can be made there. What a fabric that was killed left there is replaced.
  Control(const std::string& path, bool with_stdin);
  ~Control();  // removes the socket
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Descriptors that are readable when there is something to do; they change as clients come and go.
  std::vector<int> fds() const;
  // Reads from one of them what is there, and answers it.
  void serve(int fd, const Obey& obey);

 private:
  struct Client {
    ipc::Fd fd;
    std::string pending;  // the beginning of a line
  };

  void accept_one();
  bool serve_client(int from, int to, std::string* pending, const Obey& obey);

  std::string path_;
  ipc::Fd listener_;
  std::vector<Client> clients_;
  bool has_stdin_;
  std::string stdin_pending_;
};

// Sends the commands to the fabric whose socket that is, and prints the answers. False: one of them was an error.
// Throws ToolError: nobody is there, or the fabric ended.
bool tell(const std::string& path, const std::vector<std::string>& commands);

}  // namespace ub::fabric
