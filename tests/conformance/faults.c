// SPDX-License-Identifier: Apache-2.0
//
// Faults on demand (docs/fault-injection.md): a program sees each of them, at both ends, and works on afterwards.
// Usage: see far.h.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/far.h"

#define THERE 8192
#define BYTES 256
#define SEED 9

static bool is_daemon(void) { return strcmp(softub_placement(), "daemon") == 0; }

static void inject(const char* text) { check_number(text, softub_inject(text), URMA_SUCCESS); }

static softub_injected_t injected(void) {
  softub_injected_t counts = {0};
  check_number("softub_get_injected", softub_get_injected(&counts), URMA_SUCCESS);
  return counts;
}

static void check_write(struct pair* p, const char* what, int expected) {
  struct request r = request_to(&p->far, URMA_OPC_WRITE, BYTES);
  r.there = far_address(THERE);
  check_status(what, run(&p->q, &r), expected);
}

static struct pair open_plain_pair(void) { return open_pair((struct queue_options){0}, (struct queue_options){0}); }

// ---- completions ------------------------------------------------------------------------------------------

static const struct {
  const char* text;
  int status;
} statuses[] = {
    {"completion nth=2 status=UNSUPPORTED_OPCODE_ERR", URMA_CR_UNSUPPORTED_OPCODE_ERR},
    {"completion nth=2 status=LOC_LEN_ERR", URMA_CR_LOC_LEN_ERR},
    {"completion nth=2 status=LOC_OPERATION_ERR", URMA_CR_LOC_OPERATION_ERR},
    {"completion nth=2 status=LOC_ACCESS_ERR", URMA_CR_LOC_ACCESS_ERR},
    {"completion nth=2 status=REM_RESP_LEN_ERR", URMA_CR_REM_RESP_LEN_ERR},
    {"completion nth=2 status=REM_UNSUPPORTED_REQ_ERR", URMA_CR_REM_UNSUPPORTED_REQ_ERR},
    {"completion nth=2 status=REM_OPERATION_ERR", URMA_CR_REM_OPERATION_ERR},
    {"completion nth=2 status=REM_ACCESS_ABORT_ERR", URMA_CR_REM_ACCESS_ABORT_ERR},
    {"completion nth=2 status=ACK_TIMEOUT_ERR", URMA_CR_ACK_TIMEOUT_ERR},
    {"completion nth=2 status=RNR_RETRY_CNT_EXC_ERR", URMA_CR_RNR_RETRY_CNT_EXC_ERR},
    {"completion nth=2 status=LOC_DATA_POISON", URMA_CR_LOC_DATA_POISON},
    {"completion nth=2 status=REM_DATA_POISON", URMA_CR_REM_DATA_POISON},
};

static void statuses_body(struct pair* p) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; ++i) {
    inject(statuses[i].text);
    check_write(p, "the first WRITE", URMA_CR_SUCCESS);
    fill(stage.bytes, BYTES, SEED);
    far_prepare(THERE, BYTES);
    check_write(p, statuses[i].text, statuses[i].status);
    check_true("its bytes landed all the same", far_landed(THERE, BYTES, SEED));
    check_write(p, "the third WRITE", URMA_CR_SUCCESS);
    check_number("completions that were changed", (long long)injected().completions, 1);
  }
  inject("");
}

static void each_status(void) { for_each_variant(statuses_body); }

static void of_an_opcode(void) {
  struct pair p = open_plain_pair();
  struct request read = request_to(&p.far, URMA_OPC_READ, BYTES);
  inject("completion every=2 op=READ status=REM_OPERATION_ERR");
  for (int round = 0; round < 3; ++round) {
    check_write(&p, "a WRITE before", URMA_CR_SUCCESS);
    check_status("an odd READ", run(&p.q, &read), URMA_CR_SUCCESS);
    check_write(&p, "a WRITE between", URMA_CR_SUCCESS);
    check_status("an even READ", run(&p.q, &read), URMA_CR_REM_OPERATION_ERR);
  }
  check_number("completions that were changed", (long long)injected().completions, 3);
  inject("");
  close_pair(&p);
}

static void of_a_queue(void) {
  struct pair one = open_plain_pair(), other = open_plain_pair();
  char text[80];
  snprintf(text, sizeof text, "completion jfc=%u status=LOC_LEN_ERR", one.q.jfc->jfc_id.id);
  inject(text);
  check_write(&one, "of the JFC that is named", URMA_CR_LOC_LEN_ERR);
  check_write(&other, "of another JFC", URMA_CR_SUCCESS);
  snprintf(text, sizeof text, "completion queue=%u status=LOC_LEN_ERR", other.q.jetty->jetty_id.id);
  inject(text);
  check_write(&one, "of another jetty", URMA_CR_SUCCESS);
  check_write(&other, "of the jetty that is named", URMA_CR_LOC_LEN_ERR);
  inject("");
  close_pair(&one);
  close_pair(&other);
}

static uint64_t chosen_by_chance(struct pair* p) {
  uint64_t chosen = 0;
  inject("completion chance=300 seed=7 status=LOC_OPERATION_ERR");
  struct request r = request_to(&p->far, URMA_OPC_WRITE, BYTES);
  for (int i = 0; i < 40; ++i) {
    if (run(&p->q, &r) == URMA_CR_LOC_OPERATION_ERR) chosen |= 1ull << i;
  }
  check_number("completions that were changed", (long long)injected().completions, __builtin_popcountll(chosen));
  return chosen;
}

static void by_chance(void) {
  struct pair p = open_plain_pair();
  const uint64_t first = chosen_by_chance(&p);
  check_true("some were chosen, and some not", first != 0 && first != (1ull << 40) - 1);
  check_true("the same seed chooses the same", chosen_by_chance(&p) == first);
  inject("");
  close_pair(&p);
}

static void of_a_receive(void) {
  struct pair p = open_plain_pair();
  urma_cr_t record;
  struct request s = request_to(&p.far, URMA_OPC_SEND, BYTES);
  far_receive(&p.far, THERE, BYTES, 5);
  check_number("the peer asks for it", far_inject("completion side=receive status=LOC_ACCESS_ERR"), URMA_SUCCESS);
  check_status("the sender knows nothing of it", run(&p.q, &s), URMA_CR_SUCCESS);
  check_status("the receive", far_take(&p.far, PATIENCE, &record), URMA_CR_LOC_ACCESS_ERR);
  check_number("its user_ctx", (long long)record.user_ctx, 5);
  check_number("completions that the peer changed", (long long)far_injected().completions, 1);
  far_inject("");
  close_pair(&p);
}

static urma_jetty_state_t state_of(struct queue* q) {
  urma_jetty_cfg_t cfg;
  urma_jetty_attr_t attr;
  check_number("urma_query_jetty", urma_query_jetty(q->jetty, &cfg, &attr), URMA_SUCCESS);
  return attr.state;
}

static void set_state(struct queue* q, urma_jetty_state_t state) {
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = state};
  check_number("urma_modify_jetty", urma_modify_jetty(q->jetty, &attr), URMA_SUCCESS);
}

// An error suspends a queue that was made so, and so does one that was asked for.
static void suspends(void) {
  struct pair p = open_pair((struct queue_options){.suspends = true}, (struct queue_options){0});
  inject("completion nth=1 status=REM_OPERATION_ERR");
  check_write(&p, "the WRITE", URMA_CR_REM_OPERATION_ERR);
  check_status("then the marker", wait_completion(&p.q, PATIENCE, NULL), URMA_CR_WR_SUSPEND_DONE);
  check_number("the state", state_of(&p.q), URMA_JETTY_STATE_SUSPENDED);
  set_state(&p.q, URMA_JETTY_STATE_READY);
  check_write(&p, "a WRITE in READY again", URMA_CR_SUCCESS);
  inject("");
  close_pair(&p);
}

// Requests are flushed in ERROR only.
static void flushes(void) {
  struct pair p = open_plain_pair();
  inject("completion nth=1 status=WR_FLUSH_ERR");
  check_write(&p, "the WRITE", URMA_CR_WR_FLUSH_ERR);
  check_status("then the marker", wait_completion(&p.q, PATIENCE, NULL), URMA_CR_WR_FLUSH_ERR_DONE);
  check_number("the state", state_of(&p.q), URMA_JETTY_STATE_ERROR);
  inject("");
  close_pair(&p);
}

static void flushes_receives(void) {
  struct pair p = open_plain_pair();
  struct request s = request_to(&p.far, URMA_OPC_SEND, BYTES);
  for (uint64_t i = 1; i <= 3; ++i) far_receive(&p.far, THERE, BYTES, i);
  far_inject("completion nth=1 side=receive status=WR_FLUSH_ERR");
  check_status("the SEND", run(&p.q, &s), URMA_CR_SUCCESS);
  for (long long i = 1; i <= 3; ++i) {
    urma_cr_t record;
    check_status("a receive", far_take(&p.far, PATIENCE, &record), URMA_CR_WR_FLUSH_ERR);
    check_number("its user_ctx", (long long)record.user_ctx, i);
  }
  far_inject("");
  close_pair(&p);
}

// ---- posts ------------------------------------------------------------------------------------------------

static void full_send_queue(void) {
  struct pair p = open_plain_pair();
  urma_sge_t here[3], there[3][2];
  urma_jfs_wr_t list[3], *bad = NULL;
  for (uint64_t i = 0; i < 3; ++i) {
    struct request r = request_to(&p.far, URMA_OPC_WRITE, BYTES);
    r.user_ctx = i;
    list[i] = build(&r, &here[i], there[i]);
    list[i].next = i < 2 ? &list[i + 1] : NULL;
  }
  inject("post nth=2");
  check_number("the list", post_list(&p.q, list, &bad), URMA_ENOMEM);
  check_true("bad_wr", bad == &list[1]);
  check_number("posts that were refused", (long long)injected().posts, 1);
  check_number("the rest of it", post_list(&p.q, bad, &bad), URMA_SUCCESS);
  for (long long i = 0; i < 3; ++i) {
    urma_cr_t record;
    check_status("completion", wait_completion(&p.q, PATIENCE, &record), URMA_CR_SUCCESS);
    check_number("its user_ctx", (long long)record.user_ctx, i);
  }
  check_status("and no more", wait_completion(&p.q, 0.05, NULL), NOTHING);
  inject("post error=EINVAL op=READ count=1");
  struct request read = request_to(&p.far, URMA_OPC_READ, BYTES);
  check_write(&p, "a WRITE", URMA_CR_SUCCESS);
  check_number("a READ", post(&p.q, &read), URMA_EINVAL);
  check_status("a READ once more", run(&p.q, &read), URMA_CR_SUCCESS);
  inject("");
  close_pair(&p);
}

static void full_receive_queue(void) {
  struct pair p = open_plain_pair();
  urma_jfr_t* jfr = p.q.jfr;
  inject("post nth=1 side=receive");
  check_write(&p, "a WRITE, which is no receive", URMA_CR_SUCCESS);
  check_number("a receive", urma_recv(jfr, stage.memory, near_address(0), BYTES, 1), URMA_ENOMEM);
  check_number("once more", urma_recv(jfr, stage.memory, near_address(0), BYTES, 2), URMA_SUCCESS);
  inject("");
  close_pair(&p);
}

// ---- receives ---------------------------------------------------------------------------------------------

static void no_receive_body(struct pair* p) {
  struct request s = request_to(&p->far, URMA_OPC_SEND, BYTES);
  far_receive(&p->far, THERE, BYTES, 1);
  check_number("the peer asks for it", far_inject("rnr count=3"), URMA_SUCCESS);
  check_status("a SEND that is tried again", run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&p->far, PATIENCE, NULL), URMA_CR_SUCCESS);
  check_number("attempts that found none", (long long)far_injected().rnr, 3);
  far_inject("");
}

static void no_receive(void) { for_each_variant(no_receive_body); }

static void no_receive_for_long_body(struct pair* p) {
  struct request s = request_to(&p->far, URMA_OPC_SEND, BYTES);
  far_receive(&p->far, THERE, BYTES, 1);
  far_inject("rnr count=3");
  check_status("a SEND that is tried twice again", run(&p->q, &s), URMA_CR_RNR_RETRY_CNT_EXC_ERR);
  check_status("nothing was received", far_take(&p->far, 0.05, NULL), NOTHING);
  check_status("another SEND", run(&p->q, &s), URMA_CR_SUCCESS);
  check_status("its receive", far_take(&p->far, PATIENCE, NULL), URMA_CR_SUCCESS);
  far_inject("");
}

static void no_receive_for_long(void) {
  for_each_variant_with((struct queue_options){.rnr_retry = 2}, (struct queue_options){0}, no_receive_for_long_body);
}

// ---- the port, the NIC ------------------------------------------------------------------------------------

static void check_event(const char* what, urma_async_event_type_t expected) {
  struct pollfd entry = {.fd = stage.context->async_fd, .events = POLLIN};
  if (poll(&entry, 1, (int)(PATIENCE * 1000)) != 1) return fail_case(what, "no event", "an event");
  urma_async_event_t event;
  check_number("urma_get_async_event", urma_get_async_event(stage.context, &event), URMA_SUCCESS);
  check_number(what, event.event_type, expected);
  urma_ack_async_event(&event);
}

static void port_goes_down(void) {
  struct pair p = open_plain_pair();
  check_write(&p, "a WRITE before", URMA_CR_SUCCESS);
  if (is_daemon()) {
    check_number("the port is not the program's", softub_inject("port down for=300ms"), URMA_ENOPERM);
    return close_pair(&p);
  }
  const double begin = now();
  inject("port down for=300ms");
  check_event("the first event", URMA_EVENT_PORT_DOWN);
  check_write(&p, "a WRITE meanwhile", URMA_CR_SUCCESS);
  check_true("it took as long as the port was down", now() - begin > 0.29);
  check_event("the second event", URMA_EVENT_PORT_ACTIVE);
  check_write(&p, "a WRITE afterwards", URMA_CR_SUCCESS);
  check_number("times that it went down", (long long)injected().ports_down, 1);
  inject("");
  close_pair(&p);
}

// Nobody of ours answers in loopback, where both ends stop.
static void peer_stops(void) {
  if (is_daemon()) return check_number("the NIC is not the program's", far_inject("stop"), URMA_ENOPERM);
  if (stage.loopback) return;
  struct pair p = open_plain_pair();
  check_write(&p, "a WRITE before", URMA_CR_SUCCESS);
  double begin = now();
  check_number("the peer stops", far_inject("stop for=500ms"), URMA_SUCCESS);
  check_write(&p, "a WRITE that waits", URMA_CR_SUCCESS);
  check_true("it took as long as the peer stopped", now() - begin > 0.45);
  check_number("times that it stopped", (long long)far_injected().stops, 1);
  begin = now();
  check_number("the peer stops for ever", far_inject("stop"), URMA_SUCCESS);
  check_write(&p, "a WRITE that nobody answers", URMA_CR_ACK_TIMEOUT_ERR);
  check_true("in bounded time", now() - begin < 8);
  check_number("the peer goes on", far_inject(""), URMA_SUCCESS);
  check_write(&p, "a WRITE afterwards", URMA_CR_SUCCESS);
  close_pair(&p);
}

// What we posted while we were stopped is done when we go on: the time does not count.
static void we_stop(void) {
  if (is_daemon()) return;
  struct pair p = open_plain_pair();
  const double begin = now();
  inject("stop after=50ms for=5s");
  rest_ms(100);
  check_write(&p, "a WRITE", URMA_CR_SUCCESS);
  check_true("it took as long as the stop", now() - begin > 5);
  check_number("times that we stopped", (long long)injected().stops, 1);
  inject("");
  close_pair(&p);
}

// Posted while we are stopped, and waited for by a thread that sleeps.
static void we_stop_and_sleep(void) {
  if (is_daemon()) return;
  urma_jfce_t* channel = urma_create_jfce(stage.context);
  struct pair p = open_pair((struct queue_options){.channel = channel}, (struct queue_options){0});
  struct request r = request_to(&p.far, URMA_OPC_WRITE, BYTES);
  urma_jfc_t* ready = NULL;
  check_write(&p, "a WRITE before", URMA_CR_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    const double begin = now();
    inject("stop for=200ms");
    check_number("urma_rearm_jfc", urma_rearm_jfc(p.q.jfc, false), URMA_SUCCESS);
    check_number("post", post(&p.q, &r), URMA_SUCCESS);
    check_number("urma_wait_jfc", urma_wait_jfc(channel, 1, (int)(PATIENCE * 1000), &ready), 1);
    check_true("it slept as long as the stop", now() - begin > 0.19);
    check_status("the WRITE", wait_completion(&p.q, 0, NULL), URMA_CR_SUCCESS);
    uint32_t events = 1;
    urma_ack_jfc(&ready, &events, 1);
  }
  inject("");
  close_pair(&p);
  check_number("urma_delete_jfce", urma_delete_jfce(channel), URMA_SUCCESS);
}

// ---- text, start ------------------------------------------------------------------------------------------

static void bad_text(void) {
  struct pair p = open_plain_pair();
  inject("completion every=2 status=LOC_LEN_ERR");
  check_write(&p, "the first WRITE", URMA_CR_SUCCESS);
  check_number("no such fault", softub_inject("explode nth=2"), URMA_EINVAL);
  check_number("no such status", softub_inject("completion status=BAD"), URMA_EINVAL);
  check_number("a mistake in the second", softub_inject("rnr; post nth=0"), URMA_EINVAL);
  check_number("no counts", softub_get_injected(NULL), URMA_EINVAL);
  check_write(&p, "the faults from before go on", URMA_CR_LOC_LEN_ERR);
  check_number("no text", softub_inject(NULL), URMA_SUCCESS);
  check_number("counts begin again", (long long)injected().completions, 0);
  close_pair(&p);
}

static void start_with(const char* text) { setenv("SOFTUB_FAULT_INJECT", text, 1); }

// The library was ended.
static void from_the_environment(void) {
  const bool in_daemon =
      getenv("SOFTUB_PLACEMENT_MODE") != NULL && strcmp(getenv("SOFTUB_PLACEMENT_MODE"), "daemon") == 0;
  softub_injected_t counts;
  check_number("softub_inject before the start", softub_inject("rnr"), URMA_FAIL);
  check_number("softub_get_injected before the start", softub_get_injected(&counts), URMA_FAIL);
  start_with("completion nth=0 status=LOC_LEN_ERR");
  check_number("urma_init with a mistake in it", urma_init(NULL), URMA_FAIL);
  start_with("stop after=1000s");
  check_number("urma_init with a fault of the NIC", urma_init(NULL), in_daemon ? URMA_FAIL : URMA_SUCCESS);
  urma_uninit();
  start_with("post nth=2 side=receive");
  urma_context_t* context = open_nic();
  struct queue q = open_queue(context, (struct queue_options){0});
  char bytes[BYTES];
  urma_target_seg_t* memory = register_memory(context, bytes, sizeof bytes, URMA_ACCESS_LOCAL_ONLY);
  check_number("the first receive", urma_recv(q.jfr, memory, (uintptr_t)bytes, BYTES, 1), URMA_SUCCESS);
  check_number("the second one", urma_recv(q.jfr, memory, (uintptr_t)bytes, BYTES, 2), URMA_ENOMEM);
  check_number("the third one", urma_recv(q.jfr, memory, (uintptr_t)bytes, BYTES, 3), URMA_SUCCESS);
  close_queue(&q);
  check_number("urma_unregister_seg", urma_unregister_seg(memory), URMA_SUCCESS);
  check_number("urma_delete_context", urma_delete_context(context), URMA_SUCCESS);
  check_number("urma_uninit", urma_uninit(), URMA_SUCCESS);
}

static const struct test_case cases[] = {
    {"a completion with each status", each_status},
    {"completions of an opcode", of_an_opcode},
    {"completions of a JFC and of a jetty", of_a_queue},
    {"completions by chance", by_chance},
    {"the completion of a receive", of_a_receive},
    {"an error suspends", suspends},
    {"a flush that was asked for", flushes},
    {"receives flushed that were asked for", flushes_receives},
    {"a full send queue that was asked for", full_send_queue},
    {"a full receive queue that was asked for", full_receive_queue},
    {"no receive, tried again", no_receive},
    {"no receive, given up", no_receive_for_long},
    {"the port goes down", port_goes_down},
    {"the peer stops", peer_stops},
    {"we stop", we_stop},
    {"we stop while a thread sleeps", we_stop_and_sleep},
    {"mistakes in the text", bad_text},
};

static const struct test_case finale = {"faults from the environment", from_the_environment};

int main(int argc, char** argv) { return run_program(argc, argv, cases, sizeof cases / sizeof *cases, &finale); }
