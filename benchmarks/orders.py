#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Elimination orders by counts and by measured time:

    python3 benchmarks/orders.py LOIPE counts|times [TASK ...]

counts: the cost of reverse, of the published AlphaGrad order and of the best order by each objective.
times: for each function of the papers, the best order per objective against reverse and the published
AlphaGrad order, all timed in one run of `loipe bench` (batch 512; scale 16 for Encoder and
Perceptron), with their predicted times and the rank correlation of predicted and measured times
over these and random orders. Prints a table in Markdown; needs Python's standard library alone.
"""
import json
import os
import subprocess
import sys
import tempfile

FUNCTIONS = {
    "RoeFlux_1d": ["--batch", "512"],
    "RoeFlux_3d": ["--batch", "512"],
    "RobotArm_6DOF": ["--batch", "512"],
    "HumanHeartDipole": ["--batch", "512"],
    "PropaneCombustion": ["--batch", "512"],
    "BlackScholes_Jacobian": ["--batch", "512"],
    "g": ["--batch", "512"],
    "f": ["--batch", "512"],
    "Perceptron": ["--scale", "16", "--batch", "512"],
    "Encoder": ["--scale", "16"],
}
BATCH_IN_GRAPH = {"RoeFlux_3d", "BlackScholes_Jacobian", "g", "Perceptron"}
SHOWN = ["reverse", "alphagrad", "best-published", "best-actual", "best-folded"]
SEARCH_SECONDS = "4"


def run(loipe, *arguments):
    result = subprocess.run([loipe, *arguments, "--json"], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stderr.strip())
    return json.loads(result.stdout)


def sizes_for_counting(task, arguments):
    """count and search know the batch only where it is part of the graph; examples else."""
    if task in BATCH_IN_GRAPH:
        # These run example by example in vector code at 512, but for large ones.
        return arguments if "--scale" in arguments else []
    return arguments[: arguments.index("--batch")] if "--batch" in arguments else arguments


def ranks(values):
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def rank_correlation(first, second):
    """Spearman's: the correlation of ranks, ties sharing theirs."""
    a, b = ranks(first), ranks(second)
    mean = (len(a) - 1) / 2
    covariance = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return covariance / spread**0.5 if spread > 0 else float("nan")


def measure(loipe, task, folder):
    arguments = FUNCTIONS[task]
    sizes = sizes_for_counting(task, arguments)
    best_time = os.path.join(folder, task + ".json")
    run(loipe, "search", task, *sizes, "--objective", "time", "--budget", SEARCH_SECONDS, "--out", best_time)
    others = ["markowitz"] if task == "Encoder" else ["markowitz", "random:1", "random:2"]
    orders = SHOWN + [best_time] + others
    bench = run(loipe, "bench", task, *arguments, "--orders", ",".join(orders))
    predicted = []
    for row in bench["rows"]:
        counts = run(loipe, "count", task, *sizes, "--order", row["order"], "--time")
        predicted.append(counts["predicted_seconds"])
    # The shortest of many runs: other processes can only make one longer.
    measured = [row["min_ms"] for row in bench["rows"]]
    reverse = measured[0]
    shown = [f"{1e3 * reverse:,.1f}"] + [f"{time / reverse:.2f}" for time in measured[1 : len(SHOWN) + 1]]
    return f"| {task} | " + " | ".join(shown) + f" | {rank_correlation(predicted, measured):.2f} |"


def costs(loipe, task, sizes, order):
    counts = run(loipe, "count", task, *sizes, "--order", order)
    multiplications, additions = counts["multiplications"], counts["additions"]
    return {
        "published": multiplications["published"],
        "actual": multiplications["actual"],
        "folded": multiplications["folded"] + additions["folded"],
    }


def print_counts(loipe, tasks):
    """reverse / AlphaGrad / best under each objective."""
    print("| function | published | actual | folded |")
    print("| --- | --- | --- | --- |")
    rows = [(task, []) for task in tasks]
    rows += [(task, ["--scale", "16"]) for task in tasks if task == "Encoder"]
    rows += [(task, FUNCTIONS[task]) for task in tasks if task == "Perceptron"]
    for task, sizes in rows:
        cells = []
        for objective in ("published", "actual", "folded"):
            orders = ("reverse", "alphagrad", "best-" + objective)
            values = [costs(loipe, task, sizes, order)[objective] for order in orders]
            cells.append(f"{values[0]:,} / {values[1]:,} / **{values[2]:,}**")
        print(f"| {' '.join([task, *sizes])} | " + " | ".join(cells) + " |", flush=True)


def main():
    if len(sys.argv) < 3 or sys.argv[2] not in ("counts", "times"):
        sys.exit(__doc__)
    loipe, tasks = sys.argv[1], sys.argv[3:] or list(FUNCTIONS)
    if sys.argv[2] == "counts":
        return print_counts(loipe, tasks)
    print("| function | reverse, us | alphagrad | best-published | best-actual | best-folded | best time | ranks |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            print(measure(loipe, task, folder), flush=True)


if __name__ == "__main__":
    main()
