"""Two tiers: which tests `make test` leaves out, and which must share a process.

Said here once, by folder and by fixture, so that single tests need not say it. `make test-all`
runs everything.
"""

import gc
from functools import cache
from pathlib import Path

import pytest

import tiers

HERE = Path(__file__).parent

#: Tests that draw very often, try very many cases, start processes, Java or a browser: folder,
#: file or test.
SLOW = (
    "audit/",
    "bad_input/test_bad_flows.py::test_a_pipe_is_refused",
    "bad_input/test_bad_output.py",
    "bad_input/test_bad_releases.py::test_a_folder_with_a_strange_name",
    "bad_input/test_bad_releases.py::test_a_manifest_edited_by_hand",
    "bad_input/test_forged_releases.py::test_no_field_of_the_manifest_can_be_changed_unseen",
    "bad_input/test_forged_releases.py::test_nor_its_content_if_another_arrow",
    "browser/",
    "cli/test_compare_command.py::test_json_goes_to_standard_output_alone",
    "cli/test_compare_command.py::test_quiet_says_nothing",
    "cli/test_demo.py::test_ctrl_c_when_the_release_is_in_place_is_not_taken_for_a_failed_release[inftda.cli.query",
    "cli/test_preview_command.py::test_json_is_one_object",
    "cli/test_preview_command.py::test_totals_make_a_stand_in",
    "cli/test_query_and_verify.py::test_query_sums_to_the_total_at_every_cross_of_levels",
    "cli/test_release_command.py::test_a_release_does_not_wait_for_pandas",
    "cli/test_release_command.py::test_an_interrupted_release_leaves_nothing",
    "cli/test_report.py::test_estimates_go_onto_the_page",
    "cli/test_what_readers_must_know.py::test_everybody_is_told_what_was_counted[bounded",
    "cli/test_what_readers_must_know.py::test_everybody_is_told_what_was_counted[dropped",
    "cli/test_what_readers_must_know.py::test_everybody_is_told_what_was_counted[one",
    "crash/",
    "docs/",
    "engines/test_parts.py",
    "engines/test_sending.py",
    "engines/test_spark_neighbours.py",
    "engines/test_spark_sizes.py",
    "engines/test_spark_sources.py",
    "engines/test_tasks.py::test_tasks_make_what_one_machine_makes_to_the_bit",
    "leaks/test_leaks.py::test_no_true_total_is_written_or_printed_with_totals_across[add-remove",
    "leaks/test_spark_leaks.py",
    "privacy/",
    "property/test_across_properties.py::test_the_number_of_threads_changes_nothing",
    "property/test_count_properties.py",
    "property/test_optimize.py",
    "property/test_reading.py::test_files_read_back_are_the_flows",
    "property/test_topdown.py::test_a_release_is_positive_whole_and_has_the_public_total[tda",
    "statistical/",
    "unit/exports/",  # waits for the libraries of those who read exports
    "unit/mechanisms/test_prices.py::test_bounds_of_errors_grow",
    "unit/optimize/test_intopt.py::test_every_way_to_break_ties_is_equally_likely",
    "unit/optimize/test_intopt.py::test_permuted_input_gives_the_permuted_distribution",
    "unit/optimize/test_intopt.py::test_the_closed_form_equals_both_algorithms",
    "unit/optimize/test_intopt.py::test_the_test_of_ties_sees_one_result_in_ten",
    "unit/optimize/test_optimizers.py::test_results_are_among_those_of_the_exhaustive_search",
    "unit/optimize/test_optimizers.py::test_very_long_vectors_get_the_exact_sum_at_the_least_distance[20000",
    "unit/previews/test_preview.py::test_all_combinations_are_tried",
    "unit/publication/test_measurements.py::test_they_are_all_that_was_drawn_and_the_flows_stay_as_they_are[options1-0.3",
    "unit/publication/test_measurements.py::test_they_are_all_that_was_drawn_and_the_flows_stay_as_they_are[options2-0.3",
    "unit/reading/test_reading_bounding.py::test_a_person_with_absurdly_many_trips_is_bounded_like_any_other[stream",
    "unit/reading/test_reading_workspace.py::test_bounding_spills_as_well",
    "unit/reading/test_reading_workspace.py::test_more_rows_than_memory_holds",
    "unit/test_lattice.py::test_every_small_table_of_the_lattice_is_measured",
    "unit/test_other_tables.py::test_every_level_of_every_axis_is_the_sum",
    "unit/test_other_tables.py::test_the_error_of_every_measured_level_is_within",
    "unit/test_plain_install.py",
)
#: What takes seconds to set up, besides Spark: a database server, a release under watch.
SLOW_FIXTURES = frozenset({"server", "watched"})
#: What is fast all the same, or the least that must be seen of something slow: file and test.
#: With these, a fast run passes every module of the product.
FAST = (
    "audit/test_audit_evidence.py::test_bounds_on_a_probability_are_those_of_clopper_and_pearson",
    "audit/test_audit_faults.py::test_a_plan_refuses_rho_divided_over_too_few_levels",
    "audit/test_audit_faults.py::test_noise_with_a_variance_three_percent_off",
    "bad_input/test_bad_output.py::test_what_goes_wrong_after_publication",
    "docs/test_documents.py::test_a_page_does_what_it_says[README.md]",
    "docs/test_version.py::",
    "privacy/test_exact_small_trees.py::test_a_release_of_two_leaves_gives_away_all",
    "privacy/test_exact_small_trees.py::test_the_noise_of_every_level_costs_exactly_its_rho",
    "privacy/test_exact_small_trees.py::test_the_sensitivity_of_the_paper_is_seen",
    "statistical/test_chisquare.py::",
    "statistical/test_samplers.py::test_gaussian_draws_have_their_exact_probabilities",
    "unit/exports/test_export_folder.py::",
)
#: Folders and fixtures that share what takes long to start or all cores: each by one process.
GROUPS = {"browser": "browser", "crash": "crash", "integration": "server", "spark": "spark"}


def pytest_configure(config):
    tiers.is_fast = config.option.markexpr == "not slow"


def pytest_ignore_collect(collection_path, config):
    """Files of which a fast run takes nothing are not even read: they load large libraries."""
    if not tiers.is_fast or not is_everything(config):
        return None
    name = collection_path.relative_to(HERE).as_posix() + "/" * collection_path.is_dir()
    is_slow = name.startswith(tuple(start for start in SLOW if "::" not in start))
    return (is_slow and not any(fast.startswith(name) for fast in FAST)) or None


def pytest_collection_finish(session):
    """What is there now stays to the end: the collector of garbage need not look at it again."""
    gc.collect()
    gc.freeze()
    grouped = [item for item in session.items if item.get_closest_marker("xdist_group")]
    if getattr(session.config.option, "loadgroup", False) and grouped:
        # Not so with every version of pytest; Spark would be started by every process.
        assert "@" in grouped[0].nodeid, "xdist does not keep groups of tests together"


def pytest_sessionfinish():
    gc.unfreeze()


def is_everything(config):
    return config.args == config.getini("testpaths")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config, items):
    unused = set(FAST)
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue  # of the laboratory
        path = item.path.relative_to(HERE)
        name = f"{path.as_posix()}::{item.name}"
        if group := GROUPS.get("spark" if uses_spark(item) else path.parts[0]):
            item.add_marker(pytest.mark.xdist_group(group))
        if matches := [start for start in FAST if name.startswith(start)]:
            unused -= {*matches}
        elif name.startswith(SLOW) or takes_long_to_set_up(item):
            item.add_marker(pytest.mark.slow)
    if unused and is_everything(config):
        raise pytest.UsageError(f"tests/conftest.py names tests that are not there: {unused}")


def takes_long_to_set_up(item):
    return bool(SLOW_FIXTURES & {*item.fixturenames}) or uses_spark(item)


def uses_spark(item):
    call = getattr(item, "callspec", None)
    chosen = None if call is None else call.params.get("engine")
    return "spark" in item.fixturenames or chosen == "spark"


@pytest.fixture(scope="session", autouse=True)
def installed_packages():
    """Looked up once, not for every release: none is installed while tests run."""
    from inftda.publication import manifest  # noqa: PLC0415 - it may be loaded late only

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "version", cache(manifest.version))
        yield


@pytest.fixture(scope="session", autouse=True)
def databases(tmp_path_factory):
    """Few of them in a fast run, which would open thousands."""
    if not tiers.is_fast:
        yield
        return
    from shared_databases import shared_databases  # noqa: PLC0415 - it loads DuckDB

    with shared_databases(str(tmp_path_factory.mktemp("spilled"))):
        yield


@pytest.fixture
def own_databases(monkeypatch):
    """Every database opened anew also in a fast run, for tests of where it writes."""
    import duckdb  # noqa: PLC0415 - only for those who ask

    from shared_databases import CONNECT  # noqa: PLC0415 - likewise

    monkeypatch.setattr(duckdb, "connect", CONNECT)
