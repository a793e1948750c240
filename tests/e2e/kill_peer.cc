// SPDX-License-Identifier: Apache-2.0
//
// A peer is killed under load. Three processes, all of them this program: A (the test) has WRITEs, READs and
// SENDs under way with B and with C. B is killed at a random moment. Then
//   - every request of A to B ends within 5 s, with success (it was done before) or ACK_TIMEOUT, in a daemon also
//     REM_ACCESS_ABORT;
//   - nothing that A does with C fails, not even on a jetty that serves both;
//   - a new B is reached by its new ids, and its memory holds what A wrote.
// Repeated; the wire is chosen by the environment (SOFTUB_PORT_KINDS), which can differ for A, B and C.
//
//   kill_peer [--rounds N] [--seed N] [--verbose] [--slow-wire] [--set A|B|C NAME=VALUE]...
//
// --slow-wire: the wire to a new B may take longer to come back than a request waits.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <softub_api.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <urma_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr double kLimit = 5.0;       // seconds to the end of a request to a dead peer
constexpr double kStall = 2.0;       // traffic with the living must not pause for longer
constexpr size_t kMemory = 1 << 20;  // bytes that each process offers
constexpr uint32_t kReceiveBytes = 4096;
constexpr uint32_t kReceives = 256;
constexpr uint32_t kInFlight = 24;  // requests of a jetty
constexpr uint32_t kToken = 0x51eaf00d;

[[noreturn]] void die(const std::string& why) {
  fprintf(stderr, "kill_peer: %s\n", why.c_str());
  exit(1);
}

void need(bool condition, const char* what) {
  if (!condition) die(std::string(what) + ": " + strerror(errno));
}

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Seconds in which this process had no CPU, or too little: between one look at its queues and the next. They prove
// nothing about the NIC and are not held against it.
class StandStill {
 public:
  void look(double t) {
    if (t - last_ > kGap) seconds_ += t - last_;
    last_ = t;
  }
  double seconds() const { return seconds_; }

 private:
  static constexpr double kGap = 0.02;
  double last_ = now(), seconds_ = 0;
} stand_still;

void rest(double seconds) {
  timespec t{0, static_cast<long>(seconds * 1e9)};
  nanosleep(&t, nullptr);
}

// ---- what all three have ----------------------------------------------------------------------------------

struct Nic {
  urma_context_t* context = nullptr;
  urma_target_seg_t* segment = nullptr;
  std::vector<char> memory = std::vector<char>(kMemory);

  Nic() {
    need(urma_init(nullptr) == URMA_SUCCESS, "urma_init");
    int count = 0;
    urma_device_t** devices = urma_get_device_list(&count);
    need(count > 0, "a device");
    context = urma_create_context(devices[0], 0);
    need(context != nullptr, "urma_create_context");
    urma_free_device_list(devices);
    urma_seg_cfg_t cfg = {};
    cfg.va = reinterpret_cast<uint64_t>(memory.data());
    cfg.len = kMemory;
    cfg.token_value.token = kToken;
    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
    segment = urma_register_seg(context, &cfg);
    need(segment != nullptr, "urma_register_seg");
  }
};

struct Queues {
  urma_jfc_t* jfc = nullptr;
  urma_jfr_t* jfr = nullptr;
  urma_jetty_t* jetty = nullptr;

  explicit Queues(Nic& nic) {
    urma_jfc_cfg_t jfc_cfg = {};
    jfc_cfg.depth = kInFlight + kReceives + 4;
    need((jfc = urma_create_jfc(nic.context, &jfc_cfg)) != nullptr, "urma_create_jfc");
    urma_jfr_cfg_t jfr_cfg = {};
    jfr_cfg.depth = kReceives;
    jfr_cfg.trans_mode = URMA_TM_RM;
    jfr_cfg.min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER;
    jfr_cfg.jfc = jfc;
    need((jfr = urma_create_jfr(nic.context, &jfr_cfg)) != nullptr, "urma_create_jfr");
    urma_jetty_cfg_t cfg = {};
    cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
    cfg.shared.jfr = jfr;
    cfg.jfs_cfg.depth = kInFlight;
    cfg.jfs_cfg.trans_mode = URMA_TM_RM;
    cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
    cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
    cfg.jfs_cfg.jfc = jfc;
    need((jetty = urma_create_jetty(nic.context, &cfg)) != nullptr, "urma_create_jetty");
  }
};

// What a peer tells about itself.
struct Address {
  urma_jetty_id_t jetty;
  urma_seg_t segment;
};

// ---- B and C ----------------------------------------------------------------------------------------------

void post_receive(Nic& nic, Queues& queues, uint64_t number) {
  // The last quarter of the memory takes SENDs; nobody looks at them.
  uint64_t at = nic.segment->seg.ubva.va + kMemory - kReceiveBytes * (1 + number % 64);
  need(urma_recv(queues.jfr, nic.segment, at, kReceiveBytes, number) == URMA_SUCCESS, "a receive");
}

// Serves until standard input ends.
int serve() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Nic nic;
  Queues queues(nic);
  for (uint32_t i = 0; i < kReceives; ++i) post_receive(nic, queues, i);
  Address address = {queues.jetty->jetty_id, nic.segment->seg};
  need(write(STDOUT_FILENO, &address, sizeof address) == sizeof address, "telling the address");
  urma_cr_t records[32];
  for (;;) {
    int n = urma_poll_jfc(queues.jfc, 32, records);
    need(n >= 0, "urma_poll_jfc");
    for (int i = 0; i < n; ++i) {
      // A's requests of an earlier life may end here with an error: the receive is used up, no more.
      post_receive(nic, queues, records[i].user_ctx);
    }
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (n == 0 && poll(&input, 1, 1) != 0) return urma_uninit() != URMA_SUCCESS;
  }
}

// Variables that one of the three alone gets.
std::vector<std::pair<std::string, std::string>> own_environment;

void take_environment_of(const std::string& who) {
  for (auto& [name, variable] : own_environment) {
    if (name == who) need(putenv(variable.data()) == 0, "putenv");
  }
}

struct Process {
  pid_t pid = -1;
  int input = -1;  // closed: it ends
  Address address = {};

  explicit Process(const char* name) {
    int to[2], from[2];
    need(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0, "pipe");
    pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      take_environment_of(name);
      execl("/proc/self/exe", "kill_peer", "--serve", name, nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    input = to[1];
    bool told = read(from[0], &address, sizeof address) == sizeof address;
    close(from[0]);
    if (!told) die(std::string("peer ") + name + " does not start");
  }
  void kill_now() {
    kill(pid, SIGKILL);
    close(input);
  }
  void reap() { waitpid(pid, nullptr, 0); }
  bool finish() {
    close(input);
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
};

// ---- A ----------------------------------------------------------------------------------------------------

// Nobody answers for a process that was its own NIC; a daemon says that the objects are gone.
bool ends_for_the_dead(urma_cr_status_t status) {
  const bool daemon = strcmp(softub_placement(), "daemon") == 0;
  return status == URMA_CR_ACK_TIMEOUT_ERR || (daemon && status == URMA_CR_REM_ACCESS_ABORT_ERR);
}

struct Remote {
  urma_target_jetty_t* target = nullptr;
  urma_target_seg_t* segment = nullptr;
  bool alive = true;
  double died = 0;
  double still_before = 0;  // of stand_still, when it died

  Remote(Nic& nic, const Address& address) {
    urma_rjetty_t jetty = {};
    jetty.jetty_id = address.jetty;
    jetty.trans_mode = URMA_TM_RM;
    jetty.type = URMA_JETTY;
    need((target = urma_import_jetty(nic.context, &jetty, nullptr)) != nullptr, "urma_import_jetty");
    urma_seg_t seg = address.segment;
    urma_token_t token = {kToken};
    urma_import_seg_flag_t flag = {};
    flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
    need((segment = urma_import_seg(nic.context, &seg, &token, 0, flag)) != nullptr, "urma_import_seg");
  }
  void forget() {
    need(urma_unimport_seg(segment) == URMA_SUCCESS, "urma_unimport_seg");
    need(urma_unimport_jetty(target) == URMA_SUCCESS, "urma_unimport_jetty");
  }
};

struct Count {
  uint32_t done = 0, timed_out = 0, late = 0, wrong = 0;
  double slowest = 0;  // seconds from the death of the peer, or from posting, to the end
  double pause = 0;    // longest time without a completion while some were under way
};

// One jetty that is kept busy with one or several remotes.
class Flow {
 public:
  Flow(Nic& nic, std::mt19937& dice) : nic_(nic), queues_(nic), dice_(dice) {}

  Count count;

  size_t in_flight() const { return under_way_.size(); }

  // Posts until kInFlight are under way.
  void fill(const std::vector<Remote*>& remotes) {
    while (under_way_.size() < kInFlight) post(*remotes[dice_() % remotes.size()]);
  }

  // Takes completions; they come in the order of posting.
  bool poll() {
    urma_cr_t records[32];
    int n = urma_poll_jfc(queues_.jfc, 32, records);
    need(n >= 0, "urma_poll_jfc");
    double t = now();
    stand_still.look(t);
    const double awake = t - stand_still.seconds();
    if (n == 0 && !under_way_.empty()) count.pause = std::max(count.pause, awake - last_);
    if (n != 0 || under_way_.empty()) last_ = awake;
    for (int i = 0; i < n; ++i) judge(records[i], t);
    return n != 0;
  }

  // The first request that succeeds; those before end for lack of a wire, which takes its time to come back.
  bool reach(Remote& remote) {
    for (double end = now() + 4 * kLimit; now() < end;) {
      int status = run(remote, URMA_OPC_WRITE, 0, 0, 8);
      if (status != URMA_CR_ACK_TIMEOUT_ERR) return status == URMA_CR_SUCCESS;
      fprintf(stderr, "kill_peer: no way to B yet\n");
    }
    return false;
  }

  // Reads back what it writes.
  bool check(Remote& remote, char fill) {
    constexpr uint32_t kBytes = 100000;
    memset(nic_.memory.data(), fill, kBytes);
    if (run(remote, URMA_OPC_WRITE, 0, 0, kBytes) != URMA_CR_SUCCESS) return false;
    if (run(remote, URMA_OPC_READ, kBytes, 0, kBytes) != URMA_CR_SUCCESS) return false;
    if (run(remote, URMA_OPC_SEND, 0, 0, 1000) != URMA_CR_SUCCESS) return false;
    return memcmp(nic_.memory.data(), nic_.memory.data() + kBytes, kBytes) == 0;
  }

 private:
  struct Request {
    uint64_t number;
    Remote* remote;
    double posted;
  };

  void post(Remote& remote) {
    static constexpr uint32_t kSizes[] = {1, 64, 1000, 4096, 20000, 100000, 200000};
    static constexpr urma_opcode_t kOps[] = {URMA_OPC_WRITE, URMA_OPC_READ, URMA_OPC_SEND};
    urma_opcode_t op = kOps[dice_() % 3];
    uint32_t bytes = kSizes[dice_() % (op == URMA_OPC_SEND ? 4 : 7)];
    // The bytes mean nothing here: requests overlap as they like.
    uint64_t here = dice_() % (kMemory / 2 - bytes), there = kMemory / 4 + dice_() % (kMemory / 2 - bytes);
    Request request{++number_, &remote, now()};
    urma_status_t status = submit(remote, op, here, there, bytes, request.number);
    if (status != URMA_SUCCESS) die("posting fails with " + std::to_string(status));
    if (under_way_.empty()) last_ = request.posted - stand_still.seconds();
    under_way_.push_back(request);
  }

  urma_status_t submit(Remote& remote, urma_opcode_t op, uint64_t here, uint64_t there, uint32_t bytes,
                       uint64_t number) {
    urma_sge_t local = {}, away = {};
    local.addr = nic_.segment->seg.ubva.va + here;
    local.len = bytes;
    local.tseg = nic_.segment;
    away.addr = remote.segment->seg.ubva.va + there;
    away.len = bytes;
    away.tseg = remote.segment;
    urma_jfs_wr_t wr = {}, *bad = nullptr;
    wr.opcode = op;
    wr.flag.bs.complete_enable = 1;
    wr.tjetty = remote.target;
    wr.user_ctx = number;
    if (op == URMA_OPC_WRITE) wr.rw.src = {&local, 1}, wr.rw.dst = {&away, 1};
    if (op == URMA_OPC_READ) wr.rw.src = {&away, 1}, wr.rw.dst = {&local, 1};
    if (op == URMA_OPC_SEND) wr.send.src = {&local, 1};
    return urma_post_jetty_send_wr(queues_.jetty, &wr, &bad);
  }

  int run(Remote& remote, urma_opcode_t op, uint64_t here, uint64_t there, uint32_t bytes) {
    if (submit(remote, op, here, there, bytes, 0) != URMA_SUCCESS) return -1;
    urma_cr_t record;
    for (double begin = now(); now() - begin < 2 * kLimit;) {
      if (urma_poll_jfc(queues_.jfc, 1, &record) == 1) return record.status;
    }
    return -2;
  }

  void judge(const urma_cr_t& record, double t) {
    if (under_way_.empty() || record.user_ctx != under_way_.front().number) {
      fprintf(stderr, "kill_peer: completion of request %llu, expected %llu\n",
              static_cast<unsigned long long>(record.user_ctx),
              under_way_.empty() ? 0 : static_cast<unsigned long long>(under_way_.front().number));
      ++count.wrong;
      return;
    }
    Request request = under_way_.front();
    under_way_.pop_front();
    const Remote& remote = *request.remote;
    double age = t - (remote.alive ? request.posted : std::max(request.posted, remote.died));
    if (!remote.alive) {
      count.slowest = std::max(count.slowest, age);
      if (age > kLimit + stand_still.seconds() - remote.still_before) ++count.late;
    }
    if (record.status == URMA_CR_SUCCESS) {
      ++count.done;
    } else if (!remote.alive && ends_for_the_dead(record.status)) {
      ++count.timed_out;
    } else {
      fprintf(stderr, "kill_peer: request %llu to a %s peer ends with status %d\n",
              static_cast<unsigned long long>(request.number), remote.alive ? "living" : "dead", record.status);
      ++count.wrong;
    }
  }

  Nic& nic_;
  Queues queues_;
  std::mt19937& dice_;
  std::deque<Request> under_way_;
  uint64_t number_ = 0;
  double last_ = now();  // of the time that we were awake
};

class Test {
 public:
  Test(uint32_t seed, bool verbose, bool slow_wire)
      : dice_(seed),
        verbose_(verbose),
        slow_wire_(slow_wire),
        with_b_(nic_, dice_),
        with_c_(nic_, dice_),
        with_both_(nic_, dice_),
        c_process_("C"),
        c_(nic_, c_process_.address) {}

  bool round(int number) {
    with_b_.count = with_c_.count = with_both_.count = Count{};
    Process b_process("B");
    Remote b(nic_, b_process.address);
    if (slow_wire_ && !with_b_.reach(b)) return fail("B is not reached");
    if (!with_b_.check(b, static_cast<char>('a' + number % 26))) return fail("B cannot be used");

    busy(b, 0.02 + 0.3 * std::uniform_real_distribution<>()(dice_), true);
    uint32_t before = with_b_.count.done;
    with_b_.fill({&b});
    with_both_.fill({&b, &c_});
    size_t caught = with_b_.in_flight();
    b_process.kill_now();
    b.alive = false;
    b.died = now();
    b.still_before = stand_still.seconds();
    busy(b, 0.05 + 0.1 * std::uniform_real_distribution<>()(dice_), true);  // not everybody knows at once
    while ((with_b_.in_flight() != 0 || with_both_.in_flight() != 0) && now() - b.died < 2 * kLimit) {
      if (!turn(b, false)) rest(0.0002);
    }
    size_t stuck = with_b_.in_flight() + with_both_.in_flight();
    b_process.reap();
    if (stuck != 0) return fail(std::to_string(stuck) + " requests never end");
    b.forget();
    while (with_c_.in_flight() != 0 && with_c_.count.pause < kStall) with_c_.poll();
    bool c_fine = with_c_.check(c_, static_cast<char>('A' + number % 26));
    report(number, before, caught);
    return verdict(c_fine);
  }

  bool finish() {
    c_.forget();
    if (!c_process_.finish()) return fail("C does not end well");
    return urma_uninit() == URMA_SUCCESS || fail("urma_uninit");
  }

 private:
  // One look at everything; tells whether anything completed.
  bool turn(Remote& b, bool use_b) {
    if (use_b) {
      with_b_.fill({&b});
      with_both_.fill({&b, &c_});
    }
    with_c_.fill({&c_});
    bool any = with_b_.poll();
    any |= with_c_.poll();
    any |= with_both_.poll();
    return any;
  }

  void busy(Remote& b, double seconds, bool use_b) {
    for (double end = now() + seconds; now() < end;) turn(b, use_b);
  }

  void report(int number, uint32_t before, size_t caught) {
    if (!verbose_ && number % 5 != 1) return;
    const Count &b = with_b_.count, &c = with_c_.count, &both = with_both_.count;
    printf(
        "round %2d: B did %u, killed with %zu under way; %u timed out, the last after %.3f s; "
        "C did %u, longest pause %.3f s; both: %u done, %u timed out, the last after %.3f s\n",
        number, before, caught, b.timed_out, b.slowest, c.done, c.pause, both.done, both.timed_out, both.slowest);
    fflush(stdout);
  }

  bool verdict(bool c_fine) {
    const Count &b = with_b_.count, &c = with_c_.count, &both = with_both_.count;
    if (b.wrong + c.wrong + both.wrong != 0) return fail("a request ended with the wrong status, see above");
    if (b.late + both.late != 0) {
      return fail(std::to_string(b.late + both.late) + " requests took longer than 5 s, up to " +
                  std::to_string(std::max(b.slowest, both.slowest)) + " s");
    }
    if (b.timed_out == 0) return fail("nothing timed out: B was not killed under load");
    if (c.done == 0 || c.pause > kStall) return fail("traffic with C stopped for " + std::to_string(c.pause) + " s");
    return c_fine || fail("C cannot be used any more");
  }

  bool fail(const std::string& why) {
    fprintf(stderr, "kill_peer: FAIL: %s\n", why.c_str());
    return false;
  }

  std::mt19937 dice_;
  bool verbose_, slow_wire_;
  Nic nic_;
  Flow with_b_, with_c_, with_both_;
  Process c_process_;
  Remote c_;
};

}  // namespace

int main(int argc, char** argv) {
  int rounds = 10;
  uint32_t seed = std::random_device()();
  bool verbose = false, slow_wire = false;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    if (option == "--serve") return serve();
    if (option == "--verbose") {
      verbose = true;
    } else if (option == "--slow-wire") {
      slow_wire = true;
    } else if (option == "--rounds" && i + 1 < argc) {
      rounds = atoi(argv[++i]);
    } else if (option == "--seed" && i + 1 < argc) {
      seed = static_cast<uint32_t>(strtoul(argv[++i], nullptr, 0));
    } else if (option == "--set" && i + 2 < argc) {
      own_environment.emplace_back(argv[i + 1], argv[i + 2]);
      i += 2;
    } else {
      fprintf(stderr,
              "usage: kill_peer [--rounds N] [--seed N] [--verbose] [--slow-wire] [--set A|B|C NAME=VALUE]...\n");
      return 2;
    }
  }
  signal(SIGPIPE, SIG_IGN);
  take_environment_of("A");
  if (own_environment.empty()) setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 0);
  const char* kinds = getenv("SOFTUB_PORT_KINDS");
  printf("kill_peer: wires %s, seed %u\n", kinds != nullptr ? kinds : "(default)", seed);
  Test test(seed, verbose, slow_wire);
  int good = 0;
  while (good < rounds && test.round(good + 1)) ++good;
  bool all = good == rounds && test.finish();
  printf("kill_peer: %d of %d rounds good\n", good, rounds);
  // After a failure nothing is cleaned up: what is broken may not let us.
  if (!all) fflush(stdout), _exit(1);
  return 0;
}
