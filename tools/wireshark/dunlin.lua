-- Wireshark dissector of Dunlin's packets: the rules W1 to W12 of docs/protocol.md.
--
-- For one run:  tshark -X lua_script:tools/wireshark/dunlin.lua -r frames.pcap
--               wireshark -X lua_script:tools/wireshark/dunlin.lua frames.pcap
-- For always:   copy this file to the folder that "Help > About > Folders" calls personal Lua plugins.
--
-- UDP to or from port 31850, which is what `dunlin sim --pcap` writes, is always shown as Dunlin,
-- wrong packets with the reason why an endpoint drops them. On other ports a datagram is Dunlin if
-- all of its first packet's fields are valid. Display filters: dunlin.type == 3, dunlin.req == 42,
-- dunlin.flags.again, dunlin.error, dunlin.refused.
--
-- Where the next packet of a datagram begins follows from the session's data size per packet, which
-- is agreed over the control plane. Without the preference, it is taken from packets that fill
-- their datagram, which all but the last of a large message do.
--
-- Works with Lua 5.2 to 5.4; therefore no operators or libraries for bits.

local dunlin = Proto("dunlin", "Dunlin RPC")

local HEADER = 24
local VERSION = 1
local PORT = 31850
local NOT_MEASURED = 0xFFFF
local MAX_BITMAP_BITS = 256
local MAX_AHEAD_WORDS = 8
local MAX_WORDS = 4

local TYPES = { [0] = "REQ", "CR", "RFR", "RESP", "ERR", "CANCEL", "CHALLENGE" }
local REQ, CR, RFR, RESP, ERR, CANCEL, CHALLENGE = 0, 1, 2, 3, 4, 5, 6

local ERRORS = {
  [1] = "unknown request type",
  [2] = "request too large",
  [3] = "response too large",
  [4] = "overloaded",
  [5] = "handler failed",
  [6] = "response gone",
  [7] = "cancelled",
  [8] = "undecodable request",
  [9] = "the server is shutting down",
  [10] = "no memory for the response",
  [11] = "refused by the handler",
}

-- Bits of the flag byte, and those that each type may have (rule W6).
local ECHO, AGAIN, ENCRYPTED, ACKS, SAMPLE = 1, 2, 4, 8, 16
local ALLOWED = {
  [REQ] = ECHO + AGAIN + ACKS + SAMPLE,
  [CR] = ECHO + AGAIN,
  [RFR] = ECHO + AGAIN,
  [RESP] = ECHO + AGAIN + ACKS,
  [ERR] = ECHO + AGAIN + ACKS,
  [CANCEL] = ECHO + AGAIN + ACKS,
  [CHALLENGE] = ECHO + AGAIN,
}

local f = {
  version = ProtoField.uint8("dunlin.version", "Version", base.DEC, nil, 0xF0),
  type = ProtoField.uint8("dunlin.type", "Type", base.DEC, TYPES, 0x0F),
  flags = ProtoField.uint8("dunlin.flags", "Flags", base.HEX),
  echo = ProtoField.bool("dunlin.flags.echo", "Congestion echo", 8, nil, ECHO),
  again = ProtoField.bool("dunlin.flags.again", "Retransmission", 8, nil, AGAIN),
  encrypted = ProtoField.bool("dunlin.flags.encrypted", "Encrypted", 8, nil, ENCRYPTED),
  has_acks = ProtoField.bool("dunlin.flags.acks", "Acknowledgement vector", 8, nil, ACKS),
  sample = ProtoField.bool("dunlin.flags.sample", "Sample, or followed", 8, nil, SAMPLE),
  unknown = ProtoField.uint8("dunlin.flags.unknown", "Unknown flags", base.HEX, nil, 0xE0),
  aux = ProtoField.uint16("dunlin.aux", "Aux", base.DEC_HEX),
  request_type = ProtoField.uint16("dunlin.request_type", "Request type", base.DEC_HEX),
  residence = ProtoField.uint64("dunlin.residence", "Residence (ns)", base.DEC),
  not_measured = ProtoField.bool("dunlin.residence.none", "Residence not measured"),
  asked = ProtoField.uint16("dunlin.asked", "Packets asked for", base.DEC),
  session = ProtoField.uint32("dunlin.session", "Session at the receiver", base.DEC),
  token = ProtoField.uint32("dunlin.token", "Token", base.HEX),
  size = ProtoField.uint32("dunlin.size", "Size", base.DEC),
  message = ProtoField.uint32("dunlin.message_size", "Message size", base.DEC),
  error = ProtoField.uint32("dunlin.error", "Error code", base.HEX),
  error_name = ProtoField.string("dunlin.error.name", "Error"),
  cumulative = ProtoField.uint32("dunlin.cumulative", "All packets arrived below", base.DEC),
  words = ProtoField.uint8("dunlin.bitmap.words", "Bitmap words", base.DEC),
  first = ProtoField.uint8("dunlin.bitmap.first", "First word", base.DEC),
  word = ProtoField.uint64("dunlin.bitmap.word", "Bitmap word", base.HEX),
  arrived = ProtoField.string("dunlin.bitmap.arrived", "Also arrived"),
  packet = ProtoField.uint32("dunlin.packet", "Packet number", base.DEC),
  request = ProtoField.uint32("dunlin.req", "Request number", base.DEC),
  ack = ProtoField.uint32("dunlin.ack", "Response has arrived, request", base.DEC),
  challenge = ProtoField.bytes("dunlin.challenge", "Challenge"),
  data_len = ProtoField.uint32("dunlin.data_len", "Data length", base.DEC),
  data = ProtoField.bytes("dunlin.data", "Data"),
  -- The name under which an endpoint counts what it drops.
  refused = ProtoField.string("dunlin.refused", "Refused"),
}
dunlin.fields = f

local e = {}
local function expert_info(name, text, group, severity)
  e[name] = ProtoExpert.new("dunlin.expert." .. name, text, group, severity)
end
-- Reasons to drop a packet, under the names by which endpoints count them (rule W12).
local REASONS = {
  short = "shorter than its header, extension or data",
  version = "another version of the format",
  kind = "unknown packet type",
  flags = "a flag is unknown or does not fit the packet type",
  field = "a field that must be 0 is not, or a count is above its limit",
  packet_number = "the message has no packet of this number",
}
for name, text in pairs(REASONS) do
  expert_info(name, "Refused: " .. text, expert.group.MALFORMED, expert.severity.ERROR)
end
expert_info("again", "Sent before", expert.group.SEQUENCE, expert.severity.NOTE)
expert_info("congestion", "The network is congested", expert.group.SEQUENCE, expert.severity.NOTE)
expert_info("failed", "The request ended without a response", expert.group.RESPONSE_CODE, expert.severity.WARN)
dunlin.experts = e

dunlin.prefs.data_size = Pref.uint(
  "Data size per packet", 0, "Bytes of data in a full packet of every session; 0: find out for each")

-- Data sizes found in earlier packets, by direction and session.
local data_sizes = {}

function dunlin.init()
  data_sizes = {}
end

local function has_bit(flags, bit)
  return flags % (2 * bit) >= bit
end

local function without(flags, allowed)
  for _, bit in ipairs({ 1, 2, 4, 8, 16, 32, 64, 128 }) do
    if has_bit(flags, bit) and not has_bit(allowed, bit) then
      return false
    end
  end
  return true
end

-- True if these bytes are in the file; a capture may have cut the datagram.
local function was_captured(tvb, at, len)
  return at + len <= tvb:len()
end

-- The header of the packet that begins at `at`, or nil and the reason for a refusal. The checks
-- come in the order of `Header::decode` of crates/wire.
local function parse(tvb, at)
  local left = tvb:reported_len() - at
  if left < HEADER then
    return nil, "short"
  end
  local first = tvb(at, 1):uint()
  local h = {
    version = math.floor(first / 16),
    type = first % 16,
    flags = tvb(at + 1, 1):uint(),
    aux = tvb(at + 2, 2):le_uint(),
    session = tvb(at + 4, 4):le_uint(),
    size = tvb(at + 12, 4):le_uint(),
    packet = tvb(at + 16, 4):le_uint(),
    request = tvb(at + 20, 4):le_uint(),
    extension = 0,
    words = 0,
    first_word = 0,
  }
  if h.version ~= VERSION then
    return nil, "version", h
  end
  if not TYPES[h.type] then
    return nil, "kind", h
  end
  if not without(h.flags, ALLOWED[h.type]) then
    return nil, "flags", h
  end
  if h.type == CR or h.type == RFR then
    h.cumulative = h.size % 0x1000000
    local extent = math.floor(h.size / 0x1000000)
    h.words, h.first_word = extent % 16, math.floor(extent / 16)
    h.extension = 8 * h.words
    local is_wrong = h.words > MAX_WORDS
      or h.first_word + h.words > MAX_AHEAD_WORDS
      or (h.words == 0 and h.first_word ~= 0)
      or (h.type == RFR and h.aux > MAX_BITMAP_BITS)
    if is_wrong then
      return nil, "field", h
    end
  elseif (h.type == ERR or h.type == CANCEL or h.type == CHALLENGE) and h.packet ~= 0 then
    return nil, "field", h
  elseif (h.type == CANCEL or h.type == CHALLENGE) and (h.size ~= 0 or h.aux ~= 0) then
    return nil, "field", h
  elseif h.type == CHALLENGE then
    if h.request ~= 0 then
      return nil, "field", h
    end
    h.extension = 8
  end
  if has_bit(h.flags, ACKS) then
    h.extension = 16
  end
  if left < HEADER + h.extension then
    return nil, "short", h
  end
  return h
end

-- Bytes of data in a packet that has `left` bytes after header and extension (rule W8); nil if the
-- message has no such packet.
local function data_len(h, left, key)
  if h.type ~= REQ and h.type ~= RESP then
    return 0
  end
  local per_packet = dunlin.prefs.data_size
  if per_packet == 0 then
    -- A packet that is not the last of its message is full, so nothing follows it in the datagram.
    if h.packet == 0 and h.size > left and left > 0 then
      data_sizes[key] = left
    end
    per_packet = data_sizes[key]
  end
  if not per_packet then
    return h.packet == 0 and math.min(h.size, left) or left
  end
  if h.packet ~= 0 and h.packet * per_packet >= h.size then
    return nil
  end
  return math.min(h.size - h.packet * per_packet, per_packet)
end

-- The packets that have arrived, according to the bitmap, as ranges.
local function arrived(tvb, at, h)
  local ranges, from, last = {}, nil, nil
  local function close()
    if from then
      table.insert(ranges, from == last and tostring(from) or (from .. "-" .. last))
    end
  end
  for word = 0, h.words - 1 do
    for bit = 0, 63 do
      local byte = tvb(at + 8 * word + math.floor(bit / 8), 1):uint()
      if has_bit(byte, 2 ^ (bit % 8)) then
        local number = math.floor(h.cumulative + 64 * (h.first_word + word) + bit)
        if last ~= number - 1 then
          close()
          from = number
        end
        last = number
      end
    end
  end
  close()
  return table.concat(ranges, ", ")
end

local function add_flags(tree, range, h)
  local flags = tree:add(f.flags, range)
  for _, field in ipairs({ f.echo, f.again, f.encrypted, f.has_acks, f.sample, f.unknown }) do
    flags:add(field, range)
  end
  if has_bit(h.flags, AGAIN) then
    flags:add_proto_expert_info(e.again)
  end
  if has_bit(h.flags, ECHO) then
    flags:add_proto_expert_info(e.congestion)
  end
end

-- The meaning of `aux`. Returns words for the list of packets.
local function add_aux(tree, range, h)
  if h.type == REQ then
    tree:add_le(f.request_type, range)
    return " type " .. h.aux
  elseif h.type == RFR then
    tree:add_le(f.asked, range)
    return h.aux == 0 and " probe" or " for " .. h.aux
  elseif h.type == CANCEL or h.type == CHALLENGE then
    tree:add_le(f.aux, range)
    return ""
  end
  if h.aux == NOT_MEASURED then
    tree:add(f.not_measured, range, true)
  else
    local nanos = (h.aux % 2048) * 2 ^ math.floor(h.aux / 2048)
    tree:add(f.residence, range, UInt64(nanos % 2 ^ 32, math.floor(nanos / 2 ^ 32)))
  end
  return ""
end

-- The meaning of `size`. Returns words for the list of packets.
local function add_size(tree, range, h)
  if h.type == REQ or h.type == RESP then
    tree:add_le(f.message, range)
    return ", " .. h.size .. " B"
  elseif h.type == ERR then
    local application = h.size >= 0x10000 and h.size < 0x20000
    local name = application and "application error " .. (h.size - 0x10000) or ERRORS[h.size]
      or string.format("error 0x%x", h.size)
    local error = tree:add_le(f.error, range)
    error:append_text(" (" .. name .. ")")
    error:add(f.error_name, range, name):set_generated()
    error:add_proto_expert_info(e.failed, name)
    return ": " .. name
  elseif h.type == CANCEL or h.type == CHALLENGE then
    tree:add_le(f.size, range)
    return ""
  end
  tree:add(f.cumulative, range, h.cumulative)
  tree:add(f.words, range, h.words)
  tree:add(f.first, range, h.first_word)
  return h.cumulative > 0 and ", all below " .. h.cumulative or ""
end

local function add_extension(tree, tvb, at, h)
  if has_bit(h.flags, ACKS) then
    for index = 0, 3 do
      tree:add_le(f.ack, tvb(at + 4 * index, 4))
    end
  end
  if h.type == CHALLENGE then
    tree:add(f.challenge, tvb(at, 8))
  end
  for word = 0, h.words - 1 do
    tree:add_le(f.word, tvb(at + 8 * word, 8))
  end
  if h.words > 0 then
    tree:add(f.arrived, tvb(at, 8 * h.words), arrived(tvb, at, h)):set_generated()
  end
end

local function refuse(tree, tvb, at, reason)
  local range = tvb(at)
  local refused = tree:add(f.refused, range, reason)
  refused:add_proto_expert_info(e[reason])
  return "refused: " .. reason
end

-- Header and extension of a packet whose fields are valid. Returns words for the list of packets.
local function add_header(tree, tvb, at, h)
  tree:add(f.version, tvb(at, 1))
  tree:add(f.type, tvb(at, 1))
  add_flags(tree, tvb(at + 1, 1), h)
  local aux = add_aux(tree, tvb(at + 2, 2), h)
  tree:add_le(f.session, tvb(at + 4, 4))
  tree:add_le(f.token, tvb(at + 8, 4))
  local size = add_size(tree, tvb(at + 12, 4), h)
  tree:add_le(f.packet, tvb(at + 16, 4))
  tree:add_le(f.request, tvb(at + 20, 4))
  add_extension(tree, tvb, at + HEADER, h)
  local number = h.packet > 0 and ", packet " .. h.packet or ""
  return TYPES[h.type] .. " #" .. h.request .. aux .. size .. number
end

-- One packet. Returns where the next one begins, and words for the list of packets.
local function packet(tree, tvb, at, pinfo)
  local len = tvb:reported_len()
  if not was_captured(tvb, at, math.min(HEADER, len - at)) then
    return len, "not captured"
  end
  local h, reason, seen = parse(tvb, at)
  if not h then
    local branch = tree:add(dunlin, tvb(at))
    if seen then
      branch:add(f.version, tvb(at, 1))
      branch:add(f.type, tvb(at, 1))
      add_flags(branch, tvb(at + 1, 1), seen)
    end
    -- It is unknown where the next packet begins (rule W11).
    return len, refuse(branch, tvb, at, reason)
  end
  local body = at + HEADER + h.extension
  if not was_captured(tvb, at, HEADER + h.extension) then
    return len, "not captured"
  end
  local left = len - body
  local key = tostring(pinfo.src) .. pinfo.src_port .. tostring(pinfo.dst) .. pinfo.dst_port
    .. ":" .. h.session
  local bytes = data_len(h, left, key)
  local shown = math.min(bytes or left, tvb:len() - body)
  local branch = tree:add(dunlin, tvb(at, HEADER + h.extension + shown))
  local words = add_header(branch, tvb, at, h)
  branch:append_text(", " .. words)
  if not bytes then
    return len, refuse(branch, tvb, at, "packet_number")
  end
  if bytes > left then
    return len, refuse(branch, tvb, at, "short")
  end
  if h.type == REQ or h.type == RESP then
    branch:add(f.data_len, tvb(at, HEADER), bytes):set_generated()
    if shown > 0 then
      branch:add(f.data, tvb(body, shown))
    end
  end
  return body + bytes, words
end

function dunlin.dissector(tvb, pinfo, tree)
  if tvb:len() == 0 then
    return 0
  end
  pinfo.cols.protocol = "Dunlin"
  local all, at = {}, 0
  repeat
    local words
    at, words = packet(tree, tvb, at, pinfo)
    table.insert(all, words)
  until at >= tvb:reported_len()
  pinfo.cols.info = table.concat(all, " | ")
  return tvb:len()
end

local function is_dunlin(tvb, pinfo, tree)
  if not was_captured(tvb, 0, HEADER) or not parse(tvb, 0) then
    return false
  end
  dunlin.dissector(tvb, pinfo, tree)
  return true
end

DissectorTable.get("udp.port"):add(PORT, dunlin)
dunlin:register_heuristic("udp", is_dunlin)
