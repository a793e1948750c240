/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data types of the URMA interface (URMA API 0.9).
 *
 * Idea: every object is a plain struct that programs may look into, and several of them (urma_seg_t,
 * urma_jetty_id_t, urma_rjetty_t) are sent to peers as raw bytes. Order, type and size of all members are
 * therefore part of the contract; sizes are those of LP64 systems. The library allocates a larger private
 * object whose first member is the public struct, so never copy or allocate an object type yourself;
 * types ending in _cfg_t, _attr_t, _wr_t, and the ids and flags are yours to copy.
 *
 * Flag words are unions of single bits `bs`, counted from the least significant bit, and the whole `value`.
 * `reserved` members must be 0. `user_ctx` is a number of the caller that the library only hands back.
 */
#ifndef URMA_TYPES_H
#define URMA_TYPES_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
#include <atomic>
#else
#include <stdatomic.h>
#endif

#include "urma_opcode.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Interface level: major in the upper, minor in the lower 16 bits (minor saturates at 65535). */
#define URMA_GET_VERSION(a, b) (((a) << 16) + ((b) > 65535 ? 65535 : (b)))
#define URMA_API_VERSION URMA_GET_VERSION(0, 9)

#define MAX_PORT_CNT 8
#define URMA_MAX_JETTY_IN_JETTY_GRP 32U
#define URMA_MAX_NAME 64
#define URMA_MAX_PATH 4096
#define URMA_EID_SIZE 16
#define URMA_EID_STR_LEN 39 /* characters written by EID_FMT, without the terminating NUL */
#define URMA_MAX_PRIORITY_CNT 16
#define URMA_IPV4_MAP_IPV6_PREFIX 0x0000ffff
#define URMA_MAX_EID_CNT 1024
#define URMA_CC_IDX_TABLE_SIZE 80
#define URMA_OPT_REVERSED_NUM 4
#define URMA_SEG_TOKEN_ID_INVALID 0xffffffff
#define URMA_MAX_DEV_NAME 64
#define URMA_GUID_SIZE 16
#define URMA_IP_ADDR_BYTES 16
#define URMA_MAC_BYTES 6
#define UR_NAME_MAX_LEN 256
#define JFR_NAME_MAX_LEN 256
#define URMA_MAX_SEGS_PER_UR_OPT 64

/*
 * printf support: printf("eid " EID_FMT "\n", EID_ARGS(ctx->eid)) prints eight groups of four hex digits. A program may
 * have them already, or define them again with the same tokens: none may be added here, not even parentheses.
 */
#ifndef EID_FMT
#define EID_FMT "%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x"
#endif
/* clang-format off */
#ifndef EID_RAW_ARGS
#define EID_RAW_ARGS(p) \
  p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15]
#endif
/* clang-format on */
#ifndef EID_ARGS
#define EID_ARGS(eid) EID_RAW_ARGS((eid).raw)
#endif

/*
 * Mask bits that tell which advanced option is meant. They do not follow the order of the bits in
 * union urma_*_opt_mask; both are fixed.
 */
#define URMA_JFS_SQE_BASE_ADDR_MASK (1ULL << 0)
#define URMA_JFS_ID_MASK (1ULL << 1)
#define URMA_JFS_DB_ADDR_MASK (1ULL << 2)
#define URMA_JFS_DB_STATUS_MASK (1ULL << 3)
#define URMA_JFS_PI_MASK (1ULL << 4)
#define URMA_JFS_PI_TYPE_MASK (1ULL << 5)
#define URMA_JFS_CI_MASK (1ULL << 6)

#define URMA_JFR_RQE_BASE_ADDR_MASK (1ULL << 0)
#define URMA_JFR_ID_MASK (1ULL << 1)
#define URMA_JFR_DB_ADDR_MASK (1ULL << 2)
#define URMA_JFR_DB_STATUS_MASK (1ULL << 3)
#define URMA_JFR_PI_MASK (1ULL << 4)
#define URMA_JFR_PI_TYPE_MASK (1ULL << 5)
#define URMA_JFR_CI_MASK (1ULL << 6)

#define URMA_JFC_CQE_BASE_ADDR_MASK (1ULL << 0)
#define URMA_JFC_ID_MASK (1ULL << 1)
#define URMA_JFC_DB_ADDR_MASK (1ULL << 2)
#define URMA_JFC_DB_STATUS_MASK (1ULL << 3)
#define URMA_JFC_PI_MASK (1ULL << 4)
#define URMA_JFC_PI_TYPE_MASK (1ULL << 5)
#define URMA_JFC_CI_MASK (1ULL << 6)

/* ---- Enumerations -------------------------------------------------------------------------------- */

typedef enum urma_jfc_state {
  URMA_JFC_STATE_INVALID = 0,
  URMA_JFC_STATE_VALID = 1,
  URMA_JFC_STATE_ERROR = 2
} urma_jfc_state_t;

/* RESET -> READY -> (SUSPENDED -> READY | ERROR -> RESET/READY). Created objects start in READY. */
typedef enum urma_jetty_state {
  URMA_JETTY_STATE_RESET = 0,
  URMA_JETTY_STATE_READY = 1,
  URMA_JETTY_STATE_SUSPENDED = 2,
  URMA_JETTY_STATE_ERROR = 3
} urma_jetty_state_t;

typedef urma_jetty_state_t urma_jfs_state_t;

typedef enum urma_jfr_state {
  URMA_JFR_STATE_RESET = 0,
  URMA_JFR_STATE_READY = 1,
  URMA_JFR_STATE_ERROR = 2
} urma_jfr_state_t;

typedef enum urma_mtu {
  URMA_MTU_256 = 1,
  URMA_MTU_512 = 2,
  URMA_MTU_1024 = 3,
  URMA_MTU_2048 = 4,
  URMA_MTU_4096 = 5,
  URMA_MTU_8192 = 6
} urma_mtu_t;

typedef enum urma_port_state {
  URMA_PORT_NOP = 0,
  URMA_PORT_DOWN = 1,
  URMA_PORT_INIT = 2,
  URMA_PORT_ARMED = 3,
  URMA_PORT_ACTIVE = 4,
  URMA_PORT_ACTIVE_DEFER = 5
} urma_port_state_t;

/* Line rate in bit/s. */
typedef enum urma_speed {
  URMA_SP_10M = 0,
  URMA_SP_100M = 1,
  URMA_SP_1G = 2,
  URMA_SP_2_5G = 3,
  URMA_SP_5G = 4,
  URMA_SP_10G = 5,
  URMA_SP_14G = 6,
  URMA_SP_25G = 7,
  URMA_SP_40G = 8,
  URMA_SP_50G = 9,
  URMA_SP_100G = 10,
  URMA_SP_200G = 11,
  URMA_SP_400G = 12,
  URMA_SP_800G = 13
} urma_speed_t;

/* Number of lanes. */
typedef enum urma_link_width {
  URMA_LINK_X1 = 1,
  URMA_LINK_X2 = 2,
  URMA_LINK_X4 = 4,
  URMA_LINK_X8 = 8,
  URMA_LINK_X16 = 0x10,
  URMA_LINK_X32 = 0x20
} urma_link_width_t;

/* Kind of device. 4 is not assigned. */
typedef enum urma_transport_type {
  URMA_TRANSPORT_INVALID = -1,
  URMA_TRANSPORT_UB = 0,
  URMA_TRANSPORT_IB = 1,
  URMA_TRANSPORT_IP = 2,
  URMA_TRANSPORT_SOFTUB = 3,
  URMA_TRANSPORT_HNS_UB = 5,
  URMA_TRANSPORT_MAX = 6
} urma_transport_type_t;

/* Transport mode; the values are bits, so that urma_device_cap_t.trans_mode can hold a set of them. */
typedef enum urma_transport_mode {
  URMA_TM_RM = 1, /* reliable message: one endpoint talks to any number of targets */
  URMA_TM_RC = 2, /* reliable connection: exactly one bound peer, ordered */
  URMA_TM_UM = 4  /* unreliable message: SEND only, may be lost */
} urma_transport_mode_t;

/* Congestion control, as a number (TP attributes). */
typedef enum urma_tp_cc_alg {
  URMA_TP_CC_NONE = 0,
  URMA_TP_CC_DCQCN = 1,
  URMA_TP_CC_CAQM = 2,
  URMA_TP_CC_LDCP = 3,
  URMA_TP_CC_LDCP_L2_HEADER = 4,
  URMA_TP_CC_LDCP_TP_HEADER = 5,
  URMA_TP_CC_DIP = 6,
  URMA_TP_CC_ACC = 7,
  URMA_TP_CC_CUSTOM_1 = 8,
  URMA_TP_CC_CUSTOM_2 = 9,
  URMA_TP_CC_NUM = 10
} urma_tp_cc_alg_t;

/* Congestion control, as a bit (device capabilities): 1 << urma_tp_cc_alg_t. */
typedef enum urma_congestion_ctrl_alg {
  URMA_CC_NONE = 1,
  URMA_CC_DCQCN = 2,
  URMA_CC_CAQM = 4,
  URMA_CC_LDCP = 8,
  URMA_CC_LDCP_L2_HEADER = 0x10,
  URMA_CC_LDCP_TP_HEADER = 0x20,
  URMA_CC_DIP = 0x40,
  URMA_CC_ACC = 0x80,
  URMA_CC_CUSTOM_1 = 0x100,
  URMA_CC_CUSTOM_2 = 0x200
} urma_congestion_ctrl_alg_t;

/* Options of urma_set_context_opt. */
typedef enum urma_context_opt_name {
  URMA_OPT_AGGR_MODE = 0 /* value: urma_context_aggr_mode_t */
} urma_opt_name_t;

typedef enum urma_context_aggr_mode {
  URMA_AGGR_MODE_STANDALONE = 0,
  URMA_AGGR_MODE_ACTIVE_BACKUP = 1,
  URMA_AGGR_MODE_BALANCE = 2
} urma_context_aggr_mode_t;

typedef enum urma_jfc_attr_mask { JFC_MODERATE_COUNT = 1, JFC_MODERATE_PERIOD = 2 } urma_jfc_attr_mask_t;

/* Who keeps the order of operations. DEF picks OI in RM, OL in RC and NO in UM. */
typedef enum urma_order_type {
  URMA_DEF_ORDER = 0,
  URMA_OT = 1, /* target */
  URMA_OI = 2, /* initiator */
  URMA_OL = 3, /* lower layer */
  URMA_NO = 4  /* nobody, and delivery is not guaranteed */
} urma_order_type_t;

typedef enum urma_jfs_attr_mask { JFS_STATE = 1 } urma_jfs_attr_mask_t;

typedef enum urma_jfr_attr_mask { JFR_RX_THRESHOLD = 1, JFR_STATE = 2 } urma_jfr_attr_mask_t;

/* Transport channel: reliable, compact (reliable through the lower layer), unreliable. */
typedef enum urma_tp_type { URMA_RTP = 0, URMA_CTP = 1, URMA_UTP = 2 } urma_tp_type_t;

/* How a sender selects the member of a jetty group. */
typedef enum urma_jetty_grp_policy {
  URMA_JETTY_GRP_POLICY_RR = 0,
  URMA_JETTY_GRP_POLICY_HASH_HINT = 1
} urma_jetty_grp_policy_t;

/* What an id refers to; each kind has a number space of its own. */
typedef enum urma_target_type { URMA_JFR = 0, URMA_JETTY = 1, URMA_JETTY_GROUP = 2 } urma_target_type_t;

typedef enum urma_jetty_attr_mask { JETTY_RX_THRESHOLD = 1, JETTY_STATE = 2 } urma_jetty_attr_mask_t;

typedef enum urma_notify_type { URMA_IMPORT_JETTY_NOTIFY = 0, URMA_BIND_JETTY_NOTIFY = 1 } urma_notify_type_t;

typedef enum urma_tp_state {
  URMA_TP_STATE_RESET = 0,
  URMA_TP_STATE_PASSIVE = 1,
  URMA_TP_STATE_ACTIVE = 2,
  URMA_TP_STATE_BRAKE = 3,
  URMA_TP_STATE_ERROR = 4
} urma_tp_state_t;

/* Severity of a log line, as in syslog. */
typedef enum urma_vlog_level {
  URMA_VLOG_LEVEL_EMERG = 0,
  URMA_VLOG_LEVEL_ALERT = 1,
  URMA_VLOG_LEVEL_CRIT = 2,
  URMA_VLOG_LEVEL_ERR = 3,
  URMA_VLOG_LEVEL_WARNING = 4,
  URMA_VLOG_LEVEL_NOTICE = 5,
  URMA_VLOG_LEVEL_INFO = 6,
  URMA_VLOG_LEVEL_DEBUG = 7,
  URMA_VLOG_LEVEL_MAX = 8
} urma_vlog_level_t;

/* ---- Start-up, device, context ------------------------------------------------------------------- */

/* Argument of urma_init; all zero is fine. 16 bytes. */
typedef struct urma_init_attr {
  uint64_t token; /* not used */
  uint32_t uasid; /* wanted user address-space id, 0: chosen by the library */
} urma_init_attr_t;

/* Endpoint id: 128-bit address of an entity, always in network byte order. All zero means "none". */
typedef union urma_eid {
  uint8_t raw[URMA_EID_SIZE]; /* most significant byte first */
  struct {
    uint64_t reserved; /* 0 */
    uint32_t prefix;   /* htobe32(URMA_IPV4_MAP_IPV6_PREFIX) */
    uint32_t addr;     /* IPv4 address in network order */
  } in4;               /* view of an IPv4-mapped EID */
  struct {
    uint64_t subnet_prefix; /* upper half, network order */
    uint64_t interface_id;  /* lower half, network order */
  } in6;
} urma_eid_t;

/* Reference count, changed atomically; same size and alignment as unsigned long. */
typedef struct urma_ref {
#ifdef __cplusplus
  std::atomic_ulong atomic_cnt;
#else
  atomic_ulong atomic_cnt;
#endif
} urma_ref_t;

/* State of one port. */
typedef struct urma_port_attr {
  urma_mtu_t max_mtu;
  urma_port_state_t state; /* URMA_PORT_ACTIVE: usable */
  urma_link_width_t active_width;
  urma_speed_t active_speed;
  urma_mtu_t active_mtu;
} urma_port_attr_t;

/* Set of channel types. */
union urma_tp_type_en {
  struct {
    uint32_t rtp : 1;
    uint32_t ctp : 1;
    uint32_t utp : 1;
    uint32_t reserved : 29;
  } bs;
  uint32_t value;
};

/* What one priority stands for. */
struct urma_sl_info {
  uint32_t SL;                   /* service level */
  union urma_tp_type_en tp_type; /* exactly one bit: channel type served */
};

/* Abilities of a device. */
typedef union urma_device_feature {
  struct {
    uint32_t oor : 1;                   /* receives packets out of order */
    uint32_t jfc_per_wr : 1;            /* JFC can be chosen for each WR */
    uint32_t stride_op : 1;             /* strided access */
    uint32_t load_store_op : 1;         /* remote memory can be mapped */
    uint32_t non_pin : 1;               /* segments need no pinning */
    uint32_t pmem : 1;                  /* persistent memory */
    uint32_t jfc_inline : 1;            /* small receives travel inside the completion */
    uint32_t spray_en : 1;              /* varies UDP source ports */
    uint32_t selective_retrans : 1;     /* resends only what was lost */
    uint32_t live_migrate : 1;          /* live migration */
    uint32_t dca : 1;                   /* user TP */
    uint32_t jetty_grp : 1;             /* jetty groups */
    uint32_t error_suspend : 1;         /* queues can suspend on errors */
    uint32_t outorder_comp : 1;         /* completions out of order */
    uint32_t mn : 1;                    /* user TP */
    uint32_t clan : 1;                  /* user TP */
    uint32_t muti_seg_per_token_id : 1; /* one token id for several segments (spelling is historic) */
    uint32_t ipourma_en : 1;            /* IP over URMA */
    uint32_t ctp_en : 1;                /* compact TP */
    uint32_t uboe : 1;                  /* UB over Ethernet */
    uint32_t reserved : 12;
  } bs;
  uint32_t value;
} urma_device_feature_t;

/* Atomic operations the device executes. */
typedef union urma_atomic_feature {
  struct {
    uint32_t cas : 1;
    uint32_t swap : 1;
    uint32_t fetch_and_add : 1;
    uint32_t fetch_and_sub : 1;
    uint32_t fetch_and_and : 1;
    uint32_t fetch_and_or : 1;
    uint32_t fetch_and_xor : 1;
    uint32_t reserved : 25;
  } bs;
  uint32_t value;
} urma_atomic_feature_t;

/* Order types allowed in a transport mode, see urma_order_type_t. */
typedef union urma_order_type_cap {
  struct {
    uint32_t ot : 1;
    uint32_t oi : 1;
    uint32_t ol : 1;
    uint32_t no : 1;
    uint32_t reserved : 28;
  } bs;
  uint32_t value;
} urma_order_type_cap_t;

/* Channel types allowed in a transport mode, see urma_tp_type_t. */
typedef union urma_tp_type_cap {
  struct {
    uint32_t rtp : 1;
    uint32_t ctp : 1;
    uint32_t utp : 1;
    uint32_t reserved : 29;
  } bs;
  uint32_t value;
} urma_tp_type_cap_t;

/* Transport modes that can use several paths. */
typedef union urma_tp_feature {
  struct {
    uint32_t rm_multi_path : 1;
    uint32_t rc_multi_path : 1;
    uint32_t reserved : 30;
  } bs;
  uint32_t value;
} urma_tp_feature_t;

/* Limits of a device; creation calls check against them. Sizes in bytes. 304 bytes. */
typedef struct urma_device_cap {
  urma_device_feature_t feature;
  uint32_t max_jfc; /* number of JFCs, likewise below */
  uint32_t max_jfs;
  uint32_t max_jfr;
  uint32_t max_jetty;
  uint32_t max_jetty_grp;
  uint32_t max_jetty_in_jetty_grp; /* members of a group, at most URMA_MAX_JETTY_IN_JETTY_GRP */
  uint32_t max_jfc_depth;          /* completion records */
  uint32_t max_jfs_depth;          /* send WRs */
  uint32_t max_jfr_depth;          /* receive WRs */
  uint32_t max_jfs_inline_len;
  uint32_t max_jfs_sge;  /* local elements of a send WR */
  uint32_t max_jfs_rsge; /* remote elements of a send WR */
  uint32_t max_jfr_sge;  /* elements of a receive WR */
  uint64_t max_msg_size;
  uint32_t max_read_size;
  uint32_t max_write_size;
  uint32_t max_cas_size; /* operand width, likewise below */
  uint32_t max_swap_size;
  uint32_t max_fetch_and_add_size;
  uint32_t max_fetch_and_sub_size;
  uint32_t max_fetch_and_and_size;
  uint32_t max_fetch_and_or_size;
  uint32_t max_fetch_and_xor_size;
  urma_atomic_feature_t atomic_feat;
  uint16_t trans_mode; /* set of urma_transport_mode_t */
  uint16_t reserved;
  uint16_t congestion_ctrl_alg; /* set of urma_congestion_ctrl_alg_t */
  uint32_t ceq_cnt;             /* valid urma_jfc_cfg_t.ceqn: 0 .. ceq_cnt - 1 */
  uint32_t max_tp_in_tpg;       /* TPs in a TP group */
  uint32_t max_eid_cnt;         /* slots of the EID table */
  uint64_t page_size_cap;       /* supported page sizes */
  uint32_t max_oor_cnt;         /* user TP: packets accepted ahead of a gap */
  uint32_t mn;                  /* user TP */
  uint32_t max_netaddr_cnt;     /* user TP: slots of the net-address table */
  urma_order_type_cap_t rm_order_cap;
  urma_order_type_cap_t rc_order_cap;
  urma_tp_type_cap_t rm_tp_cap;
  urma_tp_type_cap_t rc_tp_cap;
  urma_tp_type_cap_t um_tp_cap;
  urma_tp_feature_t tp_feature;
  struct urma_sl_info priority_info[URMA_MAX_PRIORITY_CNT]; /* index: priority */
} urma_device_cap_t;

typedef struct urma_guid {
  uint8_t raw[URMA_GUID_SIZE];
} urma_guid_t;

/* Result of urma_query_device. 496 bytes. */
typedef struct urma_device_attr {
  urma_guid_t guid;
  urma_device_cap_t dev_cap;
  uint8_t port_cnt; /* used entries of port_attr */
  struct urma_port_attr port_attr[MAX_PORT_CNT];
  uint32_t reserved_jetty_id_min; /* ids that only those get who ask for them; min is UINT32_MAX if none */
  uint32_t reserved_jetty_id_max;
} urma_device_attr_t;

/* Access secret. */
typedef struct urma_token {
  uint32_t token;
} urma_token_t;

/* Row of a congestion-control table. 6 bytes, packed. */
typedef struct urma_cc_entry {
  urma_tp_cc_alg_t alg;
  uint8_t cc_pattern_idx;
  uint8_t cc_priority;
} __attribute__((packed)) urma_cc_entry_t;

struct urma_sysfs_dev;
struct urma_ops;
struct urma_provider_ops;

/* Device. Owned by the library, valid from discovery to urma_uninit. 4184 bytes. */
typedef struct urma_device {
  char name[URMA_MAX_NAME]; /* unique, NUL-terminated; the prefix "bonding" is special to programs */
  char path[URMA_MAX_PATH]; /* free text */
  urma_transport_type_t type;
  struct urma_provider_ops* ops;
  struct urma_sysfs_dev* sysfs_dev; /* internal */
} urma_device_t;

/* A device opened with one of its EIDs; parent of all other objects. 104 bytes. */
typedef struct urma_context {
  struct urma_device* dev;
  struct urma_ops* ops; /* never NULL, see urma_provider.h */
  int dev_fd;           /* internal */
  int async_fd;         /* readable while an asynchronous event waits; poll it, do not read or close it */
  pthread_mutex_t mutex;
  urma_eid_t eid;      /* local address */
  uint32_t eid_index;  /* its slot in the EID table */
  uint32_t uasid;      /* qualifies ids and addresses of this process */
  struct urma_ref ref; /* 1 + living children */
  urma_context_aggr_mode_t aggr_mode;
} urma_context_t;

/* Row of the list returned by urma_get_eid_list. */
typedef struct urma_eid_info {
  urma_eid_t eid;
  uint32_t eid_index; /* for urma_create_context */
} urma_eid_info_t;

/* ---- Completion queue (JFC) and event channel (JFCE) --------------------------------------------- */

/* No call takes this type. */
typedef struct urma_jfce_cfg {
  uint32_t depth;
  uint64_t user_ctx;
} urma_jfce_cfg_t;

/* Event channel. 24 bytes. */
typedef struct urma_jfce {
  urma_context_t* urma_ctx;
  int fd;              /* readable while a completion event waits; poll it, do not read or close it */
  struct urma_ref ref; /* 1 + attached JFCs */
} urma_jfce_t;

typedef union urma_jfc_flag {
  struct {
    uint32_t lock_free : 1;    /* caller serialises all use of the JFC */
    uint32_t jfc_inline : 1;   /* short receives may arrive inside the completion */
    uint32_t non_blocking : 1; /* delete answers URMA_EAGAIN instead of waiting for acks */
    uint32_t has_drv_ext : 1;  /* this is the `base` of bondp_jfc_cfg_t */
    uint32_t reserved : 28;
  } bs;
  uint32_t value;
} urma_jfc_flag_t;

/* 32 bytes. */
typedef struct urma_jfc_cfg {
  uint32_t depth; /* completion records, 1 .. max_jfc_depth; may be rounded up */
  urma_jfc_flag_t flag;
  uint32_t ceqn;     /* event queue number, normally 0 */
  urma_jfce_t* jfce; /* event channel, NULL: polling only */
  uint64_t user_ctx;
} urma_jfc_cfg_t;

/* Event moderation: an event after so many completions or so much time (urma_modify_jfc). */
typedef struct urma_jfc_attr {
  uint32_t mask;            /* set of urma_jfc_attr_mask_t */
  uint16_t moderate_count;  /* completions; 0: their number does not matter */
  uint16_t moderate_period; /* microseconds; 0: the time does not matter */
} urma_jfc_attr_t;

/* Complete id of a jetty, JFS, JFR or JFC; sent to peers. 24 bytes. */
typedef struct urma_jetty_id {
  urma_eid_t eid;
  uint32_t uasid; /* 0: kernel */
  uint32_t id;    /* never 0; unique among objects of one kind with equal eid and uasid */
} urma_jetty_id_t;

typedef struct urma_jetty_id urma_jfs_id_t, urma_jfr_id_t, urma_jfc_id_t;

/* Valid members of urma_jfc_opt_t. */
union urma_jfc_opt_mask {
  struct {
    uint64_t urma_jfc_cqe_base_addr : 1;
    uint64_t urma_jfc_db_addr : 1;
    uint64_t urma_jfc_id : 1;
    uint64_t urma_jfc_pi : 1;
    uint64_t urma_jfc_pi_type : 1;
    uint64_t urma_jfc_ci : 1;
    uint64_t urma_jfc_db_status : 1;
    uint64_t reserved : 57;
  } bs;
  uint64_t value;
};

/* Advanced state, see urma_alloc_jfc. base/db addresses, producer and consumer index (pi, ci). */
typedef struct urma_jfc_opt {
  union urma_jfc_opt_mask jfc_opt_mask;
  bool is_actived; /* usable; true after create, false after alloc */
  uint64_t urma_jfc_cqe_base_addr;
  uint32_t urma_jfc_id;
  uint64_t urma_jfc_db_addr;
  uint8_t urma_jfc_db_status;
  uint16_t urma_jfc_pi;
  uint16_t urma_jfc_pi_type;
  uint16_t urma_jfc_ci;
  uint64_t reserved[URMA_OPT_REVERSED_NUM];
} urma_jfc_opt_t;

/* Completion queue. 248 bytes. */
typedef struct urma_jfc {
  urma_context_t* urma_ctx;
  urma_jfc_id_t jfc_id;
  urma_jfc_cfg_t jfc_cfg;      /* as in force */
  uint64_t handle;             /* internal */
  pthread_mutex_t event_mutex; /* guards the counters below */
  pthread_cond_t event_cond;   /* signalled by ack, awaited by delete */
  uint32_t comp_events_acked;
  uint32_t async_events_acked;
  urma_jfc_opt_t urma_jfc_opt;
} urma_jfc_t;

/* ---- Send queue (JFS) ---------------------------------------------------------------------------- */

typedef union urma_jfs_flag {
  struct {
    uint32_t lock_free : 1;            /* caller serialises posting */
    uint32_t error_suspend : 1;        /* 0: go on after an error, 1: become SUSPENDED */
    uint32_t outorder_comp : 1;        /* completions may come out of order (RM, RC) */
    uint32_t order_type : 8;           /* urma_order_type_t; 0 is replaced in the caller's cfg */
    uint32_t multi_path : 1;           /* bonding */
    uint32_t ctp_rc_mul_path_mode : 1; /* several paths for CTP with RC */
    uint32_t non_blocking : 1;         /* delete answers URMA_EAGAIN instead of waiting for acks */
    uint32_t has_drv_ext : 1;          /* this is the `base` of bondp_jfs_cfg_t */
    uint32_t reserved : 17;
  } bs;
  uint32_t value;
} urma_jfs_flag_t;

/* Valid members of urma_jfs_opt_t. */
union urma_jfs_opt_mask {
  struct {
    uint64_t urma_jfs_cqe_base_addr : 1;
    uint64_t urma_jfs_db_addr : 1;
    uint64_t urma_jfs_id : 1;
    uint64_t urma_jfs_pi : 1;
    uint64_t urma_jfs_pi_type : 1;
    uint64_t urma_jfs_ci : 1;
    uint64_t urma_jfs_db_status : 1;
    uint64_t reserved : 57;
  } bs;
  uint64_t value;
};

/* Advanced state, see urma_alloc_jfs. */
typedef struct urma_jfs_opt {
  union urma_jfs_opt_mask jfs_opt_mask;
  bool is_actived;
  uint64_t urma_jfs_sqe_base_addr;
  uint32_t urma_jfs_id;
  uint64_t urma_jfs_db_addr;
  uint8_t urma_jfs_db_status;
  uint16_t urma_jfs_pi;
  uint16_t urma_jfs_pi_type;
  uint16_t urma_jfs_ci;
  uint64_t reserved[URMA_OPT_REVERSED_NUM];
} urma_jfs_opt_t;

/* Send side of a JFS or jetty. 40 bytes. */
typedef struct urma_jfs_cfg {
  uint32_t depth; /* outstanding WRs, 1 .. max_jfs_depth */
  urma_jfs_flag_t flag;
  urma_transport_mode_t trans_mode;
  uint8_t priority;         /* 0 .. 15, larger is more urgent */
  uint8_t max_sge;          /* local elements of a WR, 0 counts as 1 */
  uint8_t max_rsge;         /* remote elements of a WR, 0 counts as 1 */
  uint32_t max_inline_data; /* bytes, 0: library default; the object's copy shows the result */
  uint8_t rnr_retry;        /* retries when the peer has no receive buffer: 0 none, 7 without end */
  uint8_t err_timeout;      /* code 0 .. 31: 4.096 us * 2^code per try before URMA_CR_ACK_TIMEOUT_ERR */
  urma_jfc_t* jfc;          /* takes the send completions, must not be NULL */
  uint64_t user_ctx;
} urma_jfs_cfg_t;

/* Send-only queue. 256 bytes. */
typedef struct urma_jfs {
  urma_context_t* urma_ctx;
  urma_jfs_id_t jfs_id;
  urma_jfs_cfg_t jfs_cfg; /* as in force */
  uint64_t handle;        /* internal */
  pthread_mutex_t event_mutex;
  pthread_cond_t event_cond;
  uint32_t async_events_acked;
  urma_jfs_opt_t urma_jfs_opt;
} urma_jfs_t;

typedef struct urma_jfs_attr {
  uint32_t mask; /* set of urma_jfs_attr_mask_t */
  urma_jfs_state_t state;
} urma_jfs_attr_t;

/* ---- Receive queue (JFR) ------------------------------------------------------------------------- */

typedef union urma_jfr_flag {
  struct {
    uint32_t token_policy : 3; /* URMA_TOKEN_*: what senders must present */
    uint32_t tag_matching : 1; /* keep 0 */
    uint32_t lock_free : 1;    /* caller serialises posting */
    uint32_t order_type : 8;   /* urma_order_type_t, same as in the jettys that share the JFR */
    uint32_t has_drv_ext : 1;  /* this is the `base` of bondp_jfr_cfg_t */
    uint32_t non_blocking : 1; /* delete answers URMA_EAGAIN instead of waiting for acks */
    uint32_t reserved : 17;
  } bs;
  uint32_t value;
} urma_jfr_flag_t;

/* Valid members of urma_jfr_opt_t. */
union urma_jfr_opt_mask {
  struct {
    uint64_t urma_jfr_cqe_base_addr : 1;
    uint64_t urma_jfr_db_addr : 1;
    uint64_t urma_jfr_id : 1;
    uint64_t urma_jfr_pi : 1;
    uint64_t urma_jfr_pi_type : 1;
    uint64_t urma_jfr_ci : 1;
    uint64_t urma_jfr_db_status : 1;
    uint64_t reserved : 57;
  } bs;
  uint64_t value;
};

/* Advanced state, see urma_alloc_jfr. */
typedef struct urma_jfr_opt {
  union urma_jfr_opt_mask jfr_opt_mask;
  bool is_actived;
  uint64_t urma_jfr_rqe_base_addr;
  uint32_t urma_jfr_id;
  uint64_t urma_jfr_db_addr;
  uint8_t urma_jfr_db_status;
  uint16_t urma_jfr_pi;
  uint16_t urma_jfr_pi_type;
  uint16_t urma_jfr_ci;
  uint64_t reserved[URMA_OPT_REVERSED_NUM];
} urma_jfr_opt_t;

/*
 * 48 bytes. min_rnr_timer is the code of the pause a sender makes when no receive is posted, in ms:
 *   0: 655.36   1: 0.01    2: 0.02    3: 0.03    4: 0.04    5: 0.06    6: 0.08    7: 0.12
 *   8: 0.16     9: 0.24   10: 0.32   11: 0.48   12: 0.64   13: 0.96   14: 1.28   15: 1.92
 *  16: 2.56    17: 3.84   18: 5.12   19: 7.68   20: 10.24  21: 15.36  22: 20.48  23: 30.72
 *  24: 40.96   25: 61.44  26: 81.92  27: 122.88 28: 163.84 29: 245.76 30: 327.68 31: 491.52
 */
typedef struct urma_jfr_cfg {
  uint32_t id;    /* wanted id, 0: any */
  uint32_t depth; /* receive WRs, 1 .. max_jfr_depth */
  urma_jfr_flag_t flag;
  urma_transport_mode_t trans_mode;
  uint8_t max_sge;          /* elements of a WR, 0 counts as 1 */
  uint8_t min_rnr_timer;    /* code 0 .. 31, table above */
  urma_jfc_t* jfc;          /* takes the receive completions, must not be NULL */
  urma_token_t token_value; /* used when token_policy is URMA_TOKEN_PLAIN_TEXT */
  uint64_t user_ctx;
} urma_jfr_cfg_t;

typedef struct urma_jfr_attr {
  uint32_t mask;         /* set of urma_jfr_attr_mask_t */
  uint32_t rx_threshold; /* URMA_EVENT_JFR_LIMIT when fewer receives are left */
  urma_jfr_state_t state;
} urma_jfr_attr_t;

/* Receive queue; peers can address it directly, jettys can share it. 264 bytes. */
typedef struct urma_jfr {
  urma_context_t* urma_ctx;
  urma_jfr_id_t jfr_id;
  urma_jfr_cfg_t jfr_cfg; /* as in force */
  uint64_t handle;        /* internal */
  pthread_mutex_t event_mutex;
  pthread_cond_t event_cond;
  uint32_t async_events_acked;
  urma_jfr_opt_t urma_jfr_opt;
} urma_jfr_t;

/* ---- Import of remote endpoints ------------------------------------------------------------------ */

typedef union urma_import_jetty_flag {
  struct {
    uint32_t token_policy : 3;  /* URMA_TOKEN_* of the remote object */
    uint32_t order_type : 8;    /* urma_order_type_t; 0 is replaced in the caller's struct */
    uint32_t share_tp : 1;      /* several jettys may use one channel */
    uint32_t has_drv_ext : 1;   /* this is the `base` of a bonding struct */
    uint32_t has_user_info : 1; /* bonding: a length-prefixed blob follows the struct */
    uint32_t reserved : 18;
  } bs;
  uint32_t value;
} urma_import_jetty_flag_t;

/* Remote JFR to import. 40 bytes. */
typedef struct urma_rjfr {
  urma_jfr_id_t jfr_id; /* received from the peer */
  urma_transport_mode_t trans_mode;
  urma_import_jetty_flag_t flag;
  urma_tp_type_t tp_type; /* RM, RC: URMA_RTP or URMA_CTP; UM: URMA_UTP or URMA_CTP */
} urma_rjfr_t;

typedef struct urma_tp {
  uint32_t tpn; /* number of a transport channel */
} urma_tp_t;

/* ---- Jetty --------------------------------------------------------------------------------------- */

typedef union urma_jetty_flag {
  struct {
    uint32_t share_jfr : 1;     /* 1: receives through shared.jfr (required on UB), 0: private JFR */
    uint32_t non_blocking : 1;  /* delete answers URMA_EAGAIN instead of waiting for acks */
    uint32_t has_drv_ext : 1;   /* this is the `base` of bondp_jetty_cfg_t */
    uint32_t has_user_info : 1; /* bonding */
    uint32_t reserved : 28;
  } bs;
  uint32_t value;
} urma_jetty_flag_t;

typedef struct urma_jetty_grp urma_jetty_grp_t;

/* 80 bytes. */
typedef struct urma_jetty_cfg {
  uint32_t id; /* wanted id, 0: any; compare with jetty_id.id, another one may be given */
  urma_jetty_flag_t flag;
  urma_jfs_cfg_t jfs_cfg; /* send side; its trans_mode is that of the jetty */
  union {
    struct {
      urma_jfr_t* jfr;       /* receive side */
      urma_jfc_t* jfc;       /* receive completions, NULL: those of the JFR */
    } shared;                /* share_jfr = 1 */
    urma_jfr_cfg_t* jfr_cfg; /* share_jfr = 0 */
  };
  urma_jetty_grp_t* jetty_grp; /* group to join (RM only) or NULL */
  uint64_t user_ctx;
} urma_jetty_cfg_t;

typedef union urma_ext_flag {
  struct {
    uint32_t enable : 1;
    uint32_t reserved : 31;
  } bs;
  uint32_t value;
} urma_ext_flag_t;

/* Head of an extension block. 8 bytes without the payload. */
typedef struct urma_ext {
  urma_ext_flag_t flag;
  uint32_t length; /* bytes in buf */
  __extension__ char buf[0];
} urma_ext_t;

/* Remote jetty or group to import; sent to peers as it is. 48 bytes. */
typedef struct urma_rjetty {
  urma_jetty_id_t jetty_id;
  urma_transport_mode_t trans_mode;
  urma_jetty_grp_policy_t policy; /* for type URMA_JETTY_GROUP */
  urma_target_type_t type;
  urma_import_jetty_flag_t flag;
  urma_tp_type_t tp_type; /* set by the importing side */
} urma_rjetty_t;

/* Imported remote JFR, jetty or group. 64 bytes. */
typedef struct urma_target_jetty {
  urma_context_t* urma_ctx;
  urma_jetty_id_t id; /* of the remote object */
  uint64_t handle;    /* internal */
  urma_transport_mode_t trans_mode;
  urma_tp_t tp; /* channel, meaningful once connected */
  urma_target_type_t type;
  urma_import_jetty_flag_t flag; /* with the order type in force */
  urma_jetty_grp_policy_t policy;
  urma_tp_type_t tp_type;
} urma_target_jetty_t;

typedef struct urma_jetty_attr {
  uint32_t mask;         /* set of urma_jetty_attr_mask_t */
  uint32_t rx_threshold; /* not supported with a shared JFR */
  urma_jetty_state_t state;
} urma_jetty_attr_t;

/* Advanced state, see urma_alloc_jetty. 120 bytes. */
typedef struct urma_jetty_opt {
  bool is_actived;
  urma_jfs_opt_t jfs_opt;
  uint64_t reserved[URMA_OPT_REVERSED_NUM];
} urma_jetty_opt_t;

/* Endpoint that sends and receives under one id. 344 bytes. */
typedef struct urma_jetty {
  urma_context_t* urma_ctx;
  urma_jetty_id_t jetty_id;
  urma_target_jetty_t* remote_jetty; /* RC: bound target or NULL */
  urma_jetty_cfg_t jetty_cfg;        /* as in force; shared.jfc is always set */
  uint64_t handle;                   /* internal */
  pthread_mutex_t event_mutex;
  pthread_cond_t event_cond;
  uint32_t async_events_acked;
  urma_jetty_opt_t urma_jetty_opt;
} urma_jetty_t;

/* ---- Asynchronous connect ------------------------------------------------------------------------ */

/* Channel for the results of urma_*_jetty_async. 24 bytes. */
typedef struct urma_notifier {
  urma_context_t* urma_ctx;
  int fd;                       /* readable while a result waits */
  void* incomplete_tjetty_list; /* internal */
} urma_notifier_t;

/* Result of one asynchronous import or bind. 24 bytes. */
typedef struct urma_notify {
  urma_notify_type_t type;
  urma_status_t status; /* URMA_ETIMEOUT when the time limit passed */
  uint64_t user_ctx;
  union {
    urma_target_jetty_t* tjetty; /* URMA_IMPORT_JETTY_NOTIFY */
    urma_jetty_t* jetty;         /* URMA_BIND_JETTY_NOTIFY */
  };
} urma_notify_t;

/* ---- Jetty group --------------------------------------------------------------------------------- */

typedef union urma_jetty_grp_flag {
  struct {
    uint32_t token_policy : 3;
    uint32_t reserved : 29;
  } bs;
  uint32_t value;
} urma_jetty_grp_flag_t;

/* 88 bytes. */
typedef struct urma_jetty_grp_cfg {
  char name[URMA_MAX_NAME];   /* NUL-terminated; creating a known name yields the existing group */
  urma_jetty_grp_flag_t flag; /* same token policy as in the JFR of every member */
  urma_token_t token_value;   /* same token as in the JFR of every member */
  uint32_t id;                /* wanted id, 0: any */
  urma_jetty_grp_policy_t policy;
  uint64_t user_ctx;
} urma_jetty_grp_cfg_t;

/* Set of jettys reachable under one id. 280 bytes. */
struct urma_jetty_grp {
  urma_context_t* urma_ctx;
  urma_jetty_id_t jetty_grp_id;
  urma_jetty_grp_cfg_t cfg;
  uint32_t jetty_cnt;
  urma_jetty_t** jetty_list; /* max_jetty_in_jetty_grp slots */
  pthread_mutex_t list_mutex;
  uint64_t handle; /* internal */
  pthread_mutex_t event_mutex;
  pthread_cond_t event_cond;
  uint32_t async_events_acked;
};

/* ---- Segments (memory) --------------------------------------------------------------------------- */

/* Bus-wide virtual address. 28 bytes, packed. */
typedef struct urma_ubva {
  urma_eid_t eid;
  uint32_t uasid; /* 24 significant bits */
  uint64_t va;    /* address in the owner's space */
} __attribute__((packed)) urma_ubva_t;

typedef union urma_reg_seg_flag {
  struct {
    uint32_t token_policy : 3; /* URMA_TOKEN_NONE or URMA_TOKEN_PLAIN_TEXT */
    uint32_t cacheable : 1;
    uint32_t dsva : 1;
    uint32_t access : 6;         /* set of URMA_ACCESS_*, 0: no remote access */
    uint32_t non_pin : 1;        /* do not pin */
    uint32_t user_iova : 1;      /* peers use `iova` instead of the address */
    uint32_t token_id_valid : 1; /* on UB: 1 exactly if token_id is given */
    uint32_t reserved : 18;
  } bs;
  uint32_t value;
} urma_reg_seg_flag_t;

/* Published form of the registration flags; equal bits where both have them. */
typedef union urma_seg_attr {
  struct {
    uint32_t token_policy : 3;
    uint32_t cacheable : 1;
    uint32_t dsva : 1;
    uint32_t access : 6;
    uint32_t non_pin : 1;
    uint32_t user_iova : 1;
    uint32_t user_token_id : 1; /* 1: caller owns the token id, 0: it goes away with the segment */
    uint32_t has_user_info : 1; /* bonding: a blob follows urma_seg_t */
    uint32_t reserved : 17;
  } bs;
  uint32_t value;
} urma_seg_attr_t;

typedef union urma_import_seg_flag {
  struct {
    uint32_t cacheable : 1;
    uint32_t access : 6;  /* wanted rights */
    uint32_t mapping : 1; /* 1: map into the local address space (load/store devices) */
    uint32_t reserved : 24;
  } bs;
  uint32_t value;
} urma_import_seg_flag_t;

typedef union urma_token_id_flag {
  struct {
    uint32_t multi_seg : 1; /* may serve several page-aligned segments */
    uint32_t reserved : 31;
  } bs;
  uint32_t value;
} urma_token_id_flag_t;

/* Key slot. 40 bytes. */
typedef struct urma_token_id {
  urma_context_t* urma_ctx;
  uint32_t token_id; /* number that peers see in urma_seg_t */
  uint64_t handle;   /* internal */
  urma_ref_t ref;    /* segments that use it */
  urma_token_id_flag_t flag;
} urma_token_id_t;

/* 48 bytes. */
typedef struct urma_seg_cfg {
  uint64_t va;               /* start, not 0; need not be page-aligned */
  uint64_t len;              /* bytes */
  urma_token_id_t* token_id; /* NULL: allocated by the library */
  urma_token_t token_value;  /* secret for URMA_TOKEN_PLAIN_TEXT */
  urma_reg_seg_flag_t flag;
  uint64_t user_ctx;
  uint64_t iova; /* address for peers when flag.bs.user_iova is set */
} urma_seg_cfg_t;

/* Segment as peers need it; sent to them as it is. 48 bytes. */
typedef struct urma_seg {
  urma_ubva_t ubva;
  uint64_t len; /* bytes */
  urma_seg_attr_t attr;
  uint32_t token_id;
} urma_seg_t;

/* Registered (local) or imported (remote) segment. 88 bytes. */
typedef struct urma_target_seg {
  urma_seg_t seg;
  uint64_t user_ctx;
  uint64_t mva; /* local address of an imported and mapped segment */
  urma_context_t* urma_ctx;
  urma_token_id_t* token_id; /* imported: NULL */
  uint64_t handle;           /* internal */
} urma_target_seg_t;

/* Blocks of urma_user_ctl. */
typedef struct urma_user_ctl_in {
  uint64_t addr;   /* pointer to the input struct */
  uint32_t len;    /* its size */
  uint32_t opcode; /* chosen by the driver */
} urma_user_ctl_in_t;

typedef struct urma_user_ctl_out {
  uint64_t addr; /* pointer to room for the output struct, 0: none */
  uint32_t len;  /* its size */
  uint32_t reserved;
} urma_user_ctl_out_t;

/* Key of a remote segment that was not imported. 12 bytes. */
typedef struct urma_user_target_seg {
  urma_seg_attr_t attr;
  uint32_t token_id;
  urma_token_t token_value;
} urma_user_tseg_t;

/* ---- Work requests ------------------------------------------------------------------------------- */

/* Piece of memory. 32 bytes. */
typedef struct urma_sge {
  uint64_t addr;               /* local address, or address in the space of the remote owner */
  uint32_t len;                /* bytes */
  urma_target_seg_t* tseg;     /* segment that covers the piece; local: may be NULL with inline */
  urma_user_tseg_t* user_tseg; /* remote: alternative, looked at only if tseg is NULL */
} urma_sge_t;

/* List of pieces. 16 bytes. */
typedef struct urma_sg {
  urma_sge_t* sge;
  uint32_t num_sge;
} urma_sg_t;

typedef union urma_jfs_wr_flag {
  struct {
    uint32_t place_order : 2;      /* urma_place_order_t, explained there */
    uint32_t comp_order : 1;       /* receiver completes it after earlier WRs */
    uint32_t fence : 1;            /* wait for earlier READs and atomics */
    uint32_t solicited_enable : 1; /* wakes a receiver that armed for solicited events only */
    uint32_t complete_enable : 1;  /* report success too; errors are always reported */
    uint32_t inline_flag : 1;      /* copy the payload while posting */
    uint32_t db_bypass : 1;        /* no doorbell */
    uint32_t udf : 1;              /* free for the user */
    uint32_t has_drv_ext : 1;      /* this is the `base` of bondp_jfs_wr_t */
    uint32_t reserved : 22;
  } bs;
  uint32_t value;
} urma_jfs_wr_flag_t;

/* Not used. */
typedef union urma_jfr_wr_flag {
  struct {
    uint32_t complete_type : 1;
    uint32_t reserved : 31;
  } bs;
  uint32_t value;
} urma_jfr_wr_flag_t;

/* Body of WRITE* and READ. 48 bytes. */
typedef struct urma_rw_wr {
  urma_sg_t src;        /* WRITE: local pieces; READ: remote piece */
  urma_sg_t dst;        /* WRITE: remote piece, for WRITE_NOTIFY also the notify address; READ: local pieces */
  uint8_t target_hint;  /* selects the group member */
  uint64_t notify_data; /* WRITE_IMM: immediate; WRITE_NOTIFY: value to store; host order */
} urma_rw_wr_t;

/* Body of SEND*. 40 bytes. */
typedef struct urma_send_wr {
  urma_sg_t src; /* no pieces: empty message */
  uint8_t target_hint;
  uint64_t imm_data;       /* SEND_IMM, host order */
  urma_target_seg_t* tseg; /* SEND_INVALIDATE: imported segment whose token id the peer withdraws */
} urma_send_wr_t;

/* Body of CAS and SWAP. Values up to 8 bytes stand in the WR, longer ones behind an address. 32 bytes. */
typedef struct urma_cas_wr {
  urma_sge_t* dst; /* remote operand, len is its width */
  urma_sge_t* src; /* local room for the old value */
  union {
    uint64_t cmp_data;
    uint64_t cmp_addr;
  };
  union {
    uint64_t swap_data;
    uint64_t swap_addr;
  };
} urma_cas_wr_t;

/* Body of FADD, FSUB, FAND, FOR and FXOR. 24 bytes. */
typedef struct urma_faa_wr {
  urma_sge_t* dst; /* remote operand, len is its width */
  urma_sge_t* src; /* local room for the old value */
  union {
    uint64_t operand;
    uint64_t operand_addr;
  };
} urma_faa_wr_t;

/* Send work request. 80 bytes. */
typedef struct urma_jfs_wr {
  urma_opcode_t opcode;
  urma_jfs_wr_flag_t flag;
  urma_target_jetty_t* tjetty; /* RM, UM: destination; RC: not looked at */
  uint64_t user_ctx;           /* returned in the completion */
  union {
    urma_rw_wr_t rw;
    urma_send_wr_t send;
    urma_cas_wr_t cas;
    urma_faa_wr_t faa;
  };
  struct urma_jfs_wr* next; /* NULL: last of the chain */
} urma_jfs_wr_t;

/* Receive work request. 32 bytes. */
typedef struct urma_jfr_wr {
  urma_sg_t src; /* buffers that take the message */
  uint64_t user_ctx;
  struct urma_jfr_wr* next;
} urma_jfr_wr_t;

/* ---- Completions and events ---------------------------------------------------------------------- */

typedef union urma_cr_flag {
  struct {
    uint8_t s_r : 1;            /* 0: send side, 1: receive side */
    uint8_t jetty : 1;          /* local_id is that of a jetty */
    uint8_t suspend_done : 1;   /* a WR's record that also marks the end of suspension; never set here */
    uint8_t flush_err_done : 1; /* likewise of the flush; never set here: the marker is a record of its own */
    uint8_t reserved : 4;
  } bs;
  uint8_t value;
} urma_cr_flag_t;

typedef struct urma_cr_token {
  uint32_t token_id;
  urma_token_t token_value;
} urma_cr_token_t;

/* Completion record. 80 bytes; poll fills all of them. */
typedef struct urma_cr {
  urma_cr_status_t status;
  uint64_t user_ctx;       /* of the WR; undefined in SUSPEND_DONE and FLUSH_ERR_DONE markers */
  urma_cr_opcode_t opcode; /* receive side only, 0xff on the send side */
  urma_cr_flag_t flag;
  uint32_t completion_len;   /* bytes moved */
  uint32_t local_id;         /* local jetty, JFS or JFR; with a shared JFR the jetty that was addressed */
  urma_jetty_id_t remote_id; /* receive side: sender */
  union {
    uint64_t imm_data;             /* *_WITH_IMM, host order */
    urma_cr_token_t invalid_token; /* SEND_WITH_INV */
  };
  uint32_t tpn;        /* channel, informational */
  uintptr_t user_data; /* pointer to the local urma_jetty_t, urma_jfs_t or urma_jfr_t */
} urma_cr_t;

/* Asynchronous event. 32 bytes. */
typedef struct urma_async_event {
  const urma_context_t* urma_ctx;
  union {
    urma_jfc_t* jfc;
    urma_jfs_t* jfs;
    urma_jfr_t* jfr;
    urma_jetty_t* jetty;
    urma_jetty_grp_t* jetty_grp;
    uint32_t port_id;
    uint32_t eid_idx;
  } element; /* member: see urma_async_event_type_t */
  urma_async_event_type_t event_type;
  void* priv; /* internal */
} urma_async_event_t;

/* ---- Unions of segments ("UR"): declared only, no call uses them --------------------------------- */

typedef union urma_ur_attr {
  struct {
    uint32_t reserved : 32;
  } bs;
  uint32_t value;
} urma_ur_attr_t;

typedef union urma_import_ur_flag {
  struct {
    uint32_t mapping : 2;
    uint32_t reserved : 30;
  } bs;
  uint32_t value;
} urma_import_ur_flag_t;

typedef struct urma_ur {
  char name[UR_NAME_MAX_LEN];
  uint64_t size;
  urma_ur_attr_t attr;
  uint64_t token;
  uint64_t user_ctx;
} urma_ur_t;

typedef struct urma_target_ur {
  char name[UR_NAME_MAX_LEN];
  uint64_t size;
  urma_import_ur_flag_t flag;
  urma_target_seg_t** tseg_list;
  uint32_t cnt;
} urma_target_ur_t;

typedef struct urma_seg_info {
  urma_seg_t seg;
  uint32_t idx_in_ur;
} urma_seg_info_t;

typedef struct urma_ur_info {
  char name[UR_NAME_MAX_LEN];
  uint64_t size;
  urma_ur_attr_t attr;
  uint32_t cnt;
  __extension__ urma_seg_info_t seg_list[0];
} urma_ur_info_t;

typedef struct urma_jfr_info {
  char name[JFR_NAME_MAX_LEN];
  urma_eid_t eid;
  uint32_t uasid;
  uint32_t id;
} urma_jfr_info_t;

/* ---- Transport channels (TP) --------------------------------------------------------------------- */

/* User TP: roles and switches. */
typedef union urma_tp_cfg_flag {
  struct {
    uint32_t target : 1; /* 0: initiator */
    uint32_t loopback : 1;
    uint32_t dca_enable : 1;
    uint32_t bonding : 1;
    uint32_t reserved : 28;
  } bs;
  uint32_t value;
} urma_tp_cfg_flag_t;

typedef struct urma_tp_cfg {
  urma_tp_cfg_flag_t flag;
  urma_transport_mode_t trans_mode;
  uint8_t retry_num;
  uint8_t retry_factor;
  uint8_t ack_timeout;
  uint8_t dscp;
  uint32_t oor_cnt;
} urma_tp_cfg_t;

/* Members of urma_tp_attr_t that urma_modify_tp applies. */
typedef union urma_tp_attr_mask {
  struct {
    uint32_t flag : 1;
    uint32_t peer_tpn : 1;
    uint32_t state : 1;
    uint32_t tx_psn : 1;
    uint32_t rx_psn : 1;
    uint32_t mtu : 1;
    uint32_t cc_pattern_idx : 1;
    uint32_t oos_cnt : 1;
    uint32_t local_net_addr_idx : 1;
    uint32_t peer_net_addr : 1;
    uint32_t data_udp_start : 1;
    uint32_t ack_udp_start : 1;
    uint32_t udp_range : 1;
    uint32_t hop_limit : 1;
    uint32_t flow_label : 1;
    uint32_t port_id : 1;
    uint32_t mn : 1;
    uint32_t peer_trans_type : 1;
    uint32_t reserved : 14;
  } bs;
  uint32_t value;
} urma_tp_attr_mask_t;

typedef union urma_tp_mod_flag {
  struct {
    uint32_t oor_en : 1;   /* out-of-order reception */
    uint32_t sr_en : 1;    /* selective retransmission */
    uint32_t cc_en : 1;    /* congestion control */
    uint32_t cc_alg : 4;   /* urma_tp_cc_alg_t */
    uint32_t spray_en : 1; /* source-port spraying */
    uint32_t clan : 1;
    uint32_t reserved : 23;
  } bs;
  uint32_t value;
} urma_tp_mod_flag_t;

/* Network address of a port. 48 bytes. */
typedef struct urma_net_addr {
  sa_family_t sin_family; /* AF_INET or AF_INET6 */
  union {
    struct in_addr in4;
    struct in6_addr in6;
  };
  uint64_t vlan;
  uint8_t mac[URMA_MAC_BYTES];
  uint32_t prefix_len;
} urma_net_addr_t;

typedef struct urma_net_addr_info {
  urma_net_addr_t netaddr;
  uint32_t index; /* slot of the net-address table */
} urma_net_addr_info_t;

/* User TP. 112 bytes. */
typedef struct urma_tp_attr {
  urma_tp_mod_flag_t flag;
  uint32_t peer_tpn;
  urma_tp_state_t state;
  uint32_t tx_psn;
  uint32_t rx_psn;
  urma_mtu_t mtu;
  uint8_t cc_pattern_idx;
  uint32_t oos_cnt;
  uint32_t local_net_addr_idx;
  urma_net_addr_t peer_net_addr;
  uint16_t data_udp_start;
  uint16_t ack_udp_start;
  uint8_t udp_range;
  uint8_t hop_limit;
  uint32_t flow_label;
  uint8_t port_id;
  uint8_t mn;
  urma_transport_type_t peer_trans_type;
} urma_tp_attr_t;

/* Kind of channel that urma_get_tp_list looks for. */
typedef union urma_get_tp_cfg_flag {
  struct {
    uint32_t ctp : 1;
    uint32_t rtp : 1;
    uint32_t utp : 1;
    uint32_t uboe : 1;
    uint32_t pre_defined : 1;
    uint32_t dynamic_defined : 1;
    uint32_t udp : 5;
    uint32_t group_id : 15;
    uint32_t reserved : 6;
  } bs;
  uint32_t value;
} urma_get_tp_cfg_flag_t;

typedef struct urma_get_tp_cfg {
  urma_get_tp_cfg_flag_t flag;
  urma_transport_mode_t trans_mode;
  urma_eid_t local_eid;
  urma_eid_t peer_eid;
} urma_get_tp_cfg_t;

typedef struct urma_tp_info {
  uint64_t tp_handle; /* opaque */
} urma_tp_info_t;

/* First packet sequence numbers, exchanged by the program. */
typedef struct urma_active_tp_attr {
  uint32_t tx_psn; /* of what this side sends */
  uint32_t rx_psn; /* of what this side expects */
  uint64_t reserved;
} urma_active_tp_attr_t;

/* Explicit channel of the *_ex calls. 40 bytes. */
typedef struct urma_active_tp_cfg {
  uint64_t tp_handle;      /* own handle, from urma_get_tp_list */
  uint64_t peer_tp_handle; /* handle of the peer, RTP only */
  uint64_t tag;            /* reserved */
  urma_active_tp_attr_t tp_attr;
} urma_active_tp_cfg_t;

typedef struct urma_active_tp_cfg urma_import_jetty_ex_cfg_t, urma_import_jfr_ex_cfg_t, urma_bind_jetty_ex_cfg_t;

/* Attributes of urma_set_tp_attr and urma_get_tp_attr. 128 bytes, no padding. */
#pragma pack(push, 1)
typedef struct urma_tp_attr_value {
  uint8_t retry_times_init : 3;
  uint8_t at : 5;
  uint8_t sip[URMA_IP_ADDR_BYTES];
  uint8_t dip[URMA_IP_ADDR_BYTES];
  uint8_t sma[URMA_MAC_BYTES];
  uint8_t dma[URMA_MAC_BYTES];
  uint16_t vlan_id : 12;
  uint8_t vlan_en : 1;
  uint8_t dscp : 6;
  uint8_t at_times : 5;
  uint8_t sl : 4;
  uint8_t ttl;
  uint16_t ack_udp_srcport;
  uint16_t data_udp_srcport;
  uint8_t udp_srcport_range : 4;
  uint8_t spray_en : 1;
  uint8_t udp_global_en : 1;
  uint8_t reserve_0 : 2;
  uint16_t sl_bitmap;
  uint8_t dscp_config_mode : 1;
  uint8_t reserve_1 : 7;
  uint8_t reserved[70];
} urma_tp_attr_value_t;
#pragma pack(pop)

/* ---- Callbacks ----------------------------------------------------------------------------------- */

typedef void (*urma_async_event_cb)(urma_async_event_t* event, void* arg);
/* Result of urma_advise_jfr_async. */
typedef void (*urma_advise_async_cb_func)(urma_status_t result, void* arg);
/* Log sinks; may run in any thread. level is 0 .. 7, message is valid during the call only. */
typedef void (*urma_log_cb_t)(int level, char* message);
typedef void (*urma_loc_log_cb)(int level, const char* file, const char* function, int line, char* message);

/* ---- EID helpers --------------------------------------------------------------------------------- */

/**
 * Makes an IPv4-mapped EID (::ffff:a.b.c.d) of an address.
 * Pure computation: any thread, at any time, never blocks; needs no urma_init.
 *
 * @param ipv4 address as a number in host byte order, 0xc0a86401 for 192.168.100.1.
 * @param eid receives the EID; nothing happens if NULL.
 */
void urma_u32_to_eid(uint32_t ipv4, urma_eid_t* eid);

/**
 * Reads an EID from text: an IPv6 address ("fe80::1"), else a dotted IPv4 address ("10.0.0.1"), else a
 * number ("0x0a000001", "167772161", leading 0: octal) taken as IPv4 address in host order.
 * Pure computation: any thread, at any time, never blocks; needs no urma_init.
 *
 * @param buf NUL-terminated text without surrounding blanks.
 * @param eid receives the EID, untouched on failure.
 * @return 0; -EINVAL: argument NULL, text shorter than 3 characters, in none of these forms, or number
 *         above 32 bits.
 */
int urma_str_to_eid(const char* buf, urma_eid_t* eid);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* URMA_TYPES_H */
