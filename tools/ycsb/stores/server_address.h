// SPDX-License-Identifier: Apache-2.0
//
// Where the TCP server of a store is, and how its clients wait: the properties NAME.host, NAME.port and NAME.wait. Each
// client greets the server first, so that another program at that port is noticed.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "tools/common/tool_error.h"
#include "tools/ycsb/properties.h"
#include "tools/ycsb/stores/byte_stream.h"

namespace ub::ycsb {

class ServerAddress {
 public:
  // ToolError (kExitUsage): a property has a bad value.
  ServerAddress(const Properties& p, const std::string& store, uint16_t usual_port)
      : store_(store),
        host_(p.text(store + ".host", "localhost")),
        port_(static_cast<uint16_t>(p.number(store + ".port", usual_port, 1, UINT16_MAX))),
        wait_(p.choice(store + ".wait", "block", {"block", "busy"}) == "busy" ? Wait::kBusy : Wait::kBlock) {}

  // ToolError if nobody listens there.
  ByteStream connect() const { return ByteStream(tools::TcpSocket::connect(host_, port_), wait_); }
  // Sends the greeting that is in the stream, and receives until `answered()`. ToolError if that takes seconds.
  template <class Answered>
  void greet(ByteStream& stream, Answered answered) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    for (stream.exchange(0); !answered(); stream.exchange(10'000'000)) {
      tools::throw_if_stopped();
      if (std::chrono::steady_clock::now() > end) throw other_protocol("it does not answer");
    }
  }
  tools::ToolError other_protocol(std::string_view why) const {
    return tools::ToolError(fmt::format("{} port {} is no server for -db {}: {}", host_, port_, store_, why));
  }

 private:
  std::string store_, host_;
  uint16_t port_;
  Wait wait_;
};

}  // namespace ub::ycsb
