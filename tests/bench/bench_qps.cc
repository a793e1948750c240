// SPDX-License-Identifier: Apache-2.0
//
// ub_qps: many RoCE queue pairs against as many UB jettys, all between two Cores. Queue pair i is connected to queue
// pair i of the other side, jetty i has imported jetty i; WRITE, READ and SEND go over them in turn, a few in flight.
// Prints the time of an operation on both, and the state that one Core holds for its connections.
//
//   ub_qps [--connections 1,64,1024,16384] [--operations 32768] [--rounds 7] [--depth 16] [--bytes 64] [--reads 16]
//          [--json]
//
// Both protocols have the same harness, ring depth, shared completion and receive queues, MTU, window and checksum; a
// round of one is followed by a round of the other. One thread, virtual time; what is measured is CPU time of both
// sides together: no wire, no loss, no second core. Exit status 1: wrong bytes, a failed request, or UB state that
// grows although it belongs neither to jettys nor to imports.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "emu_hw/node/state_rows.h"
#include "tests/bench/queue_pair.h"

namespace ub::bench {

using emu::Per;
using emu::roce_state_of;
using emu::state_of;
using emu::StateRow;

namespace {

constexpr uint32_t kMtu = 1024;
constexpr uint8_t kMtuCode = 3;
constexpr uint32_t kKey = 0x5a5;
constexpr size_t kWireBytes = 1024 * 1024;
constexpr uint32_t kReceives = 64;

struct Options {
  std::vector<uint32_t> connections{1, 64, 1024, 16384};
  uint32_t operations = 32768, rounds = 7, depth = 16, bytes = 64;
  uint32_t reads = 16;  // that a queue pair has in flight, and serves
  bool json = false;
};

[[noreturn]] void fail(const char* what, uint32_t connection) {
  std::fprintf(stderr, "ub_qps: %s (connection %u)\n", what, connection);
  std::exit(1);
}

// Of this thread, which never waits: whoever else uses the CPU does not count.
uint64_t cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

enum class Protocol : uint8_t { kRoce, kUb };
constexpr Protocol kProtocols[] = {Protocol::kRoce, Protocol::kUb};
constexpr WrOp kOperations[] = {WrOp::kWrite, WrOp::kRead, WrOp::kSend};
constexpr const char* kOperationNames[] = {"WRITE", "READ", "SEND"};
constexpr size_t kProtocolCount = std::size(kProtocols), kOperationCount = std::size(kOperations);

// ---- two Cores and their connections ------------------------------------------------------------------------------

// One side: its connections share the queues for completions and receives.
struct Side {
  Side(uint32_t number, Protocol protocol, uint32_t connections, const Options& o)
      : node(number, config_of(number, protocol == Protocol::kRoce ? connections : 0)),
        send_jfc(node, 2 * o.depth),
        receive_jfc(node, 2 * kReceives),
        jfr(node, receive_jfc, kReceives),
        slots(node, size_t{connections} * o.bytes, kAccessRead | kAccessWrite, {true, kKey}),
        back(node, size_t{connections} * o.bytes),
        receives(node, size_t{kReceives} * o.bytes) {}

  Node node;
  CompletionQueue send_jfc, receive_jfc;
  ReceiveQueue jfr;
  Region slots, back, receives;  // `slots`: a message of each connection
  std::vector<std::unique_ptr<SendRing>> rings;
  std::vector<uint32_t> targets;  // UB
};

class World {
 public:
  World(Protocol protocol, uint32_t connections, const Options& o)
      : protocol_(protocol),
        connections_(connections),
        o_(o),
        a_(1, protocol, connections, o),
        b_(2, protocol, connections, o),
        wire_(a_.node, b_.node, link(), kWireBytes) {
    for (Side* side : {&a_, &b_}) make_rings(*side);
    if (protocol == Protocol::kRoce) {
      connect(a_, wire_.link_at_a, b_);
      connect(b_, wire_.link_at_b, a_);
    } else {
      import(a_, wire_.link_at_a, b_);
    }
    for (uint32_t i = 0; i < kReceives; ++i) b_.jfr.post(i, receive(i));
    fill();
  }

  // Checked, and not measured. Tells the most state that the requesting Core had meanwhile.
  uint64_t check(WrOp op) {
    busy_bytes_ = 0;
    watching_ = true;
    std::memset(target_of(op).data(), 0, size_t{connections_} * o_.bytes);
    run(op, connections_);
    watching_ = false;
    settle();
    if (op == WrOp::kSend) return busy_bytes_;  // each was looked at as it came
    for (uint32_t i = 0; i < connections_; ++i) {
      if (!matches(target_of(op).data() + size_t{i} * o_.bytes, i)) fail("wrong bytes", i);
    }
    return busy_bytes_;
  }

  // Nanoseconds of an operation.
  double measure(WrOp op) {
    const uint32_t count = std::max(o_.operations, connections_);
    const uint64_t start = cpu_ns();
    run(op, count);
    const uint64_t took = cpu_ns() - start;
    settle();
    return static_cast<double>(took) / count;
  }

  std::vector<StateRow> state() const {
    std::vector<StateRow> rows = state_of(a_.node.core.state());
    if (protocol_ == Protocol::kRoce) {
      for (const StateRow& row : roce_state_of(*a_.node.core.roce_state(), o_.reads)) rows.push_back(row);
    }
    return rows;
  }
  static size_t ring_bytes(Protocol protocol, uint32_t depth) {
    return protocol == Protocol::kRoce ? SendRing::memory_bytes(depth, QueuePair::Engine::work_bytes(depth))
                                       : SendQueue::memory_bytes(depth);
  }

 private:
  static LinkConfig link() {
    LinkConfig c;
    c.mtu = kMtu;
    return c;
  }

  // ---- set-up ----

  void make_rings(Side& side) {
    for (uint32_t i = 0; i < connections_; ++i) {
      if (protocol_ == Protocol::kRoce) {
        side.rings.push_back(std::make_unique<QueuePair>(side.node, side.send_jfc, side.jfr, o_.depth));
      } else {
        side.rings.push_back(std::make_unique<SendQueue>(side.node, side.send_jfc, side.jfr, o_.depth));
      }
    }
  }
  void connect(Side& side, uint32_t link, Side& peer) {
    for (uint32_t i = 0; i < connections_; ++i) {
      static_cast<QueuePair&>(*side.rings[i])
          .connect(clock_.now(), link, peer.node, peer.rings[i]->id, o_.reads, kMtuCode);
    }
  }
  void import(Side& side, uint32_t link, const Side& peer) {
    for (uint32_t i = 0; i < connections_; ++i) {
      side.targets.push_back(
          side.node.add_target(clock_.now(), peer.node.number, link, ObjectKind::kJetty, peer.rings[i]->id));
      if (i == 0) settle();
    }
  }

  // ---- data: each word of a message names its connection ----

  static uint64_t word(uint32_t connection, uint32_t i) { return (uint64_t{connection} + 1) * 0x9e3779b97f4a7c15 + i; }
  bool matches(const std::byte* at, uint32_t connection) const {
    for (uint32_t i = 0; i < o_.bytes / 8; ++i) {
      const uint64_t expected = word(connection, i);
      if (std::memcmp(at + 8 * i, &expected, 8) != 0) return false;
    }
    return true;
  }
  void fill() {
    for (uint32_t c = 0; c < connections_; ++c) {
      for (uint32_t i = 0; i < o_.bytes / 8; ++i) {
        const uint64_t w = word(c, i);
        for (Region* r : {&a_.slots, &b_.back}) std::memcpy(r->data() + size_t{c} * o_.bytes + 8 * i, &w, 8);
      }
    }
  }
  // WRITE goes from a's slots to b's, READ from b's slots to a's `back`.
  Region& target_of(WrOp op) { return op == WrOp::kRead ? a_.back : b_.slots; }
  Sge receive(uint64_t i) const { return b_.receives.sge(i * o_.bytes, o_.bytes); }

  // ---- operations ----

  void post(WrOp op, uint32_t c) {
    const size_t at = size_t{c} * o_.bytes;
    Wqe e{};
    e.op = op;
    e.flags = kWrSignaled;
    e.user_ctx = c;
    e.length = o_.bytes;
    e.sge = (op == WrOp::kRead ? a_.back : a_.slots).sge(at, o_.bytes);
    if (op != WrOp::kSend) {
      e.remote_address = b_.slots.address() + at;
      e.token_id = b_.slots.registered.token_id;
      e.token_value = kKey;
      e.flags |= kWrToken;
    }
    if (protocol_ == Protocol::kUb) {
      e.target = a_.targets[c];
    } else if (op != WrOp::kSend) {
      e.token_id = roce::make_rkey(e.token_id, kKey);
    }
    a_.rings[c]->post(e);
    a_.node.core.on_posted(clock_.now(), a_.rings[c]->id);
  }

  // Over the connections in turn; as many in flight as a ring takes.
  void run(WrOp op, uint32_t count) {
    uint32_t posted = 0, done = 0, received = op == WrOp::kSend ? 0 : count;
    for (uint32_t idle = 0; done < count || received < count;) {
      for (; posted < count && posted - done < o_.depth; ++posted) {
        post(op, next_);
        next_ = next_ + 1 == connections_ ? 0 : next_ + 1;
      }
      idle = drive() ? 0 : idle + 1;
      if (idle > 10'000'000) fail("nothing moves any more", next_);
      done += take_sends();
      if (op == WrOp::kSend) received += take_receives();
    }
  }
  uint32_t take_sends() {
    uint32_t taken = 0;
    for (; const Cqe* cqe = a_.send_jfc.front(); ++taken) {
      if (cqe->status != CrStatus::kSuccess) fail("a request failed", static_cast<uint32_t>(cqe->user_ctx));
      a_.send_jfc.pop();
    }
    return taken;
  }
  uint32_t take_receives() {
    uint32_t taken = 0;
    for (; const Cqe* cqe = b_.receive_jfc.front(); ++taken) {
      const uint32_t c = cqe->local_id - b_.rings[0]->id;
      if (cqe->status != CrStatus::kSuccess || cqe->length != o_.bytes) fail("a receive failed", c);
      if (watching_ && !matches(b_.receives.data() + cqe->user_ctx * o_.bytes, c)) fail("wrong bytes received", c);
      b_.jfr.post(cqe->user_ctx, receive(cqe->user_ctx));
      b_.receive_jfc.pop();
    }
    return taken;
  }

  bool drive() {
    bool busy = a_.node.drive(clock_.now());
    if (watching_) busy_bytes_ = std::max(busy_bytes_, total(state()));
    busy |= b_.node.drive(clock_.now());
    clock_.advance(microseconds(1));
    return busy;
  }
  void settle() {
    while (drive()) {
    }
  }

  Protocol protocol_;
  uint32_t connections_;
  const Options& o_;
  Clock clock_;
  Side a_, b_;
  Wire wire_;
  uint32_t next_ = 0;
  bool watching_ = false;
  uint64_t busy_bytes_ = 0;
};

// ---- results ------------------------------------------------------------------------------------------------------

struct Cost {
  std::vector<StateRow> rows;
  uint64_t busy_bytes = 0;  // the most while requests were in flight
  double ns[kOperationCount] = {};
  uint64_t bytes() const { return total(rows); }
};
struct Result {
  uint32_t connections = 0;
  Cost cost[kProtocolCount];
};

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

Result compare(uint32_t connections, const Options& o) {
  Result r;
  r.connections = connections;
  std::vector<std::unique_ptr<World>> worlds;
  for (size_t p = 0; p < kProtocolCount; ++p) {
    worlds.push_back(std::make_unique<World>(kProtocols[p], connections, o));
    for (WrOp op : kOperations) r.cost[p].busy_bytes = std::max(r.cost[p].busy_bytes, worlds[p]->check(op));
    r.cost[p].rows = worlds[p]->state();
  }
  for (size_t k = 0; k < kOperationCount; ++k) {
    std::vector<double> ns[kProtocolCount];
    for (uint32_t round = 0; round < o.rounds; ++round) {
      for (size_t i = 0; i < kProtocolCount; ++i) {
        const size_t p = (i + round) % kProtocolCount;  // whoever goes first has no advantage
        ns[p].push_back(worlds[p]->measure(kOperations[k]));
      }
    }
    for (size_t p = 0; p < kProtocolCount; ++p) r.cost[p].ns[k] = median(ns[p]);
  }
  return r;
}

const std::vector<StateRow>& rows_of(const Result& r, Protocol p) { return r.cost[static_cast<size_t>(p)].rows; }

// What of UB's state belongs to a jetty or to what it imported; the rest is the peer's and the Core's.
uint64_t of_jettys(const Result& r) {
  const std::vector<StateRow>& rows = rows_of(r, Protocol::kUb);
  return total(rows, Per::kJetty) + total(rows, Per::kImport);
}

using Ull = unsigned long long;

void print_times(const std::vector<Result>& results, const Options& o) {
  std::printf("nanoseconds of CPU of an operation of %u bytes, both sides together, medians of %u rounds:\n", o.bytes,
              o.rounds);
  std::printf("%12s %10s %10s %10s %12s\n", "connections", "operation", "RoCE", "UB", "RoCE / UB");
  for (const Result& r : results) {
    for (size_t k = 0; k < kOperationCount; ++k) {
      std::printf("%12u %10s %10.1f %10.1f %12.2f\n", r.connections, kOperationNames[k], r.cost[0].ns[k],
                  r.cost[1].ns[k], r.cost[0].ns[k] / r.cost[1].ns[k]);
    }
  }
}

void print_state(const std::vector<Result>& results, const Options& o) {
  std::printf(
      "\nbytes of records that the requesting Core holds, at rest; and how many more with %u requests in flight:\n",
      o.depth);
  std::printf("%12s %12s %10s %12s %10s %14s %10s %12s %10s\n", "connections", "RoCE", "each QP", "UB", "each jetty",
              "UB: the rest", "RoCE / UB", "+ RoCE", "+ UB");
  for (const Result& r : results) {
    const Cost &roce = r.cost[0], &ub = r.cost[1];
    const uint64_t jettys = of_jettys(r);
    std::printf("%12u %12llu %10.0f %12llu %10.0f %14llu %10.2f %12llu %10llu\n", r.connections,
                static_cast<Ull>(roce.bytes()), static_cast<double>(total(roce.rows, Per::kConnection)) / r.connections,
                static_cast<Ull>(ub.bytes()), static_cast<double>(jettys) / r.connections,
                static_cast<Ull>(ub.bytes() - jettys),
                static_cast<double>(roce.bytes()) / static_cast<double>(ub.bytes()),
                static_cast<Ull>(roce.busy_bytes - roce.bytes()), static_cast<Ull>(ub.busy_bytes - ub.bytes()));
  }
  std::printf("rings apart, of depth %u, with what is kept of each request: %zu bytes a QP, %zu a jetty\n", o.depth,
              World::ring_bytes(Protocol::kRoce, o.depth), World::ring_bytes(Protocol::kUb, o.depth));
}

void print_rows(const Result& r) {
  std::printf("\nof these with %u connections:\n", r.connections);
  for (size_t p = 0; p < kProtocolCount; ++p) {
    for (const StateRow& row : r.cost[p].rows) {
      if (row.count == 0) continue;
      std::printf("  %-5s %-26s %10llu x %6llu\n", p == 0 ? "RoCE" : "UB", row.name, static_cast<Ull>(row.count),
                  static_cast<Ull>(row.bytes_each));
    }
  }
}

// What a full mesh takes, from the sizes measured. It is not run here: ub_scale runs UB's, and finds nothing per pair.
void print_mesh(const Result& r, const Options& o) {
  const std::vector<StateRow>& ub_rows = rows_of(r, Protocol::kUb);
  const double qp = static_cast<double>(total(rows_of(r, Protocol::kRoce), Per::kConnection)) / r.connections;
  const double jetty = static_cast<double>(total(ub_rows, Per::kJetty)) / r.connections;
  const double import = static_cast<double>(total(ub_rows, Per::kImport)) / r.connections;
  const auto peer = static_cast<double>(total(ub_rows, Per::kPeer));
  const auto qp_ring = static_cast<double>(World::ring_bytes(Protocol::kRoce, o.depth));
  const auto jetty_ring = static_cast<double>(World::ring_bytes(Protocol::kUb, o.depth));
  constexpr double kEndpoints = 1000;
  std::printf("\ncomputed from these: %.0f endpoints, each of which talks to every one of so many peers\n", kEndpoints);
  std::printf("%8s %14s %14s %8s %18s %14s %8s\n", "peers", "RoCE records", "UB records", "ratio", "RoCE with rings",
              "UB", "ratio");
  for (double peers : {1.0, 8.0, 64.0}) {
    const double roce = kEndpoints * peers * qp, ub = kEndpoints * jetty + peers * (peer + import);
    const double roce_all = roce + kEndpoints * peers * qp_ring, ub_all = ub + kEndpoints * jetty_ring;
    std::printf("%8.0f %14.0f %14.0f %8.1f %18.0f %14.0f %8.1f\n", peers, roce, ub, roce / ub, roce_all, ub_all,
                roce_all / ub_all);
  }
}

void print_json(const std::vector<Result>& results, const Options& o) {
  std::printf(
      "{\"bench\":\"qps\",\"bytes\":%u,\"rounds\":%u,\"depth\":%u,\"roce_ring_bytes\":%zu,\"ub_ring_bytes\":%zu,"
      "\"runs\":[",
      o.bytes, o.rounds, o.depth, World::ring_bytes(Protocol::kRoce, o.depth),
      World::ring_bytes(Protocol::kUb, o.depth));
  for (size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    std::printf("%s{\"connections\":%u", i == 0 ? "" : ",", r.connections);
    for (size_t p = 0; p < kProtocolCount; ++p) {
      const Cost& c = r.cost[p];
      std::printf(
          ",\"%s\":{\"write_ns\":%.1f,\"read_ns\":%.1f,\"send_ns\":%.1f,\"idle_bytes\":%llu,"
          "\"busy_bytes\":%llu}",
          p == 0 ? "roce" : "ub", c.ns[0], c.ns[1], c.ns[2], static_cast<Ull>(c.bytes()),
          static_cast<Ull>(c.busy_bytes));
    }
    std::printf("}");
  }
  std::printf("]}\n");
}

int run(const Options& o) {
  std::vector<Result> results;
  for (uint32_t connections : o.connections) results.push_back(compare(connections, o));
  if (o.json) {
    print_json(results, o);
  } else {
    print_times(results, o);
    print_state(results, o);
    print_rows(results.back());
    print_mesh(results.back(), o);
  }
  // All that is not a jetty's or an import's must be the same, however many there are.
  for (const Result& r : results) {
    if (r.cost[1].bytes() - of_jettys(r) == results[0].cost[1].bytes() - of_jettys(results[0])) continue;
    std::fprintf(stderr, "ub_qps: with %u jettys UB holds more than their own records\n", r.connections);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace ub::bench

int main(int argc, char** argv) {
  ub::bench::Options o;
  CLI::App app{"Time and state of many RoCE queue pairs against as many UB jettys, between two Cores in one thread"};
  app.add_option("--connections", o.connections, "queue pairs, and jettys: one run for each number")
      ->delimiter(',')
      ->check(CLI::Range(1, 30000));
  app.add_option("--operations", o.operations, "of a round; each connection has one at least")
      ->check(CLI::Range(1, 100'000'000));
  app.add_option("--rounds", o.rounds, "of each protocol and operation")->check(CLI::Range(1, 1000));
  app.add_option("--depth", o.depth, "requests that a ring holds, and that are in flight")->check(CLI::Range(1, 64));
  app.add_option("--reads", o.reads, "READs that a queue pair serves at a time")->check(CLI::Range(1, 16));
  app.add_option("--bytes", o.bytes, "of a message, a multiple of 8")->check(CLI::Range(8, 4096));
  app.add_flag("--json", o.json, "one JSON object");
  CLI11_PARSE(app, argc, argv);
  o.depth = std::bit_ceil(o.depth);
  o.bytes = o.bytes / 8 * 8;
  return ub::bench::run(o);
}
