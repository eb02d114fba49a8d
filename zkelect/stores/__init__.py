"""Guarded stores: each refuses a stale leader's token, atomically with the write.

A name is imported when it is first used, so that a program pays only for the database
library of the store it has (a store's library may be an extra that is not installed).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zkelect.stores.adoption import adopt
    from zkelect.stores.async_redis import AsyncRedisFence
    from zkelect.stores.async_sql import AsyncSqlFence
    from zkelect.stores.file import FileFence
    from zkelect.stores.http_asgi import AsyncFencingMiddleware
    from zkelect.stores.http_client import RequestsAuth, async_httpx_hooks, httpx_hooks
    from zkelect.stores.http_header import HEADER, read_token
    from zkelect.stores.http_rule import SAFE
    from zkelect.stores.http_wsgi import FencingMiddleware
    from zkelect.stores.mark import Mark
    from zkelect.stores.memory import MemoryFence
    from zkelect.stores.receiver import Receiver
    from zkelect.stores.redis import RedisFence
    from zkelect.stores.s3 import S3Fence
    from zkelect.stores.sql import SqlFence
    from zkelect.stores.sql_table import fence_table
    from zkelect.stores.sqlite import SqliteFence
    from zkelect.stores.znode import ZnodeFence

__all__ = [
    "HEADER",
    "SAFE",
    "AsyncFencingMiddleware",
    "AsyncRedisFence",
    "AsyncSqlFence",
    "FencingMiddleware",
    "FileFence",
    "Mark",
    "MemoryFence",
    "Receiver",
    "RedisFence",
    "RequestsAuth",
    "S3Fence",
    "SqlFence",
    "SqliteFence",
    "ZnodeFence",
    "adopt",
    "async_httpx_hooks",
    "fence_table",
    "httpx_hooks",
    "read_token",
]

_MODULES: Final = {
    "HEADER": "http_header",
    "SAFE": "http_rule",
    "AsyncFencingMiddleware": "http_asgi",
    "AsyncRedisFence": "async_redis",
    "AsyncSqlFence": "async_sql",
    "FencingMiddleware": "http_wsgi",
    "FileFence": "file",
    "Mark": "mark",
    "MemoryFence": "memory",
    "Receiver": "receiver",
    "RedisFence": "redis",
    "RequestsAuth": "http_client",
    "S3Fence": "s3",
    "SqlFence": "sql",
    "SqliteFence": "sqlite",
    "ZnodeFence": "znode",
    "adopt": "adoption",
    "async_httpx_hooks": "http_client",
    "fence_table": "sql_table",
    "httpx_hooks": "http_client",
    "read_token": "http_header",
}


_EXTRAS: Final = {
    "async_redis": "redis",
    "async_sql": "sql",
    "redis": "redis",
    "s3": "s3",
    "sql": "sql",
    "sql_table": "sql",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    try:
        return getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        if module not in _EXTRAS or str(error.name).startswith("zkelect"):
            raise
        extra = f"pip install 'zkelect[{_EXTRAS[module]}]'"
        message = f"{__name__}.{name} needs {error.name}, which is not installed: {extra}"
        raise ModuleNotFoundError(message, name=error.name) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
