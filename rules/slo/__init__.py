"""SLOs as rules under the names of Sloth (https://sloth.dev), so that dashboards made for it show them."""

PREFIX = "sloth-slo-"
"""Of the names of the groups."""
SHARED = f"{PREFIX}series"
"""The group of the engines' series that several SLOs read."""
