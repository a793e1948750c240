// SPDX-License-Identifier: Apache-2.0
// jfce.h - the chain of JFCs with an event that nobody collected. A JFC is in it at most once: an event says
// "look at this queue", and looking once is enough.
// Thread: any, including the one that owns the Core; the lock is short.
#pragma once

#include "lib/urma/objects/objects.h"

namespace ub::urma {

void push_event(Jfce& jfce, Jfc& jfc);
uint32_t take_events(Jfce& jfce, uint32_t room, urma_jfc_t* out[]);
void drop_events(Jfce& jfce, Jfc& jfc);     // what waits and what may still come
void readmit_events(Jfce& jfce, Jfc& jfc);  // after drop_events

}  // namespace ub::urma
