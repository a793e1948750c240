// SPDX-License-Identifier: Apache-2.0
//
// WRITEs, READs and atomics in memory that another program of this host shares: without packets, as the counters say,
// and with the same results, checks and ends as with packets (docs/same-host-design.md). Usage: same_host --processes
// [part of a name]. The peer is this program again.
#include <pthread.h>
#include <signal.h>
#include <softub_aperture.h>
#include <softub_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/orders.h"
#include "tests/conformance/world.h"

#define PAGE 4096u
#define BYTES (1024 * PAGE)
#define ALL (URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC)

// ---- the peer's side --------------------------------------------------------------------------------------

enum kind { SHARE, END, UNREGISTER, SET_TOKEN, HOLDERS, SUM, FILL, WORD, COUNT, AWAIT, STREAM, WRITE_ON, EXIT };

struct host_order {
  int32_t kind;
  uint32_t rights, access;
  uint64_t offset, bytes, value;
  urma_seg_t segment;
  urma_jetty_id_t jetty;
};

struct host_answer {
  int64_t status;
  uint64_t value;
  urma_seg_t segment;
  urma_jetty_id_t jetty;
};

static struct {
  urma_context_t* context;
  char* memory;
  urma_target_seg_t *segment, *received;
  struct queue queue;
  char* receives;
  urma_target_seg_t* far;  // memory of the other side
  urma_target_jetty_t* jetty;
} side;

static uint64_t sum_of(const char* from, uint64_t bytes) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (uint64_t i = 0; i < bytes; ++i) sum = (sum ^ (uint8_t)from[i]) * 0x100000001b3u;
  return sum;
}

static void fill(char* to, uint64_t bytes, uint64_t seed) {
  for (uint64_t i = 0; i < bytes; ++i) to[i] = (char)(seed * 131 + i * 7 + (i >> 8));
}

static struct host_answer share(const struct host_order* order) {
  side.memory = softub_alloc_shared(BYTES, order->rights);
  need(side.memory != NULL, "softub_alloc_shared");
  side.segment = register_memory(side.context, side.memory, BYTES, order->access);
  side.queue = open_queue(side.context, (struct queue_options){0});
  side.receives = aligned_alloc(PAGE, PAGE);
  side.received = register_memory(side.context, side.receives, PAGE, 0);
  for (int i = 0; i < 8; ++i) urma_recv(side.queue.jfr, side.received, (uintptr_t)side.receives, 64, 0);
  return (struct host_answer){.segment = side.segment->seg, .jetty = side.queue.jetty->jetty_id};
}

static int unregister(void) {
  const int status = urma_unregister_seg(side.segment);
  side.segment = NULL;
  return status;
}

static int end(void) {
  if (side.segment != NULL) unregister();
  close_queue(&side.queue);
  const int status = urma_unregister_seg(side.received);
  free(side.receives);
  softub_free(side.memory);
  return status;
}

static int set_token(uint32_t token) {
  softub_set_token_in_t argument = {.seg = side.segment};
  argument.token.token = argument.former.token = token;
  urma_user_ctl_in_t in = {(uintptr_t)&argument, sizeof argument, SOFTUB_USER_CTL_SET_TOKEN};
  urma_user_ctl_out_t out = {0};
  return urma_user_ctl(side.context, &in, &out);
}

static uint64_t holders(void) {
  softub_holder_t all[8];
  uint32_t count = 8;
  return softub_holders(side.memory, all, &count) == URMA_SUCCESS ? count : UINT64_MAX;
}

// Data, then a flag, as somebody else writes them: how often was the flag there before its data?
static uint64_t await_stream(uint64_t rounds) {
  const uint64_t *data = (uint64_t*)(side.memory + PAGE), *flag = (uint64_t*)side.memory;
  uint64_t seen = 0, wrong = 0;
  for (const double until = now() + PATIENCE; seen != rounds && now() < until;) {
    seen = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
    wrong += __atomic_load_n(&data[seen % 512], __ATOMIC_RELAXED) < seen;
  }
  return seen == rounds ? wrong : UINT64_MAX;
}

static void* write_on(void* unused) {
  (void)unused;
  const struct request r = {.op = URMA_OPC_WRITE,
                            .to = side.jetty,
                            .local = side.received,
                            .remote = side.far,
                            .here = (uintptr_t)side.receives,
                            .there = side.far->seg.ubva.va,
                            .bytes = 64};
  urma_cr_t records[16];
  for (;;) {
    if (post(&side.queue, &r) == URMA_SUCCESS) urma_poll_jfc(side.queue.jfc, 16, records);
  }
  return NULL;
}

// A thread writes to memory of the other side for as long as this process lives.
static int begin_to_write(const struct host_order* order) {
  pthread_t thread;
  side.receives = aligned_alloc(PAGE, PAGE);
  side.received = register_memory(side.context, side.receives, PAGE, URMA_ACCESS_LOCAL_ONLY);
  side.queue = open_queue(side.context, (struct queue_options){0});
  side.far = import_segment(side.context, order->segment, GOOD_TOKEN);
  side.jetty = import_jetty(side.context, order->jetty, 0, URMA_TM_RM);
  return pthread_create(&thread, NULL, write_on, NULL);
}

static struct host_answer obey(const struct host_order* order) {
  struct host_answer answer = {0};
  uint64_t* word = side.memory == NULL ? NULL : (uint64_t*)(side.memory + order->offset);
  urma_cr_t record;
  switch (order->kind) {
    case SHARE:
      return share(order);
    case END:
      answer.status = end();
      break;
    case UNREGISTER:
      answer.status = unregister();
      break;
    case SET_TOKEN:
      answer.status = set_token((uint32_t)order->value);
      break;
    case HOLDERS:
      answer.value = holders();
      break;
    case SUM:
      answer.value = sum_of(side.memory + order->offset, order->bytes);
      break;
    case FILL:
      fill(side.memory + order->offset, order->bytes, order->value);
      break;
    case WORD:
      answer.value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
      break;
    case COUNT:
      for (uint64_t i = 0; i < order->value; ++i) __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
      break;
    case STREAM:
      answer.value = await_stream(order->value);
      break;
    case AWAIT:  // a message, and then what is in the word
      answer.status = wait_on(side.queue.jfc, PATIENCE, &record);
      answer.value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
      break;
    case WRITE_ON:
      answer.status = begin_to_write(order);
      break;
    case EXIT:
      exit(0);
    default:
      answer.status = -1;
  }
  return answer;
}

static void obey_order(const void* order, void* answer) {
  const struct host_answer made = obey(order);
  memcpy(answer, &made, sizeof made);
}

static int serve(int socket) {
  const struct order_sizes sizes = {sizeof(struct host_order), sizeof(struct host_answer)};
  return obey_orders(socket, &side.context, sizes, obey_order);
}

// ---- our side ---------------------------------------------------------------------------------------------

static struct {
  urma_context_t* context;
  struct peer owner;
  struct queue queue;
  char* bytes;
  urma_target_seg_t* memory;
  urma_target_seg_t* far;
  urma_target_jetty_t* jetty;
  uint64_t far_address;
} us;

static void tell(struct host_order order) { tell_peer(us.owner, &order, sizeof order); }
static struct host_answer hear(void) {
  struct host_answer answer;
  hear_peer(us.owner, &answer, sizeof answer);
  return answer;
}
static struct host_answer give(struct host_order order) {
  tell(order);
  return hear();
}

static void begin(uint32_t rights, uint32_t access) {
  const struct host_answer made = give((struct host_order){.kind = SHARE, .rights = rights, .access = access});
  us.far = import_segment(us.context, made.segment, GOOD_TOKEN);
  us.far_address = made.segment.ubva.va;
  us.jetty = import_jetty(us.context, made.jetty, 0, URMA_TM_RM);
  us.queue = open_queue(us.context, (struct queue_options){.depth = 64});
}
static void begin_usual(void) { begin(SOFTUB_SHARE_READ | SOFTUB_SHARE_WRITE, ALL); }

static void finish(void) {
  close_queue(&us.queue);
  check_number("urma_unimport_jetty", urma_unimport_jetty(us.jetty), URMA_SUCCESS);
  check_number("urma_unimport_seg", urma_unimport_seg(us.far), URMA_SUCCESS);
  check_number("the peer's end", give((struct host_order){.kind = END}).status, URMA_SUCCESS);
}

static struct request to_far(urma_opcode_t op, uint64_t offset, uint32_t bytes) {
  return (struct request){.op = op,
                          .to = us.jetty,
                          .local = us.memory,
                          .remote = us.far,
                          .here = (uintptr_t)us.bytes,
                          .there = us.far_address + offset,
                          .bytes = bytes};
}
static int do_it(urma_opcode_t op, uint64_t offset, uint32_t bytes) {
  const struct request r = to_far(op, offset, bytes);
  return run(&us.queue, &r);
}
static int add(uint64_t offset, uint64_t value) {
  struct request r = to_far(URMA_OPC_FADD, offset, 8);
  r.immediate = value;
  return run(&us.queue, &r);
}

// May this program's NIC do without packets?
static bool places(void) {
  const char* wish = getenv("SOFTUB_PORT_SHM_PLACE");
  return strcmp(softub_placement(), "embedded") == 0 && (wish == NULL || strcmp(wish, "false") != 0);
}

// Each takes a tenth of a microsecond. By packets it takes what the scheduler takes, where the owner spins on its
// memory.
static uint32_t rounds(void) { return places() ? 100000 : 500; }

static uint64_t packets(void) {
  softub_transports_t sent;
  check_number("softub_get_transports", softub_get_transports(us.jetty, &sent), URMA_SUCCESS);
  return sent.rtp + sent.ctp + sent.ctp_repeats;
}

// No packets since then, if this program's NIC may do without.
static void expect_no_packets(uint64_t before) {
  if (places()) {
    check_number("packets", (long long)(packets() - before), 0);
  } else {
    check_true("packets", packets() != before);
  }
}

// ---- cases ------------------------------------------------------------------------------------------------

static void bytes_are_right(void) {
  static const uint32_t sizes[] = {1, 7, 8, 9, 63, 64, 65, 4096, 5000, 65536, 1u << 20, BYTES};
  begin_usual();
  const uint64_t before = packets();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const uint64_t offset = sizes[i] == BYTES ? 0 : i * 3;
    fill(us.bytes, sizes[i], i);
    const uint64_t sum = sum_of(us.bytes, sizes[i]);
    check_number("WRITE", do_it(URMA_OPC_WRITE, offset, sizes[i]), URMA_CR_SUCCESS);
    const struct host_order look = {.kind = SUM, .offset = offset, .bytes = sizes[i]};
    check_true("what the owner sees", give(look).value == sum);
    give((struct host_order){.kind = FILL, .offset = offset, .bytes = sizes[i], .value = i + 100});
    const uint64_t filled = give(look).value;
    check_number("READ", do_it(URMA_OPC_READ, offset, sizes[i]), URMA_CR_SUCCESS);
    check_true("what we see", sum_of(us.bytes, sizes[i]) == filled);
  }
  expect_no_packets(before);
  finish();
}

// Ours and the owner's CPU add to the same word.
static void atomics(void) {
  begin_usual();
  const uint64_t before = packets();
  tell((struct host_order){.kind = COUNT, .offset = 64, .value = rounds()});
  for (uint32_t i = 0; i < rounds(); ++i) {
    if (add(64, 1) != URMA_CR_SUCCESS) {
      check_true("FADD", false);
      break;
    }
  }
  hear();
  check_number("sum", (long long)give((struct host_order){.kind = WORD, .offset = 64}).value, 2 * rounds());
  expect_no_packets(before);
  finish();
}

// Whoever sees the flag sees the data that were written before, without any order asked for: each is done when posted.
static void data_before_flag(void) {
  begin_usual();
  tell((struct host_order){.kind = STREAM, .value = rounds()});
  for (uint64_t i = 1; i <= rounds(); ++i) {
    memcpy(us.bytes, &i, 8);
    if (do_it(URMA_OPC_WRITE, PAGE + i % 512 * 8, 8) != URMA_CR_SUCCESS) break;
    if (do_it(URMA_OPC_WRITE, 0, 8) != URMA_CR_SUCCESS) break;
  }
  check_number("flags before their data", (long long)hear().value, 0);
  finish();
}

// A message goes by packets: what was written before is there when it arrives, and what comes behind it waits.
static void beside_messages(void) {
  begin_usual();
  for (uint64_t round = 1; round <= 6; ++round) {
    memcpy(us.bytes, &round, 8);
    struct request write = to_far(URMA_OPC_WRITE, 8, 8), send = to_far(URMA_OPC_SEND, 0, 8);
    send.remote = NULL;
    send.there = 0;
    write.quiet = true;
    tell((struct host_order){.kind = AWAIT, .offset = 8});
    check_number("post", post(&us.queue, &write), URMA_SUCCESS);
    check_number("SEND", run(&us.queue, &send), URMA_CR_SUCCESS);
    const struct host_answer seen = hear();
    check_number("the message", seen.status, URMA_CR_SUCCESS);
    check_number("the word", (long long)seen.value, (long long)round);
  }
  finish();
}

static void rights(void) {
  begin(SOFTUB_SHARE_READ | SOFTUB_SHARE_WRITE, URMA_ACCESS_READ);
  check_number("READ", do_it(URMA_OPC_READ, 0, 64), URMA_CR_SUCCESS);
  check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 64), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("FADD", add(0, 1), URMA_CR_REM_ACCESS_ABORT_ERR);
  finish();
  begin(SOFTUB_SHARE_READ | SOFTUB_SHARE_WRITE, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
  check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 64), URMA_CR_SUCCESS);
  check_number("FADD", add(0, 1), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("beyond the end", do_it(URMA_OPC_WRITE, BYTES - 63, 64), URMA_CR_REM_ACCESS_ABORT_ERR);
  finish();
  // Others may map it to read alone; the owner's NIC writes for them.
  begin(SOFTUB_SHARE_READ, ALL);
  const uint64_t before = packets();
  check_number("READ", do_it(URMA_OPC_READ, 0, 64), URMA_CR_SUCCESS);
  expect_no_packets(before);
  check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 64), URMA_CR_SUCCESS);
  check_true("packets", packets() != before);
  finish();
}

// After unregistering nothing of it is written any more, and nobody counts as a holder.
static void unregistered(void) {
  begin_usual();
  memset(us.bytes, 1, 64);
  check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 64), URMA_CR_SUCCESS);
  check_number("holders", (long long)give((struct host_order){.kind = HOLDERS}).value, 0);
  check_number("unregister", give((struct host_order){.kind = UNREGISTER}).status, URMA_SUCCESS);
  memset(us.bytes, 2, 64);
  check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 64), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("the word", (long long)give((struct host_order){.kind = WORD}).value, 0x0101010101010101);
  check_number("holders", (long long)give((struct host_order){.kind = HOLDERS}).value, 0);
  finish();
}

// While WRITEs go on as fast as they can.
static void unregistered_under_load(void) {
  begin_usual();
  tell((struct host_order){.kind = UNREGISTER});
  int status = URMA_CR_SUCCESS;
  for (uint64_t i = 1; status == URMA_CR_SUCCESS && i < 10000000; ++i) {
    memcpy(us.bytes, &i, 8);
    status = do_it(URMA_OPC_WRITE, 0, 8);
  }
  check_number("unregister", hear().status, URMA_SUCCESS);
  check_number("the last WRITE", status, URMA_CR_REM_ACCESS_ABORT_ERR);
  finish();
}

static void another_token(void) {
  begin_usual();
  check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 64), URMA_CR_SUCCESS);
  check_number("set token", give((struct host_order){.kind = SET_TOKEN, .value = GOOD_TOKEN + 1}).status, URMA_SUCCESS);
  check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 64), URMA_CR_REM_ACCESS_ABORT_ERR);
  const urma_seg_t descriptor = us.far->seg;
  check_number("urma_unimport_seg", urma_unimport_seg(us.far), URMA_SUCCESS);
  us.far = import_segment(us.context, descriptor, GOOD_TOKEN);
  check_number("with the old one", do_it(URMA_OPC_READ, 0, 64), URMA_CR_REM_ACCESS_ABORT_ERR);
  check_number("urma_unimport_seg", urma_unimport_seg(us.far), URMA_SUCCESS);
  us.far = import_segment(us.context, descriptor, GOOD_TOKEN + 1);
  check_number("with the new one", do_it(URMA_OPC_READ, 0, 64), URMA_CR_SUCCESS);
  finish();
}

// A message that revokes the segment's token id.
static void invalidated(void) {
  begin_usual();
  check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 64), URMA_CR_SUCCESS);
  struct request invalidate = to_far(URMA_OPC_SEND_INVALIDATE, 0, 8);
  invalidate.there = 0;
  tell((struct host_order){.kind = AWAIT});
  check_number("SEND with invalidate", run(&us.queue, &invalidate), URMA_CR_SUCCESS);
  check_number("the message", hear().status, URMA_CR_SUCCESS);
  rest_ms(20);  // a turn of the owner's NIC
  check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 64), URMA_CR_REM_ACCESS_ABORT_ERR);
  finish();
}

static void imported_often(void) {
  begin_usual();
  const urma_seg_t descriptor = us.far->seg;
  for (int i = 0; i < 300; ++i) {
    check_number("urma_unimport_seg", urma_unimport_seg(us.far), URMA_SUCCESS);
    us.far = import_segment(us.context, descriptor, GOOD_TOKEN);
    check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 8), URMA_CR_SUCCESS);
  }
  finish();
}

// Nothing succeeds any more, from the moment on at which anybody can know of its death. A daemon lives on, and has to
// notice first.
static void owner_dies(void) {
  begin_usual();
  check_number("WRITE", do_it(URMA_OPC_WRITE, 0, 64), URMA_CR_SUCCESS);
  kill(us.owner.process, SIGKILL);
  waitpid(us.owner.process, NULL, 0);
  const bool nic_lives_on = strcmp(softub_placement(), "daemon") == 0;
  int status = do_it(URMA_OPC_WRITE, 0, 64);
  for (const double until = now() + PATIENCE; nic_lives_on && status == URMA_CR_SUCCESS && now() < until;) {
    status = do_it(URMA_OPC_WRITE, 0, 64);
  }
  check_number("WRITE", status, nic_lives_on ? URMA_CR_REM_ACCESS_ABORT_ERR : URMA_CR_ACK_TIMEOUT_ERR);
  close(us.owner.socket);
  close_queue(&us.queue);
  check_number("urma_unimport_jetty", urma_unimport_jetty(us.jetty), URMA_SUCCESS);
  check_number("urma_unimport_seg", urma_unimport_seg(us.far), URMA_SUCCESS);
  us.owner = start_obedient();
}

// It exits with a thread that writes, and without urma_uninit, while its right ends.
static void visitor_exits(void) {
  us.queue = open_queue(us.context, (struct queue_options){0});
  for (int round = 0; round < 40 && !case_failed(); ++round) {
    char* memory = softub_alloc_shared(PAGE, SOFTUB_SHARE_WRITE);
    urma_target_seg_t* segment = register_memory(us.context, memory, PAGE, ALL);
    struct peer visitor = start_obedient();
    struct host_order order = {.kind = WRITE_ON, .segment = segment->seg, .jetty = us.queue.jetty->jetty_id};
    struct host_answer answer;
    tell_peer(visitor, &order, sizeof order);
    hear_peer(visitor, &answer, sizeof answer);
    check_number("begins to write", answer.status, 0);
    order.kind = EXIT;
    tell_peer(visitor, &order, sizeof order);
    usleep(100 * (useconds_t)round);  // its end takes some milliseconds
    check_number("unregister", urma_unregister_seg(segment), URMA_SUCCESS);
    int status = -1;
    waitpid(visitor.process, &status, 0);
    check_number("how it ended", status, 0);
    close(visitor.socket);
    softub_free(memory);
  }
  close_queue(&us.queue);
}

static const struct named_case cases[] = {
    {"bytes are right", bytes_are_right},
    {"atomics", atomics},
    {"data before a flag", data_before_flag},
    {"beside messages", beside_messages},
    {"rights", rights},
    {"unregistered", unregistered},
    {"unregistered under load", unregistered_under_load},
    {"another token", another_token},
    {"invalidated", invalidated},
    {"imported often", imported_often},
    {"a visitor exits", visitor_exits},
    {"the owner dies", owner_dies},
};

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "--peer") == 0) return serve(STDIN_FILENO);
  if (strcmp(mode, "--processes") != 0) {
    fprintf(stderr, "usage: %s --processes [part of a name]\n", argv[0]);
    return 2;
  }
  alarm(150);  // a call that never returns is a failure, too
  setenv("SOFTUB_DEVICE_EIDS", "127.0.0.1", 0);
  us.context = open_nic();
  us.bytes = aligned_alloc(PAGE, BYTES);
  us.memory = register_memory(us.context, us.bytes, BYTES, URMA_ACCESS_LOCAL_ONLY);
  us.owner = start_obedient();
  int failed = run_named_cases(cases, sizeof cases / sizeof *cases, argc > 2 ? argv[2] : "");
  begin_case("end");
  stop_obedient(us.owner);
  check_number("urma_unregister_seg", urma_unregister_seg(us.memory), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(us.context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  free(us.bytes);
  failed += !end_case();
  return failed == 0 ? 0 : 1;
}
