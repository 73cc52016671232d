"""Settings of the documentation site: `make docs` builds it from the pages of the repository."""

project = "mxrt"
author = "The mxrt developers"
copyright = author
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "mxrt"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# No page marks words for an index.
html_use_index = False
# The pages link to each other by headings, as GitHub shows them.
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]
nitpicky = True
# Words such as --params stay what a shell understands; a dash in their place does not.
smartquotes = False
