// SPDX-License-Identifier: Apache-2.0
//
// One of many processes under one EID that know of each other nothing but EID and ids, for identity.py. It obeys one
// line of standard input after the other and answers each with one line; between orders it sleeps outside the library.
//
//   identity --index I --count N --life L --address HEX [--uid U]
//
// All processes map their segment at the same address and give it the same token: nothing but identity keeps a request
// from another process than the one that it names. Every message and every written or read range says who sends it, to
// whom, and in which life of both. "violation ..." and exit code 3 tell what may never be: a wrong byte, a message
// twice or for another process, a completion with a false name, a request that does not end.
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/e2e/identity.h"

namespace {

constexpr uint32_t kToken = 4711;
constexpr uint32_t kMessage = 4096, kDatagram = 900, kSlot = 4096, kGuard = 4096, kStroke = 64;
constexpr unsigned char kGuardByte = 0x5a, kNothingByte = 0xee;

class Process {
 public:
  void open() {
    must(urma_register_log_func(keep_line) == URMA_SUCCESS, "urma_register_log_func");
    must(urma_init(nullptr) == URMA_SUCCESS, "urma_init");
    int count = 0;
    urma_device_t** devices = urma_get_device_list(&count);
    must(devices != nullptr && count > 0, "urma_get_device_list");
    context_ = made(urma_create_context(devices[0], 0), "urma_create_context");
    urma_free_device_list(devices);
    open_memory();
    urma_jfc_cfg_t jfc = {};
    jfc.depth = 64 * options.count + 1024;
    sends_ = made(urma_create_jfc(context_, &jfc), "urma_create_jfc");
    arrivals_ = made(urma_create_jfc(context_, &jfc), "urma_create_jfc");
    const urma_transport_mode_t modes[] = {URMA_TM_RM, URMA_TM_RC, URMA_TM_UM};
    for (uint32_t i = 0; i < 3; ++i) open_receives(i, modes[i]);
    rm_ = open_jetty(URMA_TM_RM, 0, 16 * options.count + 16);
    um_ = open_jetty(URMA_TM_UM, 0, 2 * options.count + 16);
    urma_jfs_cfg_t jfs = queue_cfg(URMA_TM_RM, 4);
    jfs_ = made(urma_create_jfs(context_, &jfs), "urma_create_jfs");
    for (auto& jetty : rc_) jetty = open_jetty(URMA_TM_RC, 0, 8);
    printf("ok eid=%s uasid=%u rm=%u rm_jfr=%u rc_jfr=%u um_jfr=%u um=%u jfs=%u token=%u tokens=%u,%u,%u,%u,%u\n",
           text_of(context_->eid).c_str(), context_->uasid, id(rm_), jfr_id(0), jfr_id(1), jfr_id(2), id(um_),
           jfs_->jfs_id.id, segment_->seg.token_id, segment_->seg.token_id, local_->seg.token_id,
           receives_[0].segment->seg.token_id, receives_[1].segment->seg.token_id, receives_[2].segment->seg.token_id);
    fflush(stdout);
  }

  // One order, one answer.
  void obey(const std::string& line) {
    using Order = std::string (Process::*)(std::istringstream&);
    static const std::map<std::string, Order> kOrders = {
        {"renew", &Process::renew},   {"peers", &Process::learn_peers},   {"prepare", &Process::prepare},
        {"verify", &Process::verify}, {"exchange", &Process::exchange},   {"datagrams", &Process::datagrams},
        {"stale", &Process::stale},   {"untouched", &Process::untouched}, {"crossed", &Process::crossed},
        {"absent", &Process::absent}, {"probe", &Process::probe},         {"expect", &Process::expect},
        {"own", &Process::own},       {"drop", &Process::drop},           {"many", &Process::many},
    };
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    const auto order = kOrders.find(verb);
    const std::string answer = order != kOrders.end() ? (this->*order->second)(words) : "no such order: " + line;
    tell_log();
    printf("%s\n", answer.c_str());
    fflush(stdout);
  }

 private:
  static uint32_t id(const urma_jetty_t* jetty) { return jetty->jetty_id.id; }
  uint32_t jfr_id(uint32_t which) const { return receives_[which].jfr->jfr_id.id; }

  // ---- objects ----
  void open_memory() {
    const uint64_t bytes = (2 * kSlot + kSlot) * uint64_t{options.count} + kGuard;
    void* at = mmap(reinterpret_cast<void*>(options.address), bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != reinterpret_cast<void*>(options.address)) violation("the common address is not free, choose another one");
    memory_ = static_cast<unsigned char*>(at);
    memset(guard(), kGuardByte, kGuard);
    segment_ = register_memory(memory_, bytes, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
    local_memory_.resize(size_t{kKinds} * kMessage * (options.count + 1));
    local_ = register_memory(local_memory_.data(), local_memory_.size(), URMA_ACCESS_LOCAL_ONLY);
  }

  urma_target_seg_t* register_memory(unsigned char* at, uint64_t bytes, uint32_t access) {
    urma_seg_cfg_t cfg = {};
    cfg.va = reinterpret_cast<uint64_t>(at);
    cfg.len = bytes;
    cfg.token_value.token = kToken;
    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    cfg.flag.bs.access = access & 0x3f;
    return made(urma_register_seg(context_, &cfg), "urma_register_seg");
  }

  urma_jfr_t* open_jfr(urma_transport_mode_t mode, uint32_t depth, uint32_t wanted) {
    urma_jfr_cfg_t cfg = {};
    cfg.id = wanted;
    cfg.depth = depth;
    cfg.trans_mode = mode;
    cfg.min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER;
    cfg.jfc = arrivals_;
    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    cfg.token_value.token = kToken;
    return made(urma_create_jfr(context_, &cfg), "urma_create_jfr");
  }

  void open_receives(uint32_t which, urma_transport_mode_t mode) {
    Receives& r = receives_[which];
    const uint32_t depth = 8 * options.count + 32;
    r.jfr = open_jfr(mode, depth, 0);
    r.memory.resize(size_t{depth} * kMessage);
    r.segment = register_memory(r.memory.data(), r.memory.size(), URMA_ACCESS_LOCAL_ONLY);
    for (uint32_t i = 0; i < depth; ++i) post_receive(which, i);
  }

  void post_receive(uint32_t which, uint32_t number) {
    Receives& r = receives_[which];
    const auto at = reinterpret_cast<uint64_t>(r.memory.data()) + uint64_t{number} * kMessage;
    must(urma_recv(r.jfr, r.segment, at, kMessage, uint64_t{which} << 32 | number) == URMA_SUCCESS, "urma_recv");
  }

  urma_jfs_cfg_t queue_cfg(urma_transport_mode_t mode, uint32_t depth) {
    urma_jfs_cfg_t cfg = {};
    cfg.depth = depth;
    cfg.trans_mode = mode;
    cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
    cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
    cfg.jfc = sends_;
    return cfg;
  }

  urma_jetty_t* open_jetty(urma_transport_mode_t mode, uint32_t wanted, uint32_t depth) {
    urma_jetty_cfg_t cfg = {};
    cfg.id = wanted;
    cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
    cfg.shared.jfr = receives_[mode == URMA_TM_RM ? 0 : mode == URMA_TM_RC ? 1 : 2].jfr;
    cfg.jfs_cfg = queue_cfg(mode, depth);
    return made(urma_create_jetty(context_, &cfg), "urma_create_jetty");
  }

  unsigned char* guard() { return memory_ + uint64_t{3} * kSlot * options.count; }
  static uint64_t slot(uint32_t of, Kind kind) {  // offset; of WRITEs by who writes, of READs by who reads
    return (uint64_t{3} * of + (kind == kWriteRm ? 0 : kind == kWriteRc ? 1 : 2)) * kSlot;
  }
  unsigned char* local(uint32_t peer, Kind kind) { return local_memory_.data() + (peer * kKinds + kind) * kMessage; }

  // ---- objects beside those of the traffic ----

  // own KIND WANTED
  std::string own(std::istringstream& words) {
    std::string kind;
    uint32_t wanted = 0, got = 0;
    words >> kind >> wanted;
    if (kind == "jetty") {
      got = id(own_jettys_[++handles_] = open_jetty(URMA_TM_RM, wanted, 4));
    } else if (kind == "jfr") {
      got = (own_jfrs_[++handles_] = open_jfr(URMA_TM_RM, 4, wanted))->jfr_id.id;
    } else if (kind == "group") {
      urma_jetty_grp_cfg_t cfg = {};
      snprintf(cfg.name, sizeof cfg.name, "group %u", handles_);
      cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
      cfg.token_value.token = kToken;
      cfg.id = wanted;
      own_groups_[++handles_] = made(urma_create_jetty_grp(context_, &cfg), "urma_create_jetty_grp");
      got = own_groups_[handles_]->jetty_grp_id.id;
    } else {
      own_tokens_[++handles_] = made(urma_alloc_token_id(context_), "urma_alloc_token_id");
      got = own_tokens_[handles_]->token_id;
    }
    return "ok handle=" + std::to_string(handles_) + " id=" + std::to_string(got);
  }

  // drop HANDLE
  std::string drop(std::istringstream& words) {
    uint32_t handle = 0;
    words >> handle;
    if (auto at = own_jettys_.find(handle); at != own_jettys_.end()) {
      must(urma_delete_jetty(at->second) == URMA_SUCCESS, "urma_delete_jetty");
      own_jettys_.erase(at);
    } else if (auto jfr = own_jfrs_.find(handle); jfr != own_jfrs_.end()) {
      must(urma_delete_jfr(jfr->second) == URMA_SUCCESS, "urma_delete_jfr");
      own_jfrs_.erase(jfr);
    } else if (auto group = own_groups_.find(handle); group != own_groups_.end()) {
      must(urma_delete_jetty_grp(group->second) == URMA_SUCCESS, "urma_delete_jetty_grp");
      own_groups_.erase(group);
    } else {
      must(urma_free_token_id(own_tokens_.at(handle)) == URMA_SUCCESS, "urma_free_token_id");
      own_tokens_.erase(handle);
    }
    return "ok";
  }

  // many COUNT: jettys. Half of an earlier lot goes first, so that blocks have holes.
  std::string many(std::istringstream& words) {
    uint32_t count = 0;
    words >> count;
    for (size_t i = 0; i < many_.size(); ++i) {
      if (i % 2 == 0)
        must(urma_delete_jetty(many_[i]) == URMA_SUCCESS, "urma_delete_jetty");
      else
        many_[i / 2] = many_[i];
    }
    many_.resize(many_.size() / 2);
    while (many_.size() < count) many_.push_back(open_jetty(URMA_TM_RM, 0, 1));
    std::string answer = "ok ids=";
    for (const urma_jetty_t* jetty : many_) answer += std::to_string(id(jetty)) + ",";
    answer.back() = ' ';
    return answer;
  }

  // ---- imports ----
  urma_target_jetty_t* import_jetty(const urma_eid_t& eid, uint32_t number, urma_transport_mode_t mode) {
    urma_rjetty_t jetty = {};
    jetty.jetty_id.eid = eid;
    jetty.jetty_id.id = number;
    jetty.trans_mode = mode;
    jetty.type = URMA_JETTY;
    jetty.tp_type = mode == URMA_TM_UM ? URMA_UTP : URMA_RTP;
    jetty.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    urma_token_t token = {kToken};
    errno = 0;
    return urma_import_jetty(context_, &jetty, &token);
  }

  urma_target_jetty_t* import_jfr(const urma_eid_t& eid, uint32_t number) {
    urma_rjfr_t jfr = {};
    jfr.jfr_id.eid = eid;
    jfr.jfr_id.id = number;
    jfr.trans_mode = URMA_TM_RM;
    jfr.tp_type = URMA_RTP;
    jfr.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    urma_token_t token = {kToken};
    errno = 0;
    return urma_import_jfr(context_, &jfr, &token);
  }

  urma_target_seg_t* import_segment(const Peer& peer, uint32_t uasid) {
    urma_seg_t seg = {};
    seg.ubva.eid = peer.eid;
    seg.ubva.uasid = uasid;
    seg.ubva.va = options.address;
    seg.len = segment_->seg.len;
    seg.attr = segment_->seg.attr;
    seg.token_id = peer.token_id;
    urma_token_t token = {kToken};
    urma_import_seg_flag_t flag = {};
    flag.bs.access = (URMA_ACCESS_READ | URMA_ACCESS_WRITE) & 0x3f;
    return made(urma_import_seg(context_, &seg, &token, 0, flag), "urma_import_seg");
  }

  void forget(uint32_t index) {
    Peer& peer = peers_[index];
    if (rc_[index]->remote_jetty != nullptr) must(urma_unbind_jetty(rc_[index]) == URMA_SUCCESS, "urma_unbind_jetty");
    for (urma_target_jetty_t* target : {peer.rm, peer.named, peer.um, peer.rc}) {
      if (target != nullptr) must(urma_unimport_jetty(target) == URMA_SUCCESS, "urma_unimport_jetty");
    }
    if (peer.jfr != nullptr) must(urma_unimport_jfr(peer.jfr) == URMA_SUCCESS, "urma_unimport_jfr");
    if (peer.segment != nullptr) must(urma_unimport_seg(peer.segment) == URMA_SUCCESS, "urma_unimport_seg");
    peer = Peer{};
  }

  // renew INDEX...: nothing is known of these any more, and the RC jettys for them are new ones.
  std::string renew(std::istringstream& words) {
    std::string answer = "ok rc=";
    for (uint32_t index; words >> index;) {
      forget(index);
      must(urma_delete_jetty(rc_[index]) == URMA_SUCCESS, "urma_delete_jetty");
      rc_[index] = open_jetty(URMA_TM_RC, 0, 8);
      answer += std::to_string(index) + ":" + std::to_string(id(rc_[index])) + ",";
    }
    answer.back() = ' ';
    return answer;
  }

  // peers [INDEX LIFE EID RM JFR NAMED UM RC TOKEN]...
  std::string learn_peers(std::istringstream& words) {
    uint32_t index, rm, jfr, named, um, rc;
    std::string eid;
    while (words >> index) {
      Peer& peer = peers_[index];
      words >> peer.life >> eid >> rm >> jfr >> named >> um >> rc >> peer.token_id;
      peer.eid = eid_of(eid);
      Ids& ids = known_[{index, peer.life}];
      ids.eid = peer.eid;
      ids.rm = rm;
      ids.um = um;
      ids.rc.insert(rc);
      const double begin = now();
      const char* what = (peer.rm = import_jetty(peer.eid, rm, URMA_TM_RM)) == nullptr         ? "its jetty"
                         : (peer.jfr = import_jfr(peer.eid, jfr)) == nullptr                   ? "its JFR"
                         : (peer.named = import_jetty(peer.eid, named, URMA_TM_RM)) == nullptr ? "the id it asked for"
                         : (peer.um = import_jetty(peer.eid, um, URMA_TM_UM)) == nullptr       ? "its UM jetty"
                         : (peer.rc = import_jetty(peer.eid, rc, URMA_TM_RC)) == nullptr       ? "its RC jetty"
                                                                                               : nullptr;
      if (what != nullptr) {
        const int error = errno;
        return "cannot import of process " + std::to_string(index) + " " + what + ", errno " + std::to_string(error) +
               ", after " + std::to_string(now() - begin) + " s";
      }
      must(urma_bind_jetty(rc_[index], peer.rc) == URMA_SUCCESS, "urma_bind_jetty");
      peer.segment = import_segment(peer, 0);
      peer.known = true;
    }
    return "ok";
  }

  // absent KIND EID ID: nobody has it.
  std::string absent(std::istringstream& words) {
    std::string kind, eid;
    uint32_t number = 0;
    words >> kind >> eid >> number;
    const double begin = now();
    urma_target_jetty_t* target =
        kind == "jfr" ? import_jfr(eid_of(eid), number) : import_jetty(eid_of(eid), number, URMA_TM_RM);
    const int error = errno;
    std::string answer = target != nullptr ? "imported" : "refused";
    answer += " errno=" + std::to_string(error) + " seconds=" + std::to_string(now() - begin);
    if (target != nullptr && kind == "jfr") must(urma_unimport_jfr(target) == URMA_SUCCESS, "urma_unimport_jfr");
    if (target != nullptr && kind != "jfr") must(urma_unimport_jetty(target) == URMA_SUCCESS, "urma_unimport_jetty");
    return answer;
  }

  // ---- requests ----
  Head head_to(uint32_t to, uint32_t to_life, Kind kind, uint32_t bytes) const {
    return {options.index, options.life, to, to_life, round_, kind, bytes};
  }

  uint32_t length_of(Kind kind) {
    if (kind >= kWriteRm) return kSlot;
    const uint32_t most = kind == kUm ? kDatagram : kMessage;
    return static_cast<uint32_t>(sizeof(Head) + dice_() % (most - sizeof(Head) + 1));
  }

  urma_status_t post(uint32_t index, Kind kind, uint32_t bytes, urma_target_jetty_t* to, urma_sge_t far,
                     uint64_t user_ctx) {
    urma_sge_t here = {};
    here.addr = reinterpret_cast<uint64_t>(local(index, kind));
    here.len = bytes;
    here.tseg = local_;
    far.len = bytes;
    urma_jfs_wr_t wr = {}, *bad = nullptr;
    wr.flag.bs.complete_enable = 1;
    wr.tjetty = to;
    wr.user_ctx = user_ctx;
    if (kind == kWriteRm || kind == kWriteRc) {
      wr.opcode = URMA_OPC_WRITE;
      wr.rw.src = {&here, 1};
      wr.rw.dst = {&far, 1};
    } else if (kind == kReadRm || kind == kReadRc) {
      wr.opcode = URMA_OPC_READ;
      wr.rw.src = {&far, 1};
      wr.rw.dst = {&here, 1};
    } else {
      wr.opcode = URMA_OPC_SEND;
      wr.send.src = {&here, 1};
    }
    const bool rc = kind == kRc || kind == kWriteRc || kind == kReadRc;
    return urma_post_jetty_send_wr(kind == kUm ? um_ : rc ? rc_[index] : rm_, &wr, &bad);
  }

  // One of the requests of a round.
  void begin(uint32_t index, Kind kind) {
    Peer& peer = peers_[index];
    must(peer.known, "knowing the peer");
    urma_target_jetty_t* const targets[kKinds] = {peer.rm, peer.jfr, peer.named, peer.rc, peer.um,
                                                  nullptr, peer.rm,  peer.rc,    peer.rm, peer.rc};
    const uint32_t bytes = length_of(kind);
    if (kind == kReadRm || kind == kReadRc) {
      memset(local(index, kind), kNothingByte, bytes);
    } else {
      write_pattern(head_to(index, peer.life, kind, bytes), local(index, kind));
    }
    urma_sge_t far = {};
    far.tseg = peer.segment;
    far.addr = options.address + slot(options.index, kind);
    const urma_status_t status = post(index, kind, bytes, targets[kind], far, uint64_t{index} << 32 | kind);
    if (status != URMA_SUCCESS) {
      violation("posting a %s to process %u fails with %d", kKindNames[kind], index, status);
    }
    must(under_way_.insert({index, kind}).second, "one at a time");
  }

  // All that is under way ends. What did not end well: " INDEX:KIND:STATUS"...
  std::string finish() {
    std::string bad;
    for (const double end = now() + kPatience; !under_way_.empty();) {
      urma_cr_t record;
      const int n = urma_poll_jfc(sends_, 1, &record);
      must(n >= 0, "urma_poll_jfc");
      take_arrivals();
      if (n == 0 && now() > end) {
        violation("a %s to process %u has no completion after %.0f s", kKindNames[under_way_.begin()->second],
                  under_way_.begin()->first, kPatience);
      }
      if (n == 0) rest();
      if (n == 0 || record.status == URMA_CR_WR_FLUSH_ERR_DONE) continue;
      const auto index = static_cast<uint32_t>(record.user_ctx >> 32);
      const auto kind = static_cast<Kind>(record.user_ctx);
      must(under_way_.erase({index, kind}) == 1, "a completion that belongs to a request");
      if (record.status != URMA_CR_SUCCESS) {
        bad += " " + std::to_string(index) + ":" + std::to_string(kind) + ":" + std::to_string(record.status);
      } else if (kind == kReadRm || kind == kReadRc) {
        const Head wanted{index, peers_[index].life, options.index, options.life, round_, kReadRm, kSlot};
        check_pattern(wanted, local(index, kind), "what was read");
      }
    }
    return bad;
  }

  // The status of the only request that is under way.
  int end_of_one() {
    urma_cr_t record;
    for (const double end = now() + kPatience; now() < end; rest()) {
      const int n = urma_poll_jfc(sends_, 1, &record);
      must(n >= 0, "urma_poll_jfc");
      if (n == 1) return record.status;
    }
    violation("a request that names two processes has no completion after %.0f s", kPatience);
  }

  static void rest() {
    timespec t{0, 100000};
    nanosleep(&t, nullptr);
  }

  // prepare ROUND INDEX...: what others will read, and room for what they will write.
  std::string prepare(std::istringstream& words) {
    words >> round_;
    for (uint32_t index; words >> index;) {
      memset(memory_ + slot(index, kWriteRm), 0, kSlot);
      memset(memory_ + slot(index, kWriteRc), 0, kSlot);
      write_pattern(head_to(index, peers_[index].life, kReadRm, kSlot), memory_ + slot(index, kReadRm));
    }
    return "ok";
  }

  // exchange INDEX...: everything with all of these at once.
  std::string exchange(std::istringstream& words) {
    for (uint32_t index; words >> index;) {
      for (Kind kind : {kToJetty, kWriteRm, kRc, kReadRm, kToJfr, kUm, kWriteRc, kToNamed, kReadRc}) begin(index, kind);
    }
    return "ok" + finish();
  }

  // datagrams INDEX...: once more, for they may be lost.
  std::string datagrams(std::istringstream& words) {
    for (uint32_t index; words >> index;) begin(index, kUm);
    return "ok" + finish();
  }

  // stale INDEX...: to targets of processes that are dead. The statuses: all of them must be errors.
  std::string stale(std::istringstream& words) {
    long posted = 0;
    for (uint32_t index; words >> index;) {
      for (Kind kind : {kToJetty, kToJfr, kToNamed, kWriteRm, kReadRm}) begin(index, kind), ++posted;
    }
    const std::string bad = finish();
    const bool all = std::count(bad.begin(), bad.end(), ' ') == posted;
    return (all ? "ok" : "requests to dead processes succeeded; the others ended with INDEX:KIND:STATUS") + bad;
  }

  // untouched: nobody wrote anything here yet.
  std::string untouched(std::istringstream&) {
    take_arrivals();
    for (uint32_t of = 0; of < options.count; ++of) {
      for (Kind kind : {kWriteRm, kWriteRc}) {
        const unsigned char* at = memory_ + slot(of, kind);
        Head head;
        memcpy(&head, at, sizeof head);
        if (std::any_of(at, at + kSlot, [](unsigned char byte) { return byte != 0; })) {
          violation("somebody wrote to a process that was not imported: %s", name_of(head).c_str());
        }
      }
    }
    check_guard();
    return "ok";
  }

  void check_guard() {
    for (uint32_t i = 0; i < kGuard; ++i) {
      if (guard()[i] != kGuardByte) violation("a request for another process wrote here, byte %u of the guard", i);
    }
  }

  // crossed B C UASID: target of B, segment of C, in three ways. Each: WRITE and READ, "refused" or a status.
  std::string crossed(std::istringstream& words) {
    uint32_t b = 0, c = 0, uasid = 0;
    words >> b >> c >> uasid;
    urma_target_seg_t* named = import_segment(peers_[c], uasid);
    urma_user_tseg_t bare = {};
    bare.attr = segment_->seg.attr;
    bare.token_id = peers_[c].token_id;
    bare.token_value.token = kToken;
    std::string answer = "ok";
    for (int way = 0; way < 3; ++way) {
      for (Kind kind : {kWriteRm, kReadRm}) {
        urma_sge_t far = {};
        far.tseg = way == 0 ? named : way == 1 ? peers_[c].segment : nullptr;
        far.user_tseg = way == 2 ? &bare : nullptr;
        far.addr = reinterpret_cast<uint64_t>(guard());
        memset(local(b, kind), kNothingByte, kStroke);
        const urma_status_t status = post(b, kind, kStroke, peers_[b].rm, far, 0);
        const char* const ways[] = {"uasid", "zero", "bare"};
        answer += std::string(" ") + ways[way] + (kind == kWriteRm ? "-write=" : "-read=");
        answer += status == URMA_SUCCESS ? std::to_string(end_of_one()) : "refused";
      }
    }
    must(urma_unimport_seg(named) == URMA_SUCCESS, "urma_unimport_seg");
    return answer;
  }

  // probe TO LIFE EID ID ROUND: one message to whoever holds that id.
  std::string probe(std::istringstream& words) {
    uint32_t to = 0, life = 0, number = 0, round = 0;
    std::string eid;
    words >> to >> life >> eid >> number >> round;
    const double begin_at = now();
    urma_target_jetty_t* target = import_jetty(eid_of(eid), number, URMA_TM_RM);
    if (target == nullptr) {
      return "unreached errno=" + std::to_string(errno) + " seconds=" + std::to_string(now() - begin_at);
    }
    Head head = head_to(to, life, kProbe, kStroke);
    head.round = round;
    write_pattern(head, local(to, kProbe));
    must(post(to, kProbe, kStroke, target, {}, uint64_t{to} << 32 | kProbe) == URMA_SUCCESS, "posting");
    under_way_.insert({to, kProbe});
    const std::string bad = finish();
    must(urma_unimport_jetty(target) == URMA_SUCCESS, "urma_unimport_jetty");
    return bad.empty() ? "ok" : "ended with INDEX:KIND:STATUS" + bad;
  }

  // ---- what arrives ----
  void take_arrivals() {
    urma_cr_t records[32];
    int n;
    while ((n = urma_poll_jfc(arrivals_, 32, records)) > 0) {
      for (int i = 0; i < n; ++i) take(records[i]);
    }
    must(n == 0, "urma_poll_jfc");
  }

  void take(const urma_cr_t& record) {
    if (record.status != URMA_CR_SUCCESS) violation("a receive ends with status %d", record.status);
    const auto which = static_cast<uint32_t>(record.user_ctx >> 32), number = static_cast<uint32_t>(record.user_ctx);
    const unsigned char* at = receives_[which].memory.data() + size_t{number} * kMessage;
    Head head;
    memcpy(&head, at, sizeof head);
    const std::string name = name_of(head);
    if (head.to != options.index || head.to_life != options.life) violation("here arrived %s", name.c_str());
    if (head.bytes != record.completion_len || head.kind > kProbe || head.bytes < sizeof head) {
      violation("%u bytes arrived, they claim to be %s", record.completion_len, name.c_str());
    }
    check_pattern(head, at, "a message");
    check_names(record, head, name);
    Arrived& arrived = arrived_[{head.from, head.from_life, head.round, head.kind}];
    arrived.local_id = record.local_id;
    if (++arrived.count > 1 && head.kind != kUm) violation("twice arrived %s", name.c_str());
    post_receive(which, number);
  }

  // The completion names the sender and the addressed object.
  void check_names(const urma_cr_t& record, const Head& head, const std::string& name) {
    const auto from = known_.find({head.from, head.from_life});
    if (from == known_.end()) violation("nobody told of the sender of %s", name.c_str());
    const Ids& ids = from->second;
    const uint32_t sender = record.remote_id.id;
    const bool right = head.kind == kRc ? ids.rc.count(sender) == 1 : sender == (head.kind == kUm ? ids.um : ids.rm);
    if (!right || memcmp(&record.remote_id.eid, &ids.eid, sizeof ids.eid) != 0) {
      violation("the completion says that %s comes from EID %s id %u, but the sender has EID %s and ids %u, %u",
                name.c_str(), text_of(record.remote_id.eid).c_str(), sender, text_of(ids.eid).c_str(), ids.rm, ids.um);
    }
    if (head.kind == kToJetty && record.local_id != id(rm_)) {
      violation("the completion says that %s was for id %u, but it was for %u", name.c_str(), record.local_id, id(rm_));
    }
  }

  // verify INDEX...: all that these sent in this round is here. Of datagrams: "um=INDEX," for each that is not.
  std::string verify(std::istringstream& words) {
    std::vector<uint32_t> senders;
    for (uint32_t index; words >> index;) senders.push_back(index);
    const double end = now() + kPatience;
    std::string missing = "um=";
    take_arrivals();
    for (uint32_t index : senders) {
      for (Kind kind : {kToJetty, kToJfr, kToNamed, kRc, kUm}) {
        const auto key = std::make_tuple(index, peers_[index].life, round_, uint32_t{kind});
        take_arrivals();
        if (arrived_.count(key) == 1) continue;
        if (kind == kUm) {
          missing += std::to_string(index) + ",";
          continue;
        }
        while (arrived_.count(key) == 0) {
          if (now() > end)
            violation("no %s of process %u arrived, though it was reported done", kKindNames[kind], index);
          take_arrivals();
          rest();
        }
      }
      for (Kind kind : {kWriteRm, kWriteRc}) {
        const Head wanted{index, peers_[index].life, options.index, options.life, round_, kind, kSlot};
        check_pattern(wanted, memory_ + slot(index, kind), "what was written");
      }
    }
    check_guard();
    return "ok " + missing;
  }

  // expect FROM ROUND: a probe, and for which of our ids it was.
  std::string expect(std::istringstream& words) {
    uint32_t from = 0, round = 0;
    words >> from >> round;
    const auto key = std::make_tuple(from, peers_[from].life, round, uint32_t{kProbe});
    for (const double end = now() + kPatience; arrived_.count(key) == 0; rest()) {
      if (now() > end) return "nothing arrived";
      take_arrivals();
    }
    return "ok id=" + std::to_string(arrived_[key].local_id);
  }

  urma_context_t* context_ = nullptr;
  urma_jfc_t *sends_ = nullptr, *arrivals_ = nullptr;
  std::array<Receives, 3> receives_;  // RM, RC, UM
  urma_jetty_t *rm_ = nullptr, *um_ = nullptr;
  urma_jfs_t* jfs_ = nullptr;
  std::vector<urma_jetty_t*> rc_ = std::vector<urma_jetty_t*>(options.count);
  unsigned char* memory_ = nullptr;
  std::vector<unsigned char> local_memory_;
  urma_target_seg_t *segment_ = nullptr, *local_ = nullptr;
  std::vector<Peer> peers_ = std::vector<Peer>(options.count);
  std::map<std::pair<uint32_t, uint32_t>, Ids> known_;  // by index and life
  std::set<std::pair<uint32_t, Kind>> under_way_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, Arrived> arrived_;  // sender, its life, round, kind
  uint32_t round_ = 0, handles_ = 0;
  std::map<uint32_t, urma_jetty_t*> own_jettys_;
  std::map<uint32_t, urma_jfr_t*> own_jfrs_;
  std::map<uint32_t, urma_jetty_grp_t*> own_groups_;
  std::map<uint32_t, urma_token_id_t*> own_tokens_;
  std::vector<urma_jetty_t*> many_;
  std::mt19937 dice_{options.index * 1000 + options.life};
};

// For good; what belongs to root is left behind.
void become(uid_t user) {
  must(setgroups(0, nullptr) == 0 && setgid(user) == 0 && setuid(user) == 0, "changing the user");
  prctl(PR_SET_DUMPABLE, 1);
}

}  // namespace

int main(int argc, char** argv) {
  uid_t user = getuid();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--index") options.index = static_cast<uint32_t>(std::stoul(value));
    if (name == "--count") options.count = static_cast<uint32_t>(std::stoul(value));
    if (name == "--life") options.life = static_cast<uint32_t>(std::stoul(value));
    if (name == "--address") options.address = std::stoull(value, nullptr, 16);
    if (name == "--uid") user = static_cast<uid_t>(std::stoul(value));
  }
  if (argc % 2 == 0 || options.index >= options.count || options.address == 0) {
    fprintf(stderr, "usage: identity --index I --count N --life L --address HEX [--uid U]\n");
    return 2;
  }
  if (user != getuid()) become(user);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Process process;
  process.open();
  for (std::string line; std::getline(std::cin, line);) process.obey(line);
  return 0;
}
