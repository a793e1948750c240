// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/names/lookup.h"

#include <optional>
#include <vector>

#include "lib/urma/clock.h"
#include "lib/urma/device/eid.h"
#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"
#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"
#include "lib/urma/objects/find.h"

namespace ub::aperture {
namespace {

bool load_entry(urma_target_seg_t* seg, NameEntryBytes* bytes) {
  softub_aperture_t* handle = softub_open(seg, nullptr);
  if (handle == nullptr) return false;
  const urma_cr_status_t status = softub_load(handle, 0, bytes->data(), static_cast<uint32_t>(bytes->size()));
  softub_close(handle);
  return status == URMA_CR_SUCCESS;
}

// What an instance publishes under that id. Empty: another name, or nothing any more.
std::optional<PublicSegment> read_entry(urma_context_t* context, const urma_eid_t& eid, uint32_t uasid, uint32_t id,
                                        const std::string& name) {
  urma_seg_t entry{};
  entry.ubva.eid = eid;
  entry.ubva.uasid = uasid;
  entry.ubva.va = kNameEntryAddress;
  entry.len = kNameEntryBytes;
  entry.token_id = id;
  entry.attr.bs.access = URMA_ACCESS_READ;
  urma_target_seg_t* seg = urma_import_seg(context, &entry, nullptr, 0, {});
  if (seg == nullptr) return std::nullopt;
  NameEntryBytes bytes;
  const bool loaded = load_entry(seg, &bytes);
  urma_unimport_seg(seg);
  return loaded ? read_name_entry(name, bytes) : std::nullopt;
}

// Asks all ids again and again until each has answered, so that one which nobody answers for holds up no other.
bool ask_all(urma_context_t* context, const urma_eid_t& eid, const std::string& name, uint32_t not_by, int64_t until,
             FoundName* found, std::string* why) {
  const auto ids = ids_of_name(name);
  std::vector<uint32_t> open(ids.begin(), ids.end());
  const Eid local = urma::eid_of(context->eid), there = urma::eid_of(eid);
  for (urma::FindPause pause;; pause.rest()) {
    std::vector<uint32_t> silent;
    for (const uint32_t id : open) {
      uint32_t uasid = 0;
      const Status status = urma::backend().find_instance(local, there, id, true, &uasid, why);
      if (status == Status::kBusy) silent.push_back(id);
      if (status != Status::kOk || uasid == not_by) continue;
      if (const auto segment = read_entry(context, eid, uasid, id, name)) {
        *found = {uasid, *segment};
        return true;
      }
    }
    open = std::move(silent);
    if (open.empty() || urma::now_ns() > until) return false;
  }
}

}  // namespace

Status look_up(urma_context_t* context, const urma_eid_t& eid, const std::string& name, uint32_t not_by, Care care,
               FoundName* found, std::string* why) {
  const int64_t until = urma::now_ns() + urma::kFindPatienceNs;
  for (int times = static_cast<int>(care); times != 0 && urma::now_ns() < until; --times) {
    if (ask_all(context, eid, name, not_by, until, found, why)) return Status::kOk;
  }
  return Status::kInvalid;
}

}  // namespace ub::aperture
