// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/backends/daemon/client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "lib/ipc/pause.h"

namespace ub::urma {
namespace {

using ipc::SocketStatus;

static_assert(offsetof(Client::Answer::Body, extra) == sizeof(ipc::AppAnswer), "one message");

Status status_of(const ipc::AppAnswer& answer) {
  return answer.status <= static_cast<uint32_t>(Status::kBusy) ? static_cast<Status>(answer.status) : Status::kInvalid;
}

// Is it a message of the daemon, of that many bytes? The version comes first: another one has other sizes.
bool well_formed(const ipc::AppAnswer& answer, size_t bytes, Sentence* why) {
  const ipc::AppHead& head = answer.head;
  if (bytes < sizeof head || head.magic != ipc::kAppCallMagic) {
    why->set("it does not speak as a softubd");
  } else if (head.version != ipc::kAppCallVersion) {
    why->set("it speaks version %u with applications, this liburma version %u; install both from one release",
             head.version, ipc::kAppCallVersion);
  } else if (bytes < sizeof answer || bytes != head.bytes) {
    why->set("it sent a message of %zu bytes that says it has %u", bytes, head.bytes);
  } else {
    return true;
  }
  return false;
}

SocketStatus take_message(int socket, Client::Answer* answer, size_t* bytes) {
  auto& body = answer->body;
  SocketStatus status = ipc::receive_message(socket, {reinterpret_cast<std::byte*>(&body), sizeof body}, bytes,
                                             answer->fds, &answer->fd_count);
  body.said.text[sizeof body.said.text - 1] = '\0';
  answer->extra_bytes = *bytes > sizeof body.said ? *bytes - sizeof body.said : 0;
  return status;
}

ipc::Fd connect_patiently(const std::string& path, Client::Milliseconds patience, std::string* error) {
  ipc::Fd socket;
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    SocketStatus status = ipc::connect_unix(path, &socket, error);
    const int reason = errno;
    if (status == SocketStatus::kOk) return socket;
    if (status == SocketStatus::kAgain && std::chrono::steady_clock::now() < end) {
      ipc::pause_for(milliseconds(5));  // others stand in line
      continue;
    }
    if (status == SocketStatus::kClosed) {
      *error += "; start softubd, name its socket in daemon.socket, or set placement.mode to embedded";
    } else if (status == SocketStatus::kFailed && (reason == EACCES || reason == EPERM)) {
      *error += "; whoever runs softubd decides which users may use it";
    }
    return {};
  }
}

}  // namespace

void Sentence::set(const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(text_, sizeof text_, format, args);
  va_end(args);
}

// ---- start -----------------------------------------------------------------------------------------------------

std::unique_ptr<Client> Client::connect(const std::string& path, Milliseconds patience, Welcome* welcome,
                                        std::string* error) {
  ipc::Fd socket = connect_patiently(path, patience, error);
  if (!socket) return nullptr;
  std::unique_ptr<Client> client(new Client(std::move(socket), patience));
  Answer answer;
  std::string why;
  Status status = client->call(request(ipc::AppCall::kHello), &answer);
  if (status == Status::kOk && client->take_welcome(answer, welcome, &why)) {
    // From the call after the welcome on the daemon looks at our page: ports are told of without any object, too.
    status = client->call(request(ipc::AppCall::kCounters), &answer);
    if (status == Status::kOk) return client;
  }
  if (status == Status::kGone) {
    why = client->why_gone().c_str();
  } else if (status != Status::kOk) {
    const std::string text = answer->text;
    why = text.empty() ? "it refused" : "it refused: " + text;
  }
  *error = "the daemon at " + path + ": " + why;
  return nullptr;
}

bool Client::take_welcome(Answer& answer, Welcome* welcome, std::string* why) {
  if (answer.fd_count != 3) {
    *why = "its welcome came with " + std::to_string(answer.fd_count) + " descriptors instead of 3";
    return false;
  }
  const ipc::AppInstance& instance = answer->instance;
  if (instance.uasid == 0 || instance.eid_count == 0 || instance.eid_count > ipc::kAppEids) {
    *why = "its welcome names no EID or no uasid";
    return false;
  }
  ipc::Fd page = std::move(answer.fds[0]);
  if (!ipc::check_sealed_memfd(page.get(), sizeof(ipc::AppPage), why) ||
      !welcome->page.map(page.get(), sizeof(ipc::AppPage), why) || !ipc::seal_against_holes(page.get(), why)) {
    return false;
  }
  welcome->instance = instance;
  welcome->daemon_bell = std::move(answer.fds[1]);
  welcome->app_bell = std::move(answer.fds[2]);
  // Neither ringing nor being rung may ever block.
  for (const ipc::Fd* bell : {&welcome->daemon_bell, &welcome->app_bell}) {
    fcntl(bell->get(), F_SETFL, fcntl(bell->get(), F_GETFL) | O_NONBLOCK);
  }
  return true;
}

// ---- calls -----------------------------------------------------------------------------------------------------

ipc::AppRequest Client::request(ipc::AppCall call) {
  ipc::AppRequest request;
  std::memset(&request, 0, sizeof request);
  request.head = {ipc::kAppCallMagic, ipc::kAppCallVersion, sizeof request};
  request.call = call;
  return request;
}

Status Client::call(ipc::AppRequest request, Answer* answer) {
  answer->body.said.text[0] = '\0';
  answer->extra_bytes = answer->fd_count = 0;
  std::lock_guard guard(calls_);
  if (gone()) return Status::kGone;
  if (++number_ == 0) ++number_;
  request.number = number_;
  Sentence why;
  if (exchange(request, answer, &why)) return status_of(answer->body.said);
  hang_up(why.c_str());
  return Status::kGone;
}

bool Client::exchange(const ipc::AppRequest& request, Answer* answer, Sentence* why) {
  const auto end = Clock::now() + patience_;
  const std::span message(reinterpret_cast<const std::byte*>(&request), sizeof request);
  for (;;) {
    SocketStatus status = ipc::send_message(socket_.get(), message, {});
    if (status == SocketStatus::kOk) break;
    if (status != SocketStatus::kAgain) {
      why->set("it hung up without a word");
      return false;
    }
    if (!wait(POLLOUT, end)) {
      why->set("it takes no requests");
      return false;
    }
  }
  if (!receive(end, answer, why)) return false;
  const ipc::AppAnswer& said = answer->body.said;
  if (said.number == request.number) return true;
  why->set("%s", said.number == 0 && said.text[0] != '\0' ? said.text : "it answered what nobody had asked");
  return false;
}

bool Client::receive(Clock::time_point end, Answer* answer, Sentence* why) {
  for (bool in_time = true;;) {
    size_t bytes;
    SocketStatus status = take_message(socket_.get(), answer, &bytes);
    if (status == SocketStatus::kOk) return well_formed(answer->body.said, bytes, why);
    if (status != SocketStatus::kAgain) {
      why->set("it hung up without a word");
      return false;
    }
    if (!in_time) {
      why->set("it did not answer for %lld ms", static_cast<long long>(patience_.count()));
      return false;
    }
    // We may be what stood still: the last look comes after the end.
    in_time = wait(POLLIN, end);
  }
}

// Until the socket is ready. False: the time is over.
bool Client::wait(short events, Clock::time_point end) const {
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
  if (left <= 0) return false;
  const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
  pollfd entry{socket_.get(), events, 0};
  ppoll(&entry, 1, &timeout, nullptr);
  return true;
}

// ---- end -------------------------------------------------------------------------------------------------------

void Client::hang_up(const char* reason) {
  std::lock_guard guard(reason_lock_);
  if (gone()) return;
  reason_ = last_words();
  if (reason_.empty()) reason_.set("%s", reason);
  shutdown(socket_.get(), SHUT_RDWR);
  gone_.store(true, std::memory_order_release);
}

Sentence Client::why_gone() const {
  std::lock_guard guard(reason_lock_);
  return reason_;
}

// What the daemon said before it hung up. A connection that was reset tells that once before it gives what came
// earlier.
Sentence Client::last_words() {
  Sentence words, unused;
  Answer answer;
  for (int tries = 0; tries < 4 && words.empty(); ++tries) {
    size_t bytes;
    SocketStatus status = take_message(socket_.get(), &answer, &bytes);
    if (status == SocketStatus::kAgain) break;
    const ipc::AppAnswer& said = answer.body.said;
    if (status == SocketStatus::kOk && well_formed(said, bytes, &unused) && said.number == 0)
      words.set("%s", said.text);
  }
  return words;
}

}  // namespace ub::urma
