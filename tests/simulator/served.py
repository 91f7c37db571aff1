"""A server that speaks OpenAI's chat completions as far as an agent needs them: streaming, tool calls, failures."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RECORD = re.compile(r"ORD-\d+")


class Model(ThreadingHTTPServer):
    """Answers like a plain agent for orders; `failures` are played out first, one a request."""

    daemon_threads = True

    def __init__(self, failures: list[str]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.failures = failures
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class Answer(BaseHTTPRequestHandler):
    """One request."""

    server: Model
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer, or fail as planned."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(asked)
            failure = self.server.failures.pop(0) if self.server.failures else None
        if failure in ("429", "500", "400"):
            body = json.dumps({"error": {"message": f"planned {failure}"}}).encode()
            self.send_response(int(failure))
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        chunks = list(_chunks(asked))
        if failure == "broken":
            chunks = chunks[:1]
        for chunk in chunks:
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        if failure != "broken":
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def log_message(self, *_args: Any) -> None:
        """Silence."""


def _chunks(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A streamed answer, its call in three pieces."""
    last = asked["messages"][-1]
    deltas: list[dict[str, Any]]
    if not asked.get("tools"):
        deltas, reason = [{"content": "Thank you, "}, {"content": "that is all. <end>"}], "stop"
    elif last["role"] == "tool":
        deltas, reason = [{"content": "Here is "}, {"content": f"what I got: {last['content'][:200]}"}], "stop"
    else:
        told = " ".join(m["content"] for m in asked["messages"] if m["role"] == "user")
        records = RECORD.findall(told)
        if records:
            deltas, reason = list(_call("get_order", json.dumps({"order_id": records[-1]}))), "tool_calls"
        else:
            deltas, reason = [{"content": "Which order is it? Please give me its number."}], "stop"
    for number, delta in enumerate(deltas):
        done = reason if number == len(deltas) - 1 else None
        yield _chunk(asked, [{"index": 0, "delta": delta, "finish_reason": done}])
    yield _chunk(asked, [], {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110})


def _call(name: str, arguments: str) -> Iterator[dict[str, Any]]:
    middle = len(arguments) // 2
    yield {"tool_calls": [{"index": 0, "id": "abc", "type": "function", "function": {"name": name, "arguments": ""}}]}
    yield {"tool_calls": [{"index": 0, "function": {"arguments": arguments[:middle]}}]}
    yield {"tool_calls": [{"index": 0, "function": {"arguments": arguments[middle:]}}]}


def _chunk(asked: dict[str, Any], choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> dict[str, Any]:
    return {
        "id": "c1", "object": "chat.completion.chunk", "created": 0, "model": asked["model"], "choices": choices,
        "usage": usage,
    }  # fmt: skip


@contextlib.contextmanager
def model(*failures: str) -> Iterator[Model]:
    """A running model, stopped at the end."""
    server = Model(list(failures))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
