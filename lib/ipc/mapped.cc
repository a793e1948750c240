// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/mapped.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>

namespace ub::ipc {

bool is_mapped(uint64_t address, uint64_t length, bool writable) {
  std::unique_ptr<FILE, int (*)(FILE*)> maps(fopen("/proc/self/maps", "re"), fclose);
  if (maps == nullptr) return true;
  const uint64_t end = address + length;
  uint64_t covered = address;  // the range is mapped up to here; mappings come in ascending order
  char line[256];
  bool at_begin = true;
  while (covered < end && fgets(line, sizeof line, maps.get()) != nullptr) {
    uint64_t from, to;
    char readable, may_write;
    const bool parsed =
        at_begin && sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c", &from, &to, &readable, &may_write) == 4;
    at_begin = strchr(line, '\n') != nullptr;  // if not, the rest of a long path follows
    if (!parsed || to <= covered) continue;
    if (from > covered || readable != 'r' || (writable && may_write != 'w')) return false;
    covered = to;
  }
  return covered >= end;
}

}  // namespace ub::ipc
