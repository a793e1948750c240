// SPDX-License-Identifier: Apache-2.0
//
// ibv_{rc,uc,ud}_pingpong. They receive into the very buffer that they send from, so what we sent last is what comes
// next: every message of ours is different, and compared when it returns.
#include <fmt/format.h>

#include <algorithm>

#include "tools/common/tool_error.h"
#include "tools/roce_peer/conversation.h"
#include "tools/roce_peer/tests.h"

namespace ub::roce_peer {
namespace {

constexpr uint32_t kQkey = 0x11111111;
constexpr uint32_t kReceives = 4;  // one message is under way

class Pingpong {
 public:
  Pingpong(const Options& options, verbs::QpType type)
      : options_(options),
        front_(type == verbs::QpType::kUd ? roce::kGrhBytes : 0),
        endpoint_(options, type),
        out_(endpoint_.domain(), options.size, verbs::kLocalWrite),
        in_(endpoint_.domain(), size_t{slot()} * kReceives, verbs::kLocalWrite) {
    endpoint_.to_init(0, type == verbs::QpType::kUd ? kQkey : 0);
    for (uint32_t i = 0; i < kReceives; ++i) post_receive(i);
  }

  Endpoint& endpoint() { return endpoint_; }

  // `connect` gets the line of the peer, which must not hear that we are ready before we are.
  void meet(Conversation& talk, const std::function<void(const PingpongLine&)>& connect) {
    const PingpongLine ours{0, endpoint_.qp().qp_num(), endpoint_.psn(), endpoint_.gid()};
    talk.meet_pingpong(ours, connect);
  }

  // `request`: what a SEND says besides where its bytes are.
  void play(verbs::SendRequest request) {
    const Sge all = out_.range(0, options_.size);
    request.sg_list = std::span(&all, 1);
    for (uint32_t i = 0; i < options_.iterations; ++i) {
      if (options_.serves()) receive(i);
      if (!options_.echo) fill_pattern(out_.bytes, i);
      request.wr_id = i;
      endpoint_.post_send(request);
      if (!options_.serves()) receive(i + 1);
      if (i + 1 < options_.iterations) endpoint_.wait_for_send();
    }
    endpoint_.wait_for_last_send();
    endpoint_.linger();
  }

 private:
  uint32_t slot() const { return (options_.size + front_ + 7) / 8 * 8; }
  void post_receive(uint64_t i) { endpoint_.post_receive(i, in_.range(i * slot(), options_.size + front_)); }

  // The one that brings back message `next` - 1 of ours.
  void receive(uint32_t next) {
    const verbs::WorkCompletion wc = endpoint_.wait_for_receive();
    if (wc.byte_len != options_.size + front_) {
      throw tools::ToolError(tools::kExitWrongData, fmt::format("message {} has {} bytes instead of {}", next,
                                                                wc.byte_len - front_, options_.size));
    }
    const std::span<const std::byte> data(&in_.bytes[wc.wr_id * slot() + front_], options_.size);
    if (options_.echo) {
      std::copy(data.begin(), data.end(), out_.bytes.begin());
    } else if (next != 0) {
      compare_pattern(data, next - 1, fmt::format("message {}", next));
    } else if (std::any_of(data.begin(), data.end(), [&](std::byte b) { return b != data[0]; })) {
      throw tools::ToolError(tools::kExitWrongData, "the first message is not filled with one value");
    }
    post_receive(wc.wr_id);
  }

  const Options& options_;
  const uint32_t front_;
  Endpoint endpoint_;
  Buffer out_, in_;
};

std::string summary(const Options& o, Endpoint& endpoint) {
  return fmt::format("{} messages of {} bytes each way, {}; {}", o.iterations, o.size,
                     o.echo ? "none compared" : "all compared", endpoint.counters());
}

std::string run_connected(const Options& o, verbs::QpType type) {
  Pingpong pingpong(o, type);
  Endpoint& endpoint = pingpong.endpoint();
  Conversation talk(o, [&] { endpoint.turn(); });
  pingpong.meet(talk, [&](const PingpongLine& peer) {
    endpoint.connect({peer.gid, peer.qpn, peer.psn, endpoint.port_mtu()}, 1);
  });
  pingpong.play({});
  return summary(o, endpoint);
}

}  // namespace

std::string run_rc_pingpong(const Options& o) { return run_connected(o, verbs::QpType::kRc); }

std::string run_uc_pingpong(const Options& o) { return run_connected(o, verbs::QpType::kUc); }

std::string run_ud_pingpong(const Options& o) {
  Pingpong pingpong(o, verbs::QpType::kUd);
  Endpoint& endpoint = pingpong.endpoint();
  Conversation talk(o, [&] { endpoint.turn(); });
  std::unique_ptr<verbs::AddressHandle> handle;
  verbs::SendRequest request;
  pingpong.meet(talk, [&](const PingpongLine& peer) {
    if (verbs::AddressHandle::create(endpoint.domain(), endpoint.path_to(peer.gid), &handle) != Status::kOk) {
      throw tools::ToolError("cannot make an address handle");
    }
    request.ah = handle.get();
    request.remote_qpn = peer.qpn;
    request.remote_qkey = kQkey;
  });
  pingpong.play(request);
  return summary(o, endpoint);
}

}  // namespace ub::roce_peer
