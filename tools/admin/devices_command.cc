// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fmt/format.h>
#include <urma_api.h>
#include <urma_types_str.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/admin/commands.h"

namespace ub::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string eid_text(const urma_eid_t& e) {
  char text[INET6_ADDRSTRLEN] = "?";
  const bool v4 = e.in4.reserved == 0 && e.in4.prefix == htonl(URMA_IPV4_MAP_IPV6_PREFIX);
  inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? static_cast<const void*>(&e.in4.addr) : e.raw, text, sizeof text);
  return text;
}

template <size_t N>
std::string set_of(uint32_t bits, const char* const (&names)[N]) {
  std::string text;
  for (size_t i = 0; i < N; ++i) {
    if ((bits >> i & 1) != 0) text += fmt::format("{}{}", text.empty() ? "" : " ", names[i]);
  }
  return text.empty() ? "none" : text;
}

Json capabilities_of(const urma_device_attr_t& attr) {
  const urma_device_cap_t& c = attr.dev_cap;
  std::string features, atomics;
  for (uint8_t bit = 0; bit < URMA_DEVICE_FEAT_NUM; ++bit) {
    if ((c.feature.value >> bit & 1) != 0) features += fmt::format("{} ", urma_device_feat_to_string(bit));
  }
  for (uint8_t bit = 0; bit < URMA_ATOMIC_FEAT_NUM; ++bit) {
    if ((c.atomic_feat.value >> bit & 1) != 0) atomics += fmt::format("{} ", urma_atomic_feat_to_string(bit));
  }
  static constexpr const char* kModes[] = {"RM", "RC", "UM"};
  static constexpr const char* kOrders[] = {"OT", "OI", "OL", "NO"};
  static constexpr const char* kTps[] = {"RTP", "CTP", "UTP"};
  auto trimmed = [](std::string s) {
    while (!s.empty() && s.back() == ' ') s.pop_back();
    return s.empty() ? std::string("none") : s;
  };
  return {{"transport modes", set_of(c.trans_mode, kModes)},
          {"orders of RM", set_of(c.rm_order_cap.value, kOrders)},
          {"orders of RC", set_of(c.rc_order_cap.value, kOrders)},
          {"channel types of RM", set_of(c.rm_tp_cap.value, kTps)},
          {"channel types of RC", set_of(c.rc_tp_cap.value, kTps)},
          {"channel types of UM", set_of(c.um_tp_cap.value, kTps)},
          {"features", trimmed(features)},
          {"atomics", trimmed(atomics)},
          {"max_jfc", c.max_jfc},
          {"max_jfs", c.max_jfs},
          {"max_jfr", c.max_jfr},
          {"max_jetty", c.max_jetty},
          {"max_jetty_grp", c.max_jetty_grp},
          {"max_jfc_depth", c.max_jfc_depth},
          {"max_jfs_depth", c.max_jfs_depth},
          {"max_jfr_depth", c.max_jfr_depth},
          {"max_jfs_inline_len", c.max_jfs_inline_len},
          {"max_jfs_sge", c.max_jfs_sge},
          {"max_jfs_rsge", c.max_jfs_rsge},
          {"max_jfr_sge", c.max_jfr_sge},
          {"max_msg_size", c.max_msg_size},
          {"max_read_size", c.max_read_size},
          {"max_write_size", c.max_write_size},
          {"max_eid_cnt", c.max_eid_cnt},
          {"jetty ids on request", fmt::format("{}..{}", attr.reserved_jetty_id_min, attr.reserved_jetty_id_max)}};
}

Json describe_device(urma_device_t* device, bool capabilities) {
  Json d = {{"name", device->name}, {"type", urma_tp_type_to_string(device->type)}, {"eids", Json::array()}};
  uint32_t count = 0;
  urma_eid_info_t* eids = urma_get_eid_list(device, &count);
  for (uint32_t i = 0; eids != nullptr && i < count; ++i) {
    d["eids"].push_back({{"index", eids[i].eid_index}, {"eid", eid_text(eids[i].eid)}});
  }
  urma_free_eid_list(eids);
  urma_device_attr_t attr = {};
  if (urma_query_device(device, &attr) != URMA_SUCCESS) {
    d["error"] = "cannot be queried";
    return d;
  }
  d["ports"] = Json::array();
  for (int i = 0; i < attr.port_cnt && i < MAX_PORT_CNT; ++i) {
    const urma_port_attr& p = attr.port_attr[i];
    d["ports"].push_back({{"state", urma_port_state_to_string(p.state)},
                          {"mtu", urma_mtu_to_string(p.active_mtu)},
                          {"speed", urma_speed_to_string(p.active_speed)}});
  }
  if (capabilities) d["capabilities"] = capabilities_of(attr);
  return d;
}

}  // namespace

int show_devices(bool capabilities, bool json) {
  const urma_status_t status = urma_init(nullptr);
  if (status != URMA_SUCCESS) {
    fmt::print(
        stderr,
        "urma_admin: liburma does not start; see what it said before, or the system log, and urma_admin config\n");
    return 1;
  }
  int count = 0;
  urma_device_t** list = urma_get_device_list(&count);
  Json document = Json::array();
  for (int i = 0; i < count; ++i) document.push_back(describe_device(list[i], capabilities));
  urma_free_device_list(list);
  urma_uninit();

  if (json) {
    fmt::print("{}\n", document.dump(2));
  } else {
    for (const Json& d : document) {
      fmt::print("{}  type {}\n", d["name"].get<std::string>(), d["type"].get<std::string>());
      for (const Json& e : d["eids"]) {
        fmt::print("  EID {}  {}\n", e["index"].get<uint32_t>(), e["eid"].get<std::string>());
      }
      if (!d.contains("ports")) continue;
      int number = 0;
      for (const Json& p : d["ports"]) {
        fmt::print("  port {}  {}, {}, {}\n", number++, p["state"].get<std::string>(), p["mtu"].get<std::string>(),
                   p["speed"].get<std::string>());
      }
      if (!d.contains("capabilities")) continue;
      for (auto& [name, value] : d["capabilities"].items()) {
        fmt::print("  {:<24} {}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
      }
    }
  }
  if (count == 0) fmt::print(stderr, "urma_admin: there is no device\n");
  return count == 0 ? 1 : 0;
}

}  // namespace ub::tools
