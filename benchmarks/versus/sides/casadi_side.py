# SPDX-License-Identifier: Apache-2.0
"""CasADi: the SX Jacobian as generated C, compiled by gcc, called for each example in a C
loop, as its users run it. Work is split over threads in equal parts with pthreads."""

import ctypes
import os
import subprocess

from serve import Absent, Job, main, named

LOOP = """
#include <pthread.h>
#define WORK {work}
typedef struct {{ const T *in; T *value, *jacobian; long first, last; }} Part;
static void *run_part(void *pointer) {{
  Part *part = (Part *)pointer;
  T work[WORK + 1];
  long long int iwork[{iwork} + 1];
  const T *arg[{arguments}];
  T *res[{results}];
  for (long e = part->first; e < part->last; ++e) {{
    arg[0] = part->in + e * {inputs};
    res[0] = part->value + e * {outputs};
    res[1] = part->jacobian + e * {entries};
    f(arg, res, iwork, work, 0);
  }}
  return 0;
}}
void run_all(const T *in, T *value, T *jacobian, long examples, int threads) {{
  Part parts[64];
  pthread_t ids[64];
  for (int t = 0; t < threads; ++t) {{
    Part part = {{in, value, jacobian, examples * t / threads, examples * (t + 1) / threads}};
    parts[t] = part;
    if (t + 1 < threads) pthread_create(ids + t, 0, run_part, parts + t);
    else run_part(parts + t);
  }}
  for (int t = 0; t + 1 < threads; ++t) pthread_join(ids[t], 0);
}}
"""


def space(ca):
    class Space:
        sqrt, exp, log, sin, cos, tanh, abs, arctan2, erf = (
            ca.sqrt, ca.exp, ca.log, ca.sin, ca.cos, ca.tanh, ca.fabs, ca.atan2, ca.erf)
        sum = ca.sum1

        @staticmethod
        def concatenate(parts):
            return ca.vertcat(*parts)

        @staticmethod
        def gradient(function, arguments):
            value = function(*arguments)
            return tuple(ca.gradient(value, x) for x in arguments)

    return Space


def build(job, ca):
    """(ca.Function of one example, sizes of arguments, sizes of outputs)"""
    import tasks

    shapes = [array.shape[1:] if name in job.batched and job.is_mapped else array.shape
              for name, array in job.inputs.items()]
    sizes = [int(shape[-1]) if shape else 1 for shape in shapes]
    packed = ca.SX.sym("x", sum(sizes))
    arguments, at = [], 0
    for size in sizes:
        arguments.append(packed[at : at + size])
        at += size
    outputs = tasks.FUNCTIONS[job.task](space(ca), *arguments)
    stacked = ca.vertcat(*outputs)
    # Transposed: CasADi stores columns, and rows are what the others have.
    jacobian = ca.densify(ca.jacobian(stacked, packed)).T
    options = {"cse": job.variant == "cse"}
    return ca.Function("f", [packed], [ca.densify(stacked), jacobian], options), sizes, [o.shape[0] for o in outputs]


def compile_c(job, function, sizes, outputs):
    number = "double" if job.dtype == "f64" else "float"
    generated = function.generate("f.c", {"casadi_real": number, "with_header": False})
    rows = sum(outputs)
    loop = LOOP.format(work=function.sz_w(), iwork=function.sz_iw(), arguments=function.sz_arg(),
                       results=function.sz_res(), inputs=sum(sizes), outputs=rows, entries=rows * sum(sizes))
    source, library = os.path.join(job.folder, "casadi.c"), os.path.join(job.folder, "casadi.so")
    with open(generated) as file:
        text = file.read()
    with open(source, "w") as file:
        file.write(text + f"\n#define T {number}\n" + loop)
    os.remove(generated)
    subprocess.run(["gcc", "-O3", "-march=native", "-fno-math-errno", "-fno-semantic-interposition", "-fPIC",
                    "-shared", "-w", source, "-o", library, "-lm", "-lpthread"], check=True)
    return ctypes.CDLL(library).run_all


def prepare(job: Job):
    import casadi as ca
    import numpy as np

    import tasks

    if job.task not in tasks.SCALAR:
        raise Absent(f"generates scalar code, which is not for {job.task}")
    os.chdir(job.folder)
    function, sizes, outputs = build(job, ca)
    call = compile_c(job, function, sizes, outputs)
    examples, rows, columns = max(job.batch, 1), sum(outputs), sum(sizes)
    packed = np.ascontiguousarray(
        np.concatenate([array.reshape(examples, -1) for array in job.inputs.values()], axis=1))
    value = np.zeros((examples, rows), packed.dtype)
    jacobian = np.zeros((examples, rows, columns), packed.dtype)
    arrays = (packed, value, jacobian)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    count, threads = ctypes.c_long(examples), ctypes.c_int(min(job.threads, 64))

    def run():
        call(*pointers, count, threads)
        return arrays  # which keeps them alive

    def results(_):
        names = list(job.inputs)
        row_at, column_at = np.cumsum([0, *outputs]), np.cumsum([0, *sizes])
        return named(
            [value[:, a:b] for a, b in zip(row_at, row_at[1:])],
            [[jacobian[:, a:b, c:d] for c, d in zip(column_at, column_at[1:])] for a, b in zip(row_at, row_at[1:])],
            names)

    versions = {"casadi": ca.__version__, "gcc": subprocess.getoutput("gcc -dumpfullversion")}
    return run, results, versions


if __name__ == "__main__":
    main(prepare)
