// SPDX-License-Identifier: Apache-2.0
// requests.h - the sending side of the transaction layer in the hands of a test: one jetty with an open channel to a
// peer that the test plays. What would become packets are messages, and answers are given by TASSN.
#pragma once

#include <numeric>
#include <vector>

#include "lib/transport/resource/segments.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/handshake.h"
#include "lib/transport/ta/giving_up.h"
#include "lib/transport/ta/receive_answer.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/response_status.h"
#include "tests/unit/resource/objects.h"

namespace ub::ta {

constexpr uint32_t kMtu = 1024, kSegment = 64 * 1024;

struct Requests : Objects {
  struct Options {
    Mode mode = Mode::kRm;
    bool pinned = false;
    uint8_t rnr_retry = 7;
    uint32_t depth = 64;
    uint32_t lanes = 1;
    uint32_t channels = 8;
    uint32_t queues = small_tables().max_queues;
    uint32_t channels_per_lane = 1;
    bool slow_memory = false;
    bool suspends = false;
    bool completes_early = false;
    bool rol = false;  // RC and pinned: the channel is one of ROL
    bool rot = false;  // RC: the target keeps the order
    uint32_t window = 512;
    uint32_t kept_packets = small_tables().kept_packets;
    bool fetched = false;  // the application writes `source` and not `ring`
  };
  explicit Requests(const Options& o)
      : Objects(config(o)), memory(1 << 20), source(o.fetched ? ring.size() : 0), work(o.depth) {
    JettyConfig c = jetty_config(make_jfr());
    c.mode = o.mode;
    c.lower_layer_order = o.pinned;
    c.target_order = o.rot;
    c.sq.slots = ring.data();
    c.sq.slot_count = static_cast<uint32_t>(ring.size());
    c.sq.depth = static_cast<uint32_t>(work.size());
    c.sq.indices = &indices;
    c.sq.work = reinterpret_cast<std::byte*>(work.data());
    c.sq.rnr_retry = o.rnr_retry;
    c.sq.suspends = o.suspends;
    c.sq.completes_early = o.completes_early;
    if (o.fetched) c.sq.source = source.data();
    id = make(c);
    queue_index = jetty(id).queue;
    segment = register_memory(memory);
    target = add(target_config());
    channel = o.rol ? setup::channel_to(*s, s->targets[target].peer, kOrderedLane) : peer().lanes[0].channels[0];
    ch().rol = o.rol;
    open(channel);
  }
  Requests() : Requests(Options{}) {}
  static CoreConfig config(const Options& o) {
    CoreConfig c = small_tables();
    c.lanes = o.lanes;
    c.max_channels = o.channels;
    c.max_queues = o.queues;
    c.channels_per_lane = o.channels_per_lane;
    c.slow_memory = o.slow_memory;
    c.rol = o.rol;
    c.window_packets = o.window;
    c.kept_packets = o.kept_packets;
    return c;
  }

  Peer& peer() { return s->peers[s->targets[target].peer]; }
  tp::Channel& ch() { return s->channels[channel]; }
  SendQueue& q() { return s->queues[queue_index]; }
  WrState& state_of(uint32_t number) { return work[number & q().work_mask]; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory.data()); }
  void open(uint32_t which) {
    tp::Channel& c = s->channels[which];
    c.offered_mtu = kMtu;
    c.send_window = c.agreed_window = s->config.window_packets;
    c.so_credit = kEarlyOfContext;
    setup::open_channel(*s, which);
  }

  /// Segments have this length from now on.
  void cut_into(uint32_t bytes) {
    s->config.segment_bytes = bytes;
    for (uint32_t i = 1; i <= s->channels.high_water(); ++i) s->channels[i].segment_bytes = bytes;
  }

  /// Writes a request and rings.
  Wqe& post(WrOp op, uint32_t length = 8, uint8_t place_order = 0) {
    Wqe& w = write(op, length);
    w.place_order = place_order;
    ring_bell();
    return w;
  }
  Wqe& write(WrOp op, uint32_t length = 8) {
    const uint32_t at = indices.produced.load(), slots = wqe_slots(op, 1, 0);
    Wqe& w = (source.empty() ? ring : source)[at % ring.size()];
    w = {};
    w.op = op;
    w.flags = kWrSignaled;
    w.slots = static_cast<uint8_t>(slots);
    w.sge_count = 1;
    w.user_ctx = ++posted;
    w.length = length;
    w.target = target;
    w.sge = {address(), length, segment.handle};
    indices.produced.store(at + slots);
    return w;
  }
  void ring_bell() { schedule_queue(*s, queue_index); }
  /// What its channel has to send of it, and could now.
  std::vector<tp::TxMessage> sent() { return sent(channel); }
  std::vector<tp::TxMessage> sent(uint32_t by) {
    std::vector<tp::TxMessage> all;
    for (tp::TxMessage m{}; start_next_segment(*s, lane_of(*s, s->channels[by]), by, &m); m = {}) all.push_back(m);
    return all;
  }
  void answer(uint32_t tassn, uint8_t rspst = wire::kRspOk, uint8_t rspinfo = 0) {
    on_answer(*s, channel, answer_of(tassn, rspst, rspinfo));
  }
  wire::Atah answer_of(uint32_t tassn, uint8_t rspst = wire::kRspOk, uint8_t rspinfo = 0) const {
    wire::Atah a;
    a.rc_id = id;
    a.tassn = Tassn(tassn);
    a.rspst = rspst;
    a.rspinfo = rspinfo;
    return a;
  }
  void refuse(uint32_t tassn, uint8_t code = 3) { answer(tassn, wire::kRspRnr, code); }
  std::vector<CrStatus> outcomes() {
    std::vector<CrStatus> all;
    for (const Cqe& c : completions()) all.push_back(c.status);
    return all;
  }
  void pass(Duration d) { s->now += d; }
  void timer() { on_queue_timer(*s, queue_index); }

  std::vector<std::byte> memory;
  RegisteredSegment segment;
  std::vector<Wqe> ring = std::vector<Wqe>(256), source;
  std::vector<WrState> work;
  QueueIndices indices{};
  uint32_t id = 0, queue_index = 0, target = 0, channel = 0;
  uint64_t posted = 0;
};

// Of requests.
using Numbers = std::vector<uint32_t>;
inline Numbers numbers(const std::vector<tp::TxMessage>& messages) {
  Numbers all;
  for (const tp::TxMessage& m : messages) all.push_back(m.work_request);
  return all;
}

using Outcomes = std::vector<CrStatus>;
constexpr CrStatus kOk = CrStatus::kSuccess;

}  // namespace ub::ta
