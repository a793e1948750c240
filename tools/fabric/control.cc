// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/control.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "tools/common/tool_error.h"
#include "tools/fabric/control_socket.h"

namespace ub::fabric {
namespace {

using tools::ToolError;

constexpr size_t kLongestLine = 64 << 10;

bool listens(const std::string& path) {
  const sockaddr_un address = control_address(path);
  const ipc::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN;
}

// A socket that nobody listens at any more.
void remove_remains(const std::string& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) throw ToolError(path + ": there is another file of that name; name another path");
  if (listens(path)) throw ToolError(path + ": another fabric listens there; name another path");
  ::unlink(path.c_str());
}

ipc::Fd listen_at(const std::string& path) {
  const sockaddr_un address = control_address(path);
  remove_remains(path);
  ipc::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const mode_t before = ::umask(0177);
  const bool done = fd && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    ::listen(fd.get(), Control::kMostClients) == 0;
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

// Adds what there is to read. False: nothing will come any more.
bool receive(int fd, std::string* received) {
  char buffer[4096];
  const ssize_t bytes = ::read(fd, buffer, sizeof buffer);
  if (bytes < 0) return errno == EAGAIN || errno == EINTR;
  received->append(buffer, static_cast<size_t>(bytes));
  return bytes != 0;
}

// The next whole line that is not blank, cut off.
std::optional<std::string> take_line(std::string* received) {
  for (size_t end = received->find('\n'); end != received->npos; end = received->find('\n')) {
    const std::string line = received->substr(0, end);
    received->erase(0, end + 1);
    if (line.find_first_not_of(" \t\r") != line.npos) return line;
  }
  return {};
}

}  // namespace

Control::Control(const std::string& path, bool with_stdin) : path_(path), has_stdin_(with_stdin) {
  if (!path_.empty()) listener_ = listen_at(path_);
}

Control::~Control() {
  if (listener_) ::unlink(path_.c_str());
}

std::vector<Control::Watched> Control::watched() const {
  std::vector<Watched> all;
  if (has_stdin_) all.push_back({STDIN_FILENO, false});
  if (listener_) all.push_back({listener_.get(), false});
  for (const Client& client : clients_) all.push_back({client.fd.get(), !client.answer.empty()});
  return all;
}

void Control::serve(Instant now, int fd, const Obey& obey) {
  if (has_stdin_ && fd == STDIN_FILENO) {
    has_stdin_ = serve_stdin(&stdin_received_, obey);
  } else if (listener_ && fd == listener_.get()) {
    accept_one(now);
  } else {
    std::erase_if(clients_, [&](Client& client) {
      if (client.fd.get() != fd) return false;
      client.active = now;
      return !serve_client(client, obey);
    });
  }
}

Instant Control::next_due() const {
  Instant due = Instant::never();
  for (const Client& client : clients_) due = earlier(due, client.patience_ends());
  return due;
}

void Control::drop_slow(Instant now) {
  std::erase_if(clients_, [now](const Client& client) { return client.patience_ends() <= now; });
}

void Control::accept_one(Instant now) {
  ipc::Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd) return;
  if (clients_.size() == kMostClients) {
    const auto is_before = [](const Client& a, const Client& b) { return a.active < b.active; };
    clients_.erase(std::min_element(clients_.begin(), clients_.end(), is_before));
  }
  clients_.push_back({.fd = std::move(fd), .active = now, .received = {}, .answer = {}});
}

// False: it has ended, or does not keep to the rules. So below.
bool Control::serve_stdin(std::string* received, const Obey& obey) {
  if (!receive(STDIN_FILENO, received)) return false;
  while (const std::optional<std::string> line = take_line(received)) {
    if (!write_all(STDOUT_FILENO, obey(*line))) return false;
  }
  return received->size() <= kLongestLine;
}

bool Control::serve_client(Client& client, const Obey& obey) {
  if (client.answer.empty() ? !receive(client.fd.get(), &client.received) : !send(client)) return false;
  while (client.answer.empty()) {
    const std::optional<std::string> line = take_line(&client.received);
    if (!line) return client.received.size() <= kLongestLine;
    client.answer = obey(*line);
    if (!send(client)) return false;
  }
  return true;
}

// As much of the answer as the socket has room for. False: the client is gone.
bool Control::send(Client& client) {
  while (client.sent < client.answer.size()) {
    const std::string_view rest = std::string_view(client.answer).substr(client.sent);
    const ssize_t bytes = ::send(client.fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (bytes < 0) return errno == EAGAIN || errno == EINTR;
    client.sent += static_cast<size_t>(bytes);
  }
  client.answer = {};
  client.sent = 0;
  return true;
}

}  // namespace ub::fabric
