-- SPDX-License-Identifier: Apache-2.0
-- What is known from several packets: channels and what they agreed on, which answer belongs to which request, what was
-- sent before and what was acknowledged. All of it is learned when a packet is seen for the first time, and kept by the
-- number of its frame.
return function(ub)
  local numbers = ub.numbers
  local track = {}
  ub.track = track

  local SERIALS = 0x1000000
  local state

  -- Forgets everything: another capture begins.
  function track.reset()
    state = {
      records = {},  -- by frame: what was learned of it
      channels = {},  -- by the two ends, as the sender names them: { channel, side of the sender }
      channel_count = 0,
      compact = {},  -- of CTP, by the two TPNs: the same
      lives = {},  -- by incarnations and TPNs: the same
      tpns = {},  -- by end and TPN: which channel was set up there, { channel, side }
      requests = {},  -- by initiator, target, queue and TASSN: the newest request
      granting = {},  -- by initiator, target and queue: the request that asked for a sequence context
      contexts = {},  -- by initiator, target and SCID: the queue that it belongs to
      asked = {},  -- control records that want an answer: the newest
      terms_asked = {},  -- what a REQ offered
    }
  end
  track.reset()

  function track.record_of(pinfo)
    local record = state.records[pinfo.number]
    if not record then
      record = { frame = pinfo.number, at = pinfo.rel_ts, first = true }
      state.records[pinfo.number] = record
    end
    return record
  end

  -- Is there something to be learned of the packet now?
  local function learns(p)
    return not p.pinfo.visited and ub.preferences.track and not p.refused and not p.cut
  end

  -- ---- channels ----------------------------------------------------------------------------------------------------

  local function key_of(from, from_tpn, to, to_tpn)
    return string.format("%s#%x>%s#%x", from, from_tpn, to, to_tpn)
  end

  local function new_direction()
    return {
      sent = {},  -- by PSN that does not wrap: the packet
      open = {}, first_open = 1, next_open = 1,  -- PSNs that are not acknowledged, in their order
      reported = {},  -- by PSN: the frame that said last that it is missing
      waiting = {}, first_waiting = 1, next_waiting = 1,  -- requests that an acknowledgement may answer
    }
  end

  local function name_pair(channel, side, from, from_tpn, to, to_tpn)
    state.channels[key_of(from, from_tpn, to, to_tpn)] = { channel = channel, side = side }
    state.channels[key_of(to, to_tpn, from, from_tpn)] = { channel = channel, side = 3 - side }
  end

  local function new_channel(from, from_tpn, to, to_tpn)
    local channel = {
      number = state.channel_count,
      ends = { from, to },
      directions = { new_direction(), new_direction() },
    }
    state.channel_count = state.channel_count + 1
    name_pair(channel, 1, from, from_tpn, to, to_tpn)
    return channel
  end

  local function belongs_to(p, found)
    p.record.channel, p.record.side = found.channel, found.side
    p.channel, p.side, p.terms = found.channel, found.side, found.channel.terms
  end

  -- A packet for a TPN that was set up with another peer, or whose channel was closed since.
  local function judge_channel(p, src_tpn, dst_tpn, found)
    if found and found.channel.closed_in then
      p.record.drop = "unknown_tpn"
      return
    end
    local owner = state.tpns[string.format("%s#%x", p.to, dst_tpn)]
    if found or not owner or owner.channel.closed_in or owner.peer_tpn == src_tpn then return end
    p.record.drop = "wrong_peer"
  end

  -- Finds the channel of a packet. What it was then is remembered, since TPNs are used again.
  function track.find_channel(p, src_tpn, dst_tpn)
    local found = p.record
    if not found.channel and not p.pinfo.visited and ub.preferences.track then
      found = state.channels[key_of(p.from, src_tpn, p.to, dst_tpn)]
      if not found and p.kind == "ctp" then
        found = state.compact[string.format("%x>%x", src_tpn, dst_tpn)]
        if found then name_pair(found.channel, found.side, p.from, src_tpn, p.to, dst_tpn) end
      end
      if p.kind ~= "bypass" then judge_channel(p, src_tpn, dst_tpn, found) end
      if found and p.rtp and p.rtp.opcode == 1 then found.channel.directions[found.side].last_frame = p.pinfo.number end
    end
    if found and found.channel then belongs_to(p, found) end
    if p.record.drop then p:refuse(ub.Packet.CHANNEL, p.record.drop) end
  end

  -- The packet is undamaged: if it is the first of its channel in the capture, there is one from now on.
  function track.open_channel(p, src_tpn, dst_tpn)
    if p.channel or not learns(p) then return end
    belongs_to(p, { channel = new_channel(p.from, src_tpn, p.to, dst_tpn), side = 1 })
  end

  -- Do READs of the channel have the meta headers? nil: none was seen.
  function track.read_meta_seen(p)
    return p.channel and p.channel.read_meta
  end

  -- ---- requests and answers ----------------------------------------------------------------------------------------

  local function request_key(p, initiator_side, type, rc, tassn)
    local ends = p.channel.ends
    local class = p.kind == "cna" and "rtp" or p.kind
    return string.format("%s %s>%s %s %d %d", class, ends[initiator_side], ends[3 - initiator_side], type, rc, tassn)
  end

  -- The queue whose answers a request gets: of a sequence context that of the request which asked for it.
  local function answered_queue(p, ta)
    if ta.rc_type ~= 2 then return "queue", ta.rc_id end
    return "context", state.contexts[request_key(p, p.side, "scid", ta.rc_id, 0)] or 0
  end

  local function is_same_request(p, request, tpmsn)
    if p.kind == "ctp" then return request.response == nil and p.ta.retry end
    if p.kind == "bypass" then return false end
    return request.tpmsn == tpmsn and request.channel == p.channel
  end

  local function learn_request(p)
    local ta, record = p.ta, p.record
    local type, rc = "load", 0
    if p.kind ~= "bypass" then type, rc = answered_queue(p, ta) end
    local key = request_key(p, p.side, type, rc, ta.tassn)
    local old = state.requests[key]
    local tpmsn = p.rtp and p.rtp.tpmsn
    if old and is_same_request(p, old, tpmsn) then
      record.request = old
      if p.kind == "ctp" then record.sent_before = old.frame end
      return
    end
    local request = { frame = p.pinfo.number, at = p.record.at, name = ta.name, tpmsn = tpmsn, channel = p.channel }
    if old and old.refused then request.retry_of = old.frame end
    state.requests[key], record.request = request, request
    if ta.alloc then state.granting[request_key(p, p.side, "grant", ta.rc_id, 0)] = request end
    local rol = not p.channel.terms or p.channel.terms.rol
    if p.rtp and rol and not ub.opcodes[ta.opcode].atomic and not ub.opcodes[ta.opcode].read_meta then
      local direction = p.channel.directions[p.side]
      direction.waiting[direction.next_waiting] = request
      direction.next_waiting = direction.next_waiting + 1
    end
  end

  local function answer(p, request, refused)
    if not request then return end
    request.response = request.response or p.pinfo.number
    request.refused = refused
    p.record.answered = p.record.answered or request
  end

  local function learn_answer(p)
    local ta = p.ta
    local initiator = 3 - p.side
    if p.kind == "bypass" then
      return answer(p, state.requests[request_key(p, initiator, "load", 0, ta.tassn)], ta.status ~= 0)
    end
    if ta.sv then
      state.contexts[request_key(p, initiator, "scid", ta.tassn, 0)] = ta.rc_id
      return answer(p, state.granting[request_key(p, initiator, "grant", ta.rc_id, 0)], false)
    end
    local success = ta.rspst == 0 or ta.rspst == 5
    local type = ta.rc_type == 2 and "context" or "queue"
    local more = success and ta.rspinfo or 0
    for i = 0, more do
      local key = request_key(p, initiator, type, ta.rc_id, (ta.tassn + i) % 0x10000)
      local request = state.requests[key] or (type == "context" and state.requests[request_key(p, initiator, type, 0,
        (ta.tassn + i) % 0x10000)])
      answer(p, request, not success)
    end
  end

  local function learn_transaction(p)
    if not p.ta then return end
    if p.ta.read_meta ~= nil and ub.opcodes[p.ta.opcode].read_meta and not p.ta.response then
      p.channel.read_meta = p.ta.read_meta
    end
    if p.ta.response then learn_answer(p) else learn_request(p) end
  end

  -- On a channel of ROL an acknowledgement is the answer to WRITEs and SENDs: to all of them up to its message, or to
  -- that one alone if it failed.
  local function learn_fused_answer(p, other)
    local rtp = p.rtp
    local failed = rtp.rspst ~= 5 or rtp.rspinfo ~= 2
    for at = other.first_waiting, other.next_waiting - 1 do
      local request = other.waiting[at]
      local ahead = numbers.distance(request.tpmsn, rtp.tpmsn)
      if ahead < 0 then break end
      if not failed or ahead == 0 then answer(p, request, failed) end
      if not failed then
        other.waiting[at] = nil
        other.first_waiting = at + 1
      end
    end
  end

  -- ---- sequence numbers --------------------------------------------------------------------------------------------

  -- PSNs that do not wrap: how far this one is from the newest.
  local function unwrapped(direction, psn)
    if not direction.newest then return psn + SERIALS end
    return direction.newest + numbers.distance(direction.newest % SERIALS, psn)
  end

  local function learn_data(p)
    local direction = p.channel.directions[p.side]
    local rtp = p.rtp
    if rtp.fake and rtp.rspst ~= 0 then return end  -- it confirms a failure, and has no PSN of its own
    local at = unwrapped(direction, rtp.psn)
    local packet = direction.sent[at]
    if packet then
      p.record.sent_before = packet.frame
      p.record.reported_in = direction.reported[at]
      packet.again = true
      p.record.packet = packet
      return
    end
    packet = { frame = p.pinfo.number, at = p.record.at, psn = rtp.psn }
    direction.sent[at], p.record.packet = packet, packet
    if direction.newest and at > direction.newest + 1 then p.record.not_seen = at - direction.newest - 1 end
    if not direction.newest or at > direction.newest then direction.newest = at end
    local place = direction.next_open
    while place > direction.first_open and direction.open[place - 1] > at do
      direction.open[place] = direction.open[place - 1]
      place = place - 1
    end
    direction.open[place] = at
    direction.next_open = direction.next_open + 1
  end

  local function acknowledge(p, packet)
    if packet.acked_in then return end
    packet.acked_in, packet.acked_at = p.pinfo.number, p.record.at
    p.record.acks = (p.record.acks or 0) + 1
    p.record.newest_acked = packet
  end

  -- All up to `last` arrived.
  local function acknowledge_until(p, other, last)
    while other.first_open < other.next_open and other.open[other.first_open] <= last do
      local at = other.open[other.first_open]
      acknowledge(p, other.sent[at])
      other.reported[at] = nil
      other.open[other.first_open] = nil
      other.first_open = other.first_open + 1
    end
  end

  local function learn_acknowledgement(p)
    local rtp = p.rtp
    local other = p.channel.directions[3 - p.side]
    if rtp.name ~= "CNP" and other.newest then
      local last = unwrapped(other, rtp.psn)
      local gap = rtp.name:sub(1, 5) == "TPNAK"
      acknowledge_until(p, other, gap and last - 1 or last)
      if gap then other.reported[last] = p.pinfo.number end
      if p.sack then
        numbers.runs(p.sack.bitmap, 1, 1, p.sack.highest, function(from, to)
          for i = from, to do
            local packet = other.sent[last + i]
            if packet then acknowledge(p, packet) end
          end
        end)
        numbers.runs(p.sack.bitmap, 0, 1, p.sack.highest, function(from, to)
          for i = from, to do other.reported[last + i] = p.pinfo.number end
        end)
      end
    end
    local psn_error = rtp.rspst == 3 and rtp.rspinfo == 0
    if rtp.rspst ~= 0 and not psn_error then learn_fused_answer(p, other) end
  end

  function track.on_rtp(p)
    if not p.channel or not learns(p) then return end
    if p.rtp.opcode == 1 then
      learn_data(p)
      learn_transaction(p)
    else
      learn_acknowledgement(p)
    end
  end

  function track.on_compact(p)
    if p.channel and learns(p) then learn_transaction(p) end
  end
  track.on_bypass = track.on_compact

  -- ---- control records ---------------------------------------------------------------------------------------------

  local ASKS = { REP = "REQ", REJ = "REQ", CONF = "REP", CLOSED = "CLOSE", PONG = "PING", FOUND = "FIND" }
  local WANTS_ANSWER = { REQ = true, REP = true, CLOSE = true, PING = true, FIND = true }

  local function learn_question(p, r)
    local function key(name, from, to)
      return string.format("%s %08x %d %s>%s", name, r.attempt, r.question or -1, from, to)
    end
    if ASKS[r.name] then
      local question = state.asked[key(ASKS[r.name], p.to, p.from)]
      if question then answer(p, question, r.name == "REJ") end
    end
    if not WANTS_ANSWER[r.name] then return end
    local own = key(r.name, p.from, p.to)
    local before = state.asked[own]
    if before then p.record.sent_before = before.first end
    local question = { frame = p.pinfo.number, at = p.record.at, name = r.name }
    question.first = before and before.first or question.frame
    state.asked[own], p.record.request = question, question
  end

  -- The names that a channel has on other wires than that of its records.
  local function name_elsewhere(p, r, channel, side)
    local function cna(address) return string.format("cna %02x%02x%02x", address:byte(-3, -1)) end
    if r.compact then
      state.compact[string.format("%x>%x", r.sender_tpn, r.receiver_tpn)] = { channel = channel, side = side }
      state.compact[string.format("%x>%x", r.receiver_tpn, r.sender_tpn)] = { channel = channel, side = 3 - side }
    elseif channel.terms.cna and p.source then
      name_pair(channel, side, cna(p.source), r.sender_tpn, cna(p.target), r.receiver_tpn)
    end
  end

  local function learn_terms(p, r, channel, side)
    local offer = state.terms_asked[string.format("%08x %s", r.attempt, p.to)]
    local function both(key)
      if not offer then return r[key] end
      return r[key] and offer[key]
    end
    channel.terms = {
      rol = r.rol, read_meta = r.read_meta, icrc_off = r.icrc_off, cc = r.cc, mtu = r.mtu, compact = r.compact,
      selective = both("selective"), several_paths = both("several_paths"), cna = both("cna"),
    }
    channel.opened_in = p.pinfo.number
    for _, one in ipairs({ { p.from, r.sender_tpn, r.receiver_tpn }, { p.to, r.receiver_tpn, r.sender_tpn } }) do
      state.tpns[string.format("%s#%x", one[1], one[2])] = { channel = channel, peer_tpn = one[3] }
    end
    name_elsewhere(p, r, channel, side)
  end

  -- The channel that a record is about; another path of it has other addresses, and incarnations tell.
  local function channel_of_record(p, r)
    if r.sender_tpn == 0 or r.receiver_tpn == 0 then return nil end
    local found = state.channels[key_of(p.from, r.sender_tpn, p.to, r.receiver_tpn)]
    local a = string.format("%s#%x", r.sender_incarnation, r.sender_tpn)
    local b = string.format("%s#%x", r.receiver_incarnation, r.receiver_tpn)
    if not found then
      found = state.lives[a .. ">" .. b]
      if found then name_pair(found.channel, found.side, p.from, r.sender_tpn, p.to, r.receiver_tpn) end
    end
    local begins = r.name == "REP" or r.name == "CONF"
    if begins and (not found or (found.channel.attempt and found.channel.attempt ~= r.attempt)) then
      found = { channel = new_channel(p.from, r.sender_tpn, p.to, r.receiver_tpn), side = 1 }
    end
    if found and begins then
      found.channel.attempt = r.attempt
      state.lives[a .. ">" .. b] = found
      state.lives[b .. ">" .. a] = { channel = found.channel, side = 3 - found.side }
    end
    return found
  end

  -- Who says RESET has just got a packet for a TPN that it does not know.
  local function learn_reset(p, r)
    local found = state.channels[key_of(p.to, r.receiver_tpn, p.from, r.sender_tpn)]
    local frame = found and found.channel.directions[found.side].last_frame
    if not frame then return end
    state.records[frame].drop = "unknown_tpn"
    p.record.answered = { frame = frame, at = state.records[frame].at }
  end

  function track.on_record(p)
    local r = p.control
    if not learns(p) then return end
    learn_question(p, r)
    if r.name == "REQ" then state.terms_asked[string.format("%08x %s", r.attempt, p.from)] = r end
    if r.name == "RESET" then learn_reset(p, r) end
    local found = channel_of_record(p, r)
    if not found then return end
    belongs_to(p, found)
    if r.name == "REP" then learn_terms(p, r, found.channel, found.side) end
    if r.name == "CLOSED" then found.channel.closed_in = p.pinfo.number end
  end

  -- ---- what is shown -----------------------------------------------------------------------------------------------

  local function add_time(p, tree, key, seconds)
    if seconds < 0 then return end
    local whole = math.floor(seconds)
    p:generated(tree, key, NSTime.new(whole, math.floor((seconds - whole) * 1e9 + 0.5)))
  end

  local function show_transmission(p, record)
    local tree = p.tree
    if record.sent_before then
      p:generated(tree, "retransmission", true)
      p:generated(tree, "retransmission_of", record.sent_before)
      if record.reported_in then p:generated(tree, "reported_missing_in", record.reported_in) end
      local why = record.reported_in and string.format(" and reported as missing in frame %d", record.reported_in) or ""
      p:tell("retransmission", string.format("Sent before in frame %d%s", record.sent_before, why))
    end
    if record.not_seen then
      p:tell("not_seen", numbers.packets_are(record.not_seen) .. " before it and not in the capture so far")
    end
    local packet = record.packet
    if packet and packet.acked_in then
      p:generated(tree, "acked_in", packet.acked_in)
      if not packet.again then add_time(p, tree, "ack_time", packet.acked_at - packet.at) end
    end
    if record.acks then
      p:generated(tree, "acks_count", record.acks)
      p:generated(tree, "acks_frame", record.newest_acked.frame)
    end
  end

  -- Adds what was learned of the packet, now or when it was first seen.
  function track.show(p)
    local record, tree = p.record, p.tree
    local channel = record.channel
    if channel then
      p:generated(tree, "channel", channel.number)
      local opened_in = channel.opened_in
      if opened_in and opened_in ~= record.frame then p:generated(tree, "setup_in", opened_in) end
    end
    -- A RESET told later that nobody took the packet.
    if record.drop then p:refuse(ub.Packet.CHANNEL, record.drop) end
    show_transmission(p, record)
    local request, answered = record.request, record.answered
    if request then
      if request.response then p:generated(tree, "response_in", request.response) end
      if request.retry_of then p:generated(tree, "retry_of", request.retry_of) end
    end
    if answered then
      p:generated(tree, "request_in", answered.frame)
      add_time(p, tree, "response_time", record.at - answered.at)
    end
  end
end
