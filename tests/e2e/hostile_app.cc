// SPDX-License-Identifier: Apache-2.0
//
// Applications that misbehave at a daemon, one at a time, for isolation.py:
//
//   hostile_app CASE --socket PATH [--seconds S] [--seed N] [--to ADDRESS]
//
// Each goes on for S seconds, attaching again when the daemon has thrown it out, and ends with 0; 1 and a sentence if
// the daemon let it do what it may not. What the daemon says to it goes to the standard output.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "tests/e2e/raw_app.h"

namespace {

using namespace ub;
using namespace ub::hostile;

std::string path, address;
double seconds = 1.0;
std::mt19937_64 dice;

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
double end_at;
bool goes_on() { return now() < end_at; }

[[noreturn]] void accuse(const char* sentence) {
  std::printf("hostile_app: %s\n", sentence);
  std::fflush(stdout);
  _exit(1);
}

// What the daemon said, each sentence once.
void say(const RawApp& app, const char* what) {
  static std::set<std::string> said;
  if (app.answer.text[0] == 0 || !said.insert(app.answer.text).second) return;
  std::printf("%s: %s\n", what, app.answer.text);
}

uint32_t random(uint32_t below) { return static_cast<uint32_t>(dice() % below); }

// Attached, with queues; null: not now.
struct Nic {
  RawApp app{path};
  RawApp::Queues q;
  uint32_t posted = 0;
};
std::unique_ptr<Nic> make_nic(uint32_t slots = 256, uint32_t depth = 256) {
  auto nic = std::make_unique<Nic>();
  if (nic->app.attach() && nic->app.make(&nic->q, slots, depth)) return nic;
  say(nic->app, "not attached");
  usleep(10'000);
  return nullptr;
}

// As an application should, and so little that nobody notices: a small request to itself now and then.
void work(Nic& nic) {
  RawApp::Queues& q = nic.q;
  q.cq->consumed.store(q.cq->produced.load());
  if (nic.posted != q.sq->retired.load()) return;
  nic.app.post(q, nic.posted++, WrOp::kWrite, q.target, RawApp::kVa, q.token, 1 + random(256));
}

// ---- at the socket ---------------------------------------------------------------------------------------------

// A socket that would keep whoever closes it last waiting, and more descriptors than a message may have.
void send_with_descriptors(RawApp& app, const ipc::AppRequest& r) {
  int fds[200], n = 0;
  static ipc::Fd listener(socket(AF_INET, SOCK_STREAM, 0));  // never accepts, and stays
  sockaddr any{AF_INET, {}};
  socklen_t size = sizeof any;
  ipc::Fd tcp(socket(AF_INET, SOCK_STREAM, 0));
  linger wait{1, 30};
  if (listen(listener.get(), 100) == 0 && getsockname(listener.get(), &any, &size) == 0 &&
      connect(tcp.get(), &any, size) == 0) {
    setsockopt(tcp.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
    const std::string much(1 << 20, 'x');
    while (send(tcp.get(), much.data(), much.size(), MSG_DONTWAIT) > 0) {
    }
  }
  const int count = 1 + static_cast<int>(random(200));
  while (n < count) fds[n++] = tcp.get();
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  iovec iov{const_cast<ipc::AppRequest*>(&r), sizeof r};
  msghdr msg{};
  msg.msg_iov = &iov;
  msg.msg_iovlen = 1;
  msg.msg_control = control;
  msg.msg_controllen = CMSG_SPACE(static_cast<size_t>(n) * sizeof(int));
  cmsghdr* c = CMSG_FIRSTHDR(&msg);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(static_cast<size_t>(n) * sizeof(int));
  std::memcpy(CMSG_DATA(c), fds, static_cast<size_t>(n) * sizeof(int));
  sendmsg(app.socket.get(), &msg, MSG_NOSIGNAL);
  usleep(1000);
}

void rubbish() {
  for (uint32_t kind = 0; goes_on(); ++kind) {
    RawApp app(path);
    if (!app.connect()) continue;
    auto hello = request(AppCall::kHello);
    unsigned char bytes[3 * sizeof hello];
    for (unsigned char& b : bytes) b = static_cast<unsigned char>(dice());
    switch (kind % 8) {
      case 0:  // random
        app.send(bytes, 1 + random(sizeof bytes));
        break;
      case 1:  // half a hello
        app.send(&hello, 1 + random(sizeof hello - 1));
        break;
      case 2:  // too long
        std::memcpy(bytes, &hello, sizeof hello);
        app.send(bytes, sizeof hello + 1 + random(sizeof hello));
        break;
      case 3:  // another version
        hello.head.version += 1 + random(100);
        app.send(&hello, sizeof hello);
        break;
      case 4:  // a request before its hello, or without a number
        hello.call = static_cast<AppCall>(random(100));
        hello.number = hello.call == AppCall::kHello ? 0 : 1;
        app.send(&hello, sizeof hello);
        break;
      case 5:  // another length than it says
        hello.head.bytes = random(1000);
        app.send(&hello, sizeof hello);
        break;
      case 6:  // twice
        app.send(&hello, sizeof hello);
        app.send(&hello, sizeof hello);
        app.receive();
        break;
      default:
        send_with_descriptors(app, hello);
        continue;
    }
    // What was no hello must be refused, soon.
    while (app.receive(3000)) {
      if (kind % 8 != 6 && app.ok()) accuse("rubbish was taken for a hello");
    }
    pollfd entry{app.socket.get(), POLLIN, 0};
    if (poll(&entry, 1, 3000) != 1) accuse("rubbish, and the daemon does not hang up");
    say(app, "refused");
  }
}

// Connections that say nothing.
void silent() {
  std::deque<RawApp> all;
  for (int n = 0; n < 1000; ++n) {
    all.emplace_back(path);
    if (!all.back().connect()) all.pop_back();
  }
  std::printf("%zu connections\n", all.size());
  std::fflush(stdout);
  while (goes_on()) usleep(10'000);
}

// Requests by the hundred thousand, mostly plausible.
void requests() {
  uint64_t sent = 0;
  while (goes_on()) {
    auto nic = make_nic();
    if (nic == nullptr) continue;
    RawApp& app = nic->app;
    std::vector<uint32_t> ids{
        0, 1, nic->q.area, nic->q.jfc, nic->q.jfr, nic->q.jetty, nic->q.token, nic->q.segment, nic->q.target};
    auto pick = [&ids] { return random(8) == 0 ? static_cast<uint32_t>(dice()) : ids[dice() % ids.size()]; };
    for (; goes_on(); ++sent) {
      auto r = request(static_cast<AppCall>(2 + random(25)));
      r.id = pick();
      r.value = pick();
      r.bytes = random(4) == 0 ? dice() : 4096 * random(64);
      if (r.call == AppCall::kRegisterSegment) {
        r.segment.area = random(2) == 0 ? 0 : nic->q.area;
        r.segment.memory = r.segment.address = r.segment.local_address = random(2) == 0 ? dice() : 4096 * random(4096);
        r.segment.length = random(2) == 0 ? 4096 : dice();
        r.segment.token_id = pick();
        r.segment.access = static_cast<uint8_t>(dice());
      } else if (r.call == AppCall::kAddTarget) {
        r.target.local_eid = r.target.eid = app.instance.eids[0];
        if (random(4) == 0) r.target.eid[15] = static_cast<uint8_t>(dice());
        r.target.uasid = random(2) == 0 ? app.instance.uasid : static_cast<uint32_t>(dice());
        r.target.id = pick();
        r.target.kind = static_cast<uint8_t>(random(6));
        r.target.mode = static_cast<uint8_t>(random(5));
      } else {
        r.queue.ring = {random(2) == 0 ? nic->q.area : pick(), 1u << random(12), 64ull * random(1024)};
        r.queue.depth = random(4) == 0 ? static_cast<uint32_t>(dice()) : r.queue.ring.slot_count;
        r.queue.jfc = pick();
        r.queue.jfr = pick();
        r.queue.group = random(2) == 0 ? 0 : pick();
        r.queue.recv_jfc = pick();
        r.queue.kind = static_cast<uint8_t>(random(6));
        r.queue.mode = static_cast<uint8_t>(1 + random(2));
        r.queue.wanted_id = random(2) == 0 ? 0 : pick();
      }
      if (!app.call(r)) break;
      if (app.ok() && ids.size() < 4096) {
        ids.push_back(r.call == AppCall::kRegisterSegment ? app.answer.segment.handle : app.answer.id);
      }
    }
    say(app, "last");
  }
  std::printf("%llu requests\n", static_cast<unsigned long long>(sent));
}

// Asks and never listens.
void mute() {
  while (goes_on()) {
    RawApp app(path);
    if (!app.attach()) continue;
    auto r = request(AppCall::kCounters);
    while (goes_on() && ipc::send_message(app.socket.get(), {reinterpret_cast<const std::byte*>(&r), sizeof r}, {}) !=
                            ipc::SocketStatus::kClosed) {
    }
  }
}

// ---- in shared memory ------------------------------------------------------------------------------------------

void scribble_on(ipc::Mapping& memory, std::mt19937_64& random_words) {
  auto* words = reinterpret_cast<std::atomic<uint64_t>*>(memory.data());
  const size_t count = memory.bytes() / sizeof(uint64_t);
  const size_t near = std::min<size_t>(count, 1024);  // where flags, indices and first elements are
  for (int n = 0; n < 64; ++n) {
    const uint64_t value = random_words();
    words[random_words() % (value & 1 ? near : count)].store(value & 2 ? value : random_words() % 64);
  }
}

// All over, from one thread; the other one posts and sends requests.
void scribble() {
  while (goes_on()) {
    auto nic = make_nic();
    if (nic == nullptr) continue;
    std::atomic<bool> stop{false};
    const uint64_t seed = dice();
    std::thread other([&] {
      std::mt19937_64 words(seed);
      while (!stop) {
        scribble_on(nic->app.page_map, words);
        scribble_on(nic->app.areas.front().second, words);
      }
    });
    for (int n = 0; n < 2000 && goes_on(); ++n) {
      work(*nic);
      if (!nic->app.call(AppCall::kGetState, nic->q.jetty)) break;
      if (n % 100 == 0) nic->app.call(AppCall::kSetState, nic->q.jetty, 1 + static_cast<uint32_t>(n) / 100 % 3);
    }
    stop = true;
    other.join();
    say(nic->app, "last");
  }
}

bool punch(int fd) { return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, lseek(fd, 0, SEEK_END)) == 0; }

// Takes the memory away, as far as it goes: what the daemon uses has neither another size nor holes. What it does not
// use yet may have them.
void memfd() {
  while (goes_on()) {
    auto nic = make_nic();
    if (nic == nullptr) continue;
    const int fds[] = {nic->app.page_fd.get(), nic->app.area_fds.front().get()};
    for (int n = 0; n < 1000 && goes_on(); ++n) {
      const int fd = fds[n % 2];
      const off_t bytes = lseek(fd, 0, SEEK_END);
      if (ftruncate(fd, 0) == 0 || ftruncate(fd, bytes * 2) == 0) accuse("shared memory changed its size");
      if (punch(fd)) accuse("a hole in memory that the daemon uses");
      fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE);
      work(*nic);
    }
    RawApp early(path);
    early.seals = false;
    if (!early.attach()) continue;
    for (int n = 0; n < 5000 && goes_on(); ++n) punch(early.page_fd.get());
    if (early.call(AppCall::kCounters)) accuse("a page that is not sealed");
    RawApp later(path);
    if (!later.attach()) continue;
    later.seals = false;
    if (later.new_area(1 << 20)) accuse("an area that is not sealed");
    if (!punch(later.area_fds.back().get())) accuse("no hole can be made: the test does nothing");
  }
}

// Indices that jump, and elements that are none.
void indices() {
  while (goes_on()) {
    auto nic = make_nic(4096, 64);
    if (nic == nullptr) continue;
    RawApp::Queues& q = nic->q;
    for (int n = 0; n < 50 && goes_on(); ++n) {
      QueueIndices* all[] = {q.cq, q.rq, q.sq};
      QueueIndices* one = all[random(3)];
      const uint32_t jump = random(2) == 0 ? 1u << random(32) : static_cast<uint32_t>(dice());
      (random(2) == 0 ? one->produced : one->consumed).fetch_add(jump);
      one->retired.fetch_add(jump);
      one->armed.store(random(4));
      q.elements[random(q.slots)].slots = static_cast<uint8_t>(dice());
      nic->app.ring(q.bell);
      nic->app.page().attention.set(q.jfc_bell);
      ipc::AppPage& page = nic->app.page();
      page.events_consumed.fetch_add(jump);
      if (random(8) == 0) page.ops_consumed.fetch_add(jump);
      usleep(100);
      uint32_t state = 0;
      if (nic->app.call(AppCall::kGetState, q.jetty)) state = nic->app.answer.value;
      if (state == 3) nic->app.call(AppCall::kSetState, q.jetty, 0), nic->app.call(AppCall::kSetState, q.jetty, 1);
    }
  }
}

// All of them, all the time.
void bells() {
  auto nic = make_nic();
  if (nic == nullptr) return;
  for (uint32_t n = 0; goes_on();) {
    for (int k = 0; k < 65536; ++k, ++n) {
      nic->app.page().posted.set(n % ipc::kAppBells);
      nic->app.page().attention.set(n % ipc::kAppBells);
    }
    nic->app.ring_daemon();
  }
}

// As many queues as it may have, with one bit each, and nothing in them.
void empty_queues() {
  auto nic = make_nic();
  if (nic == nullptr) return;
  std::deque<RawApp::Queues> many;
  for (int n = 0; n < 500 && goes_on(); ++n) {
    many.emplace_back();
    if (!nic->app.make(&many.back(), 16, 16)) break;
  }
  while (goes_on()) {
    for (const auto& q : many) {
      nic->app.page().posted.set(q.bell);
      nic->app.page().attention.set(q.jfc_bell);
    }
    nic->app.ring_daemon();
  }
}

// A long queue of requests that do nothing, posted at once, again and again.
void nothing() {
  auto nic = make_nic(1 << 16, 16384);
  if (nic == nullptr) return;
  RawApp::Queues& q = nic->q;
  for (uint32_t n = 0; n < q.slots; ++n) {
    q.elements[n].op = n % 4 == 0 ? WrOp::kNop : WrOp::kSkip;
    q.elements[n].slots = 1;
  }
  while (goes_on()) {
    q.cq->consumed.store(q.cq->produced.load());
    q.sq->produced.store(q.sq->consumed.load() + q.slots);
    nic->app.ring(q.bell);
    nic->app.page().attention.set(q.jfc_bell);
  }
}

// The longest ring that it gets, all of it posted at once.
void long_ring() {
  while (goes_on()) {
    std::unique_ptr<Nic> nic;
    for (uint32_t slots = 1u << 24; nic == nullptr && slots >= 1u << 8; slots /= 2) nic = make_nic(slots, 16);
    if (nic == nullptr) continue;
    std::printf("%u slots\n", nic->q.slots);
    nic->q.elements[0].op = WrOp::kSkip;
    nic->q.elements[0].slots = 1;
    nic->q.sq->produced.store(nic->q.slots);
    nic->app.ring(nic->q.bell);
    usleep(20'000);
  }
}

// ---- doorbells -------------------------------------------------------------------------------------------------

void full_eventfd() {
  auto nic = make_nic();
  if (nic == nullptr) return;
  const int bell = nic->app.daemon_bell.get();
  const uint64_t most = UINT64_MAX - 1;
  [[maybe_unused]] ssize_t n = write(bell, &most, sizeof most);
  fcntl(bell, F_SETFL, fcntl(bell, F_GETFL) & ~O_NONBLOCK);
  fcntl(nic->app.app_bell.get(), F_SETFL, fcntl(nic->app.app_bell.get(), F_GETFL) & ~O_NONBLOCK);
  while (goes_on()) {
    nic->app.page().app_sleeps.store(1);
    nic->app.page().posted.set(nic->q.bell);
    work(*nic);
    usleep(50);
  }
}

// Wants to be woken for everything and never reads it, or has closed its end. One page per round, so that there are
// events.
void deaf() {
  for (uint32_t round = 0; goes_on(); ++round) {
    auto nic = make_nic();
    if (nic == nullptr) continue;
    char bytes[4096] = {};
    if (round % 3 == 0) nic->app.app_bell.reset();
    if (round % 3 == 1) shutdown(nic->app.app_bell.get(), SHUT_RDWR);
    while (round % 3 == 2 && send(nic->app.app_bell.get(), bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    for (int n = 0; n < 5000 && goes_on(); ++n) {
      nic->app.page().app_sleeps.store(1);
      nic->q.cq->armed.store(2);
      nic->app.page().attention.set(nic->q.jfc_bell);
      work(*nic);
    }
  }
}

// Wakes the daemon as often as it can.
void ring_all() {
  std::deque<RawApp> all;
  for (int n = 0; n < 40; ++n) {
    all.emplace_back(path);
    if (!all.back().attach()) all.pop_back();
  }
  while (goes_on()) {
    for (RawApp& app : all) app.ring_daemon();
  }
}

// ---- by number -------------------------------------------------------------------------------------------------

// Of everything as much as it gets.
void greedy() {
  auto nic = make_nic(16, 16);
  if (nic == nullptr) return;
  RawApp& app = nic->app;
  const AppCall calls[] = {AppCall::kAllocToken, AppCall::kCreateJfc,       AppCall::kCreateJfr, AppCall::kCreateJetty,
                           AppCall::kAddTarget,  AppCall::kRegisterSegment, AppCall::kAddArea};
  for (AppCall which : calls) {
    uint64_t made = 0;
    for (; goes_on(); ++made) {
      auto r = request(which);
      r.bytes = uint64_t{64} << 20;
      if (which == AppCall::kRegisterSegment) {
        r.segment.token_id = nic->q.token;
        r.segment.memory = r.segment.address = r.segment.local_address = 0x40000000 + made * 4096;
        r.segment.length = 4096;
        r.segment.access = kAccessAll;
      } else if (which == AppCall::kAddTarget) {
        r.target.local_eid = r.target.eid = app.instance.eids[0];
        r.target.uasid = app.instance.uasid;
        r.target.id = static_cast<uint32_t>(made);
        r.target.kind = kJettyKind;
        r.target.mode = kModeRm;
      } else {
        r.queue.ring = {nic->q.area, 16, 0};
        r.queue.depth = 16;
        r.queue.jfc = nic->q.jfc;
        r.queue.jfr = nic->q.jfr;
        r.queue.kind = kJettyKind;
        r.queue.mode = kModeRm;
        r.queue.min_rnr_timer = 1;
      }
      if (!app.call(r)) accuse("thrown out for asking too much");
      if (!app.ok()) break;
    }
    std::printf("call %u: %llu, then: %s\n", static_cast<uint32_t>(which), static_cast<unsigned long long>(made),
                app.answer.text);
    if (goes_on() && app.answer.text[0] == 0) accuse("refused without a sentence");
    std::fflush(stdout);
  }
  if (!goes_on()) std::printf("not through in time\n");
}

// Attaches and leaves, in one process after the other.
void attach() {
  for (int n = 0; n < 1000 && goes_on(); ++n) {
    pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      auto nic = make_nic();
      if (nic != nullptr && n % 2 == 0) work(*nic);
      if (n % 3 == 0) raise(SIGKILL);
      _exit(nic == nullptr);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) != 0) {
      std::printf("attach %d was refused\n", n);
    }
  }
}

// Many that are there and do nothing but touch their pages.
void crowd() {
  std::deque<RawApp> all;
  for (int n = 0; n < 200; ++n) {
    all.emplace_back(path);
    if (!all.back().attach()) all.pop_back();
  }
  std::printf("%zu applications\n", all.size());
  while (goes_on()) {
    for (RawApp& app : all) app.page().posted.set(1);
  }
}

// ---- with an accomplice at another daemon ----------------------------------------------------------------------

// Offers memory of its own and prints where it is, for `writer`.
std::unique_ptr<Nic> offer_memory() {
  auto nic = make_nic();
  if (nic == nullptr) return nic;
  const ipc::AppInstance& i = nic->app.instance;
  std::printf("address %u %u %u ", i.uasid, nic->q.jetty, nic->q.token);
  for (uint8_t byte : i.eids[0]) std::printf("%02x", byte);
  std::printf("\n");
  std::fflush(stdout);
  return nic;
}

// Serves `most` operations now and then.
void serve_slowly(uint32_t most) {
  auto nic = offer_memory();
  if (nic == nullptr) return;
  ipc::AppPage& page = nic->app.page();
  while (goes_on()) {
    usleep(100'000);
    for (uint32_t n = 0; n < most && page.ops_consumed.load() != page.ops_produced.load(); ++n) {
      page.ops[page.ops_consumed.load() % ipc::kAgentOps].done_ok = 1;
      page.ops_consumed.fetch_add(1);
    }
    if (ipc::must_ring(page.worker_sleeps)) nic->app.ring_daemon();
  }
}

void slow() { serve_slowly(1); }
void lazy() { serve_slowly(ipc::kAgentOps); }

// Has better things to do with its CPU. With the lowest priority beside others that burn, it looks starved.
void spin() {
  auto nic = offer_memory();
  while (goes_on()) {
  }
}

struct Accomplice {
  uint32_t target = 0;
  unsigned token = 0;
};
Accomplice find_accomplice(Nic& nic) {
  Accomplice a;
  unsigned uasid, jetty, byte;
  int at = 0;
  std::array<uint8_t, 16> eid;
  if (std::sscanf(address.c_str(), "%u %u %u %n", &uasid, &jetty, &a.token, &at) != 3) accuse("no address");
  for (size_t n = 0; n < eid.size() && std::sscanf(address.c_str() + at + 2 * n, "%2x", &byte) == 1; ++n) {
    eid[n] = static_cast<uint8_t>(byte);
  }
  if (!nic.app.add_target(uasid, eid, jetty, &a.target)) accuse("the accomplice finds nobody");
  return a;
}

// Writes there, all the time.
void writer() {
  auto nic = make_nic();
  if (nic == nullptr) return;
  const Accomplice to = find_accomplice(*nic);
  RawApp::Queues& q = nic->q;
  while (goes_on()) {
    q.cq->consumed.store(q.cq->produced.load());
    while (nic->posted - q.sq->retired.load() < 64) {
      nic->app.post(q, nic->posted++, WrOp::kWrite, to.target, RawApp::kForeignVa, to.token, 65536);
    }
    usleep(200);
  }
  std::printf("%u requests ended\n", q.sq->retired.load());
}

// Sends from memory that only its agent reaches, leaves all copies undone, and is another application before the
// daemon's patience is over: four at a time, to the accomplice and to themselves.
void restless() {
  while (goes_on()) {
    std::unique_ptr<Nic> nics[4];
    for (auto& nic : nics) {
      if ((nic = make_nic()) == nullptr) continue;
      const Accomplice to = find_accomplice(*nic);
      RawApp::Queues& q = nic->q;
      for (; nic->posted < 16; ++nic->posted) {
        const bool there = nic->posted % 2 == 0;
        nic->app.post(q, nic->posted, WrOp::kWrite, there ? to.target : q.target, RawApp::kVa,
                      there ? to.token : q.token, 4096, true);
      }
    }
    usleep(50'000 + random(150'000));
  }
}

// Takes the CPU of a hostile application and leaves the daemon alone.
void burn() {
  while (goes_on()) {
  }
}

// The same, and has one request under way all the time, as anybody may.
void modest() {
  auto nic = make_nic();
  if (nic == nullptr) return;
  while (goes_on()) work(*nic);
}

struct Case {
  const char* name;
  void (*run)();
};
constexpr Case kCases[] = {
    {"rubbish", rubbish}, {"silent", silent},       {"requests", requests},
    {"mute", mute},       {"scribble", scribble},   {"memfd", memfd},
    {"indices", indices}, {"bells", bells},         {"empty_queues", empty_queues},
    {"nothing", nothing}, {"long_ring", long_ring}, {"full_eventfd", full_eventfd},
    {"deaf", deaf},       {"ring_all", ring_all},   {"greedy", greedy},
    {"attach", attach},   {"crowd", crowd},         {"slow", slow},
    {"lazy", lazy},       {"spin", spin},           {"writer", writer},
    {"burn", burn},       {"modest", modest},       {"restless", restless},
};

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  uint64_t seed = 1;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--socket") path = value;
    if (option == "--seconds") seconds = std::stod(value);
    if (option == "--seed") seed = std::stoull(value);
    if (option == "--to") address = value;
  }
  for (const Case& c : kCases) {
    if (argc < 2 || std::string(argv[1]) != c.name) continue;
    dice.seed(seed);
    end_at = now() + seconds;
    c.run();
    return 0;
  }
  std::fprintf(stderr, "usage: hostile_app CASE --socket PATH [--seconds S] [--seed N] [--to ADDRESS]\n");
  return 2;
}
