// SPDX-License-Identifier: Apache-2.0
//
// Posts, faults and memory. Completions and receives are in model_completions.cc.
#include "tests/sim/model.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace ub::sim {

const char* op_name(WrOp op) {
  static constexpr const char* kNames[] = {"WRITE", "WRITE_IMM", "WRITE_NOTIFY", "READ",     "CAS",
                                           "SWAP",  "FADD",      "FSUB",         "FAND",     "FOR",
                                           "FXOR",  "SEND",      "SEND_IMM",     "SEND_INV", "NOP"};
  return static_cast<size_t>(op) < std::size(kNames) ? kNames[static_cast<size_t>(op)] : "?";
}

const char* status_name(CrStatus s) {
  static constexpr const char* kNames[] = {
      "SUCCESS",         "UNSUPPORTED_OPCODE", "LOC_LEN",          "LOC_OPERATION",   "LOC_ACCESS",     "REM_RESP_LEN",
      "REM_UNSUPPORTED", "REM_OPERATION",      "REM_ACCESS_ABORT", "ACK_TIMEOUT",     "RNR_EXCEEDED",   "WR_FLUSH",
      "SUSPEND_DONE",    "FLUSH_DONE",         "UNHANDLED",        "LOC_DATA_POISON", "REM_DATA_POISON"};
  return static_cast<size_t>(s) < std::size(kNames) ? kNames[static_cast<size_t>(s)] : "?";
}

static const char* mode_name(Mode mode) { return mode == Mode::kRm ? "" : mode == Mode::kRc ? " RC" : " UM"; }

void Model::fail(const char* format, ...) {
  if (!failure_.empty()) return;
  char buf[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(buf, sizeof buf, format, args);
  va_end(args);
  char when[48];
  std::snprintf(when, sizeof when, "at %.9f s: ", static_cast<double>(*now_ns_) / 1e9);
  failure_ = std::string(when) + buf;
}

std::string Model::describe(const Wr& w) const {
  char buf[320];
  std::snprintf(buf, sizeof buf,
                "wr %" PRIu64
                " %s %u B (node %u queue %u id %u%s%s order %u -> node %d id %d%s%s%s allowed %x), posted at %.9f s",
                w.id, op_name(w.op), w.length, w.queue->node, w.queue->uid, w.queue->id, mode_name(w.queue->mode),
                w.signaled() ? "" : " unsignaled", w.place_order, static_cast<int>(w.remote_node),
                w.receiver.jfr != nullptr ? static_cast<int>(w.receiver.id()) : -1,
                (w.flags & kWrFence) != 0 ? " fence" : "", w.wrong != nullptr ? " wrong " : "",
                w.wrong != nullptr ? w.wrong : "", w.allowed, static_cast<double>(w.posted_ns) / 1e9);
  return buf;
}

std::string Model::whose(const std::byte* p, const std::byte* end) const {
  char buf[96];
  for (int shift = 0; shift < 8 && p + shift + 8 <= end; ++shift) {
    uint64_t word;
    std::memcpy(&word, p + shift, 8);
    for (const auto& [id, w] : wrs_) {
      for (uint64_t i = 0; i * 8 < w->length; ++i) {
        if (pattern_word(id, i) != word) continue;
        std::snprintf(buf, sizeof buf, "byte %lld of ", static_cast<long long>(i * 8) - shift);
        return buf + describe(*w);
      }
    }
    for (const auto& [uid, r] : regions_) {
      for (WriterId writer : {kUntouched | uid, kReleased | uid}) {
        for (uint64_t i = 0; i * 8 < r->length; ++i) {
          if (pattern_word(writer, i) != word) continue;
          std::snprintf(buf, sizeof buf, "byte %lld of region %u, %s", static_cast<long long>(i * 8) - shift, uid,
                        writer & kReleased ? "released" : "untouched");
          return buf;
        }
      }
    }
  }
  return "unknown";
}

std::string Model::unresolved() const {
  std::string s;
  for (const auto& [queue, ids] : in_queue_)
    for (uint64_t id : ids) s += "  " + describe(wr(id)) + "\n";
  for (const auto& [id, w] : wrs_)
    if (w->must_arrive && w->deliveries == 0) s += "  not received: " + describe(*w) + "\n";
  return s;
}

bool Model::all_arrived() const {
  return std::none_of(wrs_.begin(), wrs_.end(),
                      [](const auto& e) { return e.second->must_arrive && e.second->deliveries == 0; });
}

uint64_t Model::count(Wr::State state) const {
  return static_cast<uint64_t>(
      std::count_if(wrs_.begin(), wrs_.end(), [&](const auto& e) { return e.second->state == state; }));
}

void Model::add_region(Region* r) {
  regions_[r->uid] = r;
  if (r->local) return;
  memory_[r->uid] = std::make_unique<MemoryModel>(*r);
  if (r->constant_at != 0) atomics_[r->uid] = std::make_unique<AtomicModel>(*r);
}

void Model::add_queue(Queue* q, uint32_t node_epoch) { senders_[{q->node, node_epoch, q->id}] = q; }

template <class Match>
void Model::allow_outstanding(Match match, uint32_t statuses) {
  for (const auto& [queue, ids] : in_queue_)
    for (uint64_t id : ids)
      if (Wr& w = *wrs_.at(id); match(w)) allow(w, statuses);
}

// What is under way may be refused, and takes its queue pair with it then.
template <class Match>
void Model::refuse_outstanding(Match match) {
  std::vector<Queue*> pairs;
  const auto concerned = [&](const Wr& w) {
    if (match(w) && w.queue->qp) pairs.push_back(w.queue);
    return match(w);
  };
  allow_outstanding(concerned, bit(CrStatus::kRemAccessAbort));
  for (Queue* q : pairs) explain_pair(q, bit(CrStatus::kWrFlush) | bit(CrStatus::kAckTimeout));
}

void Model::token_withdrawn(const Region* r) {
  refuse_outstanding([&](const Wr& w) {
    return (w.remote == r && !r->token.fits(w.token)) || (w.notify == r && !r->token.fits(w.notify_token));
  });
}

void Model::token_withdrawn(const Jfr* r) {
  refuse_outstanding([&](const Wr& w) {
    return w.receiver.jfr == r && takes_receive(w.op) && !w.unreliable && !r->token.fits(w.receiver_token);
  });
}

// What is placed is checked in the same moment.
void Model::arrived(const Region* r, uint64_t offset) {
  order_.arrive(r->uid, offset);
  const std::optional<uint64_t> id = order_.writer_at(r->uid, offset);
  if (!id) return;
  const Wr& w = wr(*id);
  const bool notifies = w.notify == r && offset == w.notify_offset;
  if (!r->token.fits(notifies ? w.notify_token : w.token))
    fail("%s: bytes of it are placed after its token was withdrawn", describe(w).c_str());
}

void Model::region_leaving(Region* r) {
  allow_outstanding([&](const Wr& w) { return w.remote == r || w.notify == r; }, bit(CrStatus::kRemAccessAbort));
  auto uses = [&](const Wr& w) {
    return std::any_of(w.local.begin(), w.local.end(), [&](const LocalRange& l) { return l.region == r; });
  };
  allow_outstanding(uses, bit(CrStatus::kLocAccess));
  for (const auto& [key, q] : senders_)
    if (q->qp && (q->app == r->app || (q->peer != nullptr && q->peer->app == r->app)))
      explain_pair(q, bit(CrStatus::kWrFlush) | bit(CrStatus::kAckTimeout) | bit(CrStatus::kRemOperation));
}

void Model::receiver_gone(const Receiver& who) {
  allow_outstanding([&](const Wr& w) { return w.receiver == who; },
                    bit(CrStatus::kRemAccessAbort) | bit(CrStatus::kAckTimeout));
}

void Model::receivers_dying(uint32_t app) {
  // Its receives cannot be written: that may read as a fault of the receive or of the access.
  allow_outstanding([&](const Wr& w) { return w.receiver.jfr != nullptr && w.receiver.jfr->app == app; },
                    bit(CrStatus::kRemAccessAbort) | bit(CrStatus::kRemOperation) | bit(CrStatus::kAckTimeout));
}

void Model::receiver_dropping(const Receiver& who) {
  allow_outstanding([&](const Wr& w) { return w.receiver == who; }, bit(CrStatus::kAckTimeout));
}

void Model::instance_gone(uint32_t node, uint32_t epoch) {
  allow_outstanding([&](const Wr& w) { return w.remote_node == node && w.remote_epoch == epoch; },
                    bit(CrStatus::kAckTimeout));
}

void Model::path_broken(uint32_t a, uint32_t b) {
  auto uses = [&](const Wr& w) {
    return (w.queue->node == a && w.remote_node == b) || (w.queue->node == b && w.remote_node == a);
  };
  allow_outstanding(uses, bit(CrStatus::kAckTimeout));
}

void Model::queue_flushing(Queue* q) {
  allow_outstanding([&](const Wr& w) { return w.queue == q; }, bit(CrStatus::kWrFlush) | bit(CrStatus::kWrUnhandled));
  flush_done_[q->uid] = false;
}

void Model::queue_resetting(Queue* q) {
  allow_outstanding([&](const Wr& w) { return w.queue == q; }, bit(CrStatus::kWrFlush));
}

void Model::explain(Queue* q, uint32_t statuses) {
  if (q == nullptr) return;
  q->explained |= statuses;
  allow_outstanding([&](const Wr& w) { return w.queue == q; }, statuses);
}

void Model::explain_pair(Queue* q, uint32_t statuses) {
  explain(q, statuses);
  explain(q->peer, statuses);
}

void Model::broken(Queue* q) {
  explain(q, bit(CrStatus::kWrFlush));
  explain(q->peer, bit(CrStatus::kWrFlush) | bit(CrStatus::kAckTimeout));
  for (Receive& r : q->jfr->posted) r.may_flush = true;
  if (q->state == Queue::State::kReady) q->state = Queue::State::kFlushing;
  if (!q->srq) q->jfr->in_error = true;
}

void Model::queue_gone(Queue* q) {
  for (uint64_t id : in_queue_[q->uid]) {
    Wr& w = *wrs_.at(id);
    w.state = Wr::State::kLost;
    w.resolved_tick = ++tick_;
    w.resolved_ns = *now_ns_;
    if (is_atomic(w.op) && w.may_run) atomics_.at(w.remote->uid)->uncertain(w.atomic);
    release(w);
    ended(w);
  }
  in_queue_[q->uid].clear();
}

Wr& Model::post(std::unique_ptr<Wr> made) {
  Wr& w = *wrs_.emplace(made->id, std::move(made)).first->second;
  w.posted_tick = ++tick_;
  w.posted_ns = *now_ns_;
  if (writes_remote(w.op) && w.effect_bytes != 0) {
    memory_.at(w.remote->uid)->add({.writer = w.id, .base = w.remote_offset}, w.remote_offset, w.effect_bytes);
    if (w.effect_bytes == w.length) ends_.emplace(std::pair{w.remote->uid, w.remote_offset + w.length}, w.id);
  }
  if (w.notify != nullptr) {
    memory_.at(w.notify->uid)
        ->add({.writer = w.id, .base = w.notify_offset, .literal = true, .value = w.immediate}, w.notify_offset, 8);
    ends_.emplace(std::pair{w.notify->uid, w.notify_offset + 8}, w.id);
  }
  if (takes_receive(w.op) && !w.unreliable && (w.allowed & bit(CrStatus::kSuccess)) != 0) {
    Inbox& inbox = inboxes_[{w.queue->uid, w.receiver.uid()}];
    if (alike(w))
      ++inbox.alike_posted;
    else
      inbox.waiting.push_back(w.id);
  }
  if (is_atomic(w.op) && !w.may_run) atomics_.at(w.remote->uid)->withdraw(w.atomic);
  in_queue_[w.queue->uid].push_back(w.id);
  if (!w.queue->qp && !w.unreliable) watch_order(w);
  ++outstanding_;
  reads_outstanding_ += w.op == WrOp::kRead;
  return w;
}

void Model::ended(const Wr& w) {
  --outstanding_;
  reads_outstanding_ -= w.op == WrOp::kRead;
}

// Packets of a SEND begin at multiples of this.
constexpr uint32_t kPacketStep = 1024;

void Model::watch_order(const Wr& w) {
  using Use = OrderModel::Use;
  order_.post(w.id, w.queue->uid, static_cast<OrderModel::Tag>(w.place_order), (w.flags & kWrFence) != 0);
  if (w.remote != nullptr && (w.owned || w.alone))
    order_.own(w.id, w.remote->uid, w.remote_offset, writes_remote(w.op) ? w.effect_bytes : w.length,
               w.op == WrOp::kRead ? Use::kRead : Use::kWritten);
  if (w.notify != nullptr) order_.own(w.id, w.notify->uid, w.notify_offset, 8, Use::kWritten);
  if (w.op == WrOp::kRead || is_atomic(w.op))
    for (const LocalRange& l : w.local) order_.own(w.id, l.region->uid, l.offset, l.bytes, Use::kResult);
  if (takes_receive(w.op) && w.op != WrOp::kWriteImm)
    for (uint32_t at = 0; at + 8 <= w.length; at += kPacketStep) messages_[pattern_word(w.id, at / 8)] = w.id;
}

void Model::touched(const Region* r, uint64_t offset, const std::byte* data, size_t bytes) {
  order_.touch(r->uid, offset, data == nullptr);
  if (!r->local || bytes < 8 || data == nullptr) return;
  uint64_t word;
  std::memcpy(&word, data, sizeof word);
  if (const auto message = messages_.find(word); message != messages_.end()) order_.touch(message->second);
}

bool Model::overwritten_by(const Wr& newer, const Candidate& older) const {
  if (older.writer >= kUntouched) return true;
  const Wr& o = wr(older.writer);
  switch (o.state) {
    case Wr::State::kOutstanding:
      return false;
    case Wr::State::kSuccess:
      return o.resolved_tick < newer.posted_tick ||
             (o.queue == newer.queue && o.id < newer.id && newer.place_order == 2 && o.place_order >= 1);
    default:
      return o.resolved_ns + kStragglerNs < newer.posted_ns;
  }
}

void Model::placed(const Region* r, uint64_t offset, size_t bytes) {
  if (r->local) return;
  auto [from, to] = ends_.equal_range({r->uid, offset + bytes});
  for (auto it = from; it != to; ++it) {
    const Wr& w = wr(it->second);
    if (w.state != Wr::State::kOutstanding || w.length == 0) continue;
    // Given up already, perhaps, and the application only does not know yet: nothing is promised then.
    constexpr uint32_t kGivenUp = bit(CrStatus::kWrFlush) | bit(CrStatus::kLocAccess) | bit(CrStatus::kRemAccessAbort);
    bool late = (w.allowed & bit(CrStatus::kAckTimeout)) != 0 && *now_ns_ - w.posted_ns > 80'000'000;
    if ((w.allowed & kGivenUp) != 0 || late) continue;
    MemoryModel& m = *memory_.at(w.remote->uid);
    auto over = [&](const Candidate& c) { return overwritten_by(w, c); };
    if (!m.sole_writer(w.id, w.remote_offset, w.length, over)) continue;
    if (r == w.notify && !memory_.at(r->uid)->sole_writer(w.id, w.notify_offset, 8, over)) continue;
    if (on_last_word) on_last_word(w);
    std::string why;
    if (!m.check_as_if_succeeded(w.id, w.remote_offset, w.length, over, &why))
      fail("the last word of %s became visible before the rest: %s", describe(w).c_str(), why.c_str());
  }
}

void Model::drop_end(const Wr& w) {
  auto drop = [&](const Region* r, uint64_t end) {
    auto [from, to] = ends_.equal_range({r->uid, end});
    for (auto it = from; it != to; ++it)
      if (it->second == w.id) {
        ends_.erase(it);
        return;
      }
  };
  if (writes_remote(w.op) && w.remote != nullptr) drop(w.remote, w.remote_offset + w.length);
  if (w.notify != nullptr) drop(w.notify, w.notify_offset + 8);
}

void Model::release(const LocalRange& l) {
  if (l.region->state != Region::State::kLive) return;
  pattern_fill(l.data(), kReleased | l.region->uid, l.offset, l.bytes);
  l.region->free.add(l.offset, l.bytes == 0 ? 1 : l.bytes);
}

void Model::release(Wr& w) {
  if (const auto v = order_.end(w.id); v && w.state == Wr::State::kSuccess)
    fail("%s: %s was touched after %s had begun", v->fence ? "fence" : "strong order", describe(w).c_str(),
         describe(wr(v->later)).c_str());
  if (takes_receive(w.op))
    for (uint32_t at = 0; at + 8 <= w.length; at += kPacketStep) messages_.erase(pattern_word(w.id, at / 8));
  for (const LocalRange& l : w.local) release(l);
  drop_end(w);
  const bool settled = w.state == Wr::State::kSuccess || (!w.may_run && w.effect_bytes == 0);
  if (w.owned && settled && w.remote->state == Region::State::kLive)
    w.remote->free.add(w.remote_offset, std::max<uint64_t>(w.length, 1));
}

void Model::forget_history() {
  if (!dirty_history_ || tick_ % 64 != 0) return;
  uint64_t oldest = tick_;
  for (const auto& [queue, ids] : in_queue_)
    if (!ids.empty()) oldest = std::min(oldest, wr(ids.front()).posted_tick);
  for (auto& [uid, m] : memory_) m->forget_history(oldest);
}

void Model::flushed(const Jfr& jfr, size_t held) {
  if (jfr.in_error && jfr.posted.size() > held)
    fail("receive queue %u is in ERROR, and %zu receives were not given back", jfr.uid, jfr.posted.size() - held);
}

void Model::final_check() {
  std::string why;
  for (auto& [key, region] : regions_) {
    const auto uid = key;  // a lambda cannot capture a structured binding everywhere
    auto& r = region;
    if (!r->guards_intact()) fail("guard zone of region %u (node %u) was written", uid, r->node);
    if (r->local && r->state == Region::State::kLive) {
      r->free.for_each([&](uint64_t offset, uint64_t bytes) {
        size_t bad = pattern_mismatch(r->memory() + offset, kReleased | uid, offset, bytes);
        if (bad != bytes)
          fail("local region %u (node %u): offset %" PRIu64
               " was written after its request or receive completed, with %s",
               uid, r->node, offset + bad, whose(r->memory() + offset + bad, r->memory() + r->length).c_str());
      });
    }
    if (r->local) continue;
    uint64_t from = r->constant_at;
    if (!memory_.at(uid)->check(from, r->length - from, &why)) fail("final memory: %s", why.c_str());
    if (auto a = atomics_.find(uid); a != atomics_.end() && !a->second->check_final(&why)) fail("%s", why.c_str());
  }
  for (auto& [key, inbox] : inboxes_) {
    if (inbox.alike_received > inbox.alike_posted)
      fail("queue %u sent %" PRIu64 " short messages to receiver %u, which got %" PRIu64, key.first, inbox.alike_posted,
           key.second, inbox.alike_received);
    for (uint64_t id : inbox.waiting) {
      const Wr& w = wr(id);
      bool receiver_lives = w.receiver.jfr->alive && !w.receiver.jfr->in_error &&
                            (w.receiver.jetty == nullptr || w.receiver.jetty->state == Queue::State::kReady);
      if (w.state == Wr::State::kSuccess && receiver_lives)
        fail("%s succeeded but was never received", describe(w).c_str());
    }
    if (inbox.alike_succeeded > inbox.alike_received) {
      // Which of them a dead receiver never polled is not known: checked where receivers live.
      bool any_dead = false;
      for (auto& [id, w] : wrs_)
        any_dead = any_dead || (takes_receive(w->op) && w->receiver.jfr != nullptr && w->receiver.uid() == key.second &&
                                (!w->receiver.jfr->alive || w->receiver.jfr->in_error ||
                                 (w->receiver.jetty != nullptr && w->receiver.jetty->state != Queue::State::kReady)));
      if (!any_dead)
        fail("%" PRIu64 " short messages of queue %u to receiver %u succeeded, %" PRIu64 " were received",
             inbox.alike_succeeded, key.first, key.second, inbox.alike_received);
    }
  }
}

}  // namespace ub::sim
