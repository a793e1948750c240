// SPDX-License-Identifier: Apache-2.0
//
// -db urma and -db aperture: the clients of apps/kv_store, by READs, WRITEs and messages, and by loads. A record is one
// value. Completions are polled, and nobody sleeps.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "apps/aperture/memory.h"
#include "apps/kv_store/client.h"
#include "tools/common/tool_error.h"
#include "tools/ycsb/stores/backends.h"

namespace ub::ycsb {
namespace {

using tools::ToolError;

class KvStore : public Store {
 public:
  explicit KvStore(const kv::ClientConfig& config) : client_(config), ended_(config.window) {}

  void start(const Request& request) override {
    switch (request.operation) {
      case Operation::kRead:
        client_.start_get(request.key, request.tag);
        break;
      case Operation::kScan:
        client_.start_scan(request.key, request.scan_length, request.tag);
        break;
      default:
        client_.start_put(request.key, request.record, request.tag);
    }
  }

  size_t poll(std::span<Completion> done, uint64_t) override {
    const size_t count = client_.poll(std::span(ended_).first(std::min(done.size(), ended_.size())));
    for (size_t i = 0; i < count; ++i) {
      done[i] = {static_cast<uint32_t>(ended_[i].cookie), status_of(ended_[i].status), ended_[i].value};
    }
    return count;
  }

  std::string last_error() const override { return last_error_; }

 private:
  Status status_of(kv::Status status) {
    switch (status) {
      case kv::Status::kOk:
        return Status::kOk;
      case kv::Status::kNotFound:
        return Status::kNotFound;
      case kv::Status::kFailed:
        throw ToolError(tools::kExitPeerLost, client_.error());
      default:
        last_error_ = fmt::format("kv_store: {}", kv::name_of(status));
        return Status::kFailed;
    }
  }

  kv::Client client_;
  std::vector<kv::Completion> ended_;
  std::string last_error_;
};

class KvBackend : public Backend {
 public:
  KvBackend(const Properties& p, const std::string& name, kv::Mode mode) {
    config_.host = p.text(name + ".host", "localhost");
    config_.port = static_cast<uint16_t>(p.number(name + ".port", kv::kDefaultPort, 1, UINT16_MAX));
    config_.mode = mode;
    config_.hints = static_cast<uint32_t>(p.number(name + ".hints", config_.hints, 0, 1u << 28));
    p.number("window", 1, 1, kv::kMostWindow);  // fewer than other stores have
    device_.emplace(p.text(name + ".device", ""));
    config_.context = device_->context();
  }

  std::unique_ptr<Store> connect(uint32_t window) override {
    config_.window = window;
    return std::make_unique<KvStore>(config_);
  }

 private:
  std::optional<apps::Device> device_;
  kv::ClientConfig config_;
};

}  // namespace

std::unique_ptr<Backend> open_urma(const Properties& p, const Spec&) {
  const bool writes = p.choice("urma.mode", "write", {"read", "write"}) == "write";
  return std::make_unique<KvBackend>(p, "urma", writes ? kv::Mode::kWrite : kv::Mode::kRead);
}

std::unique_ptr<Backend> open_aperture(const Properties& p, const Spec&) {
  return std::make_unique<KvBackend>(p, "aperture", kv::Mode::kLoad);
}

}  // namespace ub::ycsb
