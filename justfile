# SPDX-License-Identifier: Apache-2.0
# One word per job. `dev.py` holds the commands, so that they run without just too.

default: check test

# install everything a developer needs
dev:
    python3 dev.py dev

# format, lint, types, import rules
check:
    python3 dev.py check

# the tests (under 12 minutes on 2 cores)
test *arguments:
    python3 dev.py test {{arguments}}

# every branch of the privacy core is tested
coverage *arguments:
    python3 dev.py coverage {{arguments}}

# the long suites
slow *arguments:
    python3 dev.py slow {{arguments}}

# the benchmarks
bench *arguments:
    python3 dev.py bench {{arguments}}

# the tests of the documentation
docs:
    python3 dev.py docs
