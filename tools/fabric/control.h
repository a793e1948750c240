// SPDX-License-Identifier: Apache-2.0
//
// Where commands come from: a Unix socket with any number of clients, and the standard input, if wanted. Each line is a
// command, and each gets an answer (console.h). tell.h is a client.
//
// Thread: one. A client never blocks it. What a socket has no room for waits until it has, and meanwhile that client is
// not read from: so no more than one answer waits for each. Whoever reads nothing of it for kPatience is dropped. Where
// kMostClients are connected and another one comes, that one gives way which was idle longest.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/time.h"
#include "lib/ipc/fd.h"

namespace ub::fabric {

class Control {
 public:
  static constexpr size_t kMostClients = 32;
  static constexpr Duration kPatience = seconds(5);

  using Obey = std::function<std::string(std::string_view line)>;
  struct Watched {
    int fd;
    bool for_writing;  // else for reading
  };

  // `path` empty: no socket. Only the user who runs the fabric can connect. Throws ToolError: the path is in use, or no
  // socket can be made there. What a fabric that was killed left there is replaced.
  Control(const std::string& path, bool with_stdin);
  ~Control();  // removes the socket
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Descriptors, and what each has to be ready for that there is something to do. They change in serve() and
  // drop_slow().
  std::vector<Watched> watched() const;
  // One of them is ready: reads what is there and answers it, or goes on with an answer.
  void serve(Instant now, int fd, const Obey& obey);

  // When a client has to be dropped unless it reads; never: nobody lets an answer wait.
  Instant next_due() const;
  void drop_slow(Instant now);

 private:
  struct Client {
    ipc::Fd fd;
    Instant active{};      // when it last did anything
    std::string received;  // not obeyed yet
    std::string answer;    // that it has not got as a whole; empty: none
    size_t sent = 0;       // of that

    Instant patience_ends() const { return answer.empty() ? Instant::never() : active + kPatience; }
  };

  void accept_one(Instant now);
  static bool serve_stdin(std::string* received, const Obey& obey);
  static bool serve_client(Client& client, const Obey& obey);
  static bool send(Client& client);

  std::string path_;
  ipc::Fd listener_;
  std::vector<Client> clients_;
  bool has_stdin_;
  std::string stdin_received_;
};

}  // namespace ub::fabric
