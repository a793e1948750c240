// SPDX-License-Identifier: Apache-2.0
//
// Names of segments (docs/aperture-design.md, "Names"): what may be one, the token ids under which a NIC may publish
// it, and the entry that everybody may read there. An entry is filled in before it can be read, and never changed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "lib/base/bytes.h"

namespace ub {

inline constexpr size_t kMaxNameBytes = 63;

// Letters, digits, and . : - _
constexpr bool is_name(std::string_view text) {
  const auto may_stand = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == ':' ||
           c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= kMaxNameBytes && std::all_of(text.begin(), text.end(), may_stand);
}

// Ids that have a UDP port each (docs/identity.md). Lower ones are left to programs that ask for an id by number.
inline constexpr uint32_t kFirstNameId = 1024;
inline constexpr uint32_t kNameIds = 2048;
inline constexpr size_t kIdsOfName = 4;

// Different ones, in the order in which a publisher tries them.
constexpr std::array<uint32_t, kIdsOfName> ids_of_name(std::string_view name) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100'0000'01b3;
  const uint64_t step = hash >> 32 | 1;  // odd, so that no id comes twice
  std::array<uint32_t, kIdsOfName> ids{};
  for (size_t i = 0; i < kIdsOfName; ++i) ids[i] = kFirstNameId + static_cast<uint32_t>((hash + i * step) % kNameIds);
  return ids;
}

// What others have to know of a segment, beside its instance, which is the one that has the entry.
struct PublicSegment {
  uint64_t address = 0, length = 0;
  uint32_t token_id = 0;
  uint8_t access = 0;  // kAccess*
  bool token_required = false;
};

inline constexpr size_t kNameEntryBytes = 128;
inline constexpr uint64_t kNameEntryAddress = 4096;  // where the segment of an entry begins
using NameEntryBytes = std::array<std::byte, kNameEntryBytes>;

namespace detail {
inline constexpr uint64_t kNameMagic = 0x53'4f'46'54'55'42'6e'31;  // "SOFTUBn1"
inline constexpr size_t kNameAt = 32;
}  // namespace detail

inline void write_name_entry(std::string_view name, const PublicSegment& segment, NameEntryBytes* out) {
  out->fill(std::byte{0});
  std::byte* to = out->data();
  store_be64(to, detail::kNameMagic);
  store_be64(to + 8, segment.address);
  store_be64(to + 16, segment.length);
  store_be32(to + 24, segment.token_id);
  store_u8(to + 28, segment.access);
  store_u8(to + 29, segment.token_required ? 1 : 0);
  std::memcpy(to + detail::kNameAt, name.data(), std::min(name.size(), kMaxNameBytes));
}

// Empty: the bytes are no entry of that name. Whoever wrote them may be hostile: the caller believes them no more than
// a description of a segment that came any other way.
inline std::optional<PublicSegment> read_name_entry(std::string_view name, const NameEntryBytes& bytes) {
  const std::byte* from = bytes.data();
  const auto* text = reinterpret_cast<const char*>(from + detail::kNameAt);
  if (load_be64(from) != detail::kNameMagic || std::string_view(text, strnlen(text, kMaxNameBytes + 1)) != name) {
    return std::nullopt;
  }
  const PublicSegment segment{load_be64(from + 8), load_be64(from + 16), load_be32(from + 24), load_u8(from + 28),
                        load_u8(from + 29) != 0};
  const bool is_range = segment.length != 0 && segment.address + segment.length > segment.address;
  return is_range ? std::optional(segment) : std::nullopt;
}

}  // namespace ub
