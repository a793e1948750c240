// SPDX-License-Identifier: Apache-2.0
#include "apps/kv_store/client.h"

#include <sched.h>

#include "apps/kv_store/engine.h"

namespace ub::kv {

const char* name_of(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kNotFound:
      return "not found";
    case Status::kExists:
      return "exists";
    case Status::kFull:
      return "full";
    case Status::kTooLarge:
      return "too large";
    case Status::kFailed:
      return "failed";
  }
  return "unknown";
}

Client::Client(const ClientConfig& config) : engine_(std::make_unique<Engine>(config)) {}
Client::~Client() = default;

bool Client::start_get(std::string_view key, uint64_t cookie) { return engine_->start_get(key, cookie); }
bool Client::start_put(std::string_view key, std::string_view value, uint64_t cookie) {
  return engine_->start_change(Op::kPut, key, value, cookie);
}
bool Client::start_insert(std::string_view key, std::string_view value, uint64_t cookie) {
  return engine_->start_change(Op::kInsert, key, value, cookie);
}
bool Client::start_remove(std::string_view key, uint64_t cookie) {
  return engine_->start_change(Op::kRemove, key, {}, cookie);
}
bool Client::start_scan(std::string_view first, uint32_t count, uint64_t cookie) {
  return engine_->start_scan(first, count, cookie);
}
size_t Client::poll(std::span<Completion> out) { return engine_->poll(out); }

uint32_t Client::under_way() const { return engine_->under_way(); }
uint64_t Client::most_value() const { return engine_->geometry().most_value; }
uint64_t Client::most_key() const { return engine_->geometry().most_key; }
const Counters& Client::counters() const { return engine_->counters(); }
const std::string& Client::error() const { return engine_->error(); }

namespace {

constexpr uint32_t kPollsBeforeYield = 100;

Completion wait(Client& client) {
  Completion ended;
  for (uint32_t polls = 0; client.poll({&ended, 1}) == 0; ++polls) {
    if (polls >= kPollsBeforeYield) ::sched_yield();
  }
  return ended;
}

}  // namespace

Status get(Client& client, std::string_view key, std::string* value) {
  client.start_get(key, 0);
  const Completion ended = wait(client);
  value->assign(ended.value);
  return ended.status;
}

Status put(Client& client, std::string_view key, std::string_view value) {
  client.start_put(key, value, 0);
  return wait(client).status;
}

Status insert(Client& client, std::string_view key, std::string_view value) {
  client.start_insert(key, value, 0);
  return wait(client).status;
}

Status remove(Client& client, std::string_view key) {
  client.start_remove(key, 0);
  return wait(client).status;
}

Status scan(Client& client, std::string_view first, uint32_t count,
            std::vector<std::pair<std::string, std::string>>* records) {
  client.start_scan(first, count, 0);
  const Completion ended = wait(client);
  records->clear();
  for (const Record& record : ended.records) records->emplace_back(record.key, record.value);
  return ended.status;
}

}  // namespace ub::kv
