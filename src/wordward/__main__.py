"""`python -m wordward`, for launchers such as `torchrun -m wordward`."""

import sys

from wordward.cli import main

sys.exit(main())
