// SPDX-License-Identifier: Apache-2.0
//
// rping: connections by RDMA-CM, then for each round the client says where its text lies, the server READs it, the
// client says where it goes, and the server WRITEs it there. The text is known, so it is compared in both roles.
#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "dataplane/eid.h"
#include "lib/base/bytes.h"
#include "tools/common/tool_error.h"
#include "tools/roce_peer/tests.h"

namespace ub::roce_peer {
namespace {

using tools::ToolError;
using verbs::ConnectionEvent;
using verbs::ConnectionEventKind;

constexpr uint32_t kMessageBytes = 16;
constexpr uint32_t kReceives = 4;

// Where something lies: what a message says.
struct Place {
  uint64_t address = 0;
  uint32_t rkey = 0, size = 0;
};

void store(const Place& place, std::byte* out) {
  store_be64(out, place.address);
  store_be32(out + 8, place.rkey);
  store_be32(out + 12, place.size);
}

Place load(const std::byte* in) { return {load_be64(in), load_be32(in + 8), load_be32(in + 12)}; }

// A number, then letters that start one further each round, then NUL.
std::vector<std::byte> text_of(uint32_t round, uint32_t size) {
  constexpr char kFirst = 'A', kLast = 'z';
  constexpr int kLetters = kLast - kFirst + 1;
  std::string text = fmt::format("rdma-ping-{}: ", round);
  for (int i = 0; text.size() < size; ++i) {
    text += static_cast<char>(kFirst + (static_cast<int>(round % kLetters) + i) % kLetters);
  }
  text.resize(size);
  text.back() = '\0';
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + size};
}

class Rping {
 public:
  explicit Rping(const Options& o)
      : o_(o),
        endpoint_(o, verbs::QpType::kRc),
        text_(endpoint_.domain(), o.size, kAccess),
        message_(endpoint_.domain(), kMessageBytes, verbs::kLocalWrite),
        in_(endpoint_.domain(), size_t{kMessageBytes} * kReceives, verbs::kLocalWrite),
        connection_(endpoint_.device()) {
    endpoint_.to_init(kAccess);
    for (uint32_t i = 0; i < kReceives; ++i) post_receive(i);
  }

  std::string run() {
    if (o_.serves()) {
      accept();
      for (uint32_t i = 0; i < o_.iterations; ++i) serve_round(i);
      wait_for(ConnectionEventKind::kDisconnected);
    } else {
      connect();
      for (uint32_t i = 0; i < o_.iterations; ++i) ask_round(i);
      if (connection_.disconnect() != Status::kOk) throw ToolError("the connection ended before we ended it");
      wait_for(ConnectionEventKind::kDisconnected);
    }
    endpoint_.linger();  // the other side may ask again for what it did not hear
    return fmt::format("{} rounds of {} bytes, all compared; {}", o_.iterations, o_.size, endpoint_.counters());
  }

 private:
  static constexpr uint32_t kAccess = verbs::kLocalWrite | verbs::kRemoteRead | verbs::kRemoteWrite;

  // ---- connection --------------------------------------------------------------------------------------------------
  ConnectionEvent wait_for(ConnectionEventKind kind) { return wait_for(connection_, kind); }

  ConnectionEvent wait_for(verbs::ConnectionId& id, ConnectionEventKind kind) {
    std::optional<ConnectionEvent> event;
    while (!(event = id.poll_event())) endpoint_.turn();
    if (event->kind == kind) return *event;
    switch (event->kind) {
      case ConnectionEventKind::kRejected:
        throw ToolError(fmt::format("the peer rejects the connection (reason {}): does rping listen on port {}?",
                                    static_cast<unsigned>(event->reason), o_.port));
      case ConnectionEventKind::kUnreachable:
        throw ToolError(tools::kExitPeerLost, "the peer does not answer");
      case ConnectionEventKind::kDisconnected:
        throw ToolError(tools::kExitPeerLost, "the peer has parted the connection");
      default:
        throw ToolError("an event of the connection came out of turn");
    }
  }

  verbs::ConnectionParameters parameters() const {
    verbs::ConnectionParameters p;
    p.path_mtu = endpoint_.port_mtu();
    p.timeout = o_.timeout;
    return p;
  }

  void accept() {
    verbs::ConnectionId listener(endpoint_.device());
    if (listener.listen(o_.port) != Status::kOk) throw ToolError(fmt::format("cannot listen on port {}", o_.port));
    fmt::print("listening on RDMA port {}\n", o_.port);
    std::fflush(stdout);
    const ConnectionEvent request = wait_for(listener, ConnectionEventKind::kConnectRequest);
    if (connection_.accept(request, endpoint_.qp(), parameters()) != Status::kOk) {
      throw ToolError("cannot accept the connection");
    }
    wait_for(ConnectionEventKind::kEstablished);
  }

  void connect() {
    const std::optional<wire::IpAddress> peer = parse_ip(o_.host);
    if (!peer) throw ToolError(o_.host + " is no IP address: rping is met at that of its RoCE NIC");
    if (connection_.connect(endpoint_.qp(), endpoint_.path_to(*peer), o_.port, parameters()) != Status::kOk) {
      throw ToolError("cannot connect");
    }
    wait_for(ConnectionEventKind::kEstablished);
  }

  // ---- messages ----------------------------------------------------------------------------------------------------
  void post_receive(uint64_t i) { endpoint_.post_receive(i, in_.range(i * kMessageBytes, kMessageBytes)); }

  Place receive() {
    const verbs::WorkCompletion wc = endpoint_.wait_for_receive();
    if (wc.byte_len != kMessageBytes) throw ToolError(fmt::format("a message of {} bytes came", wc.byte_len));
    const Place place = load(&in_.bytes[wc.wr_id * kMessageBytes]);
    post_receive(wc.wr_id);
    return place;
  }

  void send(const Place& place) {
    store(place, message_.bytes.data());
    request(verbs::WrOpcode::kSend, message_.range(0, kMessageBytes), {});
  }

  void request(verbs::WrOpcode opcode, const Sge& where, const Place& remote) {
    verbs::SendRequest r;
    r.opcode = opcode;
    r.sg_list = std::span(&where, 1);
    r.remote_addr = remote.address;
    r.rkey = remote.rkey;
    endpoint_.post_send(r);
    endpoint_.wait_for_send();
  }

  Place ours() const { return {text_.address(), text_.region->rkey(), o_.size}; }

  Place theirs() {
    const Place place = receive();
    if (place.size == o_.size) return place;
    throw ToolError(
        fmt::format("the other side has {} bytes, we {}: give both the same -S or -s", place.size, o_.size));
  }

  // ---- rounds ------------------------------------------------------------------------------------------------------
  void serve_round(uint32_t round) {
    const Sge all = text_.range(0, o_.size);
    request(verbs::WrOpcode::kRdmaRead, all, theirs());
    compare(text_.bytes, text_of(round, o_.size), fmt::format("the text of round {}", round));
    send({});
    request(verbs::WrOpcode::kRdmaWrite, all, theirs());
    send({});
  }

  void ask_round(uint32_t round) {
    const std::vector<std::byte> text = text_of(round, o_.size);
    std::copy(text.begin(), text.end(), text_.bytes.begin());  // in place: it is registered
    send(ours());
    receive();
    std::fill(text_.bytes.begin(), text_.bytes.end(), std::byte{0});
    send(ours());
    receive();
    compare(text_.bytes, text_of(round, o_.size), fmt::format("the text of round {}", round));
  }

  const Options& o_;
  Endpoint endpoint_;
  Buffer text_, message_, in_;
  verbs::ConnectionId connection_;
};

}  // namespace

std::string run_rping(const Options& o) { return Rping(o).run(); }

}  // namespace ub::roce_peer
