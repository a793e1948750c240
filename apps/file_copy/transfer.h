// SPDX-License-Identifier: Apache-2.0
//
// Both ends of a copy. Over TCP go small JSON messages, over URMA goes the content:
//
//   sender                                receiver
//   offer {name, bytes}          ->       creates NAME.part of that size, maps and registers it
//                                <-       accept {address}, or refuse {reason}
//   WRITEs into the file
//   progress {bytes}             ->       sums what has come (every 16 MiB; it sleeps meanwhile)
//   done {xxh64}                 ->       compares, renames
//                                <-       result {ok, reason}
//
// The receiver's application thread does nothing for the content: its NIC places the bytes.
#pragma once

#include <cstdint>
#include <string>

namespace ub::apps {

struct SendOptions {
  std::string file, host, name;  // name: at the receiver; empty: that of the file
  uint16_t port = 21117;
  uint64_t iobuf = 1 << 20;
  uint32_t inflight = 8;
  std::string device;
};

struct ReceiveOptions {
  std::string directory = ".";
  uint16_t port = 21117;
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
  double seconds() const;

 private:
  std::string name_;
  uint64_t total_, started_ns_, shown_ns_ = 0;
  bool terminal_, dirty_ = false;
};

std::string amount_text(double bytes);  // "1.5 GB"

}  // namespace ub::apps
