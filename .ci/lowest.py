"""The oldest version allowed of everything that the package depends on, a line each."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
sys.stdout.writelines(need.replace(">=", "==") + "\n" for need in project["dependencies"])
