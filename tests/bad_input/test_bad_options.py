"""Budgets, units and other options that make no sense."""

import pytest

BUDGET = ("--epsilon", "1", "--delta", "1e-8")


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (("--epsilon", "0", "--delta", "1e-8"), "between 1e-09 and 1000"),
        (("--epsilon", "-1", "--delta", "1e-8"), "between 1e-09 and 1000"),
        (("--epsilon", "nan", "--delta", "1e-8"), "finite number"),
        (("--epsilon", "inf", "--delta", "1e-8"), "finite number"),
        (("--epsilon", "1e9", "--delta", "1e-8"), "promises nothing"),
        (("--epsilon", "1e-300", "--delta", "1e-8"), "between 1e-09 and 1000"),
        (("--epsilon", "one", "--delta", "1e-8"), "'--epsilon'"),
        (("--epsilon", "", "--delta", "1e-8"), "'--epsilon'"),
        (("--epsilon", "1", "--delta", "0"), "far below 1 / number of people"),
        (("--epsilon", "1", "--delta", "1"), "far below 1 / number of people"),
        (("--epsilon", "1", "--delta", "-1"), "far below 1 / number of people"),
        (("--epsilon", "1", "--delta", "nan"), "finite number"),
        (("--epsilon", "1", "--delta", "1e-400"), "at least 1e-100"),
        (("--epsilon", "1"), "delta = None"),
        (("--delta", "1e-8"), "epsilon = None"),
        ((), "either epsilon and delta, or rho"),
        ((*BUDGET, "--rho", "1"), "not all"),
        (("--rho", "0"), "> 0"),
        (("--rho", "-1/2"), "> 0"),
        (("--rho", "1e5"), "at most 5000"),
        (("--rho", "nan"), "0.1 or 1/10"),
        (("--rho", "1/0"), "0.1 or 1/10"),
        (("--rho", ""), "0.1 or 1/10"),
        (("--rho", "1_0"), "0.1 or 1/10"),
        (("--rho", "1e999999999"), "0.1 or 1/10"),
        (("--rho", "9" * 5000), "0.1 or 1/10"),
        (("--rho", "1e-999"), "larger epsilon or rho"),
    ],
)
def test_a_budget_that_promises_nothing_is_refused(refuse_release, budget, says):
    refuse_release(budget=budget, says=says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--trips", "0"), "at least 1"),
        (("--trips", "-3"), "at least 1"),
        (("--trips", "1.5"), "'--trips'"),
        (("--trips", "9" * 23), "fewer trips"),
        (("--neighbours", "friends"), "substitute or add-remove"),
        (("--accountant", "magic"), "auto, exact, zcdp"),
        (("--accountant", "exact", "--trips", "2"), "use 'zcdp' or 'auto'"),
        (("--accountant", "pld"), "auto, exact, zcdp"),
        (("--split", "0,1,1,1"), "number > 0"),
        (("--split", "-1,1,1,1"), "number > 0"),
        (("--split", "nan,1,1,1"), "number > 0"),
        (("--split", "inf,1,1,1"), "number > 0"),
        (("--split", "1,1"), "4 measured levels"),
        (("--split", "1,,1,1"), "must be numbers with commas"),
        (("--split", "geometric:0"), "between 0.01 and 100"),
        (("--split", "geometric:-2"), "between 0.01 and 100"),
        (("--split", "geometric:nan"), "geometric:1.3"),
        (("--split", "geometric:1e999999999"), "geometric:1.3"),
        (("--split", "linear"), "'uniform'"),
        (("--split", ""), "'uniform'"),
        (("--engine", "steam"), "local or spark"),
        (("--threads", "0"), "at least 1"),
        (("--threads", "many"), "'--threads'"),
        (("--not-private-seed", "x"), "'--not-private-seed'"),
        (("--count", "nothing"), "no column 'nothing'"),
        (("--count", "origin"), "given twice"),
        (("--count", ""), "no column ''"),
        (("--encoding", "cp1252"), "one of utf-8, utf-16, latin-1"),
        (("--encoding", "utf-16"), "not utf-16 text"),
        (("--origin", "destination"), "given twice"),
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
        (("frobnicate",), "No such command"),
        (("plan", *BUDGET), "give areas"),
        (("plan", *BUDGET, "--sizes", "3,2"), "growing numbers"),
        (("plan", *BUDGET, "--sizes", "x"), "whole numbers"),
        (("plan", *BUDGET, "--sizes", "1"), "nothing to measure"),
        (("plan", *BUDGET, "--sizes", "1,99999999999999"), "at most"),
        (("plan", *BUDGET, "--sizes", "5,10", "--beta", "0"), "beta"),
        (("plan", *BUDGET, "--sizes", "5,10", "--beta", "nan"), "beta"),
        (("verify", "nothing"), "check the path"),
        (("verify",), "RELEASE"),
    ],
)
def test_a_command_without_what_it_needs_is_refused(refuse, arguments, says):
    refuse(*arguments, says=says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("epsilon", "not TOML"),
        ("[epsilon", "not TOML"),
        ("epsilon = 1\nepsilon = 2", "not TOML"),
        ("\0", "not TOML"),
        ("epsilonn = 1", "did you mean 'epsilon'"),
        ("epsilon = 'one'", "'epsilon'"),
        ("epsilon = [1]", "'epsilon'"),
        ("epsilon = inf", "finite number"),
        ("trips = 1.5", "'trips'"),
        ("force = 'maybe'", "'force'"),
        ("config = 'other.toml'", "unknown key"),
        ("order = 3", "the axes are"),
        ("split = {leaves = 1}", "'uniform'"),
        ("axis = 'mode'", "--axis must be NAME=VALUE"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(refuse_release, write, text, says):
    config = write("x.toml", text)
    budget = ("--delta", "1e-8") if "epsilon" in text else BUDGET
    refuse_release("--config", config, budget=budget, says=says)


@pytest.mark.parametrize("path", ["nothing.toml", "."])
def test_a_configuration_that_is_not_there_is_refused(refuse_release, path):
    refuse_release("--config", path, says="cannot read the configuration")


def test_a_configuration_in_another_encoding_is_refused(refuse_release, write):
    refuse_release("--config", write("x.toml", b"\xff\xfe\x00"), says="not TOML")
