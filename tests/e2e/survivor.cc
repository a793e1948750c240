// SPDX-License-Identifier: Apache-2.0
//
// An application of a daemon that lives for ever, for kill_four.py. It has a peer, another survivor, and requests of
// all kinds under way to it: every byte that is read, received or fetched is compared with what must be there. A peer
// that dies comes back with a new address, which is imported; when the daemon dies, everything is torn down and begun
// again. It ends with 3 and a sentence when it sees what may never be:
//   - a wrong byte, a message twice, a message lost that had been reported done, a counter that counted wrong;
//   - a request that does not end within 10 s (--unhurried: 100 s), an unexpected completion, or one out of order;
//   - an error of a request to a peer that lives, a call that fails although it may not;
//   - an event or the end of the daemon not told, a descriptor or thread left over after urma_uninit.
//
//   survivor --directory DIR --name NAME --peer NAME [--seed N] [--may-stall] [--patient] [--unhurried]
//
// DIR/NAME.address: for the peer. DIR/NAME.page: struct Page, for the test. --may-stall: one of the two may be
// stopped for a while, so that memory which only it can reach is refused; that is no error then. --patient: its
// requests have 34 s instead of 4 s for each sign of progress, and it is as unhurried as whoever gets hardly any CPU.
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <softub_api.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/e2e/survivor.h"
#include "tests/own_threads.h"

namespace {

constexpr uint8_t kPatientErrTimeout = 20;
constexpr double kSuspicion = 15.0;  // seconds until a peer that refused a request must have been dead
constexpr double kLookEvery = 0.005, kPauseAfterError = 0.02;
constexpr size_t kRemembered = 8;

volatile sig_atomic_t stopping = 0;

// ---- lanes -----------------------------------------------------------------------------------------------------

enum class Step { kWrite, kRead, kAtomic, kSend };

// One request at a time, in rounds. What the peer's part of the lane holds is known as long as nothing fails.
struct Lane {
  uint32_t number;
  int here, there;    // which of our segments, and of the peer's
  uint64_t with = 0;  // address of the peer
  bool busy = false;
  Step step = Step::kWrite;
  double not_before = 0;
  bool slot_known = false, counter_known = false;
  std::vector<unsigned char> slot = std::vector<unsigned char>(kSlot);
  uint64_t counter = 0;
  uint32_t at = 0, bytes = 0;  // of the request
  uint32_t source_at = 0, source_bytes = 0;
  uint64_t source_seed = 0;
  uint64_t operand = 0, compare = 0;
  bool swap = false;
  uint64_t sent = 0, sent_done = 0;
  std::deque<std::string> last_requests;  // to be printed if something is wrong
};

struct Request {
  uint64_t number;
  Lane* lane;
  Remote* remote;
  double posted;
};

enum class Mode { kPoll, kNap, kWait };

struct Manner {
  bool may_stall = false, patient = false, unhurried = false;
};

// From urma_init to urma_uninit.
class Life {
 public:
  Life(std::string name, std::string peer, const Manner& manner, uint64_t seed)
      : name_(std::move(name)), peer_(std::move(peer)), manner_(manner), dice_(seed) {
    mode_ = static_cast<Mode>(dice_() % 3);
    for (uint32_t i = 0; i < kLanes; ++i) {
      Lane& lane = lanes_[i];
      lane.number = i;
      lane.here = i & 1;
      lane.there = i >> 1 & 1;
    }
  }

  // The library is started. True: the daemon is gone.
  bool live() {
    try {
      open();
      while (!stopping || !under_way_.empty()) turn();
    } catch (const Lost&) {
      lost_ = true;
    }
    page->self.store(0);
    if (lost_) wait_for_the_end();
    for (const Lane& lane : lanes_) check_source(lane);
    close();
    return lost_;
  }

 private:
  // ---- objects ----
  void open() {
    int count = 0;
    urma_device_t** devices = urma_get_device_list(&count);
    if (devices == nullptr || count == 0) throw Lost{};
    context_ = urma_create_context(devices[0], 0);
    urma_free_device_list(devices);
    made(context_, "urma_create_context");
    must(fcntl(context_->async_fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
    open_queues();
    Address address = {};
    std::random_device chance;
    address.number = self_ = uint64_t{chance()} << 32 | chance() | 1;
    address.token = token_ = chance();
    open_jetty();
    address.jetty = jetty_->jetty_id;
    own_.reset(static_cast<Memory*>(aligned_alloc(4096, (sizeof(Memory) + 4095) & ~size_t{4095})));
    shared_ = static_cast<Memory*>(softub_alloc(sizeof(Memory)));
    if (shared_ == nullptr) throw Lost{};
    memset(own_.get(), 0, sizeof(Memory));
    memory_[0] = own_.get();
    memory_[1] = shared_;
    for (int i = 0; i < 2; ++i) address.segments[i] = register_memory(i);
    for (uint32_t i = 0; i < kReceives; ++i) post_receive(i);
    write_address(name_, address);
    page->self.store(self_);
    page->lives.fetch_add(1);
    last_round_ = last_turn_ = now();
  }

  void open_queues() {
    jfce_ = made(urma_create_jfce(context_), "urma_create_jfce");
    urma_jfc_cfg_t jfc_cfg = {};
    jfc_cfg.depth = 2 * kLanes + kReceives + 1;
    jfc_cfg.jfce = jfce_;
    jfc_ = made(urma_create_jfc(context_, &jfc_cfg), "urma_create_jfc");
  }

  void open_jetty() {
    urma_jfr_cfg_t jfr_cfg = {};
    jfr_cfg.depth = kReceives;
    jfr_cfg.trans_mode = URMA_TM_RM;
    jfr_cfg.min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER;
    jfr_cfg.jfc = jfc_;
    jfr_cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    jfr_cfg.token_value.token = token_;
    jfr_ = made(urma_create_jfr(context_, &jfr_cfg), "urma_create_jfr");
    urma_jetty_cfg_t cfg = {};
    cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
    cfg.shared.jfr = jfr_;
    cfg.jfs_cfg.depth = 2 * kLanes;
    cfg.jfs_cfg.trans_mode = URMA_TM_RM;
    cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
    cfg.jfs_cfg.err_timeout = manner_.patient ? kPatientErrTimeout : URMA_TYPICAL_ERR_TIMEOUT;
    cfg.jfs_cfg.jfc = jfc_;
    jetty_ = made(urma_create_jetty(context_, &cfg), "urma_create_jetty");
  }

  urma_seg_t register_memory(int which) {
    urma_seg_cfg_t cfg = {};
    cfg.va = reinterpret_cast<uint64_t>(memory_[which]);
    cfg.len = sizeof(Memory);
    cfg.token_value.token = token_;
    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
    segments_[which] = made(urma_register_seg(context_, &cfg), "urma_register_seg");
    return segments_[which]->seg;
  }

  void close() {
    remotes_.clear();
    if (jetty_ != nullptr) must(urma_delete_jetty(jetty_) == URMA_SUCCESS, "urma_delete_jetty");
    if (jfr_ != nullptr) must(urma_delete_jfr(jfr_) == URMA_SUCCESS, "urma_delete_jfr");
    if (jfc_ != nullptr) must(urma_delete_jfc(jfc_) == URMA_SUCCESS, "urma_delete_jfc");
    if (jfce_ != nullptr) must(urma_delete_jfce(jfce_) == URMA_SUCCESS, "urma_delete_jfce");
    for (urma_target_seg_t* segment : segments_) {
      if (segment != nullptr) must(urma_unregister_seg(segment) == URMA_SUCCESS, "urma_unregister_seg");
    }
    if (context_ != nullptr) must(urma_delete_context(context_) == URMA_SUCCESS, "urma_delete_context");
    softub_free(shared_);
  }

  // ---- the loop ----
  void turn() {
    page->turns.fetch_add(1, std::memory_order_relaxed);
    const double t = now();
    longest_turn_ = std::max(longest_turn_, t - std::exchange(last_turn_, t));
    look_for_peer(t);
    if (!stopping && !remotes_.empty()) {
      for (Lane& lane : lanes_) {
        if (!lane.busy && t >= lane.not_before) post(lane, *remotes_.back());
      }
    }
    take_completions();
    if (!under_way_.empty() && now() - under_way_.front().posted > limit()) {
      const Request& r = under_way_.front();
      violation("request %llu of %zu, step %d of lane %u, %u bytes, has not ended for %.0f s",
                static_cast<unsigned long long>(r.number), under_way_.size(), static_cast<int>(r.lane->step),
                r.lane->number, r.lane->bytes, limit());
    }
    take_async_event();
    if (told_) throw Lost{};
  }

  void look_for_peer(double t) {
    if (t < next_look_) return;
    next_look_ = t + kLookEvery;
    std::erase_if(remotes_, [&](auto& r) { return r->under_way == 0 && r != remotes_.back(); });
    if (!remotes_.empty()) {
      const Remote& r = *remotes_.back();
      if (r.refused_at != 0 && t - r.refused_at > kSuspicion) {
        violation("a request ended with status %d although the peer lives; our longest turn took %.3f s",
                  r.refused_with, longest_turn_);
      }
    }
    Address address;
    if (!read_address(peer_, &address)) return;
    if (!remotes_.empty() && remotes_.back()->address.number == address.number) return;
    auto remote = std::make_unique<Remote>();
    remote->address = address;
    if (!remote->import(context_)) return;
    remotes_.push_back(std::move(remote));
    last_round_ = t;
  }

  // An event for each arming, and soon.
  void take_completions() {
    if (poll() || mode_ == Mode::kPoll) return;
    if (mode_ == Mode::kNap) return rest(0.0003);
    if (!std::exchange(armed_, true)) {
      must(urma_rearm_jfc(jfc_, false) == URMA_SUCCESS, "urma_rearm_jfc");
      return;  // and look again
    }
    urma_jfc_t* event = nullptr;
    int n = urma_wait_jfc(jfce_, 1, 20, &event);
    if (n == 0 && poll()) {
      n = urma_wait_jfc(jfce_, 1, static_cast<int>(300 * limit()), &event);
      if (n == 0) violation("a completion raised no event");
    }
    must(n == 0 || (n == 1 && event == jfc_), "urma_wait_jfc");
    if (n == 0) return;
    uint32_t one = 1;
    urma_ack_jfc(&event, &one, 1);
    armed_ = false;
  }

  bool poll() {
    urma_cr_t records[16];
    int n = urma_poll_jfc(jfc_, 16, records);
    must(n >= 0, "urma_poll_jfc");
    for (int i = 0; i < n; ++i) {
      const urma_cr_t& record = records[i];
      if (record.status == URMA_CR_WR_FLUSH_ERR || record.status == URMA_CR_WR_FLUSH_ERR_DONE) lost_ = true;
      if (record.status == URMA_CR_WR_FLUSH_ERR_DONE) {
        must(++flush_dones_ == 1, "one WR_FLUSH_ERR_DONE");
      } else if (record.flag.bs.s_r != 0) {
        received(record);
      } else {
        done(record);
      }
    }
    if (lost_ && !ending_) throw Lost{};
    return n != 0;
  }

  // The only one that may come says that the daemon is gone.
  void take_async_event() {
    pollfd entry{context_->async_fd, POLLIN, 0};
    if (::poll(&entry, 1, 0) != 1) return;
    urma_async_event_t event;
    if (urma_get_async_event(context_, &event) != URMA_SUCCESS) return;
    if (event.event_type != URMA_EVENT_DEV_FATAL) violation("asynchronous event %d", event.event_type);
    urma_ack_async_event(&event);
    must(!std::exchange(told_, true), "telling the end once");
  }

  // All that was posted must end, and somebody must say what happened.
  void wait_for_the_end() {
    ending_ = true;
    page->losses.fetch_add(1);
    if (jetty_ == nullptr) return;
    for (double end = now() + limit(); !under_way_.empty() || flush_dones_ == 0 || !told_;) {
      poll();
      take_async_event();
      if (now() > end) {
        violation("the daemon died: %zu requests have not ended, %d markers, %s", under_way_.size(), flush_dones_,
                  told_ ? "told" : "not told");
      }
    }
  }

  // ---- requests ----
  // Seconds to the end of one.
  double limit() const { return manner_.patient || manner_.unhurried ? 100.0 : 10.0; }

  uint64_t here(const Lane& lane, const void* part) {
    return segments_[lane.here]->seg.ubva.va +
           static_cast<uint64_t>(static_cast<const unsigned char*>(part) -
                                 reinterpret_cast<const unsigned char*>(memory_[lane.here]));
  }
  Memory::Lane& memory(const Lane& lane) { return memory_[lane.here]->lanes[lane.number]; }

  uint32_t random_bytes(uint32_t most) {
    const uint32_t limits[] = {8, 64, 1000, 4096, 20000, most};
    return 1 + static_cast<uint32_t>(dice_() % std::min(most, limits[dice_() % 6]));
  }

  void post(Lane& lane, Remote& remote) {
    if (lane.with != remote.address.number) {
      lane.with = remote.address.number;
      lane.slot_known = lane.counter_known = false;
      lane.step = Step::kWrite;
      lane.sent_done = 0;
    }
    urma_sge_t local = {}, away = {};
    local.tseg = segments_[lane.here];
    away.tseg = remote.segments[lane.there];
    urma_jfs_wr_t wr = {}, *bad = nullptr;
    wr.flag.bs.complete_enable = 1;
    wr.tjetty = remote.jetty;
    wr.user_ctx = ++number_;
    prepare(lane, remote, &wr, &local, &away);
    const Request request{number_, &lane, &remote, now()};
    const urma_status_t status = urma_post_jetty_send_wr(jetty_, &wr, &bad);
    if (status != URMA_SUCCESS) violation("posting fails with %d", status);
    lane.busy = true;
    ++remote.under_way;
    under_way_.push_back(request);
  }

  void prepare(Lane& lane, const Remote& remote, urma_jfs_wr_t* wr, urma_sge_t* local, urma_sge_t* away) {
    Memory::Lane& mine = memory(lane);
    auto there = [&](size_t part) {
      return remote.address.segments[lane.there].ubva.va + offsetof(Memory, lanes) +
             lane.number * sizeof(Memory::Lane) + part;
    };
    switch (lane.step) {
      case Step::kWrite:
        lane.bytes = lane.slot_known ? random_bytes(kSlot) : kSlot;
        lane.at = static_cast<uint32_t>(dice_() % (kSlot - lane.bytes + 1));
        lane.source_at = lane.at;
        lane.source_bytes = lane.bytes;
        lane.source_seed = dice_();
        fill(mine.source + lane.at, lane.bytes, lane.source_seed);
        local->addr = here(lane, mine.source + lane.at);
        away->addr = there(offsetof(Memory::Lane, target) + lane.at);
        wr->opcode = URMA_OPC_WRITE;
        break;
      case Step::kRead: {  // with something around it
        const uint32_t before = lane.at == 0 ? 0 : static_cast<uint32_t>(dice_() % std::min(lane.at, 300u));
        lane.at -= before;
        lane.bytes = std::min(lane.bytes + before + static_cast<uint32_t>(dice_() % 300), kSlot - lane.at);
        memset(mine.sink, 0, lane.bytes);
        memset(mine.sink + lane.bytes, 0xee, kCanary);
        local->addr = here(lane, mine.sink);
        away->addr = there(offsetof(Memory::Lane, target) + lane.at);
        wr->opcode = URMA_OPC_READ;
        break;
      }
      case Step::kAtomic:
        lane.bytes = 8;
        lane.swap = lane.counter_known && dice_() % 2 == 0;
        lane.operand = dice_();
        lane.compare = lane.counter + (dice_() % 4 == 0 ? 1 : 0);
        local->addr = here(lane, &mine.fetched);
        away->addr = there(offsetof(Memory::Lane, counter));
        wr->opcode = lane.swap ? URMA_OPC_CAS : URMA_OPC_FADD;
        break;
      case Step::kSend: {
        lane.bytes = std::max<uint32_t>(random_bytes(kMessage), sizeof(Message));
        const Message head{remote.address.number, self_, ++lane.sent, lane.sent_done, lane.number, lane.bytes};
        fill(mine.message, lane.bytes, head.number);
        memcpy(mine.message, &head, sizeof head);
        local->addr = here(lane, mine.message);
        wr->opcode = URMA_OPC_SEND;
        break;
      }
    }
    local->len = away->len = lane.bytes;
    switch (lane.step) {
      case Step::kWrite:
        wr->rw.src = {local, 1}, wr->rw.dst = {away, 1};
        break;
      case Step::kRead:
        wr->rw.src = {away, 1}, wr->rw.dst = {local, 1};
        break;
      case Step::kAtomic:
        if (lane.swap) {
          wr->cas.dst = away, wr->cas.src = local;
          wr->cas.cmp_data = lane.compare, wr->cas.swap_data = lane.operand;
        } else {
          wr->faa.dst = away, wr->faa.src = local, wr->faa.operand = lane.operand;
        }
        break;
      case Step::kSend:
        wr->send.src = {local, 1};
        break;
    }
  }

  void done(const urma_cr_t& record) {
    page->statuses[record.status % 16].fetch_add(1, std::memory_order_relaxed);
    if (under_way_.empty() || record.user_ctx != under_way_.front().number) {
      violation("a completion of request %llu with status %d, expected is %llu of %zu",
                static_cast<unsigned long long>(record.user_ctx), record.status,
                under_way_.empty() ? 0 : static_cast<unsigned long long>(under_way_.front().number), under_way_.size());
    }
    const Request request = under_way_.front();
    under_way_.pop_front();
    Lane& lane = *request.lane;
    Remote& remote = *request.remote;
    --remote.under_way;
    lane.busy = false;
    remember(lane, request, record.status);
    if (record.status == URMA_CR_SUCCESS) return succeeded(lane);
    if (lane.step == Step::kWrite) lane.slot_known = false;
    if (lane.step == Step::kAtomic) lane.counter_known = false;
    lane.step = Step::kWrite;
    lane.not_before = now() + kPauseAfterError;
    judge(record.status, remote);
  }

  static void remember(Lane& lane, const Request& request, int status) {
    char text[160];
    snprintf(text, sizeof text, "  step %d, %u bytes at %u, posted %.4f, done %.4f with %d\n",
             static_cast<int>(lane.step), lane.bytes, lane.at, request.posted, now(), status);
    lane.last_requests.emplace_back(text);
    if (lane.last_requests.size() > kRemembered) lane.last_requests.pop_front();
  }

  void judge(int status, Remote& remote) {
    if (status == URMA_CR_WR_FLUSH_ERR) return;
    if (manner_.may_stall && (status == URMA_CR_REM_ACCESS_ABORT_ERR || status == URMA_CR_LOC_ACCESS_ERR)) return;
    const bool of_the_dead = status == URMA_CR_REM_ACCESS_ABORT_ERR || status == URMA_CR_ACK_TIMEOUT_ERR;
    if (!of_the_dead) violation("a request ended with status %d; our longest turn took %.3f s", status, longest_turn_);
    if (remote.refused_at == 0) remote.refused_at = now(), remote.refused_with = status;
  }

  void succeeded(Lane& lane) {
    const Memory::Lane& mine = memory(lane);
    switch (lane.step) {
      case Step::kWrite:
        memcpy(lane.slot.data() + lane.at, mine.source + lane.at, lane.bytes);
        check_source(lane);
        lane.slot_known = true;
        lane.step = Step::kRead;
        break;
      case Step::kRead:
        check_read(lane, mine);
        lane.step = Step::kAtomic;
        break;
      case Step::kAtomic: {
        const uint64_t old = mine.fetched;
        if (lane.counter_known && old != lane.counter) {
          violation("lane %u: the counter was %llx, not %llx", lane.number, static_cast<unsigned long long>(old),
                    static_cast<unsigned long long>(lane.counter));
        }
        lane.counter = lane.swap ? (old == lane.compare ? lane.operand : old) : old + lane.operand;
        lane.counter_known = true;
        lane.step = Step::kSend;
        break;
      }
      case Step::kSend:
        lane.sent_done = lane.sent;
        lane.step = Step::kWrite;
        finish_round(lane);
        break;
    }
  }

  void finish_round(const Lane& lane) {
    const double t = now();
    const auto pause = static_cast<uint64_t>((t - last_round_) * 1e6);
    if (pause > page->pause_us.load()) page->pause_us.store(pause);
    last_round_ = t;
    page->with.store(lane.with);
    page->rounds.fetch_add(1);
  }

  void check_read(const Lane& lane, const Memory::Lane& mine) {
    const size_t same = first_difference(mine.sink, lane.slot.data() + lane.at, lane.bytes);
    if (same != lane.bytes) {
      for (const std::string& text : lane.last_requests) fputs(text.c_str(), stderr);
      violation("lane %u, memory %d to %d: byte %zu of %u read from offset %u is %02x, not %02x", lane.number,
                lane.there, lane.here, same, lane.bytes, lane.at, mine.sink[same], lane.slot[lane.at + same]);
    }
    for (uint32_t i = 0; i < kCanary; ++i) {
      if (mine.sink[lane.bytes + i] != 0xee) violation("lane %u: written behind the end of a READ", lane.number);
    }
  }

  // Nobody may write there but we.
  void check_source(const Lane& lane) {
    std::vector<unsigned char> expected(lane.source_bytes);
    fill(expected.data(), lane.source_bytes, lane.source_seed);
    if (expected.empty()) return;
    const unsigned char* source = memory_[lane.here]->lanes[lane.number].source + lane.source_at;
    const size_t same = first_difference(source, expected.data(), lane.source_bytes);
    if (same != lane.source_bytes) violation("lane %u: byte %zu of a source changed", lane.number, same);
  }

  // ---- receives ----
  void post_receive(uint32_t slot) {
    urma_target_seg_t* segment = segments_[slot & 1];
    const uint64_t at = segment->seg.ubva.va + offsetof(Memory, received) + slot * sizeof(Memory::received[0]);
    must(receives_.insert(slot).second, "a free receive");
    must(urma_recv(jfr_, segment, at, kMessage, slot) == URMA_SUCCESS, "urma_recv");
  }

  void received(const urma_cr_t& record) {
    if (receives_.erase(static_cast<uint32_t>(record.user_ctx)) != 1 || record.user_ctx >= kReceives) {
      violation("a completion of receive %llu, which is not posted", static_cast<unsigned long long>(record.user_ctx));
    }
    const auto slot = static_cast<uint32_t>(record.user_ctx);
    if (record.status == URMA_CR_WR_FLUSH_ERR) return;
    if (record.status == URMA_CR_SUCCESS) {
      check_message(memory_[slot & 1]->received[slot], record.completion_len);
    } else {
      page->receives_failed.fetch_add(1, std::memory_order_relaxed);
    }
    if (!ending_) post_receive(slot);
  }

  void check_message(const unsigned char* at, uint32_t bytes) {
    Message head;
    memcpy(&head, at, sizeof head);
    if (bytes < sizeof head || head.bytes != bytes || head.to != self_ || head.lane >= kLanes) {
      violation("a message of %u bytes that was not for us (says %u)", bytes, head.bytes);
    }
    unsigned char expected[kMessage];
    fill(expected, bytes, head.number);
    memcpy(expected, &head, sizeof head);
    const size_t same = first_difference(at, expected, bytes);
    if (same != bytes) violation("byte %zu of a message of %u is wrong", same, bytes);
    uint64_t& last = last_message_[{head.from, head.lane}];
    if (head.number <= last) violation("message %llu again", static_cast<unsigned long long>(head.number));
    if (head.done > last) violation("message %llu was lost", static_cast<unsigned long long>(head.done));
    last = head.number;
  }

  struct Free {
    void operator()(void* memory) const { free(memory); }
  };

  const std::string name_, peer_;
  const Manner manner_;
  std::mt19937_64 dice_;
  Mode mode_;
  uint64_t self_ = 0;
  uint32_t token_ = 0;
  urma_context_t* context_ = nullptr;
  urma_jfce_t* jfce_ = nullptr;
  urma_jfc_t* jfc_ = nullptr;
  urma_jfr_t* jfr_ = nullptr;
  urma_jetty_t* jetty_ = nullptr;
  std::unique_ptr<Memory, Free> own_;
  Memory* shared_ = nullptr;
  Memory* memory_[2] = {};  // reached by the agent; shared with the daemon
  urma_target_seg_t* segments_[2] = {};
  std::vector<std::unique_ptr<Remote>> remotes_;  // the last one lives
  Lane lanes_[kLanes];
  std::deque<Request> under_way_;
  std::set<uint32_t> receives_;
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> last_message_;
  uint64_t number_ = 0;
  double next_look_ = 0, last_round_ = 0, last_turn_ = 0, longest_turn_ = 0;
  bool armed_ = false, lost_ = false, ending_ = false, told_ = false;
  int flush_dones_ = 0;
};

// ---- the process -----------------------------------------------------------------------------------------------

size_t entries(const char* path) {
  DIR* dir = opendir(path);
  size_t n = 0;
  while (dir != nullptr && readdir(dir) != nullptr) ++n;
  if (dir != nullptr) closedir(dir);
  return n;
}

void check_leftovers(int threads_before) {
  static size_t descriptors = 0;
  const size_t n = entries("/proc/self/fd");
  if (descriptors != 0 && n > descriptors) violation("%zu descriptors after urma_uninit, %zu before", n, descriptors);
  descriptors = n;
  for (double end = now() + 5; count_threads() != threads_before; rest(0.001)) {
    if (now() > end) violation("a thread is left after urma_uninit");
  }
}

void open_page(const std::string& path) {
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Page)) != 0) exit(2);
  void* at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) exit(2);
  page = static_cast<Page*>(at);
  page->self.store(0);
  page->pid.store(static_cast<uint64_t>(getpid()));
}

}  // namespace

int main(int argc, char** argv) {
  std::string name, peer;
  uint64_t seed = 1;
  Manner manner;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const bool value = i + 1 < argc;
    if (option == "--may-stall") {
      manner.may_stall = true;
    } else if (option == "--patient") {
      manner.patient = true;
    } else if (option == "--unhurried") {
      manner.unhurried = true;
    } else if (option == "--directory" && value) {
      directory = argv[++i];
    } else if (option == "--name" && value) {
      name = argv[++i];
    } else if (option == "--peer" && value) {
      peer = argv[++i];
    } else if (option == "--seed" && value) {
      seed = strtoull(argv[++i], nullptr, 0);
    } else {
      name.clear();
      break;
    }
  }
  if (name.empty() || peer.empty() || directory.empty()) {
    fprintf(stderr,
            "usage: survivor --directory DIR --name NAME --peer NAME [--seed N] [--may-stall] [--patient] "
            "[--unhurried]\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGTERM, [](int) { stopping = 1; });
  signal(SIGPIPE, SIG_IGN);
  open_page(directory + "/" + name + ".page");
  const int threads_before = count_threads_before();
  while (!stopping) {
    page->turns.fetch_add(1);
    if (urma_init(nullptr) != URMA_SUCCESS) {
      rest(0.005);
      continue;
    }
    Life(name, peer, manner, ++seed).live();
    must(urma_uninit() == URMA_SUCCESS, "urma_uninit");
    check_leftovers(threads_before);
  }
  return 0;
}
