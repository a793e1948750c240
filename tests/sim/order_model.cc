// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/order_model.h"

#include <algorithm>

#include "lib/base/assert.h"

namespace ub::sim {

void OrderModel::post(uint64_t id, uint32_t queue, Tag tag, bool fence) {
  Queue& q = queues_[queue];
  const uint64_t place = ++q.posted;
  if (fence) q.fences.push_back(place);
  requests_.emplace(id, Request{queue, place, tag, {}});
}

void OrderModel::own(uint64_t id, uint32_t region, uint64_t offset, uint64_t bytes, Use use) {
  if (bytes == 0) return;
  const auto key = std::pair(region, offset);
  const bool alone = ranges_.emplace(key, Range{offset + bytes, id, use}).second;
  UB_ASSERT(alone);
  requests_.at(id).ranges.push_back(key);
}

bool OrderModel::unused(uint32_t region, uint64_t offset, uint64_t bytes) const {
  const auto next = ranges_.lower_bound({region, offset + bytes});
  if (next == ranges_.begin()) return true;
  const auto& [key, range] = *std::prev(next);
  return key.first != region || range.end <= offset;
}

const OrderModel::Range* OrderModel::use_at(uint32_t region, uint64_t offset) const {
  const auto next = ranges_.upper_bound({region, offset});
  if (next == ranges_.begin()) return nullptr;
  const auto& [key, range] = *std::prev(next);
  return key.first == region && offset < range.end ? &range : nullptr;
}

std::optional<uint64_t> OrderModel::writer_at(uint32_t region, uint64_t offset) const {
  const Range* range = use_at(region, offset);
  if (range == nullptr || range->use != Use::kWritten) return {};
  return range->id;
}

void OrderModel::touch(uint32_t region, uint64_t offset, bool read) {
  const Range* range = use_at(region, offset);
  if (range == nullptr || read != (range->use == Use::kRead)) return;
  Request& r = requests_.at(range->id);
  if (range->use == Use::kResult) return result(range->id, r);
  if (const auto v = effect(range->id, r)) (read ? r.read_late : r.seen) = v;
}

void OrderModel::arrive(uint32_t region, uint64_t offset) {
  const Range* range = use_at(region, offset);
  if (range == nullptr || range->use != Use::kResult) return;
  Request& r = requests_.at(range->id);
  if (r.read_late) r.seen = r.read_late;
}

void OrderModel::touch(uint64_t id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  if (const auto v = effect(id, found->second)) found->second.seen = v;
}

std::optional<OrderModel::Violation> OrderModel::effect(uint64_t id, const Request& r) {
  Queue& q = queues_.at(r.queue);
  if (r.place > q.newest.place) q.newest = {r.place, id};
  if (r.tag == Tag::kNo) return {};
  if (r.place < q.newest_strong.place) return Violation{id, q.newest_strong.id, false};
  if (r.tag == Tag::kStrong) q.newest_strong = {r.place, id};
  return {};
}

void OrderModel::result(uint64_t id, Request& r) {
  const Queue& q = queues_.at(r.queue);
  const auto fence = std::upper_bound(q.fences.begin(), q.fences.end(), r.place);
  if (fence != q.fences.end() && q.newest.place >= *fence) r.seen = {id, q.newest.id, true};
}

std::optional<OrderModel::Violation> OrderModel::end(uint64_t id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return {};
  const std::optional<Violation> seen = found->second.seen;
  for (const auto& key : found->second.ranges) ranges_.erase(key);
  requests_.erase(found);
  return seen;
}

}  // namespace ub::sim
