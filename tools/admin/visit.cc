// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/visit.h"

#include <fmt/format.h>
#include <poll.h>

#include <span>
#include <vector>

#include "dataplane/look_door.h"
#include "lib/ipc/unix_socket.h"
#include "tools/admin/instance_pages.h"

namespace ub::tools {
namespace {

constexpr int kPatienceMs = 5000;

}  // namespace

bool Visit::open(const InstanceSelection& selection) {
  const auto instance = choose_instance(selection);
  if (!instance) return false;
  instance_ = instance->name;
  if (!instance->alive) {
    fmt::print(stderr, "urma_admin: {} cannot be asked: it has ended; `show events` tells what happened last\n",
               instance_);
    return false;
  }
  std::string error;
  const std::string path = LookDoor::path_beside(instance->page);
  if (ipc::connect_unix(path, &socket_, &error) == ipc::SocketStatus::kOk) return true;
  fmt::print(stderr, "urma_admin: {} cannot be asked: {}\n", instance_, error);
  return false;
}

std::optional<std::string> Visit::ask(const std::string& request) {
  std::vector<std::byte> answer(LookDoor::kMostAnswerBytes + 1);
  size_t bytes = 0;
  bool had_fds = false;
  pollfd waits{socket_.get(), POLLIN, 0};
  if (ipc::send_message(socket_.get(), std::as_bytes(std::span(request)), {}) != ipc::SocketStatus::kOk ||
      ::poll(&waits, 1, kPatienceMs) != 1 ||
      ipc::receive_plain(socket_.get(), answer, &bytes, &had_fds) != ipc::SocketStatus::kOk || bytes == 0) {
    fmt::print(stderr, "urma_admin: the instance does not answer: it has ended, is stopped, or gets no CPU\n");
    return std::nullopt;
  }
  std::string text(reinterpret_cast<const char*>(answer.data()), bytes);
  if (text.starts_with("ok")) return text;
  fmt::print(stderr, "urma_admin: {}\n", text);
  return std::nullopt;
}

}  // namespace ub::tools
