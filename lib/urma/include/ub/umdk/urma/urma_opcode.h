/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of the URMA interface: status codes, work-request opcodes, completion codes, event codes,
 * flag values and option numbers (URMA API 0.9).
 *
 * Idea: everything here is a plain constant that also travels through logs, option buffers or the wire,
 * so each value is written out and never depends on the order of declaration.
 */
#ifndef URMA_OPCODE_H
#define URMA_OPCODE_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Status of a call. 0 is success, every failure is positive; most codes are the errno of the same name. */
typedef int urma_status_t;

#define URMA_SUCCESS 0
#define URMA_EAGAIN EAGAIN           /* busy, the same call may succeed later */
#define URMA_ENOMEM ENOMEM           /* out of memory, or a queue has no free slot */
#define URMA_ENOPERM EPERM           /* not allowed in this state, or not supported */
#define URMA_ETIMEOUT ETIMEDOUT      /* time limit passed */
#define URMA_EINVAL EINVAL           /* argument rejected */
#define URMA_EEXIST EEXIST           /* already done */
#define URMA_EINPROGRESS EINPROGRESS /* started, not finished */
#define URMA_FAIL 0x1000             /* any other failure */

/* Token policy of a segment, JFR or group: what a peer has to present. */
#define URMA_TOKEN_NONE 0          /* nothing */
#define URMA_TOKEN_PLAIN_TEXT 1    /* the 32-bit token itself */
#define URMA_TOKEN_SIGNED 2        /* signed messages, rejected by this implementation */
#define URMA_TOKEN_ALL_ENCRYPTED 3 /* encrypted messages, rejected by this implementation */
#define URMA_TOKEN_RESERVED 4

/* urma_reg_seg_flag_t.token_id_valid: does urma_seg_cfg_t.token_id hold an object? */
#define URMA_TOKEN_ID_INVALID 0
#define URMA_TOKEN_ID_VALID 1

/* Segment attributes. */
#define URMA_DSVA_DISABLE 0
#define URMA_DSVA_ENABLE 1
#define URMA_NON_CACHEABLE 0
#define URMA_CACHEABLE 1

/* Access rights of a segment, OR-able. WRITE needs READ, ATOMIC needs both, LOCAL_ONLY stands alone. */
#define URMA_ACCESS_LOCAL_ONLY 1
#define URMA_ACCESS_READ 2
#define URMA_ACCESS_WRITE 4
#define URMA_ACCESS_ATOMIC 8

/* Memory kind, mapping on import, address kind. */
#define URMA_LOCAL_MEMORY 0
#define URMA_REMOTE_MEMORY 1
#define URMA_SEG_NOMAP 0
#define URMA_SEG_MAPPED 1
#define URMA_ADDR_TYPE_MVA 0
#define URMA_ADDR_TYPE_UBVA 1

/* Completion of a work request: wanted or not, and reported through a JFC or a completion flag. */
#define URMA_COMPLETE_ENABLE 1
#define URMA_COMPLETE_DISABLE 0
#define URMA_COMPLETE_TYPE_JFC 0
#define URMA_COMPLETE_TYPE_CF 1

/* Dependency between work requests. */
#define URMA_DEPENDENCY_NONE 0
#define URMA_DEPENDENCY_FIRST 1
#define URMA_DEPENDENCY_DELAY 2

/* Notification of the remote side. */
#define URMA_NOTIFY_DISABLE 0
#define URMA_NOTIFY_ENABLE 1
#define URMA_NOTIFY_TYPE_JFC 0
#define URMA_NOTIFY_TYPE_RVA 1

/* Switches of urma_jfs_wr_flag_t. */
#define URMA_INLINE_DISABLE 0
#define URMA_INLINE_ENABLE 1
#define URMA_SOLICITED_DISABLE 0
#define URMA_SOLICITED_ENABLE 1
#define URMA_FENCE_DISABLE 0
#define URMA_FENCE_ENABLE 1

/* Further switches. */
#define URMA_IRREGULAR 0
#define URMA_REGULAR 1
#define URMA_NO_TAG_MATCHING 0
#define URMA_WITH_TAG_MATCHING 1
#define URMA_NONPOST_LS 0
#define URMA_POST_LS 1
#define URMA_NO_SHARE_JFR 0
#define URMA_SHARE_JFR 1

/* Values that suit most programs (codes, see urma_jfs_cfg_t and urma_jfr_cfg_t for the units). */
#define URMA_TYPICAL_RNR_RETRY 7
#define URMA_TYPICAL_ERR_TIMEOUT 17
#define URMA_TYPICAL_MIN_RNR_TIMER 12
#define URMA_MAX_PRIORITY 15

/* Option numbers of urma_{set,get}_jfs_opt (and, for the send side, urma_{set,get}_jetty_opt). */
#define URMA_JFS_DEPTH 0x0001
#define URMA_JFS_FLAG 0x0002
#define URMA_JFS_TRANS_MODE 0x0003
#define URMA_JFS_PRIORITY 0x0004
#define URMA_JFS_MAX_SGE 0x0005
#define URMA_JFS_MAX_RSGE 0x0006
#define URMA_JFS_MAX_INLINE_DATA 0x0007
#define URMA_JFS_RNR_RETRY 0x0008
#define URMA_JFS_ERR_TIMEOUT 0x0009
#define URMA_JFS_BIND_JFC 0x000a
#define URMA_JFS_USER_CTX 0x000b
#define URMA_JFS_SQE_BASE_ADDR 0x000c
#define URMA_JFS_ID 0x000d
#define URMA_JFS_DB_ADDR 0x000e
#define URMA_JFS_DB_STATUS 0x000f
#define URMA_JFS_PI 0x0010
#define URMA_JFS_PI_TYPE 0x0011
#define URMA_JFS_CI 0x0012
#define URMA_JFS_FULL_CTX 0x0013

/* Option numbers of urma_{set,get}_jfr_opt. */
#define URMA_JFR_DEPTH 0x1001
#define URMA_JFR_FLAG 0x1002
#define URMA_JFR_TRANS_MODE 0x1003
#define URMA_JFR_MAX_SGE 0x1004
#define URMA_JFR_MIN_RNR_TIMER 0x1005
#define URMA_JFR_BIND_JFC 0x1006
#define URMA_JFR_TOKEN_VALUE 0x1007
#define URMA_JFR_USER_CTX 0x1008
#define URMA_JFR_RQE_BASE_ADDR 0x1009
#define URMA_JFR_ID 0x100a
#define URMA_JFR_DB_ADDR 0x100b
#define URMA_JFR_DB_STATUS 0x100c
#define URMA_JFR_PI 0x100d
#define URMA_JFR_PI_TYPE 0x100e
#define URMA_JFR_CI 0x100f
#define URMA_JFR_FULL_CTX 0x1010

/* Option numbers of urma_{set,get}_jfc_opt. */
#define URMA_JFC_DEPTH 0x2001
#define URMA_JFC_CEQN 0x2002
#define URMA_JFC_FLAG 0x2003
#define URMA_JFC_BIND_JFCE 0x2004
#define URMA_JFC_USER_CTX 0x2005
#define URMA_JFC_CQE_BASE_ADDR 0x2006
#define URMA_JFC_ID 0x2007
#define URMA_JFC_DB_ADDR 0x2008
#define URMA_JFC_DB_STATUS 0x2009
#define URMA_JFC_PI 0x200a
#define URMA_JFC_PI_TYPE 0x200b
#define URMA_JFC_CI 0x200c
#define URMA_JFC_FULL_CTX 0x200d

/* Option numbers of urma_{set,get}_jetty_opt. */
#define URMA_JETTY_ID 0x3001
#define URMA_JETTY_FLAG 0x3002
#define URMA_JETTY_BIND_JFR 0x3003
#define URMA_JETTY_BIND_RX_JFC 0x3004
#define URMA_JETTY_BIND_JTG 0x3005
#define URMA_JETTY_USER_CTX 0x3006
#define URMA_JETTY_FULL_CTX 0x3007

/*
 * urma_jfs_wr_flag_t.place_order: in which order the WRs of a queue are done at the target. STRONG is done after all
 * earlier ones that are RELAX or STRONG. Those with NO_ORDER, which is what 0 means, are not waited for.
 */
typedef enum urma_place_order { URMA_NO_ORDER = 0, URMA_RELAX_ORDER = 1, URMA_STRONG_ORDER = 2 } urma_place_order_t;

/* Operation of a send work request; selects the member of the union in urma_jfs_wr_t. */
typedef enum urma_opcode {
  URMA_OPC_WRITE = 0x0,            /* rw: remote write */
  URMA_OPC_WRITE_IMM = 0x1,        /* rw: write that also uses up a receive WR of the peer and reports there */
  URMA_OPC_WRITE_NOTIFY = 0x2,     /* rw: write, then store 8 bytes at dst.sge[1]; silent at the peer */
  URMA_OPC_READ = 0x10,            /* rw: remote read */
  URMA_OPC_CAS = 0x20,             /* cas: compare and swap */
  URMA_OPC_SWAP = 0x21,            /* cas: swap */
  URMA_OPC_FADD = 0x22,            /* faa: fetch and add */
  URMA_OPC_FSUB = 0x23,            /* faa: fetch and subtract */
  URMA_OPC_FAND = 0x24,            /* faa: fetch and AND */
  URMA_OPC_FOR = 0x25,             /* faa: fetch and OR */
  URMA_OPC_FXOR = 0x26,            /* faa: fetch and XOR */
  URMA_OPC_SEND = 0x40,            /* send: message */
  URMA_OPC_SEND_IMM = 0x41,        /* send: message with 64-bit immediate */
  URMA_OPC_SEND_INVALIDATE = 0x42, /* send: message that withdraws a token id of the peer */
  URMA_OPC_NOP = 0x51,
  URMA_OPC_WRITE_ATOMIC = 0x60, /* rw: depends on the device */
  URMA_OPC_FLUSH_DMA = 0x80,
  URMA_OPC_LAST = 0x81
} urma_opcode_t;

/* Outcome of a work request. LOC_*: fault found here; REM_*: fault reported by the peer. */
typedef enum urma_cr_status {
  URMA_CR_SUCCESS = 0,
  URMA_CR_UNSUPPORTED_OPCODE_ERR = 1,
  URMA_CR_LOC_LEN_ERR = 2, /* for example a message longer than the receive buffer */
  URMA_CR_LOC_OPERATION_ERR = 3,
  URMA_CR_LOC_ACCESS_ERR = 4,
  URMA_CR_REM_RESP_LEN_ERR = 5,
  URMA_CR_REM_UNSUPPORTED_REQ_ERR = 6,
  URMA_CR_REM_OPERATION_ERR = 7,
  URMA_CR_REM_ACCESS_ABORT_ERR = 8,   /* token, range or access right refused by the peer */
  URMA_CR_ACK_TIMEOUT_ERR = 9,        /* no answer after all retries */
  URMA_CR_RNR_RETRY_CNT_EXC_ERR = 10, /* the peer stayed without receive buffers */
  URMA_CR_WR_FLUSH_ERR = 11,          /* dropped, the queue went to ERROR */
  URMA_CR_WR_SUSPEND_DONE = 12,       /* marker: queue is suspended; belongs to no WR */
  URMA_CR_WR_FLUSH_ERR_DONE = 13,     /* marker: flush finished; belongs to no WR */
  URMA_CR_WR_UNHANDLED = 14,          /* from urma_flush_*: WR that was never started */
  URMA_CR_LOC_DATA_POISON = 15,
  URMA_CR_REM_DATA_POISON = 0x10
} urma_cr_status_t;

/* What arrived, in receive completions. Numbering differs from urma_opcode_t. */
typedef enum urma_cr_opcode {
  URMA_CR_OPC_SEND = 0,
  URMA_CR_OPC_SEND_WITH_IMM = 1,
  URMA_CR_OPC_SEND_WITH_INV = 2,
  URMA_CR_OPC_WRITE_WITH_IMM = 3,
  URMA_CR_OPC_FLUSH_WRITE = 4
} urma_cr_opcode_t;

/* Asynchronous events; the comment names the valid member of urma_async_event_t.element. */
typedef enum urma_async_event_type {
  URMA_EVENT_JFC_ERR = 0,       /* jfc */
  URMA_EVENT_JFS_ERR = 1,       /* jfs */
  URMA_EVENT_JFR_ERR = 2,       /* jfr */
  URMA_EVENT_JFR_LIMIT = 3,     /* jfr: fewer receives posted than rx_threshold */
  URMA_EVENT_JETTY_ERR = 4,     /* jetty */
  URMA_EVENT_JETTY_LIMIT = 5,   /* jetty */
  URMA_EVENT_JETTY_GRP_ERR = 6, /* jetty_grp */
  URMA_EVENT_PORT_ACTIVE = 7,   /* port_id */
  URMA_EVENT_PORT_DOWN = 8,     /* port_id */
  URMA_EVENT_DEV_FATAL = 9,     /* none */
  URMA_EVENT_EID_CHANGE = 10,   /* eid_idx */
  URMA_EVENT_ELR_ERR = 11,      /* none */
  URMA_EVENT_ELR_DONE = 12      /* none */
} urma_async_event_type_t;

#ifdef __cplusplus
}
#endif

#endif /* URMA_OPCODE_H */
