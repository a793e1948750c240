// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/config.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "dataplane/eid.h"
#include "lib/impair/quoted.h"
#include "tools/common/tool_error.h"

namespace ub::fabric {
namespace {

using impair::quoted;
using tools::kExitUsage;
using tools::ToolError;

constexpr size_t kLongestSocketName = 100;  // the kernel has 108 bytes

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool is_name(const std::string& name) {
  auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), fits);
}

IpAddress address(const std::string& text, const std::string& where) {
  const std::optional<IpAddress> ip = parse_ip(text);
  if (!ip) throw ToolError(kExitUsage, where + ": " + quoted(text) + " is no IP address");
  return *ip;
}

bool is_socket(const std::string& name) {
  auto fits = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("_-./").find(char(c)) != std::string_view::npos;
  };
  return name.size() <= kLongestSocketName && std::all_of(name.begin(), name.end(), fits);
}

// Of those that name none.
IpAddress own_address(size_t number) { return IpAddress::from_v4(0x7f4d0101 + static_cast<uint32_t>(number)); }
IpAddress seen_address(size_t number) { return IpAddress::from_v4(0x7f4d0201 + static_cast<uint32_t>(number)); }
IpAddress memif_address(size_t number) { return IpAddress::from_v4(0x0a4d0101 + static_cast<uint32_t>(number)); }

void read_udp(const std::vector<std::string>& words, size_t number, const std::string& where, NicConfig* nic) {
  nic->kind = NicKind::kUdp;
  nic->own = words.size() == 1 ? own_address(number) : address(words[1], where);
  nic->seen = words.size() == 1 ? seen_address(number) : address(words[2], where);
  if (nic->own.is_v4() != nic->seen.is_v4()) {
    throw ToolError(kExitUsage, where + ": one address is IPv4, the other IPv6");
  }
}

void read_memif(const std::vector<std::string>& words, size_t number, const std::string& where, NicConfig* nic) {
  nic->kind = NicKind::kMemif;
  nic->own = memif_address(number);
  nic->place = words.size() == 1 ? "softub-fabric-" + nic->name : words[1];
  if (!is_socket(nic->place)) {
    throw ToolError(kExitUsage, where + ": the name of a socket has up to " + std::to_string(kLongestSocketName) +
                                    " letters, digits, and characters of _-./");
  }
}

NicConfig read_nic(const Draft::Nic& draft, size_t number) {
  const std::string where = draft.where + ": NIC " + quoted(draft.name);
  if (!is_name(draft.name)) {
    throw ToolError(kExitUsage, where + ": a name has 1 to 32 letters, digits, and characters of _-.");
  }
  NicConfig nic;
  nic.name = draft.name;
  const std::vector<std::string> words = words_of(draft.text);
  const std::string kind = words.empty() ? "" : words[0];
  if (kind == "udp" && (words.size() == 1 || words.size() == 3)) {
    read_udp(words, number, where, &nic);
  } else if (kind == "interface" && words.size() == 2) {
    nic.kind = NicKind::kInterface;
    nic.place = words[1];
  } else if (kind == "memif" && words.size() <= 2) {
    read_memif(words, number, where, &nic);
  } else {
    throw ToolError(kExitUsage,
                    where + ": " + quoted(draft.text) +
                        " is not \"udp\", \"udp OWN SEEN\", \"interface NAME\", \"memif\" or \"memif SOCKET\"");
  }
  return nic;
}

void refuse_twice(std::set<std::string>* seen, const std::string& what, const std::string& where) {
  if (!seen->insert(what).second) throw ToolError(kExitUsage, where + ": " + what + " is given twice");
}

void refuse_shared(const NicConfig& nic, const std::string& where, std::set<std::string>* taken) {
  refuse_twice(taken, "the name " + nic.name, where);
  if (nic.kind == NicKind::kUdp) {
    refuse_twice(taken, "the address " + to_text(nic.own), where);
    refuse_twice(taken, "the address " + to_text(nic.seen), where);
  } else {
    refuse_twice(taken, (nic.kind == NicKind::kMemif ? "the socket " : "the interface ") + nic.place, where);
  }
}

void check_numbers(const Config& config) {
  if (config.nics.size() < 2 || config.nics.size() > kMostNics) {
    throw ToolError(kExitUsage, "a fabric joins 2 to " + std::to_string(kMostNics) + " NICs, not " +
                                    std::to_string(config.nics.size()) + "; name them with --nic or under [nics]");
  }
  const auto is_memif = [](const NicConfig& nic) { return nic.kind == NicKind::kMemif; };
  const auto memif = static_cast<size_t>(std::count_if(config.nics.begin(), config.nics.end(), is_memif));
  if (memif > kMostMemifNics) {
    throw ToolError(kExitUsage, "a fabric joins up to " + std::to_string(kMostMemifNics) + " NICs over memif, not " +
                                    std::to_string(memif) + ": DPDK has no more devices in a process");
  }
  if (config.paths < 1 || config.paths > kMostPaths) {
    throw ToolError(kExitUsage,
                    "there can be 1 to " + std::to_string(kMostPaths) + " paths, not " + std::to_string(config.paths));
  }
}

}  // namespace

Spray parse_spray(std::string_view text, const std::string& where) {
  if (text == "flow") return Spray::kFlow;
  if (text == "packet") return Spray::kPacket;
  throw ToolError(kExitUsage, where + ": spray " + quoted(text) + " is not \"flow\" or \"packet\"");
}

uint64_t parse_seed(std::string_view text, const std::string& where) {
  uint64_t seed = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (status == std::errc() && end == text.data() + text.size()) return seed;
  throw ToolError(kExitUsage,
                  where + ": seed " + quoted(text) + " is not an integer of 0 to " + std::to_string(UINT64_MAX));
}

Config finish(Draft draft) {
  Config config = std::move(draft.config);
  std::set<std::string> taken;
  for (const Draft::Nic& nic : draft.nics) {
    config.nics.push_back(read_nic(nic, config.nics.size()));
    const NicConfig& made = config.nics.back();
    refuse_shared(made, nic.where, &taken);
    if ((made.kind == NicKind::kUdp) != config.is_udp()) {
      throw ToolError(kExitUsage, nic.where + ": NIC \"" + made.name +
                                      "\": a fabric joins NICs over UDP, or others, not both; start two of them");
    }
  }
  check_numbers(config);
  return config;
}

size_t nic_named(const Config& config, std::string_view name) {
  std::string known;
  for (size_t i = 0; i < config.nics.size(); ++i) {
    if (config.nics[i].name == name) return i;
    known.append(i == 0 ? "" : ", ").append(config.nics[i].name);
  }
  throw ToolError(kExitUsage, "there is no NIC " + quoted(name) + "; there are " + known);
}

}  // namespace ub::fabric
