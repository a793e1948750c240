// SPDX-License-Identifier: Apache-2.0
//
// -db basic: a map in this process, which all threads share. Requests are done when they are started.
#include <vector>

#include "tools/ycsb/stores/backends.h"
#include "tools/ycsb/stores/record_map.h"

namespace ub::ycsb {
namespace {

class BasicStore : public Store {
 public:
  BasicStore(RecordMap& map, RecordFormat format, uint32_t window) : map_(map), format_(format), found_(window) {
    ended_.reserve(window);
  }

  void start(const Request& request) override {
    std::string& found = found_[request.tag];
    found.clear();
    ended_.push_back({request.tag, execute(request, &found), found});
  }

  size_t poll(std::span<Completion> done, uint64_t) override {
    const size_t count = std::min(done.size(), ended_.size());
    std::copy_n(ended_.begin(), count, done.begin());
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<ptrdiff_t>(count));
    return count;
  }

 private:
  Status execute(const Request& request, std::string* found) {
    bool exists = true;
    switch (request.operation) {
      case Operation::kInsert:
        map_.insert(request.key, request.record);
        break;
      case Operation::kUpdate:
        exists = map_.update(request.key, request.record, format_);
        break;
      case Operation::kScan:
        map_.scan(request.key, request.scan_length,
                  [&](std::string_view key) { map_.read(key, request.read_field, format_, found); });
        break;
      default:
        exists = map_.read(request.key, request.read_field, format_, found);
    }
    return exists ? Status::kOk : Status::kNotFound;
  }

  RecordMap& map_;
  RecordFormat format_;
  std::vector<std::string> found_;  // by tag
  std::vector<Completion> ended_;
};

class BasicBackend : public Backend {
 public:
  explicit BasicBackend(const Spec& spec) : map_(spec.proportion(Operation::kScan) > 0), format_(spec.field_count) {}

  std::unique_ptr<Store> connect(uint32_t window) override {
    return std::make_unique<BasicStore>(map_, format_, window);
  }

 private:
  RecordMap map_;
  RecordFormat format_;
};

}  // namespace

std::unique_ptr<Backend> open_basic(const Properties&, const Spec& spec) {
  return std::make_unique<BasicBackend>(spec);
}

}  // namespace ub::ycsb
