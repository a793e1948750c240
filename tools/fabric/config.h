// SPDX-License-Identifier: Apache-2.0
//
// What a fabric joins, and what its links are like at the start: from a TOML file, from the command line, or from both
// (docs/fabric.md). Everything that can be known to be wrong without opening a socket is refused here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/transport/addresses.h"

namespace ub::fabric {

inline constexpr size_t kMostNics = 64;
inline constexpr size_t kMostMemifNics = 32;  // as many devices as DPDK has in a process
inline constexpr uint32_t kMostPaths = 16;

// How the frames from one NIC to another are shared out among the paths.
enum class Spray : uint8_t {
  kFlow,    // frames with the same addresses and UDP ports take the same path
  kPacket,  // each frame takes the next path
};

enum class NicKind : uint8_t {
  kUdp,
  kInterface,  // whatever is behind an interface of the kernel
  kMemif,      // whoever connects to a socket, to share memory
};

struct NicConfig {
  std::string name;
  NicKind kind = NicKind::kUdp;
  std::string place;  // of the interface or the socket, its name
  IpAddress own;      // UDP: the address that the NIC binds. memif: that of a program with environment_of()
  IpAddress seen;     // UDP: the address under which the other NICs reach it, which the fabric binds
};

// Links, and the text of lib/impair/text.h that applies to them.
struct Setting {
  std::string links;
  std::string text;
  std::string where;  // it was read, for messages
};

struct Config {
  std::vector<NicConfig> nics;
  std::vector<Setting> settings;  // in the order in which they apply
  uint32_t paths = 1;             // from each NIC to each other one
  Spray spray = Spray::kFlow;
  uint64_t seed = 1;
  std::string control;  // path of the control socket; empty: none

  bool is_udp() const { return !nics.empty() && nics.front().kind == NicKind::kUdp; }
};

// What a configuration is made of, before it is checked: the text of each NIC is "udp", "udp OWN SEEN",
// "interface NAME", "memif" or "memif SOCKET".
struct Draft {
  struct Nic {
    std::string name;
    std::string text;
    std::string where;
  };
  std::vector<Nic> nics;
  Config config;
};

// Adds what a file says. Throws ToolError with the file, the line and the column of what is wrong.
void load_file(const std::string& path, Draft* draft);

// "flow" or "packet"; throws ToolError, whose sentence begins with `where`.
Spray parse_spray(std::string_view text, const std::string& where);

// An integer of 64 bits without a sign; throws ToolError, as parse_spray() does.
uint64_t parse_seed(std::string_view text, const std::string& where);

// The whole, checked. A UDP NIC without addresses gets 127.77.1.N, and is seen as 127.77.2.N, where N is its number in
// the order of the NICs. A memif NIC has 10.77.1.N, and without a socket that of softub-fabric-NAME. Throws ToolError.
Config finish(Draft draft);

// The environment of a program that is to own NIC number `nic`, NAME=VALUE each (environment.cc). Throws ToolError: a
// NIC behind an interface needs none of the fabric.
std::vector<std::string> environment_of(const Config& config, size_t nic);

// The number of the NIC with that name; throws ToolError, which names those that there are.
size_t nic_named(const Config& config, std::string_view name);

}  // namespace ub::fabric
