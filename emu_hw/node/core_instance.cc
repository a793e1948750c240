// SPDX-License-Identifier: Apache-2.0
//
// The one place where the Core is compiled for the emulation.
#include "emu_hw/node/core_host.h"
#include "lib/transport/core_impl.h"

template class ub::Core<ub::emu::CoreHost>;
template class ub::roce::Engine<ub::emu::CoreHost>;
