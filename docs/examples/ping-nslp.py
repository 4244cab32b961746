#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An NSLP that finds its own copies along a path: each adds its name, and the last one answers.

On every node:      ping-nslp.py --socket /run/netserv/gist.sock --name n1
Along a path:       ping-nslp.py --socket /run/netserv/gist.sock --name me --to 192.0.2.9 [--reliable]

The second form prints the names and how the end was found, and exits with 1 if no answer came. docs/nslp-api.md has the lines.
"""
import argparse
import json
import os
import socket
import sys


class Nslp:
    """The connection with the node."""

    def __init__(self, path, nslp_id, name):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.waiting, self.last_handle = {}, 0
        self.call(call="register", version=1, nslp_id=nslp_id, name=name)

    def call(self, **fields):
        self.socket.sendall((json.dumps(fields) + "\n").encode())

    def send(self, session, flow, ping, **more):
        self.last_handle += 1
        self.waiting[self.last_handle] = (session, flow, ping)
        data = json.dumps(ping).encode().hex()
        self.call(call="send-message", handle=self.last_handle, session=session, flow=flow, data=data, **more)

    def events(self):
        for line in self.lines:
            yield json.loads(line)


def serve(nslp, name):
    """Adds its name to what comes downstream and sends it on, or answers if there is nobody further on."""
    for event in nslp.events():
        if event["event"] == "recv-message" and event["validated"]:
            session, flow, hops = event["session"], event["flow"], event["hops"]
            # Messages have zeros at their end, up to a multiple of 4 bytes.
            ping = json.loads(bytes.fromhex(event["data"]).rstrip(b"\0"))
            if flow["direction"] == "downstream":
                ping["names"].append(name)
            nslp.send(session, flow, ping, reliable=event["reliable"], hops=max(hops, 1))
        elif event["event"] == "message-status":
            session, flow, ping = nslp.waiting.pop(event["handle"])
            if event["status"] == "no-peer" and flow["direction"] == "downstream":
                ping["end"] = event["reason"]
                nslp.send(session, dict(flow, direction="upstream"), ping, reliable=ping["reliable"])
        elif event["event"] == "error":
            nslp.waiting.pop(event.get("handle"), None)
            print(f"{event['cause']}; fix: {event['fix']}", file=sys.stderr)
        print(json.dumps(event), flush=True)


def ask(nslp, name, to, reliable):
    """Sends a ping along the path to an address, and prints who is on it."""
    version = socket.AF_INET6 if ":" in to else socket.AF_INET
    with socket.socket(version, socket.SOCK_DGRAM) as probe:
        probe.connect((to, 9))
        source = probe.getsockname()[0]
    flow = {"source": source, "destination": to, "direction": "downstream"}
    session = os.urandom(16).hex()
    nslp.send(session, flow, {"names": [name], "reliable": reliable}, reliable=reliable)
    nslp.socket.settimeout(20)
    for event in nslp.events():
        if event["event"] == "recv-message" and event["session"] == session:
            ping = json.loads(bytes.fromhex(event["data"]).rstrip(b"\0"))
            print(" ".join(ping["names"]), ping["end"])
            return 0
        if event["event"] == "error" or event.get("status") in ("failed", "no-peer"):
            print(event.get("cause") or event["detail"], file=sys.stderr)
            return 1
    return 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--socket", default="/run/netserv/gist.sock", help="signaling.applications.socket of the node")
    parser.add_argument("--nslp", type=int, default=32710, help="the NSLPID")
    parser.add_argument("--name", default=socket.gethostname(), help="the name that it adds")
    parser.add_argument("--to", help="send one ping to this address")
    parser.add_argument("--reliable", action="store_true", help="over connections")
    options = parser.parse_args()
    connection = Nslp(options.socket, options.nslp, options.name)
    if options.to:
        sys.exit(ask(connection, options.name, options.to, options.reliable))
    serve(connection, options.name)
