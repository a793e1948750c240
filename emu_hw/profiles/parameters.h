// SPDX-License-Identifier: Apache-2.0
//
// The values of all parameters of a run (parameters.def). Plain data; a profile, an experiment or the command line
// changes members by their names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emu_hw/kernel/virtual_time.h"

namespace ub::emu {

enum class FabricKind : uint8_t { kDirect, kRule, kSwitch };
enum class CachePolicy : uint8_t { kWriteBack, kWriteThrough, kUncached };
enum class Acknowledgement : uint8_t { kSeparate, kFused };
enum class RuntimeCap : uint8_t { kOn, kOff };
enum class Attach : uint8_t { kBus, kPcie };
enum class UbState : uint8_t { kBounded, kPairs };
enum class UbOrder : uint8_t { kAsked, kAlways };

enum class CongestionControl : uint8_t { kNone, kDcqcn };
enum class Engine : uint8_t { kSerial, kPipelined };
enum class Loss : uint8_t { kRule, kLink };
enum class Recovery : uint8_t { kSelective, kGoBackN };

struct Parameters {
#define EMU_TIME(name, default_ps, meaning) Span name{default_ps};
#define EMU_COUNT(name, default_value, least, most, unit, meaning) uint64_t name = default_value;
#define EMU_NUMBER(name, default_value, least, most, unit, meaning) double name = default_value;
#define EMU_CHOICE(name, type, default_value, words, meaning) type name = default_value;
#include "emu_hw/profiles/parameters.def"
#undef EMU_TIME
#undef EMU_COUNT
#undef EMU_NUMBER
#undef EMU_CHOICE
};

struct ParameterInfo {
  const char* name;
  const char* unit;     // "": none
  const char* meaning;
  const char* words;    // of a choice; else ""
  std::string default_text;
};
const std::vector<ParameterInfo>& all_parameters();

// Names with their texts, as a file or the command line has them.
using Settings = std::map<std::string, std::string>;

// `text`: a number in the unit of the parameter, or a number and its unit ("0.2 us", "4 KiB"), or a word of a choice.
// Returns what is wrong, with the remedy; or "".
std::string set_parameter(Parameters&, std::string_view name, std::string_view text);

// Those that have another value than by default, as set_parameter() takes them.
Settings changed_parameters(const Parameters&);

// As few digits as give the same number; a whole one without an exponent.
std::string text_of(double number);

}  // namespace ub::emu
