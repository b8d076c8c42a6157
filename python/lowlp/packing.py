"""The packed format, for whoever packs by hand: what `lowlp.weights.packing` offers (docs/packed-format.md)."""

from lowlp.weights.packing import PACKED_FORMAT_VERSION as PACKED_FORMAT_VERSION
from lowlp.weights.packing import find_placement as find_placement
from lowlp.weights.packing import pack as pack
from lowlp.weights.packing import packed_shape as packed_shape
from lowlp.weights.packing import padded_shape as padded_shape
from lowlp.weights.packing import placement_name as placement_name
from lowlp.weights.packing import unpack as unpack
