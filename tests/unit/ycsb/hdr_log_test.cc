// SPDX-License-Identifier: Apache-2.0
//
// Logs of HdrHistogram: a decoder of the format, written by its description, reads what was encoded.
#include "tools/ycsb/hdr_log.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

namespace ub::ycsb {
namespace {

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    if ((have += 6) >= 8) bytes.push_back(static_cast<char>(bits >> (have -= 8)));
  }
  return bytes;
}

uint64_t big_endian(const std::string& bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<uint8_t>(bytes.at(at + i));
  return value;
}

struct Decoded {
  uint64_t digits = 0, lowest = 0, highest = 0;
  double ratio = 0;
  std::map<uint64_t, int64_t> counts;  // by the lowest value of a bucket
};

// The lowest value of a bucket of HdrHistogram with three digits: 2048 of width 1, then 1024 of each width.
uint64_t lowest_value(size_t bucket) {
  if (bucket < 2048) return bucket;
  const size_t shift = bucket / 1024 - 1;
  return (bucket % 1024 + 1024) << shift;
}

Decoded decode(const std::string& text) {
  const std::string outer = from_base64(text);
  EXPECT_EQ(big_endian(outer, 0, 4), 0x1c849314u);
  EXPECT_EQ(big_endian(outer, 4, 4), outer.size() - 8);
  std::string inner(1 << 20, '\0');
  uLongf size = inner.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(inner.data()), &size, reinterpret_cast<const Bytef*>(outer.data() + 8),
                       outer.size() - 8),
            Z_OK);
  inner.resize(size);
  EXPECT_EQ(big_endian(inner, 0, 4), 0x1c849313u);
  EXPECT_EQ(big_endian(inner, 4, 4), inner.size() - 40);
  EXPECT_EQ(big_endian(inner, 8, 4), 0u);
  Decoded decoded;
  decoded.digits = big_endian(inner, 12, 4);
  decoded.lowest = big_endian(inner, 16, 8);
  decoded.highest = big_endian(inner, 24, 8);
  decoded.ratio = std::bit_cast<double>(big_endian(inner, 32, 8));
  size_t bucket = 0;
  for (size_t at = 40; at < inner.size();) {
    uint64_t zigzag = 0;
    for (unsigned i = 0;; ++i) {
      const uint64_t byte = static_cast<uint8_t>(inner[at++]);
      zigzag |= (i < 8 ? byte & 0x7f : byte) << (7 * i);
      if (i == 8 || (byte & 0x80) == 0) break;
    }
    const auto value = static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
    if (value < 0) {
      bucket += static_cast<size_t>(-value);
    } else {
      if (value > 0) decoded.counts[lowest_value(bucket)] = value;
      ++bucket;
    }
  }
  return decoded;
}

TEST(HdrHistogram, decodes_to_what_was_encoded) {
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> shape(10, 2);
  auto histogram = std::make_unique<LatencyHistogram>();
  std::map<uint64_t, int64_t> expected;
  for (int i = 0; i < 50'000; ++i) {
    const auto value = static_cast<uint64_t>(shape(random));
    histogram->record(value);
    const int width = std::bit_width(value);
    const int shift = width > 11 ? width - 11 : 0;
    ++expected[value >> shift << shift];
  }
  const Decoded decoded = decode(encode_histogram(*histogram));
  EXPECT_EQ(decoded.counts, expected);
  EXPECT_EQ(decoded.digits, 3u);
  EXPECT_EQ(decoded.lowest, 1u);
  EXPECT_EQ(decoded.highest, histogram->max());
  EXPECT_EQ(decoded.ratio, 1.0);
}

TEST(HdrHistogram, counts_of_each_length_and_gaps_of_each_kind) {
  auto histogram = std::make_unique<LatencyHistogram>();
  std::map<uint64_t, int64_t> expected;
  uint64_t value = 0;
  for (unsigned bit = 0; bit < 62; bit += 3) {
    value += 1 + bit % 4;  // neighbours, one that is empty, several
    const uint64_t count = uint64_t{1} << bit;
    histogram->record_many(value, count);
    expected[value] = static_cast<int64_t>(count);
  }
  EXPECT_EQ(decode(encode_histogram(*histogram)).counts, expected);
}

TEST(HdrHistogram, begins_as_the_compressed_encoding_does) {
  auto histogram = std::make_unique<LatencyHistogram>();
  EXPECT_TRUE(decode(encode_histogram(*histogram)).counts.empty());
  histogram->record(1'000'000);
  EXPECT_TRUE(encode_histogram(*histogram).starts_with("HISTFAAA"));
}

TEST(HdrHistogram, percentiles_have_three_digits) {
  std::mt19937_64 random(6);
  std::lognormal_distribution<double> shape(9, 3);
  std::vector<uint64_t> values(100'000);
  auto histogram = std::make_unique<LatencyHistogram>();
  for (uint64_t& value : values) histogram->record(value = static_cast<uint64_t>(shape(random)));
  std::sort(values.begin(), values.end());
  for (const double percent : {1.0, 50.0, 95.0, 99.0, 99.9, 99.99}) {
    const auto exact = static_cast<double>(values[static_cast<size_t>(std::llround(percent * 1000)) - 1]);
    EXPECT_NEAR(static_cast<double>(histogram->percentile(percent)), exact, exact / 2000) << percent;
  }
}

TEST(HdrLog, has_the_lines_of_the_format) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("ycsb-test-" + std::to_string(getpid()) + ".hlog")).string();
  auto histogram = std::make_unique<LatencyHistogram>();
  histogram->record(2'500'000);
  HdrLog(path, 1'404'700'005.222).write(0.127, 1.007, *histogram);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_EQ(text.str(),
            "#[Latencies in nanoseconds, logged by urma_ycsb]\n"
            "#[Histogram log format version 1.3]\n"
            "#[StartTime: 1404700005.222 (seconds since epoch), Mon Jul 07 02:26:45 UTC 2014]\n"
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
            "0.127,1.007,2.500," +
                encode_histogram(*histogram) + "\n");
}

TEST(HdrLog, a_file_that_cannot_be_written_is_an_error) {
  EXPECT_THROW(HdrLog("/nonexistent/READ.hlog", 0), std::runtime_error);
}

}  // namespace
}  // namespace ub::ycsb
