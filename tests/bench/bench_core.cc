// SPDX-License-Identifier: Apache-2.0
//
// What the Core itself costs: two of them in one thread, joined by frame queues in memory, no IO. For each
// operation, window and ICRC on or off it prints the time of every stage of a packet's way, per packet and
// per operation, beside a baseline of the same run: memcpy of the same bytes through the same buffers, and an
// SPSC slot copy per frame. Times are medians over runs of many short timings; the runs of all rows
// alternate, so that they see the same machine.
//
//   bench_core [--ops N] [--runs N] [--only "WRITE 64"] [--cpu N] [--json]
//
// Stages are timed with the CPU's counter, whose own cost is subtracted. An operation as a whole is timed
// without clock reads in between; it contains the application's part, too: writing elements, reading
// completions.
// Instructions, which do not depend on the machine's other work: tests/bench/instructions.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/transport/wire/network_header.h"
#include "tests/bench/exchange.h"
#include "tools/common/affinity.h"
#include "tools/common/probe.h"

namespace ub::bench {
namespace {

using tools::Ticks;

constexpr size_t kHeaderBytes = wire::NetTemplate::kSizeV4 + 16 + 8 + 16;  // in front of a WRITE's payload
constexpr uint64_t kChunks = 16;  // of a run: each is timed by itself, so that a preemption spoils one

enum Stage { kChoose, kSendRequest, kReceiveRequest, kBuildAnswer, kReceiveAnswer, kBuildAck, kReceiveAck, kStages };
constexpr const char* kStageNames[kStages] = {
    "post: choose (on_posted)",
    "send request: cut, gather, seal",
    "receive request",
    "build answer",
    "receive answer, completion",
    "build ack",
    "receive ack",
};
constexpr bool kStageSends[kStages] = {true, true, false, true, false, true, false};

struct Times {
  std::array<uint64_t, kStages> ticks{};
  std::array<uint64_t, kStages> packets{};
};

// The same exchange, with a clock read between the stages.
class TimedExchange : public Exchange {
 public:
  using Exchange::Exchange;

  // Ticks of `ops` operations, nothing timed in between.
  uint64_t time_whole(uint64_t ops) {
    uint64_t start = Ticks::now();
    run(ops);
    return Ticks::now() - start;
  }

  // The same, stage by stage. Acknowledgements are built before answers here, so that each can be timed, and
  // received in the usual order.
  void run_staged(uint64_t ops, Times* times) {
    for (uint64_t done = 0; done < ops; done += window_) {
      post_window();
      start_ = Ticks::now();
      choose();
      lap(times, kChoose, window_);
      for (uint32_t left = window_; left > 0;) {
        Instant now = pair_.clock.now();
        timers();
        start_ = Ticks::now();
        size_t n = pair_.a_node.core.poll_packets(now, 0);
        lap(times, kBuildAck, n);
        n = pair_.a_node.core.poll_packets(now, kBurst);
        lap(times, kSendRequest, n);
        receive(pair_.b_node, pair_.wire.a_to_b, pair_.wire.link_at_b, times, kReceiveRequest);
        start_ = Ticks::now();
        n = pair_.b_node.core.poll_packets(now, 0);
        lap(times, kBuildAck, n);
        n = pair_.b_node.core.poll_packets(now, kBurst);
        lap(times, kBuildAnswer, n);
        receive(pair_.a_node, pair_.wire.b_to_a, pair_.wire.link_at_a, times, kReceiveAnswer);
        left -= reap();
        pair_.clock.advance(microseconds(1));
      }
    }
  }

  // The bytes of one operation from the source buffer through queue memory to the destination, and nothing
  // else.
  uint64_t run_memcpy(uint64_t ops) {
    CorePair::Side& from = op_.op == WrOp::kRead ? pair_.b : pair_.a;
    CorePair::Side& to = op_.op == WrOp::kRead ? pair_.a : pair_.b;
    std::byte* frames = pair_.wire.a_to_b.memory().data();
    size_t at = 0, frame = 0;
    uint64_t start = Ticks::now();
    for (uint64_t i = 0; i < ops; ++i) {
      for (uint32_t done = 0; done < op_.bytes; done += kMtu) {
        size_t bytes = std::min(op_.bytes - done, kMtu);
        std::byte* place = frames + frame + kHeaderBytes;
        std::memcpy(place, from.region.data() + at + done, bytes);
        asm volatile("" ::: "memory");
        std::memcpy(to.region.data() + at + done, place, bytes);
        asm volatile("" ::: "memory");
        frame += (kHeaderBytes + bytes + 63) / 64 * 64;
        if (frame + kHeaderBytes + kMtu > region_bytes_) frame = 0;
      }
      at = (at + stride_) & (region_bytes_ - 1);
    }
    return Ticks::now() - start;
  }

  // Laps of the stages so far, to subtract what the clock itself costs.
  std::array<uint64_t, kStages> take_laps() { return std::exchange(laps_, {}); }

 private:
  void lap(Times* times, Stage stage, size_t packets) {
    uint64_t end = Ticks::now();
    // A poll that found nothing is part of the driver's loop, not of a packet's way.
    if (packets != 0) {
      times->ticks[stage] += end - start_;
      times->packets[stage] += packets;
      ++laps_[stage];
    }
    start_ = Ticks::now();
  }

  // Data first, then acknowledgements, as a poll sends them.
  void receive(Node& node, FrameQueue& queue, uint32_t link, Times* times, Stage data_stage) {
    std::array<std::span<const std::byte>, 2 * kBurst> data, acks;
    size_t data_count = 0, ack_count = 0, n = std::min(queue.waiting(), data.size());
    for (size_t i = 0; i < n; ++i) {
      std::span<const std::byte> frame = queue.at(i);
      auto opcode = static_cast<wire::TpOpcode>(load_u8(frame.data() + wire::NetTemplate::kSizeV4) & 0x7f);
      (opcode == wire::TpOpcode::kData ? data[data_count++] : acks[ack_count++]) = frame;
    }
    Instant now = pair_.clock.now();
    start_ = Ticks::now();
    for (size_t i = 0; i < data_count; ++i) node.core.on_packet(now, link, data[i]);
    lap(times, data_stage, data_count);
    for (size_t i = 0; i < ack_count; ++i) node.core.on_packet(now, link, acks[i]);
    lap(times, kReceiveAck, ack_count);
    queue.release(n);
  }

  uint64_t start_ = 0;
  std::array<uint64_t, kStages> laps_{};
};

// ---- baselines --------------------------------------------------------------------------------------------

// A 64-byte slot written and read again by one thread: the least that handing over a frame can cost.
double slot_ticks(uint64_t count) {
  struct alignas(64) Slot {
    char bytes[56];
    std::atomic<uint64_t> seq;
  };
  constexpr size_t kSlots = 1024;
  static std::vector<Slot> ring(kSlots);
  static uint64_t at = 0;
  char in[56] = {1}, out[56];
  uint64_t start = Ticks::now();
  for (uint64_t i = 0; i < count; ++i, ++at) {
    Slot& slot = ring[at % kSlots];
    std::memcpy(slot.bytes, in, sizeof in);
    slot.seq.store(at + 1, std::memory_order_release);
    while (slot.seq.load(std::memory_order_acquire) != at + 1) {
    }
    std::memcpy(out, slot.bytes, sizeof out);
    asm volatile("" ::"r"(out), "r"(in) : "memory");
  }
  return static_cast<double>(Ticks::now() - start) / static_cast<double>(count);
}

// Ticks from one clock read to the next.
double clock_ticks() {
  std::vector<uint64_t> v(1001);
  for (uint64_t& x : v) {
    uint64_t start = Ticks::now();
    x = Ticks::now() - start;
  }
  std::nth_element(v.begin(), v.begin() + 500, v.end());
  return static_cast<double>(v[500]);
}

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// ---- rows -------------------------------------------------------------------------------------------------

struct Row {
  explicit Row(std::unique_ptr<TimedExchange> e) : exchange(std::move(e)) {}
  std::unique_ptr<TimedExchange> exchange;
  std::vector<double> whole, copies, slot;         // ticks per operation; slot: per copy
  std::array<std::vector<double>, kStages> stage;  // ticks per operation
  std::array<double, kStages> packets{};           // per operation
  double packets_in_all() const {
    double n = 0;
    for (int s = kSendRequest; s < kStages; ++s) n += kStageSends[s] ? packets[s] : 0;
    return n;
  }
};

void run_chunk(Row& row, uint64_t ops) {
  TimedExchange& e = *row.exchange;
  double per_op = 1 / static_cast<double>(ops);
  row.whole.push_back(static_cast<double>(e.time_whole(ops)) * per_op);
  Times times;
  e.take_laps();
  e.run_staged(ops, &times);
  std::array<uint64_t, kStages> laps = e.take_laps();
  double clock = clock_ticks();
  for (int s = 0; s < kStages; ++s) {
    double ticks = static_cast<double>(times.ticks[s]) - static_cast<double>(laps[s]) * clock;
    row.stage[s].push_back(std::max(ticks, 0.0) * per_op);
    row.packets[s] = static_cast<double>(times.packets[s]) * per_op;
  }
}

void run_once(Row& row, uint64_t ops) {
  TimedExchange& e = *row.exchange;
  e.run((e.cycle() + e.window() - 1) / e.window() * e.window());  // the caches are another row's
  for (uint64_t i = 0; i < kChunks; ++i) run_chunk(row, ops);
  if (row.copies.empty()) e.check();  // before the baseline writes the same buffers
  double per_op = 1 / static_cast<double>(ops);
  for (uint64_t i = 0; i < kChunks; ++i) {
    row.copies.push_back(static_cast<double>(e.run_memcpy(ops)) * per_op);
    row.slot.push_back(slot_ticks(256));
  }
}

struct Result {
  double whole_ns, stages_ns, memcpy_ns, slots_ns, ratio, sent_ns, received_ns;
};

Result summarize(const Row& row, double ns) {
  Result r{};
  r.whole_ns = median(row.whole) * ns;
  r.memcpy_ns = median(row.copies) * ns;
  r.slots_ns = median(row.slot) * ns * row.packets_in_all();
  r.ratio = r.whole_ns / (r.memcpy_ns + r.slots_ns);
  for (int s = 0; s < kStages; ++s) (kStageSends[s] ? r.sent_ns : r.received_ns) += median(row.stage[s]) * ns;
  r.stages_ns = r.sent_ns + r.received_ns;
  r.sent_ns /= row.packets_in_all();
  r.received_ns /= row.packets_in_all();
  return r;
}

void print_row(const Row& row, double ns) {
  const Exchange& e = *row.exchange;
  Result r = summarize(row, ns);
  std::printf(
      "\n%s, window %u, ICRC %s: %.0f ns an operation (stages %.0f); memcpy %.0f + slots %.0f ns: ratio "
      "%.1f\n",
      e.operation().name, e.window(), e.icrc() ? "on" : "off", r.whole_ns, r.stages_ns, r.memcpy_ns, r.slots_ns,
      r.ratio);
  std::printf("  %-34s %10s %10s %14s %10s\n", "stage", "packets/op", "ns/packet", "cycles/packet", "ns/op");
  for (int s = 0; s < kStages; ++s) {
    double per_op = median(row.stage[s]);
    double packets = row.packets[s];
    if (packets == 0) continue;
    std::printf("  %-34s %10.2f %10.1f %14.0f %10.1f\n", kStageNames[s], packets, per_op * ns / packets,
                per_op / packets, per_op * ns);
  }
  std::printf("  %-34s %10.2f %10.1f sent, %.1f received\n", "every packet", row.packets_in_all(), r.sent_ns,
              r.received_ns);
}

void print_json_row(const Row& row, double ns, bool first) {
  const Exchange& e = *row.exchange;
  Result r = summarize(row, ns);
  std::printf(
      "%s{\"operation\":\"%s\",\"bytes\":%u,\"window\":%u,\"icrc\":%s,\"op_ns\":%.2f,\"stages_ns\":%.2f,"
      "\"memcpy_ns\":%.2f,"
      "\"slots_ns\":%.2f,\"ratio\":%.3f,\"packets_per_op\":%.3f,\"sent_ns\":%.2f,\"received_ns\":%.2f,"
      "\"stages\":[",
      first ? "" : ",", e.operation().name, e.operation().bytes, e.window(), e.icrc() ? "true" : "false", r.whole_ns,
      r.stages_ns, r.memcpy_ns, r.slots_ns, r.ratio, row.packets_in_all(), r.sent_ns, r.received_ns);
  for (int s = 0; s < kStages; ++s) {
    double per_op = median(row.stage[s]);
    std::printf("%s{\"stage\":\"%s\",\"packets_per_op\":%.3f,\"ns_per_op\":%.2f,\"cycles_per_op\":%.1f}",
                s == 0 ? "" : ",", kStageNames[s], row.packets[s], per_op * ns, per_op);
  }
  std::printf("]}");
}

struct Options {
  uint64_t ops = 0;
  uint64_t runs = 7;
  std::string only;
  std::vector<uint32_t> windows = {1, 64};
  std::string icrc = "both";
  int cpu = -1;
  bool json = false;
};

uint64_t ops_of(const Options& options, const Operation& op) {
  return options.ops != 0 ? options.ops : op.bytes > kMtu ? 16 : 256;
}

std::vector<Row> make_rows(const Options& options) {
  std::vector<Row> rows;
  for (const Operation& op : kOperations) {
    if (!options.only.empty() && options.only != op.name) continue;
    for (uint32_t window : options.windows) {
      if (options.icrc != "on") rows.emplace_back(std::make_unique<TimedExchange>(op, window, false));
      if (options.icrc != "off") rows.emplace_back(std::make_unique<TimedExchange>(op, window, true));
    }
  }
  return rows;
}

int run(const Options& options) {
  std::vector<int> cpus = tools::allowed_cpus();
  auto probe = [&] { return cpus.size() < 2 ? tools::C2cProbe() : tools::probe_c2c(cpus[0], cpus[1]); };
  tools::C2cProbe before = probe();
  if (options.cpu >= 0 && !tools::pin_to_cpu(options.cpu)) std::fprintf(stderr, "cannot use CPU %d\n", options.cpu);
  double ns = Ticks::ns_per_tick();
  std::vector<Row> rows = make_rows(options);
  for (uint64_t i = 0; i < options.runs; ++i) {
    for (Row& row : rows) {
      uint64_t window = row.exchange->window();
      uint64_t ops = (ops_of(options, row.exchange->operation()) + window - 1) / window * window;
      run_once(row, ops);
    }
  }
  tools::C2cProbe after = probe();
  if (options.json) {
    std::printf(
        "{\"bench\":\"core\",\"ns_per_cycle\":%.5f,\"runs\":%llu,\"c2c_before\":\"%s\",\"c2c_after\":\"%s\","
        "\"rows\":[",
        ns, static_cast<unsigned long long>(options.runs), before.mode(), after.mode());
    for (size_t i = 0; i < rows.size(); ++i) print_json_row(rows[i], ns, i == 0);
    std::printf("]}\n");
    return 0;
  }
  std::printf(
      "two Cores in one thread, medians of %llu runs of 16 timings; %.2f cycles a ns; cores are %s before, "
      "%s after\n",
      static_cast<unsigned long long>(options.runs), 1 / ns, before.mode(), after.mode());
  for (const Row& row : rows) print_row(row, ns);
  return 0;
}

}  // namespace
}  // namespace ub::bench

int main(int argc, char** argv) {
  ub::bench::Options options;
  CLI::App app{"What the protocol core costs per packet and stage, without IO"};
  app.add_option("--ops", options.ops, "operations timed together (0: 256, of 64 KiB 16)");
  app.add_option("--runs", options.runs, "runs of 16 timings each; medians are printed")->check(CLI::PositiveNumber);
  app.add_option("--only", options.only,
                 "one operation: \"WRITE 64\", \"READ 64\", \"SEND 64\", \"FADD 8\", \"WRITE 65536\"");
  app.add_option("--window", options.windows, "operations posted together, at most 64")->check(CLI::Range(1, 64));
  app.add_option("--icrc", options.icrc, "on, off or both")->check(CLI::IsMember({"on", "off", "both"}));
  app.add_option("--cpu", options.cpu, "pin to this CPU");
  app.add_flag("--json", options.json, "one JSON object");
  CLI11_PARSE(app, argc, argv);
  return ub::bench::run(options);
}
