// SPDX-License-Identifier: Apache-2.0
//
// The oracle's view of completions: exactly one per request that wants or needs it, in posting order, with a
// status that something explains; and of receives: each message once, whole, from whom it says.
#include <algorithm>
#include <cinttypes>

#include "tests/sim/model.h"

namespace ub::sim {
namespace {

// After one of these the request has surely not taken a receive.
constexpr uint32_t kNotReceived = bit(CrStatus::kRnrRetryExceeded) | bit(CrStatus::kRemAccessAbort) |
                                  bit(CrStatus::kRemOperation) | bit(CrStatus::kLocAccess) |
                                  bit(CrStatus::kWrUnhandled);

}  // namespace

void Model::check_never_ran(const Wr& w) {
  // A packet that the network doubled may find the receive that the first one of them was refused for.
  const uint32_t excused = w.queue->qp ? bit(CrStatus::kRnrRetryExceeded) : 0;
  if (w.received && (bit(w.status) & kNotReceived & ~excused) != 0)
    fail("%s was received, but completed with %s", describe(w).c_str(), status_name(w.status));
}

// It may have been given up for its deadline before the later one began, and the application is told when those before
// it are done. Then it does not succeed.
void Model::overtaken(Wr& w, uint64_t later) {
  w.overtaken_by = later;
  const bool may_be_given_up = (w.allowed & bit(CrStatus::kAckTimeout)) != 0;
  if (w.state != Wr::State::kOutstanding || !may_be_given_up) check_order(w);
}

void Model::check_order(const Wr& w) {
  if (w.overtaken_by != 0)
    fail("%s was received after wr %" PRIu64 " of the same queue", describe(w).c_str(), w.overtaken_by);
}

void Model::check_read(const Wr& w) {
  std::vector<std::byte> joined;
  const std::byte* data = nullptr;
  if (w.local.size() == 1) {
    data = w.local[0].data();
  } else {
    for (const LocalRange& l : w.local) joined.insert(joined.end(), l.data(), l.data() + l.bytes);
    data = joined.data();
  }
  std::string why;
  if (!memory_.at(w.remote->uid)->readable(w.remote_offset, data, w.length, w.posted_tick, &why))
    fail("%s returned bytes that were never there: %s", describe(w).c_str(), why.c_str());
}

void Model::check_success(Wr& w) {
  std::string why;
  auto over = [&](const Candidate& c) { return overwritten_by(w, c); };
  if (writes_remote(w.op)) {
    auto settle = [&](Region* r, uint64_t offset, uint64_t bytes) {
      MemoryModel& m = *memory_.at(r->uid);
      m.succeed(w.id, offset, bytes, tick_, reads_outstanding_ != 0, over);
      dirty_history_ |= reads_outstanding_ != 0;
      if (!m.check(offset, bytes, &why)) fail("%s succeeded, but: %s", describe(w).c_str(), why.c_str());
    };
    if (w.length != 0) settle(w.remote, w.remote_offset, w.effect_bytes);
    if (w.notify != nullptr) settle(w.notify, w.notify_offset, 8);
  } else if (w.op == WrOp::kRead && w.length != 0) {
    check_read(w);
  } else if (is_atomic(w.op)) {
    uint128 old = 0;
    std::memcpy(&old, w.local[0].data(), w.atomic.bytes);
    if (!atomics_.at(w.remote->uid)->succeeded(w.atomic, old, &why)) fail("%s: %s", describe(w).c_str(), why.c_str());
  }
  if (takes_receive(w.op) && !w.unreliable && alike(w)) ++inboxes_[{w.queue->uid, w.receiver.uid()}].alike_succeeded;
}

void Model::resolve(Wr& w, CrStatus status) {
  ++tick_;
  if ((w.allowed & bit(status)) == 0) fail("%s completed with %s", describe(w).c_str(), status_name(status));
  w.status = status;
  w.state = status == CrStatus::kSuccess ? Wr::State::kSuccess : Wr::State::kFailed;
  w.resolved_tick = tick_;
  w.resolved_ns = *now_ns_;
  if (status == CrStatus::kSuccess) {
    check_order(w);
    if (w.may_run) check_success(w);
  } else {
    if (is_atomic(w.op) && w.may_run) atomics_.at(w.remote->uid)->uncertain(w.atomic);
    check_never_ran(w);
  }
  release(w);
  ended(w);
  forget_history();
}

void Model::resolve_in_order(Queue* q, uint64_t id, CrStatus status, const char* what) {
  auto& ids = in_queue_[q->uid];
  if (q->completes_early) {  // it has to be outstanding, and older ones may be, too
    if (const auto at = std::find(ids.begin(), ids.end(), id); at != ids.end()) std::rotate(ids.begin(), at, at + 1);
  }
  while (!ids.empty()) {
    Wr& w = *wrs_.at(ids.front());
    if (w.id == id) {
      ids.pop_front();
      resolve(w, status);
      return;
    }
    auto found = wrs_.find(id);
    if (found == wrs_.end() || found->second->queue != q || found->second->state != Wr::State::kOutstanding) {
      fail("node %u queue %u: %s %s for user_ctx %" PRIu64 ", which is not outstanding there%s", q->node, q->uid, what,
           status_name(status), id, found == wrs_.end() ? "" : (": " + describe(*found->second)).c_str());
      return;
    }
    if (w.signaled() || q->broken) {
      fail("%s: no completion before that of %s", describe(w).c_str(), describe(*found->second).c_str());
      return;
    }
    ids.pop_front();
    resolve(w, CrStatus::kSuccess);  // unsignaled, and no error was reported
  }
  fail("node %u queue %u: %s %s for user_ctx %" PRIu64 ", but nothing is outstanding", q->node, q->uid, what,
       status_name(status), id);
}

void Model::completed(Queue* q, const Cqe& c) {
  if (c.status == CrStatus::kWrSuspendDone) {
    if (!q->failed_one) fail("node %u queue %u: SUSPEND_DONE, and no request failed", q->node, q->uid);
    if (q->suspended) fail("node %u queue %u: SUSPEND_DONE twice", q->node, q->uid);
    q->suspended = true;
    return;
  }
  const bool failure = c.status != CrStatus::kSuccess && c.status < CrStatus::kWrFlush;
  if (q->suspended && (failure || c.status == CrStatus::kSuccess))
    fail("node %u queue %u: completion %s after SUSPEND_DONE", q->node, q->uid, status_name(c.status));
  if (q->suspends && failure) q->failed_one = true;
  if (c.status == CrStatus::kWrFlushDone) {
    auto f = flush_done_.find(q->uid);
    if (f == flush_done_.end())
      fail("node %u queue %u: FLUSH_DONE without a flush", q->node, q->uid);
    else if (f->second)
      fail("node %u queue %u: FLUSH_DONE twice", q->node, q->uid);
    else
      f->second = true;
    return;
  }
  if (auto f = flush_done_.find(q->uid); f != flush_done_.end() && f->second)
    fail("node %u queue %u: completion %s after FLUSH_DONE", q->node, q->uid, status_name(c.status));
  auto found = wrs_.find(c.user_ctx);
  if (q->broken && c.status != CrStatus::kWrFlush)
    fail("node %u queue %u: completion %s behind an error", q->node, q->uid, status_name(c.status));
  if (found != wrs_.end() && found->second->queue == q) {
    const Wr& w = *found->second;
    if (c.status == CrStatus::kSuccess && !w.signaled()) fail("%s completed unasked", describe(w).c_str());
    bool sized = writes_remote(w.op) || w.op == WrOp::kRead || takes_receive(w.op);
    if (c.status == CrStatus::kSuccess && sized && c.length != w.length)
      fail("%s: completion says %u bytes", describe(w).c_str(), c.length);
    if (c.local_id != q->id || c.user_data != q->uid || c.opcode != CrOpcode::kNone ||
        ((c.flags & kCqeJetty) != 0) != (q->kind == ObjectKind::kJetty))
      fail("%s: completion has wrong fields (local_id %u, user_data %" PRIu64 ", opcode %u, flags %u)",
           describe(w).c_str(), c.local_id, c.user_data, static_cast<unsigned>(c.opcode), c.flags);
  }
  resolve_in_order(q, c.user_ctx, c.status, "completion");
  if (!q->qp || c.status == CrStatus::kSuccess || q->broken) return;
  q->broken = true;
  q->ud() ? explain(q, bit(CrStatus::kWrFlush)) : broken(q);
}

void Model::unhandled(Queue* q, const Cqe& c) {
  auto f = flush_done_.find(q->uid);
  if (!q->suspended && (f == flush_done_.end() || !f->second))
    fail("node %u queue %u: request handed back before a marker", q->node, q->uid);
  if (c.status != CrStatus::kWrUnhandled)
    fail("node %u queue %u: handed back with %s", q->node, q->uid, status_name(c.status));
  resolve_in_order(q, c.user_ctx, CrStatus::kWrUnhandled, "handed back");
}

void Model::all_retired(Queue* q) {
  auto& ids = in_queue_[q->uid];
  while (!ids.empty()) {
    Wr& w = *wrs_.at(ids.front());
    if (w.signaled() || q->broken) fail("%s is finished, but there was no completion", describe(w).c_str());
    ids.pop_front();
    resolve(w, CrStatus::kSuccess);
  }
}

void Model::resumed(Queue* q) {
  all_retired(q);
  q->failed_one = q->suspended = false;
}

void Model::flush_finished(Queue* q) {
  resumed(q);
  flush_done_.erase(q->uid);
}

void Model::posted_receive(Jfr* jfr, const Receive& r) { jfr->posted.push_back(r); }

// Behind a message there may be bytes of one that took the same receive before and was aborted. `from` counts
// in the range, `at` in the receive.
bool Model::left_by_aborted(const LocalRange& l, uint64_t from, uint64_t at, const Jfr* jfr) const {
  while (from < l.bytes) {
    const std::byte* p = l.data() + from;
    size_t left = l.bytes - from;
    size_t best = pattern_mismatch(p, kReleased | l.region->uid, l.offset + from, left);
    bool whole = best == left;  // up to the end of the range, of a message, or of a packet
    for (const auto& [id, w] : wrs_) {
      const bool whole_message = w->state == Wr::State::kSuccess && !w->unreliable;
      if (!takes_receive(w->op) || w->receiver.jfr != jfr || whole_message || w->length <= at) continue;
      size_t most = std::min<size_t>(left, w->length - at);
      size_t same = pattern_mismatch(p, id, at, most);
      if (same < best || same == 0) continue;
      best = same;
      whole = same == most || (at + same) % 1024 == 0;
    }
    if (best < 8 && !whole) return false;
    from += best;
    at += best;
  }
  return true;
}

bool Model::carries(const Receive& r, const Wr& w, uint64_t* bad_byte) const {
  uint64_t at = 0, position = 0;
  for (const LocalRange& l : r.ranges) {
    uint64_t n = std::min<uint64_t>(l.bytes, w.length - at);
    size_t good = pattern_mismatch(l.data(), w.id, at, n);
    *bad_byte = at + good;
    if (good != n) return false;
    size_t untouched = pattern_mismatch(l.data() + n, kReleased | l.region->uid, l.offset + n, l.bytes - n);
    *bad_byte = at + n + untouched;
    if (!left_by_aborted(l, n + untouched, position + n + untouched, w.receiver.jfr)) return false;
    at += n;
    position += l.bytes;
  }
  return at == w.length;
}

void Model::take_message(const Receiver& who, const Cqe& c, const Receive& r, Queue* sender, bool rnr_seen) {
  uint64_t bad_byte = 0;
  if (sender->mode == Mode::kUm) return take_datagram(who, c, r, sender);
  Inbox& inbox = inboxes_[{sender->uid, who.uid()}];
  if (c.opcode == CrOpcode::kSend && c.length < 8) {
    ++inbox.alike_received;
    return;
  }
  auto matches = [&](uint64_t id) {
    const Wr& w = wr(id);
    CrOpcode opcode = w.op == WrOp::kSend             ? CrOpcode::kSend
                      : w.op == WrOp::kSendImm        ? CrOpcode::kSendImm
                      : w.op == WrOp::kSendInvalidate ? CrOpcode::kSendInvalidate
                                                      : CrOpcode::kWriteImm;
    if (opcode != c.opcode || w.length != c.length) return false;
    if (w.op != WrOp::kSend && w.immediate != c.immediate) return false;
    return w.op == WrOp::kWriteImm || carries(r, w, &bad_byte);
  };
  auto it = std::find_if(inbox.waiting.begin(), inbox.waiting.end(), matches);
  if (it == inbox.waiting.end()) {
    std::string found = "nothing";
    uint64_t at = bad_byte;
    for (const LocalRange& l : r.ranges) {
      if (at < l.bytes) {
        found = whose(l.data() + at, l.data() + l.bytes);
        break;
      }
      at -= l.bytes;
    }
    fail("receiver %u (node %u): message of %u bytes, opcode %u, immediate %" PRIx64
         " from queue %u is none that waits (changed, twice, or never sent; %zu wait; the last compared "
         "differs at %" PRIu64 ", there is %s)",
         who.uid(), who.node(), c.length, static_cast<unsigned>(c.opcode), c.immediate, sender->uid,
         inbox.waiting.size(), bad_byte, found.c_str());
    return;
  }
  Wr& w = *wrs_.at(*it);
  inbox.waiting.erase(it);
  w.received = true;
  if (w.posted_tick > who.silent_since())
    fail("%s was received in a state in which messages are dropped", describe(w).c_str());
  if (w.state != Wr::State::kOutstanding) check_never_ran(w);
  // Of a queue that was reset it may have been given up, though the application does not know yet.
  const bool gave_up =
      w.state == Wr::State::kFailed || w.state == Wr::State::kLost || (w.allowed & bit(CrStatus::kWrFlush)) != 0;
  const bool ordered = w.queue->mode == Mode::kRc || !rnr_seen;
  if (w.id < inbox.newest_received && !gave_up && ordered) overtaken(w, inbox.newest_received);
  if (w.id < inbox.newest_in_order && !gave_up) overtaken(w, inbox.newest_in_order);
  inbox.newest_received = std::max(inbox.newest_received, w.id);
  if ((w.flags & kWrCompOrder) != 0) inbox.newest_in_order = std::max(inbox.newest_in_order, w.id);
  if (((c.flags & kCqeSolicited) != 0) != ((w.flags & kWrSolicited) != 0))
    fail("%s: solicited flag of the receive is wrong", describe(w).c_str());
  if (w.op != WrOp::kWriteImm || w.effect_bytes == 0) return;
  if (w.remote->state != Region::State::kLive || w.state != Wr::State::kOutstanding) return;
  std::string why;
  auto over = [&](const Candidate& o) { return overwritten_by(w, o); };
  if (!memory_.at(w.remote->uid)->check_as_if_succeeded(w.id, w.remote_offset, w.effect_bytes, over, &why))
    fail("%s was announced before its bytes were there: %s", describe(w).c_str(), why.c_str());
}

bool Model::may_fail_locally(const Receiver& who, const Receive& r, const Queue* sender) const {
  auto gone = [](const LocalRange& l) { return l.region->state != Region::State::kLive; };
  if (std::any_of(r.ranges.begin(), r.ranges.end(), gone)) return true;
  return std::any_of(wrs_.begin(), wrs_.end(), [&](const auto& e) {
    const Wr& w = *e.second;
    return w.queue == sender && w.receiver == who && w.op == WrOp::kWriteImm && w.state != Wr::State::kSuccess &&
           w.remote->state != Region::State::kLive;
  });
}

void Model::received(const Receiver& who, const Cqe& c, uint32_t sender_node, uint32_t sender_epoch, bool rnr_seen) {
  ++tick_;
  Jfr* jfr = who.jfr;
  auto it = std::find_if(jfr->posted.begin(), jfr->posted.end(), [&](const Receive& r) { return r.id == c.user_ctx; });
  if (it == jfr->posted.end()) {
    fail("receiver %u (node %u): completion for receive %" PRIu64 ", which is not posted", who.uid(), jfr->node,
         c.user_ctx);
    return;
  }
  Receive r = *it;
  jfr->posted.erase(it);
  if (who.jetty != nullptr && who.jetty->ud()) {
    take_ud(who, c, r, sender_node);
    for (const LocalRange& l : r.ranges) release(l);
    return;
  }
  auto sender = senders_.find({sender_node, sender_epoch, c.remote_id});
  if (c.status == CrStatus::kSuccess || c.status == CrStatus::kLocLen) {
    if (sender == senders_.end()) {
      fail("receiver %u: message from node %d epoch %u id %u, which is no queue", who.uid(),
           static_cast<int>(sender_node), sender_epoch, c.remote_id);
      return;
    }
    if (c.length > r.length && c.opcode != CrOpcode::kWriteImm && c.status == CrStatus::kSuccess)
      fail("receiver %u: %u bytes in a receive of %u", who.uid(), c.length, r.length);
  }
  if (c.status == CrStatus::kSuccess) {
    take_message(who, c, r, sender->second, rnr_seen);
  } else if (c.status == CrStatus::kLocLen) {
    bool long_one = std::any_of(wrs_.begin(), wrs_.end(), [&](const auto& e) {
      const Wr& w = *e.second;
      const bool addressed = w.unreliable ? w.receiver.jfr != nullptr && may_reach(w, who) : w.receiver == who;
      return w.queue == sender->second && addressed && w.op != WrOp::kWriteImm && w.length > r.length;
    });
    if (!long_one)
      fail("receiver %u: LOC_LEN, but queue %u sent nothing longer than %u bytes", who.uid(), sender->second->uid,
           r.length);
  } else if (c.status == CrStatus::kLocAccess && sender != senders_.end() && may_fail_locally(who, r, sender->second)) {
    // Consumed by a message that could not be placed.
  } else if (c.status != CrStatus::kWrFlush || !r.may_flush) {
    fail("receiver %u: receive completed with %s", who.uid(), status_name(c.status));
  }
  for (const LocalRange& l : r.ranges) release(l);
}

}  // namespace ub::sim
