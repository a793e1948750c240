// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/resource/mapped_memory.h"

namespace ub {

namespace {

uint32_t& bucket_of(CoreState& s, const InstanceId& instance, uint32_t token_id) {
  return s.mapped_buckets[(token_id + 31 * instance.uasid) % kMappedBuckets];
}

bool may_access(const MappedMemory& m, const Wqe& wqe, uint8_t access) {
  const uint64_t offset = wqe.remote_address - m.address;
  if ((m.access & access) == 0 || offset > m.length || wqe.length > m.length - offset) return false;
  return !m.token.required || ((wqe.flags & kWrToken) != 0 && wqe.token_value == m.token.value);
}

}  // namespace

Status add_mapped(CoreState& s, const MappedConfig& config, uint32_t* handle) {
  if (config.memory == nullptr || config.length == 0 || config.address + config.length < config.address) {
    return Status::kInvalid;
  }
  const uint32_t index = s.mapped.alloc();
  if (index == 0) return Status::kNoMemory;
  MappedMemory& m = s.mapped[index];
  m = MappedMemory{};
  static_cast<MappedConfig&>(m) = config;
  m.in_use = true;
  uint32_t& first = bucket_of(s, config.instance, config.token_id);
  m.next_in_bucket = first;
  first = index;
  *handle = index;
  return Status::kOk;
}

Status remove_mapped(CoreState& s, uint32_t handle) {
  if (handle == 0 || handle > s.mapped.high_water() || !s.mapped[handle].in_use) return Status::kInvalid;
  MappedMemory& m = s.mapped[handle];
  uint32_t* link = &bucket_of(s, m.instance, m.token_id);
  while (*link != handle) link = &s.mapped[*link].next_in_bucket;
  *link = m.next_in_bucket;
  m.in_use = false;
  s.mapped.free(handle);
  return Status::kOk;
}

std::byte* mapped_memory(CoreState& s, Owner owner, const InstanceId& instance, const Wqe& wqe, uint8_t access,
                         void** gate) {
  for (uint32_t index = bucket_of(s, instance, wqe.token_id); index != 0;) {
    const MappedMemory& m = s.mapped[index];
    const bool named = m.token_id == wqe.token_id && m.instance == instance && m.owner == owner;
    if (named && may_access(m, wqe, access)) {
      *gate = m.gate;
      return m.memory + (wqe.remote_address - m.address);
    }
    index = m.next_in_bucket;
  }
  return nullptr;
}

}  // namespace ub
