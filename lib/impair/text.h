// SPDX-License-Identifier: Apache-2.0
// text.h - the text form of what is wrong with a link (docs/impair.md), read and written.
//
//   text   = clause *( (";" / end of line) clause )
//   clause = [ "at" TIME ] *word          at: a change, so long after the text comes into force
//   word   = KEY "=" VALUE / "down" / "up" / "clear"
//
// The words of the first clause change `base`, those of each later clause the state that the one before it left.
//
//   loss=1% burst=8 delay=5us rate=100G kind=data; at 2s down; at 12s up
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/impair/spec.h"

namespace ub::impair {

struct Parsed {
  std::optional<Script> script;
  std::string error;  // if there is no script: a sentence that names the word, and says what is allowed
};

Parsed parse(std::string_view text, const Spec& base = {});

// All that differs from a link without faults, in the form that parse() reads; "clear" if nothing does.
std::string to_text(const Spec& spec);
std::string to_text(const Script& script);

}  // namespace ub::impair
