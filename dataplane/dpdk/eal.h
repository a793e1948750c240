// SPDX-License-Identifier: Apache-2.0
//
// DPDK's environment: started once in a process, on a thread of its own, and alive until the process ends, whatever
// ports come and go. If the application has started it already, that one is used.
//
// Thread: any.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ub::dpdk {

// Starts the environment, if that was not done yet, with the arguments given first. False and a sentence in `*error`:
// DPDK said no (its own words are in the log), or it runs as a process type that cannot own ports.
bool start_eal(const std::vector<std::string>& arguments, std::string* error);

// Runs something on the environment's thread and waits for it.
void on_eal_thread(const std::function<void()>&);

// Text of a negative or positive DPDK error number.
std::string error_text(int error);

}  // namespace ub::dpdk
