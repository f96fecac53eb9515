"""`harness init`: a project of one's own."""

from harness.scaffold.project import FILES, next_commands, write_project

__all__ = ["FILES", "next_commands", "write_project"]
