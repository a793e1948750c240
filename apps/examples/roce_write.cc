// SPDX-License-Identifier: Apache-2.0
//
// RoCEv2 by the C++ interface: a client finds a server by RDMA-CM, writes a text into its memory and says so with the
// same request. The example of docs/roce.md.
//
//   roce_write                          the server: waits for one client
//   roce_write SERVER-ADDRESS "text"    the client; the address is that of the server's NIC
#include <arpa/inet.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "lib/roce/connection.h"

using namespace ub;
using namespace ub::verbs;

namespace {

constexpr uint16_t kPort = 7471;
constexpr size_t kBytes = 4096;

void require(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "roce_write: %s\n", what.c_str());
  std::exit(1);
}
void require(Status status, const char* what) { require(status == Status::kOk, std::string("cannot ") + what); }

// What the server tells its client as private data of the connection. Both are of one byte order here.
struct Place {
  uint64_t address;
  uint32_t rkey;
};

// A device with one queue pair in INIT, and memory that the peer may write.
struct Side {
  Side() {
    std::string error;
    device = Device::open([](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }, &error);
    require(device != nullptr, error);
    require(ProtectionDomain::create(*device, &domain), "make a protection domain");
    require(MemoryRegion::create(*domain, memory, kBytes, kLocalWrite | kRemoteWrite, &region), "register memory");
    require(CompletionQueue::create(*device, 16, &queue), "make a completion queue");
    QpInitAttributes init;
    init.send_cq = init.recv_cq = queue.get();
    init.cap.max_send_wr = init.cap.max_recv_wr = 8;
    init.sq_sig_all = true;
    require(QueuePair::create(*domain, init, &qp), "make a queue pair");
    QpAttributes to;
    to.qp_state = QpState::kInit;
    to.qp_access_flags = kRemoteWrite;
    require(qp->modify(to, roce::kQpPkey | roce::kQpPort | roce::kQpAccess), "move the queue pair to INIT");
  }

  ConnectionEvent wait(ConnectionId& id, ConnectionEventKind kind) {
    std::optional<ConnectionEvent> event;
    while (!(event = id.wait_event(std::chrono::hours(1)))) continue;
    require(event->kind == kind, event->kind == ConnectionEventKind::kRejected      ? "rejected: no server there"
                                 : event->kind == ConnectionEventKind::kUnreachable ? "nobody answers"
                                                                                    : "the connection has ended");
    return *event;
  }
  WorkCompletion wait() {
    WorkCompletion done;
    while (queue->poll(std::span(&done, 1)) == 0) queue->wait(std::chrono::hours(1));
    require(done.status == WcStatus::kSuccess, wc_status_name(done.status));
    return done;
  }

  std::byte memory[kBytes] = {};
  std::unique_ptr<Device> device;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<CompletionQueue> queue;
  std::unique_ptr<QueuePair> qp;
};

void serve() {
  const auto side = std::make_unique<Side>();
  require(side->qp->post_recv({}), "post a receive");  // the immediate takes one; it needs no memory
  ConnectionId listener(*side->device), connection(*side->device);
  require(listener.listen(kPort), "listen");
  std::printf("waiting on RDMA port %u\n", kPort);
  std::fflush(stdout);
  const ConnectionEvent request = side->wait(listener, ConnectionEventKind::kConnectRequest);
  const Place here{reinterpret_cast<uintptr_t>(side->memory), side->region->rkey()};
  ConnectionParameters parameters;
  parameters.private_data = std::as_bytes(std::span(&here, 1));
  require(connection.accept(request, *side->qp, parameters), "accept");
  side->wait(connection, ConnectionEventKind::kEstablished);
  const WorkCompletion done = side->wait();
  std::printf("%.*s\n", static_cast<int>(std::min<size_t>(done.imm_data, kBytes)),
              reinterpret_cast<const char*>(side->memory));
  side->wait(connection, ConnectionEventKind::kDisconnected);
}

void ask(const char* server, const std::string& text) {
  in_addr address;
  require(inet_pton(AF_INET, server, &address) == 1, "give the server's IPv4 address");
  require(text.size() <= kBytes, "the text is too long");
  const auto side = std::make_unique<Side>();
  std::memcpy(side->memory, text.data(), text.size());
  AhAttributes path;
  std::string why;
  require(side->device->find_path(side->device->gids().at(0), Gid::from_v4(ntohl(address.s_addr)), &path, &why), why);
  ConnectionId connection(*side->device);
  require(connection.connect(*side->qp, path, kPort, {}), "connect");
  const ConnectionEvent met = side->wait(connection, ConnectionEventKind::kEstablished);
  Place there;
  std::memcpy(&there, met.private_data.data(), sizeof there);

  const Sge range{reinterpret_cast<uintptr_t>(side->memory), static_cast<uint32_t>(text.size()), side->region->lkey()};
  SendRequest request;
  request.sg_list = std::span(&range, 1);
  request.opcode = WrOpcode::kRdmaWriteWithImm;
  request.imm_data = static_cast<uint32_t>(text.size());
  request.remote_addr = there.address;
  request.rkey = there.rkey;
  require(side->qp->post_send(request), "post");
  side->wait();
  require(connection.disconnect(), "disconnect");
  side->wait(connection, ConnectionEventKind::kDisconnected);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) {
    serve();
  } else if (argc == 3) {
    ask(argv[1], argv[2]);
  } else {
    std::fprintf(stderr, "usage: roce_write [server-address text]\n");
    return 2;
  }
  return 0;
}
