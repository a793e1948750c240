// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/uncached/window_memory.h"

#include <algorithm>

namespace ub::aperture {
namespace {

// Memory of the program, which may end, be a window itself or be watched by nobody: the copy is one instruction that
// the sanitizers do not see.
void copy_plain(void* to, const void* from, size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

void store_plain(uint64_t to, const std::byte* from, uint32_t bytes, uint64_t enables) {
  if (bytes > 64 || (enables & low_bits(bytes)) == low_bits(bytes))
    return copy_plain(reinterpret_cast<void*>(to), from, bytes);
  for (uint32_t i = 0; i < bytes; ++i)
    if ((enables >> i & 1) != 0) copy_plain(reinterpret_cast<void*>(to + i), from + i, 1);
}

// How much of an access lies in the first line that it touches. Longer ones travel as they are.
uint32_t bytes_in_line(uint64_t address, uint32_t bytes) {
  if (bytes > kLineBytes) return bytes;
  return std::min(bytes, static_cast<uint32_t>(kLineBytes - address % kLineBytes));
}

}  // namespace

WindowMemory::WindowMemory(uint64_t start, uint64_t bytes, uint64_t place, bool read_only, AccessPaths& paths)
    : start_(start), bytes_(bytes), place_(place), read_only_(read_only), paths_(paths) {}

uint64_t WindowMemory::bytes_alike(uint64_t address) const {
  if (address < start_) return start_ - address;
  if (address < start_ + bytes_) return start_ + bytes_ - address;
  return ~address;
}

WindowMemory::Parts WindowMemory::divide(uint64_t address, uint32_t bytes) const {
  const uint64_t begin = std::clamp(start_, address, address + bytes);
  const uint64_t end = std::clamp(start_ + bytes_, begin, address + bytes);
  return {static_cast<uint32_t>(begin - address), static_cast<uint32_t>(end - begin),
          static_cast<uint32_t>(address + bytes - end)};
}

urma_cr_status_t WindowMemory::load(uint64_t from, std::byte* to, uint32_t bytes) {
  const Parts parts = divide(from, bytes);
  if (parts.before != 0) copy_plain(to, reinterpret_cast<const void*>(from), parts.before);
  const uint32_t behind = bytes - parts.after;
  if (parts.after != 0) copy_plain(to + behind, reinterpret_cast<const void*>(from + behind), parts.after);
  if (parts.inside == 0) return URMA_CR_SUCCESS;
  return load_remote(from + parts.before, to + parts.before, parts.inside);
}

// First comes what may fault, so that a fault leaves the window as it was.
urma_cr_status_t WindowMemory::store(uint64_t to, const std::byte* from, uint32_t bytes, uint64_t enables) {
  const Parts parts = divide(to, bytes);
  if (parts.inside != 0 && read_only_) return URMA_CR_LOC_ACCESS_ERR;
  if (parts.before != 0) store_plain(to, from, parts.before, enables);
  const uint32_t behind = bytes - parts.after;
  if (parts.after != 0)
    store_plain(to + behind, from + behind, parts.after, bytes > 64 ? kAllBytes : enables >> behind);
  if (parts.inside == 0) return URMA_CR_SUCCESS;
  return store_remote(to + parts.before, from + parts.before, parts.inside,
                      bytes > 64 ? kAllBytes : enables >> parts.before);
}

urma_cr_status_t WindowMemory::load_remote(uint64_t from, std::byte* to, uint32_t bytes) {
  const uint32_t first = bytes_in_line(from, bytes);
  const LoadBlock blocks[] = {{place_of(from), to, first}, {place_of(from + first), to + first, bytes - first}};
  const AccessPaths::Claim path(paths_);
  if (!path) return URMA_CR_LOC_OPERATION_ERR;
  return path->load({blocks, first < bytes ? size_t{2} : size_t{1}});
}

urma_cr_status_t WindowMemory::store_remote(uint64_t to, const std::byte* from, uint32_t bytes, uint64_t enables) {
  const AccessPaths::Claim path(paths_);
  if (!path) return URMA_CR_LOC_OPERATION_ERR;
  urma_cr_status_t result = URMA_CR_SUCCESS;
  for (uint32_t done = 0; done < bytes && result == URMA_CR_SUCCESS;) {
    const uint32_t piece = bytes_in_line(to + done, bytes - done);
    const bool is_whole = bytes > 64 || (enables >> done & low_bits(piece)) == low_bits(piece);
    const uint64_t of_piece = is_whole ? kAllBytes : enables >> done & low_bits(piece);
    if (of_piece != 0) result = path->store({place_of(to + done), from + done, piece, is_whole ? nullptr : &of_piece});
    done += piece;
  }
  const urma_cr_status_t fenced = path->fence();
  return result != URMA_CR_SUCCESS ? result : fenced;
}

urma_cr_status_t WindowMemory::atomic(const RemoteAtomic& request, uint64_t* old) {
  if (read_only_) return URMA_CR_LOC_ACCESS_ERR;
  const AccessPaths::Claim path(paths_);
  if (!path) return URMA_CR_LOC_OPERATION_ERR;
  RemoteAtomic remote = request;
  remote.at = place_of(request.at);
  return path->atomic(remote, old);
}

}  // namespace ub::aperture
