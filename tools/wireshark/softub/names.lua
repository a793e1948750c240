-- SPDX-License-Identifier: Apache-2.0
-- The names of everything that a packet has a number for: the tables of lib/transport/wire in words. A test compares
-- the opcodes and the drops with those headers.
return function(ub)
  local names = {}
  ub.names = names

  names.cfg = {
    [0] = "link control", [3] = "IPv4", [4] = "IPv6", [5] = "network management", [6] = "NTH16, not coherent",
    [7] = "NTH24", [9] = "NTH16, load or store",
  }
  names.cci_mode = { [0] = "CAQM", [2] = "FECN_RTT", [4] = "FECN" }
  names.fecn = { [0] = "not markable", [1] = "light congestion", [2] = "no congestion", [3] = "severe congestion" }
  names.nth24_nlp = { [0] = "CTPH", [2] = "RTPH" }
  names.nth16_nlp = { [0] = "TAH or CTPH", [1] = "UPIH-16" }

  names.tp_opcode = {
    [0] = "unreliable", [1] = "data", [2] = "TPACK or TPNAK", [3] = "TPACK-CC or TPNAK-CC", [5] = "TPSACK",
    [6] = "TPSACK-CC", [8] = "CNP",
  }
  names.ctp_opcode = { [0] = "data", [1] = "CNP" }
  names.nlp = { [0] = "BTAH or ATAH", [1] = "UPIH-32 and EIDH-256", [2] = "UPIH-16 and EIDH-40", [3] = "CIPH" }
  names.tp_status = {
    [0] = "success", [1] = "RNR", [2] = "page fault", [3] = "error", [5] = "with the answer of a transaction",
  }
  names.ta_status = { [0] = "success", [1] = "RNR", [2] = "page fault", [3] = "error", [5] = "received" }
  names.compact_status = { [0] = "success", [1] = "authentication failed" }
  names.error_info = { [0] = "PSN error", [1] = "unsupported request", [2] = "remote abort" }
  names.fused_info = { [0] = "failed, a retry may succeed", [1] = "failed for good", [2] = "executed" }
  names.cnp_ecn = { [0] = "none", [1] = "minor", [3] = "severe" }
  names.sack_size = { [0] = "64 bits", [1] = "128 bits", [2] = "256 bits", [3] = "512 bits", [4] = "1024 bits" }

  names.ee = { [1] = "non-TEE", [3] = "TEE" }
  names.order = { [0] = "no order (NO)", [1] = "relaxed order (RO)", [2] = "strong order (SO)", [3] = "reserved" }
  names.rc_type = { [0] = "send queue", [1] = "send queue", [2] = "sequence context" }
  names.tc_type = { [0] = "queue", [1] = "queue", [2] = "group" }
  names.alu = { [0] = "ADD", "CLR", "EOR", "SET", "SMAX", "SMIN", "UMAX", "UMIN" }

  names.record_type = {
    "REQ", "REP", "CONF", "REJ", "CLOSE", "CLOSED", "PING", "PONG", "RESET", "SC_FREE", "FIND", "FOUND",
  }
  names.record_reason = {
    [0] = "none", "no resources", "parameter", "glare", "unknown entity", "unknown TPN", "restarted", "admin",
  }
  names.algorithm = { [0] = "none", "C-AQM", "LDCP", "DCQCN" }

  -- Each opcode, and the headers that it has, as UB_TA_OPCODES of opcodes.h lists them.
  local function request(name, has)
    has.name, has.request = name, true
    return has
  end
  local function send(name, has)
    has.mt, has.ofst, has.tv, has.payload = true, true, true, true
    return request(name, has)
  end
  local function write(name, has)
    has.ma, has.tv, has.payload = true, true, true
    return request(name, has)
  end
  local function store(name, has)
    has.bypass = true
    return write(name, has)
  end
  local function atomic(name)
    return write(name, { atomic = true })
  end
  ub.opcodes = {
    [0x00] = send("SEND", {}),
    [0x01] = send("SEND_IMM", { imm = true }),
    [0x02] = send("SEND_INV", { imm = true }),
    [0x03] = store("WRITE", {}),
    [0x04] = write("WRITE_IMM", { mt = true, imm = true }),
    [0x05] = write("WRITE_NOTIFY", { ntf = true }),
    [0x06] = request("READ", { read_meta = true, ma = true, tv = true, bypass = true }),
    [0x07] = atomic("CAS"),
    [0x08] = atomic("SWAP"),
    [0x09] = atomic("ATOMIC_STORE"),
    [0x0A] = atomic("ATOMIC_LOAD"),
    [0x0B] = atomic("FETCH_ADD"),
    [0x0C] = atomic("FETCH_SUB"),
    [0x0D] = atomic("FETCH_AND"),
    [0x0E] = atomic("FETCH_OR"),
    [0x0F] = atomic("FETCH_XOR"),
    [0x10] = request("MGMT", { mgmt = true, payload = true }),
    [0x11] = { name = "TAACK", bypass = true },
    [0x12] = { name = "READ_RESP", read_meta = true, payload = true, bypass = true },
    [0x13] = { name = "ATOMIC_RESP", payload = true },
    [0x14] = store("WRITE_BE", { be = true }),
    [0x15] = request("PREFETCH", { ma = true, bypass = true }),
    [0x17] = store("WRITEBACK", {}),
    [0x18] = store("WRITEBACK_BE", { be = true }),
  }
  names.opcode = {}
  for code, shape in pairs(ub.opcodes) do
    names.opcode[code] = shape.name
  end

  -- Why a Core drops a packet: the names of drop.h that a capture can show, then those of counters for what it can tell
  -- of datagrams. `answered`: on a reliable channel the target answers 011/1 (unsupported request) and is not silent.
  ub.drops = {
    { "too_short", "the frame ends before its network or transport header does" },
    { "bad_ip_header", "the IP header has options, or its checksum or a length is wrong" },
    { "fragment", "it came in IP fragments" },
    { "bad_udp_length", "the UDP length disagrees with that of IP, or is too small" },
    { "bad_icrc", "the ICRC does not match: the packet was damaged or rewritten on its way" },
    { "bad_link_type", "the LPH has a type (CFG) that is not read" },
    { "bad_tp_version", "TPVer is not 0" },
    { "bad_tp_opcode", "the TPOpcode is reserved, or does not belong here" },
    { "bad_nlp", "the NLP is reserved or not supported" },
    { "bad_ta_version", "TAver is not 0" },
    { "unknown_opcode", "the TAOpcode is reserved", answered = true },
    { "truncated_header", "the packet ends inside a header that its opcode requires" },
    { "bad_header_flags", "MT_EN or TV_EN does not fit the operation", answered = true },
    { "bad_byte_enable", "BEETAH for a length that is impossible", answered = true },
    { "unexpected_payload", "there is payload where none belongs", answered = true },
    { "not_load_store", "TP bypass does not carry this operation" },
    { "bad_length", "the payload of a load or store is not as long as its operation says" },
    { "management", "the Mgmt bit is set in a load or store" },
    { "bad_padding", "the padding does not fit the packet or does not align it" },
    { "bad_sack_size", "BitMapSize is reserved" },
    { "bad_record_magic", "a control record without its magic, or too short for its length" },
    { "bad_record_version", "a control record of another version, which is answered by REJ" },
    { "bad_record_type", "a control record of an unknown type" },
    { "unknown_tpn", "DstTPN names no channel any more" },
    { "wrong_peer", "SrcTPN or the source address is not that of the channel" },
    { "um_operation", "an unreliable packet that is neither SEND nor SEND with immediate" },
    { "um_malformed", "a datagram with fields that a message of one packet cannot have, or without uasid" },
  }
end
