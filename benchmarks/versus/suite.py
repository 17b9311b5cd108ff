#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the whole comparison and writes it as Markdown: `python suite.py > results.md`.

What is given to it goes on to every run of run.py: `--peers jax,casadi`, `--threads 2`.
VERSUS_ONLY=networks in the environment leaves the other tables out."""

import contextlib
import io
import json
import os
import subprocess
import sys

import contest
import run

SMALL = "RoeFlux_1d RoeFlux_3d RobotArm_6DOF HumanHeartDipole PropaneCombustion BlackScholes_Jacobian".split()
TITLES = {
    "small f64 512": "Small functions, f64, batch 512: ns per example",
    "small f64 65536": "Small functions, f64, batch 65536: ns per example",
    "small f32 512": "Small functions, f32, batch 512: ns per example",
    "networks": "Networks, f32: µs",
}


def entries():
    """(table, label, words of run.py)"""
    for dtype, batch in (("f64", 512), ("f64", 65536), ("f32", 512)):
        for task in SMALL:
            yield f"small {dtype} {batch}", task, [task, "--batch", str(batch), "--dtype", dtype]
    for scale in (2, 4, 8, 16, 32):
        yield "networks", f"Encoder, scale {scale}", ["Encoder", "--scale", str(scale), "--dtype", "f32"]
    yield "networks", "Perceptron, scale 16, batch 512", ["Perceptron", "--scale", "16", "--batch", "512", "--dtype", "f32"]


def measured(words):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run.main([*words, "--json"])
    return json.loads(text.getvalue())


def cell(row, factor):
    text = f"{row['median_ms'] * factor:.4g}"
    return text if row["ratio_of_medians"] == 1 else f"{text} ({row['ratio_of_medians']:.2f})"


def table(results):
    """One line for each task, one column for each side: the median, and how many times
    as long as the first side it is."""
    sides = []
    for _, result in results:
        sides += [row["side"] for row in result["rows"] if row["side"] not in sides]
    lines = ["| task | " + " | ".join(sides) + " |", "| --- |" + " --- |" * len(sides)]
    for label, result in results:
        small = result["batch"] > 1 and result["task"] != "Perceptron"
        factor = 1e6 / result["batch"] if small else 1e3
        cells = {row["side"]: cell(row, factor) for row in result["rows"]}
        lines.append(f"| {label} | " + " | ".join(cells.get(side, "-") for side in sides) + " |")
    return "\n".join(lines)


def notes(results):
    """What was skipped, and why."""
    reasons = {}
    for label, result in results:
        for side, reason in result["skipped"].items():
            reasons.setdefault((side, reason), []).append(label)
    return "\n".join(f"* {side}: {', '.join(labels)}: {reason}" for (side, reason), labels in sorted(reasons.items()))


def main(words):
    only = os.environ.get("VERSUS_ONLY", "")
    tables = {}
    for key, label, task in entries():
        if only not in key:
            continue
        print(f"{label}, {key}", file=sys.stderr)
        try:
            tables.setdefault(key, []).append((label, measured([*task, *words])))
        except (contest.Failed, subprocess.CalledProcessError) as reason:
            print(f"{label}, {key}: left out: {reason}", file=sys.stderr)
    results = [pair for rows in tables.values() for pair in rows]
    first, last = results[0][1], results[-1][1]
    versions = {}
    for _, result in results:
        for row in result["rows"]:
            versions.update(row["versions"])
    load = max(result["machine"]["load"] for _, result in results)
    print("# Loipe and other tools\n")
    print(f"{first['machine']['cpu']}, {first['machine']['cores']} cores, {first['threads']} thread(s), {first['date']} to "
          f"{last['date']}; " + ", ".join(f"{k} {v}" for k, v in versions.items()) + ".")
    if load > first["threads"] + 0.5:
        print(f"\n**Measured while other work ran on the machine** (load up to {load:.1f}): compare the columns of a row, not more.")
    print("\nMedians; in parentheses how many times as long as Loipe in reverse order. `-`: skipped, see below. "
          "Written by `python suite.py > results.md`; what is measured and how: README.md.")
    for key, rows in tables.items():
        print(f"\n## {TITLES[key]}\n\n{table(rows)}")
    print(f"\n## Skipped\n\n{notes(results) or 'nothing'}")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main(sys.argv[1:])
