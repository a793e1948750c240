// SPDX-License-Identifier: Apache-2.0
//
// All applications of the daemon, by number: what the worker polls, and where events and accesses to foreign memory
// go.
//
// Thread: the owner of the Core, except fd() and clear_rings(): the worker without ownership.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dataplane/nic_clients.h"
#include "dataplane/softubd/client.h"

namespace ub {

class ClientTable final : public NicClients, public ForeignMemory {
 public:
  // What is the matter with an application: kOverdue, kStalled, kLied.
  struct Trouble {
    Agent::Verdict what;
    uint32_t wait;       // kOverdue: to be answered
    Agent::Stall stall;  // kStalled
  };
  // Told by the worker; must not call back.
  using OnTrouble = std::function<void(Owner, const Trouble&)>;
  explicit ClientTable(OnTrouble on_trouble) : on_trouble_(std::move(on_trouble)) {}

  // False and `*error`: no epoll descriptor.
  bool init(uint32_t most_clients, std::string* error);
  void set_patience(const Patience& patience) { patience_ = patience; }
  // Bytes per second of each, 0: no limit. What waits for the old one goes on.
  void set_rate(Core<PortSet>&, Instant now, uint64_t rate);

  // A number that no client has, 0: none left.
  Owner free_number() const;
  // False and `*error`.
  bool add(std::unique_ptr<Client>, std::string* error);
  // From now on its page is looked at; once per client.
  void serve(Owner number);
  void remove(Owner number);
  Client* find(Owner number) { return number < by_number_.size() ? by_number_[number].get() : nullptr; }

  // ---- NicClients ----
  bool poll(Core<PortSet>&, Instant now) override;
  void on_event(const NicEvent&) override;
  ForeignMemory& memory() override { return *this; }
  std::vector<StatsApp> report() const override;
  Instant next_deadline() const override;
  bool prepare_sleep(Instant now) override;
  void finish_sleep() override;
  int fd() const override { return epoll_.get(); }
  void clear_rings() override;

  // ---- ForeignMemory ----
  CopyResult gather(const std::byte* frame, std::byte* dst, const std::byte* src, size_t bytes, CopyTag) override;
  CopyResult place(std::byte* dst, const std::byte* src, size_t bytes, bool final, CopyTag) override;
  CopyResult atomic(const AtomicRequest&, uint128* old, CopyTag) override;
  void frame_aborted(const std::byte* frame) override;
  void frame_held(const std::byte* frame, std::byte* held) override;

 private:
  static constexpr size_t kMostRung = 64;  // at one time

  bool listen_to(Client&);
  void close_ears_to(Client&);

  OnTrouble on_trouble_;
  std::vector<std::unique_ptr<Client>> by_number_;
  std::vector<Client*> active_;    // those that are served, dense
  std::set<uint64_t> ports_down_;  // whoever comes is told
  ipc::Fd epoll_;
  Patience patience_;
  uint64_t rate_ = 0;
  Owner next_number_ = 1;
  std::array<Owner, kMostRung> rung_{};  // who woke us
  size_t rung_count_ = 0;
};

}  // namespace ub
