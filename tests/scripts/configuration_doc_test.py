"""docs/configuration.md says what the program says: configuration_doc_test.py PIPELINE"""

import pathlib
import subprocess
import sys
import unittest

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


class Documented(unittest.TestCase):
    def test_the_document_has_what_is_printed(self):
        documented = DOCUMENT.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
        printed = subprocess.run([PIPELINE, "--print-config"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(documented, printed, "run scripts/make-configuration-doc.sh PIPELINE")


if __name__ == "__main__":
    PIPELINE = sys.argv.pop(1)
    unittest.main()
