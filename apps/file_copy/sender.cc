// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/file_copy/checksum.h"
#include "apps/file_copy/nic.h"
#include "tools/common/tcp_socket.h"
#include "tools/common/tool_error.h"
#include "apps/file_copy/transfer.h"
#include "tools/common/probe.h"

namespace ub::apps {
namespace {

using Json = nlohmann::json;
using tools::kExitPeerLost;
using tools::TcpSocket;
using tools::ToolError;

constexpr uint64_t kProgressEvery = 16 << 20;

class SourceFile {
 public:
  explicit SourceFile(const std::string& path) : path_(path) {
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd_ < 0 || fstat(fd_, &st) != 0) throw ToolError(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
    if (!S_ISREG(st.st_mode)) {
      close(fd_);
      throw ToolError(path + " is not a regular file");
    }
    bytes_ = static_cast<uint64_t>(st.st_size);
    posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  ~SourceFile() { close(fd_); }
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  uint64_t bytes() const { return bytes_; }
  void read(uint64_t offset, std::byte* to, uint64_t bytes) const {
    while (bytes > 0) {
      const ssize_t n = pread(fd_, to, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) {
        tools::throw_if_stopped();
        continue;
      }
      if (n < 0) throw ToolError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
      if (n == 0) throw ToolError(fmt::format("{} became shorter while it was sent", path_));
      offset += static_cast<uint64_t>(n);
      to += n;
      bytes -= static_cast<uint64_t>(n);
    }
  }

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

// `count` buffers of `bytes` each, in one registered piece.
class Buffers {
 public:
  Buffers(Nic& nic, uint64_t bytes, uint32_t count)
      : bytes_(bytes), map_(allocate(bytes * count)), mapped_(bytes * count), memory_(nic, map_, mapped_) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  std::byte* at(uint32_t i) { return map_.base + i * bytes_; }
  const SharedMemory& memory() const { return memory_; }

 private:
  struct Map {
    std::byte* base;
    uint64_t bytes;
    ~Map() { munmap(base, bytes); }
    operator void*() const { return base; }
  };
  static Map allocate(uint64_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
      throw ToolError(fmt::format("no memory for {} of buffers", amount_text(static_cast<double>(bytes))));
    return {static_cast<std::byte*>(p), bytes};
  }

  uint64_t bytes_;
  Map map_;  // goes after memory_
  uint64_t mapped_;
  SharedMemory memory_;
};

Json receive_json(TcpSocket& tcp, int timeout_ms) {
  Json message = Json::parse(tcp.receive(timeout_ms), nullptr, false);
  if (!message.is_object()) throw ToolError("what is at the other end is not file_copy");
  return message;
}

// The receiver talks only if something is wrong.
void look_at_receiver(TcpSocket& tcp) {
  tools::throw_if_stopped();
  switch (tcp.state()) {
    case TcpSocket::State::kQuiet:
      return;
    case TcpSocket::State::kReadable:
      throw ToolError("the receiver gave up: " + receive_json(tcp, 1000).value("reason", "no reason given"));
    case TcpSocket::State::kClosed:
      throw ToolError(kExitPeerLost, "the receiver ended or was killed");
  }
}

// Moves the content; returns its sum.
uint64_t send_content(const SendOptions& o, Nic& nic, TcpSocket& tcp, const SourceFile& file, const Address& address,
                      Progress& progress) {
  RemoteMemory remote(nic, address);
  if (remote.bytes() < file.bytes()) throw ToolError("the receiver made too little room");
  const uint64_t chunk = std::min(o.iobuf, file.bytes());
  Buffers buffers(nic, chunk, o.inflight);
  Xxh64 sum;
  uint64_t read = 0, acknowledged = 0, told = 0;
  uint64_t started = 0, ended = 0;  // WRITEs
  uint64_t looked_ns = 0;
  for (uint32_t turns = 0, idle_turns = 0; acknowledged < file.bytes(); ++turns) {
    if (read < file.bytes() && started - ended < o.inflight) {
      std::byte* buffer = buffers.at(static_cast<uint32_t>(started % o.inflight));
      const uint64_t bytes = std::min(chunk, file.bytes() - read);
      file.read(read, buffer, bytes);
      remote.write(read, buffer, static_cast<uint32_t>(bytes), buffers.memory());
      sum.update(buffer, bytes);  // while the NIC is at work
      read += bytes;
      ++started;
      idle_turns = 0;
    }
    if (const uint32_t n = remote.poll(); n > 0) {
      ended += n;
      idle_turns = 0;
      acknowledged = std::min(ended * chunk, file.bytes());
      progress.at(acknowledged);
      if (acknowledged - told >= kProgressEvery) {
        tcp.send(Json{{"kind", "progress"}, {"bytes", acknowledged}}.dump());
        told = acknowledged;
      }
    }
    if (++idle_turns % 2048 == 0) sched_yield();  // perhaps the receiver's NIC shares our CPU
    if (turns % 256 == 0 && tools::monotonic_ns() - looked_ns > 5'000'000) {
      look_at_receiver(tcp);
      looked_ns = tools::monotonic_ns();
    }
  }
  return sum.digest();
}

}  // namespace

int send_file(const SendOptions& o) {
  const SourceFile file(o.file);
  const std::string name = o.name.empty() ? std::filesystem::path(o.file).filename().string() : o.name;
  Nic nic(o.device, o.inflight);
  if (o.iobuf > nic.max_message())
    throw ToolError(tools::kExitUsage, fmt::format("--iobuf: the device allows {}", nic.max_message()));
  TcpSocket tcp = TcpSocket::connect(o.host, o.port);
  tcp.send(Json{{"kind", "offer"}, {"version", 1}, {"name", name}, {"bytes", file.bytes()}}.dump());
  const Json answer = receive_json(tcp, -1);
  if (answer.value("kind", "") != "accept") {
    throw ToolError("the receiver refuses: " + answer.value("reason", "no reason given"));
  }
  Progress progress(name, file.bytes());
  uint64_t sum = Xxh64().digest();
  if (file.bytes() > 0) {
    sum = send_content(o, nic, tcp, file, address_from_text(answer.at("address").get<std::string>()), progress);
  }
  const double seconds = progress.seconds();
  tcp.send(Json{{"kind", "done"}, {"xxh64", fmt::format("{:016x}", sum)}}.dump());
  const Json result = receive_json(tcp, 600'000);
  if (!result.value("ok", false))
    throw ToolError(tools::kExitWrongData, "the receiver reports: " + result.value("reason", "failure"));
  fmt::print("sent {}: {} bytes in {:.3f} s, {}/s, xxh64 {:016x}\n", name, file.bytes(), seconds,
             amount_text(static_cast<double>(file.bytes()) / seconds), sum);
  return tools::kExitOk;
}

}  // namespace ub::apps
