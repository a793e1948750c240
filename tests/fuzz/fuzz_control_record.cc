// SPDX-License-Identifier: Apache-2.0
// fuzz_control_record.cc - any bytes as a control record: no read outside, and what is accepted round-trips.
#include <cstring>
#include <memory>

#include "lib/base/assert.h"
#include "lib/transport/wire/control_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ub::wire;
  if (size > 10000) return 0;
  std::unique_ptr<std::byte[]> exact(new std::byte[size]);
  if (size != 0) std::memcpy(exact.get(), data, size);

  ControlRecord record;
  const ub::wire::Drop drop = read_control_record({exact.get(), size}, record);
  UB_ASSERT(record_type_name(record.type) != nullptr && record_reason_name(record.reason) != nullptr);
  if (drop != Drop::kNone) return 0;
  std::byte out[kControlRecordMaxSize];
  write_control_record(record, out);
  ControlRecord again;
  UB_ASSERT(read_control_record(out, again) == Drop::kNone);
  UB_ASSERT(again == record);
  return 0;
}
