-- The decision tree. It mirrors lib/wire/dissect.h; the layouts above are generated.

uet.prefs.udp_port = Pref.uint("UDP port", 4793, "UDP destination port of UET")
uet.prefs.ip_protocol = Pref.uint("IP protocol", 253, "IP protocol of native UET with entropy header")
uet.prefs.is_first = Pref.bool("Whatever the source port", true,
  "Every source port is an entropy value, also one that another protocol has: have heuristic dissectors tried first for all of UDP")
uet.prefs.crc = Pref.bool("Packets end in a UET CRC", false, "Take the last four bytes for the UET CRC")

F["uet.pds.clear_psn"] = ProtoField.uint32("uet.pds.clear_psn", "Clear PSN", base.DEC)
F["uet.pds.start_psn"] = ProtoField.uint32("uet.pds.start_psn", "Start PSN", base.DEC)
F["uet.pds.ack_psn"] = ProtoField.uint32("uet.pds.ack_psn", "ACK PSN", base.DEC)
F["uet.pds.ack.sack_base"] = ProtoField.uint32("uet.pds.ack.sack_base", "SACK base PSN", base.DEC)
F["uet.ses.med_req.header_data"] = ProtoField.uint64("uet.ses.med_req.header_data", "Header Data", base.DEC_HEX)
F["uet.ses.med_req.buffer_offset"] = ProtoField.uint64("uet.ses.med_req.buffer_offset", "Buffer Offset", base.DEC_HEX)
F["uet.payload"] = ProtoField.bytes("uet.payload", "Payload")
F["uet.crc"] = ProtoField.uint32("uet.crc", "UET CRC", base.HEX)
F["uet.tss.cipher"] = ProtoField.bytes("uet.tss.cipher", "Cipher text")
F["uet.tss.icv"] = ProtoField.bytes("uet.tss.icv", "ICV")

local list = {}
for _, field in pairs(F) do list[#list + 1] = field end
uet.fields = list

local malformed = ProtoExpert.new("uet.malformed", "Malformed UET packet", expert.group.MALFORMED, expert.severity.ERROR)
uet.experts = {malformed}

-- The raw bits of a wide field as a Lua string of 16 bytes; bits in front of the field are cleared.
local function wide_bytes(tvb, at, offset, width)
  local first = math.floor(offset / 8)
  local bytes = tvb(at + first, 16):raw()
  local surplus = 128 - width
  if surplus > 0 then
    bytes = string.char(bytes:byte(1) % 2 ^ (8 - surplus)) .. bytes:sub(2)
  end
  return bytes
end

-- Shows header H[form] at `at`; returns the values of its fields by spec name, or nil when it does not fit.
local function show(tvb, at, form, tree, title)
  local header = H[form]
  if tvb:len() - at < header.size then
    tree:add_proto_expert_info(malformed, title .. ": " .. header.size .. " bytes needed, " .. (tvb:len() - at) .. " there")
    return nil
  end
  local branch = tree:add(tvb(at, header.size), title)
  local values = {}
  for _, f in ipairs(header.fields) do
    local name, offset, width, kind, spec = f[1], f[2], f[3], f[4], f[5]
    local first = math.floor(offset / 8)
    local last = math.floor((offset + width - 1) / 8)
    local range = tvb(at + first, last - first + 1)
    if kind == "wide" then
      branch:add(F[name], range, wide_bytes(tvb, at, offset, width))
    else
      local value = range:bitfield(offset % 8, width)
      if kind == "signed" and value >= 2 ^ (width - 1) then value = value - 2 ^ width end
      values[spec] = value
      if kind == "bool" then value = value ~= 0 end
      branch:add(F[name], range, value)
    end
  end
  return values, at + header.size, branch
end

local function wrapped(psn) return psn % 2 ^ 32 end

local function payload(tvb, at, tree)
  local n = tvb:len() - at
  if uet.prefs.crc and n >= 4 then
    if n > 4 then tree:add(F["uet.payload"], tvb(at, n - 4)) end
    tree:add(F["uet.crc"], tvb(at + n - 4, 4))
  elseif n > 0 then
    tree:add(F["uet.payload"], tvb(at, n))
  end
end

local ATOMIC = {[3] = true, [4] = true, [13] = true, [14] = true}
local RENDEZVOUS = {[6] = true, [10] = true, [0x35] = true, [0x36] = true}

local function standard_form(tvb, at)
  local opcode = tvb(at, 1):bitfield(2, 6)
  local som = tvb(at + 1, 1):bitfield(7, 1)
  if opcode == 8 or opcode == 11 then return som == 1 and "deferrable_som1" or "deferrable_som0" end
  if opcode == 12 then return "ready_to_restart" end
  if opcode >= 0x31 and opcode <= 0x36 then return som == 1 and "sequenced_som1" or "sequenced_som0" end
  return som == 1 and "standard_som1" or "standard_som0"
end

local FORM = {[1] = "small", [2] = "medium", [4] = "response", [5] = "response_data", [6] = "response_data_small"}

local function dissect_ses(tvb, at, next_hdr, tree, info)
  if next_hdr == 0 then return payload(tvb, at, tree) end
  local form = FORM[next_hdr]
  if next_hdr == 3 then
    if tvb:len() - at < 2 then
      return tree:add_proto_expert_info(malformed, "no SES header")
    end
    form = standard_form(tvb, at)
  end
  if form == nil then
    return tree:add_proto_expert_info(malformed, "next_hdr " .. next_hdr .. " is reserved")
  end
  local values, behind, branch = show(tvb, at, form, tree, "SES " .. NEXT_HDR[next_hdr])
  if values == nil then return end
  if next_hdr >= 4 then
    info[#info + 1] = RETURN_CODE[values.return_code] or values.return_code
    return payload(tvb, behind, tree)
  end
  info[#info + 1] = OPCODE[values.opcode] or values.opcode
  if values.message_id then info[#info + 1] = "msg " .. values.message_id end
  if values.message_offset then info[#info + 1] = "offset " .. values.message_offset end
  if form == "medium" then
    local name = values.hd == 1 and "uet.ses.med_req.header_data" or "uet.ses.med_req.buffer_offset"
    branch:add(F[name], tvb(at + 12, 8)):set_generated()
  end
  local ext, title
  if ATOMIC[values.opcode] then
    if tvb:len() - behind < 1 then
      return tree:add_proto_expert_info(malformed, "no atomic extension")
    end
    local amo = tvb(behind, 1):uint()
    if amo >= 0x0d and amo <= 0x13 then
      ext, title = "compare_swap", "Compare-and-swap extension"
    else
      ext, title = "atomic", "Atomic extension"
    end
  elseif next_hdr == 3 and RENDEZVOUS[values.opcode] then
    ext, title = "rendezvous", "Rendezvous extension"
  end
  if ext ~= nil then
    local found
    found, behind = show(tvb, behind, ext, tree, title)
    if found == nil then return end
  end
  payload(tvb, behind, tree)
end

local function pds_form(tvb, at, kind, left)
  local syn = left >= 2 and tvb(at + 1, 1):bitfield(5, 1) == 1
  if kind == 2 or kind == 3 then return syn and "request_syn" or "request" end
  if kind == 13 or kind == 14 then return syn and "request_cc_syn" or "request_cc" end
  if kind == 4 or kind == 5 then return "rudi" end
  if kind == 6 then return "uud" end
  if kind == 7 then return "ack" end
  if kind == 8 then
    local cc = left >= 13 and tvb(at + 12, 1):bitfield(0, 4) or 0
    return cc == 0 and "ack_cc_nscc" or cc == 1 and "ack_cc_credit" or "ack_cc_other"
  end
  if kind == 9 then return "ack_ccx" end
  if kind == 10 then return "nack" end
  if kind == 11 then return syn and "control_syn" or "control" end
  if kind == 12 then return "nack_ccx" end
  return nil
end

local function add_derived(tvb, at, values, branch)
  if values.clear_psn_offset then
    branch:add(F["uet.pds.clear_psn"], tvb(at + 2, 2), wrapped(values.psn + values.clear_psn_offset)):set_generated()
  end
  if values.psn_offset then
    branch:add(F["uet.pds.start_psn"], tvb(at + 10, 2), wrapped(values.psn - values.psn_offset)):set_generated()
  end
  if values.ack_psn_offset then
    if values.p == 1 then
      branch:add(F["uet.pds.ctrl_probe_opaque"], tvb(at + 2, 2)):set_generated()
    else
      branch:add(F["uet.pds.ack_psn"], tvb(at + 2, 2), wrapped(values.cack_psn + values.ack_psn_offset)):set_generated()
    end
  end
  if values.sack_psn_offset then
    branch:add(F["uet.pds.ack.sack_base"], tvb(at + 14, 2), wrapped(values.cack_psn + values.sack_psn_offset)):set_generated()
  end
end

local function dissect_pds(tvb, at, tree, info)
  local left = tvb:len() - at
  if left < 4 then
    return tree:add_proto_expert_info(malformed, "no PDS header")
  end
  local kind = tvb(at, 1):bitfield(0, 5)
  local form = pds_form(tvb, at, kind, left)
  if form == nil then
    return tree:add_proto_expert_info(malformed, "PDS type " .. kind .. " is reserved")
  end
  info[#info + 1] = PDS_TYPE[kind]
  local values, behind, branch = show(tvb, at, form, tree, "PDS " .. PDS_TYPE[kind])
  if values == nil then return end
  add_derived(tvb, at, values, branch)
  if values.ctl_type then info[#info + 1] = CTL_TYPE[values.ctl_type] or values.ctl_type end
  if values.nack_code then info[#info + 1] = NACK_CODE[values.nack_code] or values.nack_code end
  if values.spdcid then info[#info + 1] = values.spdcid .. ">" .. (values.dpdcid or "new") end
  if values.psn then info[#info + 1] = "psn " .. values.psn end
  if values.cack_psn then info[#info + 1] = "cack " .. values.cack_psn end
  if values.ack_psn_offset and values.p ~= 1 then
    info[#info + 1] = "ack " .. wrapped(values.cack_psn + values.ack_psn_offset)
  end
  if values.retx == 1 then info[#info + 1] = "retx" end
  if kind == 7 and values.flag_epsn == 1 and values.next_hdr == 0 and tvb:len() - behind >= 4 then
    local _
    _, behind = show(tvb, behind, "expected_psn", tree, "Expected PSN")
  end
  if kind == 10 or kind == 11 or kind == 12 then return payload(tvb, behind, tree) end
  dissect_ses(tvb, behind, values.next_hdr, tree, info)
end

local function dissect(tvb, pinfo, root, has_entropy)
  pinfo.cols.protocol = "UET"
  local tree = root:add(uet, tvb())
  local info = {}
  local at = 0
  if has_entropy then
    local values
    values, at = show(tvb, 0, "entropy", tree, "Entropy")
    if values == nil then return end
  end
  if tvb:len() - at < 1 then
    tree:add_proto_expert_info(malformed, "empty packet")
    return
  end
  if tvb(at, 1):bitfield(0, 5) == 31 then
    local values
    values, at = show(tvb, at, "return_port", tree, "Return port")
    if values == nil then return end
    if tvb:len() - at < 1 then
      tree:add_proto_expert_info(malformed, "empty packet")
      return
    end
  end
  if tvb(at, 1):bitfield(0, 5) == 1 then
    local form = tvb(at, 1):bitfield(5, 1) == 1 and "tss_ssi" or "tss"
    local values
    values, at = show(tvb, at, form, tree, "TSS")
    info[1] = "TSS"
    if values ~= nil then
      local n = tvb:len() - at
      if n > 16 then tree:add(F["uet.tss.cipher"], tvb(at, n - 16)) end
      if n >= 16 then tree:add(F["uet.tss.icv"], tvb(at + n - 16, 16)) end
    end
  else
    dissect_pds(tvb, at, tree, info)
  end
  pinfo.cols.info = table.concat(info, " ")
end

function uet.dissector(tvb, pinfo, root) dissect(tvb, pinfo, root, false) end

local uet_native = Proto("uet_native", "Ultra Ethernet Transport over IP")
function uet_native.dissector(tvb, pinfo, root) dissect(tvb, pinfo, root, true) end

-- Of processes that share an address with others.
local function is_shared(port) return port >= 0x5000 and port < 0x5100 end

uet:register_heuristic("udp", function(tvb, pinfo, root)
  if pinfo.dst_port ~= uet.prefs.udp_port and not is_shared(pinfo.dst_port) then return false end
  dissect(tvb, pinfo, root, false)
  return true
end)

local ports = {}
local function register()
  set_preference("udp.try_heuristic_first", uet.prefs.is_first)
  if ports.udp then DissectorTable.get("udp.port"):remove(ports.udp, uet) end
  if ports.ip then DissectorTable.get("ip.proto"):remove(ports.ip, uet_native) end
  ports = {udp = uet.prefs.udp_port, ip = uet.prefs.ip_protocol}
  DissectorTable.get("udp.port"):add(ports.udp, uet)
  DissectorTable.get("ip.proto"):add(ports.ip, uet_native)
end
function uet.prefs_changed() register() end
register()
