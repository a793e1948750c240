// SPDX-License-Identifier: Apache-2.0
#include "apps/kv_store/server.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string_view>

#include "apps/kv_store/greeting.h"
#include "tools/common/hex.h"
#include "tools/common/peer.h"
#include "tools/common/tool_error.h"

namespace ub::kv {

using tools::Json;
using tools::Peer;
using tools::ToolError;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kBatch = 16;
constexpr int kPatienceMs = 1000;       // with a client that has begun to speak
constexpr uint32_t kReplies = 512;      // of a session, under way
constexpr uint32_t kLongReplies = 160;  // of these
constexpr uint32_t kTurnsBetweenLooks = 256;
constexpr uint64_t kSlotsPerKey = 2;                                    // so that few keys leave their home line
constexpr uint64_t kListener = 0, kCompletions = 1, kFirstSession = 2;  // what an event of epoll is about

Geometry geometry_of(const ServerConfig& config) {
  Geometry g;
  g.lines = std::max<uint64_t>(1, config.keys * kSlotsPerKey / kSlots);
  g.heap_units = config.memory / kUnit;
  g.most_key = kMostKey;
  g.most_value = config.most_value;
  if (getrandom(&g.seed, sizeof g.seed, 0) != static_cast<ssize_t>(sizeof g.seed)) throw ToolError("no random numbers");
  if (g.most_value > kMostValue) {
    throw ToolError(tools::kExitUsage, fmt::format("values may have at most {} bytes", kMostValue));
  }
  if (g.heap_units > Word::kMostHeapUnits || g.heap_units < 2 * units_of_record(g.most_key, g.most_value)) {
    throw ToolError(tools::kExitUsage,
                    fmt::format("the memory must have room for two of the longest values, and at most {} bytes",
                                Word::kMostHeapUnits * kUnit));
  }
  return g;
}

std::string_view text_at(const char* at, uint64_t bytes) { return {at, bytes}; }

}  // namespace

// A client, from its connection to its end.
struct Server::Session {
  Session(tools::TcpSocket socket, uint32_t its_number)
      : peer(std::move(socket), kProgram, "the client"), number(its_number) {}

  Peer peer;
  const uint32_t number;
  bool ended = false;
  // Once it has introduced itself:
  Segment memory;  // of the store, for this client alone
  Memory buffers;
  Segment segment;
  Jetty jetty;
  TargetJetty client;
  std::vector<uint32_t> free_buffers;  // for long replies

  char* buffer(uint32_t i) const { return static_cast<char*>(buffers.get()) + uint64_t{i} * kReplyBytes; }
};

Server::Server(const ServerConfig& config)
    : config_(config),
      geometry_(geometry_of(config)),
      message_bytes_(units_of_record(kMostKey, config.most_value) * kUnit),
      token_(random_token()),
      memory_(allocate_for_clients(geometry_.bytes())),
      messages_(allocate(uint64_t{message_bytes_} * config.receives)),
      messages_segment_(register_memory(config.context, messages_.get(), uint64_t{message_bytes_} * config.receives,
                                        URMA_ACCESS_LOCAL_ONLY)),
      store_(static_cast<std::byte*>(memory_.get()), geometry_),
      jfce_(make_jfce(config.context)),
      jfc_(make_jfc(config.context, config.receives + 4 * kReplies, jfce_.get())),
      jfr_(make_jfr(config.context, config.receives, jfc_.get(), token_)),
      jetty_(make_jetty(config.context, 1, jfc_.get(), jfr_.get())),
      listener_(config.port),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  for (uint32_t i = 0; i < config.receives; ++i) post_receives({&i, 1});
  const auto watch = [this](int fd, uint64_t what) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = what;
    if (epoll_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) throw ToolError("cannot make an epoll");
  };
  watch(listener_.fd(), kListener);
  watch(jfce_->fd, kCompletions);
}

Server::~Server() { ::close(epoll_); }

void Server::run(std::stop_token stop) {
  uint32_t turns = 0;
  Clock::time_point busy = Clock::now();
  while (!stop.stop_requested()) {
    tools::throw_if_stopped();
    if (++turns % kTurnsBetweenLooks == 0) look_at_connections(0);
    if (serve() != 0) {
      busy = Clock::now();
    } else if (Clock::now() - busy > std::chrono::microseconds(config_.spin_us)) {
      // What came since the last look makes an event at once: nothing is slept over.
      if (urma_rearm_jfc(jfc_.get(), false) != URMA_SUCCESS) throw ToolError("cannot arm the completion queue");
      look_at_connections(100);
      busy = Clock::now();
    }
    remove_ended();
  }
}

// ---- connections ----------------------------------------------------------------------------------------------

void Server::look_at_connections(int timeout_ms) {
  epoll_event events[kBatch];
  const int count = epoll_wait(epoll_, events, kBatch, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const uint64_t what = events[i].data.u64;
    if (what == kListener) {
      accept_client();
    } else if (what == kCompletions) {
      urma_jfc_t* woken = nullptr;
      uint32_t one = 1;
      if (urma_wait_jfc(jfce_.get(), 1, 0, &woken) == 1) urma_ack_jfc(&woken, &one, 1);
    } else {
      for (auto& session : sessions_) {
        if (session->number == what) greet(*session);
      }
    }
  }
}

void Server::accept_client() {
  try {
    auto session = std::make_unique<Session>(listener_.accept(0), kFirstSession + sessions_made_++);
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = session->number;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, session->peer.socket().fd(), &event) != 0) throw ToolError("no more sockets");
    sessions_.push_back(std::move(session));
  } catch (const ToolError& e) {
    tools::throw_if_stopped();
    fmt::print(stderr, "{}: a client cannot be accepted: {}\n", kProgram, e.what());
  }
}

// Something came by TCP: a client says who it is, or is gone.
void Server::greet(Session& session) {
  if (session.peer.socket().state() == tools::TcpSocket::State::kClosed) return end(session, "");
  try {
    if (session.jetty) throw ToolError("it says more than was agreed");
    const Json hello = session.peer.expect("hello", kPatienceMs);
    if (hello.value("version", 0) != kVersion) throw ToolError("it is of another version");
    if (hello.value("wants", "") == "stat") {
      const Store::Stat s = store_.stat();
      session.peer.send("stat", {{"keys", s.keys},
                                 {"memory", s.heap_units * kUnit},
                                 {"free", s.free_units * kUnit},
                                 {"granted", s.granted_units * kUnit},
                                 {"sweeps", s.sweeps},
                                 {"clients", sessions_.size() - 1}});
      return;
    }
    const auto client = tools::from_hex<Introduction>(hello.value("client", ""));
    session.buffers = allocate(uint64_t{kLongReplies} * kReplyBytes);
    session.segment = register_memory(config_.context, session.buffers.get(), uint64_t{kLongReplies} * kReplyBytes,
                                      URMA_ACCESS_LOCAL_ONLY);
    session.free_buffers.resize(kLongReplies);
    std::iota(session.free_buffers.begin(), session.free_buffers.end(), 0);
    session.jetty = make_jetty(config_.context, kReplies, jfc_.get(), jfr_.get(), sizeof(Reply));
    session.client = import_jetty(config_.context, client.queue, client.token);
    const urma_token_t token = random_token();
    session.memory = register_memory(config_.context, memory_.get(), geometry_.bytes(),
                                     access_of(hello.value("writes", false)), token);
    const Welcome welcome = {{jetty_->jetty_id, token_}, session.memory->seg, token, geometry_};
    session.peer.send("welcome", {{"server", tools::to_hex(welcome)}});
  } catch (const std::exception& e) {
    tools::throw_if_stopped();
    session.peer.send_error(e);
    end(session, e.what());
  }
}

// It is removed later: whoever called may still work with it.
void Server::end(Session& session, const std::string& why) {
  if (session.ended) return;
  session.ended = true;
  if (!why.empty()) fmt::print(stderr, "{}: client {}: {}\n", kProgram, session.peer.socket().peer_address(), why);
}

// Requests of the client that are still on their way, and those of a client that was only stopped, find no registered
// memory any more. So what it was granted may be given to others at once.
void Server::remove_ended() {
  std::erase_if(sessions_, [this](const auto& session) {
    if (!session->ended) return false;
    session->memory.reset();
    store_.forget(session->number);
    return true;
  });
}

// nullptr: it has ended.
Server::Session* Server::find_session(auto is_it) {
  for (auto& session : sessions_) {
    if (session->client && !session->ended && is_it(*session)) return session.get();
  }
  return nullptr;
}

// ---- messages -------------------------------------------------------------------------------------------------

void Server::post_receives(std::span<const uint32_t> buffers) {
  std::array<urma_jfr_wr_t, kBatch> requests;
  std::array<urma_sge_t, kBatch> pieces;
  for (size_t i = 0; i < buffers.size(); ++i) {
    char* buffer = static_cast<char*>(messages_.get()) + uint64_t{buffers[i]} * message_bytes_;
    pieces[i] = piece(buffer, message_bytes_, messages_segment_);
    requests[i] = {{&pieces[i], 1}, buffers[i], i + 1 < buffers.size() ? &requests[i + 1] : nullptr};
  }
  urma_jfr_wr_t* bad = nullptr;
  if (urma_post_jfr_wr(jfr_.get(), requests.data(), &bad) != URMA_SUCCESS) throw ToolError("cannot post a receive");
}

// Returns how many records there were.
size_t Server::serve() {
  urma_cr_t records[kBatch];
  const int count = urma_poll_jfc(jfc_.get(), kBatch, records);
  if (count < 0) throw ToolError("polling completions failed");
  uint32_t buffers[kBatch], received = 0;
  for (int i = 0; i < count; ++i) {
    const urma_cr_t& record = records[i];
    if (record.flag.bs.s_r == 1) {
      const auto buffer = static_cast<uint32_t>(record.user_ctx);
      buffers[received++] = buffer;
      Session* sender = find_session([&](const Session& session) {
        return std::memcmp(&session.client->id, &record.remote_id, sizeof record.remote_id) == 0;
      });
      if (sender != nullptr && record.status == URMA_CR_SUCCESS) answer(*sender, buffer, record.completion_len);
    } else {
      on_reply_sent(record);
    }
  }
  if (received != 0) post_receives({buffers, received});
  return static_cast<size_t>(count);
}

// A reply that cannot be delivered is the end of its client, of which the TCP connection may tell later.
void Server::on_reply_sent(const urma_cr_t& record) {
  Session* session = find_session([&](const Session& each) { return each.jetty->jetty_id.id == record.local_id; });
  if (session == nullptr) return;
  if (record.status != URMA_CR_SUCCESS) return end(*session, "");
  session->free_buffers.push_back(static_cast<uint32_t>(record.user_ctx));
}

void Server::answer(Session& session, uint32_t buffer, uint32_t bytes) {
  const char* at = static_cast<const char*>(messages_.get()) + uint64_t{buffer} * message_bytes_;
  Request request;
  if (bytes < sizeof request) return end(session, "a message is too short");
  std::memcpy(&request, at, sizeof request);
  if (sizeof request + uint64_t{request.key_bytes} + request.value_bytes != bytes) {
    return end(session, "a message has another length than it says");
  }
  const std::string_view key = text_at(at + sizeof request, request.key_bytes);
  switch (request.op) {
    case Op::kPut:
    case Op::kInsert:
    case Op::kRemove:
      return answer_change(session, request, key, text_at(key.data() + key.size(), request.value_bytes));
    case Op::kScan:
      return answer_scan(session, request, key);
    case Op::kGrant:
      return answer_grant(session, request);
    case Op::kRelease:
      if (!store_.release(session.number, request.argument)) return end(session, "it releases what it does not have");
      return reply(session, {0, 0, request.tag, 0, Status::kOk, 0});
  }
  end(session, fmt::format("a message asks for the unknown operation {}", static_cast<int>(request.op)));
}

void Server::answer_change(Session& session, const Request& request, std::string_view key, std::string_view value) {
  const auto now = Clock::now();
  const Store::Result result = request.op == Op::kPut      ? store_.put(key, value, now)
                               : request.op == Op::kInsert ? store_.insert(key, value, now)
                                                           : store_.remove(key);
  reply(session, {result.slot, result.word.bits(), request.tag, 0, result.status, 0});
}

void Server::answer_scan(Session& session, const Request& request, std::string_view first) {
  Reply head = {0, 0, request.tag, 0, Status::kOk, 0};
  std::string entries;
  store_.scan(first, [&](std::string_view key, uint64_t slot, Word word) {
    if (head.count == request.argument) return false;
    const ScanEntry entry = {slot, word.bits(), key.size()};
    head.more = sizeof head + entries.size() + sizeof entry + key.size() > kReplyBytes;
    if (head.more != 0) return false;
    entries.append(reinterpret_cast<const char*>(&entry), sizeof entry).append(key);
    ++head.count;
    return true;
  });
  reply_long(session, head, entries);
}

// A client that writes to memory of its host would wait at each page until the kernel has made it.
void Server::touch(Extent extent) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = std::max(touched_, geometry_.unit_at(extent.unit)) / page * page;
  const uint64_t end = geometry_.unit_at(uint64_t{extent.unit} + extent.units);
  if (end <= touched_) return;
  touched_ = end;
#ifdef MADV_POPULATE_WRITE
  (void)madvise(static_cast<char*>(memory_.get()) + begin, end - begin, MADV_POPULATE_WRITE);  // else at a first write
#endif
}

void Server::answer_grant(Session& session, const Request& request) {
  const auto units = static_cast<uint32_t>(std::min<uint64_t>(request.argument, Word::kMostUnits));
  const Store::Grant* grant = store_.grant(session.number, units, Clock::now());
  if (grant == nullptr) return reply(session, {0, 0, request.tag, 0, Status::kFull, 0});
  for (Extent extent : grant->extents) touch(extent);
  reply_long(session,
             {grant->number, grant->epoch, request.tag, static_cast<uint32_t>(grant->extents.size()), Status::kOk, 0},
             {reinterpret_cast<const char*>(grant->extents.data()), grant->extents.size() * sizeof(Extent)});
}

namespace {

// False: the queue is full, or the like.
bool send(urma_jetty_t* from, urma_target_jetty_t* to, urma_sge_t message, bool is_inline, uint64_t context) {
  urma_jfs_wr_t request = {}, *bad = nullptr;
  request.opcode = URMA_OPC_SEND;
  request.flag.bs.inline_flag = is_inline;
  request.flag.bs.complete_enable = !is_inline;
  request.tjetty = to;
  request.user_ctx = context;
  request.send.src = {&message, 1};
  return urma_post_jetty_send_wr(from, &request, &bad) == URMA_SUCCESS;
}

}  // namespace

void Server::reply(Session& session, const Reply& head) {
  const urma_sge_t message = piece(reinterpret_cast<uint64_t>(&head), sizeof head, nullptr);
  if (!send(session.jetty.get(), session.client.get(), message, true, 0)) end(session, "a reply cannot be sent");
}

void Server::reply_long(Session& session, const Reply& head, std::string_view content) {
  if (session.free_buffers.empty()) return end(session, "it asks for more at a time than a client does");
  const uint32_t number = session.free_buffers.back();
  session.free_buffers.pop_back();
  char* buffer = session.buffer(number);
  std::memcpy(buffer, &head, sizeof head);
  if (!content.empty()) std::memcpy(buffer + sizeof head, content.data(), content.size());
  const urma_sge_t message = piece(buffer, sizeof head + content.size(), session.segment);
  if (!send(session.jetty.get(), session.client.get(), message, false, number)) end(session, "a reply cannot be sent");
}

}  // namespace ub::kv
