// SPDX-License-Identifier: Apache-2.0
// Memory that others of this host map: what its owner's NIC grants, tells and remembers (share_door.h), and how the
// memory is made (shareable_blocks.h).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "dataplane/share_door.h"
#include "lib/ipc/access_gate.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/unix_socket.h"
#include "lib/urma/backends/shareable_blocks.h"

namespace ub {
namespace {

constexpr size_t kBytes = 3 * 4096 - 10;
constexpr uint32_t kSegment = 17, kToken = 5;

// A Core of one segment.
struct Core {
  bool registered = true, readable = true, writable = true, has_atomics = true;
  uint32_t token = kToken;
  uint32_t revocations = 0;

  ShareDoor::Rights rights() {
    return {[this](const RemoteAccess& r) {
              const bool may = r.access == kAccessRead    ? readable
                               : r.access == kAccessWrite ? writable
                                                          : has_atomics;
              return registered && may && r.token_value == token && r.address == 0x1000 && r.bytes == kBytes ? kSegment
                                                                                                             : 0;
            },
            [this](Owner owner, uint32_t segment, uint64_t at) {
              return registered && owner == 3 && segment == kSegment && at == 0x2000;
            },
            revocations};
  }
};

struct Granted {
  ipc::Fd socket;
  ipc::Fd memory;
  ipc::ShareReply reply{};
  ipc::Mapping gate_page;  // of a NIC

  ipc::AccessGate& gate() const { return *reinterpret_cast<ipc::AccessGate*>(gate_page.data()); }
};

class ShareDoorTest : public testing::Test {
 protected:
  ShareDoorTest() {
    std::string why;
    memory = ipc::create_sealed_memfd("test", ipc::share_pages(kBytes), &why);
    EXPECT_TRUE(life.begin(&why)) << why;
    door.give_gates(life.reader());
  }
  bool offer(bool writable) {
    SegmentConfig config;
    config.owner = 3;
    config.local_address = 0x2000;
    config.length = kBytes;
    return door.offer(kSegment, config, memory.get(), writable);
  }
  static ipc::ShareRequest request(bool writes) {
    ipc::ShareRequest request{};
    request.address = 0x1000;
    request.length = kBytes;
    request.token_value = kToken;
    request.token_required = 1;
    request.writes = writes ? 1 : 0;
    request.process = 42;
    return request;
  }
  // What a NIC asks for, that will access the memory itself.
  static ipc::ShareRequest request_of_nic() {
    ipc::ShareRequest wanted = request(true);
    wanted.places = wanted.atomics = 1;
    return wanted;
  }
  void revoke() {
    core.token = kToken + 1;
    ++core.revocations;
    door.serve(core.rights());
  }
  // The program's end once the door has answered.
  Granted ask(const ipc::ShareRequest& wanted) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    Granted granted;
    granted.socket = ipc::Fd(ends[0]);
    door.admit(ipc::Fd(ends[1]), ipc::make_share_hello({}, 1, wanted));
    EXPECT_TRUE(door.has_pending());
    door.serve(core.rights());
    EXPECT_FALSE(door.has_pending());
    size_t bytes = 0, count = 0;
    ipc::Fd fds[ipc::kMaxMessageFds];
    const auto into = std::as_writable_bytes(std::span(&granted.reply, 1));
    EXPECT_EQ(ipc::receive_message(granted.socket.get(), into, &bytes, fds, &count), ipc::SocketStatus::kOk);
    EXPECT_EQ(bytes, sizeof granted.reply);
    EXPECT_EQ(count, granted.reply.refused ? 0u : 1u + 2 * wanted.places);
    granted.memory = std::move(fds[0]);
    std::string why;
    if (count == 3) {
      EXPECT_TRUE(granted.gate_page.map(fds[1].get(), ipc::AccessGate::kBytes, &why)) << why;
    }
    return granted;
  }
  static size_t open_descriptors() {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
  }
  static bool maps(const ipc::Fd& fd, int protection) {
    void* at = ::mmap(nullptr, 4096, protection, MAP_SHARED, fd.get(), 0);
    if (at != MAP_FAILED) ::munmap(at, 4096);
    return at != MAP_FAILED;
  }
  // What the program reads: a notice, nothing, or that the door has hung up.
  static std::optional<bool> notice(const Granted& granted) {
    ipc::ShareNotice said{};
    size_t bytes;
    bool had_fds;
    const auto status = ipc::receive_plain(granted.socket.get(), std::as_writable_bytes(std::span(&said, 1)), &bytes,
                                           &had_fds);
    if (status == ipc::SocketStatus::kAgain) return false;
    if (status == ipc::SocketStatus::kOk && said.magic == ipc::kShareMagic) return true;
    return std::nullopt;
  }

  ipc::Fd memory;
  Core core;
  ipc::LifeSign life;
  ShareDoor door;
};

TEST_F(ShareDoorTest, grants_what_the_core_and_the_owner_allow) {
  ASSERT_TRUE(offer(true));
  const Granted both = ask(request(true));
  EXPECT_EQ(both.reply.refused, 0u) << both.reply.text;
  EXPECT_EQ(both.reply.writable, 1u);
  EXPECT_TRUE(maps(both.memory, PROT_READ | PROT_WRITE));

  const Granted unwanted = ask(request(false));
  EXPECT_EQ(unwanted.reply.writable, 0u);
  EXPECT_TRUE(maps(unwanted.memory, PROT_READ));
  EXPECT_FALSE(maps(unwanted.memory, PROT_READ | PROT_WRITE));

  core.writable = false;
  const Granted not_permitted = ask(request(true));
  EXPECT_EQ(not_permitted.reply.refused, 0u);
  EXPECT_EQ(not_permitted.reply.writable, 0u);
  EXPECT_FALSE(maps(not_permitted.memory, PROT_READ | PROT_WRITE));
}

TEST_F(ShareDoorTest, an_owner_who_offers_for_reading_is_obeyed) {
  ASSERT_TRUE(offer(false));
  const Granted granted = ask(request(true));
  EXPECT_EQ(granted.reply.refused, 0u);
  EXPECT_EQ(granted.reply.writable, 0u);
  EXPECT_FALSE(maps(granted.memory, PROT_READ | PROT_WRITE));
}

TEST_F(ShareDoorTest, refuses_what_is_not_offered_or_not_allowed) {
  EXPECT_NE(std::string(ask(request(true)).reply.text).find("does not offer"), std::string::npos);
  ASSERT_TRUE(offer(true));
  auto wrong = request(true);
  wrong.token_value = kToken + 1;
  EXPECT_EQ(ask(wrong).reply.refused, 1u);
  core.readable = false;
  EXPECT_EQ(ask(request(true)).reply.refused, 1u) << "who may write and not read cannot map";
  EXPECT_TRUE(door.holders(memory.get(), core.rights()).empty());
}

TEST_F(ShareDoorTest, tells_holders_once_and_remembers_who_stays) {
  ASSERT_TRUE(offer(true));
  Granted one = ask(request(true)), two = ask(request(false));
  ASSERT_EQ(door.holders(memory.get(), core.rights()).size(), 2u);
  EXPECT_EQ(notice(one), false);

  core.token = kToken + 1;
  EXPECT_FALSE(door.wants(core.revocations));
  ASSERT_TRUE(door.wants(++core.revocations));
  door.serve(core.rights());
  EXPECT_FALSE(door.wants(core.revocations));
  EXPECT_EQ(notice(one), true);
  EXPECT_EQ(notice(two), true);
  ++core.revocations;
  door.serve(core.rights());
  EXPECT_EQ(notice(one), false) << "it was told before";

  one.socket.reset();
  const auto left = door.holders(memory.get(), core.rights());
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].process, 42);
  EXPECT_EQ(left[0].told, 1u);
}

TEST_F(ShareDoorTest, losing_the_right_to_write_ends_a_writable_mapping_alone) {
  ASSERT_TRUE(offer(true));
  const Granted writer = ask(request(true)), reader = ask(request(false));
  core.writable = false;
  ++core.revocations;
  door.serve(core.rights());
  EXPECT_EQ(notice(writer), true);
  EXPECT_EQ(notice(reader), false);
}

TEST_F(ShareDoorTest, an_offer_ends_with_its_segment) {
  ASSERT_TRUE(offer(true));
  core.registered = false;
  ++core.revocations;
  door.serve(core.rights());
  core.registered = true;  // a later one with the same number
  EXPECT_EQ(ask(request(true)).reply.refused, 1u);
}

TEST_F(ShareDoorTest, a_program_of_another_version_is_refused) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const ipc::Fd ours(ends[0]);
  ipc::ShareHello hello = ipc::make_share_hello({}, 1, request(true));
  ++hello.version;
  door.admit(ipc::Fd(ends[1]), hello);
  EXPECT_FALSE(door.has_pending());
  ipc::ShareReply reply{};
  size_t bytes;
  bool had_fds;
  ASSERT_EQ(ipc::receive_plain(ours.get(), std::as_writable_bytes(std::span(&reply, 1)), &bytes, &had_fds),
            ipc::SocketStatus::kOk);
  EXPECT_NE(std::string(reply.text).find("update the older"), std::string::npos);
}

// ---- NICs that access the memory themselves --------------------------------------------------------------------

TEST_F(ShareDoorTest, a_nic_gets_a_gate_that_closes_with_its_right) {
  ASSERT_TRUE(offer(true));
  const Granted nic = ask(request_of_nic());
  ASSERT_EQ(nic.reply.refused, 0u) << nic.reply.text;
  EXPECT_EQ(nic.reply.writable, 1u);
  EXPECT_EQ(nic.reply.atomics, 1u);
  ASSERT_TRUE(nic.gate().enter());
  nic.gate().leave();
  revoke();
  EXPECT_FALSE(nic.gate().enter());
  EXPECT_FALSE(nic.gate().is_inside());
  EXPECT_EQ(notice(nic), true);
}

TEST_F(ShareDoorTest, each_right_of_a_nic_is_its_own) {
  ASSERT_TRUE(offer(true));
  core.has_atomics = false;
  const Granted without = ask(request_of_nic());
  EXPECT_EQ(without.reply.writable, 1u);
  EXPECT_EQ(without.reply.atomics, 0u);
  core.has_atomics = true;
  const Granted with = ask(request_of_nic());
  core.has_atomics = false;
  ++core.revocations;
  door.serve(core.rights());
  EXPECT_TRUE(without.gate().enter());
  EXPECT_FALSE(with.gate().enter());
  core.writable = false;
  const Granted reader = ask(request_of_nic());
  EXPECT_EQ(reader.reply.writable, 0u);
  EXPECT_EQ(reader.reply.atomics, 0u);
  EXPECT_FALSE(maps(reader.memory, PROT_READ | PROT_WRITE));
}

TEST_F(ShareDoorTest, the_end_of_a_right_waits_for_who_is_inside) {
  ASSERT_TRUE(offer(true));
  const Granted nic = ask(request_of_nic());
  ASSERT_TRUE(nic.gate().enter());
  std::atomic<bool> left = false;
  std::thread visitor([&] {
    while (nic.gate().closed.load() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    left = true;
    nic.gate().leave();
  });
  revoke();
  EXPECT_TRUE(left);
  visitor.join();
  EXPECT_TRUE(door.holders(memory.get(), core.rights()).empty());
}

TEST_F(ShareDoorTest, who_stays_inside_is_named) {
  ASSERT_TRUE(offer(true));
  Granted nic = ask(request_of_nic());
  EXPECT_TRUE(door.holders(memory.get(), core.rights()).empty()) << "a gate can be closed at any time";
  ASSERT_TRUE(nic.gate().enter());
  revoke();
  const auto left = door.holders(memory.get(), core.rights());
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].process, 42);
  EXPECT_EQ(left[0].told, 1u);
  nic.socket.reset();  // it was killed
  EXPECT_TRUE(door.holders(memory.get(), core.rights()).empty());
}

TEST_F(ShareDoorTest, nobody_waits_for_one_who_was_killed_inside) {
  ASSERT_TRUE(offer(true));
  Granted nic = ask(request_of_nic());
  ASSERT_TRUE(nic.gate().enter());
  nic.socket.reset();
  revoke();
  EXPECT_TRUE(nic.gate().is_inside());
  EXPECT_TRUE(door.holders(memory.get(), core.rights()).empty());
}

TEST_F(ShareDoorTest, many_who_came_and_went_leave_nothing) {
  ASSERT_TRUE(offer(true));
  const size_t before = open_descriptors();
  for (int i = 0; i < 300; ++i) ask(request_of_nic());
  EXPECT_LT(open_descriptors(), before + 2 * ShareDoor::kFewHolders + 2);
}

TEST_F(ShareDoorTest, accesses_are_counted_once) {
  ASSERT_TRUE(offer(true));
  Granted one = ask(request_of_nic()), two = ask(request_of_nic());
  ipc::AccessGate::add(one.gate().writes, 3);
  ipc::AccessGate::add(one.gate().bytes, 300);
  ipc::AccessGate::add(two.gate().reads, 2);
  ipc::AccessGate::add(two.gate().atomics, 1);
  ShareDoor::Accesses taken = door.take_accesses();
  EXPECT_EQ(taken.requests, 6u);
  EXPECT_EQ(taken.bytes, 300u);
  EXPECT_EQ(door.take_accesses().requests, 0u);
  ipc::AccessGate::add(one.gate().writes, 1);
  one.socket.reset();  // what it did counts, though it is gone
  door.holders(memory.get(), core.rights());
  taken = door.take_accesses();
  EXPECT_EQ(taken.requests, 1u);
  EXPECT_EQ(taken.bytes, 0u);
}

TEST_F(ShareDoorTest, an_owner_who_gives_no_gates_says_so) {
  ASSERT_TRUE(offer(true));
  door.give_gates(-1);
  const Granted nic = ask(request_of_nic());
  EXPECT_NE(std::string(nic.reply.text).find("shm_place"), std::string::npos);
  EXPECT_EQ(ask(request(true)).reply.refused, 0u) << "windows need none";
}

TEST_F(ShareDoorTest, all_gates_close_with_the_door) {
  ASSERT_TRUE(offer(true));
  const Granted nic = ask(request_of_nic());
  ASSERT_TRUE(nic.gate().enter());
  nic.gate().leave();
  std::destroy_at(&door);
  EXPECT_FALSE(nic.gate().enter());
  std::construct_at(&door);
}

// One end goes in and out, the other closes: when the gate is closed and nobody inside, nothing happens any more.
TEST(AccessGate, nothing_passes_once_it_was_waited_for) {
  for (int round = 0; round < 300; ++round) {
    auto gate = std::make_unique<ipc::AccessGate>();
    std::atomic<uint64_t> done = 0;
    std::atomic<bool> started = false;
    std::thread visitor([&] {
      started = true;
      while (gate->enter()) {
        done.fetch_add(1, std::memory_order_relaxed);
        gate->leave();
      }
    });
    while (!started) std::this_thread::yield();
    gate->close();
    while (gate->is_inside()) std::this_thread::yield();
    const uint64_t then = done.load();
    visitor.join();
    ASSERT_EQ(done.load(), then) << "round " << round;
  }
}

// ---- memory ----------------------------------------------------------------------------------------------------

class ShareableBlocksTest : public testing::Test {
 protected:
  // As somebody who gets the descriptor would.
  bool can_write(const std::byte* block) {
    const ipc::Fd fd = blocks->memory_of(block);
    void* at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at != MAP_FAILED) ::munmap(at, 4096);
    return at != MAP_FAILED;
  }
  std::shared_ptr<urma::ShareableBlocks> blocks = std::make_shared<urma::ShareableBlocks>();
};

TEST_F(ShareableBlocksTest, sealed_when_the_owner_has_mapped_it) {
  const auto readable = blocks->allocate(kBytes, false), writable = blocks->allocate(kBytes, true);
  ASSERT_NE(readable, nullptr);
  ASSERT_NE(writable, nullptr);
  EXPECT_FALSE(can_write(readable.get()));
  EXPECT_TRUE(can_write(writable.get()));
  readable.get()[kBytes - 1] = std::byte{1};
  EXPECT_EQ(readable.get()[0], std::byte{0});
  for (const auto& block : {readable, writable}) {
    const ipc::Fd fd = blocks->memory_of(block.get());
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    EXPECT_EQ(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    EXPECT_NE(::ftruncate(fd.get(), 0), 0);
  }
  const ipc::Fd sealed = blocks->memory_of(readable.get());
  EXPECT_NE(::fallocate(sealed.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
}

TEST_F(ShareableBlocksTest, only_all_of_a_block_is_offered) {
  const auto block = blocks->allocate(kBytes, true);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(blocks->share_of(block.get(), kBytes));
  EXPECT_TRUE(blocks->share_of(block.get(), ipc::share_pages(kBytes)));
  EXPECT_FALSE(blocks->share_of(block.get(), ipc::share_pages(kBytes) + 1));
  EXPECT_FALSE(blocks->share_of(block.get(), 4096));
  EXPECT_FALSE(blocks->share_of(block.get() + 4096, kBytes - 4096));
  EXPECT_FALSE(blocks->memory_of(block.get() + 1));
}

TEST_F(ShareableBlocksTest, forgotten_with_its_last_user) {
  auto block = blocks->allocate(1, false);
  const std::byte* at = block.get();
  EXPECT_TRUE(blocks->memory_of(at));
  block.reset();
  EXPECT_FALSE(blocks->memory_of(at));
}

TEST_F(ShareableBlocksTest, a_descriptor_for_reading_stays_one) {
  const auto block = blocks->allocate(kBytes, true);
  std::string why;
  const ipc::Fd reader = ipc::reopen_to_read(blocks->memory_of(block.get()).get(), &why);
  ASSERT_TRUE(reader) << why;
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reader.get(), 0), MAP_FAILED);
  EXPECT_NE(::fallocate(reader.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
}

}  // namespace
}  // namespace ub
