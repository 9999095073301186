# SPDX-License-Identifier: Apache-2.0
"""Tool names to tool classes.

Rules kept here:
* names match exactly; a trailing `*` matches any suffix;
* an organisation's own entries ([tools] in rules.toml) come before the built-in ones;
* no tool is `doc` or `ticket` by itself: only an organisation can say so;
* the name is dropped at once, only the class is kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from windvane_client.events import TOOL_CLASSES
from windvane_privacy.errors import ConfigurationError

_NAMES: Mapping[str, str] = {
    "edit": "Edit MultiEdit Write apply_patch write_to_file replace_in_file apply_diff insert_content "
    "search_and_replace editor file_editor str_replace_editor write_file replace edit",
    "run": "Bash PowerShell exec_command shell shell_command local_shell execute_command run_commands "
    "run_shell_command terminal execute_bash",
    "data": "NotebookEdit code_interpreter python ipython execute_ipython_cell execute_sql",
    "web": "WebSearch WebFetch web_search google_web_search web_fetch browser browser_action",
    "read": "Read Glob Grep LS NotebookRead read_file read_files read_many_files list_directory list_files "
    "search_files search_file_content grep_search glob codebase_search list_code_definition_names find_file open",
    "plan": "TodoWrite Task* Agent Skill EnterPlanMode ExitPlanMode AskUserQuestion ToolSearch update_plan "
    "task_tracker think finish attempt_completion ask_followup_question new_task spawn_agent save_memory",
    "mcp": "mcp__* use_mcp_tool",
}
_CACHE_LIMIT = 1024


class ToolClasses:
    """Lookup with the organisation's entries first.

    Raises:
        ConfigurationError: an entry names a class that does not exist, or a `*` that is not at the end.
    """

    def __init__(self, extra: Mapping[str, str] | None = None) -> None:
        self._exact: dict[str, str] = {}
        self._prefixes: list[tuple[str, str]] = []
        for name, tool_class in (extra or {}).items():
            if tool_class not in TOOL_CLASSES or "*" in name[:-1] or not name:
                raise ConfigurationError("An entry under [tools] has a class that does not exist, or a misplaced *.")
            self._add(name, tool_class)
        for tool_class, names in _NAMES.items():
            for name in names.split():
                self._add(name, tool_class)
        self._seen: dict[str, tuple[str, str]] = {}

    def _add(self, name: str, tool_class: str) -> None:
        if name.endswith("*"):
            self._prefixes.append((name[:-1], tool_class))
        else:
            self._exact.setdefault(name, tool_class)

    def classify(self, name: str) -> tuple[str, str]:
        """(class, origin) of a tool name; origin is `mcp`, `builtin` or `unknown`."""
        known = self._seen.get(name)
        if known is None:
            known = self._classify(name)
            if len(self._seen) < _CACHE_LIMIT:
                self._seen[name] = known
        return known

    def _classify(self, name: str) -> tuple[str, str]:
        tool_class = self._exact.get(name)
        if tool_class is None:
            tool_class = next((c for prefix, c in self._prefixes if name.startswith(prefix)), "unknown")
        if name.startswith("mcp__") or name == "use_mcp_tool":
            return tool_class, "mcp"
        return tool_class, "unknown" if tool_class == "unknown" else "builtin"


BUILTIN_TOOLS = ToolClasses()
"""The built-in names only."""
