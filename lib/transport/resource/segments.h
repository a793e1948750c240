// SPDX-License-Identifier: Apache-2.0
//
// Registered memory: token ids, segments, and the checks that every access passes (UB Base Specification Rev 2.0,
// 9.4). A handle carries a generation, so that a request which still names an unregistered segment finds nothing.
#pragma once

#include "lib/base/name_entry.h"
#include "lib/transport/core_state.h"

namespace ub {

Status alloc_token_id(CoreState& s, uint32_t* token_id);
// That one, which no block of this instance need have. kExists: it is in use.
Status take_token_id(CoreState& s, uint32_t token_id);
Status free_token_id(CoreState& s, uint32_t token_id);
Status register_segment(CoreState& s, const SegmentConfig& config, RegisteredSegment* out);
Status unregister_segment(CoreState& s, uint32_t handle);
Status set_segment_token(CoreState& s, uint32_t handle, uint32_t value, uint32_t former);
Status set_segment_exclusive(CoreState& s, uint32_t handle, bool exclusive);

// False: there is no such segment of this owner.
bool describe_segment(CoreState& s, Owner owner, uint32_t handle, PublicSegment* out);

// The memory of a local range, or nullptr: the segment is not registered, belongs to another owner, or does not contain
// the range.
std::byte* local_memory(CoreState& s, Owner owner, uint32_t handle, uint64_t address, uint64_t bytes);

struct RemoteAccess {
  uint32_t token_id;
  bool has_token;
  uint32_t token_value;
  uint64_t address;
  uint64_t bytes;
  uint8_t access;  // one of kAccessRead, kAccessWrite, kAccessAtomic; with E_bit also as exclusively() makes it
};
// The rights to exclusive memory (E_bit, 9.4) are bits of their own above kAccessRights, so that a request without
// E_bit has none.
constexpr uint8_t kAccessRights = 0xF;
constexpr uint8_t exclusively(uint8_t access) { return static_cast<uint8_t>(access << 4); }
// The memory that a peer asks to access, or nullptr: token, bounds, permission or E_bit do not allow it. `*handle`
// becomes that of the segment; `handle` may be null.
std::byte* remote_memory(CoreState& s, const RemoteAccess& request, uint32_t* handle);
// The same, but only for segments of this owner.
std::byte* remote_memory_of(CoreState& s, Owner owner, const RemoteAccess& request);
// A range that need not lie in one segment: its first part that the request may access. Several segments of the token
// id may hold parts of the range, and bytes between them may belong to none. 0 bytes: there is none, or it wraps.
struct RemotePart {
  uint64_t offset;  // in the range
  std::byte* memory;
  uint64_t bytes;
  bool direct;  // as SegmentConfig
};
RemotePart remote_part(CoreState& s, const RemoteAccess& range);
// A peer revokes a token id (SEND with invalidate): the segments of this owner that its value fits refuse remote access
// from now on. False: there are none.
bool invalidate_token_id(CoreState& s, Owner owner, uint32_t token_id, uint32_t token_value);

}  // namespace ub
