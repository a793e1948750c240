// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/client_table.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/ipc/barrier.h"

namespace ub {

bool ClientTable::init(uint32_t most_clients, std::string* error) {
  by_number_.resize(most_clients + 1);
  active_.reserve(most_clients);
  epoll_ = ipc::Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) *error = std::string("cannot create an epoll descriptor: ") + strerror(errno);
  return static_cast<bool>(epoll_);
}

void ClientTable::set_rate(Core<PortSet>& core, Instant now, uint64_t rate) {
  if (std::exchange(rate_, rate) == rate) return;
  for (Client* client : active_) client->set_rate(core, now, rate);
}

// In turn, so that a number is not soon used again.
Owner ClientTable::free_number() const {
  for (size_t tries = 0, n = next_number_; tries < by_number_.size(); ++tries, ++n) {
    if (n >= by_number_.size()) n = 1;
    if (by_number_[n] == nullptr) return static_cast<Owner>(n);
  }
  return 0;
}

// Edge-triggered: each write of the application is an event, whatever it did to the counter.
bool ClientTable::listen_to(Client& client) {
  epoll_event interest{EPOLLIN | EPOLLET, {}};
  interest.data.u32 = client.number();
  return client.listened_to = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, client.worker_bell_fd(), &interest) == 0;
}

void ClientTable::close_ears_to(Client& client) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, client.worker_bell_fd(), nullptr);
  client.listened_to = false;
}

bool ClientTable::add(std::unique_ptr<Client> client, std::string* error) {
  if (!listen_to(*client)) {
    *error = std::string("cannot watch an application's doorbell: ") + strerror(errno);
    return false;
  }
  Owner number = client->number();
  next_number_ = static_cast<Owner>(number + 1);
  by_number_[number] = std::move(client);
  return true;
}

void ClientTable::serve(Owner number) {
  Client* client = find(number);
  client->limits().pacer.bytes_per_second = rate_;
  active_.push_back(client);
  for (uint64_t port : ports_down_) client->push_event(PortEvent{port, false});
}

void ClientTable::remove(Owner number) {
  Client* client = find(number);
  if (client == nullptr) return;
  close_ears_to(*client);
  std::erase(active_, client);
  by_number_[number].reset();
}

bool ClientTable::poll(Core<PortSet>& core, Instant now) {
  bool worked = false;
  for (; rung_count_ != 0; --rung_count_) {
    if (Client* client = find(rung_[rung_count_ - 1])) client->woke_us();
  }
  for (Client* client : active_) {
    Agent::Verdict verdict = client->poll(core, now, patience_);
    if (const bool heard = client->unheard_until() <= now; heard != client->listened_to) [[unlikely]] {
      if (heard) {
        listen_to(*client);
      } else {
        close_ears_to(*client);
      }
    }
    client->ring_if_asleep(now);
    if (verdict == Agent::Verdict::kNothing) continue;
    worked = true;
    if (verdict == Agent::Verdict::kWorked) continue;
    Agent& agent = client->agent();
    if (verdict == Agent::Verdict::kLied) agent.fail_for_ever(core, now);
    on_trouble_(client->number(), {verdict, agent.wait(), agent.stall()});
  }
  return worked;
}

void ClientTable::on_event(const NicEvent& event) {
  std::visit(each_kind{[this](const Event& of_object) {
                         if (Client* client = find(of_object.owner)) client->push_event(of_object);
                       },
                       [this](const PortEvent& of_port) {
                         ports_down_.erase(of_port.port);
                         if (!of_port.up) ports_down_.insert(of_port.port);
                         for (Client* client : active_) client->push_event(of_port);
                       },
                       [](NicGone) {}},
             event);
}

std::vector<StatsApp> ClientTable::report() const {
  std::vector<StatsApp> rows;
  rows.reserve(active_.size());
  for (const Client* client : active_) rows.push_back(client->report());
  return rows;
}

Instant ClientTable::next_deadline() const {
  Instant deadline = Instant::never();
  for (Client* client : active_) {
    deadline = earlier(deadline, client->agent().deadline(patience_));
    if (!client->listened_to) deadline = earlier(deadline, client->unheard_until());
  }
  return deadline;
}

bool ClientTable::prepare_sleep(Instant now) {
  for (Client* client : active_) {
    client->ring_if_asleep(now);
    client->prepare_sleep();
  }
  ipc::full_fence();
  return std::any_of(active_.begin(), active_.end(), [](Client* client) {
    return (client->listened_to && client->has_posted()) || client->has_finished_copies();
  });
}

void ClientTable::finish_sleep() {
  for (Client* client : active_) client->finish_sleep();
}

// What is left, or comes meanwhile, ends the next sleep at once: applications that ring all the time do not hold us
// here.
void ClientTable::clear_rings() {
  epoll_event events[kMostRung];
  const int count = epoll_wait(epoll_.get(), events, std::size(events), 0);
  rung_count_ = static_cast<size_t>(std::max(count, 0));
  for (size_t i = 0; i < rung_count_; ++i) rung_[i] = static_cast<Owner>(events[i].data.u32);
}

CopyResult ClientTable::gather(const std::byte* frame, std::byte* dst, const std::byte* src, size_t bytes,
                               CopyTag tag) {
  Client* client = find(static_cast<Owner>(foreign_client(src)));
  return client == nullptr ? CopyResult::kFailed : client->agent().gather(frame, dst, foreign_address(src), bytes, tag);
}

CopyResult ClientTable::place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag tag) {
  Client* client = find(static_cast<Owner>(foreign_client(dst)));
  return client == nullptr ? CopyResult::kFailed : client->agent().place(foreign_address(dst), src, bytes, final, tag);
}

CopyResult ClientTable::atomic(const AtomicRequest& request, uint128* old, CopyTag tag) {
  Client* client = find(static_cast<Owner>(foreign_client(request.address)));
  if (client == nullptr) return CopyResult::kFailed;
  return client->agent().atomic(foreign_address(request.address), request, old, tag);
}

void ClientTable::frame_aborted(const std::byte* frame) {
  for (Client* client : active_) client->agent().frame_aborted(frame);
}

void ClientTable::frame_held(const std::byte* frame, std::byte* held) {
  for (Client* client : active_) client->agent().frame_held(frame, held);
}

}  // namespace ub
