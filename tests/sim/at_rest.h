// SPDX-License-Identifier: Apache-2.0
//
// Is a Core back where it began? What a run leaves behind in pools, lists, timers and held frames shows in no
// completion, and so in no other check: it is looked at here, when nothing is under way any more.
#pragma once

namespace ub::sim {

class World;

// All is quiet, the objects still exist: nothing is in use but for them, every record of a pool has exactly one owner,
// and the two ends of a channel agree. The first thing that is not so becomes the failure of the run.
void check_quiet_state(World&);

// All applications have closed their objects and every channel was closed: each Core is as it was when it began.
void check_empty_state(World&);

}  // namespace ub::sim
