"""Makes links of the pages that lead to the source tree, and not to a page, plain text: the site has no sources."""

import os
import re

# The folders and files of the tree that pages name and the site doesn't have.
SOURCES = re.compile(r"\[([^\]]*)\]\((?:\.\./)*(?:LICENSE|bench|cmake|configs|cuda|examples|include|python|scripts|src|tests)"
                     r"(?:/[^)]*)?\)")


def on_page_markdown(markdown, **_):
    return SOURCES.sub(r"\1", markdown)


def on_post_build(config, **_):
    """Removes the page for a web server's root: its links are absolute."""
    page = os.path.join(config["site_dir"], "404.html")
    if os.path.exists(page):
        os.remove(page)
