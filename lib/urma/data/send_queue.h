// SPDX-License-Identifier: Apache-2.0
// send_queue.h - what JFS and jetty have in common: the configuration check, the ring, states and flush.
#pragma once

#include "lib/urma/objects/objects.h"

namespace ub::urma {

// Checks everything but the order type against mode and limits; logs what is wrong.
bool check_send_limits(const urma_jfs_cfg_t& cfg);
// Mode and order type; a default order type is written back into `cfg`.
bool check_send_order(urma_jfs_cfg_t& cfg);
// The live JFC of this context behind a handle, or null.
Jfc* jfc_of(const urma_context_t* ctx, const urma_jfc_t* jfc);

// A wanted id of a queue, 0: any; logs what is wrong.
bool check_wanted_id(uint32_t id);
// Backend::create_jetty. A wanted id is a wish: if it is taken, another one is given.
Status create_queue(JettyConfig config, uint32_t* id);

// `cfg` with the values in force: defaults filled in, what the device does not do switched off.
urma_jfs_cfg_t effective(const urma_jfs_cfg_t& cfg);

// Allocates the ring for an effective configuration and describes the queue to the Core.
bool set_up(SendQueue& sq, const urma_jfs_cfg_t& cfg, const Jfc& jfc, SendQueueConfig* out);

// urma_modify_jfs and urma_modify_jetty. `wanted` is a urma_jetty_state_t.
urma_status_t change_state(SendQueue& sq, uint32_t wanted);
urma_jetty_state_t state_of(const SendQueue& sq);

// urma_flush_jfs and urma_flush_jetty.
int flush(SendQueue& sq, int cr_cnt, urma_cr_t* cr);

// urma_post_jfs_wr and urma_post_jetty_send_wr (post.cc).
urma_status_t post(SendQueue& sq, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr);

}  // namespace ub::urma
