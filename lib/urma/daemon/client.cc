// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/daemon/client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ub::urma {
namespace {

using ipc::SocketStatus;

static_assert(offsetof(Client::Answer::Body, extra) == sizeof(ipc::AppAnswer), "one message");

Status status_of(const ipc::AppAnswer& answer) {
  return answer.status <= static_cast<uint32_t>(Status::kBusy) ? static_cast<Status>(answer.status) : Status::kInvalid;
}

// What is wrong with a message of that many bytes, or nothing. The version comes first: another one has other sizes.
std::string fault(const ipc::AppAnswer& answer, size_t bytes) {
  const ipc::AppHead& head = answer.head;
  if (bytes < sizeof head || head.magic != ipc::kAppCallMagic) return "it does not speak as a softubd";
  if (head.version != ipc::kAppCallVersion) {
    return "it speaks version " + std::to_string(head.version) + " with applications, this liburma version " +
           std::to_string(ipc::kAppCallVersion) + "; install both from one release";
  }
  if (bytes < sizeof answer || bytes != head.bytes) {
    return "it sent a message of " + std::to_string(bytes) + " bytes that says it has " + std::to_string(head.bytes);
  }
  return {};
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
      const timespec pause{0, 5'000'000};  // others stand in line
      nanosleep(&pause, nullptr);
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

// ---- start -----------------------------------------------------------------------------------------------------

std::unique_ptr<Client> Client::connect(const std::string& path, Milliseconds patience, Welcome* welcome,
                                        std::string* error) {
  ipc::Fd socket = connect_patiently(path, patience, error);
  if (!socket) return nullptr;
  std::unique_ptr<Client> client(new Client(std::move(socket), patience));
  auto answer = std::make_unique<Answer>();
  std::string why;
  Status status = client->call(request(ipc::AppCall::kHello), answer.get());
  if (status == Status::kOk && client->take_welcome(*answer, welcome, &why)) return client;
  if (status == Status::kGone) {
    why = client->why_gone();
  } else if (status != Status::kOk) {
    const std::string text = (*answer)->text;
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
      !welcome->page.map(page.get(), sizeof(ipc::AppPage), why)) {
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
  std::string why;
  if (exchange(request, answer, &why)) return status_of(answer->body.said);
  hang_up(why);
  return Status::kGone;
}

bool Client::exchange(const ipc::AppRequest& request, Answer* answer, std::string* why) {
  const auto end = Clock::now() + patience_;
  const std::span message(reinterpret_cast<const std::byte*>(&request), sizeof request);
  for (;;) {
    SocketStatus status = ipc::send_message(socket_.get(), message, {});
    if (status == SocketStatus::kOk) break;
    if (status != SocketStatus::kAgain) {
      *why = "it hung up without a word";
      return false;
    }
    if (!wait(POLLOUT, end)) {
      *why = "it takes no requests";
      return false;
    }
  }
  if (!receive(end, answer, why)) return false;
  const ipc::AppAnswer& said = answer->body.said;
  if (said.number == request.number) return true;
  *why = said.number == 0 && said.text[0] != '\0' ? said.text : "it answered what nobody had asked";
  return false;
}

bool Client::receive(Clock::time_point end, Answer* answer, std::string* why) {
  for (bool in_time = true;;) {
    size_t bytes;
    SocketStatus status = take_message(socket_.get(), answer, &bytes);
    if (status == SocketStatus::kOk) {
      *why = fault(answer->body.said, bytes);
      return why->empty();
    }
    if (status != SocketStatus::kAgain) {
      *why = "it hung up without a word";
      return false;
    }
    if (!in_time) {
      *why = "it did not answer for " + std::to_string(patience_.count()) + " ms";
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

void Client::hang_up(const std::string& reason) {
  std::lock_guard guard(reason_lock_);
  if (gone()) return;
  const std::string words = last_words();
  reason_ = words.empty() ? reason : words;
  shutdown(socket_.get(), SHUT_RDWR);
  gone_.store(true, std::memory_order_release);
}

std::string Client::why_gone() const {
  std::lock_guard guard(reason_lock_);
  return reason_;
}

// What the daemon said before it hung up. A connection that was reset tells that once before it gives what came
// earlier.
std::string Client::last_words() {
  auto answer = std::make_unique<Answer>();
  for (int tries = 0; tries < 4; ++tries) {
    size_t bytes;
    SocketStatus status = take_message(socket_.get(), answer.get(), &bytes);
    if (status == SocketStatus::kAgain) break;
    const ipc::AppAnswer& said = answer->body.said;
    if (status == SocketStatus::kOk && fault(said, bytes).empty() && said.number == 0 && said.text[0] != '\0') {
      return said.text;
    }
  }
  return {};
}

}  // namespace ub::urma
