// SPDX-License-Identifier: Apache-2.0
//
// Set-up of a client, the life of its operations, and what its NIC brings.
#include "apps/kv_store/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/common/hex.h"
#include "tools/common/tool_error.h"

namespace ub::kv {

using tools::Json;
using tools::ToolError;

namespace {

constexpr int kBatch = 16;
constexpr uint32_t kRequestsAtOnce = 2;  // of an operation
constexpr uint32_t kSilentPolls = 4096;  // until a client looks whether the server is still there
constexpr uint64_t kOldBytes = kUnit;    // room for what compare-and-swaps of an operation found

}  // namespace

// ---- set-up ---------------------------------------------------------------------------------------------------

Client::Engine::Engine(const ClientConfig& config)
    : config_(config),
      token_(random_token()),
      peer_(tools::TcpSocket::connect(config.host, config.port), kProgram, "the server"),
      hints_(config.hints) {
  if (config.window == 0 || config.window > kMostWindow) {
    throw ToolError(tools::kExitUsage, fmt::format("a window is 1 to {} operations", kMostWindow));
  }
  // Operations of the user are under way, or told and not free yet; parts of scans and the like; the client's own.
  operations_.resize(3 * config.window + kMostInternal);
  try {
    connect(config);
  } catch (const std::exception& e) {
    peer_.end_with(e);
  }
  allocate_operations();
  if (config.mode == Mode::kWrite) probe();
}

void Client::Engine::connect(const ClientConfig& config) {
  const auto operations = static_cast<uint32_t>(operations_.size());
  jfc_ = make_jfc(config.context, (kRequestsAtOnce + 1) * operations + kBatch);
  jfr_ = make_jfr(config.context, operations, jfc_.get(), token_);
  messages_ = make_jetty(config.context, operations, jfc_.get(), jfr_.get());
  accesses_ = make_jetty(config.context, kRequestsAtOnce * operations, jfc_.get(), jfr_.get());
  const Introduction us = {messages_->jetty_id, token_};
  const bool writes = config.mode == Mode::kWrite;
  peer_.send("hello", {{"version", kVersion}, {"wants", "store"}, {"client", tools::to_hex(us)}, {"writes", writes}});
  welcome_ = tools::from_hex<Welcome>(peer_.expect("welcome", kGreetingMs).value("server", ""));
  server_ = import_jetty(config.context, welcome_.server.queue, welcome_.server.token);
  memory_there_ = import_memory(config.context, welcome_.memory, welcome_.memory_token, access_of(writes));
  if (config.mode == Mode::kLoad) aperture_ = open_aperture(memory_there_.get());
}

// Of each operation: a buffer, and room for the results of its atomics. Behind all of them: buffers for replies.
void Client::Engine::allocate_operations() {
  const Geometry& g = welcome_.geometry;
  buffer_bytes_ = std::max(units_of_record(g.most_key, g.most_value), Geometry::kMostReach) * kUnit;
  const uint64_t count = operations_.size(), stride = buffer_bytes_ + kOldBytes;
  const uint64_t bytes = count * (stride + kReplyBytes);
  memory_ = allocate(bytes);
  segment_ = register_memory(config_.context, memory_.get(), bytes, URMA_ACCESS_LOCAL_ONLY);
  char* at = static_cast<char*>(memory_.get());
  for (uint32_t i = 0; i < count; ++i, at += stride) {
    operations_[i].number = i;
    operations_[i].buffer = at;
    operations_[i].olds = reinterpret_cast<uint64_t*>(at + buffer_bytes_);
  }
  replies_ = at;
  for (uint32_t i = 0; i < count; ++i) {
    post_receive(i);
    free_.push_back(&operations_[count - 1 - i]);
  }
}

void Client::Engine::post_receive(uint32_t buffer) {
  urma_sge_t room = piece(replies_ + uint64_t{buffer} * kReplyBytes, kReplyBytes, segment_);
  urma_jfr_wr_t request = {{&room, 1}, buffer, nullptr}, *bad = nullptr;
  if (urma_post_jfr_wr(jfr_.get(), &request, &bad) != URMA_SUCCESS) throw ToolError("cannot post a receive");
}

// A READ to memory that this host has mapped has ended when its post returns.
void Client::Engine::probe() {
  ++internal_;
  fetch(take(Kind::kInternal), Step::kProbe, geometry().line_at(0), kUnit);
  reads_at_once_ = take_completions() != 0;
}

// ---- operations -----------------------------------------------------------------------------------------------

Client::Engine::Operation& Client::Engine::take(Kind kind) {
  Operation& operation = *free_.back();
  free_.pop_back();
  operation.kind = kind;
  operation.step = Step::kBegun;
  operation.status = Status::kOk;
  operation.value = {};
  operation.attempts = 0;
  operation.scan.records.clear();
  return operation;
}

void Client::Engine::free(Operation& operation) {
  operation.step = Step::kFree;
  free_.push_back(&operation);
}

// nullptr: the window is full.
Client::Engine::Operation* Client::Engine::begin(std::string_view key, uint64_t cookie) {
  if (under_way_ == config_.window) return nullptr;
  ++under_way_;
  Operation& operation = take(Kind::kUser);
  operation.cookie = cookie;
  operation.key.assign(key);
  operation.hash = KeyHash::of(key, geometry().seed);
  return &operation;
}

void Client::Engine::complete(Operation& operation, Status status) {
  operation.status = status;
  operation.step = Step::kDone;
  switch (operation.kind) {
    case Kind::kUser:
      return done_.push_back(&operation);
    case Kind::kPart:
      return on_part(operation);
    case Kind::kPlace:
      return on_place(operation);
    case Kind::kInternal:
      --internal_;
      return free(operation);
  }
}

void Client::Engine::advance(Operation& operation) {
  switch (operation.step) {
    case Step::kHinted:
      return on_hinted(operation);
    case Step::kLines:
      return on_lines(operation);
    case Step::kRecord:
      return on_record(operation);
    case Step::kPlacing:
      return publish(operation);
    case Step::kPublishing:
      return on_published(operation);
    case Step::kMessage:
      return on_reply(operation);
    case Step::kProbe:
      return complete(operation, Status::kOk);
    case Step::kFree:
    case Step::kBegun:
    case Step::kParts:
    case Step::kPlace:
    case Step::kDone:
      break;  // these wait for nothing
  }
}

// All that is under way fails, and all that will be started.
void Client::Engine::fail(const std::string& why) {
  if (!error_.empty()) return;
  error_ = why;
  loaded_.clear();
  scans_.clear();
  for (Operation& operation : operations_) {
    if (operation.kind == Kind::kUser && operation.step != Step::kFree && operation.step != Step::kDone) {
      complete(operation, Status::kFailed);
    }
  }
}

// ---- polling --------------------------------------------------------------------------------------------------

size_t Client::Engine::poll(std::span<Completion> out) {
  for (Operation* operation : told_) free(*operation);
  told_.clear();
  try {
    if (error_.empty()) {
      const size_t taken = take_completions();
      run_loaded();
      start_parts();
      silent_polls_ = taken != 0 ? 0 : silent_polls_ + 1;
      if (silent_polls_ >= kSilentPolls && under_way_ > done_.size()) look_at_connection();
    }
  } catch (const std::exception& e) {
    fail(e.what());
  }
  size_t count = 0;
  for (; count < out.size() && !done_.empty(); ++count) {
    Operation* operation = done_.front();
    done_.pop_front();
    told_.push_back(operation);
    --under_way_;
    out[count] = {operation->cookie, operation->status, operation->value, operation->scan.records};
  }
  return count;
}

// What ended, and if it may end at once, what that began, too.
size_t Client::Engine::take_completions() {
  size_t all = 0;
  for (size_t taken = take_batch(); taken != 0; taken = reads_at_once_ ? take_batch() : 0) all += taken;
  return all;
}

size_t Client::Engine::take_batch() {
  urma_cr_t records[kBatch];
  const int count = urma_poll_jfc(jfc_.get(), kBatch, records);
  if (count < 0) throw ToolError("polling completions failed");
  for (int i = 0; i < count; ++i) {
    const urma_cr_t& record = records[i];
    if (record.status != URMA_CR_SUCCESS) {
      throw ToolError(
          record.status == URMA_CR_ACK_TIMEOUT_ERR
              ? std::string("the server's NIC does not answer any more")
              : fmt::format("the server's NIC refuses a request (status {}): the server ended, or it ended this client",
                            static_cast<int>(record.status)));
    }
    if (record.flag.bs.s_r == 1) {
      on_message(static_cast<uint32_t>(record.user_ctx), record.completion_len);
      continue;
    }
    Operation& operation = operations_[record.user_ctx];
    if (--operation.waits == 0) advance(operation);
  }
  return static_cast<size_t>(count);
}

void Client::Engine::post(const Jetty& queue, urma_jfs_wr_t* requests) {
  urma_jfs_wr_t* bad = nullptr;
  const urma_status_t status = urma_post_jetty_send_wr(queue.get(), requests, &bad);
  if (status != URMA_SUCCESS) throw ToolError(fmt::format("a request cannot be posted: {}", std::strerror(status)));
}

// A reply may never come: the server took the message and ended.
void Client::Engine::look_at_connection() {
  silent_polls_ = 0;
  if (peer_.message_waits()) throw ToolError("the server says more than was agreed: another version?");
}

}  // namespace ub::kv
