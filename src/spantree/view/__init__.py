"""Trees and probabilities as pictures: text, SVG, HTML, and what other programs draw."""

from .exports import displacy, dot, matplotlib_axes, tikz
from .heat import heat_map
from .svg import tree_svg
from .text import text_arcs, text_rows

__all__ = ["displacy", "dot", "heat_map", "matplotlib_axes", "text_arcs", "text_rows", "tikz", "tree_svg"]
