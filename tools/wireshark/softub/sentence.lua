-- SPDX-License-Identifier: Apache-2.0
-- What a packet says, as a sentence for the column of information.
return function(ub)
  local numbers = ub.numbers
  local Packet = ub.Packet

  local function bytes(count)
    return count == 1 and "1 byte" or string.format("%d bytes", count)
  end

  local function join(parts)
    return table.concat(parts, ", ")
  end

  local function address(ta)
    return "0x" .. ta.address:gsub("^0+(%x)", "%1")
  end

  local function place(ta)
    return string.format("%s of token id %d", address(ta), ta.token_id)
  end

  -- How many bytes this packet has of how many.
  local function share(ta)
    if ta.payload == ta.length then return bytes(ta.length) end
    return string.format("%d of %s", ta.payload, bytes(ta.length))
  end

  -- ---- requests ----------------------------------------------------------------------------------------------------

  local function target(ta)
    return string.format("%s %d", ta.tc_type == 2 and "group" or "queue", ta.tc_id)
  end

  local function send_text(ta)
    local text = string.format("%s of %s to %s", ta.name, bytes(ta.payload), target(ta))
    if ta.offset_kib > 0 then text = text .. string.format(", from offset %d KiB on", ta.offset_kib) end
    if ta.immediate then text = text .. ", immediate data 0x" .. ta.immediate end
    if ta.invalidated then text = text .. string.format(", invalidates token id %d", ta.invalidated) end
    return text
  end

  local function atomic_text(ta)
    local text = string.format("%s of %s at %s", ta.name, bytes(ta.length), place(ta))
    if ta.alu then text = text .. ", " .. Packet.called("alu", ta.alu) end
    if not ta.operand1 then return text end
    if ta.opcode == 0x07 then
      return text .. string.format(", %s if it is %s", tostring(ta.operand1), tostring(ta.operand2))
    end
    return text .. string.format(", operand %s", tostring(ta.operand1))
  end

  local function write_text(ta)
    local text = string.format("%s of %s to %s", ta.name, share(ta), place(ta))
    if ta.enabled then text = text .. ", enabled: " .. ta.enabled end
    if ta.opcode == 0x04 then text = text .. string.format(", immediate data 0x%s for %s", ta.immediate, target(ta)) end
    if ta.notified then text = text .. ", notifies 0x" .. ta.notified end
    return text
  end

  local function operation_text(ta)
    local shape = ub.opcodes[ta.opcode]
    if not shape or not ta.payload then return ta.name end
    if shape.atomic then return atomic_text(ta) end
    if ta.opcode <= 0x02 then return send_text(ta) end
    if ta.opcode == 0x10 then return string.format("%s of %s", ta.name, bytes(ta.payload)) end
    if shape.payload then return write_text(ta) end
    return string.format("%s of %s from %s", ta.name, bytes(ta.length), place(ta))
  end

  local function context_text(ta)
    if not ta.rc_id then return string.format("TASSN %d", ta.tassn) end
    return string.format("TASSN %d of %s %d", ta.tassn, ta.rc_type == 2 and "context" or "queue", ta.rc_id)
  end

  local ORDER = { "in relaxed order", "in strong order", "in a reserved order" }

  local function request_text(ta)
    local parts = { operation_text(ta), context_text(ta) }
    if ta.order and ORDER[ta.order] then parts[#parts + 1] = ORDER[ta.order] end
    if ta.strong then parts[#parts + 1] = "in strong order" end
    if ta.retry then parts[#parts + 1] = "retried" end
    if ta.alloc then parts[#parts + 1] = "asks for a sequence context" end
    if ta.exclusive then parts[#parts + 1] = "exclusive" end
    if ta.no_taack then parts[#parts + 1] = "wants no answer" end
    if ta.poison then parts[#parts + 1] = "poisoned" end
    return join(parts)
  end

  -- ---- answers -----------------------------------------------------------------------------------------------------

  local function outcome(status, info, table_name)
    if status == 1 or status == 2 then
      local cause = status == 1 and "receiver not ready" or "page fault"
      if status == 2 and info == 0 then return cause .. ", retry at once" end
      return string.format("%s, retry after %s", cause, numbers.rnr_text(info))
    end
    if status == 3 then return Packet.called("error_info", info) end
    return Packet.called(table_name, status)
  end

  local function tell_outcome(p, status, text)
    if status == 1 or status == 2 then p:tell("refused", "The target refuses for now: " .. text) end
    if status == 3 then p:tell("failed", "The request failed: " .. text) end
  end

  local function answer_text(p, ta)
    local answered = p.record.answered
    local what = answered and string.format("%s for %s", ta.name, answered.name) or ta.name
    local of = string.format("of %s %d", ta.rc_type == 2 and "the context of queue" or "queue", ta.rc_id or 0)
    if ta.sv then return string.format("%s, sequence context %d is for queue %d", what, ta.tassn, ta.rc_id) end
    if ta.rspst ~= 0 and ta.rspst ~= 5 then
      local text = outcome(ta.rspst, ta.rspinfo, "ta_status")
      tell_outcome(p, ta.rspst, text)
      return string.format("%s, TASSN %d %s: %s", what, ta.tassn, of, text)
    end
    local done = ta.rspst == 5 and "received" or "done"
    local range = ta.rspinfo == 0 and string.format("TASSN %d", ta.tassn)
      or string.format("TASSNs %d to %d", ta.tassn, (ta.tassn + ta.rspinfo) % 0x10000)
    if ta.old then return string.format("%s, %s %s: old value %s", what, range, of, tostring(ta.old)) end
    if ta.opcode == 0x12 and ta.payload then
      local text = string.format("%s, %s %s: %s", what, range, of, bytes(ta.payload))
      if (ta.offset_kib or 0) == 0 then return text end
      return text .. string.format(" from offset %d KiB on", ta.offset_kib)
    end
    return string.format("%s, %s %s: %s", what, range, of, done)
  end

  local function compact_answer_text(p, ta)
    local answered = p.record.answered
    local what = answered and string.format("%s for %s", ta.name, answered.name) or ta.name
    if ta.status ~= 0 then
      local text = Packet.called("compact_status", ta.status)
      tell_outcome(p, 3, text)
      return string.format("%s, TASSN %d: %s", what, ta.tassn, text)
    end
    local said = ta.opcode == 0x12 and ta.payload and bytes(ta.payload) or "done"
    return string.format("%s, TASSN %d: %s", what, ta.tassn, said)
  end

  local function transaction_text(p)
    local ta = p.ta
    if not ta then return "no transaction header" end
    if not ta.response then return request_text(ta) end
    return ta.status and compact_answer_text(p, ta) or answer_text(p, ta)
  end

  -- ---- transport ---------------------------------------------------------------------------------------------------

  local function message_text(tpmsn)
    return tpmsn == 0xFFFFFF and "no message is complete" or string.format("newest message %d", tpmsn)
  end

  local function fused_text(p, rtp)
    if rtp.rspst == 5 then
      local text = Packet.called("fused_info", rtp.rspinfo)
      if rtp.rspinfo < 2 then tell_outcome(p, 3, text) end
      return string.format("message %d and all before it %s", rtp.tpmsn, text)
    end
    local text = outcome(rtp.rspst, rtp.rspinfo, "tp_status")
    tell_outcome(p, rtp.rspst, text)
    return string.format("message %d: %s", rtp.tpmsn, text)
  end

  local function acknowledgement_text(p, rtp)
    if rtp.name == "CNP" then
      if not p.cnp then return "CNP" end
      local where = p.cnp.at_last_hop and " at the last hop" or ""
      return string.format("CNP: %s congestion%s", Packet.called("cnp_ecn", p.cnp.ecn), where)
    end
    if rtp.name:sub(1, 5) == "TPNAK" then
      return string.format("%s: PSN %d is missing, %s", rtp.name, rtp.psn, message_text(rtp.tpmsn))
    end
    local parts = { string.format("%s: all up to PSN %d arrived", rtp.name, rtp.psn) }
    if p.sack then
      if #p.sack.received > 0 then parts[#parts + 1] = "and " .. table.concat(p.sack.received, " ") end
      if #p.sack.missing > 0 then parts[#parts + 1] = "missing " .. table.concat(p.sack.missing, " ") end
    end
    parts[#parts + 1] = rtp.rspst ~= 0 and fused_text(p, rtp) or message_text(rtp.tpmsn)
    return join(parts)
  end

  local function data_text(p, rtp)
    local what
    if rtp.fake and rtp.rspst ~= 0 then
      what = string.format("Fake, confirms of message %d: %s", rtp.tpmsn, outcome(rtp.rspst, rtp.rspinfo, "tp_status"))
    else
      what = rtp.fake and "Fake" or transaction_text(p)
    end
    local parts = { what, string.format("PSN %d", rtp.psn) }
    parts[#parts + 1] = string.format(rtp.last and "last of message %d" or "message %d", rtp.tpmsn)
    if rtp.asks then parts[#parts + 1] = "asks for an acknowledgement" end
    return join(parts)
  end

  -- ---- control records ---------------------------------------------------------------------------------------------

  local function terms_text(r)
    local parts = { r.compact and "CTP" or "RTP", string.format("MTU %d", r.mtu), string.format("window %d", r.window) }
    for _, one in ipairs({
      { "rol", "ROL" }, { "bulk", "bulk lane" }, { "cna", "over NTH24" }, { "several_paths", "several paths" },
      { "icrc_off", "no ICRC" }, { "repeats", "repeats" },
    }) do
      if r[one[1]] then parts[#parts + 1] = one[2] end
    end
    if not r.selective and not r.compact then parts[#parts + 1] = "Go-Back-N" end
    if r.cc ~= 0 then parts[#parts + 1] = Packet.called("algorithm", r.cc) end
    if r.application and r.application ~= 0 then parts[#parts + 1] = string.format("application %d", r.application) end
    return join(parts)
  end

  local SAYS = {
    REQ = "a channel is wanted", REP = "the channel is granted", CONF = "the channel is open",
    REJ = "the channel is refused", CLOSE = "the channel ends", CLOSED = "the channel has ended",
    PING = "are you the one I know?", PONG = "yes", RESET = "there is no such channel",
    SC_FREE = "a sequence context is free", FIND = "who has the id?", FOUND = "I have it",
  }

  local function record_text(r)
    local said = SAYS[r.name] or "unknown"
    if r.reason ~= 0 and (r.name == "PONG" or r.name == "FOUND") then said = "no" end
    local parts = { string.format("%s: %s", r.name, said) }
    if r.reason ~= 0 then parts[#parts + 1] = Packet.called("record_reason", r.reason) end
    if r.question then parts[#parts + 1] = "about this path" end
    if not r.whole then return join(parts) end
    if r.object then
      parts[#parts + 1] = string.format("%s %d", r.token_id and "token id" or "id", r.object)
    else
      parts[#parts + 1] = string.format("TPN %06x to %06x", r.sender_tpn, r.receiver_tpn)
    end
    if r.scid then parts[#parts + 1] = string.format("SCID %d", r.scid) end
    if r.name == "REQ" or r.name == "REP" then parts[#parts + 1] = terms_text(r) end
    return join(parts)
  end

  -- ---- all of it ---------------------------------------------------------------------------------------------------

  local function text_of(p)
    if p.control then return record_text(p.control) end
    if p.rtp then
      if p.rtp.name == "reserved" then return string.format("Transport header with opcode %d", p.rtp.opcode) end
      return p.rtp.opcode == 1 and data_text(p, p.rtp) or acknowledgement_text(p, p.rtp)
    end
    if p.kind == "utp" then return "Datagram: " .. transaction_text(p) end
    if p.ta then return transaction_text(p) end
    if p.link_type then return "Frame of a UB link: " .. Packet.called("cfg", p.link_type) end
    return p.name == "CNP" and "CNP" or "Packet that is not read"
  end

  function ub.sentence(p)
    local text = text_of(p)
    if p.record.sent_before then text = "Again: " .. text end
    return text
  end
end
