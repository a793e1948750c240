// SPDX-License-Identifier: Apache-2.0
//
// A model: what a point of an experiment runs on, and what it measures. two_node is the one that most have.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu_hw/parts/ledger.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

struct Point {
  std::string stack;
  std::string workload;
  Parameters parameters;
};

// What a point shows beside its values: a course in time, a distribution.
struct Curve {
  std::string name;
  std::string x, y;  // what the axes have, with units: "time, us"
  std::vector<std::pair<double, double>> points;
};

struct PointResult {
  // By name, with the unit at its end: mean_ns, p99_ns, mops. A model says which it has.
  std::map<std::string, double> values;
  std::string invalid;  // why it says nothing; "": it does
  uint64_t events = 0;  // of the kernel
  std::vector<Ledger::Line> ledger;  // of the first operation that ended, if it has one
  Time begin;                        // of that operation
  std::vector<Curve> curves;         // drawn in the report
};

// A stack or a workload that a model does not have, or a combination that means nothing. Says which and what there is.
class BadPoint : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

struct Model {
  std::string_view name, meaning;
  PointResult (*run)(const Point&);  // throws BadPoint
  bool has_workloads = false;
};

std::span<const Model> all_models();
// Null: there is none of that name.
const Model* find_model(std::string_view name);
std::string names_of_models();

// ---- the models ---------------------------------------------------------------------------------------------------
// Two hosts, one program: values of latency and rate (measures.h).
PointResult run_two_node(const Point&);
// Rules of congestion control: utilization_percent, least_packets, most_packets; of the closed loop marked_packets,
// window_bytes.
PointResult run_controller(const Point&);
// Queue pairs of one host write to another one through a transmitter that marks: utilization_percent and queue_bytes,
// the most, of the last part of the time, and marked_percent of all frames.
PointResult run_bottleneck(const Point&);
// Parameters::nodes hosts, all of which read each other: the same values, of all of them together.
PointResult run_cluster(const Point&);
// Parameters::initiators hosts with a program each, which all reach one other host: the same values. The workload
// `lock` is a lock there that all of them take, again and again.
PointResult run_incast(const Point&);
// State of a NIC or a host library, N applications times M remote hosts, by sizes of records: bytes, and ratio, that of
// RoCE in parts of it.
PointResult run_state(const Point&);
// State of a host in a fabric: bytes, and fits (1 or 0).
PointResult run_fabric_state(const Point&);
// Setting up connections, by events and as a closed form: setup_ns.
PointResult run_setup(const Point&);
PointResult run_setup_formula(const Point&);
// A cluster as a closed form: mean_ns.
PointResult run_cluster_formula(const Point&);
// Two nodes and a bridge between them: mops, elapsed_ns.
PointResult run_goodput(const Point&);
// Coherent fabrics as closed forms: load_ns, shared_write_ns; of the stack lossless mean_ns, p99_ns, mops.
PointResult run_coherent_formula(const Point&);
// A simulated directory. Workload chase: mean_cycles of an access, miss_cycles, l1_accesses, l1_misses, l2_misses,
// hops; workload shared_line: miss_ns, misses, writes.
PointResult run_directory(const Point&);

}  // namespace ub::emu
