// SPDX-License-Identifier: Apache-2.0
//
// far_lock: clients add to a number in the memory of a server, by load and store under a lock in the same memory, and
// between barriers there; nothing may be lost.
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "apps/aperture/locks.h"
#include "apps/aperture/program.h"
#include "tools/common/tool_error.h"

namespace {

using namespace ub::apps;
using ub::tools::ToolError;

struct Options {
  uint64_t clients = 1;
  uint64_t times = 1000;
  std::string lock = "ticket";
};

// What lies in the server's memory: each on a line of its own.
enum Line : uint64_t { kClientNumber, kNextTicket, kServed, kOwner, kArrived, kSense, kCount, kCheck };

class Trial {
 public:
  Trial(const Options& o, const Client& client)
      : o_(o),
        handle_(client.memory.segment()),
        me_(word(kClientNumber).fetch_add(1) + 1),
        barrier_(handle_, word(kArrived), word(kSense), o.clients) {}

  void run() {
    if (o_.lock == "ticket") {
      run(TicketLock(handle_, word(kNextTicket), word(kServed)));
    } else {
      run(CasLock(handle_, word(kOwner), me_));
    }
  }

 private:
  Word word(Line line) const { return Word(handle_, line * 64); }

  // Nobody adds before all have looked, and nobody looks before all have added.
  template <class Lock>
  void run(Lock lock) {
    barrier_.wait();
    const uint64_t before = word(kCount).load();
    barrier_.wait();
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < o_.times; ++i) {
      lock.lock();
      add_one();
      lock.unlock();
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    barrier_.wait();
    const uint64_t added = word(kCount).load() - before, expected = o_.clients * o_.times;
    barrier_.wait();
    if (added != expected) wrong(fmt::format("{} additions instead of {}", added, expected));
    fmt::print("client {}: {} clients added 1 {} times each under the {} lock: {} in all; {:.1f} us each here\n", me_,
               o_.clients, o_.times, o_.lock, added, time.count() * 1e6 / static_cast<double>(o_.times));
  }

  // Two numbers that only the lock keeps equal.
  void add_one() {
    const uint64_t count = word(kCount).load();
    if (word(kCheck).load() != count) wrong("somebody else is in the lock");
    word(kCount).store(count + 1);
    word(kCheck).store(count + 1);
  }
  [[noreturn]] static void wrong(const std::string& sentence) { throw ToolError(ub::tools::kExitWrongData, sentence); }

  const Options& o_;
  softub::far_handle handle_;
  uint64_t me_;
  Barrier barrier_;
};

}  // namespace

int main(int argc, char** argv) {
  Options o;
  Program program;
  program.name = "far_lock";
  program.purpose = "a lock and a barrier in the memory of a server that does nothing";
  program.port = 18522;
  program.bytes = 4096;
  program.footer = R"(Examples:
  far_lock                                     the server
  far_lock localhost --clients 2 & far_lock localhost --clients 2
  far_lock localhost --lock cas --times 10000
  far_lock --loopback
All clients need the same --clients and --lock. One that is killed leaves the lock or the barrier as it was: then start
the server again.)";
  program.add_options = [&o](CLI::App& app) {
    app.add_option("--clients", o.clients, "how many clients work at the same time")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--times", o.times, "additions of each")->check(CLI::Range(1, 1 << 30))->capture_default_str();
    app.add_option("--lock", o.lock, "ticket or cas")->check(CLI::IsMember({"ticket", "cas"}))->capture_default_str();
  };
  program.run = [&o](const Client& client) { Trial(o, client).run(); };
  return run_program(program, argc, argv);
}
