// SPDX-License-Identifier: Apache-2.0
//
// Makes a control call with the arguments that a recording has, and collects its results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "lib/record/replayer.h"
#include "lib/record/varint.h"
#include "lib/transport/looking/call_log.h"

namespace ub::record {

// Memory of an application that something is written to.
inline std::byte* memory_of_nobody() {
  alignas(64) static std::byte bytes[64 * 1024];
  return bytes;
}
// And that something is read from: a replay knows nothing of it.
inline const std::byte* bytes_of_nobody() {
  alignas(64) static const std::byte zeros[64 * 1024]{};
  return zeros;
}

// An argument that is a value, in the order of the parameters. finish() sees what stands behind all of them.
template <class Parameter>
struct Argument {
  std::remove_cvref_t<Parameter> value{};
  void decode(Input& in) { value = in.value<std::remove_cvref_t<Parameter>>(); }
  void finish(Input&) {}
  Parameter get() { return static_cast<Parameter>(value); }
  void written(std::vector<std::byte>*) const {}
};

// Where a call writes a result.
template <class T>
struct Argument<T*> {
  T value{};
  void decode(Input&) {}
  void finish(Input&) {}
  T* get() { return &value; }
  void written(std::vector<std::byte>* results) const {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    results->insert(results->end(), bytes.begin(), bytes.end());
  }
};

template <>
struct Argument<std::byte*> {
  void decode(Input&) {}
  void finish(Input&) {}
  std::byte* get() { return memory_of_nobody(); }
  void written(std::vector<std::byte>*) const {}
};

template <>
struct Argument<Cqe*> {
  std::vector<Cqe> room = std::vector<Cqe>(kMaxSendDepth);
  void decode(Input&) {}
  void finish(Input&) {}
  Cqe* get() { return room.data(); }
  void written(std::vector<std::byte>*) const {}
};

template <>
struct Argument<std::span<roce::ConnectionEvent>> {
  std::vector<roce::ConnectionEvent> room;
  void decode(Input& in) { room.resize(std::min<size_t>(in.value<size_t>(), 1024)); }
  void finish(Input&) {}
  std::span<roce::ConnectionEvent> get() { return room; }
  void written(std::vector<std::byte>*) const {}
};

template <>
struct Argument<roce::PrivateData> {
  roce::PrivateData value;
  void decode(Input&) {}
  void finish(Input& in) { value = {in.at(), in.left()}; }
  roce::PrivateData get() { return value; }
  void written(std::vector<std::byte>*) const {}
};

template <>
struct Argument<const roce::ConnectConfig&> {
  roce::ConnectConfig value;
  void decode(Input& in) { value = in.value<roce::ConnectConfig>(); }
  void finish(Input& in) { value.private_data = {in.at(), in.left()}; }
  const roce::ConnectConfig& get() { return value; }
  void written(std::vector<std::byte>*) const {}
};
template <>
struct Argument<const roce::AcceptConfig&> {
  roce::AcceptConfig value;
  void decode(Input& in) { value = in.value<roce::AcceptConfig>(); }
  void finish(Input& in) { value.private_data = {in.at(), in.left()}; }
  const roce::AcceptConfig& get() { return value; }
  void written(std::vector<std::byte>*) const {}
};

template <>
struct Argument<const bypass::StoreRequest&> {
  bypass::StoreRequest value;
  uint64_t enables[16] = {};
  void decode(Input& in) { value = in.value<bypass::StoreRequest>(); }
  void finish(Input& in) {
    std::memcpy(enables, in.at(), std::min(in.left(), sizeof enables));
    value.from = bytes_of_nobody();
    value.enables = in.empty() ? nullptr : enables;
  }
  const bypass::StoreRequest& get() { return value; }
  void written(std::vector<std::byte>*) const {}
};

template <class Result>
void add_result(const Result& result, std::vector<std::byte>* results) {
  const auto bytes = std::as_bytes(std::span(&result, 1));
  results->insert(results->end(), bytes.begin(), bytes.end());
}

// False: there are not enough bytes for the arguments.
template <class Object, class Result, class... Parameters>
bool run(Object& object, Result (Object::*method)(Parameters...), Input& in, std::vector<std::byte>* results) {
  std::tuple<Argument<Parameters>...> arguments;
  return std::apply(
      [&](auto&... argument) {
        (argument.decode(in), ...);
        (argument.finish(in), ...);
        if (!in.good()) return false;
        if constexpr (std::is_void_v<Result>) {
          (object.*method)(argument.get()...);
        } else {
          const Result result = (object.*method)(argument.get()...);
          add_result(result, results);
          bool good = true;
          if constexpr (std::is_same_v<Result, Status>) good = result == Status::kOk;
          if (good) (argument.written(results), ...);
        }
        return true;
      },
      arguments);
}

}  // namespace ub::record
