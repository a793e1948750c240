// SPDX-License-Identifier: Apache-2.0
//
// What -db tcp and urma_ycsb --serve-tcp say to each other: a request is a RequestHead, the key and the record; an
// answer is an AnswerHead and what was found, records one after the other. Answers come in the order of the requests.
// Integers are little-endian.
#pragma once

#include <cstdint>

#include "tools/ycsb/operation.h"

namespace ub::ycsb {

constexpr uint16_t kDefaultPort = 21116;

struct RequestHead {
  uint32_t record_bytes;
  uint16_t key_bytes;
  Operation operation;
  uint8_t one_field;   // 1: records are of workloads with a single field (RecordFormat)
  int32_t read_field;  // -1: all
  uint32_t scan_length;
};
static_assert(sizeof(RequestHead) == 16);

struct AnswerHead {
  uint32_t bytes;  // that follow
  Status status;
  uint8_t zero[3];
};
static_assert(sizeof(AnswerHead) == 8);

constexpr uint32_t kMostRecordBytes = 1u << 30;

}  // namespace ub::ycsb
