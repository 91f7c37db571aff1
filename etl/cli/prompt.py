"""The prompt of `etl shell`: statements until `;`, history, completion of tables, columns, functions and keywords."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import duckdb

from etl.cli.results import print_json_answer, print_table
from etl.errors import EtlError, UsageError
from etl.query import Answer, connect_for_sql, execute, open_views

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

HELP = """\
A statement ends with ; and may take several lines. Tab completes, the arrow keys walk through history.
.tables          the views and tables there are
.columns NAME    the columns of one of them
.reload          see what was ingested since
.help            this text
.quit            leave (so does Ctrl-D)"""
DOT_COMMANDS = (".tables", ".columns", ".reload", ".help", ".quit", ".exit")

_TABLES = """
    SELECT table_name AS name, lower(replace(table_type, 'BASE ', '')) AS kind, count(column_name) AS columns
    FROM information_schema.tables JOIN information_schema.columns USING (table_catalog, table_schema, table_name)
    WHERE NOT starts_with(table_name, 'etl_') GROUP BY ALL ORDER BY ALL
"""
_WORDS = """
    SELECT word FROM (
        SELECT 1 AS place, table_name AS word FROM information_schema.tables WHERE NOT starts_with(table_name, 'etl_')
        UNION SELECT 2, column_name FROM information_schema.columns
        UNION SELECT 3, upper(keyword_name) FROM duckdb_keywords() WHERE keyword_category = 'reserved'
        UNION SELECT 4, function_name || '(' FROM duckdb_functions() WHERE function_name SIMILAR TO '[a-z][a-z0-9_]+'
    ) GROUP BY word ORDER BY min(place), word
"""


def history_file() -> Path:
    """Where the prompt keeps its history: $XDG_STATE_HOME/etl/history, by default under ~/.local/state."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "etl" / "history"


class Prompt:
    """SQL and dot commands over one lake, from a person or from a pipe."""

    def __init__(self, lake: str, *, as_json: bool = False, unsafe: bool = False) -> None:
        self._lake = lake
        self._as_json = as_json
        self._connection = connect_for_sql(lake, unsafe=unsafe)

    def ask(self) -> None:
        """Ask, run, print, until `.quit` or Ctrl-D. Errors are shown, and the prompt goes on."""
        session = self._session()
        click.echo("SQL over the lake; .tables lists what there is, .help what this prompt knows.", err=True)
        while True:
            try:
                if self.run(session.prompt("etl> ")):
                    return
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            except EtlError as error:
                click.echo(str(error), err=True)

    def run_script(self, text: str) -> None:
        """Run what a pipe holds, statement by statement; an error ends it."""
        for entry in self._entries(text):
            if self.run(entry):
                return

    def run(self, entry: str) -> bool:
        """Run one dot command or some statements; true where it asks to leave."""
        entry = entry.strip()
        if entry.startswith("."):
            return self._dot_command(*entry.rstrip(";").split())
        if entry.strip("; \n"):
            self._print(self._execute(entry))
        return False

    def is_whole(self, text: str) -> bool:
        """Whether what is typed so far can be run: a dot command, or statements up to a `;` in no string or comment."""
        stripped = text.strip()
        if not stripped or stripped.startswith("."):
            return True
        if not stripped.endswith(";"):
            return False
        try:
            self._connection.extract_statements(text)
        except duckdb.ParserException as error:
            return "unterminated" not in str(error)
        return True

    def words(self) -> list[str]:
        """What completion offers, in this order: tables and views, their columns, keywords, functions, dot commands."""
        return [*(str(word) for (word,) in self._connection.execute(_WORDS).fetchall()), *DOT_COMMANDS]

    def _entries(self, text: str) -> Iterator[str]:
        """The dot commands and whole statements of a script; what is left at its end needs no `;`."""
        pending = ""
        for line in text.splitlines(keepends=True):
            pending += line
            if self.is_whole(pending):
                yield pending
                pending = ""
        yield pending

    def _execute(self, sql: str) -> Answer:
        return execute(self._connection, sql, lake=self._lake)

    def _print(self, answer: Answer) -> None:
        if self._as_json:
            print_json_answer(answer)
        else:
            print_table(answer)

    def _dot_command(self, name: str, *arguments: str) -> bool:
        if name == ".tables":
            self._print(self._execute(_TABLES))
        elif name == ".columns":
            if len(arguments) != 1:
                raise UsageError(".columns wants the name of one table; .tables lists them")
            quoted = arguments[0].replace('"', '""')
            self._print(self._execute(f'SELECT column_name AS name, column_type AS type FROM (DESCRIBE "{quoted}")'))
        elif name == ".reload":
            open_views(self._connection, self._lake)
        elif name == ".help":
            click.echo(HELP)
        elif name not in DOT_COMMANDS:
            raise UsageError(f"{name} is no command of this prompt; .help lists them")
        return name in (".quit", ".exit")

    def _session(self) -> PromptSession[str]:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer

        history = history_file()
        history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        history.touch(mode=0o600)
        keys = KeyBindings()
        session: PromptSession[str] = PromptSession(
            history=FileHistory(str(history)),
            completer=WordCompleter(self.words(), ignore_case=True),
            complete_while_typing=False,
            lexer=PygmentsLexer(SqlLexer),
            key_bindings=keys,
            multiline=True,
            prompt_continuation="...> ",
        )

        @keys.add("enter", filter=Condition(lambda: self.is_whole(session.default_buffer.text)))
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        return session
