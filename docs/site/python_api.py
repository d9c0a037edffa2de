"""Writes the reference of the Python package into a folder: `python_api.py PYTHON_FOLDER OUT`.

It documents the sources. Their compiled part is that of an installed package, where there is one; else a stand-in, which
has names but no documentation.
"""

import importlib.util
import pathlib
import sys
import types
import warnings


class StandIns(types.ModuleType):
    """A module that has every name: types, and exceptions for names that end in Error."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name[0].islower():
            return lambda *_, **__: name
        base = Exception if name.endswith("Error") else object
        of_package = self.__name__.startswith("slidestream.")
        made = type(name, (base,), {"__module__": "slidestream" if of_package else self.__name__,
                                    "__doc__": "Part of the compiled module." if of_package else ""})
        setattr(self, name, made)
        return made


def main(folder, out):
    # The folder of the package has no compiled part: it comes from the first installed one, if any.
    installed = importlib.util.find_spec("slidestream")
    sys.path.insert(0, folder)
    if installed and any(pathlib.Path(installed.origin).parent.glob("_core*.so")):
        sys.path.pop(0)
    else:
        print("docs.sh: the Python package isn't installed; its reference has no documentation of compiled classes")
        core = StandIns("slidestream._core")
        core.version = lambda: "0"
        sys.modules["slidestream._core"] = core
    for name in ("torch", "torch.utils", "torch.utils.data", "pandas"):
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = StandIns(name)
    import pdoc
    import pdoc.render

    pdoc.render.configure(docformat="google", search=True, show_source=False, template_directory=pathlib.Path(__file__).parent / "pdoc")
    warnings.simplefilter("error")
    # pdoc looks for the types of a NamedTuple's constructor in the wrong module.
    warnings.filterwarnings("ignore", "Error parsing type annotation ForwardRef")
    pdoc.pdoc("slidestream", "slidestream.torch", output_directory=pathlib.Path(out))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
