// SPDX-License-Identifier: Apache-2.0
// fuzz_lane.cc - hostile programs at the lanes of a NIC: any bytes in the memory that both share, requests that are
// right but for what the input changes, words out of order, lines that change while they are read, hang-ups in between.
//
// The NIC may end such a lane. It may not write to memory, or show any, that the request's token does not open; every
// request that it does not answer must be counted; and an honest program must be served all the time. The token of the
// memory that nobody may reach depends on the whole input, so that the fuzzer cannot find it out.
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/lane_port.h"
#include "lib/base/assert.h"
#include "lib/base/crc32.h"
#include "lib/base/word_copy.h"
#include "lib/ipc/unix_socket.h"
#include "lib/transport/core_impl.h"
#include "lib/transport/wire/bypass_packet.h"
#include "tests/fuzz/input.h"
#include "tests/unit/transport/zeroed_memory.h"

namespace {

using namespace ub;
using ipc::LaneLayout;
using wire::TaOpcode;

constexpr uint64_t kBase = 0x7000'0000;  // how peers name the first byte of the memory
constexpr uint32_t kKnownToken = 0x5EC2E7;
constexpr size_t kMemoryBytes = 48 * 1024;

// Where the segments lie. What is between them belongs to nobody.
struct Place {
  uint64_t offset, bytes;
  uint8_t access;
  bool direct, secret;

  bool has(uint64_t from, uint64_t count) const { return from >= offset && from + count <= offset + bytes; }
};
constexpr Place kPlaces[] = {
    {100, 5000, kAccessRead | kAccessWrite, true, false},
    {5100, 3000, kAccessRead, true, false},  // behind it, so that blocks reach over both
    {12000, 4001, kAccessWrite, true, false},
    {20000, 4096, kAccessRead | kAccessWrite, false, false},  // the NIC does not reach it itself
    {28000, 8192, kAccessRead | kAccessWrite, true, true},
};
constexpr size_t kChanging = 0;  // the one that comes and goes

// What the Core needs. Between a look at a request and the next the program may change it.
struct Host {
  LanePort& port;
  std::byte* memory;
  bool there[std::size(kPlaces)] = {};
  std::byte* changed = nullptr;  // a byte of a lane that changes at the next access
  uint8_t change = 0;

  void interfere() {
    if (changed != nullptr) *changed ^= static_cast<std::byte>(change);
  }
  void check(const std::byte* at, size_t bytes, uint8_t access) const {
    const auto offset = static_cast<uint64_t>(at - memory);
    bool may = false;
    for (size_t i = 0; i < std::size(kPlaces); ++i) {
      const Place& p = kPlaces[i];
      may |= there[i] && p.direct && !p.secret && (p.access & access) != 0 && p.has(offset, bytes);
    }
    UB_ASSERT(may);
  }

  std::byte* tx_begin(uint32_t link, size_t bytes) {
    interfere();
    return port.tx_begin(link, bytes);
  }
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes) { port.tx_commit(link, frame, bytes); }
  void tx_abort(uint32_t link, std::byte* frame) { port.tx_abort(link, frame); }
  void tx_may_wait(uint32_t) {}
  void tx_hold(uint32_t, std::byte*, std::byte*) {}
  void tx_drop(std::byte*) {}
  CopyResult gather(std::byte*, const std::byte*, size_t, CopyTag) { return CopyResult::kFailed; }
  CopyResult place(std::byte*, const std::byte*, size_t, bool, CopyTag) { return CopyResult::kFailed; }
  CopyResult atomic(const AtomicRequest&, uint128*, CopyTag) { return CopyResult::kFailed; }
  void load(std::byte* block, const std::byte* from, size_t bytes) {
    check(from, bytes, kAccessRead);
    interfere();
    load_words(block, from, bytes);
  }
  void store(std::byte* to, const std::byte* block, size_t bytes) {
    check(to, bytes, kAccessWrite);
    interfere();
    store_words(to, block, bytes);
  }
};

// All that a lane leads to.
using LaneCore = Core<Host, EngineList<bypass::Engine>>;

// One of the two rings of a lane.
struct Ring {
  size_t requests, replies, slots, slot_bytes;

  size_t slot(uint32_t number) const { return number % slots * slot_bytes; }
};
constexpr Ring kSmall = {LaneLayout::kSmallRequests, LaneLayout::kSmallReplies, LaneLayout::kSmallSlots,
                         LaneLayout::kSmallSlot};
constexpr Ring kLarge = {LaneLayout::kLargeRequests, LaneLayout::kLargeReplies, LaneLayout::kLargeSlots,
                         LaneLayout::kLargeSlot};

// A program's end of a lane.
struct Lane {
  ipc::Fd socket;
  ipc::Mapping memory;
  uint32_t small = 0, large = 0;  // numbers of the next requests

  std::byte* request(const Ring& ring, uint32_t number) { return memory.data() + ring.requests + ring.slot(number); }
  const std::byte* reply(const Ring& ring, uint32_t number) { return memory.data() + ring.replies + ring.slot(number); }
};

class Nic {
 public:
  explicit Nic(uint32_t secret)
      : memory(new std::byte[kMemoryBytes]),
        host{port, memory.get()},
        core_memory_(LaneCore::arena_bytes(config())),
        core_(std::make_unique<LaneCore>(config(), core_memory_.get(), host)) {
    std::memcpy(memory.get(), before().data(), kMemoryBytes);
    std::string error;
    UB_ASSERT(port.open(true, &error));
    UB_ASSERT(core_->alloc_token_id(&token_id) == Status::kOk);
    for (size_t i = 0; i < std::size(kPlaces); ++i) add(i, secret);
  }
  ~Nic() { port.close(); }

  void add(size_t index, uint32_t secret = 0) {
    const Place& p = kPlaces[index];
    SegmentConfig c;
    c.memory = memory.get() + p.offset;
    c.address = c.local_address = kBase + p.offset;
    c.length = p.bytes;
    c.token_id = p.secret ? 0 : token_id;
    c.token = {true, p.secret ? secret : kKnownToken};
    c.access = p.access;
    c.direct = p.direct;
    UB_ASSERT(core_->register_segment(c, &segments_[index]) == Status::kOk);
    host.there[index] = true;
  }
  void remove(size_t index) {
    UB_ASSERT(core_->unregister_segment(now_, segments_[index].handle) == Status::kOk);
    host.there[index] = false;
  }

  Lane connect() {
    int ends[2];
    UB_ASSERT(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    ipc::LaneHello hello{};
    hello.version = ipc::kLaneVersion;
    hello.bytes = sizeof hello;
    port.admit(ipc::Fd(ends[0]), hello);
    Lane lane;
    lane.socket = ipc::Fd(ends[1]);
    ipc::LaneReply reply;
    ipc::Fd fds[ipc::kMaxMessageFds];
    size_t bytes = 0, count = 0;
    UB_ASSERT(ipc::receive_message(ends[1], std::as_writable_bytes(std::span(&reply, 1)), &bytes, fds, &count) ==
              ipc::SocketStatus::kOk);
    std::string error;
    UB_ASSERT(count == 1 && lane.memory.map(fds[0].get(), LaneLayout::kBytes, &error));
    return lane;
  }

  void drive() {
    port.poll_control(now_);
    if (port.has_pending()) look_at_lanes();
    RxFrame frames[32];
    const size_t count = port.rx_burst(frames, std::size(frames));
    for (size_t i = 0; i < count; ++i) serve(frames[i]);
    port.rx_release();
    host.changed = nullptr;
  }

  // Nobody else's memory was written to, and what happened is counted.
  void check() {
    for (int i = 0; i < 2; ++i) drive();  // lanes that were given up go
    uint64_t from = 0;
    for (const Place& p : kPlaces) {  // in the order of their places
      if ((p.access & kAccessWrite) == 0 || !p.direct || p.secret) continue;
      UB_ASSERT(is_as_before(from, p.offset));
      from = p.offset + p.bytes;
    }
    UB_ASSERT(is_as_before(from, kMemoryBytes));
    const LanePortCounters c = port.counters();
    UB_ASSERT(c.opened == c.closed + port.lane_count());
    UB_ASSERT(c.broken_word + c.broken_request <= c.closed);
    UB_ASSERT(c.requests - c.answers == unanswered_);
    UB_ASSERT(unanswered_ == 0 || c.broken_word + c.broken_request != 0);
  }

  std::unique_ptr<std::byte[]> memory;
  LanePort port;
  Host host;
  uint32_t token_id = 0;

 private:
  static CoreConfig config() {
    CoreConfig c;
    c.self = {{}, 1};
    c.max_queues = c.max_jfc = c.max_targets = c.max_groups = c.read_jobs = 8;
    c.compact_repeats = 1;
    c.max_channels = c.max_peers = 4;
    c.max_segments = 16;
    c.max_links = 4;
    c.kept_packets = c.kept_small_packets = 8;
    return c;
  }
  static std::vector<std::byte> pattern() {
    std::vector<std::byte> bytes(kMemoryBytes);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 1);
    return bytes;
  }
  bool is_as_before(uint64_t from, uint64_t end) const {
    return std::memcmp(memory.get() + from, before().data() + from, end - from) == 0;
  }
  static const std::vector<std::byte>& before() {
    static const std::vector<std::byte> bytes = pattern();
    return bytes;
  }

  // An answer at most; without one, a counter says so.
  void serve(const RxFrame& frame) {
    const uint64_t answers = port.counters().answers, counted = counted_drops();
    core_->on_lane_frame(now_, frame.link, {frame.data, frame.bytes});
    const uint64_t more = port.counters().answers - answers;
    UB_ASSERT(more <= 1);
    if (more == 1) return;
    ++unanswered_;
    UB_ASSERT(counted_drops() == counted + 1);
  }
  static const std::vector<size_t>& drop_counters() {
    static const std::vector<size_t> all = [] {
      std::vector<size_t> found;
      for (size_t i = 0; i < kCounterCount; ++i) {
        if (std::strncmp(kCounterNames[i], "rx.drop.", 8) == 0) found.push_back(i);
      }
      return found;
    }();
    return all;
  }
  uint64_t counted_drops() const {
    const Counters& c = core_->counters();
    uint64_t sum = c[Counter::kBypassNoRoom] + c[Counter::kBypassRxPrefetch];
    for (const size_t drop : drop_counters()) sum += c.v[drop];
    return sum;
  }
  void look_at_lanes() {
    port.adopt_pending(now_, [this](const LinkConfig& c) { return core_->add_link(c); });
    std::vector<uint32_t> dead;
    port.take_dead_lanes(&dead);
    for (const uint32_t link : dead) {
      core_->link_down(now_, link);
      port.drop_lane(link);
    }
  }

  ZeroedMemory core_memory_;
  std::unique_ptr<LaneCore> core_;
  std::array<RegisteredSegment, std::size(kPlaces)> segments_;
  Instant now_{1'000'000};
  uint64_t unanswered_ = 0;
};

// ---- requests --------------------------------------------------------------------------------------------------

struct Request {
  std::byte headers[wire::kMaxBypassHeaderSize];
  size_t header_bytes, payload_bytes;
};

Request make(wire::BypassPacket p, uint32_t enables, uint64_t bits) {
  std::byte be[wire::BeetahView::kMaxEnables / 8];
  std::memset(be, 0xFF, sizeof be);
  p.has_be = p.opcode == TaOpcode::kWriteByteEnable || p.opcode == TaOpcode::kWritebackByteEnable;
  if (p.has_be) {
    wire::BeetahView::store_word(be, enables, 0, bits);
    p.be = {be, enables};
  }
  Request r;
  r.header_bytes = wire::write_bypass_headers(p, r.headers);
  r.payload_bytes = wire::bypass_payload_size(p);
  return r;
}

void send_word(std::byte* line, uint64_t word) {
  reinterpret_cast<std::atomic<uint64_t>*>(line)->store(word, std::memory_order_release);
}

// The lines of a request with this number, all but the word.
std::byte* put(const Request& r, Lane& lane, const Ring& ring, uint32_t number) {
  std::byte* line = lane.request(ring, number);
  const size_t headers = std::min(r.header_bytes, LaneLayout::kMaxHeaders);
  std::memcpy(line + LaneLayout::kLine - headers, r.headers + r.header_bytes - headers, headers);
  const size_t payload = std::min(r.payload_bytes, ring.slot_bytes - LaneLayout::kLine);
  std::memset(line + LaneLayout::kLine, static_cast<int>(number), payload);
  return line;
}
uint64_t word_of(const Request& r, uint32_t number) {
  return LaneLayout::word(static_cast<uint16_t>(number), r.header_bytes + r.payload_bytes, r.header_bytes);
}

// ---- programs --------------------------------------------------------------------------------------------------

// Loads a line that nobody writes to.
class Honest {
 public:
  explicit Honest(Nic& nic) : nic_(nic), lane_(nic.connect()) {}

  void load() {
    constexpr uint64_t kOffset = 5120 + 64;
    static_assert((kBase + kOffset) % LaneLayout::kLine == 0);
    wire::BypassPacket p;
    p.opcode = TaOpcode::kRead;
    p.tassn = Tassn(static_cast<uint16_t>(lane_.small));
    p.tv = true;
    p.token_value = kKnownToken;
    p.ma = {kBase + kOffset, 0, false, 0, nic_.token_id};
    const Request r = make(p, 0, 0);
    const uint32_t number = lane_.small++;
    send_word(put(r, lane_, kSmall, number), word_of(r, number));
    const std::byte* reply = lane_.reply(kSmall, number);
    const uint64_t wanted = LaneLayout::word(
        static_cast<uint16_t>(number), LaneLayout::kAnswerHeaders + LaneLayout::kLine, LaneLayout::kAnswerHeaders);
    uint64_t word = 0;
    for (int rounds = 0; rounds < 4 && word != wanted; ++rounds) {
      nic_.drive();
      std::memcpy(&word, reply, sizeof word);
    }
    UB_ASSERT(word == wanted);
    UB_ASSERT(std::memcmp(reply + LaneLayout::kLine, nic_.memory.get() + kOffset, LaneLayout::kLine) == 0);
  }

 private:
  Nic& nic_;
  Lane lane_;
};

class Hostile {
 public:
  Hostile(Nic& nic, Honest& honest) : nic_(nic), honest_(honest) { lanes_.push_back(nic.connect()); }

  void run(Input& in) {
    for (int steps = 0; !in.empty() && steps < 300; ++steps)
      step(in, lanes_[in.below(static_cast<uint32_t>(lanes_.size()))]);
  }

 private:
  void step(Input& in, Lane& lane) {
    switch (in.below(16)) {
      case 0:
        return scribble(in, lane);
      case 1:
        return word(in, lane);
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
        return request(in, lane, false);
      case 7:
        return request(in, lane, true);
      case 8:
      case 9:
        return nic_.drive();
      case 10:
        return honest_.load();
      case 11:
        return hang_up(in);
      case 12:
        return ring(in, lane);
      case 13:
        nic_.port.prepare_sleep();
        return nic_.port.finish_sleep();
      case 14:
        return nic_.host.there[kChanging] ? nic_.remove(kChanging) : nic_.add(kChanging);
      default:
        nic_.host.changed = lane_byte(in, lane);
        nic_.host.change = in.take<uint8_t>();
    }
  }

  // Mostly where requests of the small ring lie.
  static std::byte* lane_byte(Input& in, Lane& lane) {
    const uint32_t at = in.take<uint32_t>();
    return lane.memory.data() +
           (at % 4 == 0 ? at % LaneLayout::kBytes : LaneLayout::kSmallRequests + at % (4 * LaneLayout::kSmallSlot));
  }
  static void scribble(Input& in, Lane& lane) {
    std::byte* at = lane_byte(in, lane);
    const size_t room = static_cast<size_t>(lane.memory.data() + LaneLayout::kBytes - at);
    in.take(at, std::min<size_t>(1 + in.below(64), room));
  }
  static void word(Input& in, Lane& lane) {
    const bool large = in.below(4) == 0;
    uint32_t& number = large ? lane.large : lane.small;
    const auto slot = number + static_cast<uint32_t>(in.take<int8_t>());
    const auto tassn = static_cast<uint16_t>(number + static_cast<uint32_t>(in.take<int8_t>()));
    const auto frame = in.take<uint16_t>();
    const auto headers = in.take<uint8_t>();
    send_word(lane.request(large ? kLarge : kSmall, slot), LaneLayout::word(tassn, frame, headers));
    if (in.below(2) == 0) ++number;
  }

  void request(Input& in, Lane& lane, bool large) {
    constexpr TaOpcode kOpcodes[] = {TaOpcode::kRead,
                                     TaOpcode::kWrite,
                                     TaOpcode::kWriteByteEnable,
                                     TaOpcode::kWriteback,
                                     TaOpcode::kWritebackByteEnable,
                                     TaOpcode::kPrefetch};
    uint32_t& number = large ? lane.large : lane.small;
    const auto changes = in.take<uint8_t>();
    wire::BypassPacket p;
    p.opcode = kOpcodes[in.below(std::size(kOpcodes))];
    p.tassn = Tassn(static_cast<uint16_t>(number));
    p.tv = (changes & 1) == 0;
    p.token_value = (changes & 2) == 0 ? kKnownToken : in.take<uint32_t>();
    const Place& place = kPlaces[in.below(std::size(kPlaces))];
    const uint64_t address = kBase + place.offset + in.take<uint16_t>() % 9000 - 1000;
    const bool long_block = large || (changes & 12) == 12;
    const auto code = static_cast<uint8_t>(long_block ? in.below(8) : 0);
    p.ma = {address / 64 * 64, 0, false, code, (changes & 16) == 0 ? nic_.token_id : in.take<uint32_t>() & 0xFFFFF};
    p.poison = (changes & 96) == 96;
    const Request r = make(p, wire::BeetahView::enables_of(p.ma.length()), in.take<uint64_t>());
    std::byte* line = put(r, lane, large ? kLarge : kSmall, number);
    if ((changes & 128) != 0) {
      const uint32_t at = in.below(128);
      line[at] = in.take<std::byte>();
    }
    send_word(line, word_of(r, number));
    ++number;
  }

  void hang_up(Input& in) {
    const size_t which = in.below(static_cast<uint32_t>(lanes_.size()));
    nic_.host.changed = nullptr;
    if (in.below(2) == 0 || lanes_.size() == 8) {
      lanes_[which] = nic_.connect();
    } else {
      lanes_.push_back(nic_.connect());  // more than there are links
    }
  }
  static void ring(Input& in, Lane& lane) {
    std::array<std::byte, 128> message;
    const size_t bytes = 1 + in.below(message.size());
    in.take(message.data(), bytes);
    ipc::send_message(lane.socket.get(), std::span(message).first(bytes), {});
  }

  Nic& nic_;
  Honest& honest_;
  std::vector<Lane> lanes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 8192) return 0;
  Nic nic(crc32_final(crc32_update(crc32_init(), reinterpret_cast<const std::byte*>(data), size)));
  Honest honest(nic);
  honest.load();
  {
    Hostile hostile(nic, honest);
    Input in(data, size);
    hostile.run(in);
    honest.load();
    nic.check();
  }
  honest.load();  // the others have hung up
  UB_ASSERT(nic.port.lane_count() == 1);
  return 0;
}
