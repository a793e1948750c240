// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/urma/fake_daemon.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "lib/ipc/unix_socket.h"
#include "lib/transport/core_types.h"

namespace ub::test {

using ipc::AppCall;

FakeDaemon::FakeDaemon() {
  char name[] = "/tmp/softub-test-XXXXXX";
  directory_ = mkdtemp(name);
  path_ = directory_ + "/daemon.sock";
  std::string error;
  listener_ = ipc::listen_unix(path_, &error);
  stop_ = ipc::Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  worker_bell_ = ipc::Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  int pair[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
  app_bell_ = ipc::Fd(pair[0]);
  app_bell_far_ = ipc::Fd(pair[1]);
  page_fd_ = ipc::create_sealed_memfd("test-page", sizeof(ipc::AppPage), &error);
  EXPECT_TRUE(page_.map(page_fd_.get(), sizeof(ipc::AppPage), &error)) << error;
  thread_ = std::thread([this] { serve(); });
}

FakeDaemon::~FakeDaemon() {
  uint64_t one = 1;
  EXPECT_EQ(write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  thread_.join();
  unlink(path_.c_str());
  rmdir(directory_.c_str());
}

void FakeDaemon::serve() {
  for (;;) {
    int connection;
    {
      std::lock_guard guard(mutex_);
      connection = connection_.get();
    }
    pollfd entries[] = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}, {connection, POLLIN, 0}};
    poll(entries, 3, -1);
    if (entries[0].revents != 0) return;
    std::lock_guard guard(mutex_);
    if (entries[1].revents != 0) connection_ = ipc::accept_unix(listener_.get());
    if (!connection_ || connection_.get() != connection) continue;
    ipc::AppRequest request;
    size_t bytes, fd_count;
    ipc::Fd fds[ipc::kMaxMessageFds];
    auto status = ipc::receive_message(connection_.get(), {reinterpret_cast<std::byte*>(&request), sizeof request},
                                       &bytes, fds, &fd_count);
    if (status == ipc::SocketStatus::kAgain) continue;
    if (status != ipc::SocketStatus::kOk) {
      connection_.reset();
      continue;
    }
    EXPECT_EQ(bytes, sizeof request);
    requests_.push_back(request);
    if (!mute.load() && !answer(request)) connection_.reset();
  }
}

// False: hang up.
bool FakeDaemon::answer(const ipc::AppRequest& request) {
  ipc::AppAnswer answer;
  std::memset(&answer, 0, sizeof answer);
  answer.number = request.number;
  std::string extra;
  std::vector<int> fds;
  ipc::Fd area;
  if (request.call == AppCall::kHello) {
    answer.instance.uasid = 0x12345678;
    answer.instance.mtu = 4096;
    answer.instance.eid_count = 1;
    answer.instance.eids[0][15] = 1;
    fds = {page_fd_.get(), worker_bell_.get(), app_bell_far_.get()};
    if (!refusal.empty()) {
      answer.status = static_cast<uint32_t>(Status::kNoMemory);
      std::strcpy(answer.text, refusal.c_str());
      fds.clear();
    }
  } else if (request.call == AppCall::kAddArea) {
    std::string error;
    area = ipc::create_sealed_memfd("test-area", request.bytes, &error);
    answer.id = ++last_id_;
    EXPECT_TRUE(areas_[answer.id].map(area.get(), request.bytes, &error)) << error;
    fds = {area.get()};
  } else {
    create(request, &answer);
  }
  if (on_call) on_call(request, &answer, &extra);
  send(answer, extra, fds);
  return true;
}

void FakeDaemon::create(const ipc::AppRequest& request, ipc::AppAnswer* answer) {
  switch (request.call) {
    case AppCall::kCreateJfc:
    case AppCall::kCreateJfr:
    case AppCall::kCreateJetty:
    case AppCall::kAllocToken:
    case AppCall::kAddTarget:
      answer->id = ++last_id_;
      answer->bell = answer->id - 900;
      break;
    case AppCall::kRegisterSegment:
      answer->segment = request.segment;
      answer->segment.handle = ++last_id_;
      break;
    case AppCall::kGetState:
      answer->value = static_cast<uint32_t>(QueueState::kReady);
      break;
    default:
      break;
  }
}

void FakeDaemon::send(ipc::AppAnswer& answer, const std::string& extra, const std::vector<int>& fds) {
  answer.head = {ipc::kAppCallMagic, version, static_cast<uint32_t>(sizeof answer + extra.size())};
  std::vector<std::byte> message(sizeof answer + extra.size());
  std::memcpy(message.data(), &answer, sizeof answer);
  std::memcpy(message.data() + sizeof answer, extra.data(), extra.size());
  ipc::send_message(connection_.get(), message, fds);
}

void FakeDaemon::say_goodbye(const std::string& sentence) {
  std::lock_guard guard(mutex_);
  ipc::AppAnswer answer;
  std::memset(&answer, 0, sizeof answer);
  std::strcpy(answer.text, sentence.c_str());
  send(answer, {}, {});
  end_connection();
}

void FakeDaemon::hang_up() {
  std::lock_guard guard(mutex_);
  end_connection();
}

// The thread that serves polls the socket, which keeps it open: the application is to hear of the end at once.
void FakeDaemon::end_connection() {
  shutdown(connection_.get(), SHUT_RDWR);
  connection_.reset();
}

std::vector<ipc::AppRequest> FakeDaemon::requests() {
  std::lock_guard guard(mutex_);
  return requests_;
}

size_t FakeDaemon::count(AppCall call) {
  std::lock_guard guard(mutex_);
  return static_cast<size_t>(
      std::count_if(requests_.begin(), requests_.end(), [&](const auto& r) { return r.call == call; }));
}

std::byte* FakeDaemon::at(uint32_t area, uint64_t offset) {
  std::lock_guard guard(mutex_);
  return areas_.at(area).data() + offset;
}

void FakeDaemon::ring() {
  if (!ipc::must_ring(page().app_sleeps)) return;
  uint64_t one = 1;
  EXPECT_EQ(::send(app_bell_.get(), &one, sizeof one, MSG_DONTWAIT), static_cast<ssize_t>(sizeof one));
}

bool FakeDaemon::was_rung() {
  uint64_t count;
  return read(worker_bell_.get(), &count, sizeof count) == sizeof count;
}

ipc::AgentOp& FakeDaemon::ask(ipc::AgentOpKind kind, const void* address, uint32_t bytes) {
  uint32_t n = page().ops_produced.load();
  ipc::AgentOp& op = page().ops[n % ipc::kAgentOps];
  op = {};
  op.kind = kind;
  op.address = reinterpret_cast<uint64_t>(address);
  op.bytes = bytes;
  page().ops_produced.store(n + 1, std::memory_order_seq_cst);
  ring();
  return op;
}

void FakeDaemon::raise(uint64_t object, uint32_t kind) {
  uint32_t n = page().events_produced.load();
  page().events[n % ipc::kAppEvents] = {object, kind, 0};
  page().events_produced.store(n + 1, std::memory_order_seq_cst);
  ring();
}

}  // namespace ub::test
