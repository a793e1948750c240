// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/distribution.h"

#include <algorithm>
#include <array>
#include <bit>

#include "lib/base/fnv.h"

namespace ub::ycsb {
namespace {

double power_sum(uint64_t from, uint64_t to, double theta) {
  double sum = 0;
  for (uint64_t i = from; i <= to; ++i) sum += std::pow(static_cast<double>(i), -theta);
  return sum;
}

}  // namespace

uint64_t scattered(uint64_t number) {
  const auto hash = static_cast<int64_t>(fnv1a(std::bit_cast<std::array<uint8_t, 8>>(number)));
  return static_cast<uint64_t>(hash < 0 ? -hash : hash);
}

double zeta(uint64_t n, double theta) {
  constexpr uint64_t kDirect = 1000;
  if (n <= kDirect) return power_sum(1, n, theta);
  const double a = kDirect, b = static_cast<double>(n);
  const double integral = (std::pow(b, 1 - theta) - std::pow(a, 1 - theta)) / (1 - theta);
  const double ends = (std::pow(b, -theta) - std::pow(a, -theta)) / 2;
  const double slopes = theta / 12 * (std::pow(a, -theta - 1) - std::pow(b, -theta - 1));
  return power_sum(1, kDirect, theta) + integral + ends + slopes;
}

Zipfian::Zipfian(uint64_t items) : items_(items), zeta_(zeta(items)) { set_eta(); }

void Zipfian::set_eta() {
  const double n = static_cast<double>(items_);
  eta_ = (1 - std::pow(2 / n, 1 - kZipfianTheta)) / (1 - zeta(2) / zeta_);
}

uint64_t Zipfian::next(Prng& random) const {
  static const double kSecond = 1 + std::pow(0.5, kZipfianTheta);
  const double u = unit(random);
  const double rank = u * zeta_;
  if (rank < 1) return 0;
  if (rank < kSecond) return 1;
  const double n = static_cast<double>(items_);
  const auto item = static_cast<uint64_t>(n * std::pow(eta_ * u - eta_ + 1, 1 / (1 - kZipfianTheta)));
  return std::min(item, items_ - 1);
}

void Zipfian::grow(uint64_t items) {
  if (items <= items_) return;
  zeta_ += power_sum(items_ + 1, items, kZipfianTheta);
  items_ = items;
  set_eta();
}

}  // namespace ub::ycsb
