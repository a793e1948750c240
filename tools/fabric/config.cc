// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/config.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <sstream>

#include "dataplane/eid.h"
#include "tools/common/tool_error.h"
#include "tools/fabric/udp_ports.h"

namespace ub::fabric {
namespace {

using tools::kExitUsage;
using tools::ToolError;

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
  if (!ip) throw ToolError(kExitUsage, where + ": \"" + text + "\" is no IP address");
  return *ip;
}

// The addresses of those that name none.
IpAddress own_address(size_t number) { return IpAddress::from_v4(0x7f4d0101 + static_cast<uint32_t>(number)); }
IpAddress seen_address(size_t number) { return IpAddress::from_v4(0x7f4d0201 + static_cast<uint32_t>(number)); }

NicConfig read_nic(const Draft::Nic& draft, size_t number) {
  const std::string where = draft.where + ": NIC \"" + draft.name + "\"";
  if (!is_name(draft.name)) {
    throw ToolError(kExitUsage, where + ": a name has 1 to 32 letters, digits, and characters of _-.");
  }
  NicConfig nic;
  nic.name = draft.name;
  const std::vector<std::string> words = words_of(draft.text);
  if (words.size() == 2 && words[0] == "interface") {
    nic.interface = words[1];
  } else if (words.size() == 1 && words[0] == "udp") {
    nic.own = own_address(number);
    nic.seen = seen_address(number);
  } else if (words.size() == 3 && words[0] == "udp") {
    nic.own = address(words[1], where);
    nic.seen = address(words[2], where);
    if (nic.own.is_v4() != nic.seen.is_v4())
      throw ToolError(kExitUsage, where + ": one address is IPv4, the other IPv6");
  } else {
    throw ToolError(kExitUsage,
                    where + ": \"" + draft.text + "\" is not \"udp\", \"udp OWN SEEN\" or \"interface NAME\"");
  }
  return nic;
}

void refuse_twice(std::set<std::string>* seen, const std::string& what, const std::string& where) {
  if (!seen->insert(what).second) throw ToolError(kExitUsage, where + ": " + what + " is given twice");
}

}  // namespace

Spray parse_spray(std::string_view text, const std::string& where) {
  if (text == "flow") return Spray::kFlow;
  if (text == "packet") return Spray::kPacket;
  throw ToolError(kExitUsage, where + ": spray \"" + std::string(text) + "\" is not \"flow\" or \"packet\"");
}

Config finish(Draft draft) {
  Config config = std::move(draft.config);
  std::set<std::string> taken;
  for (const Draft::Nic& nic : draft.nics) {
    config.nics.push_back(read_nic(nic, config.nics.size()));
    const NicConfig& made = config.nics.back();
    refuse_twice(&taken, "the name " + made.name, nic.where);
    if (made.interface.empty()) {
      refuse_twice(&taken, "the address " + to_text(made.own), nic.where);
      refuse_twice(&taken, "the address " + to_text(made.seen), nic.where);
    } else {
      refuse_twice(&taken, "the interface " + made.interface, nic.where);
    }
    if (made.interface.empty() != config.is_udp()) {
      throw ToolError(kExitUsage, nic.where + ": NIC \"" + made.name +
                                      "\": a fabric joins NICs over UDP or interfaces, not both; start two of them");
    }
  }
  if (config.nics.size() < 2 || config.nics.size() > kMostNics) {
    throw ToolError(kExitUsage, "a fabric joins 2 to " + std::to_string(kMostNics) + " NICs, not " +
                                    std::to_string(config.nics.size()) + "; name them with --nic or under [nics]");
  }
  if (config.paths < 1 || config.paths > kMostPaths) {
    throw ToolError(kExitUsage,
                    "there can be 1 to " + std::to_string(kMostPaths) + " paths, not " + std::to_string(config.paths));
  }
  return config;
}

std::vector<std::string> environment_of(const Config& config, size_t nic) {
  std::string map;
  for (const NicConfig& other : config.nics) {
    if (&other == &config.nics[nic]) continue;
    map.append(map.empty() ? "" : ",").append(to_text(other.own)).append("=").append(to_text(other.seen));
  }
  return {"SOFTUB_PORT_KINDS=udp", "SOFTUB_DEVICE_EIDS=" + to_text(config.nics[nic].own),
          "SOFTUB_DEVICE_EID_MAP=" + map, "SOFTUB_DEVICE_ID_BLOCK=" + std::to_string(kIdBlock)};
}

size_t nic_named(const Config& config, std::string_view name) {
  std::string known;
  for (size_t i = 0; i < config.nics.size(); ++i) {
    if (config.nics[i].name == name) return i;
    known.append(i == 0 ? "" : ", ").append(config.nics[i].name);
  }
  throw ToolError(kExitUsage, "there is no NIC \"" + std::string(name) + "\"; there are " + known);
}

}  // namespace ub::fabric
