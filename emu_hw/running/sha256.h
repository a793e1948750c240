// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 of a text in hexadecimal digits, as `sha256sum` prints it.
#pragma once

#include <string>
#include <string_view>

namespace ub::emu {

std::string sha256_of(std::string_view text);

}  // namespace ub::emu
