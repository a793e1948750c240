// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/rendezvous.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "lib/ipc/unix_socket.h"

namespace ub::ipc {
namespace {

bool is_own_directory(const char* path) {
  struct stat st;
  return ::lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == ::geteuid();
}

// Is the file behind `fd` still the one at `path`? A former owner may have removed it between open and flock.
bool same_file(int fd, const std::string& path) {
  struct stat a, b;
  return ::fstat(fd, &a) == 0 && ::stat(path.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

enum class LockStatus : uint8_t { kHeld, kTaken, kFailed };

LockStatus lock_file(const std::string& path, Fd* out) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return LockStatus::kFailed;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
      return errno == EWOULDBLOCK ? LockStatus::kTaken : LockStatus::kFailed;
    if (!same_file(fd.get(), path)) continue;
    *out = std::move(fd);
    return LockStatus::kHeld;
  }
  return LockStatus::kTaken;
}

constexpr std::string_view kSocketSuffix = ".sock";
constexpr std::string_view kHolderSuffix = ".id";

bool parse_name(std::string_view text, std::string_view suffix, Rendezvous::Name* out) {
  if (text.size() < 34 + suffix.size() || text[32] != '-' || !text.ends_with(suffix)) return false;
  auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  for (size_t i = 0; i < 16; ++i) {
    int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out->eid[i] = static_cast<uint8_t>(high * 16 + low);
  }
  uint32_t port = 0;
  std::string_view digits = text.substr(33, text.size() - 33 - suffix.size());
  if (digits.empty() || digits.size() > 5) return false;
  for (char c : digits) {
    if (c < '0' || c > '9') return false;
    port = port * 10 + static_cast<uint32_t>(c - '0');
  }
  if (port > 65535) return false;
  out->port = static_cast<uint16_t>(port);
  return true;
}

std::vector<Rendezvous::Name> names_with(const std::string& directory, std::string_view suffix) {
  std::vector<Rendezvous::Name> names;
  DIR* dir = ::opendir(directory.c_str());
  if (dir == nullptr) return names;
  while (const dirent* d = ::readdir(dir)) {
    Rendezvous::Name name;
    if (parse_name(d->d_name, suffix, &name)) names.push_back(name);
  }
  ::closedir(dir);
  return names;
}

}  // namespace

std::string Rendezvous::default_directory() {
  uid_t uid = ::geteuid();
  std::string base = "/tmp";
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  std::string run = "/run/user/" + std::to_string(uid);
  if (xdg != nullptr && xdg[0] == '/' && is_own_directory(xdg)) {
    base = xdg;
  } else if (is_own_directory(run.c_str())) {
    base = run;  // a process that was started without a login session must meet those that were started with one
  }
  struct stat st;
  uint64_t ns = ::stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
  return base + "/softub-" + std::to_string(uid) + "-" + std::to_string(ns);
}

bool Rendezvous::open(const std::string& directory, std::string* error) {
  directory_ = directory.empty() ? default_directory() : directory;
  while (directory_.size() > 1 && directory_.back() == '/') directory_.pop_back();
  if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) {
    *error = "rendezvous directory " + directory_ + ": cannot create it: " + std::strerror(errno) +
             "; configure another (port.shm_dir)";
    return false;
  }
  struct stat st;
  if (::lstat(directory_.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) {
    *error = "rendezvous directory " + directory_ + " is not a directory; remove it or configure another";
    return false;
  }
  if (st.st_uid != ::geteuid() || (st.st_mode & 022) != 0) {
    *error = "rendezvous directory " + directory_ + " belongs to user " + std::to_string(st.st_uid) +
             " or is writable for others; it must be ours with mode 0700";
    return false;
  }
  for (const Name& name : list()) remove_if_stale(name);  // removes what killed processes left
  remove_stale_holders();
  return true;
}

std::string Rendezvous::stem(const Name& name) const {
  char text[48];
  char* at = text;
  for (uint8_t b : name.eid) at += std::snprintf(at, 3, "%02x", b);
  std::snprintf(at, 8, "-%u", name.port);
  return directory_ + "/" + text;
}

std::string Rendezvous::path_of(const Name& name) const { return stem(name) + std::string(kSocketSuffix); }

Rendezvous::PublishStatus Rendezvous::publish(const Name& name, std::string* error) {
  Entry entry;
  entry.name = name;
  std::string lock_path = stem(name) + ".lock";
  LockStatus status = lock_file(lock_path, &entry.lock);
  if (status == LockStatus::kTaken) {  // perhaps only by a process that clears up
    ::usleep(1000);
    status = lock_file(lock_path, &entry.lock);
  }
  switch (status) {
    case LockStatus::kHeld:
      break;
    case LockStatus::kTaken:
      *error = "the name " + stem(name) + " is taken by another process; use another port or EID";
      return PublishStatus::kTaken;
    case LockStatus::kFailed:
      *error = "cannot lock " + lock_path + ": " + std::strerror(errno);
      return PublishStatus::kFailed;
  }
  std::string path = path_of(name);
  ::unlink(path.c_str());  // it belongs to a dead owner, since we hold the lock
  entry.listener = listen_unix(path, error);
  if (!entry.listener) {
    ::unlink(lock_path.c_str());
    return PublishStatus::kFailed;
  }
  entries_.push_back(std::move(entry));
  return PublishStatus::kOk;
}

void Rendezvous::announce(const Name& name, uint32_t uasid) {
  const std::pair said(name, uasid);
  if (std::find(announced_.begin(), announced_.end(), said) != announced_.end()) return;
  char text[16];
  std::snprintf(text, sizeof text, "%08x", uasid);
  const std::string path = stem(name) + std::string(kHolderSuffix), made = path + "." + text;
  ::unlink(made.c_str());
  if (::symlink(text, made.c_str()) != 0 || ::rename(made.c_str(), path.c_str()) != 0) return;
  announced_.push_back(said);
}

void Rendezvous::retract(const Name& name) {
  std::erase_if(announced_, [&](const auto& said) {
    if (said.first != name) return false;
    forget_holder(name, said.second);
    return true;
  });
}

std::optional<uint32_t> Rendezvous::holder(const Name& name) const {
  char text[16];
  const ssize_t n = ::readlink((stem(name) + std::string(kHolderSuffix)).c_str(), text, sizeof text);
  uint32_t uasid = 0;
  if (n != 8) return std::nullopt;
  const auto [end, status] = std::from_chars(text, text + n, uasid, 16);
  return status == std::errc() && end == text + n && uasid != 0 ? std::optional(uasid) : std::nullopt;
}

void Rendezvous::forget_holder(const Name& name, uint32_t uasid) const {
  if (holder(name) == uasid) ::unlink((stem(name) + std::string(kHolderSuffix)).c_str());
}

// Removes what killed processes announced. A process that is alive has published a socket before.
void Rendezvous::remove_stale_holders() const {
  for (const Name& name : names_with(directory_, kHolderSuffix)) {
    const std::optional<uint32_t> uasid = holder(name);
    if (uasid && !listed({name.eid, static_cast<uint16_t>(*uasid)})) forget_holder(name, *uasid);
  }
}

void Rendezvous::withdraw() {
  const auto announced = std::exchange(announced_, {});
  for (Entry& e : entries_) {
    // In a forked child the descriptors are closed, and the files are those of the parent.
    struct stat st;
    if (::fstat(e.lock.get(), &st) == 0 && same_file(e.lock.get(), stem(e.name) + ".lock")) {
      ::unlink(path_of(e.name).c_str());
      ::unlink((stem(e.name) + ".lock").c_str());
      for (const auto& [name, uasid] : announced) forget_holder(name, uasid);
    }
  }
  entries_.clear();
}

bool Rendezvous::listed(const Name& name) const {
  struct stat st;
  return ::lstat(path_of(name).c_str(), &st) == 0 && S_ISSOCK(st.st_mode);
}

std::vector<Rendezvous::Name> Rendezvous::list() const { return names_with(directory_, kSocketSuffix); }

bool Rendezvous::remove_if_stale(const Name& name) const {
  Fd lock;
  std::string lock_path = stem(name) + ".lock";
  if (lock_file(lock_path, &lock) != LockStatus::kHeld) return false;
  ::unlink(path_of(name).c_str());
  ::unlink(lock_path.c_str());
  return true;
}

}  // namespace ub::ipc
