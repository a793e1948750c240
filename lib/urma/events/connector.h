// SPDX-License-Identifier: Apache-2.0
// connector.h - asynchronous imports: a thread that carries them out one after the other, and where the results of
// imports and binds wait for urma_wait_notify.
//
// An import is in one list at a time: the connector's while it is outstanding, its notifier's when there is a result.
// Whatever ends it early (time limit, unimport, deletion of the notifier) takes it out of that list; the thread then
// finds that nobody wants the channel it just got, and gives it back.
//
// Thread: any. All of this is guarded by Library::control().
#pragma once

#include <condition_variable>
#include <list>
#include <set>
#include <thread>
#include <utility>

#include "lib/urma/objects/objects.h"

namespace ub::urma {

struct Notifier;

struct Connect {
  Notifier* notifier = nullptr;
  std::list<Connect>* list = nullptr;  // it is in this one
  std::list<Connect>::iterator place;
  TargetConfig config{};
  int64_t deadline = 0;    // of now_ns(), while it is outstanding; 0: none
  int64_t find_until = 0;  // of now_ns(): so long its peer is asked for; 0: nobody asked yet
  urma_notify_t result{};
};

struct Notifier {
  using Public = urma_notifier_t;
  static constexpr uint64_t kMagic = magic_of("unotify ");
  Public pub{};  // fd: an epoll over the next two
  Magic magic;
  int results_fd = -1;  // readable while there are results
  int timer_fd = -1;    // set to the first deadline
  int64_t timer = 0;
  std::list<Connect> results;
  std::set<std::pair<int64_t, Connect*>> deadlines;
};

// False: errno says why.
bool open_fds(Notifier& notifier);
void close_fds(Notifier& notifier);

// The oldest results, with those whose time is over.
uint32_t take_results(Notifier& notifier, uint32_t room, urma_notify_t out[]);
// Adds a result that the caller made, a list of one.
void add_result(Notifier& notifier, std::list<Connect>& result);
// Drops the asynchronous import of a target, or its result that nobody collected. True: the import has not succeeded,
// so that the back end does not have the target; false: it is one like any other.
bool abandon(Target& target);
// Drops results of binding this jetty that nobody collected.
void drop_bind_results(const Jetty& jetty);

class Connector {
 public:
  ~Connector() { stop(); }

  // False: out of memory or threads. Timeout in ms, negative: none.
  bool submit(Notifier& notifier, Target& target, const TargetConfig& config, uint64_t user_ctx, int timeout);
  // Drops all that is outstanding for a notifier, and its results.
  void cancel(Notifier& notifier);
  // Drops all that is outstanding, and waits for the thread. Nothing can be imported afterwards.
  void stop();

 private:
  bool start();
  void run();
  void connect_next(std::unique_lock<std::mutex>& lock);

  std::condition_variable wake_;
  std::list<Connect> queued_;
  std::list<Connect> running_;  // what the thread is at: one or none
  size_t silent_ = 0;           // imports looked at since the thread paused, without an answer of their peers
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace ub::urma
