// SPDX-License-Identifier: Apache-2.0
//
// own_threads.h - did a library leave threads behind? The kernel's count of the threads of this process, and what it is
// when nobody but main() and a sanitizer has any. For C and C++ programs.
#pragma once

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

// Of this process. Aborts if /proc cannot be read.
static inline int count_threads(void) {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == NULL) abort();
  int count = 0;
  for (struct dirent* d = readdir(tasks); d != NULL; d = readdir(tasks)) count += d->d_name[0] != '.';
  closedir(tasks);
  return count;
}

static inline void* tell_thread_id(void* id) {
  *(pid_t*)id = gettid();
  return NULL;
}

// What count_threads() is before any library begins. A sanitizer may begin a thread of its own beside the first one
// that a process begins, and another one after a fork. So a thread is begun here, and has ended for the kernel, too,
// when this returns. Aborts if there can be none.
static inline int count_threads_before(void) {
  pthread_t first;
  pid_t id = 0;
  if (pthread_create(&first, NULL, tell_thread_id, &id) != 0) abort();
  pthread_join(first, NULL);
  while (tgkill(getpid(), id, 0) == 0) usleep(1000);
  return count_threads();
}
