-- SPDX-License-Identifier: Apache-2.0
-- A dissector of Wireshark and tshark for everything that SoftUB sends but RoCE, which Wireshark knows: UBoE with RTP
-- and UTP, RTP and CTP over NTH24, loads and stores over NTH16, and control records. docs/wireshark.md tells how to use
-- it.
--   tshark -X lua_script:tools/wireshark/softub.lua -r capture.pcap
-- The parts are in the folder softub/ beside this file. Wireshark loads each file below its folder of plugins by
-- itself; a part only returns a function then, and does nothing.
if package.loaded.softub_dissector then return end
package.loaded.softub_dissector = true

local UDP_PORTS, MOST_PORT = "4792", 65535
local ETHERTYPE = 0x88B5
local C_AQM, LDCP = 1, 2

local ub = { proto = Proto("ub", "Unified Bus") }
local link = Proto("ub_link", "Unified Bus, frame that begins with LPH")

local preferences = ub.proto.prefs
preferences.udp_ports = Pref.range("UDP ports", UDP_PORTS,
  "Ports that are taken for those of UB without looking. On others a packet is recognised by its ICRC.", MOST_PORT)
preferences.check_icrc = Pref.bool("Check the ICRC", true, "Compute the ICRC of each packet and compare it.")
preferences.track = Pref.bool("Relate packets to each other", true,
  "Find channels, the answers to requests, what was sent again and what was acknowledged.")
preferences.read_meta = Pref.bool("READs have TAIDETAH and OFSTETAH", true,
  "What is supposed of channels whose set-up is not in the capture, if their packets do not tell.")
preferences.feedback = Pref.enum("Form of CETPH in acknowledgements", C_AQM,
  "What is supposed of channels whose set-up is not in the capture.",
  { { 1, "C-AQM", C_AQM }, { 2, "LDCP", LDCP } }, false)
ub.preferences = preferences

local folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
for _, part in ipairs({
  "names", "numbers", "fields", "track", "packet", "transaction", "transport", "record", "link", "sentence",
}) do
  local load_part, problem = loadfile(folder .. "softub/" .. part .. ".lua")
  if not load_part then error("softub.lua lacks a part of it: " .. problem) end
  load_part()(ub)
end

function ub.proto.init()
  ub.track.reset()
end

function ub.proto.dissector(tvb, pinfo, tree)
  return ub.dissect_uboe(tvb, pinfo, tree)
end

function link.dissector(tvb, pinfo, tree)
  return ub.dissect_link(tvb, pinfo, tree)
end

local udp = DissectorTable.get("udp.port")
local ports = UDP_PORTS
udp:add(ports, ub.proto)
DissectorTable.get("ethertype"):add(ETHERTYPE, link)

function ub.proto.prefs_changed()
  if preferences.udp_ports == ports then return end
  if ports ~= "" then udp:remove(ports, ub.proto) end
  ports = preferences.udp_ports
  if ports ~= "" then udp:add(ports, ub.proto) end
end

ub.proto:register_heuristic("udp", function(tvb, pinfo, tree)
  if not ub.looks_like_uboe(tvb, pinfo) then return false end
  ub.dissect_uboe(tvb, pinfo, tree)
  pinfo.conversation = ub.proto
  return true
end)
