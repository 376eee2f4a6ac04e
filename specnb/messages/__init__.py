"""Every text that a figure or a widget shows, and how numbers are written in them.

Fixed texts are constants; texts with numbers are functions of those numbers. One module a subject; readers say
``messages.speedup`` whatever the subject, so all names are gathered here.
"""

# ruff: noqa: F403
from __future__ import annotations

from .cards import *
from .costs import *
from .diagnoses import *
from .drafts import *
from .figures import *
from .guesses import *
from .intake import *
from .live import *
from .load import *
from .runs import *
from .speedups import *
from .stepping import *
from .texts import *
from .tuning import *
from .writing import *
