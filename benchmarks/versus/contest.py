# SPDX-License-Identifier: Apache-2.0
"""Proof and timing, for any sides. Needs nothing but Python.

A side is a process that has computed its results once and then, for each line N, runs N
times and answers with the nanoseconds of each run. Sides are first proved right, then
timed in turns.
"""

import json
import math
import select
import statistics
import subprocess
import time

NEGLIGIBLE = 1e-6  # a block this small beside the whole Jacobian is measured by the latter
TOLERANCE = {"f64": 1e-9, "f32": 1e-4}
# 1 - az^2 cancels: half the digits of f32 are lost before anything is differentiated.
TOLERANCE_OF = {("RobotArm_6DOF", "f32"): 1e-3, ("Encoder", "f32"): 1e-3}


class Failed(Exception):
    """What went wrong with a side, in one line."""


def tolerance(task, dtype):
    return TOLERANCE_OF.get((task, dtype), TOLERANCE[dtype])


def largest(entries):
    return max((abs(x) for x in entries if math.isfinite(x)), default=0.0)


def block_deviation(entries, reference, scale):
    """The largest difference in units of `scale`; infinite where one alone is finite."""
    worst = 0.0
    for x, y in zip(entries, reference):
        if x == y or (math.isnan(x) and math.isnan(y)):
            continue
        difference = abs(x - y)
        if not math.isfinite(difference):
            return math.inf
        worst = max(worst, difference / scale)
    return worst


def deviation(results, reference, flat=list, largest=largest, block_deviation=block_deviation):
    """(the largest deviation of all blocks, the name of its block)

    Each entry is compared in units of the largest entry of its block of the reference.
    Both are dictionaries from names to blocks; `flat` makes a block a list of numbers.
    The other two may be given in a faster form."""
    if set(results) != set(reference):
        odd = sorted(set(results) ^ set(reference))
        raise Failed(f"results differ in their names: {', '.join(odd[:4])}")
    tops = {name: largest(flat(block)) for name, block in reference.items()}
    whole = max((top for name, top in tops.items() if name.startswith("jac.")), default=0.0)
    worst = (0.0, "")
    for name, block in reference.items():
        entries, expected = flat(results[name]), flat(block)
        if len(entries) != len(expected):
            raise Failed(f"{name} has {len(entries)} entries instead of {len(expected)}")
        scale = max(tops[name], NEGLIGIBLE * whole, 1e-300)
        worst = max(worst, (block_deviation(entries, expected, scale), name))
    return worst


class Side:
    """One process, from its start to its end."""

    def __init__(self, name, command, environment=None, cores=None, log=None):
        self.name = name
        if cores:
            command = ["taskset", "-c", ",".join(map(str, cores)), *command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=log or subprocess.DEVNULL, env=environment, text=True, bufsize=1)
        self.nanoseconds = []
        self.ready = {}

    def read_line(self, seconds):
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise Failed(f"no answer within {seconds:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise Failed("its process ended without an answer (--log FILE keeps what it printed)")
        return line

    def wait_until_ready(self, seconds):
        self.ready = json.loads(self.read_line(seconds))
        if "absent" in self.ready:
            raise Failed(self.ready["absent"])

    def run(self, count, seconds):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return [int(word) for word in self.read_line(seconds).split()]

    def close(self):
        """One that is not ready may compute for long, and hears nothing meanwhile."""
        if "versions" not in self.ready:
            self.process.kill()
        try:
            self.process.stdin.close()
            self.process.wait(2)
        except BrokenPipeError:
            pass
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def take_turns(sides, rounds, turn_seconds, timeout=600, slowest=math.inf):
    """Each round, every side runs for about a turn, after one run that does not count:
    the caches are the others'. What disturbs the machine meets all of them.

    Returns the reason for each side that stops answering, or that needs more than
    `slowest` seconds for one run; it takes no further part."""
    counts, out = {}, {}

    def attempt(side, count):
        try:
            return side.run(count, timeout)
        except (Failed, BrokenPipeError) as reason:
            out[side] = str(reason) or "its process ended"
            return []

    for side in sides:
        times = attempt(side, 1)
        if times and times[0] * 1e-9 > slowest:
            out[side] = f"{times[0] * 1e-9:.0f} s for one run"
        elif times:
            first = min(times + attempt(side, 1)) * 1e-9
            counts[side] = max(1, min(2000, round(turn_seconds / max(first, 1e-9))))
    for _ in range(rounds):
        for side in sides:
            if side not in out:
                side.nanoseconds += attempt(side, counts[side] + 1)[1:]
    return out


def summary(side, first):
    """Medians and minima in milliseconds, and how many times as long as `first` it takes."""
    times = side.nanoseconds
    median, minimum = statistics.median(times), min(times)
    return {
        "median_ms": median * 1e-6,
        "min_ms": minimum * 1e-6,
        "repetitions": len(times),
        "ratio_of_medians": median / statistics.median(first.nanoseconds),
        "ratio_of_minima": minimum / min(first.nanoseconds),
    }


def now():
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
