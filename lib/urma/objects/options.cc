// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/objects/options.h"

namespace ub::urma {
namespace {

template <class T>
OptionMember configured(T& member) {
  return {&member, sizeof member};
}

// The members of urma_*_opt_mask in order: the same for every kind of object. The URMA_*_MASK constants number them
// otherwise.
enum class MaskBit { kBaseAddress, kDoorbellAddress, kId, kPi, kPiType, kCi, kDoorbellStatus };

template <class T>
OptionMember stored(T& member, uint64_t& mask, MaskBit bit) {
  return {&member, sizeof member, &mask, uint64_t{1} << static_cast<int>(bit)};
}

OptionMember find_configured(urma_jfs_cfg_t& cfg, uint64_t option) {
  switch (option) {
    case URMA_JFS_DEPTH:
      return configured(cfg.depth);
    case URMA_JFS_FLAG:
      return configured(cfg.flag);
    case URMA_JFS_TRANS_MODE:
      return configured(cfg.trans_mode);
    case URMA_JFS_PRIORITY:
      return configured(cfg.priority);
    case URMA_JFS_MAX_SGE:
      return configured(cfg.max_sge);
    case URMA_JFS_MAX_RSGE:
      return configured(cfg.max_rsge);
    case URMA_JFS_MAX_INLINE_DATA:
      return configured(cfg.max_inline_data);
    case URMA_JFS_RNR_RETRY:
      return configured(cfg.rnr_retry);
    case URMA_JFS_ERR_TIMEOUT:
      return configured(cfg.err_timeout);
    case URMA_JFS_BIND_JFC:
      return configured(cfg.jfc);
    case URMA_JFS_USER_CTX:
      return configured(cfg.user_ctx);
    default:
      return {};
  }
}

OptionMember find_stored(urma_jfs_opt_t& opt, uint64_t option) {
  uint64_t& mask = opt.jfs_opt_mask.value;
  switch (option) {
    case URMA_JFS_SQE_BASE_ADDR:
      return stored(opt.urma_jfs_sqe_base_addr, mask, MaskBit::kBaseAddress);
    case URMA_JFS_ID:
      return stored(opt.urma_jfs_id, mask, MaskBit::kId);
    case URMA_JFS_DB_ADDR:
      return stored(opt.urma_jfs_db_addr, mask, MaskBit::kDoorbellAddress);
    case URMA_JFS_DB_STATUS:
      return stored(opt.urma_jfs_db_status, mask, MaskBit::kDoorbellStatus);
    case URMA_JFS_PI:
      return stored(opt.urma_jfs_pi, mask, MaskBit::kPi);
    case URMA_JFS_PI_TYPE:
      return stored(opt.urma_jfs_pi_type, mask, MaskBit::kPiType);
    case URMA_JFS_CI:
      return stored(opt.urma_jfs_ci, mask, MaskBit::kCi);
    default:
      return {};
  }
}

OptionMember find_send_option(urma_jfs_cfg_t& cfg, urma_jfs_opt_t& opt, uint64_t option) {
  OptionMember member = find_configured(cfg, option);
  return member.value != nullptr ? member : find_stored(opt, option);
}

}  // namespace

OptionMember find_option(urma_jfc_t& jfc, uint64_t option) {
  urma_jfc_cfg_t& cfg = jfc.jfc_cfg;
  urma_jfc_opt_t& opt = jfc.urma_jfc_opt;
  uint64_t& mask = opt.jfc_opt_mask.value;
  switch (option) {
    case URMA_JFC_DEPTH:
      return configured(cfg.depth);
    case URMA_JFC_CEQN:
      return configured(cfg.ceqn);
    case URMA_JFC_FLAG:
      return configured(cfg.flag);
    case URMA_JFC_BIND_JFCE:
      return configured(cfg.jfce);
    case URMA_JFC_USER_CTX:
      return configured(cfg.user_ctx);
    case URMA_JFC_CQE_BASE_ADDR:
      return stored(opt.urma_jfc_cqe_base_addr, mask, MaskBit::kBaseAddress);
    case URMA_JFC_ID:
      return stored(opt.urma_jfc_id, mask, MaskBit::kId);
    case URMA_JFC_DB_ADDR:
      return stored(opt.urma_jfc_db_addr, mask, MaskBit::kDoorbellAddress);
    case URMA_JFC_DB_STATUS:
      return stored(opt.urma_jfc_db_status, mask, MaskBit::kDoorbellStatus);
    case URMA_JFC_PI:
      return stored(opt.urma_jfc_pi, mask, MaskBit::kPi);
    case URMA_JFC_PI_TYPE:
      return stored(opt.urma_jfc_pi_type, mask, MaskBit::kPiType);
    case URMA_JFC_CI:
      return stored(opt.urma_jfc_ci, mask, MaskBit::kCi);
    default:
      return {};
  }
}

OptionMember find_option(urma_jfs_t& jfs, uint64_t option) {
  return find_send_option(jfs.jfs_cfg, jfs.urma_jfs_opt, option);
}

OptionMember find_option(urma_jfr_t& jfr, uint64_t option) {
  urma_jfr_cfg_t& cfg = jfr.jfr_cfg;
  urma_jfr_opt_t& opt = jfr.urma_jfr_opt;
  uint64_t& mask = opt.jfr_opt_mask.value;
  switch (option) {
    case URMA_JFR_DEPTH:
      return configured(cfg.depth);
    case URMA_JFR_FLAG:
      return configured(cfg.flag);
    case URMA_JFR_TRANS_MODE:
      return configured(cfg.trans_mode);
    case URMA_JFR_MAX_SGE:
      return configured(cfg.max_sge);
    case URMA_JFR_MIN_RNR_TIMER:
      return configured(cfg.min_rnr_timer);
    case URMA_JFR_BIND_JFC:
      return configured(cfg.jfc);
    case URMA_JFR_TOKEN_VALUE:
      return configured(cfg.token_value);
    case URMA_JFR_USER_CTX:
      return configured(cfg.user_ctx);
    case URMA_JFR_RQE_BASE_ADDR:
      return stored(opt.urma_jfr_rqe_base_addr, mask, MaskBit::kBaseAddress);
    case URMA_JFR_ID:
      return stored(opt.urma_jfr_id, mask, MaskBit::kId);
    case URMA_JFR_DB_ADDR:
      return stored(opt.urma_jfr_db_addr, mask, MaskBit::kDoorbellAddress);
    case URMA_JFR_DB_STATUS:
      return stored(opt.urma_jfr_db_status, mask, MaskBit::kDoorbellStatus);
    case URMA_JFR_PI:
      return stored(opt.urma_jfr_pi, mask, MaskBit::kPi);
    case URMA_JFR_PI_TYPE:
      return stored(opt.urma_jfr_pi_type, mask, MaskBit::kPiType);
    case URMA_JFR_CI:
      return stored(opt.urma_jfr_ci, mask, MaskBit::kCi);
    default:
      return {};
  }
}

OptionMember find_option(urma_jetty_t& jetty, uint64_t option) {
  urma_jetty_cfg_t& cfg = jetty.jetty_cfg;
  switch (option) {
    case URMA_JETTY_ID:
      return configured(cfg.id);
    case URMA_JETTY_FLAG:
      return configured(cfg.flag);
    case URMA_JETTY_BIND_JFR:
      return configured(cfg.shared.jfr);
    case URMA_JETTY_BIND_RX_JFC:
      return configured(cfg.shared.jfc);
    case URMA_JETTY_BIND_JTG:
      return configured(cfg.jetty_grp);
    case URMA_JETTY_USER_CTX:
      return configured(cfg.user_ctx);
    default:
      return find_send_option(cfg.jfs_cfg, jetty.urma_jetty_opt.jfs_opt, option);
  }
}

}  // namespace ub::urma
