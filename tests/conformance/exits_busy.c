// SPDX-License-Identifier: Apache-2.0
//
// A program exits, without urma_uninit, while its threads are inside the library: in calls for data, in control calls
// and in waits, and more of them than there are processors, so that some get none until the exit is over. Or a signal
// handler exits, of a thread that may be anywhere in a call for data. The status is that of the program, and the exit
// does not take long. Each exit is of a process of its own.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/urma/include/ub/umdk/urma/urma_api.h"

#define GOOD 42        // what a process that did as it should exits with
#define TIME_LIMIT 20  // seconds until a process is taken for one that hangs
#define ROUNDS 40      // of each case
#define BYTES 4096

static urma_context_t* context;
static urma_token_t token;

static void begin(void) {
  urma_init_attr_t attributes;
  memset(&attributes, 0, sizeof attributes);
  if (urma_init(&attributes) != URMA_SUCCESS) _exit(1);
  int count = 0;
  urma_device_t** devices = urma_get_device_list(&count);
  if (count != 0) context = urma_create_context(devices[0], 0);
  urma_free_device_list(devices);
  if (context == NULL) _exit(1);
}

static urma_jfc_t* create_jfc(urma_jfce_t* jfce) {
  urma_jfc_cfg_t config;
  memset(&config, 0, sizeof config);
  config.depth = 64;
  config.jfce = jfce;
  return urma_create_jfc(context, &config);
}

static urma_target_seg_t* register_memory(void* memory) {
  urma_seg_cfg_t config;
  memset(&config, 0, sizeof config);
  config.va = (uint64_t)(uintptr_t)memory;
  config.len = BYTES;
  config.token_value = token;
  config.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  return urma_register_seg(context, &config);
}

// ---- what threads do for ever; none of it works any more once the exit has begun ----

struct writer {
  urma_jfc_t* jfc;
  urma_jetty_t* jetty;
  urma_target_jetty_t* target;
  urma_sge_t from, to;
};

// Of WRITEs to memory of this process.
static struct writer open_writer(void) {
  struct writer w;
  memset(&w, 0, sizeof w);
  char* memory = aligned_alloc(BYTES, 2 * BYTES);
  w.jfc = create_jfc(NULL);
  urma_jfr_cfg_t receives;
  memset(&receives, 0, sizeof receives);
  receives.depth = 4;
  receives.max_sge = 1;
  receives.trans_mode = URMA_TM_RM;
  receives.jfc = w.jfc;
  urma_jetty_cfg_t config;
  memset(&config, 0, sizeof config);
  config.flag.bs.share_jfr = 1;
  config.jfs_cfg.depth = 16;
  config.jfs_cfg.trans_mode = URMA_TM_RM;
  config.jfs_cfg.max_sge = 1;
  config.jfs_cfg.jfc = w.jfc;
  config.shared.jfr = urma_create_jfr(context, &receives);
  config.shared.jfc = w.jfc;
  w.jetty = urma_create_jetty(context, &config);
  urma_target_seg_t* source = memory != NULL ? register_memory(memory) : NULL;
  urma_target_seg_t* destination = memory != NULL ? register_memory(memory + BYTES) : NULL;
  if (w.jetty == NULL || source == NULL || destination == NULL) _exit(1);
  urma_import_seg_flag_t flag;
  memset(&flag, 0, sizeof flag);
  flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  urma_rjetty_t peer;
  memset(&peer, 0, sizeof peer);
  peer.jetty_id = w.jetty->jetty_id;
  peer.trans_mode = URMA_TM_RM;
  peer.type = URMA_JETTY;
  w.target = urma_import_jetty(context, &peer, &token);
  w.from = (urma_sge_t){.addr = (uint64_t)(uintptr_t)memory, .len = 64, .tseg = source};
  w.to = (urma_sge_t){.addr = (uint64_t)(uintptr_t)(memory + BYTES),
                      .len = 64,
                      .tseg = urma_import_seg(context, &destination->seg, &token, 0, flag)};
  if (w.target == NULL || w.to.tseg == NULL) _exit(1);
  return w;
}

static void* write_for_ever(void* writer) {
  struct writer* w = writer;
  urma_jfs_wr_t request;
  memset(&request, 0, sizeof request);
  request.opcode = URMA_OPC_WRITE;
  request.flag.bs.complete_enable = 1;
  request.tjetty = w->target;
  request.rw.src.sge = &w->from;
  request.rw.src.num_sge = 1;
  request.rw.dst.sge = &w->to;
  request.rw.dst.num_sge = 1;
  for (;;) {
    urma_jfs_wr_t* bad;
    urma_cr_t done[4];
    urma_post_jetty_send_wr(w->jetty, &request, &bad);
    urma_poll_jfc(w->jfc, 4, done);
  }
  return NULL;
}

static void* create_and_delete(void* nothing) {
  for (;;) {
    urma_jfc_t* jfc = create_jfc(NULL);
    if (jfc != NULL) urma_delete_jfc(jfc);
  }
  return nothing;
}

static void* register_and_unregister(void* nothing) {
  char* memory = aligned_alloc(BYTES, BYTES);
  for (;;) {
    urma_target_seg_t* segment = register_memory(memory);
    if (segment != NULL) urma_unregister_seg(segment);
  }
  return nothing;
}

static void* wait_shortly(void* nothing) {
  urma_jfce_t* jfce = urma_create_jfce(context);
  create_jfc(jfce);
  for (;;) {
    urma_jfc_t* ready[1];
    urma_wait_jfc(jfce, 1, 1, ready);
  }
  return nothing;
}

// ---- cases ----

static void start(void* (*run)(void*), void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, argument) != 0) _exit(1);
}

static void exits_beside_threads(int round) {
  static struct writer writers[3];
  for (size_t i = 0; i < sizeof writers / sizeof *writers; ++i) writers[i] = open_writer();
  for (size_t i = 0; i < sizeof writers / sizeof *writers; ++i) start(write_for_ever, &writers[i]);
  start(create_and_delete, NULL);
  start(create_and_delete, NULL);
  start(register_and_unregister, NULL);
  start(wait_shortly, NULL);
  usleep(5000 + (useconds_t)round * 337);
  exit(GOOD);
}

static void leave(int signal) {
  (void)signal;
  exit(GOOD);
}

static void exits_in_a_handler(int round) {
  struct writer w = open_writer();
  signal(SIGALRM, leave);
  ualarm(1000 + (useconds_t)round * 337, 0);
  write_for_ever(&w);
}

static int is_good(void (*run)(int), int round) {
  const pid_t child = fork();
  if (child == 0) {
    begin();
    run(round);
    _exit(2);
  }
  int status = 0;
  for (int tries = 0; tries < TIME_LIMIT * 1000; ++tries) {
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == GOOD) return 1;
      printf("round %d: status 0x%x: ", round, (unsigned)status);
      return 0;
    }
    usleep(1000);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  printf("round %d: hangs: ", round);
  return 0;
}

int main(void) {
  const struct {
    const char* name;
    void (*run)(int);
  } cases[] = {{"exit beside threads in calls", exits_beside_threads},
               {"exit in a signal handler", exits_in_a_handler}};
  int failed = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    int good = 1;
    for (int round = 0; good && round < ROUNDS; ++round) good = is_good(cases[i].run, round);
    printf("%s %s\n", good ? "ok    " : "FAILED", cases[i].name);
    fflush(stdout);
    failed += !good;
  }
  return failed != 0;
}
