// SPDX-License-Identifier: Apache-2.0
//
// Both ends of a copy. Over TCP go small JSON messages, over URMA goes the content:
//
//   sender                                receiver
//   offer {name, bytes, chunk}   ->       creates the unfinished file, and a window of registered memory
//                                <-       accept {address}
//   WRITEs of a chunk each into the window, which is a ring: byte N of the file goes to N modulo its size
//   progress {bytes}             ->       appends so much to the file and to the sum
//                                <-       written {bytes}: so much of the window is free again
//   done {xxh64}                 ->       compares, renames
//                                <-       result
//
// Whoever fails says why instead (error, see tools/common/peer.h). The receiver's NIC places the bytes while its
// application thread writes others to the file. Neither side maps a file: whatever happens to it is an error code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace ub::apps {

constexpr int kVersion = 2;
constexpr uint64_t kMaxWindow = 32 << 20;
constexpr uint64_t kMaxChunk = kMaxWindow / 2;

// A whole number of chunks, no more than the file needs.
constexpr uint64_t window_bytes(uint64_t file_bytes, uint64_t chunk) {
  return std::min(kMaxWindow / chunk, (file_bytes - 1) / chunk + 1) * chunk;
}

struct SendOptions {
  std::string file, host, name;  // name: at the receiver; empty: that of the file
  uint16_t port = 21117;
  uint64_t iobuf = 1 << 20;
  uint32_t inflight = 8;
  uint32_t timeout_s = 30;  // without progress of the receiver
  std::string device;
};

struct ReceiveOptions {
  std::string directory = ".";
  uint16_t port = 21117;
  uint32_t timeout_s = 30;  // without progress of the sender
  bool once = false;
  bool overwrite = false;
  bool sync = false;  // on the disk before we say that it is there
  std::string device;
};

// Return the exit code or throw ToolError.
int send_file(const SendOptions&);
int receive_files(const ReceiveOptions&);

// A line on stderr that is rewritten, if that is a terminal.
class Progress {
 public:
  Progress(std::string name, uint64_t total);
  ~Progress();
  void at(uint64_t bytes);
  double end();  // takes the line away; returns the seconds that it took

 private:
  double seconds() const;

  std::string name_;
  uint64_t total_, started_ns_, shown_ns_ = 0;
  bool terminal_, dirty_ = false;
};

std::string amount_text(double bytes);  // "1.5 GB"

}  // namespace ub::apps
