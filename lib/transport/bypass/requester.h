// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of remote memory over frames (TP bypass; UB Base Specification Rev 2.0, 8.3 and B.2.6), on links
// that carry it: such a link loses a frame only if it finds no room or the link is dead, doubles none, keeps their
// order, delivers within kFrameLife or never, and forgets what is under way when a process at one of its ends ends.
//
// A load without an answer goes again under another TASSN. A store never does: nobody could tell whether the first one
// still comes. What is unanswered at the timeout breaks its handle, and so does the death of the channel.
//
// Answers come between two calls of the Core; take() tells of them. The memory that a load goes to must stay until then
// or until the handle is closed.
//
// Thread: the owner of the Core.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/transport/bypass/asked.h"
#include "lib/transport/bypass/calls.h"
#include "lib/transport/looking/call_log.h"
#include "lib/transport/setup/handshake.h"

namespace ub::bypass {

template <class Host>
class Requester {
 public:
  Requester(CoreState& s, AskedState& asked, Host& host) : s_(s), asked_(asked), host_(host) {}

  // kBusy: the channel is being set up; call again. kInvalid: no such target, or its link does not carry TP bypass at
  // both ends. kNoMemory: all handles or channels are used.
  Status open(Instant now, const OpenConfig& config, uint32_t* handle) {
    LoggedCall call(s_.call_log, Call::kOpenHandle, now, config);
    return call.gives(open_handle(now, config, handle), *handle);
  }

  // What is unanswered stays so, and nothing is written for it any more.
  void close(Instant now, uint32_t handle) {
    LoggedCall call(s_.call_log, Call::kCloseHandle, now, handle);
    s_.now = now;
    break_handle(s_, asked_, handle);
    asked_.handles[handle].in_use = false;
    asked_.handles.free(handle);
  }

  // The largest block, in bytes.
  uint32_t most_bytes(uint32_t handle) const { return std::min<uint32_t>(asked_.handles[handle].mtu, 64u << 7); }

  // The calls below return kGone if the handle is broken, kInvalid if no packet has room for the block, and kBusy if
  // there is no room now: in the port, among the TASSNs, or because 64 calls were not taken.
  Status load(Instant now, uint32_t handle, const Block& block, std::byte* to, uint32_t* ticket) {
    LoggedCall call(s_.call_log, Call::kLoad, now, handle, block);
    Asked* record;
    const Status status = begin(now, handle, block, ticket, &record);
    if (status != Status::kOk) return call.gives(status);
    record->to = to;
    if (!send_load(handle, *record)) return call.gives(Status::kBusy);
    called(handle, *ticket, Stage::kLoad);
    return call.gives(Status::kOk, *ticket);
  }

  Status store(Instant now, uint32_t handle, const StoreRequest& request, uint32_t* ticket) {
    LoggedCall call(s_.call_log, Call::kStore, now, handle, request, request.enabled());
    Asked* record;
    const Status status = begin(now, handle, request.block, ticket, &record);
    if (status != Status::kOk) return call.gives(status);
    if (!send_store(handle, *record, request)) return call.gives(Status::kBusy);
    called(handle, *ticket, Stage::kStore);
    return call.gives(Status::kOk, *ticket);
  }

  // A hint, which has no answer and no ticket.
  Status prefetch(Instant now, uint32_t handle, const Block& block) {
    LoggedCall call(s_.call_log, Call::kPrefetch, now, handle, block);
    s_.now = now;
    if (!usable(handle)) return Status::kGone;
    wire::BypassPacket p = packet(handle, wire::TaOpcode::kPrefetch, block);
    p.tv = false;                        // it has no room for a token, and does nothing that would need one
    p.tassn = Tassn(asked_.next_tassn);  // nobody answers it, so it uses none up
    return send(asked_.handles[handle].link, p, nullptr) ? Status::kOk : Status::kBusy;
  }

  // What has become of a call. Any answer but kPending frees the ticket.
  Outcome take(uint32_t handle, uint32_t ticket) {
    Asked& record = asked_.record(handle, ticket);
    if (record.stage != Stage::kDone) return Outcome::kPending;
    LoggedCall call(s_.call_log, Call::kTake, handle, ticket);
    record.stage = Stage::kFree;
    asked_.handles[handle].free |= uint64_t{1} << ticket;
    return call.gives(record.outcome);
  }
  bool is_broken(uint32_t handle) const { return asked_.handles[handle].broken; }

  // ---- for the engine ----
  void on_answer(uint32_t link, const wire::BypassPacket& p) {
    uint32_t handle;
    Asked* record = find_asked(asked_, static_cast<uint16_t>(p.tassn.value()), &handle);
    if (record == nullptr || !is_from_target(link, p, asked_.handles[handle]) || !fits(p, *record))
      return s_.drop(Counter::kRxDropNoBypass);
    asked_.by_tassn[record->tassn] = 0;
    if (record->tries == 0 && record->stage == Stage::kLoad)
      measure(asked_.handles[handle], now_us() - record->sent_us);
    if (p.status != wire::AtahCompact::kOk || p.poison) return finish(asked_, handle, *record, Outcome::kRefused);
    if (record->stage == Stage::kLoad) std::memcpy(record->to, p.payload, p.payload_len);
    finish(asked_, handle, *record, Outcome::kOk);
  }

  void on_timer(uint32_t handle) {
    Handle& h = asked_.handles[handle];
    h.looks_at = Instant::never();
    if (h.under_way == 0 || !usable(handle)) return;
    for (uint32_t i = 0; i < kRecordsPerHandle; ++i) {
      Asked& record = asked_.record(handle, i);
      if (!record.waits()) continue;
      if (since(record.called_us) >= h.timeout) return break_handle(s_, asked_, handle);
      if (record.stage == Stage::kLoad && since(record.sent_us) >= patience(h, record.tries)) repeat(handle, record);
    }
    plan(handle);
  }

  template <class Which>
  void break_those(Which which) {
    for (uint32_t i = 1; i <= asked_.handles.high_water(); ++i)
      if (asked_.handles[i].in_use && which(asked_.handles[i])) break_handle(s_, asked_, i);
  }
  void close_those(Owner owner) {
    for (uint32_t i = 1; i <= asked_.handles.high_water(); ++i)
      if (asked_.handles[i].in_use && asked_.handles[i].owner == owner) close(s_.now, i);
  }

 private:
  Status open_handle(Instant now, const OpenConfig& config, uint32_t* handle) {
    s_.now = now;
    if (config.target == 0 || config.target > s_.targets.high_water() || !s_.targets[config.target].in_use)
      return Status::kInvalid;
    const Target& target = s_.targets[config.target];
    const Peer& peer = s_.peers[target.peer];
    const uint32_t channel = setup::channel_to(s_, target.peer, peer.compact_mtu != 0 ? kCompactLane : kSmallLane);
    if (channel == 0) return Status::kNoMemory;
    const tp::Channel& ch = s_.channels[channel];
    if (!ch.is_up()) return Status::kBusy;
    if (!carries_bypass(ch)) return Status::kInvalid;
    if (!has_no_past(s_, ch)) return Status::kBusy;
    *handle = asked_.handles.alloc();
    if (*handle == 0) return Status::kNoMemory;
    asked_.handles[*handle] = {
        .channel = channel,
        .tpn = ch.tpn,
        .link = ch.link,
        .mtu = ch.mtu,
        .route = {wire::stand_in_mac(ch.remote_endpoint), wire::stand_in_mac(ch.local_endpoint), cna_of(ch.peer_tpn),
                  cna_of(ch.tpn), 0},
        .token_id = config.token_id,
        .token = config.token.value,
        .has_token = config.token.required,
        .in_use = true,
        .broken = false,
        .owner = config.owner,
        .timeout = config.timeout,
        .round_trip = {},
        .looks_at = Instant::never(),
        .free = ~uint64_t{0},
        .under_way = 0,
    };
    for (uint32_t i = 0; i < kRecordsPerHandle; ++i) asked_.record(*handle, i) = {};
    return Status::kOk;
  }

  uint32_t now_us() const { return static_cast<uint32_t>(s_.now.ns / 1000); }
  Duration since(uint32_t us) const { return microseconds(now_us() - us); }

  // Breaks the handle if its channel is gone.
  bool usable(uint32_t handle) {
    Handle& h = asked_.handles[handle];
    const tp::Channel& ch = s_.channels[h.channel];
    if (!h.broken && (ch.tpn != h.tpn || !ch.is_up())) break_handle(s_, asked_, handle);
    return !h.broken;
  }

  Status begin(Instant now, uint32_t handle, const Block& block, uint32_t* ticket, Asked** record) {
    s_.now = now;
    if (!usable(handle)) return Status::kGone;
    Handle& h = asked_.handles[handle];
    if (block.address % 64 != 0 || block.length_code > 7 || block.bytes() > h.mtu)
      return Status::kInvalid;
    if (h.free == 0) return Status::kBusy;
    *ticket = static_cast<uint32_t>(std::countr_zero(h.free));
    *record = &asked_.record(handle, *ticket);
    **record = {};
    (*record)->address = block.address;
    (*record)->length_code = block.length_code;
    (*record)->called_us = now_us();
    return Status::kOk;
  }

  void called(uint32_t handle, uint32_t ticket, Stage stage) {
    Handle& h = asked_.handles[handle];
    asked_.record(handle, ticket).stage = stage;
    h.free &= ~(uint64_t{1} << ticket);
    ++h.under_way;
    look_by(handle, s_.now + (stage == Stage::kLoad ? patience(h, 0) : h.timeout));
  }

  // The timer fires at this time or earlier.
  void look_by(uint32_t handle, Instant at) {
    Handle& h = asked_.handles[handle];
    if (at >= h.looks_at) return;
    h.looks_at = at;
    s_.timers.arm(asked_.timers.of(handle - 1), at);
  }

  // Sets the timer for the load or store whose time comes first. A load that found no room when its time came goes a
  // little later.
  void plan(uint32_t handle) {
    constexpr Duration kLeast = microseconds(10);
    const Handle& h = asked_.handles[handle];
    Duration first = h.timeout;
    for (uint32_t i = 0; i < kRecordsPerHandle; ++i) {
      const Asked& record = asked_.record(handle, i);
      if (!record.waits()) continue;
      first = std::min(first, h.timeout - since(record.called_us));
      if (record.stage == Stage::kLoad) first = std::min(first, patience(h, record.tries) - since(record.sent_us));
    }
    look_by(handle, s_.now + std::max(first, kLeast));
  }

  wire::BypassPacket packet(uint32_t handle, wire::TaOpcode opcode, const Block& block) const {
    const Handle& h = asked_.handles[handle];
    wire::BypassPacket p;
    p.route = h.route;
    p.opcode = opcode;
    p.tv = h.has_token;
    p.token_value = h.token;
    p.ma = {block.address, 0, false, block.length_code, h.token_id};
    return p;
  }

  bool send(uint32_t link, const wire::BypassPacket& p, const std::byte* payload) {
    const size_t headers = wire::bypass_header_size(p);
    const size_t bytes = headers + wire::bypass_payload_size(p);
    std::byte* frame = host_.tx_begin(link, bytes);
    if (frame == nullptr) return false;
    wire::write_bypass_headers(p, frame);
    if (payload != nullptr) std::memcpy(frame + headers, payload, bytes - headers);
    s_.count(Counter::kTxPackets);
    s_.count(Counter::kTxBytes, bytes);
    host_.tx_commit(link, frame, bytes);
    return true;
  }

  // Sends what a record asks for, under a TASSN of its own. False: there is no room, and nothing has changed.
  bool send_as(uint32_t handle, Asked& record, wire::BypassPacket& p, const std::byte* payload) {
    uint16_t tassn;
    if (!find_tassn(asked_, s_.now, &tassn)) return false;
    p.tassn = Tassn(tassn);
    if (!send(asked_.handles[handle].link, p, payload)) return false;
    record.tassn = tassn;
    record.sent_us = now_us();
    asked_.by_tassn[tassn] = static_cast<uint16_t>(&record - asked_.records + 1);
    return true;
  }

  bool send_load(uint32_t handle, Asked& record) {
    wire::BypassPacket p = packet(handle, wire::TaOpcode::kRead, {record.address, record.length_code});
    return send_as(handle, record, p, nullptr);
  }

  bool send_store(uint32_t handle, Asked& record, const StoreRequest& request) {
    using wire::TaOpcode;
    std::array<std::byte, wire::BeetahView::kMaxEnables / 8> bits;
    wire::BypassPacket p = packet(handle, request.write_back ? TaOpcode::kWriteback : TaOpcode::kWrite, request.block);
    if (request.enables != nullptr) {
      p.opcode = request.write_back ? TaOpcode::kWritebackByteEnable : TaOpcode::kWriteByteEnable;
      p.has_be = true;
      p.be = {bits.data(), wire::BeetahView::enables_of(request.block.bytes())};
      for (uint32_t i = 0; i < p.be.enables / 64; ++i)
        wire::BeetahView::store_word(bits.data(), p.be.enables, i, request.enables[i]);
    }
    return send_as(handle, record, p, request.from);
  }

  void repeat(uint32_t handle, Asked& record) {
    const uint16_t former = record.tassn;
    if (!send_load(handle, record)) return;  // at the next turn of the timer
    rest_tassn(asked_, s_.now, former);
    ++record.tries;
  }

  bool is_from_target(uint32_t link, const wire::BypassPacket& p, const Handle& h) const {
    return link == h.link && p.route.scna == h.route.dcna && p.route.dcna == h.route.scna;
  }
  static bool fits(const wire::BypassPacket& p, const Asked& record) {
    if (p.opcode == wire::TaOpcode::kReadResponse && p.status == wire::AtahCompact::kOk)
      return record.stage == Stage::kLoad && p.payload_len == 64u << record.length_code;
    return record.stage == Stage::kStore || p.status != wire::AtahCompact::kOk;
  }

  static void measure(Handle& h, uint32_t us) {
    const Duration took = microseconds(us);
    h.round_trip = h.round_trip == Duration{} ? took : h.round_trip + (took - h.round_trip) / 8;
  }

  CoreState& s_;
  AskedState& asked_;
  Host& host_;
};

}  // namespace ub::bypass
