// SPDX-License-Identifier: Apache-2.0
//
// The shared-memory wire: frames between instances of one host, without a system call while both are awake.
//
// Each instance listens on one socket per EID in a rendezvous directory (lib/ipc/rendezvous.h). To connect,
// an instance makes one sealed memfd with two FrameRings, and sends it with its doorbell (lib/ipc/doorbell.h:
// a page with a sleep flag and a bitmap of links to poll, plus an eventfd) in a versioned hello. The link is
// usable at once: what is sent before the peer accepts waits in the ring. A refusal, a peer that dies and a
// ring whose content makes no sense all end as a dead link with a reason. If both connect at the same time,
// there are two links; each works.
//
//   any thread                                  owner of the Core
//   ----------                                  -----------------
//   connect(), poll_control()                   has_pending() -> adopt_pending(): links get their numbers
//      accept, hello, reply, hang-up               take_dead_links() -> Core::link_down -> drop_link()
//      under control_mutex_                     rx_*, tx_*, prepare_sleep, finish_sleep: no lock
//
// Waking a peer: at tx_flush if it says that it sleeps (and not for what can wait, if it only dozes); else when nothing
// was consumed for `doorbell_after` (8 times that if it says that it polls, and up to that while such rings prove
// needless), which is checked at later flushes; and in prepare_sleep() and prepare_nap(), so that nobody sleeps on an
// unannounced frame. A killed peer leaves its ring as it was: what it published is still delivered, then the link is
// reported dead.
//
// Trust: the rendezvous directory is private to one user. A reader nevertheless believes no length or index
// of a peer; it cannot be led outside its mapping, and the mapping cannot shrink. Frame *contents* may change
// while they are read: whoever parses must read a field once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dataplane/port_concept.h"
#include "lib/base/time.h"
#include "lib/ipc/doorbell.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/frame_ring.h"
#include "lib/ipc/lane.h"
#include "lib/ipc/link_hello.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/rendezvous.h"
#include "lib/ipc/share.h"
#include "lib/ipc/spare_fd.h"
#include "lib/transport/core_types.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

struct ShmPortOptions {
  std::string directory;           // rendezvous directory; empty: that of this user and network namespace
  uint64_t ring_bytes = 8U << 20;  // per direction and peer: power of two, 64 KiB to 1 GiB; touched as used
  uint32_t mtu = 4096;             // payload bytes of a packet
  bool icrc_optional = true;
  bool lossless = true;       // false: somebody between us and the ring loses frames (impaired_wires.h)
  uint32_t max_links = 4096;  // at most ipc::Doorbell::kMaxLinks
  Duration doorbell_after = microseconds(5);
  Duration doorbell_repeat = milliseconds(1);  // and again, while still nothing was consumed
};

struct ShmPortCounters {
  uint64_t tx_frames = 0;
  uint64_t tx_no_room = 0;         // tx_begin answered nullptr on a live link
  uint64_t tx_doorbells = 0;       // peers rung because they said they sleep
  uint64_t tx_doorbells_late = 0;  // peers rung because they left a frame lying
  uint64_t rx_frames = 0;
  uint64_t rx_bad_ring = 0;  // rings given up because of an impossible header or index
  uint64_t links_adopted = 0;
  uint64_t links_dead = 0;
};

struct DeadLink {
  uint32_t link;
  std::string why;  // a sentence
};

class ShmPort {
 public:
  using AddLink = std::function<uint32_t(const LinkConfig&)>;  // Core::add_link

  ShmPort();
  ~ShmPort();
  ShmPort(const ShmPort&) = delete;
  ShmPort& operator=(const ShmPort&) = delete;

  // Creates the doorbell and listens as (eid, low half of uasid) for each EID. False: a sentence in `*error`,
  // nothing is open; with `*taken` set (optional) another process holds the name.
  bool open(const ShmPortOptions&, std::span<const Eid> eids, uint32_t uasid, std::string* error,
            bool* taken = nullptr);
  // Every peer sees its link die. Owner only; no other call may be running.
  void close();
  bool is_open() const { return open_; }
  uint32_t mtu() const { return options_.mtu; }
  const std::string& directory() const { return rendezvous_.directory(); }

  // ---- control, any thread ----
  // Is an instance listening under (eid, low half of uasid; 0: the well-known port)? One connect attempt is
  // the only proof; this looks for the name, which a killed process leaves behind.
  bool is_listed(const Eid&, uint32_t uasid) const;
  // The socket of that instance, if it is on this host.
  std::string path_of(const InstanceId&) const;
  // The port of ids is ours (id_claims.h); and no more.
  void announce_ids(uint16_t port);
  void retract_ids(uint16_t port);
  // The uasid of the instance of this user that said so last, and may be gone; 0: none did. What turned out to be wrong
  // is to be forgotten.
  uint32_t holder_of_ids(const Eid&, uint16_t port) const;
  void forget_holder(const Eid&, uint16_t port, uint32_t uasid) const;
  // Starts a link; it gets its number at the next adopt_pending(). Never blocks. False and `*error`: nobody
  // there, table full, out of descriptors. Does nothing if a link to that instance exists.
  bool connect(const InstanceId& peer, std::string* error);
  // Accepts, answers hellos, reads replies, notices hang-ups. Cheap when nothing happened (one system call);
  // returns at once when another thread is in it. True: something waits for the owner (has_pending()).
  bool poll_control();
  // Where those go who ask for a lane (lib/ipc/lane.h), or for memory to map (lib/ipc/share.h), at one of our sockets;
  // before open(). Without a door they are refused. It is called by whoever calls poll_control().
  using Wish = std::variant<ipc::LaneHello, ipc::ShareHello>;
  using Door = std::function<void(ipc::Fd socket, const Wish&)>;
  void set_door(Door door) { door_ = std::move(door); }
  // Empties the eventfd after a blocked thread was woken by it. finish_sleep() does it too.
  void clear_doorbell() {
    if (open_) doorbell_.drain();
  }
  // Is there something for adopt_pending() and then take_dead_links()? One load.
  bool has_pending() const { return pending_.load(std::memory_order_acquire); }
  // A sentence about the last peer that was turned away, or that turned us away, since the last call; or "".
  std::string take_refusal();
  // What became of the last connect() to an instance; kGone: `*why` says why, if that is still known.
  enum class LinkState : uint8_t { kGone, kAwaitReply, kUp };
  LinkState link_state(const InstanceId& peer, std::string* why) const;

  // ---- links, owner only ----
  // Takes over what poll_control() and connect() prepared, and gives numbers to new links (`add` answers 0:
  // the link is closed again). Returns how many became usable. Call take_dead_links() after it.
  size_t adopt_pending(const AddLink& add);
  // Appends links whose peer is gone, after everything it had sent was received. Then call Core::link_down
  // (open frames of the link may still be committed or aborted) and drop_link().
  void take_dead_links(std::vector<DeadLink>* out);
  void drop_link(uint32_t link);
  // The adopted, living link to the holder of (eid, low half of uasid; 0: the well-known port), or 0.
  uint32_t find_link(const Eid&, uint32_t uasid) const;
  bool has_link_to(const Eid& eid, uint32_t uasid) const { return find_link(eid, uasid) != 0; }
  // Has the peer accepted? (A link works before: what is sent waits in the ring.)
  bool connected(const Eid& eid, uint32_t uasid) const {
    const Link* l = link_at(find_link(eid, uasid));
    return l != nullptr && l->peer.attached();
  }
  size_t link_count() const { return order_.size(); }
  // Who is at the other end, for people: "10.0.0.2, port 4792".
  std::string peer_of(uint32_t link) const;

  // ---- Port (port.h), owner only ----
  size_t rx_burst(RxFrame* out, size_t room);
  void rx_release() { released_ = true; }
  std::byte* tx_begin(uint32_t link, size_t bytes) {
    Link* l = link_at(link);
    if (l == nullptr || l->dead) [[unlikely]]
      return nullptr;
    std::byte* frame = l->tx.begin(bytes);
    if (frame == nullptr) [[unlikely]]
      no_room(*l);
    return frame;
  }
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes) {
    Link* l = link_at(link);
    if (l == nullptr) [[unlikely]]
      return;
    l->tx.commit(frame, bytes);
    ++counters_.tx_frames;
    ++l->hurry;
    if (!l->unflushed) {
      l->unflushed = true;
      unflushed_.push_back(l);
    }
  }
  void tx_may_wait(uint32_t link) {
    if (Link* l = link_at(link)) --l->hurry;
  }
  void tx_abort(uint32_t link, std::byte* frame) {
    if (Link* l = link_at(link)) l->tx.abort(frame);
  }
  void tx_flush(Instant now);
  bool prepare_sleep();
  // Is there a frame to take, or a change of links to take over?
  bool anything_waits() const;
  // The same for a nap of at most ipc::Doorbell::kLongestDoze, without a heavy barrier. Not to be woken for what can
  // wait, unless `wake_for_all`.
  bool prepare_nap(bool wake_for_all);
  void finish_sleep();
  // Instead of finish_sleep(), for an owner that empties the eventfd itself, later.
  void stop_asking() {
    if (open_) doorbell_.end_sleep();
  }
  // The CPU of the peer that rang last, as it says; -1: not known.
  int rung_from() const { return doorbell_.rung_from(); }
  // An application thread polls all the time, or does not any more.
  void set_polled(bool yes) {
    if (open_) doorbell_.set_polled(yes);
  }
  // Was something sent to a peer that polls, since the last call? Then more will come soon.
  bool take_met_poller() { return std::exchange(met_poller_, false); }
  void fds(std::vector<int>&) const;
  int doorbell_fd() const { return doorbell_.event_fd(); }
  int control_fd() const { return epoll_.get(); }

  // ---- bells ----
  // Whoever is rung may run in the place of the thread that rings, which should not be the owner of the Core any more
  // by then. With hold_bells(), tx_flush leaves the bells of sleepers here; the owner takes them and rings when it has
  // let go. They stay good whatever becomes of the links.
  using Bells = std::vector<ipc::PeerDoorbell::Bell>;
  void hold_bells() { hold_bells_ = true; }
  bool has_bells() const { return !bells_.empty(); }
  void take_bells(Bells* out) { out->swap(bells_); }  // *out: empty
  static void ring_bells(Bells&);                     // any thread

  const ShmPortCounters& counters() const { return counters_; }

 private:
  static constexpr size_t kPollAll = 4;             // up to so many links are all polled, always
  static constexpr uint32_t kIdlePolls = 256;       // with more, one is left alone after so many empty looks
  static constexpr size_t kBurstBytes = 16 * 1024;  // a burst ends here, so that rings give space back often
  static constexpr size_t kMaxEmbryos = 64;

  // One peer. Built by the control side, then owned by the owner of the Core (see Slot for what stays
  // behind).
  struct Link {
    ipc::FrameRingWriter tx;
    ipc::FrameRingReader rx;
    ipc::PeerDoorbell peer;  // not attached before the peer's reply was adopted
    uint32_t number = 0;     // the Core's; 0: not adopted
    uint32_t slot = 0;       // index of slots_, and its bit in our own doorbell
    bool unflushed = false;  // in unflushed_
    uint32_t hurry = 0;      // frames committed since the last flush that a sleeper is to be woken for
    bool watched = false;    // in watch_ or rung_
    bool rung = false;       // rung for want of progress; since then none was seen
    bool active = false;     // in active_
    bool dead = false;       // hung up or broken: nothing is sent any more
    bool broken = false;     // its ring makes no sense: nothing is received either
    bool dying = false;      // in dying_
    uint32_t empty_polls = 0;
    uint64_t watch_consumed = 0;  // the peer's position when the watch began
    Instant watch_until{};
    Duration patience{};       // how long a frame may lie; options_.doorbell_after or somewhat more
    uint64_t drain_limit = 0;  // dead: received at most up to here
    Eid eid;                   // the peer's
    uint16_t port = 0;
    uint32_t mtu = 0;
    std::string why;
    ipc::Mapping rings;
  };
  // The control side of a link.
  struct Slot {
    enum class State : uint8_t { kFree, kAwaitReply, kUp, kGone };
    State state = State::kFree;
    uint32_t generation = 0;  // events of an earlier use are ignored
    ipc::Fd socket;
    std::unique_ptr<Link> link;  // touched by the owner only, once its kAdopt was taken
    Eid eid;
    uint16_t port = 0;
    std::string why;  // kGone before it was ever up
  };
  struct Embryo {  // accepted, no hello yet
    uint32_t id = 0;
    size_t listener = 0;
    ipc::Fd socket;
  };
  // What the control side has for the owner.
  struct Notice {
    enum class Kind : uint8_t { kAdopt, kConfirm, kDead };
    Kind kind;
    uint32_t slot;
    Link* link;
    ipc::PeerDoorbell peer = {};  // kConfirm
    std::string why = {};         // kDead
  };
  // Links in the order in which they are to be looked at again.
  struct WatchList {
    std::vector<Link*> links;  // nullptr: forgotten
    size_t head = 0;
    bool empty() const { return head == links.size(); }
    void push(Link* l) { links.push_back(l); }
    Link* front() const { return links[head]; }
    bool due(Instant now) const { return !empty() && (front() == nullptr || front()->watch_until <= now); }
    void pop() {
      if (++head == links.size()) {
        links.clear();
        head = 0;
      } else if (head >= 64 && head * 2 >= links.size()) {
        links.erase(links.begin(), links.begin() + static_cast<ptrdiff_t>(head));
        head = 0;
      }
    }
    void remove(const Link* l) {
      for (size_t i = head; i < links.size(); ++i)
        if (links[i] == l) links[i] = nullptr;
    }
  };

  Link* link_at(uint32_t number) const { return number < by_number_.size() ? by_number_[number] : nullptr; }
  void give_back();
  void no_room(Link&);
  bool poll_ring(Link&, RxFrame* out, size_t room, size_t* count, size_t* bytes);
  void scan_doorbell();
  void activate(Link&);
  bool deactivate(Link&);
  bool flush_link(Link&);
  bool hold_bell(Link&);
  void announce();
  // How long a frame may lie, at most: so long does who was rung need for a burst, or who polls get no CPU.
  Duration most_patience() const { return options_.doorbell_after * 8; }
  Duration patience_with(const Link& l) const {
    return l.peer.attached() && l.peer.polled() ? most_patience() : l.patience;
  }
  void watch(Link&, Instant until);
  void check_watch(WatchList&, Instant now);
  void give_up_ring(Link&, const char* what);
  void start_dying(Link&);
  void forget(Link*);

  // Control side, control_mutex_ held.
  static uint16_t port_of(uint32_t uasid) {
    return uasid == 0 ? wire::kUbUdpPort : static_cast<uint16_t>(uasid & 0xffff);
  }
  bool take_slot(uint32_t* slot, std::string* error);
  void free_slot(uint32_t slot);
  void accept_all(size_t listener);
  void on_embryo(uint32_t id);
  void on_wish(Embryo&, const Wish&);
  std::string objection_to(const Embryo&, const Wish&) const;
  void on_hello(Embryo&, std::span<const std::byte> message, ipc::Fd* fds, size_t fd_count);
  void on_slot_event(uint32_t slot, uint32_t generation);
  void on_reply(uint32_t slot, std::span<const std::byte> message, ipc::Fd* fds, size_t fd_count);
  void slot_gone(uint32_t slot, std::string why);
  void refuse(int socket, ipc::Refusal code, const std::string& text);
  void notify(Notice);
  bool add_to_epoll(int fd, uint64_t tag);

  Door door_;
  ShmPortOptions options_;
  uint32_t uasid_ = 0;
  std::vector<Eid> eids_;
  bool open_ = false;
  ipc::Rendezvous rendezvous_;
  ipc::Doorbell doorbell_;
  bool have_membarrier_ = false;

  // Owner side.
  std::vector<Link*> by_number_;  // dense, by the Core's link number
  std::vector<Link*> by_slot_;
  std::vector<Link*> order_;      // all adopted links
  std::vector<Link*> active_;     // those that rx_burst polls
  std::vector<Link*> unflushed_;  // committed to since the last flush
  std::vector<Link*> received_;   // handed out frames that are not given back yet
  bool released_ = false;         // those frames may be given back
  std::vector<Link*> dying_;      // dead, not yet reported
  WatchList watch_, rung_;        // links with frames the peer has not consumed; the second: it was rung
  std::vector<uint64_t> polled_;  // bit per slot: in active_
  size_t turn_ = 0;               // of active_
  size_t idle_turn_ = 0;          // of order_
  bool scanning_ = false;         // there are more than kPollAll links
  bool met_poller_ = false;
  bool hold_bells_ = false;
  Bells bells_;
  ShmPortCounters counters_;

  // Control side.
  mutable std::mutex control_mutex_;
  ipc::Fd epoll_;
  ipc::SpareFd spare_fd_;
  std::vector<Slot> slots_;
  std::vector<Embryo> embryos_;
  uint32_t next_embryo_ = 1;
  std::vector<Notice> notices_;
  std::string refusal_;
  std::atomic<bool> pending_{false};
};

}  // namespace ub
