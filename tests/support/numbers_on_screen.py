"""Every number that a screen of the console shows, each in its sentence, and whether a command says the same.

A table of a screen has a row for each sentence: its words with ``#`` for a number, ``@`` for words without a digit and
``§`` for the number or id of one thing, and what gives the numbers. A sentence that no row has is a fault, so that a
new number must name its command; and so is a row that no sentence has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from playwright.sync_api import Page

#: Returns what stands for each ``#`` of a row, in order, or None if there is no such thing; it is given what stands for
#: each ``@`` and ``§``.
Gives: TypeAlias = Callable[..., Any]

_COLLECT = r"""() => {
  const left = "time, code, pre, input, textarea, svg, .memory-text, .mono, [hidden]";
  const parts = "section[aria-label], aside[aria-label], fieldset, [role=group][aria-label], [role=list][aria-label], " +
    "ul[aria-label], ol[aria-label]";
  const inline = (box) => box.tagName === "SPAN" || getComputedStyle(box).display.startsWith("inline");
  // What has no word of its own is only understood with what is around it.
  const bare = (text) => !/[a-z]{3}/i.test(text.replace(/\b(more|and)\b/g, ""));
  const words = (box) => {
    const walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT), found = [];
    while (walk.nextNode()) {
      const parent = walk.currentNode.parentElement;
      if (!parent.closest(left) && (parent.tagName === "OPTION" || parent.checkVisibility())) {
        const alone = !getComputedStyle(parent).display.startsWith("inline") || parent.matches(".tag, .num, .soft, b");
        found.push(alone ? ` ${walk.currentNode.data} ` : walk.currentNode.data);
      }
    }
    return found.join("").replace(/\s+/g, " ").replace(/ ([,;.:])/g, "$1").trim();
  };
  const memoryOf = (box) =>
    box.closest(".virtual-row, li")?.querySelector("a[href*='/memories/']")?.pathname.split("/").at(-1);
  const titleOf = (box) => memoryOf(box) ?? words(box.closest("li")?.querySelector("b, .cut") ?? box);
  const said = new Set();
  const add = (from, text) => {
    const part = from.parentElement.closest(parts);
    const legend = part?.querySelector("legend");
    const name = part && (part.tagName === "FIELDSET" && legend ? words(legend) : part.getAttribute("aria-label"));
    said.add(name ? `${name}: ${text}` : text);
  };
  const addOf = (text) => {
    const at = text.parentElement;
    if (at.tagName === "OPTION") return add(at, `to choose, ${words(at)}`);
    if (!/\d/.test(text.data) || at.closest(left) || !at.checkVisibility()) return undefined;
    const tag = at.closest(".tag");
    if (tag && memoryOf(tag)) return add(tag, `${memoryOf(tag)} is ${words(tag)}`);
    const cell = at.closest("td");
    if (cell) {
      const row = [...cell.parentElement.children];
      const first = row.map(words).find((each) => each && each !== words(cell));
      return add(cell, `${first}, ${words(cell.closest("table").querySelectorAll("thead th")[row.indexOf(cell)])}: ${words(cell)}`);
    }
    const value = at.closest("dd");
    let box = at;
    while (box !== main && box !== value && !["LI", "LABEL", "BUTTON"].includes(box.tagName) && (inline(box) || bare(words(box)))) box = box.parentElement;
    return add(box, value ? `${words(value.previousElementSibling)}: ${words(box)}` : words(box));
  };
  const main = document.querySelector("main");
  const walk = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (/\d/.test(walk.currentNode.data)) addOf(walk.currentNode);
  for (const drawn of main.querySelectorAll("[role=img][aria-label]")) {
    const label = drawn.getAttribute("aria-label");
    if (/\d/.test(label)) add(drawn, `drawn${titleOf(drawn) && ` of ${titleOf(drawn)}`}: ${label}`);
  }
  return [...said];
}"""


def sentences(page: Page) -> list[str]:
    """Return each sentence of a page that has a digit, after the name of its part.

    Left out are times, commands, fields, and the words of memories.
    """
    found: list[str] = page.evaluate(_COLLECT)
    return found


def faults(page: Page, table: Mapping[str, Gives]) -> list[str]:
    """Return where a screen and the commands of its table differ, a line each."""
    found, used = [], set()
    for sentence in sentences(page):
        row = next((row for row in table if _pattern(row).fullmatch(sentence)), None)
        if row is None:
            found.append(f"no command is named for: {sentence}")
            continue
        used.add(row)
        wanted = _filled(row, sentence, table[row])
        if wanted != sentence:
            found.append(f"the screen says: {sentence}\n  its command says: {wanted}")
    return found + [f"no sentence is like: {row}" for row in table if row not in used]


def lasting_faults(page: Page, table: Mapping[str, Gives], patience: int = 20_000) -> list[str]:
    """Return the faults that are left when so many milliseconds have passed, or when there is none."""
    step = 250
    for _ in range(patience // step):
        found = faults(page, table)
        if not found:
            break
        page.wait_for_timeout(step)
    return found


_PARTS = re.compile("([#@§])")


def _pattern(row: str) -> re.Pattern[str]:
    """Return what matches the sentences of a row; a number may be short of its total, as ``50+``."""
    groups = {"#": r"(\d[\d,.]*\+?)", "@": r"(\D+?)", "§": r"(\S+)"}
    return re.compile("".join(groups.get(part) or re.escape(part) for part in _PARTS.split(row)))


def _filled(row: str, sentence: str, gives: Gives) -> str:
    """Return the sentence with the numbers of its command."""
    match = _pattern(row).fullmatch(sentence)
    assert match is not None
    kinds = [part for part in _PARTS.split(row) if part in {"#", "@", "§"}]
    names = [text for kind, text in zip(kinds, match.groups(), strict=True) if kind != "#"]
    given = gives(*names)
    if given is None:
        return "there is no such thing"
    numbers = iter(given if isinstance(given, tuple | list) else [given])
    words = iter(names)
    parts = [
        _written(next(numbers)) if part == "#" else next(words) if part in {"@", "§"} else part
        for part in _PARTS.split(row)
    ]
    return "".join(parts)


def _written(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int) else str(number)
