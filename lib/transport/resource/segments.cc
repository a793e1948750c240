// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/resource/segments.h"

#include <algorithm>

#include "lib/transport/resource/segment_tree.h"
#include "lib/transport/ta/read_jobs.h"

namespace ub {

namespace {

constexpr uint32_t kIndexBits = 20;
constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;

uint32_t handle_of(const CoreState& s, uint32_t index) {
  return uint32_t{s.segments[index].generation} << kIndexBits | index;
}

Segment* segment_of(CoreState& s, uint32_t handle) {
  uint32_t index = handle & kIndexMask;
  if (index == 0 || index > s.segments.high_water()) return nullptr;
  Segment& segment = s.segments[index];
  if (!segment.in_use || segment.generation != handle >> kIndexBits) return nullptr;
  return &segment;
}

bool inside(uint64_t address, uint64_t bytes, uint64_t start, uint64_t length) {
  uint64_t offset = address - start;
  return address >= start && offset <= length && bytes <= length - offset;
}

SegmentTree segments_of(CoreState& s, uint32_t token_id) { return {s.segments, s.token_ids[token_id].segments}; }

}  // namespace

Status alloc_token_id(CoreState& s, uint32_t* token_id) {
  const uint32_t id = allocate_token_id(s);
  if (id == 0) return Status::kNoId;
  *token_id = id;
  return Status::kOk;
}

Status take_token_id(CoreState& s, uint32_t token_id) {
  if (token_id == 0 || token_id >= kIdSpace) return Status::kInvalid;
  if (s.token_ids[token_id].in_use) return Status::kExists;
  s.token_ids[token_id] = TokenId{0, 0, true};
  return Status::kOk;
}

Status free_token_id(CoreState& s, uint32_t token_id) {
  if (token_id == 0 || token_id >= kIdSpace || !s.token_ids[token_id].in_use) return Status::kInvalid;
  if (s.token_ids[token_id].segments != 0) return Status::kBusy;
  release_token_id(s, token_id);
  return Status::kOk;
}

Status register_segment(CoreState& s, const SegmentConfig& config, RegisteredSegment* out) {
  if (config.memory == nullptr || config.length == 0 || config.address + config.length < config.address) {
    return Status::kInvalid;
  }
  uint32_t token_id = config.token_id;
  if (token_id != 0) {
    if (token_id >= kIdSpace || !s.token_ids[token_id].in_use) return Status::kInvalid;
    if (segments_of(s, token_id).overlaps(config.address, config.length)) return Status::kExists;
  }
  uint32_t index = s.segments.alloc();
  if (index == 0) return Status::kNoMemory;
  if (token_id == 0) {
    Status status = alloc_token_id(s, &token_id);
    if (status != Status::kOk) {
      s.segments.free(index);
      return status;
    }
  }
  Segment& segment = s.segments[index];
  const uint32_t generation = segment.generation;
  segment = Segment{};
  segment.generation = generation + 1;
  segment.memory = config.memory;
  segment.address = config.address;
  segment.local_address = config.local_address;
  segment.length = config.length;
  segment.token_id = token_id;
  segment.token = config.token;
  const auto access = static_cast<uint8_t>(config.access & kAccessRights);
  segment.access = config.exclusive ? exclusively(access) : access;
  segment.owner = config.owner;
  segment.direct = config.direct;
  segment.in_use = true;
  segment.own_token_id = config.token_id == 0;
  segment.priority = s.prng.next_u32();
  segments_of(s, token_id).insert(index);
  *out = {handle_of(s, index), token_id};
  return Status::kOk;
}

Status unregister_segment(CoreState& s, uint32_t handle) {
  Segment* segment = segment_of(s, handle);
  if (segment == nullptr) return Status::kInvalid;
  uint32_t index = handle & kIndexMask;
  segments_of(s, segment->token_id).remove(index);
  segment->in_use = false;
  if (segment->own_token_id) free_token_id(s, segment->token_id);
  s.segments.free(index);
  // Requests of ours that still name the segment fail when their next packet is built; READs of it that are being
  // served end now.
  ta::abort_jobs_of_segment(s, handle);
  return Status::kOk;
}

Status set_segment_token(CoreState& s, uint32_t handle, uint32_t value, uint32_t former) {
  Segment* segment = segment_of(s, handle);
  return segment == nullptr ? Status::kInvalid : set_token(segment->token, value, former);
}

Status set_segment_exclusive(CoreState& s, uint32_t handle, bool exclusive) {
  Segment* segment = segment_of(s, handle);
  if (segment == nullptr) return Status::kInvalid;
  const auto access = static_cast<uint8_t>((segment->access | segment->access >> 4) & kAccessRights);
  segment->access = exclusive ? exclusively(access) : access;
  return Status::kOk;
}

bool describe_segment(CoreState& s, Owner owner, uint32_t handle, PublicSegment* out) {
  const Segment* segment = segment_of(s, handle);
  if (segment == nullptr || segment->owner != owner) return false;
  const auto access = static_cast<uint8_t>((segment->access | segment->access >> 4) & kAccessRights);
  *out = {segment->address, segment->length, segment->token_id, access, segment->token.required};
  return true;
}

std::byte* local_memory(CoreState& s, Owner owner, uint32_t handle, uint64_t address, uint64_t bytes) {
  const Segment* segment = segment_of(s, handle);
  if (segment == nullptr || segment->owner != owner || !inside(address, bytes, segment->local_address, segment->length))
    return nullptr;
  return segment->memory + (address - segment->local_address);
}

namespace {

bool may_access(const Segment& segment, const RemoteAccess& r) {
  if ((segment.access & r.access) == 0) return false;
  return !segment.token.required || (r.has_token && segment.token.fits(r.token_value));
}

}  // namespace

std::byte* remote_memory(CoreState& s, const RemoteAccess& r, uint32_t* handle) {
  if (r.token_id == 0 || r.token_id >= kIdSpace) return nullptr;
  const uint32_t index = segments_of(s, r.token_id).at_or_before(r.address);
  if (index == 0) return nullptr;
  const Segment& segment = s.segments[index];
  if (!inside(r.address, r.bytes, segment.address, segment.length) || !may_access(segment, r)) return nullptr;
  if (handle != nullptr) *handle = handle_of(s, index);
  return segment.memory + (r.address - segment.address);
}

RemotePart remote_part(CoreState& s, const RemoteAccess& range) {
  const uint64_t end = range.address + range.bytes;
  if (range.token_id == 0 || range.token_id >= kIdSpace || end < range.address) return {};
  const SegmentTree tree = segments_of(s, range.token_id);
  uint32_t index = tree.at_or_before(range.address);
  if (index == 0) index = tree.at_or_behind(range.address);
  while (index != 0 && s.segments[index].address < end) {
    const Segment& segment = s.segments[index];
    const uint64_t first = std::max(segment.address, range.address);
    const uint64_t behind = std::min(segment.address + segment.length, end);
    if (first < behind && may_access(segment, range)) {
      return {first - range.address, segment.memory + (first - segment.address), behind - first, segment.direct};
    }
    index = tree.at_or_behind(segment.address + segment.length);
  }
  return {};
}

std::byte* remote_memory_of(CoreState& s, Owner owner, const RemoteAccess& request) {
  uint32_t handle;
  std::byte* memory = remote_memory(s, request, &handle);
  return memory != nullptr && s.segments[handle & kIndexMask].owner == owner ? memory : nullptr;
}

bool invalidate_token_id(CoreState& s, Owner owner, uint32_t token_id, uint32_t token_value) {
  bool found = false;
  if (token_id == 0 || token_id >= kIdSpace) return found;
  const SegmentTree tree = segments_of(s, token_id);
  for (uint32_t i = tree.at_or_behind(0), next; i != 0; i = next) {
    Segment& segment = s.segments[i];
    next = tree.at_or_behind(segment.address + segment.length);
    if (segment.owner != owner) continue;
    if (segment.token.required && !segment.token.fits(token_value)) continue;
    segment.access &= kAccessLocalOnly | exclusively(kAccessLocalOnly);
    found = true;
  }
  if (found) ++s.invalidations;
  return found;
}

}  // namespace ub
