// SPDX-License-Identifier: Apache-2.0
//
// Memory that is found by its name (softub_aperture.h): what is found, what is not, who may have a name, and when names
// end. Usage: names --processes [part of a name]. The peer is this program again; some cases take a second one.
#include <errno.h>
#include <signal.h>
#include <softub_aperture.h>
#include <softub_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/orders.h"
#include "tests/conformance/world.h"

#define BYTES 20000u
#define MOST 64u  // names of a program
#define ROUNDS 20

// ---- orders -----------------------------------------------------------------------------------------------

enum kind { CREATE, DESTROY, PUBLISH, UNPUBLISH, UNREGISTER, WORD };

// Memory number `slot`: created, or registered and published.
struct name_order {
  int32_t kind;
  uint32_t slot, token, share;
  uint64_t value;  // of its first word
  char name[SOFTUB_MAX_NAME + 2];
};

struct name_answer {
  int64_t status;  // CREATE: errno; else URMA_*
  uint64_t value;
  urma_eid_t eid;
};

// ---- the peer's side --------------------------------------------------------------------------------------

struct slot {
  uint64_t* memory;
  urma_target_seg_t* segment;  // of memory that was not created
};

static struct {
  urma_context_t* context;
  struct slot slots[MOST + 1];
} side;

static int64_t create(struct slot* slot, const struct name_order* order) {
  const urma_token_t token = {.token = order->token};
  const softub_create_options_t options = {.share = order->share, .token = order->token != 0 ? &token : NULL};
  slot->memory = softub_create(side.context, order->name, BYTES, &options);
  if (slot->memory == NULL) return errno;
  *slot->memory = order->value;
  return 0;
}

static int64_t publish(struct slot* slot, const struct name_order* order) {
  if (slot->segment == NULL) {
    slot->memory = softub_alloc(BYTES);
    need(slot->memory != NULL, "memory");
    slot->segment = register_memory(side.context, slot->memory, BYTES, URMA_ACCESS_READ);
  }
  *slot->memory = order->value;
  return softub_publish(slot->segment, order->name);
}

static int64_t unregister(struct slot* slot) {
  const int64_t status = urma_unregister_seg(slot->segment);
  softub_free(slot->memory);
  *slot = (struct slot){0};
  return status;
}

static struct name_answer obey(const struct name_order* order) {
  struct slot* slot = &side.slots[order->slot];
  struct name_answer answer = {.eid = side.context->eid};
  switch (order->kind) {
    case CREATE:
      answer.status = create(slot, order);
      break;
    case DESTROY:
      answer.status = softub_destroy(slot->memory);
      break;
    case PUBLISH:
      answer.status = publish(slot, order);
      break;
    case UNPUBLISH:
      answer.status = softub_unpublish(slot->segment);
      break;
    case UNREGISTER:
      answer.status = unregister(slot);
      break;
    case WORD:
      answer.value = *(volatile uint64_t*)slot->memory;
      break;
  }
  return answer;
}

static void obey_order(const void* order, void* answer) {
  const struct name_answer made = obey(order);
  memcpy(answer, &made, sizeof made);
}

static int serve(int socket) {
  const struct order_sizes sizes = {sizeof(struct name_order), sizeof(struct name_answer)};
  return obey_orders(socket, &side.context, sizes, obey_order);
}

// ---- the peer as we see it --------------------------------------------------------------------------------

static urma_context_t* context;
static struct peer owner;
static urma_eid_t eid_of_peers;

static void tell(struct peer peer, struct name_order order) { tell_peer(peer, &order, sizeof order); }
static struct name_answer hear(struct peer peer) {
  struct name_answer answer;
  hear_peer(peer, &answer, sizeof answer);
  eid_of_peers = answer.eid;
  return answer;
}

// A name of this run: others may run beside it.
static struct name_order order_for(enum kind kind, const char* name) {
  struct name_order order = {.kind = kind};
  snprintf(order.name, sizeof order.name, "%s.%d", name, getpid());
  return order;
}

static int64_t give(struct peer peer, struct name_order order) {
  tell(peer, order);
  return hear(peer).status;
}

static void expect(const char* what, struct name_order order, int64_t status) {
  check_number(what, give(owner, order), status);
}

static void create_there(const char* name, uint64_t value) {
  struct name_order order = order_for(CREATE, name);
  order.value = value;
  expect("create", order, 0);
}
static void destroy_there(void) { expect("destroy", (struct name_order){.kind = DESTROY}, URMA_SUCCESS); }

static const char* at_peers(const char* name) {
  static char text[200];
  const uint8_t* raw = eid_of_peers.raw;
  int length = snprintf(text, sizeof text, "%s.%d@", name, getpid());
  for (int i = 0; i < 16; i += 2) {
    const char* between = i == 0 ? "" : ":";
    length += snprintf(text + length, sizeof text - (size_t)length, "%s%02x%02x", between, raw[i], raw[i + 1]);
  }
  return text;
}

static urma_target_seg_t* find_with(const char* name, uint32_t token) {
  return softub_find(context, at_peers(name), (urma_token_t){.token = token});
}
static urma_target_seg_t* find(const char* name) {
  urma_target_seg_t* seg = find_with(name, GOOD_TOKEN);
  need(seg != NULL, "softub_find");
  return seg;
}

static void expect_nobody(const char* name) {
  errno = 0;
  check_true("nobody has it", find_with(name, 0) == NULL);
  check_number("errno", errno, ENOENT);
}

static int load_first(urma_target_seg_t* seg, uint64_t* word) {
  softub_aperture_t* handle = softub_open(seg, NULL);
  if (handle == NULL) return NOTHING;
  const int status = softub_load(handle, 0, word, sizeof *word);
  softub_close(handle);
  return status;
}

static void expect_word(urma_target_seg_t* seg, uint64_t expected) {
  uint64_t word = 0;
  check_status("load", load_first(seg, &word), URMA_CR_SUCCESS);
  check_number("the first word", (long long)word, (long long)expected);
}

static void forget(urma_target_seg_t* seg) { check_number("unimport", urma_unimport_seg(seg), URMA_SUCCESS); }

static void expect_found(const char* name, uint64_t value) {
  urma_target_seg_t* seg = find(name);
  expect_word(seg, value);
  forget(seg);
}

static bool is_one_host(void) { return memcmp(&context->eid, &eid_of_peers, sizeof eid_of_peers) == 0; }

// ---- cases ------------------------------------------------------------------------------------------------

static void found(void) {
  create_there("table", 0x1111);
  urma_target_seg_t* seg = find("table");
  check_number("length", (long long)seg->seg.len, BYTES);
  check_number("access", seg->seg.attr.bs.access, URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC);
  check_number("token policy", seg->seg.attr.bs.token_policy, URMA_TOKEN_NONE);
  expect_word(seg, 0x1111);
  forget(seg);
  if (is_one_host()) {
    seg = softub_find(context, order_for(0, "table").name, (urma_token_t){0});
    check_true("without an EID", seg != NULL);
    if (seg != NULL) forget(seg);
  }
  destroy_there();
  expect_nobody("table");
}

static void attached(void) {
  for (uint32_t share = 0; share <= SOFTUB_SHARE_WRITE; share += SOFTUB_SHARE_WRITE) {
    struct name_order order = order_for(CREATE, "window");
    order.value = 0x2222;
    order.share = share;
    expect("create", order, 0);
    volatile uint64_t* window = softub_attach(context, at_peers("window"), (urma_token_t){0}, NULL);
    need(window != NULL, "softub_attach");
    check_number("the first word", (long long)window[0], 0x2222);
    window[0] = 0x3333;
    check_number("unmap", softub_unmap((void*)window), URMA_EINVAL);
    check_number("detach", softub_detach((void*)window), URMA_SUCCESS);
    check_number("detach again", softub_detach((void*)window), URMA_EINVAL);
    tell(owner, (struct name_order){.kind = WORD});
    check_number("the owner sees it", (long long)hear(owner).value, 0x3333);
    destroy_there();
  }
}

static void own_names(void) {
  char* memory = softub_create(context, order_for(0, "own").name, BYTES, NULL);
  need(memory != NULL, "softub_create");
  memory[0] = 7;
  const char* window = softub_attach(context, order_for(0, "own").name, (urma_token_t){0}, NULL);
  need(window != NULL, "softub_attach");
  check_number("the first byte", window[0], 7);
  check_number("detach", softub_detach((void*)window), URMA_SUCCESS);
  check_number("destroy", softub_destroy(memory), URMA_SUCCESS);
  check_number("destroy again", softub_destroy(memory), URMA_EINVAL);
}

static void tokens(void) {
  struct name_order order = order_for(CREATE, "guarded");
  order.token = 4711;
  order.value = 0x4444;
  expect("create", order, 0);
  uint64_t word;
  urma_target_seg_t* seg = find_with("guarded", 4711);
  need(seg != NULL, "softub_find");
  check_number("token policy", seg->seg.attr.bs.token_policy, URMA_TOKEN_PLAIN_TEXT);
  expect_word(seg, 0x4444);
  forget(seg);
  seg = find_with("guarded", 4712);
  need(seg != NULL, "softub_find");
  check_status("with a wrong token", load_first(seg, &word), URMA_CR_REM_ACCESS_ABORT_ERR);
  forget(seg);
  destroy_there();
}

static void expect_bad_name(const char* name) {
  errno = 0;
  check_true(name, softub_find(context, name, (urma_token_t){0}) == NULL && errno == EINVAL);
  errno = 0;
  check_true(name, softub_create(context, name, BYTES, NULL) == NULL && errno == EINVAL);
}

static void bad_arguments(void) {
  char longest[SOFTUB_MAX_NAME + 2];
  memset(longest, 'x', sizeof longest);
  longest[SOFTUB_MAX_NAME + 1] = 0;
  const char* const bad[] = {"", "a b", "a/b", "@127.0.0.1", "a@", "a@no-address", "\xc3\xa4", longest};
  for (uint32_t i = 0; i < sizeof bad / sizeof *bad; ++i) expect_bad_name(bad[i]);
  check_true("no name", softub_find(context, NULL, (urma_token_t){0}) == NULL && errno == EINVAL);
  check_true("no context", softub_find(NULL, "a", (urma_token_t){0}) == NULL && errno == EINVAL);
  check_true("no bytes", softub_create(context, "a", 0, NULL) == NULL && errno == EINVAL);
  const softub_create_options_t options = {.share = 8};
  check_true("other rights", softub_create(context, "a", BYTES, &options) == NULL && errno == EINVAL);
  check_true("window of an unknown name",
             softub_attach(context, order_for(0, "none").name, (urma_token_t){0}, NULL) == NULL && errno == ENOENT);
  static char memory[BYTES];
  urma_target_seg_t* hidden = register_memory(context, memory, BYTES, URMA_ACCESS_LOCAL_ONLY);
  check_number("a segment for nobody else", softub_publish(hidden, "a"), URMA_EINVAL);
  check_number("no segment", softub_publish(NULL, "a"), URMA_EINVAL);
  check_number("no name", softub_publish(hidden, NULL), URMA_EINVAL);
  check_number("unregister", urma_unregister_seg(hidden), URMA_SUCCESS);
  check_number("a segment that is gone", softub_publish(hidden, "a"), URMA_EINVAL);
  create_there("imported", 1);
  urma_target_seg_t* seg = find("imported");
  check_number("an imported segment", softub_publish(seg, "a"), URMA_EINVAL);
  check_number("an imported segment has no name", softub_unpublish(seg), URMA_EINVAL);
  forget(seg);
  destroy_there();
}

static void names_of_the_longest(void) {
  struct name_order order = order_for(CREATE, "long");
  for (size_t at = strlen(order.name); at < SOFTUB_MAX_NAME; ++at) order.name[at] = "aB:_-9."[at % 7];
  expect("create", order, 0);
  char text[200];
  snprintf(text, sizeof text, "%s%s", order.name, strchr(at_peers("x"), '@'));
  urma_target_seg_t* seg = softub_find(context, text, (urma_token_t){0});
  check_true("found", seg != NULL);
  if (seg != NULL) forget(seg);
  destroy_there();
}

static void taken(void) {
  create_there("taken", 5);
  struct name_order again = order_for(CREATE, "taken");
  again.slot = 1;
  expect("by the same program", again, EEXIST);
  struct peer second = start_obedient();
  check_number("by another program", give(second, again), EEXIST);
  if (is_one_host()) {
    errno = 0;
    check_true("by ourselves", softub_create(context, again.name, BYTES, NULL) == NULL && errno == EEXIST);
  }
  expect_found("taken", 5);
  destroy_there();
  check_number("when it is free", give(second, again), 0);
  again.kind = DESTROY;
  check_number("destroy", give(second, again), URMA_SUCCESS);
  stop_obedient(second);
}

static void published_again(void) {
  struct name_order order = order_for(PUBLISH, "changing");
  order.value = 1;
  expect("publish", order, URMA_SUCCESS);
  urma_target_seg_t* first = find("changing");
  struct name_order other = order_for(PUBLISH, "other");
  other.value = 1;
  expect("a second name", other, URMA_EEXIST);
  order.kind = UNPUBLISH;
  expect("unpublish", order, URMA_SUCCESS);
  expect("unpublish again", order, URMA_EINVAL);
  expect_nobody("changing");
  expect_word(first, 1);
  struct name_order second = order_for(PUBLISH, "changing");
  second.slot = 1;
  second.value = 2;
  expect("another segment", second, URMA_SUCCESS);
  expect_found("changing", 2);
  expect_word(first, 1);
  second.kind = UNREGISTER;
  expect("unregister", second, URMA_SUCCESS);
  expect_nobody("changing");
  order.kind = UNREGISTER;
  expect("unregister", order, URMA_SUCCESS);
  uint64_t word;
  check_status("what was found", load_first(first, &word), URMA_CR_REM_ACCESS_ABORT_ERR);
  forget(first);
}

// A name whose owner was killed is nobody's, and the next owner's another segment.
// A daemon notices that a process has ended a moment later than its parent.
static void await_end_of(const char* name) {
  urma_target_seg_t* seg;
  for (int tries = 0; tries < 500 && (seg = find_with(name, 0)) != NULL; ++tries) {
    forget(seg);
    usleep(10000);
  }
  expect_nobody(name);
}

static void owner_dies(void) {
  struct name_order order = order_for(CREATE, "mortal");
  for (uint64_t life = 1; life <= 3; ++life) {
    struct peer mortal = start_obedient();
    order.value = life;
    check_number("create", give(mortal, order), 0);
    urma_target_seg_t* seg = find("mortal");
    expect_word(seg, life);
    kill(mortal.process, SIGKILL);
    waitpid(mortal.process, NULL, 0);
    close(mortal.socket);
    await_end_of("mortal");
    uint64_t word;
    check_true("its memory is gone", load_first(seg, &word) != URMA_CR_SUCCESS);
    forget(seg);
  }
}

static void many(void) {
  for (uint32_t i = 0; i < MOST; ++i) {
    char name[16];
    snprintf(name, sizeof name, "many%u", i);
    struct name_order order = order_for(CREATE, name);
    order.slot = i;
    order.value = i + 100;
    expect("create", order, 0);
  }
  struct name_order more = order_for(CREATE, "more");
  more.slot = MOST;
  expect("one more", more, ENOMEM);
  for (uint32_t i = 0; i < MOST; i += 7) {
    char name[16];
    snprintf(name, sizeof name, "many%u", i);
    expect_found(name, i + 100);
  }
  for (uint32_t i = 0; i < MOST; ++i) expect("destroy", (struct name_order){.kind = DESTROY, .slot = i}, URMA_SUCCESS);
}

// Of two that publish the same name at once, at most one has it.
static void two_at_once(void) {
  struct peer second = start_obedient();
  int had = 0;
  for (int i = 0; i < ROUNDS; ++i) {
    struct name_order order = order_for(CREATE, "contested");
    order.value = 1;
    tell(owner, order);
    order.value = 2;
    tell(second, order);
    const int64_t first_got = hear(owner).status, second_got = hear(second).status;
    check_true("0 or EEXIST", (first_got == 0 || first_got == EEXIST) && (second_got == 0 || second_got == EEXIST));
    check_true("not both", first_got != 0 || second_got != 0);
    if (first_got == 0 || second_got == 0) {
      expect_found("contested", first_got == 0 ? 1 : 2);
      check_number("destroy", give(first_got == 0 ? owner : second, (struct name_order){.kind = DESTROY}),
                   URMA_SUCCESS);
      ++had;
    }
  }
  check_true("somebody has it now and then", had > 0);
  stop_obedient(second);
}

static const struct named_case cases[] = {
    {"found", found},
    {"attached", attached},
    {"names of one's own", own_names},
    {"tokens", tokens},
    {"bad arguments", bad_arguments},
    {"the longest name", names_of_the_longest},
    {"taken", taken},
    {"published again", published_again},
    {"the owner dies", owner_dies},
    {"many names", many},
    {"two at once", two_at_once},
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
