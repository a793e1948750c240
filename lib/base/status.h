// SPDX-License-Identifier: Apache-2.0
//
// What a NIC answers to a call that makes, changes or destroys an object. The Core gives all answers but kGone, which
// comes from the connection to a daemon.
#pragma once

#include <cstdint>

namespace ub {

enum class Status : uint8_t {
  kOk,
  kInvalid,   // an argument is out of range or names nothing
  kNoMemory,  // a table or pool is full
  kNoId,      // no id is left in the blocks that the Core has (add_id_block)
  kExists,    // the id or range is taken
  kBusy,      // other objects still use this one
  kGone,      // the daemon that had the NIC ended
};

}  // namespace ub
