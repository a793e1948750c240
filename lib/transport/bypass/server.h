// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of a peer (TP bypass; UB Base Specification Rev 2.0, 8.3 and B.2.6), executed and answered at once.
// Nothing is kept of them: no number, no record, no copy. Token, bounds and permission are checked as for READs and
// WRITEs (9.4).
//
// A block (64 to 8192 bytes, aligned to a line) need not lie in one segment. A load finds zeros where no segment of its
// token id may be read, and is refused if that is everywhere; a store is refused, before any byte is written, unless
// all bytes that it enables may be written. So the lines at the ends of a segment can be used like all others.
//
// On a wire, a load that finds no room for its answer is dropped, as its sender sends it again; the answer to a store
// waits, and a store that finds no place for that does not run.
//
// Thread: the owner of the Core.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/transport/bypass/owed_answers.h"
#include "lib/transport/core_state.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/wire/bypass_packet.h"

namespace ub::bypass {

template <class Host>
class Server {
 public:
  Server(CoreState& s, Host& host, OwedAnswers& owed) : s_(s), host_(host), owed_(owed) {}

  void on_request(uint32_t link, const wire::BypassPacket& p, bool by_wire) {
    switch (p.opcode) {
      case wire::TaOpcode::kRead:
        return load({link, p.tassn, &p.route}, access_of(p, kAccessRead));
      case wire::TaOpcode::kPrefetch:
        return s_.count(Counter::kBypassRxPrefetch);
      default:  // the decoder lets nothing else through
        return store({link, p.tassn, &p.route}, p, by_wire);
    }
  }
  // Sends it, or drops it if it is late. False: there is still no room.
  bool send_owed(const OwedAnswer& owed) {
    if (owed.is_late(s_.now)) {
      s_.count(Counter::kBypassAnswerLate);
      return true;
    }
    std::byte* frame = host_.tx_begin(owed.link, kAnswerHeaders);
    if (frame == nullptr) return false;
    finish({owed.link, owed.tassn, &owed.route}, frame, {wire::TaOpcode::kTaack, owed.status, 0});
    return true;
  }

  void on_plain_load(uint32_t link, const wire::PlainLoad& p) {
    load({link, p.tassn, nullptr},
         {p.ma.token_id, p.tv, p.token_value, p.ma.address, p.ma.length(), kAccessRead});
  }

 private:
  // To what an answer belongs.
  struct Request {
    uint32_t link;
    Tassn tassn;
    const wire::BypassRoute* route;  // null: plain
  };

  static RemoteAccess access_of(const wire::BypassPacket& p, uint8_t access) {
    return {p.ma.token_id, p.tv, p.token_value, p.ma.address, p.ma.length(), access};
  }
  // What is behind the first `done` bytes.
  static RemoteAccess rest_of(RemoteAccess access, uint64_t done) {
    access.address += done;
    access.bytes -= done;
    return access;
  }

  // Calls fn(offset in the block, memory, bytes) for each part that may be accessed; nullptr for what lies between.
  // False: a part is not direct, and the rest was left out.
  template <class Fn>
  bool each_part(const RemoteAccess& block, Fn fn) {
    uint64_t done = 0;
    while (done < block.bytes) {
      const RemotePart part = remote_part(s_, rest_of(block, done));
      const uint64_t gap = part.bytes != 0 ? part.offset : block.bytes - done;
      if (gap != 0) fn(done, static_cast<std::byte*>(nullptr), gap);
      done += gap;
      if (part.bytes == 0) break;
      if (!part.direct) return false;
      fn(done, part.memory, part.bytes);
      done += part.bytes;
    }
    return true;
  }

  void load(const Request& asked, const RemoteAccess& block) {
    std::byte* frame = host_.tx_begin(asked.link, kAnswerHeaders + block.bytes);
    if (frame == nullptr) [[unlikely]]
      return s_.count(Counter::kBypassNoRoom);
    std::byte* data = frame + kAnswerHeaders;
    const RemotePart first = remote_part(s_, block);
    if (first.bytes == block.bytes && first.direct) [[likely]] {
      host_.load(data, first.memory, block.bytes);
    } else if (!load_parts(block, data)) {
      return finish(asked, frame, refused());
    }
    s_.count(Counter::kBypassRxLoad);
    finish(asked, frame, {wire::TaOpcode::kReadResponse, wire::AtahCompact::kOk, static_cast<uint32_t>(block.bytes)});
  }

  // False: no part may be read, or one is not direct.
  [[gnu::noinline]] bool load_parts(const RemoteAccess& block, std::byte* data) {
    bool found = false;
    const bool direct = each_part(block, [&](uint64_t at, const std::byte* memory, uint64_t bytes) {
      found |= memory != nullptr;
      memory != nullptr ? host_.load(data + at, memory, bytes) : static_cast<void>(std::memset(data + at, 0, bytes));
    });
    return found && direct;
  }

  void store(const Request& asked, const wire::BypassPacket& p, bool by_wire) {
    std::byte* frame = host_.tx_begin(asked.link, kAnswerHeaders);
    if (frame == nullptr && (!by_wire || owed_.full())) return s_.count(Counter::kBypassNoRoom);
    const uint8_t status = run_store(p);
    if (frame == nullptr) return owed_.push({asked.link, *asked.route, asked.tassn, status, s_.now});
    finish(asked, frame, {wire::TaOpcode::kTaack, status, 0});
  }

  // What the answer says.
  uint8_t run_store(const wire::BypassPacket& p) {
    if (p.poison) {
      s_.count(Counter::kBypassRxPoison);
      return wire::AtahCompact::kAuthenticationFailed;
    }
    if (!may_store(p)) return refused().status;
    each_part(access_of(p, kAccessWrite), [&](uint64_t at, std::byte* memory, uint64_t bytes) {
      if (memory != nullptr) store_part(p, at, memory, bytes);
    });
    s_.count(Counter::kBypassRxStore);
    return wire::AtahCompact::kOk;
  }

  // May all bytes be written that the store enables?
  bool may_store(const wire::BypassPacket& p) {
    bool may = true;
    return each_part(access_of(p, kAccessWrite),
                     [&](uint64_t at, const std::byte* memory, uint64_t bytes) {
                       if (memory == nullptr && next_run(p, at, at + bytes).bytes != 0) may = false;
                     }) &&
           may;
  }

  void store_part(const wire::BypassPacket& p, uint64_t at, std::byte* memory, uint64_t bytes) {
    const uint64_t end = at + bytes;
    for (Run run = next_run(p, at, end); run.bytes != 0; run = next_run(p, run.at + run.bytes, end)) {
      host_.store(memory + (run.at - at), p.payload + run.at, run.bytes);
    }
  }

  // Bytes of a store that are enabled, one behind the other: the next run of them in [from, end); 0 bytes: none.
  struct Run {
    uint64_t at, bytes;
  };
  static Run next_run(const wire::BypassPacket& p, uint64_t from, uint64_t end) {
    if (!p.has_be) return {from, end - from};
    const uint64_t start = find_byte(p.be, true, from, end);
    return {start, find_byte(p.be, false, start, end) - start};
  }
  // The first byte in [from, end) that is enabled, or that is not; `end`: there is none. What has no enable is enabled.
  static uint64_t find_byte(const wire::BeetahView& be, bool enabled, uint64_t from, uint64_t end) {
    while (from < end && from < be.enables) {
      const uint64_t word = be.word(static_cast<uint32_t>(from / 64));
      const uint64_t rest = (enabled ? word : ~word) >> from % 64;
      if (rest != 0) return std::min(from + static_cast<uint64_t>(std::countr_zero(rest)), end);
      from = (from / 64 + 1) * 64;
    }
    return enabled ? std::min(from, end) : end;
  }

  struct Answer {
    wire::TaOpcode opcode;
    uint8_t status;
    uint32_t payload_len;
  };
  Answer refused() {
    s_.count(Counter::kBypassRxRefused);
    return {wire::TaOpcode::kTaack, wire::AtahCompact::kAuthenticationFailed, 0};
  }

  void finish(const Request& asked, std::byte* frame, const Answer& answer) {
    if (asked.route == nullptr) {
      wire::write_plain_answer(answer.opcode, answer.status, asked.tassn, frame);
    } else {
      write_answer(asked, frame, answer);
    }
    const size_t bytes = kAnswerHeaders + answer.payload_len;
    s_.count(Counter::kTxPackets);
    s_.count(Counter::kTxBytes, bytes);
    host_.tx_commit(asked.link, frame, bytes);
  }

  static void write_answer(const Request& asked, std::byte* frame, const Answer& answer) {
    wire::BypassPacket p;
    p.route = asked.route->back();
    p.is_response = true;
    p.opcode = answer.opcode;
    p.status = answer.status;
    p.tassn = asked.tassn;
    p.payload_len = answer.payload_len;
    wire::write_bypass_headers(p, frame);
  }

  static constexpr size_t kAnswerHeaders = wire::kBypassAnswerHeaderSize;

  CoreState& s_;
  Host& host_;
  OwedAnswers& owed_;
};

}  // namespace ub::bypass
