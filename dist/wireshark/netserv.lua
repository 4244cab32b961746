-- SPDX-License-Identifier: Apache-2.0
-- Wireshark dissectors for GIST (RFC 5971) and the text of NetServ's signaling application. Tested with Wireshark 4.0.
--
-- GIST in UDP is known by its port, 270, or by the magic number on any port. In TCP it is known by the ports that
-- Responses named, by NetServ's own port, or by a first segment that begins as a message does; else by "Decode As".
-- Dissectors that own one of the connection's ports come first: there, too, "Decode As" helps.
-- `gist.fault` has the code and subcode of each Error (RFC 5971 A.4.4) that a message deserves.

local gist = Proto("gist", "General Internet Signalling Transport")
local netserv = Proto("netserv", "NetServ Signaling")

local UDP_PORT = 270
local NETSERV_TCP_PORT = 27001
local NETSERV_NSLP_ID = 32704
local MAGIC = 0x4E04BDA5
local VERSION = 1
local HEADER_BYTES = 8
-- Texts that wait for their other parts; those of a longer capture are shown as parts only.
local PARTS_WAITING_MAX = 4096

-- Names of numbers ---------------------------------------------------------------------------------------------------

local QUERY, RESPONSE, CONFIRM, DATA, ERROR, MA_HELLO = 0, 1, 2, 3, 4, 5
local MESSAGE_TYPES = {
  [QUERY] = "Query", [RESPONSE] = "Response", [CONFIRM] = "Confirm",
  [DATA] = "Data", [ERROR] = "Error", [MA_HELLO] = "MA-Hello",
}

local MRI, SESSION_ID, NLI, STACK_PROPOSAL, STACK_CONFIGURATION, QUERY_COOKIE = 0, 1, 2, 3, 4, 5
local RESPONDER_COOKIE, NAT_TRAVERSAL, NSLP_DATA, ERROR_OBJECT, HELLO_ID = 6, 7, 8, 9, 10
local OBJECT_TYPES = {
  [MRI] = "Message Routing Information", [SESSION_ID] = "Session Identification",
  [NLI] = "Network Layer Information", [STACK_PROPOSAL] = "Stack Proposal",
  [STACK_CONFIGURATION] = "Stack Configuration Data", [QUERY_COOKIE] = "Query Cookie",
  [RESPONDER_COOKIE] = "Responder Cookie", [NAT_TRAVERSAL] = "NAT Traversal", [NSLP_DATA] = "NSLP Data",
  [ERROR_OBJECT] = "Error", [HELLO_ID] = "Hello ID",
}
-- RFC 5971 §5.1: the order of objects, and the messages in which each may stand.
local PLACES = {
  [NAT_TRAVERSAL] = { 1, { [QUERY] = true, [RESPONSE] = true, [DATA] = true, [ERROR] = true } },
  [MRI] = { 2, { [QUERY] = true, [RESPONSE] = true, [CONFIRM] = true, [DATA] = true } },
  [SESSION_ID] = { 3, { [QUERY] = true, [RESPONSE] = true, [CONFIRM] = true, [DATA] = true } },
  [NLI] = { 4, { [QUERY] = true, [RESPONSE] = true, [CONFIRM] = true, [DATA] = true, [ERROR] = true } },
  [QUERY_COOKIE] = { 5, { [QUERY] = true, [RESPONSE] = true } },
  [RESPONDER_COOKIE] = { 6, { [RESPONSE] = true, [CONFIRM] = true } },
  [STACK_PROPOSAL] = { 7, { [QUERY] = true, [RESPONSE] = true, [CONFIRM] = true } },
  [STACK_CONFIGURATION] = { 8, { [QUERY] = true, [RESPONSE] = true, [CONFIRM] = true } },
  [HELLO_ID] = { 9, { [MA_HELLO] = true } },
  [ERROR_OBJECT] = { 10, { [ERROR] = true } },
  [NSLP_DATA] = { 11, { [QUERY] = true, [RESPONSE] = true, [CONFIRM] = true, [DATA] = true } },
}
-- RFC 5971 §5.1: objects that a message cannot do without.
local NEEDED = {
  [QUERY] = { MRI, SESSION_ID, NLI, QUERY_COOKIE }, [RESPONSE] = { MRI, SESSION_ID, NLI, QUERY_COOKIE },
  [CONFIRM] = { MRI, SESSION_ID, NLI }, [DATA] = { MRI, SESSION_ID, NSLP_DATA },
  [ERROR] = { ERROR_OBJECT }, [MA_HELLO] = { HELLO_ID },
}

local ACTIONS = {
  [0] = "mandatory: who does not know it refuses the message",
  [1] = "ignore: who does not know it skips it",
  [2] = "forward: who does not know it keeps it",
  [3] = "reserved",
}
local METHODS = { [0] = "path-coupled", [1] = "loose-end" }
local DIRECTIONS = { [0] = "downstream", [1] = "upstream" }
local FORWARDS_TCP, TLS, FORWARDS_SCTP = 1, 2, 3
local MA_PROTOCOLS = { [FORWARDS_TCP] = "Forwards-TCP", [TLS] = "TLS", [FORWARDS_SCTP] = "Forwards-SCTP" }
local NSLP_IDS = { [0] = "GIST itself", [NETSERV_NSLP_ID] = "NetServ" }
local ERROR_CLASSES = {
  [0] = "informational", [1] = "success", [2] = "protocol error", [3] = "transient failure", [4] = "permanent failure",
}
local INFO_TYPES = { [1] = "message length", [2] = "MTU", [3] = "object type", [4] = "object value" }

-- RFC 5971 A.4.4. The third column is the name of the expert info.
local ERRORS = {
  { "1/0", "unknown version", "unknown_version" },
  { "1/1", "unknown message type", "unknown_type" },
  { "1/2", "R flag that does not fit the message", "invalid_r_flag" },
  { "1/3", "message length that is not the sum of the objects", "incorrect_message_length" },
  { "1/4", "E flag that does not fit the message", "invalid_e_flag" },
  { "1/5", "C flag that does not fit the message", "invalid_c_flag" },
  { "2/0", "hop limit exceeded", "hop_limit_exceeded" },
  { "3/0", "incorrect encapsulation", "incorrect_encapsulation" },
  { "4/0", "incorrectly delivered message", "incorrectly_delivered" },
  { "5/0", "no routing state", "no_routing_state" },
  { "6/0", "unknown NSLP-ID", "unknown_nslp_id" },
  { "7/0", "endpoint found", "endpoint_found" },
  { "8/0", "message too large", "message_too_large" },
  { "9/0", "duplicate object", "duplicate_object" },
  { "9/1", "unknown object that must be understood", "unrecognized_object" },
  { "9/2", "missing object", "missing_object" },
  { "9/3", "object that has no place here", "invalid_object_type" },
  { "9/4", "untranslated object", "untranslated_object" },
  { "9/5", "both extensibility flags set", "invalid_extensibility_flags" },
  { "10/0", "object length that does not fit its content", "incorrect_length" },
  { "10/1", "value that is not supported", "value_not_supported" },
  { "10/2", "MRI flags that contradict each other", "invalid_flag_combination" },
  { "10/3", "stack profile without protocols", "empty_list" },
  { "10/4", "invalid cookie", "invalid_cookie" },
  { "10/5", "stack configuration that does not fit the proposal", "stack_mismatch" },
  { "11/0", "invalid IP TTL", "invalid_ip_ttl" },
  { "12/0", "MRI too wild", "mri_too_wild" },
  { "12/1", "IP version mismatch", "ip_version_mismatch" },
  { "12/2", "ingress filter failure", "ingress_filter_failure" },
}
local ERROR_NAMES = {}
for _, row in ipairs(ERRORS) do ERROR_NAMES[row[1]] = row[2] end

-- Fields -------------------------------------------------------------------------------------------------------------

-- One more field of a protocol: its name below the protocol's, its kind, and what ProtoField takes beyond the title.
local function field(proto, fields, name, kind, title, ...)
  local made = ProtoField[kind](proto .. "." .. name, title, ...)
  fields[name] = made
  return made
end

local F = {}
local function gist_field(name, kind, title, ...) return field("gist", F, name, kind, title, ...) end

gist_field("magic", "uint32", "Magic number", base.HEX)
gist_field("version", "uint8", "Version", base.DEC)
gist_field("hops", "uint8", "Hop count", base.DEC)
gist_field("length", "uint16", "Length in words", base.DEC)
gist_field("nslp_id", "uint16", "NSLP-ID", base.DEC, NSLP_IDS)
gist_field("type", "uint8", "Type", base.DEC, MESSAGE_TYPES, 0x7F)
gist_field("flags.c", "bool", "C: context-free", 8, nil, 0x80)
gist_field("flags.s", "bool", "S: the IP source is the sender's own", 8, nil, 0x80)
gist_field("flags.r", "bool", "R: reply wanted", 8, nil, 0x40)
gist_field("flags.e", "bool", "E: explicitly routed", 8, nil, 0x20)
gist_field("fault", "string", "Deserves the Error")

gist_field("object", "none", "Object")
gist_field("object.action", "uint16", "A and B flags", base.DEC, ACTIONS, 0xC000)
gist_field("object.type", "uint16", "Type", base.DEC, OBJECT_TYPES, 0x0FFF)
gist_field("object.length", "uint16", "Length in words", base.DEC, nil, 0x0FFF)
gist_field("object.value", "bytes", "Value of an unknown object")

gist_field("mri", "none", "Flow")
gist_field("mri.method", "uint8", "Routing method (MRM-ID)", base.DEC, METHODS)
gist_field("mri.n", "bool", "N: NATs need not translate it", 8, nil, 0x80)
gist_field("mri.ip_version", "uint16", "IP version", base.DEC, nil, 0xF000)
gist_field("mri.flags.p", "bool", "P: protocol", 16, nil, 0x0800)
gist_field("mri.flags.t", "bool", "T: DSCP", 16, nil, 0x0400)
gist_field("mri.flags.f", "bool", "F: flow label", 16, nil, 0x0200)
gist_field("mri.flags.s", "bool", "S: SPI", 16, nil, 0x0100)
gist_field("mri.flags.a", "bool", "A: source port", 16, nil, 0x0080)
gist_field("mri.flags.b", "bool", "B: destination port", 16, nil, 0x0040)
gist_field("mri.direction", "uint16", "D: direction", base.DEC, DIRECTIONS, 0x0020)
gist_field("mri.loose_end.direction", "uint16", "D: direction", base.DEC, DIRECTIONS, 0x0800)
gist_field("mri.source.ipv4", "ipv4", "Source")
gist_field("mri.source.ipv6", "ipv6", "Source")
gist_field("mri.destination.ipv4", "ipv4", "Destination")
gist_field("mri.destination.ipv6", "ipv6", "Destination")
gist_field("mri.source_prefix", "uint8", "Prefix length of the source", base.DEC)
gist_field("mri.destination_prefix", "uint8", "Prefix length of the destination", base.DEC)
gist_field("mri.protocol", "uint8", "Protocol", base.DEC)
gist_field("mri.dscp", "uint8", "DSCP", base.DEC, nil, 0xFC)
gist_field("mri.flow_label", "uint32", "Flow label", base.DEC, nil, 0x000FFFFF)
gist_field("mri.spi", "uint32", "SPI", base.DEC)
gist_field("mri.source_port", "uint16", "Source port", base.DEC)
gist_field("mri.destination_port", "uint16", "Destination port", base.DEC)
gist_field("mri.other", "bytes", "Flow of another method")

gist_field("session_id", "bytes", "Session")

gist_field("nli.identity_length", "uint8", "Bytes of the peer identity", base.DEC)
gist_field("nli.ip_ttl", "uint8", "IP TTL", base.DEC)
gist_field("nli.ip_version", "uint16", "IP version", base.DEC, nil, 0xF000)
gist_field("nli.validity", "uint32", "Validity of routing state in ms", base.DEC)
gist_field("nli.identity", "bytes", "Peer identity")
gist_field("nli.address.ipv4", "ipv4", "Address")
gist_field("nli.address.ipv6", "ipv6", "Address")

gist_field("query_cookie", "bytes", "Query cookie")
gist_field("responder_cookie", "bytes", "Responder cookie")
gist_field("hello_id", "uint32", "Hello ID", base.DEC)
gist_field("nslp_data", "bytes", "NSLP data")

gist_field("stack_proposal.count", "uint8", "Profiles", base.DEC)
gist_field("stack_proposal.profile", "none", "Profile")
gist_field("stack_proposal.layers", "uint8", "Protocols", base.DEC)
gist_field("stack_proposal.protocol", "uint8", "Protocol", base.DEC, MA_PROTOCOLS)

gist_field("stack_configuration.count", "uint8", "Options", base.DEC)
gist_field("stack_configuration.hold_time", "uint32", "Hold time in ms", base.DEC)
gist_field("stack_configuration.option", "none", "Option")
gist_field("stack_configuration.protocol", "uint8", "Protocol", base.DEC, MA_PROTOCOLS)
gist_field("stack_configuration.profile", "uint8", "Profile (0: all)", base.DEC)
gist_field("stack_configuration.length", "uint8", "Length in bytes", base.DEC)
gist_field("stack_configuration.forbidden", "bool", "D: not to be used", 8, nil, 0x80)
gist_field("stack_configuration.port", "uint16", "Port", base.DEC)
gist_field("stack_configuration.data", "bytes", "Options data")

gist_field("nat.mri_length", "uint8", "Words of the flow", base.DEC)
gist_field("nat.type_count", "uint8", "Translated objects", base.DEC)
gist_field("nat.count", "uint8", "NATs", base.DEC)
gist_field("nat.type", "uint16", "Translated object", base.DEC, OBJECT_TYPES, 0x0FFF)
gist_field("nat.entry_length", "uint16", "Bytes of the NAT's entry", base.DEC)
gist_field("nat.entry", "bytes", "NAT's entry")

gist_field("error.class", "uint8", "Class", base.DEC, ERROR_CLASSES)
gist_field("error.code", "uint16", "Code", base.DEC)
gist_field("error.subcode", "uint8", "Subcode", base.DEC)
gist_field("error.name", "string", "Error")
gist_field("error.flags.s", "bool", "S: session", 16, nil, 0x8000)
gist_field("error.flags.m", "bool", "M: flow", 16, nil, 0x4000)
gist_field("error.flags.c", "bool", "C: comment", 16, nil, 0x2000)
gist_field("error.flags.d", "bool", "D: the message came in a datagram", 16, nil, 0x1000)
gist_field("error.flags.q", "bool", "Q: the message came in Q-mode", 16, nil, 0x0800)
gist_field("error.mri_length", "uint8", "Words of the flow", base.DEC)
gist_field("error.info_count", "uint8", "Additional information", base.DEC)
gist_field("error.header", "bytes", "Common header of the message")
gist_field("error.session_id", "bytes", "Session of the message")
gist_field("error.mri", "none", "Flow of the message")
gist_field("error.info", "none", "Additional information")
gist_field("error.info.type", "uint16", "Type", base.DEC, INFO_TYPES)
gist_field("error.info.length", "uint16", "Length in words", base.DEC)
gist_field("error.info.message_length", "uint16", "Words counted", base.DEC)
gist_field("error.info.mtu", "uint16", "Link MTU", base.DEC)
gist_field("error.info.object_type", "uint16", "Object type", base.DEC, OBJECT_TYPES)
gist_field("error.info.object_offset", "uint16", "Offset of the fault", base.DEC)
gist_field("error.info.object", "bytes", "Object")
gist_field("error.info.value", "bytes", "Value")
gist_field("error.comment", "string", "Comment")

-- Expert infos by the error that they stand for, then those that are no error of a receiver.
local E = {}
local function expert_info(proto, key, name, title, group, severity)
  E[key] = ProtoExpert.new(proto .. ".expert." .. name, title, group, severity)
end
for _, row in ipairs(ERRORS) do
  local code, title, name = row[1], row[2], row[3]
  expert_info("gist", code, name, title, expert.group.MALFORMED, expert.severity.ERROR)
end
local group, severity = expert.group, expert.severity
expert_info("gist", "unknown_object", "unknown_object", "unknown object", group.UNDECODED, severity.NOTE)
expert_info("gist", "no_magic", "no_magic", "datagram without the magic number", group.PROTOCOL, severity.WARN)
expert_info("gist", "mode", "mode", "message in a mode that is not its own", group.PROTOCOL, severity.WARN)
expert_info("gist", "hops", "no_hops", "hop count 0", group.PROTOCOL, severity.WARN)
expert_info("gist", "error_cut", "error_cut", "Error that ends early", group.MALFORMED, severity.WARN)
expert_info("gist", "reported", "reported", "the sender refuses a message", group.RESPONSE_CODE, severity.NOTE)
expert_info("gist", "cut", "cut", "the capture has only the beginning of the message", group.UNDECODED, severity.NOTE)

gist.fields = F
gist.experts = {}
for _, made in pairs(E) do table.insert(gist.experts, made) end

-- NSLPs register here.
local nslps = DissectorTable.new("gist.nslp_id", "GIST NSLP-ID", ftypes.UINT16, base.DEC)

-- Reading objects ----------------------------------------------------------------------------------------------------

-- A fault of an object travels as an error of this kind, and ends the reading of that object only.
local Fault = {}
local function fault(code, detail) error(setmetatable({ code = code, detail = detail }, Fault), 0) end

-- A position in an object's value, as bytes `from` to `to` of a Tvb, counted from 0, `to` excluded.
local Cursor = {}
Cursor.__index = Cursor
local function cursor(tvb, from, to) return setmetatable({ tvb = tvb, start = from, at = from, to = to }, Cursor) end

function Cursor:left() return self.to - self.at end

function Cursor:take(bytes)
  if self:left() < bytes then fault("10/0", "an object ends early") end
  self.at = self.at + bytes
  return self.at - bytes
end

function Cursor:range(bytes) return self.tvb(self:take(bytes), bytes) end

function Cursor:uint(bytes) return self:range(bytes):uint() end

-- Adds the next bytes as a field and returns them as a number.
function Cursor:add(tree, name, bytes)
  local range = self:range(bytes)
  tree:add(F[name], range)
  return range:uint()
end

-- Adds the next bytes, of which there may be none.
function Cursor:add_bytes(tree, name, bytes)
  if bytes > 0 then tree:add(F[name], self:range(bytes)) end
end

function Cursor:add_address(tree, name, version)
  local family, bytes = ".ipv4", 4
  if version == 6 then family, bytes = ".ipv6", 16 end
  local range = self:range(bytes)
  tree:add(F[name .. family], range)
  return tostring(version == 6 and range:ipv6() or range:ipv4())
end

-- Skips to the next word of the object.
function Cursor:align() self:take((self.start - self.at) % 4) end

function Cursor:finish()
  if self:left() > 0 then fault("10/0", "an object is longer than its content") end
end

local function check_version(version)
  if version ~= 4 and version ~= 6 then fault("10/1", "an IP version that is neither 4 nor 6") end
  return version
end

-- Objects ------------------------------------------------------------------------------------------------------------

-- A flow of the path-coupled method (RFC 5971 A.3.1.1); returns a short form of it.
local function path_coupled(tree, value)
  local flags = value.tvb(value:take(2), 2)
  local version = flags:bitfield(0, 4)
  tree:add(F["mri.ip_version"], flags)
  for _, name in ipairs({ "flags.p", "flags.t", "flags.f", "flags.s", "flags.a", "flags.b", "direction" }) do
    tree:add(F["mri." .. name], flags)
  end
  check_version(version)
  local has = function(bit) return flags:bitfield(bit, 1) == 1 end
  local protocol, dscp, flow_label, spi, source_port, destination_port = has(4), has(5), has(6), has(7), has(8), has(9)
  if flow_label and version == 4 then fault("10/2", "a flow label of IPv4") end
  if (spi or source_port or destination_port) and not protocol then fault("10/2", "ports or SPI without protocol") end
  local source = value:add_address(tree, "mri.source", version)
  local destination = value:add_address(tree, "mri.destination", version)
  local longest = math.max(value:add(tree, "mri.source_prefix", 1), value:add(tree, "mri.destination_prefix", 1))
  local number = value.tvb(value:take(1), 1)
  local class = value.tvb(value:take(1), 1)
  if protocol then tree:add(F["mri.protocol"], number) end
  if dscp then tree:add(F["mri.dscp"], class) end
  if longest > (version == 4 and 32 or 128) then fault("10/1", "a prefix that is longer than an address") end
  if flow_label then value:add(tree, "mri.flow_label", 4) end
  if spi then value:add(tree, "mri.spi", 4) end
  if source_port or destination_port then
    local ports = value:take(4)
    if source_port then tree:add(F["mri.source_port"], value.tvb(ports, 2)) end
    if destination_port then tree:add(F["mri.destination_port"], value.tvb(ports + 2, 2)) end
  end
  local arrow = has(10) and " <- " or " -> "
  return source .. arrow .. destination
end

-- A flow of the loose-end method (RFC 5971 A.3.1.2).
local function loose_end(tree, value)
  local flags = value.tvb(value:take(2), 2)
  tree:add(F["mri.ip_version"], flags)
  tree:add(F["mri.loose_end.direction"], flags)
  local version = check_version(flags:bitfield(0, 4))
  local source = value:add_address(tree, "mri.source", version)
  return source .. " => " .. value:add_address(tree, "mri.destination", version)
end

-- RFC 5971 A.3.1.
local function mri(tree, value)
  local method = value:add(tree, "mri.method", 1)
  tree:add(F["mri.n"], value:range(1))
  local read = ({ [0] = path_coupled, [1] = loose_end })[method]
  if not read then
    value:add_bytes(tree, "mri.other", value:left())
    return "method " .. method
  end
  local short = read(tree, value)
  value:finish()
  return short
end

-- Readers of values by type: each gets a tree, a cursor and what is known of the message.
local OBJECTS = {}

OBJECTS[MRI] = function(tree, value, message)
  message.flow = mri(tree, value)
  tree:append_text(": " .. message.flow)
end

OBJECTS[SESSION_ID] = function(tree, value, message)
  message.session = value.tvb(value:take(16), 16)
  tree:add(F["session_id"], message.session)
  value:finish()
end

OBJECTS[NLI] = function(tree, value, message)
  local identity = value:add(tree, "nli.identity_length", 1)
  value:add(tree, "nli.ip_ttl", 1)
  local version = value.tvb(value:take(2), 2)
  tree:add(F["nli.ip_version"], version)
  check_version(version:bitfield(0, 4))
  if value:add(tree, "nli.validity", 4) == 0 then fault("10/1", "a time of zero") end
  value:add_bytes(tree, "nli.identity", identity)
  value:align()
  message.address = value:add_address(tree, "nli.address", version:bitfield(0, 4))
  tree:append_text(": " .. message.address)
  value:finish()
end

OBJECTS[QUERY_COOKIE] = function(tree, value) value:add_bytes(tree, "query_cookie", value:left()) end

OBJECTS[RESPONDER_COOKIE] = function(tree, value) value:add_bytes(tree, "responder_cookie", value:left()) end

OBJECTS[STACK_PROPOSAL] = function(tree, value, message)
  local count = value:add(tree, "stack_proposal.count", 1)
  value:align()
  if count == 0 then fault("10/1", "a stack proposal without profiles") end
  local profiles = {}
  for number = 1, count do
    local start = value.at
    local layers = value:uint(1)
    if layers == 0 then fault("10/3", "a stack profile without protocols") end
    if value:left() < layers then fault("10/0", "an object ends early") end
    local branch = tree:add(F["stack_proposal.profile"], value.tvb(start, 1 + layers))
    branch:set_text("Profile " .. number .. ":")
    branch:add(F["stack_proposal.layers"], value.tvb(start, 1))
    profiles[number] = {}
    for _ = 1, layers do
      local protocol = value:add(branch, "stack_proposal.protocol", 1)
      branch:append_text(" " .. (MA_PROTOCOLS[protocol] or protocol))
      profiles[number][protocol] = true
    end
    value:align()
  end
  value:finish()
  message.profiles = profiles
end

OBJECTS[STACK_CONFIGURATION] = function(tree, value, message)
  local count = value:add(tree, "stack_configuration.count", 1)
  value:align()
  if value:add(tree, "stack_configuration.hold_time", 4) == 0 then fault("10/1", "a time of zero") end
  local options = {}
  for number = 1, count do
    local start = value:take(4)
    local tvb = value.tvb
    local protocol, profile, length = tvb(start, 1):uint(), tvb(start + 1, 1):uint(), tvb(start + 2, 1):uint()
    local branch = tree:add(F["stack_configuration.option"], tvb(start, 4))
    branch:set_text("Option: " .. (MA_PROTOCOLS[protocol] or protocol))
    branch:add(F["stack_configuration.protocol"], tvb(start, 1))
    branch:add(F["stack_configuration.profile"], tvb(start + 1, 1))
    branch:add(F["stack_configuration.length"], tvb(start + 2, 1))
    branch:add(F["stack_configuration.forbidden"], tvb(start + 3, 1))
    local data = value:take(length)
    value:align()
    local has_port = protocol == FORWARDS_TCP or protocol == FORWARDS_SCTP
    -- RFC 5971 §5.7.2 leaves open whether the padding counts, so the lengths 2 and 4 are both read.
    if has_port and (length == 2 or length == 4) then
      local port = tvb(data, 2)
      branch:add(F["stack_configuration.port"], port)
      branch:append_text(", port " .. port:uint())
      if protocol == FORWARDS_TCP then message.tcp_ports[port:uint()] = true end
    elseif has_port and length > 0 then
      fault("10/0", "a protocol option that is neither empty nor a port")
    elseif length > 0 then
      branch:add(F["stack_configuration.data"], tvb(data, length))
    end
    options[number] = { protocol = protocol, profile = profile }
  end
  value:finish()
  message.options = options
end

OBJECTS[NAT_TRAVERSAL] = function(tree, value)
  local words = value:add(tree, "nat.mri_length", 1)
  local types, count = value:add(tree, "nat.type_count", 1), value:add(tree, "nat.count", 1)
  value:take(1)
  local start = value:take(4 * words)
  if words == 0 then fault("10/0", "an object ends early") end
  mri(tree:add(F["mri"], value.tvb(start, 4 * words)), cursor(value.tvb, start, start + 4 * words))
  for _ = 1, types do value:add(tree, "nat.type", 2) end
  value:align()
  for _ = 1, count do
    value:add_bytes(tree, "nat.entry", value:add(tree, "nat.entry_length", 2))
    value:align()
  end
  value:finish()
end

OBJECTS[HELLO_ID] = function(tree, value, message)
  local id = value:add(tree, "hello_id", 4)
  value:finish()
  if id == 0 and message.reply then fault("10/1", "an MA-Hello request without a number") end
end

-- One piece of additional information (RFC 5971 A.4.3).
local function error_info(tree, value)
  local start = value:take(4)
  local kind, words = value.tvb(start, 2):uint(), value.tvb(start + 2, 2):uint()
  local branch = tree:add(F["error.info"], value.tvb(start, 4))
  branch:set_text("Additional information: " .. (INFO_TYPES[kind] or kind))
  branch:add(F["error.info.type"], value.tvb(start, 2))
  branch:add(F["error.info.length"], value.tvb(start + 2, 2))
  local info = value:take(4 * words)
  local name = ({ "message_length", "mtu", "object_type" })[kind]
  if name and words == 1 then
    branch:add(F["error.info." .. name], value.tvb(info, 2))
  elseif kind == 4 and words >= 1 then
    branch:add(F["error.info.object_offset"], value.tvb(info + 2, 2))
    if words > 1 then branch:add(F["error.info.object"], value.tvb(info + 4, 4 * words - 4)) end
  elseif words > 0 then
    branch:add(F["error.info.value"], value.tvb(info, 4 * words))
  end
end

-- What may be cut without harm: nobody answers an Error.
local function error_details(tree, value, flags, mri_words, infos)
  if flags:bitfield(0, 1) == 1 then tree:add(F["error.session_id"], value:range(16)) end
  if flags:bitfield(1, 1) == 1 then
    local start = value:take(4 * mri_words)
    if mri_words > 0 then
      local branch = tree:add(F["error.mri"], value.tvb(start, 4 * mri_words))
      mri(branch, cursor(value.tvb, start, start + 4 * mri_words))
    end
  end
  for _ = 1, infos do error_info(tree, value) end
  if flags:bitfield(2, 1) == 1 and value:left() > 0 then
    tree:add_packet_field(F["error.comment"], value:range(value:left()), ENC_UTF_8)
  end
end

OBJECTS[ERROR_OBJECT] = function(tree, value, message)
  if value:left() < 16 then fault("10/0", "an object ends early") end
  value:add(tree, "error.class", 1)
  local code, subcode = value:add(tree, "error.code", 2), value:add(tree, "error.subcode", 1)
  local number = code .. "/" .. subcode
  message.error = number .. " " .. (ERROR_NAMES[number] or "unknown")
  tree:add(F["error.name"], message.error):set_generated()
  tree:append_text(": " .. message.error)
  tree:add_proto_expert_info(E["reported"], "the sender refuses a message: " .. message.error)
  local flags = value.tvb(value:take(2), 2)
  for _, name in ipairs({ "s", "m", "c", "d", "q" }) do tree:add(F["error.flags." .. name], flags) end
  local mri_words, infos = value:add(tree, "error.mri_length", 1), value:add(tree, "error.info_count", 1)
  tree:add(F["error.header"], value:range(8))
  local ok, why = pcall(error_details, tree, value, flags, mri_words, infos)
  if ok then return end
  if getmetatable(why) ~= Fault then error(why, 0) end
  tree:add_proto_expert_info(E["error_cut"], "Error that cannot be read to its end: " .. why.detail)
end

OBJECTS[NSLP_DATA] = function(tree, value, message)
  if value:left() == 0 then return end
  message.data = { at = value.at, bytes = value:left() }
  tree:add(F["nslp_data"], value:range(value:left()))
end

-- Messages -----------------------------------------------------------------------------------------------------------

-- Says what is wrong with a message: as an expert info, and as the Error that it deserves.
local function complain(tree, code, detail)
  tree:add_proto_expert_info(E[code], detail and (ERROR_NAMES[code] .. ": " .. detail) or ERROR_NAMES[code])
  tree:add(F["fault"], code):set_generated()
end

-- Returns what the common header at an offset says.
local function header_of(tvb, at)
  local part = function(offset, bytes) return tvb(at + offset, bytes):uint() end
  local has = function(offset, bit) return tvb(at + offset, 1):bitfield(bit, 1) == 1 end
  return {
    version = part(0, 1), hops = part(1, 1), words = part(2, 2), nslp_id = part(4, 2),
    kind = tvb(at + 6, 1):bitfield(1, 7), context_free = has(6, 0), reply = has(7, 1), explicit = has(7, 2),
    seen = {}, tcp_ports = {},
  }
end

-- Returns the errors of a common header but for its length. RFC 5971 §5.1 and A.1: which message may carry which flag.
local function header_faults(message)
  local kind, faults = message.kind, {}
  if message.version ~= VERSION then return { "1/0" } end
  if not MESSAGE_TYPES[kind] then return { "1/1" } end
  local reply_ok = kind == RESPONSE or kind == MA_HELLO or (kind == QUERY) == message.reply
  if not reply_ok then table.insert(faults, "1/2") end
  if message.explicit and kind ~= DATA then table.insert(faults, "1/4") end
  if kind ~= DATA and message.context_free ~= (kind == QUERY) then table.insert(faults, "1/5") end
  return faults
end

local function add_header_fields(tree, tvb, at)
  tree:add(F["version"], tvb(at, 1))
  tree:add(F["hops"], tvb(at + 1, 1))
  tree:add(F["length"], tvb(at + 2, 2))
  tree:add(F["nslp_id"], tvb(at + 4, 2))
  for _, name in ipairs({ "type", "flags.c" }) do tree:add(F[name], tvb(at + 6, 1)) end
  for _, name in ipairs({ "flags.s", "flags.r", "flags.e" }) do tree:add(F[name], tvb(at + 7, 1)) end
end

-- Says what the flags of an object's header mean for who does not know it, and whether its place is wrong.
local function check_object(tree, message, kind, action)
  if action == 3 then complain(tree, "9/5") end
  if message.seen[kind] then complain(tree, "9/0") end
  message.seen[kind] = true
  local place = PLACES[kind]
  if not place then
    tree:add_proto_expert_info(E["unknown_object"], "unknown object, " .. ACTIONS[action])
    if action == 0 then complain(tree, "9/1", "type " .. kind) end
    return
  end
  local is_allowed = place[2][message.kind] or not MESSAGE_TYPES[message.kind]
  if not is_allowed or place[1] <= (message.last or 0) then complain(tree, "9/3") end
  message.last = math.max(place[1], message.last or 0)
end

-- Adds one object that ends inside the message.
local function object(tree, tvb, at, bytes, message)
  local kind, action = tvb(at, 2):bitfield(4, 12), tvb(at, 2):bitfield(0, 2)
  local branch = tree:add(F["object"], tvb(at, bytes))
  branch:set_text(OBJECT_TYPES[kind] or ("Unknown object " .. kind .. ", " .. ACTIONS[action]))
  branch:add(F["object.action"], tvb(at, 2))
  branch:add(F["object.type"], tvb(at, 2))
  branch:add(F["object.length"], tvb(at + 2, 2))
  check_object(branch, message, kind, action)
  local read = OBJECTS[kind]
  if not read then
    if bytes > 4 then branch:add(F["object.value"], tvb(at + 4, bytes - 4)) end
    return
  end
  local ok, why = pcall(read, branch, cursor(tvb, at + 4, at + bytes), message)
  if ok then return end
  if getmetatable(why) ~= Fault then error(why, 0) end
  complain(branch, why.code, why.detail)
end

-- Adds the objects between two places and returns whether they end where the message does.
local function objects(tree, tvb, from, to, message)
  local at = from
  while to - at >= 4 do
    local bytes = 4 + 4 * tvb(at + 2, 2):bitfield(4, 12)
    if bytes > to - at then return false end
    object(tree, tvb, at, bytes, message)
    at = at + bytes
  end
  return at == to
end

-- RFC 5971 §5.1: what a message cannot do without.
local function check_complete(tree, message)
  local missing = function(kind) complain(tree, "9/2", OBJECT_TYPES[kind]) end
  local has = function(kind) return message.seen[kind] end
  for _, kind in ipairs(NEEDED[message.kind] or {}) do
    if not has(kind) then missing(kind) end
  end
  local answers = message.kind == RESPONSE or message.kind == CONFIRM
  local stack = has(STACK_PROPOSAL) or has(STACK_CONFIGURATION)
  if answers and stack and not has(RESPONDER_COOKIE) then missing(RESPONDER_COOKIE) end
  if has(STACK_CONFIGURATION) and not has(STACK_PROPOSAL) then missing(STACK_PROPOSAL) end
  local is_echo = message.kind == CONFIRM
  if has(STACK_PROPOSAL) and not has(STACK_CONFIGURATION) and not is_echo then missing(STACK_CONFIGURATION) end
  if message.kind == RESPONSE and has(RESPONDER_COOKIE) and not message.reply then
    complain(tree, "1/2", "a Response with a cookie that wants no Confirm")
  end
end

-- RFC 5971 A.3.5: each option is of a profile that is proposed, and of a protocol in it.
local function check_stack(tree, message)
  if not message.profiles or not message.options then return end
  for _, option in ipairs(message.options) do
    local fits = false
    for number, profile in ipairs(message.profiles) do
      local is_meant = option.profile == 0 or option.profile == number
      fits = fits or (is_meant and profile[option.protocol] == true)
    end
    if not fits then complain(tree, "10/5") end
  end
end

-- TCP ports of messaging associations by address, as Responses named them.
local associations = {}
-- Whether the info column says something of this packet already.
local told = false
-- The session of the message whose NSLP data is being read, as text.
local session = ""
-- Reads NSLP data that nobody registered for.
local dissect_unregistered

local function tell(pinfo, text)
  if not told then pinfo.cols.info = text else pinfo.cols.info:append("; " .. text) end
  told = true
end

local icmp_type, icmpv6_type = Field.new("icmp.type"), Field.new("icmpv6.type")

-- Adds one message, which a Tvb holds from `at` to its end. Whatever follows it there is wrong.
local function dissect_message(tvb, at, pinfo, tree, is_stream)
  -- What the packet had, and what of it was captured.
  local reported, captured = tvb:reported_len() - at, tvb:len() - at
  local branch = tree:add(gist, tvb())
  if at > 0 then
    branch:add(F["magic"], tvb(0, 4))
  elseif not is_stream then
    branch:add_proto_expert_info(E["no_magic"])
  end
  if captured < HEADER_BYTES then
    if reported < HEADER_BYTES and not icmp_type() and not icmpv6_type() then
      complain(branch, "1/3")
    else
      branch:add_proto_expert_info(E["cut"])
    end
    return
  end
  local message = header_of(tvb, at)
  add_header_fields(branch, tvb, at)
  for _, code in ipairs(header_faults(message)) do complain(branch, code) end
  -- What an ICMP error quotes ends anywhere.
  if icmp_type() or icmpv6_type() then reported = math.max(reported, HEADER_BYTES + 4 * message.words) end
  local name = MESSAGE_TYPES[message.kind] or ("type " .. message.kind)
  if message.version ~= VERSION then
    tell(pinfo, "version " .. message.version)
    return
  end
  if message.hops == 0 then branch:add_proto_expert_info(E["hops"]) end
  if message.kind == (is_stream and QUERY or MA_HELLO) then branch:add_proto_expert_info(E["mode"]) end

  local adds_up = objects(branch, tvb, at + HEADER_BYTES, at + captured, message)
  if captured < reported then
    branch:add_proto_expert_info(E["cut"])
  else
    if not adds_up or captured ~= HEADER_BYTES + 4 * message.words then complain(branch, "1/3") end
    check_complete(branch, message)
  end
  check_stack(branch, message)
  if message.kind == RESPONSE and message.address then
    for port in pairs(message.tcp_ports) do associations[message.address .. " " .. port] = true end
  end

  branch:append_text(", " .. name)
  local words = { name }
  if message.flow then table.insert(words, message.flow) end
  if message.error then table.insert(words, message.error) end
  tell(pinfo, table.concat(words, " "))
  if message.data then
    local data = tvb(message.data.at, message.data.bytes):tvb()
    local nslp = nslps:get_dissector(message.nslp_id)
    session = message.session and tostring(message.session:bytes()) or ""
    if nslp then nslp:call(data, pinfo, tree) else dissect_unregistered(data, pinfo, tree) end
  end
end

-- Datagrams ----------------------------------------------------------------------------------------------------------

local function has_magic(tvb) return tvb:len() >= 4 and tvb(0, 4):uint() == MAGIC end

-- Returns whether bytes begin as a message does whose header is right; `first` says which objects may come first.
local function is_plausible(tvb, at, first)
  if tvb:len() - at < HEADER_BYTES + 4 then return false end
  local words, kind, flags = tvb(at + 2, 2):uint(), tvb(at + 6, 1):bitfield(1, 7), tvb(at + 7, 1)
  local object_kind, object_words = tvb(at + 8, 2):uint(), tvb(at + 10, 2):bitfield(4, 12)
  local allowed = first[kind]
  return tvb(at, 1):uint() == VERSION and tvb(at + 1, 1):uint() > 0 and allowed ~= nil
    and allowed[object_kind] == true and object_words < words
    and (flags:bitfield(2, 1) == 0 or kind == DATA)
    and (tvb(at + 6, 1):bitfield(0, 1) == 0 or kind == QUERY or kind == DATA)
    and (kind ~= MA_HELLO or words == 2)
end

local FIRST = { [NAT_TRAVERSAL] = true, [MRI] = true }
local FIRST_OF_ERROR = { [NAT_TRAVERSAL] = true, [NLI] = true, [ERROR_OBJECT] = true }
local FIRST_IN_DATAGRAMS = {
  [QUERY] = FIRST, [RESPONSE] = FIRST, [CONFIRM] = FIRST, [DATA] = FIRST, [ERROR] = FIRST_OF_ERROR,
}
local FIRST_IN_STREAMS = {
  [RESPONSE] = FIRST, [CONFIRM] = FIRST, [DATA] = FIRST, [ERROR] = FIRST_OF_ERROR, [MA_HELLO] = { [HELLO_ID] = true },
}

local function dissect_datagram(tvb, pinfo, tree)
  local magic = has_magic(tvb)
  if not magic and not is_plausible(tvb, 0, FIRST_IN_DATAGRAMS) then return 0 end
  pinfo.cols.protocol = "GIST"
  told = false
  dissect_message(tvb, magic and 4 or 0, pinfo, tree, false)
  return tvb:len()
end

-- Streams ------------------------------------------------------------------------------------------------------------

-- Returns the bytes of the message at an offset. A header that cannot be read ends the stream: what is there is shown.
local function message_bytes(tvb, _, at)
  local message = header_of(tvb, at)
  if #header_faults(message) > 0 then return tvb:reported_len() - at end
  return HEADER_BYTES + 4 * message.words
end

local function dissect_stream(tvb, pinfo, tree)
  pinfo.cols.protocol = "GIST"
  told = false
  dissect_tcp_pdus(tvb, tree, HEADER_BYTES, message_bytes, function(message, info, branch)
    dissect_message(message, 0, info, branch, true)
    return message:len()
  end)
  return tvb:len()
end

-- Returns whether one of the ends is one where a node accepts messaging associations.
local function is_association(pinfo)
  local is_known = function(address, port)
    return port == NETSERV_TCP_PORT or associations[tostring(address) .. " " .. port] == true
  end
  return is_known(pinfo.src, pinfo.src_port) or is_known(pinfo.dst, pinfo.dst_port)
end

local function tcp_heuristic(tvb, pinfo, tree)
  if tvb:len() == 0 then return false end
  local begins = tvb(0, 1):uint() == VERSION and is_association(pinfo)
  if not begins and not is_plausible(tvb, 0, FIRST_IN_STREAMS) then return false end
  pinfo.conversation = gist
  dissect_stream(tvb, pinfo, tree)
  return true
end

local function udp_heuristic(tvb, pinfo, tree)
  if not has_magic(tvb) then return false end
  dissect_datagram(tvb, pinfo, tree)
  return true
end

local PORT_TYPE_TCP = 2

function gist.dissector(tvb, pinfo, tree)
  if pinfo.port_type == PORT_TYPE_TCP then return dissect_stream(tvb, pinfo, tree) end
  return dissect_datagram(tvb, pinfo, tree)
end

function gist.init() associations = {} end

-- The text of NetServ ------------------------------------------------------------------------------------------------

local N = {}
local function netserv_field(name, kind, title, ...) return field("netserv", N, name, kind, title, ...) end

netserv_field("method", "string", "Method")
netserv_field("subject", "string", "Subject")
netserv_field("version", "string", "Version")
netserv_field("response", "none", "Response")
netserv_field("notify", "none", "NOTIFY")
netserv_field("tear", "none", "TEAR")
netserv_field("hop", "none", "For one hop")
netserv_field("part.index", "uint8", "Part", base.DEC)
netserv_field("part.count", "uint8", "Parts in all", base.DEC)
netserv_field("part.nonce", "string", "Nonce of the whole text")
netserv_field("part.data", "bytes", "Text of the part")
netserv_field("header", "string", "Header of another version")
netserv_field("padding", "bytes", "Padding")
netserv_field("entry.node", "string", "Node")
netserv_field("entry.result", "string", "Result")
netserv_field("incomplete.kind", "string", "Kind")
-- Headers by name, with their titles and the texts that they belong to; "*" is any request.
local HEADERS = {
  user = { "User", "* NOTIFY TEAR" }, created = { "Created", "*" }, nonce = { "Nonce", "* RESPONSE NOTIFY TEAR" },
  signature = { "Signature", "*" }, ["dry-run"] = { "Dry run", "*" },
  url = { "URL", "SETUP" }, digest = { "Digest", "SETUP" }, filter = { "Filter", "SETUP" },
  ["filter-proto"] = { "Protocol of the filter", "SETUP" }, ["filter-port"] = { "Port of the filter", "SETUP" },
  properties = { "Properties", "SETUP" }, dependencies = { "Dependencies", "SETUP" },
  ttl = { "Lifetime in s", "SETUP" }, prepare = { "Make ready", "SETUP" }, ask = { "Ask", "PROBE" },
  session = { "Session", "RESPONSE NOTIFY TEAR" }, entry = { "Entry", "RESPONSE" },
  ["entry-more"] = { "Entry, continued", "RESPONSE" },
  incomplete = { "Incomplete", "RESPONSE" }, ["end"] = { "End proven by", "RESPONSE" },
  withheld = { "Withheld", "RESPONSE" }, foreign = { "Entries of outside", "RESPONSE" },
  beside = { "Beside the path", "RESPONSE HOP" }, ["beside-missing"] = { "Neighbours not heard of", "RESPONSE" },
  ["off-path"] = { "Beside the path, too", "*" }, origin = { "Origin", "HOP" },
  module = { "Module", "NOTIFY TEAR" }, node = { "Node", "NOTIFY" }, event = { "Event", "NOTIFY" },
  token = { "Token", "TEAR" }, nodes = { "Nodes", "NOTIFY" }, detail = { "Detail", "NOTIFY" }, ["budget-ms"] = { "Time to answer in ms", "HOP" },
  ["may-return"] = { "May be sent back", "HOP" }, trigger = { "Trigger", "*" },
  ["return"] = { "Entry of the way back", "RESPONSE" }, ["return-more"] = { "Entry of the way back, continued", "RESPONSE" },
  returned = { "Way back", "RESPONSE" },
  ["nodes-passed"] = { "Nodes passed", "HOP" }, scope = { "Scope", "*" }, ["node-id"] = { "Node", "*" },
  require = { "Required of nodes", "*" }, ["for"] = { "For", "*" },
}
local REQUESTS = { SETUP = true, REMOVE = true, PROBE = true }
for name, row in pairs(HEADERS) do netserv_field((name:gsub("-", "_")), "string", row[1]) end

local REPEATABLE = {
  beside = true,
  ["node-id"] = true, require = true, ["for"] = true, ["return"] = true, ["return-more"] = true, filter = true, properties = true, dependencies = true, ask = true, entry = true, ["entry-more"] = true,
}
local REQUIRED = {
  SETUP = { "user", "url", "digest", "ttl", "created", "nonce" }, REMOVE = { "user", "created", "nonce" },
  PROBE = { "created", "nonce" }, RESPONSE = { "session", "nonce" },
  NOTIFY = { "session", "nonce", "user", "module", "node", "event" }, TEAR = { "session", "nonce", "user", "module" },
  HOP = {},
}

expert_info("netserv", "text", "malformed", "malformed text", group.MALFORMED, severity.ERROR)
expert_info("netserv", "incomplete", "incomplete", "the stack is incomplete", group.RESPONSE_CODE, severity.NOTE)
expert_info("netserv", "refused", "refused", "a node refuses the request", group.RESPONSE_CODE, severity.NOTE)

netserv.fields = N
netserv.experts = { E["text"], E["incomplete"], E["refused"] }

local json = Dissector.get("json")

local function complain_of_line(tree, what) tree:add_proto_expert_info(E["text"], what) end

-- Adds text between two places of a Tvb, `to` excluded.
local function add_text(tree, name, tvb, from, to)
  if to <= from then return tree:add(N[name], tvb(from > 0 and from - 1 or 0, 1), "") end
  return tree:add_packet_field(N[name], tvb(from, to - from), ENC_UTF_8)
end

-- Returns the lines of a text, each with its place, up to the empty one, and where that ends; nil if there is none.
local function split(text)
  local lines, at = {}, 1
  while true do
    local stop = text:find("\n", at, true)
    if not stop then return lines, nil end
    local line = text:sub(at, stop - 1):gsub("\r$", "")
    if line == "" then return lines, stop end
    table.insert(lines, { text = line, from = at - 1, to = at - 1 + #line })
    at = stop + 1
  end
end

-- Returns the value of a key of flat JSON, for the eye; the JSON dissector reads it properly.
local function json_word(text, key) return text:match('"' .. key .. '"%s*:%s*"([^"]*)"') end

-- Adds what an entry of the response stack says; it may have come in several lines.
local function add_entry(tree, lines, tvb, pinfo)
  local text, bytes = "", ByteArray.new()
  for _, line in ipairs(lines) do
    text = text .. line.value
    if line.to > line.value_from then bytes:append(tvb(line.value_from, line.to - line.value_from):bytes()) end
  end
  local branch = lines[1].item
  local node, result = json_word(text, "node"), json_word(text, "result")
  local whole = tvb(lines[1].from, lines[1].to - lines[1].from)
  if node then branch:add(N["entry.node"], whole, node):set_generated() end
  if result then branch:add(N["entry.result"], whole, result):set_generated() end
  if result == "refused" then
    branch:add_proto_expert_info(E["refused"], (node or "a node") .. ": " .. (json_word(text, "kind") or "refused"))
  end
  if json and bytes:len() > 0 then json:call(ByteArray.tvb(bytes, "Entry"), pinfo, branch) end
end

-- Adds a header line, and notes its name, value and item.
local function add_header(tree, line, tvb, seen, method)
  local name, blank = line.text:match("^([%w-]+):( ?)")
  if not name then
    complain_of_line(add_text(tree, "header", tvb, line.from, line.to), "a line that is no header")
    return
  end
  local header_name = name:lower()
  local row = HEADERS[header_name]
  local value_from = line.from + #name + 1 + #blank
  line.name, line.value, line.value_from = header_name, line.text:sub(#name + 2 + #blank), value_from
  local texts = row and row[2] or ""
  local is_common = texts:find("*", 1, true) and REQUESTS[method]
  if not row or not (is_common or texts:find(method, 1, true)) then
    line.item = add_text(tree, "header", tvb, line.from, line.to)
    if REQUESTS[texts] and REQUESTS[method] then
      complain_of_line(line.item, "`" .. header_name .. "` means nothing in a " .. method)
    end
    return
  end
  line.item = add_text(tree, (header_name:gsub("-", "_")), tvb, value_from, line.to)
  if seen[header_name] and not REPEATABLE[header_name] then
    complain_of_line(line.item, "`" .. header_name .. "` is there twice")
  end
  seen[header_name] = true
end

-- Adds the first line and returns the method or kind of the text (RESPONSE, NOTIFY, TEAR, HOP), nil if it is none.
local function add_first_line(tree, line, tvb)
  local kind = line.text:match("^NETSERV/1 (%u+)$")
  if kind and REQUIRED[kind] and not REQUESTS[kind] then
    tree:add(N[kind:lower()], tvb(line.from, line.to - line.from))
    return kind
  end
  local method, subject, version = line.text:match("^(%S+) (%S+) (%S+)$")
  if not method then
    complain_of_line(add_text(tree, "header", tvb, line.from, line.to), "no first line of a text")
    return nil
  end
  local subject_at = line.from + #method + 1
  local item = add_text(tree, "method", tvb, line.from, subject_at - 1)
  add_text(tree, "subject", tvb, subject_at, subject_at + #subject)
  add_text(tree, "version", tvb, line.to - #version, line.to)
  if not REQUESTS[method] or version ~= "NETSERV/1" then
    complain_of_line(item, "a method or version that NetServ does not know")
    return nil
  end
  return method, subject
end

local function add_entries(tree, lines, tvb, pinfo)
  local entry
  for _, line in ipairs(lines) do
    if line.name == "entry" then
      if entry then add_entry(tree, entry, tvb, pinfo) end
      entry = { line }
    elseif line.name == "entry-more" and entry then
      table.insert(entry, line)
    elseif line.name == "entry-more" then
      complain_of_line(line.item, "it goes on with no entry")
    elseif line.name == "incomplete" then
      local kind = json_word(line.value, "kind") or "?"
      line.item:add(N["incomplete.kind"], tvb(line.from, line.to - line.from), kind):set_generated()
      line.item:add_proto_expert_info(E["incomplete"], "the stack is incomplete: " .. kind)
    end
  end
  if entry then add_entry(tree, entry, tvb, pinfo) end
end

-- Adds a whole text; one in an envelope must be a request.
local function dissect_text(tvb, pinfo, tree, is_in_envelope)
  local text = tvb:raw()
  local lines, stop = split(text)
  if #lines == 0 then return complain_of_line(tree, "an empty message") end
  local method, subject = add_first_line(tree, lines[1], tvb)
  if is_in_envelope and method and not REQUESTS[method] then
    complain_of_line(tree, "an envelope is for a request")
    return
  end
  local seen = {}
  for number = 2, #lines do add_header(tree, lines[number], tvb, seen, method or "") end
  if method == "RESPONSE" then add_entries(tree, lines, tvb, pinfo) end
  if method then
    for _, name in ipairs(REQUIRED[method]) do
      if not seen[name] then complain_of_line(tree, "no `" .. name .. "` header") end
    end
    tree:append_text(", " .. method .. (subject and " " .. subject or ""))
    pinfo.cols.info:append(", NetServ " .. method .. (subject and " " .. subject or ""))
  end
  if not stop then return complain_of_line(tree, "a message without an empty line at its end") end
  if method == "HOP" then
    if stop == #text then return complain_of_line(tree, "an envelope without a request") end
    return dissect_text(tvb(stop, #text - stop):tvb(), pinfo, tree, true)
  end
  if stop == #text then return end
  local padding = tree:add(N["padding"], tvb(stop, #text - stop))
  if not text:sub(stop + 1):match("^[%z\n]?[%z\n]?[%z\n]?$") then
    complain_of_line(padding, "something follows the empty line that ends a message")
  end
end

-- Parts of texts that are not whole yet, by sender, session, nonce and number of parts; and whole texts by what
-- completed them, for when a frame is looked at again.
local waiting, waiting_count, whole = {}, 0, {}

-- Keeps a part, and returns the whole text if there is one with it.
local function keep(part, pinfo)
  local key = table.concat({ tostring(pinfo.src), session, part.nonce, part.count }, " ")
  local done = key .. " " .. part.index .. " " .. pinfo.number
  if pinfo.visited then return whole[done] end
  if not waiting[key] then
    if waiting_count >= PARTS_WAITING_MAX then return nil end
    waiting[key], waiting_count = {}, waiting_count + 1
  end
  local parts = waiting[key]
  parts[part.index] = part.bytes
  local text = ByteArray.new()
  for index = 1, part.count do
    if not parts[index] then return nil end
    text:append(parts[index])
  end
  waiting[key], waiting_count = nil, waiting_count - 1
  whole[done] = text
  return text
end

-- Returns what the first line of a part says, if it is one.
local function part_of(text)
  local index, count, nonce = text:match("^NETSERV/1 PART (%d)/(%d) (%x+)\n")
  if not index or #nonce ~= 32 then return nil end
  local part = { index = tonumber(index), count = tonumber(count), nonce = nonce:lower() }
  return part.index >= 1 and part.index <= part.count and part.count >= 2 and part or nil
end

local LINE_BYTES = #"NETSERV/1 PART 1/2 " + 32 + 1

function netserv.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "NetServ"
  local branch = tree:add(netserv, tvb())
  local part = part_of(tvb:raw(0, math.min(tvb:len(), LINE_BYTES)))
  if not part then
    dissect_text(tvb, pinfo, branch)
    return tvb:len()
  end
  local place = part.index .. "/" .. part.count
  branch:append_text(", part " .. place)
  pinfo.cols.info:append(", NetServ part " .. place)
  branch:add(N["part.index"], tvb(#"NETSERV/1 PART ", 1), part.index)
  branch:add(N["part.count"], tvb(#"NETSERV/1 PART 1/", 1), part.count)
  branch:add(N["part.nonce"], tvb(#"NETSERV/1 PART 1/2 ", 32), part.nonce)
  if tvb:len() == LINE_BYTES then return tvb:len() end
  local data = tvb(LINE_BYTES)
  branch:add(N["part.data"], data)
  part.bytes = data:bytes()
  local text = keep(part, pinfo)
  if text then dissect_text(ByteArray.tvb(text, "Whole text"), pinfo, branch) end
  return tvb:len()
end

-- NSLP-IDs are configured; the text is known by its first line.
dissect_unregistered = function(tvb, pinfo, tree)
  local line = tvb:raw(0, math.min(tvb:len(), 512)):match("^[^\n]*")
  if line:match(" NETSERV/1\r?$") or line:match("^NETSERV/1 ") then netserv.dissector(tvb, pinfo, tree) end
end

function netserv.init() waiting, waiting_count, whole = {}, 0, {} end

-- Where the dissectors are found -------------------------------------------------------------------------------------

nslps:add(NETSERV_NSLP_ID, netserv)
DissectorTable.get("udp.port"):add(UDP_PORT, gist)
DissectorTable.get("tcp.port"):add_for_decode_as(gist)
gist:register_heuristic("udp", udp_heuristic)
gist:register_heuristic("tcp", tcp_heuristic)
