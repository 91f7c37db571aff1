"""Real models: any endpoint that speaks OpenAI's chat completions (OpenAI, vLLM, Ollama, gateways), streamed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from etl.conversation import Message, Tokens
from etl.errors import MissingExtraError
from etl.simulator.attempts import Played
from etl.simulator.outside import AgentFailed, as_chat, converse, from_chat
from etl.simulator.play import Play
from etl.simulator.situation import Situation
from etl.simulator.user import TemplateUser

if TYPE_CHECKING:
    import openai

_OVER = "<end>"


class Endpoint:
    """One endpoint. Retries (with back-off), time-outs and streaming are the client library's."""

    def __init__(
        self, base_url: str | None = None, api_key: str | None = None, *, timeout: float = 60.0, max_retries: int = 3,
        temperature: float | None = None, prices: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        try:
            import openai
        except ImportError as error:
            raise MissingExtraError(
                'asking a model needs the package openai; get it with: pip install "rollout-etl[agent]"'
            ) from error
        # Local servers want no key, and the library wants one.
        self._client = openai.OpenAI(
            base_url=base_url, api_key=api_key or "none", timeout=timeout, max_retries=max_retries
        )
        self._failures: tuple[type[Exception], ...] = (openai.OpenAIError,)
        self._temperature = temperature
        self._prices = prices

    def complete(self, model: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]], seed: int) -> Message:
        """The next message, with the model's name and its tokens; AgentFailed where there is none.

        An answer that breaks off is asked for again from the start, as often as a failed request is.
        """
        asked: dict[str, Any] = {
            "model": model, "messages": messages, "stream": True, "stream_options": {"include_usage": True},
            "seed": seed % (1 << 31),
        }  # fmt: skip
        if tools:
            asked["tools"] = tools
        if self._temperature is not None:
            asked["temperature"] = self._temperature
        tries = 1 + self._client.max_retries
        for number in range(tries):
            try:
                return _gathered(self._client.chat.completions.create(**asked))
            except _BrokenOffError as broken:
                if number == tries - 1:
                    raise AgentFailed(f"{model}: {broken}, {tries} times") from broken
            except self._failures as error:
                raise AgentFailed(f"{model}: {type(error).__name__}: {_in_one_line(error)}") from error
        raise AssertionError("unreachable")

    def cost(self, tokens: Tokens) -> Tokens:
        """The tokens with what they cost, where prices (US dollars a million tokens, in and out) are known."""
        if self._prices is not None:
            read, written = tokens.input_tokens or 0, tokens.output_tokens or 0
            tokens.cost_usd = (read * self._prices[0] + written * self._prices[1]) / 1e6
        return tokens


class ModelAgent:
    """A model as the agent; a template, or a model too, as the person asking."""

    def __init__(
        self, endpoint: Endpoint, model: str, *, user_model: str | None = None, concurrency: int = 8
    ) -> None:  # fmt: skip
        self.name = model
        self.concurrency = concurrency
        self._endpoint, self._user_model = endpoint, user_model

    def play(self, situation: Situation, seed: int) -> Played:
        """One attempt."""
        if self._user_model is not None:
            person: Any = _ModelUser(self._endpoint, self._user_model, situation, seed)
        else:
            person = TemplateUser(situation, seed)

        def reply(play: Play) -> Message:
            messages = [as_chat(message) for message in play.messages]
            return self._endpoint.complete(self.name, messages, situation.domain.definitions, seed + len(messages))

        played = converse(situation, reply, person)
        used = self._endpoint.cost(_summed(played.play.messages))
        last = next((m for m in reversed(played.play.messages) if m.role == "assistant"), None)
        return played._replace(
            model=self.name, usage=used if used.output_tokens is not None else None,
            finish_reason=None if last is None else last.finish_reason,
        )  # fmt: skip


class _ModelUser:
    """A model that plays the person."""

    def __init__(self, endpoint: Endpoint, model: str, situation: Situation, seed: int) -> None:
        self._endpoint, self._model, self._seed = endpoint, model, seed
        self._situation = situation
        self.usage: Tokens | None = None

    def answer(self, play: Play) -> str | None:
        """What the person writes next; None where they have nothing more to say."""
        said = [
            {"role": "assistant" if message.role == "user" else "user", "content": message.content}
            for message in play.messages
            if message.role == "user" or (message.role == "assistant" and message.content)
        ]
        asked = [{"role": "system", "content": _part_of(self._situation)}, *said]
        message = self._endpoint.complete(self._model, asked, [], self._seed + len(said))
        used = self.usage or Tokens(0, 0)
        self.usage = self._endpoint.cost(
            Tokens(
                (used.input_tokens or 0) + (message.input_tokens or 0),
                (used.output_tokens or 0) + (message.output_tokens or 0),
            )
        )
        text = message.content.strip()
        return None if not text or _OVER in text else text


def _part_of(situation: Situation) -> str:
    """What a model is told that plays the person."""
    who = situation.who
    wants = "\n".join(f"- {goal.meaning.verb} {goal.meaning.entity}: {goal.arguments}" for goal in situation.goals)
    return (
        f"You play {who.name} from {who.city}, a customer who writes to a support agent. Your mood: "
        f"{situation.cell['stance']}. You know and want only this:\n{wants or '- ' + situation.ask}\n"
        "Write the customer's next message and nothing else, short and natural. Give what the agent asks for if you "
        f"know it, confirm if asked. When there is nothing more to say, write {_OVER}."
    )


class _BrokenOffError(Exception):
    """A streamed answer ended before it was whole."""


def _gathered(stream: Iterable[openai.types.chat.ChatCompletionChunk]) -> Message:
    """The message of a stream, its calls put together from their pieces."""
    texts: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    reason, model, usage = None, None, None
    for chunk in stream:
        model = chunk.model or model
        usage = chunk.usage or usage
        for choice in chunk.choices:
            reason = choice.finish_reason or reason
            texts.append(choice.delta.content or "")
            for piece in choice.delta.tool_calls or ():
                call = calls.setdefault(piece.index, {"id": None, "function": {"name": "", "arguments": ""}})
                call["id"] = piece.id or call["id"]
                if piece.function is not None:
                    call["function"]["name"] += piece.function.name or ""
                    call["function"]["arguments"] += piece.function.arguments or ""
    if reason is None:
        raise _BrokenOffError("the answer broke off")
    message = from_chat({"content": "".join(texts), "tool_calls": [calls[index] for index in sorted(calls)]})
    message.model, message.finish_reason = model, reason
    if usage is not None:
        message.input_tokens, message.output_tokens = usage.prompt_tokens, usage.completion_tokens
    return message


def _summed(messages: Iterable[Message]) -> Tokens:
    """The tokens of the agent's own messages."""
    told = [m for m in messages if m.role == "assistant" and m.output_tokens is not None]
    if not told:
        return Tokens()
    return Tokens(sum(m.input_tokens or 0 for m in told), sum(m.output_tokens or 0 for m in told))


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
