// SPDX-License-Identifier: Apache-2.0
//
// What processes that end or stop leave to others: names to clear up, and imports without a uasid that find nobody.
//
//   bad_import   beside processes of its own; the wire is chosen by SOFTUB_PORT_KINDS
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/world.h"

#define IDS 1048576u    // ids and token ids have 20 bits
#define ID_PORTS 62464  // plus an id: where it would be asked for if it had no bits above
#define SILENT 60       // imports under way at once
#define HEALTHY 1000    // user_ctx of the one that has an answer
#define PATIENCE_MS 30000

static urma_context_t* context;

// An address that is not ours, where somebody listens who has nothing to do with ids.
static int open_bystander(urma_eid_t* eid) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(ID_PORTS)};
  at.sin_addr.s_addr = htonl(0x7f070708);
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  need(fd >= 0 && bind(fd, (struct sockaddr*)&at, sizeof at) == 0, "a socket beside the ports of ids");
  need(urma_str_to_eid("127.7.7.8", eid) == 0, "urma_str_to_eid");
  return fd;
}

// It has no port, so nobody is asked.
static void no_id(void) {
  urma_eid_t eid;
  const int bystander = open_bystander(&eid);
  urma_rjetty_t jetty = {.jetty_id = {.eid = eid, .id = IDS}, .trans_mode = URMA_TM_RM, .type = URMA_JETTY};
  errno = 0;
  check_true("urma_import_jetty", urma_import_jetty(context, &jetty, NULL) == NULL);
  check_number("errno", errno, EIO);
  urma_seg_t segment = {.ubva = {.eid = eid, .va = 4096}, .len = 4096, .token_id = IDS};
  urma_import_seg_flag_t flag = {.bs.access = URMA_ACCESS_READ};
  errno = 0;
  check_true("urma_import_seg", urma_import_seg(context, &segment, NULL, 0, flag) == NULL);
  check_number("errno", errno, EIO);
  char byte;
  check_number("what the bystander gets", recv(bystander, &byte, sizeof byte, 0), -1);
  close(bystander);
}

static urma_target_jetty_t* begin_import(urma_notifier_t* notifier, urma_jetty_id_t id, uint64_t user_ctx) {
  urma_rjetty_t jetty = {.jetty_id = id, .trans_mode = URMA_TM_RM, .type = URMA_JETTY};
  jetty.jetty_id.uasid = 0;
  urma_target_jetty_t* target = urma_import_jetty_async(notifier, &jetty, NULL, user_ctx, -1);
  need(target != NULL, "urma_import_jetty_async");
  return target;
}

// Many that wait for a stopped process do not keep one from its answer.
static void silent_beside_healthy(void) {
  int order;  // a process that nobody talked to yet
  const pid_t silent = start_peer_process(&order);
  struct offer offer;
  need(read(order, &offer, sizeof offer) == sizeof offer, "the peer does not start");
  struct remote* healthy = start_peer(context, false);
  urma_notifier_t* notifier = urma_create_notifier(context);
  need(notifier != NULL, "urma_create_notifier");
  kill(silent, SIGSTOP);
  need(waitpid(silent, NULL, WUNTRACED) == silent, "stopping a process");
  urma_target_jetty_t* targets[SILENT + 1];
  for (int i = 0; i < SILENT; ++i) targets[i] = begin_import(notifier, offer.work, (uint64_t)i);
  targets[SILENT] = begin_import(notifier, healthy->offer.work, HEALTHY);
  urma_notify_t got = {.status = URMA_FAIL};
  int count;
  do count = urma_wait_notify(notifier, 1, &got, PATIENCE_MS);
  while (count == 1 && got.user_ctx != HEALTHY);
  check_number("urma_wait_notify", count, 1);
  check_number("import of the healthy one", got.status, URMA_SUCCESS);
  for (int i = 0; i <= SILENT; ++i) {
    check_number("urma_unimport_jetty_async", urma_unimport_jetty_async(targets[i]), URMA_SUCCESS);
  }
  check_number("urma_delete_notifier", urma_delete_notifier(notifier), URMA_SUCCESS);
  kill(silent, SIGCONT);
  close(order);
  wait_for_process(silent);
  stop_peer(healthy);
}

static void lock_name(const char* directory, unsigned port) {
  char path[128];
  snprintf(path, sizeof path, "%s/00000000000000000000ffff7f070707-%u.lock", directory, port);
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  need(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0, "locking a name");
}

// Another process has the first name, and somebody clears the second one up, which a killed process left.
static void name_cleared_up(void) {
  char directory[] = "/tmp/softub-name-XXXXXX", command[64];
  need(mkdtemp(directory) != NULL, "mkdtemp");
  int ready[2];
  need(pipe(ready) == 0, "pipe");
  const pid_t others = fork();
  need(others >= 0, "fork");
  if (others == 0) {
    lock_name(directory, 4792);
    lock_name(directory, 61440 + 77);
    need(write(ready[1], "", 1) == 1, "write");
    rest_ms(200);
    _exit(0);
  }
  char byte;
  need(read(ready[0], &byte, 1) == 1, "read");
  const char* names[] = {"SOFTUB_PORT_SHM_DIR", "SOFTUB_DEVICE_ID_BLOCK"};
  setenv("SOFTUB_DEVICE_EIDS", "127.7.7.7", 1);
  setenv(names[0], directory, 1);
  setenv(names[1], "77", 1);
  check_number("urma_init", urma_init(NULL), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    unsetenv(names[i]);
    close(ready[i]);
  }
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 1);
  wait_for_process(others);
  snprintf(command, sizeof command, "rm -r %s", directory);
  need(system(command) == 0, "removing the directory");
}

static int run_case(const char* name, void (*body)(void)) {
  begin_case(name);
  body();
  return !end_case();
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--peer") == 0) return serve_orders(STDIN_FILENO);
  alarm(120);
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 1);
  int failed = run_case("name cleared up", name_cleared_up);
  context = open_nic();
  failed += run_case("no id", no_id);
  failed += run_case("silent beside healthy", silent_beside_healthy);
  begin_case("tear-down");
  check_number("urma_delete_context", urma_delete_context(context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  failed += !end_case();
  return failed != 0;
}
