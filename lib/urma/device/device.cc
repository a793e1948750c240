// SPDX-License-Identifier: Apache-2.0
// The device list: one software NIC per process. Defaults satisfy URMA API 0.9, section 9.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lib/base/atomic_operation.h"
#include "lib/urma/device/device_limits.h"
#include "lib/urma/device/eid.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/log.h"
#include "lib/urma/status.h"

namespace ub::urma {
namespace {

constexpr uint32_t kRtp = 1, kCtp = 2, kUtp = 4;  // bits of the TP type sets

// Which channel type a priority stands for: programs search the table for the one they want.
uint32_t tp_type_of_priority(const DeviceSettings& settings, uint32_t priority) {
  if (priority < settings.rtp_priorities) return kRtp;
  return priority < settings.rtp_priorities + settings.ctp_priorities ? kCtp : kUtp;
}

urma_mtu_t mtu_code(uint32_t bytes) {
  if (bytes >= 8192) return URMA_MTU_8192;
  if (bytes >= 4096) return URMA_MTU_4096;
  if (bytes >= 2048) return URMA_MTU_2048;
  if (bytes >= 1024) return URMA_MTU_1024;
  return bytes >= 512 ? URMA_MTU_512 : URMA_MTU_256;
}

}  // namespace

urma_device_cap_t make_caps(const DeviceSettings& settings) {
  urma_device_cap_t cap{};
  cap.feature.value = settings.features;
  cap.max_jfc = settings.max_jfc;
  cap.max_jfs = settings.max_jfs;
  cap.max_jfr = settings.max_jfr;
  cap.max_jetty = settings.max_jetty;
  cap.max_jetty_grp = kMaxGroups;
  cap.max_jetty_in_jetty_grp = URMA_MAX_JETTY_IN_JETTY_GRP;
  cap.max_jfc_depth = settings.max_jfc_depth;
  cap.max_jfs_depth = settings.max_jfs_depth;
  cap.max_jfr_depth = settings.max_jfr_depth;
  cap.max_jfs_inline_len = kMaxInline;
  cap.max_jfs_sge = kMaxSges;
  cap.max_jfs_rsge = kMaxSges;
  cap.max_jfr_sge = kMaxSges;
  cap.max_msg_size = kMaxMessage;
  cap.max_read_size = kMaxMessage;
  cap.max_write_size = kMaxMessage;
  const uint32_t widest = has_wide_atomics() ? 16 : 8;
  cap.max_cas_size = cap.max_swap_size = widest;
  cap.max_fetch_and_add_size = cap.max_fetch_and_sub_size = widest;
  cap.max_fetch_and_and_size = cap.max_fetch_and_or_size = cap.max_fetch_and_xor_size = widest;
  cap.atomic_feat.value = 0x7f;
  cap.trans_mode = URMA_TM_RM | URMA_TM_RC | URMA_TM_UM;
  cap.congestion_ctrl_alg = URMA_CC_NONE;
  cap.ceq_cnt = 1;
  cap.max_tp_in_tpg = 1;
  cap.max_eid_cnt = URMA_MAX_EID_CNT;
  cap.page_size_cap = 4096 | 2U << 20 | 1U << 30;
  cap.max_oor_cnt = settings.window_packets;
  cap.rm_order_cap.bs.oi = 1;
  cap.rc_order_cap.bs.ot = 1;
  cap.rc_order_cap.bs.ol = 1;
  cap.rm_tp_cap.value = kRtp | kCtp;
  cap.rc_tp_cap.value = kRtp | kCtp;
  cap.um_tp_cap.value = kUtp | kCtp;
  for (uint32_t priority = 0; priority < URMA_MAX_PRIORITY_CNT; ++priority) {
    cap.priority_info[priority].SL = priority;
    cap.priority_info[priority].tp_type.value = tp_type_of_priority(settings, priority);
  }
  return cap;
}

}  // namespace ub::urma

using namespace ub;
using namespace ub::urma;

urma_device_t** urma_get_device_list(int* num_devices) {
  if (num_devices == nullptr) return fail(EINVAL);
  *num_devices = 0;
  Device* device = Library::get().device();
  if (device == nullptr) return fail(ENODEV);
  // One entry more than needed: some programs walk to a NULL.
  auto** list = static_cast<urma_device_t**>(calloc(2, sizeof(urma_device_t*)));
  if (list == nullptr) return fail(ENOMEM);
  list[0] = &device->pub;
  *num_devices = 1;
  return list;
}

void urma_free_device_list(urma_device_t** device_list) { free(device_list); }

urma_device_t* urma_get_device_by_name(char* dev_name) {
  if (dev_name == nullptr || strnlen(dev_name, URMA_MAX_NAME) >= URMA_MAX_NAME) return fail(EINVAL);
  Device* device = Library::get().device();
  if (device != nullptr && strcmp(device->pub.name, dev_name) == 0) return &device->pub;
  if (device != nullptr) URMA_LOG_ERROR("there is no device %s, but %s (device.name)", dev_name, device->pub.name);
  return fail(ENODEV);
}

urma_device_t* urma_get_device_by_eid(urma_eid_t eid, urma_transport_type_t type) {
  if (type <= URMA_TRANSPORT_INVALID || type >= URMA_TRANSPORT_MAX) return fail(EINVAL);
  Library& library = Library::get();
  Device* device = library.device();
  if (device == nullptr || device->pub.type != type) return fail(ENODEV);
  for (const Eid& own : library.eids()) {
    if (memcmp(own.bytes.data(), eid.raw, sizeof eid.raw) == 0) return &device->pub;
  }
  return fail(ENODEV);
}

urma_eid_info_t* urma_get_eid_list(urma_device_t* dev, uint32_t* cnt) {
  if (live<Device>(dev) == nullptr || cnt == nullptr) return fail(EINVAL);
  *cnt = 0;
  const auto& eids = Library::get().eids();
  if (eids.empty()) return fail(EIO);
  auto* list = static_cast<urma_eid_info_t*>(calloc(eids.size(), sizeof(urma_eid_info_t)));
  if (list == nullptr) return fail(ENOMEM);
  for (size_t i = 0; i < eids.size(); ++i) {
    list[i].eid = eid_of(eids[i]);
    list[i].eid_index = static_cast<uint32_t>(i);
  }
  *cnt = static_cast<uint32_t>(eids.size());
  return list;
}

void urma_free_eid_list(urma_eid_info_t* eid_list) { free(eid_list); }

urma_status_t urma_query_device(urma_device_t* dev, urma_device_attr_t* dev_attr) {
  if (live<Device>(dev) == nullptr || dev_attr == nullptr) return URMA_EINVAL;
  Library& library = Library::get();
  urma_device_attr_t attr{};
  if (!library.eids().empty()) memcpy(attr.guid.raw, library.eids()[0].bytes.data(), sizeof attr.guid.raw);
  attr.dev_cap = library.caps();
  const DeviceSettings& settings = library.settings();
  attr.port_cnt = static_cast<uint8_t>(settings.ports);
  const urma_mtu_t mtu = mtu_code(backend().port_mtu_bytes());
  std::fill_n(attr.port_attr, settings.ports,
              urma_port_attr_t{URMA_MTU_8192, settings.port_state, settings.port_width, settings.port_speed, mtu});
  for (uint32_t port = 0; port < settings.ports; ++port) {
    if ((library.lost_ports() >> port & 1) != 0) attr.port_attr[port].state = URMA_PORT_DOWN;
  }
  attr.reserved_jetty_id_min = kReservedIdMin;
  attr.reserved_jetty_id_max = kReservedIdMax;
  *dev_attr = attr;
  return URMA_SUCCESS;
}
