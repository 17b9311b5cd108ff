# SPDX-License-Identifier: Apache-2.0
"""JAX: jit of jacrev or jacfwd, vmapped over a batch. The value comes with the Jacobian."""

from serve import Absent, Job, main, named


def space(jax):
    jnp = jax.numpy

    class Space:
        sqrt, exp, log, sin, cos, tanh, abs = jnp.sqrt, jnp.exp, jnp.log, jnp.sin, jnp.cos, jnp.tanh, jnp.abs
        arctan2, erf, sum, concatenate, transpose = jnp.arctan2, jax.scipy.special.erf, jnp.sum, jnp.concatenate, jnp.transpose
        constant = jax.lax.stop_gradient

        @staticmethod
        def maximum_of_rows(x):
            return jnp.max(x, axis=-1, keepdims=True)

        @staticmethod
        def sum_of_rows(x):
            return jnp.sum(x, axis=-1, keepdims=True)

        @staticmethod
        def gradient(function, arguments):
            return jax.grad(function, argnums=tuple(range(len(arguments))))(*arguments)

    return Space


def prepare(job: Job):
    import jax
    import jaxlib
    import numpy as np

    import tasks

    jax.config.update("jax_enable_x64", job.dtype == "f64")
    function, xp = tasks.FUNCTIONS[job.task], space(jax)
    names = list(job.inputs)

    def with_value(*arguments):
        values = function(xp, *arguments)
        return values, values

    transform = {"jacrev": jax.jacrev, "jacfwd": jax.jacfwd}[job.variant]
    jacobian = transform(with_value, argnums=tuple(range(len(names))), has_aux=True)
    if job.is_mapped:
        jacobian = jax.vmap(jacobian, in_axes=tuple(0 if name in job.batched else None for name in names))
    compiled = jax.jit(jacobian)
    arguments = [jax.numpy.asarray(array) for array in job.inputs.values()]
    versions = {"jax": jax.__version__, "jaxlib": jaxlib.__version__}

    def results(pair):
        blocks, values = pair
        return named([np.asarray(v) for v in values], [[np.asarray(b) for b in row] for row in blocks], names)

    return lambda: jax.block_until_ready(compiled(*arguments)), results, versions


if __name__ == "__main__":
    main(prepare)
