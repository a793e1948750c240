// SPDX-License-Identifier: Apache-2.0
// fuzz_session.cc - a hostile application at the daemon: any requests, any bytes in the shared page and in its areas,
// while the worker runs. Afterwards everything that it had must be gone, and an honest application must be served.
//
// The input is a program of a small machine: requests with fields that are mostly plausible, raw messages, writes into
// shared memory, doorbells.
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/softubd/client_table.h"
#include "dataplane/softubd/session.h"
#include "lib/base/assert.h"

namespace {

using namespace ub;
using ipc::AppCall;

// The daemon without its sockets and log. One for all inputs: what one leaves behind, later ones meet.
struct Daemon {
  LoadedConfig config;
  bool lied = false;
  ClientTable clients{[this](Owner, const ClientTable::Trouble& t) { lied |= t.what == Agent::Verdict::kLied; }};
  std::unique_ptr<Nic> nic;

  Daemon() {
    char directory[] = "/tmp/softub-fuzz-XXXXXX";
    UB_ASSERT(mkdtemp(directory) != nullptr);
    config.port.kinds = {"shm"};
    config.port.shm_dir = directory;
    config.device.eids = {"127.0.0.1"};
    config.daemon.app_jetties = config.daemon.app_jfrs = config.daemon.app_jfcs = config.daemon.app_segments = 24;
    config.daemon.app_targets = 24;
    config.daemon.app_memory = 32u << 20;
    config.limits.max_jetty = config.limits.max_jfc = config.limits.max_jfr = config.limits.max_jfs = 1024;
    config.limits.max_segments = 1024;
    config.limits.max_peers = config.limits.max_channels = 256;
    std::string error;
    UB_ASSERT(clients.init(16, &error));
    nic = Nic::start(config, 0, {}, &error, &clients);
    if (nic == nullptr) std::fprintf(stderr, "%s\n", error.c_str());
    UB_ASSERT(nic != nullptr);
    clients.set_patience({milliseconds(1), Duration{}});
  }
};

Daemon& daemon_of_all() {
  static Daemon* const one = new Daemon;
  return *one;
}

class App {
 public:
  explicit App(Daemon& d) {
    int pair[2];
    UB_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    socket_ = ipc::Fd(pair[0]);
    session_ = std::make_unique<Session>(*d.nic, d.clients, d.config, ipc::Fd(pair[1]), ipc::PeerCredentials{});
  }
  ~App() {
    for (int tries = 0; !session_->clean_up(); ++tries) {
      UB_ASSERT(tries < 1000);
      usleep(1000);
    }
  }

  // False: the daemon hangs up.
  bool send(const void* message, size_t bytes) {
    if (ipc::send_message(socket_.get(), {static_cast<const std::byte*>(message), bytes}, {}) !=
        ipc::SocketStatus::kOk) {
      return true;
    }
    std::string why;
    return session_->serve(&why) && receive();
  }

  bool call(ipc::AppRequest& r) {
    r.head = {ipc::kAppCallMagic, ipc::kAppCallVersion, sizeof r};
    r.number = 1;
    return send(&r, sizeof r);
  }

  ipc::AppAnswer answer{};
  ipc::Mapping page;
  std::vector<std::pair<uint32_t, ipc::Mapping>> areas;

 private:
  bool receive() {
    std::byte buffer[sizeof answer + ipc::kAppAnswerExtra];
    size_t bytes, fd_count;
    ipc::Fd fds[ipc::kMaxMessageFds];
    if (ipc::receive_message(socket_.get(), buffer, &bytes, fds, &fd_count) != ipc::SocketStatus::kOk) return true;
    UB_ASSERT(bytes >= sizeof answer);
    std::memcpy(&answer, buffer, sizeof answer);
    std::string error;
    if (fd_count == 3) {
      UB_ASSERT(page.map(fds[0].get(), sizeof(ipc::AppPage), &error) && ipc::seal_against_holes(fds[0].get(), &error));
    }
    if (fd_count == 1) {
      UB_ASSERT(ftruncate(fds[0].get(), 0) != 0);  // sealed
      areas.emplace_back(answer.id, ipc::Mapping());
      UB_ASSERT(areas.back().second.map(fds[0].get(), static_cast<size_t>(lseek(fds[0].get(), 0, SEEK_END)), &error));
      UB_ASSERT(ipc::seal_against_holes(fds[0].get(), &error));
    }
    if (fd_count == 2) {  // a lane or a share
      for (ipc::Fd& fd : std::span(fds, 2)) kept_.push_back(std::move(fd));
    }
    return true;
  }

  ipc::Fd socket_;
  std::unique_ptr<Session> session_;
  std::vector<ipc::Fd> kept_;  // until the application ends
};

ipc::AppRequest request(AppCall call) {
  ipc::AppRequest r;
  std::memset(static_cast<void*>(&r), 0, sizeof r);
  r.call = call;
  return r;
}

bool hello(App& app) {
  ipc::AppRequest r = request(AppCall::kHello);
  return app.call(r);
}

bool add_area(App& app, uint64_t bytes) {
  ipc::AppRequest r = request(AppCall::kAddArea);
  r.bytes = bytes;
  if (!app.call(r)) return false;
  if (app.answer.status != 0) return true;
  r = request(AppCall::kAreaMapped);
  r.id = app.answer.id;
  return app.call(r);
}

class Attack {
 public:
  Attack(App& app, FuzzedDataProvider& in) : app_(app), in_(in) {}

  void run() {
    for (int steps = 0; in_.remaining_bytes() != 0 && steps < 200; ++steps) {
      if (!step()) return;
    }
  }

 private:
  bool step() {
    switch (in_.ConsumeIntegralInRange(0, 9)) {
      case 0:
        return raw();
      case 1:
        return scribble(app_.page);
      case 2:
      case 3:
        return app_.areas.empty()
                   ? add_area(app_, 64u << 10)
                   : scribble(app_.areas[in_.ConsumeIntegralInRange<size_t>(0, app_.areas.size() - 1)].second);
      case 4:
        return ring();
      case 5:
        usleep(20);
        return true;
      default:
        return any_call();
    }
  }

  bool raw() {
    std::string bytes = in_.ConsumeRandomLengthString(256);
    return bytes.empty() || app_.send(bytes.data(), bytes.size());
  }

  bool scribble(ipc::Mapping& memory) {
    if (!memory) return true;
    std::string bytes = in_.ConsumeRandomLengthString(128);
    // Mostly where indices and first elements are.
    size_t span = in_.ConsumeBool() ? memory.bytes() : std::min<size_t>(memory.bytes(), 4096);
    if (bytes.size() > span) return true;
    size_t at = in_.ConsumeIntegralInRange<size_t>(0, span - bytes.size());
    volatile std::byte* to = memory.data() + at;
    for (size_t i = 0; i < bytes.size(); ++i) to[i] = static_cast<std::byte>(bytes[i]);
    return true;
  }

  bool ring() {
    if (!app_.page) return true;
    auto* page = reinterpret_cast<ipc::AppPage*>(app_.page.data());
    uint32_t bell = in_.ConsumeIntegralInRange<uint32_t>(0, in_.ConsumeBool() ? 8 : ipc::kAppBells - 1);
    (in_.ConsumeBool() ? page->posted : page->attention).set(bell);
    return true;
  }

  uint32_t pick() { return ids_[in_.ConsumeIntegralInRange<size_t>(0, ids_.size() - 1)]; }

  bool any_call() {
    auto r = request(static_cast<AppCall>(in_.ConsumeIntegralInRange(0, static_cast<int>(AppCall::kChannels) + 1)));
    r.id = pick();
    r.value = in_.ConsumeBool() ? pick() : in_.ConsumeIntegral<uint32_t>();
    r.bytes = in_.ConsumeBool() ? 4096u * in_.ConsumeIntegralInRange(0, 64) : in_.ConsumeIntegral<uint64_t>();
    switch (r.call) {
      case AppCall::kCreateJfc:
      case AppCall::kCreateJfr:
      case AppCall::kCreateJetty:
      case AppCall::kCreateGroup:
        fill(&r.queue);
        break;
      case AppCall::kRegisterSegment:
        fill(&r.segment);
        break;
      case AppCall::kAddTarget:
      case AppCall::kOpenLane:
        fill(&r.target);
        break;
      case AppCall::kOpenShare:
        fill(&r.share);
        break;
      case AppCall::kAddArea:
        r.value = in_.ConsumeIntegralInRange(0u, 3u);  // for whom
        break;
      default:
        break;
    }
    bool goes_on = app_.call(r);
    if (app_.answer.status == 0) remember(app_.answer.id);
    if (r.call == AppCall::kRegisterSegment && app_.answer.status == 0) remember(app_.answer.segment.handle);
    return goes_on;
  }

  void remember(uint32_t id) {
    if (ids_.size() < 64) ids_.push_back(id);
  }

  void fill(ipc::AppQueue* q) {
    q->ring.area =
        app_.areas.empty() ? pick() : app_.areas[in_.ConsumeIntegralInRange<size_t>(0, app_.areas.size() - 1)].first;
    q->ring.slot_count = 1u << in_.ConsumeIntegralInRange(0, 12);
    q->ring.offset = in_.ConsumeBool() ? 0 : in_.ConsumeIntegral<uint32_t>();
    q->depth = in_.ConsumeBool() ? q->ring.slot_count : in_.ConsumeIntegral<uint32_t>();
    q->jfc = pick();
    q->jfr = pick();
    q->recv_jfc = in_.ConsumeBool() ? 0 : pick();
    q->group = in_.ConsumeBool() ? 0 : pick();
    q->policy = in_.ConsumeIntegralInRange<uint8_t>(0, 3);
    q->kind = in_.ConsumeBool() ? static_cast<uint8_t>(ObjectKind::kJetty) : in_.ConsumeIntegral<uint8_t>();
    q->mode = in_.ConsumeBool() ? 1 : in_.ConsumeIntegral<uint8_t>();
    q->rnr_retry = in_.ConsumeIntegral<uint8_t>();
    q->err_timeout = in_.ConsumeIntegral<uint8_t>();
    q->min_rnr_timer = in_.ConsumeBool() ? 1 : in_.ConsumeIntegral<uint8_t>();
    q->user_data = in_.ConsumeIntegral<uint16_t>();
  }

  void fill(ipc::AppSegment* s) {
    s->area = in_.ConsumeBool() || app_.areas.empty() ? 0 : app_.areas.front().first;
    s->offset = in_.ConsumeIntegral<uint16_t>();
    s->memory = s->address = s->local_address = in_.ConsumeBool() ? 0x10000 : in_.ConsumeIntegral<uint64_t>();
    s->length = in_.ConsumeBool() ? 4096 : in_.ConsumeIntegral<uint64_t>();
    s->token_id = pick();
    s->access = in_.ConsumeIntegral<uint8_t>();
  }

  void fill(ipc::AppTarget* t) {
    t->local_eid = daemon_of_all().nic->eids().front().bytes;
    t->eid = t->local_eid;
    t->uasid = in_.ConsumeBool() ? daemon_of_all().nic->uasid() : in_.ConsumeIntegral<uint32_t>();
    t->id = pick();
    t->kind = in_.ConsumeIntegralInRange<uint8_t>(0, 5);
    t->mode = in_.ConsumeBool() ? 1 : in_.ConsumeIntegral<uint8_t>();
  }

  // Mostly a segment as fill(AppSegment*) makes it; the NIC is mostly the daemon's own.
  void fill(ipc::AppShare* s) {
    s->eid = daemon_of_all().nic->eids().front().bytes;
    s->uasid = in_.ConsumeBool() ? daemon_of_all().nic->uasid() : in_.ConsumeIntegral<uint32_t>();
    s->request.address = in_.ConsumeBool() ? 0x10000 : in_.ConsumeIntegral<uint64_t>();
    s->request.length = in_.ConsumeBool() ? 4096 : in_.ConsumeIntegral<uint64_t>();
    s->request.token_id = pick();
    s->request.token_required = in_.ConsumeIntegral<uint8_t>();
    s->request.writes = in_.ConsumeIntegral<uint8_t>();
    s->request.process = in_.ConsumeIntegral<int32_t>();
  }

  App& app_;
  FuzzedDataProvider& in_;
  std::vector<uint32_t> ids_{0, 1, 2, 3};
};

// An honest one gets a completion queue.
void check_service(Daemon& daemon) {
  App app(daemon);
  UB_ASSERT(hello(app) && app.answer.status == 0);
  UB_ASSERT(add_area(app, 64u << 10) && app.answer.status == 0);
  ipc::AppRequest r = request(AppCall::kCreateJfc);
  r.queue.ring = {app.areas.front().first, 16, 0};
  r.queue.depth = 16;
  UB_ASSERT(app.call(r) && app.answer.status == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Daemon& daemon = daemon_of_all();
  FuzzedDataProvider in(data, size);
  {
    App app(daemon);
    if (in.ConsumeBool() || hello(app)) Attack(app, in).run();
  }
  check_service(daemon);
  return 0;
}
