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

using Notice = std::function<void(const std::string& sentence)>;

// Starts the environment, if that was not done yet, with the arguments given first. `notice` hears if others cannot
// be honoured. False and a sentence in `*error`: DPDK said no, which is final for the process, or it runs as a process
// type that cannot own ports.
bool start_eal(const std::vector<std::string>& arguments, const Notice& notice, std::string* error);

// Runs something on the environment's thread and waits for it.
void on_eal_thread(const std::function<void()>&);

// Text of a negative or positive DPDK error number.
std::string error_text(int error);

}  // namespace ub::dpdk
