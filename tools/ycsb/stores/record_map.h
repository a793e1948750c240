// SPDX-License-Identifier: Apache-2.0
//
// Records in memory, by key; also in the order of the keys, if that is wanted for scans. Thread: any.
#pragma once

#include <array>
#include <functional>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tools/ycsb/record.h"

namespace ub::ycsb {

class RecordMap {
 public:
  explicit RecordMap(bool ordered) : ordered_(ordered) {}

  // What is there under this key is replaced.
  void insert(std::string_view key, std::string_view record) {
    bool is_new = false;
    {
      Shard& shard = shard_of(key);
      const std::scoped_lock lock(shard.mutex);
      auto found = shard.records.find(key);
      is_new = found == shard.records.end();
      if (is_new) found = shard.records.emplace(std::string(key), std::string()).first;
      found->second.assign(record);
    }
    if (!ordered_ || !is_new) return;
    const std::scoped_lock lock(order_mutex_);
    order_.emplace(key);
  }

  // False: there is no such record.
  bool update(std::string_view key, std::string_view changes, RecordFormat format) {
    return with_record(key, [&](std::string& record) { format.merge(&record, changes); });
  }
  // Appends the record, or this field of it, to `out`. False: there is none.
  bool read(std::string_view key, int32_t field, RecordFormat format, std::string* out) {
    return with_record(key, [&](const std::string& record) { format.copy(record, field, out); });
  }
  // fn(key) for up to `count` records in their order, from `key` on.
  template <class Fn>
  void scan(std::string_view key, uint32_t count, Fn fn) {
    const std::shared_lock lock(order_mutex_);
    for (auto at = order_.lower_bound(key); at != order_.end() && count > 0; ++at, --count) fn(*at);
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::string, Hash, std::equal_to<>> records;
  };

  // The last bytes of a key differ most.
  Shard& shard_of(std::string_view key) {
    size_t mixed = 0;
    for (const char c : key.substr(key.size() - std::min<size_t>(key.size(), 4))) mixed = mixed * 10 + (c & 15);
    return shards_[mixed % shards_.size()];
  }
  template <class Fn>
  bool with_record(std::string_view key, Fn fn) {
    Shard& shard = shard_of(key);
    const std::scoped_lock lock(shard.mutex);
    const auto found = shard.records.find(key);
    if (found == shard.records.end()) return false;
    fn(found->second);
    return true;
  }

  const bool ordered_;
  std::array<Shard, 64> shards_;
  std::shared_mutex order_mutex_;
  std::set<std::string, std::less<>> order_;
};

}  // namespace ub::ycsb
