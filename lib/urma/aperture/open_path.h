// SPDX-License-Identifier: Apache-2.0
//
// Which way leads to the memory of a segment: a lane where the NIC of its owner has one and reaches the memory itself,
// else frames where the
// wire carries them and its NIC reaches the memory itself, else a queue. Thread: any; waits for the NIC, and for a
// channel.
#pragma once

#include <memory>
#include <string>

#include "lib/urma/aperture/lane_path.h"
#include "lib/urma/aperture/remote_path.h"
#include "lib/urma/objects/objects.h"

namespace ub::aperture {

struct OpenedPath {
  std::unique_ptr<RemotePath> path;
  LanePath* lane = nullptr;  // the same, if it is one
};

// May a program ask for it?
bool is_wish(softub_path_t path);

// `wanted`: SOFTUB_PATH_NONE: the best one. `drives`: whoever waits for an answer moves our own NIC forward meanwhile.
// `pub` is filled in for inline calls, and outlives the path. False and `*why`.
bool open_path(const urma::Segment& segment, softub_path_t wanted, bool drives, softub_aperture_t* pub, OpenedPath* out,
               std::string* why);

// A path of windows, which may be used in signal handlers. Its atomics go by a queue where it carries none itself.
std::unique_ptr<RemotePath> open_window_path(const urma::Segment& segment, softub_path_t wanted, bool with_atomics,
                                             std::string* why);

}  // namespace ub::aperture
