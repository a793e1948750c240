// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/uncached/code_table.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "lib/ipc/fd.h"
#include "lib/ipc/of_process.h"

namespace ub::aperture {
namespace {

constexpr uint8_t kReturn = 0xc3, kTrap = 0xcc;

struct Opened {
  std::mutex mutex;
  CodeTable* table = nullptr;
};
constinit ipc::OfProcess<Opened> g_opened;

uint32_t hash_of(const uint8_t* code, size_t bytes) {
  uint32_t hash = 2166136261;  // FNV-1a
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ code[i]) * 16777619;
  return hash ^ hash >> 16;
}

}  // namespace

// A child of fork() has none of the memory of its parent's table, so it makes its own.
CodeTable* CodeTable::open(std::string* error) {
  Opened& opened = g_opened.get();
  std::lock_guard guard(opened.mutex);
  if (opened.table != nullptr) return opened.table;
  auto table = std::make_unique<CodeTable>();
  return table->map(error) ? opened.table = table.release() : nullptr;
}

bool CodeTable::map(std::string* error) {
  constexpr size_t kBytes = size_t{kPlaces} * kBytesOfPlace;
  const ipc::Fd memory = ipc::create_sealed_memfd("softub-code", kBytes, error);
  if (!memory || !writable_.map(memory.get(), kBytes, error)) return false;
  void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_SHARED, memory.get(), 0);
  if (at == MAP_FAILED) {
    *error = std::string("this system lets no program execute code that it made, which an uncached window needs (") +
             std::strerror(errno) + "); a cached window does without";
    return false;
  }
  ::madvise(at, kBytes, MADV_DONTFORK);
  executable_ = static_cast<const std::byte*>(at);
  return true;
}

// A place that somebody else is writing is passed over: the same instruction may then stand in two places.
const void* CodeTable::find_or_add(const Rewritten& instruction) {
  uint8_t code[kBytesOfPlace];
  std::memset(code, kTrap, sizeof code);
  std::memcpy(code, instruction.bytes, instruction.length);
  code[instruction.length] = kReturn;
  const uint32_t first = hash_of(code, sizeof code);
  for (uint32_t i = 0; i < kPlaces; ++i) {
    const uint32_t place = (first + i) % kPlaces;
    const std::byte* runs = executable_ + size_t{place} * kBytesOfPlace;
    uint8_t state = states_[place].load(std::memory_order_acquire);
    if (state == kReady && std::memcmp(runs, code, sizeof code) == 0) return runs;
    if (state != kFree) continue;
    if (!states_[place].compare_exchange_strong(state, kBeingWritten, std::memory_order_acquire)) continue;
    std::memcpy(writable_.data() + size_t{place} * kBytesOfPlace, code, sizeof code);
    states_[place].store(kReady, std::memory_order_release);
    return runs;
  }
  return nullptr;
}

}  // namespace ub::aperture
