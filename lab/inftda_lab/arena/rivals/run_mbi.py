"""mbi (private-pgm): noise on every cell of each level of the tree, one model fitted to all."""

import time
from contextlib import suppress

import jax
import numpy as np
from tables import Task

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402 - after the setting
from mbi import CliqueVector, Domain, Factor, estimation, marginal_loss  # noqa: E402

BOTH = ("o", "d")
#: Calls of `watch`, of 50 steps each, without a gain of a millionth: converged.
CALM = 20


class EnoughError(Exception):
    """The fit has converged, or its time is up."""


task = Task()
truth, n = task.matrix(), len(task.finest)
random = np.random.default_rng()


def sums(level):
    """Matrix that sums up finest areas."""
    if level == "all":
        return np.ones((n, 1))
    found = np.zeros((n, len(task.codes[level])))
    found[np.arange(n), task.within[level]] = 1
    return found


domain, measurements, noisy = Domain(BOTH, [n, n]), [], []
for ends, sigma in zip(task.tree(), task.settings["sigmas"], strict=True):
    rows, columns = map(sums, ends)
    is_finest = ends == (task.levels[-1],) * 2
    true = truth if is_finest else rows.T @ truth @ columns
    noisy.append(np.rint(true + random.normal(0, sigma, true.shape)))
    left, right = jnp.asarray(rows.T), jnp.asarray(columns)
    query = () if is_finest else (lambda f, a=left, b=right: (a @ f.values @ b).ravel(),)
    measurements.append(
        marginal_loss.LinearMeasurement(noisy[-1].ravel(), BOTH, float(sigma), *query)
    )

# A warm start: noisy flows that are positive, scaled to the noisy levels.
start = np.maximum(noisy[-1], 0.3)
for _ in range(3):
    for ends, value in zip(task.tree()[:-1], noisy[:-1], strict=True):
        rows, columns = map(sums, ends)
        ratio = np.maximum(value, 0.5) / np.maximum(rows.T @ start @ columns, 1e-9)
        start *= rows @ ratio @ columns.T
start *= truth.sum() / start.sum()
warm = CliqueVector(domain, [BOTH], {BOTH: Factor(domain, jnp.asarray(np.log(start)))})
loss_of = marginal_loss.from_linear_measurements(measurements, domain)
losses, best = [], {}


def watch(marginals):
    loss = float(loss_of(marginals))
    losses.append(loss)
    if np.isfinite(loss) and loss <= best.get("loss", np.inf):
        best.update(loss=loss, flows=np.asarray(marginals[BOTH].values))
    is_calm = len(losses) > CALM and losses[-CALM - 1] - loss < 1e-6 * loss
    if is_calm or not np.isfinite(loss) or time.process_time() > task.settings["seconds"]:
        best["is_calm"] = is_calm
        raise EnoughError


with suppress(EnoughError):
    estimation.MirrorDescent().estimate(
        domain,
        measurements,
        iters=10**7,
        known_total=float(truth.sum()),
        warm_start=warm,
        callback_fn=watch,
    )
earlier = losses[len(losses) * 9 // 10]
fell = 100 * (earlier / best["loss"] - 1)
said = (
    "converged"
    if best["is_calm"]
    else f"not converged: the loss fell by {fell:.2g} % in the last tenth of them"
)
task.say(f"{50 * len(losses):,} steps in {time.process_time():.0f} CPU seconds, {said}")
flows = best["flows"]
task.write_matrix(np.where(flows > 1e-6, flows, 0))
