-- SPDX-License-Identifier: Apache-2.0
-- The transport headers and what follows them: RTPH with CETPH and SAETPH, UTPH, CTPH, UPIH and EIDH.
return function(ub)
  local fields, numbers, track = ub.fields, ub.numbers, ub.track
  local Packet = ub.Packet
  local TRANSPORT, CONTENT = Packet.TRANSPORT, Packet.CONTENT
  local RTPH_SIZE, ENTITY_SIZE, SHORT_ENTITY_SIZE = 16, 36, 7
  local DATA, ACK, ACK_CC, SACK, SACK_CC, CNP = 1, 2, 3, 5, 6, 8
  local KNOWN = { [DATA] = true, [ACK] = true, [ACK_CC] = true, [SACK] = true, [SACK_CC] = true, [CNP] = true }
  local C_AQM, LDCP = 1, 2

  local function add_fields(p, tree, list)
    for _, one in ipairs(list) do
      tree:add(fields[one[1]], p.tvb(one[2], one[3]))
    end
  end

  local function name_of(rtp)
    if rtp.opcode == DATA then return rtp.fake and "fake" or "data" end
    if not KNOWN[rtp.opcode] then return "reserved" end
    local cc = (rtp.opcode == ACK_CC or rtp.opcode == SACK_CC) and "-CC" or ""
    if rtp.opcode == CNP then return "CNP" end
    if rtp.opcode == SACK or rtp.opcode == SACK_CC then return "TPSACK" .. cc end
    return (rtp.rspst == 3 and rtp.rspinfo == 0 and "TPNAK" or "TPACK") .. cc
  end

  -- UPIH and EIDH; nil: they are cut off.
  local function read_entities(p, at, short)
    local size = short and SHORT_ENTITY_SIZE or ENTITY_SIZE
    if not p:has(at, size) then
      p:refuse(CONTENT, "truncated_header")
      return nil
    end
    local tree = p:header("eidh", at, size)
    add_fields(p, tree, short
      and { { "upih16.upi", at, 2 }, { "eidh.seid_short", at + 2, 3 }, { "eidh.deid_short", at + 4, 3 } }
      or { { "upih.upi", at, 4 }, { "eidh.seid", at + 4, 16 }, { "eidh.deid", at + 20, 16 } })
    return at + size
  end

  -- ---- acknowledgements --------------------------------------------------------------------------------------------

  local function read_cnp(p, at)
    if not p:has(at, 16) then return p:refuse(CONTENT, "truncated_header") end
    local tree = p:header("cetph", at, 16)
    add_fields(p, tree, { { "cetph.ecn", at, 1 }, { "cetph.cnp_loc", at, 1 } })
    p.cnp = { ecn = p:bits(at, 0, 2), at_last_hop = p:bit(at, 2) }
    if p.cnp.ecn ~= 0 then p:tell("congested", nil, tree) end
  end

  -- The feedback in front of what an acknowledgement says. Its form is agreed on at set-up; nil: it is cut off.
  local function read_feedback(p, at)
    if not p:has(at, 8) then
      p:refuse(CONTENT, "truncated_header")
      return nil
    end
    local agreed = p.terms and p.terms.cc
    if agreed and agreed ~= C_AQM and agreed ~= LDCP then p:refuse(CONTENT, "bad_tp_opcode") end
    local ldcp = (agreed or ub.preferences.feedback) == LDCP
    local tree = p:header("cetph", at, 8)
    tree:append_text((ldcp and ": LDCP" or ": C-AQM") .. (agreed and "" or ", as set in the preferences"))
    add_fields(p, tree, { { "cetph.ack_seq", at, 4 } })
    if ldcp then
      add_fields(p, tree, { { "cetph.ce_seq", at + 4, 4 } })
    else
      add_fields(p, tree, {
        { "cetph.loc", at + 4, 1 }, { "cetph.i", at + 4, 1 }, { "cetph.c", at + 5, 1 }, { "cetph.hint", at + 6, 2 },
      })
      p.marked = p:u(at + 5, 1)
      if p.marked > 0 then
        local text = string.format("Packets that met congestion since the last acknowledgement: %d", p.marked)
        p:tell("congested", text, tree)
      end
    end
    return at + 8
  end

  local function range_texts(base, bitmap, wanted, from, to)
    local texts, count = {}, 0
    numbers.runs(bitmap, wanted, from, to, function(first, last)
      texts[#texts + 1] = numbers.psn_range(base, first, last)
      count = count + last - first + 1
    end)
    return texts, count
  end

  local function read_sack(p, at, rtp)
    if not p:has(at, 4) then return p:refuse(CONTENT, "truncated_header") end
    local code = p:bits(at, 5, 3)
    local size = code <= 4 and 8 * 2 ^ code or 0
    local whole = p:has(at + 4, size)
    local tree = p:header("saetph", at, whole and 4 + size or 4)
    add_fields(p, tree, { { "saetph.bitmap_size", at, 1 }, { "saetph.max_rcv_psn", at + 1, 3 } })
    if code > 4 then return p:refuse(CONTENT, "bad_sack_size") end
    if not whole then return p:refuse(CONTENT, "truncated_header") end
    tree:add(fields["saetph.bitmap"], p.tvb(at + 4, size))
    local bitmap = p.tvb(at + 4, size):raw()
    local highest = numbers.highest_bit(bitmap) or 0
    local received, received_count = range_texts(rtp.psn, bitmap, 1, 1, highest)
    local missing, missing_count = range_texts(rtp.psn, bitmap, 0, 1, highest)
    p.sack = { bitmap = bitmap, highest = highest, received = received, missing = missing }
    p:generated(tree, "saetph.received", #received == 0 and "none" or table.concat(received, ", "))
    p:generated(tree, "saetph.missing", #missing == 0 and "none" or table.concat(missing, ", "))
    p:generated(tree, "saetph.received_count", received_count)
    p:generated(tree, "saetph.missing_count", missing_count)
    if missing_count > 0 then
      local text = string.format("%s missing: PSN %s", numbers.packets_are(missing_count), table.concat(missing, ", "))
      p:tell("missing", text, tree)
    end
  end

  local function read_acknowledgement(p, at, rtp)
    if rtp.opcode == CNP then return read_cnp(p, at) end
    if rtp.opcode == ACK_CC or rtp.opcode == SACK_CC then at = read_feedback(p, at) end
    if at and (rtp.opcode == SACK or rtp.opcode == SACK_CC) then
      read_sack(p, at, rtp)
    elseif at then
      p:rest(at, "payload")
    end
    if rtp.opcode ~= ACK and rtp.opcode ~= ACK_CC then return end
    if rtp.rspst == 3 and rtp.rspinfo == 0 then
      p:tell("missing", string.format("PSN %d is missing, and all from it on are asked for again", rtp.psn))
    end
  end

  -- ---- RTP ---------------------------------------------------------------------------------------------------------

  local function show_rtph(p, at, rtp)
    local tree = p:header("rtph", at, RTPH_SIZE)
    tree:append_text(string.format(": %s, PSN %d", rtp.name, rtp.psn))
    local list = {
      { "rtph.opcode", at, 1 }, { "rtph.version", at + 1, 1 }, { "rtph.padding", at + 1, 1 },
      { "rtph.src_tpn", at + 2, 3 }, { "rtph.dst_tpn", at + 5, 3 }, { "rtph.psn", at + 9, 3 },
      { "rtph.rspst", at + 12, 1 }, { "rtph.rspinfo", at + 12, 1 }, { "rtph.tpmsn", at + 13, 3 },
    }
    if rtp.opcode == DATA then
      table.insert(list, 1, { "rtph.last", at, 1 })
      table.insert(list, 5, { "rtph.nlp", at + 1, 1 })
      table.insert(list, 8, { "rtph.a", at + 8, 1 })
      table.insert(list, 9, { "rtph.f", at + 8, 1 })
    end
    add_fields(p, tree, list)
    for _, from in ipairs({ at + 2, at + 5 }) do
      local item = tree:add(fields["tpn"], p.tvb(from, 3))
      item:set_generated()
      item:set_hidden()
    end
  end

  local function read_content(p, at, rtp)
    if rtp.opcode ~= DATA then return read_acknowledgement(p, at, rtp) end
    if rtp.fake then return p:rest(at, "payload") end
    if rtp.nlp == 1 then
      p:refuse(CONTENT, "bad_nlp")
      at = read_entities(p, at, false)
      if not at then return end
    end
    local agreed = p.terms and p.terms.read_meta
    if agreed == nil then agreed = track.read_meta_seen(p) end
    ub.read_transaction(p, at, 0, rtp.padding, agreed, ub.preferences.read_meta)
  end

  local function read_rtp(p, at, rtp, sum)
    rtp.name = name_of(rtp)
    show_rtph(p, at, rtp)
    p.rtp, p.name = rtp, rtp.name
    if rtp.version ~= 0 then
      p:refuse(TRANSPORT, "bad_tp_version")
    elseif rtp.opcode <= DATA and rtp.nlp > 1 then
      p:refuse(TRANSPORT, "bad_nlp")
    elseif rtp.opcode == 0 or not KNOWN[rtp.opcode] then
      p:refuse(TRANSPORT, "bad_tp_opcode")
    end
    if p.unreadable then
      sum()
      return p:rest(at + RTPH_SIZE, "payload")
    end
    track.find_channel(p, rtp.src_tpn, rtp.dst_tpn)
    sum()
    track.open_channel(p, rtp.src_tpn, rtp.dst_tpn)
    read_content(p, at + RTPH_SIZE, rtp)
    track.on_rtp(p)
  end

  -- ---- UTP ---------------------------------------------------------------------------------------------------------

  local function judge_datagram(p)
    local ta = p.ta
    if ta.response or ta.opcode > 1 then return p:refuse(CONTENT, "um_operation") end
    local odd = ta.poison or ta.alloc or ta.rc_type == 2 or (ta.ud or 0) == 0 or (ta.offset_kib or 0) ~= 0
    if odd then p:refuse(CONTENT, "um_malformed") end
  end

  local function read_utp(p, at, sum)
    local tree = p:header("utph", at, RTPH_SIZE)
    add_fields(p, tree, { { "utph.version", at + 1, 1 }, { "utph.padding", at + 1, 1 }, { "utph.nlp", at + 1, 1 } })
    local version, padding, nlp = p:bits(at + 1, 0, 2), p:bits(at + 1, 2, 2), p:bits(at + 1, 4, 4)
    p.kind, p.name = "utp", "datagram"
    if version ~= 0 then
      p:refuse(TRANSPORT, "bad_tp_version")
    elseif nlp > 1 then
      p:refuse(TRANSPORT, "bad_nlp")
    end
    sum()
    at = at + RTPH_SIZE
    if p.unreadable then return p:rest(at, "payload") end
    if nlp == 1 then
      p:refuse(CONTENT, "bad_nlp")
      at = read_entities(p, at, false)
      if not at then return end
    end
    ub.read_transaction(p, at, 0, padding, false, false)
    local ta = p.ta
    if not ta or p.cut then return end
    if not ta.response and ta.opcode == 0 and ta.tc_id == 0 and ta.payload then
      ub.read_record(p, ta.payload_at, ta.payload)
    elseif ub.opcodes[ta.opcode] then
      judge_datagram(p)
    end
  end

  -- Reads RTPH or UTPH and all behind it. `sum`: compares the ICRC, which a Core does after it found the channel.
  function ub.read_reliable(p, at, sum)
    if not p:has(at, RTPH_SIZE) then
      p:refuse(TRANSPORT, "too_short")
      sum()
      return p:rest(at, "payload")
    end
    local opcode = p:bits(at, 1, 7)
    if opcode == 0 and p.kind ~= "cna" then return read_utp(p, at, sum) end
    read_rtp(p, at, {
      opcode = opcode,
      last = opcode == DATA and p:bit(at, 0),
      version = p:bits(at + 1, 0, 2),
      padding = p:bits(at + 1, 2, 2),
      nlp = p:bits(at + 1, 4, 4),
      src_tpn = p:u(at + 2, 3),
      dst_tpn = p:u(at + 5, 3),
      asks = p:bit(at + 8, 0),
      fake = opcode == DATA and p:bit(at + 8, 1),
      psn = p:u(at + 9, 3),
      rspst = p:bits(at + 12, 0, 3),
      rspinfo = p:bits(at + 12, 3, 5),
      tpmsn = p:u(at + 13, 3),
    }, sum)
  end

  -- ---- CTP ---------------------------------------------------------------------------------------------------------

  -- `scna` and `dcna` are the TPNs of the two ends.
  function ub.read_compact(p, at, scna, dcna, sum)
    local opcode, padding, nlp = p:bits(at, 0, 2), p:bits(at, 2, 2), p:bits(at, 4, 4)
    local tree = p:header("ctph", at, 1)
    add_fields(p, tree, { { "ctph.opcode", at, 1 }, { "ctph.padding", at, 1 }, { "ctph.nlp", at, 1 } })
    p.name = opcode == 1 and "CNP" or "compact"
    if opcode > 1 then
      p:refuse(TRANSPORT, "bad_tp_opcode")
    elseif nlp > 2 then
      p:refuse(TRANSPORT, "bad_nlp")
    end
    at = at + 1
    if p.unreadable then
      sum()
      return p:rest(at, "payload")
    end
    track.find_channel(p, scna, dcna)
    sum()
    track.open_channel(p, scna, dcna)
    if opcode ~= 0 then
      p:refuse(CONTENT, "bad_tp_opcode")
      return p:rest(at, "payload")
    end
    if nlp ~= 0 then
      p:refuse(CONTENT, "bad_nlp")
      at = read_entities(p, at, nlp == 2)
      if not at then return end
    end
    local before = nlp == 0 and 1 or nlp == 1 and 1 + ENTITY_SIZE or 1 + SHORT_ENTITY_SIZE
    ub.read_transaction(p, at, before, padding, false, false)
    track.on_compact(p)
  end
end
