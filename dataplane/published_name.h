// SPDX-License-Identifier: Apache-2.0
//
// A name that a NIC has published, with the memory of its entry, which peers read.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/base/name_entry.h"
#include "lib/transport/core_types.h"

namespace ub {

struct PublishedName {
  std::string name;
  Owner owner = 0;
  PublicSegment segment;
  uint32_t id = 0;     // the token id that stands for the name
  uint32_t entry = 0;  // the segment of the bytes below
  alignas(64) NameEntryBytes bytes{};
};

using PublishedNames = std::map<uint32_t, PublishedName>;  // by the handle of the segment

}  // namespace ub
