# SPDX-License-Identifier: Apache-2.0
"""python3 bench/report --help"""

import sys

from command import main

sys.exit(main(sys.argv[1:]))
