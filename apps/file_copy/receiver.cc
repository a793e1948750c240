// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "apps/file_copy/buffer.h"
#include "apps/file_copy/checksum.h"
#include "apps/file_copy/nic.h"
#include "apps/file_copy/part_file.h"
#include "apps/file_copy/transfer.h"
#include "tools/common/hex.h"
#include "tools/common/peer.h"
#include "tools/common/tool_error.h"

namespace ub::apps {
namespace {

using tools::Json;
using tools::Peer;
using tools::ToolError;

constexpr int kOfferMs = 10'000;
constexpr uint64_t kPiece = 256 << 10;  // is still in the cache when it is written after having been summed

struct Offer {
  std::string name;
  uint64_t bytes, chunk;
};

// A name that cannot lead out of the directory nor play tricks on a terminal.
bool harmless(const std::string& name) {
  if (name.empty() || name.size() > NAME_MAX || name == "." || name == "..") return false;
  return std::none_of(name.begin(), name.end(), [](unsigned char c) { return c == '/' || c < 0x20 || c == 0x7f; });
}

Offer expect_offer(Peer& sender) {
  const Json message = sender.expect("offer", kOfferMs);
  if (message.value("version", 0) != kVersion) throw ToolError("the sender has another version");
  Offer offer = {message.value("name", ""), message.value("bytes", uint64_t{0}), message.value("chunk", uint64_t{0})};
  if (!harmless(offer.name)) throw ToolError("the sender's file name is not acceptable");
  if (offer.chunk == 0 || offer.chunk > kMaxChunk) throw ToolError("the sender's chunks are not acceptable");
  return offer;
}

// Takes the content out of the window as the sender tells of it. Returns the sum of what came.
uint64_t receive_content(Peer& sender, const Buffer& window, PartFile& file, const Offer& offer, int timeout_ms,
                         Progress& progress) {
  Xxh64 sum;
  for (uint64_t written = 0; written < offer.bytes;) {
    const uint64_t here = sender.expect("progress", timeout_ms).value("bytes", uint64_t{0});
    if (here <= written || here > std::min(offer.bytes, written + window.bytes())) {
      throw ToolError(fmt::format("the sender tells of {} bytes after {}, which cannot be", here, written));
    }
    while (written < here) {
      const uint64_t at = written % window.bytes();
      const uint64_t piece = std::min({here - written, window.bytes() - at, kPiece});
      sum.update(window.data() + at, piece);
      file.append(window.data() + at, piece);
      written += piece;
    }
    progress.at(written);
    sender.send("written", {{"bytes", written}});
  }
  return sum.digest();
}

Json accept_text(const Nic& nic, const SharedMemory& memory) {
  const Address address = {nic.jetty()->jetty_id, memory.segment()->seg, nic.token(), memory.token()};
  return {{"address", tools::to_hex(address)}};
}

void receive_one(const ReceiveOptions& o, Nic& nic, Peer& sender) {
  const Offer offer = expect_offer(sender);
  const int timeout_ms = static_cast<int>(o.timeout_s) * 1000;
  PartFile file(o.directory, offer.name, offer.bytes, o.overwrite);
  std::optional<Buffer> window;
  if (offer.bytes > 0) window.emplace(nic, window_bytes(offer.bytes, offer.chunk));
  sender.send("accept", window ? accept_text(nic, window->memory()) : Json::object());
  Progress progress(offer.name, offer.bytes);
  const uint64_t sum = window ? receive_content(sender, *window, file, offer, timeout_ms, progress) : Xxh64().digest();
  const double seconds = progress.end();
  const std::string got = fmt::format("{:016x}", sum), wanted = sender.expect("done", timeout_ms).value("xxh64", "");
  if (got != wanted)
    throw ToolError(tools::kExitWrongData, fmt::format("the sums differ: sent {}, received {}", wanted, got));
  file.commit(o.sync);
  sender.send("result");
  fmt::print("received {} from {}: {} bytes in {:.3f} s, {}/s, xxh64 {}\n", offer.name, sender.socket().peer_address(),
             offer.bytes, seconds, amount_text(static_cast<double>(offer.bytes) / seconds), got);
  std::fflush(stdout);
}

// One sender, whose mistakes end with it. Returns the exit code.
int serve(const ReceiveOptions& o, Nic& nic, tools::TcpSocket tcp) {
  const std::string from = tcp.peer_address();
  Peer sender(std::move(tcp), "file_copy", "the sender");
  try {
    receive_one(o, nic, sender);
    return tools::kExitOk;
  } catch (const std::exception& e) {
    fmt::print(stderr, "file_copy: from {}: {}\n", from, e.what());
    sender.send_error(e);
    return tools::exit_code_of(e);
  }
}

}  // namespace

int receive_files(const ReceiveOptions& o) {
  struct stat st;
  if (stat(o.directory.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) throw ToolError(o.directory + " is not a directory");
  Nic nic(o.device, 1);
  tools::TcpListener listener(o.port);
  fmt::print("receiving into {} on TCP port {}\n", o.directory, listener.port());
  std::fflush(stdout);
  for (;;) {
    const int code = serve(o, nic, listener.accept());
    if (o.once || code == tools::kExitInterrupted) return code;
  }
}

}  // namespace ub::apps
