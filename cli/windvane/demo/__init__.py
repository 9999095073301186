# SPDX-License-Identifier: Apache-2.0
"""`windvane demo`: a whole federation on this machine."""

from windvane.demo.command import app

__all__ = ["app"]
