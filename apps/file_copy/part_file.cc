// SPDX-License-Identifier: Apache-2.0
#include "apps/file_copy/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "apps/file_copy/transfer.h"
#include "tools/common/tool_error.h"

namespace ub::apps {
namespace {

using tools::ToolError;

ToolError failed(const std::string& what, int error) {
  return ToolError(fmt::format("cannot {}: {}", what, std::strerror(error)));
}

// The beginning of `name`, at most `most` bytes, and no half character of UTF-8.
std::string cut(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  while (most > 0 && (static_cast<unsigned char>(name[most]) & 0xc0) == 0x80) --most;
  return name.substr(0, most);
}

std::string part_name(const std::string& name) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) throw ToolError("no random numbers");
  const std::string end = fmt::format(".{:016x}.part", number);
  return "." + cut(name, NAME_MAX - 1 - end.size()) + end;
}

}  // namespace

PartFile::PartFile(const std::string& directory, const std::string& name, uint64_t bytes, bool overwrite)
    : path_(directory + "/" + name), part_(directory + "/" + part_name(name)), overwrite_(overwrite) {
  check_target();
  fd_ = open(part_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0) throw failed("create " + part_, errno);
  try {
    reserve(bytes);
  } catch (...) {
    unlink(part_.c_str());
    close(fd_);
    throw;
  }
}

PartFile::~PartFile() {
  if (!committed_) unlink(part_.c_str());
  close(fd_);
}

void PartFile::check_target() const {
  struct stat st;
  if (lstat(path_.c_str(), &st) != 0) return;
  if (!overwrite_) throw ToolError(path_ + " exists already");
  if (S_ISDIR(st.st_mode)) throw ToolError(path_ + " is a directory");
}

// A disk that is too small is noticed before a byte is sent.
void PartFile::reserve(uint64_t bytes) const {
  if (bytes == 0) return;
  if (bytes > INT64_MAX) throw failed(fmt::format("make room for {} bytes", bytes), EFBIG);
  int error;
  do {
    tools::throw_if_stopped();
    error = fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0 ? errno : 0;
  } while (error == EINTR);
  struct statvfs fs = {};
  fstatvfs(fd_, &fs);
  const double room = static_cast<double>(fs.f_bavail) * static_cast<double>(fs.f_frsize);
  const auto needed = static_cast<double>(bytes);
  if (error == EOPNOTSUPP || error == ENOSYS) error = needed > room ? ENOSPC : 0;  // not every file system can
  if (error == ENOSPC) {
    throw ToolError(fmt::format("no space left: {} needed, {} free", amount_text(needed), amount_text(room)));
  }
  if (error != 0) throw failed(fmt::format("make room for {} bytes", bytes), error);
}

void PartFile::append(const std::byte* data, uint64_t bytes) {
  while (bytes > 0) {
    tools::throw_if_stopped();
    const ssize_t n = write(fd_, data, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw failed("write " + part_, errno);
    data += n;
    bytes -= static_cast<uint64_t>(n);
    written_ += static_cast<uint64_t>(n);
  }
  check_untouched();
}

// Every write went to the end of the file, which is elsewhere if somebody else changed its size.
void PartFile::check_untouched() const {
  struct stat st;
  if (fstat(fd_, &st) != 0) throw failed("look at " + part_, errno);
  if (st.st_nlink == 0) throw ToolError(part_ + " was removed by another program while it was received");
  const auto expected = static_cast<off_t>(written_);
  if (st.st_size != expected || lseek(fd_, 0, SEEK_CUR) != expected) {
    throw ToolError(part_ + " was changed by another program while it was received");
  }
}

void PartFile::commit(bool sync) {
  check_untouched();
  if (sync && fsync(fd_) != 0) throw failed(fmt::format("write {} to the disk", part_), errno);
  rename_to_target();
  committed_ = true;
}

void PartFile::rename_to_target() const {
  int result;
  if (overwrite_) {
    result = rename(part_.c_str(), path_.c_str());
  } else {
    result = renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
    if (result != 0 && (errno == EINVAL || errno == ENOSYS)) {  // a file system without it
      result = link(part_.c_str(), path_.c_str());
      if (result == 0) unlink(part_.c_str());
    }
  }
  if (result != 0) throw failed(fmt::format("rename {} to {}", part_, path_), errno);
}

}  // namespace ub::apps
