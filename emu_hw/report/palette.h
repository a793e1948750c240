// SPDX-License-Identifier: Apache-2.0
//
// Colours of pictures, on light and on dark pages. Those of series can be told apart by people who see no red or green;
// lines differ by their marks as well.
#pragma once

#include <cstddef>
#include <string>

namespace ub::emu {

constexpr size_t kColours = 7;

// The styles of all pictures, as CSS. Classes c0, c1, ... set the colour of an element and of what is in it.
std::string picture_style();

}  // namespace ub::emu
