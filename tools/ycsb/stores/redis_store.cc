// SPDX-License-Identifier: Apache-2.0
//
// -db redis: a record is a hash, whose fields are those of the record (HSET, HGET, HGETALL); with one field it is a
// plain value (SET, GET). For scans the keys stand in a sorted set with the name of the table, too (ZADD,
// ZRANGEBYLEX). hiredis writes commands and reads replies; they travel by a ByteStream, since the calls of hiredis
// that wait do so for one reply. A request may have several commands; replies come in the order of the commands.
#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <charconv>
#include <cstring>
#include <deque>
#include <vector>

#include "tools/common/tool_error.h"
#include "tools/ycsb/record.h"
#include "tools/ycsb/stores/backends.h"
#include "tools/ycsb/stores/server_address.h"

namespace ub::ycsb {
namespace {

using tools::ToolError;

struct RedisOptions {
  ServerAddress address;
  std::string password;
  bool keep_order;  // the sorted set
};

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;
struct FreeReader {
  void operator()(redisReader* reader) const { redisReaderFree(reader); }
};

class RedisStore : public Store {
 public:
  RedisStore(const RedisOptions& options, const Spec& spec, uint32_t window)
      : o_(options),
        spec_(spec),
        format_(spec.field_count),
        stream_(options.address.connect()),
        reader_(redisReaderCreate()),
        tasks_(window) {
    for (uint32_t i = 0; i < spec.field_count; ++i) names_.push_back(fmt::format("{}{}", spec.field_prefix, i));
    if (!options.password.empty()) greet({"AUTH", options.password});
    greet({"PING"});
  }

  void start(const Request& request) override {
    Task& task = tasks_[request.tag];
    task = {Status::kOk, 0, request.read_field, std::move(task.record)};
    task.record.clear();
    switch (request.operation) {
      case Operation::kInsert:
        write(request);
        if (o_.keep_order) send(request.tag, Kind::kIgnored, {"ZADD", spec_.table, "0", request.key});
        break;
      case Operation::kUpdate:
        write(request);
        break;
      case Operation::kScan:
        send(request.tag, Kind::kKeys,
             {"ZRANGEBYLEX", spec_.table, "[" + std::string(request.key), "+", "LIMIT", "0",
              std::to_string(request.scan_length)});
        break;
      default:
        read(request.tag, Kind::kRecord, request.key);
    }
  }

  size_t poll(std::span<Completion> done, uint64_t wait_ns) override {
    stream_.exchange(wait_ns);
    feed();
    size_t count = 0;
    while (count < done.size()) {
      const Reply reply = next_reply();
      if (!reply) break;
      if (expected_.empty()) throw o_.address.other_protocol("a reply came that belongs to no command");
      const Expected expected = expected_.front();
      expected_.pop_front();
      take(expected, *reply);
      const Task& task = tasks_[expected.tag];
      if (task.replies_left == 0) done[count++] = {expected.tag, task.status, task.record};
    }
    return count;
  }

  std::string last_error() const override { return last_error_; }

 private:
  enum class Kind : uint8_t { kIgnored, kWritten, kRecord, kKeys, kScanned };
  struct Expected {
    uint32_t tag;
    Kind kind;
  };
  struct Task {
    Status status = Status::kOk;
    uint32_t replies_left = 0;
    int32_t read_field = RecordFormat::kAllFields;
    std::string record;
  };

  bool one_value() const { return spec_.field_count == 1; }

  // ---- commands ----
  void send(uint32_t tag, Kind kind, std::initializer_list<std::string_view> words) {
    words_.assign(words);
    send_words(tag, kind);
  }
  void send_words(uint32_t tag, Kind kind) {
    append_words();
    ++tasks_[tag].replies_left;
    expected_.push_back({tag, kind});
  }
  void append_words() {
    pointers_.clear();
    lengths_.clear();
    for (const std::string_view word : words_) {
      pointers_.push_back(word.data());
      lengths_.push_back(word.size());
    }
    char* command = nullptr;
    const int size =
        redisFormatCommandArgv(&command, static_cast<int>(words_.size()), pointers_.data(), lengths_.data());
    if (size < 0) throw std::bad_alloc();
    stream_.out().append(command, static_cast<size_t>(size));
    redisFreeCommand(command);
  }

  void write(const Request& request) {
    if (one_value()) {
      words_ = {"SET", request.key, request.record};
      if (request.operation == Operation::kUpdate) words_.push_back("XX");  // if it exists
    } else {
      words_ = {"HSET", request.key};
      format_.for_each(request.record, [&](uint32_t field, std::string_view value) {
        words_.push_back(names_[field]);
        words_.push_back(value);
      });
    }
    send_words(request.tag, Kind::kWritten);
  }

  void read(uint32_t tag, Kind kind, std::string_view key) {
    const int32_t field = tasks_[tag].read_field;
    if (one_value()) {
      send(tag, kind, {"GET", key});
    } else if (field == RecordFormat::kAllFields) {
      send(tag, kind, {"HGETALL", key});
    } else {
      send(tag, kind, {"HGET", key, names_[static_cast<size_t>(field)]});
    }
  }

  // ---- replies ----
  void feed() {
    const std::string_view in = stream_.in();
    if (!in.empty()) redisReaderFeed(reader_.get(), in.data(), in.size());
    stream_.consume(in.size());
  }
  // Null: none has come as a whole.
  Reply next_reply() {
    void* reply = nullptr;
    if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
      throw o_.address.other_protocol(reader_->errstr);
    }
    return Reply(static_cast<redisReply*>(reply));
  }

  void take(Expected expected, const redisReply& reply) {
    Task& task = tasks_[expected.tag];
    --task.replies_left;
    if (reply.type == REDIS_REPLY_ERROR) {
      task.status = Status::kFailed;
      last_error_.assign(reply.str, reply.len);
    } else if (expected.kind == Kind::kKeys) {
      for (size_t i = 0; i < reply.elements; ++i) {
        read(expected.tag, Kind::kScanned, {reply.element[i]->str, reply.element[i]->len});
      }
    } else if (expected.kind == Kind::kWritten || expected.kind == Kind::kRecord) {
      const bool empty_hash = reply.type == REDIS_REPLY_ARRAY && reply.elements == 0;
      if (reply.type == REDIS_REPLY_NIL || empty_hash) task.status = Status::kNotFound;
      if (expected.kind == Kind::kRecord) append_record(reply, &task);
    }
  }

  void append_record(const redisReply& reply, Task* task) {
    if (reply.type == REDIS_REPLY_STRING) {
      const auto field = task->read_field == RecordFormat::kAllFields ? 0 : static_cast<uint32_t>(task->read_field);
      format_.append(&task->record, field, {reply.str, reply.len});
    }
    for (size_t i = 0; reply.type == REDIS_REPLY_ARRAY && i + 1 < reply.elements; i += 2) {
      const redisReply &name = *reply.element[i], &value = *reply.element[i + 1];
      format_.append(&task->record, field_of({name.str, name.len}), {value.str, value.len});
    }
  }

  // Names that others gave have a number that no field of ours has.
  uint32_t field_of(std::string_view name) const {
    uint32_t number = UINT16_MAX;
    if (name.starts_with(spec_.field_prefix)) {
      name.remove_prefix(spec_.field_prefix.size());
      std::from_chars(name.data(), name.data() + name.size(), number);
    }
    return number;
  }

  // A command before all others, which must succeed.
  void greet(std::initializer_list<std::string_view> words) {
    words_.assign(words);
    append_words();
    Reply reply;
    o_.address.greet(stream_, [&] {
      feed();
      reply = next_reply();
      return reply != nullptr;
    });
    if (reply->type == REDIS_REPLY_ERROR)
      throw ToolError(fmt::format("redis refuses {}: {}", *words.begin(), reply->str));
  }

  const RedisOptions& o_;
  const Spec& spec_;
  RecordFormat format_;
  ByteStream stream_;
  std::unique_ptr<redisReader, FreeReader> reader_;
  std::vector<Task> tasks_;  // by tag
  std::deque<Expected> expected_;
  std::vector<std::string> names_;  // of fields
  std::vector<std::string_view> words_;
  std::vector<const char*> pointers_;
  std::vector<size_t> lengths_;
  std::string last_error_;
};

class RedisBackend : public Backend {
 public:
  RedisBackend(const Properties& p, const Spec& spec)
      : o_{{p, "redis", 6379}, p.text("redis.password", ""), spec.proportion(Operation::kScan) > 0}, spec_(spec) {}

  std::unique_ptr<Store> connect(uint32_t window) override { return std::make_unique<RedisStore>(o_, spec_, window); }

 private:
  RedisOptions o_;
  const Spec& spec_;
};

}  // namespace

std::unique_ptr<Backend> open_redis(const Properties& p, const Spec& spec) {
  return std::make_unique<RedisBackend>(p, spec);
}

}  // namespace ub::ycsb
