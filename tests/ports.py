"""Ports of loopback for servers in processes of their own."""

import socket
from contextlib import suppress
from random import SystemRandom


def free_port() -> int:
    """One that stays free until its server listens, and while that is started again."""
    # The system itself gives ports from 32768 on to whoever asks for any.
    while True:
        port = SystemRandom().randrange(10_000, 32_768)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
