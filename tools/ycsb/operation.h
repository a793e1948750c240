// SPDX-License-Identifier: Apache-2.0
//
// What is done to a store, and how it can end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ub::ycsb {

enum class Operation : uint8_t { kRead, kUpdate, kInsert, kScan, kReadModifyWrite };
constexpr size_t kOperations = 5;

// The names of YCSB.
constexpr const char* operation_name(Operation operation) {
  constexpr const char* kNames[kOperations] = {"READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE"};
  return kNames[static_cast<size_t>(operation)];
}

enum class Status : uint8_t {
  kOk,
  kNotFound,  // there is no such record
  kFailed,    // the store refused the request, or did not answer in time
};
constexpr size_t kStatuses = 3;

constexpr const char* status_name(Status status) {
  constexpr const char* kNames[kStatuses] = {"OK", "NOT_FOUND", "ERROR"};
  return kNames[static_cast<size_t>(status)];
}

}  // namespace ub::ycsb
