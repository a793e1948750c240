/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interface between the library and its device drivers (URMA API 0.9).
 *
 * Idea: a context carries a table of functions with which its driver implements the public calls. Programs
 * only look at the table (is import_jetty_ex set?) and never call through it.
 */
#ifndef URMA_PROVIDER_H
#define URMA_PROVIDER_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * Operations of a context. Each has the arguments and results of the public call urma_<name>; an explicit
 * channel is always urma_active_tp_cfg_t. Arguments were checked by the library. NULL: not supported.
 */
typedef struct urma_ops {
  const char* name; /* of the driver */

  /* Completion queue. */
  urma_jfc_t* (*create_jfc)(urma_context_t* ctx, urma_jfc_cfg_t* jfc_cfg);
  urma_status_t (*modify_jfc)(urma_jfc_t* jfc, urma_jfc_attr_t* attr);
  urma_status_t (*delete_jfc)(urma_jfc_t* jfc);
  urma_status_t (*delete_jfc_batch)(urma_jfc_t** jfc_arr, int jfc_num, urma_jfc_t** bad_jfc);
  urma_status_t (*alloc_jfc)(urma_context_t* urma_ctx, urma_jfc_cfg_t* cfg, urma_jfc_t** jfc);
  urma_status_t (*set_jfc_opt)(urma_jfc_t* jfc, uint64_t opt, void* buf, uint32_t len);
  urma_status_t (*active_jfc)(urma_jfc_t* jfc);
  urma_status_t (*get_jfc_opt)(urma_jfc_t* jfc, uint64_t opt, void* buf, uint32_t len);
  urma_status_t (*deactive_jfc)(urma_jfc_t* jfc);
  urma_status_t (*free_jfc)(urma_jfc_t* jfc);

  /* Send queue. */
  urma_jfs_t* (*create_jfs)(urma_context_t* ctx, urma_jfs_cfg_t* jfs_cfg);
  urma_status_t (*modify_jfs)(urma_jfs_t* jfs, urma_jfs_attr_t* attr);
  urma_status_t (*query_jfs)(urma_jfs_t* jfs, urma_jfs_cfg_t* cfg, urma_jfs_attr_t* attr);
  int (*flush_jfs)(urma_jfs_t* jfs, int cr_cnt, urma_cr_t* cr);
  urma_status_t (*delete_jfs)(urma_jfs_t* jfs);
  urma_status_t (*delete_jfs_batch)(urma_jfs_t** jfs_arr, int jfs_num, urma_jfs_t** bad_jfs);
  urma_status_t (*alloc_jfs)(urma_context_t* urma_ctx, urma_jfs_cfg_t* cfg, urma_jfs_t** jfs);
  urma_status_t (*set_jfs_opt)(urma_jfs_t* jfs, uint64_t opt, void* buf, uint32_t len);
  urma_status_t (*active_jfs)(urma_jfs_t* jfs);
  urma_status_t (*get_jfs_opt)(urma_jfs_t* jfs, uint64_t opt, void* buf, uint32_t len);
  urma_status_t (*deactive_jfs)(urma_jfs_t* jfs);
  urma_status_t (*free_jfs)(urma_jfs_t* jfs);

  /* Receive queue. */
  urma_jfr_t* (*create_jfr)(urma_context_t* ctx, urma_jfr_cfg_t* jfr_cfg);
  urma_status_t (*modify_jfr)(urma_jfr_t* jfr, urma_jfr_attr_t* attr);
  urma_status_t (*query_jfr)(urma_jfr_t* jfr, urma_jfr_cfg_t* cfg, urma_jfr_attr_t* attr);
  urma_status_t (*delete_jfr)(urma_jfr_t* jfr);
  urma_status_t (*delete_jfr_batch)(urma_jfr_t** jfr_arr, int jfr_num, urma_jfr_t** bad_jfr);
  urma_target_jetty_t* (*import_jfr)(urma_context_t* ctx, urma_rjfr_t* rjfr, urma_token_t* token_value);
  urma_status_t (*unimport_jfr)(urma_target_jetty_t* target_jfr);
  urma_status_t (*advise_jfr)(urma_jfs_t* jfs, urma_target_jetty_t* tjfr);
  urma_status_t (*unadvise_jfr)(urma_jfs_t* jfs, urma_target_jetty_t* tjfr);
  urma_status_t (*advise_jfr_async)(urma_jfs_t* jfs, urma_target_jetty_t* tjfr, urma_advise_async_cb_func cb_fun,
                                    void* cb_arg);
  urma_status_t (*alloc_jfr)(urma_context_t* urma_ctx, urma_jfr_cfg_t* cfg, urma_jfr_t** jfr);
  urma_status_t (*set_jfr_opt)(urma_jfr_t* jfr, uint64_t opt, void* buf, uint32_t len);
  urma_status_t (*active_jfr)(urma_jfr_t* jfr);
  urma_status_t (*get_jfr_opt)(urma_jfr_t* jfr, uint64_t opt, void* buf, uint32_t len);
  urma_status_t (*deactive_jfr)(urma_jfr_t* jfr);
  urma_status_t (*free_jfr)(urma_jfr_t* jfr);

  /* Jetty. */
  urma_jetty_t* (*create_jetty)(urma_context_t* ctx, urma_jetty_cfg_t* jetty_cfg);
  urma_status_t (*modify_jetty)(urma_jetty_t* jetty, urma_jetty_attr_t* attr);
  urma_status_t (*query_jetty)(urma_jetty_t* jetty, urma_jetty_cfg_t* cfg, urma_jetty_attr_t* attr);
  int (*flush_jetty)(urma_jetty_t* jetty, int cr_cnt, urma_cr_t* cr);
  urma_status_t (*delete_jetty)(urma_jetty_t* jetty);
  urma_status_t (*delete_jetty_batch)(urma_jetty_t** jetty_arr, int jetty_num, urma_jetty_t** bad_jetty);
  urma_target_jetty_t* (*import_jetty)(urma_context_t* ctx, urma_rjetty_t* rjetty, urma_token_t* token_value);
  urma_status_t (*unimport_jetty)(urma_target_jetty_t* tjetty);
  urma_status_t (*advise_jetty)(urma_jetty_t* jetty, urma_target_jetty_t* tjetty);
  urma_status_t (*unadvise_jetty)(urma_jetty_t* jetty, urma_target_jetty_t* tjetty);
  urma_status_t (*advise_jetty_async)(urma_jetty_t* jetty, urma_target_jetty_t* tjetty,
                                      urma_advise_async_cb_func cb_fun, void* cb_arg);
  urma_status_t (*bind_jetty)(urma_jetty_t* jetty, urma_target_jetty_t* tjetty);
  urma_status_t (*unbind_jetty)(urma_jetty_t* jetty);
  urma_status_t (*alloc_jetty)(urma_context_t* urma_ctx, urma_jetty_cfg_t* cfg, urma_jetty_t** jetty);
  urma_status_t (*set_jetty_opt)(urma_jetty_t* jetty, uint64_t opt, void* buf, uint32_t len);
  urma_status_t (*active_jetty)(urma_jetty_t* jetty);
  urma_status_t (*get_jetty_opt)(urma_jetty_t* jetty, uint64_t opt, void* buf, uint32_t len);
  urma_status_t (*deactive_jetty)(urma_jetty_t* jetty);
  urma_status_t (*free_jetty)(urma_jetty_t* jetty);

  /* Group and event channel. */
  urma_jetty_grp_t* (*create_jetty_grp)(urma_context_t* ctx, urma_jetty_grp_cfg_t* cfg);
  urma_status_t (*delete_jetty_grp)(urma_jetty_grp_t* jetty_grp);
  urma_jfce_t* (*create_jfce)(urma_context_t* ctx);
  urma_status_t (*delete_jfce)(urma_jfce_t* jfce);

  /* Transport channels; programs test import_jetty_ex for NULL to learn if channels can be chosen. */
  int (*get_tpn)(urma_jetty_t* jetty);
  int (*modify_tp)(urma_context_t* ctx, uint32_t tpn, urma_tp_cfg_t* cfg, urma_tp_attr_t* attr,
                   urma_tp_attr_mask_t mask);
  urma_status_t (*get_tp_list)(urma_context_t* ctx, urma_get_tp_cfg_t* cfg, uint32_t* tp_cnt, urma_tp_info_t* tp_list);
  urma_status_t (*set_tp_attr)(const urma_context_t* ctx, const uint64_t tp_handle, const uint8_t tp_attr_cnt,
                               const uint32_t tp_attr_bitmap, const urma_tp_attr_value_t* tp_attr);
  urma_status_t (*get_tp_attr)(const urma_context_t* ctx, const uint64_t tp_handle, uint8_t* tp_attr_cnt,
                               uint32_t* tp_attr_bitmap, urma_tp_attr_value_t* tp_attr);
  urma_target_jetty_t* (*import_jetty_ex)(urma_context_t* ctx, urma_rjetty_t* rjetty, urma_token_t* token_value,
                                          urma_active_tp_cfg_t* cfg);
  urma_target_jetty_t* (*import_jfr_ex)(urma_context_t* ctx, urma_rjfr_t* rjfr, urma_token_t* token_value,
                                        urma_active_tp_cfg_t* cfg);
  urma_status_t (*bind_jetty_ex)(urma_jetty_t* jetty, urma_target_jetty_t* tjetty, urma_active_tp_cfg_t* cfg);

  /* Memory. */
  urma_token_id_t* (*alloc_token_id)(urma_context_t* ctx);
  urma_token_id_t* (*alloc_token_id_ex)(urma_context_t* ctx, urma_token_id_flag_t flag);
  urma_status_t (*free_token_id)(urma_token_id_t* token_id);
  urma_target_seg_t* (*register_seg)(urma_context_t* ctx, urma_seg_cfg_t* seg_cfg);
  urma_status_t (*unregister_seg)(urma_target_seg_t* target_seg);
  urma_target_seg_t* (*import_seg)(urma_context_t* ctx, urma_seg_t* seg, urma_token_t* token_value, uint64_t addr,
                                   urma_import_seg_flag_t flag);
  urma_status_t (*unimport_seg)(urma_target_seg_t* tseg);

  /* Events and driver control. */
  urma_status_t (*get_async_event)(urma_context_t* ctx, urma_async_event_t* event);
  void (*ack_async_event)(urma_async_event_t* event);
  int (*user_ctl)(urma_context_t* ctx, urma_user_ctl_in_t* in, urma_user_ctl_out_t* out);

  /* Data path. */
  urma_status_t (*post_jfs_wr)(urma_jfs_t* jfs, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr);
  urma_status_t (*post_jfr_wr)(urma_jfr_t* jfr, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr);
  urma_status_t (*post_jetty_send_wr)(urma_jetty_t* jetty, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr);
  urma_status_t (*post_jetty_recv_wr)(urma_jetty_t* jetty, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr);
  int (*poll_jfc)(urma_jfc_t* jfc, int cr_cnt, urma_cr_t* cr);
  urma_status_t (*rearm_jfc)(urma_jfc_t* jfc, bool solicited_only);
  int (*wait_jfc)(urma_jfce_t* jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t* jfc[]);
  void (*ack_jfc)(urma_jfc_t* jfc[], uint32_t nevents[], uint32_t jfc_cnt);

  /* Asynchronous connect. */
  urma_target_jetty_t* (*import_jetty_async)(urma_notifier_t* notifier, const urma_rjetty_t* rjetty,
                                             const urma_token_t* token_value, uint64_t user_ctx, int timeout);
  urma_status_t (*unimport_jetty_async)(urma_target_jetty_t* tjetty);
  urma_status_t (*bind_jetty_async)(urma_notifier_t* notifier, urma_jetty_t* jetty, urma_target_jetty_t* tjetty,
                                    uint64_t user_ctx, int timeout);
  urma_status_t (*unbind_jetty_async)(urma_jetty_t* jetty);
  urma_notifier_t* (*create_notifier)(urma_context_t* ctx);
  urma_status_t (*delete_notifier)(urma_notifier_t* notifier);
  int (*wait_notify)(urma_notifier_t* notifier, uint32_t cnt, urma_notify_t* notify, int timeout);
  void (*ack_notify)(uint32_t cnt, urma_notify_t* notify);

  /* Addresses. */
  urma_status_t (*get_eid_by_ip)(const urma_context_t* ctx, const urma_net_addr_t* net_addr, urma_eid_t* eid);
  urma_status_t (*get_ip_by_eid)(const urma_context_t* ctx, const urma_eid_t* eid, urma_net_addr_t* net_addr);
  urma_status_t (*get_smac)(const urma_context_t* ctx, uint8_t* mac);
  urma_status_t (*get_dmac)(const urma_context_t* ctx, const urma_net_addr_t* net_addr, uint8_t* mac);
} urma_ops_t;

typedef struct urma_provider_attr {
  uint32_t version;
  urma_transport_type_t transport_type;
} urma_provider_attr_t;

/* Devices a driver serves. */
typedef struct urma_match_entry {
  uint16_t vendor_id;
  uint16_t device_id;
} urma_match_entry_t;

/* Operations of a driver outside of a context. Results as in the public calls. */
typedef struct urma_provider_ops {
  const char* name; /* urma_set_context_opt works with "ub_agg" only */
  urma_provider_attr_t attr;
  urma_match_entry_t* match_table;
  urma_status_t (*init)(urma_init_attr_t* conf);
  urma_status_t (*uninit)(void);
  urma_status_t (*query_device)(urma_device_t* dev, urma_device_attr_t* dev_attr);
  urma_context_t* (*create_context)(urma_device_t* dev, uint32_t eid_index, int dev_fd);
  urma_status_t (*delete_context)(urma_context_t* ctx);
  urma_status_t (*get_uasid)(uint32_t* uasid);
} urma_provider_ops_t;

/**
 * Adds a driver. Meant for constructors of driver libraries; any thread, does not block.
 *
 * @param provider_ops borrowed until urma_unregister_provider_ops.
 * @return 0; negative: argument incomplete, or name already in use.
 */
int urma_register_provider_ops(urma_provider_ops_t* provider_ops);

/**
 * Removes a driver. Its contexts must be closed. Any thread, does not block.
 *
 * @return 0; negative: argument NULL or driver not registered.
 */
int urma_unregister_provider_ops(urma_provider_ops_t* provider_ops);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* URMA_PROVIDER_H */
