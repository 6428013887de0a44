"""A kernel comes in; who sent the cell that it runs goes out. The attributes are private to ipykernel."""

from __future__ import annotations

from typing import Any


def asker(kernel: Any) -> Any:
    """The identity of the client that sent the running cell.

    Raises
    ------
    AttributeError, KeyError, LookupError
        The kernel is not built as those that are known.
    """
    of_context = getattr(kernel, "_get_shell_context_var", None)
    if of_context is not None:  # ipykernel >= 7.1
        return of_context(kernel._shell_parent_ident)  # noqa: SLF001 - nothing public tells it
    if hasattr(kernel, "_shell_parent_ident"):  # ipykernel 7.0
        return kernel._shell_parent_ident.get()  # noqa: SLF001 - same
    return kernel._parent_ident["shell"]  # noqa: SLF001 - same
