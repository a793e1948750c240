// SPDX-License-Identifier: Apache-2.0
//
// Start-up that fails: with configuration files that are wrong (the log says where and why), with devices and
// EIDs that do not exist.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/conformance/world.h"

static char log_text[8192];

static void keep_log(int level, char* message) {
  size_t used = strlen(log_text);
  if (level <= URMA_VLOG_LEVEL_ERR) snprintf(log_text + used, sizeof log_text - used, "%s", message);
}

static void check_mentions(const char* what) {
  if (strstr(log_text, what) == NULL) fail_case("the log", log_text, what);
}

static void start_with_file(const char* text, const char* line, const char* key, const char* value) {
  char path[] = "/tmp/softub-conformance-XXXXXX";
  int fd = mkstemp(path);
  need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "a configuration file");
  close(fd);
  setenv("SOFTUB_CONFIG", path, 1);
  log_text[0] = 0;
  check_number("urma_init", urma_init(NULL), URMA_FAIL);
  check_mentions(path);
  check_mentions(line);
  check_mentions(key);
  check_mentions(value);
  unlink(path);
  log_text[0] = 0;
  check_number("urma_init without the file", urma_init(NULL), URMA_FAIL);
  check_mentions(path);
}

static void malformed_configuration(void) {
  const char* before = getenv("SOFTUB_CONFIG");
  char* kept = before != NULL ? strdup(before) : NULL;
  check_number("urma_register_log_func", urma_register_log_func(keep_log), URMA_SUCCESS);
  start_with_file("[transport]\n\nlanes = 3\n", ":3", "transport.lanes", "1..2");
  start_with_file("[transport]\nrto_min = \"soon\"\n", ":2", "transport.rto_min", "soon");
  start_with_file("[port]\nupd_port = 4792\n", ":2", "upd_port", "udp_port");
  start_with_file("[port]\nkinds = [\"shm\"\n", ":", "", "");
  unsetenv("SOFTUB_CONFIG");
  if (kept != NULL) setenv("SOFTUB_CONFIG", kept, 1);
  free(kept);
  check_number("urma_unregister_log_func", urma_unregister_log_func(), URMA_SUCCESS);
}

static void start_with_block(const char* block, const char* what, const char* advice) {
  setenv("SOFTUB_DEVICE_ID_BLOCK", block, 1);
  log_text[0] = 0;
  check_number("urma_init", urma_init(NULL), URMA_FAIL);
  check_mentions("device.id_block");
  check_mentions(what);
  check_mentions(advice);
}

// An embedded NIC that is to begin with a block of ids which it cannot have (docs/identity.md).
static void unusable_id_block(void) {
  enum { kCount = 3 };
  // An address of its own for each process: several runs of the tests may be under way.
  const uint32_t address = 0x7f070000U | ((uint32_t)getpid() & 0xffff);
  char eid[16];
  snprintf(eid, sizeof eid, "127.7.%u.%u", address >> 8 & 0xff, address & 0xff);
  const char* names[kCount] = {"SOFTUB_PLACEMENT_MODE", "SOFTUB_DEVICE_EIDS", "SOFTUB_PORT_KINDS"};
  const char* values[kCount] = {"embedded", eid, "shm,udp"};
  char* kept[kCount];
  for (int i = 0; i < kCount; ++i) {
    kept[i] = getenv(names[i]) != NULL ? strdup(getenv(names[i])) : NULL;
    setenv(names[i], values[i], 1);
  }
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(61440 + 77)};
  at.sin_addr.s_addr = htonl(address);
  need(fd >= 0 && bind(fd, (struct sockaddr*)&at, sizeof at) == 0, "the port of a block of ids");
  check_number("urma_register_log_func", urma_register_log_func(keep_log), URMA_SUCCESS);
  start_with_block("77", "61517", eid);
  start_with_block("2", "block 2", "3 to 1023");
  close(fd);
  setenv("SOFTUB_DEVICE_ID_BLOCK", "77", 1);
  check_number("urma_init with the block, which is free", urma_init(NULL), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  check_number("urma_unregister_log_func", urma_unregister_log_func(), URMA_SUCCESS);
  unsetenv("SOFTUB_DEVICE_ID_BLOCK");
  for (int i = 0; i < kCount; ++i) {
    unsetenv(names[i]);
    if (kept[i] != NULL) setenv(names[i], kept[i], 1);
    free(kept[i]);
  }
}

int run_bad_starts(void) {
  begin_case("malformed configuration");
  malformed_configuration();
  int failed = !end_case();
  begin_case("a block of ids that cannot be had");
  unusable_id_block();
  return failed + !end_case();
}

void check_unknown_device(urma_context_t* context) {
  char name[] = "no_such_device", empty[] = "";
  errno = 0;
  check_true("urma_get_device_by_name", urma_get_device_by_name(name) == NULL);
  check_number("errno", errno, ENODEV);
  check_true("with an empty name", urma_get_device_by_name(empty) == NULL);
  errno = 0;
  check_true("without name", urma_get_device_by_name(NULL) == NULL);
  check_number("errno", errno, EINVAL);
  errno = 0;
  check_true("a context of an EID index that is not there", urma_create_context(context->dev, 999) == NULL);
  check_number("errno", errno, EIO);
}
