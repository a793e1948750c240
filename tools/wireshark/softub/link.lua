-- SPDX-License-Identifier: Apache-2.0
-- What is in front of the transport header: UDP over IP (UBoE), or LPH and NTH of a UB link. These are the entries.
return function(ub)
  local fields, numbers = ub.fields, ub.numbers
  local Packet = ub.Packet
  local NETWORK = Packet.NETWORK
  local LPH_SIZE, NTH16_SIZE, NTH24_SIZE, UDP_SIZE, ETHERNET = 4, 8, 10, 8, 14
  local CFG_NTH16, CFG_NTH24, CFG_LOAD_STORE = 6, 7, 9

  local ipv4_header, ipv6_header, udp_length = Field.new("ip"), Field.new("ipv6"), Field.new("udp.length")

  -- The innermost of the fields of that kind in the packet.
  local function last_of(extractor)
    local all = { extractor() }
    return all[#all]
  end

  -- ---- UBoE --------------------------------------------------------------------------------------------------------

  -- The IP header, and its version; nil: it is not at hand.
  local function ip_header()
    local v4, v6 = last_of(ipv4_header), last_of(ipv6_header)
    if v4 and (not v6 or v4.offset > v6.offset) then return v4.range:raw(), 4 end
    if v6 then return v6.range:raw(), 6 end
    return nil
  end

  local function judge_ip(p, header, version)
    if version == 4 then
      if header:byte(1) ~= 0x45 or not numbers.ipv4_checksum_fits(header) then p:refuse(NETWORK, "bad_ip_header") end
      local flags, offset = header:byte(7, 8)
      if flags % 64 ~= 0 or offset ~= 0 then p:refuse(NETWORK, "fragment") end
    end
    local field = last_of(udp_length)
    local high, low = header:byte(version == 4 and 3 or 5, version == 4 and 4 or 6)
    local behind = high * 256 + low - (version == 4 and 20 or 0)
    if field and (field.value ~= behind or behind < UDP_SIZE + Packet.ICRC_SIZE) then
      p:refuse(NETWORK, "bad_udp_length")
    end
  end

  -- Source and target, as bytes. Their text is there when the fields are not, but it may have names.
  local function addresses(pinfo, header, version)
    local source = numbers.address_bytes(tostring(pinfo.net_src))
    local target = numbers.address_bytes(tostring(pinfo.net_dst))
    if source and target and #source == #target and (#source == 4 or #source == 16) then return source, target end
    local at, size = version == 4 and 13 or 9, version == 4 and 4 or 16
    if not header or #header < at + 2 * size - 1 then return nil end
    return header:sub(at, at + size - 1), header:sub(at + size, at + 2 * size - 1)
  end

  local function masked_headers(tvb, pinfo, source, target)
    if not source then return nil end
    return numbers.masked_ip(source, target, pinfo.src_port, pinfo.dst_port, tvb:reported_len() + UDP_SIZE)
  end

  -- The payload of a UDP packet.
  function ub.dissect_uboe(tvb, pinfo, tree)
    local p = Packet.new(tvb, pinfo, tree, true)
    p.kind = "rtp"
    local header, version = ip_header()
    if header and #header >= 20 then judge_ip(p, header, version) end
    p.source, p.target = addresses(pinfo, header, version)
    local masked = masked_headers(tvb, pinfo, p.source, p.target)
    p.from = string.format("%s:%d", tostring(pinfo.net_src), pinfo.src_port)
    p.to = string.format("%s:%d", tostring(pinfo.net_dst), pinfo.dst_port)
    ub.read_reliable(p, 0, function()
      p:check_icrc(masked, 0, p.kind == "rtp" and (not p.terms or p.terms.icrc_off))
    end)
    if p.kind == "utp" then
      p.column = p.control and "UB set-up"
      return p:finish("UTP")
    end
    return p:finish("RTP")
  end

  -- Does a UDP packet for another port look like one of ours? Only the ICRC makes that certain.
  function ub.looks_like_uboe(tvb, pinfo)
    local size = tvb:len()
    if size < 20 or size ~= tvb:reported_len() then return false end
    if size % 4 ~= 0 or tvb(0, 1):bitfield(1, 7) > 8 or tvb(1, 1):bitfield(0, 2) ~= 0 then return false end
    local masked = masked_headers(tvb, pinfo, addresses(pinfo, ip_header()))
    if not masked then return false end
    local at = size - Packet.ICRC_SIZE
    return numbers.icrc(masked, tvb(0, at):raw()) == tvb(at, Packet.ICRC_SIZE):le_uint()
  end

  -- ---- frames of a UB link -----------------------------------------------------------------------------------------

  local function read_lph(p)
    local tree = p:header("lph", 0, LPH_SIZE)
    for _, key in ipairs({ "crd", "ack", "crd_vl", "vl", "cfg", "rt_shortest", "rt_per_packet", "plength" }) do
      tree:add(fields["lph." .. key], p.tvb(0, LPH_SIZE))
    end
    local cfg = p:bits(1, 4, 4)
    tree:append_text(": " .. Packet.called("cfg", cfg))
    return cfg
  end

  local function read_cci(p, tree, at)
    local item = tree:add(fields["nth.cci"], p.tvb(at, 2))
    local mode = p:bits(at, 0, 3)
    local keys = { "mode", "loc" }
    if mode == 0 then
      keys = { "mode", "loc", "enable", "c", "i", "hint" }
      if p:bit(at, 5) and p:bit(at, 6) then p:tell("congested", nil, item) end
    elseif mode == 2 or mode == 4 then
      keys = mode == 2 and { "mode", "loc", "timestamp", "fecn" } or { "mode", "loc", "fecn" }
      if p:bit(at + 1, 7) then p:tell("congested", nil, item) end
    end
    for _, key in ipairs(keys) do
      item:add(fields["cci." .. key], p.tvb(at, 2))
    end
  end

  -- NTH16 or NTH24: addresses of 2 or 3 bytes, then CCI, LBF, SL and NLP.
  local function read_nth(p, size)
    local width = size == NTH16_SIZE and 2 or 3
    local at = LPH_SIZE
    local tree = p:header("nth", at, size)
    p.scna, p.dcna = p:u(at, width), p:u(at + width, width)
    tree:add(fields["nth.scna"], p.tvb(at, width))
    tree:add(fields["nth.dcna"], p.tvb(at + width, width))
    read_cci(p, tree, at + 2 * width)
    tree:add(fields["nth.lbf"], p.tvb(at + 2 * width + 2, 1))
    local last = at + size - 1
    tree:add(fields["nth.sl"], p.tvb(last, 1))
    if width == 2 then tree:add(fields["nth.mgmt"], p.tvb(last, 1)) end
    tree:add(fields[width == 2 and "nth16.nlp" or "nth24.nlp"], p.tvb(last, 1))
    tree:append_text(string.format(": %0" .. 2 * width .. "x to %0" .. 2 * width .. "x", p.scna, p.dcna))
    return p:bits(last, 5, 3), width == 2 and p:bit(last, 4)
  end

  local function sum_over_nth24(p, may_be_off)
    local from = LPH_SIZE + NTH24_SIZE
    local masked = numbers.masked_nth24(p.tvb(LPH_SIZE, NTH24_SIZE):raw())
    return function()
      p:check_icrc(masked, from, may_be_off())
    end
  end

  local function read_cna24(p)
    local body = LPH_SIZE + NTH24_SIZE
    p.limit = p.size - Packet.ICRC_SIZE
    if not p:has(LPH_SIZE, NTH24_SIZE + 1) then
      p:refuse(NETWORK, "too_short")
      p:rest(LPH_SIZE, "payload")
      return "link"
    end
    local nlp = read_nth(p, NTH24_SIZE)
    local may_be_off = function() return not p.terms or p.terms.icrc_off end
    if nlp == 0 then
      p.kind = "ctp"
      p.from, p.to = tostring(p.pinfo.dl_src), tostring(p.pinfo.dl_dst)
      ub.read_compact(p, body, p.scna, p.dcna, sum_over_nth24(p, may_be_off))
      return "CTP"
    end
    if nlp ~= 2 then
      p:refuse(NETWORK, "bad_nlp")
      p:rest(body, "payload")
      return "link"
    end
    p.kind = "cna"
    p.from, p.to = string.format("cna %06x", p.scna), string.format("cna %06x", p.dcna)
    ub.read_reliable(p, body, sum_over_nth24(p, may_be_off))
    return "RTP"
  end

  local function read_load_store(p)
    local body = LPH_SIZE + NTH16_SIZE
    p.kind = "bypass"
    if not p:has(LPH_SIZE, NTH16_SIZE + 4) then
      p:refuse(NETWORK, "too_short")
      return p:rest(LPH_SIZE, "payload")
    end
    local nlp, management = read_nth(p, NTH16_SIZE)
    if nlp ~= 0 then
      p:refuse(NETWORK, "bad_nlp")
    elseif management then
      p:refuse(NETWORK, "management")
    end
    if p.refused then return p:rest(body, "payload") end
    p.name = "load or store"
    p.from = string.format("%s cna %04x", tostring(p.pinfo.dl_src), p.scna)
    p.to = string.format("%s cna %04x", tostring(p.pinfo.dl_dst), p.dcna)
    ub.track.find_channel(p, p.scna, p.dcna)
    ub.track.open_channel(p, p.scna, p.dcna)
    ub.read_compact_transaction(p, body)
    ub.track.on_bypass(p)
  end

  -- A frame of a UB link, from its LPH on.
  function ub.dissect_link(tvb, pinfo, tree)
    local p = Packet.new(tvb, pinfo, tree, false)
    p.kind = "link"
    if not p:has(0, LPH_SIZE) then
      p:refuse(NETWORK, "too_short")
      p:rest(0, "payload")
      return p:finish("link")
    end
    local cfg = read_lph(p)
    if cfg == CFG_LOAD_STORE then
      read_load_store(p)
      return p:finish("TP bypass")
    end
    if cfg == CFG_NTH24 then return p:finish(read_cna24(p)) end
    -- The Core looks for the smallest packet of CTP first.
    p:refuse(NETWORK, p.size + ETHERNET < 33 and "too_short" or "bad_link_type")
    p.link_type = cfg
    local at = LPH_SIZE
    if cfg == CFG_NTH16 and p:has(at, NTH16_SIZE) then
      read_nth(p, NTH16_SIZE)
      at = at + NTH16_SIZE
    end
    p:rest(at, "payload")
    return p:finish("link")
  end
end
