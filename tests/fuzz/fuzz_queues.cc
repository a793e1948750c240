// SPDX-License-Identifier: Apache-2.0
// fuzz_queues.cc - what an application that shares a Core may write into its rings, in any order with its calls.
//
// Two Cores, each with a trusted and an untrusted application. The input says what the untrusted one of the first
// Core writes into its send and receive elements, indices and completion slots, and when it calls. Afterwards a WRITE
// and a SEND of the trusted one must succeed, none of its bytes may have come to the others, and everything can be
// destroyed. The others' tokens depend on the whole input, so that the fuzzer cannot find them out.
#include <sys/prctl.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/base/assert.h"
#include "lib/base/crc32.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/transaction_packet.h"
#include "lib/transport/wire/utp_header.h"
#include "tests/bench/core_pair.h"
#include "tests/fuzz/input.h"

namespace {

using namespace ub;
using bench::Node;

constexpr uint32_t kRegionBytes = 32 * 1024;
constexpr uint32_t kSlots = 16;  // of every ring
constexpr uint32_t kDepth = 8;

// Memory of its own for every ring, so that a sanitizer sees where it ends.
struct App {
  App(Node& n, Owner o, Token t, Mode m = Mode::kRm)
      : node(n), owner(o), token(t), mode(m), memory(new std::byte[kRegionBytes]) {
    std::memset(memory.get(), owner, kRegionBytes);
    register_memory();
    create_jfc();
    create_jfr();
    create_jetty();
  }
  ~App() {
    destroy_jetty();
    destroy_jfr();
    destroy_jfc();
    for (uint32_t t : targets) UB_ASSERT(node.core.remove_target(t) == Status::kOk);
    UB_ASSERT(node.core.unregister_segment(now, segment.handle) == Status::kOk);
  }

  uint64_t address() const { return 0x10000 * (1 + owner); }
  Sge sge(uint32_t offset, uint32_t bytes) const { return {address() + offset, bytes, segment.handle}; }

  void register_memory() {
    SegmentConfig c;
    c.memory = memory.get();
    c.address = c.local_address = address();
    c.length = kRegionBytes;
    c.token = token;
    c.access = kAccessRead | kAccessWrite | kAccessAtomic;
    c.owner = owner;
    UB_ASSERT(node.core.register_segment(c, &segment) == Status::kOk);
  }
  void create_jfc() {
    completions.reset(new Cqe[kSlots]());
    jfc_indices = std::make_unique<QueueIndices>();
    JfcConfig c;
    c.slots = completions.get();
    c.slot_count = c.depth = kSlots;
    c.indices = jfc_indices.get();
    c.owner = owner;
    UB_ASSERT(node.core.create_jfc(c, &jfc) == Status::kOk);
  }
  void create_jfr() {
    receives.reset(new Rqe[kSlots]());
    jfr_indices = std::make_unique<QueueIndices>();
    JfrConfig c;
    c.mode = mode;
    c.slots = receives.get();
    c.slot_count = kSlots;
    c.indices = jfr_indices.get();
    c.jfc = jfc;
    c.token = token;
    c.min_rnr_timer = 1;
    c.owner = owner;
    UB_ASSERT(node.core.create_jfr(c, &jfr) == Status::kOk);
  }
  void create_jetty() {
    slots.reset(new Wqe[kSlots]());
    source.reset(new Wqe[kSlots]());
    indices = std::make_unique<QueueIndices>();
    size_t bytes = Core<bench::BenchHost>::send_queue_work_bytes(kDepth);
    work.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
    std::memset(work.get(), 0, bytes);
    JettyConfig c;
    c.mode = mode;
    c.sq.slots = slots.get();
    c.sq.source = source.get();
    c.sq.slot_count = kSlots;
    c.sq.depth = kDepth;
    c.sq.indices = indices.get();
    c.sq.work = work.get();
    c.sq.jfc = jfc;
    c.jfr = jfr;
    c.lower_layer_order = mode == Mode::kRc;
    c.owner = owner;
    UB_ASSERT(node.core.create_jetty(c, &jetty) == Status::kOk);
  }
  void destroy_jetty() {
    UB_ASSERT(node.core.destroy_jetty(now, jetty) == Status::kOk);
    slots.reset();
    source.reset();
    work.reset();
    indices.reset();
  }
  void destroy_jfr() {
    UB_ASSERT(node.core.destroy_jfr(now, jfr) == Status::kOk);
    receives.reset();
    jfr_indices.reset();
  }
  void destroy_jfc() {
    UB_ASSERT(node.core.destroy_jfc(jfc) == Status::kOk);
    completions.reset();
    jfc_indices.reset();
  }
  void add_target(const App& to, uint32_t link, uint32_t id, Token presented) {
    TargetConfig t;
    t.instance = bench::instance_of(to.node.number);
    t.id = id;
    t.mode = mode;
    t.token = presented;
    t.path = {link, bench::endpoint_of(node.number), bench::endpoint_of(to.node.number)};
    t.owner = owner;
    targets.push_back(0);
    UB_ASSERT(node.core.add_target(now, t, &targets.back()) == Status::kOk);
  }

  Wqe request(WrOp op, uint32_t bytes, uint32_t target, const App& to) const {
    Wqe e{};
    e.op = op;
    e.flags = kWrSignaled | kWrToken;
    e.sge_count = 1;
    e.slots = static_cast<uint8_t>(wqe_slots(op, 1, 0));
    e.target = targets[target];
    e.length = bytes;
    e.remote_address = to.address() + kRegionBytes / 2;
    e.token_id = to.segment.token_id;
    e.token_value = to.token.value;
    e.sge = sge(0, bytes);
    return e;
  }
  void post(const Wqe& e) {
    uint32_t at = indices->produced.load();
    source[at % kSlots] = e;
    indices->produced.store(at + 1, std::memory_order_release);
    node.core.on_posted(now, jetty);
  }
  void post_receive(uint32_t offset, uint32_t bytes) {
    uint32_t at = jfr_indices->produced.load();
    Rqe& e = receives[at % kSlots] = Rqe{};
    e.length = bytes;
    e.sge_count = e.slots = 1;
    e.sge[0] = sge(offset, bytes);
    jfr_indices->produced.store(at + 1, std::memory_order_release);
  }
  bool holds(const void* what, size_t bytes) const {
    return memmem(memory.get(), kRegionBytes, what, bytes) != nullptr;
  }

  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };

  Node& node;
  Owner owner;
  Token token;
  Mode mode;
  Instant now;
  std::unique_ptr<std::byte[]> memory;
  std::unique_ptr<Cqe[]> completions;
  std::unique_ptr<Rqe[]> receives;
  std::unique_ptr<Wqe[]> slots, source;
  std::unique_ptr<std::byte, Free> work;
  std::unique_ptr<QueueIndices> indices, jfr_indices, jfc_indices;
  RegisteredSegment segment;
  uint32_t jfc = 0, jfr = 0, jetty = 0;
  std::vector<uint32_t> targets;
};

CoreConfig small(uint32_t number) {
  CoreConfig c = bench::config_of(number);
  c.max_jfc = c.max_queues = c.max_segments = c.max_targets = 64;
  c.max_peers = c.max_channels = c.max_links = 16;
  c.read_jobs = 16;
  c.kept_packets = c.kept_small_packets = 64;
  return c;
}

class World {
 public:
  explicit World(uint32_t secret)
      : a_(1, small(1)),
        b_(2, small(2)),
        wire_(a_, b_, LinkConfig{.mtu = 1024, .icrc_optional = true, .lossless = true, .compact = true}, 1 << 18),
        good_a_(a_, 1, {true, secret}),
        good_b_(b_, 2, {true, ~secret}),
        bad_a_(a_, 3, {true, 3}),
        bad_b_(b_, 4, {true, 4}),
        um_b_(b_, 5, {true, 5}, Mode::kUm) {
    for (uint32_t i = 0; i < sizeof secret_; ++i) secret_[i] = static_cast<uint8_t>(secret >> (i % 4 * 8) ^ i * 37);
    for (App* good : {&good_a_, &good_b_})
      for (uint32_t at = 0; at < kRegionBytes; at += sizeof secret_)
        std::memcpy(good->memory.get() + at, secret_, sizeof secret_);
    set_time();
    good_a_.add_target(good_b_, wire_.link_at_a, good_b_.jetty, good_b_.token);
    bad_a_.add_target(bad_b_, wire_.link_at_a, bad_b_.jetty, bad_b_.token);
    bad_a_.add_target(good_b_, wire_.link_at_a, good_b_.jetty, bad_a_.token);
    bad_a_.add_target(um_b_, wire_.link_at_a, um_b_.jetty, um_b_.token);
    for (uint32_t i = 0; i < 4; ++i) {
      bad_b_.post_receive(i * 4096, 4096);
      um_b_.post_receive(i * 4096, 4096);
    }
    settle(50);
  }

  void run(Input& in) {
    while (!in.empty()) step(in);
  }

  void check() {
    settle(200);
    std::memset(good_b_.memory.get() + kRegionBytes / 2, 0, 3000);
    std::memset(good_b_.memory.get() + 4096, 0, 3000);
    good_b_.post_receive(4096, 3000);
    good_a_.post(good_a_.request(WrOp::kWrite, 3000, 0, good_b_));
    good_a_.post(good_a_.request(WrOp::kSend, 3000, 0, good_b_));
    for (uint32_t i = 0; i < 100'000 && good_a_.jfc_indices->produced.load() < 2; ++i) settle(1);
    UB_ASSERT(good_a_.jfc_indices->produced.load() == 2 && good_b_.jfc_indices->produced.load() == 1);
    UB_ASSERT(good_a_.completions[0].status == CrStatus::kSuccess);
    UB_ASSERT(good_a_.completions[1].status == CrStatus::kSuccess);
    UB_ASSERT(good_b_.completions[0].status == CrStatus::kSuccess && good_b_.completions[0].length == 3000);
    for (const App* bad : {&bad_a_, &bad_b_, &um_b_}) UB_ASSERT(!bad->holds(secret_, sizeof secret_));
    for (const App* good : {&good_a_, &good_b_})  // what was cleared is there again, and nothing else was changed
      for (uint32_t at = 0; at < kRegionBytes; at += sizeof secret_)
        UB_ASSERT(std::memcmp(good->memory.get() + at, secret_, sizeof secret_) == 0);
  }

 private:
  void set_time() {
    for (App* app : {&good_a_, &good_b_, &bad_a_, &bad_b_, &um_b_}) app->now = clock_.now();
  }
  void settle(uint32_t rounds) {
    while (rounds-- != 0) {
      bool busy = a_.drive(clock_.now());
      busy |= b_.drive(clock_.now());
      clock_.advance(microseconds(busy ? 1 : 20));
    }
    set_time();
  }

  std::atomic<uint32_t>& word(Input& in) {
    QueueIndices* const all[] = {bad_a_.indices.get(), bad_a_.jfr_indices.get(), bad_a_.jfc_indices.get()};
    QueueIndices& i = *all[in.below(3)];
    std::atomic<uint32_t>* const words[] = {&i.produced, &i.consumed, &i.retired, &i.armed};
    return *words[in.below(4)];
  }

  // An element that is right but for what the input changes.
  void element(Input& in) {
    const App& to = in.below(4) == 0 ? good_b_ : bad_b_;
    const auto op = static_cast<WrOp>(in.below(16));
    const uint32_t length = in.take<uint16_t>();
    Wqe e = bad_a_.request(op, length, in.below(3), to);
    uint32_t changes = in.take<uint8_t>();
    if ((changes & 1) != 0) e.flags = in.take<uint8_t>();
    if ((changes & 2) != 0) e.sge = in.below(2) == 0 ? good_a_.sge(0, e.length) : in.take<Sge>();
    if ((changes & 4) != 0) e.sge_count = static_cast<uint8_t>(in.below(20));
    if ((changes & 8) != 0) e.slots = in.take<uint8_t>();
    if ((changes & 16) != 0) e.target = in.take<uint8_t>();
    if ((changes & 32) != 0) e.length = in.take<uint32_t>();
    if ((changes & 64) != 0) e.remote_address += in.take<uint32_t>();
    e.token_value = bad_b_.token.value;
    if ((changes & 128) != 0) e.place_order = in.take<uint8_t>();
    uint32_t at = bad_a_.indices->produced.load();
    bad_a_.source[at % kSlots] = e;
    bad_a_.indices->produced.store(at + e.slots);
    bad_a_.node.core.on_posted(clock_.now(), bad_a_.jetty);
  }

  void step(Input& in) {
    Core<bench::BenchHost>& core = a_.core;
    Instant now = clock_.now();
    Cqe out[4];
    switch (in.below(19)) {
      case 0:
        in.take(static_cast<void*>(&bad_a_.source[in.below(kSlots)]), sizeof(Wqe));
        return;
      case 1:
        in.take(static_cast<void*>(&bad_a_.receives[in.below(kSlots)]), sizeof(Rqe));
        return;
      case 2:
        in.take(static_cast<void*>(&bad_a_.completions[in.below(kSlots)]), sizeof(Cqe));
        return;
      case 3:
        word(in).fetch_add(static_cast<uint32_t>(in.take<int8_t>()));
        return;
      case 4:
        word(in).store(in.take<uint32_t>());
        return;
      case 5:
      case 6:
      case 7:
        return element(in);
      case 8:
        return core.on_posted(now, bad_a_.jetty);
      case 9:
        bad_a_.jfc_indices->consumed.store(bad_a_.jfc_indices->produced.load());
        return core.on_completions_read(now, bad_a_.jfc);
      case 10:
        return core.on_armed(now, bad_a_.jfc);
      case 11:
        core.set_state(now, in.below(2) == 0 ? bad_a_.jetty : bad_a_.jfr, static_cast<QueueState>(in.below(4)));
        return;
      case 12:
        core.take_unhandled(bad_a_.jetty, out, in.below(5));
        return;
      case 13:
        core.set_receive_threshold(bad_a_.jfr, in.take<uint8_t>());
        return;
      case 14:
        UB_ASSERT(core.unregister_segment(now, bad_a_.segment.handle) == Status::kOk);
        return bad_a_.register_memory();
      case 15:
        return renew(in);
      case 16:
        return post_from_b(in);
      case 18:
        return datagram(in);
      default:
        return settle(1 + in.below(32));
    }
  }

  void renew(Input& in) {
    uint32_t how = in.below(6);
    bad_a_.destroy_jetty();
    if (how > 0) bad_a_.destroy_jfr();
    if (how > 1) bad_a_.destroy_jfc();
    if (how > 1) bad_a_.create_jfc();
    static constexpr Mode kModes[] = {Mode::kRm, Mode::kRc, Mode::kUm};
    bad_a_.mode = kModes[how % 3];
    if (how > 0) bad_a_.create_jfr();
    bad_a_.create_jetty();
  }

  // Messages to the untrusted one, so that its receive ring is read.
  void post_from_b(Input& in) {
    const bool um = bad_a_.mode == Mode::kUm;
    App& from = um ? um_b_ : bad_b_;
    if (from.indices->produced.load() - from.indices->consumed.load() == kDepth) return;
    for (uint32_t t : from.targets) UB_ASSERT(b_.core.remove_target(t) == Status::kOk);
    from.targets.clear();
    from.add_target(bad_a_, wire_.link_at_b, bad_a_.jetty, bad_a_.token);
    static constexpr WrOp kOps[] = {WrOp::kSend, WrOp::kSendImm, WrOp::kSendInvalidate, WrOp::kWriteImm};
    from.jfc_indices->consumed.store(from.jfc_indices->produced.load());
    b_.core.on_completions_read(clock_.now(), from.jfc);
    const WrOp op = kOps[in.below(um ? 2 : 4)];
    from.post(from.request(op, in.take<uint16_t>() % (um ? 1025 : 8192), 0, bad_a_));
    if (from.jfr_indices->produced.load() - from.jfr_indices->consumed.load() < 4) from.post_receive(0, 8192);
  }

  // A datagram from anywhere, right but for the bits that the input turns. Not one to Jetty 0: set-up is trusted.
  void datagram(Input& in) {
    wire::TaPacket ta{};
    ta.has_ud = ta.has_mt = ta.has_ofst = ta.tv = true;
    ta.has_imm = in.below(2) != 0;
    ta.req.opcode = ta.has_imm ? wire::TaOpcode::kSendImmediate : wire::TaOpcode::kSend;
    ta.ud = 1;
    ta.mt = {0, wire::kTcTypeQueue, bad_a_.jetty};
    ta.token_value = bad_a_.token.value;
    std::byte body[wire::UtpHeader::kSize + wire::kMaxTransactionHeaderSize + 256];
    wire::UtpHeader{}.write(body);
    size_t bytes = wire::UtpHeader::kSize;
    bytes += wire::write_transaction_headers(ta, body + bytes);
    const size_t payload = size_t{4} * in.below(64);
    std::memset(body + bytes, 0, payload);
    bytes += payload;
    for (uint32_t n = in.below(8); n != 0; --n) body[in.take<uint8_t>() % bytes] ^= in.take<std::byte>();
    wire::TaPacket again;
    const wire::Drop drop = wire::parse_transaction(body + wire::UtpHeader::kSize, body + bytes, 0, false, again);
    if (drop == wire::Drop::kNone && again.has_mt && again.mt.tc_id == 0) return;

    wire::NetTemplate headers;
    headers.init({}, {}, bench::endpoint_of(9), bench::endpoint_of(1), 0);
    std::byte frame[wire::NetTemplate::kMaxSize + sizeof body + wire::kIcrcSize];
    std::byte* end = frame + headers.write(frame, bytes + wire::kIcrcSize, wire::kEcnNotCapable);
    std::memcpy(end, body, bytes);
    end += bytes;
    const std::byte* l3 = frame + wire::kEthSize;
    wire::icrc_store(end, wire::icrc_compute(l3, static_cast<size_t>(end - l3), false));
    a_.core.on_packet(clock_.now(), wire_.link_at_a, {frame, end + wire::kIcrcSize});
  }

  bench::Clock clock_;
  Node a_, b_;
  bench::Wire wire_;
  App good_a_, good_b_, bad_a_, bad_b_, um_b_;
  uint8_t secret_[64];
};

}  // namespace

// Huge pages would be cleared for every input, for the sake of a few touched lines.
extern "C" int LLVMFuzzerInitialize(int*, char***) { return prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world(crc32_final(crc32_update(crc32_init(), reinterpret_cast<const std::byte*>(data), size)));
  Input in(data, size);
  world.run(in);
  world.check();
  return 0;
}
