# SPDX-License-Identifier: Apache-2.0
"""Many TCP connections at a time: `serve PORT` echoes lines, `ask HOST PORT COUNT` opens, sends, waits for all, closes."""

import json
import resource
import selectors
import socket
import sys
import time

LINE = b"a line there and back\n"
TIME_MAX = 60


def serve(port):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4096)
    listener.setblocking(False)
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is listener:
                try:
                    while True:
                        connection, _ = listener.accept()
                        connection.setblocking(False)
                        ready.register(connection, selectors.EVENT_READ)
                except BlockingIOError:
                    continue
            try:
                text = key.fileobj.recv(4096)
                if text:
                    key.fileobj.send(text)
                    continue
            except OSError:
                pass
            ready.unregister(key.fileobj)
            key.fileobj.close()


def ask(host, port, count):
    ready = selectors.DefaultSelector()
    answered = failed = 0
    held = []
    for _ in range(count):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex((host, port))
        ready.register(connection, selectors.EVENT_WRITE)
        held.append(connection)
    ends = time.monotonic() + TIME_MAX
    while answered + failed < count and time.monotonic() < ends:
        for key, events in ready.select(1):
            connection = key.fileobj
            try:
                if events & selectors.EVENT_WRITE:
                    connection.send(LINE)
                    ready.modify(connection, selectors.EVENT_READ)
                elif connection.recv(4096) == LINE:
                    answered += 1
                    ready.unregister(connection)
                else:
                    raise OSError("the connection ended")
            except OSError:
                failed += 1
                ready.unregister(connection)
    print(json.dumps({"answered": answered, "failed": count - answered}))


_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    ask(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
