// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/session.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

namespace ub {

namespace {

using ipc::AppCall;

constexpr int kRequestsPerTurn = 16;
constexpr auto kStarvingPause = std::chrono::seconds(10);    // between lines about one application
constexpr auto kLongestTurn = std::chrono::milliseconds(5);  // what waits for another process ends a turn

// As the process calls itself; it may say anything, so only what can be printed.
std::string program_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  for (char& c : name) c = c < ' ' || c > '~' ? '?' : c;
  return name.empty() ? "?" : name;
}

std::string describe(const ipc::PeerCredentials& peer) {
  return "process " + std::to_string(peer.pid) + " (" + program_of(peer.pid) + "), user " + std::to_string(peer.uid);
}

const char* name_of(Condition condition) {
  switch (condition) {
    case Condition::kStopped:
      return "it is stopped";
    case Condition::kAsleep:
      return "it sleeps";
    case Condition::kRan:
      return "it runs and does not copy";
    case Condition::kUnseen:
      return "/proc does not tell what it does";
    case Condition::kStarved:
      return "it got no CPU for daemon.starved_patience";
    case Condition::kUnclear:
      break;
  }
  return "nobody looked what it does";
}

std::string in_seconds(Duration d) {
  char text[32];
  snprintf(text, sizeof text, "%.2f s", static_cast<double>(d.ns) * 1e-9);
  return text;
}

void set_text(ipc::AppAnswer* answer, const std::string& text) {
  size_t n = std::min(text.size(), sizeof answer->text - 1);
  std::memcpy(answer->text, text.data(), n);
  answer->text[n] = 0;
}

}  // namespace

Session::Session(Nic& nic, ClientTable& clients, const LoadedConfig& config, ipc::Fd socket,
                 const ipc::PeerCredentials& peer)
    : nic_(nic), clients_(clients), config_(config), socket_(std::move(socket)), peer_(peer), who_(describe(peer)) {}

bool Session::serve(std::string* why) {
  const auto end = std::chrono::steady_clock::now() + kLongestTurn;
  for (int n = 0; n < kRequestsPerTurn && std::chrono::steady_clock::now() < end; ++n) {
    std::byte message[sizeof(ipc::AppRequest) + 1];  // one more than a request: longer ones are seen
    size_t bytes;
    bool had_fds;
    switch (ipc::receive_plain(socket_.get(), message, &bytes, &had_fds)) {
      case ipc::SocketStatus::kOk:
        if (had_fds) {
          *why = "sent descriptors, which no request has";
          return false;
        }
        if (!handle({message, bytes}, why)) return false;
        break;
      case ipc::SocketStatus::kAgain:
        return true;
      case ipc::SocketStatus::kClosed:
      case ipc::SocketStatus::kFailed:
        return false;
    }
  }
  return true;
}

bool Session::handle(std::span<const std::byte> message, std::string* why) {
  ipc::AppRequest request{};
  std::memcpy(&request, message.data(), std::min(message.size(), sizeof request));
  if (message.size() < sizeof(ipc::AppHead) || request.head.magic != ipc::kAppCallMagic) {
    *why = "sent " + std::to_string(message.size()) + " bytes that are no request";
    return false;
  }
  if (request.head.version != ipc::kAppCallVersion) {
    *why = "its liburma speaks version " + std::to_string(request.head.version) +
           " of the daemon's protocol, this softubd version " + std::to_string(ipc::kAppCallVersion) +
           ": use both from one release";
    return false;
  }
  if (message.size() != sizeof request || request.head.bytes != sizeof request || request.number == 0) {
    *why = "sent a malformed request";
    return false;
  }
  const bool is_hello = request.call == AppCall::kHello;
  if (is_hello == attached()) {
    *why = is_hello ? "said hello twice" : "sent a request before its hello";
    return false;
  }
  if (attached() && !begin_service(why)) return false;
  Reply reply;
  reply.answer.number = request.number;
  std::string sentence;
  Status status = is_hello ? hello(&reply, &sentence) : call(request, &reply, &sentence);
  if (attached()) objects_->publish_usage();
  reply.answer.status = static_cast<uint32_t>(status);
  if (!send(reply, sentence)) {
    *why = "does not read its answers";
    return false;
  }
  if (is_hello && status != Status::kOk) {
    *why = sentence;
    return false;
  }
  if (is_hello) client_->close_passed_fds();
  return true;
}

bool Session::send(Reply& reply, const std::string& sentence) {
  set_text(&reply.answer, sentence);
  reply.answer.head = {ipc::kAppCallMagic, ipc::kAppCallVersion,
                       static_cast<uint32_t>(sizeof reply.answer + reply.extra_bytes)};
  std::byte message[sizeof(ipc::AppAnswer) + ipc::kAppAnswerExtra];
  std::memcpy(message, &reply.answer, sizeof reply.answer);
  std::memcpy(message + sizeof reply.answer, reply.extra, reply.extra_bytes);
  return ipc::send_message(socket_.get(), {message, sizeof reply.answer + reply.extra_bytes},
                           {reply.fds, reply.fd_count}) == ipc::SocketStatus::kOk;
}

void Session::say_goodbye(const std::string& sentence) {
  Reply reply;
  send(reply, sentence);
  socket_.reset();
}

Status Session::hello(Reply* reply, std::string* why) {
  Owner number = nic_.control([&](Nic::NicCore&, Instant) { return clients_.free_number(); });
  if (number == 0) {
    *why = "the daemon serves daemon.max_apps = " + std::to_string(config_.daemon.max_apps) + " applications already";
    return Status::kNoMemory;
  }
  std::unique_ptr<Client> client = Client::create(number, why);
  if (client == nullptr) return Status::kNoMemory;
  Client* raw = client.get();
  auto objects = std::make_unique<AppObjects>(nic_, *raw);
  if (!nic_.control([&](Nic::NicCore&, Instant) { return clients_.add(std::move(client), why); })) {
    return Status::kNoMemory;
  }
  client_ = raw;
  objects_ = std::move(objects);
  raw->set_process(peer_, program_of(peer_.pid));
  process_ = ProcessReader(peer_.pid);
  reply->fds[0] = raw->page_fd();
  reply->fds[1] = raw->worker_bell_fd();
  reply->fds[2] = raw->app_bell_fd();
  reply->fd_count = 3;
  ipc::AppInstance& instance = reply->answer.instance;
  instance = {};
  instance.uasid = nic_.uasid();
  instance.mtu = nic_.mtu();
  for (const Eid& eid : nic_.eids()) {
    if (instance.eid_count < ipc::kAppEids) instance.eids[instance.eid_count++] = eid.bytes;
  }
  return Status::kOk;
}

// The worker reads a page only after no hole can be punched into it.
bool Session::begin_service(std::string* why) {
  if (std::exchange(served_, true)) return true;
  if (!client_->check_page(why)) return false;
  return nic_.control([&](Nic::NicCore&, Instant) {
    clients_.serve(client_->number());
    return true;
  });
}

Status Session::call(const ipc::AppRequest& r, Reply* reply, std::string* why) {
  ipc::AppAnswer& answer = reply->answer;
  switch (r.call) {
    case AppCall::kAddArea: {
      Status status = objects_->add_area(config_.daemon, r.bytes, r.value, &answer.id, &reply->passed, why);
      if (status == Status::kOk) reply->fds[reply->fd_count++] = reply->passed.get();
      return status;
    }
    case AppCall::kOpenLane:
      return open_lane(r, reply, why);
    case AppCall::kOpenShare:
      return open_share(r, reply, why);
    case AppCall::kShareHolders:
      return share_holders(r, reply);
    case AppCall::kTakeUnhandled: {
      Cqe cqes[ipc::kAppAnswerExtra / sizeof(Cqe)];
      uint32_t room = std::min<uint32_t>(r.value, std::size(cqes));
      Status status = objects_->take_unhandled(r.id, cqes, room, &answer.value);
      reply->extra_bytes = answer.value * sizeof(Cqe);
      std::memcpy(reply->extra, cqes, reply->extra_bytes);
      return status;
    }
    case AppCall::kCounters:
    case AppCall::kChannels:
      return call_report(r, reply);
    case AppCall::kCreateJfc:
    case AppCall::kCreateJfr:
    case AppCall::kCreateJetty:
    case AppCall::kCreateGroup:
    case AppCall::kAllocToken:
    case AppCall::kRegisterSegment:
    case AppCall::kPublish:
    case AppCall::kFindInstance:
    case AppCall::kAddTarget:
      return call_create(r, &answer, why);
    default:
      return call_object(r, &answer, why);
  }
}

// What goes through a lane does not pass through this daemon.
Status Session::open_lane(const ipc::AppRequest& r, Reply* reply, std::string* why) {
  if (config_.daemon.app_rate != 0) {
    *why = "daemon.app_rate limits this program, and a lane has no limit";
    return Status::kInvalid;
  }
  if (!nic_.open_lane({Eid{r.target.eid}, r.target.uasid}, peer_.pid, &reply->lane, why)) return Status::kInvalid;
  reply->answer.value = reply->lane.fence_needed ? 1 : 0;
  reply->fds[reply->fd_count++] = reply->lane.socket.get();
  reply->fds[reply->fd_count++] = reply->lane.memory.get();
  return Status::kOk;
}

// The process is the one that the kernel named, whatever the request says.
Status Session::open_share(const ipc::AppRequest& r, Reply* reply, std::string* why) {
  if (config_.daemon.app_rate != 0) {
    *why = "daemon.app_rate limits this program, and mapped memory has no limit";
    return Status::kInvalid;
  }
  ipc::ShareRequest request = r.share.request;
  request.process = peer_.pid;
  request.places = 0;  // a program gets no gate
  if (!nic_.open_share({Eid{r.share.eid}, r.share.uasid}, request, &reply->share, why)) return Status::kInvalid;
  reply->answer.value = reply->share.writable ? 1 : 0;
  reply->fds[reply->fd_count++] = reply->share.socket.get();
  reply->fds[reply->fd_count++] = reply->share.memory.get();
  return Status::kOk;
}

Status Session::share_holders(const ipc::AppRequest& r, Reply* reply) {
  std::vector<ipc::ShareHolder> holders;
  const Status status = objects_->share_holders(r.id, &holders);
  if (status != Status::kOk) return status;
  const size_t count = std::min(holders.size(), ipc::kAppAnswerExtra / sizeof(ipc::ShareHolder));
  reply->extra_bytes = count * sizeof(ipc::ShareHolder);
  if (count != 0) std::memcpy(reply->extra, holders.data(), reply->extra_bytes);
  reply->answer.value = static_cast<uint32_t>(holders.size());
  return status;
}

Status Session::call_create(const ipc::AppRequest& r, ipc::AppAnswer* answer, std::string* why) {
  switch (r.call) {
    case AppCall::kCreateJfc:
      return objects_->create_jfc(config_, r.queue, &answer->id, &answer->bell, why);
    case AppCall::kCreateJfr:
      return objects_->create_jfr(config_, r.queue, &answer->id, why);
    case AppCall::kCreateJetty:
      return objects_->create_jetty(config_, r.queue, &answer->id, &answer->bell, why);
    case AppCall::kCreateGroup:
      return objects_->create_group(config_.daemon, r.queue, &answer->id, why);
    case AppCall::kAllocToken:
      return objects_->alloc_token(config_.daemon, &answer->id, why);
    case AppCall::kRegisterSegment:
      answer->segment = r.segment;
      return objects_->register_segment(config_.daemon, &answer->segment, why);
    case AppCall::kPublish:
      return objects_->publish(r.id, r.name, why);
    case AppCall::kFindInstance:
      return objects_->find_instance(r.target, r.value != 0, &answer->value, why);
    default:
      return objects_->add_target(config_.daemon, r.target, &answer->id, why);
  }
}

Status Session::call_object(const ipc::AppRequest& r, ipc::AppAnswer* answer, std::string* why) {
  switch (r.call) {
    case AppCall::kAreaMapped:
      return objects_->area_mapped(r.id, why);
    case AppCall::kDropArea:
      return objects_->drop_area(r.id);
    case AppCall::kDestroyJfc:
      return objects_->destroy_jfc(r.id);
    case AppCall::kDestroyJfr:
      return objects_->destroy_jfr(r.id);
    case AppCall::kDestroyJetty:
      return objects_->destroy_jetty(r.id);
    case AppCall::kDestroyGroup:
      return objects_->destroy_group(r.id);
    case AppCall::kSetState:
      return objects_->set_state(r.id, r.value);
    case AppCall::kGetState:
      return objects_->get_state(r.id, &answer->value);
    case AppCall::kModerateJfc:
      return objects_->moderate_jfc(r.id, r.moderation);
    case AppCall::kSetThreshold:
      return objects_->set_threshold(r.id, r.value);
    case AppCall::kSetQueueToken:
      return objects_->set_queue_token(r.id, r.token);
    case AppCall::kSetSegmentToken:
      return objects_->set_segment_token(r.id, r.token);
    case AppCall::kSetExclusive:
      return objects_->set_segment_exclusive(r.id, r.value != 0);
    case AppCall::kInjectRnr:
      return objects_->inject_rnr(r.fault, why);
    case AppCall::kInjected:
      answer->count = objects_->injected_rnr();
      return Status::kOk;
    case AppCall::kFreeToken:
      return objects_->free_token(r.id);
    case AppCall::kUnregister:
      return objects_->unregister_segment(r.id);
    case AppCall::kUnpublish:
      return objects_->unpublish(r.id);
    case AppCall::kRemoveTarget:
      return objects_->remove_target(r.id);
    case AppCall::kBind:
      return objects_->bind(r.id, r.value);
    case AppCall::kUnbind:
      return objects_->unbind(r.id);
    default:
      *why = "the daemon knows no call " + std::to_string(static_cast<uint32_t>(r.call));
      return Status::kInvalid;
  }
}

Status Session::call_report(const ipc::AppRequest& r, Reply* reply) {
  if (r.call == AppCall::kCounters) {
    static_assert(sizeof(Counters) <= ipc::kAppAnswerExtra);
    const Counters counters = nic_.control([](Nic::NicCore& core, Instant) { return core.counters(); });
    std::memcpy(reply->extra, &counters, sizeof counters);
    reply->extra_bytes = sizeof counters;
    return Status::kOk;
  }
  ChannelInfo channels[ipc::kAppAnswerExtra / sizeof(ChannelInfo)];
  uint32_t from = r.value;
  const size_t count = nic_.channels(channels, &from);
  std::memcpy(reply->extra, channels, count * sizeof(ChannelInfo));
  reply->extra_bytes = count * sizeof(ChannelInfo);
  reply->answer.value = static_cast<uint32_t>(count);
  reply->answer.id = from;
  return Status::kOk;
}

// ---- copies left undone ----------------------------------------------------------------------------------------

std::string Session::look_after(uint32_t wait) {
  if (std::exchange(judged_wait_, wait) != wait) judge_.forget();
  const Condition condition = judge_.judge(process_.read());
  const auto stall = nic_.control([&](Nic::NicCore& core, Instant now) -> std::optional<Agent::Stall> {
    Agent& agent = client_->agent();
    if (!agent.answer(core, now, wait, condition)) return std::nullopt;
    return agent.stall();
  });
  if (stall) return describe_stall(*stall);
  const auto now = std::chrono::steady_clock::now();
  if (condition != Condition::kStarved || now - told_of_starving_ < kStarvingPause) return "";
  told_of_starving_ = now;
  return "leaves copies undone because it gets no CPU; it is waited for, urma_admin show apps tells how long";
}

std::string Session::describe_stall(const Agent::Stall& stall) {
  return "left copies undone for " + in_seconds(stall.waited) + ": " + name_of(stall.why) +
         "; requests to its own memory fail until it goes on";
}

void Session::destroy_objects() {
  if (objects_ != nullptr) objects_->destroy_all();
}

bool Session::clean_up() {
  socket_.reset();
  if (client_ == nullptr) return true;
  nic_.control([&](Nic::NicCore& core, Instant now) {
    client_->agent().fail_for_ever(core, now);
    return true;
  });
  if (!objects_->destroy_all()) return false;
  nic_.control([&](Nic::NicCore&, Instant) {
    clients_.remove(client_->number());
    return true;
  });
  objects_.reset();
  client_ = nullptr;
  return true;
}

}  // namespace ub
