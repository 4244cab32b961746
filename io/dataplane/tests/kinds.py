# SPDX-License-Identifier: Apache-2.0
# Sends packets of all kinds as Ethernet frames: DEVICE OWN-MAC ROUTER-MAC, then a line "KIND NUMBER" for each. The number is in
# the packet's payload, eight digits after "kind".
import socket, struct, sys

DEVICE, OWN, ROUTER = sys.argv[1], bytes.fromhex(sys.argv[2].replace(':', '')), bytes.fromhex(sys.argv[3].replace(':', ''))
V4 = [socket.inet_pton(socket.AF_INET, a) for a in ('10.0.0.1', '10.0.1.2')]
V6 = [socket.inet_pton(socket.AF_INET6, a) for a in ('fd00::1', 'fd00:0:0:1::2')]
PORTS = struct.pack('!HH', 4000, 5060)

def total(data):
    data += b'\0' * (len(data) % 2)
    s = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return s

def pseudo(v6, length, protocol):
    src, dst = V6 if v6 else V4
    return src + dst + (struct.pack('!II', length, protocol) if v6 else struct.pack('!HH', protocol, length))

def udp(v6, payload, sum=None):
    head = PORTS + struct.pack('!H', 8 + len(payload))
    if sum is None:
        sum = 0xffff ^ total(pseudo(v6, 8 + len(payload), 17) + head + b'\0\0' + payload) or 0xffff
    return head + struct.pack('!H', sum) + payload

def ip4(body, protocol=17, ttl=64, fragment=0, options=b'', length=None):
    words = 5 + len(options) // 4
    length = length or 4 * words + len(body)
    head = struct.pack('!BBHHHBBH', 0x40 | words, 0, length, 7, fragment, ttl, protocol, 0) + V4[0] + V4[1] + options
    return head[:10] + struct.pack('!H', 0xffff ^ total(head)) + head[12:] + body

def ip6(body, protocol=17, ttl=64, length=None):
    return struct.pack('!IHBB', 6 << 28, length or len(body), protocol, ttl) + V6[0] + V6[1] + body

def extension(kind, following):
    return bytes([following, 0, 1, 4, 0, 0, 0, 0])

def packet(kind, v6, text):
    plain, ip = udp(v6, text), ip6 if v6 else ip4
    if kind in ('plain', 'VLAN tag'):
        return ip(plain)
    if kind == 'options or extension headers':
        return ip6(extension(0, 60) + extension(60, 17) + plain, 0) if v6 else ip4(plain, options=b'\x01' * 4)
    if kind == 'a dozen extension headers':
        return ip6(extension(0, 60) + b''.join(extension(60, 60) for _ in range(11)) + extension(60, 17) + plain, 0)
    if kind == 'UDP without checksum':
        return ip(udp(v6, text, 0))
    if kind == 'UDP with a wrong checksum':
        return ip(udp(v6, text, 0x1234))
    if kind == 'TTL 1':
        return ip(plain, ttl=1)
    if kind == 'of 4,000 bytes':
        return ip(udp(v6, text + b'x' * 4000))
    if kind in ('first fragment', 'later fragment'):
        body = udp(v6, text + b'x' * (500 - len(text))) if kind == 'first fragment' else text + b'x' * (400 - len(text))
        body, at = (body[:400], 0) if kind == 'first fragment' else (body, 50)
        more = 1 if kind == 'first fragment' else 0
        if v6:
            return ip6(struct.pack('!BBHI', 17, 0, at << 3 | more, 9) + body, 44)
        return ip4(body, fragment=at | more << 13)
    if kind == 'ICMP error':
        about = (ip6 if v6 else ip4)(plain)
        error = struct.pack('!BBHI', 1 if v6 else 3, 4 if v6 else 3, 0, 0) + about
        sum = 0xffff ^ total((pseudo(True, len(error), 58) if v6 else b'') + error)
        return ip(error[:2] + struct.pack('!H', sum) + error[4:], 58 if v6 else 1)
    if kind == 'padded':
        return ip(plain) + b'\0' * 30
    if kind == 'cut short':
        return ip(plain)[:-4]
    if kind == 'large send (GSO)':
        return ip(udp(v6, text + b'x' * (2800 - len(text))))
    raise ValueError(kind)

usual = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
usual.bind((DEVICE, 0))
offload = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
offload.setsockopt(263, 15, 1)
offload.bind((DEVICE, 0))
for line in sys.stdin:
    kind, version, number = line.strip().rsplit(' ', 2)
    v6 = version == '6'
    bytes_ = packet(kind, v6, b'kind%08d' % int(number))
    kinds = struct.pack('!H', 0x86dd if v6 else 0x0800)
    tag = b'\x81\0\0\x07' if kind == 'VLAN tag' else b''
    frame = ROUTER + OWN + tag + kinds + bytes_
    if kind == 'large send (GSO)':
        at = 14 + (40 if v6 else 20)
        # Its sum is that of the pseudo header, and the rest is left to be done.
        part = struct.pack('!H', total(pseudo(v6, len(bytes_) - at + 14, 17)))
        frame = frame[:at + 6] + part + frame[at + 8:]
        offload.send(struct.pack('<BBHHHH', 1, 5, at + 8, 1400, at, 6) + frame)
    else:
        usual.send(frame)
    print('sent', flush=True)
