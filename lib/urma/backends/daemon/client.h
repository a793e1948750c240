// SPDX-License-Identifier: Apache-2.0
// client.h - the control socket to the daemon: connecting, and calls that wait for their answer.
//
// A daemon that hangs up, breaks the rules or is silent for longer than the time limit is gone: the socket is shut
// down, the call under way and all later ones answer kGone at once. Nothing connects again.
//
// Thread: any. One call is under way at a time; the others wait for their turn.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "lib/ipc/app_call.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/unix_socket.h"
#include "lib/transport/core_types.h"

namespace ub::urma {

// Words for a person, cut where they are too many. Saying why something failed must not fail for want of memory.
class Sentence {
 public:
  void set(const char* format, ...) __attribute__((format(printf, 2, 3)));
  const char* c_str() const { return text_; }
  bool empty() const { return text_[0] == '\0'; }

 private:
  char text_[320] = "";
};

class Client {
 public:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr Milliseconds kPatience{10'000};

  // What the daemon says of itself, and gives us, when it is greeted.
  struct Welcome {
    ipc::AppInstance instance;
    ipc::Mapping page;    // AppPage
    ipc::Fd daemon_bell;  // 8 bytes written to it wake the daemon's worker
    ipc::Fd app_bell;     // readable when the daemon wants to wake us
  };
  // Null and `*error`, a sentence that says what a person can do: nobody listens there, we may not, or whoever
  // listens is no daemon of our version, or does not want us.
  static std::unique_ptr<Client> connect(const std::string& path, Milliseconds patience, Welcome* welcome,
                                         std::string* error);

  struct Answer {
    struct Body {
      ipc::AppAnswer said;
      std::byte extra[ipc::kAppAnswerExtra];
    } body;
    size_t extra_bytes;
    ipc::Fd fds[ipc::kMaxMessageFds];
    size_t fd_count;

    const ipc::AppAnswer* operator->() const { return &body.said; }
  };
  // A request in which all but the call is zero.
  static ipc::AppRequest request(ipc::AppCall call);
  // What the daemon answers, or kGone.
  Status call(ipc::AppRequest request, Answer* answer);

  // Ends the connection, if that has not happened yet. The daemon's last sentence, if it said one, beats `reason`.
  void hang_up(const char* reason);
  bool gone() const { return gone_.load(std::memory_order_acquire); }
  Sentence why_gone() const;

  int socket() const { return socket_.get(); }

 private:
  using Clock = std::chrono::steady_clock;

  Client(ipc::Fd socket, Milliseconds patience) : socket_(std::move(socket)), patience_(patience) {}

  bool exchange(const ipc::AppRequest& request, Answer* answer, Sentence* why);
  bool receive(Clock::time_point end, Answer* answer, Sentence* why);
  bool wait(short events, Clock::time_point end) const;
  bool take_welcome(Answer& answer, Welcome* welcome, std::string* why);
  Sentence last_words();

  const ipc::Fd socket_;
  const Milliseconds patience_;
  std::mutex calls_;
  uint32_t number_ = 0;
  std::atomic<bool> gone_{false};
  mutable std::mutex reason_lock_;
  Sentence reason_;
};

}  // namespace ub::urma
