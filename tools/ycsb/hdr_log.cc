// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/hdr_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <zlib.h>

#include <bit>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/assert.h"
#include "lib/base/bytes.h"
#include "tools/common/tool_error.h"

namespace ub::ycsb {
namespace {

constexpr uint32_t kCookie = 0x1c849313, kCompressedCookie = 0x1c849314;
constexpr uint32_t kSignificantDigits = 3;

void append_be32(std::string* bytes, uint32_t value) {
  std::byte raw[4];
  store_be32(raw, value);
  bytes->append(reinterpret_cast<const char*>(raw), sizeof raw);
}

void append_be64(std::string* bytes, uint64_t value) {
  std::byte raw[8];
  store_be64(raw, value);
  bytes->append(reinterpret_cast<const char*>(raw), sizeof raw);
}

// Seven bits a byte, the lowest first, and eight in the ninth.
void append_zigzag(std::string* bytes, int64_t value) {
  uint64_t left = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  for (int i = 0; i < 8 && left >= 0x80; ++i, left >>= 7) bytes->push_back(static_cast<char>(left | 0x80));
  bytes->push_back(static_cast<char>(left));
}

std::string encode_counts(const LatencyHistogram& histogram) {
  std::string bytes;
  int64_t empty = 0;
  for (size_t i = 0; i < histogram.used_buckets(); ++i) {
    const auto count = static_cast<int64_t>(histogram.bucket_count(i));
    if (count == 0) {
      ++empty;
      continue;
    }
    // A single empty bucket is a count of 0.
    if (empty > 0) append_zigzag(&bytes, empty == 1 ? 0 : -empty);
    empty = 0;
    append_zigzag(&bytes, count);
  }
  return bytes;
}

std::string compressed(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  const int result =
      compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  UB_ASSERT(result == Z_OK);  // the only other results are about memory and room
  out.resize(size);
  return out;
}

std::string base64(std::string bytes) {
  using namespace boost::archive::iterators;
  using Digits = base64_from_binary<transform_width<std::string::const_iterator, 6, 8>>;
  const size_t missing = (3 - bytes.size() % 3) % 3;
  bytes.append(missing, '\0');
  std::string text(Digits(bytes.cbegin()), Digits(bytes.cend()));
  text.replace(text.size() - missing, missing, missing, '=');
  return text;
}

}  // namespace

std::string encode_histogram(const LatencyHistogram& histogram) {
  const std::string counts = encode_counts(histogram);
  std::string plain;
  append_be32(&plain, kCookie);
  append_be32(&plain, static_cast<uint32_t>(counts.size()));
  append_be32(&plain, 0);
  append_be32(&plain, kSignificantDigits);
  append_be64(&plain, 1);
  append_be64(&plain, std::max<uint64_t>(histogram.max(), 2));
  append_be64(&plain, std::bit_cast<uint64_t>(1.0));
  plain += counts;

  const std::string inner = compressed(plain);
  std::string outer;
  append_be32(&outer, kCompressedCookie);
  append_be32(&outer, static_cast<uint32_t>(inner.size()));
  return base64(outer + inner);
}

HdrLog::HdrLog(const std::string& path, double epoch_s) : path_(path), file_(std::fopen(path.c_str(), "we")) {
  if (file_ == nullptr) throw tools::ToolError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  fmt::print(file_, "#[Latencies in nanoseconds, logged by urma_ycsb]\n#[Histogram log format version 1.3]\n");
  fmt::print(file_, "#[StartTime: {:.3f} (seconds since epoch), {:%a %b %d %H:%M:%S UTC %Y}]\n", epoch_s,
             fmt::gmtime(static_cast<std::time_t>(epoch_s)));
  fmt::print(file_, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n");
  flush();
}

HdrLog::HdrLog(HdrLog&& other) noexcept : path_(std::move(other.path_)), file_(std::exchange(other.file_, nullptr)) {}

HdrLog::~HdrLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void HdrLog::write(double begin_s, double length_s, const LatencyHistogram& histogram) {
  // The greatest value is in milliseconds, which is usual for histograms of nanoseconds.
  fmt::print(file_, "{:.3f},{:.3f},{:.3f},{}\n", begin_s, length_s, static_cast<double>(histogram.max()) / 1e6,
             encode_histogram(histogram));
  flush();
}

void HdrLog::flush() {
  if (std::fflush(file_) != 0) throw tools::ToolError(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
}

}  // namespace ub::ycsb
