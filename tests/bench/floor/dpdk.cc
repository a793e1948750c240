// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/floor/dpdk.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "tests/bench/floor/process.h"

namespace ub::floor {
namespace {

using tools::monotonic_ns;
using tools::Ticks;

constexpr uint16_t kBurst = 32;
constexpr uint32_t kWindow = 256;
constexpr unsigned kBuffers = 8191;  // one less than a power of two, as the pool likes it
constexpr unsigned kCached = 256;
constexpr uint16_t kDescriptors = 1024;
constexpr uint64_t kPatienceNs = 5'000'000'000;
constexpr uint64_t kLinkPatienceNs = 4 * kPatienceNs;  // DPDK takes its time to start

struct Control {
  std::atomic<bool> started;    // our end: a memif client that comes before its server is not tried again
  std::atomic<bool> answering;  // theirs: a veth pair is up before anybody listens
  std::atomic<bool> stop;
};

// What is at the beginning of each frame. Kernels send frames of their own over veth pairs; these have another type.
struct [[gnu::packed]] Head {
  uint8_t to[6], from[6];
  uint16_t type;
  uint64_t number;
};
constexpr uint16_t kType = 0xb588;  // 0x88b5 on the wire: for local experiments

[[noreturn]] void fail_dpdk(const std::string& what) {
  throw std::runtime_error(what + ": " + rte_strerror(rte_errno));
}

Head& head_of(rte_mbuf* m) { return *rte_pktmbuf_mtod(m, Head*); }

// This process's end. Starts DPDK, so there is one.
class Device {
 public:
  Device(const std::string& device, int cpu, const std::atomic<bool>& stop)
      : stop_(stop), shared_with_kernel_(!device.starts_with("net_memif")) {
    start_dpdk(device, cpu);
    make_pool(shared_with_kernel_ ? 2048 : 8192);
    rte_eth_conf conf{};
    uint16_t rx = kDescriptors, tx = kDescriptors;
    if (rte_eth_dev_configure(port_, 1, 1, &conf) != 0 || rte_eth_dev_adjust_nb_rx_tx_desc(port_, &rx, &tx) != 0 ||
        rte_eth_rx_queue_setup(port_, 0, rx, SOCKET_ID_ANY, nullptr, pool_) != 0 ||
        rte_eth_tx_queue_setup(port_, 0, tx, SOCKET_ID_ANY, nullptr) != 0 || rte_eth_dev_start(port_) != 0) {
      fail_dpdk(device + " does not start");
    }
  }
  ~Device() {
    rte_eth_dev_stop(port_);
    rte_eth_dev_close(port_);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void wait_for_link() {
    rte_eth_link link{};
    for (const uint64_t end = monotonic_ns() + kLinkPatienceNs; link.link_status != RTE_ETH_LINK_UP; usleep(1000)) {
      rte_eth_link_get_nowait(port_, &link);
      if (monotonic_ns() > end) throw std::runtime_error("no link: the other end is not there");
    }
  }
  // Frames with our head; numbers are the caller's to set.
  void make(rte_mbuf** frames, uint16_t count, size_t bytes) {
    if (rte_pktmbuf_alloc_bulk(pool_, frames, count) != 0) throw std::runtime_error("the pool of buffers is empty");
    for (uint16_t i = 0; i < count; ++i) {
      rte_pktmbuf_append(frames[i], static_cast<uint16_t>(bytes));
      head_of(frames[i]) = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {2, 0, 0, 0, 0, 1}, kType, 0};
    }
  }
  uint16_t receive(rte_mbuf** frames) {
    const uint16_t count = rte_eth_rx_burst(port_, 0, frames, kBurst);
    return shared_with_kernel_ ? drop_foreign(frames, count) : count;
  }
  // Waits for room; false: the peer wants to stop.
  bool send(rte_mbuf** frames, uint16_t count) {
    for (uint16_t sent = 0; sent < count;) {
      sent =
          static_cast<uint16_t>(sent + rte_eth_tx_burst(port_, 0, frames + sent, static_cast<uint16_t>(count - sent)));
      if (stopped()) return false;
    }
    return true;
  }
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }

 private:
  void start_dpdk(const std::string& device, int cpu) {
    std::string arguments[] = {"ub_floor_dpdk",
                               "--no-huge",
                               "-m",
                               "256",
                               "--no-shconf",
                               "--no-telemetry",
                               "--no-pci",
                               "--file-prefix=ub-floor-" + std::to_string(getpid()),
                               "--lcores=0@" + std::to_string(cpu),
                               "--log-level=lib.*:error",
                               "--log-level=pmd.*:error",
                               "--vdev=" + device};
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    if (rte_eal_init(static_cast<int>(argv.size()) - 1, argv.data()) < 0) fail_dpdk("DPDK does not start");
    const std::string name = device.substr(0, device.find(','));
    if (rte_eth_dev_get_port_by_name(name.c_str(), &port_) != 0) throw std::runtime_error("no device " + name);
  }

  // Without gaps between buffers: af_xdp counts on a row of them.
  void make_pool(uint16_t room) {
    rte_pktmbuf_pool_private data_size{};
    data_size.mbuf_data_room_size = static_cast<uint16_t>(room + RTE_PKTMBUF_HEADROOM);
    const unsigned flags = rte_eal_iova_mode() == RTE_IOVA_VA ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
    pool_ = rte_mempool_create("frames", kBuffers, sizeof(rte_mbuf) + data_size.mbuf_data_room_size, kCached,
                               sizeof data_size, rte_pktmbuf_pool_init, &data_size, rte_pktmbuf_init, nullptr,
                               SOCKET_ID_ANY, flags);
    if (pool_ == nullptr) fail_dpdk("no memory for frames");
  }

  // Frames of the kernels at the ends; what is left stays in order.
  static uint16_t drop_foreign(rte_mbuf** frames, uint16_t count) {
    const auto end = std::remove_if(frames, frames + count, [](rte_mbuf* m) {
      if (head_of(m).type == kType) return false;
      rte_pktmbuf_free(m);
      return true;
    });
    return static_cast<uint16_t>(end - frames);
  }

  const std::atomic<bool>& stop_;
  const bool shared_with_kernel_;
  uint16_t port_ = 0;
  rte_mempool* pool_ = nullptr;
};

void echo(Device& device) {
  rte_mbuf* frames[kBurst];
  while (!device.stopped()) {
    const uint16_t count = device.receive(frames);
    if (count != 0 && !device.send(frames, count)) return;
  }
}

// What the application at an end reads from or writes to: one message after the other.
class UserMemory {
 public:
  explicit UserMemory(bool copied) : copied_(copied), bytes_(kUserBytes + kMaxFrame, 'x') {}
  void fill(rte_mbuf* m) {
    if (copied_) memcpy(payload_of(m), next(m), payload_bytes(m));
  }
  void take(rte_mbuf* m) {
    if (copied_) memcpy(next(m), payload_of(m), payload_bytes(m));
  }

 private:
  static constexpr size_t kUserBytes = 64 << 10;
  static char* payload_of(rte_mbuf* m) { return rte_pktmbuf_mtod(m, char*) + sizeof(Head); }
  static size_t payload_bytes(const rte_mbuf* m) { return m->data_len - sizeof(Head); }
  char* next(const rte_mbuf* m) {
    char* here = bytes_.data() + at_;
    at_ = (at_ + payload_bytes(m)) % kUserBytes;
    return here;
  }

  const bool copied_;
  std::vector<char> bytes_;
  size_t at_ = 0;
};

void flood(Device& device, const Options& options) {
  UserMemory memory(options.copied);
  rte_mbuf* frames[kBurst];
  for (uint64_t number = 0;;) {
    device.make(frames, kBurst, options.size_bytes);
    for (rte_mbuf* m : frames) {
      head_of(m).number = number++;
      memory.fill(m);
    }
    if (!device.send(frames, kBurst)) return;
  }
}

LatencyRow ping(Device& device, const Options& options, size_t bytes) {
  LatencyRow row{"one frame of " + std::to_string(bytes) + " B", {}};
  const double ns_per_tick = Ticks::ns_per_tick();
  const auto ticks_of = [&](double ns) { return static_cast<uint64_t>(ns / ns_per_tick); };
  const uint64_t patience = ticks_of(kPatienceNs);
  const uint64_t warm_up_end = Ticks::now() + ticks_of(options.seconds * 1e8);
  const uint64_t end = warm_up_end + ticks_of(options.seconds * 1e9);
  rte_mbuf* frames[kBurst];
  device.make(frames, 1, bytes);
  uint64_t number = 0;
  for (uint64_t now = Ticks::now(); now < end;) {
    head_of(frames[0]).number = ++number;
    device.send(frames, 1);
    while (device.receive(frames) == 0) {
      if (Ticks::now() - now > patience) throw std::runtime_error("a frame was lost");
    }
    if (head_of(frames[0]).number != number) throw std::runtime_error("another frame came back");
    const uint64_t then = Ticks::now();
    if (now > warm_up_end)
      row.round_trip_ns.record(static_cast<uint64_t>(static_cast<double>(then - now) * ns_per_tick));
    now = then;
  }
  rte_pktmbuf_free(frames[0]);
  return row;
}

RateRow rate_row(const std::string& name, size_t bytes, uint64_t frames, uint64_t ns, uint64_t lost = 0) {
  const double per_ns = static_cast<double>(frames) / static_cast<double>(std::max<uint64_t>(ns, 1));
  const uint64_t all = std::max<uint64_t>(frames + lost, 1);
  return {name + " of " + std::to_string(bytes) + " B", per_ns * static_cast<double>(bytes) * 8, per_ns * 1e9,
          100 * static_cast<double>(lost) / static_cast<double>(all)};
}

RateRow echo_rate(Device& device, const Options& options, size_t bytes) {
  const uint64_t warm_up_end = monotonic_ns() + static_cast<uint64_t>(options.seconds * 1e8);
  const uint64_t end = warm_up_end + static_cast<uint64_t>(options.seconds * 1e9);
  rte_mbuf* frames[kBurst];
  for (uint32_t i = 0; i < kWindow; i += kBurst) {
    device.make(frames, kBurst, bytes);
    device.send(frames, kBurst);
  }
  uint64_t all = 0, from = 0, from_ns = 0, now = monotonic_ns(), last = now;
  while (now < end || from_ns == 0) {
    const uint16_t count = device.receive(frames);
    if (count != 0) device.send(frames, count);
    all += count;
    now = monotonic_ns();
    if (count != 0) last = now;
    if (now - last > kPatienceNs) throw std::runtime_error("frames were lost");
    if (from_ns == 0 && now >= warm_up_end) from = all, from_ns = now;
  }
  const uint64_t arrived = all - from, ns = now - from_ns;
  for (uint32_t home = 0; home < kWindow && now - last < kPatienceNs; now = monotonic_ns()) {
    const uint16_t count = device.receive(frames);
    rte_pktmbuf_free_bulk(frames, count);
    home += count;
  }
  return rate_row("echo, " + std::to_string(kWindow) + " under way,", bytes, arrived, ns);
}

RateRow count_frames(Device& device, const Options& options, size_t bytes) {
  UserMemory memory(options.copied);
  const uint64_t patience_end = monotonic_ns() + kPatienceNs;
  uint64_t warm_up_end = 0, end = UINT64_MAX, now = 0;
  uint64_t count = 0, first = 0, last = 0, from_ns = 0;
  while (now < end) {
    rte_mbuf* frames[kBurst];
    const uint16_t received = device.receive(frames);
    now = monotonic_ns();
    for (uint16_t i = 0; i < received; ++i) {
      last = head_of(frames[i]).number;
      memory.take(frames[i]);
      ++count;
    }
    rte_pktmbuf_free_bulk(frames, received);
    if (end == UINT64_MAX) {
      if (count == 0 && now > patience_end) throw std::runtime_error("no frame arrives");
      if (count == 0) continue;
      warm_up_end = now + static_cast<uint64_t>(options.seconds * 1e8);
      end = warm_up_end + static_cast<uint64_t>(options.seconds * 1e9);
    }
    if (from_ns == 0 && now >= warm_up_end) from_ns = now, first = last, count = 0;
  }
  const uint64_t sent = last - first;
  const char* what = options.copied ? "frames, copied in and out," : "frames";
  return rate_row(what, bytes, count, now - from_ns, sent > count ? sent - count : 0);
}

// Starts the process of the other end; it ends by itself, so that the driver leaves nothing behind.
template <typename Theirs, typename Ours>
void run_pair(const Options& options, const Devices& devices, Theirs theirs, Ours ours) {
  const Shared<Control> control;
  const std::atomic<bool> never{false};
  Peer peer(options.cpu_peer, [&] {
    while (!control->started.load()) usleep(1000);
    Device device(devices.peer, options.cpu_peer, control->stop);
    device.wait_for_link();
    control->answering.store(true);
    theirs(device);
  });
  Device device(devices.near, options.cpu_near, never);
  control->started.store(true);
  device.wait_for_link();
  for (const uint64_t end = monotonic_ns() + kLinkPatienceNs; !control->answering.load(); usleep(1000)) {
    if (monotonic_ns() > end) throw std::runtime_error("the other end did not start");
  }
  ours(device);
  control->stop.store(true);
  peer.join();
}

}  // namespace

void run_dpdk_echo(const Options& options, const Devices& devices, Report& report) {
  report.size_bytes = options.size_bytes;
  std::vector<size_t> sizes{kSmallFrame};
  if (options.size_bytes != kSmallFrame) sizes.push_back(options.size_bytes);
  run_pair(
      options, devices, [](Device& device) { echo(device); },
      [&](Device& device) {
        for (const size_t bytes : sizes) report.latency.push_back(ping(device, options, bytes));
        for (const size_t bytes : sizes) report.rate.push_back(echo_rate(device, options, bytes));
      });
}

void run_dpdk_one_way(const Options& options, const Devices& devices, Report& report) {
  report.size_bytes = options.size_bytes;
  run_pair(
      options, devices, [&](Device& device) { flood(device, options); },
      [&](Device& device) { report.rate.push_back(count_frames(device, options, options.size_bytes)); });
}

}  // namespace ub::floor
