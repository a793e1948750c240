// SPDX-License-Identifier: Apache-2.0
//
// The parts of the page, from above downwards.
#pragma once

#include <string>

#include "emu_hw/report/report.h"

namespace ub::emu {

// What may be concluded, verdicts, exceptions, and where the results come from.
std::string first_screen(const Report&);
// Budget and course of one operation.
std::string round_trip_part(const Report&);
// An experiment, with its figures and tables.
std::string experiment_part(const Report&, size_t experiment);
// "f26": where the page has it.
std::string anchor_of(const Experiment&);

}  // namespace ub::emu
