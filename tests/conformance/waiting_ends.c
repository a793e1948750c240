// SPDX-License-Identifier: Apache-2.0
//
// However a wait for an event ends, nothing hangs and the library goes on: the program exits from a signal handler of
// the thread that waits, or from another thread; that thread is cancelled, and another one waits in its place; the
// library is ended meanwhile, or the event channel is deleted, or its descriptor is closed, or the kernel does not
// watch it. Each case is a process of its own.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "tests/own_threads.h"

#define GOOD 42        // what a child that did as it should exits with
#define TIME_LIMIT 20  // seconds until a child is taken for one that hangs

static urma_jfce_t* jfce;
static atomic_int about_to_wait;

static void open_channel(void) {
  urma_init_attr_t attributes;
  memset(&attributes, 0, sizeof attributes);
  if (urma_init(&attributes) != URMA_SUCCESS) _exit(1);
  int count = 0;
  urma_device_t** devices = urma_get_device_list(&count);
  urma_context_t* context = count == 0 ? NULL : urma_create_context(devices[0], 0);
  urma_free_device_list(devices);
  if (context != NULL) jfce = urma_create_jfce(context);
  if (jfce == NULL) _exit(1);
}

static int await_event(int ms) {
  urma_jfc_t* jfc[1];
  return urma_wait_jfc(jfce, 1, ms, jfc);
}

static void* await_for_ever(void* answer) {
  atomic_store(&about_to_wait, 1);
  *(int*)answer = await_event(-1);
  return NULL;
}

static int answer_of_other = 1;

static pthread_t start_waiter(void) {
  pthread_t waiter;
  if (pthread_create(&waiter, NULL, await_for_ever, &answer_of_other) != 0) _exit(1);
  while (!atomic_load(&about_to_wait)) sched_yield();
  usleep(50 * 1000);  // long enough, mostly, for it to sleep; the case is right either way
  return waiter;
}

static void leave(int signal) {
  (void)signal;
  exit(GOOD);
}

static void exit_from_a_handler(void) {
  signal(SIGALRM, leave);
  ualarm(50 * 1000, 0);
  await_event(-1);
}

static void exit_of_another_thread(void) {
  start_waiter();
  exit(GOOD);
}

static void cancelled(void) {
  pthread_t waiter = start_waiter();
  pthread_cancel(waiter);
  pthread_join(waiter, NULL);
  if (await_event(10) == 0) exit(GOOD);
}

static int threads_before;  // the library began

static void library_ended(void) {
  pthread_t waiter = start_waiter();
  if (urma_uninit() != URMA_SUCCESS) return;
  pthread_join(waiter, NULL);
  while (count_threads() != threads_before) usleep(1000);  // the library's own end with it
  if (answer_of_other == -1) exit(GOOD);
}

static int handled;

static void fork_from_a_handler(int signal) {
  (void)signal;
  const int interrupted = errno;
  handled = 1;
  const pid_t child = fork();
  if (child > 0) waitpid(child, NULL, 0);
  if (child < 0) _exit(3);
  errno = interrupted;
}

// The child, which has no library, does not wait on; its parent does, until its time is over.
static void a_handler_forks(void) {
  const pid_t parent = getpid();
  signal(SIGALRM, fork_from_a_handler);
  ualarm(50 * 1000, 0);
  const int events = await_event(200);
  if (getpid() != parent) _exit(0);
  if (handled && events == 0) exit(GOOD);
}

// A handler of a signal ends the wait of a system call, so that the library looks again.
static void look_again(int signal) { (void)signal; }

static void interrupt(pthread_t waiter) {
  signal(SIGUSR1, look_again);
  pthread_kill(waiter, SIGUSR1);
}

static void channel_deleted(void) {
  pthread_t waiter = start_waiter();
  if (urma_delete_jfce(jfce) != URMA_SUCCESS) return;
  pthread_join(waiter, NULL);
  if (answer_of_other == -1) exit(GOOD);
}

static void descriptor_closed_before(void) {
  close(jfce->fd);
  if (await_event(-1) == -1) exit(GOOD);
}

static void descriptor_closed_meanwhile(void) {
  pthread_t waiter = start_waiter();
  close(jfce->fd);
  interrupt(waiter);
  pthread_join(waiter, NULL);
  if (answer_of_other == -1) exit(GOOD);
}

static int nothing_more_is_watched;

int epoll_ctl(int epoll, int op, int fd, struct epoll_event* event) {
  int (*next)(int, int, int, struct epoll_event*);
  *(void**)&next = dlsym(RTLD_NEXT, "epoll_ctl");
  if (!nothing_more_is_watched || op != EPOLL_CTL_ADD) return next(epoll, op, fd, event);
  errno = ENOSPC;  // fs.epoll.max_user_watches
  return -1;
}

static void not_watched(void) {
  nothing_more_is_watched = 1;
  if (await_event(50) == 0) exit(GOOD);
}

static void two_wait(void) {
  start_waiter();
  for (int i = 0; i < 20; ++i) {
    if (await_event(i % 3) != 0) return;
  }
  exit(GOOD);
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"exit from a signal handler", exit_from_a_handler},
    {"exit of another thread", exit_of_another_thread},
    {"a waiter is cancelled", cancelled},
    {"the library ends", library_ended},
    {"a signal handler forks", a_handler_forks},
    {"the channel is deleted", channel_deleted},
    {"its descriptor was closed", descriptor_closed_before},
    {"its descriptor is closed", descriptor_closed_meanwhile},
    {"the kernel watches no more", not_watched},
    {"two wait", two_wait},
};

static int run(size_t number) {
  const pid_t child = fork();
  if (child == 0) {
    threads_before = count_threads_before();
    open_channel();
    cases[number].run();
    _exit(2);
  }
  int status = 0;
  for (int tries = 0; tries < TIME_LIMIT * 100; ++tries) {
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) && WEXITSTATUS(status) == GOOD;
    usleep(10 * 1000);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  printf("hangs: ");
  return 0;
}

int main(void) {
  int failed = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const int good = run(i);
    printf("%s %s\n", good ? "ok    " : "FAILED", cases[i].name);
    fflush(stdout);
    failed += !good;
  }
  return failed != 0;
}
