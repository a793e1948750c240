// SPDX-License-Identifier: Apache-2.0
//
// The memory of a segment of another instance of this host, if this process may map it: its NIC then carries out
// requests to it without packets (aperture/same_host/mapped_segment.h, docs/same-host-design.md). Thread: any.
#pragma once

#include <memory>

#include "lib/urma/objects/objects.h"

namespace ub::urma {

// Of urma_seg_attr_t::value, whose upper bits are reserved: the owner lets programs of its host map the memory.
constexpr uint32_t kSegmentShareable = 1u << 15;

// Waits for the owner's NIC, a tenth of a second at most. Null: packets carry all requests.
std::shared_ptr<MappedSegment> map_segment(const Segment& segment);
// Nothing touches the memory when this returns.
void unmap_segment(MappedSegment& mapped);
// Before the back end goes: all that are left.
void unmap_all_segments();

}  // namespace ub::urma
