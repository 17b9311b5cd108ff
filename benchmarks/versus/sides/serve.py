# SPDX-License-Identifier: Apache-2.0
"""What the processes of all Python sides share: the protocol of worker.cc.

    python SIDE.py TASK DTYPE BATCH THREADS INPUTS RESULTS [VARIANT]

A side gives `prepare(job) -> (run, results, versions)`: `run()` computes value and Jacobian
once and returns when they are there; `results(run())` names them as numpy arrays, `out.0`,
`jac.0.x`. A tool that is not installed, or a task that it is not meant for, is told by
raising Absent.
"""

import json
import os
import sys
import time
from dataclasses import dataclass

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Absent(Exception):
    """Why this side cannot take part, in one line."""


@dataclass
class Job:
    task: str
    dtype: str
    batch: int  # 0: one example, without a batch axis
    threads: int
    inputs: dict  # argument -> array, in the order of the arguments
    batched: tuple  # names of the arguments that have the axis
    folder: str  # for files
    variant: str

    @property
    def is_mapped(self):
        return self.batch > 0


def read_job(words):
    import tensors

    task, dtype, batch, threads, inputs, results = words[:6]
    arrays, metadata = tensors.read(inputs)
    names = metadata["arguments"].split(",")
    batched = tuple(name for name in metadata["batched"].split(",") if name)
    return Job(task, dtype, int(batch), int(threads), {name: arrays["in." + name] for name in names}, batched,
               os.path.dirname(results), words[6] if len(words) > 6 else "")


def named(values, blocks, names):
    """{"out.0": ..., "jac.0.x": ...} from the values and a row of blocks for each."""
    result = {f"out.{i}": value for i, value in enumerate(values)}
    for i, row in enumerate(blocks):
        for name, block in zip(names, row):
            result[f"jac.{i}.{name}"] = block
    return result


def main(prepare):
    import tensors

    # Libraries print where they like; the protocol has standard output for itself.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(text):
        answers.write(text + "\n")
        answers.flush()

    try:
        job = read_job(sys.argv[1:])
        start = time.perf_counter()
        run, results, versions = prepare(job)
        first = run()
        seconds = time.perf_counter() - start
    except (Absent, ImportError) as reason:
        return answer(json.dumps({"absent": " ".join(str(reason).split())[:300]}))
    tensors.write(sys.argv[6], results(first))
    answer(json.dumps({"prepare_seconds": seconds, "versions": versions}))
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter_ns()
            run()
            times.append(time.perf_counter_ns() - begin)
        answer(" ".join(map(str, times)))
