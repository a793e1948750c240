// SPDX-License-Identifier: Apache-2.0
// The tables that programs find behind urma_context_t::ops and urma_device_t::ops. Some look whether
// import_jetty_ex is set; none calls through them, but whoever does reaches the public calls.
#include "lib/urma/include/ub/umdk/urma/urma_provider.h"

#include "lib/urma/include/ub/umdk/urma/urma_api.h"
#include "lib/urma/library.h"

namespace ub::urma {

::urma_ops* context_ops() {
  static ::urma_ops table = {
      .name = "softub",
      .create_jfc = urma_create_jfc,
      .modify_jfc = urma_modify_jfc,
      .delete_jfc = urma_delete_jfc,
      .delete_jfc_batch = urma_delete_jfc_batch,
      .alloc_jfc = urma_alloc_jfc,
      .set_jfc_opt = urma_set_jfc_opt,
      .active_jfc = urma_active_jfc,
      .get_jfc_opt = urma_get_jfc_opt,
      .deactive_jfc = urma_deactive_jfc,
      .free_jfc = urma_free_jfc,
      .create_jfs = urma_create_jfs,
      .modify_jfs = urma_modify_jfs,
      .query_jfs = urma_query_jfs,
      .flush_jfs = urma_flush_jfs,
      .delete_jfs = urma_delete_jfs,
      .delete_jfs_batch = urma_delete_jfs_batch,
      .alloc_jfs = urma_alloc_jfs,
      .set_jfs_opt = urma_set_jfs_opt,
      .active_jfs = urma_active_jfs,
      .get_jfs_opt = urma_get_jfs_opt,
      .deactive_jfs = urma_deactive_jfs,
      .free_jfs = urma_free_jfs,
      .create_jfr = urma_create_jfr,
      .modify_jfr = urma_modify_jfr,
      .query_jfr = urma_query_jfr,
      .delete_jfr = urma_delete_jfr,
      .delete_jfr_batch = urma_delete_jfr_batch,
      .import_jfr = urma_import_jfr,
      .unimport_jfr = urma_unimport_jfr,
      .advise_jfr = urma_advise_jfr,
      .unadvise_jfr = urma_unadvise_jfr,
      .advise_jfr_async = urma_advise_jfr_async,
      .alloc_jfr = urma_alloc_jfr,
      .set_jfr_opt = urma_set_jfr_opt,
      .active_jfr = urma_active_jfr,
      .get_jfr_opt = urma_get_jfr_opt,
      .deactive_jfr = urma_deactive_jfr,
      .free_jfr = urma_free_jfr,
      .create_jetty = urma_create_jetty,
      .modify_jetty = urma_modify_jetty,
      .query_jetty = urma_query_jetty,
      .flush_jetty = urma_flush_jetty,
      .delete_jetty = urma_delete_jetty,
      .delete_jetty_batch = urma_delete_jetty_batch,
      .import_jetty = urma_import_jetty,
      .unimport_jetty = urma_unimport_jetty,
      .advise_jetty = urma_advise_jetty,
      .unadvise_jetty = urma_unadvise_jetty,
      .advise_jetty_async = nullptr,  // no public call
      .bind_jetty = urma_bind_jetty,
      .unbind_jetty = urma_unbind_jetty,
      .alloc_jetty = urma_alloc_jetty,
      .set_jetty_opt = urma_set_jetty_opt,
      .active_jetty = urma_active_jetty,
      .get_jetty_opt = urma_get_jetty_opt,
      .deactive_jetty = urma_deactive_jetty,
      .free_jetty = urma_free_jetty,
      .create_jetty_grp = urma_create_jetty_grp,
      .delete_jetty_grp = urma_delete_jetty_grp,
      .create_jfce = urma_create_jfce,
      .delete_jfce = urma_delete_jfce,
      .get_tpn = urma_get_tpn,
      .modify_tp = urma_modify_tp,
      .get_tp_list = urma_get_tp_list,
      .set_tp_attr = urma_set_tp_attr,
      .get_tp_attr = urma_get_tp_attr,
      .import_jetty_ex = urma_import_jetty_ex,
      .import_jfr_ex = urma_import_jfr_ex,
      .bind_jetty_ex = urma_bind_jetty_ex,
      .alloc_token_id = urma_alloc_token_id,
      .alloc_token_id_ex = urma_alloc_token_id_ex,
      .free_token_id = urma_free_token_id,
      .register_seg = urma_register_seg,
      .unregister_seg = urma_unregister_seg,
      .import_seg = urma_import_seg,
      .unimport_seg = urma_unimport_seg,
      .get_async_event = urma_get_async_event,
      .ack_async_event = urma_ack_async_event,
      .user_ctl = urma_user_ctl,
      .post_jfs_wr = urma_post_jfs_wr,
      .post_jfr_wr = urma_post_jfr_wr,
      .post_jetty_send_wr = urma_post_jetty_send_wr,
      .post_jetty_recv_wr = urma_post_jetty_recv_wr,
      .poll_jfc = urma_poll_jfc,
      .rearm_jfc = urma_rearm_jfc,
      .wait_jfc = urma_wait_jfc,
      .ack_jfc = urma_ack_jfc,
      .import_jetty_async = urma_import_jetty_async,
      .unimport_jetty_async = urma_unimport_jetty_async,
      .bind_jetty_async = urma_bind_jetty_async,
      .unbind_jetty_async = urma_unbind_jetty_async,
      .create_notifier = urma_create_notifier,
      .delete_notifier = urma_delete_notifier,
      .wait_notify = urma_wait_notify,
      .ack_notify = [](uint32_t, urma_notify_t*) {},
      .get_eid_by_ip = urma_get_eid_by_ip,
      .get_ip_by_eid = urma_get_ip_by_eid,
      .get_smac = urma_get_smac,
      .get_dmac = urma_get_dmac,
  };
  return &table;
}

::urma_provider_ops* provider_ops() {
  static urma_match_entry_t no_hardware[] = {{0, 0}};
  static ::urma_provider_ops table = {
      .name = "softub",
      .attr = {.version = 1, .transport_type = URMA_TRANSPORT_UB},
      .match_table = no_hardware,
      .init = urma_init,
      .uninit = urma_uninit,
      .query_device = urma_query_device,
      .create_context = [](urma_device_t* dev, uint32_t eid_index, int) {
        return urma_create_context(dev, eid_index);
      },
      .delete_context = urma_delete_context,
      .get_uasid = urma_get_uasid,
  };
  return &table;
}

}  // namespace ub::urma
