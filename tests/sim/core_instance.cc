// SPDX-License-Identifier: Apache-2.0
//
// The one place where the Core is compiled for the simulation.
#include "lib/transport/core_impl.h"
#include "tests/sim/sim_host.h"

template class ub::Core<ub::sim::SimHost>;
template class ub::roce::Engine<ub::sim::SimHost>;
