// SPDX-License-Identifier: Apache-2.0
// The C++ interface of RoCE, on a NIC that talks to itself: objects, posting, waiting, events, and what is refused.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "lib/roce/connection.h"

namespace ub::verbs {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
constexpr seconds kLong{30};
constexpr uint32_t kToInit = roce::kQpPkey | roce::kQpPort | roce::kQpAccess;
constexpr uint32_t kToRtr = roce::kQpPath | roce::kQpMtu | roce::kQpDestination | roce::kQpReceivePsn |
                            roce::kQpReadsServed | roce::kQpRnrTimer;
constexpr uint32_t kToRts =
    roce::kQpSendPsn | roce::kQpTimeout | roce::kQpRetries | roce::kQpRnrRetries | roce::kQpReadsInFlight;
constexpr uint32_t kAll = kRemoteWrite | kRemoteRead | kRemoteAtomic;

// Of all instances of this program, also those of tests without the fixture.
struct Directory {
  Directory() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path = testing::TempDir() + "softub-verbs-XXXXXX";
};

class VerbsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("SOFTUB_PORT_KINDS", "shm", 1);
    setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 1);
    static const Directory directory;
    setenv("SOFTUB_PORT_SHM_DIR", directory.path.c_str(), 1);
  }

  void SetUp() override {
    std::string error;
    device = Device::open([](const std::string&) {}, &error);
    ASSERT_NE(device, nullptr) << error;
    ASSERT_EQ(ProtectionDomain::create(*device, &domain), Status::kOk);
    ASSERT_EQ(CompletionQueue::create(*device, 64, &queue), Status::kOk);
    ASSERT_EQ(MemoryRegion::create(*domain, memory.data(), memory.size(), kLocalWrite | kAll, &region), Status::kOk);
    own = device->gids().at(0);
    std::string why;
    ASSERT_TRUE(device->find_path(own, own, &path, &why)) << why;
  }

  QpInitAttributes usual() {
    QpInitAttributes init;
    init.send_cq = init.recv_cq = queue.get();
    init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
    init.sq_sig_all = true;
    return init;
  }
  std::unique_ptr<QueuePair> make(const QpInitAttributes& init) {
    std::unique_ptr<QueuePair> qp;
    EXPECT_EQ(QueuePair::create(*domain, init, &qp), Status::kOk);
    return qp;
  }
  void init(QueuePair& qp) {
    QpAttributes to;
    to.qp_state = QpState::kInit;
    to.qp_access_flags = kAll;
    EXPECT_EQ(qp.modify(to, kToInit), Status::kOk);
  }
  void to_rts(QueuePair& qp, const QueuePair& peer, uint32_t to_rtr = kToRtr, uint32_t to_rts = kToRts) {
    init(qp);
    QpAttributes to;
    to.ah_attr = path;
    to.path_mtu = 3;
    to.dest_qp_num = peer.qp_num();
    to.max_rd_atomic = to.max_dest_rd_atomic = 4;
    to.timeout = 14;
    to.min_rnr_timer = 1;  // 10 us
    to.retry_cnt = to.rnr_retry = 7;
    to.qp_state = QpState::kRtr;
    EXPECT_EQ(qp.modify(to, to_rtr), Status::kOk);
    to.qp_state = QpState::kRts;
    EXPECT_EQ(qp.modify(to, to_rts), Status::kOk);
  }
  Sge range(size_t at, uint32_t bytes) const {
    return {reinterpret_cast<uintptr_t>(memory.data() + at), bytes, region->lkey()};
  }
  SendRequest write(const Sge& from, size_t to) const {
    SendRequest r;
    r.sg_list = std::span(&from, 1);
    r.opcode = WrOpcode::kRdmaWrite;
    r.remote_addr = reinterpret_cast<uintptr_t>(memory.data() + to);
    r.rkey = region->rkey();
    return r;
  }
  // Blocks for each.
  std::vector<WorkCompletion> take(CompletionQueue& from, size_t count) {
    std::vector<WorkCompletion> all;
    while (all.size() < count && from.wait(kLong)) {
      WorkCompletion some[4];
      const size_t n = from.poll(some);
      all.insert(all.end(), some, some + n);
    }
    EXPECT_EQ(all.size(), count);
    all.resize(count);
    return all;
  }

  alignas(8) std::array<unsigned char, 8192> memory{};
  std::unique_ptr<Device> device;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionQueue> queue;
  std::unique_ptr<MemoryRegion> region;
  Gid own;
  AhAttributes path;
};

TEST_F(VerbsTest, waiting_is_woken_by_completions) {
  std::unique_ptr<CompletionQueue> other;
  ASSERT_EQ(CompletionQueue::create(*device, 16, &other), Status::kOk);
  QpInitAttributes attributes = usual();
  auto a = make(attributes);
  attributes.send_cq = attributes.recv_cq = other.get();
  auto b = make(attributes);
  to_rts(*a, *b);
  to_rts(*b, *a);
  EXPECT_FALSE(queue->wait(milliseconds(1)));
  constexpr int kRounds = 200;
  std::thread echo([&] {
    for (uint32_t i = 0; i < kRounds; ++i) {
      const Sge to = range(1000, 8), from = range(1000, 8);
      ReceiveRequest receive;
      receive.sg_list = std::span(&to, 1);
      EXPECT_EQ(b->post_recv(receive), Status::kOk);
      EXPECT_EQ(take(*other, 1)[0].opcode, WcOpcode::kRecv);
      SendRequest back = write(from, 2000);
      EXPECT_EQ(b->post_send(back), Status::kOk);
      EXPECT_EQ(take(*other, 1)[0].opcode, WcOpcode::kRdmaWrite);
    }
  });
  for (uint32_t i = 0; i < kRounds; ++i) {
    std::memcpy(memory.data(), &i, sizeof i);
    const Sge from = range(0, 8);
    SendRequest there;
    there.wr_id = i;
    there.sg_list = std::span(&from, 1);
    EXPECT_EQ(a->post_send(there), Status::kOk);
    const WorkCompletion done = take(*queue, 1)[0];
    EXPECT_EQ(done.status, WcStatus::kSuccess) << wc_status_name(done.status);
    EXPECT_EQ(done.wr_id, i);
    EXPECT_EQ(done.qp_num, a->qp_num());
    const std::atomic_ref<uint32_t> echoed(*reinterpret_cast<uint32_t*>(memory.data() + 2000));
    while (echoed.load() != i) device->drive();
  }
  echo.join();
}

TEST_F(VerbsTest, every_operation) {
  auto a = make(usual()), b = make(usual());
  to_rts(*a, *b);
  to_rts(*b, *a);
  std::fill_n(memory.begin(), 100, static_cast<unsigned char>(7));
  const Sge two[] = {range(0, 40), range(40, 60)};
  SendRequest r = write(two[0], 1000);
  r.sg_list = two;
  EXPECT_EQ(a->post_send(r), Status::kOk);
  EXPECT_EQ(take(*queue, 1)[0].opcode, WcOpcode::kRdmaWrite);
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 100, memory.begin() + 1000));

  const Sge sink = range(3000, 100);
  r = write(sink, 1000);
  r.opcode = WrOpcode::kRdmaRead;
  EXPECT_EQ(a->post_send(r), Status::kOk);
  EXPECT_EQ(take(*queue, 1)[0].opcode, WcOpcode::kRdmaRead);
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 100, memory.begin() + 3000));

  const Sge old = range(4000, 8);
  r = write(old, 5000);
  r.opcode = WrOpcode::kAtomicFetchAndAdd;
  r.compare_add = 5;
  EXPECT_EQ(a->post_send(r), Status::kOk);
  r.opcode = WrOpcode::kAtomicCmpAndSwp;
  r.swap = 9;
  EXPECT_EQ(a->post_send(r), Status::kOk);
  take(*queue, 2);
  EXPECT_EQ(memory[4000], 5);
  EXPECT_EQ(memory[5000], 9);

  const Sge receive = range(6000, 200);
  ReceiveRequest wanted;
  wanted.wr_id = 77;
  wanted.sg_list = std::span(&receive, 1);
  EXPECT_EQ(b->post_recv(wanted), Status::kOk);
  r = write(two[0], 1000);
  r.opcode = WrOpcode::kSendWithImm;
  r.send_flags = kSendInline | kSendSolicited;
  r.imm_data = 0xABCD;
  EXPECT_EQ(a->post_send(r), Status::kOk);
  auto both = take(*queue, 2);
  if (both[0].opcode != WcOpcode::kRecv) std::swap(both[0], both[1]);
  EXPECT_EQ(both[0].wr_id, 77u);
  EXPECT_EQ(both[0].byte_len, 40u);
  EXPECT_EQ(both[0].imm_data, 0xABCDu);
  EXPECT_EQ(both[0].wc_flags, uint32_t{kWcWithImm});
  EXPECT_EQ(both[0].src_qp, a->qp_num());
  EXPECT_EQ(both[1].opcode, WcOpcode::kSend);
}

TEST_F(VerbsTest, an_error_is_told_and_flushes_both_queues) {
  QpInitAttributes attributes = usual();
  attributes.qp_context = 4711;
  auto a = make(attributes), b = make(usual());
  to_rts(*a, *b);
  to_rts(*b, *a);
  const Sge from = range(0, 8), to = range(100, 8);
  ReceiveRequest receive;
  receive.wr_id = 5;
  receive.sg_list = std::span(&to, 1);
  EXPECT_EQ(a->post_recv(receive), Status::kOk);
  SendRequest r = write(from, 1000);
  r.rkey ^= 1;
  EXPECT_EQ(a->post_send(r), Status::kOk);
  const auto failed = take(*queue, 2);
  EXPECT_EQ(failed[0].status, WcStatus::kRemAccessErr);
  EXPECT_EQ(failed[1].status, WcStatus::kWrFlushErr);
  EXPECT_EQ(failed[1].wr_id, 5u);
  EXPECT_EQ(failed[1].qp_num, a->qp_num());
  std::vector<uint64_t> told;
  while (told.size() < 2) {
    const auto event = device->wait_async_event(kLong);
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->kind, AsyncEventKind::kQpFatal);
    told.push_back(event->object);
  }
  EXPECT_EQ(std::count(told.begin(), told.end(), 4711), 1);
  EXPECT_FALSE(device->poll_async_event().has_value());
  EXPECT_EQ(a->post_send(r), Status::kOk);
  EXPECT_EQ(a->post_recv(receive), Status::kOk);
  for (const WorkCompletion& w : take(*queue, 2)) EXPECT_EQ(w.status, WcStatus::kWrFlushErr);
}

TEST_F(VerbsTest, datagrams_and_their_error_state) {
  QpInitAttributes attributes = usual();
  attributes.qp_type = QpType::kUd;
  auto a = make(attributes);
  QpAttributes to;
  to.qp_state = QpState::kInit;
  to.qkey = 0x1234;
  EXPECT_EQ(a->modify(to, roce::kQpPkey | roce::kQpPort | roce::kQpQkey), Status::kOk);
  to.qp_state = QpState::kRtr;
  EXPECT_EQ(a->modify(to, 0), Status::kOk);
  to.qp_state = QpState::kRts;
  EXPECT_EQ(a->modify(to, roce::kQpSendPsn), Status::kOk);
  std::unique_ptr<AddressHandle> ah;
  ASSERT_EQ(AddressHandle::create(*domain, path, &ah), Status::kOk);
  const Sge from = range(0, 10), big = range(0, 5000), receive = range(1000, 100);
  ReceiveRequest wanted;
  wanted.sg_list = std::span(&receive, 1);
  EXPECT_EQ(a->post_recv(wanted), Status::kOk);
  SendRequest r;
  r.sg_list = std::span(&from, 1);
  EXPECT_EQ(a->post_send(r), Status::kInvalid);  // to whom?
  r.ah = ah.get();
  r.remote_qpn = a->qp_num();
  r.remote_qkey = 0x1234;
  EXPECT_EQ(a->post_send(r), Status::kOk);
  for (const WorkCompletion& w : take(*queue, 2)) {
    EXPECT_EQ(w.status, WcStatus::kSuccess);
    if (w.opcode != WcOpcode::kRecv) continue;
    EXPECT_EQ(w.byte_len, 50u);
    EXPECT_EQ(w.wc_flags, uint32_t{kWcGrh});
    EXPECT_EQ(w.src_gid, own);
  }
  r.sg_list = std::span(&big, 1);
  EXPECT_EQ(a->post_send(r), Status::kOk);
  EXPECT_EQ(take(*queue, 1)[0].status, WcStatus::kLocLenErr);
  QpAttributes now;
  EXPECT_EQ(a->query(&now), Status::kOk);
  EXPECT_EQ(now.qp_state, QpState::kSqe);
  EXPECT_EQ(a->modify(to, 0), Status::kOk);
}

TEST_F(VerbsTest, unreliable_connections) {
  constexpr uint32_t kUcToRtr = roce::kQpPath | roce::kQpMtu | roce::kQpDestination | roce::kQpReceivePsn;
  QpInitAttributes attributes = usual();
  attributes.qp_type = QpType::kUc;
  auto a = make(attributes), b = make(attributes);
  to_rts(*a, *b, kUcToRtr, roce::kQpSendPsn);
  to_rts(*b, *a, kUcToRtr, roce::kQpSendPsn);
  for (size_t i = 0; i < 3000; ++i) memory[i] = static_cast<unsigned char>(i * 7);
  const Sge from = range(0, 3000), receive = range(4000, 3000);
  ReceiveRequest wanted;
  wanted.sg_list = std::span(&receive, 1);
  EXPECT_EQ(b->post_recv(wanted), Status::kOk);
  SendRequest r = write(from, 4000);
  r.opcode = WrOpcode::kRdmaRead;
  EXPECT_EQ(a->post_send(r), Status::kInvalid);
  r.opcode = WrOpcode::kSendWithInv;
  EXPECT_EQ(a->post_send(r), Status::kInvalid);
  r.opcode = WrOpcode::kSend;
  EXPECT_EQ(a->post_send(r), Status::kOk);
  for (const WorkCompletion& w : take(*queue, 2)) {
    EXPECT_EQ(w.status, WcStatus::kSuccess);
    EXPECT_EQ(w.byte_len, 3000u);
  }
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 3000, memory.begin() + 4000));
}

TEST_F(VerbsTest, connections_are_made_and_parted) {
  auto a = make(usual()), b = make(usual());
  init(*a);
  init(*b);
  ConnectionId server(*device), client(*device), connection(*device);
  EXPECT_EQ(server.listen(0), Status::kInvalid);
  ASSERT_EQ(server.listen(7000), Status::kOk);
  EXPECT_EQ(server.listen(7001), Status::kBusy);
  EXPECT_FALSE(client.wait_event(milliseconds(1)).has_value());
  const std::byte hello[] = {std::byte{42}};
  ConnectionParameters parameters;
  parameters.private_data = hello;
  ASSERT_EQ(client.connect(*a, path, 7000, parameters), Status::kOk);
  const auto request = server.wait_event(kLong);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->kind, ConnectionEventKind::kConnectRequest);
  EXPECT_EQ(request->private_data[0], std::byte{42});
  ASSERT_EQ(connection.accept(*request, *b, {}), Status::kOk);
  EXPECT_EQ(client.wait_event(kLong)->kind, ConnectionEventKind::kEstablished);
  EXPECT_EQ(connection.wait_event(kLong)->kind, ConnectionEventKind::kEstablished);
  EXPECT_EQ(client.disconnect(), Status::kOk);
  EXPECT_EQ(connection.wait_event(kLong)->kind, ConnectionEventKind::kDisconnected);
  EXPECT_EQ(client.wait_event(kLong)->kind, ConnectionEventKind::kDisconnected);
  EXPECT_EQ(client.disconnect(), Status::kInvalid);
}

TEST_F(VerbsTest, a_connection_that_is_given_up_leaves_its_id_free) {
  auto a = make(usual()), b = make(usual());
  init(*a);
  init(*b);
  ConnectionId server(*device), client(*device), connection(*device);
  ASSERT_EQ(server.listen(7000), Status::kOk);
  ASSERT_EQ(client.connect(*a, path, 7000, {}), Status::kOk);
  EXPECT_EQ(client.connect(*a, path, 7000, {}), Status::kBusy);
  ASSERT_TRUE(server.wait_event(kLong).has_value());
  EXPECT_EQ(client.disconnect(), Status::kOk);
  EXPECT_EQ(client.disconnect(), Status::kInvalid);
  ASSERT_EQ(client.connect(*a, path, 7000, {}), Status::kOk);
  const auto request = server.wait_event(kLong);
  ASSERT_TRUE(request.has_value());
  ASSERT_EQ(connection.accept(*request, *b, {}), Status::kOk);
  const auto event = client.wait_event(nanoseconds::max());
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, ConnectionEventKind::kEstablished);
}

TEST_F(VerbsTest, each_of_many_threads_hears_of_its_connection) {
  constexpr int kThreads = 8, kRounds = 20;
  ConnectionId server(*device);
  ASSERT_EQ(server.listen(7000), Status::kOk);
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        auto a = make(usual());
        init(*a);
        ConnectionId client(*device);
        ASSERT_EQ(client.connect(*a, path, 7000, {}), Status::kOk);
        const auto event = client.wait_event(nanoseconds::max());
        ASSERT_TRUE(event.has_value());
        refused += event->kind == ConnectionEventKind::kRejected;
      }
    });
  }
  for (int n = 0; n < kThreads * kRounds; ++n) {
    const auto request = server.wait_event(nanoseconds::max());
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(server.reject(*request, {}), Status::kOk);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, kThreads * kRounds);
}

TEST_F(VerbsTest, access_has_the_bits_of_verbs) {
  auto a = make(usual()), b = make(usual());
  to_rts(*a, *b);
  to_rts(*b, *a);
  QpAttributes to;
  to.qp_state = QpState::kRts;
  to.qp_access_flags = kRemoteRead;
  EXPECT_EQ(b->modify(to, roce::kQpAccess), Status::kOk);
  EXPECT_EQ(b->query(&to), Status::kOk);
  EXPECT_EQ(to.qp_access_flags, kRemoteRead);
  to.qp_access_flags = 16;
  EXPECT_EQ(b->modify(to, roce::kQpAccess), Status::kInvalid);
  const Sge from = range(0, 8);
  SendRequest r = write(from, 1000);
  r.opcode = WrOpcode::kRdmaRead;
  EXPECT_EQ(a->post_send(r), Status::kOk);
  EXPECT_EQ(take(*queue, 1)[0].status, WcStatus::kSuccess);
  EXPECT_EQ(a->post_send(write(from, 1000)), Status::kOk);
  EXPECT_EQ(take(*queue, 1)[0].status, WcStatus::kRemInvReqErr);
}

TEST_F(VerbsTest, nobody_listens) {
  auto a = make(usual());
  init(*a);
  ConnectionId client(*device);
  ASSERT_EQ(client.connect(*a, path, 7000, {}), Status::kOk);
  EXPECT_EQ(client.wait_event(kLong)->kind, ConnectionEventKind::kRejected);
}

TEST_F(VerbsTest, what_cannot_be_is_refused_and_changes_nothing) {
  std::unique_ptr<CompletionQueue> none;
  EXPECT_EQ(CompletionQueue::create(*device, 0, &none), Status::kInvalid);
  std::unique_ptr<QueuePair> qp;
  for (auto spoil : std::vector<std::function<void(QpInitAttributes&)>>{
           [](QpInitAttributes& i) { i.send_cq = nullptr; }, [](QpInitAttributes& i) { i.cap.max_send_wr = 0; },
           [](QpInitAttributes& i) { i.cap.max_send_sge = 1000; },
           [](QpInitAttributes& i) { i.cap.max_inline_data = 1 << 20; },
           [](QpInitAttributes& i) { i.qp_type = static_cast<QpType>(3); }}) {
    QpInitAttributes attributes = usual();
    spoil(attributes);
    EXPECT_EQ(QueuePair::create(*domain, attributes, &qp), Status::kInvalid);
    EXPECT_EQ(qp, nullptr);
  }
  std::unique_ptr<MemoryRegion> empty;
  EXPECT_EQ(MemoryRegion::create(*domain, memory.data(), 0, kAll, &empty), Status::kInvalid);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* pages = mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  EXPECT_EQ(MemoryRegion::create(*domain, pages, 2 * page, kRemoteWrite, &empty), Status::kInvalid);
  EXPECT_EQ(MemoryRegion::create(*domain, pages, 2 * page, kRemoteRead, &empty), Status::kOk);
  empty.reset();
  munmap(static_cast<char*>(pages) + page, page);
  EXPECT_EQ(MemoryRegion::create(*domain, pages, 2 * page, kRemoteRead, &empty), Status::kInvalid);
  munmap(pages, page);
  AhAttributes nowhere = path;
  nowhere.link = 1000;
  std::unique_ptr<AddressHandle> ah;
  EXPECT_EQ(AddressHandle::create(*domain, nowhere, &ah), Status::kInvalid);

  auto a = make(usual()), b = make(usual());
  to_rts(*a, *b);
  to_rts(*b, *a);
  const Sge three[] = {range(0, 1), range(1, 1), range(2, 1)}, large = range(0, 65);
  SendRequest r = write(three[0], 100);
  r.sg_list = three;
  EXPECT_EQ(a->post_send(r), Status::kInvalid);
  r.sg_list = std::span(&large, 1);
  r.send_flags = kSendInline;
  EXPECT_EQ(a->post_send(r), Status::kInvalid);
  r.send_flags = 0;
  r.opcode = WrOpcode::kAtomicFetchAndAdd;
  EXPECT_EQ(a->post_send(r), Status::kInvalid);
  EXPECT_FALSE(queue->wait(milliseconds(1)));
}

TEST_F(VerbsTest, a_full_queue_says_so) {
  auto a = make(usual()), b = make(usual());
  to_rts(*a, *b);
  const Sge from = range(0, 8);  // the peer does not answer yet
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a->post_send(write(from, 1000)), Status::kOk);
  EXPECT_EQ(a->post_send(write(from, 1000)), Status::kBusy);
  to_rts(*b, *a);
  for (const WorkCompletion& w : take(*queue, 4)) EXPECT_EQ(w.status, WcStatus::kSuccess);
  EXPECT_EQ(a->post_send(write(from, 1000)), Status::kOk);
}

TEST_F(VerbsTest, objects_of_two_devices_do_not_mix) {
  std::string error;
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.2", 1);
  auto second = Device::open([](const std::string&) {}, &error);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 1);
  ASSERT_NE(second, nullptr) << error;
  std::unique_ptr<ProtectionDomain> elsewhere;
  ASSERT_EQ(ProtectionDomain::create(*second, &elsewhere), Status::kOk);
  std::unique_ptr<QueuePair> qp;
  EXPECT_EQ(QueuePair::create(*elsewhere, usual(), &qp), Status::kInvalid);
  std::unique_ptr<SharedReceiveQueue> shared;
  ASSERT_EQ(SharedReceiveQueue::create(*elsewhere, 4, 1, &shared), Status::kOk);
  QpInitAttributes attributes = usual();
  attributes.srq = shared.get();
  EXPECT_EQ(QueuePair::create(*domain, attributes, &qp), Status::kInvalid);
}

TEST(VerbsDevice, without_the_udp_port_nobody_could_reach_it) {
  setenv("SOFTUB_PORT_KINDS", "udp", 1);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.77", 1);
  const auto notice = [](const std::string&) {};
  std::string error = "left over";
  const auto first = Device::open(notice, &error);
  ASSERT_NE(first, nullptr) << error;
  EXPECT_EQ(error, "");
  EXPECT_EQ(first->active_mtu(), 5);  // of the loopback interface, as 127.0.0.1
  EXPECT_EQ(Device::open(notice, &error), nullptr);
  EXPECT_NE(error.find("4791"), std::string::npos) << error;
  unsetenv("SOFTUB_DEVICE_EIDS");
  unsetenv("SOFTUB_PORT_KINDS");
}

TEST(VerbsDevice, without_the_udp_port_sockets_lead_nowhere) {
  const int holder = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(4791);
  inet_pton(AF_INET, "127.0.0.78", &at.sin_addr);
  ASSERT_EQ(bind(holder, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  setenv("SOFTUB_PORT_KINDS", "shm,udp", 1);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.78", 1);
  std::string error, why;
  const auto there = Device::open([](const std::string&) {}, &error);
  ASSERT_NE(there, nullptr) << error;  // for shared memory
  AhAttributes path;
  EXPECT_FALSE(there->find_path(there->gids()[0], Gid::from_v4(0x7F00004F), &path, &why));
  EXPECT_NE(why.find("no RoCE at 127.0.0.78"), std::string::npos) << why;
  close(holder);
  unsetenv("SOFTUB_DEVICE_EIDS");
  unsetenv("SOFTUB_PORT_KINDS");
}

TEST(VerbsDevice, a_bad_configuration_is_explained) {
  setenv("SOFTUB_PORT_KINDS", "pigeon", 1);
  std::string error;
  EXPECT_EQ(Device::open([](const std::string&) {}, &error), nullptr);
  EXPECT_NE(error.find("pigeon"), std::string::npos) << error;
  unsetenv("SOFTUB_PORT_KINDS");
}

}  // namespace
}  // namespace ub::verbs
