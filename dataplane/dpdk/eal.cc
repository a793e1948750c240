// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/eal.h"

#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "dataplane/dpdk/dpdk_log.h"

namespace ub::dpdk {
namespace {

// Lives for ever: DPDK's own threads may look at what was set up on this one.
struct EalThread {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> work;
  bool running = false;
  bool started = false;
  std::vector<std::string> arguments;  // it was started with
  std::string failure;                 // why it was not: there is no second try

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
    if (a == name || a.starts_with(std::string(name) + "=")) return true;
  return false;
}

// What an ordinary user needs, unless he says otherwise.
std::vector<std::string> complete(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"softub"};
  bool memory_given = given(arguments, "--no-huge") || given(arguments, "--in-memory") ||
                      given(arguments, "--huge-dir") || given(arguments, "--socket-mem");
  if (!memory_given) all.insert(all.end(), {"--no-huge", "-m", "256", "--no-shconf"});  // leaves no files behind
  if (!given(arguments, "--file-prefix")) all.push_back("--file-prefix=softub-" + std::to_string(getpid()));
  if (!given(arguments, "--telemetry")) all.push_back("--no-telemetry");
  if (!given(arguments, "--log-level")) all.push_back("--log-level=lib.*:error");
  // No device is taken at the start, but any may be added later: only one that no driver wants is on the list.
  if (!given(arguments, "-a") && !given(arguments, "--allow") && !given(arguments, "--no-pci")) {
    all.insert(all.end(), {"-a", "0000:00:00.0"});
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

// The first of the arguments that rte_eal_init would not come back from.
std::string unusable(const std::vector<std::string>& arguments) {
  for (const std::string& a : arguments) {
    if (a == "-h" || a == "--help" || a == "-v" || a == "--version") return a;
    if (a.starts_with("--proc-type") && a != "--proc-type=primary") return a;
  }
  return "";
}

// rte_eal_init takes the affinity of its thread as the set of lcores and pins itself to one of them: we let it have
// all CPUs, on its own thread.
bool init(const std::vector<std::string>& arguments, std::string* error) {
  if (std::string a = unusable(arguments); !a.empty()) {
    *error = "dpdk.arguments has " + a + ", which cannot be used here: the port needs DPDK's primary process, and " +
             "what prints and ends would end the program";
    return false;
  }
  std::vector<std::string> all = complete(arguments);
  std::vector<char*> argv;
  for (std::string& a : all) argv.push_back(a.data());
  argv.push_back(nullptr);
  LogCapture log(arguments);
  if (rte_eal_init(static_cast<int>(all.size()), argv.data()) >= 0) return true;
  *error =
      "DPDK does not start (" + error_text(rte_errno) + "); check dpdk.arguments: memory, --file-prefix" + log.text();
  return false;
}

// Nobody but rte_eal_init finds lcores.
bool application_started_it() { return rte_lcore_count() != 0; }

bool start(EalThread& thread, const std::vector<std::string>& arguments, const Notice& notice, std::string* error) {
  *error = thread.failure;
  if (!error->empty()) return false;
  if (!thread.started && !application_started_it()) {
    thread.arguments = arguments;
    if (!init(arguments, error)) {
      thread.failure = *error;
      return false;
    }
  } else if (!arguments.empty() && arguments != thread.arguments && notice) {
    notice("DPDK runs in this process already: dpdk.arguments has no effect");
  }
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    *error = thread.failure =
        "DPDK runs as a secondary process here, which cannot own a port; start it as a primary one";
    return false;
  }
  thread.started = true;
  return true;
}

}  // namespace

std::string error_text(int error) { return rte_strerror(error < 0 ? -error : error); }

bool start_eal(const std::vector<std::string>& arguments, const Notice& notice, std::string* error) {
  EalThread& thread = eal_thread();
  bool ok = false;
  thread.run([&] { ok = start(thread, arguments, notice, error); });
  return ok;
}

void on_eal_thread(const std::function<void()>& fn) { eal_thread().run(fn); }

}  // namespace ub::dpdk
