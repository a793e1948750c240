// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/file_copy/checksum.h"
#include "apps/file_copy/nic.h"
#include "tools/common/tcp_socket.h"
#include "tools/common/tool_error.h"
#include "apps/file_copy/transfer.h"

namespace ub::apps {
namespace {

using Json = nlohmann::json;
using tools::TcpListener;
using tools::TcpSocket;
using tools::ToolError;

constexpr uint64_t kAhead = 64 << 20;  // so many bytes of the file get their pages before the NIC writes there

// A name that cannot lead out of the directory nor play tricks on a terminal.
bool harmless(const std::string& name) {
  if (name.empty() || name.size() > 250 || name == "." || name == "..") return false;
  return std::none_of(name.begin(), name.end(), [](unsigned char c) { return c == '/' || c < 0x20 || c == 0x7f; });
}

// DIRECTORY/NAME.part, mapped. Removed at the end unless it got its name.
class PartFile {
 public:
  PartFile(const std::string& directory, const std::string& name, uint64_t bytes, bool overwrite)
      : path_(directory + "/" + name), part_(path_ + ".part"), bytes_(bytes), overwrite_(overwrite) {
    struct stat st;
    if (!overwrite && lstat(path_.c_str(), &st) == 0) throw ToolError(fmt::format("{} exists already", name));
    fd_ = open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd_ < 0) throw ToolError(fmt::format("cannot create {}: {}", part_, std::strerror(errno)));
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      close(fd_);
      throw ToolError(fmt::format("{} is being received already", name));
    }
    try {
      allocate();
    } catch (...) {
      abandon();
      close(fd_);
      throw;
    }
  }
  ~PartFile() {
    if (!committed_) abandon();
    if (map_ != nullptr) munmap(map_, bytes_);
    if (fd_ >= 0) close(fd_);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  std::byte* data() const { return map_; }

  // Gives pages to what comes next, in our thread rather than the NIC's.
  void populate(uint64_t from) {
    const uint64_t end = std::min(bytes_, from + kAhead);
    if (end <= populated_) return;
    const uint64_t begin = populated_ / 4096 * 4096;
    madvise(map_ + begin, end - begin, MADV_POPULATE_WRITE);  // an older kernel does it later, page by page
    populated_ = end;
  }

  void commit(bool sync) {
    if (sync && fsync(fd_) != 0)
      throw ToolError(fmt::format("cannot write {} to the disk: {}", path_, std::strerror(errno)));
    int failed = -1;
    if (!overwrite_) failed = renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
    // Some file systems cannot do that.
    if (overwrite_ || (failed != 0 && errno == EINVAL)) failed = rename(part_.c_str(), path_.c_str());
    if (failed != 0) throw ToolError(fmt::format("cannot rename {}: {}", part_, std::strerror(errno)));
    committed_ = true;
  }

 private:
  void allocate() {
    if (ftruncate(fd_, 0) != 0) throw ToolError(fmt::format("cannot empty {}: {}", part_, std::strerror(errno)));
    if (bytes_ == 0) return;
    // Takes the blocks now: a disk that is too small is noticed before a byte is sent.
    tools::throw_if_stopped();
    if (const int e = bytes_ > INT64_MAX ? EFBIG : posix_fallocate(fd_, 0, static_cast<off_t>(bytes_)); e != 0) {
      struct statvfs fs = {};
      fstatvfs(fd_, &fs);
      throw ToolError(
          e == ENOSPC ? fmt::format("no space left: {} needed, {} free", amount_text(static_cast<double>(bytes_)),
                                    amount_text(static_cast<double>(fs.f_bavail) * static_cast<double>(fs.f_frsize)))
                      : fmt::format("cannot make room for {} bytes: {}", bytes_, std::strerror(e)));
    }
    void* map = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (map == MAP_FAILED) throw ToolError(fmt::format("cannot map {}: {}", part_, std::strerror(errno)));
    map_ = static_cast<std::byte*>(map);
    populate(0);
  }
  void abandon() { unlink(part_.c_str()); }

  std::string path_, part_;
  uint64_t bytes_, populated_ = 0;
  bool overwrite_, committed_ = false;
  int fd_ = -1;
  std::byte* map_ = nullptr;
};

Json receive_json(TcpSocket& tcp, int timeout_ms) {
  Json message = Json::parse(tcp.receive(timeout_ms), nullptr, false);
  if (!message.is_object()) throw ToolError("what is at the other end is not file_copy");
  return message;
}

// Sleeps until the sender says that it is done. Returns the sum of what came; `*wanted` of what was sent.
uint64_t await_content(TcpSocket& tcp, PartFile& file, uint64_t bytes, Progress& progress, std::string* wanted) {
  Xxh64 sum;
  uint64_t summed = 0;
  for (;;) {
    const Json message = receive_json(tcp, -1);
    const bool done = message.value("kind", "") == "done";
    const uint64_t here = done ? bytes : std::min(message.value("bytes", uint64_t{0}), bytes);
    if (here > summed) {
      if (!done) file.populate(here);
      sum.update(file.data() + summed, here - summed);
      summed = here;
      progress.at(here);
    }
    if (done) {
      *wanted = message.value("xxh64", "");
      return sum.digest();
    }
  }
}

void receive_one(const ReceiveOptions& o, Nic& nic, TcpSocket& tcp) {
  const Json offer = receive_json(tcp, 10'000);
  const std::string name = offer.value("name", "");
  const uint64_t bytes = offer.value("bytes", uint64_t{0});
  if (offer.value("kind", "") != "offer" || offer.value("version", 0) != 1)
    throw ToolError("the sender has another version");
  if (!harmless(name)) throw ToolError("the sender's file name is not acceptable");

  PartFile file(o.directory, name, bytes, o.overwrite);
  std::string wanted;
  uint64_t sum = Xxh64().digest();
  double seconds = 0;
  {
    Json accept = {{"kind", "accept"}};
    std::optional<SharedMemory> memory;
    if (bytes > 0) {
      memory.emplace(nic, file.data(), bytes);
      accept["address"] = to_text(Address{nic.jetty()->jetty_id, memory->segment()->seg, nic.token(), memory->token()});
    }
    Progress progress(name, bytes);
    tcp.send(accept.dump());
    sum = await_content(tcp, file, bytes, progress, &wanted);
    seconds = progress.seconds();
  }  // from here on nobody writes there
  const std::string got = fmt::format("{:016x}", sum);
  if (got != wanted)
    throw ToolError(tools::kExitWrongData, fmt::format("the sums differ: sent {}, received {}", wanted, got));
  file.commit(o.sync);
  tcp.send(Json{{"kind", "result"}, {"ok", true}}.dump());
  fmt::print("received {} from {}: {} bytes in {:.3f} s, {}/s, xxh64 {}\n", name, tcp.peer_address(), bytes, seconds,
             amount_text(static_cast<double>(bytes) / seconds), got);
  std::fflush(stdout);
}

}  // namespace

int receive_files(const ReceiveOptions& o) {
  struct stat st;
  if (stat(o.directory.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) throw ToolError(o.directory + " is not a directory");
  Nic nic(o.device, 1);
  TcpListener listener(o.port);
  fmt::print("receiving into {} on TCP port {}\n", o.directory, listener.port());
  std::fflush(stdout);
  for (;;) {
    TcpSocket tcp = listener.accept();
    int code = tools::kExitOk;
    try {
      receive_one(o, nic, tcp);
    } catch (const std::exception& e) {
      const auto* tool_error = dynamic_cast<const ToolError*>(&e);
      code = tool_error != nullptr ? tool_error->code() : tools::kExitFailed;
      fmt::print(stderr, "file_copy: from {}: {}\n", tcp.peer_address(), e.what());
      try {
        tcp.send(Json{{"kind", "refuse"}, {"ok", false}, {"reason", e.what()}}.dump());
      } catch (const std::exception&) {
        // It is gone.
      }
    }
    if (o.once || code == tools::kExitInterrupted) return code;
  }
}

}  // namespace ub::apps
