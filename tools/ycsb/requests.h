// SPDX-License-Identifier: Apache-2.0
//
// Draws operations: which one, of which record, with which values.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <variant>

#include "tools/ycsb/key_name.h"
#include "tools/ycsb/key_sequence.h"
#include "tools/ycsb/values.h"

namespace ub::ycsb {

// Numbers of records that exist, as `requestdistribution` wants them. A copy goes on by itself, but all copies walk
// through the records together when they are taken in a row (sequential). Thread: one for each copy.
class KeyChooser {
 public:
  explicit KeyChooser(const Spec& spec);

  // `end`: one more than the last record that exists.
  uint64_t next(Prng& random, uint64_t end);

 private:
  struct Uniform {};
  struct Sequential {
    std::shared_ptr<std::atomic<uint64_t>> position;
  };

  uint64_t first_, count_;
  std::variant<Uniform, ScrambledZipfian, Zipfian, Sequential, Hotspot, Exponential> kind_;  // Zipfian: by age
};

// One operation and what it needs; its buffers are used again.
struct Draw {
  Operation operation = Operation::kRead;
  uint64_t number = 0;  // of the record
  KeyName key;
  std::string record;                             // insert: all fields; update: those to be changed
  int32_t read_field = RecordFormat::kAllFields;  // of read and scan
  uint32_t scan_length = 0;
};

// The draws of one thread. Nothing is allocated once a Draw has held the longest record. The spec and the sequence must
// stay. Thread: one.
class Requests {
 public:
  // `whole_records`: the store cannot change or read single fields, so all are written and read.
  Requests(const Spec& spec, const KeyChooser& keys, KeySequence& inserted, uint64_t seed, bool whole_records);

  // An operation of the workload.
  void draw(Draw* draw);
  // The next insertion of a new record.
  void draw_insertion(Draw* draw);
  Values& values() { return values_; }

 private:
  Operation draw_operation();
  int32_t any_field(bool all);

  const Spec& spec_;
  KeyChooser keys_;
  KeySequence& inserted_;
  Prng random_;
  Values values_;
  std::array<double, kOperations> up_to_;  // sums of the proportions, 1 at the end
  bool read_all_, write_all_;
};

}  // namespace ub::ycsb
