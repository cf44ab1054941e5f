"""Verdicts as one HTML page that needs nothing else: a table, and a plot of all pairs of each series."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from string import Template

from plumbline.gate.judge import EXIT, Verdict, percent, severity, worst
from plumbline.gate.sequential import CAP, LOOKS, Rule
from plumbline.gate.validity import Series

#: plots on the page, the worst series first; the table has them all
PLOTS = 200
#: size of a plot in its own units, and the space that its axis takes on the left and below
WIDTH, HEIGHT, LEFT, BELOW = 720, 170, 64, 24

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gate: $verdict</title>
<style>
:root { color-scheme: light dark; --text: #1b1f24; --back: #ffffff; --line: #c9ced6; --soft: #5b6470;
  --pass: #1a7f37; --fail: #c3232b; --open: #8a5a00; --invalid: #7a3fb0; --dot: #2f6fd0; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --back: #14171c; --line: #3a414c; --soft: #9aa4b2;
  --pass: #4cc26a; --fail: #ff6b6b; --open: #e0a63a; --invalid: #c193f0; --dot: #79aefc; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 0 auto;
  max-width: 72rem; padding: 1rem; }
.wide { overflow-x: auto; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dd { margin: 0; }
caption { text-align: left; } td:first-child { min-width: 14rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; }
.PASS { color: var(--pass); } .FAIL { color: var(--fail); } .INCONCLUSIVE { color: var(--open); }
.INVALID { color: var(--invalid); }
b.verdict { font-weight: 700; }
svg { width: 100%; max-width: 60rem; height: auto; }
svg text { fill: var(--soft); font-size: 12px; }
.dot { fill: var(--dot); } .aside { fill: none; stroke: var(--soft); }
.axis { stroke: var(--line); } .margin { stroke-dasharray: 4 4; } .tolerance { stroke: var(--open); }
.detect { stroke: var(--fail); } .decided { stroke: var(--soft); stroke-dasharray: 2 3; }
code { overflow-wrap: anywhere; }
footer, .soft { color: var(--soft); }
a { color: inherit; }
</style>
</head>
<body>
<main>
<h1>Gate: <span class="$verdict">$verdict</span></h1>
<p>$counts; $margins.</p>
$facts
<div class="wide"><table>
<caption class="soft">All series, the worst first. Ratio: candidate / baseline. Each end of an interval is right with
99 %.</caption>
<thead><tr><th scope="col">series</th><th scope="col">verdict</th><th scope="col" class="number">ratio</th>
<th scope="col" class="number">interval</th><th scope="col" class="number">pairs</th>
<th scope="col" class="number">again</th><th scope="col" class="number">ruled out from</th></tr></thead>
<tbody>
$rows
</tbody></table></div>
$plots
</main>
<footer><p>$note</p></footer>
</body>
</html>
""")


def page(series: Sequence[Series], verdicts: Sequence[Verdict], rule: Rule, facts: Sequence[tuple[str, str]]) -> str:
    """The page of ``verdicts``, each of the series at its place; ``facts`` are shown as name and text."""
    order = sorted(range(len(verdicts)), key=lambda place: severity(verdicts[place]), reverse=True)
    counts = Counter(item.verdict for item in verdicts)
    drawn = [place for place in order if verdicts[place].ratio is not None][:PLOTS]
    without = len(verdicts) - len(drawn)
    listed = "\n".join(f"<dt>{escape(name)}</dt><dd><code>{escape(text)}</code></dd>" for name, text in facts)
    return _PAGE.substitute(
        verdict=worst(verdicts),
        counts=", ".join(f"{counts[name]} {name}" for name in EXIT if counts[name]),
        margins=f"{percent(rule.tolerance)} tolerated, {percent(rule.must_detect)} must be seen, "
        "where a series has no margins of its own",
        facts=f"<dl>\n{listed}\n</dl>" if listed else "",
        rows="\n".join(_row(place, series[place], verdicts[place]) for place in order),
        plots="\n".join(_figure(place, series[place], verdicts[place], rule) for place in drawn),
        note=f"{without} series without a plot: nothing that could be judged, or better than the {PLOTS} worst."
        if without
        else "Every pair that was measured is in the plots.",
    )


def _row(place: int, series: Series, item: Verdict) -> str:
    ratio = "" if item.ratio is None else f"{item.ratio:.4g}"
    interval = "" if item.interval is None else f"{item.interval[0]:.4g} to {item.interval[1]:.4g}"
    blind = percent(item.detectable) if item.detectable is not None and item.verdict == "PASS" else ""
    numbers = (ratio, interval, str(item.pairs), str(len(series.aside)), blind)
    name = escape(item.series)
    link = f'<a href="#s{place}">{name}</a>' if item.ratio is not None else name
    cells = "".join(f'<td class="number">{text}</td>' for text in numbers)
    verdict = f'<b class="verdict {item.verdict}">{item.verdict}</b>'
    reason = f'<br><span class="soft">{escape(item.reason)}</span>' if item.reason else ""
    return f"<tr><td>{link}{reason}</td><td>{verdict}</td>{cells}</tr>"


def _figure(place: int, series: Series, item: Verdict, rule: Rule) -> str:
    rule = item.rule or rule
    verdict = f'<b class="verdict {item.verdict}">{item.verdict}</b>'
    above = "slower" if series.better == "lower" else "faster"
    return (
        f'<section id="s{place}"><h2>{escape(item.series)}: {verdict}</h2>\n{_plot(series, item, rule)}\n'
        f'<p class="soft">Pairs in the order measured; above 1 is {above}. Lines: {percent(rule.tolerance)} '
        f"tolerated, {percent(rule.must_detect)} must be seen; the dotted upright one: {item.pairs} pairs, "
        f" where judging stopped. Circles: disturbed pairs, measured again.</p></section>"
    )


def _plot(series: Series, item: Verdict, rule: Rule) -> str:
    worse = 1 if series.better == "lower" else -1
    kept = [_ratio(*pair) for pair in zip(series.baseline[:CAP], series.candidate[:CAP], strict=True)]
    aside = [(before, _ratio(first, second)) for before, first, second in series.aside]
    margins = [(1 + margin) ** worse for margin in (rule.tolerance, rule.must_detect)]
    shown = [*kept, *(value for _, value in aside), *margins, 1.0]
    low, high = math.log(min(shown)), math.log(max(shown))
    room = max(0.06 * (high - low), 1e-6)
    low, high = low - room, high + room

    def across(pair: float) -> float:
        return LEFT + (WIDTH - LEFT - 12) * (pair + 0.5) / max(len(kept), LOOKS[0])

    def up(ratio: float) -> float:
        return 8 + (HEIGHT - BELOW - 8) * (high - math.log(ratio)) / (high - low)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(_told(item), quote=True)}">']
    for ratio, kind in ((1.0, "axis"), (margins[0], "margin tolerance"), (margins[1], "margin detect")):
        y = up(ratio)
        parts.append(f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - 12}" y1="{y:.1f}" y2="{y:.1f}"/>')
    parts += _labels([math.exp(high), 1.0, math.exp(low)], up)
    end = across(item.pairs - 0.5)
    parts.append(f'<line class="decided" x1="{end:.1f}" x2="{end:.1f}" y1="8" y2="{HEIGHT - BELOW}"/>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 6}">pair 1</text>')
    parts.append(f'<text x="{WIDTH - 12}" y="{HEIGHT - 6}" text-anchor="end">{max(len(kept), LOOKS[0])}</text>')
    for pair, value in enumerate(kept):
        parts.append(_dot("dot", across(pair), up(value), f"pair {pair + 1}: {value:.5g}"))
    for pair, value in aside:
        parts.append(_dot("aside", across(pair - 0.4), up(value), f"measured again: {value:.5g}"))
    return "".join([*parts, "</svg>"])


def _ratio(baseline: float, candidate: float) -> float:
    """Candidate over baseline, within what can be drawn."""
    return min(max(candidate / baseline, 1e-100), 1e100) if baseline > 0 else 1e100


def _labels(ratios: list[float], up: Callable[[float], float]) -> list[str]:
    """Numbers beside the axis, those left out that would lie on the one before."""
    found, last = [], -math.inf
    for ratio in ratios:
        y = up(ratio)
        if y - last >= 14:
            found.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{ratio:.4g}</text>')
            last = y
    return found


def _dot(kind: str, x: float, y: float, title: str) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{title}</title></circle>'


def _told(item: Verdict) -> str:
    return f"{item.series}: {item.verdict}, ratio {item.ratio:.4g} after {item.pairs} pairs"
