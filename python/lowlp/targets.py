"""What each GPU architecture has (docs/targets.md)."""

from lowlp.compiler.targets import Target as Target
from lowlp.compiler.targets import target as target
from lowlp.compiler.targets import targets as targets
