# SPDX-License-Identifier: Apache-2.0
"""CppADCodeGen: value and Jacobian as generated C, called for each example in a C loop.

The task, run on symbols, prints itself as straight-line C++ for CppAD's tape. The headers
come from the packages cmeel-cppad and cmeel-cppadcodegen."""

import ctypes
import importlib.metadata
import os
import subprocess
import sys

from serve import Absent, Job, main, named

GENERATOR = """
#include <cppad/cg.hpp>
#include <iostream>
using Base = NUMBER;
using CG = CppAD::cg::CG<Base>;
using T = CppAD::AD<CG>;
static void task(const std::vector<T>& x, std::vector<T>& y) {
  using CppAD::sqrt; using CppAD::exp; using CppAD::log; using CppAD::sin; using CppAD::cos;
  using CppAD::abs; using CppAD::atan2; using CppAD::erf;
BODY}
int main() {
  std::vector<T> x(INPUTS, T(1)), y(OUTPUTS);
  CppAD::Independent(x);
  task(x, y);
  CppAD::ADFun<CG> function(x, y);
  function.optimize();
  CppAD::cg::CodeHandler<Base> handler;
  CppAD::vector<CG> variables(INPUTS);
  handler.makeVariables(variables);
  CppAD::vector<CG> all = function.Forward(0, variables);
  const CppAD::vector<CG> jacobian = function.Jacobian(variables);
  for (std::size_t i = 0; i < jacobian.size(); ++i) all.push_back(jacobian[i]);
  CppAD::cg::LanguageC<Base> language("NUMBER");
  CppAD::cg::LangCDefaultVariableNameGenerator<Base> names;
  std::ostringstream code;
  handler.generateCode(code, language, all, names);
  std::cout << "static void f(const NUMBER *x, NUMBER *y) {\\nNUMBER v[" << handler.getTemporaryVariableCount() + 1
            << "];\\n" << code.str() << "}\\n";
}
"""

LOOP = """
#include <math.h>
#include <pthread.h>
FUNCTION
typedef struct { const NUMBER *in; NUMBER *out; long first, last; } Part;
static void *run_part(void *pointer) {
  Part *part = (Part *)pointer;
  for (long e = part->first; e < part->last; ++e) f(part->in + e * INPUTS, part->out + e * RESULTS);
  return 0;
}
void run_all(const NUMBER *in, NUMBER *out, long examples, int threads) {
  Part parts[64];
  pthread_t ids[64];
  for (int t = 0; t < threads; ++t) {
    Part part = {in, out, examples * t / threads, examples * (t + 1) / threads};
    parts[t] = part;
    if (t + 1 < threads) pthread_create(ids + t, 0, run_part, parts + t);
    else run_part(parts + t);
  }
  for (int t = 0; t + 1 < threads; ++t) pthread_join(ids[t], 0);
}
"""


class Symbol:
    """A C++ expression; what is computed from it is a statement of its own."""

    lines = []

    def __init__(self, text):
        self.text = text

    @staticmethod
    def of(text):
        Symbol.lines.append(f"  const T v{len(Symbol.lines)} = {text};\n")
        return Symbol(f"v{len(Symbol.lines) - 1}")

    @staticmethod
    def name(x):
        return x.text if isinstance(x, Symbol) else f"T({float(x)!r})"

    @staticmethod
    def operation(sign, is_reversed=False):
        def apply(self, other):
            if hasattr(other, "shape"):  # an array goes through its symbols
                return NotImplemented
            sides = (Symbol.name(other), self.text) if is_reversed else (self.text, Symbol.name(other))
            return Symbol.of(f" {sign} ".join(sides))

        return apply

    def __neg__(self): return Symbol.of(f"-{self.text}")

    def __pow__(self, exponent):
        if exponent != 2:
            raise Absent(f"no power {exponent}")
        return self * self


for word, sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/")):
    setattr(Symbol, f"__{word}__", Symbol.operation(sign))
    setattr(Symbol, f"__r{word}__", Symbol.operation(sign, is_reversed=True))


def space():
    import numpy as np

    def function(name, count=1):
        return np.frompyfunc(lambda *x: Symbol.of(f"{name}({', '.join(map(Symbol.name, x))})"), count, 1)

    def no_gradient(*_):
        raise Absent("its Hessian interface is another one, which is not written here")

    class Space:
        sqrt, exp, log, sin, cos, abs = map(function, "sqrt exp log sin cos abs".split())
        erf, arctan2 = function("erf"), function("atan2", 2)
        sum, concatenate, gradient = staticmethod(np.sum), staticmethod(np.concatenate), staticmethod(no_gradient)

    return Space


def write_task(job, sizes):
    """(the body of the C++ function, sizes of the outputs)"""
    import numpy as np

    import tasks

    arguments, at = [], 0
    for shape, size in sizes:
        symbols = [Symbol(f"x[{at + i}]") for i in range(size)]
        arguments.append(np.array(symbols, dtype=object) if shape else symbols[0])
        at += size
    outputs = [np.ravel(np.array(o, dtype=object)) for o in tasks.FUNCTIONS[job.task](space(), *arguments)]
    flat = [Symbol.name(entry) for output in outputs for entry in output]
    return "".join(Symbol.lines) + "".join(f"  y[{i}] = {name};\n" for i, name in enumerate(flat)), [o.size for o in outputs]


def filled(template, values):
    for name, value in values.items():
        template = template.replace(name, str(value))
    return template


def prefix():
    for folder in sys.path:
        path = os.path.join(folder, "cmeel.prefix")
        if os.path.exists(os.path.join(path, "include", "cppad", "cg.hpp")):
            return path
    raise Absent("cmeel-cppadcodegen is not installed")


def build(job, sizes):
    body, outputs = write_task(job, sizes)
    rows, columns = sum(outputs), sum(size for _, size in sizes)
    values = {"NUMBER": "double" if job.dtype == "f64" else "float", "INPUTS": columns, "OUTPUTS": rows,
              "RESULTS": rows * (columns + 1), "BODY": body}
    path = lambda name: os.path.join(job.folder, name)
    with open(path("generate.cc"), "w") as file:
        file.write(filled(GENERATOR, values))
    libraries = os.path.join(prefix(), "lib")
    subprocess.run(["g++", "-std=c++17", "-O0", "-w", "-I", os.path.join(prefix(), "include"), path("generate.cc"), "-o",
                    path("generate"), "-L" + libraries, "-Wl,-rpath," + libraries, "-lcppad_lib", "-ldl"], check=True)
    function = subprocess.run([path("generate")], check=True, capture_output=True, text=True).stdout
    with open(path("task.c"), "w") as file:
        file.write(filled(LOOP, {**values, "FUNCTION": function}))
    subprocess.run(["gcc", "-O3", "-march=native", "-fno-math-errno", "-fPIC", "-shared", "-w", path("task.c"), "-o",
                    path("task.so"), "-lm", "-lpthread"], check=True)
    return ctypes.CDLL(path("task.so")).run_all, outputs


def prepare(job: Job):
    import numpy as np

    import tasks

    if job.task not in tasks.SCALAR:
        raise Absent(f"generates scalar code, which is not for {job.task}")
    prefix()
    examples = max(job.batch, 1)
    sizes = [(array.shape[1:] if name in job.batched and job.is_mapped else array.shape, array.size // examples)
             for name, array in job.inputs.items()]
    call, outputs = build(job, sizes)
    rows, columns = sum(outputs), sum(size for _, size in sizes)
    packed = np.ascontiguousarray(np.concatenate([a.reshape(examples, -1) for a in job.inputs.values()], axis=1))
    results = np.zeros((examples, rows * (columns + 1)), packed.dtype)
    count, threads = ctypes.c_long(examples), ctypes.c_int(min(job.threads, 64))

    def run():
        call(ctypes.c_void_p(packed.ctypes.data), ctypes.c_void_p(results.ctypes.data), count, threads)
        return results

    def blocks(_):
        value, jacobian = results[:, :rows], results[:, rows:].reshape(examples, rows, columns)
        row_at, column_at = np.cumsum([0, *outputs]), np.cumsum([0, *(size for _, size in sizes)])
        return named([value[:, a:b] for a, b in zip(row_at, row_at[1:])],
                     [[jacobian[:, a:b, c:d] for c, d in zip(column_at, column_at[1:])] for a, b in zip(row_at, row_at[1:])],
                     list(job.inputs))

    versions = {"cppadcodegen": importlib.metadata.version("cmeel-cppadcodegen"),
                "gcc": subprocess.getoutput("gcc -dumpfullversion")}
    return run, blocks, versions


if __name__ == "__main__":
    main(prepare)
