// SPDX-License-Identifier: Apache-2.0
//
// Who has published a name (docs/aperture-design.md, "Names"): the instances that have one of its ids are asked, and
// their entries read. Thread: any; waits, and moves the NIC forward meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/name_entry.h"
#include "lib/base/status.h"
#include "lib/urma/include/ub/umdk/urma/urma_types.h"

namespace ub::aperture {

struct FoundName {
  uint32_t uasid = 0;  // of the instance that has the entry, and so the segment
  PublicSegment segment;
};

// kOnce may miss a name that was published within the last second: a NIC keeps an answer so long that an earlier search
// did not wait for. Whoever asks takes it away, so that kTwice asks anew.
enum class Care : uint8_t { kOnce = 1, kTwice = 2 };

// The name at that EID, published by another instance than `not_by` (0: by any). kOk; kInvalid: nobody has, or nobody
// answers; `*why` says what the last of those who were asked said.
Status look_up(urma_context_t* context, const urma_eid_t& eid, const std::string& name, uint32_t not_by, Care care,
               FoundName* found, std::string* why);

}  // namespace ub::aperture
