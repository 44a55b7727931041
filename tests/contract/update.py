"""Write what is observed now to expected.json: `python tests/contract/update.py`.

Only for a change that is meant; say in the changelog what users will notice.
"""

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import observe  # noqa: E402 - it lies beside this script


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "commands").mkdir()
        (folder / "json").mkdir()
        found = {}
        for number, name in enumerate(observe.RELEASES):
            out = folder / str(number)
            observe.released(name, out)
            found[name] = observe.digests(out)
        expected = {
            "releases": found,
            "manifest": observe.manifest(folder / "0"),
            "public_names": observe.public_names(),
            "options": observe.options(),
            "exit_codes": observe.exit_codes(folder / "commands"),
            "json_keys": observe.json_keys(folder / "json"),
        }
    text = json.dumps(expected, indent=1, sort_keys=True)
    (HERE / "expected.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
