-- SPDX-License-Identifier: Apache-2.0
-- Control records: how two instances agree on a channel, check that the other is alive, and part. What is read goes
-- into p.control.
return function(ub)
  local fields, names = ub.fields, ub.names
  local Packet = ub.Packet
  local CONTENT = Packet.CONTENT
  local PREFIX_SIZE, SIZE, MAX_SIZE = 28, 96, 100
  local MAGIC = 0x554243
  local SC_FREE, FIND, FOUND, PING, PONG = 10, 11, 12, 7, 8
  local GLARE = 3

  local function read_prefix(p, at, tree)
    local r = { type = p:u(at + 4, 1), reason = p:u(at + 5, 1), attempt = p:u(at + 24, 4) }
    r.name = names.record_type[r.type] or string.format("type %d", r.type)
    r.sender_incarnation = p.tvb(at + 8, 8):uint64():tohex()
    r.receiver_incarnation = p.tvb(at + 16, 8):uint64():tohex()
    for _, one in ipairs({
      { "magic", 0, 4 }, { "type", 4, 1 }, { "reason", 5, 1 }, { "length", 6, 2 }, { "sender_incarnation", 8, 8 },
      { "receiver_incarnation", 16, 8 }, { "attempt", 24, 4 },
    }) do
      tree:add(fields["record." .. one[1]], p.tvb(at + one[2], one[3]))
    end
    tree:append_text(": " .. r.name)
    return r
  end

  local FLAGS = { "bulk", "bypass", "icrc_off", "caqm_ecn", "read_meta", "mark_psn", "fast", "rol" }
  local MODES = { "compact", "repeats", "several_paths", "cna" }

  local function read_flags(p, at, tree, r)
    if r.type == FIND or r.type == FOUND then
      r.token_id = p:bit(at + 28, 7)
      return tree:add(fields["record.flag.token_id"], p.tvb(at + 28, 1))
    end
    for bit, key in ipairs(FLAGS) do
      r[key] = p:bit(at + 28, bit - 1)
      tree:add(fields["record.flag." .. key], p.tvb(at + 28, 1))
    end
  end

  local function read_terms(p, at, tree, r)
    local object = r.type == FIND or r.type == FOUND
    local function add(key, offset, size)
      tree:add(fields["record." .. key], p.tvb(at + offset, size))
    end
    read_flags(p, at, tree, r)
    add("sender_tpn", 29, 3)
    add("selective", 32, 1)
    add("oor", 32, 1)
    add("place", 32, 1)
    add("sack_size", 32, 1)
    add(object and "object" or "receiver_tpn", 33, 3)
    for bit, key in ipairs(MODES) do
      r[key] = p:bit(at + 36, bit - 1)
      add(key, 36, 1)
    end
    add("cc", 36, 1)
    local about_path = r.several_paths and (r.type == PING or r.type == PONG)
    add(about_path and "question" or "initial_psn", 37, 3)
    add("mtu", 40, 2)
    add("window", 42, 2)
    add("rto_base", 44, 4)
    add("rto_growth", 48, 1)
    add("retry_limit", 48, 1)
    add("so_credit", 49, 1)
    add("keepalive", 50, 2)
    add("upi", 52, 4)
    add("sender_eid", 56, 16)
    add("wanted_eid", 72, 16)
    r.sender_tpn, r.selective = p:u(at + 29, 3), p:bit(at + 32, 0)
    r.receiver_tpn = object and 0 or p:u(at + 33, 3)
    r.object = object and p:u(at + 33, 3) or nil
    r.cc, r.mtu, r.window = p:bits(at + 36, 4, 4), p:u(at + 40, 2), p:u(at + 42, 2)
    r.initial_psn = p:u(at + 37, 3)
    r.question = about_path and r.initial_psn or nil
    if r.type == SC_FREE then
      r.scid = p:u(at + 88, 3)
      return add("scid", 88, 3)
    end
    r.sender_uasid, r.wanted_uasid = p:u(at + 88, 4), p:u(at + 92, 4)
    add("sender_uasid", 88, 4)
    add("wanted_uasid", 92, 4)
  end

  -- `size` bytes are payload of the packet.
  function ub.read_record(p, at, size)
    p.name = "control record"
    local function refuse(drop)
      p:refuse(CONTENT, drop)
    end
    if size >= PREFIX_SIZE and not p:has(at, PREFIX_SIZE) then return end
    if size < PREFIX_SIZE or p:u(at, 3) ~= MAGIC then return refuse("bad_record_magic") end
    local digit = p:u(at + 3, 1) - 0x30
    if digit < 0 or digit > 9 then return refuse("bad_record_magic") end
    local tree = p.tree:add(fields["record"], p.tvb(at, math.min(size, MAX_SIZE, p.captured - at)))
    local r = read_prefix(p, at, tree)
    p.control, p.name = r, r.name
    if digit ~= 1 then return refuse("bad_record_version") end
    local length = p:u(at + 6, 2)
    if length < SIZE or length > size then return refuse("bad_record_magic") end
    if not p:has(at, math.min(length, MAX_SIZE)) then return end
    read_terms(p, at, tree, r)
    if length >= MAX_SIZE then
      r.application = p:u(at + 96, 4)
      tree:add(fields["record.application"], p.tvb(at + 96, 4))
    end
    r.whole = true
    if not names.record_type[r.type] then return refuse("bad_record_type") end
    tree:set_len(math.min(length, MAX_SIZE))
    if r.name == "REJ" and r.reason ~= GLARE then
      p:tell("rejected", "The peer refuses the channel: " .. Packet.called("record_reason", r.reason), tree)
    end
    if r.name == "RESET" then p:tell("reset", nil, tree) end
    ub.track.on_record(p)
  end
end
