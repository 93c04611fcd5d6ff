"""The picture of README.md: one program, two data sets, two algorithms. `python -m docs.choice_picture` draws it anew.

It runs `programs/choose.jst`, whose noise is fresh each time: heights differ a little, the decisions almost never.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "assets" / "choose.svg"
INK, PALE, STRONG = "#334155", "#b6c2d1", "#0f766e"


def draw(path: Path) -> None:
    """Writes the released ages of the town and the village as SVG, each with what was predicted of each Option."""
    import matplotlib
    from matplotlib.figure import Figure

    from jostle import Session

    events = Session().run(ROOT / "programs" / "choose.jst").trace
    drawn = [event.fields for event in events if event.kind == "picture"]
    choices = [event.fields for event in events if event.kind == "choice"]
    with matplotlib.rc_context({"svg.hashsalt": "jostle", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        for axes, name, picture, choice in zip(figure.subplots(1, 2), ("Town", "Village"), drawn, choices, strict=True):
            (heights,) = picture["series"].values()
            axes.bar(picture["x"], heights, color=PALE, width=1.0)
            axes.set_title(f"{name}: the runtime chose {choice['chosen']}", color=STRONG, loc="left", weight="bold")
            lines = ["predicted error of a count"]
            for option, value in choice["predictions"].items():
                lines.append(f"{'▸' if option == choice['chosen'] else '  '} {option}  {abs(value):.1f}")
            axes.text(0.98, 0.95, "\n".join(lines), transform=axes.transAxes, ha="right", va="top", color=INK)
            axes.set_ylim(top=1.5 * max(heights))
            axes.set_xlabel("age", color=INK)
            axes.set_ylabel("people, with noise", color=INK)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(colors=INK)
        figure.savefig(path, metadata={"Creator": None, "Date": None}, facecolor="white")


if __name__ == "__main__":
    draw(PICTURE)
