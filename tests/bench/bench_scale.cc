// SPDX-License-Identifier: Apache-2.0
//
// ub_scale: many jettys of one Core talk to many peer Cores, each pair: a WRITE into the peer's segment and a
// READ back, a SEND there and a SEND back, every byte checked. Then it prints what that costs in state of the
// one Core: per jetty, per peer, and what is left for a pair of them, which must be nothing.
//
//   ub_scale [--jettys 1000] [--peers 64] [--depth 16] [--json]
//
// Everything runs in one thread under virtual time, so a run is the same every time. Exit status 1: wrong
// bytes, a failed request, or state that grows with pairs.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "emu_hw/node/state_rows.h"
#include "tests/bench/core_pair.h"

namespace ub::bench {

using emu::kTimerBytes;
using emu::state_of;
using emu::StateRow;

namespace {

constexpr uint32_t kBytes = 64;          // of a small message
constexpr uint32_t kBulkBytes = 20'000;  // of a message that takes the bulk channel
constexpr size_t kWireBytes = 256 * 1024;

[[noreturn]] void fail(const char* what, uint32_t jetty, uint32_t peer) {
  std::fprintf(stderr, "ub_scale: %s (jetty %u, peer %u)\n", what, jetty, peer);
  std::exit(1);
}

// ---- the world --------------------------------------------------------------------------------------------

struct Shape {
  uint32_t jettys, peers, depth;
};

struct Outcome {
  Shape shape{};
  std::vector<StateRow> idle;  // after everything was answered and acknowledged
  std::vector<StateRow> peak;  // largest count of each while requests were in flight
  uint64_t touched_before = 0, touched_objects = 0, touched_after = 0;  // arena, in whole pages
  uint64_t operations = 0, packets = 0;
};

CoreConfig peer_config(uint32_t number, const Shape& shape) {
  CoreConfig c = config_of(number);
  c.max_jfc = c.max_queues = c.max_segments = c.max_peers = c.max_channels = c.max_links = 16;
  c.max_targets = shape.jettys + 1;
  c.kept_packets = 64;
  return c;
}

// One of the many: serves the hub's WRITEs and READs, and has a jetty to send back with.
struct PeerNode {
  PeerNode(uint32_t number, const Shape& shape)
      : node(number, peer_config(number, shape)),
        depth(std::bit_ceil(shape.jettys + 1)),
        send_jfc(node, 2 * depth),
        receive_jfc(node, 2 * depth),
        jfr(node, receive_jfc, depth),
        jetty(node, send_jfc, jfr, depth),
        slots(node, size_t{shape.jettys} * kBytes),
        buffers(node, size_t{depth} * kBytes),
        outgoing(node, size_t{shape.jettys} * kBytes),
        bulk(node, kBulkBytes) {
    for (uint32_t i = 0; i < depth; ++i) jfr.post(i, buffers.sge(size_t{i} * kBytes, kBytes));
  }
  Node node;
  uint32_t depth;
  CompletionQueue send_jfc, receive_jfc;
  ReceiveQueue jfr;
  SendQueue jetty;
  Region slots, buffers, outgoing, bulk;
  std::vector<uint32_t> targets;  // the hub's jettys
};

class World {
 public:
  explicit World(const Shape& shape) : shape_(shape), hub_(1) {
    hub_.arena.never_huge();
    outcome_.shape = shape;
    outcome_.touched_before = hub_.arena.touched_bytes();
    make_hub();
    for (uint32_t p = 0; p < shape_.peers; ++p) make_peer(p);
    outcome_.peak = state_of(hub_.core.state());
    outcome_.touched_objects = hub_.arena.touched_bytes();
  }

  Outcome run() {
    // In round k jetty j talks to peer j + k: every jetty and every peer is busy all the time.
    for (uint32_t round = 0; round < shape_.peers; ++round) {
      write_there(round);
      read_back(round);
      send_there(round);
      send_back(round);
    }
    for (uint32_t p = 0; p < shape_.peers; ++p) write_bulk(p);
    settle();
    const CoreState& s = hub_.core.state();
    outcome_.idle = state_of(s);
    outcome_.touched_after = hub_.arena.touched_bytes();
    outcome_.packets = s.counters[Counter::kTxPackets] + s.counters[Counter::kRxPackets];
    return outcome_;
  }

 private:
  enum What : uint64_t { kWrite, kSendThere, kSendBack, kBulk };

  // Word i of the message that jetty j and peer p exchange.
  static uint64_t word(What what, uint32_t jetty, uint32_t peer, uint32_t i) {
    uint64_t x = (uint64_t{jetty} << 32 | uint64_t{peer} << 8 | what) * 0x9e3779b97f4a7c15 + i;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
    return x ^ x >> 29;
  }
  static void fill(std::byte* at, uint32_t bytes, What what, uint32_t jetty, uint32_t peer) {
    for (uint32_t i = 0; i < bytes / 8; ++i) {
      uint64_t w = word(what, jetty, peer, i);
      std::memcpy(at + 8 * i, &w, 8);
    }
  }
  static bool matches(const std::byte* at, uint32_t bytes, What what, uint32_t jetty, uint32_t peer) {
    for (uint32_t i = 0; i < bytes / 8; ++i) {
      uint64_t w = word(what, jetty, peer, i);
      if (std::memcmp(at + 8 * i, &w, 8) != 0) return false;
    }
    return true;
  }

  uint32_t peer_of(uint32_t jetty, uint32_t round) const { return (jetty + round) % shape_.peers; }

  // ---- set-up ----

  void make_hub() {
    uint32_t completions = std::bit_ceil(2 * (shape_.jettys + shape_.peers) + 16);
    send_jfc_ = std::make_unique<CompletionQueue>(hub_, completions);
    receive_jfc_ = std::make_unique<CompletionQueue>(hub_, completions);
    jfr_ = std::make_unique<ReceiveQueue>(hub_, *receive_jfc_, completions);
    local_ = std::make_unique<Region>(hub_, size_t{shape_.jettys} * 2 * kBytes);
    buffers_ = std::make_unique<Region>(hub_, size_t{completions} * kBytes);
    bulk_ = std::make_unique<Region>(hub_, kBulkBytes);
    for (uint32_t i = 0; i < completions; ++i) jfr_->post(i, buffers_->sge(size_t{i} * kBytes, kBytes));
    for (uint32_t j = 0; j < shape_.jettys; ++j) {
      jettys_.push_back(std::make_unique<SendQueue>(hub_, *send_jfc_, *jfr_, shape_.depth));
      if (j != 0 && jettys_[j]->id != jettys_[0]->id + j) fail("ids are not in turn", j, 0);
    }
  }

  void make_peer(uint32_t p) {
    peers_.push_back(std::make_unique<PeerNode>(2 + p, shape_));
    PeerNode& peer = *peers_[p];
    LinkConfig link;
    link.mtu = 1024;
    wires_.push_back(std::make_unique<Wire>(hub_, peer.node, link, kWireBytes));
    targets_.push_back(
        hub_.add_target(clock_.now(), peer.node.number, wires_[p]->link_at_a, ObjectKind::kJetty, peer.jetty.id));
    settle();
    for (uint32_t j = 0; j < shape_.jettys; ++j) {
      peer.targets.push_back(
          peer.node.add_target(clock_.now(), hub_.number, wires_[p]->link_at_b, ObjectKind::kJetty, jettys_[j]->id));
    }
    settle();
  }

  // ---- driving ----

  bool drive() {
    bool busy = hub_.drive(clock_.now());
    note_peak();
    for (auto& peer : peers_) busy |= peer->node.drive(clock_.now());
    clock_.advance(microseconds(1));
    return busy;
  }
  void settle() {
    while (drive()) {
    }
  }
  template <class Done>
  void drive_until(Done done) {
    for (uint32_t idle = 0; !done();) {
      idle = drive() ? 0 : idle + 1;
      if (idle > 10'000'000) fail("nothing moves any more", 0, 0);
    }
  }
  void note_peak() {
    std::vector<StateRow> now = state_of(hub_.core.state());
    if (outcome_.peak.empty()) outcome_.peak = now;
    for (size_t i = 0; i < now.size(); ++i) outcome_.peak[i].count = std::max(outcome_.peak[i].count, now[i].count);
  }

  // ---- operations ----

  Wqe element(WrOp op, uint32_t target, const Sge& sge) const {
    Wqe e{};
    e.op = op;
    e.flags = kWrSignaled;
    e.target = target;
    e.length = sge.length;
    e.sge = sge;
    return e;
  }
  void post(uint32_t jetty, const Wqe& e) {
    jettys_[jetty]->post(e);
    hub_.core.on_posted(clock_.now(), jettys_[jetty]->id);
    ++outcome_.operations;
  }
  void await_sends(CompletionQueue& jfc, uint32_t count) {
    drive_until([&] {
      while (const Cqe* cqe = jfc.front()) {
        if (cqe->status != CrStatus::kSuccess) fail("a request failed", cqe->local_id, 0);
        jfc.pop();
        --count;
      }
      return count == 0;
    });
  }

  size_t source_at(uint32_t jetty) const { return size_t{jetty} * 2 * kBytes; }
  size_t back_at(uint32_t jetty) const { return source_at(jetty) + kBytes; }

  void post_remote(WrOp op, uint32_t j, uint32_t p, size_t local_at) {
    Wqe e = element(op, targets_[p], local_->sge(local_at, kBytes));
    e.remote_address = peers_[p]->slots.address() + size_t{j} * kBytes;
    e.token_id = peers_[p]->slots.registered.token_id;
    post(j, e);
  }

  void write_there(uint32_t round) {
    for (uint32_t j = 0; j < shape_.jettys; ++j) {
      fill(local_->data() + source_at(j), kBytes, kWrite, j, peer_of(j, round));
      post_remote(WrOp::kWrite, j, peer_of(j, round), source_at(j));
    }
    await_sends(*send_jfc_, shape_.jettys);
    for (uint32_t j = 0; j < shape_.jettys; ++j) {
      uint32_t p = peer_of(j, round);
      if (!matches(peers_[p]->slots.data() + size_t{j} * kBytes, kBytes, kWrite, j, p))
        fail("wrong bytes written", j, p);
    }
  }

  void read_back(uint32_t round) {
    for (uint32_t j = 0; j < shape_.jettys; ++j) post_remote(WrOp::kRead, j, peer_of(j, round), back_at(j));
    await_sends(*send_jfc_, shape_.jettys);
    for (uint32_t j = 0; j < shape_.jettys; ++j) {
      uint32_t p = peer_of(j, round);
      if (!matches(local_->data() + back_at(j), kBytes, kWrite, j, p)) fail("wrong bytes read", j, p);
    }
  }

  void send_there(uint32_t round) {
    for (uint32_t j = 0; j < shape_.jettys; ++j) {
      uint32_t p = peer_of(j, round);
      fill(local_->data() + source_at(j), kBytes, kSendThere, j, p);
      post(j, element(WrOp::kSend, targets_[p], local_->sge(source_at(j), kBytes)));
    }
    await_sends(*send_jfc_, shape_.jettys);
    uint32_t received = 0;
    for (uint32_t p = 0; p < shape_.peers; ++p) {
      PeerNode& peer = *peers_[p];
      while (const Cqe* cqe = peer.receive_jfc.front()) {
        uint32_t j = cqe->remote_id - jettys_[0]->id;
        const std::byte* buffer = peer.buffers.data() + cqe->user_ctx * kBytes;
        if (cqe->status != CrStatus::kSuccess || j >= shape_.jettys || peer_of(j, round) != p ||
            cqe->length != kBytes || !matches(buffer, kBytes, kSendThere, j, p)) {
          fail("wrong message at the peer", j, p);
        }
        peer.jfr.post(cqe->user_ctx, peer.buffers.sge(cqe->user_ctx * kBytes, kBytes));
        peer.receive_jfc.pop();
        ++received;
      }
    }
    if (received != shape_.jettys) fail("messages lost", received, 0);
  }

  void send_back(uint32_t round) {
    std::vector<uint32_t> posted(shape_.peers);
    for (uint32_t j = 0; j < shape_.jettys; ++j) {
      uint32_t p = peer_of(j, round);
      PeerNode& peer = *peers_[p];
      fill(peer.outgoing.data() + size_t{j} * kBytes, kBytes, kSendBack, j, p);
      peer.jetty.post(element(WrOp::kSend, peer.targets[j], peer.outgoing.sge(size_t{j} * kBytes, kBytes)));
      ++posted[p];
      ++outcome_.operations;
    }
    for (auto& peer : peers_) peer->node.core.on_posted(clock_.now(), peer->jetty.id);
    for (uint32_t p = 0; p < shape_.peers; ++p) await_sends(peers_[p]->send_jfc, posted[p]);
    uint32_t received = 0;
    for (; const Cqe* cqe = receive_jfc_->front(); ++received) {
      uint32_t j = cqe->local_id - jettys_[0]->id;
      uint32_t p = cqe->remote_uasid - 2;
      if (cqe->status != CrStatus::kSuccess || j >= shape_.jettys || peer_of(j, round) != p ||
          !matches(buffers_->data() + cqe->user_ctx * kBytes, kBytes, kSendBack, j, p)) {
        fail("wrong message at the jetty", j, p);
      }
      jfr_->post(cqe->user_ctx, buffers_->sge(cqe->user_ctx * kBytes, kBytes));
      receive_jfc_->pop();
    }
    if (received != shape_.jettys) fail("messages lost", received, 0);
  }

  // One large message, so that the peer's bulk channel exists, too.
  void write_bulk(uint32_t p) {
    uint32_t j = p % shape_.jettys;
    fill(bulk_->data(), kBulkBytes, kBulk, j, p);
    Wqe e = element(WrOp::kWrite, targets_[p], bulk_->sge(0, kBulkBytes));
    e.remote_address = peers_[p]->bulk.address();
    e.token_id = peers_[p]->bulk.registered.token_id;
    post(j, e);
    await_sends(*send_jfc_, 1);
    if (!matches(peers_[p]->bulk.data(), kBulkBytes, kBulk, j, p)) fail("wrong bytes in bulk", j, p);
  }

  Shape shape_;
  Clock clock_;
  Node hub_;
  std::unique_ptr<CompletionQueue> send_jfc_, receive_jfc_;
  std::unique_ptr<ReceiveQueue> jfr_;
  std::unique_ptr<Region> local_, buffers_, bulk_;
  std::vector<std::unique_ptr<SendQueue>> jettys_;
  std::vector<std::unique_ptr<PeerNode>> peers_;
  std::vector<std::unique_ptr<Wire>> wires_;
  std::vector<uint32_t> targets_;  // by peer; shared by all jettys
  Outcome outcome_;
};

// ---- report -----------------------------------------------------------------------------------------------

using Ull = unsigned long long;

uint64_t idle_bytes(const Outcome& o) { return total(o.idle); }

void print_sizes(uint32_t depth) {
  std::printf("bytes of a jetty: record %zu, send queue record %zu, id %zu, timer %llu\n", sizeof(Jetty),
              sizeof(ub::SendQueue), sizeof(IdSlot), static_cast<Ull>(kTimerBytes));
  std::printf("  and queue memory, by depth (ring of twice as many slots, request states, indices):");
  for (uint32_t d : {depth, 64u, 256u, 1024u}) std::printf(" %u: %zu", d, SendQueue::memory_bytes(d));
  std::printf(
      "\nbytes of a peer: record %zu, each of its one or two channels %zu (of these %zu per packet), timer "
      "%llu\n",
      sizeof(Peer), sizeof(tp::Channel), sizeof(tp::ChannelHot), static_cast<Ull>(kTimerBytes));
  std::printf("  and only while messages are in flight or packets missing: chunks of %u messages %zu, recovery %zu\n",
              tp::kMessagesPerChunk, sizeof(tp::MessageChunk), sizeof(tp::RecoveryBlock));
}

void print_state(const Outcome& o) {
  std::printf("\nstate of the Core with %u jettys and %u peers, %llu operations checked, %llu packets:\n",
              o.shape.jettys, o.shape.peers, static_cast<Ull>(o.operations), static_cast<Ull>(o.packets));
  std::printf("  %-26s %10s %10s %12s %12s\n", "", "bytes each", "idle", "idle bytes", "most in use");
  for (size_t i = 0; i < o.idle.size(); ++i) {
    std::printf("  %-26s %10llu %10llu %12llu %12llu\n", o.idle[i].name, static_cast<Ull>(o.idle[i].bytes_each),
                static_cast<Ull>(o.idle[i].count), static_cast<Ull>(o.idle[i].bytes()),
                static_cast<Ull>(o.peak[i].count));
  }
  std::printf("  pages touched: %llu KiB empty, %llu with all objects and channels, %llu after the exchange\n",
              static_cast<Ull>(o.touched_before / 1024), static_cast<Ull>(o.touched_objects / 1024),
              static_cast<Ull>(o.touched_after / 1024));
}

// Four runs: {1, all} jettys x {1, all} peers.
struct Increments {
  double per_jetty, per_peer;
  int64_t for_pairs;  // what neither jettys nor peers explain
};

Increments increments(const std::vector<Outcome>& o, const Shape& full) {
  auto s = [&](int i) { return static_cast<int64_t>(idle_bytes(o[i])); };
  Increments r{};
  if (full.jettys > 1) r.per_jetty = static_cast<double>(s(1) - s(0)) / (full.jettys - 1);
  if (full.peers > 1) r.per_peer = static_cast<double>(s(2) - s(0)) / (full.peers - 1);
  r.for_pairs = s(3) - s(1) - s(2) + s(0);
  return r;
}

void print_increments(const std::vector<Outcome>& outcomes, const Increments& inc) {
  std::printf("\n%8s %8s %10s %14s %14s %16s %16s\n", "jettys", "peers", "pairs", "idle bytes", "most chunks",
              "touched KiB", "of it exchange");
  for (const Outcome& o : outcomes) {
    uint64_t chunks = 0;
    for (const StateRow& row : o.peak) chunks = row.bytes_each == sizeof(tp::MessageChunk) ? row.count : chunks;
    std::printf("%8u %8u %10llu %14llu %14llu %16llu %16llu\n", o.shape.jettys, o.shape.peers,
                static_cast<Ull>(uint64_t{o.shape.jettys} * o.shape.peers), static_cast<Ull>(idle_bytes(o)),
                static_cast<Ull>(chunks), static_cast<Ull>(o.touched_after / 1024),
                static_cast<Ull>((o.touched_after - o.touched_objects) / 1024));
  }
  std::printf(
      "increments: %.1f bytes a jetty (without queue memory), %.1f bytes a peer (link and import included), "
      "%lld "
      "bytes for all pairs\n",
      inc.per_jetty, inc.per_peer, static_cast<long long>(inc.for_pairs));
}

void print_json(const std::vector<Outcome>& outcomes, const Increments& inc, uint32_t depth) {
  std::printf(
      "{\"bench\":\"scale\",\"jetty_bytes\":%zu,\"send_queue_bytes\":%zu,\"queue_memory_depth\":%u,"
      "\"queue_memory_bytes\":%zu,\"peer_bytes\":%zu,\"channel_bytes\":%zu,\"channel_hot_bytes\":%zu,"
      "\"increment_jetty\":%.1f,\"increment_peer\":%.1f,\"increment_pairs\":%lld,\"runs\":[",
      sizeof(Jetty), sizeof(ub::SendQueue), depth, SendQueue::memory_bytes(depth), sizeof(Peer), sizeof(tp::Channel),
      sizeof(tp::ChannelHot), inc.per_jetty, inc.per_peer, static_cast<long long>(inc.for_pairs));
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& o = outcomes[i];
    std::printf(
        "%s{\"jettys\":%u,\"peers\":%u,\"operations\":%llu,\"packets\":%llu,\"idle_bytes\":%llu,"
        "\"touched_before\":%llu,\"touched_objects\":%llu,\"touched_after\":%llu,\"state\":{",
        i == 0 ? "" : ",", o.shape.jettys, o.shape.peers, static_cast<Ull>(o.operations), static_cast<Ull>(o.packets),
        static_cast<Ull>(idle_bytes(o)), static_cast<Ull>(o.touched_before), static_cast<Ull>(o.touched_objects),
        static_cast<Ull>(o.touched_after));
    for (size_t k = 0; k < o.idle.size(); ++k) {
      std::printf("%s\"%s\":{\"bytes_each\":%llu,\"idle\":%llu,\"most\":%llu}", k == 0 ? "" : ",", o.idle[k].name,
                  static_cast<Ull>(o.idle[k].bytes_each), static_cast<Ull>(o.idle[k].count),
                  static_cast<Ull>(o.peak[k].count));
    }
    std::printf("}}");
  }
  std::printf("]}\n");
}

int run(const Shape& full, bool json) {
  std::vector<Outcome> outcomes;
  for (uint32_t peers : {1u, full.peers}) {
    for (uint32_t jettys : {1u, full.jettys}) outcomes.push_back(World({jettys, peers, full.depth}).run());
  }
  Increments inc = increments(outcomes, full);
  if (json) {
    print_json(outcomes, inc, full.depth);
  } else {
    print_sizes(full.depth);
    print_state(outcomes.back());
    print_increments(outcomes, inc);
  }
  if (inc.for_pairs != 0) std::fprintf(stderr, "ub_scale: state grows with pairs\n");
  return inc.for_pairs != 0;
}

}  // namespace
}  // namespace ub::bench

int main(int argc, char** argv) {
  ub::bench::Shape shape{1000, 64, 16};
  bool json = false;
  CLI::App app{"State of a Core per jetty and per peer, proven by checked traffic between all pairs"};
  app.add_option("--jettys", shape.jettys, "jettys of the Core")->check(CLI::Range(1, 60000));
  app.add_option("--peers", shape.peers, "peer Cores")->check(CLI::Range(1, 1000));
  app.add_option("--depth", shape.depth, "requests that a send queue holds")->check(CLI::Range(1, 4096));
  app.add_flag("--json", json, "one JSON object");
  CLI11_PARSE(app, argc, argv);
  shape.depth = std::bit_ceil(shape.depth);
  return ub::bench::run(shape, json);
}
