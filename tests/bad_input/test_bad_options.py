"""Budgets, units and other options that make no sense; their numbers are tested with plans."""

import pytest

BUDGET = ("--epsilon", "1", "--delta", "1e-8")


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (("--epsilon", "nan", "--delta", "1e-8"), "finite number"),
        (("--epsilon", "1e9", "--delta", "1e-8"), "guarantees nothing"),
        (("--epsilon", "one", "--delta", "1e-8"), "'--epsilon'"),
        (("--epsilon", "1", "--delta", "1e-101"), "at least 1e-100"),
        (("--epsilon", "1"), "got only epsilon = 1.0"),
        ((), "--epsilon 1 and --delta 1e-8, or rho; got neither"),
        ((*BUDGET, "--rho", "1"), "not all"),
        (("--rho", "1/0"), "0.1 or 1/10"),
        (("--rho", "1_0"), "0.1 or 1/10"),
        (("--rho", "9" * 5000), "0.1 or 1/10"),
        (("--rho", "1e-999"), "larger epsilon or rho"),
    ],
)
def test_a_budget_without_a_guarantee_is_refused(refuse_release, budget, says):
    refuse_release(budget=budget, says=says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--trips", "1.5"), "'--trips'"),
        (("--trips", "9" * 23), "fewer trips"),
        (("--accountant", "exact", "--trips", "2"), "use 'zcdp' or 'auto'"),
        (("--split", "1,,1,1"), "must be numbers with commas"),
        (("--split", ""), "'uniform'"),
        (("--engine", "steam"), "local or spark"),
        (("--threads", "0"), "at least 1"),
        (("--threads", "47171"), "at most 1,024"),
        (("--not-private-seed", "x"), "'--not-private-seed'"),
        (("--count", "nothing"), "no column 'nothing'"),
        (("--count", "origin"), "given twice"),
        (("--encoding", "cp1252"), "one of utf-8, utf-16, latin-1"),
        (("--encoding", "utf-16"), "not utf-16 text"),
        (("--sql", "SELECT 1"), "both --sql and --database"),
        (("--frobnicate",), "--help"),
        (("second.csv",), "--help"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(refuse_release, options, says):
    refuse_release(*options, says=says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("release", "flows.csv", "--areas", "areas.csv", *BUDGET), "--out"),
        (("release", "--areas", "areas.csv", *BUDGET, "--out", "out"), "FLOWS"),
        (("plan", *BUDGET, "--sizes", "1,99999999999999"), "at most"),
    ],
)
def test_a_command_without_what_it_needs_is_refused(refuse, arguments, says):
    refuse(*arguments, says=says)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("epsilon = 1\nepsilon = 2", "not TOML"),
        ("\0", "not TOML"),
        (b"\xff\xfe\x00", "not TOML"),
        ("epsilonn = 1", "did you mean 'epsilon'"),
        ("epsilon = [1]", "'epsilon'"),
        ("force = 'maybe'", "'force'"),
        ("config = 'other.toml'", "unknown key"),
        ("split = {leaves = 1}", "'uniform'"),
        ("axis = 'mode'", "--axis must be NAME=VALUE"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(refuse_release, write, content, says):
    budget = ("--delta", "1e-8") if "epsilon" in str(content) else BUDGET
    refuse_release("--config", write("x.toml", content), budget=budget, says=says)


@pytest.mark.parametrize("path", ["nothing.toml", "."])
def test_a_configuration_that_is_not_there_is_refused(refuse_release, path):
    refuse_release("--config", path, says="cannot read the configuration")
