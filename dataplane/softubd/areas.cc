// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/areas.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

namespace ub {

uint32_t Areas::add(uint64_t bytes, ipc::Fd* fd, std::string* error) {
  if (areas_.size() == kMostAreas || unsealed_ == kMostUnsealed) {
    *error = "an application has at most " + std::to_string(kMostAreas) + " areas, " + std::to_string(kMostUnsealed) +
             " of them not yet mapped";
    return 0;
  }
  ipc::Fd memfd = ipc::create_sealed_memfd("softub-area", bytes, error);
  ipc::Fd ours(memfd ? fcntl(memfd.get(), F_DUPFD_CLOEXEC, 0) : -1);
  ipc::Mapping memory;
  if (!memfd) return 0;
  if (!ours) {
    *error = std::string("no descriptor for an area: ") + std::strerror(errno);
    return 0;
  }
  if (!memory.map(memfd.get(), bytes, error)) return 0;
  while (next_ == 0 || areas_.contains(next_)) ++next_;
  uint32_t area = next_++;
  areas_[area] = {std::move(memory), std::move(ours), 0};
  ++unsealed_;
  bytes_ += bytes;
  *fd = std::move(memfd);
  return area;
}

bool Areas::begin_use(uint32_t area, std::string* error) {
  auto found = areas_.find(area);
  if (found == areas_.end() || !found->second.unsealed) {
    *error = "there is no such area, or it was said before that it is mapped";
    return false;
  }
  if (!ipc::is_sealed_against_holes(found->second.unsealed.get())) {
    *error = "the area is not sealed with F_SEAL_FUTURE_WRITE";
    return false;
  }
  found->second.unsealed.reset();
  --unsealed_;
  return true;
}

bool Areas::drop(uint32_t area) {
  auto found = areas_.find(area);
  if (found == areas_.end() || found->second.users != 0) return false;
  bytes_ -= found->second.memory.bytes();
  if (found->second.unsealed) --unsealed_;
  areas_.erase(found);
  return true;
}

std::byte* Areas::use(uint32_t area, uint64_t offset, uint64_t bytes) {
  auto found = areas_.find(area);
  if (found == areas_.end() || found->second.unsealed) return nullptr;
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
