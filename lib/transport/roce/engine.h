// SPDX-License-Identifier: Apache-2.0
// engine.h - RoCEv2 as an engine of a Core (lib/transport/engine.h). It only passes things on. The packets of UDP port
// 4791 and the queue pairs are its own; applications reach everything else by Core::roce(). The rules are in the other
// files of this folder, memory and frames in executor.h, unreliable.h and transmitter.h. docs/roce-design.md says what
// is where.
//
// Thread: the same as of the Core.
//
// Thread: as the Core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/flatten.h"
#include "lib/transport/core_state.h"
#include "lib/transport/host.h"
#include "lib/transport/roce/state.h"
#include "lib/transport/roce/types.h"
#include "lib/transport/wire/network_header.h"

namespace ub::roce {

struct Packet;
template <class Host>
class Executor;
template <class Host>
class Transmitter;
template <class Host>
class Unreliable;

template <class Host>
class Engine {
 public:
  using State = roce::State;
  static void lay_out(CoreState& s, State& r, Arena& arena) { roce::lay_out(s, r, arena); }
  Engine(CoreState& s, State& r, Host& host) : s_(s), r_(r), host_(host) {}

  // ---- queue pairs -----------------------------------------------------------------------------------------------
  /// The size of SendQueueConfig::work for a queue pair of that depth. That memory must be zero and 64-byte aligned.
  static size_t work_bytes(uint32_t depth);

  Status create_qp(const QpConfig&, uint32_t* qpn);
  /// `mask`: QpAttribute bits that say which fields count; qp_state always does. kInvalid: nothing was changed.
  Status modify_qp(Instant now, uint32_t qpn, const QpAttributes&, uint32_t mask);
  Status query_qp(uint32_t qpn, QpAttributes*) const;
  /// Destroys the queue pair at once, in any state. What was posted is gone without completions. Receives of a shared
  /// JFR that a message held go back to the JFR.
  Status destroy_qp(Instant now, uint32_t qpn);

  Status create_ah(const AddressHandleConfig&, uint32_t* ah);
  Status destroy_ah(uint32_t ah);

  // ---- connections -----------------------------------------------------------------------------------------------
  Status listen(const ListenConfig&, uint32_t* listener);  ///< kExists: the port is taken
  Status stop_listening(Instant now, uint32_t listener);   ///< requests that are not answered yet are rejected
  Status connect(Instant now, const ConnectConfig&, uint32_t* connection);
  Status accept(Instant now, uint32_t connection, const AcceptConfig&);
  Status reject(Instant now, uint32_t connection, PrivateData private_data = {});
  /// The queue pair goes to ERROR now, and kDisconnected comes when the peer has answered. A connection that is not
  /// established yet is given up without an event.
  Status disconnect(Instant now, uint32_t connection);
  /// Takes the oldest events. An EventKind::kConnection announced each of them.
  size_t poll_connection_events(std::span<ConnectionEvent>);

  // ---- from the Core: engine.h -----------------------------------------------------------------------------------
  bool claims(const wire::NetHeader& net) const { return net.dst.port == kUdpPort && is_on(); }
  bool on_link_frame(uint32_t, std::span<const std::byte>) { return false; }
  [[gnu::hot]] UB_FLATTEN void on_packet(uint32_t link, const wire::NetHeader& net);  ///< as UbEngine's
  bool on_posted(ObjectKind kind, uint32_t record);
  bool on_copy_done(CopyTag, bool ok);
  bool on_gathered(const HeldFrame&);
  bool on_timer(uint32_t timer);
  size_t poll_packets(size_t budget, Acks);
  bool has_packets(Acks) const;
  void link_down(uint32_t link);
  void close_owner(Owner) {}  ///< queue pairs and connections are objects of the application, and gone by now
  void close();

  bool is_on() const { return roce::is_on(r_); }
  // For tools and tests.
  State& state() { return r_; }
  const State& state() const { return r_; }

 private:
  void on_placed(uint32_t qp, bool ok);
  void on_management(uint32_t link, const wire::NetHeader& net, const Packet& packet);
  void on_congestion(uint32_t qp);
  void owe_cnp(uint32_t qp);
  bool needs_link(const Qp& qp, uint32_t link) const;
  bool has_good_icrc(uint32_t link, const wire::NetHeader& net) const;
  bool admits(const Qp& qp, const wire::NetHeader& net, const Packet& packet);

  // They hold nothing but references to the state and the host.
  Transmitter<Host> transmitter() { return {s_, r_, host_}; }
  Executor<Host> executor() { return {s_, r_, host_}; }
  Unreliable<Host> unreliable() { return {s_, r_, host_}; }

  CoreState& s_;
  State& r_;
  Host& host_;
};

}  // namespace ub::roce
