-- SPDX-License-Identifier: Apache-2.0
-- A packet while it is read: its bytes, how far they reach, what was found in them, and why a Core would drop it.
return function(ub)
  local fields, experts, names, numbers = ub.fields, ub.experts, ub.names, ub.numbers
  local Packet = {}
  Packet.__index = Packet
  ub.Packet = Packet

  local ICRC_SIZE = 4
  Packet.ICRC_SIZE = ICRC_SIZE

  -- A Core takes the first cause that it meets. These are the steps in which it looks for them.
  Packet.NETWORK, Packet.TRANSPORT, Packet.CHANNEL, Packet.SUM, Packet.CONTENT = 1, 2, 3, 4, 5

  -- `sealed`: the packet ends with an ICRC.
  function Packet.new(tvb, pinfo, tree, sealed)
    local p = setmetatable({}, Packet)
    p.tvb, p.pinfo = tvb, pinfo
    p.captured = tvb:len()
    p.size = tvb:reported_len()
    p.limit = p.size - (sealed and ICRC_SIZE or 0)
    p.tree = tree:add(ub.proto, tvb())
    p.record = ub.track.record_of(pinfo)
    p.flaws = {}
    return p
  end

  -- Are there so many bytes? If they were on the wire and not captured, nothing is concluded from their absence.
  function Packet:has(at, size)
    if at + size > self.limit then return false end
    if at + size > self.captured then
      self.cut = true
      return false
    end
    return true
  end

  function Packet:u(at, size)
    return self.tvb(at, size):uint()
  end

  function Packet:bits(at, from, count)
    return self.tvb(at, 1):bitfield(from, count)
  end

  function Packet:bit(at, from)
    return self.tvb(at, 1):bitfield(from, 1) == 1
  end

  function Packet:header(key, at, size)
    return self.tree:add(fields[key], self.tvb(at, size))
  end

  function Packet.generated(_, tree, key, value)
    local item = tree:add(fields[key], value)
    item:set_generated()
    return item
  end

  -- Notes why a Core drops the packet, in one of the steps above. Behind an unreadable transport header nothing is read.
  function Packet:refuse(step, drop)
    if self.cut then return end
    if step == Packet.TRANSPORT then self.unreadable = true end
    local least = self.refused
    if not least or step < least.step then self.refused = { step = step, drop = drop } end
  end

  -- Something worth a look that drops nothing.
  function Packet:tell(note, text, item)
    self.flaws[#self.flaws + 1] = { note = note, text = text, item = item }
  end

  function Packet:rest(at, key)
    local last = math.min(self.limit, self.captured)
    if at < last then self.tree:add(fields[key], self.tvb(at, last - at)) end
  end

  -- Compares the ICRC with that of `header`, which is masked, and all bytes of the packet from `from` on.
  -- `may_be_off`: the ends may have agreed to leave it out, and then it is zero.
  function Packet:check_icrc(header, from, may_be_off)
    local at = self.size - ICRC_SIZE
    if at < from or self.captured < self.size then return end
    self.icrc = "not checked"
    if not ub.preferences.check_icrc or not header then return end
    local stored = self.tvb(at, ICRC_SIZE):le_uint()
    self.icrc_computed = numbers.icrc(header, at > from and self.tvb(from, at - from):raw() or "")
    if stored == self.icrc_computed then
      self.icrc = "good"
    elseif stored == 0 and may_be_off then
      self.icrc = "off"
    else
      self.icrc = "bad"
      self:refuse(Packet.SUM, "bad_icrc")
    end
  end

  function Packet:show_icrc()
    if not self.icrc then return end
    local item = self.tree:add_le(fields["icrc"], self.tvb(self.size - ICRC_SIZE, ICRC_SIZE))
    item:append_text(" (" .. self.icrc .. ")")
    self:generated(item, "icrc.status", self.icrc)
    if self.icrc == "bad" then self:generated(item, "icrc.computed", self.icrc_computed) end
  end

  -- Shows what was concluded, when all is known.
  function Packet:finish(transport)
    local pinfo, tree = self.pinfo, self.tree
    self:show_icrc()
    self:generated(tree, "transport", transport)
    if self.name then self:generated(tree, "packet", self.name) end
    ub.track.show(self)
    local sentence = ub.sentence(self)
    if self.cut then
      tree:add_proto_expert_info(experts["note.cut"])
    elseif self.refused then
      local drop = self.refused.drop
      self:generated(tree, "drop", drop)
      tree:add_proto_expert_info(experts["drop." .. drop])
      sentence = sentence .. "; dropped: " .. drop
    end
    for _, flaw in ipairs(self.flaws) do
      local item, message = flaw.item or tree, experts["note." .. flaw.note]
      if flaw.text then item:add_proto_expert_info(message, flaw.text) else item:add_proto_expert_info(message) end
    end
    tree:set_text("Unified Bus, " .. transport .. ": " .. sentence)
    pinfo.cols.protocol = self.column or ("UB " .. transport)
    pinfo.cols.info = sentence
    return self.size
  end

  -- The name of a number; the number itself if it has none.
  function Packet.called(table_name, value)
    return names[table_name][value] or string.format("%s %d", "reserved", value)
  end
end
