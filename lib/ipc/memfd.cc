// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lib/ipc/placed_memory.h"

namespace ub::ipc {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

bool fail(std::string* error, const char* what, size_t bytes) {
  int e = errno;
  if (error != nullptr) {
    *error = std::string("shared memory of ") + std::to_string(bytes) + " bytes: " + what + ": " + std::strerror(e);
    if (e == ENOMEM) *error += "; free memory or configure smaller rings";
    if (e == EMFILE) *error += "; raise the limit of open files (ulimit -n)";
  }
  return false;
}

}  // namespace

Mapping& Mapping::operator=(Mapping&& o) noexcept {
  if (this != &o) {
    reset();
    data_ = o.data_;
    bytes_ = o.bytes_;
    process_ = o.process_;
    o.data_ = nullptr;
    o.bytes_ = 0;
  }
  return *this;
}

bool Mapping::map(int fd, size_t bytes, std::string* error, bool writable) {
  reset();
  void* at = ::mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return fail(error, "cannot map", bytes);
  ::madvise(at, bytes, MADV_DONTFORK);
  data_ = static_cast<std::byte*>(at);
  bytes_ = bytes;
  process_ = fork_generation();
  return true;
}

bool Mapping::map_private(size_t bytes) {
  reset();
  std::byte* at = map_placed(bytes);
  if (at == nullptr) return false;
  ::madvise(at, bytes, MADV_DONTFORK);
  data_ = at;
  bytes_ = bytes;
  process_ = fork_generation();
  return true;
}

// In a forked child nothing is mapped there any more, or something else is mapped there.
void Mapping::reset() {
  if (data_ != nullptr && process_ == fork_generation()) ::munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

Fd create_sealed_memfd(const char* label, size_t bytes, std::string* error) {
  Fd fd(::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) {
    fail(error, "cannot create", bytes);
    return {};
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    fail(error, "cannot size", bytes);
    return {};
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    fail(error, "cannot seal", bytes);
    return {};
  }
  return fd;
}

bool check_sealed_memfd(int fd, size_t bytes, std::string* error) {
  // The seals are read first, because only with them the size cannot change any more.
  int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    *error = "the memory offered is not sealed against shrinking and growing";
    return false;
  }
  struct stat st;
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != static_cast<off_t>(bytes)) {
    *error = "the memory offered is not " + std::to_string(bytes) + " bytes long";
    return false;
  }
  return true;
}

bool seal_against_holes(int fd, std::string* error) {
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0) return true;
  *error = std::string("shared memory cannot be sealed: ") + std::strerror(errno);
  return false;
}

bool is_sealed_against_holes(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_FUTURE_WRITE) != 0;
}

bool seal_seals(int fd, std::string* error) {
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) == 0) return true;
  *error = std::string("shared memory cannot be sealed: ") + std::strerror(errno);
  return false;
}

Fd reopen_to_read(int fd, std::string* error) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  Fd reader(::open(path, O_RDONLY | O_CLOEXEC));
  if (!reader) *error = std::string("shared memory cannot be opened for reading alone: ") + std::strerror(errno);
  return reader;
}

bool is_eventfd(int fd) {
  char path[40], target[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  ssize_t n = ::readlink(path, target, sizeof target);
  return n > 0 && std::string_view(target, static_cast<size_t>(n)) == "anon_inode:[eventfd]";
}

}  // namespace ub::ipc
