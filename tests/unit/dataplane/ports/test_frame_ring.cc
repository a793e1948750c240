// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lib/ipc/frame_ring.h"
#include "lib/ipc/memfd.h"

namespace ub::ipc {
namespace {

constexpr size_t kBytes = FrameRing::kMinBytes;

struct Ring {
  Mapping memory;
  FrameRingWriter writer;
  FrameRingReader reader;

  explicit Ring(size_t bytes = kBytes) {
    EXPECT_TRUE(memory.map_private(FrameRing::area_bytes(bytes)));
    writer.attach(memory.data(), bytes);
    reader.attach(memory.data(), bytes);
  }
  std::byte* data() { return memory.data() + FrameRing::kControlBytes; }
  uint64_t& word(size_t offset) { return *reinterpret_cast<uint64_t*>(data() + offset); }
  uint64_t& consumed() { return *reinterpret_cast<uint64_t*>(memory.data()); }

  std::byte* put(const std::string& text) {
    std::byte* f = writer.begin(text.size());
    if (f == nullptr) return nullptr;
    std::memcpy(f, text.data(), text.size());
    writer.commit(f, text.size());
    return f;
  }
  std::string get() {
    FrameRingReader::Frame f;
    if (!reader.next(&f)) return "(none)";
    return {reinterpret_cast<const char*>(f.data), f.bytes};
  }
};

std::string text_of(uint64_t seed, size_t bytes) {
  std::string s(bytes, 0);
  for (size_t i = 0; i < bytes; ++i) s[i] = static_cast<char>(seed * 131 + i * 7 + i / 64);
  return s;
}

TEST(FrameRing, appears_with_publish__in_order) {
  Ring r;
  r.put("one");
  r.put(text_of(2, 3000));
  r.put("three");
  EXPECT_EQ(r.get(), "(none)");
  EXPECT_TRUE(r.writer.publish());
  EXPECT_FALSE(r.writer.publish());
  EXPECT_EQ(r.get(), "one");
  EXPECT_EQ(r.reader.more(), 2u);
  EXPECT_EQ(r.get(), text_of(2, 3000));
  EXPECT_EQ(r.reader.more(), 1u);
  EXPECT_EQ(r.get(), "three");
  EXPECT_EQ(r.reader.more(), 0u);
  EXPECT_EQ(r.get(), "(none)");
  EXPECT_EQ(r.writer.consumed(), 0u);
  r.reader.release();
  EXPECT_EQ(r.writer.consumed(), r.writer.published());
}

TEST(FrameRing, commit__out_of_order_keeps_order_of_begin) {
  Ring r;
  std::byte* a = r.writer.begin(10);
  std::byte* b = r.writer.begin(500);
  std::byte* c = r.writer.begin(10);
  std::memcpy(c, "ccc", 3);
  r.writer.commit(c, 3);
  EXPECT_FALSE(r.writer.publish());
  EXPECT_EQ(r.get(), "(none)");
  std::memcpy(a, "aaa", 3);
  r.writer.commit(a, 3);
  EXPECT_TRUE(r.writer.publish());
  EXPECT_EQ(r.get(), "aaa");
  EXPECT_EQ(r.get(), "(none)");
  std::memcpy(b, "bbb", 3);
  r.writer.commit(b, 3);
  EXPECT_EQ(r.get(), "(none)");
  EXPECT_TRUE(r.writer.publish());
  EXPECT_EQ(r.get(), "bbb");
  EXPECT_EQ(r.get(), "ccc");
}

TEST(FrameRing, abort__last_gives_room_back_middle_is_skipped) {
  Ring r;
  std::byte* a = r.writer.begin(5000);
  r.writer.abort(a);
  EXPECT_EQ(r.writer.published(), 0u);
  a = r.writer.begin(100);
  std::byte* b = r.writer.begin(100);
  std::byte* c = r.writer.begin(1000);
  std::memcpy(c, "c", 1);
  r.writer.abort(b);
  r.writer.commit(c, 1);
  r.writer.abort(a);
  EXPECT_TRUE(r.writer.publish());
  EXPECT_EQ(r.get(), "c");
  EXPECT_EQ(r.get(), "(none)");
  EXPECT_FALSE(r.reader.broken());
}

TEST(FrameRing, begin__old_payload_is_never_taken_for_a_frame) {
  Ring r;
  // Fill the whole ring with words that would be valid at any position of the next lap, shrink frames so that
  // new words land in the middle of old payload.
  std::mt19937 random(7);
  uint64_t sent = 0, got = 0;
  std::deque<size_t> sizes;
  for (int i = 0; i < 20000; ++i) {
    size_t asked = random() % 9000, used = random() % (asked + 1);
    std::byte* f = r.writer.begin(asked);
    if (f != nullptr) {
      for (size_t at = 0; at + 8 <= asked; at += 8) {
        uint64_t position = r.writer.published() + at;
        uint64_t fake = (position / 64 & 0xffff) << 48 | 1ULL << 32 | 1ULL << 24 | 8;
        std::memcpy(f + at, &fake, 8);
      }
      r.writer.commit(f, used);
      sizes.push_back(used);
      ++sent;
    }
    if (random() % 3 == 0) r.writer.publish();
    FrameRingReader::Frame frame;
    while (random() % 4 != 0 && r.reader.next(&frame)) {
      ASSERT_FALSE(sizes.empty());
      ASSERT_EQ(frame.bytes, sizes.front());
      sizes.pop_front();
      ++got;
    }
    r.reader.release();
  }
  EXPECT_FALSE(r.reader.broken());
  EXPECT_FALSE(r.writer.broken());
  EXPECT_GT(got, 5000u);
}

TEST(FrameRing, begin__full_answers_null_and_recovers) {
  Ring r;
  int sent = 0;
  while (r.put(text_of(sent, 4000)) != nullptr) ++sent;
  EXPECT_GE(sent, 14);
  r.writer.publish();
  EXPECT_EQ(r.writer.begin(4000), nullptr);
  EXPECT_EQ(r.get(), text_of(0, 4000));
  EXPECT_EQ(r.writer.begin(4000), nullptr);  // not released yet
  for (int i = 1; i < 4; ++i) EXPECT_EQ(r.get(), text_of(i, 4000));
  r.reader.release();
  EXPECT_NE(r.put(text_of(sent, 4000)), nullptr);
  r.writer.publish();
  for (int i = 4; i <= sent; ++i) EXPECT_EQ(r.get(), text_of(i, 4000));
  EXPECT_EQ(r.writer.begin(FrameRing::max_frame(kBytes) + 1), nullptr);
  EXPECT_FALSE(r.writer.broken());
}

TEST(FrameRing, begin__any_frame_fits_an_empty_ring_wherever_it_starts) {
  Ring r;
  for (size_t i = 0; i < 3000; ++i) {
    size_t bytes = i % 2 ? FrameRing::max_frame(kBytes) : i % 700;
    ASSERT_NE(r.put(text_of(i, bytes)), nullptr) << i;
    r.writer.publish();
    ASSERT_EQ(r.get(), text_of(i, bytes));
    r.reader.release();
  }
}

TEST(FrameRing, begin__too_many_open) {
  Ring r;
  std::vector<std::byte*> open;
  for (uint32_t i = 0; i < FrameRingWriter::kMaxOpen; ++i) open.push_back(r.writer.begin(20));
  EXPECT_EQ(r.writer.begin(20), nullptr);
  for (auto* f : open) {
    ASSERT_NE(f, nullptr);
    std::memcpy(f, "x", 1);
    r.writer.commit(f, 1);
  }
  EXPECT_NE(r.put("y"), nullptr);
  r.writer.publish();
  for (size_t i = 0; i < open.size(); ++i) EXPECT_EQ(r.get(), "x");
  EXPECT_EQ(r.get(), "y");
}

// Everything at once against a model: what comes out is what went in, in order of begin().
TEST(FrameRing, random_operations_match_a_model) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    Ring r;
    std::mt19937 random(seed);
    struct Item {
      std::byte* frame;
      std::string text;
      bool done, aborted;
    };
    std::deque<Item> items;
    uint64_t number = 0, received = 0;
    for (int step = 0; step < 6000; ++step) {
      switch (random() % 6) {
        case 0:
        case 1: {
          size_t bytes = random() % 4 == 0 ? random() % 9000 : random() % 300;
          std::byte* f = r.writer.begin(bytes);
          if (f != nullptr) items.push_back({f, text_of(++number, bytes), false, false});
          break;
        }
        case 2:
        case 3: {
          std::vector<size_t> open;
          for (size_t i = 0; i < items.size(); ++i)
            if (!items[i].done) open.push_back(i);
          if (open.empty()) break;
          Item& it = items[open[random() % open.size()]];
          it.done = true;
          if (random() % 8 == 0) {
            std::memset(it.frame, 0x55, it.text.size());
            r.writer.abort(it.frame);
            it.aborted = true;
          } else {
            if (random() % 3 == 0) it.text.resize(random() % (it.text.size() + 1));
            std::memcpy(it.frame, it.text.data(), it.text.size());
            r.writer.commit(it.frame, it.text.size());
          }
          break;
        }
        case 4:
          r.writer.publish();
          break;
        default: {
          FrameRingReader::Frame f;
          for (int i = 0; i < 8 && r.reader.next(&f); ++i) {
            while (!items.empty() && items.front().aborted) items.pop_front();
            ASSERT_FALSE(items.empty());
            ASSERT_TRUE(items.front().done) << "seed " << seed;
            ASSERT_EQ(std::string(reinterpret_cast<const char*>(f.data), f.bytes), items.front().text)
                << "seed " << seed;
            items.pop_front();
            ++received;
          }
          if (random() % 2) r.reader.release();
          ASSERT_FALSE(r.reader.broken()) << "seed " << seed;
          break;
        }
      }
    }
    ASSERT_FALSE(r.writer.broken()) << "seed " << seed;
    ASSERT_GT(received, 300u) << "seed " << seed;
  }
}

TEST(FrameRing, next__hostile_words_break_the_ring_and_nothing_else) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    static Ring* r = nullptr;
    if (i % 100 == 0) {
      delete r;
      r = new Ring;
    }
    FrameRingReader reader;
    reader.attach(r->memory.data(), kBytes);
    uint64_t w = random();
    if (i % 2) w = (w & 0x0000ffff'0300ffff) | (random() % 3) << 32;  // right position, plausible kind
    r->word(0) = w;
    FrameRingReader::Frame f;
    bool got = reader.next(&f);
    if (got) {
      const std::byte* end = r->memory.data() + r->memory.bytes();
      ASSERT_GE(f.data, r->data());
      ASSERT_LE(f.data + f.bytes, end);
      for (uint32_t k = 0; k < f.bytes; ++k) ASSERT_NO_FATAL_FAILURE((void)f.data[k]);
    }
  }
  // A ring of nothing but fillers does not hold the reader.
  Ring r;
  for (size_t at = 0; at < kBytes; at += 64) r.word(at) = uint64_t{at / 64} << 48 | 1ULL << 32 | 3ULL << 24;
  FrameRingReader::Frame f;
  EXPECT_FALSE(r.reader.next(&f));
}

TEST(FrameRing, begin__hostile_consumer_position) {
  Ring ahead;
  ahead.put("x");
  ahead.writer.publish();
  ahead.consumed() = 1 << 20;
  ahead.writer.consumed();
  EXPECT_TRUE(ahead.writer.broken());
  EXPECT_EQ(ahead.writer.begin(10), nullptr);

  Ring back;
  back.put("x");
  back.writer.publish();
  back.get();
  back.reader.release();
  back.writer.consumed();
  EXPECT_FALSE(back.writer.broken());
  back.consumed() = 0;
  back.writer.consumed();
  EXPECT_TRUE(back.writer.broken());
}

TEST(FrameRing, two_threads) {
  Ring r;
  constexpr uint64_t kFrames = 200000;
  std::thread producer([&] {
    std::mt19937 random(5);
    for (uint64_t i = 0; i < kFrames;) {
      size_t bytes = random() % 16 == 0 ? 8 + random() % 6000 : 8 + random() % 200;
      std::byte* f = r.writer.begin(bytes);
      if (f == nullptr) {
        r.writer.publish();
        std::this_thread::yield();
        continue;
      }
      std::memset(f, static_cast<int>(i & 0xff), bytes);
      std::memcpy(f, &i, 8);
      r.writer.commit(f, bytes);
      if (random() % 4 == 0) r.writer.publish();
      ++i;
    }
    r.writer.publish();
  });
  for (uint64_t i = 0; i < kFrames;) {
    FrameRingReader::Frame f;
    if (!r.reader.next(&f)) {
      ASSERT_FALSE(r.reader.broken());
      r.reader.release();
      std::this_thread::yield();
      continue;
    }
    uint64_t number;
    std::memcpy(&number, f.data, 8);
    ASSERT_EQ(number, i);
    if (f.bytes > 8) {
      ASSERT_EQ(static_cast<uint8_t>(f.data[f.bytes - 1]), i & 0xff);
    }
    ++i;
  }
  producer.join();
}

}  // namespace
}  // namespace ub::ipc
