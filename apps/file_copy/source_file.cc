// SPDX-License-Identifier: Apache-2.0
#include "apps/file_copy/source_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/common/tool_error.h"

namespace ub::apps {

using tools::ToolError;

SourceFile::SourceFile(const std::string& path) : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) throw ToolError(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  try {
    check_kind();
  } catch (...) {
    close(fd_);
    throw;
  }
  posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

SourceFile::~SourceFile() { close(fd_); }

void SourceFile::check_kind() {
  struct stat st;
  if (fstat(fd_, &st) != 0) throw ToolError(fmt::format("cannot look at {}: {}", path_, std::strerror(errno)));
  if (!S_ISREG(st.st_mode)) throw ToolError(path_ + " is not a regular file");
  bytes_ = static_cast<uint64_t>(st.st_size);
  if (bytes_ == 0 && has_byte_at(0)) {
    throw ToolError(path_ + " has content but no size, as files of /proc have: send an ordinary copy of it");
  }
}

bool SourceFile::has_byte_at(uint64_t offset) const {
  char byte;
  return pread(fd_, &byte, 1, static_cast<off_t>(offset)) == 1;
}

void SourceFile::read(uint64_t offset, std::byte* to, uint64_t bytes) const {
  while (bytes > 0) {
    tools::throw_if_stopped();
    const ssize_t n = pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw ToolError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
    if (n == 0) throw ToolError(fmt::format("{} became shorter while it was sent: send it again", path_));
    offset += static_cast<uint64_t>(n);
    to += n;
    bytes -= static_cast<uint64_t>(n);
  }
}

void SourceFile::check_size() const {
  struct stat st;
  if (fstat(fd_, &st) == 0 && static_cast<uint64_t>(st.st_size) == bytes_ && !has_byte_at(bytes_)) return;
  throw ToolError(fmt::format("{} changed its size while it was sent (it had {} bytes): send it again", path_, bytes_));
}

}  // namespace ub::apps
