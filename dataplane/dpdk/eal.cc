// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/eal.h"

#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace ub::dpdk {
namespace {

// Lives for ever: DPDK's own threads may look at what was set up on this one.
struct EalThread {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> work;
  bool running = false;
  bool started = false;

  void run(const std::function<void()>& fn) {
    std::unique_lock lock(mutex);
    if (!running) launch();
    changed.wait(lock, [&] { return !work; });
    work = fn;
    changed.notify_all();
    changed.wait(lock, [&] { return !work; });
  }

  void launch() {
    running = true;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    std::thread thread([this] { serve(); });
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    pthread_setname_np(thread.native_handle(), "softub-eal");
    thread.detach();
  }

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return static_cast<bool>(work); });
      work();
      work = nullptr;
      changed.notify_all();
    }
  }
};

EalThread& eal_thread() {
  static EalThread* const thread = new EalThread;
  return *thread;
}

bool given(const std::vector<std::string>& arguments, const char* name) {
  for (const std::string& a : arguments)
    if (a == name || a.rfind(std::string(name) + "=", 0) == 0) return true;
  return false;
}

// What an ordinary user needs, unless he says otherwise.
std::vector<std::string> complete(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"softub"};
  bool memory_given = given(arguments, "--no-huge") || given(arguments, "--in-memory") ||
                      given(arguments, "--huge-dir") || given(arguments, "--socket-mem");
  if (!memory_given) all.insert(all.end(), {"--no-huge", "-m", "256"});
  if (!given(arguments, "--file-prefix")) all.push_back("--file-prefix=softub-" + std::to_string(getpid()));
  if (!given(arguments, "--telemetry")) all.push_back("--no-telemetry");
  if (!given(arguments, "--log-level")) all.push_back("--log-level=lib.*:error");
  if (!given(arguments, "-a") && !given(arguments, "--allow")) all.push_back("--no-pci");
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

// rte_eal_init takes the affinity of its thread as the set of lcores and pins itself to one of them: we let it have
// all CPUs, on its own thread.
int init(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = complete(arguments);
  std::vector<char*> argv;
  for (std::string& a : all) argv.push_back(a.data());
  argv.push_back(nullptr);
  return rte_eal_init(static_cast<int>(all.size()), argv.data());
}

}  // namespace

std::string error_text(int error) { return rte_strerror(error < 0 ? -error : error); }

bool start_eal(const std::vector<std::string>& arguments, std::string* error) {
  EalThread& thread = eal_thread();
  bool ok = true;
  thread.run([&] {
    if (thread.started) return;
    if (rte_eal_process_type() == RTE_PROC_SECONDARY) {
      *error = "DPDK runs as a secondary process here, which cannot own a port";
      ok = false;
      return;
    }
    if (init(arguments) < 0 && rte_errno != EALREADY) {
      *error = "DPDK does not start: " + error_text(rte_errno) +
               "; see its lines in the log, and dpdk.arguments for --file-prefix and memory";
      ok = false;
      return;
    }
    thread.started = true;
  });
  return ok;
}

void on_eal_thread(const std::function<void()>& fn) { eal_thread().run(fn); }

}  // namespace ub::dpdk
