"""The pages: every address, what it reads, what it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from etl.errors import EtlError, LakeError, UsageError
from etl.harmless import harmless
from etl.labels import label, take_back
from etl.lake import Label
from etl.pages import asset, facts, render
from etl.pages.conversation import page
from etl.pages.grid import grid
from etl.query import find_kin, find_rollout
from etl.serve.asked import SECONDS, ask
from etl.serve.attempts import attempts_page
from etl.serve.cookbook import questions
from etl.serve.guard import Guard, Secret
from etl.serve.listing import Filters, choices, listed
from etl.serve.rejects import reject, rejects
from etl.serve.store import Store, TooSlowError

FORM_BYTES = 64 << 10
"""A form is never longer."""


class Pages:
    """The lake and the secret behind all addresses."""

    def __init__(self, lake: str, secret: Secret, pseudonym_key: bytes | None, *, unsafe: bool = False) -> None:
        self.store = Store(lake)
        self.secret = secret
        self.pseudonym_key = pseudonym_key
        self.unsafe = unsafe
        """Whether the box for SQL runs all that is typed, with the rights of who started the server."""

    def show(self, template: str, here: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page with the frame of all pages."""
        shared = {"lake": self.store.lake, "here": here, "form_token": self.secret.form}
        return HTMLResponse(render(template, **shared, **values), status)

    def rollouts(self, request: Request) -> Response:
        """The list, filtered."""
        filters = Filters.of(request.query_params)
        found = self.store.read(lambda connection: listed(connection, filters))
        return self.show(
            "list.html", "rollouts", filters=filters, found=found, choices=self.store.kept("choices", choices)
        )

    def rollout(self, request: Request) -> Response:
        """One conversation, some hundred turns at a time."""
        first = request.query_params.get("from", "0")
        row, kin = self._row(request)
        shown = page(row, kin, first=int(first[:20]) if first.isascii() and first.isdigit() else 0)
        labels = [judgment for judgment in row["judgments"] if judgment["status"] == "labelled"]
        return self.show("rollout.html", "rollouts", page=shown, labels=labels)

    def whole_text(self, request: Request) -> Response:
        """The text of one message, or the arguments of one call, as plain text."""
        row, _ = self._row(request)
        wanted = request.path_params["wanted"]
        if request.path_params["what"] == "messages":
            if not (wanted.isascii() and wanted.isdigit() and int(wanted[:20]) < len(row["messages"])):
                raise HTTPException(404, "no such message")
            text = row["messages"][int(wanted[:20])]["content"]
        else:
            steps = [step for step in row["steps"] if step["call_id"] == wanted]
            if not steps:
                raise HTTPException(404, "no such call")
            text = steps[0]["raw_arguments"] or steps[0]["arguments"]
        return PlainTextResponse(harmless(text))

    def label(self, request: Request, form: dict[str, str]) -> Response:
        """Give a label, or take one back."""
        rollout_id = request.path_params["rollout_id"]
        if form.get("take_back"):
            take_back(self.store.lake, rollout_id, form["take_back"])
        else:
            value = form.get("value", "").strip()
            try:
                number = float(value) if value else None
            except ValueError:
                raise UsageError(f"{value!r} is no number") from None
            word, reason = form.get("label", "").strip() or None, form.get("reason", "").strip() or None
            given = Label(form.get("name", "").strip(), word, number, reason)
            label(self.store.lake, rollout_id, given, pseudonym_key=self.pseudonym_key)
        return RedirectResponse(f"/rollouts/{quote(rollout_id, safe='')}#labels", 303)

    def attempts(self, request: Request) -> Response:
        """The attempts at one task, two of them beside each other."""
        task, query = request.path_params["task_id"], request.query_params
        shown = self.store.read(
            lambda connection: attempts_page(connection, task, query.get("left"), query.get("right"))
        )
        return self.show("attempts.html", "rollouts", task=task, **shown._asdict())

    def tools(self, request: Request) -> Response:
        """Which tools fail, and how often."""
        return self.show("tools.html", "tools", rows=self.store.kept("tools", facts.tools))

    def coverage(self, request: Request) -> Response:
        """The grid, each cell a way to its rows."""
        return self.show("coverage.html", "coverage", grid=self.store.kept("grid", grid))

    def rejects(self, request: Request) -> Response:
        """What could not be used."""
        found = self.store.read(lambda connection: rejects(connection, request.query_params))
        return self.show("rejects.html", "rejects", found=found)

    def reject(self, request: Request) -> Response:
        """One of them, with its bytes."""
        found = self.store.read(lambda connection: reject(connection, request.path_params["reject_id"]))
        if found is None:
            raise HTTPException(404, "no such reject: it may have been read since")
        return self.show("reject.html", "rejects", found=found)

    def sql(self, request: Request) -> Response:
        """The box for SQL, with the answer under it."""
        text = request.query_params.get("q", "")
        answered, problem = None, ""
        if text.strip():
            try:
                answered = ask(self.store.lake, text, unsafe=self.unsafe)
            except UsageError as error:
                problem = str(error)
        return self.show(
            "sql.html",
            "sql",
            text=text,
            answered=answered,
            problem=problem,
            questions=questions(),
            seconds=SECONDS,
            unsafe=self.unsafe,
        )

    def _row(self, request: Request) -> Any:
        wanted = request.path_params["rollout_id"]

        def read(connection: Any) -> Any:
            row = find_rollout(connection, wanted)
            return row, find_kin(connection, row)

        try:
            return self.store.read(read)
        except UsageError as error:
            raise HTTPException(404, str(error)) from None


def application(lake: str, secret: Secret, pseudonym_key: bytes | None = None, *, unsafe: bool = False) -> Guard:
    """The whole of it, for a server on loopback."""
    pages = Pages(lake, secret, pseudonym_key, unsafe=unsafe)
    app = Starlette(
        routes=[
            Route("/", lambda _: RedirectResponse("/rollouts")),
            Route("/rollouts", pages.rollouts),
            Route("/rollouts/{rollout_id}", pages.rollout),
            Route("/rollouts/{rollout_id}/label", _form(pages, pages.label), methods=["POST"]),
            Route("/rollouts/{rollout_id}/{what:str}/{wanted}", pages.whole_text),
            Route("/tasks/{task_id:path}", pages.attempts),
            Route("/tools", pages.tools),
            Route("/coverage", pages.coverage),
            Route("/rejects", pages.rejects),
            Route("/rejects/{reject_id}", pages.reject),
            Route("/sql", pages.sql),
            Route("/style.css", lambda _: Response(asset("style.css"), media_type="text/css")),
            Route("/page.js", lambda _: Response(asset("page.js"), media_type="text/javascript")),
        ],
        exception_handlers={
            HTTPException: _problem(pages),
            UsageError: _problem(pages),
            EtlError: _problem(pages),
        },
    )
    return Guard(app, secret)


def _form(pages: Pages, answer: Callable[[Request, dict[str, str]], Response]) -> Any:
    """An endpoint for a form of ours: its fields, after a look at its token."""

    async def endpoint(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > FORM_BYTES:
                raise HTTPException(413, f"a form has at most {FORM_BYTES >> 10} kB")
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20)
        form = {name: values[0] for name, values in fields.items()}
        if not pages.secret.knows_form(form.get("form_token", "")):
            raise HTTPException(403, "this form is not from a page of this start; go back and reload it")
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(answer, request, form)

    return endpoint


def _problem(pages: Pages) -> Callable[[Request, Exception], Response]:
    """An error as a page of one sentence."""

    def handler(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return pages.show("problem.html", "", status=error.status_code, said=str(error.detail))
        status = 400 if isinstance(error, UsageError) else 503 if isinstance(error, TooSlowError | LakeError) else 500
        return pages.show("problem.html", "", status=status, said=str(error))

    return handler
