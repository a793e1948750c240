// SPDX-License-Identifier: Apache-2.0
//
// Numbers and names as people read them.
#pragma once

#include <string>

namespace ub::emu {

// Groups of three digits apart, up to so many significant ones: "16 253", "0.447".
std::string readable(double number, int digits = 6);
// Short, for the axis of a plot: "64 Ki" for 65536, "2.5 M" for 2500000, "1e-4" for 0.0001.
std::string tick_text(double number);
// With sign: "+3.4 %", "less than 0.01 %".
std::string percent_text(double percent);

// A quantity and its unit, out of the name of a measure or of a parameter: "mean latency, ns", "payload, bytes".
std::string title_of_measure(const std::string& measure);
std::string title_of_parameter(const std::string& parameter);

}  // namespace ub::emu
