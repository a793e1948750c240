// SPDX-License-Identifier: Apache-2.0
//
// The socket at which tools ask a running NIC to be looked at (urma_admin trace): AF_UNIX, SOCK_SEQPACKET, beside the
// statistics page of the instance. A request is a line of text, and so is the first line of its answer: "ok ..." or a
// sentence that says what is wrong. Only the user of the process and root are answered.
//
// Nothing here waits: whoever asks and does not read loses the connection. Thread: the NIC's own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ipc/fd.h"
#include "lib/ipc/spare_fd.h"

namespace ub {

class LookDoor {
 public:
  static constexpr size_t kMostRequestBytes = 8192;  // with a path
  static constexpr size_t kMostAnswerBytes = 32 * 1024;
  static constexpr size_t kMostVisitors = 16;

  // The door of the instance whose statistics page is there.
  static std::string path_beside(const std::string& page);

  LookDoor() = default;
  ~LookDoor() { close(); }
  LookDoor(const LookDoor&) = delete;
  LookDoor& operator=(const LookDoor&) = delete;

  // What lies at the path is of an instance that is gone, because the name of the page is ours. False and `*error`, a
  // sentence: an instance can live without a door.
  bool open(const std::string& path, std::string* error);
  // Nobody new is heard.
  void close();
  bool is_open() const { return static_cast<bool>(listener_); }
  // Readable when serve() has something to do.
  int fd() const { return epoll_.get(); }

  // Answers those who asked. An answer is at most kMostAnswerBytes long.
  void serve(const std::function<std::string(std::string_view request)>& answer);

 private:
  void admit();
  // False: the visitor has gone, or is to go.
  bool serve_one(int visitor, const std::function<std::string(std::string_view)>& answer);
  bool watch(int fd);

  std::string path_;
  ipc::Fd epoll_, listener_;
  ipc::SpareFd spare_fd_;
  std::vector<ipc::Fd> visitors_;
};

}  // namespace ub
