// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>

#include "apps/file_copy/buffer.h"
#include "apps/file_copy/checksum.h"
#include "apps/file_copy/nic.h"
#include "apps/file_copy/source_file.h"
#include "apps/file_copy/transfer.h"
#include "tools/common/hex.h"
#include "tools/common/peer.h"
#include "tools/common/probe.h"
#include "tools/common/tool_error.h"

namespace ub::apps {
namespace {

using tools::Json;
using tools::Peer;
using tools::ToolError;

constexpr int kResultMs = 600'000;  // a disk may take its time
constexpr uint64_t kLookEveryNs = 1'000'000, kTellEveryNs = 1'000'000'000;

// Moves the content: from the file into buffers, from there into the receiver's window.
class Content {
 public:
  Content(const SendOptions& o, Nic& nic, Peer& receiver, const SourceFile& file, uint64_t chunk, const Address& to)
      : receiver_(receiver),
        file_(file),
        timeout_ms_(static_cast<int>(o.timeout_s) * 1000),
        chunk_(chunk),
        in_flight_(std::min<uint64_t>(o.inflight, window_bytes(file.bytes(), chunk) / chunk)),
        remote_(nic, to),
        buffers_(nic, in_flight_ * chunk) {
    if (remote_.bytes() != window_bytes(file.bytes(), chunk)) throw ToolError("the receiver made another window");
  }

  // Returns its sum, once the receiver has written all of it.
  uint64_t send(Progress& progress) {
    for (uint32_t turns = 0, idle_turns = 0; written_ < file_.bytes(); ++turns) {
      const bool started = can_start();
      if (started) start_write();
      const uint32_t ended = remote_.poll();
      if (ended > 0) count_ended(ended, progress);
      if (ended_ == started_ && !can_start()) {
        wait_for_receiver();
      } else if (turns % 64 == 0) {
        look_at_receiver();
      }
      idle_turns = started || ended > 0 ? 0 : idle_turns + 1;
      if (idle_turns % 2048 == 2047) sched_yield();  // perhaps the receiver's NIC shares our CPU
    }
    return sum_.digest();
  }

 private:
  uint64_t next_bytes() const { return std::min(chunk_, file_.bytes() - read_); }

  // There is something left, a buffer, and room in the window.
  bool can_start() const {
    return read_ < file_.bytes() && started_ - ended_ < in_flight_ &&
           read_ + next_bytes() - written_ <= remote_.bytes();
  }

  void start_write() {
    std::byte* buffer = buffers_.data() + started_ % in_flight_ * chunk_;
    const uint64_t bytes = next_bytes();
    file_.read(read_, buffer, bytes);
    remote_.write(read_ % remote_.bytes(), buffer, static_cast<uint32_t>(bytes), buffers_.memory());
    sum_.update(buffer, bytes);  // while the NIC is at work
    read_ += bytes;
    ++started_;
  }

  void count_ended(uint32_t writes, Progress& progress) {
    ended_ += writes;
    arrived_ = std::min(ended_ * chunk_, file_.bytes());
    progress.at(arrived_);
    if (arrived_ - told_ >= remote_.bytes() / 8) tell();
  }

  void tell() {
    if (arrived_ == told_) return;
    receiver_.send("progress", {{"bytes", arrived_}});
    told_ = arrived_;
    told_ns_ = tools::monotonic_ns();
  }

  void hear() {
    written_ = receiver_.expect("written", timeout_ms_).value("bytes", uint64_t{0});
    if (written_ > told_) throw ToolError("the receiver tells of more than was sent");
  }

  // Only its word moves us on.
  void wait_for_receiver() {
    tell();
    hear();
  }

  void look_at_receiver() {
    const uint64_t now = tools::monotonic_ns();
    if (now - looked_ns_ < kLookEveryNs) return;
    looked_ns_ = now;
    while (receiver_.message_waits()) hear();
    if (now - told_ns_ > kTellEveryNs) tell();
  }

  Peer& receiver_;
  const SourceFile& file_;
  const int timeout_ms_;
  const uint64_t chunk_, in_flight_;  // in_flight_: at most so many WRITEs
  RemoteMemory remote_;
  Buffer buffers_;
  Xxh64 sum_;
  uint64_t started_ = 0, ended_ = 0;                          // WRITEs
  uint64_t read_ = 0, arrived_ = 0, told_ = 0, written_ = 0;  // bytes: each is at least the next
  uint64_t looked_ns_ = 0, told_ns_ = tools::monotonic_ns();
};

void send_to(const SendOptions& o, Nic& nic, Peer& receiver, const SourceFile& file) {
  const std::string name = o.name.empty() ? std::filesystem::path(o.file).filename().string() : o.name;
  const uint64_t chunk = std::clamp<uint64_t>(file.bytes(), 1, o.iobuf);
  receiver.send("offer", {{"version", kVersion}, {"name", name}, {"bytes", file.bytes()}, {"chunk", chunk}});
  const Json answer = receiver.expect("accept");
  Progress progress(name, file.bytes());
  uint64_t sum = Xxh64().digest();
  if (file.bytes() > 0) {
    const Address address = tools::from_hex<Address>(answer.value("address", ""));
    sum = Content(o, nic, receiver, file, chunk, address).send(progress);
  }
  const double seconds = progress.end();
  file.check_size();
  receiver.send("done", {{"xxh64", fmt::format("{:016x}", sum)}});
  receiver.expect("result", kResultMs);
  fmt::print("sent {}: {} bytes in {:.3f} s, {}/s, xxh64 {:016x}\n", name, file.bytes(), seconds,
             amount_text(static_cast<double>(file.bytes()) / seconds), sum);
}

}  // namespace

int send_file(const SendOptions& o) {
  const SourceFile file(o.file);
  Nic nic(o.device, o.inflight);
  if (o.iobuf > nic.max_message())
    throw ToolError(tools::kExitUsage, fmt::format("--iobuf: the device allows {}", nic.max_message()));
  Peer receiver(tools::TcpSocket::connect(o.host, o.port), "file_copy", "the receiver");
  try {
    send_to(o, nic, receiver, file);
  } catch (const std::exception& e) {
    receiver.end_with(e);
  }
  return tools::kExitOk;
}

}  // namespace ub::apps
