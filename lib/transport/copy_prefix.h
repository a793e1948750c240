// SPDX-License-Identifier: Apache-2.0
//
// Whose copy a CopyTag is of. A tag is opaque to the host. Its uppermost byte, the prefix, says who asked for the copy:
// frames that wait for memory have a prefix of their own (held_frames.h), and engines take theirs while the tables are
// laid out (CoreCommon::copy_prefixes). The engine that takes none (UB) has all others. Whoever has a prefix uses the
// other bytes as it likes.
#pragma once

#include <cstdint>

namespace ub {

constexpr uint32_t kCopyPrefixShift = 56;
constexpr uint32_t kHeldCopyPrefix = 1;         // of gathers into held frames
constexpr uint32_t kFirstEngineCopyPrefix = 2;  // this one and those up to kCopyPrefixes - 1 are handed out
constexpr uint32_t kCopyPrefixes = 0x40;
constexpr uint64_t copy_prefix_of(uint64_t tag) { return tag >> kCopyPrefixShift; }

}  // namespace ub
