"""The guarantee: epsilon and delta, or a cost in zCDP, and the noise that achieves it."""

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from inftda.errors import PrivacyError
from inftda.noise.distribution import Family, Noise
from inftda.privacy.accountants import AUTO, PURE, ZCDP, Part, resolve
from inftda.privacy.accounting import (
    Number,
    Share,
    delta_of,
    epsilon_of,
    max_rho,
    noise_at,
    pure_noise,
)
from inftda.util.exact_numbers import checked_delta, checked_epsilon, checked_rho, exact_number


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The guarantee that is asked for.

    It is epsilon and delta, or rho. With rho, one of epsilon and delta may be given, and the plan
    states the other with it.

    Attributes:
        epsilon: epsilon of differential privacy.
        delta: delta of differential privacy; 0 for Laplace noise everywhere.
        rho: rho of zCDP.
    """

    epsilon: float | None
    delta: float | None
    rho: Fraction | None

    @classmethod
    def of(cls, epsilon: Number | None, delta: Number | None, rho: Number | None) -> "Guarantee":
        """Check the parameters and make the guarantee.

        Raises:
            PrivacyError: a parameter is missing, out of range, or contradicts the others.
        """
        if rho is None and (epsilon is None or delta is None):
            given = {"epsilon": epsilon, "delta": delta}
            got = [f"only {name} = {it}" for name, it in given.items() if it is not None]
            raise PrivacyError(
                "a budget is either epsilon and delta, such as `epsilon=1` and `delta=1e-8`, or "
                f"rho; got {''.join(got) or 'neither'}"
            )
        if rho is not None and epsilon is not None and delta is not None:
            raise PrivacyError("give epsilon and delta, or rho with at most one of them, not all")
        known = None if epsilon is None else checked_epsilon(epsilon)
        cost = None if rho is None else checked_rho(rho)
        if delta is None:
            return cls(known, None, cost)
        is_zero = cost is None and _is_zero(delta)
        return cls(known, 0.0 if is_zero else checked_delta(delta), cost)

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0."""
        return self.delta == 0

    @property
    def family(self) -> Family:
        """Family of the noise distribution at all levels except the finest."""
        return "laplace" if self.is_pure else "gaussian"

    def accountant(self, name: str) -> str:
        """Choose the name of the accountant: the given one, or that of delta 0."""
        if not self.is_pure:
            return name
        if name not in {AUTO, PURE.name}:
            raise PrivacyError(
                f"`delta=0` is accounted for by {PURE.name!r} (or {AUTO!r}), got {str(name)[:40]!r}"
            )
        return PURE.name

    def noise(self, shares: tuple[Share, ...], accountant: str) -> tuple[Noise, ...]:
        """Calibrate noise that achieves the guarantee, divided by shares of the budget."""
        if self.rho is not None:
            noise = noise_at(self.rho, shares)
        elif self.epsilon is None or self.delta is None:
            raise PrivacyError("without rho, epsilon and delta are needed together")
        elif self.is_pure:
            noise = pure_noise(exact_number(self.epsilon), shares)
        else:
            largest = max_rho(accountant, epsilon=self.epsilon, delta=self.delta, shares=shares)
            noise = noise_at(largest, shares)
        return tuple(one.check() for one in noise)

    def stated(
        self, accountant: str, parts: tuple[Part, ...]
    ) -> tuple[str, float | None, float | None]:
        """Name of the accountant, epsilon and delta as a plan with such noise states them."""
        used = resolve(accountant, parts)
        if self.rho is None:
            return used.name, self.epsilon, self.delta
        if self.delta is not None:
            return used.name, epsilon_of(accountant, delta=self.delta, parts=parts), self.delta
        if self.epsilon is None:
            # The guarantee is rho alone, which zCDP accounts for.
            return ZCDP.name if accountant == AUTO else used.name, None, None
        found = delta_of(accountant, epsilon=self.epsilon, parts=parts)
        if found >= 1:
            raise PrivacyError(
                f"this rho gives no guarantee at epsilon {self.epsilon:g}; give a larger one"
            )
        return used.name, self.epsilon, found


def _is_zero(delta: Number) -> bool:
    """Tell whether delta is 0, however it is written."""
    with suppress(ValueError, ZeroDivisionError):
        return delta == 0 or (isinstance(delta, str) and exact_number(delta) == 0)
    return False
