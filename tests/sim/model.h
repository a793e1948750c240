// SPDX-License-Identifier: Apache-2.0
//
// The oracle. It hears of everything that applications do and see (posts, completions, receives, deaths) and
// says at once when something must not be: a completion missing, twice, out of order or with a status that no
// fault explains; a byte that nobody wrote; a message lost, doubled or changed. It knows nothing of packets.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/sim/atomic_model.h"
#include "tests/sim/memory_model.h"
#include "tests/sim/objects.h"
#include "tests/sim/order_model.h"

namespace ub::sim {

constexpr uint32_t bit(CrStatus s) { return uint32_t{1} << static_cast<uint32_t>(s); }

constexpr bool takes_receive(WrOp op) {
  return op == WrOp::kSend || op == WrOp::kSendImm || op == WrOp::kSendInvalidate || op == WrOp::kWriteImm;
}
constexpr bool writes_remote(WrOp op) {
  return op == WrOp::kWrite || op == WrOp::kWriteImm || op == WrOp::kWriteNotify;
}
constexpr bool is_atomic(WrOp op) { return op >= WrOp::kCompareSwap && op <= WrOp::kFetchXor; }

const char* op_name(WrOp op);
const char* status_name(CrStatus s);

// A work request as the oracle sees it.
struct Wr {
  enum class State : uint8_t { kOutstanding, kSuccess, kFailed, kLost };  // lost: its queue is gone

  uint64_t id = 0;
  Queue* queue = nullptr;
  WrOp op = WrOp::kNop;
  uint8_t flags = 0;
  uint8_t place_order = 0;
  uint32_t length = 0;
  uint64_t immediate = 0;
  uint32_t remote_node = UINT32_MAX, remote_epoch = 0;
  Region* remote = nullptr;
  uint64_t remote_offset = 0;
  uint64_t effect_bytes = 0;  // of a WRITE: how many may appear (fewer than length if it leaves the segment)
  bool owned = false;         // its remote range goes back to the region when it succeeds
  bool alone = false;         // nobody else touches its remote range while it is outstanding
  Region* notify = nullptr;
  uint64_t notify_offset = 0;
  Receiver receiver;  // of a message
  uint32_t token = 0, notify_token = 0, receiver_token = 0;  // what it shows
  bool shows_token = true;                                   // UM: the one that its receiver asked for
  AtomicPlan atomic;
  std::vector<LocalRange> local;  // sources, or where results go
  uint32_t allowed = 0;           // bits of CrStatus
  bool unreliable = false;        // UM, UD
  bool may_run = true;            // may it have an effect at the target?
  const char* wrong = nullptr;    // what is wrong with it on purpose

  State state = State::kOutstanding;
  CrStatus status = CrStatus::kSuccess;
  uint64_t posted_tick = 0, resolved_tick = 0;
  uint64_t posted_ns = 0, resolved_ns = 0;
  bool received = false;
  uint64_t overtaken_by = 0;  // was received after this later one of its queue, so it must not succeed
  uint32_t qpn = 0, qkey = 0;  // UD: what it shows
  uint32_t deliveries = 0;     // UM, UD
  bool must_arrive = false;    // the same, when nothing gets lost

  bool signaled() const { return (flags & kWrSignaled) != 0; }
};

// Is the receiver whom a message of UM names, or one that took its place?
bool may_reach(const Wr&, const Receiver&);

class Model {
 public:
  // How long bytes of a request that failed may still be on their way.
  static constexpr uint64_t kStragglerNs = 10'000'000'000;

  void set_time(const uint64_t* now_ns) { now_ns_ = now_ns; }
  uint64_t tick() const { return tick_; }  // what happens from now on has a greater one

  void add_region(Region*);
  void add_queue(Queue*, uint32_t node_epoch);
  void token_withdrawn(const Region*);  // from now on the former one is not good any more
  void token_withdrawn(const Jfr*);
  void region_leaving(Region*);  // unregistered, or its application died and the NIC does not know yet
  void receiver_gone(const Receiver&);
  void receivers_dying(uint32_t app);       // its application died, the NIC does not know yet
  void receiver_dropping(const Receiver&);  // in ERROR: messages to it vanish
  void instance_gone(uint32_t node, uint32_t epoch);
  void queue_flushing(Queue*);
  void queue_resetting(Queue*);
  // Something happened to a queue pair or to its peer that explains these statuses, of all their requests.
  void explain(Queue*, uint32_t statuses);
  void explain_pair(Queue*, uint32_t statuses);
  void broken(Queue*);  // a queue pair is in ERROR
  size_t outstanding_of(const Queue* q) { return in_queue_[q->uid].size(); }
  void flushed(const Jfr&, size_t held);  // all is quiet: if it is in ERROR, all but so many receives have come back
  void queue_gone(Queue*);
  void path_broken(uint32_t node_a, uint32_t node_b);  // for so long that requests may time out

  Wr& post(std::unique_ptr<Wr>);  // fills in id-independent state; the id was taken from next_id()
  uint64_t next_id() { return ++last_id_; }
  void posted_receive(Jfr*, const Receive&);
  // A send completion as the application polled it.
  void completed(Queue*, const Cqe&);
  void unhandled(Queue*, const Cqe&);
  void resumed(Queue*);         // after take_unhandled: it goes on
  void flush_finished(Queue*);  // after take_unhandled: nothing may be left
  void all_retired(Queue*);     // the Core has finished everything, and every completion was polled
  // A receive completion. `who` is the local object it names, `rnr_seen` whether that instance ever refused
  // one.
  void received(const Receiver& who, const Cqe&, uint32_t sender_node, uint32_t sender_epoch, bool rnr_seen);
  // The NIC has put bytes into a region, `final` as in Host::place.
  void placed(const Region*, uint64_t offset, size_t bytes);
  // Bytes arrived that the NIC will write there.
  void arrived(const Region*, uint64_t offset);
  // The NIC has read or written memory there: `data` is what it wrote, or null.
  void touched(const Region*, uint64_t offset, const std::byte* data, size_t bytes);

  void final_check();  // after everything is quiet

  uint32_t outstanding() const { return outstanding_; }
  bool all_arrived() const;  // the datagrams that must
  const Wr& wr(uint64_t id) const { return *wrs_.at(id); }
  // Does no outstanding request have this range for itself?
  bool unused(const Region* r, uint64_t offset, uint64_t bytes) const { return order_.unused(r->uid, offset, bytes); }
  AtomicModel& atomics(const Region* r) { return *atomics_.at(r->uid); }
  const std::string& failure() const { return failure_; }
  void fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
  std::string describe(const Wr&) const;
  std::string whose(const std::byte* p,
                    const std::byte* end) const;  // for messages: which request wrote these bytes?
  std::string unresolved() const;                 // for a liveness failure
  uint64_t count(Wr::State) const;
  uint32_t most_deliveries = 1;  // of a datagram: more than one if the network duplicates
  std::function<void(const Wr&)> on_last_word;  // the last word of this WRITE became visible, and was judged

 private:
  struct Inbox {
    std::deque<uint64_t> waiting;  // posted, not received
    uint64_t newest_received = 0;
    uint64_t newest_in_order = 0;  // of those whose receive completes after all earlier ones
    // Messages that look alike (short, without immediate) are only counted.
    uint64_t alike_posted = 0, alike_received = 0, alike_succeeded = 0;
  };
  using InboxKey = std::pair<uint32_t, uint32_t>;  // send queue, receiver

  void resolve(Wr&, CrStatus);
  void resolve_in_order(Queue*, uint64_t id, CrStatus, const char* what);
  void check_success(Wr&);
  void release(Wr&);
  void ended(const Wr&);  // it is not outstanding any more
  void watch_order(const Wr&);
  void release(const LocalRange&);
  void check_read(const Wr&);
  void allow(Wr& w, uint32_t statuses) { w.allowed |= statuses; }
  template <class Match>
  void allow_outstanding(Match, uint32_t statuses);
  template <class Match>
  void refuse_outstanding(Match);
  bool overwritten_by(const Wr& newer, const Candidate& older) const;
  bool alike(const Wr& w) const { return w.length < 8 && w.op == WrOp::kSend; }
  bool carries(const Receive&, const Wr&, uint64_t* bad_byte) const;
  bool left_by_aborted(const LocalRange&, uint64_t from, uint64_t at, const Jfr*) const;
  bool may_fail_locally(const Receiver&, const Receive&, const Queue* sender) const;
  void overtaken(Wr& w, uint64_t later);
  void check_order(const Wr& w);
  void check_never_ran(const Wr&);
  void take_message(const Receiver&, const Cqe&, const Receive&, Queue* sender, bool rnr_seen);
  bool is_datagram(const Wr&, const Cqe&, uint32_t length) const;
  void take_datagram(const Receiver&, const Cqe&, const Receive&, const Queue* sender);
  void take_ud(const Receiver&, const Cqe&, const Receive&, uint32_t sender_node);
  void drop_end(const Wr&);
  void forget_history();

  const uint64_t* now_ns_ = nullptr;
  uint64_t tick_ = 0;
  uint64_t last_id_ = 0;
  uint32_t outstanding_ = 0;
  uint32_t reads_outstanding_ = 0;
  std::map<uint64_t, std::unique_ptr<Wr>> wrs_;
  std::map<uint32_t, std::deque<uint64_t>> in_queue_;  // by queue: outstanding, in posting order
  std::map<uint32_t, bool> flush_done_;                // by queue in ERROR: has the end marker come?
  std::map<InboxKey, Inbox> inboxes_;
  std::map<uint32_t, Region*> regions_;
  std::map<uint32_t, std::unique_ptr<MemoryModel>> memory_;
  std::map<uint32_t, std::unique_ptr<AtomicModel>> atomics_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Queue*> senders_;  // node, epoch, id
  std::multimap<std::pair<uint32_t, uint64_t>, uint64_t> ends_;         // region, end of a range: its writer
  OrderModel order_;
  std::map<uint64_t, uint64_t> messages_;  // by the first word of a packet of it: SENDs that were not received yet
  bool dirty_history_ = false;
  std::string failure_;
};

}  // namespace ub::sim
