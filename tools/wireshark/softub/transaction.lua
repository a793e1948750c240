-- SPDX-License-Identifier: Apache-2.0
-- What lies between the transport header and the ICRC: BTAH or ATAH, extension headers, payload, padding; and the
-- compact forms of TP bypass. What is read goes into p.ta, which is nil if not even the first header is there.
return function(ub)
  local fields, names = ub.fields, ub.names
  local CONTENT = ub.Packet.CONTENT
  local MOST_ENABLES = 1024
  local FEW_RANGES = 4  -- as many are listed in a sentence

  local function add_fields(p, tree, list)
    for _, one in ipairs(list) do
      tree:add(fields[one[1]], p.tvb(one[2], one[3]))
    end
  end

  -- The extension headers: size, and what reads them at a place that is known to be there.
  local extensions = {}

  extensions.ud = { 4, function(p, at, ta)
    ta.ud = p:u(at, 4)
    local tree = p:header("udetah", at, 4)
    add_fields(p, tree, { { "udetah.ud", at, 4 } })
    if ta.opcode == 0x09 or ta.opcode == 0x0A then
      ta.alu = p:bits(at + 1, 0, 4)
      add_fields(p, tree, { { "udetah.alu", at, 4 } })
    elseif p.kind == "utp" then
      tree:append_text(": uasid of the sender")
    end
  end }

  extensions.mt = { 4, function(p, at, ta)
    ta.tc_type, ta.tc_id = p:bits(at + 1, 2, 2), p:u(at, 4) % 0x100000
    local tree = p:header("mtetah", at, 4)
    add_fields(p, tree, { { "mtetah.hint", at, 1 }, { "mtetah.tc_type", at + 1, 1 }, { "mtetah.tc_id", at + 1, 3 } })
    tree:append_text(string.format(": %s %d", ta.tc_type == 2 and "group" or "queue", ta.tc_id))
  end }

  extensions.taid = { 4, function(p, at)
    add_fields(p, p:header("taidetah", at, 4), { { "taidetah.taid", at + 2, 2 } })
  end }

  extensions.ofst = { 4, function(p, at, ta)
    ta.offset_kib = p:u(at + 1, 3)
    add_fields(p, p:header("ofstetah", at, 4), { { "ofstetah.offset", at + 1, 3 } })
  end }

  extensions.ma = { 16, function(p, at, ta)
    ta.address = p.tvb(at, 8):uint64():tohex()
    ta.token_id = math.floor(p:u(at + 8, 4) / 256) % 0x100000
    ta.length = p:u(at + 12, 4)
    local list = { { "maetah.address", at, 8 }, { "maetah.token_id", at + 8, 4 }, { "maetah.length", at + 12, 4 } }
    add_fields(p, p:header("maetah", at, 16), list)
  end }

  extensions.imm = { 16, function(p, at, ta)
    local tree = p:header("immetah", at, 16)
    if ta.opcode == 0x02 then
      ta.invalidated = p:u(at, 4)
      local list = { { "immetah.invalidated_token_id", at, 4 }, { "immetah.invalidated_token_value", at + 4, 4 } }
      return add_fields(p, tree, list)
    end
    ta.immediate = p.tvb(at, 8):uint64():tohex()
    add_fields(p, tree, { { "immetah.data", at, 8 } })
    if ta.opcode == 0x04 then
      add_fields(p, tree, { { "immetah.token_value", at + 8, 4 }, { "immetah.msg_length", at + 12, 4 } })
    end
  end }

  extensions.ntf = { 24, function(p, at, ta)
    ta.notified = p.tvb(at, 8):uint64():tohex()
    add_fields(p, p:header("ntfetah", at, 24), {
      { "ntfetah.address", at, 8 }, { "ntfetah.token_id", at + 8, 4 }, { "ntfetah.token_value", at + 12, 4 },
      { "ntfetah.data", at + 16, 8 },
    })
  end }

  extensions.mgmt = { 4, function(p, at)
    add_fields(p, p:header("mgmtetah", at, 4), {
      { "mgmtetah.sub_code", at, 1 }, { "mgmtetah.code", at, 1 }, { "mgmtetah.rsp", at, 1 },
      { "mgmtetah.status", at + 1, 1 }, { "mgmtetah.pdu_length", at + 2, 2 },
    })
  end }

  extensions.tv = { 4, function(p, at)
    add_fields(p, p:header("tvetah", at, 4), { { "tvetah.token_value", at, 4 } })
  end }

  -- How many byte enables a payload of that length has; 0: no payload is so long.
  local function enables_of(length)
    if length > MOST_ENABLES then return MOST_ENABLES end
    for _, possible in ipairs({ 64, 128, 256, 512, 1024 }) do
      if length == possible then return length end
    end
    return 0
  end

  local function read_enables(p, at, enables)
    local size = enables / 8
    local tree = p:header("beetah", at, size)
    tree:add(fields["beetah.bitmap"], p.tvb(at, size))
    local ranges = {}
    ub.numbers.runs(p.tvb(at, size):raw():reverse(), 1, 0, enables - 1, function(first, last)
      ranges[#ranges + 1] = ub.numbers.range_text(first, last)
    end)
    local text = #ranges == 0 and "none" or table.concat(ranges, ", ")
    p:generated(tree, "beetah.enabled", text)
    p.ta.enabled = #ranges > FEW_RANGES and string.format("%d ranges", #ranges) or text
  end

  -- Operands are little-endian; `old`: the value of an answer, which is big-endian.
  local function read_operands(p, at, length, old)
    local size = old and length or length / 2
    if size > 8 or size ~= math.floor(size) then
      p.tree:add(fields["atomic.operands"], p.tvb(at, length))
    elseif old then
      p.ta.old = p.tvb(at, size):uint64()
      p.tree:add(fields["atomic.old"], p.tvb(at, size))
    else
      p.ta.operand1, p.ta.operand2 = p.tvb(at, size):le_uint64(), p.tvb(at + size, size):le_uint64()
      p.tree:add_le(fields["atomic.operand1"], p.tvb(at, size))
      p.tree:add_le(fields["atomic.operand2"], p.tvb(at + size, size))
    end
  end

  local function show_payload(p, at, length)
    p:generated(p.tree, "payload_length", length)
    local there = math.min(length, p.captured - at)
    if there <= 0 then return end
    local shape = ub.opcodes[p.ta.opcode]
    if there == length and (shape.atomic or p.ta.opcode == 0x13) then
      read_operands(p, at, length, not shape.atomic)
    else
      p.tree:add(fields["payload"], p.tvb(at, there))
    end
  end

  -- Payload and padding up to the end. `admitted`: may there be payload?
  local function read_payload(p, at, padding, admitted)
    local rest = p.limit - at
    if rest < padding then return p:refuse(CONTENT, "bad_padding") end
    local length = rest - padding
    p.ta.payload, p.ta.payload_at = length, at
    if length > 0 and not admitted then p:refuse(CONTENT, "unexpected_payload") end
    show_payload(p, at, length)
    if padding > 0 and at + length + padding <= p.captured then
      p.tree:add(fields["padding"], p.tvb(at + length, padding))
    end
  end

  local function read_base(p, at, size)
    local opcode = p:u(at, 1)
    local response = opcode >= 0x11 and opcode <= 0x13
    local ta = { opcode = opcode, response = response, tassn = p:u(at + 2, 2), poison = p:bit(at + 1, 5) }
    ta.name = names.opcode[opcode] or string.format("operation 0x%02x", opcode)
    p.ta = ta
    local tree = p:header(response and "atah" or "btah", at, size)
    tree:append_text(": " .. ta.name)
    add_fields(p, tree, { { "opcode", at, 1 }, { "ta.version", at + 1, 1 }, { "poison", at + 1, 1 } })
    if ta.poison then p:tell("poison", nil, tree) end
    return tree
  end

  local function read_context(p, tree, at)
    p.ta.rc_type, p.ta.rc_id = p:bits(at + 5, 2, 2), p:u(at + 4, 4) % 0x100000
    add_fields(p, tree, { { "rc_type", at + 5, 1 }, { "rc_id", at + 5, 3 } })
  end

  local function read_atah(p, at, tree)
    local ta = p.ta
    ta.sv = p:bit(at + 1, 4)
    ta.rspst, ta.rspinfo = p:bits(at + 4, 0, 3), p:bits(at + 4, 3, 5)
    add_fields(p, tree, {
      { "atah.sv", at + 1, 1 }, { ta.sv and "scid" or "tassn", at + 2, 2 }, { "atah.rspst", at + 4, 1 },
      { "atah.rspinfo", at + 4, 1 },
    })
    read_context(p, tree, at)
  end

  local function read_btah(p, at, tree)
    local ta = p.ta
    ta.ud_flag, ta.tv_en, ta.mt_en = p:bit(at + 1, 7), p:bit(at + 1, 4), p:bit(at + 4, 4)
    ta.no_taack, ta.order, ta.retry = p:bit(at + 4, 0), p:bits(at + 4, 2, 2), p:bit(at + 4, 6)
    ta.alloc, ta.exclusive = p:bit(at + 4, 7), p:bit(at + 5, 1)
    add_fields(p, tree, {
      { "btah.ee", at + 1, 1 }, { "btah.tv_en", at + 1, 1 }, { "btah.ud_flag", at + 1, 1 }, { "tassn", at + 2, 2 },
      { "btah.no_taack", at + 4, 1 }, { "btah.tco", at + 4, 1 }, { "btah.teo", at + 4, 1 }, { "btah.mt_en", at + 4, 1 },
      { "btah.fce", at + 4, 1 }, { "btah.retry", at + 4, 1 }, { "btah.alloc", at + 4, 1 }, { "btah.e_bit", at + 5, 1 },
    })
    read_context(p, tree, at)
  end

  -- The headers that follow in their fixed order; nil: one is cut off.
  local ORDER = { "ud", "mt", "taid", "ofst", "ma", "imm", "ntf", "mgmt", "tv" }
  local function read_extensions(p, at, has)
    local size = 0
    for _, key in ipairs(ORDER) do
      if has[key] then size = size + extensions[key][1] end
    end
    local all = p:has(at, size)
    if not all then p:refuse(CONTENT, "truncated_header") end
    for _, key in ipairs(ORDER) do
      if has[key] then
        local bytes, read = extensions[key][1], extensions[key][2]
        if not p:has(at, bytes) then return nil end
        read(p, at, p.ta)
        at = at + bytes
      end
    end
    return all and at or nil
  end

  -- A READ has no payload, so its length says whether it has TAIDETAH and OFSTETAH.
  local function has_read_meta(p, at, padding, agreed, supposed)
    if agreed ~= nil or p.ta.response then return agreed == nil and supposed or agreed end
    local bytes = 8 + 16 + (p.ta.ud_flag and 4 or 0) + (p.ta.tv_en and 4 or 0)
    local length = p.limit - padding - at
    if length == bytes then return false end
    return length == bytes + 8 or supposed
  end

  -- `before`: bytes of the transport header that count for the padding. `agreed`: do READs have the meta headers; nil:
  -- nobody knows, and `supposed` is supposed where the packet itself does not tell.
  function ub.read_transaction(p, at, before, padding, agreed, supposed)
    if not p:has(at, 8) then
      p:refuse(CONTENT, "truncated_header")
      return p:rest(at, "payload")
    end
    if (before + p.limit - at) % 4 ~= 0 then p:refuse(CONTENT, "bad_padding") end
    local version = p:bits(at + 1, 0, 2)
    local tree = read_base(p, at, 8)
    local ta = p.ta
    if ta.response then read_atah(p, at, tree) else read_btah(p, at, tree) end
    local shape = ub.opcodes[ta.opcode]
    if version ~= 0 then
      p:refuse(CONTENT, "bad_ta_version")
    elseif not shape then
      p:refuse(CONTENT, "unknown_opcode")
    elseif not ta.response and (ta.mt_en ~= (shape.mt or false) or (ta.tv_en and not shape.tv)) then
      p:refuse(CONTENT, "bad_header_flags")
    end
    if not shape or version ~= 0 then return p:rest(at + 8, "payload") end
    ta.read_meta = shape.read_meta and has_read_meta(p, at, padding, agreed, supposed) or false
    local has = {
      ud = ta.ud_flag, mt = shape.mt, taid = ta.read_meta, ofst = shape.ofst or ta.read_meta, ma = shape.ma,
      imm = shape.imm, ntf = shape.ntf, mgmt = shape.mgmt, tv = ta.tv_en and shape.tv,
    }
    at = read_extensions(p, at + 8, has)
    if not at then return end
    if shape.be then
      local enables = enables_of(ta.length)
      if enables == 0 then
        p:refuse(CONTENT, "bad_byte_enable")
        return p:rest(at, "payload")
      end
      if not p:has(at, enables / 8) then return p:refuse(CONTENT, "truncated_header") end
      read_enables(p, at, enables)
      at = at + enables / 8
    end
    local failed = ta.response and ta.rspst ~= 0 and ta.rspst ~= 5
    read_payload(p, at, padding, shape.payload and not failed)
    if shape.be and ta.payload ~= ta.length then p:refuse(CONTENT, "bad_byte_enable") end
  end

  -- ---- TP bypass ---------------------------------------------------------------------------------------------------

  local SHORTEST_FRAME, ETHERNET = 60, 14

  -- Behind the headers of a packet without payload there may be what Ethernet filled the frame up with.
  local function take_nothing(p, at)
    p.ta.payload = 0
    if at < p.size and p.size + ETHERNET > SHORTEST_FRAME then p:refuse(CONTENT, "unexpected_payload") end
    p:rest(at, "filler")
  end

  local function read_compact_address(p, at)
    local ta = p.ta
    local last = p:u(at + 7, 1)
    ta.strong = p:bit(at + 7, 4)
    ta.length = 64 * 2 ^ (last % 8)
    ta.token_id = p:u(at + 8, 4) % 0x100000
    ta.address = p.tvb(at, 7):bytes():tohex(true) .. string.format("%02x", last - last % 64)
    local tree = p:header("maetah", at, 12)
    tree:add(fields["maetah.address"], p.tvb(at, 8), UInt64.fromhex(ta.address))
    add_fields(p, tree, {
      { "maetah.hint", at + 7, 1 }, { "maetah.so", at + 7, 1 }, { "maetah.length_code", at + 7, 1 },
      { "maetah.compact_token_id", at + 8, 4 },
    })
    p:generated(tree, "maetah.length", ta.length)
  end

  local function read_compact_request(p, at, shape)
    local ta = p.ta
    if ta.tv_en and not shape.tv then return p:refuse(CONTENT, "bad_header_flags") end
    if not p:has(at, 12 + (ta.ud_flag and 4 or 0) + (ta.tv_en and 4 or 0)) then
      return p:refuse(CONTENT, "truncated_header")
    end
    if ta.ud_flag then
      extensions.ud[2](p, at, ta)
      at = at + 4
    end
    read_compact_address(p, at)
    at = at + 12
    if ta.tv_en then
      extensions.tv[2](p, at, ta)
      at = at + 4
    end
    if shape.be then
      local enables = enables_of(ta.length)
      if not p:has(at, enables / 8) then return p:refuse(CONTENT, "truncated_header") end
      read_enables(p, at, enables)
      at = at + enables / 8
    end
    if not shape.payload then return take_nothing(p, at) end
    ta.payload = p.size - at
    if ta.payload ~= ta.length then p:refuse(CONTENT, "bad_length") end
    show_payload(p, at, ta.payload)
  end

  local function read_compact_answer(p, at, shape)
    local ta = p.ta
    if ta.status ~= 0 or not shape.payload then return take_nothing(p, at) end
    ta.payload = p.size - at
    local possible = false
    for code = 0, 7 do
      possible = possible or ta.payload == 64 * 2 ^ code
    end
    if not possible then p:refuse(CONTENT, "bad_length") end
    show_payload(p, at, ta.payload)
  end

  function ub.read_compact_transaction(p, at)
    if not p:has(at, 4) then return p:refuse(ub.Packet.NETWORK, "too_short") end
    local tree = read_base(p, at, 4)
    local ta = p.ta
    local shape = ub.opcodes[ta.opcode]
    add_fields(p, tree, { { "tassn", at + 2, 2 } })
    if ta.response then
      ta.status = p:bits(at + 1, 2, 2)
      add_fields(p, tree, { { "atah.status", at + 1, 1 } })
    else
      ta.tv_en, ta.ud_flag = p:bit(at + 1, 4), p:bit(at + 1, 7)
      add_fields(p, tree, { { "btah.ee", at + 1, 1 }, { "btah.tv_en", at + 1, 1 }, { "btah.ud_flag", at + 1, 1 } })
    end
    local drop = p:bits(at + 1, 0, 2) ~= 0 and "bad_ta_version" or not shape and "unknown_opcode"
      or not shape.bypass and "not_load_store"
    if drop then
      p:refuse(CONTENT, drop)
      return p:rest(at + 4, "payload")
    end
    if ta.response then read_compact_answer(p, at + 4, shape) else read_compact_request(p, at + 4, shape) end
  end
end
