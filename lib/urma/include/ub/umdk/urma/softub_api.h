/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extensions of SoftUB to the URMA interface.
 *
 * Idea: a NIC in a daemon reaches memory of a program in two ways. Memory of softub_alloc is shared with it: the NIC
 * copies once, by itself. Any other memory is only known by its address, and the library copies for the NIC. Both
 * are registered by urma_register_seg and used alike; the first is faster. With a NIC in the process itself there is
 * no difference, so a program may always allocate its buffers here.
 */
#ifndef SOFTUB_API_H
#define SOFTUB_API_H

#include <stddef.h>

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Memory that a daemon reaches, and where the NIC runs ----------------------------------------- */

/**
 * Allocates memory that the NIC reaches directly. It is zero, aligned to 64 bytes, from 4096 bytes on to a page, and
 * meant for few large buffers rather than many small ones. Any thread, after urma_init; may block while it asks the
 * daemon for more.
 *
 * @return memory for softub_free, which stays usable after urma_uninit; registering it again then works, too, but
 *         as any other memory. It is not there in the child of a fork.
 *         NULL: errno EINVAL (bytes 0), ENODEV (the library is not started) or ENOMEM.
 */
void* softub_alloc(size_t bytes);

/**
 * Gives memory of softub_alloc back. As long as it is registered it does not serve anybody else. Any thread, at any
 * time, also after urma_uninit. NULL, and what is not from softub_alloc, is ignored.
 */
void softub_free(void* memory);

/**
 * Tells where the NIC runs. Any thread; does not block.
 *
 * @return "embedded" (in this process) or "daemon", a constant; NULL: the library is not started.
 */
const char* softub_placement(void);

/* ---- Faults on demand ---------------------------------------------------------------------------- */

/**
 * Makes things go wrong, so that a program's handling of errors can be tested: completions get another status, posts
 * are refused, messages find no receive, the port goes down, the NIC stops. docs/fault-injection.md has the form of the
 * text and what each fault means; this is one: "completion every=100 status=ACK_TIMEOUT_ERR; post nth=7 error=ENOMEM".
 * The faults take the place of all those before, also of those that the configuration (fault.inject) asked for, and
 * count and time from now. Any thread, between urma_init and urma_uninit, which ends them; a control call, may wait for
 * the daemon. The caller keeps the text.
 *
 * @param text the faults; NULL or "": none.
 * @return URMA_SUCCESS; otherwise all stays as it was, and the log says why in a sentence: URMA_EINVAL: the text has a
 *         mistake; URMA_ENOPERM: "port down" or "stop", and the NIC is a daemon's, where they are set as daemon.inject;
 *         URMA_ENOMEM: no memory, or 64 programs of the daemon have "rnr" already; URMA_FAIL: the library is not
 *         started, or the daemon is gone.
 */
urma_status_t softub_inject(const char* text);

/* How often faults happened. */
typedef struct softub_injected {
  uint64_t completions; /* records that say something else than what happened */
  uint64_t posts;       /* requests and receives that were refused */
  uint64_t rnr;         /* messages that found no receive; each attempt of a message counts */
  uint64_t ports_down;  /* times that the port went down */
  uint64_t stops;       /* times that the NIC stopped */
} softub_injected_t;

/**
 * Tells how often faults happened since they were asked for. Any thread; a control call, may wait for the daemon.
 *
 * @param counts filled in; the caller's.
 * @return URMA_SUCCESS; URMA_EINVAL: counts is NULL; URMA_FAIL: the library is not started.
 */
urma_status_t softub_get_injected(softub_injected_t* counts);

/* ---- An impaired network ------------------------------------------------------------------------- */

/**
 * Changes what is wrong with the network of the NIC, in each direction: a rate, a delay, losses, duplicates, another
 * order, damage, cuts, also in the course of time. docs/impair.md has the form of the texts; this is one:
 * "loss=1% delay=5us; at 2s down; at 12s up". Each text takes the place of the one before, also of that of the
 * configuration (impair.send, impair.receive), and its times count from now. The NIC must have been started with one of
 * these keys, because its wires then are no lossless ones to their peers; "clear" is enough. Any thread, between
 * urma_init and urma_uninit; a control call. The caller keeps the texts.
 *
 * @param send    what happens to frames that the NIC sends; "": nothing; NULL: that stays as it is.
 * @param receive the same for frames that come to it.
 * @return URMA_SUCCESS; otherwise all stays as it was, and the log says why in a sentence: URMA_EINVAL: a text has a
 *         mistake; URMA_ENOPERM: the NIC was started without impairments, or it is a daemon's, where they are set in its
 *         configuration; URMA_ENOMEM: no memory; URMA_FAIL: the library is not started.
 */
urma_status_t softub_impair(const char* send, const char* receive);

/* ---- Which transport serves ----------------------------------------------------------------------- */

/* Packets, by the transport that carried them. */
typedef struct softub_transports {
  uint64_t rtp;         /* the reliable one */
  uint64_t ctp;         /* the compact one, on a wire that loses nothing */
  uint64_t ctp_repeats; /* the compact one where the wire may lose packets: requests without an answer are repeated */
} softub_transports_t;

/**
 * Tells what carried requests to the instance of an imported jetty or JFR: the packets that this program's NIC sent to
 * it, without acknowledgements and on channels that there are now. Which transport serves depends on the wire, the
 * peer and the request, not on the one that the import named: docs/compact-design.md. Datagrams (UM) always go by UTP,
 * which has no channels, and are not counted. Any thread; a control call, may wait for the daemon.
 *
 * @param target  an import of this program that has not been undone. @param packets filled in; the caller's.
 * @return URMA_SUCCESS; URMA_EINVAL: packets is NULL, or target is no import; URMA_ENOMEM: no memory; URMA_FAIL: the
 *         library is not started.
 */
urma_status_t softub_get_transports(const urma_target_jetty_t* target, softub_transports_t* packets);

/*
 * Commands of urma_user_ctl. Their numbers are far from those of bonding devices (urma_ubagg.h).
 */
typedef enum softub_user_ctl_opcode {
  SOFTUB_USER_CTL_SET_TOKEN = 0x50b00001,    /* in: softub_set_token_in_t; out: nothing is written */
  SOFTUB_USER_CTL_SET_EXCLUSIVE = 0x50b00002 /* in: softub_set_exclusive_in_t; out: nothing is written */
} softub_user_ctl_opcode_t;

/**
 * Argument of SOFTUB_USER_CTL_SET_TOKEN: from now on the object asks for `token` and accepts `former` as well. A user is
 * shut out without disturbing the others (UB Base Specification Rev 2.0, 9.4, 11.4) in three steps: set the new value
 * with the present one as `former`; let those who stay import once more with the new value, and go over to that import;
 * set the new value again, with itself as `former`. Whoever presents anything else gets URMA_CR_REM_ACCESS_ABORT_ERR.
 * What was posted before the last step with the former value, and has not arrived by then, fails like that, too.
 *
 * A control call: any thread, may wait for the daemon. The caller keeps all objects and the argument. A jetty has the
 * token of its JFR, unless it is addressed through a group, which has one of its own. What the configuration of the JFR
 * or group says is changed as well: jettys that join a group later need a JFR with the token of that time.
 *
 * urma_user_ctl returns URMA_SUCCESS; URMA_EINVAL: the argument is missing or too short, it names none or several
 * objects, or one that is not of this context, is imported, or asks for no token; another status: the daemon is gone.
 */
typedef struct softub_set_token_in {
  urma_target_seg_t* seg; /* exactly one of these three is not NULL: a segment that was registered here */
  urma_jfr_t* jfr;
  urma_jetty_grp_t* jetty_grp;
  urma_token_t token;
  urma_token_t former; /* the same as `token`: nothing else is accepted */
} softub_set_token_in_t;

/**
 * Argument of SOFTUB_USER_CTL_SET_EXCLUSIVE: exclusive memory (UB Base Specification Rev 2.0, 9.4). A segment that was
 * registered here becomes exclusive: only requests that are marked reach it from now on, and others get
 * URMA_CR_REM_ACCESS_ABORT_ERR. Of a segment that was imported, the requests to it that are posted from now on are
 * marked; those that name it by `user_tseg` never are. Memory that is not exclusive takes both. The mark is no secret:
 * it keeps out whoever does not mean to use exclusive memory, and tokens keep out strangers.
 *
 * A control call: any thread, may wait for the daemon. The caller keeps the segment and the argument.
 *
 * urma_user_ctl returns URMA_SUCCESS; URMA_EINVAL: the argument is missing or too short, `exclusive` is neither 0 nor 1,
 * or the segment is none of this context; another status: the daemon is gone.
 */
typedef struct softub_set_exclusive_in {
  urma_target_seg_t* seg;
  uint32_t exclusive; /* 1; 0: not exclusive, or not marked, as in the beginning */
} softub_set_exclusive_in_t;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* SOFTUB_API_H */
