// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/at_rest.h"

#include <algorithm>
#include <vector>

#include "lib/transport/ta/sequence_contexts.h"
#include "lib/transport/tp/paths.h"
#include "tests/sim/world.h"

namespace ub::sim {
namespace {

using tp::Channel;
using tp::ChannelState;

bool alive(const Channel& ch) { return ch.state != ChannelState::kFree && ch.state != ChannelState::kDead; }

// One node under inspection. Every member names what it looked at, so that the failure does.
class Inspection {
 public:
  Inspection(World& world, Node& node)
      : world_(world), node_(node), s_(node.core().state()), roce_(node.core().roce_state()) {}

  void quiet();
  void empty();

 private:
  void expect(const char* what, uint64_t have, uint64_t want) {
    if (have == want || world_.failed()) return;
    world_.model.fail("node %u, at rest: %s: %llu, should be %llu", node_.index(), what,
                      static_cast<unsigned long long>(have), static_cast<unsigned long long>(want));
  }
  void none(const char* what, uint64_t have) { expect(what, have, 0); }

  // A pool hands out each record once until it is empty. The copy shares the list of free records, which alloc() only
  // reads.
  template <class T>
  void free_list(const char* what, const Slab<T>& pool) {
    Slab<T> copy = pool;
    std::vector<bool> seen(pool.high_water() + 1);
    uint32_t given = 0;
    while (given + pool.in_use() < pool.high_water()) {
      const uint32_t index = copy.alloc();
      if (index == 0 || index > pool.high_water() || seen[index]) break;
      seen[index] = true;
      ++given;
    }
    expect(what, given + pool.in_use(), pool.high_water());
  }
  void free_lists();

  void lists();
  void pools_in_transit();
  void channel(const Channel&);
  void far_end(const Channel&);
  void paths_of_channel(const Channel&);
  void flow_of_channel(const Channel&);
  void flow_of_queue_pair(const roce::Qp&);
  void heard(const cc::Listener&);
  void queue(const SendQueue&);
  void context(const InitiatorContext&);
  void queue_pair(const roce::Qp&);
  void receives();
  void timers();
  void host();
  void objects();
  void ids();
  void dead_channels();
  void queue_pairs();

  World& world_;
  Node& node_;
  const CoreState& s_;
  const roce::State* roce_;  // null: off
};

void Inspection::free_lists() {
  free_list("free and used JFCs", s_.jfcs);
  free_list("free and used JFRs", s_.jfrs);
  free_list("free and used jettys", s_.jettys);
  free_list("free and used groups", s_.groups);
  free_list("free and used send queues", s_.queues);
  free_list("free and used segments", s_.segments);
  free_list("free and used targets", s_.targets);
  free_list("free and used peers", s_.peers);
  free_list("free and used READ jobs", s_.jobs);
  free_list("free and used receives", s_.receives);
  free_list("free and used numbers of held datagrams", s_.held_datagrams.places);
  free_list("free and used arriving datagrams", s_.arriving);
  free_list("free and used recovery blocks", s_.recovery);
  free_list("free and used records of retransmissions", s_.resent);
  free_list("free and used sequence contexts", s_.contexts);
  free_list("free and used records of sequence contexts of others", s_.initiator_contexts);
  free_list("free and used blocks of send times", s_.send_times.blocks());
  free_list("free and used chunks of messages", s_.messages);
  free_list("free and used chunks of answers", s_.answers);
  free_list("free and used reorder blocks", s_.reorder);
  free_list("free and used kept packets", s_.kept.large());
  free_list("free and used small kept packets", s_.kept.small());
  free_list("free and used parked messages", s_.parked);
  free_list("free and used records of repeats", s_.repeats);
  free_list("free and used numbers of held frames", s_.held.more().places);
  if (roce_ == nullptr) return;
  free_list("free and used queue pairs", roce_->qps);
  free_list("free and used blocks of send times of queue pairs", roce_->send_times.blocks());
  free_list("free and used address handles", roce_->address_handles);
  free_list("free and used listeners", roce_->listeners);
  free_list("free and used connections", roce_->connections);
  free_list("free and used kept packets of queue pairs", roce_->kept);
  free_list("free and used completions that arrive", roce_->arriving);
}

// Nobody waits for a turn, and nothing waits to leave.
void Inspection::lists() {
  none("channel with something to send", s_.active.back());
  none("channel that owes an acknowledgement", s_.owing_acks.back());
  none("link with datagrams", s_.active_links.back());
  none("receive that copies of dead channels may write", s_.receives_with_late_copies.back());
  none("held frames that were given up", s_.held.orphan_count());
  none("records to send", s_.outbox_tail - s_.outbox_head);
  none("events to report", s_.event_tail - s_.event_head);
  none("JFC with events to report", s_.event_jfcs.back());
  for (uint32_t i = 1; i <= s_.links.high_water(); ++i) none("queue that waits for a link", s_.links[i].queues.back());
  if (roce_ == nullptr) return;
  none("queue pair with something to send", roce_->active.back());
  none("management datagrams to send", roce_->mad_tail - roce_->mad_head);
  none("events of connections to report", roce_->event_tail - roce_->event_head);
}

// Records that something under way has, and that its end gives back.
void Inspection::pools_in_transit() {
  uint32_t reorder = 0, kept = 0, waiting = 0, jobs = 0, parked = 0, contexts = 0, repeats = 0;
  for (uint32_t i = 1; i <= s_.channels.high_water(); ++i) {
    const Channel& ch = s_.channels[i];
    if (!alive(ch)) continue;
    reorder += ch.reorder != 0;
    kept += ch.kept.total();
    for (Psn psn = ch.delivered; !psn.after(ch.highest_seen); ++psn) waiting += s_.kept_by_psn.find(i, psn) != 0;
    jobs += ch.read_jobs;
    parked += ch.parked;
    repeats += ch.repeats != 0;
  }
  for (uint32_t i = 1; i <= s_.peers.high_water(); ++i) contexts += s_.peers[i].contexts;
  none("chunks of messages", s_.messages.in_use());
  none("chunks of answers", s_.answers.in_use());
  none("recovery blocks", s_.recovery.in_use());
  none("records of retransmissions", s_.resent.in_use());
  none("numbers of held datagrams", s_.held_datagrams.places.in_use());
  none("numbers of held frames beside those of their senders", s_.held.more().places.in_use());
  none("held frames", s_.held.in_use_count());
  none("datagrams that are placed", s_.arriving.in_use());
  expect("READ jobs, by what channels count", s_.jobs.in_use(), jobs);
  expect("reorder blocks, by those of channels", s_.reorder.in_use(), reorder);
  expect("kept packets, by what channels count", s_.kept.in_use(), kept);
  expect("kept packets that wait for delivery, by the PSNs of channels", s_.kept_by_psn.size(), waiting);
  expect("parked messages, by what channels count", s_.parked.in_use(), parked);
  expect("sequence contexts, by what peers count", s_.contexts.in_use(), contexts);
  expect("records of repeats, by those of channels", s_.repeats.in_use(), repeats);
  if (roce_ == nullptr) return;
  uint32_t of_queue_pairs = 0;
  for (uint32_t i = 1; i <= roce_->qps.high_water(); ++i)
    if (roce_->qps[i].in_use) of_queue_pairs += roce_->qps[i].kept;
  expect("kept packets, by what queue pairs count", roce_->kept.in_use(), of_queue_pairs);
}

void Inspection::channel(const Channel& ch) {
  none("frames in flight of a channel", ch.outstanding());
  none("recovery block of a channel with nothing in flight", ch.recovery);
  none("messages of a channel", ch.in_flight.size() + ch.answers.size());
  none("unfinished message of a channel", ch.mid_message);
  none("copies of a channel", ch.open.copies);
  none("unanswered requests of a lane", s_.peers[ch.peer].lanes[ch.lane].unanswered);
  none("parked messages of a channel", ch.ending.back() + ch.early.back());
  // A peer that has gone leaves gaps, and messages behind them.
  if (ch.highest_seen.before(ch.expected)) none("messages ahead of a gap where there is none", ch.parked);
  none("messages of a channel whose turn has not come", ch.early_count);
  none("packets of a channel that wait for memory", ch.held.count + ch.held_new);
  none("channel on the list of those with something to send", ch.on_active_list.next);
  none("channel on the list of those that owe an acknowledgement", ch.on_ack_list.next);
  none("queue that waits for a channel", ch.queues.back());
  none("READ jobs of a channel", ch.read_jobs);
  none("delivery of a channel that is held up", ch.stalled);
  if (ch.repeats != 0) none("requests of a channel that are to be sent again", s_.repeats[ch.repeats].due_count);
  if (!ch.compact) none("a retransmission that a channel with nothing in flight waits for", !ch.rto_at.is_never());
  far_end(ch);
  if (ch.is_up()) flow_of_channel(ch);
}

void Inspection::paths_of_channel(const Channel& ch) {
  for (const tp::Path& p : tp::paths_of(s_, ch)) {
    none("packets in flight on a path", p.in_flight);
    none("packets of a path that nobody was told of", p.arrived);
  }
  const tp::PathBlock& block = s_.path_blocks[ch.paths];
  for (const tp::Departure& d : block.departures) {
    if (d.path != tp::kNoPath) none("a departure of nothing in flight", 1u);
  }
}

// What a flow that only listens cannot have heard: an answer before there was time for one, or a mark of what may not
// be marked.
void Inspection::heard(const cc::Listener& l) {
  none("marks of packets that nobody may mark", l.marks);
  const uint64_t least = 2 * world_.network.least_travel_ns();
  if (l.round_trips != 0 && l.least_round_trip_ns < least)
    expect("the least round trip, in ns", l.least_round_trip_ns, least);
}

// Everything was acknowledged: each packet that left once has told its round trip, and no other (Karn).
void Inspection::flow_of_channel(const Channel& ch) {
  if (ch.several_paths) return paths_of_channel(ch);
  const auto& left = world_.network.departures.of_channel(node_.index(), node_.epoch(), ch.tpn);
  if (ch.flow.algorithm == cc::Algorithm::kListener) {
    heard(ch.flow.listener);
    // On ROL a packet that was reported may leave once more, to ask whether it was executed.
    if (ch.rol && ch.flow.listener.round_trips > left.once) return;
    expect("round trips that a channel heard of, by packets that left once", ch.flow.listener.round_trips, left.once);
  }
  if (ch.flow.algorithm == cc::Algorithm::kDcqcn && !left.marked)
    none("notifications without a mark", ch.flow.dcqcn.alpha);
}

void Inspection::flow_of_queue_pair(const roce::Qp& qp) {
  const bool marked = world_.network.departures.any_marked(node_.index(), node_.epoch());
  if (qp.flow.algorithm == cc::Algorithm::kListener) heard(qp.flow.listener);
  if (qp.flow.algorithm == cc::Algorithm::kDcqcn && !marked) none("notifications without a mark", qp.flow.dcqcn.alpha);
}

// Whose peer has it open, too: both know the same.
void Inspection::far_end(const Channel& ch) {
  uint32_t index = 0, epoch = 0;
  if (!ch.is_up() || !world_.find_instance(ch.remote.eid, ch.remote.uasid, &index, &epoch)) return;
  Node& peer = world_.node(index);
  if (!peer.up() || peer.epoch() != epoch) return;
  const CoreState& p = peer.core().state();
  const uint32_t at = ch.peer_tpn & ((1u << tp::kTpnIndexBits) - 1);
  if (at == 0 || at > p.channels.high_water()) return;
  const Channel& other = p.channels[at];
  if (!other.is_up() || other.tpn != ch.peer_tpn || other.peer_tpn != ch.tpn) return;
  if (ch.repeats == 0) {
    expect("next packet that a channel expects", ch.expected.value(), other.next_psn.value());
    expect("next packet that a channel delivers", ch.delivered.value(), other.next_psn.value());
    expect("next message of a channel", ch.message.value(), other.next_tpmsn.value());
  }
  none("open message of a channel", static_cast<uint64_t>(ch.begun));
  none("receive of a channel without a message", ch.open.receive);
  none("reorder block of a channel with nothing missing", ch.reorder);
  none("kept packets of a channel with nothing missing", ch.kept.total());
}

void Inspection::queue(const SendQueue& q) {
  none("copies of a send queue", q.copies_pending);
  if (q.started_head != q.started_tail) return;
  none("unanswered segments of a send queue", q.unanswered_segments);
  none("waiting requests of a send queue", q.waiting);
  none("unanswered fenced segments of a send queue", q.unanswered_fenced);
  none("receives in flight of a send queue", q.receives_in_flight);
  none("refused receives of a send queue", q.receives_refused);
  none("requests of a send queue to retry", q.retries);
  if (q.context != 0) context(s_.initiator_contexts[q.context]);
  if (q.unreliable) none("datagram of a send queue that is held", q.held);
  none("completion of a send queue that waits for room", q.waiter.in_line.next);
}

// Every number of a sequence context was answered, and executed at the other end.
void Inspection::context(const InitiatorContext& c) {
  expect("answered numbers of a context", c.answered.first().value(), c.next.value());
  none("strong requests of a context", c.strong_unanswered);
  const InstanceId& at = s_.peers[c.peer].instance;
  uint32_t index = 0, epoch = 0;
  if (!world_.find_instance(at.eid, at.uasid, &index, &epoch)) return;
  Node& node = world_.node(index);
  if (!node.up() || node.epoch() != epoch) return;
  const CoreState& p = node.core().state();
  for (uint32_t i = 1; i <= p.contexts.high_water(); ++i) {
    const SequenceContext& t = p.contexts[i];
    if (!t.in_use || ta::context_of(p, t.peer, c.scid) != i) continue;
    expect("executed numbers of a context", t.executed.first().value(), c.next.value());
  }
}

void Inspection::queue_pair(const roce::Qp& qp) {
  none("queue pair on the list of those with something to send", qp.on_active_list.next);
  none("copies of a queue pair", qp.copies_pending + qp.response_copies);
  none("packets of a queue pair that wait for memory", qp.held_requests.count + qp.held_responses.count);
  none("kept packets of a queue pair without copies", qp.kept);
  none("kept packet of a queue pair without copies", qp.kept_list.back());
  flow_of_queue_pair(qp);
}

// Every receive that was taken is in a half message or back at its JFR.
void Inspection::receives() {
  uint32_t known = 0;
  for (uint32_t i = 1; i <= s_.channels.high_water(); ++i)
    known += alive(s_.channels[i]) && s_.channels[i].open.receive != 0;
  for (uint32_t i = 1; i <= s_.parked.high_water(); ++i) known += s_.parked[i].receive != 0;
  for (uint32_t i = 1; roce_ != nullptr && i <= roce_->qps.high_water(); ++i)
    known += roce_->qps[i].in_use && roce_->qps[i].receive != 0;
  for (uint32_t i = 1; i <= s_.jfrs.high_water(); ++i) {
    const ub::Jfr& r = s_.jfrs[i];
    if (s_.ids[r.id].kind != ObjectKind::kJfr || s_.ids[r.id].record != i) continue;
    uint32_t receive = r.returned.empty() ? 0 : r.returned.front<&RxReceive::on_list>(s_.receives);
    for (; receive != 0 && known <= s_.receives.high_water(); ++known)
      receive = r.returned.behind<&RxReceive::on_list>(s_.receives, receive);
  }
  expect("receives, by those of messages and JFRs", s_.receives.in_use(), known);
}

// Whoever is gone waits for nothing.
void Inspection::timers() {
  for (uint32_t i = 1; i <= s_.channels.high_water(); ++i)
    if (!alive(s_.channels[i])) none("timers of dead channels", s_.timers.armed(s_.timer_of_channel(i)));
  for (uint32_t i = 1; i <= s_.queues.high_water(); ++i)
    if (!s_.queues[i].in_use) none("timers of destroyed send queues", s_.timers.armed(s_.timer_of_queue(i)));
  for (uint32_t i = 1; i <= s_.jfcs.high_water(); ++i)
    if (!s_.jfcs[i].in_use) none("timers of destroyed JFCs", s_.timers.armed(s_.jfc_timers.of(i)));
  if (roce_ == nullptr) return;
  for (uint32_t i = 1; i <= roce_->qps.high_water(); ++i)
    if (!roce_->qps[i].in_use) none("timers of destroyed queue pairs", s_.timers.armed(roce::timer_of_qp(*roce_, i)));
  for (uint32_t i = 1; i <= roce_->connections.high_water(); ++i)
    if (!roce_->connections[i].in_use)
      none("timers of connections that are over", s_.timers.armed(roce::timer_of_connection(*roce_, i)));
}

void Inspection::host() {
  none("copies that the host has not answered", node_.copies_pending());
  none("frames that were begun and neither sent nor given up", node_.frames_open());
}

void Inspection::quiet() {
  free_lists();
  lists();
  pools_in_transit();
  receives();
  timers();
  host();
  for (uint32_t i = 1; i <= s_.channels.high_water(); ++i)
    if (alive(s_.channels[i])) channel(s_.channels[i]);
  for (uint32_t i = 1; i <= s_.queues.high_water(); ++i)
    if (s_.queues[i].in_use) queue(s_.queues[i]);
  for (uint32_t i = 1; roce_ != nullptr && i <= roce_->qps.high_water(); ++i)
    if (roce_->qps[i].in_use) queue_pair(roce_->qps[i]);
}

void Inspection::objects() {
  none("JFCs", s_.jfcs.in_use());
  none("JFC that was waited for", s_.blocked_jfcs.back());
  none("JFRs", s_.jfrs.in_use());
  none("jettys", s_.jettys.in_use());
  none("groups", s_.groups.in_use());
  none("send queues", s_.queues.in_use());
  none("segments", s_.segments.in_use());
  none("targets", s_.targets.in_use());
  none("peers", s_.peers.in_use());
  none("READ jobs", s_.jobs.in_use());
  none("receives", s_.receives.in_use());
  none("reorder blocks", s_.reorder.in_use());
  none("kept packets", s_.kept.in_use());
  none("kept packets that wait for delivery", s_.kept_by_psn.size());
  expect("links", s_.links.in_use(), 1);
  const auto& bypass = node_.core().engine<bypass::Engine<SimHost>>().state();
  none("handles of loads and stores", bypass.asked.handles.in_use());
  none("answers to stores that wait for room", bypass.owed.size());
  for (uint32_t handle = 1; handle <= bypass.asked.handles.high_water(); ++handle)
    none("loads and stores of a handle", bypass.asked.handles[handle].under_way);
  const uint16_t* tassns = bypass.asked.by_tassn;
  none("TASSNs of loads and stores",
       std::count_if(tassns, tassns + (1 << 16), [](uint16_t u) { return u != 0 && u != bypass::kResting; }));
  none("peers in the table", kPeerBuckets - std::count(s_.peer_buckets, s_.peer_buckets + kPeerBuckets, 0u));
  for (uint32_t owner = 0; owner <= UINT16_MAX; ++owner) {
    none("datagrams of an owner that are held", s_.held_datagrams_of[owner]);
    none("datagrams of an owner that are placed", s_.arriving_of[owner]);
  }
}

// Of all that ever had one: to look at the whole space would take longer than the run.
void Inspection::ids() {
  const auto object = [&](uint32_t id) { none("objects of an id", s_.ids[id].kind != ObjectKind::kNone); };
  for (const auto& q : world_.queues)
    if (q->node == node_.index() && q->epoch == node_.epoch()) object(q->id);
  for (const auto& r : world_.jfrs)
    if (r->node == node_.index() && r->epoch == node_.epoch()) object(r->id);
  for (const auto& r : world_.regions) {
    if (r->node != node_.index() || r->epoch != node_.epoch()) continue;
    none("token ids in use", s_.token_ids[r->registered.token_id].in_use);
    none("segments of a token id", s_.token_ids[r->registered.token_id].segments);
  }
}

// Each rests, once, and holds nothing.
void Inspection::dead_channels() {
  uint32_t resting = 0;
  uint32_t next = s_.resting.empty() ? 0 : s_.resting.front<&Channel::on_resting_list>(s_.channels);
  while (next != 0 && resting <= s_.channels.high_water()) {
    const Channel& ch = s_.channels[next];
    next = s_.resting.behind<&Channel::on_resting_list>(s_.channels, next);
    ++resting;
    none("channels that live", alive(ch));
    none("receive of a dead channel", ch.open.receive);
    none("parked messages of a dead channel", ch.parked + ch.ending.back() + ch.ahead.back());
    none("recovery block of a dead channel", ch.recovery);
    none("send times of a dead channel", ch.flow.send_times);
    none("reorder block of a dead channel", ch.reorder);
    none("kept packets of a dead channel", ch.kept.total());
    none("READ jobs of a dead channel", ch.read_jobs);
    none("messages of a dead channel", ch.in_flight.size() + ch.answers.size());
    none("packets of a dead channel that wait for memory", ch.held.count + ch.held_new);
    none("queue that waits for a dead channel", ch.queues.back());
    none("dead channel on a list", ch.on_active_list.next + ch.on_ack_list.next);
  }
  expect("channels that rest", resting, s_.channels.high_water());
  none("blocks of send times without a channel", s_.send_times.blocks().in_use());
  none("blocks of paths without a channel", s_.path_blocks.in_use());
}

void Inspection::queue_pairs() {
  if (roce_ == nullptr) return;
  const roce::State& r = *roce_;
  none("queue pairs", r.qps.in_use());
  none("address handles", r.address_handles.in_use());
  none("listeners", r.listeners.in_use());
  none("connections", r.connections.in_use());
  none("kept packets of queue pairs", r.kept.in_use());
  none("completions that arrive", r.arriving.in_use());
  none("READ slots of queue pairs", r.read_slots.lent());
  none("blocks of send times without a queue pair", r.send_times.blocks().in_use());
  none("passive connections in the table",
       roce::kRequesterBuckets - std::count(r.requesters, r.requesters + roce::kRequesterBuckets, 0u));
}

void Inspection::empty() {
  free_lists();
  lists();
  pools_in_transit();
  host();
  objects();
  ids();
  dead_channels();
  queue_pairs();
  timers();
  none("timers of anybody", !node_.deadline().is_never());
}

}  // namespace

void check_quiet_state(World& world) {
  for (uint32_t i = 0; i < world.node_count() && !world.failed(); ++i)
    if (world.node(i).up()) Inspection(world, world.node(i)).quiet();
}

void check_empty_state(World& world) {
  for (uint32_t i = 0; i < world.node_count() && !world.failed(); ++i)
    if (world.node(i).up()) Inspection(world, world.node(i)).empty();
}

}  // namespace ub::sim
