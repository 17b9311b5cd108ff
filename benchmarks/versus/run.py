#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loipe beside other tools on one task: proves that all compute the same value and
Jacobian, then times them in turns. See README.md in this folder."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import contest

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = {  # name: (file, variant)
    "jax-jacrev": ("jax_side.py", "jacrev"),
    "jax-jacfwd": ("jax_side.py", "jacfwd"),
    "torch-compiled": ("torch_side.py", "compiled"),
    "torch-eager": ("torch_side.py", "eager"),
    "casadi": ("casadi_side.py", ""),
    "casadi-cse": ("casadi_side.py", "cse"),
    "cppadcg": ("cppadcg_side.py", ""),
}
TASKS = ("Encoder Perceptron RoeFlux_1d RoeFlux_3d RobotArm_6DOF HumanHeartDipole PropaneCombustion "
         "BlackScholes_Jacobian").split()
SCALED = ("Encoder", "Perceptron")


def expand(text):
    """The peers that "jax,casadi" names: a tool stands for all its variants."""
    names = []
    for word in text.split(","):
        fitting = [name for name in PEERS if word in (name, name.split("-")[0])]
        if not fitting:
            raise argparse.ArgumentTypeError(f"unknown peer '{word}': expected some of {', '.join(PEERS)}")
        names += [name for name in fitting if name not in names]
    return names


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': expected a whole number of 1 or more")
    return int(text)


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS, metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--peers", type=expand, default=list(PEERS), help="default: all; a tool's name stands for all its variants")
    parser.add_argument("--orders", default="reverse", help="Loipe's orders, separated by commas (default reverse)")
    parser.add_argument("--scale", type=positive, default=1)
    parser.add_argument("--batch", type=positive, help="default: one example, without a batch axis")
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f64")
    parser.add_argument("--threads", type=positive, default=1, help="default 1; also the cores that a side may use")
    parser.add_argument("--rounds", type=positive, default=7)
    parser.add_argument("--turn", type=float, default=0.2, help="seconds of one side in one round")
    parser.add_argument("--timeout", type=positive, default=120, help="seconds that a side may prepare (default 120)")
    parser.add_argument("--slowest", type=float, default=5, help="seconds that one run may take (default 5)")
    parser.add_argument("--worker", default=os.path.join(HERE, "../../build/release/loipe_versus_worker"))
    parser.add_argument("--log", help="a file for what the sides print")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    if options.scale > 1 and options.task not in SCALED:
        parser.error(f"--scale is only for {' and '.join(SCALED)}")
    if not os.path.exists(options.worker):
        parser.error(f"there is no {options.worker}: configure with -DLOIPE_BENCHMARKS=ON and build loipe_versus_worker")
    return options


def environment(threads):
    """Without the settings that slow OpenBLAS down, and with one count of threads."""
    variables = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        variables[name] = str(threads)
    variables["JAX_PLATFORMS"] = "cpu"
    variables["TOKENIZERS_PARALLELISM"] = "false"
    return variables


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown CPU"


class Contest:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.log = open(options.log, "a") if options.log else None
        self.cores = sorted(os.sched_getaffinity(0))[: options.threads]
        self.inputs = os.path.join(folder, "inputs.safetensors")
        self.skipped, self.started = {}, []

    def loipe(self, name, order, dtype):
        o = self.options
        return self.start(name, [o.worker, "serve", o.task, str(o.scale), str(o.batch or 0), dtype, order,
                                 str(o.threads), self.inputs, self.results(name)])

    def peer(self, name):
        file, variant = PEERS[name]
        o = self.options
        return self.start(name, [sys.executable, os.path.join(HERE, "sides", file), o.task, o.dtype,
                                 str(o.batch or 0), str(o.threads), self.inputs, self.results(name),
                                 *([variant] if variant else [])])

    def results(self, name):
        # A folder of its own: sides leave sources and libraries beside their results.
        os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        return os.path.join(self.folder, name, "results.safetensors")

    def start(self, name, command):
        side = contest.Side(name, command, environment(self.options.threads), self.cores, self.log)
        self.started.append(side)
        return side

    def close(self):
        for side in self.started:
            side.close()

    def write_inputs(self):
        o = self.options
        subprocess.run([o.worker, "inputs", o.task, str(o.scale), str(o.batch or 0), o.dtype, self.inputs], check=True)

    def prepared(self, side):
        """The side, ready, with its results; None, noted, where it cannot take part."""
        try:
            side.wait_until_ready(self.options.timeout)
            return side
        except contest.Failed as reason:
            self.skip(side, str(reason))
        return None

    def skip(self, side, reason):
        self.skipped[side.name] = reason
        print(f"{side.name}: skipped: {reason}", file=sys.stderr)
        side.close()

    def proved(self, side, reference):
        import tensors

        results, _ = tensors.read(self.results(side.name))
        side.deviation, block = fast_deviation(results, reference)
        limit = contest.tolerance(self.options.task, self.options.dtype)
        if side.deviation <= limit:
            return True
        self.skip(side, f"WRONG: {block} is off by {side.deviation:.1e} of its largest entry, more than {limit:.0e}")
        return False

    def run(self):
        import tensors

        self.write_inputs()
        judge = self.loipe("reference", "reverse", "f64")
        judge.wait_until_ready(self.options.timeout)
        judge.close()
        reference, _ = tensors.read(self.results("reference"))
        makers = [lambda o=order: self.loipe(f"loipe, {o}", o, self.options.dtype) for order in self.options.orders.split(",")]
        makers += [lambda p=peer: self.peer(p) for peer in self.options.peers]
        sides = []
        for make in makers:  # one after the other, before anything is timed
            side = self.prepared(make())
            if side and self.proved(side, reference):
                sides.append(side)
        out = contest.take_turns(sides, self.options.rounds, self.options.turn, slowest=self.options.slowest)
        for side, reason in out.items():
            self.skip(side, reason)
        return self.report([side for side in sides if side not in out])

    def report(self, sides):
        o = self.options
        first = sides[0]
        rows = [{"side": side.name, "versions": side.ready.get("versions", {}),
                 "prepare_seconds": side.ready.get("prepare_seconds"), "max_rel_error": side.deviation,
                 **contest.summary(side, first)} for side in sides]
        return {"schema": 1, "task": o.task, "scale": o.scale, "batch": o.batch or 1, "dtype": o.dtype,
                "threads": o.threads, "machine": {"cpu": cpu_name(), "cores": os.cpu_count(), "load": os.getloadavg()[0]},
                "date": contest.now(), "python": sys.version.split()[0], "rows": rows, "skipped": self.skipped}


def fast_deviation(results, reference):
    """contest.deviation on numpy arrays."""
    import numpy as np

    def flat(block):
        return np.asarray(block, np.float64).ravel()

    def largest(entries):
        return float(np.max(np.abs(entries), initial=0.0, where=np.isfinite(entries)))

    def block_deviation(entries, expected, scale):
        is_same = (entries == expected) | (np.isnan(entries) & np.isnan(expected))
        with np.errstate(invalid="ignore"):
            difference = np.where(is_same, 0.0, np.abs(entries - expected))
        difference[np.isnan(difference)] = np.inf
        return float(np.max(difference, initial=0.0)) / scale

    return contest.deviation(results, reference, flat, largest, block_deviation)


def table(result):
    per_example = result["batch"] > 1
    unit = "ns per example" if per_example else "µs"
    factor = 1e6 / result["batch"] if per_example else 1e3
    lines = [f"{result['task']}, scale {result['scale']}, batch {result['batch']}, {result['dtype']}, "
             f"{result['threads']} thread(s); {result['machine']['cpu']}, {result['date']}, load {result['machine']['load']:.1f}",
             f"{'side':24} {'median ' + unit:>22} {'min ' + unit:>20} {'ratio':>7} {'of min':>7} {'max error':>10} {'prepare s':>10}  versions"]
    for row in result["rows"]:
        versions = " ".join(f"{k} {v}" for k, v in row["versions"].items())
        lines.append(f"{row['side']:24} {row['median_ms'] * factor:22.2f} {row['min_ms'] * factor:20.2f} "
                     f"{row['ratio_of_medians']:7.2f} {row['ratio_of_minima']:7.2f} {row['max_rel_error']:10.1e} "
                     f"{row['prepare_seconds']:10.2f}  {versions}")
    return "\n".join(lines)


def main(words):
    options = parse(words)
    # So that an interrupted run ends its sides too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="versus-")
    match = Contest(options, folder)
    try:
        result = match.run()
    finally:
        match.close()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(result, indent=1) if options.json else table(result))
    return 1 if any(reason.startswith("WRONG") for reason in result["skipped"].values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
