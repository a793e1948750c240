// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/tell.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "lib/impair/quoted.h"
#include "lib/ipc/fd.h"
#include "tools/common/tool_error.h"
#include "tools/fabric/control_socket.h"

namespace ub::fabric {
namespace {

using tools::ToolError;

class Connection {
 public:
  Connection(const std::string& path, Duration patience)
      : path_(path), patience_(patience), fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = control_address(path);
    const timeval limit{patience.ns / 1'000'000'000, patience.ns % 1'000'000'000 / 1000};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
    if (errno == EAGAIN) fail_late("to be connected");
    throw ToolError(path + ": no fabric listens there: " + std::strerror(errno));
  }

  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) fail_late("that it reads");
      if (sent <= 0) throw ToolError(path_ + ": the fabric has ended");
      text.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // The next line of the answer to that command.
  std::string line(const std::string& command) {
    size_t end = received_.find('\n');
    while (end == received_.npos) {
      const size_t before = received_.size();
      receive(command);
      end = received_.find('\n', before);
    }
    std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    return line;
  }

 private:
  void receive(const std::string& command) {
    char buffer[64 << 10];
    const ssize_t bytes = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (bytes < 0 && errno == EAGAIN) fail_late("for the answer to " + impair::quoted(command));
    if (bytes <= 0)
      throw ToolError(path_ + ": the fabric ended the connection before it answered " + impair::quoted(command));
    received_.append(buffer, static_cast<size_t>(bytes));
  }

  [[noreturn]] void fail_late(const std::string& what) const {
    throw ToolError(fmt::format("{}: waited {} ms {}; does the fabric still run?", path_, patience_.ms(), what));
  }

  std::string path_;
  Duration patience_;
  ipc::Fd fd_;
  std::string received_;
};

}  // namespace

bool tell(const std::string& path, const std::vector<std::string>& commands, Duration patience) {
  Connection connection(path, patience);
  bool all_good = true;
  for (const std::string& command : commands) {
    if (command.find_first_not_of(" \t\r") == command.npos || command.find('\n') != command.npos) {
      throw ToolError(tools::kExitUsage, impair::quoted(command) + ": a command is one line that is not empty");
    }
    connection.send(command + "\n");
    for (bool answered = false; !answered;) {
      const std::string line = connection.line(command);
      const bool is_error = line.starts_with("error: ");
      if (is_error) all_good = false;
      answered = is_error || line == "ok";
      if (line != "ok") fmt::print(is_error ? stderr : stdout, "{}\n", line);
    }
  }
  return all_good;
}

}  // namespace ub::fabric
