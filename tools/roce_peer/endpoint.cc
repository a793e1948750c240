// SPDX-License-Identifier: Apache-2.0
#include "tools/roce_peer/endpoint.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "dataplane/eid.h"
#include "tools/common/tool_error.h"

namespace ub::roce_peer {
namespace {

using tools::ToolError;
using verbs::QpAttributes;
using verbs::QpState;

constexpr uint8_t kRetries = 7, kMinRnrTimer = 12;  // as the tools have them

void require(Status status, const char* what) {
  if (status == Status::kOk) return;
  const char* why = status == Status::kInvalid    ? "invalid"
                    : status == Status::kNoMemory ? "no room"
                    : status == Status::kBusy     ? "busy"
                                                  : "refused";
  throw ToolError(fmt::format("cannot {}: {}", what, why));
}

}  // namespace

// ---- data ----------------------------------------------------------------------------------------------------------

void fill_pattern(std::span<std::byte> out, uint64_t message) {
  uint64_t state = (message + 1) * 0x9e3779b97f4a7c15;
  for (size_t i = 0; i < out.size(); i += 8) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const uint64_t word = state ^ state >> 29;
    std::memcpy(&out[i], &word, std::min<size_t>(8, out.size() - i));
  }
}

size_t first_difference(std::span<const std::byte> data, std::span<const std::byte> expected) {
  return static_cast<size_t>(std::mismatch(data.begin(), data.end(), expected.begin(), expected.end()).first -
                             data.begin());
}

void compare(std::span<const std::byte> data, std::span<const std::byte> expected, const std::string& what) {
  if (data.size() != expected.size()) {
    throw ToolError(tools::kExitWrongData,
                    fmt::format("{} has {} bytes instead of {}", what, data.size(), expected.size()));
  }
  const size_t at = first_difference(data, expected);
  if (at == data.size()) return;
  throw ToolError(tools::kExitWrongData,
                  fmt::format("{} differs from byte {} of {} on: {:#04x} instead of {:#04x}", what, at, data.size(),
                              static_cast<unsigned>(data[at]), static_cast<unsigned>(expected[at])));
}

void compare_pattern(std::span<const std::byte> data, uint64_t message, const std::string& what) {
  std::vector<std::byte> expected(data.size());
  fill_pattern(expected, message);
  compare(data, expected, what);
}

Buffer::Buffer(verbs::ProtectionDomain& domain, size_t size, uint32_t access) : bytes(size) {
  require(verbs::MemoryRegion::create(domain, bytes.data(), size, access, &region), "register memory");
}

Sge Buffer::range(size_t offset, uint32_t length) const { return {address() + offset, length, region->lkey()}; }

// ---- endpoint ------------------------------------------------------------------------------------------------------

Endpoint::Endpoint(const Options& options, verbs::QpType type)
    : options_(options),
      type_(type),
      end_(Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.time_limit_s))) {
  std::string error;
  auto notice = [](const std::string& sentence) { fmt::print(stderr, "{}\n", sentence); };
  device_ = verbs::Device::open(notice, &error);
  if (!device_) throw ToolError(error);
  const std::vector<Gid> gids = device_->gids();
  if (options.gid_index >= gids.size()) {
    throw ToolError(fmt::format("-x {}: the NIC has {} addresses", options.gid_index, gids.size()));
  }
  gid_ = gids[options.gid_index];
  if (getrandom(&psn_, sizeof psn_, 0) != sizeof psn_) throw ToolError("the kernel has no random numbers");
  psn_ &= 0xffffff;
  require(verbs::ProtectionDomain::create(*device_, &domain_), "make a protection domain");
  require(verbs::CompletionQueue::create(*device_, options.tx_depth + 1, &send_queue_), "make a completion queue");
  require(verbs::CompletionQueue::create(*device_, options.rx_depth + 1, &receive_queue_), "make a completion queue");
  verbs::QpInitAttributes attributes;
  attributes.send_cq = send_queue_.get();
  attributes.recv_cq = receive_queue_.get();
  attributes.cap = {options.tx_depth, options.rx_depth, 1, 1, 0};
  attributes.qp_type = type;
  attributes.sq_sig_all = true;
  require(verbs::QueuePair::create(*domain_, attributes, &qp_), "make a queue pair");
}

uint8_t Endpoint::port_mtu() const {
  return options_.mtu != 0 ? roce::code_of_mtu(options_.mtu) : device_->active_mtu();
}

void Endpoint::to_init(uint32_t access, uint32_t qkey) {
  QpAttributes a;
  a.qp_state = QpState::kInit;
  a.qp_access_flags = static_cast<uint8_t>(access);
  a.qkey = qkey;
  const bool is_ud = qkey != 0;
  require(qp_->modify(a, roce::kQpPkey | roce::kQpPort | (is_ud ? roce::kQpQkey : roce::kQpAccess)),
          "move the queue pair to INIT");
  if (!is_ud) return;
  a.qp_state = QpState::kRtr;
  require(qp_->modify(a, 0), "move the queue pair to RTR");
  a.qp_state = QpState::kRts;
  a.sq_psn = psn_;
  require(qp_->modify(a, roce::kQpSendPsn), "move the queue pair to RTS");
}

verbs::AhAttributes Endpoint::path_to(const Gid& gid) {
  verbs::AhAttributes path;
  std::string why;
  if (gid == gid_) {
    throw ToolError("both sides have the address " + to_text(gid_) +
                    ": give each process its own, as with SOFTUB_DEVICE_EIDS=127.0.0.2");
  }
  if (!device_->find_path(gid_, gid, &path, &why)) throw ToolError(why);
  return path;
}

void Endpoint::connect(const Remote& remote, uint8_t reads_served) {
  QpAttributes a;
  a.qp_state = QpState::kRtr;
  a.path_mtu = remote.mtu;
  a.dest_qp_num = remote.qpn;
  a.rq_psn = remote.psn;
  a.ah_attr = path_to(remote.gid);
  a.max_dest_rd_atomic = reads_served;
  a.min_rnr_timer = kMinRnrTimer;
  constexpr uint32_t kToRtr = roce::kQpPath | roce::kQpMtu | roce::kQpDestination | roce::kQpReceivePsn;
  constexpr uint32_t kReliableToRtr = roce::kQpReadsServed | roce::kQpRnrTimer;
  const bool reliable = type_ == verbs::QpType::kRc;
  require(qp_->modify(a, kToRtr | (reliable ? kReliableToRtr : 0)),
          "move the queue pair to RTR with what the other tool sent");
  a.qp_state = QpState::kRts;
  a.sq_psn = psn_;
  a.timeout = options_.timeout;
  a.retry_cnt = kRetries;
  a.rnr_retry = kRetries;
  a.max_rd_atomic = remote.reads;
  constexpr uint32_t kReliableToRts =
      roce::kQpTimeout | roce::kQpRetries | roce::kQpRnrRetries | roce::kQpReadsInFlight;
  require(qp_->modify(a, roce::kQpSendPsn | (reliable ? kReliableToRts : 0)), "move the queue pair to RTS");
}

void Endpoint::post_receive(uint64_t id, const Sge& where) {
  require(qp_->post_recv({id, std::span(&where, 1)}), "post a receive");
}

void Endpoint::post_send(const verbs::SendRequest& request) { require(qp_->post_send(request), "post a request"); }

void Endpoint::turn() {
  device_->drive();
  std::this_thread::yield();  // the other side may be a guest on the same core
  tools::throw_if_stopped();
  if (Clock::now() > end_) {
    throw ToolError(tools::kExitPeerLost,
                    fmt::format("not finished after {} s: {}", options_.time_limit_s, counters()));
  }
}

verbs::WorkCompletion Endpoint::next(verbs::CompletionQueue& queue) {
  verbs::WorkCompletion wc;
  while (queue.poll(std::span(&wc, 1)) == 0) turn();
  return wc;
}

uint32_t Endpoint::take(verbs::CompletionQueue& queue) {
  verbs::WorkCompletion some[16];
  const size_t count = queue.poll(some);
  for (size_t i = 0; i < count; ++i) check(some[i]);
  return static_cast<uint32_t>(count);
}

void Endpoint::check(const verbs::WorkCompletion& wc) {
  if (wc.status == verbs::WcStatus::kSuccess) return;
  throw tools::RequestFailed(
      fmt::format("request {} failed: {}; {}", wc.wr_id, verbs::wc_status_name(wc.status), counters()));
}

verbs::WorkCompletion Endpoint::wait_for_send() {
  const verbs::WorkCompletion wc = next(*send_queue_);
  check(wc);
  return wc;
}

verbs::WorkCompletion Endpoint::wait_for_receive() {
  const verbs::WorkCompletion wc = next(*receive_queue_);
  check(wc);
  return wc;
}

void Endpoint::wait_for_last_send() {
  const verbs::WorkCompletion wc = next(*send_queue_);
  if (wc.status != verbs::WcStatus::kRetryExcErr) check(wc);
}

void Endpoint::linger() {
  const auto until = Clock::now() + std::chrono::duration<double>(options_.linger_s);
  while (Clock::now() < until) turn();
}

std::string Endpoint::counters() {
  const Counters all = device_->counters();
  std::string text;
  for (size_t i = 0; i < kCounterCount; ++i) {
    const std::string_view name = kCounterNames[i];
    if (all.v[i] == 0 || !name.starts_with("roce.")) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name.substr(5), all.v[i]);
  }
  return text;
}

}  // namespace ub::roce_peer
