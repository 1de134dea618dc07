# SPDX-License-Identifier: GPL-2.0-or-later
"""What must hold for every report, whatever its recording says: check.py PREFIX (of .txt, .json, .folded, .svg)."""
import json
import re
import sys
import xml.etree.ElementTree as ElementTree

KEYS = ["schema", "unit", "invocation_id", "recording", "result", "start", "verdict", "findings", "breakdown",
        "milestones", "processes", "stacks", "modules", "cost", "losses"]

prefix = sys.argv[1]
report = json.load(open(prefix + ".json", encoding="utf-8", errors="strict"))
assert list(report) == KEYS, list(report)
assert report["schema"] == "startprof.report/1"
assert list(report["start"]) == ["type", "duration_usec", "queue_usec", "before_exec_usec"]
assert list(report["verdict"]) == ["cause", "summary", "share", "duration_usec", "evidence", "advice"]
for finding in report["findings"]:
    assert list(finding) == ["cause", "summary", "share", "duration_usec", "evidence", "advice", "stack"]
    for frame in finding["stack"]:
        assert list(frame) == ["function", "module", "offset", "source", "via"]
for row in report["breakdown"]:
    assert list(row) == ["kind", "detail", "process", "duration_usec", "share"]
for process in report["processes"]:
    assert list(process) == ["pid", "comm", "exe", "command", "begin_usec", "end_usec", "samples"]
stacks = report["stacks"]
assert list(stacks) == ["samples", "complete", "symbolised", "lost", "incomplete"]
assert sum(i["samples"] for i in stacks["incomplete"]) == stacks["samples"] - stacks["complete"]
assert list(report["cost"]) == ["duration_usec", "share"]
losses = {loss["kind"]: loss["count"] for loss in report["losses"]}
assert len(losses) == len(report["losses"]) and all(losses.values())
assert losses.get("samples", 0) == stacks["lost"]

# The breakdown adds up.
assert sum(row["duration_usec"] for row in report["breakdown"]) == report["start"]["duration_usec"]
assert report["verdict"]["cause"] == "none" or report["findings"][0]["cause"] == report["verdict"]["cause"]

# Folded: flamegraph.pl's grammar, and as many samples as on the CPU.
folded = open(prefix + ".folded", encoding="utf-8").read()
total = 0
for line in folded.splitlines():
    match = re.fullmatch(r"([^ ;]+(?:;[^ ;]+)*) ([0-9]+)", line)
    assert match, line
    total += int(match.group(2))

# The picture is well-formed, holds no reference to anything outside, and the same samples.
svg = open(prefix + ".svg", encoding="utf-8").read()
tree = ElementTree.fromstring(svg)
for element in tree.iter():
    assert element.tag.split("}")[1] in ("svg", "title", "text", "rect", "g", "foreignObject", "input", "button"), element.tag
    for name in element.attrib:
        assert "href" not in name and not name.startswith("on") and name != "src", name
frames = [g for g in tree.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "f"]
assert (int(frames[0].get("data-n")) if frames else 0) == total

# No control character but the newline reaches the terminal.
text = open(prefix + ".txt", encoding="utf-8").read()
assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)

# What was lost is said to people, too.
flat = re.sub(r"\s+", " ", text)
for kind, count in losses.items():
    said = f"{count:,} lost" if kind == "samples" else f"{count:,} {kind}"
    assert said in flat or (kind == "samples" and "all of them were lost" in flat), said

# The journal gets one line.
entry = json.load(open(prefix + ".journal", encoding="utf-8"))
assert list(entry) == ["unit", "result", "cause", "summary", "message", "duration_usec", "share"]
assert not re.search(r"[\x00-\x1f\x7f-\x9f]", entry["message"])
