// SPDX-License-Identifier: Apache-2.0
#include "dataplane/capture_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ub {
namespace {

std::string sentence(const char* what, const std::string& path, int error) {
  return std::string(what) + " " + path + ": " + std::strerror(error);
}

}  // namespace

bool CaptureFile::open(const std::string& path, uint32_t files, std::string* why) {
  path_ = path;
  files_ = files;
  number_ = 0;
  return open_next(why);
}

bool CaptureFile::open_next(std::string* why) {
  ++number_;
  fd_ = ipc::Fd(::open(path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  bytes_ = 0;
  if (!fd_) {
    *why = sentence("cannot make", path(), errno);
    return false;
  }
  if (files_ != 0 && number_ > files_) ::unlink(path_of(number_ - files_).c_str());
  return true;
}

bool CaptureFile::write(std::span<const std::byte> blocks, std::string* why) {
  const uint64_t before = bytes_;
  while (!blocks.empty()) {
    const ssize_t written = ::write(fd_.get(), blocks.data(), blocks.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      *why = sentence("cannot write to", path(), written == 0 ? ENOSPC : errno);
      // Back to the end of a block.
      if (bytes_ != before && ::ftruncate(fd_.get(), static_cast<off_t>(before)) == 0) {
        ::lseek(fd_.get(), static_cast<off_t>(before), SEEK_SET);
        bytes_ = before;
      }
      return false;
    }
    bytes_ += static_cast<uint64_t>(written);
    blocks = blocks.subspan(static_cast<size_t>(written));
  }
  return true;
}

// "/tmp/x.pcapng" with number 3: "/tmp/x_00003.pcapng".
std::string CaptureFile::path_of(uint32_t number) const {
  if (files_ == 0) return path_;
  char digits[16];
  std::snprintf(digits, sizeof digits, "_%05u", number);
  const size_t name = path_.rfind('/') + 1, dot = path_.rfind('.');
  const size_t at = dot == std::string::npos || dot <= name ? path_.size() : dot;
  return path_.substr(0, at) + digits + path_.substr(at);
}

}  // namespace ub
