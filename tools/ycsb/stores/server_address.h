// SPDX-License-Identifier: Apache-2.0
//
// Where the TCP server of a store is, and how its clients wait: the properties NAME.host, NAME.port and NAME.wait.
#pragma once

#include <cstdint>
#include <string>

#include "tools/ycsb/properties.h"
#include "tools/ycsb/stores/byte_stream.h"

namespace ub::ycsb {

class ServerAddress {
 public:
  // ToolError (kExitUsage): a property has a bad value.
  ServerAddress(const Properties& p, const std::string& store, uint16_t usual_port)
      : host_(p.text(store + ".host", "localhost")),
        port_(static_cast<uint16_t>(p.number(store + ".port", usual_port, 1, UINT16_MAX))),
        wait_(p.choice(store + ".wait", "block", {"block", "busy"}) == "busy" ? Wait::kBusy : Wait::kBlock) {}

  // ToolError if nobody listens there.
  ByteStream connect() const { return ByteStream(tools::TcpSocket::connect(host_, port_), wait_); }
  std::string text() const { return host_ + " port " + std::to_string(port_); }

 private:
  std::string host_;
  uint16_t port_;
  Wait wait_;
};

}  // namespace ub::ycsb
