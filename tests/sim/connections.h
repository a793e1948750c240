// SPDX-License-Identifier: Apache-2.0
//
// Connections of queue pairs by RDMA-CM: applications that listen, ask, accept, refuse and hang up at random, and what
// they are promised. Both ends hear of the same connection or of an end that something explains, private data is what
// the other end said, a request is heard once, and in the end no connection is left in any table.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/world.h"

namespace ub::sim {

class Connections {
 public:
  struct Hooks {
    std::function<Queue*(Node&, App&)> make_qp;  // in INIT
    std::function<void(Queue*)> established;     // it may be used
  };
  // One end of a connection, as its application sees it.
  struct Side {
    enum class State : uint8_t {
      kAsked,        // active: no answer yet; passive: the application has not made up its mind
      kAccepted,     // passive: it has
      kEstablished,  // the two are one pair
      kParting,      // the application hung up
      kOver,
    };
    State state = State::kAsked;
    bool active = false;
    bool unreachable = false;  // it ended because nobody answered
    bool unheard = false;      // passive: refused because its listener went
    bool strict = false;       // nothing may go wrong
    uint32_t number = 0;       // from 1 on; its private data begins with it
    uint32_t attempt = 0;      // passive: number of the side that asked
    uint32_t node = 0, peer_node = 0, app = 0, epoch = 0, connection = 0;
    uint16_t port = 0, peer_port = 0;
    uint64_t since_ns = 0;
    Queue* qp = nullptr;
    Side* peer = nullptr;         // the other end, once whoever asked is established
    std::vector<std::byte> said;  // private data of the REQ, of the REP or of the REJ
  };

  static constexpr uint16_t kPort = 4711;

  Connections(World&, Hooks);
  ~Connections();
  Connections(const Connections&) = delete;

  void listen(Node&, App&, uint16_t port = kPort);
  // Null: there is no room for it.
  Side* ask(Node& from, App&, uint32_t to, uint16_t port = kPort, bool strict = false);
  void accept(Side*);
  void refuse(Side*);
  void hang_up(Side*);
  void settle();    // whoever was asked answers, now and from now on
  void part_all();  // everybody hangs up, nobody listens

  // Has everybody heard what became of it, and do both ends of a pair think the same of it?
  bool settled(std::string* why) const;
  bool at_rest() const;  // no instance has anything in its tables
  const std::vector<std::unique_ptr<Side>>& sides() const { return sides_; }

  bool answers = true;  // make up their minds themselves

 private:
  struct Listener {
    uint32_t node, epoch, app, handle;
    uint16_t port;
    uint64_t since_ns;
    bool open;
  };

  void on_event(Node&, const roce::ConnectionEvent&);
  void on_request(Node&, const roce::ConnectionEvent&);
  void on_established(Side&, const roce::ConnectionEvent&);
  void on_rejected(Side&, const roce::ConnectionEvent&);
  void on_unreachable(Side&);
  void on_disconnected(Side&);
  void on_app_gone(Node&, const App&);
  void end(Side&);  // its queue pair goes
  void stop(Listener&);
  void plan_answer(Side*);
  void answer(Side*);
  void plan_hang_up(Side*);

  Side* add(Node&, bool active);
  Side* named(Node&, const roce::ConnectionEvent&);
  bool alive(const Side&) const;  // its instance and its application
  bool parts(const Side&) const;  // it has ended, or wants to, or its instance did
  bool heard_all_along(uint32_t node, uint16_t port, uint64_t since_ns) const;
  std::vector<std::byte> draw_data(uint32_t number, size_t most);
  void fail(const Side&, const char* what) const;

  World& world_;
  Hooks hooks_;
  bool settled_ = false;
  std::vector<std::unique_ptr<Side>> sides_;
  std::vector<Listener> listeners_;
};

}  // namespace ub::sim
