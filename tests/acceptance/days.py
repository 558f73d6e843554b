"""What somebody tells an assistant in a few weeks, the ways to store it, and the lines that a model reads of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from keepward import Memory
from keepward.core.compiled import CompiledContext

#: Ways to store a statement. How it was stored decides nothing about what a model reads.
WAYS = ("remember", "add", "session")
#: Messages of a person in one session.
TURNS = 8

#: Everyday statements of one person.
TOLD = tuple(
    """
I prefer tabs over spaces
We rent rooms in a house on Harbour Lane
Use British spelling in whatever you write for me
I can't eat gluten
My dentist is on Mill Square
The car is a grey estate from 2019
My sister Clara plays the oboe
I start work at half past seven
The cat is called Bramble
Our heating is serviced every October
I took the train to Bergen in spring
My bicycle has a flat rear tyre
The neighbours on the left keep bees
I studied geology in Leeds
My father turned seventy in June
We water the tomatoes in the evening
The spare key lies under the blue pot
I sing in a choir on Tuesdays
My phone has a cracked screen
The library closes early on Fridays
I want to learn Portuguese this year
Our kitchen has an induction hob
The printer needs a new drum
I had a cold last week
My favourite film is a silent comedy
The plumber charges sixty an hour
I gave up smoking three years ago
The garage door opens with a remote
My grandmother knitted this pullover
We vote by post
The bakery on the corner sells rye rolls
I run ten kilometres on Sundays
My glasses are minus two
The roof was painted with zinc paint
I write my diary in a green notebook
Our dog trainer moved to Wales
The budget for the trip is nine hundred
My passport photo is awful
I keep the receipts in a shoe box
The piano was tuned in March
My team ships the app every second Thursday
We drink rooibos after dinner
The router stands behind the sofa
I collect stamps with lighthouses
My boss is on parental leave
The allotment has a well
I sleep badly at full moon
Our tent leaks at one seam
The choir practises in the old chapel
My cousin repairs accordions
I lost an umbrella on the tram
The oven is two degrees too hot
We celebrate New Year at the lake
My desk faces north
The gym costs thirty a month
I read crime novels on the train
Our insurance number begins with a seven
The hedge is cut in autumn
My laptop has sixteen gigabytes
I once broke my left wrist
The kettle whistles a third
We met at a wedding in Cork
My handwriting leans to the left
The cellar is damp in winter
""".strip().splitlines()
)


def tell(memory: Memory, texts: Sequence[str], way: str, *, session: str = "s", reply: str = "") -> None:
    """Store statements of the user in one of ``WAYS``; ``reply`` is the assistant's answer to each."""
    if way == "remember":
        assert all(each.ok for each in memory.remember_many([*texts]))
        return
    for start in range(0, len(texts), TURNS):
        talk: list[dict[str, str]] = []
        for text in texts[start : start + TURNS]:
            talk.append({"role": "user", "content": text})
            talk += [{"role": "assistant", "content": reply}] if reply else []
        added = memory.add(talk, session=f"{session}-{start}" if way == "session" else None, extract=False)
        assert all(turn.ok for turn in added.turns)


def lines(context: CompiledContext | str) -> list[str]:
    """Return the lines of memories in a prompt."""
    text = context if isinstance(context, str) else context.text
    return re.findall(r"^\[.*", text, re.MULTILINE)


def recalled(context: CompiledContext) -> list[str]:
    """Return the ids of the recalled memories."""
    return [item.id for section in context.sections if section.name == "recalled" for item in section.items]


def line_with(context: CompiledContext | str, part: str) -> str:
    """Return the one line that has a text."""
    (found,) = [line for line in lines(context) if part in line]
    return found


def when(context: CompiledContext | str, part: str) -> tuple[str, str]:
    """Return day and time that a prompt shows for the one line that has a text; "" for none."""
    text = context if isinstance(context, str) else context.text
    day, found = "", []
    for line in text.splitlines():
        if line.startswith("## "):
            day = ""
        elif line.startswith("### "):
            day = line[4:14]
        elif line.startswith("[") and part in line:
            stamp = re.search(r" \((\d{4}-\d\d-\d\d)? ?(\d\d:\d\d(?::\d\d)?)?\)$", line)
            date, time = ("", "") if stamp is None else (stamp[1] or "", stamp[2] or "")
            # Lines below a heading of a day are those of that day until a date says otherwise.
            found.append((date or day, time))
    (only,) = found
    return only
