// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/areas.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

namespace ub {

using ipc::AreaUse;

bool Areas::has_room(AreaUse use, std::string* error) const {
  if (use != AreaUse::kBoth && shared_ == kMostShared) {
    *error = "an application has at most " + std::to_string(kMostShared) + " areas of softub_alloc_shared";
    return false;
  }
  if (areas_.size() != kMostAreas && unsealed_ != kMostUnsealed) return true;
  *error = "an application has at most " + std::to_string(kMostAreas) + " areas, " + std::to_string(kMostUnsealed) +
           " of them not yet mapped";
  return false;
}

uint32_t Areas::add(uint64_t bytes, AreaUse use, ipc::Fd* fd, std::string* error) {
  if (!has_room(use, error)) return 0;
  ipc::Fd memfd = ipc::create_sealed_memfd("softub-area", bytes, error);
  Area area;
  area.descriptor = ipc::Fd(memfd ? fcntl(memfd.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (!memfd) return 0;
  if (!area.descriptor) {
    *error = std::string("no descriptor for an area: ") + std::strerror(errno);
    return 0;
  }
  const bool done =
      use == AreaUse::kWrite ? ipc::seal_seals(memfd.get(), error) : area.memory.map(memfd.get(), bytes, error);
  if (!done) return 0;
  area.use = use;
  area.bytes = bytes;
  while (next_ == 0 || areas_.contains(next_)) ++next_;
  const uint32_t number = next_++;
  unsealed_ += area.waits_for_seal() ? 1 : 0;
  shared_ += area.is_shared() ? 1 : 0;
  areas_[number] = std::move(area);
  bytes_ += bytes;
  *fd = std::move(memfd);
  return number;
}

bool Areas::begin_use(uint32_t area, std::string* error) {
  auto found = areas_.find(area);
  if (found == areas_.end() || !found->second.waits_for_seal()) {
    *error = "there is no such area, or it was said before that it is mapped";
    return false;
  }
  Area& a = found->second;
  if (!ipc::is_sealed_against_holes(a.descriptor.get())) {
    *error = "the area is not sealed with F_SEAL_FUTURE_WRITE";
    return false;
  }
  a.sealed = true;
  if (!a.is_shared()) a.descriptor.reset();
  --unsealed_;
  return true;
}

bool Areas::drop(uint32_t area) {
  auto found = areas_.find(area);
  if (found == areas_.end() || found->second.users != 0) return false;
  bytes_ -= found->second.bytes;
  unsealed_ -= found->second.waits_for_seal() ? 1 : 0;
  shared_ -= found->second.is_shared() ? 1 : 0;
  areas_.erase(found);
  return true;
}

std::byte* Areas::use(uint32_t area, uint64_t offset, uint64_t bytes) {
  auto found = areas_.find(area);
  if (found == areas_.end() || !found->second.sealed) return nullptr;
  Area& a = found->second;
  if (offset > a.bytes || bytes > a.bytes - offset) return nullptr;
  ++a.users;
  return a.memory.data() + offset;
}

bool Areas::use_unmapped(uint32_t area) {
  auto found = areas_.find(area);
  if (found == areas_.end() || found->second.use != AreaUse::kWrite) return false;
  ++found->second.users;
  return true;
}

void Areas::release(uint32_t area) {
  auto found = areas_.find(area);
  if (found != areas_.end()) --found->second.users;
}

std::optional<Areas::Share> Areas::share_of(uint32_t area, uint64_t offset, uint64_t bytes) const {
  auto found = areas_.find(area);
  if (found == areas_.end() || !found->second.is_shared()) return std::nullopt;
  const Area& a = found->second;
  if (offset != 0 || bytes > a.bytes || ipc::share_pages(bytes) != a.bytes) return std::nullopt;
  return Share{a.descriptor.get(), a.use == AreaUse::kWrite};
}

int Areas::shared_memory(uint32_t area) const {
  auto found = areas_.find(area);
  return found != areas_.end() && found->second.is_shared() ? found->second.descriptor.get() : -1;
}

}  // namespace ub
