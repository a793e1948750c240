// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "emu_hw/kernel/random_stream.h"
#include "emu_hw/workload/workload.h"

namespace ub::emu {
namespace {

constexpr uint64_t kLine = 64, kPage = 4096;
constexpr uint64_t kHotLines = 32;
constexpr uint64_t kFirstPage = kPage;  // the hot lines lie before it

Verb reading(bool loads) { return loads ? Verb::kLoad : Verb::kRead; }

// To one of a few hot lines, or to a line of the next page.
class PointerChase final : public Workload {
 public:
  PointerChase(const Parameters& p, bool loads)
      : payload_(static_cast<uint32_t>(p.payload)),
        locality_(p.locality),
        verb_(reading(loads)),
        random_(p.seed, "program", "hops") {}
  Step next(uint64_t number) override {
    const bool is_hot = random_.chance(locality_ / 100);
    const uint64_t place = is_hot ? random_.below(kHotLines) * kLine
                                  : kFirstPage + number * kPage + random_.below(kPage / kLine) * kLine;
    return {verb_, payload_, place};
  }

 private:
  const uint32_t payload_;
  const double locality_;
  const Verb verb_;
  RandomStream random_;
};

// Reads of random lines of so many. Each operation whose number is a multiple of `write_each` writes eight bytes; 0:
// none does.
class RandomLines final : public Workload {
 public:
  RandomLines(const Parameters& p, bool loads, uint64_t lines, uint64_t write_each)
      : verb_(reading(loads)), lines_(lines), write_each_(write_each), random_(p.seed, "program", "lines") {}
  Step next(uint64_t number) override {
    const uint64_t place = random_.below(lines_) * kLine;
    if (write_each_ != 0 && number % write_each_ == 0) return {Verb::kWrite, 8, place};
    return {verb_, kLine, place};
  }

 private:
  const Verb verb_;
  const uint64_t lines_, write_each_;
  RandomStream random_;
};

// Keys by rank: the k-th is drawn as often as 1 / k^alpha says.
class ZipfKeys {
 public:
  explicit ZipfKeys(const Parameters& p) : random_(p.seed, "program", "keys") {
    double sum = 0;
    for (uint64_t rank = 1; rank <= p.zipf_keys; ++rank)
      up_to_.push_back(sum += std::pow(static_cast<double>(rank), -p.zipf_alpha));
  }
  uint64_t next() {
    const double drawn = random_.uniform() * up_to_.back();
    return static_cast<uint64_t>(std::upper_bound(up_to_.begin(), up_to_.end() - 1, drawn) - up_to_.begin());
  }

 private:
  RandomStream random_;
  std::vector<double> up_to_;  // how often the keys up to this one are drawn, not normalised
};

// A line for each key.
class ZipfRead final : public Workload {
 public:
  ZipfRead(const Parameters& p, bool loads) : verb_(reading(loads)), keys_(p) {}
  Step next(uint64_t) override { return {verb_, kLine, keys_.next() * kLine}; }

 private:
  const Verb verb_;
  ZipfKeys keys_;
};

// Half of them get the line of a key, the others put it.
class YcsbA final : public Workload {
 public:
  YcsbA(const Parameters& p, bool loads)
      : get_(reading(loads)),
        put_(loads ? Verb::kStore : Verb::kWrite),
        keys_(p),
        random_(p.seed, "program", "gets and puts") {}
  Step next(uint64_t) override { return {random_.chance(0.5) ? get_ : put_, kLine, keys_.next() * kLine}; }

 private:
  const Verb get_, put_;
  ZipfKeys keys_;
  RandomStream random_;
};

// What follows from the number alone.
class Plain final : public Workload {
 public:
  explicit Plain(std::function<Step(uint64_t)> step) : step_(std::move(step)) {}
  Step next(uint64_t number) override { return step_(number); }

 private:
  const std::function<Step(uint64_t)> step_;
};

std::unique_ptr<Workload> plain(std::function<Step(uint64_t)> step) { return std::make_unique<Plain>(std::move(step)); }

}  // namespace

std::unique_ptr<Workload> make_workload(std::string_view name, const Parameters& p, bool loads) {
  const auto bytes = static_cast<uint32_t>(p.payload);
  const Verb read = reading(loads);
  if (name == "pointer_chase") return std::make_unique<PointerChase>(p, loads);
  if (name == "zipf_read") return std::make_unique<ZipfRead>(p, loads);
  if (name == "ycsb_a") return std::make_unique<YcsbA>(p, loads);
  if (name == "scan") return plain([=](uint64_t n) { return Step{read, kLine, n * kLine}; });
  if (name == "graph_walk") return std::make_unique<RandomLines>(p, loads, 4096, 4);
  if (name == "hash_probe") return std::make_unique<RandomLines>(p, loads, 1024, 0);
  if (name == "bulk_read") return plain([=](uint64_t n) { return Step{read, bytes, n * bytes}; });
  if (name == "bulk_write") return plain([=](uint64_t n) { return Step{Verb::kWrite, bytes, n * bytes}; });
  if (name == "fetch_add") return plain([](uint64_t) { return Step{Verb::kFetchAdd, 8}; });
  if (name == "compare_swap" || name == "lock") return plain([](uint64_t) { return Step{Verb::kCompareSwap, 8}; });
  if (name == "send") {
    const uint64_t receivers = p.remote_jetties;
    return plain([=](uint64_t n) { return Step{Verb::kSend, bytes, 0, false, static_cast<uint32_t>(n % receivers)}; });
  }
  if (name == "mixed_order") {
    const uint64_t strict = p.strict;
    return plain([=](uint64_t n) { return Step{read, bytes, n * bytes, n % 100 < strict}; });
  }
  return nullptr;
}

}  // namespace ub::emu
