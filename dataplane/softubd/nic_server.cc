// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/nic_server.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "dataplane/daemon_socket.h"
#include "lib/base/fault/plan_text.h"
#include "lib/impair/text.h"

namespace ub {

namespace asio = boost::asio;

namespace {

constexpr auto kHelloPatience = std::chrono::seconds(5);
constexpr int kAcceptsPerTurn = 16;
constexpr int kMostStrangers = 128;  // connections that have not said hello
constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kDyingTick = std::chrono::milliseconds(20);

mode_t socket_mode(const std::string& access) {
  if (access == "all") return 0666;
  return access == "group" ? 0660 : 0600;
}

mode_t directory_mode(const std::string& access) {
  if (access == "all") return 0755;
  return access == "group" ? 0750 : 0700;
}

// The directory of the socket; one that is made here is as open as the socket. The default one may be left from a run
// with another daemon.access; one that the configuration names is its owner's business.
bool make_directory(const std::string& socket_path, const DaemonConfig& config, std::string* error) {
  const std::filesystem::path directory = std::filesystem::path(socket_path).parent_path();
  const mode_t mode = directory_mode(config.access);
  struct stat there;
  if (stat(directory.c_str(), &there) == 0) {
    if ((mode & ~there.st_mode & 0055) == 0) return true;
    const bool ours = config.socket.empty() && there.st_uid == geteuid();
    if (ours && chmod(directory.c_str(), (there.st_mode & 07777) | mode) == 0) return true;
    spdlog::warn("daemon.access is {}, but {} lets others in only by its mode {:04o}: chmod it, or set daemon.socket",
                 config.access, directory.string(), there.st_mode & 07777);
    return true;
  }
  std::error_code failed;
  if (!std::filesystem::create_directories(directory, failed)) {
    *error = "cannot make " + directory.string() + ": " + failed.message() + "; set daemon.socket";
    return false;
  }
  if (chmod(directory.c_str(), mode) != 0) *error = "cannot set the mode of " + directory.string();
  return true;
}

}  // namespace

NicServer::NicServer(asio::io_context& io, const LoadedConfig& config)
    : io_(io),
      config_(config),
      impaired_(config.impair.is_set()),
      listener_(io),
      timer_(io),
      clients_([this](Owner owner, const ClientTable::Trouble& trouble) {
        asio::post(io_, [this, owner, trouble, alive = std::weak_ptr<bool>(alive_)] {
          if (!alive.expired()) on_trouble(owner, trouble);
        });
      }) {}

std::unique_ptr<NicServer> NicServer::start(asio::io_context& io, const LoadedConfig& config, std::string* error) {
  std::unique_ptr<NicServer> server(new NicServer(io, config));
  if (!server->clients_.init(config.daemon.max_apps, error) || !server->lock_socket(error)) return nullptr;
  auto notice = [](const std::string& sentence) { spdlog::warn("{}", sentence); };
  server->nic_ = Nic::start(config, 0, notice, error, &server->clients_);
  if (server->nic_ == nullptr) return nullptr;
  server->apply_settings();
  if (!server->listen(error)) return nullptr;
  server->accept();
  server->tick();
  return server;
}

NicServer::~NicServer() {
  alive_.reset();
  boost::system::error_code ignored;
  listener_.close(ignored);
  if (listener_fd_) unlink(socket_path_.c_str());
  for (const auto& c : connections_) {
    c->readable.release();
    if (c->session->attached()) log_.info(c->session->who() + ": loses its NIC");
    c->session->say_goodbye("softubd ends");
  }
  for (const auto& c : connections_) c->session->destroy_objects();
  nic_.reset();  // before what the Core may still refer to
}

// ---- the socket ------------------------------------------------------------------------------------------------

bool NicServer::lock_socket(std::string* error) {
  socket_path_ = daemon_socket_to_listen(config_.daemon.socket);
  if (!make_directory(socket_path_, config_.daemon, error)) return false;
  // Whoever holds the lock may replace a socket that a dead daemon left.
  const std::string lock_path = socket_path_ + ".lock";
  lock_ = ipc::Fd(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_) {
    *error = "cannot open " + lock_path + ": " + strerror(errno) + "; set daemon.socket to a place that may be written";
    return false;
  }
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    *error = "another softubd listens on " + socket_path_ + "; stop it, or set daemon.socket";
    return false;
  }
  return true;
}

// Last of all: who finds the socket finds a NIC.
bool NicServer::listen(std::string* error) {
  struct stat there;
  if (lstat(socket_path_.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) {
      *error = socket_path_ + " exists and is no socket; remove it, or set daemon.socket";
      return false;
    }
    unlink(socket_path_.c_str());
  }
  const mode_t before = umask(0777 & ~socket_mode(config_.daemon.access));
  listener_fd_ = ipc::listen_unix(socket_path_, error);
  umask(before);
  if (!listener_fd_) return false;
  ipc::refuse_fds(listener_fd_.get());
  listener_.assign(dup(listener_fd_.get()));
  return true;
}

bool NicServer::may_connect(const ipc::PeerCredentials& peer) const {
  // The mode of the socket has let it in already; root may always.
  return config_.daemon.access != "user" || peer.uid == geteuid() || peer.uid == 0;
}

void NicServer::accept() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& failed) {
    if (failed) return;
    try {
      accepting_ = accept_some();
    } catch (const std::exception& error) {
      accepting_ = false;
      log_of_strangers_.warn(std::string("no room for a connection: ") + error.what());
    }
    if (accepting_) accept();  // else with the next tick
  });
}

// A bounded number. False: the system gives no more for now.
bool NicServer::accept_some() {
  for (int n = 0; n < kAcceptsPerTurn; ++n) {
    ipc::Fd socket = ipc::accept_unix(listener_fd_.get());
    if (!socket && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return true;
    if (!socket) {
      log_of_strangers_.warn(std::string("cannot take a connection: ") + strerror(errno) +
                             "; raise the limit of open files");
      return false;
    }
    ipc::PeerCredentials peer;
    if (!ipc::peer_credentials(socket.get(), &peer)) continue;
    auto session = std::make_unique<Session>(*nic_, clients_, config_, std::move(socket), peer);
    if (!may_connect(peer)) {
      const std::string why = "the daemon serves its own user alone: daemon.access = user";
      log_of_strangers_.warn(session->who() + ": refused: " + why);
      session->say_goodbye(why);
      continue;
    }
    end_oldest_stranger();
    connections_.push_back(std::make_shared<Connection>(io_, std::move(session)));
    read(connections_.back());
  }
  return true;
}

// Those that say nothing cannot keep others out.
void NicServer::end_oldest_stranger() {
  auto is_stranger = [](const std::shared_ptr<Connection>& c) { return !c->session->attached(); };
  if (std::count_if(connections_.begin(), connections_.end(), is_stranger) < kMostStrangers) return;
  const std::shared_ptr<Connection> oldest = *std::find_if(connections_.begin(), connections_.end(), is_stranger);
  end(oldest, "said no hello, and made room for others");
}

// ---- sessions --------------------------------------------------------------------------------------------------

void NicServer::read(const std::shared_ptr<Connection>& connection) {
  auto arrived = [this, weak = std::weak_ptr<Connection>(connection)](const boost::system::error_code& failed) {
    const std::shared_ptr<Connection> c = weak.lock();
    if (failed || c == nullptr) return;  // it was ended
    std::string why;
    const bool was_attached = c->session->attached();
    bool goes_on;
    try {
      goes_on = c->session->serve(&why);
    } catch (const std::bad_alloc&) {
      goes_on = false;
      why = "the daemon is out of memory";
    }
    if (!was_attached && c->session->attached()) log_.info(c->session->who() + ": attached");
    if (goes_on) return read(c);
    end(c, why);
  };
  connection->readable.async_wait(asio::posix::stream_descriptor::wait_read, arrived);
}

void NicServer::end(const std::shared_ptr<Connection>& connection, const std::string& why) {
  std::unique_ptr<Session> session = std::move(connection->session);
  connection->readable.release();
  connections_.remove(connection);
  const std::string had = session->objects() == nullptr ? "" : session->objects()->summary();
  const std::string tail = had.empty() ? "" : "; frees " + had;
  if (why.empty()) {
    if (session->attached()) log_.info(session->who() + ": gone" + tail);
  } else {
    (session->attached() ? log_ : log_of_strangers_).warn(session->who() + ": " + why + tail);
    session->say_goodbye(why);
  }
  if (!session->clean_up()) {
    dying_.push_back(std::move(session));
    arm_timer();
  }
}

void NicServer::on_trouble(Owner owner, const ClientTable::Trouble& trouble) {
  for (const auto& c : connections_) {
    if (c->session->owner() != owner) continue;
    if (trouble.what == Agent::Verdict::kLied) {
      return end(std::shared_ptr(c), "wrote an index into its shared page that cannot be");
    }
    const std::string sentence = trouble.what == Agent::Verdict::kStalled ? Session::describe_stall(trouble.stall)
                                                                          : c->session->look_after(trouble.wait);
    if (!sentence.empty()) log_.warn(c->session->who() + ": " + sentence);
    return;
  }
}

void NicServer::tick() {
  if (!std::exchange(accepting_, true)) accept();
  std::erase_if(dying_, [](const std::unique_ptr<Session>& session) { return session->clean_up(); });
  for (const auto& c : Connections(connections_)) {
    if (!c->session->attached() && Clock::now() - c->since > kHelloPatience) end(c, "said no hello");
  }
  arm_timer();
}

void NicServer::arm_timer() {
  timer_.expires_after(dying_.empty() ? kTick : std::chrono::duration_cast<Clock::duration>(kDyingTick));
  timer_.async_wait([this](const boost::system::error_code& failed) {
    if (!failed) tick();
  });
}

// ---- settings --------------------------------------------------------------------------------------------------

void NicServer::apply_settings() {
  const DaemonConfig& d = config_.daemon;
  Nic::WorkerSettings settings;
  settings.may_sleep = d.idle != "poll";
  settings.idle_after = d.idle == "sleep" ? Duration{} : to_duration(d.idle_after);
  for (const std::string& core : d.cores) settings.cores.push_back(std::stoi(core));
  std::string why;
  if (!nic_->set_worker(settings, &why)) spdlog::warn("daemon.cores: {}", why);
  nic_->control([&](Nic::NicCore& core, Instant now) {
    clients_.set_patience({to_duration(d.agent_patience), to_duration(d.starved_patience)});
    clients_.set_rate(core, now, d.app_rate);
    return true;
  });
  if (d.inject == injected_) return;
  injected_ = d.inject;
  const fault::Plan plan =
      fault::parse_plan(injected_).plan.value_or(fault::Plan{});  // it was checked when it was read
  if (nic_->inject(plan.nic, &why) != Status::kOk) spdlog::warn("daemon.inject: {}", why);
  if (!injected_.empty()) spdlog::warn("daemon.inject: the NIC has faults from now on: {}", injected_);
}

std::string NicServer::reload(const LoadedConfig& wanted) {
  std::string others;
  const std::vector<ConfigRow> before = describe(config_), after = describe(wanted);
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string& key = before[i].key;
    const bool of_daemon =
        key.starts_with("daemon.") && key != "daemon.socket" && key != "daemon.access" && key != "daemon.max_apps";
    const bool of_wires = impaired_ && (key == "impair.send" || key == "impair.receive");
    const bool may_change = of_daemon || of_wires;
    if (!may_change && before[i].value != after[i].value) others += (others.empty() ? "" : ", ") + key;
  }
  DaemonConfig daemon = wanted.daemon;
  daemon.socket = config_.daemon.socket;
  daemon.access = config_.daemon.access;
  daemon.max_apps = config_.daemon.max_apps;
  config_.daemon = daemon;
  apply_settings();
  if (impaired_) apply_impairments(wanted.impair);
  return others;
}

// Only what changed begins anew.
void NicServer::apply_impairments(const ImpairConfig& wanted) {
  const auto changed = [](const std::string& now, const std::string& then) {
    return now == then ? std::nullopt : impair::parse(then).script;  // it was checked when it was read
  };
  const std::optional<impair::Script> send = changed(config_.impair.send, wanted.send);
  const std::optional<impair::Script> receive = changed(config_.impair.receive, wanted.receive);
  if (!send && !receive) return;
  std::string why;
  const Status status = nic_->impair(send ? &*send : nullptr, receive ? &*receive : nullptr, &why);
  if (status != Status::kOk) return spdlog::warn("impair.send, impair.receive: {}", why);
  config_.impair.send = wanted.send;
  config_.impair.receive = wanted.receive;
  const auto said = [](const std::string& text) {  // as at the start: "clear" for nothing
    return impair::to_text(impair::parse(text).script.value_or(impair::Script{}));
  };
  spdlog::warn("the network of this NIC is impaired on purpose: it sends with \"{}\", and receives with \"{}\"",
               said(wanted.send), said(wanted.receive));
}

}  // namespace ub
