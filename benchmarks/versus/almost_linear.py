#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Almost-linear attention where its theory holds, small logits: loipe --method almost-linear beside PyTorch.

python almost_linear.py [--parts accuracy,break-even,speed,slope,table,model,memory] [--spread 0.25] [--threads 2]
                        [--rounds 3] [--layers 6] [--width 128] [--heads 8] [--more "--no-audit"]

accuracy    gradient of a model of two layers at 4,096 tokens against the exact one in float64: all weights and X
            together, relative Frobenius norm; beside it dQ of single heads with a random cotangent
break-even  attention, forward + backward, causal, f32, at short lengths
speed       the same at 16,384, 65,536 and 262,144; above 16,384 PyTorch's time is its time there times (n / 16,384)^2
slope       of log time over log n from 16,384 to 1,048,576, and memory
table       error of dQ and time by length, head size and spread of the logits, of almost-linear and clustered attention
model       loss and all gradients of a whole model; at 65,536 PyTorch's time is a n^2 + b n through its times at
            8,192 and 16,384
memory      the same model at 262,144 tokens with recomputation

Each part first proves at 512 tokens that approximate results are near the exact ones in float64 (5 % of each
array's norm, dQ and dK 20 %) and that PyTorch's are the exact ones (1e-4). Sides run in turns, each a process of
its own, on normal inputs with logits of standard deviation --spread; best of the rounds. A run of Loipe is the
median of --repetitions after a first one that does not count, as is one of PyTorch. --more: further options for approximate runs of Loipe.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

import transformer
from attention import torch_run
from tensors import read, write
from transformer import LOIPE

SIZES = [(4, 16, 2), (8, 8, 4)]  # heads, head size, degree


def run(command):
    """(JSON of its standard output, largest resident bytes of the process)"""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return json.loads(out), usage.ru_maxrss * 1024


def attention_file(path, n, heads, head_size, spread):
    rng = np.random.default_rng(1)
    normal = lambda size: (size * rng.standard_normal((heads, n, head_size), dtype=np.float32)).astype(np.float32)
    write(path, {"Q": normal(spread**0.5), "K": normal(spread**0.5), "V": normal(1), "G": normal(1)}, {"causal": "1"})


def loipe(path, out, options, degree, *more):
    method = ["--method", "exact"] if degree is None else ["--method", "almost-linear", "--degree", degree, *shlex.split(options.more)]
    result, resident = run([LOIPE, "attention", "--inputs", path, "--out", out, "--threads", options.threads, "--json",
                            "--repetitions", options.repetitions + 1, *method, *more])
    return result | {"resident": resident}


def torch(path, options):
    return run([sys.executable, __file__, "--torch-side", path, options.threads, options.repetitions])[0]["seconds"]


def torch_side(path, threads, repetitions):
    arrays, _ = read(path)
    _, times = torch_run([arrays[name] for name in "QKVG"], threads, repetitions)
    print(json.dumps({"seconds": float(np.median([sum(pair) for pair in times[1:]]))}))


def distance(actual, expected):
    expected = expected.astype(np.float64)
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def prove(options, folder):
    at = lambda name: os.path.join(folder, name)
    for heads, head_size, degree in SIZES:
        attention_file(at("in"), 512, heads, head_size, options.spread)
        loipe(at("in"), at("exact"), options, None, "--dtype", "f64")
        loipe(at("in"), at("out"), options, degree)
        exact, actual, inputs = read(at("exact"))[0], read(at("out"))[0], read(at("in"))[0]
        of_torch, _ = torch_run([inputs[name] for name in "QKVG"], options.threads, 0)
        for name, limit in (("O", 0.05), ("dQ", 0.2), ("dK", 0.2), ("dV", 0.05)):
            for side, array, most in (("loipe", actual[name], limit), ("torch", of_torch[name], 1e-4)):
                if not distance(array, exact[name]) < most:
                    sys.exit(f"{name} of {side} is off by {distance(array, exact[name]):.1e}, degree {degree}")


def both(options, folder, n, size, with_torch=True):
    """Best seconds of (loipe, torch) and the last description of loipe's run."""
    heads, head_size, degree = size
    at = lambda name: os.path.join(folder, name)
    attention_file(at("in"), n, heads, head_size, options.spread)
    mine, theirs, last = [], [], None
    for _ in range(options.rounds):
        last = loipe(at("in"), at("out"), options, degree)
        mine.append(last["seconds"])
        if with_torch:
            theirs.append(torch(at("in"), options))
    return min(mine), min(theirs, default=None), last


def title(size):
    return f"{size[0]} heads of {size[1]}, degree {size[2]}"


def break_even(options, folder):
    for size in SIZES:
        for n in (128, 256, 512, 1024, 2048, 4096):
            mine, theirs, _ = both(options, folder, n, size)
            print(f"{title(size)}  n {n:7,}  {1e3 * mine:9.3f} ms  torch {1e3 * theirs:9.3f} ms  {theirs / mine:7.2f} x",
                  flush=True)


def speed(options, folder):
    for size in SIZES:
        base = None
        for n in (16384, 65536, 262144):
            mine, theirs, _ = both(options, folder, n, size, with_torch=base is None)
            base = base or theirs
            torch_seconds = base * (n / 16384) ** 2
            print(f"{title(size)}  n {n:7,}  {mine:8.4f} s  torch {torch_seconds:9.3f} s{'' if theirs else ' (n^2)'}  "
                  f"{torch_seconds / mine:7.0f} x", flush=True)


def slope(options, folder):
    for size in SIZES:
        lengths, seconds, bytes_ = [2**p for p in range(14, 21)], [], []
        for n in lengths:
            mine, _, last = both(options, folder, n, size, with_torch=False)
            seconds.append(mine)
            bytes_.append(last["peak_bytes"])
        fit = lambda y: np.polyfit(np.log(lengths), np.log(y), 1)[0]
        print(f"{title(size)}  seconds {' '.join(f'{s:.3f}' for s in seconds)}  slope {fit(seconds):.3f}   "
              f"MiB {' '.join(f'{b / 2**20:.0f}' for b in bytes_)}  slope {fit(bytes_):.3f}", flush=True)


def table(options, folder):
    at = lambda name: os.path.join(folder, name)
    runs = {f"degree {g}": ["--method", "almost-linear", "--degree", g] for g in (2, 4)}
    runs["64 + 128"] = ["--method", "clustered", "--clusters", 64, "--exact-keys", 128]
    for n in (1024, 4096, 16384):
        for heads, head_size in ((8, 8), (4, 16), (2, 32)):
            for spread in (0.25, 0.5, 1, 2):
                attention_file(at("in"), n, heads, head_size, spread)
                exact = loipe(at("in"), at("exact"), options, None)["seconds"]
                cells = []
                for name, more in runs.items():
                    if name == "degree 4" and head_size == 32:
                        continue  # 58,905 features
                    seconds = run([LOIPE, "attention", "--inputs", at("in"), "--out", at("out"), "--threads", options.threads,
                                   "--json", "--repetitions", options.repetitions + 1, *more, *shlex.split(options.more)])[0]["seconds"]
                    wrong = distance(read(at("out"))[0]["dQ"], read(at("exact"))[0]["dQ"])
                    cells.append(f"{name}: {wrong:.1e} {exact / seconds:6.2f} x")
                print(f"n {n:7,}  {heads} heads of {head_size:2}  spread {spread:4}  exact {exact:.4f} s   {'   '.join(cells)}", flush=True)


def model_file(path, options, tokens, layers, width, heads, spread, vocabulary=256):
    tensors, metadata = transformer.model(tokens, layers, width, heads, vocabulary)
    for name in tensors:
        if name.endswith(("W_Q", "W_K")):
            tensors[name] = (tensors[name] * spread**0.5).astype(np.float32)
    write(path, tensors, metadata)


def loipe_model(path, out, options, degree, *more):
    method = ["--method", "exact"] if degree is None else ["--method", "almost-linear", "--degree", degree, *shlex.split(options.more)]
    result, resident = run([LOIPE, "transformer", "--inputs", path, "--out", out, "--threads", options.threads, "--json",
                            "--repetitions", "1", *method, *more])
    return result | {"resident": resident}


def gradients(path):
    arrays, _ = read(path)
    return np.concatenate([arrays[name].astype(np.float64).ravel() for name in sorted(arrays) if name.startswith("grad.")])


def prove_model(options, folder):
    at = lambda name: os.path.join(folder, name)
    model_file(at("model"), options, 512, options.layers, options.width, options.heads, options.spread)
    loipe_model(at("model"), at("exact"), options, None, "--dtype", "f64")
    loipe_model(at("model"), at("out"), options, 2)
    transformer.torch(at("model"), at("torch"), options.threads, 0)
    if not transformer.deviation(at("torch"), at("exact")) < 1e-4 or not distance(gradients(at("out")), gradients(at("exact"))) < 0.05:
        sys.exit("gradients of the sides are not the same")


def model(options, folder):
    prove_model(options, folder)
    at = lambda name: os.path.join(folder, name)
    of_torch = {}
    for n in (8192, 16384, 65536):
        model_file(at("model"), options, n, options.layers, options.width, options.heads, options.spread)
        mine, theirs = [], []
        for _ in range(options.rounds):
            mine.append(loipe_model(at("model"), at("out"), options, 2)["seconds"])
            if n <= 16384:
                theirs.append(transformer.torch(at("model"), "", options.threads, 0)["seconds"])
        of_torch[n] = min(theirs, default=0)
        if not theirs:  # t = a n^2 + b n
            a = (of_torch[16384] / 16384 - of_torch[8192] / 8192) / 8192
            of_torch[n] = n * (of_torch[16384] / 16384 + a * (n - 16384))
        print(f"{options.layers} layers, width {options.width}, {options.heads} heads, degree 2  n {n:7,}  {min(mine):8.3f} s  "
              f"torch {of_torch[n]:8.2f} s{'' if theirs else ' (a n^2 + b n)'}  {of_torch[n] / min(mine):6.1f} x", flush=True)


def memory(options, folder):
    at = lambda name: os.path.join(folder, name)
    model_file(at("model"), options, 262144, options.layers, options.width, options.heads, options.spread)
    last = loipe_model(at("model"), at("out"), options, 2, "--memory-limit", "6G")
    print(f"{options.layers} layers, width {options.width}, 262,144 tokens: {last['seconds']:.1f} s, "
          f"{last['peak_bytes'] / 1e9:.2f} GB planned, {last['resident'] / 1e9:.2f} GB resident", flush=True)


def accuracy(options, folder):
    at = lambda name: os.path.join(folder, name)
    for head_size, heads, spread in ((16, 1, 0.23), (16, 4, 0.23), (8, 1, 0.28)):
        model_file(at("model"), options, 4096, 2, head_size * heads, heads, spread)
        loipe_model(at("model"), at("exact"), options, None, "--dtype", "f64")
        attention_file(at("in"), 4096, heads, head_size, spread)
        loipe(at("in"), at("exact_heads"), options, None, "--dtype", "f64")
        for degree in (2, 4):
            loipe_model(at("model"), at("out"), options, degree)
            loipe(at("in"), at("heads"), options, degree)
            of_heads, exact = read(at("heads"))[0], read(at("exact_heads"))[0]
            single = "  ".join(f"{name} {distance(of_heads[name], exact[name]):.1e}" for name in ("O", "dQ", "dK", "dV"))
            print(f"2 layers, {heads} heads of {head_size}, spread {spread}, degree {degree}: all gradients "
                  f"{distance(gradients(at('out')), gradients(at('exact'))):.1e}   heads alone: {single}", flush=True)


PARTS = {"accuracy": accuracy, "break-even": break_even, "speed": speed, "slope": slope, "table": table, "model": model,
         "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--spread", type=float, default=0.25, help="standard deviation of the logits")
    for name, value in (("threads", 2), ("rounds", 3), ("repetitions", 3), ("layers", 6), ("width", 128), ("heads", 8)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--more", default="", help="further options for approximate runs of loipe")
    options = parser.parse_args()
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        prove(options, folder)
        for part in options.parts.split(","):
            PARTS[part](options, folder)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--torch-side":
        torch_side(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
