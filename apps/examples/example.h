// SPDX-License-Identifier: Apache-2.0
//
// What the examples of docs/guide.md have in common: opening a NIC, and a TCP connection over which two programs tell
// each other where they are. URMA has no way of its own to find a peer.
#pragma once

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <urma_api.h>

#define CHECK(condition) \
  ((condition)           \
       ? (void)0         \
       : (fprintf(stderr, "%s:%d: failed: %s (%s)\n", __FILE__, __LINE__, #condition, strerror(errno)), exit(1)))

// All that a peer must know, and may know: whoever has the token can use the memory.
struct address {
  urma_jetty_id_t jetty;
  urma_seg_t segment;
  urma_token_t token;
};

static inline urma_context_t* open_nic(void) {
  CHECK(urma_init(NULL) == URMA_SUCCESS);
  int count = 0;
  urma_device_t** devices = urma_get_device_list(&count);
  CHECK(count > 0);
  urma_context_t* context = urma_create_context(devices[0], 0);
  CHECK(context);
  urma_free_device_list(devices);
  return context;
}

// A jetty with a receive queue of `depth`; both complete into `jfc`.
static inline urma_jetty_t* open_jetty(urma_context_t* context, urma_jfc_t* jfc, urma_transport_mode_t mode,
                                       uint32_t depth) {
  urma_jfr_cfg_t jfr_cfg = {.depth = depth, .trans_mode = mode, .max_sge = 1, .jfc = jfc};
  jfr_cfg.min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER;
  urma_jetty_cfg_t cfg = {.flag.bs.share_jfr = URMA_SHARE_JFR};
  cfg.jfs_cfg = (urma_jfs_cfg_t){.depth = depth, .trans_mode = mode, .max_sge = 1, .jfc = jfc};
  cfg.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
  cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  CHECK(cfg.shared.jfr = urma_create_jfr(context, &jfr_cfg));
  urma_jetty_t* jetty = urma_create_jetty(context, &cfg);
  CHECK(jetty);
  return jetty;
}

static inline urma_target_seg_t* register_memory(urma_context_t* context, void* memory, size_t bytes, uint32_t access,
                                                 urma_token_t token) {
  urma_seg_cfg_t cfg = {.va = (uintptr_t)memory, .len = bytes, .token_value = token};
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.flag.bs.access = access;
  urma_target_seg_t* segment = urma_register_seg(context, &cfg);
  CHECK(segment);
  return segment;
}

// Where the programs meet: $EXAMPLE_PORT, or what the example says.
static inline const char* port_or(const char* usual) {
  const char* port = getenv("EXAMPLE_PORT");
  return port != NULL ? port : usual;
}

// ---- TCP -------------------------------------------------------------------------------------------------------

static inline int listen_at(const char* port) {
  struct addrinfo hints = {.ai_family = AF_INET6, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *info;
  CHECK(getaddrinfo(NULL, port, &hints, &info) == 0);
  const int one = 1, s = socket(info->ai_family, info->ai_socktype, 0);
  CHECK(s >= 0 && setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
  CHECK(bind(s, info->ai_addr, info->ai_addrlen) == 0 && listen(s, 16) == 0);
  freeaddrinfo(info);
  return s;
}

static inline int connect_to(const char* host, const char* port) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
  CHECK(getaddrinfo(host, port, &hints, &list) == 0);
  for (struct addrinfo* info = list; info != NULL; info = info->ai_next) {
    const int s = socket(info->ai_family, info->ai_socktype, 0);
    if (s >= 0 && connect(s, info->ai_addr, info->ai_addrlen) == 0) {
      freeaddrinfo(list);
      return s;
    }
    close(s);
  }
  CHECK(!"no server there");
  return -1;
}

static inline void tell(int socket, const void* bytes, size_t count) {
  CHECK(send(socket, bytes, count, MSG_NOSIGNAL) == (ssize_t)count);
}
static inline void hear(int socket, void* bytes, size_t count) {
  CHECK(recv(socket, bytes, count, MSG_WAITALL) == (ssize_t)count);
}
// Asks the server where it is, and makes its jetty and its memory usable here.
static inline struct address find_server(urma_context_t* context, const char* host, const char* port,
                                         urma_target_jetty_t** jetty, urma_target_seg_t** segment) {
  struct address there;
  const int socket = connect_to(host, port);
  hear(socket, &there, sizeof there);
  close(socket);
  urma_rjetty_t rjetty = {.jetty_id = there.jetty, .trans_mode = URMA_TM_RM, .type = URMA_JETTY};
  CHECK(*jetty = urma_import_jetty(context, &rjetty, NULL));
  CHECK(*segment = urma_import_seg(context, &there.segment, &there.token, 0, (urma_import_seg_flag_t){0}));
  return there;
}
// Waits until the other end has gone.
static inline void hear_the_end(int socket) {
  char byte;
  while (recv(socket, &byte, 1, 0) > 0) continue;
}
