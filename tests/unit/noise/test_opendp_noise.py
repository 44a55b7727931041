"""OpenDP as a source of noise: refused when unsound, never given too small a scale."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inftda.errors import MissingExtraError, PrivacyError
from inftda.noise import opendp
from inftda.noise.opendp import OpenDPGaussian, sqrt_up


@given(st.fractions(min_value=Fraction(1, 2**100), max_value=2**100))
def test_the_scale_is_never_rounded_down_and_hardly_up(sigma2):
    sigma = sqrt_up(sigma2)
    assert Fraction(sigma) ** 2 >= sigma2
    below = sigma
    for _ in range(3):
        below = math.nextafter(below, 0)
    assert Fraction(below) ** 2 < sigma2


def test_it_draws_integers_into_the_array():
    out = np.full(50, 10**6, dtype=np.int64)
    OpenDPGaussian(25).fill(out, None)
    assert np.abs(out).max() < 100
    assert len(np.unique(out)) > 5
    assert OpenDPGaussian("81/4").sample(3).dtype == np.int64


@pytest.mark.parametrize("version", ["0.9.0", "0.11.1", "0.14.1", "0.14"])
def test_versions_that_draw_wrong_noise_are_refused(monkeypatch, version):
    monkeypatch.setattr(opendp.metadata, "version", lambda _: version)
    with pytest.raises(PrivacyError, match=rf"0\.14\.2 or later, got {version}"):
        OpenDPGaussian(25)


@pytest.mark.parametrize("version", ["0.14.2", "0.15.0.dev20250101001", "1.0"])
def test_later_versions_are_accepted(monkeypatch, version):
    monkeypatch.setattr(opendp.metadata, "version", lambda _: version)
    assert opendp.check_version() == version


def test_its_absence_is_reported(monkeypatch):
    def missing(name):
        raise opendp.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(opendp.metadata, "version", missing)
    with pytest.raises(MissingExtraError, match="pip install"):
        OpenDPGaussian(25)


def test_it_is_not_loaded_until_it_is_used():
    code = "import sys, inftda.noise.opendp; sys.exit('opendp.prelude' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
