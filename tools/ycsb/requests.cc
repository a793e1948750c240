// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/requests.h"

#include <numeric>

namespace ub::ycsb {

KeyChooser::KeyChooser(const Spec& spec) : first_(spec.insert_start), count_(spec.insert_count) {
  switch (spec.key_choice) {
    case KeyChoice::kUniform:
      kind_ = Uniform();
      break;
    case KeyChoice::kZipfian: {
      // Popular records stay popular while new ones come, since their places are there from the beginning.
      const double expected = static_cast<double>(spec.operation_count) * spec.proportion(Operation::kInsert) * 2;
      kind_ = ScrambledZipfian(count_ + static_cast<uint64_t>(expected));
      break;
    }
    case KeyChoice::kLatest:
      kind_ = Zipfian(spec.record_count);
      break;
    case KeyChoice::kSequential:
      kind_ = Sequential{std::make_shared<std::atomic<uint64_t>>(0)};
      break;
    case KeyChoice::kHotspot:
      kind_ = Hotspot(count_, spec.hot_set_fraction, spec.hot_operation_fraction);
      break;
    case KeyChoice::kExponential:
      kind_ =
          Exponential(spec.exponential_percentile, static_cast<double>(spec.record_count) * spec.exponential_fraction);
      break;
  }
}

uint64_t KeyChooser::next(Prng& random, uint64_t end) {
  if (std::holds_alternative<Uniform>(kind_)) return first_ + random.below(count_);
  if (auto* hotspot = std::get_if<Hotspot>(&kind_)) return first_ + hotspot->next(random);
  if (auto* sequential = std::get_if<Sequential>(&kind_)) return first_ + sequential->position->fetch_add(1) % count_;
  if (auto* latest = std::get_if<Zipfian>(&kind_)) {
    latest->grow(end);
    return end - 1 - latest->next(random);
  }
  for (;;) {  // what does not exist yet is drawn again
    const auto* zipfian = std::get_if<ScrambledZipfian>(&kind_);
    const uint64_t number =
        zipfian != nullptr ? first_ + zipfian->next(random) : end - 1 - std::get<Exponential>(kind_).next(random);
    if (number < end) return number;
  }
}

Requests::Requests(const Spec& spec, const KeyChooser& keys, KeySequence& inserted, uint64_t seed, bool whole_records)
    : spec_(spec),
      keys_(keys),
      inserted_(inserted),
      random_(seed),
      values_(spec),
      read_all_(spec.read_all_fields || whole_records),
      write_all_(spec.write_all_fields || whole_records) {
  const double sum = std::accumulate(spec.proportions.begin(), spec.proportions.end(), 0.0);
  double up_to = 0;
  for (size_t i = 0; i < kOperations; ++i) up_to_[i] = (up_to += spec.proportions[i]) / sum;
}

Operation Requests::draw_operation() {
  const double u = unit(random_);
  size_t i = 0;
  while (i + 1 < kOperations && u >= up_to_[i]) ++i;
  return static_cast<Operation>(i);
}

int32_t Requests::any_field(bool all) {
  return all ? RecordFormat::kAllFields : static_cast<int32_t>(random_.below(spec_.field_count));
}

void Requests::draw(Draw* draw) {
  draw->operation = draw_operation();
  if (draw->operation == Operation::kInsert) return draw_insertion(draw);
  draw->number = keys_.next(random_, inserted_.existing_end());
  draw->key.set(spec_, draw->number);
  draw->read_field = any_field(read_all_);
  if (draw->operation == Operation::kScan) draw->scan_length = static_cast<uint32_t>(spec_.scan_length->next(random_));
  if (draw->operation == Operation::kUpdate || draw->operation == Operation::kReadModifyWrite) {
    draw->record.clear();
    values_.append(&draw->record, draw->key.view(), any_field(write_all_), random_);
  }
}

void Requests::draw_insertion(Draw* draw) {
  draw->operation = Operation::kInsert;
  draw->number = inserted_.take();
  draw->key.set(spec_, draw->number);
  draw->record.clear();
  values_.append(&draw->record, draw->key.view(), RecordFormat::kAllFields, random_);
}

}  // namespace ub::ycsb
