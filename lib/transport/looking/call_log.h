// SPDX-License-Identifier: Apache-2.0
//
// The seam for recording: what a Core tells of the calls that change it (docs/recording-design.md). Control calls say
// themselves that they begin and end, by a LoggedCall; nothing is said of the calls of the data path, which are
// recorded by whoever makes them.
//
// Thread: the owner of the Core.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "lib/base/counters.h"
#include "lib/transport/core_types.h"

namespace ub {

enum class Call : uint8_t {
#define UB_CALL(id, method) id,
#include "lib/transport/looking/calls.def"
};
inline constexpr const char* kCallNames[] = {
#define UB_CALL(id, method) #method,
#include "lib/transport/looking/calls.def"
};
inline constexpr uint32_t kCallCount = sizeof kCallNames / sizeof kCallNames[0];

class CallLog {
 public:
  using Bytes = std::span<const std::byte>;

  // The Core is to use other rings than those of the application, for as long as the object lives.
  virtual void lend(JfcConfig*) = 0;
  virtual void lend(JfrConfig*) = 0;
  virtual void lend(SendQueueConfig*) = 0;

  // A call begins, with these arguments; it ends, and these are its results.
  virtual void begin(Call, std::initializer_list<Bytes> arguments) = 0;
  virtual void end(std::initializer_list<Bytes> results) = 0;

  // The frame of the call under way is dropped.
  virtual void dropped(Counter why) = 0;

 protected:
  ~CallLog() = default;
};

// The bytes of a value, of values side by side, or of what an argument points to.
template <class T>
CallLog::Bytes bytes_of_call(const T& value) {
  if constexpr (std::is_constructible_v<CallLog::Bytes, T>) {
    return value;
  } else {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    return std::as_bytes(std::span(&value, 1));
  }
}

// One control call, from its beginning to the end of the scope. `log` may be null.
class LoggedCall {
 public:
  template <class... Arguments>
  LoggedCall(CallLog* log, Call call, const Arguments&... arguments) : log_(log) {
    if (log_ != nullptr) [[unlikely]]
      log_->begin(call, {bytes_of_call(arguments)...});
  }
  ~LoggedCall() {
    if (log_ != nullptr) [[unlikely]]
      log_->end({});
  }
  LoggedCall(const LoggedCall&) = delete;
  LoggedCall& operator=(const LoggedCall&) = delete;

  // The call returns this, and has written these unless it failed.
  template <class Result, class... Written>
  Result gives(Result result, const Written&... written) {
    if (log_ != nullptr) [[unlikely]] {
      if (is_good(result)) {
        log_->end({bytes_of_call(result), bytes_of_call(written)...});
      } else {
        log_->end({bytes_of_call(result)});
      }
      log_ = nullptr;
    }
    return result;
  }

 private:
  template <class Result>
  static bool is_good(const Result& result) {
    if constexpr (std::is_same_v<Result, Status>) return result == Status::kOk;
    return true;
  }

  CallLog* log_;
};

// The configuration that a Core uses: the caller's, but with rings that are lent where somebody records.
template <class Config>
Config with_rings(CallLog* log, Config config) {
  if (log != nullptr) [[unlikely]]
    log->lend(&config);
  return config;
}
inline JettyConfig with_rings(CallLog* log, JettyConfig config) {
  config.sq = with_rings(log, config.sq);
  return config;
}

}  // namespace ub
