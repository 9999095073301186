# SPDX-License-Identifier: Apache-2.0
"""`python -m windvane`, the same as the command `windvane`.

Rules kept here:
* nothing but the call.
"""

from windvane.main import run

if __name__ == "__main__":
    run()
