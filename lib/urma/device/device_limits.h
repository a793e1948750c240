// SPDX-License-Identifier: Apache-2.0
// device_limits.h - fixed limits of the device; those of table sizes are configured (placement.h).
#pragma once

#include <cstdint>

#include "lib/base/work_queue.h"
#include "lib/urma/backends/backend.h"

namespace ub::urma {

constexpr uint32_t kMaxSges = 16;
constexpr uint32_t kMaxInline = 512;
constexpr uint32_t kMaxMessage = 1U << 30;

// Wqe::slots and a kSkip filler are 8 bits wide.
constexpr uint32_t kMaxWqeSlots = wqe_slots(WrOp::kWriteNotify, 0, kMaxInline);
static_assert(wqe_slots(WrOp::kWriteNotify, kMaxSges, 0) <= kMaxWqeSlots);
static_assert(kMaxWqeSlots <= 255);

// Jetty, JFS and JFR ids are 20 bits; these are given on request only, lower ones never.
constexpr uint32_t kReservedIdMin = kFirstRequestableId;
constexpr uint32_t kReservedIdMax = kFirstDynamicId - 1;
constexpr uint32_t kIdLimit = kIdSpace;

constexpr uint32_t kMaxGroups = CoreConfig{}.max_groups;
constexpr uint32_t kMaxRnrRetry = 7;
constexpr uint32_t kMaxTimerCode = 31;  // err_timeout, min_rnr_timer

}  // namespace ub::urma
