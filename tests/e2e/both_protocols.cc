// SPDX-License-Identifier: Apache-2.0
//
// UB and RoCE at the same time on one NIC, between two processes: each side has a jetty and a queue pair on the same
// addresses and ports, and sends as many messages by either, some of both in flight all the time. Each message must
// come once, with the right bytes, by the protocol that it was sent by. Prints "exchanged" then, and waits for SIGINT
// so that its counters can be looked at.
//
//   both_protocols TCP-PORT [HOST]      the configuration is that of the environment
#include <fmt/format.h>
#include <pthread.h>

#include <csignal>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "dataplane/nic.h"
#include "lib/urma/data/ring.h"
#include "tools/common/peer.h"
#include "tools/common/tool_error.h"
#include "tools/roce_peer/endpoint.h"

namespace {

using namespace ub;
using tools::Json;
using tools::ToolError;

constexpr uint32_t kMessages = 3000, kBytes = 2000, kWindow = 32, kReceives = 64;
constexpr uint64_t kUbPattern = 0, kRocePattern = 1'000'000;  // what the number of a message is counted from

void require(bool good, const std::string& what) {
  if (!good) throw ToolError(what);
}

// What was sent and what came by one protocol.
class Ledger {
 public:
  explicit Ledger(uint64_t pattern) : pattern_(pattern) {}

  bool may_send() const { return sent_ < kMessages && sent_ - completed_ < kWindow; }
  bool in_flight() const { return sent_ != completed_; }
  bool done() const { return completed_ == kMessages && received_ == kMessages; }
  // The number of the next message, whose bytes are written to `out`.
  uint32_t send(std::span<std::byte> out) {
    roce_peer::fill_pattern(out, pattern_ + sent_);
    return sent_++;
  }
  void completed(uint32_t count) { completed_ += count; }
  void received(uint64_t number, std::span<const std::byte> bytes) {
    require(number < kMessages && !seen_[number], fmt::format("message {} came twice, or was never sent", number));
    seen_[number] = true;
    ++received_;
    roce_peer::compare_pattern(bytes, pattern_ + number, fmt::format("message {}", number));
  }

 private:
  uint64_t pattern_;
  uint32_t sent_ = 0, completed_ = 0, received_ = 0;
  std::array<bool, kMessages> seen_{};
};

// A jetty on the NIC, with the rings and the memory that an application would have.
class UbSide {
 public:
  explicit UbSide(Nic& nic) : nic_(nic), work_(Nic::NicCore::send_queue_work_bytes(kWindow) / sizeof(Line) + 1) {
    nic_.control([&](Nic::NicCore& core, Instant) {
      create(core);
      return true;
    });
    for (uint32_t slot = 0; slot < kReceives; ++slot) post_receive(slot);
  }

  ~UbSide() {
    nic_.control([&](Nic::NicCore& core, Instant now) {
      core.destroy_jetty(now, jetty_);
      core.destroy_jfr(now, jfr_);
      core.destroy_jfc(jfc_);
      return core.unregister_segment(now, segment_);
    });
  }
  UbSide(const UbSide&) = delete;
  UbSide& operator=(const UbSide&) = delete;

  Json introduction() const { return {{"eid", nic_.eids().front().bytes}, {"uasid", nic_.uasid()}, {"jetty", jetty_}}; }
  void connect(const Json& theirs) {
    TargetConfig config;
    config.local_eid = nic_.eids().front();
    config.instance.eid.bytes = theirs.at("eid").get<decltype(config.instance.eid.bytes)>();
    config.instance.uasid = theirs.at("uasid");
    config.id = theirs.at("jetty");
    std::string why;
    require(nic_.find_path(config.local_eid, config.instance, &config.path, &why), why);
    require(nic_.meet_neighbour(config.path, &why), why);
    const Status status =
        nic_.control([&](Nic::NicCore& core, Instant now) { return core.add_target(now, config, &target_); });
    require(status == Status::kOk, "the NIC refuses the target");
  }

  void step() {
    bool posted = false;
    for (; ledger_.may_send(); posted = true) post_send();
    if (posted) nic_.posted(jetty_);
    for (; polled_ != done_.produced.load(std::memory_order_acquire); ++polled_) take(cqes_[polled_ % kSlots]);
    done_.consumed.store(polled_, std::memory_order_release);
  }
  const Ledger& ledger() const { return ledger_; }

 private:
  static constexpr uint32_t kSlots = 128;
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  void create(Nic::NicCore& core) {
    JfcConfig jfc;
    jfc.slots = cqes_;
    jfc.slot_count = jfc.depth = kSlots;
    jfc.indices = &done_;
    JfrConfig jfr;
    jfr.slots = rqes_;
    jfr.slot_count = kSlots;
    jfr.indices = &receives_;
    JettyConfig jetty;
    jetty.sq.slots = wqes_;
    jetty.sq.slot_count = kSlots;
    jetty.sq.depth = kWindow;
    jetty.sq.indices = &sends_;
    jetty.sq.work = reinterpret_cast<std::byte*>(work_.data());
    SegmentConfig segment;
    segment.memory = memory_.data();
    segment.address = segment.local_address = reinterpret_cast<uintptr_t>(memory_.data());
    segment.length = memory_.size();
    segment.access = kAccessLocalOnly;
    RegisteredSegment registered;
    require(core.create_jfc(jfc, &jfc_) == Status::kOk, "no JFC");
    jfr.jfc = jetty.sq.jfc = jfc_;
    require(core.create_jfr(jfr, &jfr_) == Status::kOk, "no JFR");
    jetty.jfr = jfr_;
    require(core.create_jetty(jetty, &jetty_) == Status::kOk, "no jetty");
    require(core.register_segment(segment, &registered) == Status::kOk, "no segment");
    segment_ = registered.handle;
  }
  // Slots of what goes out lie behind those of what comes in.
  std::span<std::byte> slot(uint32_t number) { return std::span(memory_).subspan(size_t{number} * kBytes, kBytes); }
  Sge sge(uint32_t number) { return {reinterpret_cast<uintptr_t>(slot(number).data()), kBytes, segment_}; }

  void post_receive(uint32_t number) {
    const uint32_t at = receives_.produced.load(std::memory_order_relaxed);
    Rqe& e = rqes_[at % kSlots];
    e = {};
    e.user_ctx = number;
    e.length = kBytes;
    e.sge_count = e.slots = 1;
    e.sge[0] = sge(number);
    receives_.produced.store(at + 1, std::memory_order_release);
  }
  void post_send() {
    const uint32_t at = sends_.produced.load(std::memory_order_relaxed);
    const uint32_t number = kReceives + at % kWindow;
    Wqe& e = wqes_[at % kSlots];
    e = {};
    e.op = WrOp::kSendImm;
    e.flags = kWrSignaled;
    e.sge_count = e.slots = 1;
    e.target = target_;
    e.length = kBytes;
    e.sge = sge(number);
    e.immediate = ledger_.send(slot(number));
    sends_.produced.store(at + 1, std::memory_order_release);
  }
  void take(const Cqe& cqe) {
    require(cqe.status == CrStatus::kSuccess,
            fmt::format("a request of UB failed with status {}", static_cast<unsigned>(cqe.status)));
    if ((cqe.flags & kCqeReceive) == 0) return ledger_.completed(1);
    require(cqe.opcode == CrOpcode::kSendImm && cqe.length == kBytes, "a receive of UB completed as something else");
    const auto number = static_cast<uint32_t>(cqe.user_ctx);
    ledger_.received(cqe.immediate, slot(number));
    post_receive(number);
  }

  Nic& nic_;
  Ledger ledger_{kUbPattern};
  std::vector<std::byte> memory_ = std::vector<std::byte>(size_t{kReceives + kWindow} * kBytes);
  std::vector<Line> work_;
  Wqe wqes_[kSlots];
  Rqe rqes_[kSlots];
  Cqe cqes_[kSlots];
  QueueIndices sends_{}, receives_{}, done_{};
  uint32_t jfc_ = 0, jfr_ = 0, jetty_ = 0, segment_ = 0, target_ = 0, polled_ = 0;
};

roce_peer::Options endpoint_options() {
  roce_peer::Options o;
  o.tx_depth = kWindow;
  o.rx_depth = kReceives;
  return o;
}

// A queue pair on the same NIC.
class RoceSide {
 public:
  RoceSide() : endpoint_(endpoint_options(), verbs::QpType::kRc) {
    endpoint_.to_init(0);
    for (uint32_t slot = 0; slot < kReceives; ++slot) endpoint_.post_receive(slot, in_.range(slot * kBytes, kBytes));
  }

  Json introduction() const {
    return {{"gid", endpoint_.gid().bytes},
            {"qpn", endpoint_.qpn()},
            {"psn", endpoint_.psn()},
            {"mtu", endpoint_.port_mtu()}};
  }
  void connect(const Json& theirs) {
    roce_peer::Endpoint::Remote remote;
    remote.gid.bytes = theirs.at("gid").get<decltype(remote.gid.bytes)>();
    remote.qpn = theirs.at("qpn");
    remote.psn = theirs.at("psn");
    remote.mtu = std::min<uint8_t>(endpoint_.port_mtu(), theirs.at("mtu"));
    endpoint_.connect(remote, 1);
  }

  void step() {
    while (ledger_.may_send()) post_send();
    ledger_.completed(endpoint_.take(endpoint_.send_queue()));
    verbs::WorkCompletion came[16];
    const size_t count = endpoint_.receive_queue().poll(came);
    for (size_t i = 0; i < count; ++i) receive(came[i]);
    endpoint_.turn();
  }
  const Ledger& ledger() const { return ledger_; }
  Nic& nic() { return endpoint_.device().nic(); }

 private:
  void post_send() {
    const size_t offset = size_t{sent_++ % kWindow} * kBytes;
    const Sge range = out_.range(offset, kBytes);
    verbs::SendRequest request;
    request.sg_list = std::span(&range, 1);
    request.opcode = verbs::WrOpcode::kSendWithImm;
    request.imm_data = ledger_.send(std::span(out_.bytes).subspan(offset, kBytes));
    endpoint_.post_send(request);
  }
  void receive(const verbs::WorkCompletion& wc) {
    require(wc.status == verbs::WcStatus::kSuccess && wc.byte_len == kBytes && (wc.wc_flags & verbs::kWcWithImm) != 0,
            fmt::format("a receive of RoCE: {}, {} bytes", verbs::wc_status_name(wc.status), wc.byte_len));
    ledger_.received(wc.imm_data, std::span(in_.bytes).subspan(wc.wr_id * kBytes, kBytes));
    endpoint_.post_receive(wc.wr_id, in_.range(wc.wr_id * kBytes, kBytes));
  }

  Ledger ledger_{kRocePattern};
  roce_peer::Endpoint endpoint_;
  roce_peer::Buffer out_{endpoint_.domain(), size_t{kWindow} * kBytes, verbs::kLocalWrite};
  roce_peer::Buffer in_{endpoint_.domain(), size_t{kReceives} * kBytes, verbs::kLocalWrite};
  uint32_t sent_ = 0;
};

tools::TcpSocket meet(uint16_t port, const char* host) {
  if (host != nullptr) return tools::TcpSocket::connect(host, port);
  tools::TcpListener listener(port);
  fmt::print("waiting for a client on TCP port {}\n", listener.port());
  std::fflush(stdout);
  return listener.accept();
}

void run(uint16_t port, const char* host) {
  auto roce = std::make_unique<RoceSide>();
  auto ub = std::make_unique<UbSide>(roce->nic());
  tools::Peer peer(meet(port, host), "both_protocols", "the peer");
  peer.send("introduction", {{"ub", ub->introduction()}, {"roce", roce->introduction()}});
  const Json theirs = peer.expect("introduction");
  // One after the other: a link of shared memory that both ends made would be two, and a queue pair knows one.
  if (host != nullptr) peer.expect("connected");
  ub->connect(theirs.at("ub"));
  roce->connect(theirs.at("roce"));
  peer.send("connected");
  if (host == nullptr) peer.expect("connected");
  uint64_t together = 0;
  while (!ub->ledger().done() || !roce->ledger().done()) {
    ub->step();
    roce->step();
    together += ub->ledger().in_flight() && roce->ledger().in_flight() ? 1 : 0;
  }
  require(together != 0, "UB and RoCE were never in flight together");
  peer.send("done");
  peer.expect("done");
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  fmt::print("exchanged {} messages each way by UB, and as many by RoCE\n", kMessages);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
}

}  // namespace

int main(int argc, char** argv) try {
  ub::tools::install_stop_handler();
  if (argc < 2) throw ToolError(tools::kExitUsage, "both_protocols TCP-PORT [HOST]");
  run(static_cast<uint16_t>(std::stoi(argv[1])), argc > 2 ? argv[2] : nullptr);
  return tools::kExitOk;
} catch (const std::exception& e) {
  fmt::print(stderr, "both_protocols: {}\n", e.what());
  return ub::tools::exit_code_of(e);
}
