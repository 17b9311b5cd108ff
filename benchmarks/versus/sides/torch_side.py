# SPDX-License-Identifier: Apache-2.0
"""PyTorch: torch.func.jacrev, vmapped over a batch, through torch.compile or as it is."""

from serve import Job, main, named


def space(torch):
    class Space:
        sqrt, exp, log, sin, cos, tanh, abs = torch.sqrt, torch.exp, torch.log, torch.sin, torch.cos, torch.tanh, torch.abs
        arctan2, erf, sum, concatenate = torch.arctan2, torch.erf, torch.sum, torch.cat

        @staticmethod
        def transpose(x):
            return x.transpose(0, 1)

        @staticmethod
        def constant(x):
            return x.detach()

        @staticmethod
        def maximum_of_rows(x):
            return torch.amax(x, dim=-1, keepdim=True)

        @staticmethod
        def sum_of_rows(x):
            return torch.sum(x, dim=-1, keepdim=True)

        @staticmethod
        def gradient(function, arguments):
            return torch.func.grad(function, argnums=tuple(range(len(arguments))))(*arguments)

    return Space


def prepare(job: Job):
    import torch

    import tasks

    torch.set_num_threads(job.threads)
    function, xp = tasks.FUNCTIONS[job.task], space(torch)
    names = list(job.inputs)

    def with_value(*arguments):
        values = function(xp, *arguments)
        return values, values

    jacobian = torch.func.jacrev(with_value, argnums=tuple(range(len(names))), has_aux=True)
    if job.is_mapped:
        in_dims = tuple(0 if name in job.batched else None for name in names)
        jacobian = torch.func.vmap(jacobian, in_dims=in_dims)
    run = torch.compile(jacobian) if job.variant == "compiled" else jacobian
    arguments = [torch.tensor(array) for array in job.inputs.values()]

    def results(pair):
        blocks, values = pair
        return named([v.detach().numpy() for v in values], [[b.detach().numpy() for b in row] for row in blocks],
                     names)

    def once():
        with torch.no_grad():
            return run(*arguments)

    for _ in range(2):  # the second call may compile again
        once()
    return once, results, {"torch": torch.__version__}


if __name__ == "__main__":
    main(prepare)
