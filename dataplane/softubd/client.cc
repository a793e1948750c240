// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/client.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "lib/ipc/barrier.h"

namespace ub {

Client::Client(Owner number, ipc::Mapping page)
    : number_(number), page_(std::move(page)), agent_(*reinterpret_cast<ipc::AppPage*>(page_.data())) {}

std::unique_ptr<Client> Client::create(Owner number, std::string* error) {
  ipc::Fd fd = ipc::create_sealed_memfd("softub-app", sizeof(ipc::AppPage), error);
  ipc::Mapping page;
  if (!fd || !page.map(fd.get(), sizeof(ipc::AppPage), error)) return nullptr;
  std::unique_ptr<Client> client(new Client(number, std::move(page)));
  client->page_fd_ = std::move(fd);
  // The application rings an eventfd that is never read here, so nothing it does to it can block us. We ring a
  // socket, because a call of its own says that it must not block: an eventfd's flag is also the application's.
  client->worker_bell_ = ipc::Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  int pair[2];
  if (!client->worker_bell_ || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
    *error = std::string("no doorbell for an application: ") + strerror(errno);
    return nullptr;
  }
  client->app_bell_ = ipc::Fd(pair[0]);
  client->app_bell_far_ = ipc::Fd(pair[1]);
  return client;
}

bool Client::check_page(std::string* error) {
  if (!ipc::is_sealed_against_holes(page_fd_.get())) {
    *error = "did not seal its page with F_SEAL_FUTURE_WRITE";
    return false;
  }
  page_fd_.reset();
  return true;
}

bool Client::add_bell(Bells& bells, uint32_t object, uint32_t* bell) try {
  if (bells.free.empty()) {
    if (bells.objects.size() == ipc::kAppBells) return false;
    bells.free.reserve(bells.objects.size() + 1);
    bells.objects.emplace_back();
    bells.free.push_back(static_cast<uint32_t>(bells.objects.size() - 1));
  }
  *bell = bells.free.back();
  bells.free.pop_back();
  bells.objects[*bell] = {object, 0};
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// `serve` is given an object and answers how much there has been to ring for since it exists.
template <class Serve>
bool Client::take_bells(ipc::AppBells& bits, Bells& bells, Instant now, Serve serve) {
  bool useful = false;
  bits.take_some(&bells.from, kBellsPerRound, [&](uint32_t bell) {
    bool idle = true;
    if (bell < bells.objects.size() && bells.objects[bell].object != 0) {
      Rung& rung = bells.objects[bell];
      const uint32_t progress = serve(rung.object);
      idle = static_cast<int32_t>(progress - rung.progress) <= 0;
      if (!idle) rung.progress = progress;
    }
    if (idle) ringing_.charge(now, kIdleBell);
    useful |= !idle;
  });
  return useful;
}

// True: it had rung.
bool Client::hear(Core<PortSet>& core, Instant now) {
  bool rang = false, useful = false;
  if (page().posted.any()) {
    rang = true;
    useful |= take_bells(page().posted, queues_, now, [&](uint32_t queue) {
      ++posts_;
      core.on_posted(now, queue);
      return core.slots_posted(queue);
    });
  }
  if (page().attention.any()) {
    rang = true;
    useful |= take_bells(page().attention, jfcs_, now, [&](uint32_t jfc) {
      core.on_completions_read(now, jfc);
      core.on_armed(now, jfc);
      return core.completions_produced(jfc);
    });
  }
  const bool woke_us = std::exchange(woke_us_, false);
  if (useful) {
    ringing_.give_back(kIdleLook / 2);
    return true;
  }
  if (rang) ringing_.charge(now, kIdleLook);
  if (woke_us && !agent_.has_finished()) ringing_.charge(now, kIdleWake);
  return rang;
}

Agent::Verdict Client::poll(Core<PortSet>& core, Instant now, const Patience& patience) {
  auto verdict = Agent::Verdict::kNothing;
  if (ringing_.has_any(now) && hear(core, now)) verdict = Agent::Verdict::kWorked;
  if (agent_.must_be_polled()) {
    Agent::Verdict copies = agent_.poll(core, now, patience);
    if (copies != Agent::Verdict::kNothing) verdict = copies;
  }
  return verdict;
}

void Client::set_rate(Core<PortSet>& core, Instant now, uint64_t bytes_per_second) {
  limits_.pacer.bytes_per_second = bytes_per_second;
  limits_.pacer.next = {};
  for (const Rung& rung : queues_.objects) {
    if (rung.object != 0) core.on_posted(now, rung.object);
  }
}

void Client::push_event(uint64_t object, uint32_t kind) {
  uint32_t consumed = page().events_consumed.load(std::memory_order_acquire);
  if (events_produced_ - consumed >= ipc::kAppEvents) {  // or an index that cannot be: its loss
    ++events_lost_;
    page().events_lost.store(static_cast<uint32_t>(events_lost_), std::memory_order_release);
  } else {
    page().events[events_produced_ % ipc::kAppEvents] = {object, kind, 0};
    page().events_produced.store(++events_produced_, std::memory_order_release);
  }
  published_ = true;
}

void Client::ring_if_asleep(Instant now) {
  published_ |= agent_.take_published();
  if (!published_ || !ringing_.has_any(now)) return;
  published_ = false;
  ipc::full_fence();
  if (!ipc::must_ring(page().app_sleeps)) return;
  uint64_t one = 1;
  // A full queue means that it has bells to read: it is not asleep, whatever it says.
  if (send(app_bell_.get(), &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) ringing_.charge(now, kIdleWake);
}

void Client::set_process(const ipc::PeerCredentials& peer, const std::string& program) {
  identity_.pid = static_cast<uint32_t>(peer.pid);
  identity_.uid = peer.uid;
  program.copy(identity_.program, sizeof identity_.program - 1);
}

StatsApp Client::report() const {
  StatsApp row = identity_;
  auto count = [](const auto& n) { return n.load(std::memory_order_relaxed); };
  row.send_queues = count(usage.send_queues);
  row.receive_queues = count(usage.receive_queues);
  row.jfcs = count(usage.jfcs);
  row.segments = count(usage.segments);
  row.targets = count(usage.targets);
  row.shared_bytes = count(usage.shared_bytes);
  row.stalls = static_cast<uint32_t>(agent_.times_stalled());
  row.starved = agent_.times_starved();
  row.longest_starved_ms = static_cast<uint32_t>(agent_.longest_starved().ns / 1'000'000);
  row.posts = posts_;
  row.copies = agent_.copies();
  row.events_lost = events_lost_;
  return row;
}

bool Client::has_finished_copies() const { return agent_.has_work() && agent_.has_finished(); }

}  // namespace ub
