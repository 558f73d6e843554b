"""Count the tokens of a text: by an estimate without dependencies, or exactly with a tokenizer.

Invariants
(1) An empty text has 0 tokens, any other at least 1. The count of a text is always the same.
(2) The estimate is nearly additive: count(a + b) <= count(a) + count(b) + 1. So if the parts fit a budget, the complete
    text does. The reason is that costs never grow faster than the length.
(3) The receipt of a compiled context contains the counter's name, because counters differ.
(4) No piece crosses a line end, so the cost of a text is the sum of its lines. The costs of lines are cached by hash,
    without the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from keepward.core.patterns import lazy_regex
from keepward.core.value import suggestion
from keepward.errors import ModelUnavailable
from keepward.locks import ForkSafeLock

if TYPE_CHECKING:
    from keepward.ports.models import TokenCounter

#: The names that `choose_counter` understands.
NAMES = ("estimate", "tiktoken:<encoding>", "tokenizers:<path of a tokenizer.json>")

#: Costs are integers in 1/24 token, so that sums are exact.
_UNIT = 24

#: Scripts without spaces, and Korean: about one token per character.
_WIDE = (
    r"[\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff]"
)
#: Scripts with the most tokens per character: South and South-East Asian ones, Georgian, Ethiopic.
_DENSE = r"\u0900-\u139f\u1780-\u17ff"
_ACCENTED = r"\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u036f\u1e00-\u1eff"
_MARK = r"[!-/:-@\[-`{-~]"

#: Kinds of pieces, in the order of matching. A piece costs the maximum of the first number and of the second number
#: times its characters. The costs are based on published characters per token of byte-pair vocabularies with 100,000 to
#: 200,000 entries, rounded up: an exceeded budget is worse than an unused rest.
_KINDS: tuple[tuple[str, str, int, int], ...] = (
    ("wide", _WIDE + "+", 0, 24),
    ("capitals", r"[A-Z]{2,}(?![a-z])|[A-Z]+(?=[A-Z][a-z])", 24, 8),
    ("word", r"[A-Z]?[a-z]+|[A-Z]", 24, 5),
    ("digits", r"\d{1,3}", 24, 0),
    ("accented", rf"[{_ACCENTED}]+", 12, 12),
    ("dense", rf"[{_DENSE}]+", 24, 16),
    ("letters", rf"[^\W\d_A-Za-z{_ACCENTED}{_DENSE}]+", 24, 8),
    ("line", r"[^\S\n]*\n\s*", 24, 0),
    ("blanks", r"\s{2,}", 24, 0),
    # One space joins the word after it, but not a number.
    ("before_digits", r"\s(?=\d)", 24, 0),
    ("blank", r"\s", 0, 0),
    ("rule", rf"(?P<mark>{_MARK})(?P=mark){{3,}}", 24, 3),
    ("joint", rf"{_MARK}(?=[A-Za-z])", 12, 0),
    ("signs", rf"{_MARK}{{1,2}}", 24, 0),
    ("symbol", r"[\u00a1-\u2bff\u3000-\u303f\uff00-\uffef]", 24, 0),
    ("other", r"(?s:.)", 48, 0),
)
_PIECE = lazy_regex("|".join(f"(?P<{kind}>{pattern})" for kind, pattern, _, _ in _KINDS))
#: Minimum cost of a piece of each kind, and its cost of a character.
_COSTS = {kind: (least, each) for kind, _, least, each in _KINDS}
_LINE_END = _COSTS["line"][0]
_LINE = lazy_regex(r"[^\n]*\n\s*|[^\n]+")
#: Maximum number of cached costs; at the limit the cache is emptied.
_MAX_CACHED_LINES = 32_768


class EstimateCounter:
    """Estimates what modern byte-pair tokenizers count, for prose, code and text without spaces.

    The costs of lines are cached, because most lines of a context were in the one before. The estimate is high for
    English, code and Chinese. It is low for languages with long compounds: for German, a real tokenizer may count a
    quarter more. A new line takes about 2 microseconds a word.
    """

    #: Name and revision of the estimate.
    name = "estimate-v1"

    def __init__(self) -> None:
        self._line_costs: dict[tuple[int, int], int] = {}

    def count(self, text: str) -> int:
        """Return the estimated tokens; see the module's invariants (1) and (2)."""
        return max(1, -(-sum(map(self._line_cost, _LINE.findall(text))) // _UNIT)) if text else 0

    def _line_cost(self, line: str) -> int:
        # Two lines have the same hash and length once in 2**60 pairs; then one estimate is wrong.
        words = line.rstrip() if "\n" in line else line
        # The end of a line, with the blanks around it, is one piece.
        ending = 0 if words is line else _LINE_END
        key = (hash(words), len(words))
        cost = self._line_costs.get(key)
        if cost is None:
            if len(self._line_costs) >= _MAX_CACHED_LINES:
                self._line_costs.clear()
            cost = 0
            for piece in _PIECE.finditer(words):
                least, each = _COSTS[piece.lastgroup or "other"]
                cost += max(least, each * (piece.end() - piece.start()))
            self._line_costs[key] = cost
        return cost + ending


class TokenizerCounter:
    """Counts exactly, with a tokenizer that `load` returns at the first count."""

    def __init__(self, name: str, load: Callable[[], Callable[[str], int]]) -> None:
        #: Package and vocabulary.
        self.name = name
        self._load = load
        self._lock = ForkSafeLock()
        self._tokens: Callable[[str], int] | None = None

    def count(self, text: str) -> int:
        """Return the tokens of the complete text; a special token written in it counts as text.

        Raises:
            ModelUnavailable: the package is not installed, or does not have or understand the vocabulary.
        """
        if not text:
            return 0
        with self._lock:
            if self._tokens is None:
                self._tokens = self._load()
        # Tokenizers take UTF-8 only, so a lone surrogate counts as one replacement character. Some drop blanks; a text
        # of blanks counts as one token all the same (1).
        return max(1, self._tokens(text.encode("utf-8", "replace").decode()))


def tiktoken_counter(encoding: str) -> TokenizerCounter:
    """Return a counter for OpenAI's models; tiktoken may download the vocabulary, such as "o200k_base"."""

    def load() -> Callable[[str], int]:
        try:
            encoder = import_module("tiktoken").get_encoding(encoding)
        except ModuleNotFoundError as error:
            raise ModelUnavailable("this counter needs the package tiktoken: pip install tiktoken") from error
        except (ValueError, OSError) as error:
            raise ModelUnavailable(f"tiktoken cannot load the encoding {encoding!r}") from error
        return lambda text: len(encoder.encode(text, disallowed_special=()))

    return TokenizerCounter(f"tiktoken:{encoding}", load)


def tokenizers_counter(path: str | Path) -> TokenizerCounter:
    """Return a counter for the model whose `tokenizer.json` is at `path`, by the package tokenizers.

    The name contains a hash of the file and not its path, so that receipts agree between machines.

    Raises:
        ModelUnavailable: the file cannot be read.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelUnavailable(f"cannot read the tokenizer file {Path(path).name}") from error

    def load() -> Callable[[str], int]:
        try:
            tokenizer = import_module("tokenizers").Tokenizer.from_str(data.decode("utf-8"))
        except ModuleNotFoundError as error:
            raise ModelUnavailable("this counter needs the package tokenizers: pip install tokenizers") from error
        # The package raises bare Exception for an invalid file.
        except Exception as error:
            raise ModelUnavailable("the tokenizer file is not a tokenizer.json") from error
        # A tokenizer of an embedder often cuts and pads every text to one length.
        tokenizer.no_padding()
        tokenizer.no_truncation()
        # Without the special tokens that a model adds around a text.
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)

    return TokenizerCounter(f"tokenizers:{hashlib.sha256(data).hexdigest()[:12]}", load)


def choose_counter(name: str) -> TokenCounter:
    """Return the counter of that name; loads no vocabulary.

    Raises:
        ValueError: the name is unknown; the message lists `NAMES`.
        ModelUnavailable: the named file cannot be read.
    """
    kind, _, rest = name.strip().partition(":")
    match kind, rest:
        case (("estimate" | "estimate-v1"), ""):
            return EstimateCounter()
        case "tiktoken", _ if rest:
            return tiktoken_counter(rest)
        case "tokenizers", _ if rest:
            return tokenizers_counter(rest)
    raise ValueError(f"no token counter is named {name!r}; {suggestion(name, NAMES)}choose one of: {', '.join(NAMES)}")
