"""`python -m wordward`, for launchers such as `torchrun -m wordward`."""

import sys

from wordward.cli.main import main

sys.exit(main())
