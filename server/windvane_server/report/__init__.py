# SPDX-License-Identifier: Apache-2.0
"""The public report as a folder of static files.

Rules kept here:
* `build_site` is a pure function of the report, the manifest and the earlier reports;
* `publish_round` writes a new folder, lints it, signs it and only then swaps it in.
"""

from windvane_server.report.publish import Publication, publish_round
from windvane_server.report.site import build_site

__all__ = ["Publication", "build_site", "publish_round"]
