"""Drawings of layouts: which thread holds an element, which bits it takes, which bank it lies in.

from lowlp.drawing import draw_layout, to_svg
open("rows.svg", "w").write(to_svg(draw_layout(lowlp.local(2, 1).spatial(8, 4).local(1, 2))))
"""

from .packed_bits import draw_packed_bits as draw_packed_bits
from .picture import Picture as Picture
from .picture import stacked as stacked
from .placement_bits import draw_placement as draw_placement
from .png import to_png as to_png
from .register_layout import draw_layout as draw_layout
from .shared_banks import KINDS as KINDS
from .shared_banks import access_passes as access_passes
from .shared_banks import bank_table as bank_table
from .shared_banks import draw_banks as draw_banks
from .svg import to_svg as to_svg

__all__ = [
    "KINDS",
    "Picture",
    "access_passes",
    "bank_table",
    "draw_banks",
    "draw_layout",
    "draw_packed_bits",
    "draw_placement",
    "stacked",
    "to_png",
    "to_svg",
]
