// SPDX-License-Identifier: Apache-2.0
#include "lib/record/file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/base/crc32.h"
#include "lib/base/fnv.h"
#include "lib/transport/bypass/asked.h"
#include "lib/transport/bypass/owed_answers.h"
#include "lib/transport/core_state.h"
#include "lib/transport/looking/call_log.h"
#include "lib/transport/roce/state.h"
#ifndef UB_COMMIT  // tools that compile the simulator by themselves define it
#include "record_commit.h"
#endif

namespace ub::record {

namespace {

constexpr size_t kStep = 1 << 20;  // is allocated and mapped at once

constexpr bool is_little_endian() { return std::endian::native == std::endian::little; }

constexpr uint16_t this_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#else
  return EM_NONE;
#endif
}

std::string failed(const char* what, const std::string& path) {
  return std::string("cannot ") + what + " " + path + ": " + strerror(errno);
}

}  // namespace

const char* sentence_of(Ended ended) {
  switch (ended) {
    case Ended::kNot:
      return "it runs, or its process was killed";
    case Ended::kStopped:
      return "it was stopped";
    case Ended::kNextFile:
      return "the next file goes on";
    case Ended::kFull:
      return "it had as many bytes as it may";
    case Ended::kNoSpace:
      return "the disk was full, or the file as large as its process may make one";
    case Ended::kNoMemory:
      return "there was no memory";
  }
  return "unknown";
}

const char* built_version() { return UB_VERSION; }
const char* built_commit() { return UB_COMMIT; }

uint64_t layout_of_state() {
  const uint64_t parts[] = {sizeof(CoreState),     sizeof(roce::State),     sizeof(bypass::AskedState),
                            sizeof(tp::Channel),   sizeof(SendQueue),       sizeof(roce::Qp),
                            sizeof(bypass::Asked), sizeof(bypass::Handle),  sizeof(bypass::OwedAnswers),
                            sizeof(FileHeader),    sizeof(Peer),            kCallCount};
  uint64_t sum = kFnvBasis;
  for (const uint64_t part : parts) sum = fnv1a(std::bit_cast<std::array<uint8_t, 8>>(part), sum);
  return sum;
}

// ---- writing ---------------------------------------------------------------------------------------------------

std::unique_ptr<FileWriter> FileWriter::create(const std::string& path, size_t most_bytes, std::string* why) {
  std::unique_ptr<FileWriter> file(new FileWriter);
  file->path_ = path;
  file->fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file->fd_ < 0) {
    *why = failed("create", path);
    return nullptr;
  }
  file->most_ = std::max(most_bytes, kHeaderPage + kStep);
  void* at = mmap(nullptr, file->most_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file->fd_, 0);
  if (at != MAP_FAILED) file->data_ = static_cast<std::byte*>(at);
  if (at == MAP_FAILED || !file->allocate(kHeaderPage)) {
    *why = failed(at == MAP_FAILED ? "map" : "write", path);
    unlink(path.c_str());
    return nullptr;
  }
  FileHeader& h = file->header();
  std::memcpy(h.magic, kFileMagic, sizeof h.magic);
  h.format = kFileFormat;
  h.machine = this_machine();
  h.little_endian = is_little_endian();
  h.page_bytes = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  strncpy(h.version, built_version(), sizeof h.version - 1);
  strncpy(h.commit, built_commit(), sizeof h.commit - 1);
  h.layout = layout_of_state();
  h.process = getpid();
  file->commit(file->data_ + kHeaderPage);
  return file;
}

// A page of a hole would kill the process if the disk is full. So nothing is touched that is not allocated.
bool FileWriter::allocate(size_t bytes) {
  const size_t wanted = used_ + bytes;
  if (wanted > most_) return false;
  const size_t end = std::min(most_, (wanted + kStep - 1) / kStep * kStep);
  // A file that is larger than the process may make one would kill it, too.
  rlimit limit{};
  int failed = getrlimit(RLIMIT_FSIZE, &limit) == 0 && end > limit.rlim_cur ? EFBIG : EINTR;
  while (failed == EINTR)
    failed = posix_fallocate(fd_, static_cast<off_t>(allocated_), static_cast<off_t>(end - allocated_));
  if (failed != 0) {
    errno = failed;
    return false;
  }
#ifdef MADV_POPULATE_WRITE
  (void)madvise(data_ + allocated_, end - allocated_, MADV_POPULATE_WRITE);  // cheaper than a fault for each page
#endif
  allocated_ = end;
  return true;
}

namespace {

constexpr size_t kPieceHeader = 1 + 2 * sizeof(uint32_t);

uint32_t sum_of(const std::byte* from, size_t bytes) { return crc32_final(crc32_update(crc32_init(), from, bytes)); }
uint32_t sum_of_image(const std::byte* file, uint64_t end) { return sum_of(file + kHeaderPage, end - kHeaderPage); }
uint32_t sum_of_header(const std::byte* file) { return sum_of(file, offsetof(FileHeader, header_sum)); }

}  // namespace

void FileWriter::seal_image() {
  header().image_sum = sum_of_image(data_, used_);
  header().image_end = used_;
  header().header_sum = sum_of_header(data_);
  begin_piece();
}

void FileWriter::begin_piece() {
  piece_ = 0;
  std::byte* at = room(kPieceHeader);
  if (at == nullptr) return;
  *at = static_cast<std::byte>(Entry::kPiece);
  std::memset(at + 1, 0, kPieceHeader - 1);
  commit(at + kPieceHeader);
  piece_ = used_;
}

void FileWriter::seal_piece() {
  if (piece_ == 0) return;
  const auto bytes = static_cast<uint32_t>(used_ - piece_);
  store_le32(data_ + piece_ - 4, sum_of(data_ + piece_, bytes));
  store_le32(data_ + piece_ - 8, bytes);
}

void FileWriter::finish(Ended ended) {
  seal_piece();
  header().ended = static_cast<uint32_t>(ended);
  (void)!ftruncate(fd_, static_cast<off_t>(used_));
}

FileWriter::~FileWriter() {
  if (data_ != nullptr) munmap(data_, most_);
  if (fd_ >= 0) close(fd_);
}

// ---- reading ---------------------------------------------------------------------------------------------------

std::unique_ptr<FileReader> FileReader::open(const std::string& path, std::string* why) {
  std::unique_ptr<FileReader> file(new FileReader);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // to open a pipe would wait
  struct stat st {};
  if (fd < 0 || fstat(fd, &st) != 0) {
    *why = failed("open", path);
    if (fd >= 0) close(fd);
    return nullptr;
  }
  if (!S_ISREG(st.st_mode)) {
    *why = path + " is no recording: it is no file";
    close(fd);
    return nullptr;
  }
  file->bytes_ = static_cast<size_t>(st.st_size);
  void* at = file->bytes_ < kHeaderPage ? MAP_FAILED : mmap(nullptr, file->bytes_, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (at == MAP_FAILED) {
    *why = path + " is no recording: it is shorter than a header";
    return nullptr;
  }
  file->data_ = static_cast<const std::byte*>(at);
  const FileHeader& h = file->header();
  if (std::memcmp(h.magic, kFileMagic, sizeof h.magic) != 0) {
    *why = path + " is no recording: it does not begin with " + std::string(kFileMagic, sizeof kFileMagic);
  } else if (h.format != kFileFormat) {
    *why = path + " has format " + std::to_string(h.format) + ", and this program reads format " +
           std::to_string(kFileFormat);
  } else if (h.machine != this_machine() || h.little_endian != is_little_endian() ||
             h.page_bytes != static_cast<uint32_t>(sysconf(_SC_PAGESIZE))) {
    *why = path + " was recorded on another architecture (machine " + std::to_string(h.machine) + ", pages of " +
           std::to_string(h.page_bytes) + " bytes); replay it on one like it";
  } else if (h.layout != layout_of_state()) {
    *why = path + " was recorded by version " + h.version + ", commit " + h.commit + "; this is version " +
           built_version() + ", commit " + built_commit() + ", whose state is laid out in another way";
  } else {
    file->whole_ = std::min<uint64_t>(file->bytes_, h.written.load(std::memory_order_acquire));
    return file;
  }
  return nullptr;
}

bool FileReader::has_good_image() const {
  const FileHeader& h = header();
  return h.image_end >= kHeaderPage && h.image_end <= whole_ && sum_of_header(data_) == h.header_sum &&
         sum_of_image(data_, h.image_end) == h.image_sum;
}

bool FileReader::is_good_piece(const std::byte* entries, uint32_t bytes, uint32_t sum) const {
  const auto left = static_cast<size_t>(data_ + whole_ - entries);
  if (bytes > left) return is_cut();  // its sum is that of bytes which are not there
  return sum_of(entries, bytes) == sum;
}

bool FileReader::is_complete() const {
  const auto ended = static_cast<Ended>(header().ended.load(std::memory_order_relaxed));
  return !is_cut() && (ended == Ended::kStopped || ended == Ended::kNextFile);
}

FileReader::~FileReader() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), bytes_);
}

}  // namespace ub::record
