"""Hostile words, in every field and name that a memory has: nothing runs, nothing leaves its place, all is drawn."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from keepward import Memory
from support.browser import NARROW, Console, loaded, screens, scrolls_sideways

pytestmark = pytest.mark.proof
_SCRIPTS = [
    "<script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    "<svg onload='window.ran = 1'></svg>",
    "<svg><script href='data:text/javascript,window.ran=1'></script></svg>",
    "<iframe srcdoc='<script>parent.ran = 1</script>'></iframe>",
    "<a href='javascript:window.ran=1'>click</a>",
    "javascript:window.ran=1",
    "data:text/html,<script>window.ran=1</script>",
    "<math><mtext></mtext><mi xlink:href='javascript:ran=1'>x</mi></math>",
    "<details open ontoggle='window.ran=1'>x</details>",
    "<style>* { display: none }</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<base href=https://evil.example/>",
    "<form action=https://evil.example><input name=q></form>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<template><img src=x onerror='window.ran=1'></template>",
    "</textarea><script>window.ran=1</script>",
    "</title><script>window.ran=1</script>",
    "{{constructor.constructor('window.ran=1')()}}",
    "${window.ran=1}",
    "[a](javascript:window.ran=1) ![b](https://evil.example/x.png)",
    "'\"><b>bold</b>",
    "<!--<img src='--><img src=x onerror=window.ran=1>//'>",
]
_UNSEEN = [
    "right\u202eleft",
    "left\u202dright\u202c",
    "\u2066isolated\u2069",
    "zero\u200bwidth\u200cjoin\u200der",
    "soft\u00adhyphen",
    "byte\ufeffmark",
    "tag\U000e0041\U000e0042s",
    "selector\ufe0f\U000e0101",
    "filler\u3164\u115f",
    "khmer\u17b4\u17b5vowels",
    "line\u2028and\u2029paragraph",
    "private\ue000use",
]
_SHAPES = [
    "x" * 1_190,
    "word " * 230,
    "Z" + "\u0300\u0301\u0302\u0303" * 60,
    "\u0634\u0643\u0631\u0627 " * 40,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 " * 30,
    "\ufdfd" * 60,
    "\n" * 200 + "end",
    "\t" * 200 + "end",
]
TEXTS = [*_SCRIPTS, *_UNSEEN, *_SHAPES]
#: Characters that must never reach the page as themselves.
BARE = "[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\u200c\\u00ad\\ufeff\\u2028\\u2029]"


def _line(text: str) -> str:
    # Fields of one line take no line breaks and are short; each gets the text as far as it takes it.
    return " ".join("".join(each for each in text if each.isprintable() or each in "\u202e\u200b").split())[:60] or "x"


def _fields(text: str) -> dict[str, object]:
    line = _line(text)
    return {
        "subject": line,
        "category": line,
        "tags": [line[:40]],
        "session": line,
        "evidence": [line],
        "metadata": {line: text[:500]},
    }


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, browser):
    """A store in which every field of its memories, and of what waits, is hostile."""
    console = Console(tmp_path_factory.mktemp("hostile"), browser)
    for number, text in enumerate(TEXTS):
        _write(console.owner, number, text)
        agent = console.agent("<img src=x>" if number == 0 else f"bot{number}")
        agent.remember(text, tier="core", key="mission", reason=_line(text), **_without(_fields(text), "evidence"))
    # A blob has no name of its own; what names it is the text of its memory.
    picture = console.owner.put_blob(b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.ran=1'/>")
    console.owner.remember("<img src=x onerror='window.ran=1'>.svg", tier="archival", blob=picture.ref, reason="seen")
    yield console
    console.close()


def _without(fields, *names):
    return {name: value for name, value in fields.items() if name not in names}


def _write(owner: Memory, number: int, text: str) -> None:
    outcome = owner.remember(f"{number} {text}", tier="archival", reason=_line(text), **_fields(text))
    assert outcome.outcome in {"committed", "quarantined"}, (text, outcome)


def _calm(page) -> dict[str, object]:
    """Return what hostile words did to a page."""
    return {
        "ran": page.evaluate("window.ran ?? null"),
        "strange": page.evaluate(
            "document.querySelectorAll('#app :is(script, iframe, img[src=x], base, form[action], meta, style, link)').length"
        ),
        "bare": page.evaluate(f"(document.body.innerText.match(/{BARE}/g) ?? []).length"),
        "sideways": scrolls_sideways(page),
        "outside": page.evaluate(
            "[...document.querySelectorAll('#app .memory-text')].filter((each) => each.getBoundingClientRect().right > innerWidth + 1).length"
        ),
    }


CALM = {"ran": None, "strange": 0, "bare": 0, "sideways": False, "outside": 0}


@pytest.mark.parametrize("path", screens())
def test_hostile_words_do_nothing_to_a_screen(hostile, path):
    with hostile.page(path) as page:
        loaded(page)
        wide = _calm(page)
        page.set_viewport_size(NARROW)
        loaded(page)
        assert (wide, _calm(page)) == (CALM, CALM)


def test_hostile_words_do_nothing_to_the_screen_of_one_memory(hostile):
    with hostile.page("/") as page:
        for each in hostile.owner.list_memories(limit=None):
            page.goto(f"{hostile.url}/console/memories/{each.id}")
            page.get_by_role("heading", level=1).wait_for()
            loaded(page)
            assert (each.text[:20], _calm(page)) == (each.text[:20], CALM)


def test_hostile_names_do_nothing_to_the_page_about_them(hostile):
    with hostile.page("/") as page:
        for text in TEXTS[::5]:
            page.goto(f"{hostile.url}/console/about?{urlencode({'name': _line(text)})}")
            page.get_by_role("heading", level=1).wait_for()
            loaded(page)
            assert (_line(text), _calm(page)) == (_line(text), CALM)


def test_emoji_is_one_picture_and_other_joiners_are_spelled_out(console):
    made = console.owner.remember("Chef 👩‍🍳 warns ⚠️ of a‍b.", tier="archival", reason="so")
    with console.page(f"/memories/{made.id}") as page:
        text = page.get_by_role("region", name="What it says")
        text.get_by_text("Chef 👩‍🍳 warns ⚠️ of a").wait_for()
        assert text.locator(".unseen").all_text_contents() == ["ZWJ"]


def test_each_hostile_proposal_is_drawn_complete_and_does_nothing(hostile):
    with hostile.page("/review") as page:
        seen = set()
        for each in hostile.owner.pending():
            page.locator(f'article a[href$="{each.id}"]').wait_for()
            seen.add(each.id)
            assert _calm(page) == CALM
            page.keyboard.press("j")
        assert len(seen) >= 40
