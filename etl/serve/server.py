"""Listening: on the loopback address, with a token made for this start."""

from __future__ import annotations

import socket
from collections.abc import Callable

from etl.errors import EtlError, MissingExtraError
from etl.lake import Lake

HOST = "127.0.0.1"


def serve(
    lake: str, *, port: int, announce: Callable[[str], None], pseudonym_key: bytes | None = None, unsafe: bool = False
) -> None:
    """Show a lake in the browser until interrupted. `announce` gets the address to open, once it is answered.

    Labels that are given there are redacted with `pseudonym_key`, or the key kept for the lake.
    `unsafe` lets the box for SQL do whatever who started the server may do. Port 0 takes any that is free.
    MissingExtraError without the extra, LakeError where there is no lake, EtlError where the port is taken.
    """
    try:
        import uvicorn

        from etl.serve.app import application
        from etl.serve.guard import Secret
    except ImportError as error:
        raise MissingExtraError(
            'the browser needs packages that are not there: pip install "rollout-etl[serve]"'
        ) from error
    root = Lake.open(lake, older=True).root
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise EtlError(
                f"cannot listen on {HOST}:{port}: {error.strerror}; choose another with --port, or 0"
            ) from error
        listening.listen(64)
        taken = listening.getsockname()[1]
        secret = Secret(taken)
        config = uvicorn.Config(
            application(root, secret, pseudonym_key, unsafe=unsafe),
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            limit_concurrency=64,
            timeout_graceful_shutdown=2,
        )
        announce(f"http://{HOST}:{taken}/?token={secret.token}")
        uvicorn.Server(config).run(sockets=[listening])
