// SPDX-License-Identifier: Apache-2.0
//
// One operation over and over between two Cores of a CorePair (core_pair.h): side a asks, side b serves. Each stage of
// an operation is a call of its own, never inlined, so that a profile by function shows the stages.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "tests/bench/queue_pair.h"

namespace ub::bench {

enum class Protocol : uint8_t { kUb, kRoce };

struct Operation {
  const char* name;
  WrOp op;
  uint32_t bytes;
  Protocol protocol = Protocol::kUb;
  uint8_t flags = 0;        // kWr..., besides kWrSignaled
  uint8_t place_order = 0;  // of every `ordered_each`th request; the others have none
  uint32_t ordered_each = 1;
  Service service = Service::kRoi;
  uint32_t late_each = 0;  // every so many-th packet arrives a round later than the others; 0: none does
  bool compact = false;    // by CTP
  bool lossy = false;      // the wire says that it may lose packets; it loses none
};
constexpr Operation kOperations[] = {
    {"WRITE 64", WrOp::kWrite, 64}, {"READ 64", WrOp::kRead, 64},         {"SEND 64", WrOp::kSend, 64},
    {"FADD 8", WrOp::kFetchAdd, 8}, {"WRITE 65536", WrOp::kWrite, 65536},
};
constexpr Operation kRoceOperations[] = {
    {"RoCE WRITE 64", WrOp::kWrite, 64, Protocol::kRoce},
    {"RoCE READ 64", WrOp::kRead, 64, Protocol::kRoce},
};
// What the axes of order cost those who use them.
constexpr Operation kOrderOperations[] = {
    {"WRITE 64 RO", WrOp::kWrite, 64, Protocol::kUb, 0, 1},
    {"WRITE 64 SO", WrOp::kWrite, 64, Protocol::kUb, 0, 2},
    {"WRITE 64 SO each 8th", WrOp::kWrite, 64, Protocol::kUb, 0, 2, 8},
    {"WRITE 64 fence", WrOp::kWrite, 64, Protocol::kUb, kWrFence},
    {"READ 64 fence", WrOp::kRead, 64, Protocol::kUb, kWrFence},
    {"SEND 64 comp_order", WrOp::kSend, 64, Protocol::kUb, kWrCompOrder},
    {"WRITE 64 ROL", WrOp::kWrite, 64, Protocol::kUb, 0, 0, 1, Service::kRol},
    {"WRITE 64 ROL SO", WrOp::kWrite, 64, Protocol::kUb, 0, 2, 1, Service::kRol},
    {"WRITE 64 ROT", WrOp::kWrite, 64, Protocol::kUb, 0, 0, 1, Service::kRot},
    {"WRITE 64 ROT SO", WrOp::kWrite, 64, Protocol::kUb, 0, 2, 1, Service::kRot},
    {"SEND 64 ROL", WrOp::kSend, 64, Protocol::kUb, 0, 0, 1, Service::kRol},
};

// What gaps cost: a packet that is late is missing at the end of its round.
constexpr Operation kLateOperations[] = {
    {"WRITE 64 late", WrOp::kWrite, 64, Protocol::kUb, 0, 0, 1, Service::kRoi, 32},
    {"WRITE 65536 late", WrOp::kWrite, 65536, Protocol::kUb, 0, 0, 1, Service::kRoi, 32},
};

// The same by the compact transport.
constexpr Operation kCompactOperations[] = {
    {"CTP WRITE 64", WrOp::kWrite, 64, Protocol::kUb, 0, 0, 1, Service::kRoi, 0, true},
    {"CTP READ 64", WrOp::kRead, 64, Protocol::kUb, 0, 0, 1, Service::kRoi, 0, true},
    {"CTP SEND 64", WrOp::kSend, 64, Protocol::kUb, 0, 0, 1, Service::kRoi, 0, true},
    {"CTP FADD 8", WrOp::kFetchAdd, 8, Protocol::kUb, 0, 0, 1, Service::kRoi, 0, true},
    {"CTP WRITE 64 ROL", WrOp::kWrite, 64, Protocol::kUb, 0, 0, 1, Service::kRol, 0, true},
    {"CTP WRITE 64 ROL SO", WrOp::kWrite, 64, Protocol::kUb, 0, 2, 1, Service::kRol, 0, true},
    {"CTP SEND 64 ROL", WrOp::kSend, 64, Protocol::kUb, 0, 0, 1, Service::kRol, 0, true},
};

// What being ready for losses costs: the window of RTP, the repeats of CTP.
constexpr Operation kLossyOperations[] = {
    {"WRITE 64 lossy", WrOp::kWrite, 64, Protocol::kUb, 0, 0, 1, Service::kRoi, 0, false, true},
    {"READ 64 lossy", WrOp::kRead, 64, Protocol::kUb, 0, 0, 1, Service::kRoi, 0, false, true},
    {"CTP WRITE 64 lossy", WrOp::kWrite, 64, Protocol::kUb, 0, 0, 1, Service::kRoi, 0, true, true},
    {"CTP READ 64 lossy", WrOp::kRead, 64, Protocol::kUb, 0, 0, 1, Service::kRoi, 0, true, true},
};

// nullptr: there is none of that name.
inline const Operation* find_operation(const std::string& name) {
  for (const std::span<const Operation> all : {std::span<const Operation>(kOperations),
                                               {kRoceOperations},
                                               {kOrderOperations},
                                               {kLateOperations},
                                               {kCompactOperations},
                                               {kLossyOperations}}) {
    for (const Operation& op : all) {
      if (op.name == name) return &op;
    }
  }
  return nullptr;
}

constexpr uint32_t kMtu = 4096;
constexpr size_t kBurst = 32;
constexpr uint32_t kDepth = 128;

class Exchange {
 public:
  // `window`: operations posted together, at most 64.
  Exchange(const Operation& operation, uint32_t window, bool icrc)
      : op_(operation),
        window_(window),
        icrc_(icrc),
        region_bytes_(memory_of(operation)),
        pair_(link(icrc, operation), kDepth, memory_of(operation), memory_of(operation),
              operation.protocol == Protocol::kRoce ? 1 : 0, operation.service) {
    stride_ = op_.bytes < 64 ? 64 : op_.bytes;
    std::byte* source = (op_.op == WrOp::kRead ? pair_.b : pair_.a).region.data();
    for (size_t i = 0; i < region_bytes_; ++i) source[i] = static_cast<std::byte>(i * 7 + i / 256);
    if (op_.op == WrOp::kFetchAdd) std::memset(source, 0, region_bytes_);
    for (uint32_t i = 0; i < window_ && op_.op == WrOp::kSend; ++i) post_receive();
    if (op_.protocol == Protocol::kRoce) connection_ = std::make_unique<Connection>(pair_);
  }

  const Operation& operation() const { return op_; }
  uint32_t window() const { return window_; }
  bool icrc() const { return icrc_; }
  // After so many operations all buffers were touched.
  uint64_t cycle() const { return region_bytes_ / stride_; }
  const CoreState& state() const { return pair_.a_node.core.state(); }
  // Sent so far by both sides.
  uint64_t packets() const { return pair_.wire.a_to_b.sent() + pair_.wire.b_to_a.sent(); }
  const roce::State& roce_state() const { return *pair_.a_node.core.roce_state(); }

  // `ops` operations, in whole windows.
  void run(uint64_t ops) {
    for (uint64_t done = 0; done < ops; done += window_) {
      post_window();
      choose();
      for (uint32_t left = window_; left > 0;) {
        initiator_polls();
        target_receives();
        target_polls();
        initiator_receives();
        left -= reap();
        pair_.clock.advance(microseconds(1));
      }
    }
  }

  // The operations moved the bytes that the benchmark claims.
  void check() const {
    const std::byte* a = pair_.a.region.data();
    const std::byte* b = pair_.b.region.data();
    if (op_.op != WrOp::kFetchAdd) {
      size_t used = std::min<size_t>(posted_ * stride_, region_bytes_);
      if (std::memcmp(a, b, used) != 0) fail("wrong bytes");
      return;
    }
    uint64_t sum = 0;
    for (size_t at = 0; at < region_bytes_; at += stride_) sum += load_le64(b + at);
    if (sum != posted_) fail("wrong sum of atomics");
  }

 protected:
  [[noreturn]] void fail(const char* what) const {
    std::fprintf(stderr, "exchange: %s: %s\n", op_.name, what);
    std::exit(1);
  }

  // The application's part: writes the elements of a window.
  [[gnu::noinline]] void post_window() {
    Wqe e{};
    e.op = op_.op;
    e.flags = kWrSignaled | op_.flags;
    e.target = pair_.a.target;
    e.length = op_.bytes;
    e.immediate = 1;
    if (op_.op != WrOp::kSend) e.token_id = remote_key();
    for (uint32_t i = 0; i < window_; ++i) {
      if (op_.place_order != 0) e.place_order = posted_ % op_.ordered_each == 0 ? op_.place_order : 0;
      const size_t at = next_offset(posted_++);
      e.user_ctx = posted_;
      e.sge = pair_.a.region.sge(at, op_.bytes);
      if (op_.op != WrOp::kSend) e.remote_address = pair_.b.region.address() + at;
      ring().post(e);
    }
  }
  // The application's part: takes completions, gives receives back.
  [[gnu::noinline]] uint32_t reap() {
    uint32_t n = 0;
    while (const Cqe* cqe = pair_.a.send_jfc.front()) {
      if (cqe->status != CrStatus::kSuccess) fail("an operation failed");
      pair_.a.send_jfc.pop();
      ++n;
    }
    while (const Cqe* cqe = pair_.b.receive_jfc.front()) {
      if (cqe->status != CrStatus::kSuccess) fail("a receive failed");
      pair_.b.receive_jfc.pop();
      post_receive();
    }
    return n;
  }

  // One doorbell per request, as the API rings it.
  [[gnu::noinline]] void choose() {
    for (uint32_t i = 0; i < window_; ++i) pair_.a_node.core.on_posted(pair_.clock.now(), ring().id);
  }
  [[gnu::noinline]] void initiator_polls() {
    timers();
    pair_.a_node.core.poll_packets(pair_.clock.now(), kBurst);
  }
  [[gnu::noinline]] void target_receives() {
    if (op_.late_each != 0) return receive_with_gaps();
    pair_.b_node.receive(pair_.clock.now(), pair_.wire.link_at_b, 2 * kBurst);
  }
  [[gnu::noinline]] void target_polls() { pair_.b_node.core.poll_packets(pair_.clock.now(), kBurst); }
  [[gnu::noinline]] void initiator_receives() {
    pair_.a_node.receive(pair_.clock.now(), pair_.wire.link_at_a, 2 * kBurst);
  }
  // What was late in the round before comes first, so that nothing is late enough to be taken for lost.
  void receive_with_gaps() {
    FrameQueue& queue = pair_.wire.a_to_b;
    const auto arrives = [this](std::span<const std::byte> frame) {
      pair_.b_node.core.on_packet(pair_.clock.now(), pair_.wire.link_at_b, frame);
    };
    for (const std::vector<std::byte>& frame : late_) arrives(frame);
    late_.clear();
    const size_t frames = std::min(queue.waiting(), 2 * kBurst);
    for (size_t i = 0; i < frames; ++i) {
      const std::span<const std::byte> frame = queue.at(i);
      if (++arrived_ % op_.late_each == 0) {
        late_.emplace_back(frame.begin(), frame.end());
      } else {
        arrives(frame);
      }
    }
    queue.release(frames);
  }
  void timers() {
    for (Node* node : {&pair_.a_node, &pair_.b_node}) {
      if (node->core.next_deadline() <= pair_.clock.now()) node->core.on_timer(pair_.clock.now());
    }
  }

  Operation op_;
  uint32_t window_;
  bool icrc_;
  size_t region_bytes_;
  CorePair pair_;
  size_t stride_ = 64;
  uint64_t posted_ = 0, receives_ = 0, arrived_ = 0;
  std::vector<std::vector<std::byte>> late_;

 private:
  static LinkConfig link(bool icrc, const Operation& operation) {
    LinkConfig config;
    config.mtu = kMtu;
    config.icrc_optional = !icrc;
    config.lossless = !operation.lossy;
    config.compact = operation.compact;
    return config;
  }

  // Buffers and queues of small operations fill the second-level cache together, those of large ones do not.
  static size_t memory_of(const Operation& operation) { return size_t{operation.bytes > kMtu ? 1024u : 256u} << 10; }

  size_t next_offset(uint64_t number) const { return number * stride_ & (region_bytes_ - 1); }

  void post_receive() {
    size_t at = next_offset(receives_++);
    pair_.b.jfr.post(at, pair_.b.region.sge(at, static_cast<uint32_t>(stride_)));
  }

  // A queue pair on each side; a receive queue is shared by jettys or by queue pairs, not by both.
  struct Connection {
    explicit Connection(CorePair& p)
        : jfr_a(p.a.node, p.a.receive_jfc, kDepth),
          jfr_b(p.b.node, p.b.receive_jfc, kDepth),
          a(p.a.node, p.a.send_jfc, jfr_a, kDepth),
          b(p.b.node, p.b.send_jfc, jfr_b, kDepth) {
      a.connect(p.clock.now(), p.wire.link_at_a, p.b.node, b.id, kReads, kMtuCode);
      b.connect(p.clock.now(), p.wire.link_at_b, p.a.node, a.id, kReads, kMtuCode);
    }
    static constexpr uint32_t kReads = 16;
    static constexpr uint8_t kMtuCode = 5;
    ReceiveQueue jfr_a, jfr_b;
    QueuePair a, b;
  };
  SendRing& ring() { return connection_ ? static_cast<SendRing&>(connection_->a) : pair_.a.jetty; }
  uint32_t remote_key() const {
    const uint32_t token_id = pair_.b.region.registered.token_id;
    return connection_ ? roce::make_rkey(token_id, 0) : token_id;
  }

  std::unique_ptr<Connection> connection_;  // RoCE
};

}  // namespace ub::bench
