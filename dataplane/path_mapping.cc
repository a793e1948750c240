// SPDX-License-Identifier: Apache-2.0
#include "dataplane/path_mapping.h"

#include <string_view>

#include "dataplane/eid.h"

namespace ub {
namespace {

// An address that one host may have.
bool is_of_a_host(const wire::IpAddress& ip) {
  const uint8_t first = ip.is_v4() ? ip.bytes[12] : ip.bytes[0];
  return ip.is_v4() ? first != 0 && first < 224 : ip != wire::IpAddress{} && first != 0xff;
}

}  // namespace

std::optional<PathMapping> parse_path_mapping(const std::string& text) {
  const size_t equals = text.find('='), arrow = text.find('>');
  if (equals == std::string::npos || arrow == std::string::npos || arrow < equals) return std::nullopt;
  const std::string_view view = text;
  const auto peer = parse_ip(view.substr(0, equals));
  const auto local = parse_ip(view.substr(equals + 1, arrow - equals - 1));
  const auto remote = parse_ip(view.substr(arrow + 1));
  if (!peer || !local || !remote) return std::nullopt;
  if (peer->is_v4() != local->is_v4() || peer->is_v4() != remote->is_v4()) return std::nullopt;
  if (!is_of_a_host(*peer) || !is_of_a_host(*local) || !is_of_a_host(*remote)) return std::nullopt;
  return PathMapping{*peer, *local, *remote};
}

}  // namespace ub
