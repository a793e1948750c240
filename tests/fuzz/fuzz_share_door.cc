// SPDX-License-Identifier: Apache-2.0
// fuzz_share_door.cc - hostile programs at the door to memory that others map (share_door.h), and at the socket before
// it: any bytes as a greeting, requests that are right but for what the input changes, words where there is nothing to
// say, hang-ups in between. Meanwhile the owner registers, offers, takes rights away and asks who holds.
//
// A model knows what each program must be told: it gets memory only if the segment and the offer permit that, to write
// only if they permit that, too, and else a sentence; and one notice when its right has ended. NICs get a gate, too,
// which is closed by then. The NIC must name all holders who have not hung up, and nobody else. No descriptor may be
// left behind. The whole input decides whether the door is nearly full from the beginning, which takes as long as a
// hundred other inputs.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "dataplane/shm_port.h"
#include "lib/base/crc32.h"
#include "lib/ipc/memfd.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/share_ends.h"

namespace {

using namespace ub;
using ipc::ShareHello;
using ipc::ShareRequest;
using Kind = Message::Kind;

constexpr Eid kEid = {{9}};
constexpr uint32_t kUasid = 5;

// What outlives an input: the memories, and the port at whose socket programs greet.
struct Host {
  char directory[32] = "/tmp/softub-fuzz-XXXXXX";
  ipc::Fd memories[kMemories];
  ipc::LifeSign life;
  ShmPort port;
  ShareDoor* door = nullptr;

  Host() {
    rlimit limit;
    UB_ASSERT(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max > 3 * ShareDoor::kMaxHolders);
    limit.rlim_cur = limit.rlim_max;
    UB_ASSERT(setrlimit(RLIMIT_NOFILE, &limit) == 0 && mkdtemp(directory) != nullptr);
    std::string error;
    UB_ASSERT(life.begin(&error));
    for (ipc::Fd& memory : memories) memory = ipc::create_sealed_memfd("fuzz", kMemoryBytes, &error);
    port.set_door([this](ipc::Fd socket, const ShmPort::Wish& wish) {
      if (const auto* hello = std::get_if<ShareHello>(&wish)) return door->admit(std::move(socket), *hello);
      const ipc::LaneReply reply = ipc::make_lane_refusal("there are no lanes");
      ipc::send_message(socket.get(), std::as_bytes(std::span(&reply, 1)), {});
    });
    ShmPortOptions options;
    options.directory = directory;
    UB_ASSERT(port.open(options, std::span(&kEid, 1), kUasid, &error));
  }
  ~Host() {
    port.close();
    std::filesystem::remove_all(directory);
  }
};

// The door, what happens at it, and what must come of that.
class World {
 public:
  World(Host& host, bool crowded) : host_(host) {
    host.door = &*door_;
    door_->give_gates(host.life.reader());
    for (size_t i = 0; i < kPlaceCount; ++i) core_.turn(i);
    for (size_t i = 0; i < kPlaceCount - 1; ++i) offer(i, i != 1);
    const size_t programs = crowded ? ShareDoor::kMaxHolders - 2 : 0;
    while (programs_.size() < programs) greet(good_hello(0, programs_.size() % 2 == 0));
  }

  void run(Input& in) {
    while (!in.empty()) {
      step(in);
      UB_ASSERT(door_->has_pending() == !askers_.empty());
      UB_ASSERT(door_->wants(core_.revocations) == (!askers_.empty() || core_.revocations != seen_revocations_));
      read_all();
    }
    serve();
    for (size_t i = 0; i < kMemories; ++i) ask_who_holds(i);
  }
  // How many are open, and have a reason.
  size_t descriptors() const {
    const auto open = std::ranges::count_if(programs_, [](const Program& p) { return bool(p.socket); });
    return static_cast<size_t>(open) + holders_.size() + offers_.size();
  }
  void close() {
    door_.reset();
    for (Program& p : programs_) {
      p.at_nic = false;
      if (p.socket) p.read();
    }
  }

 private:
  struct Holder {
    Program* program;
    uint32_t segment;
    ShareRequest right;
    bool told;
  };

  // ---- what must come of what happens ----

  static void refuse(Program& p, Kind kind = Kind::kRefusal) {
    p.hear({kind});
    p.at_nic = false;
  }
  void come(Program& p, std::span<const std::byte> greeting) {
    if (greeting.empty()) return;  // the same as a hang-up
    ShareHello hello{};
    std::memcpy(&hello, greeting.data(), std::min(sizeof hello, greeting.size()));
    if (greeting.size() != sizeof hello || hello.magic != ipc::kShareMagic) return refuse(p, Kind::kOtherRefusal);
    const bool for_us = hello.wanted_eid == kEid.bytes && hello.wanted_uasid == kUasid;
    const bool speaks = hello.version == ipc::kShareVersion && hello.bytes == sizeof hello;
    if (!for_us || !speaks || askers_.size() == ShareDoor::kMaxHolders) return refuse(p);
    p.at_nic = true;
    askers_.emplace_back(&p, hello.request);
  }
  void answer(Program& p, ShareRequest r) {
    if (holders_.size() >= sweep_at_) {
      sweep();
      sweep_at_ = std::clamp(2 * holders_.size(), ShareDoor::kFewHolders, ShareDoor::kMaxHolders);
    }
    const auto offer = std::ranges::find_if(offers_, [&](const auto& o) { return core_.may(r, o.first, kAccessRead); });
    if (holders_.size() == ShareDoor::kMaxHolders || offer == offers_.end()) return refuse(p);
    const bool writes = r.writes != 0 && offer->second && core_.may(r, offer->first, kAccessWrite);
    r.writes = writes ? 1 : 0;
    r.atomics = writes && r.atomics != 0 && core_.may(r, offer->first, kAccessAtomic) ? 1 : 0;
    const int memory = host_.memories[SmallCore::place_of(offer->first).memory].get();
    const Kind kind = writes ? Kind::kToWrite : Kind::kToRead;
    p.at_nic = p.hear({kind, file_of(memory), r.places != 0, r.atomics != 0});
    if (p.at_nic) holders_.push_back({&p, offer->first, r, false});
  }
  void look() {
    std::erase_if(offers_, [this](const auto& offer) { return !core_.has(offer.first); });
    core_.forget();
    for (Holder& h : holders_) {
      const bool may_still = core_.may(h.right, h.segment, kAccessRead) &&
                             (h.right.writes == 0 || core_.may(h.right, h.segment, kAccessWrite)) &&
                             (h.right.atomics == 0 || core_.may(h.right, h.segment, kAccessAtomic));
      if (!may_still && !std::exchange(h.told, true)) h.program->hear({Kind::kNotice});
    }
  }
  void sweep() {
    std::erase_if(holders_, [](const Holder& h) {
      Program& p = *h.program;
      const size_t taken = std::min<size_t>(p.words, 16);
      p.words -= taken;
      p.at_nic = taken == 16 || !p.ended;
      return !p.at_nic;
    });
  }

  // ---- the owner and its NIC ----

  void offer(size_t place, bool writable) {
    const uint32_t segment = core_.segments[place].handle;
    if (segment == 0) return;
    SegmentConfig config;
    config.owner = SmallCore::kOwner;
    config.local_address = SmallCore::local_address(kPlaces[place]);
    config.length = kPlaces[place].length;
    UB_ASSERT(door_->offer(segment, config, host_.memories[kPlaces[place].memory].get(), writable));
    offers_[segment] = writable;
  }
  void serve() {
    if (std::exchange(seen_revocations_, core_.revocations) != core_.revocations) look();
    for (const auto& [program, request] : std::exchange(askers_, {})) answer(*program, request);
    door_->serve(core_.rights());
  }
  void ask_who_holds(size_t memory) {
    look();
    sweep();
    std::vector<std::pair<int, uint32_t>> wanted, found;
    for (const Holder& h : holders_) {
      if (h.right.places != 0) continue;  // nobody stays inside
      if (SmallCore::place_of(h.segment).memory == memory) wanted.emplace_back(h.right.process, h.told ? 1 : 0);
    }
    for (const ipc::ShareHolder& h : door_->holders(host_.memories[memory].get(), core_.rights())) {
      found.emplace_back(h.process, h.told);
    }
    std::ranges::sort(wanted);
    std::ranges::sort(found);
    UB_ASSERT(wanted == found && found.size() <= ShareDoor::kMaxHolders);
  }

  // ---- programs ----

  ShareHello good_hello(size_t place, bool writes) const {
    ShareRequest r{};
    r.address = kPlaces[place].address;
    r.length = kPlaces[place].length;
    r.token_id = kPlaces[place].token_id;
    r.token_value = core_.segments[place].token;
    r.token_required = 1;
    r.writes = writes ? 1 : 0;
    r.process = static_cast<int32_t>(programs_.size());
    return ipc::make_share_hello(kEid.bytes, kUasid, r);
  }
  void greet(const ShareHello& hello) {
    int ends[2];
    UB_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    programs_.emplace_back().socket = ipc::Fd(ends[0]);
    come(programs_.back(), std::as_bytes(std::span(&hello, 1)));
    door_->admit(ipc::Fd(ends[1]), hello);
  }
  void greet_port(Input& in, const ShareHello& hello) {
    const auto how = in.take<uint8_t>();
    Program& p = programs_.emplace_back();
    p.lazy = (how & 3) == 3;
    std::string error;
    UB_ASSERT(ipc::connect_unix(host_.port.path_of({kEid, kUasid}), &p.socket, &error) == ipc::SocketStatus::kOk);
    if ((how & 4) != 0) host_.port.poll_control();  // it is accepted before it speaks
    std::byte message[600] = {};
    size_t bytes = sizeof hello;
    std::memcpy(message, &hello, sizeof hello);
    if ((how & 8) != 0) {
      const uint32_t at = in.below(sizeof hello);
      message[at] = in.take<std::byte>();
    }
    if ((how & 48) == 48) in.take(message, bytes = in.take<uint16_t>() % sizeof message);
    const std::vector<int> fds(how >= 192 ? in.below(ipc::kMaxMessageFds + 1) : 0, host_.memories[0].get());
    const bool speaks = (how & 192) != 64;
    if (!speaks) p.hang_up();
    UB_ASSERT(!speaks || p.send(std::span(message).first(bytes), fds));
    come(p, std::span(message).first(speaks ? bytes : 0));
    host_.port.poll_control();
    UB_ASSERT(!host_.port.has_pending());  // whatever it said, it has no link
  }
  void ask(Input& in, size_t place) {
    const auto changes = in.take<uint8_t>();
    ShareHello hello = good_hello(place, (changes & 1) != 0);
    hello.request.places = (changes & 5) == 5 ? 1 : 0;
    hello.request.atomics = (changes & 8) != 0 ? 1 : 0;
    if ((changes & 6) == 6) hello.request.token_value = SmallCore::kToken + in.below(3);
    if ((changes & 24) == 24) hello.request.length -= in.take<uint8_t>();
    if ((changes & 96) == 96) hello.request.address += static_cast<uint64_t>(in.take<int8_t>());
    return changes < 128 ? greet(hello) : greet_port(in, hello);
  }
  void say(Input& in, Program& p) const {
    const std::vector<int> fds(in.below(3), host_.memories[0].get());
    const std::byte word[16] = {};
    for (uint32_t i = 1 + in.below(20); i != 0 && !p.lazy && !p.ended; --i) p.words += p.send(word, fds) ? 1 : 0;
  }
  static void stop(Input& in, Program& p) {
    const uint32_t how = in.below(3);
    if (how == 0) return p.hang_up();
    if (how == 1) shutdown(p.socket.get(), SHUT_WR);
    p.ended |= how == 1 || p.send({}, {});  // a message without a byte is the same as a hang-up
  }
  void read_all() {
    std::vector<Program*> readers;
    std::vector<pollfd> ends;
    for (Program& p : programs_) {
      if (!p.socket || p.lazy) continue;
      readers.push_back(&p);
      ends.push_back({p.socket.get(), POLLIN, 0});
    }
    while (poll(ends.data(), ends.size(), 0) < 0) UB_ASSERT(errno == EINTR);  // the fuzzer has a timer
    for (size_t i = 0; i < ends.size(); ++i) {
      Program& p = *readers[i];
      if (ends[i].revents != 0) p.read();
      UB_ASSERT(p.inbox.empty() && p.at_nic == bool(p.socket));
    }
  }

  void step(Input& in) {
    const size_t place = in.below(kPlaceCount);
    SmallCore::Segment& segment = core_.segments[place];
    const uint32_t which = in.below(32) + 1;  // from the end
    Program* p = which <= programs_.size() ? &programs_[programs_.size() - which] : nullptr;
    if (p != nullptr && !p->socket) p = nullptr;
    switch (in.below(16)) {
      default:
        return ask(in, place);
      case 6:
        return p != nullptr ? say(in, *p) : void();
      case 7:
        return p != nullptr ? stop(in, *p) : void();
      case 8:
        return core_.turn(place);
      case 9:
        segment.token = SmallCore::kToken + in.below(3);
        ++core_.revocations;
        return;
      case 10:
        segment.access = static_cast<uint8_t>(in.below(8) * kAccessRead);
        core_.revocations += in.below(2);  // without it, a peer revoked the token id
        return;
      case 11:
        return offer(place, in.below(2) != 0);
      case 12:
      case 13:
      case 14:
        return serve();
      case 15:
        return ask_who_holds(in.below(kMemories));
    }
  }

  Host& host_;
  std::optional<ShareDoor> door_{std::in_place};
  SmallCore core_;
  uint32_t seen_revocations_ = 0;
  size_t sweep_at_ = ShareDoor::kFewHolders;
  std::deque<Program> programs_;
  std::vector<std::pair<Program*, ShareRequest>> askers_;
  std::vector<Holder> holders_;
  std::map<uint32_t, bool> offers_;  // by segment: also to write?
};

size_t count_descriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}
// Threads that close what hostile programs sent may take their time.
void expect_descriptors(size_t wanted) {
  for (int tries = 0; count_descriptors() != wanted; ++tries) {
    UB_ASSERT(tries < 2000);
    usleep(1000);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1024) return 0;  // enough for 300 steps
  static Host host;
  const size_t before = count_descriptors();
  World world(host, crc32_final(crc32_update(crc32_init(), reinterpret_cast<const std::byte*>(data), size)) % 64 == 0);
  Input in(data, size);
  world.run(in);
  expect_descriptors(before + world.descriptors());
  world.close();
  expect_descriptors(before);
  return 0;
}
