// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/control.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/common/tool_error.h"

namespace ub::fabric {
namespace {

using tools::ToolError;

constexpr size_t kMostClients = 32;
constexpr size_t kLongestLine = 64 << 10;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw ToolError(tools::kExitUsage, path + ": the path of a socket has at most " +
                                           std::to_string(sizeof address.sun_path - 1) + " characters");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Empty: nobody listens there.
ipc::Fd connect_to(const std::string& path) {
  const sockaddr_un address = address_of(path);
  ipc::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

// A socket that nobody listens at any more.
void remove_remains(const std::string& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) throw ToolError(path + ": there is another file of that name; name another path");
  if (connect_to(path)) throw ToolError(path + ": another fabric listens there; name another path");
  ::unlink(path.c_str());
}

ipc::Fd listen_at(const std::string& path) {
  const sockaddr_un address = address_of(path);
  remove_remains(path);
  ipc::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const mode_t before = ::umask(0177);
  const bool done = fd && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    ::listen(fd.get(), kMostClients) == 0;
  const int error = errno;
  ::umask(before);
  if (!done) throw ToolError(path + ": cannot make the control socket: " + std::strerror(error));
  return fd;
}

// False: not all of it could be written.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

Control::Control(const std::string& path, bool with_stdin) : path_(path), has_stdin_(with_stdin) {
  if (!path_.empty()) listener_ = listen_at(path_);
}

Control::~Control() {
  if (listener_) ::unlink(path_.c_str());
}

std::vector<int> Control::fds() const {
  std::vector<int> all;
  if (has_stdin_) all.push_back(STDIN_FILENO);
  if (listener_ && clients_.size() < kMostClients) all.push_back(listener_.get());
  for (const Client& client : clients_) all.push_back(client.fd.get());
  return all;
}

void Control::serve(int fd, const Obey& obey) {
  if (has_stdin_ && fd == STDIN_FILENO) {
    has_stdin_ = serve_client(STDIN_FILENO, STDOUT_FILENO, &stdin_pending_, obey);
  } else if (listener_ && fd == listener_.get()) {
    accept_one();
  } else {
    std::erase_if(clients_, [&](Client& client) {
      return client.fd.get() == fd && !serve_client(fd, fd, &client.pending, obey);
    });
  }
}

void Control::accept_one() {
  ipc::Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) clients_.push_back({std::move(fd), {}});
}

// False: it is gone, or does not keep to the rules.
bool Control::serve_client(int from, int to, std::string* pending, const Obey& obey) {
  char buffer[4096];
  const ssize_t bytes = ::read(from, buffer, sizeof buffer);
  if (bytes < 0) return errno == EAGAIN || errno == EINTR;
  if (bytes == 0) return false;
  pending->append(buffer, static_cast<size_t>(bytes));
  for (size_t end = pending->find('\n'); end != pending->npos; end = pending->find('\n')) {
    const std::string line = pending->substr(0, end);
    pending->erase(0, end + 1);
    if (line.find_first_not_of(" \t\r") != line.npos && !write_all(to, obey(line))) return false;
  }
  return pending->size() <= kLongestLine;
}

bool tell(const std::string& path, const std::vector<std::string>& commands) {
  const ipc::Fd fd = connect_to(path);
  if (!fd) throw ToolError(path + ": no fabric listens there: " + std::strerror(errno));
  bool all_good = true;
  std::string received;
  for (const std::string& command : commands) {
    if (command.find_first_not_of(" \t\r") == command.npos || command.find('\n') != command.npos) {
      throw ToolError(tools::kExitUsage, "\"" + command + "\": a command is one line that is not empty");
    }
    if (!write_all(fd.get(), command + "\n")) throw ToolError(path + ": the fabric has ended");
    for (bool answered = false; !answered;) {
      const size_t end = received.find('\n');
      if (end == received.npos) {
        char buffer[4096];
        const ssize_t bytes = ::read(fd.get(), buffer, sizeof buffer);
        if (bytes <= 0) throw ToolError(path + ": the fabric ended before it answered \"" + command + "\"");
        received.append(buffer, static_cast<size_t>(bytes));
        continue;
      }
      const std::string line = received.substr(0, end);
      received.erase(0, end + 1);
      const bool is_error = line.starts_with("error: ");
      if (is_error) all_good = false;
      answered = is_error || line == "ok";
      if (line != "ok") fmt::print(is_error ? stderr : stdout, "{}\n", line);
    }
  }
  return all_good;
}

}  // namespace ub::fabric
