// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/running/worker_pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace ub::emu {
namespace {

using Work = std::function<std::string(size_t)>;
using OnDone = std::function<bool(size_t, const Outcome&)>;

volatile sig_atomic_t g_signal = 0;

void remember_signal(int signal) { g_signal = signal; }

// SIGINT and SIGTERM come only while the pool waits, and are as they were before when it ends.
class SignalsWhileWaiting {
 public:
  SignalsWhileWaiting() {
    g_signal = 0;
    sigset_t both;
    sigemptyset(&both);
    struct sigaction action = {};
    action.sa_handler = remember_signal;
    for (size_t i = 0; i < 2; ++i) {
      sigaddset(&both, kSignals[i]);
      sigaction(kSignals[i], &action, &actions_[i]);
    }
    sigprocmask(SIG_BLOCK, &both, &mask_);
  }
  ~SignalsWhileWaiting() {
    sigprocmask(SIG_SETMASK, &mask_, nullptr);  // one that came meanwhile says no more than the one before
    restore();
  }
  SignalsWhileWaiting(const SignalsWhileWaiting&) = delete;
  SignalsWhileWaiting& operator=(const SignalsWhileWaiting&) = delete;

  const sigset_t* mask() const { return &mask_; }
  // One has come, and nobody has waited since then. Throws Interrupted.
  static void expect_none() {
    sigset_t pending;
    sigpending(&pending);
    for (const int signal : kSignals)
      if (sigismember(&pending, signal) == 1) throw Interrupted(signal);
  }
  void restore() const {
    for (size_t i = 0; i < 2; ++i) sigaction(kSignals[i], &actions_[i], nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM};
  struct sigaction actions_[2];
  sigset_t mask_;
};

void send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // the other side is gone, which is seen when one reads from it
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

// Adds what has come. False: the other side is gone.
bool receive_more(int socket, std::string& text) {
  char some[65536];
  const ssize_t size = recv(socket, some, sizeof some, 0);
  if (size < 0) return errno == EINTR || errno == EAGAIN;
  text.append(some, static_cast<size_t>(size));
  return size > 0;
}

// The next line, without its end. False: there is none yet.
bool take_line(std::string& text, std::string& line) {
  const size_t end = text.find('\n');
  if (end == text.npos) return false;
  line = text.substr(0, end);
  text.erase(0, end + 1);
  return true;
}

// What is thrown here ends the process, as a death.
[[noreturn]] void serve(int socket, const Work& work) noexcept {
  std::string text, line;
  while (true) {
    while (!take_line(text, line))
      if (!receive_more(socket, text)) _exit(0);
    size_t job = 0;
    std::from_chars(line.data(), line.data() + line.size(), job);
    send_all(socket, work(job) + "\n");
  }
}

std::string end_of(int status) {
  if (WIFSIGNALED(status))
    return "its process was ended by signal " + std::to_string(WTERMSIG(status)) + ", " + strsignal(WTERMSIG(status));
  return "its process ended by itself with code " + std::to_string(WEXITSTATUS(status));
}

class Worker {
 public:
  Worker(const Work& work, const SignalsWhileWaiting& signals) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw_error("socketpair");
    const pid_t parent = getpid();
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(0);
      signals.restore();
      close(ends[0]);
      serve(ends[1], work);
    }
    socket_ = ends[0];
    close(ends[1]);
    if (child_ < 0) {
      close(socket_);
      throw_error("fork");
    }
  }
  ~Worker() {
    close(socket_);
    if (child_ == 0) return;
    kill(child_, SIGKILL);
    await_end();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int socket() const { return socket_; }
  size_t job() const { return job_; }
  void begin(size_t job) {
    job_ = job;
    send_all(socket_, std::to_string(job) + "\n");
  }
  // Reads what has come. True: the job has an outcome; after a death the worker is of no more use.
  bool look(Outcome& outcome) {
    const bool is_there = receive_more(socket_, text_);
    if (take_line(text_, outcome.text)) return true;
    if (is_there) return false;
    outcome = {true, end_of(await_end())};
    child_ = 0;
    return true;
  }

 private:
  [[noreturn]] static void throw_error(const char* call) {
    throw std::runtime_error(std::string("a worker process cannot be started: ") + call + ": " + std::strerror(errno) +
                             "; give a smaller --jobs");
  }
  int await_end() const {
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  pid_t child_ = 0;
  int socket_ = -1;
  size_t job_ = 0;
  std::string text_;  // that came and is no whole line yet
};

class Pool {
 public:
  Pool(const std::vector<size_t>& jobs, const Work& work, const OnDone& on_done)
      : jobs_(jobs), work_(work), on_done_(on_done) {}

  void run(size_t workers) {
    while (workers_.size() < workers && next_ < jobs_.size()) add_worker();
    while (!workers_.empty()) {
      await_one();
      for (size_t i = workers_.size(); i-- > 0;)
        if (polled_[i].revents != 0) look_at(i);
      SignalsWhileWaiting::expect_none();  // Ctrl-C ends the processes, too, perhaps the last one
    }
  }

 private:
  void add_worker() {
    workers_.push_back(std::make_unique<Worker>(work_, signals_));
    workers_.back()->begin(jobs_[next_++]);
  }
  void await_one() {
    polled_.clear();
    for (const auto& worker : workers_) polled_.push_back({worker->socket(), POLLIN, 0});
    while (ppoll(polled_.data(), polled_.size(), nullptr, signals_.mask()) < 0) {
      if (g_signal != 0) throw Interrupted(g_signal);
      if (errno != EINTR) throw std::runtime_error(std::string("ppoll: ") + std::strerror(errno));
    }
  }
  void look_at(size_t i) {
    Outcome outcome;
    if (!workers_[i]->look(outcome)) return;
    if (!on_done_(workers_[i]->job(), outcome)) next_ = jobs_.size();
    if (next_ < jobs_.size() && !outcome.has_died) return workers_[i]->begin(jobs_[next_++]);
    workers_.erase(workers_.begin() + static_cast<ptrdiff_t>(i));
    if (next_ < jobs_.size()) add_worker();
  }

  const std::vector<size_t>& jobs_;
  const Work& work_;
  const OnDone& on_done_;
  const SignalsWhileWaiting signals_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<pollfd> polled_;
  size_t next_ = 0;
};

}  // namespace

void run_in_workers(const std::vector<size_t>& jobs, size_t workers, const Work& work, const OnDone& on_done) {
  Pool(jobs, work, on_done).run(std::max<size_t>(workers, 1));
}

}  // namespace ub::emu
