-- SPDX-License-Identifier: Apache-2.0
-- Arithmetic: serial numbers of 24 bits, the ICRC, ranges of numbers as text. It runs on Lua 5.2 to 5.4, of which each
-- has another way to combine bits.
return function(ub)
  local numbers = {}
  ub.numbers = numbers
  local SERIALS = 0x1000000
  local TWO_32 = 0x100000000

  -- b - a as a signed number: how far b is after a.
  function numbers.distance(a, b)
    local d = (b - a) % SERIALS
    return d < SERIALS / 2 and d or d - SERIALS
  end

  local bits = rawget(_G, "bit32") or rawget(_G, "bit")
  local xor = bits and bits.bxor
    or load("return function(a, b, c, d) return a ~ b ~ (c or 0) ~ (d or 0) end")()

  -- Slicing by four: tables[n][b] is the sum of byte b followed by n zeros.
  local tables = { {}, {}, {}, {} }
  for byte = 0, 255 do
    local sum = byte
    for _ = 1, 8 do
      local low = sum % 2
      sum = (sum - low) / 2
      if low == 1 then sum = xor(sum, 0xEDB88320) % TWO_32 end
    end
    tables[1][byte] = sum
  end
  for n = 2, 4 do
    for byte = 0, 255 do
      local sum = tables[n - 1][byte]
      local low = sum % 256
      tables[n][byte] = xor((sum - low) / 256, tables[1][low]) % TWO_32
    end
  end

  -- The CRC-32 of Ethernet, of all bytes of a string, with a sum that is not yet inverted.
  local function crc32_update(sum, text)
    local t1, t2, t3, t4 = tables[1], tables[2], tables[3], tables[4]
    local length = #text
    local whole = length - length % 4
    for i = 1, whole, 4 do
      local a, b, c, d = text:byte(i, i + 3)
      sum = xor(sum, a + b * 0x100 + c * 0x10000 + d * 0x1000000) % TWO_32
      local s0 = sum % 0x100
      sum = (sum - s0) / 0x100
      local s1 = sum % 0x100
      sum = (sum - s1) / 0x100
      local s2 = sum % 0x100
      sum = xor(t4[s0], t3[s1], t2[s2], t1[(sum - s2) / 0x100]) % TWO_32
    end
    for i = whole + 1, length do
      local low = sum % 0x100
      sum = xor((sum - low) / 0x100, t1[xor(low, text:byte(i)) % 0x100]) % TWO_32
    end
    return sum
  end

  -- The ICRC of a network header, in which all that hops may change is ones already, and what follows it.
  function numbers.icrc(header, rest)
    return TWO_32 - 1 - crc32_update(crc32_update(TWO_32 - 1, header), rest)
  end

  local function u16(value)
    return string.char(math.floor(value / 256) % 256, value % 256)
  end

  -- The masked headers of UDP over IP as SoftUB sends them and a socket's receiver rebuilds them: ID 0, DF, no options.
  -- `source` and `target`: the addresses, as 4 or 16 bytes.
  function numbers.masked_ip(source, target, source_port, target_port, udp_length)
    local ones2 = "\255\255"
    local udp = u16(source_port) .. u16(target_port) .. u16(udp_length) .. ones2
    if #source == 4 then
      return "\69\255" .. u16(udp_length + 20) .. "\0\0\64\0\255\17" .. ones2 .. source .. target .. udp
    end
    return "\111\255" .. ones2 .. u16(udp_length) .. "\17\255" .. source .. target .. udp
  end

  function numbers.masked_nth24(nth)
    return nth:sub(1, 6) .. "\255\255\255" .. nth:sub(10, 10)
  end

  -- Do the ten words of an IPv4 header sum up to what they should?
  function numbers.ipv4_checksum_fits(header)
    local sum = 0
    for i = 1, 20, 2 do
      local high, low = header:byte(i, i + 1)
      sum = sum + high * 256 + low
    end
    return sum % 0xFFFF == 0
  end

  -- Calls found(first, last) for each run of equal bits of a SACK bitmap: `wanted` ones or zeros, bits `from` to `to`.
  function numbers.runs(bitmap, wanted, from, to, found)
    local first
    for i = from, to do
      local byte = bitmap:byte(math.floor(i / 8) + 1)
      local set = math.floor(byte / 2 ^ (i % 8)) % 2
      if set == wanted then
        first = first or i
      elseif first then
        found(first, i - 1)
        first = nil
      end
    end
    if first then found(first, to) end
  end

  -- The highest bit of a bitmap that is set; nil: there is none.
  function numbers.highest_bit(bitmap)
    for at = #bitmap, 1, -1 do
      local byte = bitmap:byte(at)
      if byte ~= 0 then
        local bit = 7
        while byte < 2 ^ bit do bit = bit - 1 end
        return (at - 1) * 8 + bit
      end
    end
    return nil
  end

  function numbers.range_text(first, last)
    return first == last and string.format("%d", first) or string.format("%d-%d", first, last)
  end

  function numbers.psn_range(base, first, last)
    return numbers.range_text((base + first) % SERIALS, (base + last) % SERIALS)
  end

  function numbers.packets_are(count)
    return count == 1 and "1 packet is" or string.format("%d packets are", count)
  end

  -- The bytes of an address that is written in numbers; nil: it is a name.
  function numbers.address_bytes(text)
    local a, b, c, d = text:match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$")
    if a then return string.char(a, b, c, d) end
    if text:find("[^%x:.]") or not text:find(":", 1, true) then return nil end
    local v4 = text:match("[%d.]+%.[%d.]+$")
    if v4 then
      local high1, high2, low1, low2 = numbers.address_bytes(v4):byte(1, 4)
      text = text:sub(1, -#v4 - 1) .. string.format("%x:%x", high1 * 256 + high2, low1 * 256 + low2)
    end
    local front, back = text:match("^(.-)::(.*)$")
    local function groups(part)
      local bytes = {}
      for group in part:gmatch("%x+") do bytes[#bytes + 1] = u16(tonumber(group, 16)) end
      return table.concat(bytes)
    end
    if not front then return groups(text) end
    front, back = groups(front), groups(back)
    return front .. string.rep("\0", 16 - #front - #back) .. back
  end

  -- 2 us x 2^code in words.
  function numbers.rnr_text(code)
    local us = 2 * 2 ^ math.min(code, 19)
    if us < 1000 then return string.format("%d us", us) end
    if us < 1000000 then return string.format("%.4g ms", us / 1000) end
    return string.format("%.4g s", us / 1000000)
  end
end
