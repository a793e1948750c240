// SPDX-License-Identifier: Apache-2.0
// options.h - the options of urma_{set,get}_*_opt and the members of the public objects that they stand for
// (URMA API 0.9, 6.10).
//
// An option of the configuration is read when the object is activated. The others are stored in the object's
// urma_*_opt_t, their mask bit tells that the program set them, and of these
//  - the id of a JFS or JFR is a wish, read at activation and then replaced by the id that was given;
//  - base addresses, doorbell addresses and states, pi, pi_type and ci have no effect, for the rings and doorbells of
//    this NIC are its own; nor has the id of a JFC, which the library numbers, nor that of a jetty's send side, which
//    goes by the jetty's id. They can be read back.
// *_FULL_CTX has no defined size: it is unknown here.
#pragma once

#include <cstdint>

#include "lib/urma/include/ub/umdk/urma/urma_types.h"

namespace ub::urma {

struct OptionMember {
  void* value = nullptr;  // null: no such option
  uint32_t bytes = 0;
  uint64_t* mask = nullptr;  // of a urma_*_opt_t: where to note that it was set
  uint64_t mask_bit = 0;
};

OptionMember find_option(urma_jfc_t& jfc, uint64_t option);
OptionMember find_option(urma_jfs_t& jfs, uint64_t option);
OptionMember find_option(urma_jfr_t& jfr, uint64_t option);
OptionMember find_option(urma_jetty_t& jetty, uint64_t option);  // also those of a JFS, for its send side

}  // namespace ub::urma
