// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/life_sign.h"

#include <utility>

namespace ub::ipc {

bool LifeSign::begin(std::string* error) {
  const Fd memory = create_sealed_memfd("softub-life", LifePage::kBytes, error);
  if (!memory || !page_.map(memory.get(), LifePage::kBytes, error)) return false;
  Fd reader = reopen_to_read(memory.get(), error);
  // Nobody else can ever write to it, whatever is opened again.
  if (!reader || !seal_against_holes(memory.get(), error) || !seal_seals(memory.get(), error)) return false;
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  auto* page = reinterpret_cast<LifePage*>(page_.data());
  const bool held = ::pthread_mutex_init(&page->held, &attributes) == 0 && ::pthread_mutex_lock(&page->held) == 0;
  ::pthread_mutexattr_destroy(&attributes);
  if (!held) {
    *error = "the kernel has no robust mutexes, by which others notice that a process died";
    return false;
  }
  reader_ = std::move(reader);
  return true;
}

}  // namespace ub::ipc
