// SPDX-License-Identifier: Apache-2.0
// private_memory.h - zeroed memory that belongs to this process alone, for a NIC that lives in it.
//
// Mapped, not malloc'ed: it is zero without being touched, costs nothing until it is, and MADV_DONTFORK keeps a child
// from sharing (or copying on write) what a Core of the parent writes. Thread: any.
#pragma once

#include <cstddef>
#include <memory>

namespace ub::urma {

// Page aligned; unmapped when the last owner lets go, except in a forked child, which never had it. Null: out of
// memory.
std::shared_ptr<std::byte> private_memory(size_t bytes);

}  // namespace ub::urma
