// SPDX-License-Identifier: Apache-2.0
//
// Memory of another program of this host, mapped (SOFTUB_WAY_SHARED): bytes, order, rights, and how rights end. Usage:
// shared_windows --processes [part of a name]. The peer is this program again; some cases take a second one.
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <softub_aperture.h>
#include <softub_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/orders.h"
#include "tests/conformance/world.h"

#define PAGE 4096u
#define BYTES (64 * PAGE - 100)  // of the shared memory, whose last page is not full
#define PATIENCE 10.0
#define ROUNDS 200000u
#define ALL (URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC)

// ---- orders -----------------------------------------------------------------------------------------------

enum kind {
  SHARE,
  END,
  UNREGISTER,
  SET_TOKEN,
  HOLDERS,
  FILL,
  HOLDS,
  WORD,
  SET_WORD,
  COUNT,
  STREAM,
  MAP,
  MAPPED,
  UNMAP
};

struct share_order {
  int32_t kind;
  uint32_t rights;  // of softub_alloc_shared; 0: other memory
  uint32_t access;
  uint32_t token, former;
  uint64_t offset, bytes, value;
  urma_seg_t segment;
};

struct share_answer {
  int64_t status;
  uint64_t value;
  uint32_t holders, told;
  int32_t process;
  urma_seg_t segment;
};

// ---- the peer's side --------------------------------------------------------------------------------------

static struct {
  urma_context_t* context;
  char* memory;
  bool shared;
  urma_target_seg_t *segment, *imported;
  char* window;
} side;

static char byte_of(uint64_t place, uint64_t seed) { return (char)(seed * 131 + place + (place >> 8) * 7); }

static void fill(char* to, uint64_t bytes, uint64_t seed) {
  for (uint64_t i = 0; i < bytes; ++i) to[i] = byte_of(i, seed);
}

static bool holds(const char* at, uint64_t bytes, uint64_t seed) {
  for (uint64_t i = 0; i < bytes; ++i) {
    if (at[i] != byte_of(i, seed)) return false;
  }
  return true;
}

// A segment of [offset, offset + bytes) of the memory.
static struct share_answer share(const struct share_order* order) {
  side.shared = order->rights != 0;
  side.memory = side.shared ? softub_alloc_shared(BYTES, order->rights) : aligned_alloc(PAGE, 64 * PAGE);
  need(side.memory != NULL, "memory");
  side.segment = register_memory(side.context, side.memory + order->offset, order->bytes, order->access);
  return (struct share_answer){.segment = side.segment->seg};
}

static int unregister(void) {
  if (side.segment == NULL) return URMA_EINVAL;
  const int status = urma_unregister_seg(side.segment);
  side.segment = NULL;
  return status;
}

static int end(void) {
  const int status = side.segment != NULL ? unregister() : URMA_SUCCESS;
  side.shared ? softub_free(side.memory) : free(side.memory);
  return status;
}

static int set_token(uint32_t token, uint32_t former) {
  softub_set_token_in_t argument = {.seg = side.segment};
  argument.token.token = token;
  argument.former.token = former;
  urma_user_ctl_in_t in = {(uintptr_t)&argument, sizeof argument, SOFTUB_USER_CTL_SET_TOKEN};
  urma_user_ctl_out_t out = {0};
  return urma_user_ctl(side.context, &in, &out);
}

static struct share_answer holders(void) {
  softub_holder_t all[8];
  uint32_t count = 8;
  struct share_answer answer = {.status = softub_holders(side.memory, all, &count), .holders = count};
  for (uint32_t i = 0; i < count && i < 8; ++i) {
    answer.told += all[i].told;
    answer.process = all[i].process;
  }
  return answer;
}

static void count_up(uint64_t* word) {
  for (uint32_t i = 0; i < ROUNDS; ++i) __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
}

// Data, then the flag that tells how much there is.
static void stream(char* memory) {
  uint64_t *data = (uint64_t*)(memory + PAGE), *flag = (uint64_t*)memory;
  for (uint64_t i = 1; i <= ROUNDS; ++i) {
    data[i % 512] = i;
    __atomic_store_n(flag, i, __ATOMIC_RELEASE);
  }
}

static int64_t map_other(const struct share_order* order) {
  const softub_map_options_t options = {.way = SOFTUB_WAY_SHARED};
  side.imported = import_segment(side.context, order->segment, GOOD_TOKEN);
  side.window = softub_map(side.imported, &options);
  return side.window != NULL ? 0 : errno;
}

static int unmap_other(void) {
  const int status = softub_unmap(side.window);
  return status | urma_unimport_seg(side.imported);
}

static struct share_answer obey(const struct share_order* order) {
  struct share_answer answer = {0};
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
      answer.status = set_token(order->token, order->former);
      break;
    case HOLDERS:
      return holders();
    case FILL:
      fill(side.memory, BYTES, order->value);
      break;
    case HOLDS:
      answer.value = holds(side.memory, BYTES, order->value);
      break;
    case WORD:
      memcpy(&answer.value, side.memory + order->offset, 8);
      break;
    case SET_WORD:
      memcpy(side.memory + order->offset, &order->value, 8);
      break;
    case COUNT:
      count_up((uint64_t*)side.memory);
      break;
    case STREAM:
      stream(side.memory);
      break;
    case MAP:
      answer.status = map_other(order);
      break;
    case MAPPED:
      answer.value = *(volatile uint64_t*)side.window;
      break;
    case UNMAP:
      answer.status = unmap_other();
      break;
  }
  return answer;
}

static void obey_order(const void* order, void* answer) {
  const struct share_answer made = obey(order);
  memcpy(answer, &made, sizeof made);
}

static int serve(int socket) {
  const struct order_sizes sizes = {sizeof(struct share_order), sizeof(struct share_answer)};
  return obey_orders(socket, &side.context, sizes, obey_order);
}

// ---- the peer as we see it --------------------------------------------------------------------------------

static urma_context_t* context;
static struct peer owner;

static void tell(struct peer peer, struct share_order order) { tell_peer(peer, &order, sizeof order); }
static struct share_answer hear(struct peer peer) {
  struct share_answer answer;
  hear_peer(peer, &answer, sizeof answer);
  return answer;
}
static struct share_answer give(struct peer peer, struct share_order order) {
  tell(peer, order);
  return hear(peer);
}

static urma_target_seg_t* offered_by(struct peer peer, uint32_t rights, uint32_t access) {
  const struct share_order order = {.kind = SHARE, .rights = rights, .access = access, .bytes = BYTES};
  return import_segment(context, give(peer, order).segment, GOOD_TOKEN);
}
static urma_target_seg_t* offered(uint32_t rights, uint32_t access) { return offered_by(owner, rights, access); }

static void done_with(urma_target_seg_t* seg) {
  check_number("urma_unimport_seg", urma_unimport_seg(seg), URMA_SUCCESS);
  check_number("the peer's end", give(owner, (struct share_order){.kind = END}).status, URMA_SUCCESS);
}

static char* map_with(urma_target_seg_t* seg, uint32_t flags) {
  const softub_map_options_t options = {.way = SOFTUB_WAY_SHARED, .flags = flags};
  char* window = softub_map(seg, &options);
  need(window != NULL, "softub_map");
  return window;
}
static char* map(urma_target_seg_t* seg) { return map_with(seg, 0); }

static void unmap(char* window) { check_number("unmap", softub_unmap(window), URMA_SUCCESS); }

static void expect_refusal(const char* what, urma_target_seg_t* seg) {
  const softub_map_options_t options = {.way = SOFTUB_WAY_SHARED};
  errno = 0;
  check_true(what, softub_map(seg, &options) == NULL && errno == EHOSTUNREACH);
}

// Until the owner counts so many holders, and so many of them told.
static bool holders_become(uint32_t count, uint32_t told) {
  const double end = now() + PATIENCE;
  while (now() < end) {
    const struct share_answer answer = give(owner, (struct share_order){.kind = HOLDERS});
    if (answer.status == URMA_SUCCESS && answer.holders == count && answer.told == told) return true;
    rest_ms(1);
  }
  return false;
}

// ---- faults -----------------------------------------------------------------------------------------------

static softub_fault_t last_fault;
static int handler_calls;
static sigjmp_buf after_fault;

static bool remember(const softub_fault_t* fault, void* given) {
  check_true("the context", given == &last_fault);
  last_fault = *fault;
  ++handler_calls;
  return false;
}

static void leave(int signal) {
  (void)signal;
  siglongjmp(after_fault, 1);
}

static void install_handler(void) {
  struct sigaction action = {.sa_handler = leave};
  need(sigaction(SIGBUS, &action, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
}

static void watch(char* window) {
  check_number("handler", softub_on_fault(window, remember, &last_fault), URMA_SUCCESS);
}

static void expect_fault(char* at, bool is_write, int cause) {
  handler_calls = 0;
  if (sigsetjmp(after_fault, 1) == 0) {
    if (is_write) *(volatile char*)at = 1;
    if (!is_write) (void)*(volatile char*)at;
    check_true("an access that must fail", false);
    return;
  }
  check_number("calls of the handler", handler_calls, 1);
  if (cause != 0) check_number("cause", last_fault.cause, cause);
  check_true("address", last_fault.address == at);
  check_number("a write", last_fault.is_write, is_write);
}

// Until the window says that its right has ended.
static int end_of(char* window) {
  const double end = now() + PATIENCE;
  int status;
  while ((status = softub_sync(window, PAGE, 0)) == URMA_CR_SUCCESS && now() < end) rest_ms(1);
  return status;
}

// ---- cases ------------------------------------------------------------------------------------------------

static void bytes(void) {
  static const uint32_t rights[] = {SOFTUB_SHARE_WRITE, SOFTUB_SHARE_READ | SOFTUB_SHARE_WRITE};
  for (int i = 0; i < 2; ++i) {
    urma_target_seg_t* seg = offered(rights[i], ALL);
    char* window = map(seg);
    check_true("zeros", window[0] == 0 && window[BYTES - 1] == 0);
    give(owner, (struct share_order){.kind = FILL, .value = 3});
    check_true("what the owner wrote", holds(window, BYTES, 3));
    fill(window, BYTES, 4);
    check_true("what we wrote", give(owner, (struct share_order){.kind = HOLDS, .value = 4}).value != 0);
    const struct share_answer answer = give(owner, (struct share_order){.kind = HOLDERS});
    check_number("holders", answer.holders, 1);
    check_number("the process", answer.process, getpid());
    unmap(window);
    check_true("nobody holds it", holders_become(0, 0));
    done_with(seg);
  }
}

static void part_of_it(void) {
  urma_target_seg_t* seg = offered(SOFTUB_SHARE_WRITE, ALL);
  give(owner, (struct share_order){.kind = SET_WORD, .offset = 5 * PAGE, .value = 0x55});
  const softub_map_options_t options = {.offset = 4 * PAGE, .bytes = 2 * PAGE, .way = SOFTUB_WAY_SHARED};
  char* window = softub_map(seg, &options);
  need(window != NULL, "softub_map");
  check_true("a word", *(volatile uint64_t*)(window + PAGE) == 0x55);
  unmap(window);
  done_with(seg);
}

static void by_default(void) {
  urma_target_seg_t* seg = offered(SOFTUB_SHARE_READ, ALL);
  char* window = softub_map(seg, NULL);
  softub_way_t way = SOFTUB_WAY_CACHED;
  softub_window_counts_t counts;
  check_true("mapped", window != NULL);
  check_number("softub_get_way", softub_get_way(window, &way), URMA_SUCCESS);
  check_number("way", way, SOFTUB_WAY_SHARED);
  check_number("sync", softub_sync(window, BYTES, SOFTUB_FLUSH | SOFTUB_INVALIDATE | SOFTUB_RESIDENT), URMA_CR_SUCCESS);
  check_number("writable", softub_sync(window, PAGE, SOFTUB_WRITABLE), URMA_CR_LOC_ACCESS_ERR);
  check_number("beyond", softub_sync(window, 65 * PAGE, SOFTUB_FLUSH), URMA_CR_LOC_LEN_ERR);
  check_number("own", softub_own(window, PAGE, SOFTUB_OWN_WRITE), URMA_CR_SUCCESS);
  check_number("counts", softub_get_window_counts(window, &counts), URMA_EINVAL);
  unmap(window);
  done_with(seg);
}

// A way that is left to the library is shared where it can be, whatever the other options say.
static void expect_way(urma_target_seg_t* seg, softub_map_options_t options, softub_way_t expected) {
  softub_way_t way = SOFTUB_WAY_ANY;
  char* window = softub_map(seg, &options);
  need(window != NULL, "softub_map");
  check_number("softub_get_way", softub_get_way(window, &way), URMA_SUCCESS);
  check_number("way", way, expected);
  unmap(window);
}

static void by_options(void) {
  urma_target_seg_t* seg = offered(SOFTUB_SHARE_WRITE, ALL);
  expect_way(seg, (softub_map_options_t){.cache_bytes = 8 * PAGE}, SOFTUB_WAY_SHARED);
  expect_way(seg, (softub_map_options_t){.flags = SOFTUB_MAP_READ_ONLY}, SOFTUB_WAY_SHARED);
  expect_way(seg, (softub_map_options_t){.flags = SOFTUB_MAP_OWNED}, SOFTUB_WAY_CACHED);
  expect_way(seg, (softub_map_options_t){.path = SOFTUB_PATH_QUEUE}, SOFTUB_WAY_CACHED);
  expect_way(seg, (softub_map_options_t){.way = SOFTUB_WAY_CACHED}, SOFTUB_WAY_CACHED);
  done_with(seg);
}

// The other ways reach the same bytes.
static void beside_others(void) {
  static const uint32_t rights[] = {SOFTUB_SHARE_READ, SOFTUB_SHARE_WRITE};
  for (int i = 0; i < 2; ++i) {
    urma_target_seg_t* seg = offered(rights[i], ALL);
    char* window = map(seg);
    softub_aperture_t* handle = softub_open(seg, NULL);
    need(handle != NULL, "softub_open");
    uint64_t word = 0x1234;
    check_number("store", softub_store(handle, 2 * PAGE, &word, 8), URMA_CR_SUCCESS);
    check_number("fence", softub_fence(handle), URMA_CR_SUCCESS);
    check_true("a store by a handle", *(volatile uint64_t*)(window + 2 * PAGE) == 0x1234);
    if (rights[i] == SOFTUB_SHARE_WRITE) {
      *(volatile uint64_t*)(window + 2 * PAGE) = 0x77;
      check_number("load", softub_load(handle, 2 * PAGE, &word, 8), URMA_CR_SUCCESS);
      check_true("a write to the window", word == 0x77);
    }
    softub_close(handle);
    unmap(window);
    done_with(seg);
  }
}

// What was written before a flag is there when the flag is seen.
static void order_of_writes(void) {
  urma_target_seg_t* seg = offered(SOFTUB_SHARE_READ, ALL);
  char* window = map(seg);
  const uint64_t *data = (uint64_t*)(window + PAGE), *flag = (uint64_t*)window;
  tell(owner, (struct share_order){.kind = STREAM});
  uint64_t seen = 0, wrong = 0;
  for (const double end = now() + PATIENCE; seen != ROUNDS && now() < end;) {
    seen = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
    wrong += __atomic_load_n(&data[seen % 512], __ATOMIC_RELAXED) < seen;
  }
  check_number("all came", (long long)seen, ROUNDS);
  check_number("out of order", (long long)wrong, 0);
  hear(owner);
  unmap(window);
  done_with(seg);
}

static void atomics(void) {
  urma_target_seg_t* seg = offered(SOFTUB_SHARE_WRITE, ALL);
  char* window = map(seg);
  tell(owner, (struct share_order){.kind = COUNT});
  count_up((uint64_t*)window);
  hear(owner);
  check_number("none is lost", (long long)*(volatile uint64_t*)window, 2 * ROUNDS);
  unmap(window);
  done_with(seg);
}

static void expect_read_only(uint32_t rights, uint32_t access, uint32_t flags, int cause) {
  urma_target_seg_t* seg = offered(rights, access);
  char* window = map_with(seg, flags);
  watch(window);
  give(owner, (struct share_order){.kind = SET_WORD, .value = 0x42});
  check_true("a read", *(volatile uint64_t*)window == 0x42);
  expect_fault(window + 9, true, cause);
  check_true("nothing was written", give(owner, (struct share_order){.kind = WORD}).value == 0x42);
  errno = 0;
  if (flags == 0) check_true("never", mprotect(window, PAGE, PROT_READ | PROT_WRITE) != 0 && errno == EACCES);
  unmap(window);
  done_with(seg);
}

static void read_only(void) {
  in_variant("offered for reading");
  expect_read_only(SOFTUB_SHARE_READ, ALL, 0, URMA_CR_REM_ACCESS_ABORT_ERR);
  in_variant("the segment permits no more");
  expect_read_only(SOFTUB_SHARE_WRITE, URMA_ACCESS_READ, 0, URMA_CR_REM_ACCESS_ABORT_ERR);
  in_variant("wanted so");
  expect_read_only(SOFTUB_SHARE_WRITE, ALL, SOFTUB_MAP_READ_ONLY, URMA_CR_LOC_ACCESS_ERR);
  in_variant(NULL);
}

static void unregistered(void) {
  urma_target_seg_t* seg = offered(SOFTUB_SHARE_WRITE, ALL);
  char* window = map(seg);
  watch(window);
  *(volatile char*)window = 1;
  check_number("unregister", give(owner, (struct share_order){.kind = UNREGISTER}).status, URMA_SUCCESS);
  check_true("the holder lets go", holders_become(0, 0));
  check_number("sync", softub_sync(window, PAGE, SOFTUB_FLUSH), URMA_CR_REM_ACCESS_ABORT_ERR);
  expect_fault(window, false, URMA_CR_REM_ACCESS_ABORT_ERR);
  expect_fault(window + PAGE, true, URMA_CR_REM_ACCESS_ABORT_ERR);
  expect_refusal("no more", seg);
  unmap(window);
  done_with(seg);
}

// A holder that does not run does not let go either.
static void stopped_holder(void) {
  urma_target_seg_t* seg = offered(SOFTUB_SHARE_WRITE, ALL);
  const struct peer holder = start_obedient();
  check_number("it maps", give(holder, (struct share_order){.kind = MAP, .segment = seg->seg}).status, 0);
  give(owner, (struct share_order){.kind = SET_WORD, .value = 0x66});
  check_true("it sees", give(holder, (struct share_order){.kind = MAPPED}).value == 0x66);
  char* window = map(seg);
  check_true("two hold it", holders_become(2, 0));
  int state;
  kill(holder.process, SIGSTOP);
  need(waitpid(holder.process, &state, WUNTRACED) == holder.process && WIFSTOPPED(state), "a stopped process");
  check_number("unregister", give(owner, (struct share_order){.kind = UNREGISTER}).status, URMA_SUCCESS);
  check_true("one is left", holders_become(1, 1));
  check_number("which", give(owner, (struct share_order){.kind = HOLDERS}).process, holder.process);
  kill(holder.process, SIGCONT);
  check_true("it lets go when it can", holders_become(0, 0));
  check_number("it unmaps", give(holder, (struct share_order){.kind = UNMAP}).status, URMA_SUCCESS);
  stop_obedient(holder);
  unmap(window);
  done_with(seg);
}

static void token_rotation(void) {
  const uint32_t next = GOOD_TOKEN + 1;
  urma_target_seg_t* seg = offered(SOFTUB_SHARE_WRITE, ALL);
  char* window = map(seg);
  watch(window);
  struct share_order rotate = {.kind = SET_TOKEN, .token = next, .former = GOOD_TOKEN};
  check_number("a further token", give(owner, rotate).status, URMA_SUCCESS);
  check_true("the former one holds", holders_become(1, 0));
  *(volatile char*)window = 1;
  rotate.former = next;
  check_number("no more", give(owner, rotate).status, URMA_SUCCESS);
  check_true("the holder lets go", holders_become(0, 0));
  expect_fault(window, false, URMA_CR_REM_ACCESS_ABORT_ERR);
  expect_refusal("the former token", seg);
  urma_target_seg_t* again = import_segment(context, seg->seg, next);
  char* second = map(again);
  check_true("the same memory", second[0] == 1);
  unmap(second);
  check_number("urma_unimport_seg", urma_unimport_seg(again), URMA_SUCCESS);
  unmap(window);
  done_with(seg);
}

static void owner_dies(void) {
  const struct peer doomed = start_obedient();
  urma_target_seg_t* seg = offered_by(doomed, SOFTUB_SHARE_WRITE, ALL);
  char* window = map(seg);
  watch(window);
  *(volatile char*)window = 1;
  kill(doomed.process, SIGKILL);
  waitpid(doomed.process, NULL, 0);
  close(doomed.socket);
  const int status = end_of(window);
  // A daemon lives on, and has unregistered the segment.
  check_true("cause", status == URMA_CR_ACK_TIMEOUT_ERR || status == URMA_CR_REM_ACCESS_ABORT_ERR);
  expect_fault(window, false, status);
  unmap(window);
  check_number("urma_unimport_seg", urma_unimport_seg(seg), URMA_SUCCESS);
}

static void not_offered(void) {
  softub_way_t way = SOFTUB_WAY_SHARED;
  urma_target_seg_t* seg = offered(0, ALL);
  expect_refusal("other memory", seg);
  char* window = softub_map(seg, NULL);
  check_number("another way", softub_get_way(window, &way), URMA_SUCCESS);
  check_number("cached", way, SOFTUB_WAY_CACHED);
  unmap(window);
  done_with(seg);

  const struct share_order part = {.kind = SHARE, .rights = SOFTUB_SHARE_WRITE, .access = ALL, .bytes = 3 * PAGE};
  seg = import_segment(context, give(owner, part).segment, GOOD_TOKEN);
  expect_refusal("a segment of a part", seg);
  done_with(seg);

  seg = offered(SOFTUB_SHARE_WRITE, ALL);
  urma_target_seg_t* wrong = import_segment(context, seg->seg, GOOD_TOKEN + 5);
  expect_refusal("a wrong token", wrong);
  check_number("urma_unimport_seg", urma_unimport_seg(wrong), URMA_SUCCESS);
  done_with(seg);

  seg = offered(SOFTUB_SHARE_WRITE, 0);
  expect_refusal("no permission", seg);
  done_with(seg);
}

static void own_memory(void) {
  char* memory = softub_alloc_shared(BYTES, SOFTUB_SHARE_WRITE);
  need(memory != NULL, "softub_alloc_shared");
  urma_target_seg_t* registered = register_memory(context, memory, BYTES, ALL);
  urma_target_seg_t* seg = import_segment(context, registered->seg, GOOD_TOKEN);
  char* window = map(seg);
  memory[7] = 7;
  check_true("the same bytes", window != memory && window[7] == 7);
  unmap(window);
  check_number("urma_unimport_seg", urma_unimport_seg(seg), URMA_SUCCESS);
  check_number("urma_unregister_seg", urma_unregister_seg(registered), URMA_SUCCESS);
  softub_free(memory);
}

static void forks(void) {
  urma_target_seg_t* seg = offered(SOFTUB_SHARE_WRITE, ALL);
  char* window = map(seg);
  *(volatile char*)window = 5;
  const pid_t child = fork();
  if (child == 0) {
    if (sigsetjmp(after_fault, 1) != 0) _exit(0);
    *(volatile char*)window = 1;
    _exit(1);
  }
  int status = 1;
  need(waitpid(child, &status, 0) == child, "waitpid");
  check_true("a child has no window", status == 0);
  check_true("the parent has it", *(volatile char*)window == 5);
  unmap(window);
  done_with(seg);
}

static void bad_arguments(void) {
  softub_holder_t holder;
  uint32_t count = 1;
  softub_way_t way;
  char byte;
  check_true("no bytes", softub_alloc_shared(0, SOFTUB_SHARE_READ) == NULL && errno == EINVAL);
  check_true("no rights", softub_alloc_shared(PAGE, 0) == NULL && errno == EINVAL);
  check_true("other rights", softub_alloc_shared(PAGE, 8) == NULL && errno == EINVAL);
  check_number("holders of other memory", softub_holders(&byte, &holder, &count), URMA_EINVAL);
  check_number("no count", softub_holders(&byte, &holder, NULL), URMA_EINVAL);
  check_number("way of no window", softub_get_way(&byte, &way), URMA_EINVAL);
  urma_target_seg_t* seg = offered(SOFTUB_SHARE_WRITE, ALL);
  softub_map_options_t options = {.way = SOFTUB_WAY_SHARED, .flags = SOFTUB_MAP_OWNED};
  check_true("owned", softub_map(seg, &options) == NULL && errno == EINVAL);
  options = (softub_map_options_t){.way = SOFTUB_WAY_SHARED, .path = SOFTUB_PATH_QUEUE};
  check_true("a path", softub_map(seg, &options) == NULL && errno == EINVAL);
  char* window = map(seg);
  urma_seg_cfg_t window_cfg = {.va = (uintptr_t)window + PAGE, .len = PAGE};
  window_cfg.flag.bs.access = URMA_ACCESS_READ;
  check_true("a segment of a window", urma_register_seg(context, &window_cfg) == NULL && errno == EINVAL);
  unmap(window);
  done_with(seg);
}

static const struct named_case cases[] = {
    {"bytes are right", bytes},
    {"a part of the memory", part_of_it},
    {"mapped by default", by_default},
    {"by options", by_options},
    {"beside the other ways", beside_others},
    {"order of writes", order_of_writes},
    {"atomics", atomics},
    {"read-only", read_only},
    {"unregistered", unregistered},
    {"a holder that is stopped", stopped_holder},
    {"another token", token_rotation},
    {"the owner dies", owner_dies},
    {"not offered", not_offered},
    {"memory of one's own", own_memory},
    {"fork", forks},
    {"bad arguments", bad_arguments},
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
  install_handler();
  context = open_nic();
  owner = start_obedient();
  int failed = run_named_cases(cases, sizeof cases / sizeof *cases, argc > 2 ? argv[2] : "");
  begin_case("end");
  stop_obedient(owner);
  check_number("urma_delete_context", urma_delete_context(context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
  failed += !end_case();
  return failed == 0 ? 0 : 1;
}
