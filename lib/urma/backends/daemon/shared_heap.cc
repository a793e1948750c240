// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/backends/daemon/shared_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "lib/ipc/app_call.h"

namespace ub::urma {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;
constexpr size_t kLeastArea = size_t{4} << 20;

constexpr size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }
std::byte* round_up(std::byte* at, size_t to) {
  auto address = reinterpret_cast<uintptr_t>(at);
  return at + (round_up(address, to) - address);
}

}  // namespace

// A forked child has what the parent's other threads left half done: there it is never touched, nor destroyed.
std::shared_ptr<SharedHeap> SharedHeap::create(std::shared_ptr<AreaSource> source) {
  const uint32_t process = ipc::fork_generation();
  return {new SharedHeap(std::move(source)), [process](SharedHeap* heap) {
            if (process == ipc::fork_generation()) delete heap;
          }};
}

std::shared_ptr<std::byte> SharedHeap::allocate(size_t bytes) try {
  if (bytes > ipc::kLargestArea) return nullptr;
  bytes = round_up(std::max<size_t>(bytes, 1), kLine);
  for (;;) {
    std::byte* block;
    {
      std::lock_guard guard(mutex_);
      block = carve(bytes);
    }
    if (block != nullptr) return share(block);
    if (!grow(bytes)) return nullptr;
    // Another thread may have been quicker to use what was added: look again.
  }
} catch (const std::bad_alloc&) {
  return nullptr;
}

std::shared_ptr<std::byte> SharedHeap::allocate_shareable(size_t bytes, ipc::AreaUse use) try {
  if (bytes == 0 || bytes > ipc::kLargestArea) return nullptr;
  bytes = round_up(bytes, kPage);
  Area area;
  if (!map_area(bytes, use, true, &area)) return nullptr;
  std::byte* base = area.mapping.data();
  const uint32_t id = area.id;
  try {
    area.blocks[base] = {bytes, 1};
    std::lock_guard guard(mutex_);
    areas_.emplace(base, std::move(area));
    total_bytes_ += bytes;
  } catch (const std::bad_alloc&) {
    source_->drop_area(id);
    throw;
  }
  return share(base);
} catch (const std::bad_alloc&) {
  return nullptr;
}

uint32_t SharedHeap::shareable_area(const void* block) const {
  std::lock_guard guard(mutex_);
  const auto found = areas_.find(const_cast<std::byte*>(static_cast<const std::byte*>(block)));
  return found != areas_.end() && found->second.use != ipc::AreaUse::kBoth ? found->second.id : 0;
}

std::shared_ptr<std::byte> SharedHeap::share(std::byte* block) {
  const uint32_t process = ipc::fork_generation();
  return {block, [heap = shared_from_this(), process](std::byte* at) {  // a constructor that throws lets go
            if (process == ipc::fork_generation()) heap->let_go(at);
          }};
}

std::optional<SharedHeap::Place> SharedHeap::find(const void* at, size_t bytes) {
  Place place{};
  std::byte* block;
  {
    std::lock_guard guard(mutex_);
    Area* area = area_of(at);
    if (area == nullptr) return std::nullopt;
    auto* first = const_cast<std::byte*>(static_cast<const std::byte*>(at));
    auto it = --area->blocks.upper_bound(first);
    auto offset = static_cast<size_t>(first - it->first);
    if (it->second.users == 0 || bytes > it->second.bytes - offset) return std::nullopt;
    ++it->second.users;
    block = it->first;
    place.area = area->id;
    place.offset = static_cast<uint64_t>(first - area->mapping.data());
    place.mapped = area->use != ipc::AreaUse::kWrite;
  }
  place.block = share(block);
  return place;
}

// A mapping of our own in the place of the shared one: it shows the same bytes, and takes a page along when it is
// written for the first time.
void SharedHeap::detach() {
  std::lock_guard guard(mutex_);
  for (auto& [base, area] : areas_) {
    mmap(base, area.mapping.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, area.memory.get(),
         0);
    madvise(base, area.mapping.bytes(), MADV_DONTFORK);
  }
}

size_t SharedHeap::area_count() const {
  std::lock_guard guard(mutex_);
  return areas_.size();
}

// ---- areas -----------------------------------------------------------------------------------------------------

// More than is needed now, unless the daemon gives no more than that.
bool SharedHeap::grow(size_t bytes) {
  size_t needed = std::max(round_up(bytes, kPage), kLeastArea);
  size_t wished;
  {
    std::lock_guard guard(mutex_);
    wished = std::clamp<size_t>(round_up(total_bytes_ / 2, kPage), needed, ipc::kLargestArea);
  }
  return (wished > needed && add_area(wished, false)) || add_area(needed, true);
}

bool SharedHeap::map_area(size_t bytes, ipc::AreaUse use, bool last_word, Area* area) {
  area->use = use;
  area->memory = source_->add_area(bytes, use, last_word, &area->id);
  if (!area->memory) return false;
  std::string why;
  bool done = area->mapping.map(area->memory.get(), bytes, &why);
  if (use != ipc::AreaUse::kWrite) {
    done = done && ipc::seal_against_holes(area->memory.get(), &why) && source_->area_mapped(area->id);
  }
  if (!done) source_->drop_area(area->id);
  return done;
}

bool SharedHeap::add_area(size_t bytes, bool last_word) {
  Area area;
  if (!map_area(bytes, ipc::AreaUse::kBoth, last_word, &area)) return false;
  std::byte* base = area.mapping.data();
  area.blocks[base] = {bytes, 0};
  std::lock_guard guard(mutex_);
  areas_.emplace(base, std::move(area));
  total_bytes_ += bytes;
  free_.insert({bytes, base});
  return true;
}

SharedHeap::Area* SharedHeap::area_of(const void* at) {
  auto* byte = const_cast<std::byte*>(static_cast<const std::byte*>(at));
  auto it = areas_.upper_bound(byte);
  if (it == areas_.begin()) return nullptr;
  Area& area = (--it)->second;
  return static_cast<size_t>(byte - it->first) < area.mapping.bytes() ? &area : nullptr;
}

// ---- blocks ----------------------------------------------------------------------------------------------------

// The smallest free block that is large enough, without what is left in front of it and behind it.
std::byte* SharedHeap::carve(size_t bytes) {
  const size_t alignment = bytes >= kPage ? kPage : kLine;
  auto it = free_.lower_bound({bytes, nullptr});
  if (it != free_.end() && round_up(it->second, alignment) + bytes > it->second + it->first) {
    it = free_.lower_bound({bytes + alignment - kLine, nullptr});  // large enough wherever it begins
  }
  if (it == free_.end()) return nullptr;
  auto [free_bytes, start] = *it;
  std::byte* block = round_up(start, alignment);
  std::byte* end = start + free_bytes;
  std::map<std::byte*, Block>& blocks = area_of(start)->blocks;
  free_.erase(it);
  // Whatever throws leaves blocks without gaps.
  if (block != start) {
    blocks[block] = {static_cast<size_t>(end - block), 0};
    blocks[start].bytes = static_cast<size_t>(block - start);
    free_.insert({blocks[start].bytes, start});
  }
  if (block + bytes != end) {
    std::byte* rest = block + bytes;
    blocks[rest] = {static_cast<size_t>(end - rest), 0};
    blocks[block].bytes = bytes;
    free_.insert({blocks[rest].bytes, rest});
  }
  blocks[block].users = 1;
  return block;
}

void SharedHeap::let_go(std::byte* block) {
  Areas::node_type surplus;
  {
    std::lock_guard guard(mutex_);
    surplus = take_back(block);
  }
  if (surplus.empty()) return;
  const uint32_t id = surplus.mapped().id;
  surplus = {};  // unmapped before its addresses can be anybody else's, and before the daemon is asked
  source_->drop_area(id);
}

// Answers the block's area if nothing is left in it and another one is empty, too.
SharedHeap::Areas::node_type SharedHeap::take_back(std::byte* block) {
  Area& area = *area_of(block);
  auto it = area.blocks.find(block);
  if (--it->second.users != 0) return {};
  if (area.use != ipc::AreaUse::kBoth) {
    total_bytes_ -= area.mapping.bytes();
    return areas_.extract(area.mapping.data());
  }
  std::memset(block, 0, it->second.bytes);
  if (auto next = std::next(it); next != area.blocks.end() && next->second.users == 0) {
    free_.erase({next->second.bytes, next->first});
    it->second.bytes += next->second.bytes;
    area.blocks.erase(next);
  }
  if (it != area.blocks.begin()) {
    if (auto before = std::prev(it); before->second.users == 0) {
      free_.erase({before->second.bytes, before->first});
      before->second.bytes += it->second.bytes;
      area.blocks.erase(it);
      it = before;
    }
  }
  auto is_empty = [](const Area& a) { return a.blocks.size() == 1 && a.blocks.begin()->second.users == 0; };
  if (is_empty(area) && std::count_if(areas_.begin(), areas_.end(), [&](auto& a) { return is_empty(a.second); }) > 1) {
    total_bytes_ -= area.mapping.bytes();
    return areas_.extract(area.mapping.data());
  }
  try {
    free_.insert({it->second.bytes, it->first});
  } catch (const std::bad_alloc&) {
  }
  return {};
}

}  // namespace ub::urma
