# SPDX-License-Identifier: Apache-2.0
"""Threads that wait in one place each, for ever; test_dump.py knows where."""

import queue
import socket
import threading
import time

lock = threading.Lock()
items = queue.Queue()
ours, theirs = socket.socketpair()


class Worker:
    def in_lock(self):
        self.step(lock.acquire)

    def in_queue(self):
        self.step(items.get)

    def in_recv(self):
        self.step(lambda: ours.recv(1))

    def in_sort(self):
        sorted([2, 1], key=lambda item: time.sleep(1000))

    def step(self, wait):
        return wait()


def main():
    print("ready", flush=True)
    time.sleep(1000)


lock.acquire()
worker = Worker()
for wait in (worker.in_lock, worker.in_queue, worker.in_recv, worker.in_sort):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.2)
main()
