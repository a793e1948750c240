// SPDX-License-Identifier: Apache-2.0
//
// The one place where the Core is compiled for unit tests.
#include "lib/transport/core_impl.h"
#include "tests/unit/transport/core_pair.h"

template class ub::Core<ub::TestHost>;
template class ub::roce::Engine<ub::TestHost>;
