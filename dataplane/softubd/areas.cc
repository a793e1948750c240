// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/areas.h"

namespace ub {

uint32_t Areas::add(uint64_t bytes, ipc::Fd* fd, std::string* error) {
  ipc::Fd memfd = ipc::create_sealed_memfd("softub-area", bytes, error);
  ipc::Mapping memory;
  if (!memfd || !memory.map(memfd.get(), bytes, error)) return 0;
  while (next_ == 0 || areas_.contains(next_)) ++next_;
  uint32_t area = next_++;
  areas_[area].memory = std::move(memory);
  bytes_ += bytes;
  *fd = std::move(memfd);
  return area;
}

bool Areas::drop(uint32_t area) {
  auto found = areas_.find(area);
  if (found == areas_.end() || found->second.users != 0) return false;
  bytes_ -= found->second.memory.bytes();
  areas_.erase(found);
  return true;
}

std::byte* Areas::use(uint32_t area, uint64_t offset, uint64_t bytes) {
  auto found = areas_.find(area);
  if (found == areas_.end()) return nullptr;
  Area& a = found->second;
  if (offset > a.memory.bytes() || bytes > a.memory.bytes() - offset) return nullptr;
  ++a.users;
  return a.memory.data() + offset;
}

void Areas::release(uint32_t area) {
  auto found = areas_.find(area);
  if (found != areas_.end()) --found->second.users;
}

}  // namespace ub
