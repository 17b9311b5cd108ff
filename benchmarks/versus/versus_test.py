# SPDX-License-Identifier: Apache-2.0
"""The proof, the turns and the arguments, with sides that are no tools. Needs only Python."""

import contextlib
import io
import math
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import contest
import run

ANSWER = """
import sys
print('{"versions": {"fake": "1"}, "prepare_seconds": 0}', flush=True)
for line in sys.stdin:
    print(' '.join(['%d'] * int(line)), flush=True)
"""


def fake(name, nanoseconds):
    side = contest.Side(name, [sys.executable, "-c", ANSWER % nanoseconds])
    side.wait_until_ready(30)
    return side


class Proof(unittest.TestCase):
    reference = {"out.0": [1.0, 2.0], "jac.0.x": [4.0, -8.0], "jac.0.y": [1e-12, 0.0]}

    def changed(self, name, entries):
        return contest.deviation({**self.reference, name: entries}, self.reference)

    def test_equal(self):
        self.assertEqual(contest.deviation(self.reference, self.reference)[0], 0)

    def test_in_units_of_the_largest_of_the_block(self):
        self.assertEqual(self.changed("jac.0.x", [4.0, -6.0]), (0.25, "jac.0.x"))
        self.assertEqual(self.changed("out.0", [1.5, 2.0]), (0.25, "out.0"))

    def test_negligible_blocks_in_units_of_the_whole(self):
        worst, block = self.changed("jac.0.y", [2e-12, 0.0])
        self.assertEqual(block, "jac.0.y")
        self.assertAlmostEqual(worst, 1e-12 / 8e-6)

    def test_what_is_not_finite_must_agree(self):
        nan, inf = math.nan, math.inf
        self.assertEqual(contest.deviation({"out.0": [nan, inf]}, {"out.0": [nan, inf]})[0], 0)
        for odd in ([nan, 2.0], [inf, 2.0]):
            self.assertEqual(self.changed("out.0", odd)[0], inf)
        self.assertEqual(contest.deviation({"out.0": [-inf]}, {"out.0": [inf]})[0], inf)

    def test_names_and_sizes(self):
        with self.assertRaisesRegex(contest.Failed, "jac.0.y"):
            contest.deviation({"out.0": [], "jac.0.x": []}, self.reference)
        with self.assertRaisesRegex(contest.Failed, "3 entries instead of 2"):
            self.changed("out.0", [1.0, 2.0, 3.0])

    def test_tolerances(self):
        self.assertEqual(contest.tolerance("RoeFlux_1d", "f64"), 1e-9)
        self.assertEqual(contest.tolerance("RobotArm_6DOF", "f32"), 1e-3)


class Turns(unittest.TestCase):
    def test_every_side_runs_in_every_round(self):
        sides = [fake("one", 50_000_000), fake("two", 100_000_000)]
        contest.take_turns(sides, rounds=3, turn_seconds=0.2)
        self.assertEqual([len(side.nanoseconds) for side in sides], [12, 6])
        self.assertEqual(contest.summary(sides[1], sides[0])["ratio_of_medians"], 2)
        self.assertEqual(contest.summary(sides[1], sides[0])["min_ms"], 100)
        for side in sides:
            side.close()

    def test_sides_that_fail_or_are_too_slow_drop_out(self):
        good, slow, dead = fake("good", 10**8), fake("slow", 9 * 10**9), fake("dead", 10**8)
        dead.process.kill()
        dead.process.wait()
        out = contest.take_turns([good, slow, dead], rounds=2, turn_seconds=0.1, slowest=5)
        self.assertEqual(out[slow], "9 s for one run")
        self.assertEqual(set(out), {slow, dead})
        self.assertEqual(len(good.nanoseconds), 2)
        for side in (good, slow, dead):
            side.close()

    def test_sides_that_cannot(self):
        absent = contest.Side("absent", [sys.executable, "-c", "print('{\"absent\": \"no such tool\"}')"])
        with self.assertRaisesRegex(contest.Failed, "no such tool"):
            absent.wait_until_ready(30)
        dead = contest.Side("dead", [sys.executable, "-c", ""])
        with self.assertRaisesRegex(contest.Failed, "ended without an answer"):
            dead.wait_until_ready(30)
        slow = contest.Side("slow", [sys.executable, "-c", "import time; time.sleep(60)"])
        with self.assertRaisesRegex(contest.Failed, "no answer within 0 s"):
            slow.wait_until_ready(0.01)
        for side in (absent, dead, slow):
            side.close()


class Arguments(unittest.TestCase):
    def refused(self, *words):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as stop:
            run.parse(list(words))
        self.assertEqual(stop.exception.code, 2)
        return errors.getvalue()

    def test_a_tool_stands_for_its_variants(self):
        self.assertEqual(run.expand("jax"), ["jax-jacrev", "jax-jacfwd"])
        self.assertEqual(run.expand("casadi,jax-jacfwd,casadi"), ["casadi", "casadi-cse", "jax-jacfwd"])

    def test_mistakes(self):
        self.assertIn("unknown peer 'jx'", self.refused("Encoder", "--peers", "jx"))
        self.assertIn("invalid choice: 'Encodr'", self.refused("Encodr"))
        self.assertIn("--scale is only for Encoder", self.refused("RoeFlux_1d", "--scale", "2"))
        self.assertIn("'0': expected a whole number", self.refused("Encoder", "--batch", "0"))
        self.assertIn("-DLOIPE_BENCHMARKS=ON", self.refused("Encoder", "--worker", "/no/such/worker"))

    def test_openblas_settings_are_left_out(self):
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"
        self.assertNotIn("OPENBLAS_CORETYPE", run.environment(1))
        self.assertEqual(run.environment(2)["OMP_NUM_THREADS"], "2")


if __name__ == "__main__":
    unittest.main()
