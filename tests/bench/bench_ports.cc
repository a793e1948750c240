// SPDX-License-Identifier: Apache-2.0
//
// What the ports themselves cost, beside the bare mechanism under each, in one run:
//   core-to-core   one cache line to and fro: tells whether the two cores are near or far at the moment
//   shm echo       ShmPort against an echo over bare slots (56 bytes and a sequence word in one cache line)
//   shm one way    4 KiB frames copied in and out, against a bare ring of 4 KiB slots
//   UDP echo       UdpPort against recvfrom/sendto in the same loop
// Two processes, on cores 0 and 1. Rounds alternate; ratios are medians over rounds.
//
//   bench_ports [rounds, default 9] [echoes per round, default 20000]
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/eid.h"
#include "dataplane/shm_port.h"
#include "dataplane/udp_port.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace {

using namespace ub;

uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}
void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}
double ns_per_tick() {
  auto t0 = std::chrono::steady_clock::now();
  uint64_t c0 = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  uint64_t c1 = ticks();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - t0).count() /
         static_cast<double>(c1 - c0);
}
double tick_ns = 1;
Instant now() { return {static_cast<uint64_t>(static_cast<double>(ticks()) * tick_ns)}; }

enum Mode : uint32_t { kStart, kLine, kSlot, kShm, kShmOneWay, kSlotOneWay, kUdp, kRawUdp, kQuit };

constexpr size_t kSlots = 1024, kBulkSlots = 1024, kBulk = 4096;
struct alignas(64) Slot {
  char bytes[56];
  std::atomic<uint64_t> seq;
};
struct alignas(64) Bulk {
  std::atomic<uint64_t> seq;
  char pad[56];
  char bytes[kBulk];
};
struct Shared {
  alignas(64) std::atomic<uint32_t> mode;
  alignas(64) std::atomic<uint32_t> done;  // the child is idle again
  alignas(64) std::atomic<uint64_t> line;
  alignas(64) std::atomic<uint64_t> bulk_read;
  uint32_t child_port, parent_port;
  Slot to_child[kSlots], to_parent[kSlots];
  Bulk bulk[kBulkSlots];
};
Shared* shared;

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

const wire::IpAddress kLocal = wire::IpAddress::from_v4(0x7f000001);
constexpr uint32_t kParent = 0x10001, kChild = 0x10002;

size_t make_frame(std::byte* frame, size_t bytes, uint16_t from, uint16_t to) {
  wire::NetTemplate t;
  t.init({}, {}, {kLocal, from}, {kLocal, to}, 0);
  t.write(frame, bytes - wire::NetTemplate::kSizeV4, 0);
  return bytes;
}

struct Ports {
  ShmPort shm;
  UdpPort udp;
  int raw = -1;
  uint16_t raw_port = 0;
  uint32_t next_link = 1;

  void open(const char* dir, uint32_t uasid) {
    std::string error;
    Eid eid = eid_of(kLocal);
    ShmPortOptions so;
    so.directory = dir;
    UdpPortOptions uo;
    uo.addresses = {kLocal};
    uo.wanted_port = 0;
    if (!shm.open(so, {&eid, 1}, uasid, &error) || !udp.open(uo, &error)) {
      std::fprintf(stderr, "%s\n", error.c_str());
      _exit(1);
    }
    raw = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(raw, reinterpret_cast<sockaddr*>(&a), sizeof a);
    socklen_t n = sizeof a;
    ::getsockname(raw, reinterpret_cast<sockaddr*>(&a), &n);
    raw_port = ntohs(a.sin_port);
    int on = 1;
    ::setsockopt(raw, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);
  }
  void control() {
    shm.poll_control();
    if (shm.has_pending()) shm.adopt_pending([this](const LinkConfig&) { return next_link++; });
  }
};

// ---- the child: answers in whatever way the mode says ----

template <class Port>
void echo_port(Port& port, bool (*stop)()) {
  RxFrame rx[kBurst];
  Instant t = now();
  while (!stop()) {
    size_t n = port.rx_burst(rx, kBurst);
    if (n == 0) {
      relax();
      continue;
    }
    for (size_t i = 0; i < n; ++i) {
      std::byte* f = port.tx_begin(rx[i].link, rx[i].bytes);
      if (f == nullptr) continue;
      std::memcpy(f, rx[i].data, rx[i].bytes);
      // Back to where it came from.
      uint16_t a, b;
      std::memcpy(&a, f + 34, 2);
      std::memcpy(&b, f + 36, 2);
      std::memcpy(f + 34, &b, 2);
      std::memcpy(f + 36, &a, 2);
      port.tx_commit(rx[i].link, f, rx[i].bytes);
    }
    port.rx_release();
    port.tx_flush(t);
    t = now();  // the clock is the driver's cost, not the port's
  }
}

Mode current_mode;
bool mode_over() { return shared->mode.load(std::memory_order_relaxed) != current_mode; }

[[noreturn]] void child(const char* dir) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(1);
  Ports ports;
  ports.open(dir, kChild);
  ports.udp.set_link(1);
  shared->child_port = uint32_t{ports.udp.port()} << 16 | ports.raw_port;
  shared->done = 1;
  std::vector<char> sink(kBulk);
  for (;;) {
    current_mode = static_cast<Mode>(shared->mode.load(std::memory_order_acquire));
    switch (current_mode) {
      case kStart:
        ports.control();
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        continue;
      case kLine:
        while (!mode_over()) {
          uint64_t v = shared->line.load(std::memory_order_acquire);
          if (v & 1) shared->line.store(v + 1, std::memory_order_release);
        }
        break;
      case kSlot: {
        Slot copy;
        for (uint64_t i = 0; !mode_over();) {
          Slot& in = shared->to_child[i % kSlots];
          if (in.seq.load(std::memory_order_acquire) != i + 1) {
            relax();
            continue;
          }
          std::memcpy(copy.bytes, in.bytes, sizeof copy.bytes);
          Slot& out = shared->to_parent[i % kSlots];
          std::memcpy(out.bytes, copy.bytes, sizeof copy.bytes);
          out.seq.store(++i, std::memory_order_release);
        }
        break;
      }
      case kShm:
        echo_port(ports.shm, mode_over);
        break;
      case kShmOneWay: {
        RxFrame rx[kBurst];
        while (!mode_over()) {
          size_t n = ports.shm.rx_burst(rx, kBurst);
          for (size_t i = 0; i < n; ++i) std::memcpy(sink.data(), rx[i].data, rx[i].bytes);
          ports.shm.rx_release();
          if (n != 0)
            shared->bulk_read.store(shared->bulk_read.load(std::memory_order_relaxed) + n, std::memory_order_release);
        }
        break;
      }
      case kSlotOneWay: {
        uint64_t i = 0;
        while (!mode_over()) {
          Bulk& b = shared->bulk[i % kBulkSlots];
          if (b.seq.load(std::memory_order_acquire) != i + 1) continue;
          std::memcpy(sink.data(), b.bytes, kBulk);
          ++i;
          if (i % 32 == 0 || shared->bulk[i % kBulkSlots].seq.load(std::memory_order_relaxed) != i + 1)
            shared->bulk_read.store(i, std::memory_order_release);
        }
        break;
      }
      case kUdp:
        echo_port(ports.udp, mode_over);
        break;
      case kRawUdp: {
        char buffer[2048];
        while (!mode_over()) {
          sockaddr_in from;
          socklen_t size = sizeof from;
          ssize_t n =
              ::recvfrom(ports.raw, buffer, sizeof buffer, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
          if (n > 0) ::sendto(ports.raw, buffer, static_cast<size_t>(n), 0, reinterpret_cast<sockaddr*>(&from), size);
        }
        break;
      }
      case kQuit:
        _exit(0);
    }
    shared->done.store(1, std::memory_order_release);
    while (!mode_over()) relax();
  }
}

// ---- the parent: measures ----

void enter(Mode mode) {
  shared->done = 0;
  shared->bulk_read = 0;
  for (Slot& s : shared->to_child) s.seq = 0;
  for (Slot& s : shared->to_parent) s.seq = 0;
  for (Bulk& b : shared->bulk) b.seq = 0;
  shared->mode.store(mode, std::memory_order_release);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
void leave() {
  shared->mode.store(100, std::memory_order_release);
  while (shared->done.load(std::memory_order_acquire) == 0) relax();
}

struct Times {
  double p50, p99, p999;
};
template <class Once>
Times measure(size_t count, Once once) {
  std::vector<uint64_t> t(count);
  for (size_t i = 0; i < count / 10; ++i) once();
  for (uint64_t& x : t) {
    uint64_t t0 = ticks();
    once();
    x = ticks() - t0;
  }
  std::sort(t.begin(), t.end());
  auto at = [&](double q) {
    return static_cast<double>(t[static_cast<size_t>(static_cast<double>(count - 1) * q)]) * tick_ns;
  };
  return {at(0.5), at(0.99), at(0.999)};
}

Times line_probe(size_t count) {
  enter(kLine);
  Times t = measure(count, [] {
    uint64_t v = shared->line.load(std::memory_order_relaxed);
    shared->line.store(v + 1, std::memory_order_release);
    while (shared->line.load(std::memory_order_acquire) != v + 2) {
    }
  });
  leave();
  return t;
}

Times slot_echo(size_t count) {
  enter(kSlot);
  uint64_t i = 0;
  char payload[56] = {1}, back[56];
  Times t = measure(count, [&] {
    Slot& out = shared->to_child[i % kSlots];
    std::memcpy(out.bytes, payload, sizeof payload);
    out.seq.store(i + 1, std::memory_order_release);
    Slot& in = shared->to_parent[i % kSlots];
    while (in.seq.load(std::memory_order_acquire) != i + 1) relax();
    std::memcpy(back, in.bytes, sizeof back);
    ++i;
  });
  leave();
  return t;
}

template <class Port>
Times port_echo(Mode mode, Port& port, uint32_t link, size_t bytes, uint16_t to, size_t count) {
  enter(mode);
  std::vector<std::byte> frame(bytes), back(bytes);
  uint16_t from = 1;
  if constexpr (std::is_same_v<Port, UdpPort>) from = port.port();
  make_frame(frame.data(), bytes, from, to);
  RxFrame rx[kBurst];
  Instant clock = now();
  Times t = measure(count, [&] {
    std::byte* f = port.tx_begin(link, bytes);
    std::memcpy(f, frame.data(), bytes);
    port.tx_commit(link, f, bytes);
    port.tx_flush(clock);
    clock = now();
    size_t n;
    while ((n = port.rx_burst(rx, kBurst)) == 0) relax();
    std::memcpy(back.data(), rx[0].data, rx[0].bytes);
    port.rx_release();
  });
  leave();
  return t;
}

Times raw_udp_echo(int socket, uint16_t port, size_t bytes, size_t count) {
  enter(kRawUdp);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  char buffer[2048] = {}, back[2048];
  Times t = measure(count, [&] {
    ::sendto(socket, buffer, bytes, 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
    sockaddr_in from;
    socklen_t size = sizeof from;
    while (::recvfrom(socket, back, sizeof back, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size) < 0) {
    }
  });
  leave();
  return t;
}

double gbps(uint64_t frames, uint64_t t0) {
  return static_cast<double>(frames * kBulk * 8) / (static_cast<double>(ticks() - t0) * tick_ns);
}

double slot_one_way(uint64_t frames) {
  enter(kSlotOneWay);
  std::vector<char> source(kBulk, 3);
  uint64_t read = 0, t0 = ticks();
  for (uint64_t i = 0; i < frames; ++i) {
    while (i - read >= kBulkSlots) read = shared->bulk_read.load(std::memory_order_acquire);
    Bulk& b = shared->bulk[i % kBulkSlots];
    std::memcpy(b.bytes, source.data(), kBulk);
    b.seq.store(i + 1, std::memory_order_release);
  }
  while (shared->bulk_read.load(std::memory_order_acquire) < frames) relax();
  double r = gbps(frames, t0);
  leave();
  return r;
}

double shm_one_way(ShmPort& port, uint32_t link, uint64_t frames) {
  enter(kShmOneWay);
  std::vector<std::byte> source(kBulk);
  uint64_t t0 = ticks();
  for (uint64_t i = 0; i < frames;) {
    for (int burst = 0; burst < 16 && i < frames; ++burst) {
      std::byte* f = port.tx_begin(link, kBulk);
      if (f == nullptr) break;
      std::memcpy(f, source.data(), kBulk);
      port.tx_commit(link, f, kBulk);
      ++i;
    }
    port.tx_flush(now());
  }
  while (shared->bulk_read.load(std::memory_order_acquire) < frames) relax();
  double r = gbps(frames, t0);
  leave();
  return r;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  size_t rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 9;
  size_t count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 20000;
  char dir[] = "/tmp/softub-bench-XXXXXX";
  if (mkdtemp(dir) == nullptr) return 1;
  shared =
      static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  tick_ns = ns_per_tick();
  pid_t pid = fork();
  if (pid == 0) child(dir);
  pin(0);
  while (shared->done == 0) usleep(100);
  Ports ports;
  ports.open(dir, kParent);
  ports.udp.set_link(1);
  std::string error;
  if (!ports.shm.connect({eid_of(kLocal), kChild}, &error)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  for (int i = 0; i < 2000 && !ports.shm.connected(eid_of(kLocal), kChild); ++i) {
    ports.control();
    usleep(100);
  }
  ports.control();
  uint32_t link = ports.shm.find_link(eid_of(kLocal), kChild);
  auto udp_port = static_cast<uint16_t>(shared->child_port >> 16), raw_port = static_cast<uint16_t>(shared->child_port);

  std::printf("%-6s %8s %8s | %8s %6s | %8s %6s | %8s %8s %6s | %8s %8s %6s\n", "round", "line", "slot 56B", "shm 64B",
              "ratio", "shm170B", "ratio", "slot4K", "shm 4K", "ratio", "raw UDP", "UDP 64B", "ratio");
  std::vector<double> r64, r170, bulk, udp, p64, p170, ps, pu, pr;
  Times last_shm{}, last_slot{};
  for (size_t i = 0; i < rounds; ++i) {
    Times line = line_probe(count / 4);
    Times s1 = slot_echo(count);
    Times a = port_echo(kShm, ports.shm, link, 64, 1, count);
    Times b = port_echo(kShm, ports.shm, link, 170, 1, count);
    Times s2 = slot_echo(count);
    double slot = (s1.p50 + s2.p50) / 2;
    uint64_t frames = 200000;
    double g0 = slot_one_way(frames), g1 = shm_one_way(ports.shm, link, frames);
    Times u0 = raw_udp_echo(ports.raw, raw_port, 64, count / 4);
    Times u1 = port_echo(kUdp, ports.udp, 1, 64 + wire::NetTemplate::kSizeV4, udp_port, count / 4);
    Times u2 = raw_udp_echo(ports.raw, raw_port, 64, count / 4);
    double raw = (u0.p50 + u2.p50) / 2;
    std::printf("%-6zu %8.0f %8.0f | %8.0f %6.2f | %8.0f %6.2f | %8.1f %8.1f %6.2f | %8.0f %8.0f %6.2f%s\n", i,
                line.p50, slot, a.p50, a.p50 / slot, b.p50, b.p50 / slot, g0, g1, g1 / g0, raw, u1.p50, u1.p50 / raw,
                std::max(s1.p50, s2.p50) > 1.3 * std::min(s1.p50, s2.p50) ? "  (cores moved: not counted)" : "");
    last_shm = a;
    last_slot = s2;
    bulk.push_back(g1 / g0);
    udp.push_back(u1.p50 / raw);
    pu.push_back(u1.p50);
    pr.push_back(raw);
    if (std::max(s1.p50, s2.p50) > 1.3 * std::min(s1.p50, s2.p50)) continue;
    r64.push_back(a.p50 / slot);
    r170.push_back(b.p50 / slot);
    p64.push_back(a.p50);
    p170.push_back(b.p50);
    ps.push_back(slot);
  }
  if (!r64.empty()) {
    std::printf("\nmedians: slot echo %.0f ns, shm 64 B %.0f ns (ratio %.2f), shm 170 B %.0f ns (ratio %.2f)\n",
                median(ps), median(p64), median(r64), median(p170), median(r170));
  }
  std::printf("         one way 4 KiB: %.2f of the bare ring; UDP echo %.0f ns, raw %.0f ns (ratio %.2f)\n",
              median(bulk), median(pu), median(pr), median(udp));
  std::printf("last round: shm p99 %.0f p99.9 %.0f, slot p99 %.0f p99.9 %.0f ns; doorbells %llu + %llu late\n",
              last_shm.p99, last_shm.p999, last_slot.p99, last_slot.p999,
              static_cast<unsigned long long>(ports.shm.counters().tx_doorbells),
              static_cast<unsigned long long>(ports.shm.counters().tx_doorbells_late));
  shared->mode = kQuit;
  waitpid(pid, nullptr, 0);
  ports.shm.close();
  std::string command = std::string("rm -rf ") + dir;
  return std::system(command.c_str()) == 0 ? 0 : 1;
}
