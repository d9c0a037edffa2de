"""docs/configuration.md says what the program says: configuration_doc_test.py PIPELINE"""

import pathlib
import subprocess
import sys

document = pathlib.Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
documented = document.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
printed = subprocess.run([sys.argv[1], "--print-config"], check=True, capture_output=True, text=True).stdout
if documented != printed:
    sys.exit("docs/configuration.md is out of date: run scripts/make-configuration-doc.sh PIPELINE")
