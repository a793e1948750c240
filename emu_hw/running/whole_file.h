// SPDX-License-Identifier: Apache-2.0
//
// Files that are read and written as one text.
#pragma once

#include <string>

namespace ub::emu {

// Throws BadFile.
std::string read_whole(const std::string& path);
// The file is there when it is complete, or as it was before. Throws BadFile.
void write_whole(const std::string& path, const std::string& text);
// Before a long run: throws BadFile if write_whole() would, behind it.
void expect_writable(const std::string& path);
// With those that it is in. Throws BadFile.
void make_directory(const std::string& path);

}  // namespace ub::emu
