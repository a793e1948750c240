// SPDX-License-Identifier: Apache-2.0
//
// What changes keys: puts by WRITE and compare-and-swap, and messages to the server for all else.
#include <algorithm>
#include <cstring>

#include "apps/kv_store/engine.h"
#include "tools/common/tool_error.h"

namespace ub::kv {

using tools::ToolError;

namespace {

constexpr uint32_t kPutsAfterRefusal = 100;  // until a grant is asked for again
constexpr uint32_t kMostToReplace = 4096;    // bytes of a value: longer ones would take time to read

urma_jfs_wr_t request_of(urma_opcode_t opcode, urma_target_jetty_t* server, uint64_t context) {
  urma_jfs_wr_t request = {};
  request.opcode = opcode;
  request.flag.bs.complete_enable = 1;
  request.tjetty = server;
  request.user_ctx = context;
  return request;
}

}  // namespace

bool Client::Engine::start_change(Op op, std::string_view key, std::string_view value, uint64_t cookie) {
  Operation* change = begin(key, cookie);
  if (change == nullptr) return false;
  if (!error_.empty()) {
    complete(*change, Status::kFailed);
    return true;
  }
  if (key.empty() || key.size() > geometry().most_key || value.size() > geometry().most_value) {
    complete(*change, Status::kTooLarge);
    return true;
  }
  char* body = change->buffer + sizeof(Request);
  std::memcpy(body, key.data(), key.size());
  if (!value.empty()) std::memcpy(body + key.size(), value.data(), value.size());
  change->value_bytes = static_cast<uint32_t>(value.size());
  try {
    const bool by_accesses = op == Op::kPut && config_.mode == Mode::kWrite && put_by_accesses(*change);
    if (!by_accesses) send_message(*change, op, 0, key, change->value_bytes);
    if (reads_at_once_) take_completions();
  } catch (const std::exception& e) {
    fail(e.what());
  }
  return true;
}

// ---- puts without the server ----------------------------------------------------------------------------------

// False: it has to be a message.
bool Client::Engine::put_by_accesses(Operation& put) {
  const Hints::Hint* hint = hints_.find(put.hash);
  return hint != nullptr ? put_directly(put, *hint) : read_place(put);
}

// Gets the record that is to be replaced, for the sake of the hint that this leaves. A server would answer a message
// sooner than that, but for READs that take no time.
bool Client::Engine::read_place(Operation& put) {
  if (!reads_at_once_ || put.value_bytes > kMostToReplace || parts_ == config_.window) return false;
  Operation& get = take(Kind::kPlace);
  ++parts_;
  get.parent = &put;
  get.key = put.key;
  get.hash = put.hash;
  put.step = Step::kPlace;
  read_lines(get);
  return true;
}

void Client::Engine::on_place(Operation& get) {
  Operation& put = *get.parent;
  --parts_;
  free(get);
  ++counters_.places_read;
  const Hints::Hint* hint = hints_.find(put.hash);
  if (hint == nullptr || !put_directly(put, *hint)) send_message(put, Op::kPut, 0, put.key, put.value_bytes);
}

// False: there is no granted memory for the record, so it has to be a message.
bool Client::Engine::put_directly(Operation& put, const Hints::Hint& hint) {
  const uint32_t units = units_of_record(put.key.size(), put.value_bytes);
  const auto place = grants_.take(units);
  keep_grants(units, place.has_value());
  if (!place) return false;
  put.grant = place->grant;
  put.place = {hint.slot, hint.word};
  put.next = Word(place->unit, units, place->epoch, put.hash.tag());
  const auto key_bytes = static_cast<uint32_t>(put.key.size());
  seal_record(put.buffer, put.next, key_bytes, put.value_bytes);

  // The old record is marked only if it is still there: its place may be in use again.
  const uint64_t bytes = sizeof(RecordHead) + key_bytes + put.value_bytes;
  urma_sge_t from = piece(put.buffer, bytes, segment_), to = remote(geometry().unit_at(put.next.unit()), bytes);
  urma_sge_t head = remote(geometry().unit_at(put.place.word.unit()), sizeof(uint64_t));
  urma_sge_t old_head = piece(&put.olds[0], sizeof(uint64_t), segment_);
  urma_jfs_wr_t write = request_of(URMA_OPC_WRITE, server_.get(), put.number);
  write.rw.src = {&from, 1};
  write.rw.dst = {&to, 1};
  urma_jfs_wr_t mark = request_of(URMA_OPC_CAS, server_.get(), put.number);
  mark.cas.dst = &head;
  mark.cas.src = &old_head;
  mark.cas.cmp_data = put.place.word.bits();
  mark.cas.swap_data = put.place.word.bits() | Word::kStale;
  write.next = &mark;
  put.step = Step::kPlacing;
  put.waits = 2;
  post(accesses_, &write);
  return true;
}

// The record is there and the old one is marked: both have been answered, so no order is asked of the NIC.
void Client::Engine::publish(Operation& put) {
  urma_sge_t slot = remote(put.place.slot, sizeof(uint64_t)),
             old_word = piece(&put.olds[1], sizeof(uint64_t), segment_);
  urma_jfs_wr_t exchange = request_of(URMA_OPC_CAS, server_.get(), put.number);
  exchange.cas.dst = &slot;
  exchange.cas.src = &old_word;
  exchange.cas.cmp_data = put.place.word.bits();
  exchange.cas.swap_data = put.next.bits();
  put.step = Step::kPublishing;
  put.waits = 1;
  post(accesses_, &exchange);
}

void Client::Engine::on_published(Operation& put) {
  grants_.done(put.grant);
  put.grant = nullptr;
  if (put.olds[1] == put.place.word.bits()) {
    ++counters_.direct_puts;
    hints_.remember(put.hash, put.place.slot, put.next);
    return complete(put, Status::kOk);
  }
  ++counters_.cas_failures;
  hints_.forget(put.hash);
  send_message(put, Op::kPut, 0, put.key, put.value_bytes);
}

// Asks for a grant in time, and gives back what is used up.
void Client::Engine::keep_grants(uint32_t units, bool has_room) {
  if (puts_until_grant_ > 0) --puts_until_grant_;
  const bool wants = !has_room || grants_.run_low();
  if (wants && !grant_asked_ && puts_until_grant_ == 0 && internal_ < kMostInternal) {
    grant_asked_ = true;
    ++internal_;
    send_message(take(Kind::kInternal), Op::kGrant, units, {}, 0);
  }
  while (internal_ < kMostInternal) {
    const auto number = grants_.next_to_release();
    if (!number) return;
    ++internal_;
    send_message(take(Kind::kInternal), Op::kRelease, *number, {}, 0);
  }
}

void Client::Engine::take_grant(const Reply& reply, const char* content) {
  grant_asked_ = false;
  if (reply.status != Status::kOk) {
    puts_until_grant_ = kPutsAfterRefusal;
    return;
  }
  std::vector<Extent> extents(reply.count);
  std::memcpy(extents.data(), content, extents.size() * sizeof(Extent));
  grants_.add({reply.slot, static_cast<uint32_t>(reply.word), std::move(extents)});
}

// ---- messages -------------------------------------------------------------------------------------------------

// Key and value stand in the buffer already, behind the head that is written here; `key` may be those bytes.
void Client::Engine::send_message(Operation& operation, Op op, uint64_t argument, std::string_view key,
                                  uint32_t value_bytes) {
  const Request head = {argument, operation.number, value_bytes, static_cast<uint16_t>(key.size()), op, {}};
  std::memcpy(operation.buffer, &head, sizeof head);
  urma_sge_t message = piece(operation.buffer, sizeof head + key.size() + value_bytes, segment_);
  urma_jfs_wr_t request = request_of(URMA_OPC_SEND, server_.get(), operation.number);
  request.send.src = {&message, 1};
  operation.op = op;
  operation.step = Step::kMessage;
  operation.waits = 2;  // the buffer is free again, and the reply is here
  ++counters_.messages;
  post(messages_, &request);
}

void Client::Engine::on_message(uint32_t buffer, uint32_t bytes) {
  const char* at = replies_ + uint64_t{buffer} * kReplyBytes;
  Reply reply;
  if (bytes < sizeof reply) throw ToolError("a reply of the server is too short: another version?");
  std::memcpy(&reply, at, sizeof reply);
  if (reply.tag >= operations_.size() || operations_[reply.tag].step != Step::kMessage) {
    throw ToolError("the server answers what was not asked: another version?");
  }
  Operation& operation = operations_[reply.tag];
  operation.reply = reply;
  if (operation.op == Op::kScan) take_items(operation, reply, at + sizeof reply, bytes - sizeof reply);
  if (operation.op == Op::kGrant) take_grant(reply, at + sizeof reply);
  post_receive(buffer);
  if (--operation.waits == 0) advance(operation);
}

void Client::Engine::on_reply(Operation& operation) {
  const Reply& reply = operation.reply;
  switch (operation.op) {
    case Op::kPut:
    case Op::kInsert:
      if (reply.status == Status::kOk) hints_.remember(operation.hash, reply.slot, Word(reply.word));
      break;
    case Op::kRemove:
      hints_.forget(operation.hash);
      break;
    case Op::kScan:
      return ask_for_items(operation);
    case Op::kGrant:
    case Op::kRelease:
      break;
  }
  complete(operation, reply.status);
}

}  // namespace ub::kv
