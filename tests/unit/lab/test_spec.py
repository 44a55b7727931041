"""What to run: read from a file, and refused before hours of work."""

import pytest
from tiny_experiment import tiny_spec

from inftda.errors import InftdaError
from inftda.lab.experiments.spec import Spec

GOOD = """
mechanisms = ["inftda", "stability-histogram"]
epsilons = [0.5, 2]
delta = 1e-6
runs = 3
settings = ["ours", "published"]
time_limit = 5
seed = 9

[[dataset]]
name = "binary"
synthetic = "binary_sparse"

[[dataset]]
name = "mine"
flows = "data/flows.csv"
areas = "../areas.csv"
published = "Italy"
"""


@pytest.fixture
def read(tmp_path):
    """Reads a spec from text."""

    def from_text(text):
        path = tmp_path / "spec.toml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return Spec.read(path)

    return from_text


def test_a_file_says_everything_and_its_paths_are_relative_to_it(read, tmp_path):
    spec = read(GOOD)
    assert spec.mechanisms == ("inftda", "stability-histogram")
    assert spec.epsilons == (0.5, 2)
    assert (spec.delta, spec.runs, spec.time_limit, spec.seed) == (1e-6, 3, 5, 9)
    assert spec.settings == ("ours", "published")
    first, second = spec.datasets
    assert (first.name, first.synthetic, first.flows) == ("binary", "binary_sparse", None)
    assert second.flows == tmp_path / "data" / "flows.csv"
    assert second.areas.resolve() == (tmp_path.parent / "areas.csv").resolve()
    assert second.published == "Italy"


def test_what_is_not_said_is_as_in_the_paper(read):
    spec = read('mechanisms = ["inftda"]\n[[dataset]]\nname = "a"\nsynthetic = "random_dense"\n')
    assert spec.epsilons == (0.1, 1.0, 10.0)
    assert (spec.delta, spec.runs, spec.settings) == (1e-8, 10, ("ours",))


def test_a_data_set_may_have_mechanisms_of_its_own(read):
    spec = read(GOOD + 'mechanisms = ["vanilla-gauss"]\n')
    assert spec.datasets[0].mechanisms is None
    assert spec.datasets[1].mechanisms == ("vanilla-gauss",)
    with pytest.raises(InftdaError, match="no mechanism 'magic'"):
        read(GOOD + 'mechanisms = ["magic"]\n')


def test_files_are_confidential_unless_they_are_said_to_be_public(read):
    assert read(GOOD).confidential == ("mine",)
    assert read(GOOD + "public = false\n").confidential == ("mine",)
    assert read(GOOD + "public = true\n").confidential == ()


DATASET = '[[dataset]]\nname = "a"\nsynthetic = "binary_sparse"\n'
HEAD = 'mechanisms = ["inftda"]\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "name at least one"),
        (HEAD, "name at least one"),
        (HEAD + "dataset = 3\n", "name at least one"),
        (HEAD + 'dataset = "a"\n', "name at least one"),
        (HEAD + '[dataset]\nname = "a"\n', "name at least one"),
        (HEAD + "dataset = [3]\n", "name at least one"),
        ("mechanisms = [", "not TOML"),
        (b"\xff\xfe", "not TOML"),
        (DATASET, "mechanisms"),
        ("mechanisms = []\n" + DATASET, "mechanisms"),
        ('mechanisms = "inftda"\n' + DATASET, "mechanisms must be a list"),
        ("mechanisms = [3]\n" + DATASET, "mechanisms must be a list"),
        ('mechanisms = ["magic"]\n' + DATASET, "no mechanism 'magic'"),
        (HEAD + "frobnicate = 1\n" + DATASET, "unknown key 'frobnicate'"),
        (HEAD + "epsilons = []\n" + DATASET, "epsilons"),
        (HEAD + "epsilons = 1\n" + DATASET, "epsilons must be a list"),
        (HEAD + 'epsilons = ["one"]\n' + DATASET, "epsilons must be a list"),
        (HEAD + "epsilons = [true]\n" + DATASET, "epsilons must be a list"),
        (HEAD + "epsilons = [1, 0]\n" + DATASET, "epsilon must be between"),
        (HEAD + "epsilons = [nan]\n" + DATASET, "epsilon must be a finite"),
        (HEAD + "epsilons = [1, 1.0]\n" + DATASET, "twice"),
        (HEAD + "delta = 0\n" + DATASET, "delta must be"),
        (HEAD + 'delta = "small"\n' + DATASET, "delta must be"),
        (HEAD + "runs = 0\n" + DATASET, "runs must be"),
        (HEAD + "runs = 1.5\n" + DATASET, "runs must be"),
        (HEAD + 'runs = "ten"\n' + DATASET, "runs must be"),
        (HEAD + "runs = true\n" + DATASET, "runs must be"),
        (HEAD + "time_limit = 0\n" + DATASET, "time_limit must be"),
        (HEAD + 'time_limit = "1 h"\n' + DATASET, "time_limit must be"),
        (HEAD + 'seed = "x"\n' + DATASET, "seed must be"),
        (HEAD + "settings = []\n" + DATASET, "settings"),
        (HEAD + 'settings = "ours"\n' + DATASET, "settings must be a list"),
        (HEAD + 'settings = ["theirs"]\n' + DATASET, "settings are ours, across, published"),
        (HEAD + DATASET + DATASET, "twice"),
        (HEAD + '[[dataset]]\nsynthetic = "binary_sparse"\n', "a .*dataset.* has name"),
        (HEAD + DATASET + "colour = 1\n", "a .*dataset.* has name"),
        (HEAD + '[[dataset]]\nname = "a"\n', "needs flows and areas"),
        (HEAD + '[[dataset]]\nname = "a"\nflows = "x.csv"\n', "needs flows and areas"),
        (HEAD + '[[dataset]]\nname = "a"\nsynthetic = "dense"\n', "no synthetic data set"),
        (HEAD + '[[dataset]]\nname = "a"\nflows = 1\nareas = 2\n', "'flows'"),
        (HEAD + '[[dataset]]\nname = 3\nsynthetic = "binary_sparse"\n', "'name'"),
        (HEAD + DATASET + 'public = "no"\n', "'public' .* must be true or false"),
        (HEAD + DATASET + "public = 1\n", "'public' .* must be true or false"),
    ],
)
def test_what_makes_no_sense_is_one_clear_error(read, text, says):
    with pytest.raises(InftdaError, match=says):
        read(text)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InftdaError, match="cannot read"):
        Spec.read(tmp_path / "nothing.toml")
    with pytest.raises(InftdaError, match="cannot read"):
        Spec.read(tmp_path)


def test_a_mechanism_the_paper_does_not_have_is_not_run_with_its_settings(read):
    """Before the work, and not after the others have been run for hours."""
    text = 'mechanisms = ["inftda", "inftda-descending"]\nsettings = ["published"]\n' + DATASET
    with pytest.raises(InftdaError, match="nothing was published for the mechanism"):
        read(text)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "../up", ".hidden", "caf\u00e9"])
def test_a_name_that_is_no_part_of_a_file_name_is_refused(read, name):
    with pytest.raises(InftdaError, match="letters, digits"):
        read(HEAD + f'[[dataset]]\nname = "{name}"\nsynthetic = "binary_sparse"\n')


def test_a_spec_made_by_hand_is_checked_likewise(tmp_path):
    tiny_spec(tmp_path).check()
    wrong = ({"runs": 0}, {"epsilons": (-1.0,)}, {"mechanisms": ("magic",)}, {"public": "no"})
    for changes in wrong:
        with pytest.raises(InftdaError):
            tiny_spec(tmp_path, **changes).check()


def test_further_axes_are_files_by_the_names_of_their_columns(tmp_path):
    (tmp_path / "spec.toml").write_text(
        'mechanisms = ["inftda"]\n[[dataset]]\nname = "a"\nflows = "f.csv"\nareas = "a.csv"\n'
        'axes = {mode = "modes.csv"}\n'
    )
    (dataset,) = Spec.read(tmp_path / "spec.toml").datasets
    assert dataset.axes == {"mode": tmp_path / "modes.csv"}
