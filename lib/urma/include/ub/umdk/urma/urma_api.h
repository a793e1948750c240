/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the URMA interface (URMA API 0.9).
 *
 * Idea: a program opens a context on a device, creates queues (JFC, JFS, JFR, jetty) and segments below it,
 * exchanges ids and segment descriptors with its peer by its own means, imports those of the peer, and then
 * posts work requests and polls completions. Nothing but these calls and the types of urma_types.h is needed.
 *
 * Rules that hold for every call unless its comment says otherwise:
 *  - Control calls (create, delete, modify, query, import, register, ...) may be made from any thread and at
 *    the same time on different objects. Two control calls on one object, or any call on an object while
 *    another thread deletes it, must be serialised by the caller. They may take locks and allocate memory. Those
 *    marked BLOCKS wait for peers or for other threads of the program; the others do not.
 *  - Data calls (post, poll, rearm, wait, ack) may be made at the same time on one object, except when it was
 *    created with lock_free; then the caller serialises them. But for urma_wait_jfc they do not block. A thread may
 *    be cancelled in them. A signal handler must not make them.
 *  - Data calls, urma_flush_*, urma_get_async_event and urma_ack_async_event leave errno as it was when they succeed
 *    or find nothing. When they fail they may change it.
 *  - Arguments are borrowed for the time of the call. A returned object belongs to the library; the caller
 *    holds it until the matching delete, free, unimport or unregister call.
 *  - Control calls check the pointers passed and the pointers found in structs passed. Data calls check the
 *    pointers passed only.
 *  - urma_status_t: URMA_SUCCESS (0) or a positive code. URMA_EINVAL always includes "pointer argument NULL".
 *    Pointer results: NULL on failure with errno set; ENOMEM (out of memory) is possible everywhere and
 *    EINVAL always includes "pointer argument NULL". Counts: negative on failure.
 *  - Requests of a send queue complete in the order in which they were posted, and are done at the target in any order,
 *    but: a request with place_order URMA_STRONG_ORDER is done after all earlier ones of its queue that have
 *    URMA_RELAX_ORDER or URMA_STRONG_ORDER, which is what a flag behind data needs; one with fence starts, and those
 *    behind it start, when the results of all earlier READs and atomics are in memory; the receive of a message with
 *    comp_order completes after those of all earlier messages (in RC always). Queues never wait for each other.
 *    Requests of a queue with outorder_comp complete as they finish, and those flags have no meaning there.
 *  - The order_type of a queue says who keeps that order, and so what URMA_STRONG_ORDER costs. URMA_OI (RM): a round
 *    trip, since the request leaves when those before it are answered. URMA_OL (RC, its default): none behind WRITEs
 *    and atomics, which share its channel. URMA_OT (RC): none behind WRITEs, READs that are complete and atomics, with
 *    long messages on a channel of their own. apps/examples/journal.c is a complete program, and docs/guide.md says
 *    when to use which.
 *  - A child keeps its parent alive: deleting a parent first fails cleanly.
 *  - Objects do not survive fork() in the child.
 */
#ifndef URMA_API_H
#define URMA_API_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Start-up, devices, contexts ----------------------------------------------------------------- */

/**
 * Starts the library for the whole process and looks for devices. Must precede all other calls except the
 * log calls and the EID helpers. May block while it contacts the data plane.
 *
 * @param conf wishes, NULL or all zero for defaults.
 * @return URMA_SUCCESS; URMA_EEXIST: already started (harmless for programs that share the process);
 *         URMA_FAIL: no device support could be brought up.
 */
urma_status_t urma_init(urma_init_attr_t* conf);

/**
 * Stops the library: one call undoes urma_init no matter how often that was tried. Device pointers become
 * invalid; objects that were never deleted are given up. Not to be called while other calls are running. BLOCKS until
 * peers are told, and if a thread is still in urma_wait_jfc until that has left, 2 s at most.
 *
 * @return URMA_SUCCESS, also if the library was not started; URMA_FAIL: the device layer did not stop.
 */
urma_status_t urma_uninit(void);

/**
 * Lists all devices after looking for new ones.
 *
 * @param num_devices receives the number of entries, 0 on failure.
 * @return array for urma_free_device_list; the devices themselves stay with the library until urma_uninit.
 *         NULL: errno EINVAL (num_devices NULL), ENODEV (no device) or ENOMEM.
 */
urma_device_t** urma_get_device_list(int* num_devices);

/**
 * Releases the array of urma_get_device_list but not the devices. NULL is allowed.
 */
void urma_free_device_list(urma_device_t** device_list);

/**
 * Finds a device by its exact name.
 *
 * @param dev_name NUL-terminated, shorter than URMA_MAX_NAME; not changed.
 * @return device, owned by the library; NULL: errno EINVAL (name NULL or too long) or ENODEV (unknown).
 */
urma_device_t* urma_get_device_by_name(char* dev_name);

/**
 * Finds the first device of a type that owns an EID.
 *
 * @return device, owned by the library; NULL: errno ENODEV (none has it) or EINVAL (type out of range).
 */
urma_device_t* urma_get_device_by_eid(urma_eid_t eid, urma_transport_type_t type);

/**
 * Lists the EIDs of a device that are in use.
 *
 * @param cnt receives the number of entries.
 * @return array for urma_free_eid_list; NULL: errno EINVAL (argument, or device without EID table), EIO (no
 *         EID set) or ENOMEM.
 */
urma_eid_info_t* urma_get_eid_list(urma_device_t* dev, uint32_t* cnt);

/**
 * Releases the array of urma_get_eid_list. NULL is allowed.
 */
void urma_free_eid_list(urma_eid_info_t* eid_list);

/**
 * Reads limits, abilities and current port states of a device. Cheap, may be called often.
 *
 * @param dev_attr overwritten completely.
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_FAIL: device does not answer.
 */
urma_status_t urma_query_device(urma_device_t* dev, urma_device_attr_t* dev_attr);

/**
 * Opens a device with one of its EIDs. A process may have several contexts, even with the same EID. May block
 * while it contacts the data plane.
 *
 * @param eid_index slot from urma_get_eid_list.
 * @return context for urma_delete_context; NULL: errno EINVAL (argument), EIO (slot empty or device cannot be
 *         opened) or ENOMEM.
 */
urma_context_t* urma_create_context(urma_device_t* dev, uint32_t eid_index);

/**
 * Closes a context.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_EAGAIN: a queue, channel, segment, token id, group,
 *         notifier or imported object of the context still exists.
 */
urma_status_t urma_delete_context(urma_context_t* ctx);

/**
 * Sets an option of a context. The only one is URMA_OPT_AGGR_MODE, on bonding devices.
 *
 * @param opt_value urma_context_aggr_mode_t; opt_len its exact size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, unknown option, wrong size, or not a bonding device.
 */
urma_status_t urma_set_context_opt(urma_context_t* ctx, urma_opt_name_t opt_name, const void* opt_value,
                                   size_t opt_len);

/**
 * Reads the user address-space id of the process. Outdated: use urma_context_t.uasid.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_FAIL: not available.
 */
urma_status_t urma_get_uasid(uint32_t* uasid);

/* ---- JFC: completion queue, JFCE: event channel -------------------------------------------------- */

/**
 * Creates a completion queue. No event is raised before urma_rearm_jfc.
 *
 * @param jfc_cfg jfce may be NULL (polling only), otherwise the channel is kept alive by the queue.
 * @return queue for urma_delete_jfc; NULL: errno EINVAL (argument, depth not in 1 .. max_jfc_depth, ceqn
 *         out of range, channel of another context), EIO (device) or ENOMEM.
 */
urma_jfc_t* urma_create_jfc(urma_context_t* ctx, urma_jfc_cfg_t* jfc_cfg);

/**
 * Changes the event moderation of a completion queue: an event that urma_rearm_jfc asked for then tells of several
 * records. It comes when moderate_count of them have come, or moderate_period after the first one, whichever is sooner;
 * if there is no period, it waits until there are enough. Records count from the last urma_rearm_jfc on, and those that
 * were unread then, too. Solicited records and errors are told at once; armed for solicited ones only, a queue tells of
 * nothing else. New values apply at once, also to a queue that is armed. Any thread.
 *
 * @param attr mask: which of the two values change (JFC_MODERATE_COUNT, JFC_MODERATE_PERIOD); the other one stays.
 *        moderate_count: records, 0: their number does not matter; more than the depth of the queue count as that.
 *        moderate_period: microseconds, 0: the time does not matter. Both 0, as at first, or a moderate_count of 1: each
 *        record is told at once. The structure stays the caller's.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, unknown mask bit, or queue inactive; URMA_FAIL: device.
 */
urma_status_t urma_modify_jfc(urma_jfc_t* jfc, urma_jfc_attr_t* attr);

/**
 * Deletes a completion queue; delete the queues that report to it first. Unpolled records and events nobody
 * collected are dropped. BLOCKS until every event that was handed out (urma_wait_jfc, urma_get_async_event)
 * is acked, unless the queue is non_blocking.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or queue inactive (use urma_free_jfc); URMA_EAGAIN:
 *         non_blocking and acks are missing; URMA_FAIL: still used by another queue, or device.
 */
urma_status_t urma_delete_jfc(urma_jfc_t* jfc);

/**
 * Deletes several completion queues of one device. All are checked before the first is deleted. BLOCKS like
 * urma_delete_jfc.
 *
 * @param bad_jfc receives the first entry that was not deleted; jfc_arr[0] if the check fails.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, jfc_num < 1, entry NULL or inactive, or different devices;
 *         otherwise the code of the deletion that failed (URMA_EAGAIN, URMA_FAIL).
 */
urma_status_t urma_delete_jfc_batch(urma_jfc_t** jfc_arr, int jfc_num, urma_jfc_t** bad_jfc);

/**
 * Creates an event channel. Its fd becomes readable while an event waits and may be polled, also set to
 * O_NONBLOCK, but neither read nor closed.
 *
 * @return channel for urma_delete_jfce; NULL: errno EINVAL (argument), EMFILE/ENFILE (no descriptor left),
 *         EIO (device) or ENOMEM.
 */
urma_jfce_t* urma_create_jfce(urma_context_t* ctx);

/**
 * Deletes an event channel and closes its fd. Threads that wait in urma_wait_jfc for it return -1. BLOCKS until they
 * have left, about a second at most.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_FAIL: completion queues are still attached.
 */
urma_status_t urma_delete_jfce(urma_jfce_t* jfce);

/**
 * Takes completion records out of a queue, oldest first. Never blocks.
 *
 * @param cr_cnt room in records; 0 is allowed.
 * @param cr array to fill; need not be initialised.
 * @return number of records, 0 if the queue is empty; -1: argument NULL, cr_cnt negative, or queue inactive.
 */
int urma_poll_jfc(urma_jfc_t* jfc, int cr_cnt, urma_cr_t* cr);

/**
 * Asks for one event at the channel of the queue: at once if records are waiting, else with the next one.
 *
 * @param solicited_only true: only errors and received messages sent with solicited_enable count.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, queue inactive or without channel.
 */
urma_status_t urma_rearm_jfc(urma_jfc_t* jfc, bool solicited_only);

/**
 * Collects completion events of a channel. BLOCKS up to time_out; any number of threads may wait. Each queue
 * returned must later be passed to urma_ack_jfc, and rearmed if further events are wanted.
 *
 * @param jfc_cnt entries of jfc[].
 * @param time_out milliseconds; 0: only look; -1: no limit.
 * @param jfc receives the queues that have an event.
 * @return number of entries filled; 0: time is over or a signal came (then errno is EINTR); -1: argument
 *         NULL, jfc_cnt 0, or channel broken.
 */
int urma_wait_jfc(urma_jfce_t* jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t* jfc[]);

/**
 * Confirms events from urma_wait_jfc, so that the queues can be deleted. Takes a lock for each entry: confirm
 * many events with one call where speed counts.
 *
 * @param nevents number of events for each queue. Entries that are NULL or have 0 events are skipped.
 */
void urma_ack_jfc(urma_jfc_t* jfc[], uint32_t nevents[], uint32_t jfc_cnt);

/* ---- JFS: send queue ----------------------------------------------------------------------------- */

/**
 * Creates a send-only queue in state READY.
 *
 * @param jfs_cfg if order_type is 0, the default of the transport mode is stored here.
 * @return queue for urma_delete_jfs; NULL: errno EINVAL (argument, jfc NULL, not exactly one transport mode,
 *         order type not allowed in it, depth, max_sge, max_rsge or max_inline_data above the limits), EIO
 *         (device) or ENOMEM.
 */
urma_jfs_t* urma_create_jfs(urma_context_t* ctx, urma_jfs_cfg_t* jfs_cfg);

/**
 * Changes the state of a send queue. ERROR starts the flush: running WRs complete with URMA_CR_WR_FLUSH_ERR,
 * then exactly one URMA_CR_WR_FLUSH_ERR_DONE follows. READY out of ERROR or SUSPENDED empties and restarts
 * it. Returns before the flush is over.
 *
 * @param attr mask must hold JFS_STATE.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, mask, or transition not allowed; URMA_EAGAIN: the flush that must end
 *         first is not over, poll and try again; URMA_FAIL: device.
 */
urma_status_t urma_modify_jfs(urma_jfs_t* jfs, urma_jfs_attr_t* attr);

/**
 * Reads configuration and state of a send queue.
 *
 * @param cfg overwritten. @param attr overwritten.
 * @return URMA_SUCCESS; URMA_EINVAL: argument or queue inactive.
 */
urma_status_t urma_query_jfs(urma_jfs_t* jfs, urma_jfs_cfg_t* cfg, urma_jfs_attr_t* attr);

/**
 * Deletes a send queue and removes its records from its completion queue. BLOCKS until asynchronous events
 * handed out for it are acked, unless the queue is non_blocking.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or queue inactive (use urma_free_jfs); URMA_EAGAIN:
 *         non_blocking and acks are missing; URMA_FAIL: device.
 */
urma_status_t urma_delete_jfs(urma_jfs_t* jfs);

/**
 * Deletes several send queues of one device. All are checked before the first is deleted. BLOCKS like
 * urma_delete_jfs.
 *
 * @param bad_jfs receives the first entry that was not deleted; jfs_arr[0] if the check fails.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, jfs_num < 1, entry NULL or inactive, or different devices;
 *         otherwise the code of the deletion that failed (URMA_EAGAIN, URMA_FAIL).
 */
urma_status_t urma_delete_jfs_batch(urma_jfs_t** jfs_arr, int jfs_num, urma_jfs_t** bad_jfs);

/**
 * Hands back WRs of a queue in ERROR that were never started, as records with status URMA_CR_WR_UNHANDLED.
 * Gives nothing before URMA_CR_WR_FLUSH_ERR_DONE was polled. One thread at a time.
 *
 * @param cr_cnt room in records, 1 .. depth.
 * @return number of records, 0 if none is left; -URMA_EINVAL: argument or cr_cnt out of range.
 */
int urma_flush_jfs(urma_jfs_t* jfs, int cr_cnt, urma_cr_t* cr);

/* ---- JFR: receive queue -------------------------------------------------------------------------- */

/**
 * Creates a receive queue in state READY. Peers can address it, jettys can share it.
 *
 * @param jfr_cfg if order_type is 0, the default of the transport mode is stored here. A wanted id that is
 *        taken may be replaced by another.
 * @return queue for urma_delete_jfr; NULL: errno EINVAL (argument, jfc NULL, transport mode, order type,
 *         token policy, depth, max_sge or min_rnr_timer out of range), EIO (device) or ENOMEM.
 */
urma_jfr_t* urma_create_jfr(urma_context_t* ctx, urma_jfr_cfg_t* jfr_cfg);

/**
 * Changes the state (JFR_STATE) and/or the low-water mark (JFR_RX_THRESHOLD) of a receive queue. In ERROR
 * all posted receives complete with URMA_CR_WR_FLUSH_ERR.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument, mask empty or unknown, transition not allowed, or mark above
 *         depth; URMA_FAIL: device.
 */
urma_status_t urma_modify_jfr(urma_jfr_t* jfr, urma_jfr_attr_t* attr);

/**
 * Reads configuration, low-water mark and state of a receive queue.
 *
 * @param cfg overwritten. @param attr overwritten.
 * @return URMA_SUCCESS; URMA_EINVAL: argument or queue inactive.
 */
urma_status_t urma_query_jfr(urma_jfr_t* jfr, urma_jfr_cfg_t* cfg, urma_jfr_attr_t* attr);

/**
 * Deletes a receive queue; delete the jettys that share it first. BLOCKS until asynchronous events handed
 * out for it are acked, unless the queue is non_blocking.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or queue inactive (use urma_free_jfr); URMA_EAGAIN:
 *         non_blocking and acks are missing; URMA_FAIL: still used by a jetty, or device.
 */
urma_status_t urma_delete_jfr(urma_jfr_t* jfr);

/**
 * Deletes several receive queues of one device. All are checked before the first is deleted. BLOCKS like
 * urma_delete_jfr.
 *
 * @param bad_jfr receives the first entry that was not deleted; jfr_arr[0] if the check fails.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, jfr_num < 1, entry NULL or inactive, or different devices;
 *         otherwise the code of the deletion that failed (URMA_EAGAIN, URMA_FAIL).
 */
urma_status_t urma_delete_jfr_batch(urma_jfr_t** jfr_arr, int jfr_num, urma_jfr_t** bad_jfr);

/**
 * Makes a remote receive queue addressable. The remote queue need not exist yet if the description has a uasid.
 * A wrong token shows only when it is used. BLOCKS like urma_import_jetty.
 *
 * @param rjfr description received from the peer; if order_type is 0, the default is stored here.
 * @param token_value secret of the remote queue; NULL only with URMA_TOKEN_NONE.
 * @return target for urma_unimport_jfr; NULL: errno EINVAL (argument, token missing, transport mode, order
 *         type or channel type), EIO (device) or ENOMEM.
 */
urma_target_jetty_t* urma_import_jfr(urma_context_t* ctx, urma_rjfr_t* rjfr, urma_token_t* token_value);

/**
 * urma_import_jfr over a given transport channel. The channel is the one that urma_import_jfr would use; of `cfg`
 * only tp_handle is looked at.
 *
 * @param token_value must not be NULL. @param cfg channel from urma_get_tp_list, must not be NULL.
 * @return as urma_import_jfr; also errno EINVAL for a channel of another context, peer EID or transport mode.
 */
urma_target_jetty_t* urma_import_jfr_ex(urma_context_t* ctx, urma_rjfr_t* rjfr, urma_token_t* token_value,
                                        urma_import_jfr_ex_cfg_t* cfg);

/**
 * Releases an imported receive queue. WRs that name it must have completed.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_FAIL: device.
 */
urma_status_t urma_unimport_jfr(urma_target_jetty_t* target_jfr);

/**
 * Asks to set up the channel from a send queue to an imported receive queue in advance. RM only. UB devices
 * have nothing to do and succeed at once.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument, different contexts, or not RM; URMA_EEXIST: already asked for, never
 *         said by UB devices.
 */
urma_status_t urma_advise_jfr(urma_jfs_t* jfs, urma_target_jetty_t* tjfr);

/**
 * urma_advise_jfr with the result passed to a callback from a library thread. UB devices do not call back.
 *
 * @param cb_fun called once with the result and cb_arg; both must not be NULL.
 * @return URMA_SUCCESS: started or not needed; URMA_EINVAL: argument, different contexts, or not RM.
 */
urma_status_t urma_advise_jfr_async(urma_jfs_t* jfs, urma_target_jetty_t* tjfr, urma_advise_async_cb_func cb_fun,
                                    void* cb_arg);

/**
 * Takes back urma_advise_jfr.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument, different contexts, or not RM.
 */
urma_status_t urma_unadvise_jfr(urma_jfs_t* jfs, urma_target_jetty_t* tjfr);

/* ---- Jetty: endpoint that sends and receives ----------------------------------------------------- */

/**
 * Creates a jetty in state READY. On UB devices its receive side is a shared JFR (share_jfr = 1) with the
 * same transport mode and order type.
 *
 * @param jetty_cfg shared.jfc may be NULL for the JFC of the JFR; if the send order_type is 0, the default
 *        is stored here. A wanted id that is taken may be replaced by another.
 * @return jetty for urma_delete_jetty; NULL: errno EINVAL (argument, JFC missing, transport mode, share_jfr
 *         0 on UB, order type, JFR with other mode or order, group that does not fit, limit exceeded), EIO
 *         (device) or ENOMEM.
 */
urma_jetty_t* urma_create_jetty(urma_context_t* ctx, urma_jetty_cfg_t* jetty_cfg);

/**
 * Changes the state of a jetty; see urma_modify_jfs for ERROR and READY. Returns before the flush is over.
 *
 * @param attr mask must be JETTY_STATE; JETTY_RX_THRESHOLD belongs to the shared JFR and is not supported.
 * @return as urma_modify_jfs.
 */
urma_status_t urma_modify_jetty(urma_jetty_t* jetty, urma_jetty_attr_t* attr);

/**
 * Reads the send-side configuration and the state of a jetty; the shared JFR is not reported.
 *
 * @param cfg overwritten. @param attr overwritten.
 * @return URMA_SUCCESS; URMA_EINVAL: argument or jetty inactive.
 */
urma_status_t urma_query_jetty(urma_jetty_t* jetty, urma_jetty_cfg_t* cfg, urma_jetty_attr_t* attr);

/**
 * Deletes a jetty, takes it out of its group and removes its records from its completion queues. BLOCKS until
 * asynchronous events handed out for it are acked, unless the jetty is non_blocking.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or jetty inactive (use urma_free_jetty); URMA_ENOPERM: still
 *         bound; URMA_EAGAIN: non_blocking and acks are missing; URMA_FAIL: device.
 */
urma_status_t urma_delete_jetty(urma_jetty_t* jetty);

/**
 * Deletes several jettys of one device. All are checked before the first is deleted. BLOCKS like
 * urma_delete_jetty.
 *
 * @param bad_jetty receives the first entry that was not deleted; jetty_arr[0] if the check fails.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, jetty_num < 1, entry NULL or inactive, or different devices;
 *         URMA_ENOPERM: one is still bound; otherwise the code of the deletion that failed.
 */
urma_status_t urma_delete_jetty_batch(urma_jetty_t** jetty_arr, int jetty_num, urma_jetty_t** bad_jetty);

/**
 * Makes a remote jetty or group addressable. A wrong token shows only when it is used. RC needs urma_bind_jetty in
 * addition.
 * With a uasid the remote object need not exist yet; BLOCKS until another process of this host accepts a
 * shared-memory link, 100 ms at most; with other hosts it does not wait. Without one (0) the object must exist:
 * BLOCKS until its host says who holds the id, 4 s at most, and fails with EIO if nobody does or nobody answers.
 *
 * @param rjetty description received from the peer, with tp_type filled in; if order_type is 0, the default
 *        is stored here.
 * @param token_value secret of the remote object; NULL only with URMA_TOKEN_NONE.
 * @return target for urma_unimport_jetty; NULL: errno EINVAL (argument, token missing, transport mode,
 *         order type, URMA_UTP outside UM, URMA_RTP in UM), EIO (device) or ENOMEM.
 */
urma_target_jetty_t* urma_import_jetty(urma_context_t* ctx, urma_rjetty_t* rjetty, urma_token_t* token_value);

/**
 * urma_import_jetty over a given transport channel. The channel is the one that urma_import_jetty would use; of `cfg`
 * only tp_handle is looked at.
 *
 * @param token_value must not be NULL. @param cfg channel from urma_get_tp_list, must not be NULL.
 * @return as urma_import_jetty; also errno EINVAL for a channel of another context, peer EID or transport mode.
 */
urma_target_jetty_t* urma_import_jetty_ex(urma_context_t* ctx, urma_rjetty_t* rjetty, urma_token_t* token_value,
                                          urma_import_jetty_ex_cfg_t* cfg);

/**
 * Releases an imported jetty or group. WRs that name it must have completed. A jetty still bound to it is
 * unbound.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_FAIL: device.
 */
urma_status_t urma_unimport_jetty(urma_target_jetty_t* tjetty);

/**
 * Asks to set up the channel to an imported jetty in advance. RM only. UB devices have nothing to do and
 * succeed at once.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument, different contexts, or not RM; URMA_EEXIST: already asked for, never
 *         said by UB devices.
 */
urma_status_t urma_advise_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty);

/**
 * Takes back urma_advise_jetty.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument, different contexts, or not RM.
 */
urma_status_t urma_unadvise_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty);

/**
 * Connects an RC jetty with an imported RC jetty, one to one. Each side binds by itself and in any order;
 * sending may start when the own bind has returned.
 *
 * @return URMA_SUCCESS, also for a pair already bound; URMA_EINVAL: argument, different contexts, or target
 *         bound to another jetty; URMA_ENOPERM: not RC on both sides, or the order type with which the target was
 *         imported is not that of the jetty; URMA_EEXIST:
 *         jetty bound to another target; URMA_FAIL: device.
 */
urma_status_t urma_bind_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty);

/**
 * urma_bind_jetty over a given transport channel, the one that urma_bind_jetty would use.
 *
 * @param cfg channel from urma_get_tp_list, must not be NULL.
 * @return as urma_bind_jetty; also URMA_EINVAL for a channel of another context, peer EID or transport mode.
 */
urma_status_t urma_bind_jetty_ex(urma_jetty_t* jetty, urma_target_jetty_t* tjetty, urma_bind_jetty_ex_cfg_t* cfg);

/**
 * Disconnects an RC jetty. Posting fails until the next bind.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or not bound; URMA_ENOPERM: not RC.
 */
urma_status_t urma_unbind_jetty(urma_jetty_t* jetty);

/**
 * Hands back WRs of a jetty in ERROR that were never started; see urma_flush_jfs. One thread at a time.
 *
 * @param cr_cnt room in records, 1 .. depth of the send side.
 * @return number of records, 0 if none is left; -URMA_EINVAL: argument or cr_cnt out of range.
 */
int urma_flush_jetty(urma_jetty_t* jetty, int cr_cnt, urma_cr_t* cr);

/**
 * Describes a local jetty in the form that the peer passes to urma_import_jetty.
 *
 * @param rjetty receives malloc'ed memory for urma_put_rjetty. @param length receives its size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument or no shared JFR; URMA_ENOMEM: out of memory.
 */
urma_status_t urma_get_rjetty(urma_jetty_t* jetty, urma_rjetty_t** rjetty, uint32_t* length);

/**
 * Releases a description with free(); also accepts malloc'ed memory of the caller and NULL.
 */
void urma_put_rjetty(urma_rjetty_t* rjetty);

/* ---- Asynchronous connect ------------------------------------------------------------------------ */

/**
 * Creates a channel for the results of asynchronous imports and binds; its fd can be polled. It is readable exactly
 * while a result waits; do not read it.
 *
 * @return notifier for urma_delete_notifier; NULL: errno EINVAL (argument), EMFILE/ENFILE (no descriptor
 *         left), EIO (device) or ENOMEM.
 */
urma_notifier_t* urma_create_notifier(urma_context_t* ctx);

/**
 * Deletes a notifier; outstanding imports are cancelled, uncollected results dropped. The targets remain to be
 * released, also those that never became usable.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument.
 */
urma_status_t urma_delete_notifier(urma_notifier_t* notifier);

/**
 * Starts urma_import_jetty. The target may be used after urma_wait_notify reported success for it; before, and if the
 * import fails, every call but those that release it answers URMA_EINVAL. Does not block: a thread of the library
 * carries imports out one after the other. As with urma_import_jetty success means that a way to the peer was found
 * and the channel begun, not that the peer answered: it may start later.
 *
 * @param rjetty is not changed; the target has the default order type if it is 0.
 * @param user_ctx repeated in the result. @param timeout milliseconds, -1: no limit.
 * @return target for urma_unimport_jetty_async, also needed if the import fails later; NULL: nothing was
 *         started and no result comes, errno as in urma_import_jetty. Results: URMA_SUCCESS, URMA_ETIMEOUT,
 *         URMA_FAIL (no way to the peer, or device) or URMA_ENOMEM.
 */
urma_target_jetty_t* urma_import_jetty_async(urma_notifier_t* notifier, const urma_rjetty_t* rjetty,
                                             const urma_token_t* token_value, uint64_t user_ctx, int timeout);

/**
 * Releases a target of urma_import_jetty_async at any time; an outstanding import is cancelled and a result that
 * nobody collected is dropped. No result is reported.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument.
 */
urma_status_t urma_unimport_jetty_async(urma_target_jetty_t* tjetty);

/**
 * Starts urma_bind_jetty. Arguments are checked at once, the rest is reported by urma_wait_notify. Binding waits for
 * no peer, so the result is there when the call returns.
 *
 * @param user_ctx repeated in the result. @param timeout milliseconds, -1: no limit; never runs out.
 * @return URMA_SUCCESS: a result will come; otherwise nothing was started: URMA_EINVAL: argument, different
 *         contexts, or target bound to another jetty; URMA_ENOPERM: not RC, or order types differ;
 *         URMA_EEXIST: jetty bound to another target; URMA_ENOMEM. Results: URMA_SUCCESS or URMA_FAIL (device).
 */
urma_status_t urma_bind_jetty_async(urma_notifier_t* notifier, urma_jetty_t* jetty, urma_target_jetty_t* tjetty,
                                    uint64_t user_ctx, int timeout);

/**
 * urma_unbind_jetty; a result of the bind that nobody collected is dropped, and no other is reported.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or not bound; URMA_ENOPERM: not RC.
 */
urma_status_t urma_unbind_jetty_async(urma_jetty_t* jetty);

/**
 * Collects results of a notifier. BLOCKS up to timeout, whatever signals come; any number of threads may wait.
 *
 * @param cnt entries of notify[], 0 returns 0. @param timeout milliseconds; 0: only look; -1: no limit.
 * @return number of results; 0: time is over; -1: argument or notifier broken.
 */
int urma_wait_notify(urma_notifier_t* notifier, uint32_t cnt, urma_notify_t* notify, int timeout);

/**
 * Has no effect; exists for programs that confirm results.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument.
 */
urma_status_t urma_ack_notify(urma_context_t* ctx, uint32_t cnt, urma_notify_t* notify);

/* ---- Step-wise creation -----------------------------------------------------------------------------
 *
 * alloc gives an inactive object, set_*_opt adjusts it, active makes it usable, deactive stops it, free
 * removes it. get_*_opt works in every state. Activate in the order JFC, JFR and JFS, jetty. An option
 * number is one of URMA_JFC_*, URMA_JFS_*, URMA_JFR_*, URMA_JETTY_* (urma_opcode.h); `len` must be exactly
 * the size of the option:
 *  - options that mirror a member of the _cfg_t: size of that member (pointers: 8 bytes);
 *  - base address and doorbell address 8, id 4, doorbell status 1, PI, PI type and CI 2 bytes; they are stored
 *    and can be read back, and their bit in urma_*_opt_t tells that they were set. A wanted JFS, JFR or jetty id
 *    (3 .. 2^20 - 1) is given if it is free; once active, the option is the id that was given. The others have no
 *    effect here, for the rings are the library's own;
 *  - *_FULL_CTX is not supported.
 * An object created in one step (urma_create_*) is active, and can be stopped and started like the others. While
 * inactive an object keeps its handle, its configuration and its context, but no ids or requests, and every other
 * call refuses it; it ends with free. urma_delete_* is deactive and free in one, for any active object.
 */

/**
 * Allocates an inactive completion queue.
 *
 * @param cfg start values. @param jfc receives the queue, for urma_free_jfc.
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_ENOMEM: out of memory.
 */
urma_status_t urma_alloc_jfc(urma_context_t* urma_ctx, urma_jfc_cfg_t* cfg, urma_jfc_t** jfc);

/**
 * Sets an option of an inactive completion queue.
 *
 * @param buf value, copied. @param len its size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, unknown option, wrong size, or queue active.
 */
urma_status_t urma_set_jfc_opt(urma_jfc_t* jfc, uint64_t opt, void* buf, uint32_t len);

/**
 * Checks the configuration and makes a completion queue usable.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument, already active, or the configuration is one urma_create_jfc
 *         rejects; URMA_ENOMEM: out of memory; URMA_FAIL: device.
 */
urma_status_t urma_active_jfc(urma_jfc_t* jfc);

/**
 * Reads an option of a completion queue, active or not.
 *
 * @param buf receives the value. @param len its size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, option 0 or unknown, size 0 or wrong.
 */
urma_status_t urma_get_jfc_opt(urma_jfc_t* jfc, uint64_t opt, void* buf, uint32_t len);

/**
 * Stops an active completion queue. BLOCKS like urma_delete_jfc.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or not active; URMA_EAGAIN: non_blocking and acks are
 *         missing; URMA_FAIL: still used, or device.
 */
urma_status_t urma_deactive_jfc(urma_jfc_t* jfc);

/**
 * Releases an inactive completion queue.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or still active.
 */
urma_status_t urma_free_jfc(urma_jfc_t* jfc);

/**
 * Allocates an inactive send queue.
 *
 * @param cfg start values, jfc must be set. @param jfs receives the queue, for urma_free_jfs.
 * @return URMA_SUCCESS; URMA_EINVAL: argument or jfc NULL; URMA_ENOMEM: out of memory.
 */
urma_status_t urma_alloc_jfs(urma_context_t* urma_ctx, urma_jfs_cfg_t* cfg, urma_jfs_t** jfs);

/**
 * Sets an option of an inactive send queue.
 *
 * @param buf value, copied. @param len its size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, unknown option, wrong size, or queue active.
 */
urma_status_t urma_set_jfs_opt(urma_jfs_t* jfs, uint64_t opt, void* buf, uint32_t len);

/**
 * Checks the configuration and makes a send queue usable.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument, already active, JFC not active, or the configuration is one
 *         urma_create_jfs rejects; URMA_ENOMEM: out of memory; URMA_FAIL: device.
 */
urma_status_t urma_active_jfs(urma_jfs_t* jfs);

/**
 * Reads an option of a send queue, active or not.
 *
 * @param buf receives the value. @param len its size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, option 0 or unknown, size 0 or wrong.
 */
urma_status_t urma_get_jfs_opt(urma_jfs_t* jfs, uint64_t opt, void* buf, uint32_t len);

/**
 * Stops an active send queue. BLOCKS like urma_delete_jfs.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or not active; URMA_EAGAIN: non_blocking and acks are
 *         missing; URMA_FAIL: device.
 */
urma_status_t urma_deactive_jfs(urma_jfs_t* jfs);

/**
 * Releases an inactive send queue.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or still active.
 */
urma_status_t urma_free_jfs(urma_jfs_t* jfs);

/**
 * Allocates an inactive receive queue.
 *
 * @param cfg start values, jfc must be set. @param jfr receives the queue, for urma_free_jfr.
 * @return URMA_SUCCESS; URMA_EINVAL: argument or jfc NULL; URMA_ENOMEM: out of memory.
 */
urma_status_t urma_alloc_jfr(urma_context_t* urma_ctx, urma_jfr_cfg_t* cfg, urma_jfr_t** jfr);

/**
 * Sets an option of an inactive receive queue.
 *
 * @param buf value, copied. @param len its size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, unknown option, wrong size, or queue active.
 */
urma_status_t urma_set_jfr_opt(urma_jfr_t* jfr, uint64_t opt, void* buf, uint32_t len);

/**
 * Checks the configuration and makes a receive queue usable.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument, already active, JFC not active, or the configuration is one
 *         urma_create_jfr rejects; URMA_ENOMEM: out of memory; URMA_FAIL: device.
 */
urma_status_t urma_active_jfr(urma_jfr_t* jfr);

/**
 * Reads an option of a receive queue, active or not.
 *
 * @param buf receives the value. @param len its size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, option 0 or unknown, size 0 or wrong.
 */
urma_status_t urma_get_jfr_opt(urma_jfr_t* jfr, uint64_t opt, void* buf, uint32_t len);

/**
 * Stops an active receive queue. BLOCKS like urma_delete_jfr.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or not active; URMA_EAGAIN: non_blocking and acks are
 *         missing; URMA_FAIL: still used, or device.
 */
urma_status_t urma_deactive_jfr(urma_jfr_t* jfr);

/**
 * Releases an inactive receive queue.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or still active.
 */
urma_status_t urma_free_jfr(urma_jfr_t* jfr);

/**
 * Allocates an inactive jetty; it joins cfg->jetty_grp if that is set.
 *
 * @param cfg start values, jfs_cfg.jfc must be set. @param jetty receives the jetty, for urma_free_jetty.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, JFC NULL, or group that does not fit; URMA_ENOMEM: out of
 *         memory.
 */
urma_status_t urma_alloc_jetty(urma_context_t* urma_ctx, urma_jetty_cfg_t* cfg, urma_jetty_t** jetty);

/**
 * Sets an option of an inactive jetty: URMA_JETTY_* or, for its send side, URMA_JFS_*. A new group makes
 * the jetty leave the old one.
 *
 * @param buf value, copied. @param len its size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, unknown option, wrong size, group that does not fit, or
 *         jetty active.
 */
urma_status_t urma_set_jetty_opt(urma_jetty_t* jetty, uint64_t opt, void* buf, uint32_t len);

/**
 * Checks the configuration and makes a jetty usable.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument, already active, JFR or JFC not active, or the configuration
 *         is one urma_create_jetty rejects; URMA_ENOMEM: out of memory; URMA_FAIL: device.
 */
urma_status_t urma_active_jetty(urma_jetty_t* jetty);

/**
 * Reads an option of a jetty, active or not; numbers as in urma_set_jetty_opt.
 *
 * @param buf receives the value. @param len its size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, option 0 or unknown, size 0 or wrong.
 */
urma_status_t urma_get_jetty_opt(urma_jetty_t* jetty, uint64_t opt, void* buf, uint32_t len);

/**
 * Stops an active jetty. BLOCKS like urma_delete_jetty.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or not active; URMA_ENOPERM: still bound; URMA_EAGAIN:
 *         non_blocking and acks are missing; URMA_FAIL: device.
 */
urma_status_t urma_deactive_jetty(urma_jetty_t* jetty);

/**
 * Releases an inactive jetty and takes it out of its group.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or still active; URMA_ENOPERM: still bound.
 */
urma_status_t urma_free_jetty(urma_jetty_t* jetty);

/* ---- Jetty groups -------------------------------------------------------------------------------- */

/**
 * Creates a group that jettys join with urma_jetty_cfg_t.jetty_grp; a name already in use in the context
 * yields the existing group.
 *
 * @return group for urma_delete_jetty_grp; NULL: errno EINVAL (argument, name not terminated, policy, or
 *         device without usable max_jetty_in_jetty_grp), EIO (device) or ENOMEM.
 */
urma_jetty_grp_t* urma_create_jetty_grp(urma_context_t* ctx, urma_jetty_grp_cfg_t* cfg);

/**
 * Deletes an empty group. BLOCKS until asynchronous events handed out for it are acked.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_ENOPERM: jettys are still in it.
 */
urma_status_t urma_delete_jetty_grp(urma_jetty_grp_t* jetty_grp);

/* ---- Token ids and segments ---------------------------------------------------------------------- */

/**
 * Allocates a token id, the key number under which peers find a segment.
 *
 * @return token id for urma_free_token_id; NULL: errno EINVAL (argument), EIO (device) or ENOMEM (also:
 *         none left).
 */
urma_token_id_t* urma_alloc_token_id(urma_context_t* ctx);

/**
 * urma_alloc_token_id with flags.
 *
 * @param flag multi_seg: the id may serve several segments; needs the feature muti_seg_per_token_id.
 * @return as urma_alloc_token_id; also errno EINVAL if the feature is missing.
 */
urma_token_id_t* urma_alloc_token_id_ex(urma_context_t* ctx, urma_token_id_flag_t flag);

/**
 * Releases a token id.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or a segment uses it.
 */
urma_status_t urma_free_token_id(urma_token_id_t* token_id);

/**
 * Registers memory for local use and, as allowed by the access bits, for peers. The memory stays the
 * caller's and must stay mapped until urma_unregister_seg. May block while pages or mappings are set up.
 *
 * @param seg_cfg without token id, the library allocates one and frees it with the segment.
 * @return segment for urma_unregister_seg; NULL: errno EINVAL (argument, va 0, len 0, access bits or token
 *         policy not allowed, token_id without token_id_valid or the reverse, memory of a softub_map window),
 *         EIO (device or memory not usable) or ENOMEM.
 */
urma_target_seg_t* urma_register_seg(urma_context_t* ctx, urma_seg_cfg_t* seg_cfg);

/**
 * Withdraws a registered segment. BLOCKS until no transfer touches the memory any more; it may then be
 * freed at once.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_FAIL: device.
 */
urma_status_t urma_unregister_seg(urma_target_seg_t* target_seg);

/**
 * Makes a remote segment usable in WRs. A wrong token shows only when the segment is used. With a uasid this is local
 * work. Without one (0) it BLOCKS until the holder of the token id is known, as urma_import_jetty.
 *
 * @param seg descriptor received from the peer. @param token_value its secret; NULL only with
 *        URMA_TOKEN_NONE.
 * @param addr wanted local address, only with flag.bs.mapping.
 * @return segment for urma_unimport_seg; NULL: errno EINVAL (argument, token missing, access bits, mapping
 *         not supported), EIO (device) or ENOMEM.
 */
urma_target_seg_t* urma_import_seg(urma_context_t* ctx, urma_seg_t* seg, urma_token_t* token_value, uint64_t addr,
                                   urma_import_seg_flag_t flag);

/**
 * Releases an imported segment. WRs that name it must have completed.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument.
 */
urma_status_t urma_unimport_seg(urma_target_seg_t* tseg);

/**
 * Copies the descriptor of a registered segment in the form that the peer passes to urma_import_seg.
 *
 * @param seg receives malloc'ed memory for urma_put_seg_ctx. @param size receives its size in bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_ENOMEM: out of memory.
 */
urma_status_t urma_get_seg_ctx(urma_target_seg_t* tseg, urma_seg_t** seg, uint32_t* size);

/**
 * Releases a descriptor with free(); also accepts malloc'ed memory of the caller and NULL.
 */
void urma_put_seg_ctx(urma_seg_t* seg);

/* ---- Posting ----------------------------------------------------------------------------------------
 *
 * A chain (wr->next) is posted from its head. At the first WR that cannot be posted the call stops: earlier
 * ones stay posted, *bad_wr names it, later ones are untouched. WRs and piece lists may be reused on
 * return; payload must stay unchanged until completion, except with inline_flag. Data calls, see the rules
 * at the top.
 */

/**
 * Posts send WRs to a send queue. A queue in ERROR takes them, too, and starts none: urma_flush_jfs hands them back.
 * One in RESET takes them, too, and ends them with URMA_CR_WR_FLUSH_ERR.
 *
 * @param bad_wr set on failure, must not be NULL.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, opcode, number or length of pieces, target missing, or queue
 *         inactive; URMA_ENOMEM: queue full.
 */
urma_status_t urma_post_jfs_wr(urma_jfs_t* jfs, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr);

/**
 * Posts receive WRs to a receive queue, shared or not. In ERROR they complete with URMA_CR_WR_FLUSH_ERR.
 *
 * @param bad_wr set on failure, must not be NULL.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, number of pieces, or queue inactive; URMA_ENOMEM: queue full.
 */
urma_status_t urma_post_jfr_wr(urma_jfr_t* jfr, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr);

/**
 * Posts send WRs to a jetty. RC sends to the bound target whatever wr->tjetty says.
 *
 * @param bad_wr set on failure, must not be NULL.
 * @return as urma_post_jfs_wr; also URMA_EINVAL for an RC jetty that is not bound.
 */
urma_status_t urma_post_jetty_send_wr(urma_jetty_t* jetty, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr);

/**
 * Posts receive WRs to the (shared) JFR of a jetty.
 *
 * @param bad_wr set on failure, must not be NULL.
 * @return as urma_post_jfr_wr.
 */
urma_status_t urma_post_jetty_recv_wr(urma_jetty_t* jetty, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr);

/**
 * Posts one WRITE: len bytes from local address src to remote address dst.
 *
 * @param target_jfr destination. @param dst_tseg imported segment around dst. @param src_tseg registered
 *        segment around src, NULL only with inline_flag.
 * @return URMA_SUCCESS: posted; URMA_EINVAL: argument, or as urma_post_jfs_wr; URMA_ENOMEM: queue full.
 */
urma_status_t urma_write(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr, urma_target_seg_t* dst_tseg,
                         urma_target_seg_t* src_tseg, uint64_t dst, uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag,
                         uint64_t user_ctx);

/**
 * Posts one READ: len bytes from remote address src to local address dst.
 *
 * @param target_jfr owner of src. @param dst_tseg registered segment around dst. @param src_tseg imported
 *        segment around src.
 * @return URMA_SUCCESS: posted; URMA_EINVAL: argument, or as urma_post_jfs_wr; URMA_ENOMEM: queue full.
 */
urma_status_t urma_read(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr, urma_target_seg_t* dst_tseg,
                        urma_target_seg_t* src_tseg, uint64_t dst, uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag,
                        uint64_t user_ctx);

/**
 * Posts one SEND: len bytes from local address src.
 *
 * @param target_jfr destination. @param src_tseg registered segment around src, NULL only with inline_flag.
 * @return URMA_SUCCESS: posted; URMA_EINVAL: argument, or as urma_post_jfs_wr; URMA_ENOMEM: queue full.
 */
urma_status_t urma_send(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr, urma_target_seg_t* src_tseg, uint64_t src,
                        uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx);

/**
 * Posts one receive of up to len bytes at local address buf.
 *
 * @param recv_tseg registered segment around buf.
 * @return URMA_SUCCESS: posted; URMA_EINVAL: argument, or as urma_post_jfr_wr; URMA_ENOMEM: queue full;
 *         URMA_FAIL: buf is 0.
 */
urma_status_t urma_recv(urma_jfr_t* jfr, urma_target_seg_t* recv_tseg, uint64_t buf, uint32_t len, uint64_t user_ctx);

/* ---- Asynchronous events, driver control --------------------------------------------------------- */

/**
 * Takes one asynchronous event of a context. BLOCKS while there is none, unless async_fd is O_NONBLOCK. Any
 * number of threads may wait. Each event must be passed to urma_ack_async_event exactly once.
 *
 * @param event filled in.
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_FAIL: no event and O_NONBLOCK, or wait interrupted.
 */
urma_status_t urma_get_async_event(urma_context_t* ctx, urma_async_event_t* event);

/**
 * Confirms an event, so that the object it names can be deleted.
 */
void urma_ack_async_event(urma_async_event_t* event);

/**
 * Passes a driver-specific command. Defined for bonding devices, see urma_ubagg.h. A device of this library stands
 * alone: BONDP_USER_CTL_SET_BONDING_MODE succeeds for BONDP_BONDING_MODE_STANDALONE, which it is in already; there is
 * no other mode. SOFTUB_USER_CTL_SET_TOKEN (softub_api.h) is a command of this library: a token takes the place of
 * another one while requests are under way.
 *
 * @param in command and input. @param out room for the answer, addr may be 0.
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_ENOPERM: unknown command or mode; URMA_FAIL: command failed.
 */
urma_status_t urma_user_ctl(urma_context_t* ctx, urma_user_ctl_in_t* in, urma_user_ctl_out_t* out);

/* ---- Log --------------------------------------------------------------------------------------------
 *
 * One sink for the process: the function registered last, else syslog (facility user), else, where there is no
 * /dev/log, the standard error for warnings and worse. A line is
 * passed on if its level is not above the log level: URMA_VLOG_LEVEL_INFO at start, or what the environment
 * variable URMA_LOG_LEVEL (fatal, error, warning, info, debug) says. All log calls may be made at any time
 * and from any thread, also before urma_init.
 */

/**
 * Sends log lines to a function. It may be called from any thread and must not call into the library.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument.
 */
urma_status_t urma_register_log_func(urma_log_cb_t func);

/**
 * Sends log lines to a function that also gets file, function and line. Rules as urma_register_log_func.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument.
 */
urma_status_t urma_register_loc_log_func(urma_loc_log_cb func);

/**
 * Sends log lines to syslog (or the standard error) again.
 *
 * @return URMA_SUCCESS.
 */
urma_status_t urma_unregister_log_func(void);

/**
 * Reads the log level.
 */
urma_vlog_level_t urma_log_get_level(void);

/**
 * Sets the log level. Values from URMA_VLOG_LEVEL_MAX on are ignored.
 */
void urma_log_set_level(urma_vlog_level_t level);

/**
 * Reads the tag that marks the log lines of the calling thread, "-" at start.
 *
 * @return text owned by the library, valid in this thread until the next urma_log_set_thread_tag.
 */
const char* urma_log_get_thread_tag(void);

/**
 * Sets the tag of the calling thread.
 *
 * @param tag copied, at most 63 characters; NULL and longer texts are ignored.
 */
void urma_log_set_thread_tag(const char* tag);

/* ---- Transport channels and addresses ------------------------------------------------------------ */

/**
 * Reads a number of the transport channel of a jetty (user TP). Channels belong to pairs of instances, not to jettys:
 * a bound RC jetty answers a number that no other jetty of the process has while it is bound, any other jetty 0.
 * It is not the number on the wire.
 *
 * @return number, >= 0; -URMA_EINVAL: argument.
 */
int urma_get_tpn(urma_jetty_t* jetty);

/**
 * Lists the network addresses of a device (user TP): one for each EID, with the index of the EID. The length of the
 * prefix and the MAC address are those of the kernel's interface that has the address; without one, the prefix is the
 * whole address and the MAC address 0.
 *
 * @param cnt receives the number of entries.
 * @return array for urma_free_net_addr_list; NULL: errno EINVAL (argument), EIO (none) or ENOMEM.
 */
urma_net_addr_info_t* urma_get_net_addr_list(urma_context_t* ctx, uint32_t* cnt);

/**
 * Releases the array of urma_get_net_addr_list with free(). NULL is allowed.
 */
void urma_free_net_addr_list(urma_net_addr_info_t* net_addr_list);

/**
 * Changes a transport channel (user TP).
 *
 * @param mask members of attr to apply.
 * @return URMA_ENOPERM: not supported.
 */
int urma_modify_tp(urma_context_t* ctx, uint32_t tpn, urma_tp_cfg_t* cfg, urma_tp_attr_t* attr,
                   urma_tp_attr_mask_t mask);

/**
 * Finds transport channels between two EIDs for the calls that end in _ex. There is one for each transport mode and
 * kind, and asking again gives the same handle. Handles last as long as the context. Nothing is sent.
 *
 * @param cfg kind of channel, mode and EIDs. @param tp_cnt in: entries of tp_list, > 0; out: entries filled.
 * @param tp_list receives the handles.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, *tp_cnt 0, not exactly one of ctp, rtp and utp, a mode that does
 *         not go with it, or a local EID that is not the one of the context; URMA_ENOMEM.
 */
urma_status_t urma_get_tp_list(urma_context_t* ctx, urma_get_tp_cfg_t* cfg, uint32_t* tp_cnt, urma_tp_info_t* tp_list);

/**
 * Sets attributes of a transport channel. They are kept with the handle for urma_get_tp_attr and have no effect on
 * the wire, where the configuration of the NIC rules.
 *
 * @param tp_handle from urma_get_tp_list. @param tp_attr_cnt number of bits in tp_attr_bitmap; not looked at.
 * @param tp_attr_bitmap attributes to set, bit n for the n-th member of the structure from 0 on, reserved ones not
 *        counted; bit 16 is ignored.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, unknown handle, or bits beyond the last attribute (18).
 */
urma_status_t urma_set_tp_attr(const urma_context_t* ctx, const uint64_t tp_handle, const uint8_t tp_attr_cnt,
                               const uint32_t tp_attr_bitmap, const urma_tp_attr_value_t* tp_attr);

/**
 * Reads the attributes of a transport channel that were set; the others are 0.
 *
 * @param tp_attr_cnt receives the number of valid attributes. @param tp_attr_bitmap receives which ones.
 * @param tp_attr receives the values.
 * @return URMA_SUCCESS; URMA_EINVAL: argument or unknown handle.
 */
urma_status_t urma_get_tp_attr(const urma_context_t* ctx, const uint64_t tp_handle, uint8_t* tp_attr_cnt,
                               uint32_t* tp_attr_bitmap, urma_tp_attr_value_t* tp_attr);

/**
 * Translates a network address into an EID: the one that device.eid_map in this program's configuration places
 * there, else the address itself. Whether anybody has it is not asked.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument, address family or address 0.
 */
urma_status_t urma_get_eid_by_ip(const urma_context_t* ctx, const urma_net_addr_t* net_addr, urma_eid_t* eid);

/**
 * Translates an EID into a network address, the other way round. The prefix is the whole address.
 *
 * @return URMA_SUCCESS; URMA_EINVAL: argument or EID 0.
 */
urma_status_t urma_get_ip_by_eid(const urma_context_t* ctx, const urma_eid_t* eid, urma_net_addr_t* net_addr);

/**
 * Reads the MAC address of the kernel's interface that has the address of this context's EID.
 *
 * @param mac receives URMA_MAC_BYTES bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument; URMA_ENOPERM: no interface has it (as with DPDK), or one that is not
 *         Ethernet (as the loopback).
 */
urma_status_t urma_get_smac(const urma_context_t* ctx, uint8_t* mac);

/**
 * Finds the MAC address behind a network address: of our interface that has it, or of an IPv4 neighbour that the
 * kernel knows. Nothing is sent, so a host that nobody talked to is unknown, and so is one behind a router.
 *
 * @param mac receives URMA_MAC_BYTES bytes.
 * @return URMA_SUCCESS; URMA_EINVAL: argument, address family or address 0; URMA_ENOPERM: an IPv6 neighbour, or an
 *         own address that is not on Ethernet; URMA_FAIL: unknown IPv4 neighbour. The log says which.
 */
urma_status_t urma_get_dmac(const urma_context_t* ctx, const urma_net_addr_t* net_addr, uint8_t* mac);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* URMA_API_H */
