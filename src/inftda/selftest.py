"""Does this installation do what it says? Samplers, optimiser and accountants, in seconds."""

from collections.abc import Iterator

from inftda.checks import Check


def self_test() -> Iterator[Check]:
    """Check samplers, optimiser and accountants with fresh random bits.

    Together the statistical checks raise a false alarm less than once in a million runs.
    """
    from inftda.noise.selfcheck import self_check_samplers  # noqa: PLC0415 - compiled kernels
    from inftda.optimize.selfcheck import self_check_optimizer  # noqa: PLC0415
    from inftda.privacy.selfcheck import self_check_accounting  # noqa: PLC0415

    for check in (self_check_samplers, self_check_optimizer, self_check_accounting):
        yield from check()
