// SPDX-License-Identifier: Apache-2.0
//
// Files that are read and written as one text.
#pragma once

#include <string>

namespace ub::emu {

// Throws BadFile.
std::string read_whole(const std::string& path);
// The file is there when it is complete, or as it was before; what is no regular file, as a pipe, is written directly.
// Throws BadFile.
void write_whole(const std::string& path, const std::string& text);
// Before it takes time to find out what to write: throws BadFile if write_whole() would.
void expect_writable(const std::string& path);

}  // namespace ub::emu
