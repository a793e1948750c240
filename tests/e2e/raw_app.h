// SPDX-License-Identifier: Apache-2.0
//
// An application of a daemon without liburma: it says on the socket and writes into shared memory whatever it likes.
// Whatever it is refused, it goes on; who cares looks at the answer.
//
// Thread: one at the socket; posting and ringing any.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "lib/base/work_queue.h"
#include "lib/ipc/app_call.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/unix_socket.h"

namespace ub::hostile {

using ipc::AppCall;

constexpr uint8_t kJettyKind = 3, kModeRm = 1, kAccessAll = 2 | 4 | 8;  // as in lib/transport/core_types.h

inline ipc::AppRequest request(AppCall call) {
  ipc::AppRequest r;
  std::memset(static_cast<void*>(&r), 0, sizeof r);
  r.head = {ipc::kAppCallMagic, ipc::kAppCallVersion, sizeof r};
  r.call = call;
  r.number = 1;
  return r;
}

class RawApp {
 public:
  explicit RawApp(const std::string& path) : path_(path) {}

  // Before any hello. A full line of others is no reason to give up.
  bool connect() {
    socket.reset();
    std::string error;
    for (int tries = 0; tries < 2000; ++tries) {
      if (ipc::connect_unix(path_, &socket, &error) == ipc::SocketStatus::kOk) return true;
      usleep(1000);
    }
    return false;
  }
  bool attach() {
    areas.clear();
    area_fds.clear();
    auto r = request(AppCall::kHello);
    if (!connect() || !call(r) || !ok() || !page_fd) return false;
    instance = answer.instance;
    return page_map.map(page_fd.get(), sizeof(ipc::AppPage), &error_) &&
           (!seals || ipc::seal_against_holes(page_fd.get(), &error_));
  }

  // False: the daemon hung up.
  bool send(const void* bytes, size_t n) {
    for (int tries = 0; tries < 5000; ++tries) {
      auto status = ipc::send_message(socket.get(), {static_cast<const std::byte*>(bytes), n}, {});
      if (status == ipc::SocketStatus::kOk) return true;
      if (status != ipc::SocketStatus::kAgain) return false;
      usleep(1000);
    }
    return false;
  }
  bool receive(int patience_ms = 5000) {
    struct {
      ipc::AppAnswer said;
      std::byte extra[ipc::kAppAnswerExtra];
    } message;
    size_t bytes, count;
    ipc::Fd fds[ipc::kMaxMessageFds];
    for (int waited = 0;; ++waited) {
      auto got = ipc::receive_message(socket.get(), {reinterpret_cast<std::byte*>(&message), sizeof message}, &bytes,
                                      fds, &count);
      if (got == ipc::SocketStatus::kOk) break;
      if (got != ipc::SocketStatus::kAgain || waited / 10 > patience_ms) return false;
      usleep(100);
    }
    answer = message.said;
    if (count == 3) page_fd = std::move(fds[0]), daemon_bell = std::move(fds[1]), app_bell = std::move(fds[2]);
    if (count == 1) add_area(std::move(fds[0]));
    return answer.number != 0;  // 0: the last sentence
  }
  bool call(const ipc::AppRequest& r) { return send(&r, sizeof r) && receive(); }
  bool call(AppCall which, uint32_t id = 0, uint32_t value = 0) {
    auto r = request(which);
    r.id = id;
    r.value = value;
    return call(r);
  }
  bool ok() const { return answer.status == 0; }

  bool new_area(uint64_t bytes) {
    auto r = request(AppCall::kAddArea);
    r.bytes = bytes;
    return call(r) && ok() && call(AppCall::kAreaMapped, answer.id) && ok();
  }

  // A jetty with all it needs: rings, a token, a segment in the area and one behind the agent, and itself as a target.
  struct Queues {
    uint32_t area = 0, jfc = 0, jfr = 0, jetty = 0, token = 0, segment = 0, foreign = 0, target = 0;
    uint32_t jfc_bell = 0, bell = 0;
    QueueIndices *cq = nullptr, *rq = nullptr, *sq = nullptr;
    Wqe* elements = nullptr;
    uint32_t slots = 0;
    std::byte* memory = nullptr;  // of `segment`, kMemory bytes
  };
  static constexpr uint64_t kMemory = 256 << 10;

  bool make(Queues* q, uint32_t slots, uint32_t depth) {
    const uint64_t ring = sizeof(QueueIndices) + uint64_t{slots} * kSlotBytes;
    const uint64_t rings = (3 * ring + 4095) & ~uint64_t{4095};
    if (!new_area(rings + kMemory)) return false;
    q->area = areas.back().first;
    std::byte* base = areas.back().second.data();
    q->slots = slots;
    q->cq = reinterpret_cast<QueueIndices*>(base);
    q->rq = reinterpret_cast<QueueIndices*>(base + ring);
    q->sq = reinterpret_cast<QueueIndices*>(base + 2 * ring);
    q->elements = reinterpret_cast<Wqe*>(base + 2 * ring + sizeof(QueueIndices));
    q->memory = base + rings;
    auto r = request(AppCall::kCreateJfc);
    r.queue.ring = {q->area, slots, 0};
    r.queue.depth = std::min(slots, 65536u);
    if (!call(r) || !ok()) return false;
    q->jfc = answer.id, q->jfc_bell = answer.bell;
    r.call = AppCall::kCreateJfr;
    r.queue.ring.offset = ring;
    r.queue.jfc = q->jfc;
    r.queue.mode = kModeRm;
    r.queue.min_rnr_timer = 1;
    if (!call(r) || !ok()) return false;
    q->jfr = answer.id;
    r.call = AppCall::kCreateJetty;
    r.queue.ring.offset = 2 * ring;
    r.queue.depth = depth;
    r.queue.jfr = q->jfr;
    r.queue.kind = kJettyKind;
    r.queue.rnr_retry = 1;
    r.queue.err_timeout = 17;
    if (!call(r) || !ok()) return false;
    q->jetty = answer.id, q->bell = answer.bell;
    return call(AppCall::kAllocToken) && ok() && (q->token = answer.id, register_memory(q, rings)) &&
           add_target(instance.uasid, instance.eids[0], q->jetty, &q->target);
  }

  bool add_target(uint32_t uasid, const std::array<uint8_t, 16>& eid, uint32_t id, uint32_t* target) {
    auto r = request(AppCall::kAddTarget);
    r.target.local_eid = instance.eids[0];
    r.target.eid = eid;
    r.target.uasid = uasid;
    r.target.id = id;
    r.target.kind = kJettyKind;
    r.target.mode = kModeRm;
    if (!call(r) || !ok()) return false;
    *target = answer.id;
    return true;
  }

  // One request; the caller knows that there is room. `address`: at the target. `by_agent`: from or to the memory here
  // that only the agent reaches.
  void post(const Queues& q, uint32_t at, WrOp op, uint32_t target, uint64_t address, uint32_t token, uint32_t bytes,
            bool by_agent = false) {
    Wqe& e = q.elements[at & (q.slots - 1)];
    std::memset(static_cast<void*>(&e), 0, sizeof e);
    e.op = op;
    e.flags = kWrSignaled;
    e.sge_count = bytes == 0 ? 0 : 1;
    e.slots = 1;
    e.target = target;
    e.remote_address = address;
    e.token_id = token;
    e.length = bytes;
    e.sge = by_agent ? Sge{kForeignVa, bytes, q.foreign} : Sge{kVa, bytes, q.segment};
    q.sq->produced.store(at + 1, std::memory_order_release);
    ring(q.bell);
  }
  void ring(uint32_t bell) {
    page().posted.set(bell);
    if (ipc::must_ring(page().worker_sleeps)) ring_daemon();
  }
  void ring_daemon() {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t n = write(daemon_bell.get(), &one, sizeof one);
  }
  ipc::AppPage& page() { return *reinterpret_cast<ipc::AppPage*>(page_map.data()); }

  static constexpr uint64_t kVa = 0x10000000, kForeignVa = 0x20000000;  // how peers name the two segments

  bool seals = true;  // what it gets, as it must
  ipc::Fd socket, page_fd, daemon_bell, app_bell;
  ipc::Mapping page_map;
  ipc::AppAnswer answer{};
  ipc::AppInstance instance{};
  std::vector<std::pair<uint32_t, ipc::Mapping>> areas;
  std::vector<ipc::Fd> area_fds;

 private:
  void add_area(ipc::Fd fd) {
    ipc::Mapping map;
    if (map.map(fd.get(), static_cast<size_t>(lseek(fd.get(), 0, SEEK_END)), &error_) &&
        (!seals || ipc::seal_against_holes(fd.get(), &error_))) {
      areas.emplace_back(answer.id, std::move(map));
      area_fds.push_back(std::move(fd));
    }
  }
  bool register_memory(Queues* q, uint64_t offset) {
    auto r = request(AppCall::kRegisterSegment);
    r.segment.area = q->area;
    r.segment.offset = offset;
    r.segment.address = r.segment.local_address = kVa;
    r.segment.length = kMemory;
    r.segment.token_id = q->token;
    r.segment.access = kAccessAll;
    if (!call(r) || !ok()) return false;
    q->segment = answer.segment.handle;
    r.segment.area = 0;
    r.segment.offset = 0;
    r.segment.memory = r.segment.address = r.segment.local_address = kForeignVa;
    if (!call(r) || !ok()) return false;
    q->foreign = answer.segment.handle;
    return true;
  }

  std::string path_, error_;
};

}  // namespace ub::hostile
