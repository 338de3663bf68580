# SPDX-License-Identifier: Apache-2.0
"""Clients of the HTTP server that want to harm it, over TCP, and a receiver
of what is pushed that does."""

import contextlib
import socket
import time

from attacks import EVIL

CONNECTIONS = 300


def connect(place):
    """From one of many addresses."""
    client = socket.socket()
    client.bind(("127.0.%d.%d" % (place.random.randrange(256),
                                  place.random.randrange(1, 255)), 0))
    client.settimeout(2)
    client.connect(("127.0.0.1", place.port))
    return client


def attempts(place, attack):
    """Again and again; what the server refuses or closes is no failure."""
    while True:
        with contextlib.suppress(OSError):
            attack(place)
        time.sleep(0.005)


def slow_headers(place):
    def attack(place):
        clients = []
        for _ in range(CONNECTIONS):
            clients.append(connect(place))
            clients[-1].sendall(b"GET /profile HTTP/1.1\r\nHost: l\r\n")
        for i in range(30):
            for client in clients:
                with contextlib.suppress(OSError):
                    client.sendall(b"X-%s-%d: 1\r\n" % (EVIL.encode(), i))
            time.sleep(0.3)
    attempts(place, attack)


def many_connections(place):
    def attack(place):
        held = [connect(place) for _ in range(CONNECTIONS)]
        time.sleep(place.random.random())
        for client in held:
            client.close()
    attempts(place, attack)


def ranges(place):
    wanted = b",".join(b"%d-" % i for i in range(4000))

    def attack(place):
        with connect(place) as client:
            client.sendall(b"GET /profile?format=json&seconds=300 HTTP/1.1\r\n"
                           b"Host: l\r\nRange: bytes=" + wanted + b"\r\n\r\n")
            client.recv(100)
    attempts(place, attack)


MALFORMED = [
    b"", b"\r\n" * 1000, b"\0" * 5000, b"GET / HTTP/9.9\r\n\r\n",
    b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n",
    b"POST /profile HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff",
    b"GET /profile?seconds=-1&format=%00 HTTP/1.1\r\n\r\n",
    b"GET /profile?from=1e999&until=nan HTTP/1.1\r\n\r\n",
    b"GET /profile?" + b"seconds=1&" * 3000 + b" HTTP/1.1\r\n\r\n",
    b"GET /profile HTTP/1.1\r\n" + b"a:b\r\n" * 6000 + b"\r\n",
    b"GET /%ff%fe%00%0a HTTP/1.1\r\nHost: \xff\xff\r\n\r\n",
    b"GET / HTTP/1.1\r\nAccept-Encoding: " + b"gzip;q=0.1," * 2000 +
    b"\r\n\r\n"]


def malformed(place):
    def attack(place):
        with connect(place) as client:
            text = bytearray(place.random.choice(MALFORMED))
            for _ in range(place.random.randrange(4)):
                if text:
                    at = place.random.randrange(len(text))
                    text[at] = place.random.randrange(256)
            client.sendall(text)
            client.settimeout(0.05)
            client.recv(100)
    attempts(place, attack)


def aborted(place):
    """Captures of ten minutes whose client goes, or reads nothing."""
    def attack(place):
        held = []
        for _ in range(20):
            held.append(connect(place))
            held[-1].sendall(b"GET /debug/pprof/profile?seconds=%d HTTP/1.1"
                             b"\r\nHost: l\r\n\r\n" %
                             place.random.choice([1, 1, 600]))
        time.sleep(place.random.random() * 2)
        for client in held:
            client.close()
    attempts(place, attack)


def large_answers(place):
    """All that there is, and nobody takes it."""
    def attack(place):
        held = []
        for form in [b"json", b"folded", b"svg", b"html", b"perf-script",
                     b"speedscope"] * 4:
            held.append(connect(place))
            held[-1].sendall(b"GET /profile?seconds=300&format=" + form +
                             b" HTTP/1.1\r\nHost: l\r\n\r\n")
        time.sleep(3)
        for client in held:
            client.close()
    attempts(place, attack)


def receive(server, numbers):
    """Takes what is pushed to the listening socket, and answers in ways that
    never end; returns never."""
    answers = [b"HTTP/1.1 500 " + b"x" * 1000, b"HTTP/1.1 100 Continue\r\n\r\n",
               b"HTTP/1.1 503 No\r\n" + b"a: b\r\n", b"", b"\0"]
    while True:
        client, _ = server.accept()
        answer = numbers.choice(answers)
        with client, contextlib.suppress(OSError):
            client.settimeout(1)
            client.recv(1 << 16)
            if numbers.random() < 0.2:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                continue
            end = time.monotonic() + 40
            while time.monotonic() < end:
                client.sendall(answer)
                time.sleep(0.01)


KINDS = {"slow-headers": slow_headers, "many-connections": many_connections,
         "ranges": ranges, "malformed": malformed, "aborted": aborted,
         "large-answers": large_answers}
