"""The jobs command: what maintenance there is, when it is due, and running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.cli.screen import Screen
    from keepward.model.job import JobState, Run

_STYLES = {"run": "bold green", "failed": "bold red", "skipped": "dim"}


def jobs(
    call: Call,
    action: Annotated[str | None, typer.Argument(metavar="[run]", help="Run instead of listing.")] = None,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The job to run.")] = None,
    due: Annotated[bool, typer.Option("--due", help="Run every job that is due.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Run it although it is not due.")] = False,
) -> Answer:
    """List the maintenance jobs, or run one: `jobs run NAME`, or all that are due: `jobs run --due`.

    What is due runs by itself, while a server runs and after commands that write, unless `maintenance` is off. Jobs
    only propose; what they put away comes back with `restore`, and a commit of theirs is undone with `rollback`.
    """
    if action is None:
        if due or force:
            raise InvalidInput("--due and --force go with `jobs run`")
        return _list(call)
    if action != "run":
        raise InvalidInput("jobs takes no action but run; without one it lists them")
    if (name is None) != due:
        raise InvalidInput("jobs run takes the NAME of a job, or --due")
    if due and force:
        raise InvalidInput("--force goes with the NAME of a job")
    return _run(call, name, force=force)


def _list(call: Call) -> Answer:
    with call.memory("decide") as memory:
        found = [_state(each) for each in memory.jobs()]

    def draw(screen: Screen) -> None:
        rows = [
            (
                each["name"],
                each["schedule"].removesuffix(" UTC"),
                "running" if each["running_until"] else "due" if each["due"] else _short(each["due_at"]),
                each["last_outcome"] or "never ran",
                _short(each["last_at"]),
            )
            for each in found
        ]
        screen.table(("job", "schedule", "next", "last", "last ran, UTC"), rows)

    return Answer(data={"jobs": found, "count": len(found)}, show=draw)


def _run(call: Call, name: str | None, *, force: bool) -> Answer:
    with call.memory("decide") as memory:
        runs = memory.run_due() if name is None else [memory.run_job(name, force=force)]
    told = [_told(each) for each in runs]
    well = all(each.outcome != "failed" and not each.counts.get("faults") for each in runs)

    def draw(screen: Screen) -> None:
        if not told:
            screen.line("No job is due.", "dim")
        for each in told:
            screen.line(f"{each['job']}: {each['outcome']}", _STYLES[each["outcome"]])
            screen.line(each["why"], indent=2)
            for reason in each["reasons"]:
                screen.line(f"- {reason['detail']}", indent=2, hang=2)
            for waiting in each["proposals"]:
                screen.line(f"waits for you: keepward approve {waiting}", indent=2)
            screen.line(f"receipt {each['receipt']}", "dim", indent=2)

    return Answer(data={"runs": told, "count": len(told), "ok": well}, show=draw, code=0 if well else 1)


def _state(state: JobState) -> dict[str, Any]:
    from keepward.present import plain

    return dict(plain(state))


def _told(run: Run) -> dict[str, Any]:
    from keepward.present import plain

    return {**plain(run), "receipt": run.receipt.id}


def _short(instant: str | None) -> str:
    return instant[:16].replace("T", " ") if instant else "-"
