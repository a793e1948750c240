// SPDX-License-Identifier: Apache-2.0
//
// The one place where the Core is compiled for replays.
#include "lib/record/replay_host.h"
#include "lib/transport/core_impl.h"

template class ub::Core<ub::record::ReplayHost>;
template class ub::roce::Engine<ub::record::ReplayHost>;
